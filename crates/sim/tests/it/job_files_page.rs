//! docs/job-files.md agrees with the code: every row of its table is run.

use hoistway_core::Kind;
use hoistway_sim::CompareRequest;

use crate::common::{request, run};

const PAGE: &str = include_str!("../../../../docs/job-files.md");

/// The outcome of a job with these options, in the words of the page.
fn outcome(options: &str) -> String {
    let text = format!("[j]\nsize=256k\n{}\n", options.replace(' ', "\n"));
    let none = |path: &str, _: &str| Err(std::io::Error::other(path.to_owned()));
    let jobs = match hoistway_fio::parse(&text, "job.fio", &|_| None, &none) {
        Ok(jobs) => jobs,
        Err(faults) => {
            let all: Vec<String> = faults
                .0
                .iter()
                .map(|fault| format!("{}; {}", fault.message, fault.help.as_deref().unwrap_or("")))
                .collect();
            return format!("refused: {}", all.join("; "));
        }
    };
    let base = request("[j]\nsize=4k\n", &[Kind::MqDeadline]);
    match run(&CompareRequest { jobs, ..base }) {
        Err(error) => format!("refused: {error}"),
        Ok(comparison) if comparison.notes.is_empty() => "runs".into(),
        Ok(comparison) => format!("note: {}", comparison.notes.join("; ")),
    }
}

fn agrees(expected: &str, outcome: &str) -> bool {
    let parts = |text: &str| text.split_once(": ").map(|(kind, what)| (kind.to_owned(), what.to_owned()));
    match (parts(expected), parts(outcome)) {
        (Some((kind, what)), Some((found, text))) => kind == found && text.contains(&what),
        _ => expected == outcome,
    }
}

#[test]
fn every_option_set_of_the_page_has_its_outcome() {
    let table =
        PAGE.split("<!-- begin: option sets").nth(1).and_then(|rest| rest.split("<!-- end: option sets").next());
    let rows = table.expect("the table").lines().filter(|line| line.starts_with("| `"));
    let mut wrong = Vec::new();
    let mut count = 0;
    for row in rows {
        let options = row.split('`').nth(1).expect("options in backquotes");
        let expected = row.split_once("` | ").map_or("", |(_, rest)| rest.trim_end_matches(['|', ' ']));
        let outcome = outcome(options);
        if !agrees(expected, &outcome) {
            wrong.push(format!("{options}\n  page: {expected}\n  is:   {outcome}"));
        }
        count += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 60, "{count} rows");
}
