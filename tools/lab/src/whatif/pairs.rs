//! Pairs of measured and predicted runs.

use anyhow::{Context, Result};
use serde_json::Value;

/// The value of [`Case::drive`] for predictions with the drive's own profile.
pub const GIVEN: &str = "told";

/// The largest difference from the best figure, as a part of it, of an elevator that counts as as
/// good.
const AS_GOOD: f64 = 0.02;

/// One recording and the predictions from it.
pub struct Case {
    pub workload: String,
    pub seed: u64,
    pub recorded: String,
    /// [`GIVEN`] or `fitted`: the origin of the profile of the drive.
    pub drive: String,
    pub clients: Vec<String>,
    /// The error of the model on the recorded elevator.
    pub miss: Option<f64>,
    /// The reason for a refused prediction.
    pub refused: Option<String>,
    pub pairs: Vec<Pair>,
}

/// The measured and predicted figures of one elevator.
pub struct Pair {
    pub elevator: String,
    pub processes: Vec<Process>,
}

/// The measured and predicted figures of one process.
pub struct Process {
    pub name: String,
    pub measured: Got,
    pub predicted: Got,
}

#[derive(Clone, Copy)]
pub struct Got {
    pub bytes_per_s: f64,
    pub p99_ns: f64,
}

/// A question of which elevator is best.
#[derive(Clone, Copy, PartialEq)]
pub enum Question {
    /// The maximum number of bytes a second, of all processes together.
    Throughput,
    /// The smallest 99th percentile of latency of the process that has the largest.
    Latency,
}

/// All pairs of several cases.
pub struct Summary {
    pub pairs: usize,
    pub refused: usize,
    pub cases: usize,
    pub throughput: Vec<f64>,
    pub p99: Vec<f64>,
    /// The numbers of questions, of named elevators that are as good as the best, and of those that
    /// are the best.
    pub questions: usize,
    pub as_good: usize,
    pub exact: usize,
}

impl Case {
    pub fn read(value: &Value) -> Result<Case> {
        let head = &value["case"];
        let text = |key: &str| head[key].as_str().map(str::to_owned).with_context(|| format!("`{key}` of a case"));
        let pairs = value["pairs"].as_array().map_or(&[][..], Vec::as_slice);
        Ok(Case {
            workload: text("workload")?,
            seed: head["seed"].as_u64().context("`seed` of a case")?,
            recorded: text("recorded")?,
            drive: text("drive")?,
            clients: head["clients"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect(),
            miss: value["miss"].as_f64(),
            refused: value["refused"].as_str().map(str::to_owned),
            pairs: pairs.iter().map(Pair::read).collect::<Result<_>>()?,
        })
    }

    /// The elevator with the best prediction, the one with the best measurement, and the measured
    /// figure of the first as a part of that of the second: at most 1.
    pub fn best(&self, question: Question) -> Option<(&str, &str, f64)> {
        let figure = |got: fn(&Process) -> Got| move |pair: &Pair| pair.figure(question, got);
        let (predicted, measured) = (figure(|process| process.predicted), figure(|process| process.measured));
        let best = |figure: &dyn Fn(&Pair) -> f64| self.pairs.iter().max_by(|a, b| figure(a).total_cmp(&figure(b)));
        let (named, truly) = (best(&predicted)?, best(&measured)?);
        let part = match question {
            Question::Throughput => measured(named) / measured(truly),
            // The figures are negative.
            Question::Latency => measured(truly) / measured(named),
        };
        Some((&named.elevator, &truly.elevator, part))
    }
}

impl Pair {
    fn read(value: &Value) -> Result<Pair> {
        let got = |value: &Value| -> Result<Got> {
            let number = |key: &str| value[key].as_f64().with_context(|| format!("`{key}` of a process"));
            Ok(Got { bytes_per_s: number("bytes_per_s")?, p99_ns: number("latency_p99_ns")? })
        };
        let process = |value: &Value| -> Result<Process> {
            let name = value["name"].as_str().context("the name of a process")?.to_owned();
            Ok(Process { name, measured: got(&value["measured"])?, predicted: got(&value["predicted"])? })
        };
        let processes = value["processes"].as_array().context("the processes of a pair")?;
        Ok(Pair {
            elevator: value["elevator"].as_str().context("the elevator of a pair")?.to_owned(),
            processes: processes.iter().map(process).collect::<Result<_>>()?,
        })
    }

    /// The figure of a question: greater is better.
    fn figure(&self, question: Question, got: fn(&Process) -> Got) -> f64 {
        let of = self.processes.iter().map(got);
        match question {
            Question::Throughput => of.map(|got| got.bytes_per_s).sum(),
            // A process without service waited longer than the run.
            Question::Latency => {
                -of.map(|got| if got.bytes_per_s > 0.0 { got.p99_ns } else { 1e15 }).fold(1.0, f64::max)
            }
        }
    }

    /// All bytes a second, measured and predicted.
    pub fn totals(&self) -> (f64, f64) {
        let sum = |got: fn(&Process) -> Got| self.figure(Question::Throughput, got);
        (sum(|process| process.measured), sum(|process| process.predicted))
    }

    /// The error of the throughput of each process, as a part of the measurement.
    pub fn throughput_errors(&self) -> impl Iterator<Item = f64> + '_ {
        self.processes.iter().map(|process| error(process.predicted.bytes_per_s, process.measured.bytes_per_s))
    }

    /// The error of the 99th percentile of latency of each process that was served in both runs.
    pub fn p99_errors(&self) -> impl Iterator<Item = f64> + '_ {
        let served = self
            .processes
            .iter()
            .filter(|process| process.measured.bytes_per_s > 0.0 && process.predicted.bytes_per_s > 0.0);
        served.map(|process| error(process.predicted.p99_ns, process.measured.p99_ns))
    }
}

impl Summary {
    pub fn of(cases: &[Case]) -> Summary {
        let pairs = || cases.iter().flat_map(|case| &case.pairs);
        let questions = [Question::Throughput, Question::Latency];
        let best: Vec<_> =
            cases.iter().flat_map(|case| questions.into_iter().filter_map(|question| case.best(question))).collect();
        Summary {
            pairs: pairs().count(),
            refused: cases.iter().filter(|case| case.refused.is_some()).count(),
            cases: cases.len(),
            throughput: pairs().flat_map(Pair::throughput_errors).collect(),
            p99: pairs().flat_map(Pair::p99_errors).collect(),
            questions: best.len(),
            as_good: best.iter().filter(|(_, _, part)| *part >= 1.0 - AS_GOOD).count(),
            exact: best.iter().filter(|(named, truly, _)| named == truly).count(),
        }
    }
}

/// The value that the given share of the figures does not exceed; infinite without figures.
pub fn percentile(figures: &[f64], share: f64) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let place = ((sorted.len().saturating_sub(1)) as f64 * share).round() as usize;
    sorted.get(place).copied().unwrap_or(f64::INFINITY)
}

fn error(predicted: f64, measured: f64) -> f64 {
    match (predicted > 0.0, measured > 0.0) {
        (_, true) => (predicted / measured - 1.0).abs(),
        (true, false) => f64::INFINITY,
        (false, false) => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(elevator: &str, measured: f64, predicted: f64) -> Pair {
        let got = |bytes_per_s| Got { bytes_per_s, p99_ns: 1e9 / bytes_per_s };
        let process = Process { name: "a".into(), measured: got(measured), predicted: got(predicted) };
        Pair { elevator: elevator.into(), processes: vec![process] }
    }

    fn case(pairs: Vec<Pair>) -> Case {
        let clients = Vec::new();
        Case {
            workload: "w".into(),
            seed: 1,
            recorded: "noop".into(),
            drive: GIVEN.into(),
            clients,
            miss: None,
            refused: None,
            pairs,
        }
    }

    #[test]
    fn the_best_is_named_right_if_it_is_as_good_as_the_best() {
        let near = case(vec![pair("a", 100.0, 90.0), pair("b", 99.0, 91.0), pair("c", 50.0, 50.0)]);
        assert_eq!(near.best(Question::Throughput), Some(("b", "a", 0.99)));
        let (named, truly, part) = near.best(Question::Latency).unwrap();
        assert_eq!((named, truly), ("b", "a"));
        assert!((part - 0.99).abs() < 1e-9);
        let summary = Summary::of(&[near, case(vec![pair("a", 100.0, 50.0), pair("b", 80.0, 60.0)])]);
        assert_eq!((summary.questions, summary.as_good, summary.exact, summary.pairs), (4, 2, 0, 5));
    }

    #[test]
    fn a_process_that_should_have_been_served_and_was_not_is_an_endless_error() {
        assert_eq!(pair("a", 0.0, 5.0).throughput_errors().next(), Some(f64::INFINITY));
        assert_eq!(pair("a", 0.0, 0.0).throughput_errors().next(), Some(0.0));
        assert_eq!(pair("a", 10.0, 9.0).throughput_errors().map(|error| (error * 100.0).round()).next(), Some(10.0));
    }

    #[test]
    fn percentiles_of_nothing_are_no_success() {
        assert_eq!(percentile(&[], 0.5), f64::INFINITY);
        assert_eq!(percentile(&[3.0, 1.0, 2.0], 0.5), 2.0);
    }
}
