//! The elevator of Linux 2.4, "elevator_linus": one list, sorted as requests arrive, each of which may be passed only so often.
//!
//! The idea: keep the queue as sweeps over the disk, one after the other, by putting each new request where it fits between two
//! neighbours; and so that nobody is passed for ever, give each request a number of *passovers*, `elvtune`'s read and write latency,
//! which new ones use up as they go before it.
//!
//! The state: one list in the order in which the driver will get it, and what each request has left. A new bio walks the list
//! from its tail and does three things at once: it takes a passover from what it passes, remembers the first place where it would
//! fit, and looks for a request that it can join. The walk is the definition, so it costs what it costs in 2.4, a look at each
//! queued request (in form 0 each is looked at once more than it has passovers at the most): the pool of requests kept it short there, as
//! it does here.
//!
//! 2.4 went through several forms. Form 0 is that of 2.4.1. In form 1, Red Hat's 2.4.18, one whose passovers are used up only
//! forbids to insert before it, and in form 2, 2.4.32, passovers are taken only by requests that really go before; both let a read
//! go ahead of a long row of writes. Form 3 is the `noop` of that time, which merges and appends. The first form of all, that of 2.4.0,
//! is not here. In 2.4 the driver worked on the head of the list in place; here it takes requests off the list, so nothing in it is in work.

use crate::bio::{Bio, Op};
use crate::collections::{Arena, List, NIL, Slot};
use crate::elevator::info::Info;
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::{Capacity, HostTypes, TableMaker, TableOf};
use crate::elevator::tunable::{Tunable, Unit};
use crate::elevator::{Elevator, MakeTables, Merge, Search};
use crate::layer::BlockLayer;
use crate::request::Arrivals;

/// What the registry tells of it.
pub(crate) const INFO: Info = Info {
    name: "linus",
    aliases: &["linus-2.4"],
    kernel: "2.4.1 (form 0), Red Hat's 2.4.18 (form 1), 2.4.32 (form 2), noop of 2.4 (form 3)",
    in_linux: "2.4",
    headline: "One list of sweeps; each request is passed so often",
    idea: "One list; a new request goes where it fits between two neighbours, and uses up a passover of each request that it goes before.",
    suits: "Throughput of one or a few streams. A stream of writes delays reads for seconds: the reason for what came after it.",
    // Its own, of 2.4, is not here: the oldest one that is.
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
            meaning: "How often a read may be passed; in forms 0 and 1 a merge behind it costs as many as the bio has sectors.",
            trade_off: "Lower bounds what a read waits for and seeks more.",
        },
        Tunable {
            name: "write_latency",
            unit: Unit::Times,
            default: 16384,
            min: 0,
            max: i32::MAX as i64,
            meaning: "The same for a write.",
            trade_off: "As above. 0 for both is first come, first served.",
        },
        Tunable {
            name: "max_bomb_segments",
            unit: Unit::Requests,
            default: 0,
            min: 0,
            max: i32::MAX as i64,
            meaning: "A read goes ahead of writes once so many of them (and one more for each 64 sectors of one) would come before it; 0 is \
                      never. Without effect in forms 0 and 3.",
            trade_off: "Lower lets reads through earlier, and breaks up runs of writes.",
        },
        Tunable {
            name: "form",
            unit: Unit::Form,
            default: 0,
            min: 0,
            max: 3,
            meaning: "0 is 2.4.1, 1 Red Hat's 2.4.18, 2 is 2.4.32, 3 noop. Setting it sets the others to what that kernel had: 8192, 16384, 0; the \
                      same and 6; 128, 256, 4; 0, 0, 0. Not a tunable of the kernel's.",
            trade_off: "Forms 1 and 2 spare reads the worst of it.",
        },
    ],
};

/// Which kernel's rules: see the tunable `form`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    First,
    RedHat,
    Last,
    Noop,
}

/// Its tables.
pub(crate) struct Tables<H: HostTypes> {
    left: H::Slots<i64>,
}

/// The state.
pub(crate) struct Linus<H: HostTypes> {
    queue: List<Arrivals>,
    /// The passovers that each request has left.
    left: TableOf<H, i64>,
    /// Where the bio that was looked at last goes, if it comes as a request before anything else changes.
    place: Option<Place>,
    read_latency: i64,
    write_latency: i64,
    max_bomb_segments: i64,
    form: Form,
}

/// A place in the list, for the bio of this process, token and first sector: tokens are the submitters' own, and need not differ.
#[derive(Clone, Copy, Debug)]
struct Place {
    context: Slot,
    token: u64,
    sector: u64,
    /// The request to go behind, or [`NIL`]: the tail.
    after: Slot,
}

/// A bio, or a request that is new.
#[derive(Clone, Copy)]
struct Newcomer {
    op: Op,
    sector: u64,
    sectors: u32,
    /// It may join a queued request.
    merges: bool,
}

/// What a walk through the list has found.
struct Walk {
    /// The first place from the tail where the newcomer fits, or [`NIL`].
    after: Slot,
    merge: Option<(Slot, Merge)>,
    /// A read would be passed, or looked at.
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
            place: None,
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
        let newcomer = Newcomer { op: bio.op, sector: bio.sector, sectors: bio.sectors, merges: true };
        let walk = self.walk(core, newcomer);
        if let Some((request, merge)) = walk.merge {
            self.place = None;
            return Search::Found(request, merge);
        }
        let after = self.place_of(core, newcomer, &walk);
        self.place = Some(Place { context: bio.context.slot, token: bio.token, sector: bio.sector, after });
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
        self.place = None;
    }

    fn insert(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let entry = &core.tables.requests[request];
        let newcomer = Newcomer { op: entry.op, sector: entry.sector, sectors: entry.sectors, merges: false };
        let is_of_it =
            |place: &Place| (place.context, place.token, place.sector) == (entry.context, entry.token, entry.sector);
        let after = match self.place.take().filter(is_of_it) {
            Some(place) => place.after,
            // Nobody looked for a place, or things have changed while its process slept.
            None => {
                let walk = self.walk(core, newcomer);
                self.place_of(core, newcomer, &walk)
            }
        };
        self.left[request] = if newcomer.op == Op::Read { self.read_latency } else { self.write_latency };
        if after == NIL {
            self.queue.push_back(&mut core.tables.arrivals, request);
        } else {
            self.queue.insert_after(&mut core.tables.arrivals, after, request);
        }
    }

    fn dispatch(&mut self, core: &mut QueueCore<H>, _force: bool) -> u32 {
        self.place = None;
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
    fn walk(&mut self, core: &QueueCore<H>, newcomer: Newcomer) -> Walk {
        let walk = match self.form {
            Form::First | Form::RedHat => self.walk_and_age(core, newcomer),
            Form::Last => self.walk_then_age(core, newcomer),
            Form::Noop => self.walk_to_merge(core, newcomer),
        };
        debug_assert!(walk.merge.is_none() || newcomer.merges);
        walk
    }

    /// 2.4.1, and Red Hat's: whatever is looked at loses a passover. One that had none left ends the walk, or, in Red Hat's, lets nobody be
    /// inserted before it.
    fn walk_and_age(&mut self, core: &QueueCore<H>, newcomer: Newcomer) -> Walk {
        let mut walk = Walk { after: NIL, merge: None, met_read: false };
        let cost = i64::from(newcomer.sectors);
        let (mut at, mut closed) = (self.queue.tail(), false);
        while at != NIL {
            let left = self.left[at];
            self.left[at] = left.saturating_sub(1);
            closed |= left <= 0;
            if closed && self.form == Form::First {
                break;
            }
            if walk.after == NIL && !closed && self.fits_behind(core, at, newcomer.sector) {
                walk.after = at;
            }
            if takes(core, at, newcomer) {
                closed |= self.left[at] < cost;
                if closed && self.form == Form::First {
                    break;
                }
                if let Some(merge) = touch(core, at, newcomer) {
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

    /// 2.4.32: nothing is lost by being looked at; what the newcomer goes before loses a passover. One that has none left takes a bio at
    /// its end, and ends the walk.
    fn walk_then_age(&mut self, core: &QueueCore<H>, newcomer: Newcomer) -> Walk {
        let mut walk = Walk { after: NIL, merge: None, met_read: false };
        let mut at = self.queue.tail();
        while at != NIL {
            walk.met_read |= core.reads(at);
            let spent = self.left[at] <= 0;
            if walk.after == NIL && !spent && self.fits_behind(core, at, newcomer.sector) {
                walk.after = at;
            }
            let merge = if takes(core, at, newcomer) { touch(core, at, newcomer) } else { None };
            if let Some(merge) = merge
                && (merge == Merge::Back || !spent)
            {
                if merge == Merge::Front {
                    self.left[at] = self.left[at].saturating_sub(1);
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

    /// noop: the first from the tail that it can join.
    fn walk_to_merge(&self, core: &QueueCore<H>, newcomer: Newcomer) -> Walk {
        let mut at = self.queue.tail();
        while at != NIL {
            if takes(core, at, newcomer)
                && let Some(merge) = touch(core, at, newcomer)
            {
                return Walk { after: NIL, merge: Some((at, merge)), met_read: false };
            }
            at = self.queue.prev(&core.tables.arrivals, at);
        }
        Walk { after: NIL, merge: None, met_read: false }
    }

    /// Where the newcomer goes: where it fits, or, if it reads, ahead of a long row of writes; or [`NIL`], to the tail.
    fn place_of(&self, core: &QueueCore<H>, newcomer: Newcomer, walk: &Walk) -> Slot {
        let promotes = match self.form {
            Form::RedHat => true,
            Form::Last => !walk.met_read,
            Form::First | Form::Noop => false,
        };
        if newcomer.op != Op::Read || !promotes || self.max_bomb_segments <= 0 {
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

    /// Whether a request of this sector goes between `at` and the one after it: within a sweep, or where one ends and the next begins.
    fn fits_behind(&self, core: &QueueCore<H>, at: Slot, sector: u64) -> bool {
        let after = self.queue.next(&core.tables.arrivals, at);
        if after == NIL {
            return false;
        }
        let (low, high) = (core.tables.requests[at].sector, core.tables.requests[after].sector);
        if high > low { low < sector && sector < high } else { sector > low || sector < high }
    }

    /// Everything behind `request` loses so many passovers.
    fn age_after(&mut self, core: &QueueCore<H>, request: Slot, cost: i64) {
        let mut at = self.queue.next(&core.tables.arrivals, request);
        while at != NIL {
            self.left[at] = self.left[at].saturating_sub(cost);
            at = self.queue.next(&core.tables.arrivals, at);
        }
    }
}

/// Whether a request may take the newcomer, if they touch.
fn takes<H: HostTypes>(core: &QueueCore<H>, request: Slot, newcomer: Newcomer) -> bool {
    let entry = &core.tables.requests[request];
    let room = entry.sectors.checked_add(newcomer.sectors).is_some_and(|sectors| sectors <= core.max_sectors);
    newcomer.merges && room && entry.op == newcomer.op && core.is_mergeable(request)
}

/// At which end they touch, if they do.
fn touch<H: HostTypes>(core: &QueueCore<H>, request: Slot, newcomer: Newcomer) -> Option<Merge> {
    let entry = &core.tables.requests[request];
    if entry.end() == newcomer.sector {
        return Some(Merge::Back);
    }
    (newcomer.sector.saturating_add(u64::from(newcomer.sectors)) == entry.sector).then_some(Merge::Front)
}
