//! What is to be good, and what must not be lost over it: `p99(reader) min, throughput >= 90%`.
//!
//! An objective is a list of clauses with commas between them. A *goal* is a figure and `min` or `max`; of several goals the first decides, and the next
//! among those that cannot be told apart by it. A *constraint* is a figure, `>=` or `<=`, and a bound: a value with its unit, or a share of what the best
//! of the choices reaches (`90%`, `90% of best`) or of what is set now (`90% of now`).

mod parse;

use std::fmt;

use hoistway_sim::{ProcessRun, Run};

pub use parse::ObjectiveError;

/// A figure of all processes that is taken for each, of which the worst counts.
pub const WORST: &str = "worst";

/// Goals and constraints.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Objective {
    /// At least one; the first decides.
    pub goals: Vec<Goal>,
    /// What must hold all the same.
    pub constraints: Vec<Constraint>,
    /// As it was written.
    pub text: String,
}

/// A figure to be made small, or large.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Goal {
    /// Of what.
    pub figure: Figure,
    /// Whether less is better.
    pub least: bool,
}

/// A bound that a figure must keep to.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Constraint {
    /// Of what.
    pub figure: Figure,
    /// Whether the figure must not be less than the bound; otherwise it must not be more.
    pub at_least: bool,
    /// The bound.
    pub bound: Bound,
}

/// Where a bound lies.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// There, in the figure's own unit: ns, bytes a second, requests a second, a count.
    At(f64),
    /// At this share of what the best of the choices reaches.
    OfBest(f64),
    /// At this share of what is set now.
    OfNow(f64),
}

/// Something that is measured of a run.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Figure {
    /// What.
    pub what: What,
    /// Of which job; `None` is all of them together, [`WORST`] the one that fares worst.
    pub job: Option<String>,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// This percentile of completion latencies, in ns.
    Percentile(f64),
    /// Their mean, in ns.
    Mean,
    /// The longest of them, in ns.
    Longest,
    /// Bytes a second.
    Throughput,
    /// Requests a second.
    Iops,
    /// Jain's index over the processes' rates, 0 to 1.
    Fairness,
    /// From the job's first start to its last end, in ns.
    Time,
    /// The 99th percentile of how long syncs take, in ns.
    Sync,
    /// Seconds at whose end a paced job had less than its `rate` owes it.
    Misses,
}

/// What a figure is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds.
    Time,
    /// Bytes a second.
    Rate,
    /// A number without a unit.
    Number,
}

impl What {
    /// What it is counted in.
    pub fn unit(self) -> Unit {
        match self {
            What::Throughput => Unit::Rate,
            What::Iops | What::Fairness | What::Misses => Unit::Number,
            _ => Unit::Time,
        }
    }

    /// Whether less of it is better.
    pub fn less_is_better(self) -> bool {
        !matches!(self, What::Throughput | What::Iops | What::Fairness)
    }
}

impl Objective {
    /// The figure of a job file or a trace of which nothing is known: as many bytes as can be, and among those that move as many, the shortest waits
    /// of the process that waits longest.
    pub const USUAL: &'static str = "throughput max, p99(worst) min";

    /// All figures that it speaks of, goals first, each once.
    pub fn figures(&self) -> Vec<Figure> {
        let mut figures: Vec<Figure> = Vec::new();
        let all = self.goals.iter().map(|goal| &goal.figure).chain(self.constraints.iter().map(|bound| &bound.figure));
        for figure in all {
            if !figures.contains(figure) {
                figures.push(figure.clone());
            }
        }
        figures
    }
}

impl Figure {
    /// Its value in a run. What there is nothing of - a latency of a job that had no request - is as bad as can be.
    pub fn of(&self, run: &Run) -> f64 {
        let counts = |process: &ProcessRun| {
            self.job.as_ref().is_none_or(|job| *job == process.name || *job == pid_name(process.pid))
        };
        if self.job.as_deref() == Some(WORST) && !run.processes.iter().any(|process| process.name == WORST) {
            let each = run.processes.iter().map(|process| self.of_processes(run, &|other| other.pid == process.pid));
            return if self.what.less_is_better() {
                each.fold(0.0, f64::max)
            } else {
                each.fold(f64::INFINITY, f64::min)
            };
        }
        if self.job.is_none() && self.what == What::Throughput {
            return run.bytes_per_s;
        }
        self.of_processes(run, &counts)
    }

    fn of_processes(&self, run: &Run, counts: &dyn Fn(&ProcessRun) -> bool) -> f64 {
        let processes = || run.processes.iter().filter(|process| counts(process));
        let sum = |each: &dyn Fn(&ProcessRun) -> f64| processes().map(each).sum::<f64>();
        let per_second = |count: u64, ns: u64| if ns == 0 { 0.0 } else { count as f64 * 1e9 / ns as f64 };
        let latency = |of: &dyn Fn(&hoistway_sim::Latencies) -> f64| {
            let latencies = run.latencies_of(counts);
            if latencies.count() == 0 { f64::INFINITY } else { of(&latencies) }
        };
        match self.what {
            What::Percentile(percent) => latency(&|of| of.percentile_ns(percent) as f64),
            What::Mean => latency(&|of| of.mean_ns()),
            What::Longest => latency(&|of| of.max_ns() as f64),
            What::Throughput => sum(&|process| process.bytes_per_s),
            What::Iops => sum(&|process| per_second(process.read.ios + process.write.ios, process.runtime_ns)),
            What::Fairness => {
                let rates: Vec<f64> = processes().map(|process| process.bytes_per_s).collect();
                hoistway_sim::jain(&rates)
            }
            What::Time => {
                let from = processes().map(|process| process.start_ns).min().unwrap_or(0);
                let until = processes().map(|process| process.start_ns + process.runtime_ns).max().unwrap_or(0);
                until.saturating_sub(from) as f64
            }
            What::Sync => {
                let syncs = run.syncs_of(counts);
                if syncs.count() == 0 { f64::INFINITY } else { syncs.percentile_ns(99.0) as f64 }
            }
            What::Misses => processes().filter_map(|process| process.deadline_misses).sum::<u64>() as f64,
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.what {
            What::Percentile(percent) => write!(f, "p{percent}")?,
            What::Mean => f.write_str("mean")?,
            What::Longest => f.write_str("longest")?,
            What::Throughput => f.write_str("throughput")?,
            What::Iops => f.write_str("iops")?,
            What::Fairness => f.write_str("fairness")?,
            What::Time => f.write_str("time")?,
            What::Sync => f.write_str("sync")?,
            What::Misses => f.write_str("misses")?,
        }
        match &self.job {
            Some(job) => write!(f, "({job})"),
            None => Ok(()),
        }
    }
}

/// What a process of a recording can be called by, whatever its name is.
pub(crate) fn pid_name(pid: u32) -> String {
    format!("pid {pid}")
}

/// A value as people read it: `12.3 ms`, `88.1 MB/s`, `0.93`.
pub fn told(value: f64, unit: Unit) -> String {
    if !value.is_finite() {
        return "-".into();
    }
    match unit {
        Unit::Time if value < 1e3 => format!("{value:.0} ns"),
        Unit::Time if value < 999.5e3 => format!("{} us", digits(value / 1e3)),
        Unit::Time if value < 999.5e6 => format!("{} ms", digits(value / 1e6)),
        Unit::Time => format!("{} s", digits(value / 1e9)),
        Unit::Rate if value < 999.5e3 => format!("{} kB/s", digits(value / 1e3)),
        Unit::Rate if value < 999.5e6 => format!("{} MB/s", digits(value / 1e6)),
        Unit::Rate => format!("{} GB/s", digits(value / 1e9)),
        Unit::Number => digits(value),
    }
}

/// Three significant digits.
fn digits(value: f64) -> String {
    match value.abs() {
        m if m == 0.0 || m >= 99.95 => format!("{value:.0}"),
        m if m >= 9.995 => format!("{value:.1}"),
        m if m >= 0.9995 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}
