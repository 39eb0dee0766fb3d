//! Drivers that choose their next request while the device is full.

use super::RequestQueue;
use crate::collections::NIL;
use crate::elevator::tables::HostTypes;

impl<H: HostTypes> RequestQueue<H> {
    /// Chooses the next request for a driver whose device is full, as drivers under a single-queue
    /// block layer do: the elevator dispatches it, and [`next`](Self::next) returns it later.
    /// Returns true if there is one.
    pub fn choose_next(&mut self, now_ns: u64) -> bool {
        self.begin(now_ns);
        let chosen = self.next_slot() != NIL;
        self.end_run();
        chosen
    }
}
