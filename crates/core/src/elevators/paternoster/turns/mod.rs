//! Turns: periods in which one stream alone is served.
//!
//! A turn is long compared with the cost of the seek to its stream ([`seeks`]). It is shorter
//! beside contexts that are no streams, with many contexts, and while a light context is eligible.
//! During a turn the device may be kept idle for the next request of the stream, if that is
//! expected to cost less than a seek away and back.

mod seeks;

use crate::clock::Timer;
use crate::collections::{NIL, Slot};
use crate::elevator::ActiveSlice;
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::HostTypes;
use crate::event::Note;

use super::Paternoster;
use super::context::Stage;
use super::selection::Kind;
pub use seeks::Seeks;

/// The round of turns that is aimed at, in ns: with many contexts, turns are shorter.
const ROUND_NS: u64 = 1_000_000_000;
/// Beside scattered contexts, a turn is this part of the usual one.
const TURN_PART_BESIDE_SCATTERED: u64 = 2;
/// The shortest turn with many contexts, as a part of the one with few.
const TURN_PART_MIN: u64 = 2;
/// A light context preempts a turn of which this part has been used.
const TURN_PART_FOR_LIGHT: u64 = 8;

/// The decision on the current turn, made at each dispatch.
pub enum Turn {
    /// The stream's next request is served.
    GoesOn,
    /// The device is kept idle for it, or it waits for the device.
    Waits,
    /// The turn is over.
    Ends,
}

impl<H: HostTypes> Paternoster<H> {
    /// Computes the cost of a seek and the length of a turn.
    pub(super) fn update_turn(&mut self) {
        let max_ns = self.tunables.turn_max_us.saturating_mul(1000);
        self.seeks.update(&self.costs, self.tunables.turn_moves, max_ns);
    }

    /// The turn of a context, in ns: shorter with many contexts.
    pub(super) fn turn_of(&self, core: &QueueCore<H>, context: Slot) -> u64 {
        let usual_ns = self.seeks.turn_ns;
        let max_ns = if self.scattered > 0 { usual_ns / TURN_PART_BESIDE_SCATTERED } else { usual_ns };
        let round = self.normalised(core, context, max_ns);
        let shorter = max_ns.saturating_mul(ROUND_NS / 1_000_000) / (round / 1_000_000).max(1);
        shorter.max(max_ns / TURN_PART_MIN).min(max_ns)
    }

    /// Begins the turn of a stream.
    pub(super) fn begin_turn(&mut self, core: &mut QueueCore<H>, context: Slot, is_trial: bool) {
        let turn_ns =
            if is_trial { Seeks::trial_ns(self.contexts[context].cost_ns) } else { self.turn_of(core, context) };
        let turn = self.normalised(core, context, turn_ns);
        let entry = &mut self.contexts[context];
        entry.stage = Stage::InTurn;
        entry.turn_start = entry.position;
        entry.position_limit = entry.position.saturating_add(turn);
        self.in_turn = context;
        self.seeks.begin_turn(context, is_trial);
        self.update_turn();
        core.note(|core| Note::Activate {
            queue: core.tables.contexts[context].pid,
            level: core.tables.contexts[context].effective_priority().level(),
        });
    }

    pub(super) fn end_turn(&mut self, core: &mut QueueCore<H>) {
        let context = core::mem::replace(&mut self.in_turn, NIL);
        core.timers.cancel(Timer::Idle);
        if self.seeks.is_trial && self.seeks.end_trial() {
            // Costs are different with turns: they are learned again.
            self.costs.forget();
            self.update_turn();
        }
        self.contexts[context].stage = Stage::Empty;
        if self.contexts[context].queued > 0 {
            self.enqueue(core, context);
        }
    }

    /// The position at which the current turn ends, at the latest.
    fn turn_end(&self, core: &QueueCore<H>) -> u64 {
        let entry = &self.contexts[self.in_turn];
        if self.seeks.is_trial {
            return entry.position_limit;
        }
        // The usual turn as learned since.
        let usual = self.normalised(core, self.in_turn, self.seeks.turn_ns);
        entry.position_limit.min(entry.turn_start.saturating_add(usual))
    }

    /// Decides on the current turn, while requests are queued.
    pub(super) fn check_turn(&mut self, core: &mut QueueCore<H>) -> Turn {
        let entry = &self.contexts[self.in_turn];
        if entry.position >= self.turn_end(core)
            || self.is_preempted(core)
            || !(self.seeks.are_costly() || self.seeks.is_trial)
        {
            return Turn::Ends;
        }
        if entry.queued > 0 {
            return Turn::GoesOn;
        }
        if !self.tunables.waits || !entry.is_stream() {
            return Turn::Ends;
        }
        if entry.in_flight > 0 && self.costs.in_flight > 0 {
            return Turn::Waits;
        }
        let Some(until_ns) = self.idle_until(core) else { return Turn::Ends };
        if core.timers.armed_for(Timer::Idle).is_none() {
            core.arm_at_ktime(Timer::Idle, until_ns);
            core.note(|core| Note::IdleArmed {
                queue: core.tables.contexts[self.in_turn].pid,
                until_ns: core.clock.host_ns(until_ns),
            });
        }
        Turn::Waits
    }

    /// Returns true if the turn ends early because a light context is eligible.
    fn is_preempted(&self, core: &QueueCore<H>) -> bool {
        if !self.order.has(Kind::Light) {
            return false;
        }
        let entry = &self.contexts[self.in_turn];
        let shorter = self.normalised(core, self.in_turn, self.seeks.turn_ns / TURN_PART_FOR_LIGHT);
        entry.position >= entry.turn_start.saturating_add(shorter)
    }

    /// The time until which the device is kept idle for the stream, if that is worth it.
    fn idle_until(&self, core: &QueueCore<H>) -> Option<u64> {
        let entry = &self.contexts[self.in_turn];
        // To wait costs the think time if the stream returns, and the whole wait if not. It saves a
        // seek.
        let (seek_ns, chance) = (self.seeks.seek_ns, entry.return_chance());
        let wait_ns = entry.think_ns.saturating_mul(2).max(seek_ns / 8).min(seek_ns.max(1));
        let gain = seek_ns.saturating_mul(chance);
        let lost = wait_ns.saturating_mul(256u64.saturating_sub(chance));
        let loss = entry.think_ns.saturating_mul(chance).saturating_add(lost);
        let until_ns = entry.completed_ns.saturating_add(wait_ns);
        (gain > loss && core.ktime_ns() < until_ns).then_some(until_ns)
    }

    /// The current turn as hosts see it, with an estimate of its end.
    pub(super) fn active_slice(&self, core: &QueueCore<H>) -> Option<ActiveSlice> {
        if self.in_turn == NIL {
            return None;
        }
        // The position moves by this amount for a millisecond of device time.
        let amount = self.normalised(core, self.in_turn, 1_000_000).max(1);
        let left = self.turn_end(core).saturating_sub(self.contexts[self.in_turn].position);
        let left_ns = left.saturating_mul(1_000_000).checked_div(amount);
        let until_ns = left_ns.map(|left_ns| core.clock.now_ns().saturating_add(left_ns));
        Some(ActiveSlice { queue: core.tables.contexts[self.in_turn].pid, until_ns })
    }
}
