//! Who has the disk, with what budget and for how long, when it is kept idle, and what is learnt of the disk's rate.

use super::{BfqV0, SYNC};
use crate::clock::Timer;
use crate::elevators::wf2q::IDLE;
use crate::event::{Expiry, Note};
use crate::parts::{NIL, Slot};
use crate::queue::block::Block;
use crate::storage::Home;

/// The greatest budget until the disk's rate is known, in sectors: 8 MiB.
pub(super) const DEFAULT_MAX_BUDGET: u64 = 16 * 1024;
/// A decaying count of slots reaches this with the 11th: until then a queue's budgets are reckoned from the default.
const SLOTS_KNOWN: u32 = 194;
/// By how much a budget grows that was used up, in sectors.
const BUDGET_STEP: u64 = 1024;
/// By how much one shrinks whose queue kept the disk waiting, in sectors.
const BUDGET_STEP_BACK: u64 = 128;
/// Rates are sectors a microsecond, times 2^16.
const RATE_SHIFT: u32 = 16;
/// Slots that are shorter say nothing about a queue's speed, in us.
const SLOT_MIN_US: u64 = 100;
/// Slots that are longer say something about the disk's, in us.
const LONG_SLOT_US: u64 = 20_000;
/// So many long slots have to be seen before the rate counts.
const RATE_SAMPLES: u32 = 32;
/// A mean seek distance from which a process counts as seeky, in sectors.
pub(super) const SEEKY_SECTORS: u64 = 8192;
/// How long a seeky process is waited for at most.
const SEEKY_IDLE_MS: u64 = 2;
/// A mean seek distance that a penalty of 1 halves budgets for, in sectors: 512 MiB.
const PENALTY_SECTORS: u64 = 1 << 20;

impl<H: Home> BfqV0<H> {
    /// The queue to dispatch from now, or [`NIL`] to wait.
    pub(super) fn select(&mut self, block: &mut Block<H>) -> Slot {
        let slot = self.active;
        if slot == NIL {
            return self.activate_next(block);
        }
        if self.is_timed_out(block, slot) {
            if !self.tunables.timeout_fixed {
                self.charge_whole(block, slot);
            }
            self.expire(block, Expiry::TimedOut, None);
            return self.activate_next(block);
        }
        let queue = &self.queues[slot];
        if queue.next != NIL {
            if self.charge_of(block, queue.next) <= self.left(slot) {
                return slot;
            }
            self.expire(block, Expiry::Exhausted, None);
            return self.activate_next(block);
        }
        if queue.wait_request || (queue.in_flight > 0 && queue.idle_window) {
            return NIL;
        }
        self.expire(block, Expiry::NoMoreRequests, None);
        self.activate_next(block)
    }

    /// Gives the disk to the queue whose turn it is.
    fn activate_next(&mut self, block: &mut Block<H>) -> Slot {
        debug_assert!(self.active == NIL);
        let slot = self.engine.flat_select();
        self.active = slot;
        if slot == NIL {
            return NIL;
        }
        let queue = &mut self.queues[slot];
        debug_assert!(queue.busy && queue.next != NIL, "a queue that waits for its turn has requests");
        queue.fifo_checked = false;
        queue.clock_started = None;
        queue.slots = queue.slots.saturating_mul(7).saturating_add(256) / 8;
        let (name, level) = (queue.name(), queue.priority.level());
        block.note(|_| Note::Activate { queue: name, level });
        slot
    }

    /// What a request uses up of its queue's budget, in sectors.
    pub(super) fn charge_of(&self, block: &Block<H>, request: Slot) -> u64 {
        u64::from(block.table.requests[request].sectors)
    }

    /// What is left of a queue's budget.
    pub(super) fn left(&self, slot: Slot) -> u64 {
        let entity = &self.engine.entities[slot];
        entity.budget.saturating_sub(entity.service)
    }

    /// A queue that does not have the disk gets the budget that it is to have it for: enough for its next request.
    pub(super) fn grant_budget(&mut self, block: &Block<H>, slot: Slot) {
        let queue = &self.queues[slot];
        let needed = self.charge_of(block, queue.next);
        let mut budget = queue.max_budget;
        if self.tunables.seek_penalty > 0 && queue.is_sync() && queue.seek_mean > SEEKY_SECTORS {
            // At a penalty of 1: half of it for a mean distance of 512 MiB, a fifth for 2 GiB.
            let farther = queue.seek_mean.saturating_mul(self.tunables.seek_penalty);
            let share = PENALTY_SECTORS.saturating_mul(budget) / PENALTY_SECTORS.saturating_add(farther).max(1);
            budget = share;
        }
        self.engine.entities[slot].budget = budget.max(needed);
    }

    /// The rest of its budget counts as used.
    fn charge_whole(&mut self, block: &mut Block<H>, slot: Slot) {
        let left = self.left(slot);
        self.engine.charge(slot, left);
        let name = self.queues[slot].name();
        block.note(|_| Note::Charge { queue: name, amount: left });
    }

    fn is_timed_out(&self, block: &Block<H>, slot: Slot) -> bool {
        let queue = &self.queues[slot];
        let [asynchronous, sync] = self.tunables.timeout;
        let timeout = if queue.is_sync() { sync } else { asynchronous };
        queue.clock_started.is_some_and(|(tick, _)| block.ticks() >= tick.saturating_add(timeout))
    }

    /// Takes the disk from the queue that has it. `idle_since_ns`: it is because the disk was idle since then, in ns since boot.
    pub(super) fn expire(&mut self, block: &mut Block<H>, reason: Expiry, idle_since_ns: Option<u64>) {
        let slot = self.active;
        let mut reason = reason;
        let slow = self.measure(block, slot, idle_since_ns);
        if slow && reason == Expiry::TooIdle {
            reason = Expiry::TimedOut;
        }
        if reason == Expiry::TimedOut || !self.queues[slot].is_sync() {
            self.charge_whole(block, slot);
        }
        let (name, entity) = (self.queues[slot].name(), self.engine.entities[slot]);
        let (served, budget) = (entity.service, entity.budget);
        block.note(|_| Note::BudgetExpired { queue: name, reason, served, budget });
        self.learn_budget(block, slot, reason);
        self.leave_disk(block);
    }

    /// The queue that has the disk goes back among those that wait, or leaves them if it has no requests.
    pub(super) fn leave_disk(&mut self, block: &mut Block<H>) {
        let slot = core::mem::replace(&mut self.active, NIL);
        if slot == NIL {
            return;
        }
        block.timers.cancel(Timer::Idle);
        self.queues[slot].wait_request = false;
        if self.queues[slot].next == NIL {
            self.set_busy(slot, false);
            self.engine.flat_deactivate(slot, true);
        } else {
            self.engine.flat_requeue(slot);
        }
    }

    /// What a queue's last slot says about the budget for its next.
    fn learn_budget(&mut self, block: &Block<H>, slot: Slot, reason: Expiry) {
        let (max, least) = (self.max_budget, self.max_budget / 2);
        let queue = &self.queues[slot];
        let (old, known) = (queue.max_budget, queue.slots >= SLOTS_KNOWN);
        let mut new = match reason {
            _ if !queue.is_sync() => max,
            Expiry::TooIdle if old > least.saturating_add(BUDGET_STEP_BACK) => old.saturating_sub(BUDGET_STEP_BACK),
            Expiry::TooIdle => least,
            Expiry::TimedOut => self.default_budget(slot),
            Expiry::Exhausted => old.saturating_add(BUDGET_STEP).min(max),
            Expiry::NoMoreRequests | Expiry::Preempted => return,
        };
        if known && self.tunables.max_budget == 0 {
            new = new.min(max);
        }
        self.queues[slot].max_budget = new;
        if self.queues[slot].next != NIL {
            self.grant_budget(block, slot);
        }
    }

    /// What a queue starts with: three quarters of the greatest budget.
    pub(super) fn default_budget(&self, slot: Slot) -> u64 {
        let automatic = self.tunables.max_budget == 0;
        let unknown = automatic && self.queues[slot].slots < SLOTS_KNOWN;
        let max = if unknown { DEFAULT_MAX_BUDGET } else { self.max_budget };
        max.saturating_sub(max / 4)
    }

    /// Measures how fast a sync queue was in its slot and how fast the disk can be; answers whether the queue counts as slow.
    fn measure(&mut self, block: &Block<H>, slot: Slot, idle_since_ns: Option<u64>) -> bool {
        let queue = &self.queues[slot];
        let Some((_, started_ns)) = queue.clock_started.filter(|_| queue.is_sync()) else { return false };
        let end_ns = idle_since_ns.unwrap_or_else(|| block.ktime_ns());
        let us = end_ns.saturating_sub(started_ns) / 1000;
        if us < SLOT_MIN_US {
            return false;
        }
        let entity = self.engine.entities[slot];
        let rate = entity.service.saturating_mul(1 << RATE_SHIFT) / us.max(1);
        if us > LONG_SLOT_US {
            let faster = rate > self.rate;
            self.rate = self.rate.max(rate);
            let complete = self.rate_samples < RATE_SAMPLES && self.rate_samples.saturating_add(1) == RATE_SAMPLES;
            self.rate_samples = self.rate_samples.saturating_add(1).min(RATE_SAMPLES);
            if complete || (faster && self.rate_samples == RATE_SAMPLES) {
                self.set_max_budget(block);
            }
        }
        let expected = self.moved_in_timeout(block, rate);
        if self.tunables.slow_fixed { expected < entity.budget } else { expected > entity.budget }
    }

    /// Sectors that are moved at a rate in the time that a sync queue has.
    fn moved_in_timeout(&self, block: &Block<H>, rate: u64) -> u64 {
        let ms = block.clock.ms_of_ticks(self.tunables.timeout[SYNC]);
        rate.saturating_mul(1000).saturating_mul(ms) >> RATE_SHIFT
    }

    /// Reckons the greatest budget anew: as set, or from the disk's rate, if that is known.
    pub(super) fn set_max_budget(&mut self, block: &Block<H>) {
        self.max_budget = if self.tunables.max_budget != 0 {
            self.tunables.max_budget
        } else if self.rate_samples < RATE_SAMPLES {
            DEFAULT_MAX_BUDGET
        } else {
            let moved = self.moved_in_timeout(block, self.rate);
            moved.saturating_sub(moved / 4)
        };
    }

    /// A request of the queue that has the disk is done: its time begins or is over, or the disk is kept idle for it.
    pub(super) fn completed_in_service(&mut self, block: &mut Block<H>, request: Slot) {
        let slot = self.active;
        let now = (block.ticks(), block.ktime_ns());
        self.queues[slot].clock_started.get_or_insert(now);
        if self.is_timed_out(block, slot) {
            self.expire(block, Expiry::TimedOut, None);
        } else if block.table.requests[request].is_sync() && self.in_driver == 0 && self.queues[slot].next == NIL {
            self.arm_idle(block, request);
        }
    }

    /// Keeps the disk idle for the next request of the process that this request was of.
    fn arm_idle(&mut self, block: &mut Block<H>, request: Slot) {
        let context = block.context_of(request);
        let (running, seek) = (context.is_running(), context.history.seek);
        let queue = &mut self.queues[self.active];
        let mut wait = self.tunables.shared.slice_idle;
        if !running || !queue.idle_window || wait == 0 {
            return;
        }
        if seek.is_valid() && seek.mean > SEEKY_SECTORS {
            wait = wait.min(block.clock.ticks_of_ms(SEEKY_IDLE_MS));
        }
        queue.wait_request = true;
        let (name, until) = (queue.name(), block.ticks().saturating_add(wait));
        self.idle_since_ns = block.ktime_ns();
        block.arm_at_tick(Timer::Idle, until);
        block.note(|block| Note::IdleArmed { queue: name, until_ns: block.clock.time_of_tick(until) });
    }

    /// The wait for the next request of the queue that has the disk is over.
    pub(super) fn idle_over(&mut self, block: &mut Block<H>) {
        let slot = self.active;
        if slot != NIL {
            let name = self.queues[slot].name();
            block.note(|_| Note::IdleTimeout { queue: name });
            let reason = if self.is_timed_out(block, slot) { Expiry::TimedOut } else { Expiry::TooIdle };
            self.expire(block, reason, Some(self.idle_since_ns));
        }
        self.kick(block);
    }

    /// A request has come: learn from it how its process behaves, and whether the disk may be kept idle for it.
    pub(super) fn update_habits(&mut self, block: &mut Block<H>, slot: Slot, request: Slot) {
        let (now, idle) = (block.ticks(), self.tunables.shared.slice_idle);
        let (sector, end) = (block.table.requests[request].sector, block.table.requests[request].end());
        let context = block.context_of(request);
        let running = context.is_running();
        let history = &mut context.history;
        history.think.add_think(now.saturating_sub(history.last_end).min(idle.saturating_mul(2)));
        let first = history.last_position == 0;
        history.seek.add_seek_clipped(if first { 0 } else { sector.abs_diff(history.last_position) });
        history.last_position = end;
        let queue = &mut self.queues[slot];
        if !queue.is_sync() {
            return;
        }
        queue.seek_mean = history.seek.mean;
        if self.engine.entities[slot].class == IDLE {
            return;
        }
        if !running || idle == 0 || (self.hw_tag && history.seek.mean > SEEKY_SECTORS) {
            queue.idle_window = false;
        } else if history.think.is_valid() {
            queue.idle_window = history.think.mean <= idle;
        }
    }
}
