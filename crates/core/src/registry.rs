//! The registry of elevators. Each elevator has one line; all suites, commands and pages iterate
//! over it.

use crate::bio::{Bio, Op};
use crate::clock::Timer;
use crate::collections::Slot;
use crate::elevator::capacity::Capacity;
use crate::elevator::custom::CustomKind;
use crate::elevator::info::Info;
use crate::elevator::queue_core::QueueCore;
use crate::elevator::reservation::{Reservation, ReservationHolder, ReservationSummary, ReserveError};
use crate::elevator::tables::{HostTypes, TableMaker};
use crate::elevator::tunable::Tunable;
use crate::elevator::{ActiveSlice, Elevator, MakeTables, MayQueue, Merge, Search, hooks};
use crate::elevators;
use crate::elevators::bandwidth::Bandwidth;
use crate::elevators::custom::{Custom, CustomTables};

macro_rules! elevators {
    ($($kind:ident in $module:ident: $type:ty;)*) => {
        /// The kind of an elevator.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs)]
        pub enum Kind {
            $($kind,)*
            /// An elevator outside this crate.
            Custom(CustomKind),
        }

        impl Kind {
            /// All kinds but custom elevators: those of Linux in the order in which they appeared
            /// there, then the project's own.
            pub const ALL: &'static [Kind] = &[$(Kind::$kind,)*];

            /// The description of the elevator.
            pub const fn info(self) -> &'static Info {
                match self {
                    $(Kind::$kind => &elevators::$module::INFO,)*
                    Kind::Custom(custom) => custom.info(),
                }
            }
        }

        /// One of the elevators, or the reservation layer over one. A call is one `match` (two with
        /// the layer), never an indirect call. Large variants cannot be boxed, since there is no
        /// heap.
        #[allow(clippy::large_enum_variant)]
        pub(crate) enum AnyElevator<H: HostTypes, L: Layer<H> = Reserving<H>> {
            $($kind($type),)*
            Custom(Custom<H>),
            Layered(L),
        }

        impl<H: HostTypes, L: Layer<H>> AnyElevator<H, L> {
            pub fn kind(&self) -> Kind {
                match self {
                    $(AnyElevator::$kind(_) => Kind::$kind,)*
                    AnyElevator::Custom(custom) => Kind::Custom(custom.kind()),
                    AnyElevator::Layered(layer) => layer.kind(),
                }
            }

            /// Replaces this elevator by one of the kind for which the tables are, in place.
            pub fn install(&mut self, core: &mut QueueCore<H>, tables: AnyTables<H, L>) {
                match tables {
                    $(AnyTables::$kind(tables) => *self = AnyElevator::$kind(<$type as Elevator<H>>::new(core, tables)),)*
                    AnyTables::Custom(tables) => *self = AnyElevator::Custom(Custom::new(core, tables)),
                    AnyTables::Layered(tables) => *self = AnyElevator::Layered(L::new(core, tables)),
                }
            }

            fn end(self) -> AnyTables<H, L> {
                match self {
                    $(AnyElevator::$kind(elevator) => AnyTables::$kind(Elevator::<H>::into_tables(elevator)),)*
                    AnyElevator::Custom(custom) => AnyTables::Custom(custom.into_tables()),
                    AnyElevator::Layered(layer) => AnyTables::Layered(layer.into_tables()),
                }
            }
        }

        /// The tables of one of the elevators.
        #[allow(clippy::large_enum_variant)]
        pub(crate) enum AnyTables<H: HostTypes, L: Layer<H> = Reserving<H>> {
            $($kind(<$type as Elevator<H>>::Tables),)*
            Custom(CustomTables<H>),
            Layered(L::Tables),
        }

        impl<H: HostTypes, L: Layer<H>> AnyTables<H, L> {
            pub fn make<M: TableMaker<H>>(kind: Kind, capacity: Capacity, maker: &mut M) -> Self {
                match kind {
                    $(Kind::$kind => AnyTables::$kind(<$type as MakeTables<H>>::make_tables(capacity, maker)),)*
                    Kind::Custom(custom) => {
                        CustomTables::make(custom, capacity).map_or(AnyTables::Noop(()), AnyTables::Custom)
                    }
                }
            }

            pub fn kind(&self) -> Kind {
                match self {
                    $(AnyTables::$kind(_) => Kind::$kind,)*
                    AnyTables::Custom(tables) => Kind::Custom(tables.kind()),
                    AnyTables::Layered(tables) => L::kind_of(tables),
                }
            }

            pub fn is_layered(&self) -> bool {
                matches!(self, AnyTables::Layered(_))
            }
        }

        /// Calls a method of the contained elevator.
        macro_rules! each {
            ($self:expr, $elevator:ident => $call:expr) => {
                match $self {
                    $(AnyElevator::$kind($elevator) => $call,)*
                    AnyElevator::Custom($elevator) => $call,
                    AnyElevator::Layered($elevator) => $call,
                }
            };
        }
    };
}

impl<H: HostTypes, L: Layer<H>> Default for AnyElevator<H, L> {
    /// The elevator `noop`.
    fn default() -> Self {
        AnyElevator::Noop(elevators::noop::Noop::default())
    }
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
    Paternoster in paternoster: elevators::paternoster::Paternoster<H>;
}

impl Kind {
    /// Finds the kind with this name or alias, except custom elevators.
    pub fn from_name(name: &str) -> Option<Kind> {
        Kind::ALL.iter().copied().find(|kind| kind.info().name == name || kind.info().aliases.contains(&name))
    }

    /// The index in [`Kind::ALL`]; 255 for a custom elevator.
    pub fn index(self) -> u8 {
        (0..u8::MAX).zip(Kind::ALL).find(|(_, kind)| **kind == self).map_or(u8::MAX, |(index, _)| index)
    }
}

/// The bandwidth-reservation layer over any elevator.
pub(crate) type Reserving<H> = Bandwidth<H, AnyElevator<H, NoLayer>>;

impl<H: HostTypes> AnyTables<H> {
    /// Makes the tables of an elevator with the reservation layer over it. Elevators that include
    /// the layer receive no second one.
    pub fn make_reserving<M: TableMaker<H>>(kind: Kind, capacity: Capacity, maker: &mut M) -> Self {
        if kind.info().reservations {
            return AnyTables::make(kind, capacity, maker);
        }
        AnyTables::Layered(Reserving::<H>::make_tables_over(capacity, maker, |maker| {
            AnyTables::make(kind, capacity, maker)
        }))
    }
}

impl<H: HostTypes> AnyElevator<H> {
    /// Returns true if the reservation layer is over the elevator.
    pub fn is_layered(&self) -> bool {
        matches!(self, AnyElevator::Layered(_))
    }

    /// The tunables: those of the layer, then those of the elevator.
    pub fn tunables(&self) -> impl Iterator<Item = &'static Tunable> + use<H> {
        let layers: &[Tunable] = if self.is_layered() { Reservation::TUNABLES } else { &[] };
        layers.iter().chain(self.kind().info().tunables)
    }
}

impl<H: HostTypes, L: Layer<H>> Elevator<H> for AnyElevator<H, L> {
    type Tables = AnyTables<H, L>;

    fn new(core: &mut QueueCore<H>, tables: Self::Tables) -> Self {
        let mut elevator = AnyElevator::default();
        elevator.install(core, tables);
        elevator
    }
    fn into_tables(self) -> Self::Tables {
        self.end()
    }
    fn retire(&mut self, core: &mut QueueCore<H>) {
        each!(self, e => e.retire(core))
    }
    fn tunable(&self, index: usize) -> i64 {
        each!(self, e => Elevator::<H>::tunable(e, index))
    }
    fn set_tunable(&mut self, core: &mut QueueCore<H>, index: usize, value: i64) {
        each!(self, e => e.set_tunable(core, index, value))
    }
    fn find_merge(&mut self, core: &mut QueueCore<H>, bio: &Bio) -> Search {
        each!(self, e => e.find_merge(core, bio))
    }
    fn searches_merges(&self) -> bool {
        each!(self, e => Elevator::<H>::searches_merges(e))
    }
    fn allow_merge(&mut self, core: &mut QueueCore<H>, request: Slot, bio: &Bio) -> bool {
        each!(self, e => e.allow_merge(core, request, bio))
    }
    fn find_front_merge(&mut self, core: &mut QueueCore<H>, bio: &Bio) -> Slot {
        each!(self, e => e.find_front_merge(core, bio))
    }
    fn former(&self, core: &QueueCore<H>, request: Slot) -> Slot {
        each!(self, e => e.former(core, request))
    }
    fn latter(&self, core: &QueueCore<H>, request: Slot) -> Slot {
        each!(self, e => e.latter(core, request))
    }
    fn merged(&mut self, core: &mut QueueCore<H>, request: Slot, merge: Merge) {
        each!(self, e => e.merged(core, request, merge))
    }
    fn join(&mut self, core: &mut QueueCore<H>, request: Slot, absorbed: Slot) {
        each!(self, e => e.join(core, request, absorbed))
    }
    fn joined_at_insert(&mut self, core: &mut QueueCore<H>, request: Slot) {
        each!(self, e => e.joined_at_insert(core, request))
    }
    fn joins_queued(&self) -> bool {
        each!(self, e => Elevator::<H>::joins_queued(e))
    }
    fn settled_after(&self, request: Slot) -> Slot {
        each!(self, e => Elevator::<H>::settled_after(e, request))
    }
    fn may_queue(&mut self, core: &mut QueueCore<H>, context: Slot, op: Op) -> MayQueue {
        each!(self, e => e.may_queue(core, context, op))
    }
    fn depth_limit(&self, core: &QueueCore<H>, nr_requests: u32, bio: &Bio) -> u32 {
        each!(self, e => e.depth_limit(core, nr_requests, bio))
    }
    #[inline]
    fn allocate(&mut self, core: &mut QueueCore<H>, request: Slot) {
        each!(self, e => hooks::allocate(e, core, request))
    }
    #[inline]
    fn free(&mut self, core: &mut QueueCore<H>, request: Slot) {
        each!(self, e => hooks::free(e, core, request))
    }
    #[inline]
    fn prepare_insert(&mut self, core: &mut QueueCore<H>, request: Slot) {
        each!(self, e => e.prepare_insert(core, request))
    }
    #[inline]
    fn insert(&mut self, core: &mut QueueCore<H>, request: Slot) {
        each!(self, e => hooks::insert(e, core, request))
    }
    #[inline]
    fn prepare_and_insert(&mut self, core: &mut QueueCore<H>, request: Slot) {
        each!(self, e => {
            e.prepare_insert(core, request);
            hooks::insert(e, core, request)
        })
    }
    #[inline]
    fn complete_and_free(&mut self, core: &mut QueueCore<H>, request: Slot) {
        each!(self, e => {
            hooks::complete(e, core, request);
            hooks::free(e, core, request)
        })
    }
    #[inline]
    fn dispatch(&mut self, core: &mut QueueCore<H>, force: bool) -> u32 {
        each!(self, e => hooks::dispatch(e, core, force))
    }
    fn withdraw(&mut self, core: &mut QueueCore<H>, request: Slot) -> bool {
        each!(self, e => e.withdraw(core, request))
    }
    fn dispatch_real_time(&mut self, core: &mut QueueCore<H>) -> u32 {
        each!(self, e => e.dispatch_real_time(core))
    }
    fn would_restart_wait(&self, core: &QueueCore<H>) -> bool {
        each!(self, e => e.would_restart_wait(core))
    }
    #[inline]
    fn activate(&mut self, core: &mut QueueCore<H>, request: Slot) {
        each!(self, e => e.activate(core, request))
    }
    fn deactivate(&mut self, core: &mut QueueCore<H>, request: Slot) {
        each!(self, e => e.deactivate(core, request))
    }
    #[inline]
    fn complete(&mut self, core: &mut QueueCore<H>, request: Slot) {
        each!(self, e => hooks::complete(e, core, request))
    }
    #[inline(always)]
    fn is_empty(&self) -> bool {
        each!(self, e => Elevator::<H>::is_empty(e))
    }
    fn slice(&self, core: &QueueCore<H>) -> Option<ActiveSlice> {
        each!(self, e => e.slice(core))
    }
    fn failure(&self) -> Option<&str> {
        each!(self, e => Elevator::<H>::failure(e))
    }
    fn exit(&mut self, core: &mut QueueCore<H>, context: Slot) {
        each!(self, e => e.exit(core, context))
    }
    fn priority_changed(&mut self, core: &mut QueueCore<H>, context: Slot) {
        each!(self, e => e.priority_changed(core, context))
    }
    fn reserve(
        &mut self,
        core: &mut QueueCore<H>,
        holder: ReservationHolder,
        wanted: Reservation,
    ) -> Result<(), ReserveError> {
        each!(self, e => e.reserve(core, holder, wanted))
    }
    fn release(&mut self, core: &mut QueueCore<H>, holder: ReservationHolder) {
        each!(self, e => e.release(core, holder))
    }
    fn reservation(&self, holder: ReservationHolder) -> Option<Reservation> {
        each!(self, e => Elevator::<H>::reservation(e, holder))
    }
    fn reserved(&self) -> Option<ReservationSummary> {
        each!(self, e => Elevator::<H>::reserved(e))
    }
    fn reserves(&self) -> bool {
        each!(self, e => Elevator::<H>::reserves(e))
    }
    fn lateness_ns(&self, core: &QueueCore<H>, request: Slot, now_ns: u64) -> Option<u64> {
        each!(self, e => e.lateness_ns(core, request, now_ns))
    }
    fn group_created(&mut self, core: &mut QueueCore<H>, group: Slot) {
        each!(self, e => e.group_created(core, group))
    }
    fn group_weights_changed(&mut self, core: &mut QueueCore<H>, group: Slot) {
        each!(self, e => e.group_weights_changed(core, group))
    }
    fn release_group(&mut self, core: &mut QueueCore<H>, group: Slot) -> bool {
        each!(self, e => e.release_group(core, group))
    }
    fn group_changed(&mut self, core: &mut QueueCore<H>, context: Slot) {
        each!(self, e => e.group_changed(core, context))
    }
    fn timer(&mut self, core: &mut QueueCore<H>, timer: Timer) {
        each!(self, e => e.timer(core, timer))
    }
}

/// A layer over an elevator that the host chooses when it creates the queue, or no layer
/// ([`NoLayer`]).
pub(crate) trait Layer<H: HostTypes>: Elevator<H> {
    /// The kind of the elevator below.
    fn kind(&self) -> Kind;

    /// The kind of the elevator below, according to its tables.
    fn kind_of(tables: &Self::Tables) -> Kind;
}

impl<H: HostTypes> Layer<H> for Reserving<H> {
    fn kind(&self) -> Kind {
        self.inner.kind()
    }

    fn kind_of(tables: &Self::Tables) -> Kind {
        tables.inner.kind()
    }
}

/// The type without values that stands for "no layer".
pub(crate) enum NoLayer {}

impl<H: HostTypes> Layer<H> for NoLayer {
    fn kind(&self) -> Kind {
        match *self {}
    }
    fn kind_of(tables: &NoLayer) -> Kind {
        match *tables {}
    }
}

impl<H: HostTypes> Elevator<H> for NoLayer {
    type Tables = NoLayer;

    fn new(_: &mut QueueCore<H>, tables: NoLayer) -> Self {
        tables
    }
    fn into_tables(self) -> NoLayer {
        self
    }
    fn join(&mut self, _: &mut QueueCore<H>, _: Slot, _: Slot) {
        match *self {}
    }
    fn insert(&mut self, _: &mut QueueCore<H>, _: Slot) {
        match *self {}
    }
    fn dispatch(&mut self, _: &mut QueueCore<H>, _: bool) -> u32 {
        match *self {}
    }
    fn is_empty(&self) -> bool {
        match *self {}
    }
}
