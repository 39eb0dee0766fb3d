//! The answer at the top of a page: bars of the decisive figures, one table for each job.

use hoistway_units::figures::grouped_figure;
use serde::Serialize;

use crate::charts::{Entry, Legend};
use crate::data::{ComparePage, ElevatorResult, JobResult};
use crate::palette::Pair;
use crate::table::latency_unit;

/// Bars of one or more figures, one row for each choice.
#[derive(Clone, Debug, Default)]
pub struct BarTable {
    /// The heading, such as the name of a job.
    pub caption: String,
    /// The heading of the names of the rows.
    pub rows_are: String,
    /// The headings of the figures with their units, and which direction is better.
    pub figures: Vec<String>,
    /// The rows.
    pub rows: Vec<BarRow>,
}

/// The bars of one choice.
#[derive(Clone, Debug, Default)]
pub struct BarRow {
    /// The name of the choice.
    pub name: String,
    /// A remark below the name; may be empty.
    pub note: String,
    /// True for the recommended choice, whose bars are coloured.
    pub is_marked: bool,
    /// One value for each figure, in the unit of its heading.
    pub values: Vec<f64>,
}

/// A table of bars in the form of the template.
#[derive(Serialize)]
pub struct DrawnBars {
    caption: String,
    rows_are: String,
    figures: Vec<String>,
    rows: Vec<DrawnRow>,
}

#[derive(Serialize)]
struct DrawnRow {
    name: String,
    note: String,
    is_marked: bool,
    /// The colours of an elevator; `None` for the colours of the page.
    colour: Option<Pair>,
    bars: Vec<Bar>,
}

#[derive(Serialize)]
struct Bar {
    /// The length as a part of the longest bar of the column, 0 to 1.
    part: f64,
    /// The value with its digits.
    figure: String,
}

impl From<&BarTable> for DrawnBars {
    fn from(table: &BarTable) -> DrawnBars {
        let value = |row: &BarRow, figure: usize| row.values.get(figure).copied().unwrap_or(f64::NAN);
        let longest = |figure: usize| {
            table.rows.iter().map(|row| value(row, figure)).filter(|value| value.is_finite()).fold(0.0, f64::max)
        };
        let longest: Vec<f64> = (0..table.figures.len()).map(longest).collect();
        let bar = |row: &BarRow, figure: usize| {
            let value = value(row, figure);
            let part = value / longest[figure];
            Bar { part: if part.is_finite() { part } else { 0.0 }, figure: grouped_figure(value) }
        };
        let row = |row: &BarRow| DrawnRow {
            name: row.name.clone(),
            note: row.note.clone(),
            is_marked: row.is_marked,
            colour: None,
            bars: (0..table.figures.len()).map(|figure| bar(row, figure)).collect(),
        };
        DrawnBars {
            caption: table.caption.clone(),
            rows_are: table.rows_are.clone(),
            figures: table.figures.clone(),
            rows: table.rows.iter().map(row).collect(),
        }
    }
}

/// The bars of each job of a page, with the colours of the legend of elevators.
pub fn answer(page: &ComparePage, legends: &[Legend]) -> Vec<DrawnBars> {
    if page.jobs.is_empty() {
        let of_all = |elevator: &ElevatorResult| JobResult {
            bytes_per_s: elevator.bytes_per_s,
            p99_ns: elevator.latency.p99_ns,
            sync: elevator.sync,
            starves: elevator.starves,
            ..JobResult::default()
        };
        let results: Vec<JobResult> = page.elevators.iter().map(of_all).collect();
        return vec![bars(page, legends, "all processes", &results)];
    }
    page.jobs.iter().map(|job| bars(page, legends, &job.name, &job.results)).collect()
}

fn bars(page: &ComparePage, legends: &[Legend], name: &str, results: &[JobResult]) -> DrawnBars {
    let entries = legends.iter().find(|legend| legend.id == "elevator").map_or(&[][..], |legend| &legend.entries);
    let (unit, scale) = latency_unit(page);
    let mut figures =
        vec!["throughput, MB/s; more is better".to_owned(), format!("p99 latency, {unit}; less is better")];
    let syncs = results.iter().any(|result| result.sync.is_some());
    figures.extend(syncs.then(|| "p99 of syncs, ms; less is better".to_owned()));
    let sync = |result: &JobResult| result.sync.map_or(f64::NAN, |sync| sync.p99_ns as f64 / 1e6);
    let row = |(index, (entry, result)): (usize, (&Entry, &JobResult))| BarRow {
        name: entry.name.clone(),
        note: note(page, index, result.starves),
        is_marked: false,
        values: vec![result.bytes_per_s / 1e6, result.p99_ns as f64 * scale, sync(result)],
    };
    let table = BarTable {
        caption: name.to_owned(),
        rows_are: "Elevator".to_owned(),
        figures,
        rows: entries.iter().zip(results).enumerate().map(row).collect(),
    };
    let mut drawn = DrawnBars::from(&table);
    for (row, entry) in drawn.rows.iter_mut().zip(entries) {
        row.colour = Some(entry.colour.clone());
    }
    drawn
}

/// The remark on an elevator: starvation, and the elevators with equal results.
fn note(page: &ComparePage, index: usize, starves: bool) -> String {
    let elevator = &page.elevators[index];
    let equal =
        page.elevators.iter().enumerate().filter(|(other, of)| *other != index && of.has_same_results(elevator));
    let equal: Vec<&str> = equal.map(|(_, of)| of.name.as_str()).collect();
    let equal = if equal.is_empty() { String::new() } else { format!("same: {}", equal.join(", ")) };
    let starves = if starves { "starves".to_owned() } else { String::new() };
    [starves, equal].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_bar_fills_its_column() {
        let row = |values: &[f64]| BarRow { values: values.to_vec(), ..BarRow::default() };
        let table = BarTable {
            figures: vec!["a".into(), "b".into()],
            rows: vec![row(&[1.0, 0.0]), row(&[4000.0]), row(&[f64::INFINITY, 0.0])],
            ..BarTable::default()
        };
        let drawn = DrawnBars::from(&table);
        let parts: Vec<f64> = drawn.rows.iter().flat_map(|row| &row.bars).map(|bar| bar.part).collect();
        assert_eq!(parts, [0.00025, 0.0, 1.0, 0.0, 0.0, 0.0]);
        assert_eq!(drawn.rows[1].bars[0].figure, "4,000");
        assert_eq!(drawn.rows[1].bars[1].figure, "-");
    }
}
