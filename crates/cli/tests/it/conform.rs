//! `hoistway conform`, from outside.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};

use crate::common::{Folder, decisions, run};
use flate2::read::GzDecoder;
use serde_json::{Value, json};

const FILE: &str = "linux-4.19-noop.jsonl.gz";

/// The first scenario of the test data.
fn scenario() -> Value {
    let file = File::open(decisions(FILE)).expect("the test data is there");
    let line = BufReader::new(GzDecoder::new(file)).lines().next().expect("a line").expect("readable");
    serde_json::from_str(&line).expect("JSON")
}

/// A file of two scenarios; in the second, one request is dispatched a nanosecond later than in the
/// recording.
fn corrupted(folder: &Folder) -> String {
    let good = scenario();
    let mut bad = good.clone();
    let at_ns = bad["dispatch"][3][1].as_u64().expect("a time");
    bad["dispatch"][3][1] = json!(at_ns + 1);
    folder.file("corrupted.jsonl", format!("{good}\n{bad}\n"))
}

#[test]
fn identical_decisions_are_counted_and_succeed() {
    let file = decisions(FILE);
    let name = file.to_str().expect("UTF-8");
    let ran = run(&["conform", name]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let (before, counts) = ran.out.trim_end().rsplit_once("  ").expect("FILE  identical/total");
    let (identical, total) = counts.split_once('/').expect("identical/total");
    assert_eq!(before, name);
    assert!(identical == total && total.parse::<u32>().is_ok_and(|total| total > 0), "{counts}");
}

#[test]
fn one_nanosecond_of_difference_exits_with_3() {
    let folder = Folder::new();
    let file = corrupted(&folder);
    let ran = run(&["conform", &file]);
    assert_eq!((ran.code, ran.out), (Some(3), format!("{file}  1/2\n")));
}

#[test]
fn markdown_has_counts_differences_and_elevators_without_recordings() {
    let folder = Folder::new();
    let ran = run(&["conform", "--markdown", &corrupted(&folder)]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(3), ""));
    let line = |start: &str| {
        let found = ran.out.lines().find(|line| line.starts_with(start));
        found.unwrap_or_else(|| panic!("no line begins with {start:?}: {}", ran.out))
    };
    assert!(line("1 of 2 scenarios are identical; they hold ").ends_with(" decisions."));
    assert!(line("| linux-4.19 noop | `noop` | 1 / 2 | ").ends_with(" |"));
    assert_eq!(line("| file | "), "| file | identical | dispatch | complete |");
    assert!(line("| `corrupted` | 1 / 2 | ").ends_with(" |"));
    assert!(line("- `corrupted`, line 2, ").contains("dispatch[3]: expected request "));
    assert!(line("No recording is for ").contains("`deadline`, ") && !line("No recording is for ").contains("`noop`"));
    assert_eq!(run(&["conform", "--markdown", "--json", "x"]).code, Some(2));
}

#[test]
fn verbose_prints_the_first_difference_and_the_events_before_it() {
    let folder = Folder::new();
    let ran = run(&["conform", "-v", &corrupted(&folder)]);
    let lines: Vec<&str> = ran.out.lines().collect();
    assert!(lines[1].starts_with("  line 2 ") && lines[1].contains("dispatch[3]: expected"), "{}", ran.out);
    let events = lines[2..].len();
    assert!((1..=10).contains(&events) && lines[2..].iter().all(|line| line.starts_with("    ")), "{}", ran.out);
}

#[test]
fn json_has_a_file_s_counts_and_differences() {
    let folder = Folder::new();
    let ran = run(&["conform", "--json", &corrupted(&folder)]);
    assert_eq!(ran.code, Some(3));
    let document: Value = serde_json::from_str(&ran.out).expect("JSON");
    let file = &document["files"][0];
    assert_eq!((&document["schema"], &file["identical"], &file["total"]), (&json!(1), &json!(1), &json!(2)));
    assert_eq!(file["differences"][0]["line"], json!(2));
    assert_eq!(file["differences"][0]["difference"]["index"], json!(3));
}

#[test]
fn files_are_printed_in_the_order_of_the_command_line() {
    let folder = Folder::new();
    let small = folder.file("small.jsonl", format!("{}\n", scenario()));
    let large = decisions(FILE).to_str().expect("UTF-8").to_owned();
    let order = [&large, &small, &large, &small];
    let ran = run(&["conform", order[0], order[1], order[2], order[3]]);
    let names: Vec<&str> = ran.out.lines().filter_map(|line| line.split("  ").next()).collect();
    assert_eq!(names, order);
}

#[test]
fn a_truncated_file_is_an_error_and_the_others_are_printed() {
    let folder = Folder::new();
    let whole = fs::read(decisions(FILE)).expect("the test data is there");
    let packed = folder.file("cut.jsonl.gz", &whole[..whole.len() / 2]);
    let text = format!("{}\n", scenario());
    let plain = folder.file("cut.jsonl", &text[..text.len() / 2]);
    let good = folder.file("good.jsonl", &text);
    let ran = run(&["conform", &packed, &plain, &good]);
    assert_eq!((ran.code, ran.out), (Some(1), format!("{good}  1/1\n")));
    for part in ["cut.jsonl.gz:", "cut.jsonl:1: the file ends in the middle of a scenario"] {
        assert!(ran.err.contains(part), "{}", ran.err);
    }
}

#[test]
fn a_missing_file_is_an_error() {
    run(&["conform", "not-there.jsonl"]).refused(1, &["not-there.jsonl", "No such file"]);
}

#[test]
fn no_file_at_all_is_a_usage_error() {
    run(&["conform"]).refused(2, &["<FILE>"]);
}
