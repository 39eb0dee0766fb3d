//! The anticipatory elevator's estimates of processes, and the conditions that end a wait.

use super::{Anticipatory, Status};
use crate::collections::{Mean, NIL, Slot};
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::HostTypes;

/// Mark of a context: it has sent a sync request.
const STARTED: u8 = 1;
/// Mark of a context: a sync request of it has completed.
pub(super) const COMPLETED: u8 = 2;

/// The maximum of think times that count: a fiftieth of a second less one tick.
const THINK_MAX_MS: u64 = 20;
/// The distance within which a request is close at the start of a wait, in sectors.
const CLOSE_SECTORS: u64 = 8192;
/// The longest wait, in ms, for which that distance doubles every millisecond.
const CLOSE_DELAY_MAX_MS: u64 = 20;

/// Estimates over all processes, for those with too few samples. 256 is certainty.
#[derive(Debug, Default)]
pub(super) struct Estimate {
    /// The probability that a process exits after its read.
    exit: u32,
    /// The probability that no other process continues nearby after an exit.
    exit_alone: u32,
    new_think: Mean,
    new_seek: Mean,
}

impl Estimate {
    /// Updates the history of a context with a sync request.
    pub fn update<H: HostTypes>(&mut self, core: &mut QueueCore<H>, context: Slot, request: Slot) {
        let think_max = core.clock.ticks_of_ms(THINK_MAX_MS).saturating_sub(1);
        let now = core.ticks();
        let (sector, end) = (core.tables.requests[request].sector, core.tables.requests[request].end());
        let history = &mut core.tables.contexts[context].history;
        if history.marks & (STARTED | COMPLETED) != 0 {
            let free = history.marks & COMPLETED != 0 && history.queued == 0 && history.dispatched == 0;
            let think = if free { now.saturating_sub(history.last_end).min(think_max) } else { 0 };
            if history.think.samples == 0 {
                self.new_think.add_unweighted(think);
                self.exit = self.exit.saturating_mul(7) / 8;
            }
            history.think.add_think(think);
            let distance = sector.abs_diff(history.last_position);
            if history.seek.samples == 0 {
                self.new_seek.add_unweighted(distance);
            }
            history.seek.add_seek_clipped(distance);
        }
        history.last_position = end;
        history.marks |= STARTED;
    }

    pub fn exit_more_likely(&mut self) {
        self.exit = self.exit.saturating_mul(7).saturating_add(256) / 8;
    }

    pub fn no_cooperation(&mut self) {
        self.exit_alone = self.exit_alone.saturating_mul(7).saturating_add(256) / 8;
    }

    fn cooperation(&mut self) {
        self.exit_alone = self.exit_alone.saturating_mul(7) / 8;
    }
}

impl Anticipatory {
    /// Returns true if the wait should end, given that `request` (or none) could be dispatched
    /// instead.
    pub(super) fn breaks<H: HostTypes>(&mut self, core: &mut QueueCore<H>, request: Slot) -> bool {
        let context = &core.tables.contexts[self.awaited];
        let history = context.history;
        let (exited, unknown) = (!context.is_running(), history.think.samples == 0);
        if request != NIL && core.tables.requests[request].context == self.awaited {
            return true;
        }
        let waited = core.ticks().saturating_sub(self.antic_start);
        if self.awaited_finished && waited >= self.tunables.antic_expire {
            return true;
        }
        if history.queued > 0 || history.dispatched > 0 {
            return true;
        }
        if request != NIL && core.tables.requests[request].is_sync() && self.is_close(core, request) {
            if exited {
                if unknown {
                    self.estimate.exit_more_likely();
                }
                self.estimate.cooperation();
            }
            self.estimate.update(core, self.awaited, request);
            return true;
        }
        if exited {
            if unknown {
                self.estimate.exit_more_likely();
            }
            if self.estimate.exit_alone > 128 {
                return true;
            }
        }
        if unknown {
            let likely = self.estimate.exit.saturating_mul(self.estimate.exit_alone);
            return self.estimate.new_think.mean > self.tunables.antic_expire || likely > 128 * 256;
        }
        history.think.mean > self.tunables.antic_expire
    }

    /// Returns true if a request is so close that the awaited process's next one would hardly be
    /// closer. The limit grows with the time waited.
    fn is_close<H: HostTypes>(&self, core: &QueueCore<H>, request: Slot) -> bool {
        let last = self.last_sector[self.side & 1];
        let next = core.tables.requests[request].sector;
        let delay = if self.status == Status::Off || !self.awaited_finished {
            0
        } else {
            core.clock.ms_of_ticks(core.ticks().saturating_sub(self.antic_start))
        };
        let delta = if delay == 0 {
            CLOSE_SECTORS
        } else if delay <= CLOSE_DELAY_MAX_MS && delay <= self.tunables.antic_expire {
            CLOSE_SECTORS.checked_shl(delay as u32).unwrap_or(u64::MAX)
        } else {
            return true;
        };
        if last <= next.saturating_add(delta / 2) && next <= last.saturating_add(delta) {
            return true;
        }
        let history = &core.tables.contexts[self.awaited].history;
        let expected = if history.seek.samples == 0 { self.estimate.new_seek.mean } else { history.seek.mean };
        expected > next.abs_diff(last)
    }
}
