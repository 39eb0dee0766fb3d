//! The registry of elevators: one line each, from which everything else finds them.

use crate::bio::{Bio, Op};
use crate::clock::Timer;
use crate::elevators::{self, Elevator, MayQueue, Merge};
use crate::parts::Slot;
use crate::queue::block::Block;
use crate::storage::{ElevatorStorage, Home};
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
    /// How it works, in a few sentences.
    pub idea: &'static str,
    /// What it is good for, and what not.
    pub suits: &'static str,
    /// Its tunables, in the order in which they are numbered.
    pub tunables: &'static [Tunable],
    /// Whether it keeps queues of its own, for which it needs storage.
    #[cfg_attr(not(feature = "alloc"), allow(dead_code))]
    pub(crate) has_queues: bool,
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

        /// One of the elevators. A call goes through one `match`, never through a pointer; and there is no heap to put the larger
        /// ones on.
        #[allow(clippy::large_enum_variant)]
        pub(crate) enum AnyElevator<H: Home> {
            $($kind($type),)*
        }

        impl<H: Home> AnyElevator<H> {
            /// A fresh elevator, and the storage if it has no use for it.
            pub fn of_kind(
                kind: Kind,
                block: &mut Block<H>,
                storage: ElevatorStorage<H>,
            ) -> (Self, Option<ElevatorStorage<H>>) {
                match kind {
                    $(Kind::$kind => {
                        let (elevator, unused) = <$type>::new(block, storage);
                        (AnyElevator::$kind(elevator), unused)
                    })*
                }
            }

            pub fn kind(&self) -> Kind {
                match self {
                    $(AnyElevator::$kind(_) => Kind::$kind,)*
                }
            }
        }

        /// Calls a method of whichever elevator it is.
        macro_rules! each {
            ($self:expr, $elevator:ident => $call:expr) => {
                match $self {
                    $(AnyElevator::$kind($elevator) => $call,)*
                }
            };
        }
    };
}

elevators! {
    Noop in noop: elevators::noop::Noop;
    Deadline in deadline: elevators::deadline::Deadline;
    Anticipatory in anticipatory: elevators::anticipatory::Anticipatory;
    CfqV3 in cfq_v3: elevators::cfq_v3::CfqV3<H>;
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

impl<H: Home> Elevator<H> for AnyElevator<H> {
    fn into_storage(self) -> Option<ElevatorStorage<H>> {
        each!(self, e => Elevator::<H>::into_storage(e))
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
    #[inline]
    fn allocate(&mut self, block: &mut Block<H>, request: Slot) {
        each!(self, e => e.allocate(block, request))
    }
    #[inline]
    fn free(&mut self, block: &mut Block<H>, request: Slot) {
        each!(self, e => e.free(block, request))
    }
    #[inline]
    fn insert(&mut self, block: &mut Block<H>, request: Slot) {
        each!(self, e => e.insert(block, request))
    }
    #[inline]
    fn dispatch(&mut self, block: &mut Block<H>, force: bool) -> u32 {
        each!(self, e => e.dispatch(block, force))
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
        each!(self, e => e.complete(block, request))
    }
    #[inline]
    fn is_empty(&self) -> bool {
        each!(self, e => Elevator::<H>::is_empty(e))
    }
    fn exit(&mut self, block: &mut Block<H>, context: Slot) {
        each!(self, e => e.exit(block, context))
    }
    fn priority_changed(&mut self, block: &mut Block<H>, context: Slot) {
        each!(self, e => e.priority_changed(block, context))
    }
    fn timer(&mut self, block: &mut Block<H>, timer: Timer) {
        each!(self, e => e.timer(block, timer))
    }
}
