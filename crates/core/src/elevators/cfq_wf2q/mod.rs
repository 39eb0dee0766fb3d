//! CFQ's time slices scheduled by WF2Q+: "cfq-wf2q", an idea from the discussion of BFQ in 2008. No
//! kernel had it.
//!
//! The idea: each context has the disk for a slice of time, as in CFQ, but WF2Q+ selects the next
//! context, and a context is charged the time that its slice actually took. A queue is eligible
//! when its virtual start has come (`S <= V`); of the eligible queues the one with the least
//! virtual finish `F = S + slice / weight` is next. An unused rest of a slice is not lost, an
//! overrun makes the queue wait longer, and no queue falls behind its share by more than about a
//! slice. Groups have weights among the contexts and groups beside them.
//!
//! `turns` has the path of a request. This file defines a turn: a slice of time. The state is in
//! [`Time`].

mod tunables;

use crate::clock::Clock;
use crate::collections::{NIL, Slot};
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::HostTypes;
use crate::elevators::shared::slice_tunables::SliceTunables;
use crate::elevators::shared::turns::{Measure, Turns};
use crate::elevators::shared::wf2q::{IDLE, Rules};
use crate::event::{Expiry, Note};
use crate::priority::{Class, LEVELS, Priority};

pub(crate) use tunables::INFO;
use tunables::{SLICE_SCALING, Tunables};

/// The weight of level 7; level 0 has eight times as much. The default weight of a group is 100.
const WEIGHT_STEP: u32 = 10;

/// The elevator.
pub(crate) type CfqWf2q<H> = Turns<H, Time>;

/// The measure of turns in microseconds.
#[derive(Debug)]
pub(crate) struct Time {
    /// The time up to which the active queue was charged, in ns since boot.
    accounted_ns: u64,
    tunables: Tunables,
}

/// The weight of a queue. By frequency: 80 at level 0, 10 at level 7. By length: 90 and 20, as
/// slices are 180 % and 40 %.
pub(crate) fn weight_of(priority: Priority, scales_length: bool) -> u32 {
    let best = if scales_length { LEVELS.saturating_add(1) } else { LEVELS };
    u32::from(best.saturating_sub(priority.level())).max(1).saturating_mul(WEIGHT_STEP)
}

impl Measure for Time {
    const GROUPS: bool = true;
    const MANY_BATCHES: bool = false;
    type Own = ();

    fn new(clock: &Clock) -> Self {
        Time { accounted_ns: 0, tunables: Tunables::defaults(clock) }
    }

    fn rules() -> Rules {
        Rules { exact_search: true, keeps_time: true, idle_guarantee: None }
    }

    fn shared(&self) -> &SliceTunables {
        &self.tunables.shared
    }

    fn tunable(&self, index: usize) -> i64 {
        self.tunables.shared.get(index)
    }

    fn set_tunable<H: HostTypes>(turns: &mut CfqWf2q<H>, core: &mut QueueCore<H>, index: usize, value: i64) {
        turns.measure.tunables.set(&core.clock, index, value);
        if index == SLICE_SCALING {
            turns.update_weights();
        }
    }

    fn weight_of(&self, priority: Priority) -> u32 {
        weight_of(priority, self.tunables.scales_length)
    }

    fn async_quantum(&self) -> u32 {
        self.tunables.shared.quantum
    }

    fn begin_with<H: HostTypes>(_: &mut CfqWf2q<H>, _: Slot) {}

    /// Charges the active queue for the time in which the disk works or idles for it.
    fn account<H: HostTypes>(turns: &mut CfqWf2q<H>, core: &QueueCore<H>) {
        let (slot, now_ns) = (turns.active, core.ktime_ns());
        let queue = &turns.queues[slot];
        if slot == NIL || (queue.in_flight == 0 && !queue.wait_request) {
            turns.measure.accounted_ns = now_ns;
            return;
        }
        let us = now_ns.saturating_sub(turns.measure.accounted_ns) / 1000;
        // Less than a microsecond remains for the next call.
        let accounted_ns = turns.measure.accounted_ns.saturating_add(us.saturating_mul(1000));
        turns.measure.accounted_ns = accounted_ns;
        if us > 0 {
            turns.engine.charge(slot, us);
        }
    }

    /// Grants its slice, in us.
    fn grant_budget<H: HostTypes>(turns: &mut CfqWf2q<H>, core: &QueueCore<H>, slot: Slot) {
        let queue = &turns.queues[slot];
        let ticks = turns.measure.tunables.slice_of(queue.is_sync(), queue.priority);
        turns.engine.entities[slot].budget = core.clock.ns_of_ticks(ticks) / 1000;
    }

    fn charge_of<H: HostTypes>(_: &QueueCore<H>, _: Slot) -> u64 {
        0
    }

    fn begin_turn<H: HostTypes>(turns: &mut CfqWf2q<H>, core: &mut QueueCore<H>) {
        let (name, us) = (turns.queues[turns.active].name(), turns.left(turns.active));
        turns.measure.accounted_ns = core.ktime_ns();
        core.note(|core| {
            let until_ns = core.clock.now_ns().saturating_add(us.saturating_mul(1000));
            Note::SliceSet { queue: name, until_ns }
        });
    }

    /// Returns true if its slice is used up; for the idle class, as soon as another queue has
    /// requests.
    fn is_over<H: HostTypes>(turns: &CfqWf2q<H>, _: &QueueCore<H>) -> bool {
        let (slot, entity) = (turns.active, &turns.engine.entities[turns.active]);
        let yields = entity.class == IDLE && entity.service > 0 && turns.queues[slot].in_flight == 0;
        turns.left(slot) == 0 || (yields && turns.busy_queues > 1)
    }

    fn until_ns<H: HostTypes>(turns: &CfqWf2q<H>, core: &QueueCore<H>) -> Option<u64> {
        let left_ns = turns.left(turns.active).saturating_mul(1000);
        Some(core.clock.host_ns(turns.measure.accounted_ns.saturating_add(left_ns)))
    }

    fn end_turn<H: HostTypes>(turns: &mut CfqWf2q<H>, core: &mut QueueCore<H>, _: Expiry, _: bool, _: Option<u64>) {
        let slot = turns.active;
        let (name, left_us, used_us) =
            (turns.queues[slot].name(), turns.left(slot), turns.engine.entities[slot].service);
        core.note(|_| Note::SliceExpired { queue: name, left_ns: left_us.saturating_mul(1000), preempted: false });
        core.note(|_| Note::Charge { queue: name, amount: used_us });
        if turns.queues[slot].next != NIL {
            Self::grant_budget(turns, core, slot);
        }
        turns.end_service(core);
    }

    /// Ends the turn at the end of the slice, or keeps the disk idle, after the last in-flight
    /// request.
    fn completed<H: HostTypes>(turns: &mut CfqWf2q<H>, core: &mut QueueCore<H>, request: Slot) {
        let queue = &turns.queues[turns.active];
        if queue.in_flight > 0 {
            return;
        }
        let empty = queue.next == NIL;
        if Self::is_over(turns, core) {
            Self::end_turn(turns, core, Expiry::TimedOut, false, None);
        } else if empty && !(core.tables.requests[request].is_sync() && turns.arm_idle(core, request)) {
            Self::end_turn(turns, core, Expiry::NoMoreRequests, false, None);
        }
    }
}

impl Tunables {
    /// The slice of a queue, in ticks. The idle class has level 7.
    fn slice_of(&self, sync: bool, priority: Priority) -> u64 {
        let even = self.shared.slice[usize::from(sync)];
        if !self.scales_length {
            return even;
        }
        let level = if priority.class() == Class::Idle { LEVELS.saturating_sub(1) } else { priority.level() };
        self.shared.slice_of(sync, level).max(1)
    }
}
