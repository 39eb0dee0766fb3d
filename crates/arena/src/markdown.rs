//! The tables of an arena for documents.

use std::fmt::Write;

use crate::cases::Cases;
use crate::matrix::Matrix;
use crate::page::{decimals, standings_table, verdict};
use crate::standings::{Measure, Standings};

/// Elevators in the table of the best of each case have a value that differs from it by at most
/// this part.
const EQUAL: f64 = 0.01;

/// The standings, the measures by drive and by workload, the best of each case, and the cases that
/// the first elevator loses, as Markdown.
pub fn markdown(matrix: &Matrix, cases: &Cases, standings: &Standings) -> String {
    let seeds = matrix.seeds();
    let mut text = format!(
        "{} cases of {} workloads and {} drives, seeds {} to {}.\n\n{}\n\n",
        cases.cases.len(),
        matrix.workloads.len(),
        matrix.drives.len(),
        seeds.start,
        seeds.end - 1,
        verdict(standings)
    );
    let all = standings_table(standings);
    table(&mut text, &all.head, &all.rows);
    let drives: Vec<&str> = matrix.drives.iter().map(|drive| drive.name).collect();
    let workloads: Vec<&str> = matrix.workloads.iter().map(|workload| workload.name).collect();
    for measure in Measure::ALL {
        let _ = writeln!(text, "### By drive: {}\n", measure.name());
        grid(&mut text, cases, standings, measure, &drives, |case, name| case.drive == name);
    }
    for measure in Measure::ALL {
        let _ = writeln!(text, "### By workload: {}\n", measure.name());
        by_workload(&mut text, cases, standings, measure, &workloads);
    }
    best_of_cases(&mut text, cases);
    if let Some(first) = standings.standings.first() {
        lost_cases(&mut text, cases, &first.elevator);
    }
    text
}

/// The cases in which an elevator is not within the bounds, and the best elevator of each.
fn lost_cases(text: &mut String, cases: &Cases, elevator: &str) {
    let _ = writeln!(text, "### Cases that {elevator} loses\n");
    let header = ["measure", "workload", "drive", "value", "best"].map(str::to_owned);
    let rows: Vec<Vec<String>> = cases
        .lost(elevator)
        .into_iter()
        .map(|lost| {
            let best = lost.best.unwrap_or_else(|| "-".to_owned());
            vec![
                lost.measure.name().to_owned(),
                lost.workload.to_owned(),
                format!("`{}`", lost.drive),
                decimals(lost.value),
                best,
            ]
        })
        .collect();
    table(text, &header, &rows);
}

/// A row for each elevator, a column for each name.
fn grid(
    text: &mut String,
    cases: &Cases,
    standings: &Standings,
    measure: Measure,
    names: &[&str],
    is_of: fn(&crate::Case, &str) -> bool,
) {
    let header: Vec<String> = std::iter::once("elevator").chain(names.iter().copied()).map(str::to_owned).collect();
    let row = |elevator: &String| {
        let value = |name: &&str| cases.mean(elevator, measure, |case| is_of(case, name));
        let values = names.iter().map(|name| value(name).map_or("-".to_owned(), decimals));
        std::iter::once(elevator.clone()).chain(values).collect()
    };
    let rows: Vec<Vec<String>> = standings.standings.iter().map(|standing| row(&standing.elevator)).collect();
    table(text, &header, &rows);
}

/// A row for each workload, a column for each elevator: there are more workloads.
fn by_workload(text: &mut String, cases: &Cases, standings: &Standings, measure: Measure, names: &[&str]) {
    let elevators: Vec<&str> = standings.standings.iter().map(|standing| standing.elevator.as_str()).collect();
    let header: Vec<String> = std::iter::once("workload").chain(elevators.iter().copied()).map(str::to_owned).collect();
    let row = |name: &&str| {
        let value = |elevator: &&str| cases.mean(elevator, measure, |case| case.workload == *name);
        let values: Vec<Option<f64>> = elevators.iter().map(value).collect();
        let cells = values.iter().map(|value| value.map_or("-".to_owned(), decimals));
        let row: Vec<String> = std::iter::once((*name).to_owned()).chain(cells).collect();
        values.iter().any(Option::is_some).then_some(row)
    };
    let rows: Vec<Vec<String>> = names.iter().filter_map(row).collect();
    table(text, &header, &rows);
}

/// The elevators with the highest throughput and the least latency of each case.
fn best_of_cases(text: &mut String, cases: &Cases) {
    text.push_str("### The best of each case\n\n");
    let header = ["workload", "drive", "throughput", "MB/s", "latency", "p99 ms", "p99.9 ms"].map(str::to_owned);
    let rows: Vec<Vec<String>> = cases
        .cases
        .iter()
        .map(|case| {
            let near = |measure: Measure| {
                let is_best = |name: &str| {
                    case.value(name, measure).is_some_and(|value| (value - 1.0).abs() <= EQUAL)
                        && (measure == Measure::Latency
                            || case.best_throughput().is_some_and(|best| {
                                best.elevator == name
                                    || case.value(name, Measure::Isolation) >= Some(crate::SOUND_ISOLATION)
                            }))
                };
                let names: Vec<&str> =
                    case.entries.iter().map(|entry| entry.elevator.as_str()).filter(|name| is_best(name)).collect();
                if names.len() > 3 { format!("{} and {} others", names[0], names.len() - 1) } else { names.join(", ") }
            };
            let fastest = case.best_throughput();
            let quickest = case.best_latency();
            let ms = |ns: f64| format!("{:.2}", ns / 1e6);
            let spread =
                |sample: crate::Sample| format!("{} ({} to {})", ms(sample.mean), ms(sample.min), ms(sample.max));
            vec![
                case.workload.to_owned(),
                format!("`{}`", case.drive),
                near(Measure::Throughput),
                fastest.map_or("-".to_owned(), |entry| format!("{:.1}", entry.bytes_per_s.mean / 1e6)),
                near(Measure::Latency),
                quickest.and_then(|entry| entry.p99_ns).map_or("-".to_owned(), spread),
                quickest.and_then(|entry| entry.p999_ns).map_or("-".to_owned(), |sample| ms(sample.mean)),
            ]
        })
        .collect();
    table(text, &header, &rows);
}

fn table(text: &mut String, header: &[String], rows: &[Vec<String>]) {
    let mut line = |cells: &[String]| {
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    };
    line(header);
    line(&vec!["---".to_owned(); header.len()]);
    rows.iter().for_each(|row| line(row));
    text.push('\n');
}
