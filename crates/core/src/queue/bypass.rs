//! Requests that pass the elevator on their way to the driver.

use super::RequestQueue;
use crate::elevator::Elevator;
use crate::elevator::tables::HostTypes;
use crate::request::{RequestId, State};

impl<H: HostTypes> RequestQueue<H> {
    /// Moves a queued request past the elevator to the dispatch list, whose requests the driver
    /// takes before those of the elevator: to its head, or to its end. Later bios are not merged
    /// into it.
    ///
    /// A multi-queue block layer without an elevator does this with requests that it issues as they
    /// are submitted. Returns false and changes nothing for a request that is not in the elevator,
    /// under elevators other than `noop`, and while a barrier is executed.
    pub fn bypass(&mut self, id: RequestId, first: bool, now_ns: u64) -> bool {
        self.begin(now_ns);
        let is_queued = self.request(id).is_some_and(|request| request.state == State::Sorted);
        if !is_queued || self.is_sequence_under_way() || !self.elevator.withdraw(&mut self.core, id.slot) {
            return false;
        }
        self.core.dispatch_unsorted(id.slot, first);
        true
    }
}
