//! The cost of a seek from one stream to another, and the length of a turn that follows from it.
//!
//! There are two estimates. The cost model has what a far request costs more than one that
//! continues. During a turn the requests of a stream take longer than they would without the seek
//! before them; this difference, over the whole turn, is more than what the first request takes:
//! each disk of an array seeks when it is reached first.
//!
//! Where requests of all streams are mixed, a request that continues costs as much as any other,
//! and costs do not show that turns would be faster. Now and then a stream gets a turn on trial.

use super::super::costs::CostModel;
use crate::collections::{Slot, mean_with};

/// The least cost of a seek for which the order by sector matters, in ns: no arm moves faster.
const SEEK_MIN_NS: u64 = 400_000;
/// While turns show seeks that are costly, the cost between single requests can be this part.
const PART_BETWEEN: u64 = 8;
/// The length of a turn in requests, while the cost of a seek is not known, and on trial.
const REQUESTS_TO_LEARN: u64 = 32;
/// The cost of requests after which a turn is tried again, in ns.
const TRIAL_AFTER_NS: u64 = 500_000_000;
/// A trial succeeds if its requests took less than this part of what they take otherwise, in
/// percent.
const TRIAL_PERCENT: u64 = 85;

/// The learned cost of a seek.
#[derive(Debug, Default)]
pub struct Seeks {
    /// The cost of a seek, in ns.
    pub seek_ns: u64,
    /// The length of a turn, in ns.
    pub turn_ns: u64,
    /// The mean cost of seeks as turns show it, in ns; 0 if unknown.
    shown_ns: u64,
    /// The context whose turn was last; the time that its requests took since that turn began, and
    /// what they take in an undisturbed stream, in ns.
    pub owner: Option<Slot>,
    time_ns: u64,
    undisturbed_ns: u64,
    /// Whether the last turn is on trial, and the cost of its requests by the costs before it.
    pub is_trial: bool,
    expected_ns: u64,
    /// The cost of the requests served since the last trial, in ns.
    served_ns: u64,
}

impl Seeks {
    /// Returns true if seeks take time, so that the order by sector matters.
    pub fn are_costly(&self) -> bool {
        self.seek_ns >= SEEK_MIN_NS
    }

    /// Computes the cost of a seek and the length of a turn from the costs of requests. A turn is
    /// at most `max_ns` long and `times` as long as a seek.
    pub fn update(&mut self, costs: &CostModel, times: u64, max_ns: u64) {
        let between = costs.seek_ns;
        let between_ns = between.unwrap_or(SEEK_MIN_NS);
        let is_shown = self.shown_ns >= SEEK_MIN_NS && between_ns >= SEEK_MIN_NS / PART_BETWEEN;
        self.seek_ns = if is_shown { between_ns.max(self.shown_ns) } else { between_ns };
        let turn_ns = match between {
            Some(_) => self.seek_ns.saturating_mul(times),
            None => costs.far_ns.max(SEEK_MIN_NS).saturating_mul(REQUESTS_TO_LEARN),
        };
        self.turn_ns = turn_ns.min(max_ns);
    }

    /// A request of this cost is served.
    pub fn serve(&mut self, cost_ns: u64) {
        self.served_ns = self.served_ns.saturating_add(cost_ns);
    }

    /// Returns true if a turn is to be tried.
    pub fn is_trial_due(&self) -> bool {
        !self.are_costly() && self.served_ns >= TRIAL_AFTER_NS
    }

    /// The length of a turn on trial, for requests of this cost, in ns.
    pub fn trial_ns(cost_ns: u64) -> u64 {
        cost_ns.saturating_mul(REQUESTS_TO_LEARN)
    }

    /// A turn of a context begins. Learns the cost of a seek from the turn before, unless that one
    /// was on trial.
    pub fn begin_turn(&mut self, owner: Slot, is_trial: bool) {
        if self.time_ns > 0 {
            let sample = self.time_ns.saturating_sub(self.undisturbed_ns);
            self.shown_ns = mean_with(self.shown_ns, sample, 8);
        }
        (self.owner, self.time_ns, self.undisturbed_ns, self.expected_ns) = (Some(owner), 0, 0, 0);
        self.is_trial = is_trial;
        if is_trial {
            self.served_ns = 0;
        }
    }

    /// A request of the context whose turn was last has taken this time; in an undisturbed stream
    /// it takes `undisturbed_ns`, and it was expected to take `expected_ns`.
    pub fn complete(&mut self, time_ns: u64, undisturbed_ns: u64, expected_ns: u64) {
        self.time_ns = self.time_ns.saturating_add(time_ns);
        self.undisturbed_ns = self.undisturbed_ns.saturating_add(undisturbed_ns);
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
