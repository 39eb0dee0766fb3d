//! What a kernel's scheduler decided against what hoistway's did.

use std::fmt;

use serde::Serialize;

use super::decision::{Decision, List};
use super::replay::{Made, Replay};
use super::scenario::Scenario;

/// How many events before a difference are told.
const EVENTS: usize = 10;

/// The first difference between a recording and its replay. What comes after it cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Which list differs.
    pub list: List,
    /// From which entry on, counted from 0.
    pub index: usize,
    /// What the recording has there; `None`: its list has ended.
    pub expected: Option<Decision>,
    /// What the replay has there; `None`: its list has ended.
    pub got: Option<Decision>,
    /// Why the replay ended early, if it did.
    pub stopped: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]: ", self.list.name(), self.index)?;
        match self.expected {
            Some(expected) => write!(f, "expected {expected}, ")?,
            None => f.write_str("expected no more, ")?,
        }
        match self.got {
            Some(got) => write!(f, "got {got}")?,
            None => f.write_str("got no more")?,
        }
        match &self.stopped {
            Some(why) => write!(f, " (the replay ended there: {why})"),
            None => Ok(()),
        }
    }
}

/// The earliest difference, with the ten events before it; `None`: all lists that the file has are identical.
pub fn compare(scenario: &Scenario, replay: &Replay) -> Option<(Difference, Vec<String>)> {
    let mut first: Option<(u64, List, usize)> = None;
    for list in List::ALL {
        let Some(expected) = scenario.expected(list) else { continue };
        let got = replay.list(list);
        let Some(index) = first_difference(expected, got) else { continue };
        let times = [expected.get(index).copied(), got.get(index).map(|made| made.decision)];
        let at_ns = times.into_iter().flatten().map(Decision::at_ns).min().unwrap_or(u64::MAX);
        if first.is_none_or(|(first_ns, ..)| at_ns < first_ns) {
            first = Some((at_ns, list, index));
        }
    }
    let (at_ns, list, index) = first?;
    let got = replay.list(list).get(index);
    let events = match got {
        Some(made) if made.decision.at_ns() == at_ns => replay.events_before(made, EVENTS),
        // It should have happened and did not: what had, by then.
        _ => replay.events_until(at_ns, EVENTS),
    };
    let difference = Difference {
        list,
        index,
        expected: scenario.expected(list).and_then(|entries| entries.get(index)).copied(),
        got: got.map(|made| made.decision),
        stopped: replay.stopped().map(str::to_owned),
    };
    Some((difference, events))
}

fn first_difference(expected: &[Decision], got: &[Made]) -> Option<usize> {
    let same = expected.iter().zip(got).take_while(|(expected, got)| **expected == got.decision).count();
    (same < expected.len().max(got.len())).then_some(same)
}
