//! The measures in which elevators are compared.

use hoistway_sim::Run;

use super::jobs::{JobRun, SyncLatency};

/// A measure of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Bytes a second of all processes.
    BytesPerS,
    /// Bytes a second of the slowest process.
    SlowestBytesPerS,
    /// Mean latency in ns.
    LatencyMeanNs,
    /// 99th percentile of the latency in ns.
    LatencyP99Ns,
    /// Longest latency in ns.
    LatencyMaxNs,
    /// 99th percentile of the latency of syncs in ns, of the job with the greatest.
    SyncP99Ns,
    /// Longest sync in ns.
    SyncMaxNs,
}

impl Measure {
    /// All measures, in the order of `Figures`.
    pub const ALL: [Measure; 7] = [
        Measure::BytesPerS,
        Measure::SlowestBytesPerS,
        Measure::LatencyMeanNs,
        Measure::LatencyP99Ns,
        Measure::LatencyMaxNs,
        Measure::SyncP99Ns,
        Measure::SyncMaxNs,
    ];

    /// The heading of a column, with its unit.
    pub fn heading(self) -> &'static str {
        match self {
            Measure::BytesPerS => "MB/s",
            Measure::SlowestBytesPerS => "slowest MB/s",
            Measure::LatencyMeanNs => "mean ms",
            Measure::LatencyP99Ns => "p99 ms",
            Measure::LatencyMaxNs => "max ms",
            Measure::SyncP99Ns => "sync p99 ms",
            Measure::SyncMaxNs => "sync max ms",
        }
    }

    /// Returns true for the latencies of syncs.
    pub fn is_of_syncs(self) -> bool {
        matches!(self, Measure::SyncP99Ns | Measure::SyncMaxNs)
    }

    /// Returns true if more is better.
    pub fn more_is_better(self) -> bool {
        matches!(self, Measure::BytesPerS | Measure::SlowestBytesPerS)
    }
}

/// The values of a run in all measures. The latencies of syncs are infinite if no sync completed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures([f64; 7]);

impl Figures {
    /// The figures of a run; `jobs` are the results of its jobs.
    pub fn of(run: &Run, jobs: &[JobRun]) -> Figures {
        let slowest = SyncLatency::of_slowest(jobs);
        let sync = |ns: fn(SyncLatency) -> u64| slowest.map_or(f64::INFINITY, |slowest| ns(slowest) as f64);
        Figures(Measure::ALL.map(|measure| match measure {
            Measure::BytesPerS => run.bytes_per_s,
            Measure::SlowestBytesPerS => run.process_bytes_per_s.min,
            Measure::LatencyMeanNs => run.latency_ns.mean,
            Measure::LatencyP99Ns => run.latency_ns.p99 as f64,
            Measure::LatencyMaxNs => run.latency_ns.max as f64,
            Measure::SyncP99Ns => sync(|slowest| slowest.p99_ns),
            Measure::SyncMaxNs => sync(|slowest| slowest.max_ns),
        }))
    }

    /// The means of several figures.
    pub fn mean(of: &[Figures]) -> Figures {
        Figures(
            Measure::ALL.map(|measure| of.iter().map(|figures| figures.get(measure)).sum::<f64>() / of.len() as f64),
        )
    }

    /// Figures of a run that moves this many bytes a second.
    #[cfg(test)]
    pub fn with_rate(bytes_per_s: f64) -> Figures {
        Figures([bytes_per_s, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    }

    /// The value of a measure.
    pub fn get(&self, measure: Measure) -> f64 {
        self.0[measure as usize]
    }
}
