//! Shares: weights along the path from a context through its groups to the root.
//!
//! A context's share is the product, over the levels of its path, of its weight divided by the sum
//! of the weights of all *present* members of the level ([`presence`]).

mod presence;

use crate::collections::{Arena, Count, NIL, Slot};
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::{HostTypes, TableOf};
use crate::group::ROOT;
use crate::priority::{Class, LEVELS, Priority};

/// The weight of a process at level 7; one of level 4 weighs as much as a group of the default
/// weight, 100.
const WEIGHT_STEP: u32 = 25;
/// The factor on the weight of the real-time class.
const REAL_TIME_FACTOR: u32 = 64;
/// The weight of the idle class.
const IDLE_WEIGHT: u32 = 1;
/// The maximum of nested groups that are considered.
const DEPTH_MAX: u32 = 16;
/// The maximum of a normalised cost, in ns: a quarter of the range of a timestamp.
const NORMALISED_MAX: u64 = 1 << 61;

/// The weight of a priority.
pub(crate) fn weight_of(priority: Priority) -> u32 {
    let steps = u32::from(LEVELS.saturating_sub(priority.level())).max(1);
    let weight = steps.saturating_mul(WEIGHT_STEP);
    match priority.class() {
        Class::RealTime => weight.saturating_mul(REAL_TIME_FACTOR),
        Class::None | Class::BestEffort => weight,
        Class::Idle => IDLE_WEIGHT,
    }
}

/// A group and the weight of a member in it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Membership {
    pub group: Slot,
    weight: u32,
}

/// The present members of a group.
#[derive(Clone, Copy, Debug, Default)]
pub struct Members {
    /// The number of contexts and groups.
    count: u32,
    /// The sum of their weights.
    weights: u64,
    /// The weight of the group itself, as counted in its parent.
    own_weight: u32,
}

/// The present members of all groups, at the slots of the groups.
pub(super) struct Shares<H: HostTypes> {
    members: TableOf<H, Members>,
}

impl<H: HostTypes> Shares<H> {
    pub fn new(members: H::Slots<Members>) -> Self {
        Shares { members: Arena::new(members) }
    }

    pub fn into_slots(self) -> H::Slots<Members> {
        self.members.into_slots()
    }

    /// The group and weight of a context; the root for a group beyond the capacity of the table.
    pub fn membership_of(&self, core: &QueueCore<H>, context: Slot) -> Membership {
        let context = &core.tables.contexts[context];
        let group = if context.group < self.members.capacity() { context.group } else { ROOT };
        Membership { group, weight: weight_of(context.effective_priority()) }
    }

    /// Adds a context to a group; a group that had no members joins its parent.
    pub fn enter(&mut self, core: &QueueCore<H>, Membership { mut group, mut weight }: Membership) {
        for _ in 0..DEPTH_MAX {
            let own_weight = group_weight(core, group);
            let members = &mut self.members[group];
            members.count.increment();
            members.weights = members.weights.saturating_add(u64::from(weight));
            if members.count > 1 || group == ROOT {
                return;
            }
            members.own_weight = own_weight;
            (group, weight) = (parent_of(core, group), own_weight);
        }
    }

    /// Removes a context of a group, and the groups of which it was the last member.
    pub fn leave(&mut self, core: &QueueCore<H>, Membership { mut group, mut weight }: Membership) {
        for _ in 0..DEPTH_MAX {
            let members = &mut self.members[group];
            members.count.decrement();
            members.weights = members.weights.saturating_sub(u64::from(weight));
            if members.count > 0 || group == ROOT {
                return;
            }
            (group, weight) = (parent_of(core, group), members.own_weight);
        }
    }

    /// Applies a changed weight of a group.
    pub fn reweigh(&mut self, core: &QueueCore<H>, group: Slot) {
        if group == ROOT || self.members[group].count == 0 {
            return;
        }
        let new = group_weight(core, group);
        let old = core::mem::replace(&mut self.members[group].own_weight, new);
        let above = &mut self.members[parent_of(core, group)];
        above.weights = above.weights.saturating_sub(u64::from(old)).saturating_add(u64::from(new));
    }

    /// Returns true if a group has no present members.
    pub fn is_empty(&self, group: Slot) -> bool {
        self.members[group].count == 0
    }

    /// Initialises a new group.
    pub fn begin(&mut self, group: Slot) {
        self.members[group] = Members::default();
    }

    /// Divides a cost by the share of a member: the amount by which it moves a position in virtual
    /// time.
    pub fn normalised(
        &self,
        core: &QueueCore<H>,
        Membership { mut group, mut weight }: Membership,
        cost_ns: u64,
    ) -> u64 {
        let mut normalised = cost_ns;
        if cost_ns == 0 {
            return 0;
        }
        for _ in 0..DEPTH_MAX {
            let weights = self.members[group].weights.max(u64::from(weight));
            normalised = scale(normalised, weights, u64::from(weight));
            if group == ROOT {
                break;
            }
            (group, weight) = (parent_of(core, group), group_weight(core, group));
        }
        normalised.min(NORMALISED_MAX)
    }
}

/// The weight of a group in its parent.
fn group_weight<H: HostTypes>(core: &QueueCore<H>, group: Slot) -> u32 {
    u32::from(core.tables.groups[group].weights.weight).max(1)
}

/// The parent of a group.
fn parent_of<H: HostTypes>(core: &QueueCore<H>, group: Slot) -> Slot {
    let parent = core.tables.groups[group].parent;
    if parent == NIL { ROOT } else { parent }
}

/// `value * numerator / denominator` for a numerator that is not less than the denominator.
fn scale(value: u64, numerator: u64, denominator: u64) -> u64 {
    if numerator == denominator {
        return value;
    }
    let denominator = denominator.max(1);
    match value.checked_mul(numerator) {
        Some(product) => product / denominator,
        None => (value / denominator).saturating_mul(numerator),
    }
}
