//! The block layer's side of a queue, as elevators see it: the tables, the dispatch list, the clock, timers, notes.

use super::dispatch_list::DispatchList;
use crate::bio::{Flags, Op};
use crate::clock::{Clock, Timer, Timers};
use crate::collections::{HashChains, List, NIL, Ring, Slot};
use crate::context::{Context, State as ContextState, Waiting};
use crate::elevator::tables::{DeferredWork, HostTypes, QueueTables};
use crate::event::{Event, Io, Note, Sink};
use crate::group::ROOT;
use crate::request::{Marks, Plain, State};

/// Everything that an elevator may touch beside its own state.
pub(crate) struct QueueCore<H: HostTypes> {
    pub tables: QueueTables<H>,
    pub dispatch: DispatchList<H>,
    pub clock: Clock,
    pub timers: Timers,
    /// Queued requests by their ends, for back merges.
    pub hash: HashChains<H::Slots<u32>>,
    /// The request that the next bio is tried with first, or [`NIL`].
    pub last_merge: Slot,
    /// Requests that the driver has.
    pub in_flight: u32,
    /// Requests within a reservation that were done later than promised, in this queue's life.
    pub late_requests: u64,
    pub free_contexts: List<Waiting>,
    pub work: Ring<DeferredWork, H::Slots<DeferredWork>>,
    /// The size of the pool of requests a direction (of all tags, in a multi-queue layer), as the host set it.
    pub nr_requests: u32,
    /// The largest request that merging makes, in sectors.
    pub max_sectors: u32,
    /// The hardware queues of the device.
    pub hw_queues: u16,
    /// The hardware queue that the driver wants a request for, if it said so.
    pub hw_queue: Option<u16>,
    /// Whether the device has an arm that moves.
    pub rotational: bool,
    /// The marks of the bio that a request is being allocated for, while the elevator is asked whether it may be.
    pub bio_flags: Flags,
    /// How many requests an elevator may move in one dispatch that is not forced: a layer above it may have others to put between
    /// them.
    pub batch_max: u32,
    /// A run of the queue waits in `work` already.
    pub run_pending: bool,
    /// The elevator wants the queue run before the call returns.
    pub run_now: bool,
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

    /// The time since boot in ns, in whole ticks where the kernel's elevators counted in those.
    #[inline]
    pub fn counted_ns(&self) -> u64 {
        self.clock.counted_ns()
    }

    /// Moves a request of the elevator's to the dispatch list, sorted. The elevator has taken it out of its own lists.
    #[inline]
    pub fn dispatch_sort(&mut self, slot: Slot) {
        self.leave_elevator(slot);
        self.dispatch.sort(&mut self.tables, slot);
    }

    /// Moves a request of the elevator's to the end of the dispatch list.
    #[inline]
    pub fn dispatch_append(&mut self, slot: Slot) {
        self.leave_elevator(slot);
        self.dispatch.append(&mut self.tables, slot);
    }

    #[inline]
    fn leave_elevator(&mut self, slot: Slot) {
        debug_assert_eq!(self.tables.requests[slot].state, State::Sorted);
        self.end_merging(slot);
        self.tables.requests[slot].state = State::Dispatched;
    }

    /// A request of the elevator's takes no more bios: its turn is settled, though the elevator keeps it yet.
    #[inline]
    pub fn end_merging(&mut self, slot: Slot) {
        if self.last_merge == slot {
            self.last_merge = NIL;
        }
        self.unhash(slot);
    }

    /// Whether a request still takes bios.
    pub fn is_mergeable(&self, slot: Slot) -> bool {
        let request = &self.tables.requests[slot];
        let barred = [Marks::NO_MERGE, Marks::SOFT_BARRIER, Marks::HARD_BARRIER].iter().any(|&m| request.marks.has(m));
        request.state == State::Sorted && !barred && !request.flags.has(Flags::FUA)
    }

    /// Takes a request out of the merge hash, if it is in it.
    #[inline]
    pub fn unhash(&mut self, slot: Slot) {
        let request = &mut self.tables.requests[slot];
        if request.marks.has(Marks::HASHED) {
            request.marks.clear(Marks::HASHED);
            let end = request.end();
            self.hash.remove::<Plain, _, _>(&mut self.tables.requests, end, slot);
        }
    }

    /// Asks for a run of the queue once the present event is over. Asking twice is asking once.
    pub fn kick(&mut self) {
        if !self.run_pending {
            self.run_pending = self.work.push(DeferredWork::Run);
        }
    }

    /// Asks for a run of the queue right at the end of the present call.
    pub fn run_now(&mut self) {
        self.run_now = true;
    }

    /// Arms a timer of the tick clock: it fires on tick `expires`, but not before the next one.
    pub fn arm_at_tick(&mut self, timer: Timer, expires: u64) {
        let tick = expires.max(self.ticks().saturating_add(1));
        let at_ns = self.clock.time_of_tick(tick);
        self.timers.arm(timer, at_ns);
    }

    /// Arms a timer of the fine clock: it fires at this time since boot in ns.
    pub fn arm_at_ktime(&mut self, timer: Timer, ktime_ns: u64) {
        let at_ns = self.clock.host_ns(ktime_ns);
        self.timers.arm(timer, at_ns);
    }

    /// The request's context.
    #[inline]
    pub fn context_of(&mut self, slot: Slot) -> &mut Context {
        let context = self.tables.requests[slot].context;
        &mut self.tables.contexts[context]
    }

    /// Keeps the entry of a context that has exited.
    #[inline]
    pub fn hold_context(&mut self, context: Slot) {
        if context != NIL {
            let holds = &mut self.tables.contexts[context].requests;
            *holds = holds.saturating_add(1);
        }
    }

    /// Lets go of a context that was held. If its process has exited and nothing else keeps it, its entry is free.
    pub fn unhold_context(&mut self, context: Slot) {
        if context == NIL {
            return;
        }
        let entry = &mut self.tables.contexts[context];
        entry.requests = entry.requests.saturating_sub(1);
        self.free_context_if_unused(context);
    }

    /// Frees the entry of a context that has exited and is not held.
    pub fn free_context_if_unused(&mut self, context: Slot) {
        let entry = &mut self.tables.contexts[context];
        if entry.state == ContextState::Exited && entry.requests == 0 {
            entry.state = ContextState::Free;
            self.leave_group(context);
            self.free_contexts.push_back(&mut self.tables.contexts, context);
        }
    }

    /// Takes a context out of its group.
    pub fn leave_group(&mut self, context: Slot) {
        let group = core::mem::replace(&mut self.tables.contexts[context].group, ROOT);
        let contexts = &mut self.tables.groups[group].contexts;
        *contexts = contexts.saturating_sub(1);
    }

    /// Puts a context that is in no group into one.
    pub fn enter_group(&mut self, context: Slot, group: Slot) {
        self.tables.contexts[context].group = group;
        let contexts = &mut self.tables.groups[group].contexts;
        *contexts = contexts.saturating_add(1);
    }

    /// Notes something, if anybody listens.
    #[inline(always)]
    pub fn note(&mut self, note: impl FnOnce(&Self) -> Note) {
        if H::Sink::ENABLED {
            let note = note(self);
            self.sink.record(self.clock.now_ns(), Event::Note(note));
        }
    }

    /// Tells of an event, if anybody listens.
    #[inline(always)]
    pub fn tell(&mut self, event: impl FnOnce(&Self) -> Event) {
        if H::Sink::ENABLED {
            let event = event(self);
            self.sink.record(self.clock.now_ns(), event);
        }
    }

    /// A request as events show it.
    pub fn io(&self, slot: Slot) -> Io {
        let request = &self.tables.requests[slot];
        Io {
            token: request.token,
            pid: self.tables.contexts[request.context].pid,
            op: request.op,
            sector: request.sector,
            sectors: request.sectors,
        }
    }

    /// Whether the request reads.
    #[inline]
    pub fn reads(&self, slot: Slot) -> bool {
        self.tables.requests[slot].op == Op::Read
    }
}
