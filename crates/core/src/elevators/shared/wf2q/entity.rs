//! What the engine schedules, and the trees that it keeps them in.

use crate::collections::tree::Augment;
use crate::collections::{Link, LinkOf, NIL, Slot, Tree};
use crate::priority::Class;

/// The number of classes that a level tells apart.
pub(crate) const CLASSES: usize = 3;
/// Real time: before all others.
pub(crate) const REAL_TIME: u8 = Class::RealTime.rank();
/// Best effort.
pub(crate) const BEST_EFFORT: u8 = Class::BestEffort.rank();
/// Idle: when there is nobody else.
pub(crate) const IDLE: u8 = Class::Idle.rank();

/// One unit of service for an entity of weight 1 moves its timestamps by 2^22, so that what is lost in dividing by a weight is small.
const SHIFT: u32 = 22;
/// The most service that is told apart: its distance stays below half of what a timestamp holds.
const SERVICE_MAX: u64 = (1 << (63 - SHIFT)) - 1;

/// How far `service` moves the timestamps of an entity of this weight (or the time of a tree of this sum of weights).
#[inline]
pub(crate) fn virtual_distance(service: u64, weight: u64) -> u64 {
    // What a budget can hold by an absurd tunable alone (2^41 sectors are a PiB) would wrap around and turn the order upside down.
    service.min(SERVICE_MAX).wrapping_shl(SHIFT) / weight.max(1)
}

/// Whether a timestamp is later than another. They wrap around: the nearer way counts.
#[inline]
pub(crate) fn is_later(timestamp: u64, other: u64) -> bool {
    (timestamp.wrapping_sub(other) as i64) > 0
}

/// The later of two timestamps.
#[inline]
pub(crate) fn later(timestamp: u64, other: u64) -> u64 {
    if is_later(timestamp, other) { timestamp } else { other }
}

/// Trees are sorted by finish; each node has its start as its value and remembers the least start of its subtree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeastStart(pub u64);

impl Augment for LeastStart {
    const KEPT: bool = true;
    type Value = u64;

    #[inline]
    fn summary(_finish: u64, start: u64, left: Option<LeastStart>, right: Option<LeastStart>) -> LeastStart {
        let mut least = start;
        for LeastStart(other) in [left, right].into_iter().flatten() {
            if is_later(least, other) {
                least = other;
            }
        }
        LeastStart(least)
    }

    #[inline]
    fn before(finish: u64, other: u64) -> bool {
        is_later(other, finish)
    }
}

/// Which of its tree's halves an entity lies in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// In neither: unknown to the tree, or in service.
    #[default]
    Neither,
    /// It has something to be served.
    Active,
    /// It has nothing, but is ahead of the tree's time by what it was served: its weight still counts.
    Idle,
}

/// A queue or a group, as its level schedules it.
#[derive(Clone, Copy, Debug)]
pub struct Entity {
    /// The virtual time from which it may be served.
    pub start: u64,
    /// The virtual time at which it would have had its budget in a system that serves all at once.
    pub finish: u64,
    /// The weight in use: the base weight times the coefficient, as they were when it was last put into a tree.
    pub weight: u32,
    /// The weight that its priority gives it.
    pub base: u32,
    /// The base weight from the next time on that it is put into a tree.
    pub new_base: u32,
    /// By what the base weight is multiplied: 1, unless it is raised.
    pub coefficient: u32,
    /// The class in use.
    pub class: u8,
    /// The class from then on.
    pub new_class: u8,
    /// A weight, class or coefficient is to be taken over.
    pub pending: bool,
    /// Its tree counts its weight.
    pub known: bool,
    /// Where in the tree it is.
    pub place: Place,
    /// Service granted in its present or next slot.
    pub budget: u64,
    /// Service received in it.
    pub service: u64,
    /// The level that it is scheduled by.
    pub level: Slot,
    /// The level that a group's members are scheduled by; [`NIL`] for a queue.
    pub inner: Slot,
    /// A group that counts as having requests queued or in the device.
    pub counted: bool,
    /// A queue whose weight is among those that are compared.
    pub weighed: bool,
    /// A queue that was forgotten and not asked for since.
    pub forgotten: bool,
    /// Its place among the queues that are in active trees, latest first; or among those that were forgotten.
    pub recent: Link,
}

impl Default for Entity {
    fn default() -> Self {
        Entity {
            start: 0,
            finish: 0,
            weight: 1,
            base: 1,
            new_base: 1,
            coefficient: 1,
            class: BEST_EFFORT,
            new_class: BEST_EFFORT,
            pending: false,
            known: false,
            place: Place::Neither,
            budget: 0,
            service: 0,
            level: 0,
            inner: NIL,
            counted: false,
            weighed: false,
            forgotten: false,
            recent: Link::default(),
        }
    }
}

impl Entity {
    /// Whether it is a queue and not a group.
    #[inline]
    pub fn is_queue(&self) -> bool {
        self.inner == NIL
    }
}

/// Lists of queues through [`Entity::recent`].
#[derive(Debug)]
pub(crate) struct Recent;

impl LinkOf<Entity> for Recent {
    fn link(entity: &Entity) -> &Link {
        &entity.recent
    }
    fn link_mut(entity: &mut Entity) -> &mut Link {
        &mut entity.recent
    }
}

/// The entities of one class at one level.
#[derive(Clone, Copy, Debug)]
pub struct ServiceTree {
    /// Its virtual time: how far an entity of weight 1 would have got.
    pub time: u64,
    /// The weights of all entities that it knows: active, idle and in service.
    pub weights: u64,
    pub(crate) active: Tree,
    pub(crate) idle: Tree,
    /// The idle entity that counts as the one of the greatest finish, or [`NIL`].
    pub(crate) greatest_idle: Slot,
}

impl Default for ServiceTree {
    fn default() -> Self {
        ServiceTree { time: 0, weights: 0, active: Tree::default(), idle: Tree::default(), greatest_idle: NIL }
    }
}

/// A level of the hierarchy: the members of one group, or of the root.
#[derive(Clone, Copy, Debug)]
pub struct Level {
    pub(crate) trees: [ServiceTree; CLASSES],
    /// The member in service, or [`NIL`].
    pub current: Slot,
    /// The member that is to be served next, where that is kept, or [`NIL`].
    pub next: Slot,
    /// The entity of the group whose level it is; [`NIL`] for the root.
    pub group: Slot,
    /// Members in active trees.
    pub active: u32,
    /// The tick at which the idle class was last let before the others, or might have been.
    pub idle_stamp: u64,
}

impl Default for Level {
    fn default() -> Self {
        Level {
            trees: [ServiceTree::default(); CLASSES],
            current: NIL,
            next: NIL,
            group: NIL,
            active: 0,
            idle_stamp: 0,
        }
    }
}

impl Level {
    /// The tree of a class.
    #[inline]
    pub fn tree(&self, class: u8) -> ServiceTree {
        self.trees.get(usize::from(class)).copied().unwrap_or_default()
    }
}
