//! Options on pauses, rates and shares, and on the search for a queue depth.

use super::option::{Subject, option, switch};
use crate::{
    direction::Directions,
    values::{Fault, Value, put, unless_zero},
};

#[rustfmt::skip]
pub(crate) const SUBJECT: Subject = Subject {
    heading: "Pauses and rates",
    options: &[
        option("thinktime", &[], |job, v| put(&mut job.pauses.thinktime_ns, v.microseconds()), "a time in us", "`0`", "The pause after `thinktime_blocks` requests."),
        option("thinktime_spin", &[], |job, v| put(&mut job.pauses.thinktime_spin_ns, v.microseconds()), "a time in us", "`0`", "The part of the pause that is spent computing."),
        option("thinktime_blocks", &[], |job, v| put(&mut job.pauses.thinktime_blocks, v.count_u32(0).map(|blocks| blocks.max(1))), "a number", "`1`", "Requests between two pauses."),
        option("thinktime_blocks_type", &[], |job, v| put(&mut job.pauses.thinktime_blocks_type, v.word(&[("complete", BlocksType::Complete), ("issue", BlocksType::Issue)])), "`complete`, `issue`", "`complete`", "The requests that `thinktime_blocks` counts: completed ones, or submitted ones."),
        option("thinktime_iotime", &[], |job, v| put(&mut job.pauses.thinktime_iotime_ns, v.seconds()), "a time in s", "`0`", "The time of requests between two pauses; 0 is none."),
        option("rate", &[], |job, v| v.each(&mut job.rates.rate, cap), "a size a second, each", "no limit", "The largest bandwidth."),
        option("rate_iops", &[], |job, v| v.each(&mut job.rates.rate_iops, cap), "requests a second, each", "no limit", "The largest rate of requests."),
        option("rate_process", &[], |job, v| put(&mut job.rates.rate_process, v.word(&[("linear", RateProcess::Linear), ("poisson", RateProcess::Poisson)])), "`linear`, `poisson`", "`linear`", "The spacing of requests under a limit: even, or random with that mean."),
        switch("rate_ignore_thinktime", &[], |job| &mut job.rates.rate_ignore_thinktime, "`0`", "A job under a limit does not make up for its pauses by a higher rate."),
        option("rate_min", &["ratemin"], |job, v| v.each(&mut job.rates.rate_min, |part| part.count(0)), "a size a second, each", "`0`", "The bandwidth below which the job ends with an error."),
        option("rate_iops_min", &[], |job, v| v.each(&mut job.rates.rate_iops_min, |part| part.count(0)), "requests a second, each", "`0`", "The rate of requests below which the job ends with an error."),
        option("rate_cycle", &["ratecycle"], |job, v| put(&mut job.rates.rate_cycle_ms, v.count(1)), "a time in ms", "`1000`", "The time over which `rate_min` and `rate_iops_min` are measured."),
        option("flow", &[], |job, v| put(&mut job.flow.weight, v.count_u32(0)), "a number", "`0`", "The weight of the job among those of the same `flow_id`; 0 is outside of any group."),
        option("flow_id", &[], |job, v| put(&mut job.flow.id, v.count_u32(0)), "a number", "`0`", "The group of jobs that share by `flow`."),
        option("flow_sleep", &[], |job, v| put(&mut job.flow.sleep_ns, v.microseconds()), "a time in us", "`0`", "The pause of a job that is ahead of its share."),
        option("latency_target", &[], |job, v| put(&mut job.latency_target.target_ns, v.microseconds()), "a time in us", "`0`", "Search for the largest queue depth within this latency; 0 is no search."),
        option("latency_window", &[], |job, v| put(&mut job.latency_target.window_ns, v.microseconds()), "a time in us", "required with `latency_target`", "The time for which a depth is tried."),
        option("latency_percentile", &[], |job, v| put(&mut job.latency_target.percentile, percentile(v)), "a percentage", "`100`", "The part of the requests that has to be within the target."),
        switch("latency_run", &[], |job| &mut job.latency_target.run, "`0`", "The job continues at the depth that was found."),
    ],
};

/// The pauses between requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pauses {
    /// The pause after `thinktime_blocks` requests, in nanoseconds.
    pub thinktime_ns: u64,
    /// The part of the pause that is spent computing, in nanoseconds.
    pub thinktime_spin_ns: u64,
    /// Requests between pauses, at least 1.
    pub thinktime_blocks: u32,
    /// The requests that `thinktime_blocks` counts.
    pub thinktime_blocks_type: BlocksType,
    /// Time of requests between pauses, in nanoseconds; 0 for none.
    pub thinktime_iotime_ns: u64,
}

/// Limits of the rates of requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rates {
    /// The cap on bandwidth, in bytes a second.
    pub rate: Directions<Option<u64>>,
    /// The cap on requests a second.
    pub rate_iops: Directions<Option<u64>>,
    /// Spacing of capped requests.
    pub rate_process: RateProcess,
    /// True if a capped job does not catch up what it missed in its pauses.
    pub rate_ignore_thinktime: bool,
    /// The bandwidth below which the job ends with an error, in bytes a second; 0 for none.
    pub rate_min: Directions<u64>,
    /// The requests a second below which the job ends with an error; 0 for none.
    pub rate_iops_min: Directions<u64>,
    /// The time over which the rates of `rate_min` and `rate_iops_min` are measured, in
    /// milliseconds.
    pub rate_cycle_ms: u64,
}

/// The share of a job among the jobs with the same `flow_id`: fio's `flow`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// The number of the group of jobs.
    pub id: u32,
    /// The weight; 0 for a job outside of any group.
    pub weight: u32,
    /// The pause of a job that is ahead of its share, in nanoseconds.
    pub sleep_ns: u64,
}

/// The search for the largest queue depth within a latency: fio's `latency_target`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatencyTarget {
    /// The longest latency, in nanoseconds; 0 for no search.
    pub target_ns: u64,
    /// The time for which a depth is tried, in nanoseconds.
    pub window_ns: u64,
    /// The percentage of requests that have to be within the target, 0 to 100.
    pub percentile: f64,
    /// True if the job goes on at the depth that was found, false if it ends there.
    pub run: bool,
}

impl Default for Pauses {
    fn default() -> Self {
        Pauses {
            thinktime_ns: 0,
            thinktime_spin_ns: 0,
            thinktime_blocks: 1,
            thinktime_blocks_type: BlocksType::Complete,
            thinktime_iotime_ns: 0,
        }
    }
}

impl Default for Rates {
    fn default() -> Self {
        Rates {
            rate: Directions::both(None),
            rate_iops: Directions::both(None),
            rate_process: RateProcess::Linear,
            rate_ignore_thinktime: false,
            rate_min: Directions::both(0),
            rate_iops_min: Directions::both(0),
            rate_cycle_ms: 1000,
        }
    }
}

/// No search.
impl Default for LatencyTarget {
    fn default() -> Self {
        LatencyTarget { target_ns: 0, window_ns: 0, percentile: 100.0, run: false }
    }
}

/// The requests that are counted for a pause: fio's `thinktime_blocks_type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BlocksType {
    /// `complete`: completed requests.
    #[default]
    Complete,
    /// `issue`: submitted requests.
    Issue,
}

/// The spacing of capped requests: fio's `rate_process`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateProcess {
    /// Even intervals.
    Linear,
    /// The arrivals of a Poisson process.
    Poisson,
}

/// Parses a limit of a rate.
fn cap(v: Value) -> Result<Option<u64>, Fault> {
    v.count(0).map(unless_zero)
}

fn percentile(v: Value) -> Result<f64, Fault> {
    match v.decimal()? {
        percent if percent <= 100.0 => Ok(percent),
        percent => Err(Fault::with_help(format!("{percent} is more than 100 percent"), "from 0 to 100")),
    }
}
