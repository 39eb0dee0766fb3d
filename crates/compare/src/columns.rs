//! The columns of the table of elevators: figures as text, and which of them is the best.

use hoistway_sim::{Comparison, Run};
use hoistway_units::figures::{figure, percent};

use super::Judgement;
use super::jobs::SyncLatency;

/// The best end of a column.
#[derive(Clone, Copy, Debug)]
enum Best {
    Most,
    Least,
}

/// A column: for each elevator a text with the value that is compared.
#[derive(Clone, Debug)]
pub struct Column {
    /// The header in two lines, with the unit.
    pub header: &'static str,
    best: Best,
    cells: Vec<(String, f64)>,
}

/// The columns, each with a cell for each run: throughput, latencies, the drive's time.
pub fn columns(comparison: &Comparison, judgement: &Judgement) -> Vec<Column> {
    use Best::{Least, Most};
    let column = |header, best, cell: &dyn Fn(&Run) -> (String, f64)| {
        let cells = comparison.runs.iter().map(cell).collect();
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
    if judgement.syncs() {
        let seek = columns.iter().position(|column| column.header == "seek\n%").unwrap_or(columns.len());
        columns.splice(seek..seek, syncs(judgement));
    }
    columns.retain(|column| comparison.rotational || !["seek\n%", "rot.\n%"].contains(&column.header));
    columns
}

/// The columns of the latencies of syncs.
fn syncs(judgement: &Judgement) -> [Column; 2] {
    let column = |header, ns: fn(SyncLatency) -> u64| {
        let cell = |jobs: &Vec<_>| match SyncLatency::of_slowest(jobs) {
            Some(slowest) => (ms(ns(slowest) as f64), ns(slowest) as f64),
            None => ("-".to_owned(), f64::NAN),
        };
        Column { header, best: Best::Least, cells: judgement.jobs.iter().map(cell).collect() }
    };
    [column("sync p99\nms", |slowest| slowest.p99_ns), column("sync max\nms", |slowest| slowest.max_ns)]
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
    /// The text of the cell of a run; empty if there is no such run.
    pub fn text(&self, run: usize) -> &str {
        self.cells.get(run).map_or("", |(text, _)| text)
    }

    /// Returns the cell that is marked: the best one, unless another has the same text, or a job
    /// starves in its row.
    pub fn best(&self, starves: &[bool]) -> Option<usize> {
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
