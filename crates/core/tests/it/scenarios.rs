//! Worked scenarios, small enough to check by hand: `testdata/scenarios`. Their language is
//! described in `scenario/text.rs`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::scenario::{Issue, Scenario, play, read};
use hoistway_core::{Kind, Op, Reservation};

use crate::scenario::Expectation;

/// One folder per elevator, and `queue` for the queue's own behaviour.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/scenarios");

#[test]
fn every_worked_scenario_has_its_computed_result() {
    let mut checked = 0;
    for folder in entries(Path::new(FOLDER)) {
        for file in entries(&folder) {
            let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            check(&file.display().to_string(), &text);
            checked += 1;
        }
    }
    assert!(checked > Kind::ALL.len(), "only {checked} files");
}

/// The elevators that distinguish real-time processes.
const WITH_CLASSES: [Kind; 9] = [
    Kind::CfqV3,
    Kind::CfqTree,
    Kind::CfqBw,
    Kind::BfqV0,
    Kind::CfqWf2q,
    Kind::Fiops,
    Kind::Cfq,
    Kind::MqDeadline,
    Kind::Bfq,
];

/// The scenarios of `cfq-bw` and `reserved` have the sums for reservations. With the layer over any
/// other elevator the results are the same, except in scenarios that depend on the best-effort
/// decisions of the elevator below.
#[test]
fn reservations_have_the_same_results_over_every_elevator() {
    // Scenarios that depend on the order of best-effort requests or on idling.
    let order_dependent = ["BW-14", "BW-17", "BW-19", "BW-20", "RG-2", "RG-4", "RG-6", "RG-7", "RG-9", "RG-11"];
    let mut failed = Vec::new();
    for file in ["cfq-bw/cfq-bw.txt", "reserved/groups.txt"] {
        let file = Path::new(FOLDER).join(file);
        let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let scenarios = read(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let number = |scenario: &Scenario| scenario.name.split(':').next().unwrap_or_default().to_owned();
        for &kind in Kind::ALL {
            let has = |name: &str| {
                kind.info().tunables.iter().chain(Reservation::TUNABLES).any(|tunable| tunable.name == name)
            };
            for scenario in scenarios.iter().filter(|scenario| !order_dependent.contains(&number(scenario).as_str())) {
                if number(scenario) == "BW-4" && !WITH_CLASSES.contains(&kind) {
                    continue;
                }
                let mut scenario = Scenario { kind, reserving: true, ..scenario.clone() };
                scenario.settings.retain(|(name, _)| has(name));
                failed.extend(failures(&scenario).iter().map(|failure| format!("{}: {failure}", kind.info().name)));
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn every_elevator_has_scenarios() {
    for kind in Kind::ALL {
        let folder = Path::new(FOLDER).join(kind.info().name);
        assert!(folder.is_dir() && !entries(&folder).is_empty(), "{} has no scenarios", folder.display());
    }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let listed = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = listed.map(|entry| entry.expect("a readable folder").path()).collect();
    paths.sort();
    paths
}

#[test]
fn a_wrong_expectation_fails() {
    let text = "scenario wrong\nelevator noop\nA: r0 r100 @0\n";
    for wrong in ["A0@0 A100@6", "A100@0", "A0 A100 A200", "A[0..4]x2", "Ax3", "w0", "0+16"] {
        let scenario = &read(&format!("{text}expect {wrong}")).unwrap()[0];
        assert!(failures(scenario).len() == 1, "the wrong expectation {wrong} passed");
    }
    assert_eq!(
        failures(&read(&format!("{text}expect A0@0 r100+8@5\nexpect A[0..5]x2\namong A100@5\ntotal 2")).unwrap()[0]),
        [""; 0]
    );
    assert!(read("scenario bad\nexpects A0").is_err_and(|error| error.starts_with("line 2")));
}

#[test]
fn an_impossible_group_is_reported_with_its_line() {
    for (line, expected) in [
        ("group G in H", "unknown group H"),
        ("group root in root", "duplicate group root"),
        ("group G in root weight 0", "invalid weights: weight 0"),
        ("group G in root wide 5", "invalid weights: wide 5"),
        ("process A be0 in G", "unknown group G"),
        ("move A G @5", "unknown group G"),
        ("weigh root 1001 @5", "invalid weights: weight 1001"),
    ] {
        let error = read(&format!("scenario bad\n{line}")).unwrap_err();
        assert_eq!(error, format!("line 2: {expected}: {line:?}"));
    }
}

fn check(file: &str, text: &str) {
    let scenarios = read(text).unwrap_or_else(|error| panic!("{file}: {error}"));
    let failures: Vec<String> =
        scenarios.iter().flat_map(failures).map(|failure| format!("{file}:{failure}")).collect();
    assert!(failures.is_empty(), "{} of {} scenarios:\n{}", failures.len(), scenarios.len(), failures.join("\n"));
    assert!(
        scenarios.iter().all(|scenario| !scenario.expectations.is_empty()),
        "{file}: a scenario has no expectations"
    );
}

fn failures(scenario: &Scenario) -> Vec<String> {
    let mut failures = Vec::new();
    for expectation in &scenario.expectations {
        let action = match play(scenario, expectation.with.as_ref()) {
            Ok(played) => difference(expectation, &played.issues, &played.asleep)
                .map(|action| format!("{action}\n    got {}", show(scenario, &played.issues))),
            Err(action) => Some(action),
        };
        if let Some(action) = action {
            failures.push(format!("{}: {} {:?}: {action}", expectation.line, scenario.name, expectation.with));
        }
    }
    failures
}

/// Describes the differences from the expectation.
fn difference(
    expectation: &Expectation,
    issues: &[Issue],
    asleep: &std::collections::BTreeSet<(usize, u64)>,
) -> Option<String> {
    use crate::scenario::Check::{Among, Asleep, Count, Order, Total};
    match &expectation.action {
        Order(runs) => {
            let mut rest = issues;
            for (index, run) in runs.iter().enumerate() {
                let matches = rest.len() >= run.count && run.matches(&rest[..run.count]);
                if !matches {
                    return Some(format!("request {} does not match {run:?}", index + 1));
                }
                rest = &rest[run.count..];
            }
            None
        }
        Among(runs) => runs
            .iter()
            .find(|run| !issues.windows(run.count).any(|some| run.matches(some)))
            .map(|run| format!("{run:?} is missing")),
        Total(count) => (issues.len() != *count).then(|| format!("{} requests, not {count}", issues.len())),
        Count { process, count, before_ms } => {
            let found = issues.iter().filter(|issue| issue.process == *process && issue.at_ms < *before_ms).count();
            (found != *count).then(|| format!("{found} requests, not {count}"))
        }
        Asleep { process, at_ms, asleep: wanted } => {
            (asleep.contains(&(*process, *at_ms)) != *wanted).then(|| format!("asleep: {asleep:?}"))
        }
    }
}

/// Formats the requests like expectations, consecutive ones of a process together.
fn show(scenario: &Scenario, issues: &[Issue]) -> String {
    let mut shown = Vec::new();
    for run in issues.chunk_by(|a, b| a.process == b.process && a.op == b.op).take(40) {
        let (first, last) = (run[0], run[run.len() - 1]);
        let name = scenario.processes.get(first.process).map_or("", |process| &process.name);
        let op = match first.op {
            Op::Read => "r",
            Op::Write => "w",
            Op::Flush => "flush",
            Op::Discard => "discard",
        };
        shown.push(match run.len() {
            count if count > 4 => format!("{op}{name}[{}..{}]x{count}", first.at_ms, last.at_ms),
            _ => {
                let each =
                    run.iter().map(|issue| format!("{op}{name}{}+{}@{}", issue.sector, issue.sectors, issue.at_ms));
                each.collect::<Vec<_>>().join(" ")
            }
        });
    }
    shown.join(" ")
}
