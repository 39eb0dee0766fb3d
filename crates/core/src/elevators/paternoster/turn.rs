//! The turn of the active stream, as hosts see it.

use super::Paternoster;
use crate::collections::NIL;
use crate::elevator::ActiveSlice;
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::HostTypes;

impl<H: HostTypes> Paternoster<H> {
    /// The turn of the active stream, with an estimate of its end.
    pub(super) fn active_slice(&self, core: &QueueCore<H>) -> Option<ActiveSlice> {
        let party = self.active;
        if party == NIL {
            return None;
        }
        // The party's position moves by this distance for a millisecond of device time.
        let distance = self.distance(core, party, 1_000_000).max(1);
        let entry = &self.parties[party];
        let turn = entry.began.saturating_add(self.distance(core, party, self.moves.turn_ns()));
        let until = if self.moves.is_on_trial() { entry.until } else { entry.until.min(turn) };
        let left = until.saturating_sub(entry.position);
        let left_ns = left.saturating_mul(1_000_000).checked_div(distance);
        let until_ns = left_ns.map(|left_ns| core.clock.now_ns().saturating_add(left_ns));
        Some(ActiveSlice { queue: core.tables.contexts[party].pid, until_ns })
    }
}
