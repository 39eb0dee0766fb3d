//! Switching the elevator while the queue works: drain the old one, let its last request complete, attach the new one.

use super::{Kick, RequestQueue};
use crate::clock::Timer;
use crate::context::History;
use crate::elevator::Elevator;
use crate::elevator::tables::HostTypes;
use crate::event::{Event, Note};
use crate::registry::AnyElevator;
use crate::storage::ElevatorStorage;

/// A switch under way, and the storage of the elevator that it retired.
pub(super) struct Switching<H: HostTypes> {
    next: Option<ElevatorStorage<H>>,
    retired: [Option<ElevatorStorage<H>>; 2],
    /// Requests that the present elevator knows.
    pub private: u32,
}

impl<H: HostTypes> Switching<H> {
    /// No switch.
    pub fn new() -> Self {
        Switching { next: None, retired: [None, None], private: 0 }
    }

    /// While it is, new requests bypass the elevator.
    pub fn is_under_way(&self) -> bool {
        self.next.is_some()
    }

    /// Keeps storage for the host to take; of a third the last one kept is dropped.
    fn retire(&mut self, storage: ElevatorStorage<H>) {
        let [first, second] = &mut self.retired;
        let place = if first.is_none() { first } else { second };
        *place = Some(storage);
    }
}

impl<H: HostTypes> RequestQueue<H> {
    /// Begins to switch to an elevator of the kind that the storage is for, or does nothing if it is the present one. The same elevator
    /// with the layer of reserved bandwidth over it is another one; what was reserved ends with a switch.
    ///
    /// All that the old elevator holds goes to the dispatch list at once; requests that arrive before its last one has completed
    /// queue up behind in order of arrival. Then the new one is attached, with its default tunables; see
    /// [`is_switching`](Self::is_switching). A second switch before that replaces the first one's target. What is not needed of
    /// the storage, now or then, is returned by [`take_retired_storage`](Self::take_retired_storage): all of it, if it holds less than the
    /// queue's own, for then nothing is switched.
    pub fn switch(&mut self, storage: ElevatorStorage<H>, now_ns: u64) -> Kick {
        self.begin(now_ns);
        let too_small = storage.capacity.common(self.capacity) != self.capacity;
        if too_small || (self.is_present(&storage) && !self.switching.is_under_way()) {
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

    /// Whether a switch waits for the old elevator's last request.
    pub fn is_switching(&self) -> bool {
        self.switching.is_under_way()
    }

    /// Storage that a switch left over: its target's, if that was replaced or there already, or the old elevator's. Two are kept for the
    /// host to take.
    pub fn take_retired_storage(&mut self) -> Option<ElevatorStorage<H>> {
        let [first, second] = &mut self.switching.retired;
        first.take().or_else(|| second.take())
    }

    /// Moves everything that the elevator holds to the dispatch list.
    pub(super) fn drain_elevator(&mut self) {
        while self.elevator.dispatch(&mut self.core, true) > 0 {}
        debug_assert!(self.elevator.is_empty(), "a forced dispatch empties the elevator");
    }

    /// Attaches the new elevator once the old one knows of no request any more.
    pub(super) fn switch_if_drained(&mut self) {
        if self.switching.private > 0 {
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
        let new = AnyElevator::new(&mut self.core, storage.tables);
        let old = core::mem::replace(&mut self.elevator, new);
        self.switching.retire(ElevatorStorage { tables: old.into_tables(), capacity: self.capacity });
        let kind = self.kind();
        self.fit_to(kind);
        self.core.last_merge = crate::collections::NIL;
        self.core.tell(|_| Event::Note(Note::Switched { elevator: kind.index() }));
    }
}
