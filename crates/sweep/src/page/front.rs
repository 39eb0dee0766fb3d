//! The Pareto front of throughput and latency: settings that no other setting beats in both.

use std::collections::BTreeMap;

use hoistway_advise::tune::pareto_front;
use hoistway_report::{Scatter, Table};
use hoistway_units::figures::grouped_figure;

use super::measure::{LATENCY, Measure, THROUGHPUT};
use crate::columns::Cells;
use crate::results::Results;

/// The maximum numbers of dots of a chart beside those of the front, and of rows of its table.
const DOTS_MAX: usize = 1500;
const ROWS_MAX: usize = 20;

/// A setting: a point without its seed, with the means over its seeds.
struct Setting {
    /// A row of one of its seeds.
    row: usize,
    throughput: f64,
    latency: f64,
}

/// The front of one workload.
pub struct Front {
    /// All settings, and the line of the front.
    pub scatter: Scatter,
    /// The settings on the front.
    pub table: Table,
    /// The number of settings.
    pub settings: usize,
}

impl Front {
    /// The front of the rows. `keys` are the columns of settings that vary, and `kinds` the
    /// elevators of all charts. `None` without figures.
    pub fn of(results: &Results, rows: &[usize], keys: &[&str], kinds: &[String], title: &str) -> Option<Front> {
        let (throughput, latency) = (Measure::of(THROUGHPUT), Measure::of(LATENCY));
        let settings = settings(results, rows, keys, [&throughput, &latency])?;
        let points: Vec<(f64, f64)> = settings.iter().map(|setting| (-setting.throughput, setting.latency)).collect();
        let mut front = pareto_front(&points);
        // By x, from left to right.
        front.reverse();
        let at = |index: usize| (settings[index].throughput, settings[index].latency);
        let elevators = results.column("elevator")?;
        let stride = settings.len().div_ceil(DOTS_MAX);
        let is_drawn = |index: usize| index.is_multiple_of(stride) || front.contains(&index);
        let mut dots = Vec::new();
        for (index, setting) in settings.iter().enumerate().filter(|(index, _)| stride == 1 || is_drawn(*index)) {
            let name = elevators.text(setting.row).unwrap_or_default();
            let kind = kinds.iter().position(|known| *known == name).unwrap_or_default();
            dots.push((at(index).0, at(index).1, kind));
        }
        let scatter = Scatter {
            title: title.to_owned(),
            x: throughput.title(),
            y: latency.title(),
            kinds: kinds.to_vec(),
            points: dots,
            front: front.iter().map(|index| at(*index)).collect(),
            marked: Vec::new(),
        };
        let shown: Vec<usize> = front.iter().copied().step_by(front.len().div_ceil(ROWS_MAX).max(1)).collect();
        let table = table(results, keys, shown.iter().map(|index| &settings[*index]));
        Some(Front { scatter, table, settings: settings.len() })
    }
}

/// The settings with their means; `None` if there are none or a figure is missing.
fn settings(results: &Results, rows: &[usize], keys: &[&str], figures: [&Measure; 2]) -> Option<Vec<Setting>> {
    let columns: Vec<&Cells> = keys.iter().filter_map(|key| results.column(key)).collect();
    let [throughputs, latencies] = [results.column(&figures[0].column)?, results.column(&figures[1].column)?];
    // The row, the sums and the number of seeds of each setting.
    let mut found: BTreeMap<Vec<Option<String>>, (usize, f64, f64, f64)> = BTreeMap::new();
    for row in rows {
        let values = columns.iter().map(|cells| cells.text(*row)).collect();
        let Some((throughput, latency)) = throughputs.number(*row).zip(latencies.number(*row)) else { continue };
        let sums = found.entry(values).or_insert((*row, 0.0, 0.0, 0.0));
        *sums = (sums.0, sums.1 + throughput, sums.2 + latency, sums.3 + 1.0);
    }
    let setting = |(row, throughput, latency, seeds): (usize, f64, f64, f64)| Setting {
        row,
        throughput: throughput / seeds * figures[0].factor,
        latency: latency / seeds * figures[1].factor,
    };
    (!found.is_empty()).then(|| found.into_values().map(setting).collect())
}

fn table<'a>(results: &Results, keys: &[&str], settings: impl Iterator<Item = &'a Setting>) -> Table {
    let mut head: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
    head.extend(["MB/s".to_owned(), "p99, ms".to_owned()]);
    let row = |setting: &Setting| {
        let value = |key: &&str| results.column(key).and_then(|cells| cells.text(setting.row));
        let mut row: Vec<String> = keys.iter().map(|key| value(key).unwrap_or_else(|| "-".to_owned())).collect();
        row.extend([grouped_figure(setting.throughput), grouped_figure(setting.latency)]);
        row
    };
    Table { head, rows: settings.map(row).collect(), marked: None }
}
