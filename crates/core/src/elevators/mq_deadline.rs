//! mq-deadline: deadline in the multi-queue block layer, with three priority classes and ageing, as
//! in Linux 6.1, and with the form of 6.5 and later.
//!
//! The idea: each class (real time, best effort, idle) has reads and writes in two orders, by
//! sector and by arrival, like deadline. The highest class with requests is served in batches of
//! ascending sectors. A lower class waits until no request of a higher class is queued *or in the
//! device*, unless its own requests have aged. The direction, the batch length and the preference
//! of reads are common to all classes. The level within a class has no effect.

use super::deadline::{FRONT_MERGES, WRITE_EXPIRE};
use crate::bio::{Bio, Op};
use crate::clock::Timer;
use crate::collections::{Count, NIL, Slot};
use crate::elevator::capacity::Capacity;
use crate::elevator::info::Info;
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::{HostTypes, TableMaker};
use crate::elevator::tunable::{Tunable, Unit};
use crate::elevator::{Elevator, MakeTables, Merge, hooks};
use crate::elevators::shared::direction::{Direction, READ, WRITE, WRITES_STARVED};
use crate::elevators::shared::read_write_queues::ReadWriteQueues;
use crate::elevators::shared::stored_time::StoredTime;
use crate::event::Note;
use crate::layer::BlockLayer;
use crate::priority::{Class, Priority};

/// The row of the registry.
pub(crate) const INFO: Info = Info {
    name: "mq-deadline",
    aliases: &[],
    kernel: "6.1 (with I/O priorities, from 5.14)",
    in_linux: "from 4.11",
    headline: "deadline for multi-queue, per priority class",
    idea: "Deadline's sorted batches and deadlines for each class: real time before best effort \
           before idle. A lower class is served only if no request of a higher one is queued or in \
           the device, or if its requests have aged.",
    suits: "SATA disks and flash with a moderate queue depth, and disks on which I/O priorities \
            matter. It has no fairness among processes.",
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
            meaning: "The deadline of a read, counted from its arrival; checked when a batch \
                      begins.",
            trade_off: "A shorter time bounds the latency of reads and costs seeks.",
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
            trade_off: "Longer batches seek less, but deadlines are met less well.",
        },
        Tunable {
            name: "prio_aging_expire",
            unit: Unit::Milliseconds,
            default: 10_000,
            min: 0,
            max: i32::MAX as i64,
            meaning: "The age from which a best-effort or idle request precedes those of higher \
                      classes. With 0 that is at once: best effort then precedes real time.",
            trade_off: "Shorter bounds the wait of the lower classes and interrupts the higher \
                        ones.",
        },
        Tunable {
            name: "async_depth",
            unit: Unit::Requests,
            default: 0,
            min: 0,
            max: u32::MAX as i64,
            meaning: "The number of tags that requests other than synchronous reads may use; 0 is \
                      no limit. The kernel shows the number itself: all of nr_requests today, \
                      three quarters of it before.",
            trade_off: "Fewer keep tags for reads while writes fill the queue, and make writes \
                        wait for a tag.",
        },
        Tunable {
            name: "form",
            unit: Unit::Form,
            default: 0,
            min: 0,
            max: 1,
            meaning: "The Linux version of the algorithm. 0 is 6.1: a batch continues at the \
                      request that was the next one when the last one was dispatched. 1 is 6.5 \
                      and later: it continues at the first request from the last sector on, also \
                      at one that arrived since. Not a tunable of the kernel.",
            trade_off: "With form 1 a sequential reader or writer continues its batch with requests \
                        that it submits in time.",
        },
        Tunable {
            name: "rerun_delay",
            unit: Unit::Milliseconds,
            default: 3,
            min: 0,
            max: 1000,
            meaning: "The time after which the queue is run again if a queued request was held \
                      back. 0 leaves that to the next completion, which always comes, as only a \
                      pending request of a higher class holds others back. A parameter of the \
                      block layer, not a tunable of the kernel.",
            trade_off: "Shorter dispatches aged requests sooner to a device that is busy with one \
                        slow request of a higher class.",
        },
    ],
};

/// The number of priority classes; their indices follow, highest first.
const CLASSES: usize = 3;
const REAL_TIME: usize = Class::RealTime.rank() as usize;
const BEST_EFFORT: usize = Class::BestEffort.rank() as usize;
const IDLE: usize = Class::Idle.rank() as usize;

/// The requests of one class.
#[derive(Clone, Copy, Debug, Default)]
struct Queue {
    requests: ReadWriteQueues,
    /// The sector of the last dispatched read and write.
    last_sectors: [u64; 2],
    /// Requests of the class that were inserted and not yet freed; in-flight requests count.
    taken: u32,
}

/// The state of the elevator.
#[derive(Debug)]
pub(crate) struct MqDeadline {
    queues: [Queue; CLASSES],
    /// The direction of the current batch, of all classes.
    last_direction: usize,
    /// The requests dispatched in the current batch.
    batching: u32,
    direction: Direction,
    /// The time limit of reads and of writes.
    expire: [StoredTime; 2],
    front_merges: bool,
    fifo_batch: u32,
    ageing: StoredTime,
    async_depth: u32,
    /// True if a batch continues at a request that arrived since the last dispatch.
    continues_at_position: bool,
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
            continues_at_position: false,
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
            7 => i64::from(self.continues_at_position),
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
            7 => self.continues_at_position = value != 0,
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
            // The request stays the next one of the batch although its sector has changed.
            let (class, op) = class_and_direction(core, request);
            self.queue_mut(class).requests.fifo_mut(op).resort(core, request);
        }
    }

    fn join(&mut self, core: &mut QueueCore<H>, request: Slot, absorbed: Slot) {
        let (class, op) = class_and_direction(core, absorbed);
        debug_assert_eq!(
            (class, op),
            class_and_direction(core, request),
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
        taken.increment();
    }

    fn insert(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let (class, op) = class_and_direction(core, request);
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

    /// While a request of a lower class has aged, real time does not precede it: all classes take
    /// turns in `dispatch`.
    fn dispatch_real_time(&mut self, core: &mut QueueCore<H>) -> u32 {
        let precedes = !self.queue(REAL_TIME).requests.is_empty() && !self.lower_class_has_aged(core);
        if precedes { hooks::dispatch(self, core, false) } else { 0 }
    }

    fn free(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let class = core::mem::replace(&mut core.tables.requests[request].owner, NIL);
        if class != NIL {
            let taken = &mut self.queue_mut(class as usize).taken;
            debug_assert!(*taken > 0, "each request is freed only once");
            taken.decrement();
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
    /// Selects the request to dispatch: an aged one of a lower class, otherwise one of the highest
    /// class with requests. [`NIL`] if there is none, or if all requests of the highest class are
    /// in the device.
    fn select<H: HostTypes>(&mut self, core: &mut QueueCore<H>) -> Slot {
        let aged = self.select_aged(core);
        if aged != NIL {
            return aged;
        }
        for class in [REAL_TIME, BEST_EFFORT, IDLE] {
            let request = self.pick(core, class, None);
            if request != NIL || self.queue(class).taken > 0 {
                debug_assert!(
                    request != NIL || self.queue(class).requests.is_empty(),
                    "a non-empty class yields a request"
                );
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

    /// The tick before which requests must have arrived to count as aged. It is negative if the
    /// uptime is shorter than the ageing time.
    fn aged_by<H: HostTypes>(&self, core: &QueueCore<H>) -> i64 {
        (core.ticks() as i64).wrapping_sub(self.ageing.ticks as i64)
    }

    /// Returns true if a request of a class below real time has aged.
    fn lower_class_has_aged<H: HostTypes>(&self, core: &QueueCore<H>) -> bool {
        let oldest = |class| self.queue(class).requests.oldest();
        let mut waiting = [BEST_EFFORT, IDLE].into_iter().flat_map(oldest).filter(|&request| request != NIL);
        waiting.any(|request| self.arrived(core, request) <= self.aged_by(core))
    }

    /// Selects any request for a forced dispatch, by class.
    fn select_any<H: HostTypes>(&mut self, core: &mut QueueCore<H>) -> Slot {
        let class = [REAL_TIME, BEST_EFFORT, IDLE].into_iter().find(|&class| !self.queue(class).requests.is_empty());
        class.map_or(NIL, |class| self.pick(core, class, None))
    }

    /// The next request of a class: of its batch, or the first of a new one. A request that arrived
    /// after tick `latest` is not selected; a batch that was begun for it has still begun, for all
    /// classes.
    fn pick<H: HostTypes>(&mut self, core: &mut QueueCore<H>, class: usize, latest: Option<i64>) -> Slot {
        let too_young = |elevator: &Self, core: &QueueCore<H>, request: Slot| {
            latest.is_some_and(|latest| elevator.arrived(core, request) > latest)
        };
        let next = self.next_in_sweep(core, class, self.last_direction);
        if next != NIL && self.batching < self.fifo_batch {
            return if too_young(self, core, next) { NIL } else { next };
        }
        let waiting = self.queue(class).requests.waiting();
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

    /// Begins a batch. Returns the oldest request if it is overdue or the sweep has ended,
    /// otherwise the next one of the sweep, and whether the request is overdue.
    fn begin_batch<H: HostTypes>(&mut self, core: &QueueCore<H>, class: usize, direction: usize) -> (Slot, bool) {
        self.last_direction = direction;
        self.batching = 0;
        let next = self.next_in_sweep(core, class, direction);
        let (sorted, _) = self.queue(class).requests.direction(direction);
        // A request is overdue on the very tick of its deadline.
        let overdue = sorted.is_overdue(core, core.ticks().saturating_add(1));
        debug_assert!(!sorted.is_empty(), "the chosen direction has requests");
        (if overdue || next == NIL { sorted.oldest() } else { next }, overdue)
    }

    /// The request at which the sweep of a class and direction continues, or [`NIL`].
    fn next_in_sweep<H: HostTypes>(&self, core: &QueueCore<H>, class: usize, direction: usize) -> Slot {
        let Queue { requests, last_sectors: [last_read, last_write], .. } = self.queue(class);
        let (sorted, next) = requests.direction(direction);
        if !self.continues_at_position {
            return next;
        }
        let position = if direction == READ { *last_read } else { *last_write };
        sorted.tree().first_not_below(&core.tables.nodes, position)
    }

    /// The arrival tick of a request, computed from its deadline. Merges and changes of the tunable
    /// affect the result.
    fn arrived<H: HostTypes>(&self, core: &QueueCore<H>, request: Slot) -> i64 {
        let expire = if core.reads(request) { self.expire[READ] } else { self.expire[WRITE] };
        (core.tables.arrivals[request].deadline as i64).wrapping_sub(expire.ticks as i64)
    }

    fn move_to_dispatch<H: HostTypes>(&mut self, core: &mut QueueCore<H>, request: Slot) {
        self.batching = self.batching.saturating_add(1);
        let (class, op) = class_and_direction(core, request);
        let sector = core.tables.requests[request].sector;
        let queue = self.queue_mut(class);
        let [last_read, last_write] = &mut queue.last_sectors;
        *(if op == Op::Read { last_read } else { last_write }) = sector;
        queue.requests.dispatch(core, request);
    }

    /// Arms the timer that runs the queue again while requests are held back. They wait for pending
    /// requests of a higher class, whose completion runs the queue; that may be too late for
    /// requests that age meanwhile.
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

/// The class of a priority; one that was never set is best effort.
fn class_of(priority: Priority) -> usize {
    usize::from(priority.class().rank())
}

/// The class and direction of a queued request.
fn class_and_direction<H: HostTypes>(core: &QueueCore<H>, request: Slot) -> (usize, Op) {
    let request = &core.tables.requests[request];
    (class_of(request.priority), request.op)
}
