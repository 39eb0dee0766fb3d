//! Objectives: goals and constraints, as in `p99(reader) min, throughput >= 90%`.
//!
//! An objective is a list of clauses separated by commas. A *goal* is a figure and `min` or `max`.
//! The first goal decides; the next decides among choices that do not differ in it. A *constraint*
//! is a figure, `>=` or `<=`, and a bound: a value with its unit, or a share of the best choice
//! (`90%`, `90% of best`) or of the current settings (`90% of now`).

mod parse;

use std::fmt;

use hoistway_sim::{ProcessRun, Run};

pub use parse::ObjectiveError;

/// The job name that stands for the process with the worst figure.
pub const WORST: &str = "worst";

/// Goals and constraints.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Objective {
    /// The goals, at least one; the first decides.
    pub goals: Vec<Goal>,
    /// The constraints.
    pub constraints: Vec<Constraint>,
    /// The objective as text.
    pub text: String,
}

/// A figure to minimise or maximise.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Goal {
    /// The figure.
    pub figure: Figure,
    /// True to minimise, false to maximise.
    pub least: bool,
}

/// A bound that a figure must keep to.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Constraint {
    /// The figure.
    pub figure: Figure,
    /// True if the bound is a lower bound, false for an upper bound.
    pub at_least: bool,
    /// The bound.
    pub bound: Bound,
}

/// A bound of a constraint.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// A value in the unit of the figure: ns, bytes per second, requests per second, a count.
    At(f64),
    /// A share of the best choice's value.
    OfBest(f64),
    /// A share of the current settings' value.
    OfNow(f64),
}

/// A metric of one job or of all jobs.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Figure {
    /// The metric.
    pub metric: Metric,
    /// The job; `None` for all jobs together, [`WORST`] for the process with the worst value.
    pub job: Option<String>,
}

/// A metric of a run.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// A percentile of completion latency, in ns.
    Percentile(f64),
    /// The mean completion latency, in ns.
    Mean,
    /// The longest completion latency, in ns.
    Longest,
    /// Bytes per second.
    Throughput,
    /// Requests per second.
    Iops,
    /// Jain's fairness index over the rates of the processes, 0 to 1.
    Fairness,
    /// The time from the first start of the job to its last end, in ns.
    Time,
    /// The 99th percentile of sync latency, in ns.
    Sync,
    /// The number of seconds in which a paced job got less than its `rate`.
    Misses,
}

/// The unit of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Time in nanoseconds.
    Time,
    /// Bytes per second.
    Rate,
    /// A number without a unit.
    Number,
}

impl Metric {
    /// The unit of the metric.
    pub fn unit(self) -> Unit {
        match self {
            Metric::Throughput => Unit::Rate,
            Metric::Iops | Metric::Fairness | Metric::Misses => Unit::Number,
            _ => Unit::Time,
        }
    }

    /// Returns true if a smaller value is better.
    pub fn less_is_better(self) -> bool {
        !matches!(self, Metric::Throughput | Metric::Iops | Metric::Fairness)
    }
}

impl Objective {
    /// The default objective of job files and traces: the highest throughput, and with equal
    /// throughput the lowest p99 latency of the slowest process.
    pub const USUAL: &'static str = "throughput max, p99(worst) min";

    /// All figures of the objective, goals first, each once.
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
    /// The value of the figure in a run. A latency without any request is infinite.
    pub fn of(&self, run: &Run) -> f64 {
        let counts = |process: &ProcessRun| {
            self.job.as_ref().is_none_or(|job| *job == process.name || *job == pid_name(process.pid))
        };
        if self.job.as_deref() == Some(WORST) && !run.processes.iter().any(|process| process.name == WORST) {
            let each = run.processes.iter().map(|process| self.of_processes(run, &|other| other.pid == process.pid));
            return if self.metric.less_is_better() {
                each.fold(0.0, f64::max)
            } else {
                each.fold(f64::INFINITY, f64::min)
            };
        }
        if self.job.is_none() && self.metric == Metric::Throughput {
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
        match self.metric {
            Metric::Percentile(percent) => latency(&|of| of.percentile_ns(percent) as f64),
            Metric::Mean => latency(&|of| of.mean_ns()),
            Metric::Longest => latency(&|of| of.max_ns() as f64),
            Metric::Throughput => sum(&|process| process.bytes_per_s),
            Metric::Iops => sum(&|process| per_second(process.read.ios + process.write.ios, process.runtime_ns)),
            Metric::Fairness => {
                let rates: Vec<f64> = processes().map(|process| process.bytes_per_s).collect();
                hoistway_sim::jain(&rates)
            }
            Metric::Time => {
                let from = processes().map(|process| process.start_ns).min().unwrap_or(0);
                let until = processes().map(|process| process.start_ns + process.runtime_ns).max().unwrap_or(0);
                until.saturating_sub(from) as f64
            }
            Metric::Sync => {
                let syncs = run.syncs_of(counts);
                if syncs.count() == 0 { f64::INFINITY } else { syncs.percentile_ns(99.0) as f64 }
            }
            Metric::Misses => processes().filter_map(|process| process.deadline_misses).sum::<u64>() as f64,
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.metric {
            Metric::Percentile(percent) => write!(f, "p{percent}")?,
            Metric::Mean => f.write_str("mean")?,
            Metric::Longest => f.write_str("longest")?,
            Metric::Throughput => f.write_str("throughput")?,
            Metric::Iops => f.write_str("iops")?,
            Metric::Fairness => f.write_str("fairness")?,
            Metric::Time => f.write_str("time")?,
            Metric::Sync => f.write_str("sync")?,
            Metric::Misses => f.write_str("misses")?,
        }
        match &self.job {
            Some(job) => write!(f, "({job})"),
            None => Ok(()),
        }
    }
}

/// The name of a recorded process by its process id.
pub(crate) fn pid_name(pid: u32) -> String {
    format!("pid {pid}")
}
