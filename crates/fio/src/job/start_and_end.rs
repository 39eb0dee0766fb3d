//! Options on the start and the end of jobs.

use std::ops::RangeInclusive;

use super::option::{Subject, flag, option};
use crate::{
    direction::Directions,
    values::{Fault, Value, put, unless_zero},
};

#[rustfmt::skip]
pub(crate) const SUBJECT: Subject = Subject {
    heading: "Start and end of jobs",
    options: &[
        option("name", &[], |job, v| put(&mut job.name, Ok(v.text.into())), "text", "the section's name", "The name of the job."),
        option("numjobs", &[], |job, v| put(&mut job.start.numjobs, v.count_u32(1)), "a number", "`1`", "The number of clones of the job."),
        option("startdelay", &["start_delay"], |job, v| put(&mut job.start.startdelay_ns, v.range(|part| part.seconds())), "a time in s, or `LOW-HIGH`", "`0`", "The delay before the job starts; each clone draws from a range."),
        flag("stonewall", &["wait_for_previous"], |job| &mut job.start.stonewall, "The job waits for all jobs above it, and starts a new reporting group."),
        option("wait_for", &[], |job, v| put(&mut job.start.wait_for, Ok(Some(v.text.into()))), "a job's name", "none", "The job above for whose end this one waits."),
        option("runtime", &["timeout"], |job, v| put(&mut job.end.runtime_ns, v.seconds().map(unless_zero)), "a time in s", "no limit", "The longest runtime."),
        flag("time_based", &[], |job| &mut job.end.time_based, "The job starts over until `runtime` is reached."),
        option("ramp_time", &[], |job, v| put(&mut job.start.ramp_time_ns, v.seconds()), "a time in s", "`0`", "The time at the start that is not measured."),
        option("max_latency", &[], |job, v| v.each(&mut job.end.max_latency_ns, |part| part.microseconds()), "a time in us, each", "`0`", "The latency above which the job ends with an error; 0 is none."),
        option("steadystate", &["ss"], |job, v| put(&mut job.end.steadystate, steady_state(v).map(Some)), "`iops:LIMIT`, `bw:LIMIT`, `iops_slope:LIMIT`, `bw_slope:LIMIT`", "none", "The job ends when this figure is steady; a limit may be in per cent of the mean."),
        option("steadystate_duration", &["ss_dur"], |job, v| put(&mut job.end.steadystate_duration_ns, v.seconds()), "a time in s", "`0`", "The time for which it has to be steady; 0 is no check."),
        option("steadystate_ramp_time", &["ss_ramp"], |job, v| put(&mut job.end.steadystate_ramp_ns, v.seconds()), "a time in s", "`0`", "The time before the first check."),
        flag("exitall", &[], |job| &mut job.end.exitall, "Other jobs end with this one."),
        option("exit_what", &[], |job, v| put(&mut job.end.exit_what, v.word(&[("group", ExitWhat::Group), ("stonewall", ExitWhat::Stonewall), ("all", ExitWhat::All)])), "`group`, `stonewall`, `all`", "`group`", "The jobs that end with it: those of its reporting group, those that run, or all."),
    ],
};

/// When a job and its clones start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// Number of clones, at least 1.
    pub numjobs: u32,
    /// Delay before the job starts, in nanoseconds; each clone draws from the range.
    pub startdelay_ns: RangeInclusive<u64>,
    /// Time at the start that is not measured, in nanoseconds.
    pub ramp_time_ns: u64,
    /// True if the job waits for all jobs above it.
    pub stonewall: bool,
    /// The job that this one waits for; it is above, and its name is unique.
    pub wait_for: Option<String>,
}

/// When a job ends, and which others end with it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct End {
    /// Longest runtime, in nanoseconds.
    pub runtime_ns: Option<u64>,
    /// True if the job starts over until `runtime_ns` is reached.
    pub time_based: bool,
    /// The latency above which the job ends with an error, in nanoseconds; 0 for none.
    pub max_latency_ns: Directions<u64>,
    /// The rate at which the job ends, if it is steady.
    pub steadystate: Option<SteadyState>,
    /// The time for which the rate has to be steady, in nanoseconds; 0 for no check.
    pub steadystate_duration_ns: u64,
    /// The time before the first check, in nanoseconds.
    pub steadystate_ramp_ns: u64,
    /// True if other jobs end with this one.
    pub exitall: bool,
    /// The jobs that end with this one.
    pub exit_what: ExitWhat,
}

impl Default for Start {
    fn default() -> Self {
        Start { numjobs: 1, startdelay_ns: 0..=0, ramp_time_ns: 0, stonewall: false, wait_for: None }
    }
}

/// The jobs that end with a job that has `exitall`: fio's `exit_what`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExitWhat {
    /// `group`: the jobs of the same reporting group.
    #[default]
    Group,
    /// `stonewall`: all jobs that run; those behind the next stonewall start.
    Stonewall,
    /// `all`: all jobs, also those that have not started.
    All,
}

/// The figure that has to become steady: the first part of fio's `steadystate`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SteadyFigure {
    /// Requests a second.
    Iops,
    /// Bytes a second.
    Bandwidth,
}

/// The end of a job whose rate is steady: fio's `steadystate`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SteadyState {
    /// The figure, one value a second.
    pub figure: SteadyFigure,
    /// True if the slope of the regression line counts, false if the largest deviation from the
    /// mean does.
    pub slope: bool,
    /// The limit of the deviation or slope; it is above 0.
    pub limit: f64,
    /// True if the limit is in percent of the mean.
    pub percent: bool,
}

/// Parses a figure with the limit of its deviation, as in `iops_slope:0.3%`.
fn steady_state(v: Value) -> Result<SteadyState, Fault> {
    let help = "write figure:limit, as in iops:2% or bw_slope:0.3%";
    let value = v.text;
    let Some((name, limit)) = value.split_once(':') else {
        return Err(Fault::with_help(format!("`{value}` has no limit"), help));
    };
    let (figure, slope) = v.part(name).word(&[
        ("iops", (SteadyFigure::Iops, false)),
        ("iops_slope", (SteadyFigure::Iops, true)),
        ("bw", (SteadyFigure::Bandwidth, false)),
        ("bw_slope", (SteadyFigure::Bandwidth, true)),
    ])?;
    let (limit, percent) = match limit.trim().strip_suffix('%') {
        Some(digits) => (v.part(digits).decimal()?, true),
        // A limit of a bandwidth may have a unit.
        None if figure == SteadyFigure::Bandwidth => {
            let bound = v.part(limit).decimal().or_else(|_| v.part(limit).count(0).map(|bytes| bytes as f64));
            (bound?, false)
        }
        None => (v.part(limit).decimal()?, false),
    };
    if limit <= 0.0 {
        return Err(Fault::with_help(format!("the limit in `{value}` is 0"), help));
    }
    Ok(SteadyState { figure, slope, limit, percent })
}
