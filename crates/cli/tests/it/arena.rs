//! `hoistway arena`: standings, resumption, the page, errors.

use crate::common::{Folder, run};

/// A choice that is simulated in a second: one drive, two short workloads, two elevators.
const CHOICE: [&str; 8] = [
    "--drives",
    "sata-7200-2006",
    "--workloads",
    "streams,reader-and-1-writer",
    "--elevators",
    "noop,cfq-v3",
    "--seeds",
    "2",
];

fn arena(output: &str, more: &[&str]) -> crate::common::Ran {
    let mut arguments = vec!["arena", "-o", output];
    arguments.extend(CHOICE);
    arguments.extend(more);
    run(&arguments)
}

#[test]
fn elevators_are_compared_in_each_case_and_runs_are_kept() {
    let folder = Folder::new();
    let output = folder.name("results");
    let first = arena(&output, &[]);
    assert_eq!(first.code, Some(0), "{}", first.err);
    // Each case runs under both elevators with both seeds, and so does each process alone under
    // one.
    assert!(first.out.contains("2 cases, 14 of 14 runs simulated now"), "{}", first.out);
    let again = arena(&output, &["--json"]);
    let json = again.json();
    let case = &json["cells"][0];
    assert_eq!((case["workload"].as_str(), case["drive"].as_str()), (Some("streams"), Some("sata-7200-2006")));
    let rate = |index: usize| case["entries"][index]["bytes_per_s"]["mean"].as_f64().expect("a rate");
    let isolation = |index: usize| case["entries"][index]["isolation"]["mean"].as_f64().expect("an isolation");
    // Slices of time keep a disk streaming: nearly its whole rate, and a quarter of it for each.
    assert!(rate(1) > 1.5 * rate(0), "{} and {}", rate(0), rate(1));
    assert!(isolation(1) > 0.85 && isolation(0) < 0.7, "{} and {}", isolation(0), isolation(1));
    let best = json["standings"].as_array().expect("standings").iter().find(|one| one["elevator"] == "cfq-v3");
    assert_eq!(best.expect("cfq-v3")["within"][0][1], 2);
    let kept = arena(&output, &[]);
    assert!(kept.out.contains("2 cases, 0 of 14 runs simulated now"), "{}", kept.out);
}

#[test]
fn a_set_tunable_is_another_comparison_in_the_same_folder() {
    let folder = Folder::new();
    let output = folder.name("results");
    assert_eq!(arena(&output, &[]).code, Some(0));
    let set = arena(&output, &["--set", "cfq-v3.slice_idle=0"]);
    // The two cases under cfq-v3 with both seeds; noop and the processes alone are kept.
    assert!(set.out.contains("2 cases, 4 of 14 runs simulated now"), "{}{}", set.out, set.err);
    let rate = |more: &[&str]| {
        let json = arena(&output, &[more, &["--json"]].concat()).json();
        let entry = json["cells"][0]["entries"][1].clone();
        assert_eq!(entry["elevator"], "cfq-v3");
        entry["bytes_per_s"]["mean"].as_f64().expect("a rate")
    };
    let (default, unset) = (rate(&[]), rate(&["--set", "cfq-v3.slice_idle=0"]));
    assert!((default - unset).abs() > 0.01 * default, "{default} and {unset}");
}

#[test]
fn the_page_and_the_tables_have_all_elevators() {
    let folder = Folder::new();
    let (output, page) = (folder.name("results"), folder.name("arena.html"));
    let tables = arena(&output, &["--tables", "--report", &page]);
    assert_eq!(tables.code, Some(0), "{}", tables.err);
    assert!(tables.out.contains("### By workload: isolation"), "{}", tables.out);
    let html = std::fs::read_to_string(&page).expect("a page");
    for text in ["cfq-v3", "Isolation, by workload", "reader-and-1-writer", "Cases that"] {
        assert!(html.contains(text), "no {text}");
    }
}

#[test]
fn unknown_names_are_refused_with_the_known_ones() {
    let ran = run(&["arena", "-o", "nowhere", "--workloads", "stream"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("the arena has no workload `stream` (did you mean `streams`?)"), "{}", ran.err);
    let ran = run(&["arena", "-o", "nowhere", "--workloads", "dss", "--split", "design"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("no case of these workloads and drives is in this part"), "{}", ran.err);
    let ran = run(&["arena"]);
    assert!(ran.code == Some(2) && ran.err.contains("--output"), "{}", ran.err);
}

#[test]
fn the_list_says_what_tests_the_design() {
    let listed = run(&["arena", "--list", "--json"]).json();
    let held: Vec<&str> =
        listed["held_drives"].as_array().expect("drives").iter().filter_map(|name| name.as_str()).collect();
    assert_eq!(held, ["laptop-5400", "cloud-gp3"]);
    let workloads = listed["workloads"].as_array().expect("workloads");
    assert_eq!(workloads.iter().filter(|workload| workload["held"] == true).count(), 6);
}
