//! Groups: a tree of shares, as the kernel's control groups (`blkio`, `io`) or one group a user.

use crate::collections::{Link, LinkOf, NIL, Slot};

/// Names a group; stale once it is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GroupId {
    pub(crate) slot: Slot,
    pub(crate) generation: u32,
}

/// The root's place in the table: it is always there.
pub(crate) const ROOT: Slot = 0;

/// The share of a group among the other groups and processes of its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupWeights {
    /// The group's own weight among its siblings: `blkio.weight`, `io.bfq.weight`.
    pub weight: u16,
    /// The weight of the processes in the group itself against its child groups: `blkio.leaf_weight`. Only CFQ's final form has it.
    pub leaf_weight: u16,
}

impl GroupWeights {
    /// The least weight: BFQ's. CFQ takes no less than 10 and raises what is below.
    pub const MIN: u16 = 1;
    /// The greatest weight.
    pub const MAX: u16 = 1000;
    /// What a group starts with.
    pub const DEFAULT: u16 = 100;

    /// A weight and the leaf weight of the same size.
    pub const fn of(weight: u16) -> GroupWeights {
        GroupWeights { weight, leaf_weight: weight }
    }

    /// Whether both lie in their range.
    pub const fn are_valid(self) -> bool {
        let GroupWeights { weight, leaf_weight } = self;
        weight >= Self::MIN && weight <= Self::MAX && leaf_weight >= Self::MIN && leaf_weight <= Self::MAX
    }
}

impl Default for GroupWeights {
    fn default() -> Self {
        GroupWeights::of(GroupWeights::DEFAULT)
    }
}

/// A group, as far as the queue knows it. What an elevator keeps about it lies in a table of its own, at the same place.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    pub(crate) generation: u32,
    pub(crate) in_use: bool,
    pub(crate) weights: GroupWeights,
    /// The parent, or [`NIL`] for the root.
    pub(crate) parent: Slot,
    /// Child groups.
    pub(crate) children: u32,
    /// Contexts in the group itself, those that have exited and still have requests included.
    pub(crate) contexts: u32,
    /// Its place among free entries.
    pub(crate) free: Link,
}

impl Default for Group {
    fn default() -> Self {
        Group {
            generation: 0,
            in_use: false,
            weights: GroupWeights::default(),
            parent: NIL,
            children: 0,
            contexts: 0,
            free: Link::default(),
        }
    }
}

impl Group {
    /// Its weights.
    pub fn weights(&self) -> GroupWeights {
        self.weights
    }
}

/// The list of free entries.
#[derive(Debug)]
pub(crate) struct FreeGroups;

impl LinkOf<Group> for FreeGroups {
    fn link(group: &Group) -> &Link {
        &group.free
    }
    fn link_mut(group: &mut Group) -> &mut Link {
        &mut group.free
    }
}

/// Why a group was not made, changed or removed. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupError {
    /// The group (or parent) is gone.
    Stale,
    /// The storage holds no more groups.
    Full,
    /// A weight lies outside [`GroupWeights::MIN`]`..=`[`GroupWeights::MAX`].
    BadWeight,
    /// It has child groups, contexts or requests, or is the root.
    Busy,
}

impl core::fmt::Display for GroupError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            GroupError::Stale => f.write_str("no such group"),
            GroupError::Full => f.write_str("the storage holds no more groups"),
            GroupError::BadWeight => {
                write!(f, "a weight out of range: it takes {} to {}", GroupWeights::MIN, GroupWeights::MAX)
            }
            GroupError::Busy => f.write_str("the group has child groups, processes or requests, or is the root"),
        }
    }
}

impl core::error::Error for GroupError {}
