//! Measured and predicted.

use anyhow::{Context, Result};
use serde_json::Value;

/// The value of [`Case::drive`] where the prediction knew the profile of the drive.
pub const GIVEN: &str = "told";

/// Elevators whose figure is within this part of the best one's are as good.
const AS_GOOD: f64 = 0.02;

/// One recording and what was predicted from it.
pub struct Case {
    pub workload: String,
    pub seed: u64,
    pub recorded: String,
    /// [`GIVEN`] or `fitted`: whether the prediction knew the profile of the drive.
    pub drive: String,
    pub clients: Vec<String>,
    /// The error of the model on the recorded elevator.
    pub miss: Option<f64>,
    /// Why nothing was predicted.
    pub refused: Option<String>,
    pub pairs: Vec<Pair>,
}

/// One elevator, predicted and run.
pub struct Pair {
    pub elevator: String,
    pub processes: Vec<Process>,
}

/// What one process got.
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
    /// The most bytes a second, of all processes together.
    Throughput,
    /// The least 99th percentile of latency of the process that has the greatest.
    Latency,
}

/// All pairs of several cases.
pub struct Summary {
    pub pairs: usize,
    pub refused: usize,
    pub cases: usize,
    pub throughput: Vec<f64>,
    pub p99: Vec<f64>,
    /// Questions, answers that name the best or one as good, and answers that name the very best.
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

    /// What was named, and what was measured best, and the first one's measured figure as a part of
    /// the second one's: at most 1.
    pub fn best(&self, question: Question) -> Option<(&str, &str, f64)> {
        let figure = |got: fn(&Process) -> Got| move |pair: &Pair| pair.figure(question, got);
        let (predicted, measured) = (figure(|process| process.predicted), figure(|process| process.measured));
        let best = |figure: &dyn Fn(&Pair) -> f64| self.pairs.iter().max_by(|a, b| figure(a).total_cmp(&figure(b)));
        let (named, truly) = (best(&predicted)?, best(&measured)?);
        let part = match question {
            Question::Throughput => measured(named) / measured(truly),
            // These are negative.
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

    /// What a question asks for: the greater the better.
    fn figure(&self, question: Question, got: fn(&Process) -> Got) -> f64 {
        let of = self.processes.iter().map(got);
        match question {
            Question::Throughput => of.map(|got| got.bytes_per_s).sum(),
            // Who was not served at all waited longer than the run.
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

    /// How far off the throughput of each process is, as a part of what was measured.
    pub fn throughput_errors(&self) -> impl Iterator<Item = f64> + '_ {
        self.processes.iter().map(|process| error(process.predicted.bytes_per_s, process.measured.bytes_per_s))
    }

    /// The same of the 99th percentile of latency, of processes that were served in both.
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

/// What so large a share of the figures does not exceed; infinite if there are none.
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
