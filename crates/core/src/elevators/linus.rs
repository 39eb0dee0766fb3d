//! The elevator of Linux 2.4, "elevator_linus": one list, sorted as requests arrive, with a limit
//! on how often each request may be passed.
//!
//! The idea: keep the queue as consecutive sweeps over the disk by inserting each new request where
//! it fits between two neighbours. To prevent starvation, each request has a number of *passovers*
//! (`elvtune`'s read and write latency), which new requests use up when they go before it.
//!
//! The state is one list in the order of dispatch, and the remaining passovers of each request. A
//! new bio walks the list from its tail and does three things: it takes a passover from the
//! requests that it passes, records the first position where it would fit, and searches for a
//! request into which it can be merged. The walk costs as much as in 2.4, one step per queued
//! request; the request pool keeps the list short.
//!
//! 2.4 had several forms. Form 0 is 2.4.1. In form 1 (Red Hat's 2.4.18) a request without passovers
//! only forbids insertion before it. In form 2 (2.4.32) only requests that actually go before take
//! passovers. Both let a read go ahead of a long run of writes. Form 3 is the `noop` of that time,
//! which merges and appends. The form of 2.4.0 is not implemented. In 2.4 the driver processed the
//! head of the list in place; here it removes requests from the list, so no listed request is in
//! service.

use crate::bio::{Bio, Op};
use crate::collections::{Arena, Count, List, NIL, Slot};
use crate::elevator::capacity::Capacity;
use crate::elevator::info::Info;
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::{HostTypes, TableMaker, TableOf};
use crate::elevator::tunable::{Tunable, Unit};
use crate::elevator::{Elevator, MakeTables, Merge, Search};
use crate::layer::BlockLayer;
use crate::request::Arrivals;

/// The row of the registry.
pub(crate) const INFO: Info = Info {
    name: "linus",
    aliases: &["linus-2.4"],
    kernel: "2.4.1 (form 0), Red Hat's 2.4.18 (form 1), 2.4.32 (form 2), noop of 2.4 (form 3)",
    in_linux: "2.4",
    headline: "One list of sweeps; passing a request is limited",
    idea: "One list; a new request goes where it fits between two neighbours and uses up a \
           passover of each request before which it goes.",
    suits: "Throughput of one or a few streams. A stream of writes delays reads for seconds, which \
            led to the later elevators.",
    // The block layer of 2.4 is not implemented; this is the oldest available.
    layer: BlockLayer::V2_6_18,
    groups: false,
    reservations: false,
    nr_requests: None,
    hashes_back_merges: false,
    tunables: &[
        Tunable {
            name: "read_latency",
            unit: Unit::Times,
            default: 8192,
            min: 0,
            max: i32::MAX as i64,
            meaning: "How often a read may be passed. In forms 0 and 1, a merge behind it uses up \
                      as many passovers as the bio has sectors.",
            trade_off: "Lower bounds the wait of reads and seeks more.",
        },
        Tunable {
            name: "write_latency",
            unit: Unit::Times,
            default: 16384,
            min: 0,
            max: i32::MAX as i64,
            meaning: "The same for a write.",
            trade_off: "As above, for writes. 0 for both is first come, first served.",
        },
        Tunable {
            name: "max_bomb_segments",
            unit: Unit::Requests,
            default: 0,
            min: 0,
            max: i32::MAX as i64,
            meaning: "A read goes ahead of writes if at least this many writes (each 64 sectors \
                      count as one more) would precede it; 0 disables this. No effect in forms 0 \
                      and 3.",
            trade_off: "Lower lets reads through earlier, and breaks up runs of writes.",
        },
        Tunable {
            name: "form",
            unit: Unit::Form,
            default: 0,
            min: 0,
            max: 3,
            meaning: "0 is 2.4.1, 1 Red Hat's 2.4.18, 2 is 2.4.32, 3 noop. Setting it also sets \
                      the other tunables to that kernel's values: 8192, 16384, 0; the same and 6; \
                      128, 256, 4; 0, 0, 0. Not a tunable of the kernel.",
            trade_off: "Forms 1 and 2 shorten the longest delays of reads.",
        },
    ],
};

/// The kernel's variant, as set by the tunable `form`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    First,
    RedHat,
    Last,
    Noop,
}

/// The tables of the elevator.
pub(crate) struct Tables<H: HostTypes> {
    left: H::Slots<i64>,
}

/// The state of the elevator.
pub(crate) struct Linus<H: HostTypes> {
    queue: List<Arrivals>,
    /// The remaining passovers of each request.
    left: TableOf<H, i64>,
    /// The position computed for the last bio; valid if the bio becomes a request before the list
    /// changes.
    cached_position: Option<CachedPosition>,
    read_latency: i64,
    write_latency: i64,
    max_bomb_segments: i64,
    form: Form,
}

/// A position in the list for the bio with this process, token and first sector. Tokens alone need
/// not be unique.
#[derive(Clone, Copy, Debug)]
struct CachedPosition {
    context: Slot,
    token: u64,
    sector: u64,
    /// The request behind which the bio goes, or [`NIL`] for the tail.
    after: Slot,
}

/// A bio or a new request.
#[derive(Clone, Copy)]
struct IncomingIo {
    op: Op,
    sector: u64,
    sectors: u32,
    /// Whether it may be merged into a queued request.
    merges: bool,
}

/// The result of a walk through the list.
struct Walk {
    /// The first position from the tail where the incoming request fits, or [`NIL`].
    after: Slot,
    merge: Option<(Slot, Merge)>,
    /// Whether a read would be passed or was examined.
    met_read: bool,
}

impl<H: HostTypes> MakeTables<H> for Linus<H> {
    fn make_tables<M: TableMaker<H>>(capacity: Capacity, maker: &mut M) -> Tables<H> {
        Tables { left: maker.table(capacity.request_slots()) }
    }
}

impl<H: HostTypes> Elevator<H> for Linus<H> {
    type Tables = Tables<H>;

    fn new(core: &mut QueueCore<H>, tables: Tables<H>) -> Self {
        let mut new = Linus {
            queue: List::default(),
            left: Arena::new(tables.left),
            cached_position: None,
            read_latency: 0,
            write_latency: 0,
            max_bomb_segments: 0,
            form: Form::First,
        };
        for (index, tunable) in INFO.tunables.iter().enumerate() {
            new.set_tunable(core, index, tunable.default);
        }
        new
    }

    fn into_tables(self) -> Tables<H> {
        Tables { left: self.left.into_slots() }
    }

    fn tunable(&self, index: usize) -> i64 {
        match index {
            0 => self.read_latency,
            1 => self.write_latency,
            2 => self.max_bomb_segments,
            _ => self.form as i64,
        }
    }

    fn set_tunable(&mut self, _: &mut QueueCore<H>, index: usize, value: i64) {
        match index {
            0 => self.read_latency = value,
            1 => self.write_latency = value,
            2 => self.max_bomb_segments = value,
            _ => {
                let (form, read_latency, write_latency, max_bomb_segments) = match value {
                    0 => (Form::First, 8192, 16384, 0),
                    1 => (Form::RedHat, 8192, 16384, 6),
                    2 => (Form::Last, 128, 256, 4),
                    _ => (Form::Noop, 0, 0, 0),
                };
                self.form = form;
                self.read_latency = read_latency;
                self.write_latency = write_latency;
                self.max_bomb_segments = max_bomb_segments;
            }
        }
    }

    fn searches_merges(&self) -> bool {
        true
    }

    fn find_merge(&mut self, core: &mut QueueCore<H>, bio: &Bio) -> Search {
        let incoming = IncomingIo { op: bio.op, sector: bio.sector, sectors: bio.sectors, merges: true };
        let walk = self.walk(core, incoming);
        if let Some((request, merge)) = walk.merge {
            self.cached_position = None;
            return Search::Found(request, merge);
        }
        let after = self.position_of(core, incoming, &walk);
        self.cached_position =
            Some(CachedPosition { context: bio.context.slot, token: bio.token, sector: bio.sector, after });
        Search::Nothing
    }

    fn former(&self, core: &QueueCore<H>, request: Slot) -> Slot {
        self.queue.prev(&core.tables.arrivals, request)
    }

    fn latter(&self, core: &QueueCore<H>, request: Slot) -> Slot {
        self.queue.next(&core.tables.arrivals, request)
    }

    fn join(&mut self, core: &mut QueueCore<H>, request: Slot, absorbed: Slot) {
        self.left[request] = self.left[request].min(self.left[absorbed]);
        self.queue.remove(&mut core.tables.arrivals, absorbed);
        self.cached_position = None;
    }

    fn insert(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let entry = &core.tables.requests[request];
        let incoming = IncomingIo { op: entry.op, sector: entry.sector, sectors: entry.sectors, merges: false };
        let is_of_request = |cached: &CachedPosition| {
            (cached.context, cached.token, cached.sector) == (entry.context, entry.token, entry.sector)
        };
        let after = match self.cached_position.take().filter(is_of_request) {
            Some(cached) => cached.after,
            // No position was recorded, or the queue has changed while the process slept.
            None => {
                let walk = self.walk(core, incoming);
                self.position_of(core, incoming, &walk)
            }
        };
        self.left[request] = if incoming.op == Op::Read { self.read_latency } else { self.write_latency };
        if after == NIL {
            self.queue.push_back(&mut core.tables.arrivals, request);
        } else {
            self.queue.insert_after(&mut core.tables.arrivals, after, request);
        }
    }

    fn dispatch(&mut self, core: &mut QueueCore<H>, _force: bool) -> u32 {
        self.cached_position = None;
        let head = self.queue.pop_front(&mut core.tables.arrivals);
        if head == NIL {
            return 0;
        }
        core.dispatch_append(head);
        1
    }

    fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}

impl<H: HostTypes> Linus<H> {
    fn walk(&mut self, core: &QueueCore<H>, incoming: IncomingIo) -> Walk {
        let walk = match self.form {
            Form::First | Form::RedHat => self.walk_and_age(core, incoming),
            Form::Last => self.walk_then_age(core, incoming),
            Form::Noop => self.walk_to_merge(core, incoming),
        };
        debug_assert!(walk.merge.is_none() || incoming.merges);
        walk
    }

    /// The walk of forms 0 and 1: every examined request loses a passover. A request without
    /// passovers ends the walk (form 0) or forbids insertion before it (form 1).
    fn walk_and_age(&mut self, core: &QueueCore<H>, incoming: IncomingIo) -> Walk {
        let mut walk = Walk { after: NIL, merge: None, met_read: false };
        let cost = i64::from(incoming.sectors);
        let (mut at, mut closed) = (self.queue.tail(), false);
        while at != NIL {
            let left = self.left[at];
            self.left[at] = left.saturating_sub(1);
            closed |= left <= 0;
            if closed && self.form == Form::First {
                break;
            }
            if walk.after == NIL && !closed && self.fits_behind(core, at, incoming.sector) {
                walk.after = at;
            }
            if can_merge(core, at, incoming) {
                closed |= self.left[at] < cost;
                if closed && self.form == Form::First {
                    break;
                }
                if let Some(merge) = adjacent_end(core, at, incoming) {
                    if merge == Merge::Front {
                        self.left[at] = self.left[at].saturating_sub(cost);
                    }
                    self.age_after(core, at, cost);
                    walk.merge = Some((at, merge));
                    break;
                }
            }
            at = self.queue.prev(&core.tables.arrivals, at);
        }
        walk
    }

    /// The walk of form 2: only requests before which the incoming one goes lose a passover. A
    /// request without passovers can still take a bio at its end, and ends the walk.
    fn walk_then_age(&mut self, core: &QueueCore<H>, incoming: IncomingIo) -> Walk {
        let mut walk = Walk { after: NIL, merge: None, met_read: false };
        let mut at = self.queue.tail();
        while at != NIL {
            walk.met_read |= core.reads(at);
            let spent = self.left[at] <= 0;
            if walk.after == NIL && !spent && self.fits_behind(core, at, incoming.sector) {
                walk.after = at;
            }
            let merge = if can_merge(core, at, incoming) { adjacent_end(core, at, incoming) } else { None };
            if let Some(merge) = merge
                && (merge == Merge::Back || !spent)
            {
                if merge == Merge::Front {
                    self.left[at].decrement();
                }
                walk.merge = Some((at, merge));
                break;
            }
            if spent {
                break;
            }
            at = self.queue.prev(&core.tables.arrivals, at);
        }
        let before = walk.merge.map_or(walk.after, |(request, _)| request);
        if before != NIL {
            self.age_after(core, before, 1);
        }
        walk
    }

    /// The walk of form 3 (noop): the first request from the tail into which the incoming one can
    /// be merged.
    fn walk_to_merge(&self, core: &QueueCore<H>, incoming: IncomingIo) -> Walk {
        let mut at = self.queue.tail();
        while at != NIL {
            if can_merge(core, at, incoming)
                && let Some(merge) = adjacent_end(core, at, incoming)
            {
                return Walk { after: NIL, merge: Some((at, merge)), met_read: false };
            }
            at = self.queue.prev(&core.tables.arrivals, at);
        }
        Walk { after: NIL, merge: None, met_read: false }
    }

    /// The position of the incoming request: where it fits or, for a read, ahead of a long run of
    /// writes; [`NIL`] for the tail.
    fn position_of(&self, core: &QueueCore<H>, incoming: IncomingIo, walk: &Walk) -> Slot {
        let promotes = match self.form {
            Form::RedHat => true,
            Form::Last => !walk.met_read,
            Form::First | Form::Noop => false,
        };
        if incoming.op != Op::Read || !promotes || self.max_bomb_segments <= 0 {
            return walk.after;
        }
        let (mut at, mut cost) = (self.queue.head(), 0i64);
        while at != NIL && at != walk.after {
            if !core.reads(at) {
                cost = cost.saturating_add(i64::from(core.tables.requests[at].sectors / 64).saturating_add(1));
                if cost >= self.max_bomb_segments {
                    return at;
                }
            }
            at = self.queue.next(&core.tables.arrivals, at);
        }
        walk.after
    }

    /// Returns true if a request at this sector goes between `at` and its successor: within a
    /// sweep, or between two sweeps.
    fn fits_behind(&self, core: &QueueCore<H>, at: Slot, sector: u64) -> bool {
        let after = self.queue.next(&core.tables.arrivals, at);
        if after == NIL {
            return false;
        }
        let (low, high) = (core.tables.requests[at].sector, core.tables.requests[after].sector);
        if high > low { low < sector && sector < high } else { sector > low || sector < high }
    }

    /// Takes passovers from all requests behind `request`.
    fn age_after(&mut self, core: &QueueCore<H>, request: Slot, cost: i64) {
        let mut at = self.queue.next(&core.tables.arrivals, request);
        while at != NIL {
            self.left[at] = self.left[at].saturating_sub(cost);
            at = self.queue.next(&core.tables.arrivals, at);
        }
    }
}

/// Returns true if a request may take the incoming one, provided that they are adjacent.
fn can_merge<H: HostTypes>(core: &QueueCore<H>, request: Slot, incoming: IncomingIo) -> bool {
    let entry = &core.tables.requests[request];
    let room = entry.sectors.checked_add(incoming.sectors).is_some_and(|sectors| sectors <= core.max_sectors);
    incoming.merges && room && entry.op == incoming.op && core.is_mergeable(request)
}

/// The end at which they are adjacent, if they are.
fn adjacent_end<H: HostTypes>(core: &QueueCore<H>, request: Slot, incoming: IncomingIo) -> Option<Merge> {
    let entry = &core.tables.requests[request];
    if entry.end() == incoming.sector {
        return Some(Merge::Back);
    }
    (incoming.sector.saturating_add(u64::from(incoming.sectors)) == entry.sector).then_some(Merge::Front)
}
