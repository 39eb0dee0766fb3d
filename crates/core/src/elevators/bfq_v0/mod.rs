//! The first BFQ: "bfq-v0", the patch posted for discussion in 2008, in Linux 2.6.29 and without
//! control groups.
//!
//! The idea: each context has the disk until it has used up a *budget* of sectors, and B-WF2Q+
//! selects the next context by the service actually received. Shares then follow priorities
//! whatever the budgets are, and budgets can follow throughput: they grow while they are used up,
//! and shrink while a context keeps the disk idle. A context too slow to use up its budget in time
//! is charged all of it, so that slow contexts share time and fast ones bandwidth.
//!
//! `turns` has the path of a request. This file defines a turn: a budget of sectors, its time
//! limit, and the statistics of the queue and of the disk's rate. The state is in [`Sectors`].

mod tunables;

use crate::clock::Clock;
use crate::collections::{NIL, Slot};
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::HostTypes;
use crate::elevators::shared::slice_tunables::SliceTunables;
use crate::elevators::shared::turns::{Measure, SEEKY_SECTORS, SYNC, Turns};
use crate::elevators::shared::wf2q::Rules;
use crate::event::{Expiry, Note};
use crate::priority::{LEVELS, Priority};

pub(crate) use tunables::INFO;
use tunables::Tunables;

/// The maximum budget until the disk's rate is known, in sectors: 8 MiB.
const DEFAULT_MAX_BUDGET: u64 = 16 * 1024;
/// The decaying count of slots from which a queue's budgets no longer follow the default: reached
/// with the 11th slot.
const SLOTS_KNOWN: u32 = 194;
/// The growth of a budget that was used up, in sectors.
const BUDGET_STEP: u64 = 1024;
/// The reduction of a budget whose queue kept the disk idle, in sectors.
const BUDGET_STEP_BACK: u64 = 128;
/// The fixed-point shift of rates in sectors a microsecond.
const RATE_SHIFT: u32 = 16;
/// Shorter slots do not measure a queue's speed, in us.
const SLOT_MIN_US: u64 = 100;
/// Longer slots measure the disk's rate, in us.
const LONG_SLOT_US: u64 = 20_000;
/// The number of long slots before the rate is used.
const RATE_SAMPLES: u32 = 32;
/// The mean seek distance for which a penalty of 1 halves budgets, in sectors: 512 MiB.
const PENALTY_SECTORS: u64 = 1 << 20;

/// The elevator.
pub(crate) type BfqV0<H> = Turns<H, Sectors>;

/// The measure of turns in sectors.
#[derive(Debug)]
pub(crate) struct Sectors {
    /// The maximum budget, in sectors.
    max_budget: u64,
    /// The highest rate seen, in sectors a microsecond times 2^16.
    rate: u64,
    /// The number of slots in which it was measured, up to 32.
    rate_samples: u32,
    tunables: Tunables,
}

/// The data of a queue about its slots.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Slots {
    /// Its budget in sectors, if that suffices for its next request.
    max_budget: u64,
    /// The number of slots granted, as a decaying count: 32 60 84 ... towards 256.
    granted: u32,
    /// The first completion in this slot: tick, and ns since boot.
    clock_started: Option<(u64, u64)>,
    /// The mean seek distance of its context, in sectors.
    seek_mean: u64,
}

/// The weight of a queue: 8 at level 0, 1 at level 7 and in the idle class.
pub(crate) fn weight_of(priority: Priority) -> u32 {
    u32::from(LEVELS.saturating_sub(priority.level())).max(1)
}

impl Measure for Sectors {
    const GROUPS: bool = false;
    const MANY_BATCHES: bool = true;
    type Own = Slots;

    fn new(clock: &Clock) -> Self {
        Sectors { max_budget: DEFAULT_MAX_BUDGET, rate: 0, rate_samples: 0, tunables: Tunables::defaults(clock) }
    }

    fn rules() -> Rules {
        Rules { exact_search: false, keeps_time: false, idle_guarantee: None }
    }

    fn shared(&self) -> &SliceTunables {
        &self.tunables.shared
    }

    fn tunable(&self, index: usize) -> i64 {
        self.tunables.shared.get(index)
    }

    fn set_tunable<H: HostTypes>(turns: &mut BfqV0<H>, core: &mut QueueCore<H>, index: usize, value: i64) {
        turns.measure.tunables.set(&core.clock, index, value);
        turns.engine.rules.exact_search = turns.measure.tunables.search_fixed;
        turns.engine.rules.keeps_time = turns.measure.tunables.time_fixed;
        turns.measure.set_max_budget(core);
    }

    fn weight_of(&self, priority: Priority) -> u32 {
        weight_of(priority)
    }

    fn moves_async_queue(&self) -> bool {
        !self.tunables.async_fixed
    }

    fn async_quantum(&self) -> u32 {
        self.tunables.max_budget_async_rq
    }

    fn begin_with<H: HostTypes>(turns: &mut BfqV0<H>, slot: Slot) {
        let queue = &mut turns.queues[slot];
        queue.own.max_budget = turns.measure.default_budget(&queue.own);
    }

    /// Grants at least enough for the next request.
    fn grant_budget<H: HostTypes>(turns: &mut BfqV0<H>, core: &QueueCore<H>, slot: Slot) {
        let (queue, penalty) = (&turns.queues[slot], turns.measure.tunables.seek_penalty);
        let needed = Self::charge_of(core, queue.next);
        let mut budget = queue.own.max_budget;
        if penalty > 0 && queue.is_sync() && queue.own.seek_mean > SEEKY_SECTORS {
            // With a penalty of 1: half of it for a mean distance of 512 MiB, a fifth for 2 GiB.
            let farther = queue.own.seek_mean.saturating_mul(penalty);
            budget = PENALTY_SECTORS.saturating_mul(budget) / PENALTY_SECTORS.saturating_add(farther).max(1);
        }
        turns.engine.entities[slot].budget = budget.max(needed);
    }

    fn charge_of<H: HostTypes>(core: &QueueCore<H>, request: Slot) -> u64 {
        u64::from(core.tables.requests[request].sectors)
    }

    fn begin_turn<H: HostTypes>(turns: &mut BfqV0<H>, _: &mut QueueCore<H>) {
        let own = &mut turns.queues[turns.active].own;
        own.clock_started = None;
        own.granted = own.granted.saturating_mul(7).saturating_add(256) / 8;
    }

    fn is_over<H: HostTypes>(turns: &BfqV0<H>, core: &QueueCore<H>) -> bool {
        let queue = &turns.queues[turns.active];
        let [asynchronous, sync] = turns.measure.tunables.timeout;
        let timeout = if queue.is_sync() { sync } else { asynchronous };
        queue.own.clock_started.is_some_and(|(tick, _)| core.ticks() >= tick.saturating_add(timeout))
    }

    fn until_ns<H: HostTypes>(turns: &BfqV0<H>, core: &QueueCore<H>) -> Option<u64> {
        let queue = &turns.queues[turns.active];
        let [asynchronous, sync] = turns.measure.tunables.timeout;
        let timeout = if queue.is_sync() { sync } else { asynchronous };
        queue.own.clock_started.map(|(tick, _)| core.clock.time_of_tick(tick.saturating_add(timeout)))
    }

    fn end_turn<H: HostTypes>(
        turns: &mut BfqV0<H>,
        core: &mut QueueCore<H>,
        reason: Expiry,
        in_choice: bool,
        idle_since_ns: Option<u64>,
    ) {
        let slot = turns.active;
        if in_choice && reason == Expiry::TimedOut && !turns.measure.tunables.timeout_fixed {
            // As shipped: the rate is then computed from the charge.
            charge_whole(turns, core);
        }
        let slow = measure(turns, core, idle_since_ns);
        let reason = if slow && reason == Expiry::TooIdle { Expiry::TimedOut } else { reason };
        if reason == Expiry::TimedOut || !turns.queues[slot].is_sync() {
            charge_whole(turns, core);
        }
        let (name, entity) = (turns.queues[slot].name(), turns.engine.entities[slot]);
        let (served, budget) = (entity.service, entity.budget);
        core.note(|_| Note::BudgetExpired { queue: name, reason, served, budget });
        set_next_budget(turns, core, reason);
        turns.end_service(core);
    }

    fn ends_after(&self, sync: bool, idle_class: bool, moved: u32) -> bool {
        idle_class || (!sync && moved >= self.tunables.max_budget_async_rq)
    }

    /// Starts its time limit, ends its turn, or keeps the disk idle for it.
    fn completed<H: HostTypes>(turns: &mut BfqV0<H>, core: &mut QueueCore<H>, request: Slot) {
        let queue = &mut turns.queues[turns.active];
        queue.own.clock_started.get_or_insert((core.ticks(), core.ktime_ns()));
        let empty = queue.next == NIL;
        if Self::is_over(turns, core) {
            Self::end_turn(turns, core, Expiry::TimedOut, false, None);
        } else if core.tables.requests[request].is_sync() && turns.in_driver == 0 && empty {
            turns.arm_idle(core, request);
        }
    }

    fn history_updated(own: &mut Slots, seek_mean: u64) {
        own.seek_mean = seek_mean;
    }
}

impl Sectors {
    /// The initial budget of a queue: three quarters of the maximum.
    fn default_budget(&self, own: &Slots) -> u64 {
        let unknown = self.tunables.max_budget == 0 && own.granted < SLOTS_KNOWN;
        let max = if unknown { DEFAULT_MAX_BUDGET } else { self.max_budget };
        max.saturating_sub(max / 4)
    }

    /// The budget of a queue's next slot after one that ended for this reason; `None` keeps it.
    fn next_budget(&self, own: &Slots, sync: bool, reason: Expiry) -> Option<u64> {
        let (old, max, least) = (own.max_budget, self.max_budget, self.max_budget / 2);
        let new = match reason {
            _ if !sync => max,
            Expiry::TooIdle if old > least.saturating_add(BUDGET_STEP_BACK) => old.saturating_sub(BUDGET_STEP_BACK),
            Expiry::TooIdle => least,
            Expiry::TimedOut => self.default_budget(own),
            Expiry::Exhausted => old.saturating_add(BUDGET_STEP).min(max),
            Expiry::NoMoreRequests | Expiry::Preempted => return None,
        };
        let capped = own.granted >= SLOTS_KNOWN && self.tunables.max_budget == 0;
        Some(if capped { new.min(max) } else { new })
    }

    /// Measures the rate of a slot of this length; the highest rate of a long slot is the disk's
    /// rate.
    fn update_rate<H: HostTypes>(&mut self, core: &QueueCore<H>, rate: u64, us: u64) {
        if us <= LONG_SLOT_US {
            return;
        }
        let faster = rate > self.rate;
        self.rate = self.rate.max(rate);
        let were_enough = self.rate_samples == RATE_SAMPLES;
        self.rate_samples = self.rate_samples.saturating_add(1).min(RATE_SAMPLES);
        if self.rate_samples == RATE_SAMPLES && (faster || !were_enough) {
            self.set_max_budget(core);
        }
    }

    /// The sectors transferred at a rate within the timeout of a sync queue.
    fn moved_in_timeout<H: HostTypes>(&self, core: &QueueCore<H>, rate: u64) -> u64 {
        let ms = core.clock.ms_of_ticks(self.tunables.timeout[SYNC]);
        rate.saturating_mul(1000).saturating_mul(ms) >> RATE_SHIFT
    }

    /// Computes the maximum budget: the tunable's, or from the disk's rate if that is known.
    fn set_max_budget<H: HostTypes>(&mut self, core: &QueueCore<H>) {
        self.max_budget = if self.tunables.max_budget != 0 {
            self.tunables.max_budget
        } else if self.rate_samples < RATE_SAMPLES {
            DEFAULT_MAX_BUDGET
        } else {
            let moved = self.moved_in_timeout(core, self.rate);
            moved.saturating_sub(moved / 4)
        };
    }
}

/// Charges the rest of the active queue's budget.
fn charge_whole<H: HostTypes>(turns: &mut BfqV0<H>, core: &mut QueueCore<H>) {
    let slot = turns.active;
    let left = turns.left(slot);
    turns.engine.charge(slot, left);
    let name = turns.queues[slot].name();
    core.note(|_| Note::Charge { queue: name, amount: left });
}

/// Sets the budget of the active queue's next slot.
fn set_next_budget<H: HostTypes>(turns: &mut BfqV0<H>, core: &QueueCore<H>, reason: Expiry) {
    let queue = &mut turns.queues[turns.active];
    let Some(budget) = turns.measure.next_budget(&queue.own, queue.is_sync(), reason) else { return };
    queue.own.max_budget = budget;
    if queue.next != NIL {
        Sectors::grant_budget(turns, core, turns.active);
    }
}

/// Measures the rate of the active queue in its slot, if it is sync. Returns true if it counts as
/// slow.
fn measure<H: HostTypes>(turns: &mut BfqV0<H>, core: &QueueCore<H>, idle_since_ns: Option<u64>) -> bool {
    let queue = &turns.queues[turns.active];
    let Some((_, started_ns)) = queue.own.clock_started.filter(|_| queue.is_sync()) else { return false };
    let end_ns = idle_since_ns.unwrap_or_else(|| core.ktime_ns());
    let us = end_ns.saturating_sub(started_ns) / 1000;
    if us < SLOT_MIN_US {
        return false;
    }
    let entity = &turns.engine.entities[turns.active];
    let rate = entity.service.saturating_mul(1 << RATE_SHIFT) / us.max(1);
    turns.measure.update_rate(core, rate, us);
    let expected = turns.measure.moved_in_timeout(core, rate);
    // As shipped the comparison is reversed.
    if turns.measure.tunables.slow_fixed { expected < entity.budget } else { expected > entity.budget }
}
