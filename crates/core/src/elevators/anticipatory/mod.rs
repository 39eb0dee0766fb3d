//! anticipatory ("as"): deadline's order in timed batches, and a short wait after each read for the
//! next one of the same process.
//!
//! The idea: a process that reads sequentially requests its next block only after the last one has
//! completed. Moving the head away at once to serve another process costs two seeks. So, after a
//! read, wait a few milliseconds for another read nearby (of the same process, or a close one of
//! any process), as long as the statistics of the process make one likely. Reads and writes
//! alternate in batches limited by time. With anticipation on, one read is outstanding at a time.

mod estimate;
mod tunables;

use crate::bio::{Bio, Op};
use crate::clock::Timer;
use crate::collections::{Count, NIL, Slot};
use crate::elevator::capacity::Capacity;
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::{HostTypes, TableMaker};
use crate::elevator::{Elevator, MakeTables, MayQueue, Merge};
use crate::elevators::shared::chooser::Chooser;
use crate::elevators::shared::sorted_fifo::{self, SortedFifo};
use crate::event::Note;
use crate::request::Request;

use estimate::{COMPLETED, Estimate};
pub(crate) use tunables::INFO;
use tunables::Tunables;

/// The index of async requests: writes without a waiting process.
const ASYNC: usize = 0;
/// The index of sync requests: reads, and writes for which a process waits.
const SYNC: usize = 1;

/// Distances behind the head count double; beyond half a GiB they are not considered.
const CHOOSER: Chooser = Chooser { back_max: 1024 * 1024, back_penalty: 2, marks_count: false };

/// The state of anticipation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    /// Neither waiting nor anticipating.
    Off,
    /// Waiting for the awaited process's read to complete, then for its next one.
    WaitRequest,
    /// Waiting for the process's next read until the timer fires.
    WaitNext,
    /// The wait is over; no other one before a dispatch.
    Finished,
}

/// The state of the elevator.
#[derive(Debug)]
pub(crate) struct Anticipatory {
    sides: [SortedFifo; 2],
    /// The request nearest to the head, by kind.
    next: [Slot; 2],
    /// The end of the last dispatched request, by kind.
    last_sector: [u64; 2],
    /// The time of the last deadline check, by kind.
    last_check: [u64; 2],
    /// The kind of the current batch.
    side: usize,
    batch_expires: u64,
    /// The kind has changed; the old batch's requests must complete first.
    changed: bool,
    /// A batch of reads has begun; its time starts with its first completion.
    new_batch: bool,
    write_batch_count: u32,
    current_write_count: u32,
    write_batch_idled: bool,
    status: Status,
    /// The completion time of the awaited process's read.
    antic_start: u64,
    /// The process of the last dispatched sync request, or [`NIL`].
    awaited: Slot,
    /// Whether its read has completed.
    awaited_finished: bool,
    /// Requests dispatched and not completed.
    dispatched: u32,
    estimate: Estimate,
    tunables: Tunables,
}

impl<H: HostTypes> MakeTables<H> for Anticipatory {
    fn make_tables<M: TableMaker<H>>(_: Capacity, _: &mut M) {}
}

impl<H: HostTypes> Elevator<H> for Anticipatory {
    type Tables = ();

    fn new(core: &mut QueueCore<H>, (): ()) -> Self {
        let tunables = Tunables::defaults(&core.clock);
        Anticipatory {
            sides: [SortedFifo::default(); 2],
            next: [NIL; 2],
            last_sector: [0; 2],
            last_check: [0; 2],
            side: ASYNC,
            batch_expires: core.ticks().saturating_add(tunables.batch_expire[SYNC]),
            changed: false,
            new_batch: false,
            write_batch_count: (tunables.batch_expire[ASYNC] / 10).max(2) as u32,
            current_write_count: 0,
            write_batch_idled: false,
            status: Status::Off,
            antic_start: 0,
            awaited: NIL,
            awaited_finished: false,
            dispatched: 0,
            estimate: Estimate::default(),
            tunables,
        }
    }

    fn into_tables(self) {}

    fn retire(&mut self, core: &mut QueueCore<H>) {
        self.await_context(core, NIL);
    }

    fn tunable(&self, index: usize) -> i64 {
        self.tunables.get(index)
    }

    fn set_tunable(&mut self, core: &mut QueueCore<H>, index: usize, value: i64) {
        self.tunables.set(&core.clock, index, value);
    }

    fn find_front_merge(&mut self, core: &mut QueueCore<H>, bio: &Bio) -> Slot {
        // The kernel confuses kind and data direction here: for a read it searches the async
        // requests, which contain no reads.
        let side = if bio.op == Op::Read { ASYNC } else { SYNC };
        self.sides[side].at_sector(core, bio.end())
    }

    fn merged(&mut self, core: &mut QueueCore<H>, request: Slot, merge: Merge) {
        if merge == Merge::Front {
            let side = side_of(&core.tables.requests[request]);
            self.sides[side].resort(core, request);
            self.dispatch_alias(core, request, side);
            if self.next[side] == NIL {
                // The alias was the only neighbour of this request, which was not in the tree when
                // the alias left.
                self.next[side] = request;
            }
        }
    }

    fn join(&mut self, core: &mut QueueCore<H>, request: Slot, absorbed: Slot) {
        let side = side_of(&core.tables.requests[request]);
        if self.sides[side].inherit(core, request, absorbed) {
            let (own, other) = (core.tables.requests[request].context, core.tables.requests[absorbed].context);
            core.tables.requests[request].context = other;
            core.tables.requests[absorbed].context = own;
        }
        if self.next[side] == absorbed {
            self.next[side] = self.neighbour(core, absorbed, side);
        }
        self.sides[side].remove(core, absorbed);
        self.leave_queue(core, absorbed);
        if side == SYNC {
            self.note_completion(core, absorbed);
        }
    }

    fn may_queue(&mut self, _: &mut QueueCore<H>, context: Slot, _: Op) -> MayQueue {
        if self.is_waiting() && self.awaited == context { MayQueue::Must } else { MayQueue::May }
    }

    fn insert(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let side = side_of(&core.tables.requests[request]);
        let context = core.tables.requests[request].context;
        if side == SYNC {
            self.estimate.update(core, context, request);
        }
        let history = &mut core.context_of(request).history;
        history.queued.increment();
        let deadline = core.ticks().saturating_add(self.tunables.expire[side]);
        self.sides[side].insert(core, request, deadline);
        self.dispatch_alias(core, request, side);
        self.next[side] = CHOOSER.best(core, request, self.next[side], self.last_sector[side]);
        if self.is_waiting() && self.breaks(core, request) {
            let pid = core.tables.contexts[self.awaited].pid;
            core.note(|_| Note::AnticipationBroken { pid });
            self.stop_waiting(core);
        }
    }

    fn dispatch(&mut self, core: &mut QueueCore<H>, force: bool) -> u32 {
        if force {
            return self.drain(core);
        }
        let request = self.select(core);
        if request == NIL {
            return 0;
        }
        if self.changed {
            if self.dispatched > 0 {
                return 0;
            }
            if self.side == ASYNC {
                self.batch_expires = core.ticks().saturating_add(self.tunables.batch_expire[ASYNC]);
            } else {
                self.new_batch = true;
            }
            self.changed = false;
        }
        self.move_to_dispatch(core, request);
        1
    }

    fn activate(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let history = &mut core.context_of(request).history;
        history.dispatched.decrement();
    }

    fn deactivate(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let history = &mut core.context_of(request).history;
        history.dispatched.increment();
    }

    fn complete(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let side = side_of(&core.tables.requests[request]);
        if self.changed && self.dispatched == 1 {
            core.kick();
            self.changed = false;
            if self.side == SYNC {
                self.new_batch = true;
            }
        }
        self.dispatched.decrement();
        if self.new_batch && side == self.side {
            self.resize_write_batch(core.ticks());
            self.batch_expires = core.ticks().saturating_add(self.tunables.batch_expire[SYNC]);
            self.new_batch = false;
        }
        if self.awaited != NIL && self.awaited == core.tables.requests[request].context {
            self.antic_start = core.ticks();
            self.awaited_finished = true;
            if self.status == Status::WaitRequest {
                self.wait_for_next(core);
            }
        }
        if side == SYNC {
            self.note_completion(core, request);
        }
    }

    fn is_empty(&self) -> bool {
        self.sides[ASYNC].is_empty() && self.sides[SYNC].is_empty()
    }

    fn timer(&mut self, core: &mut QueueCore<H>, _: Timer) {
        if !self.is_waiting() {
            return;
        }
        let awaited = &core.tables.contexts[self.awaited];
        let (pid, unknown, exited) = (awaited.pid, awaited.history.think.samples == 0, !awaited.is_running());
        core.note(|_| Note::AnticipationTimeout { pid });
        self.status = Status::Finished;
        core.kick();
        if unknown {
            self.estimate.exit_more_likely();
        }
        if exited {
            self.estimate.no_cooperation();
        }
    }
}

impl Anticipatory {
    /// Selects the request to dispatch, or [`NIL`]: the next of the batch, unless it is better to
    /// wait or to change the kind.
    fn select<H: HostTypes>(&mut self, core: &mut QueueCore<H>) -> Slot {
        let (sync_waits, async_waits) = (!self.sides[SYNC].is_empty(), !self.sides[ASYNC].is_empty());
        if self.side == ASYNC && !sync_waits && (self.current_write_count == 0 || !async_waits) {
            self.write_batch_idled = true;
        }
        if (!sync_waits && !async_waits) || self.is_waiting() || self.changed {
            return NIL;
        }
        if !(sync_waits && async_waits && self.batch_expired(core.ticks())) {
            let next = self.next[self.side & 1];
            if self.side == SYNC && self.tunables.antic_expire > 0 {
                if self.check_fifo(core, SYNC) {
                    return self.overdue(core, SYNC);
                }
                if self.can_anticipate(core, next) {
                    self.start_waiting(core);
                    return NIL;
                }
            }
            if next != NIL {
                if sync_waits && !async_waits {
                    self.batch_expires = core.ticks().saturating_add(self.tunables.batch_expire[SYNC]);
                }
                return self.unless_overdue(core, next);
            }
        }
        let next = self.change_side(core, sync_waits, async_waits);
        self.unless_overdue(core, next)
    }

    /// Begins a batch of the other kind, or continues with sync requests if there are no others.
    fn change_side<H: HostTypes>(&mut self, core: &mut QueueCore<H>, sync_waits: bool, async_waits: bool) -> Slot {
        if sync_waits && !(async_waits && self.side == SYNC) {
            if self.side == ASYNC {
                self.changed = true;
            }
            self.side = SYNC;
            self.last_check[SYNC] = core.ticks();
            core.note(|_| Note::Batch { op: Op::Read });
            return self.sides[SYNC].oldest();
        }
        if self.side == SYNC {
            self.changed = true;
            self.new_batch = false;
        }
        self.side = ASYNC;
        self.current_write_count = self.write_batch_count;
        self.write_batch_idled = false;
        core.note(|_| Note::Batch { op: Op::Write });
        self.next[ASYNC]
    }

    fn unless_overdue<H: HostTypes>(&mut self, core: &mut QueueCore<H>, request: Slot) -> Slot {
        let side = self.side & 1;
        if self.check_fifo(core, side) { self.overdue(core, side) } else { request }
    }

    fn overdue<H: HostTypes>(&mut self, core: &mut QueueCore<H>, side: usize) -> Slot {
        let oldest = self.sides[side & 1].oldest();
        core.note(|core| Note::Overdue { token: core.tables.requests[oldest].token });
        oldest
    }

    /// Returns true if the oldest request of a kind is overdue; checked at most once per expiry
    /// time of the kind.
    fn check_fifo<H: HostTypes>(&mut self, core: &QueueCore<H>, side: usize) -> bool {
        let (now, side) = (core.ticks(), side & 1);
        if now.saturating_sub(self.last_check[side]) < self.tunables.expire[side] {
            return false;
        }
        self.last_check[side] = now;
        self.sides[side].is_overdue(core, now)
    }

    fn batch_expired(&self, now: u64) -> bool {
        if self.changed || self.new_batch {
            return false;
        }
        now > self.batch_expires || (self.side == ASYNC && self.current_write_count == 0)
    }

    fn move_to_dispatch<H: HostTypes>(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let entry = &core.tables.requests[request];
        let (side, context, end) = (side_of(entry), entry.context, entry.end());
        self.stop_waiting(core);
        self.status = Status::Off;
        self.last_sector[side] = end;
        if side == SYNC {
            self.await_context(core, context);
        } else {
            self.await_context(core, NIL);
            self.current_write_count = self.current_write_count.saturating_sub(1);
        }
        self.awaited_finished = false;
        self.next[side] = self.neighbour(core, request, side);
        self.sides[side].remove(core, request);
        self.leave_queue(core, request);
        let history = &mut core.context_of(request).history;
        history.dispatched.increment();
        core.dispatch_sort(request);
        self.dispatched.increment();
    }

    /// Of the two neighbours of a request that leaves, the one nearer to the head; the lowest
    /// request follows the highest.
    fn neighbour<H: HostTypes>(&self, core: &QueueCore<H>, request: Slot, side: usize) -> Slot {
        CHOOSER.neighbour(core, self.sides[side & 1].tree(), request, self.last_sector[side & 1])
    }

    /// Dispatches a queued request of the same kind and first sector.
    #[inline]
    fn dispatch_alias<H: HostTypes>(&mut self, core: &mut QueueCore<H>, request: Slot, side: usize) {
        sorted_fifo::move_alias(
            self,
            core,
            request,
            |elevator| elevator.sides[side & 1].tree_mut(),
            Self::move_to_dispatch,
        );
    }

    fn leave_queue<H: HostTypes>(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let history = &mut core.context_of(request).history;
        history.queued.decrement();
    }

    fn note_completion<H: HostTypes>(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let now = core.ticks();
        let history = &mut core.context_of(request).history;
        history.marks |= COMPLETED;
        history.last_end = now;
    }

    fn drain<H: HostTypes>(&mut self, core: &mut QueueCore<H>) -> u32 {
        self.side = SYNC;
        self.changed = false;
        self.new_batch = false;
        let mut moved = 0u32;
        for side in [SYNC, ASYNC] {
            while !self.sides[side].is_empty() {
                let next = if self.next[side] == NIL { self.sides[side].lowest() } else { self.next[side] };
                self.move_to_dispatch(core, next);
                moved.increment();
            }
            self.last_check[side] = core.ticks();
        }
        moved
    }

    /// Adapts the length of write batches to the time of the last one, at the first completion of a
    /// read after it.
    fn resize_write_batch(&mut self, now: u64) {
        let target = self.tunables.batch_expire[ASYNC];
        let took = now.saturating_add(target).saturating_sub(self.batch_expires);
        if took > target && !self.write_batch_idled {
            if took > target.saturating_mul(3) {
                self.write_batch_count /= 2;
            } else {
                self.write_batch_count = self.write_batch_count.saturating_sub(1);
            }
        } else if took < target && self.current_write_count == 0 {
            if target > took.saturating_mul(3) {
                self.write_batch_count = self.write_batch_count.saturating_mul(2);
            } else {
                self.write_batch_count = self.write_batch_count.saturating_add(1);
            }
        }
        self.write_batch_count = self.write_batch_count.max(1);
    }

    fn is_waiting(&self) -> bool {
        matches!(self.status, Status::WaitRequest | Status::WaitNext)
    }

    fn can_anticipate<H: HostTypes>(&mut self, core: &mut QueueCore<H>, request: Slot) -> bool {
        self.awaited != NIL && self.status != Status::Finished && !self.breaks(core, request)
    }

    fn start_waiting<H: HostTypes>(&mut self, core: &mut QueueCore<H>) {
        if self.status != Status::Off {
            return;
        }
        if self.awaited == NIL || self.awaited_finished {
            self.wait_for_next(core);
        } else {
            self.status = Status::WaitRequest;
        }
    }

    fn wait_for_next<H: HostTypes>(&mut self, core: &mut QueueCore<H>) {
        let until = self.antic_start.saturating_add(self.tunables.antic_expire);
        core.arm_at_tick(Timer::Idle, until);
        self.status = Status::WaitNext;
        let pid = core.tables.contexts[self.awaited].pid;
        core.note(|core| Note::Anticipate { pid, until_ns: core.clock.time_of_tick(until) });
    }

    fn stop_waiting<H: HostTypes>(&mut self, core: &mut QueueCore<H>) {
        if !self.is_waiting() {
            return;
        }
        core.timers.cancel(Timer::Idle);
        self.status = Status::Finished;
        core.kick();
    }

    /// Sets the context for which the elevator may wait, and holds its entry.
    fn await_context<H: HostTypes>(&mut self, core: &mut QueueCore<H>, context: Slot) {
        if self.awaited != context {
            core.hold_context(context);
            core.unhold_context(self.awaited);
            self.awaited = context;
        }
    }
}

#[inline]
fn side_of(request: &Request) -> usize {
    if request.is_sync() { SYNC } else { ASYNC }
}
