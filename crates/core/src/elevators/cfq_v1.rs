//! The first CFQ: "cfq-v1", as in Linux 2.6.6 to 2.6.9.
//!
//! The idea is completely fair queueing in its plainest form. Each context has a queue, and in each
//! pass the driver gets one request of every queue, whatever the requests cost. There are no
//! priorities, no idling and no deadlines. Within a queue, the lowest sector goes first. A context
//! is kept from filling the request pool: it may have about its share of the requests.
//!
//! The state is a list of queues, the newest first. A queue exists as long as it has requests. A
//! pass moves requests to the driver's list, which the elevator keeps itself; from there they go to
//! the block layer one by one.
//!
//! No decisions of a kernel were recorded for this elevator: it follows the specification only.

use crate::bio::{Bio, Op};
use crate::collections::{Arena, HashChains, Link, LinkOf, List, NIL, Node, Slot, Tree};
use crate::collections::{Count, tree::Range};
use crate::elevator::capacity::Capacity;
use crate::elevator::info::Info;
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::{HostTypes, TableMaker, TableOf, buckets};
use crate::elevator::tunable::{Tunable, Unit};
use crate::elevator::{Elevator, MakeTables, MayQueue, Merge};
use crate::elevators::shared::driver_list::DriverList;
use crate::elevators::shared::sorted_fifo;
use crate::layer::BlockLayer;

/// The pool size per direction that the elevator sets when it is attached.
const NR_REQUESTS: u32 = 8192;
/// The requests that a context may always have queued in one direction.
const QUEUED_MIN: u32 = 3;

/// The row of the registry.
pub(crate) const INFO: Info = Info {
    name: "cfq-v1",
    aliases: &[],
    kernel: "2.6.6 to 2.6.9, by specification only (no recorded decisions)",
    in_linux: "2.6.6-2.6.9",
    headline: "One queue per process, one request of each in turn",
    idea: "Each process has a queue sorted by sector; in each pass the driver gets one request of \
           every queue. As shipped, a pass takes all its requests from the newest queue instead.",
    suits: "Studying the origin of CFQ. Every pass seeks from process to process, and as shipped \
            it is not fair either.",
    layer: BlockLayer::V2_6_18,
    groups: false,
    reservations: false,
    nr_requests: Some(NR_REQUESTS),
    hashes_back_merges: true,
    tunables: &[
        Tunable {
            name: "quantum",
            unit: Unit::Requests,
            default: 4,
            min: 1,
            max: u32::MAX as i64,
            meaning: "Passes over the queues continue until at least this many requests have moved \
                      to the driver's list.",
            trade_off: "Higher sorts more requests at a time, but requests that arrive meanwhile \
                        wait longer.",
        },
        Tunable {
            name: "queued",
            unit: Unit::Requests,
            default: 8,
            min: 1,
            max: u32::MAX as i64,
            meaning: "Subtracted from the pool's 8192 requests before they are divided among the \
                      busy queues; the share limits the requests that a process may have queued.",
            trade_off: "Almost none: the value is small compared with the pool.",
        },
        Tunable {
            name: "head_bug",
            unit: Unit::Switch,
            default: 1,
            min: 0,
            max: 1,
            meaning: "1 is as shipped: each step of a pass serves the queue at the head of the \
                      list (the newest) instead of the current one. 0 is as intended. Not a \
                      tunable of the kernel.",
            trade_off: "0 is fair: one request per queue and pass.",
        },
    ],
};

/// The queue of one context. It exists while it has requests.
#[derive(Clone, Copy, Debug, Default)]
struct Queue {
    pid: u32,
    tree: Tree,
    /// The number of requests in the queue: reads, writes.
    queued: [u32; 2],
    by_pid: Link,
    turn: Link,
}

/// The hash chains of queues by process id. For a free entry, the link in the list of free entries.
#[derive(Debug)]
struct ByPid;

impl LinkOf<Queue> for ByPid {
    fn link(queue: &Queue) -> &Link {
        &queue.by_pid
    }
    fn link_mut(queue: &mut Queue) -> &mut Link {
        &mut queue.by_pid
    }
}

/// The list of queues, in the order of a pass.
#[derive(Debug)]
struct Turns;

impl LinkOf<Queue> for Turns {
    fn link(queue: &Queue) -> &Link {
        &queue.turn
    }
    fn link_mut(queue: &mut Queue) -> &mut Link {
        &mut queue.turn
    }
}

/// The tables. There are at most as many queues with requests as contexts.
pub(crate) struct Tables<H: HostTypes> {
    queues: H::Slots<Queue>,
    buckets: H::Slots<u32>,
    /// One entry per request, for the driver's list.
    driver_nodes: H::Slots<Node<Range>>,
}

/// The state of the elevator.
pub(crate) struct CfqV1<H: HostTypes> {
    queues: TableOf<H, Queue>,
    free_queues: List<ByPid>,
    by_pid: HashChains<H::Slots<u32>>,
    turns: List<Turns>,
    busy_queues: u32,
    driver_list: DriverList<H>,
    /// The limit of queued requests per context and direction: the pool size before the elevator
    /// was attached.
    max_queued: u32,
    quantum: u32,
    queued: u32,
    head_bug: bool,
}

impl<H: HostTypes> MakeTables<H> for CfqV1<H> {
    fn make_tables<M: TableMaker<H>>(capacity: Capacity, maker: &mut M) -> Tables<H> {
        Tables {
            queues: maker.table(capacity.contexts),
            buckets: maker.table(buckets(capacity.contexts)),
            driver_nodes: maker.table(capacity.request_slots()),
        }
    }
}

impl<H: HostTypes> Elevator<H> for CfqV1<H> {
    type Tables = Tables<H>;

    fn new(core: &mut QueueCore<H>, tables: Tables<H>) -> Self {
        let mut new = CfqV1 {
            queues: Arena::new(tables.queues),
            free_queues: List::default(),
            by_pid: HashChains::new(tables.buckets),
            turns: List::default(),
            busy_queues: 0,
            driver_list: DriverList::new(Arena::new(tables.driver_nodes)),
            max_queued: core.nr_requests,
            quantum: 0,
            queued: 0,
            head_bug: false,
        };
        for slot in 0..new.queues.capacity() {
            new.free_queues.push_back(&mut new.queues, slot);
        }
        for (index, tunable) in INFO.tunables.iter().enumerate() {
            new.set_tunable(core, index, tunable.default);
        }
        new
    }

    fn into_tables(self) -> Tables<H> {
        let (queues, driver_nodes) = (self.queues.into_slots(), self.driver_list.into_nodes());
        Tables { queues, buckets: self.by_pid.into_slots(), driver_nodes }
    }

    fn tunable(&self, index: usize) -> i64 {
        match index {
            0 => self.quantum.into(),
            1 => self.queued.into(),
            _ => self.head_bug.into(),
        }
    }

    fn set_tunable(&mut self, _: &mut QueueCore<H>, index: usize, value: i64) {
        match index {
            0 => self.quantum = value.unsigned_abs() as u32,
            1 => self.queued = value.unsigned_abs() as u32,
            _ => self.head_bug = value != 0,
        }
    }

    fn find_front_merge(&mut self, core: &mut QueueCore<H>, bio: &Bio) -> Slot {
        // Front merges are searched only in the context's own queue; back merges in all queues.
        let slot = self.find_queue(core.tables.contexts[bio.context.slot].pid);
        if slot == NIL { NIL } else { self.queues[slot].tree.find(&core.tables.nodes, bio.end()) }
    }

    fn merged(&mut self, core: &mut QueueCore<H>, request: Slot, merge: Merge) {
        let owner = core.tables.requests[request].owner;
        if merge == Merge::Front && owner != NIL {
            self.queues[owner].tree.remove(&mut core.tables.nodes, request);
            self.sort(core, owner, request);
        }
    }

    fn settled_after(&self, request: Slot) -> Slot {
        self.driver_list.after(request)
    }

    fn join(&mut self, core: &mut QueueCore<H>, _: Slot, absorbed: Slot) {
        self.remove(core, absorbed);
    }

    fn may_queue(&mut self, core: &mut QueueCore<H>, context: Slot, op: Op) -> MayQueue {
        let slot = self.find_queue(core.tables.contexts[context].pid);
        if slot == NIL || self.busy_queues == 0 {
            return MayQueue::May;
        }
        // A refused process has requests queued. It sleeps until a request of the same direction
        // completes.
        let share = NR_REQUESTS.saturating_sub(self.queued) / self.busy_queues.max(1);
        let limit = if share < QUEUED_MIN { QUEUED_MIN } else { share.min(self.max_queued) };
        let queued = self.queues[slot].queued[op.direction()];
        if queued > limit { MayQueue::No } else { MayQueue::May }
    }

    fn insert(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let slot = self.get_queue(core, request);
        if slot == NIL {
            // The storage has no room for another queue: serve the request in order of arrival.
            return self.driver_list.append(core, request);
        }
        core.tables.requests[request].owner = slot;
        let queued = &mut self.queues[slot].queued[core.tables.requests[request].op.direction()];
        queued.increment();
        self.sort(core, slot, request);
    }

    fn dispatch(&mut self, core: &mut QueueCore<H>, force: bool) -> u32 {
        if force {
            while self.busy_queues > 0 {
                self.pass(core);
            }
            return self.driver_list.pass_all(core);
        }
        if self.driver_list.is_empty() {
            let mut moved = 0u32;
            while moved < self.quantum && self.busy_queues > 0 {
                moved = moved.saturating_add(self.pass(core));
            }
        }
        self.driver_list.pass_first(core)
    }

    fn is_empty(&self) -> bool {
        self.busy_queues == 0 && self.driver_list.is_empty()
    }
}

impl<H: HostTypes> CfqV1<H> {
    /// Visits every queue once and moves as many requests.
    fn pass(&mut self, core: &mut QueueCore<H>) -> u32 {
        let (mut moved, mut at) = (0u32, self.turns.head());
        debug_assert_ne!(at, NIL);
        while at != NIL {
            // The served queue may leave the list, but the next one to visit is behind it.
            let next = self.turns.next(&self.queues, at);
            let served = if self.head_bug { self.turns.head() } else { at };
            let request = self.queues[served].tree.first();
            self.move_to_driver(core, request);
            self.drop_if_empty(served);
            moved.increment();
            at = next;
        }
        moved
    }

    /// Moves a request from its queue to the driver's list. A request below the first one goes
    /// directly before the last. Any other one goes before the last entry that is not below it.
    /// (This is not an order by sector, although it was meant to be one.)
    fn move_to_driver(&mut self, core: &mut QueueCore<H>, request: Slot) {
        self.remove(core, request);
        let list = &mut self.driver_list;
        let sector = core.tables.requests[request].sector;
        let (first, last) = (list.first(), list.last());
        let after = if first != NIL && sector < core.tables.requests[first].sector {
            list.before(last)
        } else {
            match list.last_matching(|range| range.greatest >= sector) {
                NIL => last,
                above => list.before(above),
            }
        };
        self.driver_list.insert_after(core, after, request);
    }

    /// Sorts a request into its queue.
    fn sort(&mut self, core: &mut QueueCore<H>, owner: Slot, request: Slot) {
        let sector = core.tables.requests[request].sector;
        self.queues[owner].tree.insert(&mut core.tables.nodes, request, sector);
        sorted_fifo::move_alias(self, core, request, |cfq| &mut cfq.queues[owner].tree, Self::move_to_driver);
    }

    /// Removes a request from its queue.
    fn remove(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let entry = &mut core.tables.requests[request];
        let owner = core::mem::replace(&mut entry.owner, NIL);
        let queue = &mut self.queues[owner];
        let queued = &mut queue.queued[entry.op.direction()];
        queued.decrement();
        queue.tree.remove(&mut core.tables.nodes, request);
    }

    /// Frees a queue without requests, including its statistics.
    fn drop_if_empty(&mut self, slot: Slot) {
        let queue = &self.queues[slot];
        if queue.tree.is_empty() {
            debug_assert_eq!(queue.queued, [0; 2]);
            let key = u64::from(queue.pid);
            self.turns.remove(&mut self.queues, slot);
            self.by_pid.remove::<ByPid, _, _>(&mut self.queues, key, slot);
            self.free_queues.push_front(&mut self.queues, slot);
            self.busy_queues.decrement();
        }
    }

    /// The queue of a context, or [`NIL`].
    fn find_queue(&self, pid: u32) -> Slot {
        let mut at = self.by_pid.first(u64::from(pid));
        while at != NIL && self.queues[at].pid != pid {
            at = self.queues[at].by_pid.next;
        }
        at
    }

    /// The queue for a request, created at the head of the list if there is none. [`NIL`]: no room.
    fn get_queue(&mut self, core: &QueueCore<H>, request: Slot) -> Slot {
        let pid = core.tables.contexts[core.tables.requests[request].context].pid;
        let found = self.find_queue(pid);
        if found != NIL {
            return found;
        }
        let slot = self.free_queues.pop_front(&mut self.queues);
        if slot != NIL {
            self.queues[slot] = Queue { pid, ..Queue::default() };
            self.by_pid.insert::<ByPid, _, _>(&mut self.queues, u64::from(pid), slot);
            self.turns.push_front(&mut self.queues, slot);
            self.busy_queues.increment();
        }
        slot
    }
}
