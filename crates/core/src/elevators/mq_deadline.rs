//! mq-deadline: deadline in the multi-queue block layer, with three classes of priority and ageing; as in Linux 6.1.
//!
//! The idea: each class (real time, best effort, idle) has reads and writes in two orders, by sector and by arrival, as deadline
//! has. The best class that has anything is served, in batches of ascending sectors; a lower class waits until no request of a better one
//! is queued *or in the device*, unless its own requests have grown old. The direction, the length of the batch and the patience with
//! reads are one for the device, whichever class is served. The level inside a class does not count.

use super::deadline::{FRONT_MERGES, WRITE_EXPIRE};
use crate::bio::{Bio, Op};
use crate::clock::Timer;
use crate::collections::{NIL, Slot};
use crate::elevator::info::Info;
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::{Capacity, HostTypes, TableMaker};
use crate::elevator::tunable::{Tunable, Unit};
use crate::elevator::{Elevator, MakeTables, Merge, hooks};
use crate::elevators::shared::direction::{Direction, READ, WRITE, WRITES_STARVED};
use crate::elevators::shared::read_write_queues::ReadWriteQueues;
use crate::elevators::shared::stored_time::StoredTime;
use crate::event::Note;
use crate::layer::BlockLayer;
use crate::priority::{Class, Priority};

/// What the registry tells of it.
pub(crate) const INFO: Info = Info {
    name: "mq-deadline",
    aliases: &[],
    kernel: "6.1 (with I/O priorities, from 5.14)",
    in_linux: "from 4.11",
    headline: "deadline for many queues, once a priority class",
    idea: "Deadline's sorted batches and deadlines, once a class: real time before best effort before idle, and a lower class only \
           when nothing better is queued or in the device, or when it has waited for long.",
    suits: "SATA disks and flash with a moderate queue depth, and disks of which ionice has to be heeded. It knows no fairness among processes.",
    layer: BlockLayer::V6_1,
    groups: false,
    reservations: false,
    nr_requests: None,
    hashes_back_merges: false,
    tunables: &[
        Tunable {
            name: "read_expire",
            unit: Unit::Milliseconds,
            default: 500,
            min: 0,
            max: i32::MAX as i64,
            meaning: "The time after which a read should have been started; looked at when a batch begins.",
            trade_off: "Shorter bounds the latency of reads and costs seeks.",
        },
        WRITE_EXPIRE,
        WRITES_STARVED,
        FRONT_MERGES,
        Tunable {
            name: "fifo_batch",
            unit: Unit::Requests,
            default: 16,
            min: 0,
            max: i32::MAX as i64,
            meaning: "The length of a batch; with 0 every request begins one.",
            trade_off: "Longer batches seek less; deadlines are kept less well.",
        },
        Tunable {
            name: "prio_aging_expire",
            unit: Unit::Milliseconds,
            default: 10_000,
            min: 0,
            max: i32::MAX as i64,
            meaning: "The age from which a best-effort or idle request goes before those of better classes. With 0 that is at once: \
                      best effort then goes before real time.",
            trade_off: "Shorter bounds the wait of the lower classes and breaks into the better ones' work.",
        },
        Tunable {
            name: "async_depth",
            unit: Unit::Requests,
            default: 0,
            min: 0,
            max: u32::MAX as i64,
            meaning: "How many tags of the pool anything but a synchronous read may take; 0 is as many as there are. The kernel shows the \
                      number itself: all of nr_requests today, three quarters of it before.",
            trade_off: "Fewer leave tags for reads while writes fill the queue, and make writes wait for a tag.",
        },
        Tunable {
            name: "rerun_delay",
            unit: Unit::Milliseconds,
            default: 3,
            min: 0,
            max: 1000,
            meaning: "After this time the queue is run again if something is queued and was held back; 0 leaves that to the next \
                      completion, which always comes, as only a request of a better class on its way holds others back. The block layer's, \
                      not a tunable of the kernel's.",
            trade_off: "Shorter sends aged requests sooner to a device that is busy with one slow request of a better class.",
        },
    ],
};

/// The classes, best first.
const CLASSES: usize = 3;
const REAL_TIME: usize = Class::RealTime.rank() as usize;
const BEST_EFFORT: usize = Class::BestEffort.rank() as usize;
const IDLE: usize = Class::Idle.rank() as usize;

/// The requests of one class.
#[derive(Clone, Copy, Debug, Default)]
struct Queue {
    requests: ReadWriteQueues,
    /// Requests of the class that were inserted and not yet freed; in-flight requests count.
    taken: u32,
}

/// The state.
#[derive(Debug)]
pub(crate) struct MqDeadline {
    queues: [Queue; CLASSES],
    /// The direction of the present batch, of all classes.
    last_direction: usize,
    /// Requests of the present batch so far.
    batching: u32,
    direction: Direction,
    /// Of reads and of writes.
    expire: [StoredTime; 2],
    front_merges: bool,
    fifo_batch: u32,
    ageing: StoredTime,
    async_depth: u32,
    rerun: StoredTime,
}

impl<H: HostTypes> MakeTables<H> for MqDeadline {
    fn make_tables<M: TableMaker<H>>(_: Capacity, _: &mut M) {}
}

impl<H: HostTypes> Elevator<H> for MqDeadline {
    type Tables = ();

    fn new(core: &mut QueueCore<H>, (): ()) -> Self {
        let mut new = MqDeadline {
            queues: [Queue::default(); CLASSES],
            last_direction: WRITE,
            batching: 0,
            direction: Direction::default(),
            expire: [StoredTime::default(); 2],
            front_merges: true,
            fifo_batch: 0,
            ageing: StoredTime::default(),
            async_depth: 0,
            rerun: StoredTime::default(),
        };
        for (index, tunable) in INFO.tunables.iter().enumerate() {
            Elevator::<H>::set_tunable(&mut new, core, index, tunable.default);
        }
        new
    }

    fn into_tables(self) {}

    fn tunable(&self, index: usize) -> i64 {
        match index {
            0 => self.expire[READ].stored_ms,
            1 => self.expire[WRITE].stored_ms,
            2 => self.direction.writes_starved,
            3 => i64::from(self.front_merges),
            4 => i64::from(self.fifo_batch),
            5 => self.ageing.stored_ms,
            6 => i64::from(self.async_depth),
            _ => self.rerun.stored_ms,
        }
    }

    fn set_tunable(&mut self, core: &mut QueueCore<H>, index: usize, value: i64) {
        let time = StoredTime::of(&core.clock, value);
        match index {
            0 => self.expire[READ] = time,
            1 => self.expire[WRITE] = time,
            2 => self.direction.writes_starved = value,
            3 => self.front_merges = value != 0,
            4 => self.fifo_batch = value.unsigned_abs() as u32,
            5 => self.ageing = time,
            6 => self.async_depth = value.unsigned_abs() as u32,
            _ => self.rerun = time,
        }
    }

    fn find_front_merge(&mut self, core: &mut QueueCore<H>, bio: &Bio) -> Slot {
        let priority = core.tables.contexts[bio.context.slot].effective_priority();
        let end = bio.end();
        if self.front_merges { self.queue(class_of(priority)).requests.fifo(bio.op).at_sector(core, end) } else { NIL }
    }

    fn merged(&mut self, core: &mut QueueCore<H>, request: Slot, merge: Merge) {
        if merge == Merge::Front {
            // The next request of the batch stays that, though its sector has changed.
            let (class, op) = place_of(core, request);
            self.queue_mut(class).requests.fifo_mut(op).resort(core, request);
        }
    }

    fn join(&mut self, core: &mut QueueCore<H>, request: Slot, absorbed: Slot) {
        let (class, op) = place_of(core, absorbed);
        debug_assert_eq!(
            (class, op),
            place_of(core, request),
            "only requests of one class and direction are neighbours"
        );
        self.queue_mut(class).requests.join(core, request, absorbed);
    }

    fn depth_limit(&self, _: &QueueCore<H>, nr_requests: u32, bio: &Bio) -> u32 {
        // Every read is synchronous.
        if bio.op == Op::Read || self.async_depth == 0 { nr_requests } else { nr_requests.min(self.async_depth) }
    }

    fn allocate(&mut self, core: &mut QueueCore<H>, request: Slot) {
        core.tables.requests[request].owner = NIL;
    }

    fn prepare_insert(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let class = class_of(core.tables.requests[request].priority);
        core.tables.requests[request].owner = class as Slot;
        let taken = &mut self.queue_mut(class).taken;
        *taken = taken.saturating_add(1);
    }

    fn insert(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let (class, op) = place_of(core, request);
        let [reads, writes] = self.expire;
        let expire = if op == Op::Read { reads } else { writes };
        let deadline = core.ticks().saturating_add(expire.ticks);
        self.queue_mut(class).requests.fifo_mut(op).insert(core, request, deadline);
    }

    fn dispatch(&mut self, core: &mut QueueCore<H>, force: bool) -> u32 {
        let request = if force { self.select_any(core) } else { self.select(core) };
        if request != NIL {
            self.move_to_dispatch(core, request);
            core.timers.cancel(Timer::Idle);
            return 1;
        }
        if !Elevator::<H>::is_empty(self) {
            self.arm_rerun(core);
        }
        0
    }

    /// While a request of a lower class has grown old, real time has no precedence over it: all take their turn in `dispatch`.
    fn dispatch_real_time(&mut self, core: &mut QueueCore<H>) -> u32 {
        let precedes = !self.queue(REAL_TIME).requests.is_empty() && !self.somebody_has_aged(core);
        if precedes { hooks::dispatch(self, core, false) } else { 0 }
    }

    fn free(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let class = core::mem::replace(&mut core.tables.requests[request].owner, NIL);
        if class != NIL {
            let taken = &mut self.queue_mut(class as usize).taken;
            debug_assert!(*taken > 0, "a request is freed once");
            *taken = taken.saturating_sub(1);
        }
    }

    fn is_empty(&self) -> bool {
        self.queues.iter().all(|queue| queue.requests.is_empty())
    }

    fn timer(&mut self, core: &mut QueueCore<H>, _: Timer) {
        core.kick();
    }
}

impl MqDeadline {
    /// The request to dispatch: one of a lower class that has waited for too long, or one of the best class that has any. [`NIL`] if
    /// there is none, or if all that the best class has is on its way already.
    fn select<H: HostTypes>(&mut self, core: &mut QueueCore<H>) -> Slot {
        let aged = self.select_aged(core);
        if aged != NIL {
            return aged;
        }
        for class in [REAL_TIME, BEST_EFFORT, IDLE] {
            let request = self.pick(core, class, None);
            if request != NIL || self.queue(class).taken > 0 {
                debug_assert!(request != NIL || self.queue(class).requests.is_empty(), "what is queued can be picked");
                return request;
            }
        }
        NIL
    }

    fn select_aged<H: HostTypes>(&mut self, core: &mut QueueCore<H>) -> Slot {
        let classes = self.queues.iter().filter(|queue| queue.taken > 0).count();
        if classes < 2 {
            return NIL;
        }
        let latest = self.aged_by(core);
        for class in [BEST_EFFORT, IDLE] {
            let request = self.pick(core, class, Some(latest));
            if request != NIL {
                core.note(|core| Note::Aged { token: core.tables.requests[request].token });
                return request;
            }
        }
        NIL
    }

    /// The tick by which a request came that has grown old by now. Machines that have been up for less than that have none: the difference is signed.
    fn aged_by<H: HostTypes>(&self, core: &QueueCore<H>) -> i64 {
        (core.ticks() as i64).wrapping_sub(self.ageing.ticks as i64)
    }

    /// Whether a request of a class below real time has grown old.
    fn somebody_has_aged<H: HostTypes>(&self, core: &QueueCore<H>) -> bool {
        let oldest = |class| self.queue(class).requests.oldest();
        let mut waiting = [BEST_EFFORT, IDLE].into_iter().flat_map(oldest).filter(|&request| request != NIL);
        waiting.any(|request| self.arrived(core, request) <= self.aged_by(core))
    }

    /// Everything that is queued is to go, whatever its class.
    fn select_any<H: HostTypes>(&mut self, core: &mut QueueCore<H>) -> Slot {
        let class = [REAL_TIME, BEST_EFFORT, IDLE].into_iter().find(|&class| !self.queue(class).requests.is_empty());
        class.map_or(NIL, |class| self.pick(core, class, None))
    }

    /// The next request of a class: of its batch, or the first of a new one. If it came after tick `latest` it is not taken; but a batch
    /// that was begun for it has begun, for all classes.
    fn pick<H: HostTypes>(&mut self, core: &mut QueueCore<H>, class: usize, latest: Option<i64>) -> Slot {
        let too_young = |elevator: &Self, core: &QueueCore<H>, request: Slot| {
            latest.is_some_and(|latest| elevator.arrived(core, request) > latest)
        };
        let requests = &self.queue(class).requests;
        let (_, next) = requests.direction(self.last_direction);
        if next != NIL && self.batching < self.fifo_batch {
            return if too_young(self, core, next) { NIL } else { next };
        }
        let waiting = requests.waiting();
        let Some(direction) = self.direction.choose(waiting) else { return NIL };
        let (request, overdue) = self.begin_batch(core, class, direction);
        if too_young(self, core, request) {
            return NIL;
        }
        core.note(|_| Note::Batch { op: if direction == READ { Op::Read } else { Op::Write } });
        if overdue {
            core.note(|core| Note::Overdue { token: core.tables.requests[request].token });
        }
        request
    }

    /// The oldest request if it is overdue (and whether it is) or the sweep is at its end, else the sweep goes on.
    fn begin_batch<H: HostTypes>(&mut self, core: &QueueCore<H>, class: usize, direction: usize) -> (Slot, bool) {
        self.last_direction = direction;
        self.batching = 0;
        let (sorted, next) = self.queue(class).requests.direction(direction);
        // A request is overdue on the very tick of its deadline.
        let overdue = sorted.is_overdue(core, core.ticks().saturating_add(1));
        debug_assert!(!sorted.is_empty(), "a direction with requests was chosen");
        (if overdue || next == NIL { sorted.oldest() } else { next }, overdue)
    }

    /// The tick at which a request came, as far as its deadline tells: what it was joined with and a change of the tunable count too.
    fn arrived<H: HostTypes>(&self, core: &QueueCore<H>, request: Slot) -> i64 {
        let expire = if core.reads(request) { self.expire[READ] } else { self.expire[WRITE] };
        (core.tables.arrivals[request].deadline as i64).wrapping_sub(expire.ticks as i64)
    }

    fn move_to_dispatch<H: HostTypes>(&mut self, core: &mut QueueCore<H>, request: Slot) {
        self.batching = self.batching.saturating_add(1);
        let (class, _) = place_of(core, request);
        self.queue_mut(class).requests.dispatch(core, request);
    }

    /// What is held back waits for a request of a better class that is on its way, whose completion runs the queue. That may be late for
    /// what grows old meanwhile, so the block layer asks again every few ms.
    fn arm_rerun<H: HostTypes>(&mut self, core: &mut QueueCore<H>) {
        if self.rerun.ticks > 0 && core.timers.armed_for(Timer::Idle).is_none() {
            let tick = core.ticks().saturating_add(self.rerun.ticks);
            core.arm_at_tick(Timer::Idle, tick);
        }
    }

    fn queue(&self, class: usize) -> &Queue {
        let [real_time, best_effort, idle] = &self.queues;
        match class {
            REAL_TIME => real_time,
            BEST_EFFORT => best_effort,
            _ => idle,
        }
    }

    fn queue_mut(&mut self, class: usize) -> &mut Queue {
        let [real_time, best_effort, idle] = &mut self.queues;
        match class {
            REAL_TIME => real_time,
            BEST_EFFORT => best_effort,
            _ => idle,
        }
    }
}

/// The class that a priority counts as: one that was never set is best effort.
fn class_of(priority: Priority) -> usize {
    usize::from(priority.class().rank())
}

/// Where a request is queued: its class and direction.
fn place_of<H: HostTypes>(core: &QueueCore<H>, request: Slot) -> (usize, Op) {
    let request = &core.tables.requests[request];
    (class_of(request.priority), request.op)
}
