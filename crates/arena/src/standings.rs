//! Each elevator beside the best of each case.

use serde::Serialize;

use crate::cases::{Case, Cases, Entry};
use crate::sample::geometric_mean;

/// The minimum isolation of an elevator whose throughput counts as the best of a case: throughput
/// that is bought with starvation does not.
pub const SOUND_ISOLATION: f64 = 0.8;

/// A measure of the arena with the bound within which a case counts as won.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Throughput over that of the best sound elevator of the case.
    Throughput,
    /// 99th percentile of latency over the best of the case.
    Latency,
    /// The minimum rate of a process over its share of the rate that it has alone.
    Isolation,
}

/// An elevator over all cases.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Standing {
    /// The name of the elevator.
    pub elevator: String,
    /// Number of cases with a result.
    #[serde(rename = "cells")]
    pub cases: usize,
    /// Geometric mean of each measure, in the order of [`Measure::ALL`]; `None` without a case.
    pub means: [Option<f64>; 3],
    /// Number of cases within the bound of each measure, and of cases that have the measure.
    pub within: [(usize, usize); 3],
    /// Seconds in which a process with a rate had less than it: the sum over cases of the means.
    pub missed: f64,
    /// CPU time of a request in ns with each of [`COST_PROCESSES`](crate::COST_PROCESSES), if it
    /// was measured.
    pub cpu_ns: Vec<f64>,
    /// Number of other elevators that are better in the geometric mean of each measure, summed: the
    /// order of the table.
    pub beaten_by: usize,
}

/// All elevators over all cases.
#[derive(Clone, Debug, Serialize)]
pub struct Standings {
    /// The elevators, the one that fewest others beat first.
    pub standings: Vec<Standing>,
}

/// A case in which an elevator is outside the bound of a measure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Lost {
    /// The workload.
    pub workload: &'static str,
    /// The drive.
    pub drive: &'static str,
    /// The measure.
    pub measure: Measure,
    /// Its value.
    pub value: f64,
    /// The elevator with the best value, for throughput and latency.
    pub best: Option<String>,
}

impl Measure {
    /// All measures, in the order of columns.
    pub const ALL: [Measure; 3] = [Measure::Throughput, Measure::Latency, Measure::Isolation];

    /// The bound: at least this for throughput and isolation, at most for latency.
    pub const fn bound(self) -> f64 {
        match self {
            Measure::Throughput => 0.97,
            Measure::Latency => 1.1,
            Measure::Isolation => 0.9,
        }
    }

    /// The name for tables.
    pub const fn name(self) -> &'static str {
        match self {
            Measure::Throughput => "throughput",
            Measure::Latency => "latency",
            Measure::Isolation => "isolation",
        }
    }

    /// Returns true if greater values are better.
    pub const fn is_gain(self) -> bool {
        !matches!(self, Measure::Latency)
    }

    /// Returns true if a value is within the bound.
    pub fn is_within(self, value: f64) -> bool {
        if self.is_gain() { value >= self.bound() } else { value <= self.bound() }
    }

    /// Returns true if the value of one elevator is better than that of another.
    fn is_better(self, one: f64, other: f64) -> bool {
        if self.is_gain() { one > other } else { one < other }
    }
}

impl Case {
    /// The entry of an elevator.
    pub fn entry(&self, elevator: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.elevator == elevator)
    }

    /// The elevator with the highest throughput among the sound ones; among all if none is sound.
    pub fn best_throughput(&self) -> Option<&Entry> {
        let highest = |least: f64| {
            let sound = self.entries.iter().filter(|entry| entry.isolation.mean >= least);
            sound.max_by(|one, other| one.bytes_per_s.mean.total_cmp(&other.bytes_per_s.mean))
        };
        highest(SOUND_ISOLATION).or_else(|| highest(f64::NEG_INFINITY))
    }

    /// The elevator with the least 99th percentile of latency.
    pub fn best_latency(&self) -> Option<&Entry> {
        let entries = self.entries.iter().filter_map(|entry| Some((entry, entry.p99_ns?.mean)));
        entries.min_by(|one, other| one.1.total_cmp(&other.1)).map(|(entry, _)| entry)
    }

    /// The value of a measure for an elevator.
    pub fn value(&self, elevator: &str, measure: Measure) -> Option<f64> {
        let entry = self.entry(elevator)?;
        let value = match measure {
            Measure::Throughput => entry.bytes_per_s.mean / self.best_throughput()?.bytes_per_s.mean,
            Measure::Latency => entry.p99_ns?.mean / self.best_latency()?.p99_ns?.mean,
            Measure::Isolation => entry.isolation.mean,
        };
        value.is_finite().then_some(value)
    }
}

impl Cases {
    /// The geometric mean of a measure for an elevator over the cases that `counts`; `None` without
    /// a case.
    pub fn mean(&self, elevator: &str, measure: Measure, counts: impl Fn(&Case) -> bool) -> Option<f64> {
        let cases = self.cases.iter().filter(|case| counts(case));
        // More than the share is no merit: it is the loss of another process.
        let most = if measure == Measure::Isolation { 1.0 } else { f64::INFINITY };
        geometric_mean(cases.filter_map(|case| case.value(elevator, measure)).map(|value| value.min(most)))
    }

    /// The names of the elevators, in the order of their first entry.
    pub fn elevators(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for entry in self.cases.iter().flat_map(|case| &case.entries) {
            if !names.contains(&entry.elevator) {
                names.push(entry.elevator.clone());
            }
        }
        names
    }

    /// The cases in which an elevator is outside a bound, the worst of each measure first.
    pub fn lost(&self, elevator: &str) -> Vec<Lost> {
        let mut lost: Vec<Lost> = Vec::new();
        for measure in Measure::ALL {
            let begin = lost.len();
            lost.extend(self.cases.iter().filter_map(|case| {
                let value = case.value(elevator, measure).filter(|value| !measure.is_within(*value))?;
                let best = match measure {
                    Measure::Throughput => case.best_throughput(),
                    Measure::Latency => case.best_latency(),
                    Measure::Isolation => None,
                };
                let best = best.map(|entry| entry.elevator.clone());
                Some(Lost { workload: case.workload, drive: case.drive, measure, value, best })
            }));
            lost[begin..].sort_by(|one, other| one.value.total_cmp(&other.value));
            if !measure.is_gain() {
                lost[begin..].reverse();
            }
        }
        lost
    }
}

impl Standings {
    /// The standings of all elevators of some cases.
    pub fn of(cases: &Cases) -> Standings {
        let names = cases.elevators();
        let mut standings: Vec<Standing> = names.iter().map(|name| standing(cases, name)).collect();
        let means: Vec<[Option<f64>; 3]> = standings.iter().map(|standing| standing.means).collect();
        for standing in &mut standings {
            let beats = |other: &[Option<f64>; 3]| {
                let pairs = Measure::ALL.into_iter().zip(other.iter().zip(&standing.means));
                pairs
                    .filter(
                        |(measure, pair)| matches!(pair, (Some(one), Some(other)) if measure.is_better(*one, *other)),
                    )
                    .count()
            };
            standing.beaten_by = means.iter().map(beats).sum();
        }
        standings.sort_by_key(|standing| standing.beaten_by);
        Standings { standings }
    }

    /// Adds CPU times, a list for each elevator.
    pub fn add_costs(&mut self, costs: &[(String, Vec<f64>)]) {
        for standing in &mut self.standings {
            if let Some((_, ns)) = costs.iter().find(|(name, _)| *name == standing.elevator) {
                standing.cpu_ns.clone_from(ns);
            }
        }
    }
}

fn standing(cases: &Cases, elevator: &str) -> Standing {
    let entries = || cases.cases.iter().filter_map(|case| case.entry(elevator));
    let within = |measure: Measure| {
        let values = || cases.cases.iter().filter_map(|case| case.value(elevator, measure));
        (values().filter(|value| measure.is_within(*value)).count(), values().count())
    };
    Standing {
        elevator: elevator.to_owned(),
        cases: entries().count(),
        means: Measure::ALL.map(|measure| cases.mean(elevator, measure, |_| true)),
        within: Measure::ALL.map(within),
        missed: entries().map(|entry| entry.missed.mean).sum(),
        cpu_ns: Vec::new(),
        beaten_by: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Sample;

    fn entry(elevator: &str, bytes_per_s: f64, p99_ns: f64, isolation: f64) -> Entry {
        let sample = |mean: f64| Sample { mean, min: mean, max: mean };
        Entry {
            elevator: elevator.to_owned(),
            bytes_per_s: sample(bytes_per_s),
            p99_ns: Some(sample(p99_ns)),
            p999_ns: Some(sample(p99_ns)),
            isolation: sample(isolation),
            least_served: "reader".to_owned(),
            missed: sample(1.0),
        }
    }

    fn cases() -> Cases {
        let case = |drive, entries| Case { workload: "streams", drive, sensitive: Some("reader"), entries };
        let first =
            vec![entry("greedy", 200.0, 50.0, 0.1), entry("fair", 100.0, 10.0, 1.2), entry("slow", 98.0, 10.5, 0.9)];
        let second =
            vec![entry("greedy", 100.0, 10.0, 0.95), entry("fair", 50.0, 20.0, 1.0), entry("slow", 25.0, 20.0, 1.0)];
        Cases { cases: vec![case("one", first), case("two", second)], errors: Vec::new() }
    }

    #[test]
    fn throughput_is_measured_by_the_best_elevator_that_isolates() {
        let cases = cases();
        assert_eq!(cases.cases[0].best_throughput().map(|entry| entry.elevator.as_str()), Some("fair"));
        assert_eq!(cases.cases[0].value("slow", Measure::Throughput), Some(0.98));
        assert_eq!(cases.cases[1].value("fair", Measure::Throughput), Some(0.5));
        assert_eq!(cases.cases[0].value("greedy", Measure::Latency), Some(5.0));
    }

    #[test]
    fn standings_count_cells_within_the_bounds_and_order_elevators() {
        let standings = Standings::of(&cases());
        let names: Vec<&str> = standings.standings.iter().map(|standing| standing.elevator.as_str()).collect();
        assert_eq!(names, ["fair", "greedy", "slow"]);
        let fair = &standings.standings[0];
        assert_eq!(fair.within, [(1, 2), (1, 2), (2, 2)]);
        assert_eq!((fair.cases, fair.missed), (2, 2.0));
        // More than the share does not make up for less elsewhere.
        assert_eq!(fair.means[2], Some(1.0));
    }

    #[test]
    fn lost_cases_are_listed_with_the_elevator_that_won() {
        let lost = cases().lost("slow");
        let rows: Vec<(&str, Measure, f64, Option<&str>)> =
            lost.iter().map(|lost| (lost.drive, lost.measure, lost.value, lost.best.as_deref())).collect();
        assert_eq!(
            rows,
            [("two", Measure::Throughput, 0.25, Some("greedy")), ("two", Measure::Latency, 2.0, Some("greedy"))]
        );
    }
}
