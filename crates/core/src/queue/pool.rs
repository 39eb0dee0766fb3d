//! The request pool: its size per direction, batching beyond it, and the processes that sleep for a
//! request.

use super::{RequestQueue, direction};
use crate::bio::{Bio, Op};
use crate::collections::{Arena, Count, List, Slot};
use crate::context::{Context, ContextId, Sleep, SleepingContexts};
use crate::elevator::tables::{DeferredWork, HostTypes};
use crate::elevator::{Elevator, MayQueue};
use core::ops::DerefMut;

/// The minimum pool size per direction.
pub(super) const SIZE_MIN: u32 = 4;
/// The allocations that a batcher may make from a full pool.
const BATCH_REQUESTS: u8 = 32;
/// The time for which a process remains a batcher, in ms.
const BATCH_MS: u64 = 20;

/// The pool. Reads and writes are counted separately.
#[derive(Debug, Default)]
pub(super) struct Pool {
    /// The size per direction; `None` limits it only by the storage.
    size: Option<u32>,
    sides: [Side; 2],
    /// The elevator denied the last allocation, for a reason that may not apply to other processes.
    denied: bool,
}

#[derive(Debug, Default)]
struct Side {
    count: u32,
    /// The pool is full: only batchers may allocate.
    full: bool,
    waiters: List<SleepingContexts>,
    /// The number of sleeping processes.
    sleeping: u32,
    /// Further wake-ups allowed because a woken process could not allocate: each process at most
    /// once for a freed request.
    passes: u32,
}

impl Pool {
    /// Sets the size per direction, at least 4.
    pub fn set_size(&mut self, size: Option<u32>) {
        self.size = size.map(|n| n.max(SIZE_MIN));
    }

    /// Requests allocated in both directions.
    pub fn allocated(&self) -> u32 {
        let [reads, writes] = &self.sides;
        reads.count.saturating_add(writes.count)
    }

    /// Requests allocated in the direction of an operation, and the limit if there is one.
    pub fn use_of(&self, op: Op) -> (u32, Option<u32>) {
        (self.sides.get(direction(op)).map_or(0, |side| side.count), self.size)
    }

    /// Counts a request of this operation as allocated.
    #[inline]
    pub fn count(&mut self, op: Op) {
        if let Some(side) = self.sides.get_mut(direction(op)) {
            side.count.increment();
        }
    }

    pub fn add_waiter<S: DerefMut<Target = [Context]>>(
        &mut self,
        contexts: &mut Arena<Context, S>,
        context: Slot,
        side: usize,
    ) {
        if let (Some(&sleep), Some(side)) = (Sleep::SLEEPS.get(side), self.sides.get_mut(side)) {
            contexts[context].sleep = sleep;
            side.waiters.push_back(contexts, context);
            side.sleeping.increment();
        }
    }
}

impl<H: HostTypes> RequestQueue<H> {
    /// Allocates a request for this context if the pool's rules allow it. A woken process becomes a
    /// batcher first.
    #[inline]
    pub(super) fn allocate_from_pool(&mut self, context: Slot, bio: &Bio, woken: bool) -> bool {
        match self.pool.size {
            Some(size) => self.allocate_from_limited_pool(size, context, bio, woken),
            None => {
                self.pool.count(bio.op);
                true
            }
        }
    }

    #[inline(never)]
    fn allocate_from_limited_pool(&mut self, size: u32, context: Slot, bio: &Bio, woken: bool) -> bool {
        if self.rules.multi_queue {
            return self.take_tag(size, bio);
        }
        if woken {
            self.make_batcher(context);
        }
        self.core.bio_flags = bio.flags;
        self.try_allocate(context, bio.op)
    }

    /// Allocates a tag (multi-queue). The tags are one pool; the elevator may limit the part for
    /// this bio.
    fn take_tag(&mut self, size: u32, bio: &Bio) -> bool {
        let limit = self.elevator.depth_limit(&self.core, size, bio).clamp(1, size.max(1));
        let free = self.pool.allocated() < limit;
        self.pool.denied = !free;
        if free {
            self.pool.count(bio.op);
        }
        free
    }

    fn try_allocate(&mut self, context: Slot, op: Op) -> bool {
        let may = self.elevator.may_queue(&mut self.core, context, op);
        let Some(size) = self.pool.size else { return true };
        self.pool.denied = may == MayQueue::No;
        if self.pool.denied {
            return false;
        }
        let Some(side) = self.pool.sides.get(direction(op)) else { return false };
        let (count, full) = (side.count, side.full);
        let reaches_size = count.saturating_add(1) >= size;
        if reaches_size {
            if !full {
                self.make_batcher(context);
                if let Some(side) = self.pool.sides.get_mut(direction(op)) {
                    side.full = true;
                }
            } else if may != MayQueue::Must && !self.is_batcher(context) {
                return false;
            }
        }
        if count >= size.saturating_mul(3) / 2 {
            return false;
        }
        self.pool.count(op);
        if reaches_size && self.is_batcher(context) {
            let credit = &mut self.core.tables.contexts[context].batch_credit;
            credit.decrement();
        }
        true
    }

    /// Releases a request. One process sleeping for its direction is woken if the pool is no longer
    /// over its size.
    #[inline]
    pub(super) fn free_to_pool(&mut self, op: Op) {
        let index = direction(op);
        if let Some(side) = self.pool.sides.get_mut(index) {
            side.count.decrement();
        }
        if self.pool.size.is_some() {
            self.wake_after_release(index);
        }
    }

    #[inline(never)]
    fn wake_after_release(&mut self, index: usize) {
        for side in &mut self.pool.sides {
            side.passes = side.sleeping.saturating_sub(1);
        }
        self.wake_one(index);
        if self.rules.multi_queue {
            // A tag serves either direction, and the first woken process may not be allowed to take
            // it.
            self.wake_one(index ^ 1);
        }
    }

    /// Removes a process from the sleepers, or cancels its wake-up and wakes another process
    /// instead.
    pub(super) fn stop_sleeping(&mut self, context: Slot) {
        let [reads, writes] = &mut self.pool.sides;
        let contexts = &mut self.core.tables.contexts;
        match core::mem::take(&mut contexts[context].sleep) {
            Sleep::Awake => {}
            Sleep::ForRead => {
                reads.waiters.remove(contexts, context);
                reads.sleeping.decrement();
            }
            Sleep::ForWrite => {
                writes.waiters.remove(contexts, context);
                writes.sleeping.decrement();
            }
            Sleep::WokenForRead => self.wake_one(0),
            Sleep::WokenForWrite => self.wake_one(1),
        }
    }

    /// Returns true if a process was woken and has not resubmitted.
    pub(super) fn is_woken(&self, id: ContextId) -> bool {
        let context = &self.core.tables.contexts[id.slot];
        context.generation == id.generation && context.sleep.is_woken()
    }

    /// Handles a woken process that was denied again and sleeps at the end of the list: the wake-up
    /// passes to the next process.
    pub(super) fn pass_wakeup_on(&mut self, op: Op) {
        let index = direction(op);
        let Some(side) = self.pool.sides.get_mut(index) else { return };
        if side.passes > 0 && self.pool.denied {
            side.passes.decrement();
            self.wake_one(index);
        }
    }

    fn wake_one(&mut self, index: usize) {
        let (Some(size), Some(side)) = (self.pool.size, self.pool.sides.get_mut(index)) else { return };
        if side.count.saturating_add(1) > size && !self.rules.multi_queue {
            return;
        }
        side.full = false;
        let slot = side.waiters.pop_front(&mut self.core.tables.contexts);
        if slot != crate::collections::NIL {
            side.sleeping.decrement();
            let context = &mut self.core.tables.contexts[slot];
            context.sleep = Sleep::WOKEN.get(index).copied().unwrap_or_default();
            let generation = context.generation;
            self.core.work.push(DeferredWork::Wake(ContextId { slot, generation }));
        }
    }

    fn is_batcher(&self, context: Slot) -> bool {
        let limit = self.core.clock.ticks_of_ms(BATCH_MS);
        let context = &self.core.tables.contexts[context];
        let in_time = self.core.ticks() < context.last_waited.saturating_add(limit);
        context.batch_credit == BATCH_REQUESTS || (context.batch_credit > 0 && in_time)
    }

    fn make_batcher(&mut self, context: Slot) {
        if self.is_batcher(context) {
            return;
        }
        let ticks = self.core.ticks();
        let context = &mut self.core.tables.contexts[context];
        context.batch_credit = BATCH_REQUESTS;
        context.last_waited = ticks;
    }
}
