//! The page of an arena: standings, and each measure by workloads and by drives.

use hoistway_report::{BarRow, BarTable, Fact, HeatMap, Sheet, SheetSection, Table};
use hoistway_units::figures::grouped;
use hoistway_units::names::capitalised;

use crate::cases::{Case, Cases};
use crate::costs::COST_PROCESSES;
use crate::matrix::Matrix;
use crate::standings::{Lost, Measure, Standing, Standings};

/// The maximum number of lost cases in the table of an elevator.
const LOST_MAX: usize = 12;

/// Makes the page of some cases and their standings.
pub fn page(matrix: &Matrix, cases: &Cases, standings: &Standings) -> Sheet {
    let mut sections = vec![standings_section(standings)];
    sections.extend(Measure::ALL.map(|measure| measure_section(matrix, cases, standings, measure)));
    sections.extend(standings.standings.first().map(|first| lost_section(cases, first)));
    if !cases.errors.is_empty() {
        let rows = cases.errors.iter().map(|error| vec![error.clone()]).collect();
        let table = Table { head: vec!["error".into()], rows, ..Table::default() };
        sections.push(SheetSection {
            title: "Errors".into(),
            intro: "Runs without figures.".into(),
            table: Some(table),
            ..SheetSection::default()
        });
    }
    Sheet {
        command: "hoistway arena".into(),
        title: "Which elevator for an unknown workload".into(),
        subtitle: subtitle(matrix, cases),
        verdict: verdict(standings),
        answer: vec![bars(standings)],
        facts: facts(matrix, cases),
        sections,
        notes: vec![
            "All elevators run with their defaults on the host of Linux 6.12: only the elevator differs.".into(),
            "A process alone runs under noop. Its share is its weight divided by the weights of all processes.".into(),
        ],
    }
}

fn subtitle(matrix: &Matrix, cases: &Cases) -> String {
    let seeds = matrix.seeds();
    format!("{} cases, seeds {} to {}", grouped(cases.cases.len() as u64), seeds.start, seeds.end - 1)
}

/// The answer in sentences.
pub(crate) fn verdict(standings: &Standings) -> String {
    let Some(first) = standings.standings.first() else { return "There are no results.".into() };
    let mut text = format!("{} is beaten by the fewest others", first.elevator);
    if let [Some(throughput), Some(latency), Some(isolation)] = first.means {
        text += &format!(
            ": its throughput is {} of that of the best elevator whose isolation is at least 0.8, its latency {} times the \
             shortest, its isolation {} (geometric means)",
            decimals(throughput),
            decimals(latency),
            decimals(isolation)
        );
    }
    text.push('.');
    for measure in Measure::ALL {
        let best = best(standings, measure);
        if let Some(best) = best.filter(|best| best.elevator != first.elevator) {
            text += &format!(" {} has the best {}.", best.elevator, measure.name());
        }
    }
    text
}

fn best(standings: &Standings, measure: Measure) -> Option<&Standing> {
    let index = Measure::ALL.iter().position(|other| *other == measure)?;
    let with = standings.standings.iter().filter_map(|standing| Some((standing, standing.means[index]?)));
    let sign = if measure.is_gain() { -1.0 } else { 1.0 };
    with.min_by(|one, other| (sign * one.1).total_cmp(&(sign * other.1))).map(|(standing, _)| standing)
}

fn bars(standings: &Standings) -> BarTable {
    let row = |(index, standing): (usize, &Standing)| BarRow {
        name: standing.elevator.clone(),
        is_marked: index == 0,
        values: standing.means.iter().map(|mean| mean.unwrap_or(f64::NAN)).collect(),
        ..BarRow::default()
    };
    BarTable {
        caption: "Geometric means over all cases".into(),
        rows_are: "elevator".into(),
        figures: vec![
            "throughput over the best (more is better)".into(),
            "p99 over the best (less is better)".into(),
            "isolation (more is better)".into(),
        ],
        rows: standings.standings.iter().enumerate().map(row).collect(),
    }
}

fn facts(matrix: &Matrix, cases: &Cases) -> Vec<Fact> {
    let fact = |label: &str, value: String| Fact { label: label.to_owned(), value };
    vec![
        fact("workloads", matrix.workloads.len().to_string()),
        fact("drives", matrix.drives.len().to_string()),
        fact("cases with results", grouped(cases.cases.len() as u64)),
        fact("elevators", matrix.elevators.len().to_string()),
        fact("seeds", matrix.seeds().count().to_string()),
    ]
}

/// The header and the rows of the table of standings, which documents have as well. CPU times are
/// there if they were measured.
pub(crate) fn standings_table(standings: &Standings) -> Table {
    let has_costs = standings.standings.iter().any(|standing| !standing.cpu_ns.is_empty());
    let mut table = Table { head: standings_header(), ..Table::default() };
    table.rows = standings.standings.iter().map(standings_row).collect();
    if !has_costs {
        let columns = table.head.len() - COST_PROCESSES.len();
        table.head.truncate(columns);
        table.rows.iter_mut().for_each(|row| row.truncate(columns));
    }
    table
}

fn standings_header() -> Vec<String> {
    let mut header = vec!["elevator".to_owned()];
    for measure in Measure::ALL {
        header.push(measure.name().to_owned());
        let sign = if measure.is_gain() { "at least" } else { "at most" };
        header.push(format!("cases {sign} {}", measure.bound()));
    }
    header.push("missed deadlines".to_owned());
    header.extend(COST_PROCESSES.map(|processes| format!("ns at {processes}")));
    header
}

fn standings_row(standing: &Standing) -> Vec<String> {
    let mut row = vec![standing.elevator.clone()];
    for (mean, (within, of)) in standing.means.iter().zip(standing.within) {
        row.push(mean.map_or("-".to_owned(), decimals));
        row.push(format!("{within} of {of}"));
    }
    row.push(format!("{:.1}", standing.missed));
    for index in 0..COST_PROCESSES.len() {
        row.push(standing.cpu_ns.get(index).map_or("-".to_owned(), |ns| format!("{ns:.0}")));
    }
    row
}

fn standings_section(standings: &Standings) -> SheetSection {
    SheetSection {
        title: "Standings".into(),
        intro: "The elevators, sorted by the number of others with better geometric means. In each case the throughput is divided \
                by that of the best elevator whose isolation is at least 0.8, and the latency by the lowest."
            .into(),
        table: Some(standings_table(standings)),
        ..SheetSection::default()
    }
}

fn measure_section(matrix: &Matrix, cases: &Cases, standings: &Standings, measure: Measure) -> SheetSection {
    let rows: Vec<String> = standings.standings.iter().map(|standing| standing.elevator.clone()).collect();
    let map = |x: &str, columns: Vec<&'static str>, is_of: &dyn Fn(&Case, &str) -> bool| {
        let has = |column: &&str| cases.cases.iter().any(|case| is_of(case, column) && has_measure(case, measure));
        let columns: Vec<&str> = columns.into_iter().filter(has).collect();
        let value = |row: &str, column: &str| cases.mean(row, measure, |case| is_of(case, column)).unwrap_or(f64::NAN);
        HeatMap {
            title: format!("{}, by {x}", capitalised(measure.name())),
            note: note(measure).to_owned(),
            x: x.to_owned(),
            y: "elevator".to_owned(),
            cells: rows
                .iter()
                .flat_map(|row| columns.iter().map(|column| value(row, column)).collect::<Vec<_>>())
                .collect(),
            columns: columns.into_iter().map(str::to_owned).collect(),
            rows: rows.clone(),
        }
    };
    let drives = matrix.drives.iter().map(|drive| drive.name).collect();
    let workloads = matrix.workloads.iter().map(|workload| workload.name).collect();
    SheetSection {
        title: capitalised(measure.name()),
        intro: intro(measure).to_owned(),
        heat_maps: vec![
            map("drive", drives, &|case, name| case.drive == name),
            map("workload", workloads, &|case, name| case.workload == name),
        ],
        ..SheetSection::default()
    }
}

fn has_measure(case: &Case, measure: Measure) -> bool {
    measure != Measure::Latency || case.best_latency().is_some()
}

fn note(measure: Measure) -> &'static str {
    match measure {
        Measure::Throughput => "over that of the best elevator with an isolation of at least 0.8; more is better",
        Measure::Latency => "p99 over that of the best elevator; less is better",
        Measure::Isolation => "least rate of a process over its share of its rate alone; more is better",
    }
}

fn intro(measure: Measure) -> &'static str {
    match measure {
        Measure::Throughput => {
            "Geometric means of the throughput of all processes over that of the best elevator whose isolation is at least 0.8."
        }
        Measure::Latency => {
            "Geometric means of the 99th percentile of latency of the job for which latency matters, over that of the best elevator."
        }
        Measure::Isolation => "Geometric means of the isolation, which counts as 1 at most.",
    }
}

fn lost_section(cases: &Cases, standing: &Standing) -> SheetSection {
    let lost = cases.lost(&standing.elevator);
    let row = |lost: &Lost| {
        vec![
            lost.measure.name().to_owned(),
            lost.workload.to_owned(),
            lost.drive.to_owned(),
            decimals(lost.value),
            lost.best.clone().unwrap_or_else(|| "-".to_owned()),
        ]
    };
    // The worst of each measure, as many of each.
    let each = LOST_MAX / Measure::ALL.len();
    let worst = Measure::ALL.iter().flat_map(|measure| lost.iter().filter(|lost| lost.measure == *measure).take(each));
    SheetSection {
        title: format!("Cases that {} loses", standing.elevator),
        intro: format!("{} in all; the table has the worst of each measure.", grouped(lost.len() as u64)),
        table: Some(Table {
            head: ["measure", "workload", "drive", "value", "best"].map(str::to_owned).to_vec(),
            rows: worst.map(row).collect(),
            ..Table::default()
        }),
        ..SheetSection::default()
    }
}

/// A ratio with two decimals, or one from 10 on.
pub(crate) fn decimals(value: f64) -> String {
    if value >= 10.0 { format!("{value:.1}") } else { format!("{value:.2}") }
}
