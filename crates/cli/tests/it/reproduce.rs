//! `hoistway reproduce` from outside, and its page.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{Folder, run};
use hoistway_reproduce::{RowKind, publications};

/// Rows with short runs: drives alone, the eight readers, constants, a gated sweep of 128
/// processes.
const QUICK: [&str; 12] =
    ["S1-02", "S1-03", "S1-04", "S1-06", "S1-07", "S1-09", "S1-11", "S1-19", "S1-20", "S2-02", "S2-08", "S2-10"];

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

fn page() -> String {
    fs::read_to_string(docs().join("reproduced.md")).expect("docs/reproduced.md is there")
}

/// The section of a row in a page, from its heading to the next.
fn section<'a>(page: &'a str, id: &str) -> &'a str {
    let begin = page.find(&format!("### {id}\n")).unwrap_or_else(|| panic!("no section {id}: cargo xtask pages write"));
    let rest = &page[begin + 4..];
    let ends = ["\n### ", "\n## "].map(|heading| rest.find(heading).unwrap_or(rest.len()));
    &rest[..ends[0].min(ends[1])]
}

#[test]
fn the_page_has_a_section_and_a_picture_for_every_row() {
    let page = page();
    for row in publications().expect("the rows are right").iter().flat_map(|publication| &publication.rows) {
        let section = section(&page, &row.id);
        assert!(page.contains(&format!("| [{0}](#{1}) |", row.id, row.id.to_lowercase())), "{}", row.id);
        for value in &row.values {
            assert!(section.contains(&value.name), "{}: {} is missing: cargo xtask pages write", row.id, value.name);
        }
        let picture = docs().join(format!("reproduced/{}.svg", row.id));
        assert!(row.values.is_empty() || picture.exists(), "{} is missing", picture.display());
    }
}

#[test]
fn the_page_has_the_present_results_of_quick_rows() {
    let folder = Folder::new();
    let name = folder.name("pages");
    let ran = run(&[&["reproduce"], &QUICK[..], &["--page", &name]].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let made = fs::read_to_string(folder.path("pages").join("reproduced.md")).expect("a page");
    let page = page();
    for id in QUICK {
        assert_eq!(section(&made, id).trim(), section(&page, id).trim(), "{id}: cargo xtask pages write");
    }
}

#[test]
fn json_has_published_and_simulated_figures_and_the_verdict() {
    let document = run(&["reproduce", "s1-02", "S2-08", "--json"]).json();
    let rows = document["rows"].as_array().expect("rows");
    let ids: Vec<&str> = rows.iter().filter_map(|row| row["id"].as_str()).collect();
    assert_eq!(ids, ["S1-02", "S2-08"]);
    assert_eq!(rows[0]["published"], "98 / 65 / 43 us");
    assert_eq!((&rows[0]["verdict"], &rows[0]["parameters_fitted"]), (&"reproduced".into(), &serde_json::json!([])));
    let ours = rows[0]["values"][0]["ours"].as_f64().expect("a figure");
    assert!((97.0..99.0).contains(&ours), "{ours}");
    assert_eq!(document["summary"]["numbers"], serde_json::json!({"reproduced": 2, "of": 2}));
}

#[test]
fn the_table_ends_with_its_summary() {
    let ran = run(&["reproduce", "S1-02", "S1-01", "S1-20"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let summary = ran.out.split("\n\n").last().expect("a summary").replace('\n', " ");
    assert!(summary.contains("Numbers: 1 of 1 rows reproduced (3 of 3 figures"), "{summary}");
    assert!(summary.contains("Orders and rules: 1 of 1. Outside the count: 1 that describe a drive"), "{summary}");
}

#[test]
fn an_unknown_id_is_refused_with_the_known_ids() {
    run(&["reproduce", "S1-99"]).refused(2, &["`S1-99`", "S1-06", "S2-15", "all"]);
}

#[test]
fn no_row_is_reproduced_with_a_parameter_that_was_fitted_to_it() {
    let page = page();
    for row in publications().expect("the rows are right").iter().flat_map(|publication| &publication.rows) {
        let reproduced = section(&page, &row.id).contains("**reproduced**");
        assert!(!reproduced || (row.fitted.is_empty() && row.kind != RowKind::Input), "{}", row.id);
        let differs = section(&page, &row.id).contains("**differs");
        assert!(!differs || !row.missing.is_empty(), "{} differs, and it is not said why", row.id);
    }
}

#[test]
fn the_readme_has_the_count_of_the_page() {
    let page = page();
    let summary = page.lines().find(|line| line.starts_with("**Numbers: ")).expect("a summary");
    let counts: Vec<&str> = summary.split(" of ").collect();
    let count = |index: usize| {
        let before = counts[index].rsplit([' ', '(']).next().unwrap_or_default();
        let after = counts[index + 1].split([' ', '.', ',']).next().unwrap_or_default();
        format!("{before} of {after}")
    };
    let readme = fs::read_to_string(docs().join("../README.md")).expect("README.md");
    let wanted = [count(0), format!("{} figures within tolerance", count(1)), format!("rules, {}", count(2))];
    let decided = summary.split(", ").filter_map(|part| Some(part.split_once(" more decided by")?.0));
    for count in wanted.into_iter().chain(decided.map(|rows| format!("{rows} with "))) {
        assert!(readme.contains(&count), "the README does not say `{count}`, as docs/reproduced.md does: {summary}");
    }
}

#[test]
fn rows_up_to_2012_that_differ_have_experiments_on_what_is_not_stated() {
    let page = page();
    for publication in
        publications().expect("the rows are right").iter().filter(|all| !["S6", "S7"].contains(&all.id.as_str()))
    {
        for row in &publication.rows {
            let section = section(&page, &row.id);
            let experiments = section.matches("\nUnknown: ").count();
            let expected = if section.contains("**differs") { row.unknowns.len().max(1) } else { 0 };
            assert_eq!(experiments, expected, "{}: cargo xtask pages write", row.id);
            for trial in row.unknowns.iter().take(experiments).flat_map(|unknown| &unknown.trials) {
                assert!(section.contains(&format!("| {} |", trial.value())), "{} {}", row.id, trial.value());
            }
            let decides = section.contains(": **decides**");
            assert_eq!(section.contains("**differs: decided by "), decides, "{}", row.id);
        }
    }
}

#[test]
fn an_unknown_that_decides_a_row_is_in_the_json_and_does_not_count() {
    let document = run(&["reproduce", "S1-08", "--json"]).json();
    let row = &document["rows"][0];
    assert_eq!((&row["verdict"], &row["decided_by"]), (&"differs".into(), &"the gap between two files".into()));
    let unknown = &row["unknowns"][0];
    assert_eq!((&unknown["effect"], &unknown["here"]), (&"decides".into(), &"0 KiB".into()));
    let trials = unknown["trials"].as_array().expect("trials");
    let holding: Vec<_> =
        trials.iter().filter(|trial| trial["differences"] == "").map(|trial| &trial["value"]).collect();
    assert_eq!(holding, ["512 KiB"]);
    let deadline = trials[0]["values"].as_array().expect("values").last().expect("a value");
    assert!(deadline["name"] == "deadline" && deadline["within"] == false, "{deadline}");
    let summary = &document["summary"];
    assert_eq!(summary["numbers"], serde_json::json!({"reproduced": 0, "of": 1}));
    assert_eq!((&summary["numbers_decided"], &summary["orders_and_rules_decided"]), (&1.into(), &0.into()));
}
