//! anticipatory ("as"): deadline's order in timed batches, and a short wait after each read for the same process's next one.
//!
//! The idea: a process that reads asks for its next block only when it has got the last one. Moving the head away at once to
//! serve somebody else costs two seeks; so, after a read, wait a few milliseconds for another read nearby (of the same
//! process, or of anybody close), as long as what is known of the process says that one will come. Reads and writes alternate
//! in batches that are limited by time. With anticipation on, one read is outstanding at a time.

mod estimate;
mod tunables;

use super::chooser::Chooser;
use super::sorted_fifo::{self, SortedFifo};
use super::{Elevator, MakeTables, MayQueue, Merge};
use crate::bio::{Bio, Op};
use crate::clock::Timer;
use crate::event::Note;
use crate::parts::{NIL, Slot};
use crate::queue::block::Block;
use crate::request::Request;
use crate::storage::{Capacity, Home, Maker};

use estimate::{COMPLETED, Estimate};
pub(crate) use tunables::INFO;
use tunables::Tunables;

/// Index of async requests: writes that nobody waits for.
const ASYNC: usize = 0;
/// Index of sync ones: reads, and writes that somebody waits for.
const SYNC: usize = 1;

/// Requests behind the head count double, and not at all beyond half a GiB.
const CHOOSER: Chooser = Chooser { back_max: 1024 * 1024, back_penalty: 2, marks_count: false };

/// What the elevator waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    /// Nothing.
    Off,
    /// The process's read to complete; then for its next one.
    WaitRequest,
    /// The process's next read, until the timer fires.
    WaitNext,
    /// It has waited; not again before something was dispatched.
    Finished,
}

/// The state.
#[derive(Debug)]
pub(crate) struct Anticipatory {
    sides: [SortedFifo; 2],
    /// The request nearest to the head, of each kind.
    next: [Slot; 2],
    /// The end of the last request dispatched, of each kind.
    last_sector: [u64; 2],
    /// When the deadlines of each kind were looked at last.
    last_check: [u64; 2],
    /// The kind of the present batch.
    side: usize,
    batch_expires: u64,
    /// The kind has changed; the old batch's requests have to complete first.
    changed: bool,
    /// A batch of reads has begun; its time runs from its first completion.
    new_batch: bool,
    write_batch_count: u32,
    current_write_count: u32,
    write_batch_idled: bool,
    status: Status,
    /// When the awaited process's read completed.
    antic_start: u64,
    /// The process of the last dispatched sync request, or [`NIL`].
    awaited: Slot,
    /// Its read has completed.
    awaited_finished: bool,
    /// Requests dispatched and not completed.
    dispatched: u32,
    estimate: Estimate,
    tunables: Tunables,
}

impl<H: Home> MakeTables<H> for Anticipatory {
    fn make_tables<M: Maker<H>>(_: Capacity, _: &mut M) {}
}

impl<H: Home> Elevator<H> for Anticipatory {
    type Tables = ();

    fn new(block: &mut Block<H>, (): ()) -> Self {
        let tunables = Tunables::defaults(&block.clock);
        Anticipatory {
            sides: [SortedFifo::default(); 2],
            next: [NIL; 2],
            last_sector: [0; 2],
            last_check: [0; 2],
            side: ASYNC,
            batch_expires: block.ticks().saturating_add(tunables.batch_expire[SYNC]),
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

    fn retire(&mut self, block: &mut Block<H>) {
        self.await_context(block, NIL);
    }

    fn tunable(&self, index: usize) -> i64 {
        self.tunables.get(index)
    }

    fn set_tunable(&mut self, block: &mut Block<H>, index: usize, value: i64) {
        self.tunables.set(&block.clock, index, value);
    }

    fn find_front_merge(&mut self, block: &mut Block<H>, bio: &Bio) -> Slot {
        // The kernel takes the data direction for the kind here: a read looks among async requests, where no read is.
        let side = if bio.op == Op::Read { ASYNC } else { SYNC };
        self.sides[side].at_sector(block, bio.end())
    }

    fn merged(&mut self, block: &mut Block<H>, request: Slot, merge: Merge) {
        if merge == Merge::Front {
            let side = side_of(&block.table.requests[request]);
            self.sides[side].resort(block, request);
            self.dispatch_alias(block, request, side);
            if self.next[side] == NIL {
                // The alias was the last beside this one, which was not sorted in when it left.
                self.next[side] = request;
            }
        }
    }

    fn join(&mut self, block: &mut Block<H>, request: Slot, absorbed: Slot) {
        let side = side_of(&block.table.requests[request]);
        if self.sides[side].inherit(block, request, absorbed) {
            let (own, other) = (block.table.requests[request].context, block.table.requests[absorbed].context);
            block.table.requests[request].context = other;
            block.table.requests[absorbed].context = own;
        }
        if self.next[side] == absorbed {
            self.next[side] = self.neighbour(block, absorbed, side);
        }
        self.sides[side].remove(block, absorbed);
        self.leave_queue(block, absorbed);
        if side == SYNC {
            self.note_completion(block, absorbed);
        }
    }

    fn may_queue(&mut self, _: &mut Block<H>, context: Slot, _: Op) -> MayQueue {
        if self.is_waiting() && self.awaited == context { MayQueue::Must } else { MayQueue::May }
    }

    fn insert(&mut self, block: &mut Block<H>, request: Slot) {
        let side = side_of(&block.table.requests[request]);
        let context = block.table.requests[request].context;
        if side == SYNC {
            self.estimate.update(block, context, request);
        }
        let history = &mut block.context_of(request).history;
        history.queued = history.queued.saturating_add(1);
        let deadline = block.ticks().saturating_add(self.tunables.expire[side]);
        self.sides[side].insert(block, request, deadline);
        self.dispatch_alias(block, request, side);
        self.next[side] = CHOOSER.best(block, request, self.next[side], self.last_sector[side]);
        if self.is_waiting() && self.breaks(block, request) {
            let pid = block.table.contexts[self.awaited].pid;
            block.note(|_| Note::AnticipationBroken { pid });
            self.stop_waiting(block);
        }
    }

    fn dispatch(&mut self, block: &mut Block<H>, force: bool) -> u32 {
        if force {
            return self.drain(block);
        }
        let request = self.select(block);
        if request == NIL {
            return 0;
        }
        if self.changed {
            if self.dispatched > 0 {
                return 0;
            }
            if self.side == ASYNC {
                self.batch_expires = block.ticks().saturating_add(self.tunables.batch_expire[ASYNC]);
            } else {
                self.new_batch = true;
            }
            self.changed = false;
        }
        self.move_to_dispatch(block, request);
        1
    }

    fn activate(&mut self, block: &mut Block<H>, request: Slot) {
        let history = &mut block.context_of(request).history;
        history.dispatched = history.dispatched.saturating_sub(1);
    }

    fn deactivate(&mut self, block: &mut Block<H>, request: Slot) {
        let history = &mut block.context_of(request).history;
        history.dispatched = history.dispatched.saturating_add(1);
    }

    fn complete(&mut self, block: &mut Block<H>, request: Slot) {
        let side = side_of(&block.table.requests[request]);
        if self.changed && self.dispatched == 1 {
            block.kick();
            self.changed = false;
            if self.side == SYNC {
                self.new_batch = true;
            }
        }
        self.dispatched = self.dispatched.saturating_sub(1);
        if self.new_batch && side == self.side {
            self.resize_write_batch(block.ticks());
            self.batch_expires = block.ticks().saturating_add(self.tunables.batch_expire[SYNC]);
            self.new_batch = false;
        }
        if self.awaited != NIL && self.awaited == block.table.requests[request].context {
            self.antic_start = block.ticks();
            self.awaited_finished = true;
            if self.status == Status::WaitRequest {
                self.wait_for_next(block);
            }
        }
        if side == SYNC {
            self.note_completion(block, request);
        }
    }

    fn is_empty(&self) -> bool {
        self.sides[ASYNC].is_empty() && self.sides[SYNC].is_empty()
    }

    fn timer(&mut self, block: &mut Block<H>, _: Timer) {
        if !self.is_waiting() {
            return;
        }
        let awaited = &block.table.contexts[self.awaited];
        let (pid, unknown, exited) = (awaited.pid, awaited.history.think.samples == 0, !awaited.is_running());
        block.note(|_| Note::AnticipationTimeout { pid });
        self.status = Status::Finished;
        block.kick();
        if unknown {
            self.estimate.exit_more_likely();
        }
        if exited {
            self.estimate.no_cooperation();
        }
    }
}

impl Anticipatory {
    /// The request to dispatch now, or [`NIL`]: the next of the batch, unless it is better to wait or to change the kind.
    fn select<H: Home>(&mut self, block: &mut Block<H>) -> Slot {
        let (sync_waits, async_waits) = (!self.sides[SYNC].is_empty(), !self.sides[ASYNC].is_empty());
        if self.side == ASYNC && !sync_waits && (self.current_write_count == 0 || !async_waits) {
            self.write_batch_idled = true;
        }
        if (!sync_waits && !async_waits) || self.is_waiting() || self.changed {
            return NIL;
        }
        if !(sync_waits && async_waits && self.batch_expired(block.ticks())) {
            let next = self.next[self.side & 1];
            if self.side == SYNC && self.tunables.antic_expire > 0 {
                if self.check_fifo(block, SYNC) {
                    return self.overdue(block, SYNC);
                }
                if self.can_anticipate(block, next) {
                    self.start_waiting(block);
                    return NIL;
                }
            }
            if next != NIL {
                if sync_waits && !async_waits {
                    self.batch_expires = block.ticks().saturating_add(self.tunables.batch_expire[SYNC]);
                }
                return self.unless_overdue(block, next);
            }
        }
        let next = self.change_side(block, sync_waits, async_waits);
        self.unless_overdue(block, next)
    }

    /// Begins a batch of the other kind, or goes on with sync requests if there are no others.
    fn change_side<H: Home>(&mut self, block: &mut Block<H>, sync_waits: bool, async_waits: bool) -> Slot {
        if sync_waits && !(async_waits && self.side == SYNC) {
            if self.side == ASYNC {
                self.changed = true;
            }
            self.side = SYNC;
            self.last_check[SYNC] = block.ticks();
            block.note(|_| Note::Batch { op: Op::Read });
            return self.sides[SYNC].oldest();
        }
        if self.side == SYNC {
            self.changed = true;
            self.new_batch = false;
        }
        self.side = ASYNC;
        self.current_write_count = self.write_batch_count;
        self.write_batch_idled = false;
        block.note(|_| Note::Batch { op: Op::Write });
        self.next[ASYNC]
    }

    fn unless_overdue<H: Home>(&mut self, block: &mut Block<H>, request: Slot) -> Slot {
        let side = self.side & 1;
        if self.check_fifo(block, side) { self.overdue(block, side) } else { request }
    }

    fn overdue<H: Home>(&mut self, block: &mut Block<H>, side: usize) -> Slot {
        let oldest = self.sides[side & 1].oldest();
        block.note(|block| Note::Overdue { token: block.table.requests[oldest].token });
        oldest
    }

    /// Whether the oldest request of a kind is overdue; looked at no more often than requests of that kind expire.
    fn check_fifo<H: Home>(&mut self, block: &Block<H>, side: usize) -> bool {
        let (now, side) = (block.ticks(), side & 1);
        if now.saturating_sub(self.last_check[side]) < self.tunables.expire[side] {
            return false;
        }
        self.last_check[side] = now;
        self.sides[side].is_overdue(block, now)
    }

    fn batch_expired(&self, now: u64) -> bool {
        if self.changed || self.new_batch {
            return false;
        }
        now > self.batch_expires || (self.side == ASYNC && self.current_write_count == 0)
    }

    fn move_to_dispatch<H: Home>(&mut self, block: &mut Block<H>, request: Slot) {
        let entry = &block.table.requests[request];
        let (side, context, end) = (side_of(entry), entry.context, entry.end());
        self.stop_waiting(block);
        self.status = Status::Off;
        self.last_sector[side] = end;
        if side == SYNC {
            self.await_context(block, context);
        } else {
            self.await_context(block, NIL);
            self.current_write_count = self.current_write_count.saturating_sub(1);
        }
        self.awaited_finished = false;
        self.next[side] = self.neighbour(block, request, side);
        self.sides[side].remove(block, request);
        self.leave_queue(block, request);
        let history = &mut block.context_of(request).history;
        history.dispatched = history.dispatched.saturating_add(1);
        block.dispatch_sort(request);
        self.dispatched = self.dispatched.saturating_add(1);
    }

    /// Of the requests around one that leaves, the nearer to the head; above the highest the lowest comes.
    fn neighbour<H: Home>(&self, block: &Block<H>, request: Slot, side: usize) -> Slot {
        CHOOSER.neighbour(block, self.sides[side & 1].tree(), request, self.last_sector[side & 1])
    }

    /// A queued request of the same kind and first sector goes to the dispatch list.
    #[inline]
    fn dispatch_alias<H: Home>(&mut self, block: &mut Block<H>, request: Slot, side: usize) {
        sorted_fifo::move_alias(
            self,
            block,
            request,
            |elevator| elevator.sides[side & 1].tree_mut(),
            Self::move_to_dispatch,
        );
    }

    fn leave_queue<H: Home>(&mut self, block: &mut Block<H>, request: Slot) {
        let history = &mut block.context_of(request).history;
        history.queued = history.queued.saturating_sub(1);
    }

    fn note_completion<H: Home>(&mut self, block: &mut Block<H>, request: Slot) {
        let now = block.ticks();
        let history = &mut block.context_of(request).history;
        history.marks |= COMPLETED;
        history.last_end = now;
    }

    fn drain<H: Home>(&mut self, block: &mut Block<H>) -> u32 {
        self.side = SYNC;
        self.changed = false;
        self.new_batch = false;
        let mut moved = 0u32;
        for side in [SYNC, ASYNC] {
            while !self.sides[side].is_empty() {
                let next = if self.next[side] == NIL { self.sides[side].lowest() } else { self.next[side] };
                self.move_to_dispatch(block, next);
                moved = moved.saturating_add(1);
            }
            self.last_check[side] = block.ticks();
        }
        moved
    }

    /// Fits the length of a batch of writes to the time that the last one took, at the first read completed after it.
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

    fn can_anticipate<H: Home>(&mut self, block: &mut Block<H>, request: Slot) -> bool {
        self.awaited != NIL && self.status != Status::Finished && !self.breaks(block, request)
    }

    fn start_waiting<H: Home>(&mut self, block: &mut Block<H>) {
        if self.status != Status::Off {
            return;
        }
        if self.awaited == NIL || self.awaited_finished {
            self.wait_for_next(block);
        } else {
            self.status = Status::WaitRequest;
        }
    }

    fn wait_for_next<H: Home>(&mut self, block: &mut Block<H>) {
        let until = self.antic_start.saturating_add(self.tunables.antic_expire);
        block.arm_at_tick(Timer::Idle, until);
        self.status = Status::WaitNext;
        let pid = block.table.contexts[self.awaited].pid;
        block.note(|block| Note::Anticipate { pid, until_ns: block.clock.time_of_tick(until) });
    }

    fn stop_waiting<H: Home>(&mut self, block: &mut Block<H>) {
        if !self.is_waiting() {
            return;
        }
        block.timers.cancel(Timer::Idle);
        self.status = Status::Finished;
        block.kick();
    }

    /// Makes `context` the one that the elevator may wait for, and keeps its entry meanwhile.
    fn await_context<H: Home>(&mut self, block: &mut Block<H>, context: Slot) {
        if self.awaited != context {
            block.hold_context(context);
            block.unhold_context(self.awaited);
            self.awaited = context;
        }
    }
}

#[inline]
fn side_of(request: &Request) -> usize {
    if request.is_sync() { SYNC } else { ASYNC }
}
