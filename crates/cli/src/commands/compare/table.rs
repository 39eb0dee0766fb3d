//! The table in the terminal: a row per elevator, the best value of each column marked.

use anyhow::Result;
use comfy_table::{Cell, Table};
use hoistway_advise::compare::Judgement;
use hoistway_advise::compare::legends::{self, BEST as MARK, STARVES};
use hoistway_sim::{Comparison, Run};

use crate::output::{self, Out, best, width};
use hoistway_units::figures::{figure, percent};

/// The blank instead of a mark, which keeps other digits aligned.
const NO_MARK: &str = " ";

/// Prints the table and its legend, in two parts if the terminal is too narrow; `reference` is the
/// label of the single stream.
pub fn print(comparison: &Comparison, judgement: &Judgement, reference: &str, out: &mut Out) -> Result<()> {
    let columns = columns(&comparison.runs, comparison.rotational);
    let rows = Rows {
        names: comparison.runs.iter().map(|run| run.elevator.as_str()).collect(),
        starves: &judgement.starves,
        is_partial: comparison.is_partial,
    };
    let whole = rows.table(&columns);
    if out.takes(width(&whole)) {
        print_one(whole, out)?;
    } else {
        let (first, second) = columns.split_at(SPLIT);
        print_one(rows.table(first), out)?;
        out.line("")?;
        print_one(rows.table(second), out)?;
    }
    out.line("")?;
    out.paragraph(0, &legends::table(comparison, judgement, reference))?;
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

fn columns(runs: &[Run], rotational: bool) -> Vec<Column> {
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
    let mut columns = vec![
        column("\nMB/s", Most, &|run| (figure(run.bytes_per_s / 1e6), run.bytes_per_s)),
        column("% of 1\nstream", Most, &|run| (percent(run.of_single_stream), run.of_single_stream)),
        column("slowest-\nfastest", Most, &|run| {
            let (min, max) = (run.process_bytes_per_s.min, run.process_bytes_per_s.max);
            (format!("{}-{}", figure(min / 1e6), figure(max / 1e6)), min)
        }),
        column("Jain's\nindex", Most, &|run| match run.jain {
            Some(jain) => (format!("{jain:.3}"), jain),
            None => ("-".to_owned(), f64::NAN),
        }),
        column("time\ns", Least, &|run| (figure(run.runtime_ns as f64 / 1e9), run.runtime_ns as f64)),
        column("mean\nms", Least, &|run| latency(run.latency_ns.mean)),
        column("p50\nms", Least, &|run| latency(run.latency_ns.p50 as f64)),
        column("p99\nms", Least, &|run| latency(run.latency_ns.p99 as f64)),
        column("max\nms", Least, &|run| latency(run.latency_ns.max as f64)),
        column("seek\n%", Least, &|run| drive(run, run.drive_ns.seek)),
        column("rot.\n%", Least, &|run| drive(run, run.drive_ns.rotation)),
        column("data\n%", Most, &|run| drive(run, run.drive_ns.transfer)),
        column("idle\n%", Least, &|run| drive(run, run.drive_ns.idle)),
    ];
    columns.retain(|column| rotational || !["seek\n%", "rot.\n%"].contains(&column.header));
    columns
}

/// Formats milliseconds with three digits, down to a microsecond.
pub fn ms(ns: f64) -> String {
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
    /// Returns the cell that is marked: the best one, unless another has the same text, or a job
    /// starves in its row.
    fn best(&self, starves: &[bool]) -> Option<usize> {
        let better = |a: f64, b: f64| match self.best {
            Best::Most => a > b,
            Best::Least => a < b,
        };
        let cells = || self.cells.iter().enumerate().filter(|(_, cell)| cell.1.is_finite());
        let (index, (text, _)) = cells().reduce(|best, cell| if better(cell.1.1, best.1.1) { cell } else { best })?;
        let is_tie = cells().any(|(other, cell)| other != index && cell.0 == *text);
        let is_alone = self.cells.len() == 1;
        (!is_alone && !is_tie && !starves.get(index).copied().unwrap_or(false)).then_some(index)
    }
}

/// The rows of the table.
struct Rows<'a> {
    names: Vec<&'a str>,
    starves: &'a [bool],
    /// True if runs ended at different times: none is the best then.
    is_partial: bool,
}

impl Rows<'_> {
    fn table(&self, columns: &[Column]) -> Table {
        let header: Vec<&str> =
            std::iter::once("\nelevator").chain(columns.iter().map(|column| column.header)).collect();
        let mut table = output::table(&header, 1);
        let bests: Vec<Option<usize>> =
            columns.iter().map(|column| column.best(self.starves).filter(|_| !self.is_partial)).collect();
        for (line, name) in self.names.iter().enumerate() {
            let cells = columns.iter().zip(&bests).map(|(column, marked)| match *marked == Some(line) {
                true => best(&format!("{}{MARK}", column.cells[line].0)),
                false => Cell::new(format!("{}{NO_MARK}", column.cells[line].0)),
            });
            let starves = self.starves.get(line).copied().unwrap_or(false);
            let name = if starves { format!("{name} {STARVES}") } else { (*name).to_owned() };
            table.add_row(std::iter::once(Cell::new(name)).chain(cells));
        }
        // The column of the mark already separates columns.
        let last = columns.len();
        for (index, column) in table.column_iter_mut().enumerate() {
            column.set_padding((0, u16::from(index != last)));
        }
        table
    }
}

fn print_one(mut table: Table, out: &mut Out) -> Result<()> {
    Ok(out.table(&mut table)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(best: Best, cells: &[(&str, f64)], starves: &[bool]) -> Option<usize> {
        Column { header: "", best, cells: cells.iter().map(|(text, value)| ((*text).to_owned(), *value)).collect() }
            .best(starves)
    }

    #[test]
    fn the_best_is_the_most_or_the_least() {
        assert_eq!(marked(Best::Most, &[("1", 1.0), ("3", 3.0), ("2", 2.0)], &[]), Some(1));
        assert_eq!(marked(Best::Least, &[("1", 1.0), ("3", 3.0), ("2", 2.0)], &[]), Some(0));
        assert_eq!(marked(Best::Most, &[("-", f64::NAN), ("3", 3.0), ("2", 2.0)], &[]), Some(1));
    }

    #[test]
    fn a_tie_has_no_best() {
        assert_eq!(marked(Best::Most, &[("1.0", 1.01), ("1.0", 1.02), ("0.5", 0.5)], &[]), None);
        assert_eq!(marked(Best::Most, &[("1.0", 1.0), ("1.0", 1.0)], &[]), None);
        assert_eq!(marked(Best::Most, &[("1.0", 1.0)], &[]), None);
    }

    #[test]
    fn an_elevator_under_which_a_job_starves_is_not_the_best() {
        assert_eq!(marked(Best::Most, &[("1", 1.0), ("3", 3.0), ("2", 2.0)], &[false, true, false]), None);
    }

    #[test]
    fn milliseconds_have_a_resolution_of_a_microsecond() {
        assert_eq!([2_500.0, 521_000.0, 9_996_000.0, 746e6].map(ms), ["0.003", "0.521", "10.0", "746"]);
    }
}
