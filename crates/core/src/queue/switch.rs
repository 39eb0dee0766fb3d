//! Switching the elevator at run time: drain the old one, wait for its last request, attach the new
//! one.

use super::{Kick, RequestQueue};
use crate::clock::Timer;
use crate::collections::Count;
use crate::context::History;
use crate::elevator::Elevator;
use crate::elevator::tables::HostTypes;
use crate::event::{Event, Note};
use crate::registry::AnyElevator;
use crate::storage::ElevatorStorage;

/// A switch in progress, and the storage of replaced elevators.
pub(super) struct Switching<H: HostTypes> {
    next: Option<ElevatorStorage<H>>,
    retired: [Option<ElevatorStorage<H>>; 2],
    /// Requests that the current elevator has seen.
    pub private: u32,
}

impl<H: HostTypes> Switching<H> {
    /// Creates the state without a switch in progress.
    pub fn new() -> Self {
        Switching { next: None, retired: [None, None], private: 0 }
    }

    /// Returns true during a switch. New requests then bypass the elevator.
    pub fn is_under_way(&self) -> bool {
        self.next.is_some()
    }

    /// Keeps storage for the host to collect. Two are kept; a third replaces the second.
    fn retire(&mut self, storage: ElevatorStorage<H>) {
        let [first, second] = &mut self.retired;
        let place = if first.is_none() { first } else { second };
        *place = Some(storage);
    }
}

impl<H: HostTypes> RequestQueue<H> {
    /// Begins to switch to an elevator of the kind for which the storage is. Has no effect if it is
    /// the current one. An elevator with the reservation layer differs from the same elevator
    /// without it; reservations end with a switch.
    ///
    /// All requests of the old elevator move to the dispatch list at once. Requests that arrive
    /// before the last of them has completed queue behind, in order of arrival. Then the new
    /// elevator is attached with default tunables; see [`is_switching`](Self::is_switching). A
    /// second switch in the meantime replaces the target of the first.
    /// [`take_retired_storage`](Self::take_retired_storage) returns unused storage. Storage with
    /// less capacity than the queue's, or on a host without switches ([`HostTypes::SWITCHES`]), is
    /// returned unused and no switch takes place.
    pub fn switch(&mut self, storage: ElevatorStorage<H>, now_ns: u64) -> Kick {
        self.begin(now_ns);
        let too_small = storage.capacity.common(self.capacity) != self.capacity;
        if !H::SWITCHES || too_small || (self.is_present(&storage) && !self.switching.is_under_way()) {
            self.switching.retire(storage);
            return self.end();
        }
        if let Some(unused) = self.switching.next.replace(storage) {
            self.switching.retire(unused);
        }
        self.drain_elevator();
        self.switch_if_drained();
        if !self.is_empty() {
            self.remove_plug();
            self.core.run_now();
        }
        self.end()
    }

    fn is_present(&self, storage: &ElevatorStorage<H>) -> bool {
        storage.kind() == self.kind() && storage.is_layered() == self.elevator.is_layered()
    }

    /// Returns true while a switch waits for the old elevator's last request.
    pub fn is_switching(&self) -> bool {
        self.switching.is_under_way()
    }

    /// Takes storage left over by a switch: that of the old elevator, or of a target that was
    /// replaced or already current. Two are kept for the host to collect.
    pub fn take_retired_storage(&mut self) -> Option<ElevatorStorage<H>> {
        let [first, second] = &mut self.switching.retired;
        first.take().or_else(|| second.take())
    }

    /// Moves everything that the elevator holds to the dispatch list.
    pub(super) fn drain_elevator(&mut self) {
        while self.elevator.dispatch(&mut self.core, true) > 0 {}
        debug_assert!(self.elevator.is_empty(), "a forced dispatch empties the elevator");
    }

    /// Counts one request less that the current elevator has seen.
    #[inline]
    pub(super) fn leave_private(&mut self) {
        self.switching.private.decrement();
        if self.switching.private == 0 && self.switching.is_under_way() {
            self.switch_if_drained();
        }
    }

    /// Attaches the new elevator once all requests seen by the old one have completed.
    #[cold]
    #[inline(never)]
    pub(super) fn switch_if_drained(&mut self) {
        if !H::SWITCHES || self.switching.private > 0 {
            return;
        }
        let Some(storage) = self.switching.next.take() else { return };
        for timer in Timer::ELEVATORS {
            self.core.timers.cancel(timer);
        }
        self.elevator.retire(&mut self.core);
        for slot in 0..self.core.tables.contexts.capacity() {
            self.core.tables.contexts[slot].history = History::default();
        }
        self.core.violation = None;
        let new = AnyElevator::new(&mut self.core, storage.tables);
        let old = core::mem::replace(&mut self.elevator, new);
        self.switching.retire(ElevatorStorage { tables: old.into_tables(), capacity: self.capacity });
        let kind = self.kind();
        self.fit_to(kind);
        self.core.last_merge = crate::collections::NIL;
        self.core.emit(|_| Event::Note(Note::Switched { elevator: kind.index() }));
    }
}
