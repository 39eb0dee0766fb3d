//! Compares the decisions of a kernel's scheduler with those of hoistway's elevator.

use std::fmt;

use serde::Serialize;

use super::decision::{Decision, List};
use super::replay::{Replay, ReplayedDecision};
use super::scenario::Scenario;

/// Number of events that are printed before a difference.
const EVENTS: usize = 10;

/// The first difference between a recording and its replay. Later entries cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The list that differs.
    pub list: List,
    /// Index of the entry, counted from 0.
    pub index: usize,
    /// The recorded entry; `None` if the recorded list has ended.
    pub expected: Option<Decision>,
    /// The replayed entry; `None` if the replayed list has ended.
    pub got: Option<Decision>,
    /// Reason for an early end of the replay.
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

/// Finds the earliest difference, with the ten events before it. Returns `None` if all lists of the
/// file are identical.
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
        // The recorded decision is missing in the replay: show the events up to its time.
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

fn first_difference(expected: &[Decision], got: &[ReplayedDecision]) -> Option<usize> {
    let same = expected.iter().zip(got).take_while(|(expected, got)| **expected == got.decision).count();
    (same < expected.len().max(got.len())).then_some(same)
}
