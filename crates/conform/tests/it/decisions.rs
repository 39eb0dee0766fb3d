//! Replays of recorded decisions of the kernels' schedulers, and errors of invalid files.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use hoistway_conform::decisions::{
    Decision, DecisionError, FileReport, List, MergeKind, PlugEvent, Scenario, ScenarioError, compare, replay_file,
    replay_scenario,
};
use serde_json::{Value, json};

fn recordings() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/decisions")
}

/// The text of a recorded file.
fn text_of(stem: &str) -> String {
    let file = fs::File::open(recordings().join(format!("{stem}.jsonl.gz"))).unwrap();
    let mut text = String::new();
    GzDecoder::new(file).read_to_string(&mut text).unwrap();
    text
}

/// The first scenario of a file that has an entry in each of these lists.
fn scenario_with(stem: &str, lists: &[&str]) -> Value {
    let text = text_of(stem);
    let mut scenarios = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    scenarios.find(|s| lists.iter().all(|list| s[list].as_array().is_some_and(|entries| !entries.is_empty()))).unwrap()
}

fn in_file(name: &str, content: &[u8]) -> (tempfile::TempDir, Result<FileReport, DecisionError>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, content).unwrap();
    let result = replay_file(&path, |_| ());
    (folder, result)
}

fn gzipped(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

/// The first difference of a scenario with a changed recording.
fn difference(scenario: &Value) -> Option<(List, usize, Option<Decision>, Option<Decision>)> {
    let scenario = Scenario::from_json(scenario.to_string().as_bytes()).unwrap();
    let (difference, events) = compare(&scenario, &replay_scenario(&scenario))?;
    assert!(events.len() <= 10);
    Some((difference.list, difference.index, difference.expected, difference.got))
}

fn error_of(scenario: &Value) -> ScenarioError {
    Scenario::from_json(scenario.to_string().as_bytes()).unwrap_err()
}

#[test]
fn every_recorded_decision_is_reproduced() {
    let (mut files, mut decisions, mut wrong) = (0, 0, Vec::new());
    for entry in fs::read_dir(recordings()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "gz") {
            continue;
        }
        let report = replay_file(&path, |_| ()).unwrap();
        files += 1;
        decisions += report.decisions;
        assert_eq!(report.identical as usize + report.differences.len(), report.total as usize);
        for scenario in report.differences {
            let events = scenario.last_events.join("\n    ");
            let (name, line) = (scenario.name, scenario.line);
            wrong.push(format!("{}:{line} {name}: {}\n    {events}", report.file, scenario.difference));
        }
    }
    assert!(files >= 24, "only {files} files");
    assert!(decisions > 90_000, "only {decisions} decisions were compared");
    assert!(wrong.is_empty(), "{} scenarios differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn two_swapped_requests_differ_at_the_first() {
    let mut scenario = scenario_with("linux-2.6.18-cfq", &["dispatch"]);
    assert_eq!(difference(&scenario), None);
    let (a, b) = (scenario["dispatch"][7].clone(), scenario["dispatch"][8].clone());
    scenario["dispatch"][7][0] = b[0].clone();
    scenario["dispatch"][8][0] = a[0].clone();
    let id = |value: &Value| value.as_u64().unwrap() as u32;
    let at_ns = a[1].as_u64().unwrap();
    let expected = Decision::Dispatch { id: id(&b[0]), at_ns };
    let got = Decision::Dispatch { id: id(&a[0]), at_ns };
    assert_eq!(difference(&scenario), Some((List::Dispatch, 7, Some(expected), Some(got))));
}

#[test]
fn a_nanosecond_counts_as_a_difference() {
    let mut scenario = scenario_with("linux-2.6.18-anticipatory", &["dispatch"]);
    let last = scenario["dispatch"].as_array().unwrap().len() - 1;
    let at_ns = scenario["dispatch"][last][1].as_u64().unwrap();
    scenario["dispatch"][last][1] = json!(at_ns + 1);
    let (list, index, expected, got) = difference(&scenario).unwrap();
    assert_eq!((list, index), (List::Dispatch, last));
    assert_eq!(expected.map(Decision::at_ns), Some(at_ns + 1));
    assert_eq!(got.map(Decision::at_ns), Some(at_ns));
}

#[test]
fn a_missing_or_extra_entry_differs_at_the_end_of_its_list() {
    let plugging =
        scenario_with("linux-2.6.18-deadline-plug", &["merge", "plug", "sleeps", "late", "dispatch", "complete"]);
    let tokens = scenario_with("linux-6.1-kyber-long", &["token_depth"]);
    assert_eq!((difference(&plugging), difference(&tokens)), (None, None));
    for list in List::ALL {
        let full = if list == List::TokenDepth { &tokens } else { &plugging };
        let entries = full[list.name()].as_array().unwrap();
        let mut short = full.clone();
        short[list.name()].as_array_mut().unwrap().pop();
        let (found, index, expected, got) = difference(&short).unwrap();
        assert_eq!((found, index, expected), (list, entries.len() - 1, None), "{}", list.name());
        assert!(got.is_some());
        let mut long = full.clone();
        let again = entries.last().unwrap().clone();
        long[list.name()].as_array_mut().unwrap().push(again);
        let (found, index, expected, got) = difference(&long).unwrap();
        assert_eq!((found, index, got), (list, entries.len(), None), "{}", list.name());
        assert!(expected.is_some());
    }
}

#[test]
fn the_earliest_of_several_differences_is_reported() {
    let mut scenario = scenario_with("linux-2.6.18-deadline-plug", &["merge", "plug", "sleeps", "late"]);
    let last = scenario["dispatch"].as_array().unwrap().len() - 1;
    scenario["dispatch"][last][1] = json!(u64::MAX);
    scenario["plug"][0][0] = json!("timer");
    let (list, index, expected, got) = difference(&scenario).unwrap();
    assert_eq!((list, index), (List::Plug, 0));
    assert!(matches!(expected, Some(Decision::Plug { what: PlugEvent::Timer, .. })));
    assert!(matches!(got, Some(Decision::Plug { what: PlugEvent::Plug, .. })));
}

#[test]
fn a_changed_merge_is_a_difference() {
    let mut scenario = scenario_with("linux-2.6.18-noop-merge", &["merge"]);
    let how = if scenario["merge"][0][2] == "back" { MergeKind::Front } else { MergeKind::Back };
    scenario["merge"][0][2] = json!(how);
    let (list, index, expected, _) = difference(&scenario).unwrap();
    assert_eq!((list, index), (List::Merge, 0));
    assert!(matches!(expected, Some(Decision::Merge { how: found, .. }) if found == how));
}

#[test]
fn the_dispatch_of_a_merged_request_ends_the_replay_with_a_reason() {
    let mut scenario = scenario_with("linux-2.6.18-noop-merge", &["merge"]);
    scenario["nomerge"] = json!(true);
    let scenario = Scenario::from_json(scenario.to_string().as_bytes()).unwrap();
    let replay = replay_scenario(&scenario);
    assert!(replay.stopped().unwrap().contains("which it did not in the recording"), "{:?}", replay.stopped());
    let (difference, _) = compare(&scenario, &replay).unwrap();
    assert_eq!((difference.list, difference.index), (List::Merge, 0));
    assert_eq!(difference.got, None);
}

#[test]
fn a_difference_is_reported_with_the_ten_events_before_it() {
    let mut scenario = scenario_with("linux-2.6.18-deadline", &["dispatch"]);
    scenario["dispatch"][9][1] = json!(u64::MAX);
    let (_, report) = in_file("a.jsonl", scenario.to_string().as_bytes());
    let report = report.unwrap();
    assert_eq!((report.total, report.identical), (1, 0));
    let differing = &report.differences[0];
    assert_eq!((differing.line, differing.difference.index), (1, 9));
    assert_eq!(differing.last_events.len(), 10);
    assert!(differing.last_events.iter().all(|event| event.contains(" ms  ")), "{:?}", differing.last_events);
    let text = differing.difference.to_string();
    assert!(text.starts_with("dispatch[9]: expected request ") && text.contains(", got request "), "{text}");
}

#[test]
fn plain_and_compressed_files_give_the_same_result_and_progress_rises() {
    let text = text_of("linux-2.6.18-noop-extra");
    let (_, plain) = in_file("a.jsonl", text.as_bytes());
    let (_, packed) = in_file("a.jsonl.gz", &gzipped(text.as_bytes()));
    let (plain, packed) = (plain.unwrap(), packed.unwrap());
    assert_eq!((plain.total, plain.identical, plain.decisions), (packed.total, packed.identical, packed.decisions));
    let mut seen = Vec::new();
    let report = replay_file(&recordings().join("linux-2.6.18-noop-extra.jsonl.gz"), |done| seen.push(done)).unwrap();
    assert_eq!(seen, (1..=report.total).collect::<Vec<_>>());
}

#[test]
fn a_truncated_file_is_reported_with_its_line() {
    let text = text_of("linux-2.6.18-noop-extra");
    let half = &text.as_bytes()[..text.len() / 2];
    let line = half.iter().filter(|byte| **byte == b'\n').count() + 1;
    let (folder, result) = in_file("half.jsonl", half);
    let message = result.unwrap_err().to_string();
    let file = folder.path().join("half.jsonl").display().to_string();
    assert_eq!(message, format!("{file}:{line}: the file ends in the middle of a scenario"));
}

#[test]
fn a_compressed_file_truncated_anywhere_is_reported_as_truncated() {
    let packed = gzipped(text_of("linux-2.6.18-noop-extra").as_bytes());
    for end in [3, 9, 10, 11, packed.len() / 2, packed.len() - 9, packed.len() - 1] {
        let (_, result) = in_file("half.jsonl.gz", &packed[..end]);
        let error = result.unwrap_err();
        assert!(matches!(error, DecisionError::CutOff { line: 1.., .. }), "cut at {end}: {error}");
        assert!(error.to_string().ends_with("the file ends in the middle of a scenario"));
    }
}

#[test]
fn a_damaged_compressed_file_is_reported_as_damaged() {
    let mut packed = gzipped(text_of("linux-2.6.18-noop-extra").as_bytes());
    let length = packed.len();
    packed[length - 6] ^= 0x55; // In the checksum, so that all lines unpack.
    let (_, result) = in_file("a.jsonl.gz", &packed);
    let error = result.unwrap_err();
    assert!(matches!(error, DecisionError::Damaged { .. }), "{error}");
}

#[test]
fn files_that_cannot_be_opened_are_reported_by_name() {
    let (_, result) = in_file("a.jsonl", b"");
    assert!(matches!(result.unwrap_err(), DecisionError::Empty { .. }));
    let (_, result) = in_file("a.jsonl", b"\n \n");
    assert!(matches!(result.unwrap_err(), DecisionError::Empty { .. }));
    let (_, result) = in_file("a.jsonl.gz", b"{}\n");
    assert!(matches!(result.unwrap_err(), DecisionError::NotGzip { .. }));
    let error = replay_file(Path::new("no/such/file.jsonl"), |_| ()).unwrap_err();
    assert!(error.to_string().starts_with("no/such/file.jsonl: cannot be read: "), "{error}");
    let error = replay_file(&recordings(), |_| ()).unwrap_err();
    assert!(matches!(error, DecisionError::Io { .. }), "{error}");
}

#[test]
fn an_invalid_line_is_reported_with_number_and_column() {
    let good = scenario_with("linux-2.6.18-noop", &["dispatch"]).to_string();
    let (_, result) = in_file("a.jsonl", format!("{good}\n\n{{\"name\": 7}}\n{good}\n").as_bytes());
    let message = result.unwrap_err().to_string();
    assert!(message.contains("a.jsonl:3: no scenario: invalid type: integer `7`, expected a string"), "{message}");
    assert!(message.contains("(column 10)"), "{message}");
}

#[test]
fn a_missing_or_unknown_field_is_named() {
    let good = scenario_with("linux-2.6.18-noop", &["dispatch"]);
    let mut odd = good.clone();
    odd["colour"] = json!("red");
    assert!(error_of(&odd).to_string().contains("unknown field `colour`"));
    let mut odd = good.clone();
    odd["requests"][1]["colour"] = json!("red");
    assert!(error_of(&odd).to_string().contains("unknown field `colour`"));
    for field in ["name", "source", "hz", "depth", "tunables", "processes", "requests", "dispatch"] {
        let mut odd = good.clone();
        odd.as_object_mut().unwrap().remove(field);
        let message = error_of(&odd).to_string();
        assert!(message.contains(&format!("missing field `{field}`")), "{message}");
    }
}

#[test]
fn an_unknown_source_is_an_error_that_lists_the_known_ones() {
    let mut scenario = scenario_with("linux-2.6.18-noop", &["dispatch"]);
    scenario["source"] = json!("linux-2.6.18 elevator");
    let message = error_of(&scenario).to_string();
    assert!(
        message.starts_with("unknown source \"linux-2.6.18 elevator\"; known are: linux-2.6.18 noop, "),
        "{message}"
    );
}

#[test]
fn invalid_values_are_errors_with_the_valid_ones() {
    let good = scenario_with("linux-2.6.18-deadline-plug", &["merge", "dispatch"]);
    let changes: &[(&str, Value, &str)] = &[
        ("/depth", json!(0), "depth is 0; a device takes 1 request or more"),
        ("/hz", json!(1001), "hz is 1001; 1 to 1000 would be right"),
        ("/processes/0/level", json!(8), "processes[0].level is 8; 0 to 7 would be right"),
        ("/requests/2/id", json!(3), "requests[2].id is 3; its position, 2, would be right"),
        ("/requests/0/pid", json!(77), "requests[0].pid is 77; no process has this pid"),
        ("/requests/0/sectors", json!(0), "requests[0].sectors is 0; 1 or more would be right"),
        ("/requests/0/sector", json!(u64::MAX), "the request would end beyond sector 2^64"),
        ("/requests/0/at_ns", Value::Null, "requests[0] is without a time; either at_ns, or after and think_ns"),
        ("/tunables", json!({"nr_requests": 3}), "tunables.nr_requests is 3; 4 or more would be right"),
        ("/tunables", json!({"quantum": 3}), "tunables.quantum is 3; deadline has no tunable of this name"),
        ("/tunables", json!({"front_merges": 2}), "tunables.front_merges is 2; 0 to 1 would be right"),
        ("/dispatch/0/0", json!(99999), "dispatch[0] is 99999; there are "),
        ("/merge/0/1", json!(99999), "merge[0] is 99999; there are "),
    ];
    for (place, value, text) in changes {
        let mut scenario = good.clone();
        *scenario.pointer_mut(place).unwrap() = value.clone();
        let message = error_of(&scenario).to_string();
        assert!(message.contains(text), "{place}: {message}");
    }
    let mut scenario = good.clone();
    let first = scenario["processes"][0].clone();
    scenario["processes"].as_array_mut().unwrap().push(first);
    assert!(error_of(&scenario).to_string().ends_with("an earlier process has this pid"));
    let mut scenario = good.clone();
    let id = scenario["dispatch"][0][0].as_u64().unwrap() as usize;
    scenario["requests"][id].as_object_mut().unwrap().remove("service_ns");
    let message = error_of(&scenario).to_string();
    assert!(message.ends_with("it is in the list dispatch, so it needs a service_ns"), "{message}");
}

/// Replaces numbers of a scenario at random, thousands of times: each replay returns a result or an
/// error.
#[test]
fn no_scenario_makes_the_replay_panic_or_hang() {
    let stems =
        ["linux-2.6.18-cfq-plug", "linux-2.6.18-anticipatory", "linux-4.19-deadline-merge", "linux-2.6.18-noop-merge"];
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    let (mut replayed, mut refused) = (0, 0);
    for stem in stems {
        let text = text_of(stem);
        let line = text.lines().min_by_key(|line| line.len()).unwrap();
        let numbers = numbers_of(line);
        for _ in 0..500 {
            let mut changed = line.to_owned();
            let mut table: Vec<_> = (0..1 + random(4)).map(|_| numbers[random(numbers.len())].clone()).collect();
            table.sort_by_key(|place| place.start);
            table.dedup();
            for place in table.into_iter().rev() {
                let values =
                    ["0", "1", "2", "7", "1000", "999999", "4294967295", "9223372036854775807", "18446744073709551615"];
                changed.replace_range(place, values[random(values.len())]);
            }
            match Scenario::from_json(changed.as_bytes()) {
                Ok(scenario) => {
                    let _ = compare(&scenario, &replay_scenario(&scenario));
                    replayed += 1;
                }
                Err(_) => refused += 1,
            }
        }
    }
    assert!(replayed > 500 && refused > 100, "{replayed} replayed, {refused} refused");
}

/// The positions of the numbers in a line of JSON.
fn numbers_of(line: &str) -> Vec<std::ops::Range<usize>> {
    let mut numbers: Vec<std::ops::Range<usize>> = Vec::new();
    for (at, byte) in line.bytes().enumerate() {
        let before = at.checked_sub(1).and_then(|at| line.as_bytes().get(at)).copied().unwrap_or(b' ');
        match numbers.last_mut() {
            _ if !byte.is_ascii_digit() => {}
            Some(last) if last.end == at => last.end += 1,
            _ if matches!(before, b':' | b',' | b'[') => numbers.push(at..at + 1),
            _ => {}
        }
    }
    numbers
}
