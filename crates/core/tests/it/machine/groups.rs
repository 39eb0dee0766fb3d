//! The host's groups: their creation, weights, removal and members, with the expected results.

use hoistway_core::{Capacity, ContextId, GroupError, GroupId, GroupWeights, Reservation, ReserveError};

use super::host::{CallResult, Host, Process};

/// The existing groups, the root first.
pub struct Groups {
    known: Vec<GroupRecord>,
    /// Exited processes with pending requests, and their last groups, in which they count.
    exited: Vec<(ContextId, GroupId)>,
    /// The number of checks so far.
    checked: usize,
}

#[derive(Clone, Copy)]
struct GroupRecord {
    id: GroupId,
    parent: Option<GroupId>,
    weights: GroupWeights,
}

impl Groups {
    pub fn new(root: GroupId) -> Groups {
        let root = GroupRecord { id: root, parent: None, weights: GroupWeights::default() };
        Groups { known: vec![root], exited: Vec::new(), checked: 0 }
    }

    /// Handles the exit of a process.
    pub fn process_exited(&mut self, context: ContextId, group: GroupId) {
        self.exited.push((context, group));
    }

    fn get(&self, number: usize) -> GroupRecord {
        self.known[number % self.known.len()]
    }
}

impl Host {
    pub(super) fn create_group(&mut self, parent: usize, weights: GroupWeights) -> CallResult {
        let parent = self.groups.get(parent).id;
        let full = self.groups.known.len() as u32 >= slots(self.capacity);
        match self.queue.create_group(parent, weights, self.now_ns) {
            Ok(id) if weights.are_valid() && !full => {
                self.groups.known.push(GroupRecord { id, parent: Some(parent), weights });
                Ok(())
            }
            Err(GroupError::BadWeight) if !weights.are_valid() => Ok(()),
            Err(GroupError::Full) if full => {
                self.full.groups += 1;
                Ok(())
            }
            other => Err(format!("a group of {weights:?} (the table is full: {full}): {other:?}")),
        }
    }

    pub(super) fn set_group_weights(&mut self, number: usize, weights: GroupWeights) -> CallResult {
        let id = self.groups.get(number).id;
        let number = number % self.groups.known.len();
        match self.queue.set_group_weights(id, weights, self.now_ns) {
            Ok(kick) if weights.are_valid() => {
                self.groups.known[number].weights = weights;
                self.handle_kick(kick)
            }
            Err(GroupError::BadWeight) if !weights.are_valid() => Ok(()),
            other => Err(format!("a group is given {weights:?}: {other:?}")),
        }
    }

    /// A removal may be refused because of a child, a process or a request, and for no other
    /// reason.
    pub(super) fn remove_group(&mut self, number: usize) -> CallResult {
        let GroupRecord { id, parent, .. } = self.groups.get(number);
        self.groups.exited.retain(|(context, _)| self.queue.context(*context).is_some());
        let child = self.groups.known.iter().any(|other| other.parent == Some(id));
        let process = self.processes.iter().any(|process| process.group == id)
            || self.groups.exited.iter().any(|(_, group)| *group == id);
        let must_stay = parent.is_none() || child || process;
        match self.queue.remove_group(id, self.now_ns) {
            Ok(kick) if !must_stay => {
                self.groups.known.retain(|other| other.id != id);
                self.handle_kick(kick)?;
                self.expect_removed(id)
            }
            Err(GroupError::Busy) if must_stay || self.bio_tracker.may_belong_to(id) => Ok(()),
            Err(GroupError::Busy) => Err("a group without children, processes and requests is not removed".to_owned()),
            other => Err(format!("a group is removed (child {child}, process {process}): {other:?}")),
        }
    }

    pub(super) fn reserve_group(&mut self, number: usize, wanted: Reservation) -> CallResult {
        let id = self.groups.get(number).id;
        let answer = self.queue.reserve_group(id, wanted, self.now_ns);
        let now = self.queue.group_reservation(id);
        self.reserved(wanted, answer, now)
    }

    pub(super) fn release_group(&mut self, number: usize) -> CallResult {
        let id = self.groups.get(number).id;
        let kick = self.queue.release_group(id, self.now_ns).map_err(|_| "the handle of an existing group is stale")?;
        if self.queue.group_reservation(id).is_some() {
            return Err("a group's released reservation still exists".to_owned());
        }
        self.handle_kick(kick)
    }

    fn expect_removed(&mut self, id: GroupId) -> CallResult {
        let now_ns = self.now_ns;
        let moved =
            self.process(0).is_some_and(|Process { context, .. }| self.queue.move_context(context, id, now_ns).is_ok());
        let known = self.queue.group(id).is_some()
            || self.queue.set_group_weights(id, GroupWeights::default(), now_ns).is_ok()
            || self.queue.create_group(id, GroupWeights::default(), now_ns).is_ok()
            || self.queue.reserve_group(id, Reservation::of(1), now_ns) != Err(ReserveError::Stale)
            || self.queue.release_group(id, now_ns).is_ok()
            || self.queue.group_reservation(id).is_some()
            || self.queue.remove_group(id, now_ns).is_ok();
        if moved || known { Err("the handle of a removed group is not stale".to_owned()) } else { Ok(()) }
    }

    pub(super) fn move_process(&mut self, process: usize, group: usize) -> CallResult {
        let Some(Process { context, .. }) = self.process(process) else { return Ok(()) };
        let number = process % self.processes.len();
        let group = self.groups.get(group).id;
        let kick = self.queue.move_context(context, group, self.now_ns);
        let kick = kick.map_err(|_| "a running process cannot be moved to a group")?;
        self.processes[number].group = group;
        self.bio_tracker.moved(context, group);
        self.handle_kick(kick)
    }

    /// Removes all groups, children first, after all requests have completed and all processes have
    /// exited.
    pub(super) fn remove_all_groups(&mut self) -> CallResult {
        // A child comes after its parent in the list.
        for number in (1..self.groups.known.len()).rev() {
            self.remove_group(number)?;
        }
        Ok(())
    }

    /// Checks that every entry of the group table is free again.
    pub(super) fn fill_groups(&mut self) -> CallResult {
        if self.groups.known.len() > 1 {
            return Err(format!("{} groups are left at the end", self.groups.known.len() - 1));
        }
        for number in 1..slots(self.capacity) {
            self.create_group(number as usize / 2, GroupWeights::default())?;
        }
        let room = self.groups.known.len() as u32 == slots(self.capacity);
        if !room {
            return Err(format!("only {} groups can be created at the end", self.groups.known.len()));
        }
        self.create_group(0, GroupWeights::default())?;
        self.remove_all_groups()
    }

    /// Checks one group per call, in turn, as there may be many.
    pub(super) fn check_groups(&mut self) -> CallResult {
        self.groups.checked += 1;
        let known = self.groups.get(self.groups.checked);
        match self.queue.group(known.id).map(|group| group.weights()) {
            Some(weights) if weights == known.weights => Ok(()),
            other => Err(format!("a group of {:?} has {other:?}", known.weights)),
        }
    }
}

/// The number of entries for groups, including the root.
fn slots(capacity: Capacity) -> u32 {
    capacity.groups.max(1)
}
