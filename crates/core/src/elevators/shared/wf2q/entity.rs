//! The scheduled entities and their trees.

use crate::collections::tree::Augment;
use crate::collections::{Link, LinkOf, NIL, Slot, Tree};
use crate::priority::Class;

/// The number of classes in a level.
pub(crate) const CLASSES: usize = 3;
/// Real time, served before all others.
pub(crate) const REAL_TIME: u8 = Class::RealTime.rank();
/// Best effort.
pub(crate) const BEST_EFFORT: u8 = Class::BestEffort.rank();
/// Idle, served if no other class has requests.
pub(crate) const IDLE: u8 = Class::Idle.rank();

/// One unit of service moves the timestamps of an entity with weight 1 by 2^22, so that rounding in
/// the division by weights is small.
const SHIFT: u32 = 22;
/// The maximum of service in one step: its distance stays below half the range of a timestamp.
const SERVICE_MAX: u64 = (1 << (63 - SHIFT)) - 1;

/// The distance by which `service` moves the timestamps of an entity of this weight (or the time of
/// a tree with this sum of weights).
#[inline]
pub(crate) fn virtual_distance(service: u64, weight: u64) -> u64 {
    // Budgets beyond this need an extreme tunable (2^41 sectors are 1 PiB); unclamped they would
    // wrap around and reverse the order.
    service.min(SERVICE_MAX).wrapping_shl(SHIFT) / weight.max(1)
}

/// Returns true if a timestamp is later than another, modulo 2^64: the shorter distance decides.
#[inline]
pub(crate) fn is_later(timestamp: u64, other: u64) -> bool {
    (timestamp.wrapping_sub(other) as i64) > 0
}

/// The later of two timestamps.
#[inline]
pub(crate) fn later(timestamp: u64, other: u64) -> u64 {
    if is_later(timestamp, other) { timestamp } else { other }
}

/// The summary of active trees. They are sorted by finish; the value of a node is its start, and
/// the summary is the least start of its subtree.
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

/// The part of its tree in which an entity is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TreePart {
    /// Neither part: unknown to the tree, or in service.
    #[default]
    Neither,
    /// The entity has pending service.
    Active,
    /// The entity has no pending service but is ahead of the tree's time by the service received,
    /// so its weight still counts.
    Idle,
}

/// A queue or group, as scheduled in its level.
#[derive(Clone, Copy, Debug)]
pub struct Entity {
    /// The virtual time from which the entity is eligible.
    pub start: u64,
    /// The virtual time at which it would have received its budget in a system that serves all
    /// entities at once.
    pub finish: u64,
    /// The weight in use: base weight times coefficient at the last insertion into a tree.
    pub weight: u32,
    /// The weight of its priority.
    pub base: u32,
    /// The base weight from the next insertion into a tree on.
    pub new_base: u32,
    /// The factor on the base weight: 1, unless the weight is raised.
    pub coefficient: u32,
    /// The class in use.
    pub class: u8,
    /// The class from the next insertion into a tree on.
    pub new_class: u8,
    /// Whether a weight, class or coefficient is to be applied.
    pub pending: bool,
    /// Whether its tree counts its weight.
    pub known: bool,
    /// The part of the tree in which it is.
    pub part: TreePart,
    /// The service granted for its current or next turn.
    pub budget: u64,
    /// The service received of it.
    pub service: u64,
    /// The level in which it is scheduled.
    pub level: Slot,
    /// The level of a group's members; [`NIL`] for a queue.
    pub inner: Slot,
    /// Whether a group is counted as having requests queued or in the device.
    pub counted: bool,
    /// Whether a queue's weight is among those compared.
    pub weighed: bool,
    /// Whether a queue was forgotten and not yet returned by `take_forgotten`.
    pub forgotten: bool,
    /// The link in the list of queues in active trees (latest first), or in the list of forgotten
    /// queues.
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
            part: TreePart::Neither,
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
    /// Returns true for a queue, false for a group.
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
    /// The virtual time: the progress of an entity of weight 1.
    pub time: u64,
    /// The sum of the weights of all known entities: active, idle and in service.
    pub weights: u64,
    pub(crate) active: Tree,
    pub(crate) idle: Tree,
    /// The idle entity that counts as the one with the greatest finish, or [`NIL`].
    pub(crate) greatest_idle: Slot,
}

impl Default for ServiceTree {
    fn default() -> Self {
        ServiceTree { time: 0, weights: 0, active: Tree::default(), idle: Tree::default(), greatest_idle: NIL }
    }
}

/// A level of the hierarchy: the members of one group or of the root.
#[derive(Clone, Copy, Debug)]
pub struct Level {
    pub(crate) trees: [ServiceTree; CLASSES],
    /// The member in service, or [`NIL`].
    pub current: Slot,
    /// The member to be served next, in forms that keep it up to date, or [`NIL`].
    pub next: Slot,
    /// The entity of the level's group; [`NIL`] for the root.
    pub group: Slot,
    /// Members in active trees.
    pub active: u32,
    /// The tick at which the idle class last precedes the others, or could have.
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
    pub fn tree(&self, class: u8) -> &ServiceTree {
        let [.., idle] = &self.trees;
        self.trees.get(usize::from(class)).unwrap_or(idle)
    }

    /// The tree of a class, mutable.
    #[inline]
    pub fn tree_mut(&mut self, class: u8) -> &mut ServiceTree {
        let [real_time, best_effort, idle] = &mut self.trees;
        match class {
            REAL_TIME => real_time,
            BEST_EFFORT => best_effort,
            _ => idle,
        }
    }
}
