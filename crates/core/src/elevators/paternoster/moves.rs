//! What it costs to move to a stream, and so how long its turn is.
//!
//! During a turn the requests of a stream take longer than they would without the move before them;
//! the difference, over the whole turn, is the cost of the move. It is more than what the first
//! request takes: each disk of an array moves when it is reached first.
//!
//! Where requests of all streams are mixed, a request that continues costs as much as any other,
//! and costs do not show that turns would be faster. Now and then a stream is given a turn on
//! trial.

use super::cost::CostModel;
use crate::collections::{NIL, Slot, mean_with};

/// The least cost of a move for which the order by place matters, in ns: no arm moves faster.
const MOVE_MIN_NS: u64 = 400_000;
/// While turns are worth it by what they show, the cost between single requests can be this part.
const PART_BETWEEN: u64 = 8;
/// The length of a turn in requests, while the cost of a move is not known, and on trial.
const REQUESTS_TO_LEARN: u64 = 32;
/// The cost of requests after which a turn is tried again, in ns.
const TRIAL_AFTER_NS: u64 = 500_000_000;
/// A trial succeeds if its requests took less than this part of what they take otherwise, in
/// percent.
const TRIAL_PERCENT: u64 = 85;

/// The decision on the present turn, made at each dispatch.
pub(super) enum Turn {
    /// The stream's next request is served.
    GoesOn,
    /// The device is kept idle for it, or it waits for the device.
    Waits,
    /// The turn is over.
    Ends,
}

/// What is known of moves.
#[derive(Debug)]
pub(super) struct Moves {
    /// The cost of a move, in ns.
    move_ns: u64,
    /// The length of a turn, in ns.
    turn_ns: u64,
    /// The mean cost of moves as turns show it, in ns; 0 if unknown.
    shown_ns: u64,
    /// The party whose turn was last; the time that its requests took since that turn began, and
    /// what they take in an undisturbed stream, in ns.
    owner: Slot,
    time_ns: u64,
    stream_ns: u64,
    /// Whether the last turn is on trial, and the cost of its requests by the costs before it.
    is_trial: bool,
    expected_ns: u64,
    /// The cost of the requests served since the last trial, in ns.
    served_ns: u64,
}

impl Default for Moves {
    fn default() -> Self {
        Moves {
            move_ns: MOVE_MIN_NS,
            turn_ns: 0,
            shown_ns: 0,
            owner: NIL,
            time_ns: 0,
            stream_ns: 0,
            is_trial: false,
            expected_ns: 0,
            served_ns: 0,
        }
    }
}

impl Moves {
    /// The cost of a move, in ns.
    pub fn move_ns(&self) -> u64 {
        self.move_ns
    }

    /// The length of a turn, in ns.
    pub fn turn_ns(&self) -> u64 {
        self.turn_ns
    }

    /// Returns true if the order of requests on the medium matters.
    pub fn matter(&self) -> bool {
        self.move_ns >= MOVE_MIN_NS
    }

    /// Computes the cost of a move and the length of a turn from the costs of requests. A turn is
    /// at most `most_ns` long and `times` as long as a move.
    pub fn update(&mut self, costs: &CostModel, times: u64, most_ns: u64) {
        let between = costs.move_ns();
        let between_ns = between.unwrap_or(MOVE_MIN_NS);
        let is_shown = self.shown_ns >= MOVE_MIN_NS && between_ns >= MOVE_MIN_NS / PART_BETWEEN;
        self.move_ns = if is_shown { between_ns.max(self.shown_ns) } else { between_ns };
        let turn_ns = match between {
            Some(_) => self.move_ns.saturating_mul(times),
            None => costs.far_ns().max(MOVE_MIN_NS).saturating_mul(REQUESTS_TO_LEARN),
        };
        self.turn_ns = turn_ns.min(most_ns);
    }

    /// A request of this cost is served.
    pub fn serve(&mut self, cost_ns: u64) {
        self.served_ns = self.served_ns.saturating_add(cost_ns);
    }

    /// Returns true if a turn is to be tried.
    pub fn is_trial_due(&self) -> bool {
        !self.matter() && self.served_ns >= TRIAL_AFTER_NS
    }

    /// Returns true if the last turn is on trial.
    pub fn is_on_trial(&self) -> bool {
        self.is_trial
    }

    /// The length of a turn on trial, for requests of this cost, in ns.
    pub fn trial_ns(&self, cost_ns: u64) -> u64 {
        cost_ns.saturating_mul(REQUESTS_TO_LEARN)
    }

    /// A turn of a party begins. Learns the cost of a move from the turn before, unless that one
    /// was on trial.
    pub fn begin(&mut self, owner: Slot, is_trial: bool) {
        if self.time_ns > 0 {
            let sample = self.time_ns.saturating_sub(self.stream_ns);
            self.shown_ns = mean_with(self.shown_ns, sample, 8);
        }
        (self.owner, self.time_ns, self.stream_ns, self.expected_ns) = (owner, 0, 0, 0);
        self.is_trial = is_trial;
        if is_trial {
            self.served_ns = 0;
        }
    }

    /// Returns true if the last turn was that of this party.
    pub fn is_of(&self, party: Slot) -> bool {
        party == self.owner
    }

    /// A request of the party whose turn was last has taken this time; in an undisturbed stream it
    /// takes `stream_ns`, and it was expected to take `expected_ns`.
    pub fn complete(&mut self, time_ns: u64, stream_ns: u64, expected_ns: u64) {
        self.time_ns = self.time_ns.saturating_add(time_ns);
        self.stream_ns = self.stream_ns.saturating_add(stream_ns);
        self.expected_ns = self.expected_ns.saturating_add(expected_ns);
    }

    /// Ends a trial without a result: its requests were drained in another order.
    pub fn cancel_trial(&mut self) {
        if core::mem::take(&mut self.is_trial) {
            self.time_ns = 0;
        }
    }

    /// Ends a turn on trial. Returns true if turns are faster.
    pub fn end_trial(&mut self) -> bool {
        self.is_trial = false;
        let time_ns = core::mem::take(&mut self.time_ns);
        time_ns > 0 && time_ns.saturating_mul(100) < self.expected_ns.saturating_mul(TRIAL_PERCENT)
    }
}
