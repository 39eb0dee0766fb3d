//! Groups: a tree of shares, like the kernel's control groups (`blkio`, `io`).

use crate::collections::{Link, LinkOf, NIL, Slot};

/// The handle of a group. It goes stale when the group is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GroupId {
    pub(crate) slot: Slot,
    pub(crate) generation: u32,
}

/// The slot of the root group, which always exists.
pub(crate) const ROOT: Slot = 0;

/// The weights of a group among the groups and processes of its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupWeights {
    /// The group's own weight among its siblings: `blkio.weight`, `io.bfq.weight`.
    pub weight: u16,
    /// The weight of the group's own processes against its child groups: `blkio.leaf_weight`. Only
    /// CFQ's final form uses it.
    pub leaf_weight: u16,
}

impl GroupWeights {
    /// The minimum (BFQ's). CFQ raises weights below 10 to 10.
    pub const MIN: u16 = 1;
    /// The maximum.
    pub const MAX: u16 = 1000;
    /// The weight of a new group.
    pub const DEFAULT: u16 = 100;

    /// Creates weights with the leaf weight equal to the weight.
    pub const fn of(weight: u16) -> GroupWeights {
        GroupWeights { weight, leaf_weight: weight }
    }

    /// Returns true if both weights are within their range.
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

/// The queue's record of a group. Elevators keep their own data in tables of their own at the same
/// slot.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    pub(crate) generation: u32,
    pub(crate) in_use: bool,
    pub(crate) weights: GroupWeights,
    /// The slot of the parent; [`NIL`] for the root.
    pub(crate) parent: Slot,
    /// The number of child groups.
    pub(crate) children: u32,
    /// Contexts directly in the group, including exited ones with pending requests.
    pub(crate) contexts: u32,
    /// The link in the list of free entries.
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
    /// The weights of the group.
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

/// Errors of creating, changing and removing groups. On an error nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupError {
    /// The group or its parent no longer exists.
    Stale,
    /// The storage holds no more groups.
    Full,
    /// A weight is outside [`GroupWeights::MIN`]`..=`[`GroupWeights::MAX`].
    BadWeight,
    /// The group has child groups, contexts or requests, or is the root.
    Busy,
}

impl core::fmt::Display for GroupError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            GroupError::Stale => f.write_str("no such group"),
            GroupError::Full => f.write_str("the storage holds no more groups"),
            GroupError::BadWeight => {
                write!(f, "a weight is out of range: {} to {} are allowed", GroupWeights::MIN, GroupWeights::MAX)
            }
            GroupError::Busy => f.write_str("the group has child groups, processes or requests, or is the root"),
        }
    }
}

impl core::error::Error for GroupError {}
