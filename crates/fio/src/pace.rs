//! Types of the options that balance, watch and end jobs.

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

/// The batches in which an asynchronous engine submits and reaps requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batching {
    /// Requests submitted in one call: `iodepth_batch`. 0 means `iodepth`.
    pub submit: u32,
    /// Requests that a full queue waits for: `iodepth_batch_complete_min`. 0 waits for none until
    /// the queue is full.
    pub complete_min: u32,
    /// Most requests that one call reaps: `iodepth_batch_complete_max`. 0 reaps all that are
    /// complete.
    pub complete_max: u32,
    /// Requests in flight down to which a full queue drains before it is filled again:
    /// `iodepth_low`. 0 means `iodepth`.
    pub low: u32,
}

impl Batching {
    /// One request at a time, which is fio's default.
    pub const SINGLE: Batching = Batching { submit: 1, complete_min: 1, complete_max: 0, low: 0 };
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

impl LatencyTarget {
    /// No search, which is fio's default.
    pub const NONE: LatencyTarget = LatencyTarget { target_ns: 0, window_ns: 0, percentile: 100.0, run: false };
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
