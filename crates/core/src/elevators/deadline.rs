//! deadline: sector-ordered batches, a deadline for each request, bounded starvation of writes.
//!
//! The idea: serve requests in ascending order of sectors, in batches of one direction. When a
//! batch begins, check the oldest request of its direction and start with that one if its deadline
//! has passed. Reads go first; writes follow at the latest after a few batches of reads. There are
//! no idling, timers or priorities.

use crate::bio::{Bio, Op};
use crate::collections::{NIL, Slot};
use crate::elevator::capacity::Capacity;
use crate::elevator::info::Info;
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::{HostTypes, TableMaker};
use crate::elevator::tunable::{Tunable, Unit};
use crate::elevator::{Elevator, MakeTables, Merge};
use crate::elevators::shared::direction::{Direction, READ, WRITE, WRITES_STARVED};
use crate::elevators::shared::read_write_queues::ReadWriteQueues;
use crate::elevators::shared::sorted_fifo;
use crate::elevators::shared::stored_time::StoredTime;
use crate::event::Note;
use crate::layer::BlockLayer;

/// The deadline of writes, a tunable of both deadline elevators.
pub(super) const WRITE_EXPIRE: Tunable = Tunable {
    name: "write_expire",
    unit: Unit::Milliseconds,
    default: 5000,
    min: 0,
    max: i32::MAX as i64,
    meaning: "The deadline of a write, counted from its arrival; checked when a batch of writes \
              begins.",
    trade_off: "A shorter time writes data back sooner and costs seeks.",
};

/// The search for front merges, a tunable of both deadline elevators.
pub(super) const FRONT_MERGES: Tunable = Tunable {
    name: "front_merges",
    unit: Unit::Switch,
    default: 1,
    min: 0,
    max: 1,
    meaning: "1: search for a queued request that begins where a new bio ends, to merge the two.",
    trade_off: "0 saves one search per bio; useful where such merges never occur.",
};

/// The row of the registry.
pub(crate) const INFO: Info = Info {
    name: "deadline",
    aliases: &[],
    kernel: "2.6.18 (form 0), 2.6.24 (form 1), 2.6.28 to 4.20 (form 2)",
    in_linux: "2.5.39-4.20",
    headline: "Batches by sector; overdue first, reads preferred",
    idea: "Ascending sectors in batches of one direction; the oldest request goes first once its \
           deadline has passed; the starvation of writes is bounded.",
    suits: "Databases, and devices with many outstanding requests. With several sequential readers \
            at once the disk seeks for each of them.",
    layer: BlockLayer::V2_6_18,
    groups: false,
    reservations: false,
    nr_requests: None,
    hashes_back_merges: true,
    tunables: &[
        Tunable {
            name: "read_expire",
            unit: Unit::Milliseconds,
            default: 500,
            min: 0,
            max: i32::MAX as i64,
            meaning: "The deadline of a read, counted from its arrival; checked when a batch of \
                      reads begins.",
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
            meaning: "The largest number of requests in a batch.",
            trade_off: "With longer batches the disk seeks less, but requests miss their deadlines by more.",
        },
        Tunable {
            name: "form",
            unit: Unit::Form,
            default: 0,
            min: 0,
            max: 2,
            meaning: "The Linux version of the algorithm. 0 is 2.6.18: a request that is not \
                      adjacent to the previous one ends the batch; a new batch continues after \
                      the last sector or starts at the lowest. 1 is 2.6.24: as 0, but a new batch \
                      starts with the oldest request instead of the lowest sector. 2 is 2.6.28 and \
                      later, as recorded from 4.19: only the number of requests ends a batch, a \
                      request is overdue on the tick of its deadline, and several requests may \
                      begin at one sector. Not a tunable of the kernel.",
            trade_off: "With the later forms the disk seeks less among random requests, and \
                        deadlines are checked less often.",
        },
    ],
};

/// The kernel's variant, as set by the tunable `form`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Form {
    Contiguous,
    OldestFirst,
    Counted,
}

/// The state of the elevator.
#[derive(Debug)]
pub(crate) struct Deadline {
    /// The queues of reads and of writes. At most one direction has a batch to continue.
    requests: ReadWriteQueues,
    /// The number of requests dispatched in the batch; `fifo_batch` is added to end the batch.
    batching: u32,
    /// The end of the last dispatched request.
    last_sector: u64,
    direction: Direction,
    /// The time limit of reads and of writes.
    expire: [StoredTime; 2],
    front_merges: bool,
    fifo_batch: u32,
    form: Form,
}

impl<H: HostTypes> MakeTables<H> for Deadline {
    fn make_tables<M: TableMaker<H>>(_: Capacity, _: &mut M) {}
}

impl<H: HostTypes> Elevator<H> for Deadline {
    type Tables = ();

    fn new(core: &mut QueueCore<H>, (): ()) -> Self {
        let mut new = Deadline {
            requests: ReadWriteQueues::default(),
            batching: 0,
            last_sector: 0,
            direction: Direction::default(),
            expire: [StoredTime::default(); 2],
            front_merges: true,
            fifo_batch: 0,
            form: Form::Contiguous,
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
            _ => self.form as i64,
        }
    }

    fn set_tunable(&mut self, core: &mut QueueCore<H>, index: usize, value: i64) {
        match index {
            0 => self.expire[READ] = StoredTime::of(&core.clock, value),
            1 => self.expire[WRITE] = StoredTime::of(&core.clock, value),
            2 => self.direction.writes_starved = value,
            3 => self.front_merges = value != 0,
            4 => self.fifo_batch = value.unsigned_abs() as u32,
            _ => {
                self.form = match value {
                    0 => Form::Contiguous,
                    1 => Form::OldestFirst,
                    _ => Form::Counted,
                }
            }
        }
    }

    fn find_front_merge(&mut self, core: &mut QueueCore<H>, bio: &Bio) -> Slot {
        if self.front_merges { self.requests.fifo(bio.op).at_sector(core, bio.end()) } else { NIL }
    }

    fn merged(&mut self, core: &mut QueueCore<H>, request: Slot, merge: Merge) {
        if merge == Merge::Back {
            return;
        }
        let op = core.tables.requests[request].op;
        if self.form == Form::Contiguous {
            self.requests.skip(core, request);
        }
        self.requests.fifo_mut(op).resort(core, request);
        self.dispatch_alias(core, request);
    }

    fn join(&mut self, core: &mut QueueCore<H>, request: Slot, absorbed: Slot) {
        self.requests.join(core, request, absorbed);
    }

    fn insert(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let op = core.tables.requests[request].op;
        let [reads, writes] = self.expire;
        let expire = if op == Op::Read { reads } else { writes };
        let deadline = core.ticks().saturating_add(expire.ticks);
        self.requests.fifo_mut(op).insert(core, request, deadline);
        self.dispatch_alias(core, request);
    }

    fn dispatch(&mut self, core: &mut QueueCore<H>, _force: bool) -> u32 {
        let request = self.select(core);
        if request == NIL {
            return 0;
        }
        self.batching = self.batching.saturating_add(1);
        self.move_to_dispatch(core, request);
        1
    }

    fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }
}

impl Deadline {
    /// Selects the request to dispatch: the next one of the batch, or the first of a new one.
    fn select<H: HostTypes>(&mut self, core: &mut QueueCore<H>) -> Slot {
        let ((_, next_read), (_, next_write)) = (self.requests.direction(READ), self.requests.direction(WRITE));
        let next = if next_write != NIL { next_write } else { next_read };
        if next != NIL {
            if self.form != Form::Counted && self.last_sector != core.tables.requests[next].sector {
                self.batching = self.batching.saturating_add(self.fifo_batch);
            }
            if self.batching < self.fifo_batch {
                return next;
            }
        }
        let waiting = self.requests.waiting();
        let Some(side) = self.direction.choose(waiting) else { return NIL };
        core.note(|_| Note::Batch { op: if side == READ { Op::Read } else { Op::Write } });
        self.begin_batch(core, side)
    }

    fn begin_batch<H: HostTypes>(&mut self, core: &mut QueueCore<H>, side: usize) -> Slot {
        let (sorted, next) = self.requests.direction(side);
        let (oldest, lowest) = (sorted.oldest(), sorted.lowest());
        // In form 2 a request is overdue on the tick of its deadline, in the other forms on the
        // next tick.
        let now = core.ticks().saturating_add(u64::from(self.form == Form::Counted));
        if sorted.is_overdue(core, now) {
            self.batching = 0;
            core.note(|core| Note::Overdue { token: core.tables.requests[oldest].token });
            return oldest;
        }
        if self.form == Form::Contiguous {
            if next != NIL {
                // The count of the batch continues, so that every further step checks the deadlines
                // again.
                return next;
            }
            self.batching = 0;
            return lowest;
        }
        self.batching = 0;
        if next != NIL { next } else { oldest }
    }

    fn move_to_dispatch<H: HostTypes>(&mut self, core: &mut QueueCore<H>, request: Slot) {
        self.last_sector = core.tables.requests[request].end();
        self.requests.end_batches();
        self.requests.dispatch(core, request);
    }

    /// Dispatches a queued request with the same direction and first sector as a new one, except in
    /// form 2, whose tree allows several. The new request is not in the tree at that moment, so it
    /// is not the successor of the dispatched one.
    #[inline]
    fn dispatch_alias<H: HostTypes>(&mut self, core: &mut QueueCore<H>, request: Slot) {
        if self.form != Form::Counted {
            let op = core.tables.requests[request].op;
            sorted_fifo::move_alias(
                self,
                core,
                request,
                |deadline| deadline.requests.fifo_mut(op).tree_mut(),
                Self::move_to_dispatch,
            );
        }
    }
}
