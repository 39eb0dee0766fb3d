//! The table in the terminal: a row per elevator, the best value of each column marked.

use anyhow::Result;
use comfy_table::{Cell, Table};
use hoistway_sim::{Comparison, Run};

use crate::output::{self, Out, best, width};
use hoistway_units::figures::{figure, percent};

/// The mark after the best value of a column, and the blank that keeps other digits aligned.
const MARK: &str = "*";
const NO_MARK: &str = " ";

/// Prints the table and its legend, in two parts if the terminal is too narrow; `reference` is the
/// label of the single stream.
pub fn print(comparison: &Comparison, reference: &str, out: &mut Out) -> Result<()> {
    let columns = columns(&comparison.runs);
    let names: Vec<&str> = comparison.runs.iter().map(|run| run.elevator.as_str()).collect();
    let whole = table(&names, &columns);
    if out.takes(width(&whole)) {
        print_one(whole, out)?;
    } else {
        let (first, second) = columns.split_at(SPLIT);
        print_one(table(&names, first), out)?;
        out.line("")?;
        print_one(table(&names, second), out)?;
    }
    out.line("")?;
    let single = comparison.single_stream_bytes_per_s / 1e6;
    out.paragraph(
        0,
        &format!(
            "{MARK} is the best of a column. {reference} gets {} MB/s (10^6 bytes a second). slowest-fastest: what \
             processes get, in MB/s. mean to max: how long a process waits for a request. seek to idle: where the drive's time \
             went, data being the transfer; what is missing to 100 % is its own overhead.",
            figure(single)
        ),
    )?;
    Ok(())
}

/// The best end of a column.
#[derive(Clone, Copy)]
enum Best {
    Most,
    Least,
}

/// A column: two lines of header, and for each elevator a text with the value that is compared.
struct Column {
    header: &'static str,
    best: Best,
    cells: Vec<(String, f64)>,
}

/// First column of the second part if the table is split; the columns before it are throughput and
/// fairness.
const SPLIT: usize = 5;

fn columns(runs: &[Run]) -> Vec<Column> {
    use Best::{Least, Most};
    let column = |header, best, cell: &dyn Fn(&Run) -> (String, f64)| {
        let cells = runs.iter().map(cell).collect();
        Column { header, best, cells }
    };
    let latency = |ns: f64| (ms(ns), ns);
    let drive = |run: &Run, ns: u64| {
        let share = if run.runtime_ns == 0 { 0.0 } else { ns as f64 / run.runtime_ns as f64 };
        (format!("{:.0}", share * 100.0), share)
    };
    vec![
        column("\nMB/s", Most, &|run| (figure(run.bytes_per_s / 1e6), run.bytes_per_s)),
        column("% of 1\nstream", Most, &|run| (percent(run.of_single_stream), run.of_single_stream)),
        column("slowest-\nfastest", Most, &|run| {
            let (min, max) = (run.process_bytes_per_s.min, run.process_bytes_per_s.max);
            (format!("{}-{}", figure(min / 1e6), figure(max / 1e6)), min)
        }),
        column("Jain's\nindex", Most, &|run| (format!("{:.3}", run.jain), run.jain)),
        column("time\ns", Least, &|run| (figure(run.runtime_ns as f64 / 1e9), run.runtime_ns as f64)),
        column("mean\nms", Least, &|run| latency(run.latency_ns.mean)),
        column("p50\nms", Least, &|run| latency(run.latency_ns.p50 as f64)),
        column("p99\nms", Least, &|run| latency(run.latency_ns.p99 as f64)),
        column("max\nms", Least, &|run| latency(run.latency_ns.max as f64)),
        column("seek\n%", Least, &|run| drive(run, run.drive_ns.seek)),
        column("rot.\n%", Least, &|run| drive(run, run.drive_ns.rotation)),
        column("data\n%", Most, &|run| drive(run, run.drive_ns.transfer)),
        column("idle\n%", Least, &|run| drive(run, run.drive_ns.idle)),
    ]
}

/// Formats milliseconds with three digits, down to a microsecond.
fn ms(ns: f64) -> String {
    let ms = ns / 1e6;
    let decimals = match ms {
        m if m >= 99.95 => 0,
        m if m >= 9.995 => 1,
        m if m >= 0.9995 => 2,
        _ => 3,
    };
    format!("{ms:.decimals$}")
}

impl Column {
    /// Returns for each cell if it is marked: all cells with the same text as the best, unless all
    /// cells have the same text.
    fn marks(&self) -> Vec<bool> {
        let better = |a: f64, b: f64| match self.best {
            Best::Most => a > b,
            Best::Least => a < b,
        };
        let best = self.cells.iter().reduce(|best, cell| if better(cell.1, best.1) { cell } else { best });
        let marks: Vec<bool> = self.cells.iter().map(|cell| best.is_some_and(|best| best.0 == cell.0)).collect();
        if marks.iter().all(|mark| *mark) { vec![false; marks.len()] } else { marks }
    }
}

fn table(names: &[&str], columns: &[Column]) -> Table {
    let header: Vec<&str> = std::iter::once("\nelevator").chain(columns.iter().map(|column| column.header)).collect();
    let mut table = output::table(&header, 1);
    let marks: Vec<Vec<bool>> = columns.iter().map(Column::marks).collect();
    for (line, name) in names.iter().enumerate() {
        let cells = columns.iter().zip(&marks).map(|(column, marks)| match marks[line] {
            true => best(&format!("{}{MARK}", column.cells[line].0)),
            false => Cell::new(format!("{}{NO_MARK}", column.cells[line].0)),
        });
        table.add_row(std::iter::once(Cell::new(name)).chain(cells));
    }
    // The column of the mark already separates columns.
    let last = columns.len();
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, u16::from(index != last)));
    }
    table
}

fn print_one(mut table: Table, out: &mut Out) -> Result<()> {
    Ok(out.table(&mut table)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(best: Best, cells: &[(&str, f64)]) -> Vec<bool> {
        Column { header: "", best, cells: cells.iter().map(|(text, value)| ((*text).to_owned(), *value)).collect() }
            .marks()
    }

    #[test]
    fn the_best_is_the_most_or_the_least() {
        assert_eq!(marks(Best::Most, &[("1", 1.0), ("3", 3.0), ("2", 2.0)]), [false, true, false]);
        assert_eq!(marks(Best::Least, &[("1", 1.0), ("3", 3.0), ("2", 2.0)]), [true, false, false]);
    }

    #[test]
    fn equal_texts_have_equal_marks() {
        assert_eq!(marks(Best::Most, &[("1.0", 1.01), ("1.0", 1.02), ("0.5", 0.5)]), [true, true, false]);
    }

    #[test]
    fn equal_values_have_no_best() {
        assert_eq!(marks(Best::Most, &[("1.0", 1.0), ("1.0", 1.0)]), [false, false]);
        assert_eq!(marks(Best::Most, &[("1.0", 1.0)]), [false]);
    }

    #[test]
    fn milliseconds_have_a_resolution_of_a_microsecond() {
        assert_eq!([2_500.0, 521_000.0, 9_996_000.0, 746e6].map(ms), ["0.003", "0.521", "10.0", "746"]);
    }
}
