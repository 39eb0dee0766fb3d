//! Switching the elevator while the queue works: drain the old one, let its last request complete, attach the new one.

use super::{Kick, RequestQueue};
use crate::context::History;
use crate::elevators::Elevator;
use crate::event::{Event, Note};
use crate::registry::{AnyElevator, Kind};
use crate::storage::{ElevatorStorage, Home};

/// A switch under way, and the storage of the elevator that it retired.
pub(super) struct Switching<H: Home> {
    next: Option<(Kind, ElevatorStorage<H>)>,
    /// What the present elevator was given and has no use for.
    unused: Option<ElevatorStorage<H>>,
    retired: [Option<ElevatorStorage<H>>; 2],
    /// Requests that the present elevator knows.
    pub private: u32,
}

impl<H: Home> Switching<H> {
    /// No switch; `unused` is what the first elevator has no use for.
    pub fn new(unused: Option<ElevatorStorage<H>>) -> Self {
        Switching { next: None, unused, retired: [None, None], private: 0 }
    }

    /// While it is, new requests bypass the elevator.
    pub fn is_under_way(&self) -> bool {
        self.next.is_some()
    }

    /// Keeps storage for the host to take; of a third the last one kept is dropped.
    fn retire(&mut self, storage: Option<ElevatorStorage<H>>) {
        let [first, second] = &mut self.retired;
        if storage.is_some() {
            let place = if first.is_none() { first } else { second };
            *place = storage;
        }
    }
}

impl<H: Home> RequestQueue<H> {
    /// Begins to switch to an elevator of this kind, or does nothing if it is the present one.
    ///
    /// All that the old elevator holds goes to the dispatch list at once; requests that arrive before its last one has completed
    /// queue up behind in order of arrival. Then the new one is attached, with its default tunables; see
    /// [`is_switching`](Self::is_switching). A second switch before that replaces the first one's target. What is not needed of
    /// the storage, now or then, is returned by [`take_retired_storage`](Self::take_retired_storage).
    pub fn switch(&mut self, kind: Kind, storage: ElevatorStorage<H>, now_ns: u64) -> Kick {
        self.begin(now_ns);
        if kind == self.kind() && !self.switching.is_under_way() {
            self.switching.retire(Some(storage));
            return self.end();
        }
        if let Some((_, unused)) = self.switching.next.replace((kind, storage)) {
            self.switching.retire(Some(unused));
        }
        self.drain_elevator();
        self.switch_if_drained();
        if !self.is_empty() {
            self.remove_plug();
            self.block.run_now();
        }
        self.end()
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
        while self.elevator.dispatch(&mut self.block, true) > 0 {}
        debug_assert!(self.elevator.is_empty(), "a forced dispatch empties the elevator");
    }

    /// Attaches the new elevator once the old one knows of no request any more.
    pub(super) fn switch_if_drained(&mut self) {
        if self.switching.private > 0 {
            return;
        }
        let Some((kind, storage)) = self.switching.next.take() else { return };
        self.block.timers.cancel(crate::clock::Timer::Idle);
        self.block.timers.cancel(crate::clock::Timer::Grace);
        self.elevator.retire(&mut self.block);
        for slot in 0..self.block.table.contexts.capacity() {
            self.block.table.contexts[slot].history = History::default();
        }
        let (new, unused) = AnyElevator::of_kind(kind, &mut self.block, storage);
        let old = core::mem::replace(&mut self.elevator, new);
        let given = core::mem::replace(&mut self.switching.unused, unused);
        self.switching.retire(old.into_storage().or(given));
        self.hashing = self.config.merging && (self.rules.hashes_back_merges || kind.info().hashes_back_merges);
        self.block.last_merge = crate::parts::NIL;
        self.block.tell(|_| Event::Note(Note::Switched { elevator: kind.index() }));
    }
}
