//! The registry of elevators: one line each, from which everything else finds them.

use crate::bio::{Bio, Op};
use crate::clock::Timer;
use crate::elevators::bandwidth::Bandwidth;
use crate::elevators::{self, Elevator, Layer, MakeTables, MayQueue, Merge, Search};
use crate::layer::BlockLayer;
use crate::parts::Slot;
use crate::queue::block::Block;
use crate::queue::reserve::{Holder, Reservation, ReserveError, Reserved};
use crate::storage::{Capacity, Home, Maker};
use crate::tunable::Tunable;

/// What there is to tell of an elevator.
#[derive(Clone, Copy, Debug)]
pub struct Info {
    /// Its name.
    pub name: &'static str,
    /// Other names that it goes by.
    pub aliases: &'static [&'static str],
    /// The kernels whose decisions it takes.
    pub kernel: &'static str,
    /// The kernels that had it, in a word or two: "2.6.6-2.6.9", "posted 2003", "never".
    pub in_linux: &'static str,
    /// The idea on a line of a list: at most 52 characters.
    pub headline: &'static str,
    /// How it works, in a few sentences.
    pub idea: &'static str,
    /// What it is good for, and what not.
    pub suits: &'static str,
    /// Its tunables, in the order in which they are numbered.
    pub tunables: &'static [Tunable],
    /// The block layer that it worked in.
    pub layer: BlockLayer,
    /// Whether it divides the disk among groups; the others treat all contexts as of one group.
    pub groups: bool,
    /// Whether processes can reserve bandwidth from it as it is; from the others they can with the layer over them
    /// ([`ElevatorStorage::make_reserving`](crate::ElevatorStorage::make_reserving)).
    pub reservations: bool,
    /// The size of the pool of requests a direction that it asked for when it was attached, in kernels whose elevators did.
    pub(crate) nr_requests: Option<u32>,
    /// Whether it looked for back merges by itself in kernels whose block layer did not.
    pub(crate) hashes_back_merges: bool,
}

macro_rules! elevators {
    ($($kind:ident in $module:ident: $type:ty;)*) => {
        /// An elevator's kind.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs)]
        pub enum Kind {
            $($kind,)*
        }

        impl Kind {
            /// All kinds, in the order in which Linux got them.
            pub const ALL: &'static [Kind] = &[$(Kind::$kind,)*];

            /// What there is to tell of it.
            pub const fn info(self) -> &'static Info {
                match self {
                    $(Kind::$kind => &elevators::$module::INFO,)*
                }
            }
        }

        /// One of the elevators, or the layer over one. A call goes through one `match`, never through a pointer (with the layer through two);
        /// and there is no heap to put the larger ones on.
        #[allow(clippy::large_enum_variant)]
        pub(crate) enum AnyElevator<H: Home, L: Layer<H> = Reserving<H>> {
            $($kind($type),)*
            Layered(L),
        }

        impl<H: Home, L: Layer<H>> AnyElevator<H, L> {
            pub fn kind(&self) -> Kind {
                match self {
                    $(AnyElevator::$kind(_) => Kind::$kind,)*
                    AnyElevator::Layered(layer) => layer.kind(),
                }
            }

            /// A fresh elevator of the kind that the tables are for.
            fn of(block: &mut Block<H>, tables: AnyTables<H, L>) -> Self {
                match tables {
                    $(AnyTables::$kind(tables) => AnyElevator::$kind(<$type as Elevator<H>>::new(block, tables)),)*
                    AnyTables::Layered(tables) => AnyElevator::Layered(L::new(block, tables)),
                }
            }

            fn end(self) -> AnyTables<H, L> {
                match self {
                    $(AnyElevator::$kind(elevator) => AnyTables::$kind(Elevator::<H>::into_tables(elevator)),)*
                    AnyElevator::Layered(layer) => AnyTables::Layered(layer.into_tables()),
                }
            }
        }

        /// The tables of one of the elevators.
        #[allow(clippy::large_enum_variant)]
        pub(crate) enum AnyTables<H: Home, L: Layer<H> = Reserving<H>> {
            $($kind(<$type as Elevator<H>>::Tables),)*
            Layered(L::Tables),
        }

        impl<H: Home, L: Layer<H>> AnyTables<H, L> {
            pub fn make<M: Maker<H>>(kind: Kind, capacity: Capacity, maker: &mut M) -> Self {
                match kind {
                    $(Kind::$kind => AnyTables::$kind(<$type as MakeTables<H>>::make_tables(capacity, maker)),)*
                }
            }

            pub fn kind(&self) -> Kind {
                match self {
                    $(AnyTables::$kind(_) => Kind::$kind,)*
                    AnyTables::Layered(tables) => L::kind_of(tables),
                }
            }

            pub fn is_layered(&self) -> bool {
                matches!(self, AnyTables::Layered(_))
            }
        }

        /// Calls a method of whichever elevator it is.
        macro_rules! each {
            ($self:expr, $elevator:ident => $call:expr) => {
                match $self {
                    $(AnyElevator::$kind($elevator) => $call,)*
                    AnyElevator::Layered($elevator) => $call,
                }
            };
        }
    };
}

elevators! {
    Linus in linus: elevators::linus::Linus<H>;
    Noop in noop: elevators::noop::Noop;
    Deadline in deadline: elevators::deadline::Deadline;
    Anticipatory in anticipatory: elevators::anticipatory::Anticipatory;
    Sfq in sfq: elevators::sfq::Sfq<H>;
    CfqV1 in cfq_v1: elevators::cfq_v1::CfqV1<H>;
    CfqV2 in cfq_v2: elevators::cfq_v2::CfqV2<H>;
    CfqV3 in cfq_v3: elevators::cfq_v3::CfqV3<H>;
    CfqTree in cfq_tree: elevators::cfq_tree::CfqTree<H>;
    CfqBw in cfq_bw: elevators::cfq_bw::CfqBw<H>;
    BfqV0 in bfq_v0: elevators::bfq_v0::BfqV0<H>;
    CfqWf2q in cfq_wf2q: elevators::cfq_wf2q::CfqWf2q<H>;
    Fiops in fiops: elevators::fiops::Fiops<H>;
    Cfq in cfq: elevators::cfq::Cfq<H>;
    MqDeadline in mq_deadline: elevators::mq_deadline::MqDeadline;
    Bfq in bfq: elevators::bfq::Bfq<H>;
    Kyber in kyber: elevators::kyber::Kyber<H>;
}

impl Kind {
    /// The kind of this name or alias.
    pub fn from_name(name: &str) -> Option<Kind> {
        Kind::ALL.iter().copied().find(|kind| kind.info().name == name || kind.info().aliases.contains(&name))
    }

    /// Its place in [`Kind::ALL`].
    pub fn index(self) -> u8 {
        self as u8
    }
}

/// Reserved bandwidth over any elevator.
pub(crate) type Reserving<H> = Bandwidth<H, AnyElevator<H, NoLayer>>;

impl<H: Home> AnyTables<H> {
    /// The tables of the layer over an elevator of this kind. One that has the layer already gets no second.
    pub fn make_reserving<M: Maker<H>>(kind: Kind, capacity: Capacity, maker: &mut M) -> Self {
        if kind.info().reservations {
            return AnyTables::make(kind, capacity, maker);
        }
        AnyTables::Layered(Reserving::<H>::make_tables_over(capacity, maker, |maker| {
            AnyTables::make(kind, capacity, maker)
        }))
    }
}

impl<H: Home> AnyElevator<H> {
    /// Whether the layer is over the elevator.
    pub fn is_layered(&self) -> bool {
        matches!(self, AnyElevator::Layered(_))
    }

    /// The tunables: the layer's, then the elevator's own.
    pub fn tunables(&self) -> impl Iterator<Item = &'static Tunable> + use<H> {
        let layers: &[Tunable] = if self.is_layered() { Reservation::TUNABLES } else { &[] };
        layers.iter().chain(self.kind().info().tunables)
    }
}

impl<H: Home, L: Layer<H>> Elevator<H> for AnyElevator<H, L> {
    type Tables = AnyTables<H, L>;

    fn new(block: &mut Block<H>, tables: Self::Tables) -> Self {
        AnyElevator::of(block, tables)
    }
    fn into_tables(self) -> Self::Tables {
        self.end()
    }
    fn retire(&mut self, block: &mut Block<H>) {
        each!(self, e => e.retire(block))
    }
    fn tunable(&self, index: usize) -> i64 {
        each!(self, e => Elevator::<H>::tunable(e, index))
    }
    fn set_tunable(&mut self, block: &mut Block<H>, index: usize, value: i64) {
        each!(self, e => e.set_tunable(block, index, value))
    }
    fn find_merge(&mut self, block: &mut Block<H>, bio: &Bio) -> Search {
        each!(self, e => e.find_merge(block, bio))
    }
    fn searches_merges(&self) -> bool {
        each!(self, e => Elevator::<H>::searches_merges(e))
    }
    fn allow_merge(&mut self, block: &mut Block<H>, request: Slot, bio: &Bio) -> bool {
        each!(self, e => e.allow_merge(block, request, bio))
    }
    fn find_front_merge(&mut self, block: &mut Block<H>, bio: &Bio) -> Slot {
        each!(self, e => e.find_front_merge(block, bio))
    }
    fn former(&self, block: &Block<H>, request: Slot) -> Slot {
        each!(self, e => e.former(block, request))
    }
    fn latter(&self, block: &Block<H>, request: Slot) -> Slot {
        each!(self, e => e.latter(block, request))
    }
    fn merged(&mut self, block: &mut Block<H>, request: Slot, merge: Merge) {
        each!(self, e => e.merged(block, request, merge))
    }
    fn join(&mut self, block: &mut Block<H>, request: Slot, absorbed: Slot) {
        each!(self, e => e.join(block, request, absorbed))
    }
    fn may_queue(&mut self, block: &mut Block<H>, context: Slot, op: Op) -> MayQueue {
        each!(self, e => e.may_queue(block, context, op))
    }
    fn depth_limit(&self, block: &Block<H>, nr_requests: u32, bio: &Bio) -> u32 {
        each!(self, e => e.depth_limit(block, nr_requests, bio))
    }
    #[inline]
    fn allocate(&mut self, block: &mut Block<H>, request: Slot) {
        each!(self, e => hooks::allocate(e, block, request))
    }
    #[inline]
    fn free(&mut self, block: &mut Block<H>, request: Slot) {
        each!(self, e => hooks::free(e, block, request))
    }
    #[inline]
    fn prepare_insert(&mut self, block: &mut Block<H>, request: Slot) {
        each!(self, e => e.prepare_insert(block, request))
    }
    #[inline]
    fn insert(&mut self, block: &mut Block<H>, request: Slot) {
        each!(self, e => hooks::insert(e, block, request))
    }
    #[inline]
    fn dispatch(&mut self, block: &mut Block<H>, force: bool) -> u32 {
        each!(self, e => hooks::dispatch(e, block, force))
    }
    fn dispatch_real_time(&mut self, block: &mut Block<H>) -> u32 {
        each!(self, e => e.dispatch_real_time(block))
    }
    fn waits_anew(&self, block: &Block<H>) -> bool {
        each!(self, e => e.waits_anew(block))
    }
    #[inline]
    fn activate(&mut self, block: &mut Block<H>, request: Slot) {
        each!(self, e => e.activate(block, request))
    }
    fn deactivate(&mut self, block: &mut Block<H>, request: Slot) {
        each!(self, e => e.deactivate(block, request))
    }
    #[inline]
    fn complete(&mut self, block: &mut Block<H>, request: Slot) {
        each!(self, e => hooks::complete(e, block, request))
    }
    #[inline(always)]
    fn is_empty(&self) -> bool {
        each!(self, e => Elevator::<H>::is_empty(e))
    }
    fn exit(&mut self, block: &mut Block<H>, context: Slot) {
        each!(self, e => e.exit(block, context))
    }
    fn priority_changed(&mut self, block: &mut Block<H>, context: Slot) {
        each!(self, e => e.priority_changed(block, context))
    }
    fn reserve(&mut self, block: &mut Block<H>, who: Holder, wanted: Reservation) -> Result<(), ReserveError> {
        each!(self, e => e.reserve(block, who, wanted))
    }
    fn release(&mut self, block: &mut Block<H>, who: Holder) {
        each!(self, e => e.release(block, who))
    }
    fn reservation(&self, who: Holder) -> Option<Reservation> {
        each!(self, e => Elevator::<H>::reservation(e, who))
    }
    fn reserved(&self) -> Option<Reserved> {
        each!(self, e => Elevator::<H>::reserved(e))
    }
    fn group_created(&mut self, block: &mut Block<H>, group: Slot) {
        each!(self, e => e.group_created(block, group))
    }
    fn group_weights_changed(&mut self, block: &mut Block<H>, group: Slot) {
        each!(self, e => e.group_weights_changed(block, group))
    }
    fn release_group(&mut self, block: &mut Block<H>, group: Slot) -> bool {
        each!(self, e => e.release_group(block, group))
    }
    fn group_changed(&mut self, block: &mut Block<H>, context: Slot) {
        each!(self, e => e.group_changed(block, context))
    }
    fn timer(&mut self, block: &mut Block<H>, timer: Timer) {
        each!(self, e => e.timer(block, timer))
    }
}

/// No layer: there is none of these.
pub(crate) enum NoLayer {}

impl<H: Home> Layer<H> for NoLayer {
    fn kind(&self) -> Kind {
        match *self {}
    }
    fn kind_of(tables: &NoLayer) -> Kind {
        match *tables {}
    }
}

impl<H: Home> Elevator<H> for NoLayer {
    type Tables = NoLayer;

    fn new(_: &mut Block<H>, tables: NoLayer) -> Self {
        tables
    }
    fn into_tables(self) -> NoLayer {
        self
    }
    fn join(&mut self, _: &mut Block<H>, _: Slot, _: Slot) {
        match *self {}
    }
    fn insert(&mut self, _: &mut Block<H>, _: Slot) {
        match *self {}
    }
    fn dispatch(&mut self, _: &mut Block<H>, _: bool) -> u32 {
        match *self {}
    }
    fn is_empty(&self) -> bool {
        match *self {}
    }
}

/// The greater steps of a request's way, each elevator's in a function of its own: inlined into one that has them all, the smallest elevator
/// would pay for the registers and the frame that the largest needs. An elevator that calls itself does so through these too: what it
/// consists of then has one place to be inlined at.
pub(crate) mod hooks {
    use super::{Block, Elevator, Home, Slot};

    #[inline(never)]
    pub fn allocate<H: Home, E: Elevator<H>>(elevator: &mut E, block: &mut Block<H>, request: Slot) {
        elevator.allocate(block, request);
    }
    #[inline(never)]
    pub fn free<H: Home, E: Elevator<H>>(elevator: &mut E, block: &mut Block<H>, request: Slot) {
        elevator.free(block, request);
    }
    #[inline(never)]
    pub fn insert<H: Home, E: Elevator<H>>(elevator: &mut E, block: &mut Block<H>, request: Slot) {
        elevator.insert(block, request);
    }
    #[inline(never)]
    pub fn dispatch<H: Home, E: Elevator<H>>(elevator: &mut E, block: &mut Block<H>, force: bool) -> u32 {
        elevator.dispatch(block, force)
    }
    #[inline(never)]
    pub fn complete<H: Home, E: Elevator<H>>(elevator: &mut E, block: &mut Block<H>, request: Slot) {
        elevator.complete(block, request);
    }
}
