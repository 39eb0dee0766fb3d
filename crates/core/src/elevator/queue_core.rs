//! The part of the queue that elevators use: tables, dispatch list, clock, timers, notes.

use super::custom::Violation;
use super::dispatch_list::DispatchList;
use crate::bio::{Flags, Op};
use crate::clock::{Clock, Timer, Timers};
use crate::collections::{Count, HashChains, List, NIL, Ring, Slot};
use crate::context::{Context, SleepingContexts, State as ContextState};
use crate::elevator::tables::{DeferredWork, HostTypes, QueueTables};
use crate::event::{Event, Io, Note, Sink};
use crate::group::ROOT;
use crate::request::{Marks, RequestLists, State};

/// The queue's state outside the elevator.
pub(crate) struct QueueCore<H: HostTypes> {
    pub tables: QueueTables<H>,
    pub dispatch: DispatchList<H>,
    pub clock: Clock,
    pub timers: Timers,
    /// Queued requests by their end sector, for back merges.
    pub hash: HashChains<H::Slots<u32>>,
    /// The first candidate for the next merge, or [`NIL`].
    pub last_merge: Slot,
    /// Requests in the device.
    pub in_flight: u32,
    /// Reserved requests that completed after their bound, since the queue was created.
    pub late_requests: u64,
    pub free_contexts: List<SleepingContexts>,
    pub work: Ring<DeferredWork, H::Slots<DeferredWork>>,
    /// The pool size per direction as set by the host (in multi-queue layers: all tags).
    pub nr_requests: u32,
    /// The size limit of merged requests, in sectors.
    pub max_sectors: u32,
    /// The number of hardware queues of the device.
    pub hw_queues: u16,
    /// The hardware queue for which the driver takes a request, if it named one.
    pub hw_queue: Option<u16>,
    /// Whether the device is rotational.
    pub rotational: bool,
    /// The flags of the bio for which a request is being allocated, during the elevator's
    /// `may_queue`.
    pub bio_flags: Flags,
    /// The maximum of requests in one unforced dispatch: a layer above may have requests to put in
    /// between.
    pub batch_max: u32,
    /// A run of the queue is already in `work`.
    pub run_pending: bool,
    /// A run of the queue is due before the current call returns.
    pub run_now: bool,
    /// The first broken rule of the current custom elevator.
    pub violation: Option<Violation>,
    pub sink: H::Sink,
}

impl<H: HostTypes> QueueCore<H> {
    /// Ticks since boot.
    #[inline]
    pub fn ticks(&self) -> u64 {
        self.clock.ticks()
    }

    /// The time since boot in ns.
    #[inline]
    pub fn ktime_ns(&self) -> u64 {
        self.clock.ktime_ns()
    }

    /// The time since boot in ns; in whole ticks where the kernel's elevators counted in ticks.
    #[inline]
    pub fn counted_ns(&self) -> u64 {
        self.clock.counted_ns()
    }

    /// Moves a request to the dispatch list, sorted. The elevator has removed it from its own
    /// lists.
    #[inline]
    pub fn dispatch_sort(&mut self, slot: Slot) {
        self.leave_elevator(slot);
        self.dispatch.sort(&mut self.tables, slot);
    }

    /// Moves a request to the end of the dispatch list. The elevator has removed it from its own
    /// lists.
    #[inline]
    pub fn dispatch_append(&mut self, slot: Slot) {
        self.leave_elevator(slot);
        self.dispatch.append(&mut self.tables, slot);
    }

    /// Moves a request to the head of the dispatch list, or to its end. Later requests are not
    /// sorted before it. The elevator has removed it from its own lists.
    pub fn dispatch_unsorted(&mut self, slot: Slot, first: bool) {
        self.leave_elevator(slot);
        self.tables.requests[slot].marks.set(Marks::SOFT_BARRIER);
        if first {
            self.dispatch.push_front(&mut self.tables, slot);
        } else {
            self.dispatch.push_back(&mut self.tables, slot);
        }
    }

    #[inline]
    fn leave_elevator(&mut self, slot: Slot) {
        debug_assert_eq!(self.tables.requests[slot].state, State::Sorted);
        if self.last_merge == slot {
            self.last_merge = NIL;
        }
        let request = &mut self.tables.requests[slot];
        request.state = State::Dispatched;
        if request.marks.has(Marks::HASHED) {
            self.remove_from_hash(slot);
        }
    }

    /// Excludes a request from further merges, because its position is decided although the
    /// elevator still holds it.
    #[inline]
    pub fn end_merging(&mut self, slot: Slot) {
        if self.last_merge == slot {
            self.last_merge = NIL;
        }
        self.unhash(slot);
    }

    /// Returns true if bios may be merged into the request.
    pub fn is_mergeable(&self, slot: Slot) -> bool {
        let request = &self.tables.requests[slot];
        let barred = [Marks::NO_MERGE, Marks::SOFT_BARRIER, Marks::HARD_BARRIER].iter().any(|&m| request.marks.has(m));
        request.state == State::Sorted && !barred && !request.flags.has(Flags::FUA)
    }

    /// Removes a request from the merge hash, if the hash contains it.
    #[inline]
    pub fn unhash(&mut self, slot: Slot) {
        if self.tables.requests[slot].marks.has(Marks::HASHED) {
            self.remove_from_hash(slot);
        }
    }

    #[inline(never)]
    fn remove_from_hash(&mut self, slot: Slot) {
        let request = &mut self.tables.requests[slot];
        request.marks.clear(Marks::HASHED);
        let end = request.end();
        self.hash.remove::<RequestLists, _, _>(&mut self.tables.requests, end, slot);
    }

    /// Schedules a run of the queue after the current event. Further calls have no effect until it
    /// runs.
    pub fn kick(&mut self) {
        if !self.run_pending {
            self.run_pending = self.work.push(DeferredWork::Run);
        }
    }

    /// Schedules a run of the queue for the end of the current call.
    pub fn run_now(&mut self) {
        self.run_now = true;
    }

    /// Arms a timer for tick `expires`, but not before the next tick.
    pub fn arm_at_tick(&mut self, timer: Timer, expires: u64) {
        let tick = expires.max(self.ticks().saturating_add(1));
        let at_ns = self.clock.time_of_tick(tick);
        self.timers.arm(timer, at_ns);
    }

    /// Arms a timer for a time since boot, in ns.
    pub fn arm_at_ktime(&mut self, timer: Timer, ktime_ns: u64) {
        let at_ns = self.clock.host_ns(ktime_ns);
        self.timers.arm(timer, at_ns);
    }

    /// The context of a request.
    #[inline]
    pub fn context_of(&mut self, slot: Slot) -> &mut Context {
        let context = self.tables.requests[slot].context;
        &mut self.tables.contexts[context]
    }

    /// Prevents the entry of a context from being freed.
    #[inline]
    pub fn hold_context(&mut self, context: Slot) {
        if context != NIL {
            let holds = &mut self.tables.contexts[context].requests;
            holds.increment();
        }
    }

    /// Holds `context` instead of the context in `held`; either may be [`NIL`].
    pub fn hold_instead(&mut self, held: &mut Slot, context: Slot) {
        if *held != context {
            self.hold_context(context);
            self.unhold_context(*held);
            *held = context;
        }
    }

    /// Releases a held context. Its entry is freed if the process has exited and nothing else holds
    /// it.
    #[inline]
    pub fn unhold_context(&mut self, context: Slot) {
        let Some(entry) = self.tables.contexts.get_mut(context) else { return };
        entry.requests.decrement();
        if entry.state == ContextState::Exited {
            self.free_context_if_unused(context);
        }
    }

    /// Frees the entry of a context that has exited and is not held.
    #[cold]
    #[inline(never)]
    pub fn free_context_if_unused(&mut self, context: Slot) {
        let entry = &mut self.tables.contexts[context];
        if entry.state == ContextState::Exited && entry.requests == 0 {
            entry.state = ContextState::Free;
            self.leave_group(context);
            self.free_contexts.push_back(&mut self.tables.contexts, context);
        }
    }

    /// Removes a context from its group.
    pub fn leave_group(&mut self, context: Slot) {
        let group = core::mem::replace(&mut self.tables.contexts[context].group, ROOT);
        let contexts = &mut self.tables.groups[group].contexts;
        contexts.decrement();
    }

    /// Adds a context to a group. It must not be in another one.
    pub fn enter_group(&mut self, context: Slot, group: Slot) {
        self.tables.contexts[context].group = group;
        let contexts = &mut self.tables.groups[group].contexts;
        contexts.increment();
    }

    /// Records a note, if the sink is enabled.
    #[inline(always)]
    pub fn note(&mut self, note: impl FnOnce(&Self) -> Note) {
        if H::Sink::ENABLED && self.sink.is_on() {
            let note = note(self);
            self.sink.record(self.clock.now_ns(), Event::Note(note));
        }
    }

    /// Records an event, if the sink is enabled.
    #[inline(always)]
    pub fn emit(&mut self, event: impl FnOnce(&Self) -> Event) {
        if H::Sink::ENABLED && self.sink.is_on() {
            let event = event(self);
            self.sink.record(self.clock.now_ns(), event);
        }
    }

    /// Describes a request for an event.
    pub fn io(&self, slot: Slot) -> Io {
        let request = &self.tables.requests[slot];
        Io {
            token: request.token,
            pid: self.tables.contexts[request.context].pid,
            op: request.op,
            sector: request.sector,
            sectors: request.sectors,
            flags: request.flags,
        }
    }

    /// Returns true if the request is a read.
    #[inline]
    pub fn reads(&self, slot: Slot) -> bool {
        self.tables.requests[slot].op == Op::Read
    }
}
