//! The pool of requests: how many a direction there may be, who may go beyond, who sleeps and who is woken.

use super::{RequestQueue, direction};
use crate::bio::Op;
use crate::context::{Context, ContextId, Sleep, Waiting};
use crate::elevators::{Elevator, MayQueue};
use crate::parts::{List, Slot};
use crate::storage::{Home, Work};
use core::ops::{Index, IndexMut};

/// A batcher may make this many allocations from a full pool ...
const BATCH_REQUESTS: u32 = 32;
/// ... within this time of becoming one.
const BATCH_MS: u64 = 20;

/// The pool: reads and writes are counted apart.
#[derive(Debug)]
pub(super) struct Pool {
    /// The size a direction; without one, only the storage limits.
    size: Option<u32>,
    sides: [Side; 2],
}

#[derive(Debug, Default)]
struct Side {
    count: u32,
    /// The pool has run out: only batchers get more.
    full: bool,
    waiters: List<Waiting>,
}

impl Pool {
    pub fn new(size: Option<u32>) -> Pool {
        Pool { size: size.map(|n| n.max(4)), sides: [Side::default(), Side::default()] }
    }

    /// Requests allocated in both directions.
    pub fn allocated(&self) -> u32 {
        let [reads, writes] = &self.sides;
        reads.count.saturating_add(writes.count)
    }

    fn count_one(&mut self, side: usize) {
        if let Some(side) = self.sides.get_mut(side) {
            side.count = side.count.saturating_add(1);
        }
    }

    pub fn add_waiter<A>(&mut self, contexts: &mut A, context: Slot, side: usize)
    where
        A: IndexMut<Slot> + Index<Slot, Output = Context>,
    {
        contexts[context].sleep = Sleep::Asleep(side as u8);
        if let Some(side) = self.sides.get_mut(side) {
            side.waiters.push_back(contexts, context);
        }
    }
}

impl<H: Home> RequestQueue<H> {
    /// Counts a request for this context, if the pool's rules allow it. A woken sleeper becomes a batcher first.
    pub(super) fn allocate_from_pool(&mut self, context: Slot, op: Op, woken: bool) -> bool {
        if self.pool.size.is_none() {
            self.pool.count_one(direction(op));
            return true;
        }
        if woken {
            self.make_batcher(context);
        }
        self.try_allocate(context, op)
    }

    fn try_allocate(&mut self, context: Slot, op: Op) -> bool {
        let may = self.elevator.may_queue(&mut self.block, context, op);
        let Some(size) = self.pool.size else { return true };
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
        self.pool.count_one(direction(op));
        if reaches_size && self.is_batcher(context) {
            let credit = &mut self.block.table.contexts[context].batch_credit;
            *credit = credit.saturating_sub(1);
        }
        true
    }

    /// A request was freed: one sleeper of its direction may go on if the pool is no longer over its size.
    pub(super) fn free_to_pool(&mut self, op: Op) {
        let index = direction(op);
        if let Some(side) = self.pool.sides.get_mut(index) {
            side.count = side.count.saturating_sub(1);
        }
        self.wake_one(index);
    }

    /// A process that sleeps, or was woken and has not gone on, will not: another one may go on in its place.
    pub(super) fn stop_sleeping(&mut self, context: Slot) {
        match core::mem::take(&mut self.block.table.contexts[context].sleep) {
            Sleep::Awake => {}
            Sleep::Asleep(index) => {
                if let Some(side) = self.pool.sides.get_mut(usize::from(index)) {
                    side.waiters.remove(&mut self.block.table.contexts, context);
                }
            }
            Sleep::Woken(index) => self.wake_one(usize::from(index)),
        }
    }

    fn wake_one(&mut self, index: usize) {
        let (Some(size), Some(side)) = (self.pool.size, self.pool.sides.get_mut(index)) else { return };
        if side.count.saturating_add(1) > size {
            return;
        }
        side.full = false;
        let slot = side.waiters.pop_front(&mut self.block.table.contexts);
        if slot != crate::parts::NIL {
            let context = &mut self.block.table.contexts[slot];
            context.sleep = Sleep::Woken(index as u8);
            let generation = context.generation;
            self.block.work.push(Work::Wake(ContextId { slot, generation }));
        }
    }

    fn is_batcher(&self, context: Slot) -> bool {
        let limit = self.block.clock.ticks_of_ms(BATCH_MS);
        let context = &self.block.table.contexts[context];
        let in_time = self.block.ticks() < context.last_waited.saturating_add(limit);
        context.batch_credit == BATCH_REQUESTS || (context.batch_credit > 0 && in_time)
    }

    fn make_batcher(&mut self, context: Slot) {
        if self.is_batcher(context) {
            return;
        }
        let ticks = self.block.ticks();
        let context = &mut self.block.table.contexts[context];
        context.batch_credit = BATCH_REQUESTS;
        context.last_waited = ticks;
    }
}
