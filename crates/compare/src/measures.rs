//! The measures in which elevators are compared.

use hoistway_sim::Run;

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
}

impl Measure {
    /// All measures, in the order of `Figures`.
    pub const ALL: [Measure; 5] = [
        Measure::BytesPerS,
        Measure::SlowestBytesPerS,
        Measure::LatencyMeanNs,
        Measure::LatencyP99Ns,
        Measure::LatencyMaxNs,
    ];

    /// The heading of a column, with its unit.
    pub fn heading(self) -> &'static str {
        match self {
            Measure::BytesPerS => "MB/s",
            Measure::SlowestBytesPerS => "slowest MB/s",
            Measure::LatencyMeanNs => "mean ms",
            Measure::LatencyP99Ns => "p99 ms",
            Measure::LatencyMaxNs => "max ms",
        }
    }

    /// Returns true if more is better.
    pub fn more_is_better(self) -> bool {
        matches!(self, Measure::BytesPerS | Measure::SlowestBytesPerS)
    }
}

/// The values of a run in all measures.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures([f64; 5]);

impl Figures {
    /// The figures of a run.
    pub fn of(run: &Run) -> Figures {
        Figures(Measure::ALL.map(|measure| match measure {
            Measure::BytesPerS => run.bytes_per_s,
            Measure::SlowestBytesPerS => run.process_bytes_per_s.min,
            Measure::LatencyMeanNs => run.latency_ns.mean,
            Measure::LatencyP99Ns => run.latency_ns.p99 as f64,
            Measure::LatencyMaxNs => run.latency_ns.max as f64,
        }))
    }

    /// The means of several figures.
    pub fn mean(of: &[Figures]) -> Figures {
        Figures(
            Measure::ALL.map(|measure| of.iter().map(|figures| figures.get(measure)).sum::<f64>() / of.len() as f64),
        )
    }

    /// Figures of a run that moves so many bytes a second.
    #[cfg(test)]
    pub fn with_rate(bytes_per_s: f64) -> Figures {
        Figures([bytes_per_s, 0.0, 0.0, 0.0, 0.0])
    }

    /// The value of a measure.
    pub fn get(&self, measure: Measure) -> f64 {
        self.0[measure as usize]
    }
}
