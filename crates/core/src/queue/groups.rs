//! Groups of contexts: creating, weighting and removing them, and moving contexts between them.

use super::{Kick, RequestQueue, Stale};
use crate::collections::{Count, NIL, Slot};
use crate::context::ContextId;
use crate::elevator::Elevator;
use crate::elevator::tables::HostTypes;
use crate::group::{Group, GroupError, GroupId, GroupWeights, ROOT};

impl<H: HostTypes> RequestQueue<H> {
    /// The root group, to which new contexts belong.
    pub fn root_group(&self) -> GroupId {
        GroupId { slot: ROOT, generation: self.core.tables.groups[ROOT].generation }
    }

    /// Creates a group below `parent`.
    pub fn create_group(&mut self, parent: GroupId, weights: GroupWeights, now_ns: u64) -> Result<GroupId, GroupError> {
        self.begin(now_ns);
        let parent = self.known_group(parent).ok_or(GroupError::Stale)?;
        if !weights.are_valid() {
            return Err(GroupError::BadWeight);
        }
        let slot = self.free_groups.pop_front(&mut self.core.tables.groups);
        if slot == NIL {
            return Err(GroupError::Full);
        }
        let generation = self.core.tables.groups[slot].generation.wrapping_add(1);
        self.core.tables.groups[slot] = Group { generation, in_use: true, weights, parent, ..Group::default() };
        let children = &mut self.core.tables.groups[parent].children;
        children.increment();
        self.elevator.group_created(&mut self.core, slot);
        Ok(GroupId { slot, generation })
    }

    /// The record of a group; `None` if the handle is stale.
    pub fn group(&self, id: GroupId) -> Option<&Group> {
        self.known_group(id).map(|slot| &self.core.tables.groups[slot])
    }

    /// Changes a group's weights.
    pub fn set_group_weights(&mut self, id: GroupId, weights: GroupWeights, now_ns: u64) -> Result<Kick, GroupError> {
        self.begin(now_ns);
        let slot = self.known_group(id).ok_or(GroupError::Stale)?;
        if !weights.are_valid() {
            return Err(GroupError::BadWeight);
        }
        self.core.tables.groups[slot].weights = weights;
        self.elevator.group_weights_changed(&mut self.core, slot);
        Ok(self.end())
    }

    /// Removes a group without child groups and contexts. Elevators with group scheduling refuse
    /// while requests of the group are left.
    pub fn remove_group(&mut self, id: GroupId, now_ns: u64) -> Result<Kick, GroupError> {
        self.begin(now_ns);
        let slot = self.known_group(id).ok_or(GroupError::Stale)?;
        let Group { children, contexts, parent, .. } = self.core.tables.groups[slot];
        if slot == ROOT || children > 0 || contexts > 0 || !self.elevator.release_group(&mut self.core, slot) {
            return Err(GroupError::Busy);
        }
        let above = &mut self.core.tables.groups[parent].children;
        above.decrement();
        self.core.tables.groups[slot].in_use = false;
        self.free_groups.push_back(&mut self.core.tables.groups, slot);
        Ok(self.end())
    }

    /// Moves a context to a group. As in the kernel, the elevator notices when it next accesses the
    /// context.
    pub fn move_context(&mut self, id: ContextId, group: GroupId, now_ns: u64) -> Result<Kick, Stale> {
        self.begin(now_ns);
        let context = self.running_context(id).ok_or(Stale)?;
        let group = self.known_group(group).ok_or(Stale)?;
        if self.core.tables.contexts[context].group == group {
            // Already in the group: its state is kept.
            return Ok(self.end());
        }
        self.core.leave_group(context);
        self.core.enter_group(context, group);
        self.elevator.group_changed(&mut self.core, context);
        Ok(self.end())
    }

    pub(super) fn known_group(&self, id: GroupId) -> Option<Slot> {
        let group = &self.core.tables.groups[id.slot];
        (group.in_use && group.generation == id.generation).then_some(id.slot)
    }
}
