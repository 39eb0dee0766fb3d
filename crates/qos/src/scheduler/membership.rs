//! Tenants, groups and clients of a device at run time: terms, reservations, joining.

use hoistway_core::{Class, GroupError, GroupId, GroupWeights, Priority, ReservationSummary, ReserveError};

use super::{CAPACITY, DiskScheduler};
use crate::figures;
use crate::tenants::{Member, MemberId, Node};
use crate::terms::{Limits, Reserve, Terms};

/// The I/O priority and the nice value of a client's process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessPriority {
    /// The process's own I/O priority; unset if it never set one.
    pub priority: Priority,
    /// The nice value, -20 to 19.
    pub nice: i8,
}

impl ProcessPriority {
    /// Decodes an I/O priority as `ioprio_get(2)` returns it: the class in the bits from 13 on, the
    /// level below; 0 is unset.
    pub fn from_ioprio(ioprio: u16, nice: i8) -> ProcessPriority {
        let class = match ioprio >> 13 {
            1 => Class::RealTime,
            2 => Class::BestEffort,
            3 => Class::Idle,
            _ => Class::None,
        };
        let priority = Priority::new(class, (ioprio & 7) as u8).unwrap_or(Priority::UNSET);
        ProcessPriority { priority, nice }
    }
}

/// Why terms were not set. If the reservation was refused, weight, priority and limits have taken
/// the new values and the old reservation stays; otherwise nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TermsError {
    /// The parent group does not exist.
    #[error("there is no group `{0}`")]
    NoGroup(String),
    /// The parent group is within the group.
    #[error("`{0}` would be part of itself")]
    Loop(String),
    /// The queue has no room for another group, or the weight is out of range.
    #[error("{0}")]
    Group(GroupError),
    /// The bandwidth cannot be reserved.
    #[error("{bytes_per_second} bytes a second cannot be reserved: {source}")]
    Reserve {
        /// The requested bandwidth.
        bytes_per_second: u64,
        /// The reason.
        source: ReserveError,
    },
    /// There is no tenant or group of this name.
    #[error("there is no tenant or group `{0}`")]
    Unknown(String),
    /// The tenant has clients, or the group has tenants or groups in it.
    #[error("`{0}` is still in use")]
    InUse(String),
}

/// Why a client cannot use a device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JoinError {
    /// The device has reached its maximum number of clients.
    #[error("the device has reached its maximum of {0} clients")]
    Full(u32),
    /// The device has no tenant of this name.
    #[error("there is no tenant `{0}`")]
    NoTenant(String),
}

impl DiskScheduler {
    /// Creates or changes a group of tenants: its weight among its siblings, its parent group, and
    /// the limits that all of its members share.
    ///
    /// # Errors
    /// When the parent does not exist, or the queue has no room for another group.
    pub fn set_group(
        &mut self,
        name: &str,
        parent: Option<&str>,
        weight: u16,
        limits: &Limits,
        now_ns: u64,
    ) -> Result<(), TermsError> {
        let parent = parent.map(str::to_owned);
        let terms = Terms { weight, parent, limits: *limits, ..Terms::default() };
        self.set_node(name, true, terms, now_ns).map(|_| ())
    }

    /// Creates a tenant, or changes its terms while it has requests in progress. Returns warnings
    /// on terms that have no effect on this device.
    ///
    /// # Errors
    /// When its group does not exist or the bandwidth cannot be reserved. A refused reservation
    /// leaves the other terms set and the old reservation in place.
    pub fn set_tenant(&mut self, name: &str, terms: &Terms, now_ns: u64) -> Result<Vec<String>, TermsError> {
        let old = self.tenants.find(name, false).and_then(|index| self.tenants.nodes[index as usize].terms.reserve);
        let index = self.set_node(name, false, terms.clone(), now_ns)?;
        let mut warnings = Vec::new();
        let info = self.elevator().info();
        if terms.weight != GroupWeights::DEFAULT && !info.groups {
            warnings.push(format!(
                "tenant {name}: a weight has no effect under {}, which does not support groups",
                info.name
            ));
        }
        if terms.priority.class() == Class::RealTime && terms.reserve.is_some() {
            warnings.push(format!(
                "tenant {name}: with a reservation, real-time requests are served within the reservation, not above it"
            ));
        }
        self.reserve(index, old, &mut warnings, now_ns)?;
        Ok(warnings)
    }

    /// Returns the terms of a tenant.
    pub fn terms(&self, name: &str) -> Option<&Terms> {
        self.tenants.find(name, false).map(|index| &self.tenants.nodes[index as usize].terms)
    }

    /// Returns the terms of a group: its weight, limits and parent.
    pub fn group_terms(&self, name: &str) -> Option<&Terms> {
        self.tenants.find(name, true).map(|index| &self.tenants.nodes[index as usize].terms)
    }

    /// Returns why a tenant's reservation is not in force, if it is not. Admission can fail after a
    /// switch of the elevator, or when the device's figures change.
    pub fn unreserved(&self, name: &str) -> Option<ReserveError> {
        self.tenants.find(name, false).and_then(|index| self.tenants.nodes[index as usize].unreserved)
    }

    /// Returns how much of the device is reserved. `None` while no tenant has a reservation.
    pub fn reserved(&self) -> Option<ReservationSummary> {
        self.queue.reserved()
    }

    /// Removes a tenant.
    ///
    /// # Errors
    /// When there is no tenant of this name, or it has clients.
    pub fn remove_tenant(&mut self, name: &str, now_ns: u64) -> Result<(), TermsError> {
        self.remove_node(name, false, now_ns)
    }

    /// Removes a group.
    ///
    /// # Errors
    /// When there is no group of this name, or it is not empty.
    pub fn remove_group(&mut self, name: &str, now_ns: u64) -> Result<(), TermsError> {
        self.remove_node(name, true, now_ns)
    }

    /// Adds a client of a tenant; without a tenant it is a member of the root group. The client's
    /// priority is the tenant's, else that of its process, else best effort 4.
    ///
    /// # Errors
    /// When the device has reached its maximum number of clients, or there is no such tenant.
    pub fn join(
        &mut self,
        tenant: Option<&str>,
        process: Option<ProcessPriority>,
        now_ns: u64,
    ) -> Result<MemberId, JoinError> {
        self.advance(now_ns);
        let index = match tenant {
            None => 0,
            Some(name) => self.tenants.find(name, false).ok_or_else(|| JoinError::NoTenant(name.to_owned()))?,
        };
        let slot = self.tenants.free.last().copied().unwrap_or(self.tenants.members.len() as u32);
        let node = &self.tenants.nodes[index as usize];
        let (priority, nice) = priority_of(node.terms.priority, process);
        let context =
            self.queue.create_context(slot + 1, priority, nice).map_err(|_| JoinError::Full(CAPACITY.contexts))?;
        // Context and group were both created by this queue.
        let _ = self.queue.move_context(context, node.group, self.now_ns);
        let generation = self.tenants.members.get(slot as usize).map_or(0, |member| member.generation);
        let own = process.map_or(Priority::UNSET, |process| process.priority);
        let member = Member {
            generation,
            is_present: true,
            tenant: index,
            context,
            own,
            first: None,
            waiting: 0,
            waiting_index: 0,
        };
        match self.tenants.free.pop() {
            Some(slot) => self.tenants.members[slot as usize] = member,
            None => self.tenants.members.push(member),
        }
        let node = &mut self.tenants.nodes[index as usize];
        node.members += 1;
        if let Some(recorder) = &mut self.queue.sink_mut().recorder {
            recorder.name(slot + 1, &node.name);
        }
        Ok(MemberId { slot, generation })
    }

    /// Sets the priority and nice value of a client's process from its next request on. A priority
    /// in the tenant's terms takes precedence.
    pub fn set_process(&mut self, member: MemberId, process: ProcessPriority, now_ns: u64) {
        self.advance(now_ns);
        let Some(tenant) = self.tenants.tenant_of(member) else { return };
        let granted = self.tenants.nodes.get(tenant as usize).map_or(Priority::UNSET, |node| node.terms.priority);
        let Some(entry) = self.tenants.members.get_mut(member.slot as usize) else { return };
        let ProcessPriority { priority: own, nice } = process;
        entry.own = own;
        let context = entry.context;
        // Nice first: an elevator that reads the priority again derives it from the nice value
        // where it is unset.
        let _ = self.queue.set_nice(context, nice, self.now_ns);
        let _ = self.queue.set_priority(context, if granted.is_set() { granted } else { own }, self.now_ns);
        self.kick();
    }

    fn set_node(&mut self, name: &str, is_group: bool, terms: Terms, now_ns: u64) -> Result<u32, TermsError> {
        self.advance(now_ns);
        let parent = match &terms.parent {
            None => None,
            Some(parent) => Some(self.tenants.find(parent, true).ok_or_else(|| TermsError::NoGroup(parent.clone()))?),
        };
        let weights = GroupWeights::of(terms.weight);
        let index = match self.tenants.find(name, is_group) {
            Some(index) => {
                self.change_node(index, parent, weights)?;
                index
            }
            None => {
                let below = self.tenants.group_of(&self.queue, parent);
                let group = self.queue.create_group(below, weights, self.now_ns).map_err(TermsError::Group)?;
                self.tenants.add(Node::new(name, is_group, group))
            }
        };
        self.limiter.set(index, parent, terms.weight, &terms.limits, self.now_ns);
        let node = &mut self.tenants.nodes[index as usize];
        let (old, new) = (node.terms.priority, terms.priority);
        node.parent = parent;
        node.terms = Terms { reserve: node.terms.reserve, ..terms.clone() };
        if old != new {
            self.set_priorities(index, new);
        }
        let node = &mut self.tenants.nodes[index as usize];
        node.terms.reserve = terms.reserve;
        self.kick();
        Ok(index)
    }

    fn change_node(&mut self, index: u32, parent: Option<u32>, weights: GroupWeights) -> Result<(), TermsError> {
        if parent.is_some_and(|parent| self.tenants.is_within(parent, index)) {
            return Err(TermsError::Loop(self.tenants.nodes[index as usize].name.clone()));
        }
        let node = &self.tenants.nodes[index as usize];
        let group = node.group;
        if node.parent == parent {
            // Deferred work of the queue runs when all terms are set.
            let _ = self.queue.set_group_weights(group, weights, self.now_ns).map_err(TermsError::Group)?;
            return Ok(());
        }
        self.move_node(index, parent, weights)
    }

    /// Moves a node with all nodes below it. A group of the request queue cannot move, so each
    /// moved node gets a new one; all are created before any client moves, so that nothing has
    /// changed if one cannot be created.
    fn move_node(&mut self, index: u32, parent: Option<u32>, weights: GroupWeights) -> Result<(), TermsError> {
        let below = self.tenants.group_of(&self.queue, parent);
        let mut made = Vec::new();
        if let Err(error) = self.make_groups(index, below, weights, &mut made) {
            for (_, group) in made.into_iter().rev() {
                let _ = self.queue.remove_group(group, self.now_ns);
            }
            return Err(error);
        }
        for (index, new) in made {
            let old = std::mem::replace(&mut self.tenants.nodes[index as usize].group, new);
            for member in &self.tenants.members {
                if member.is_present && member.tenant == index {
                    let _ = self.queue.move_context(member.context, new, self.now_ns);
                }
            }
            let _ = self.queue.release_group(old, self.now_ns);
            self.tenants.retired.push(old);
            // At the end of a switch that is in progress, all reservations are made again anyway.
            if self.queue.is_reserving() && !self.queue.is_switching() {
                self.reserve_now(index);
            }
        }
        self.kicked = true;
        Ok(())
    }

    /// Creates a group of the request queue for a moved node and for each node below it. Appends
    /// them to `made`, parents before children.
    fn make_groups(
        &mut self,
        index: u32,
        below: GroupId,
        weights: GroupWeights,
        made: &mut Vec<(u32, GroupId)>,
    ) -> Result<(), TermsError> {
        let group = self.queue.create_group(below, weights, self.now_ns).map_err(TermsError::Group)?;
        made.push((index, group));
        let is_child = |node: &Node| node.is_known && node.parent == Some(index);
        let children: Vec<u32> =
            self.tenants.nodes.iter().zip(0u32..).filter(|(node, _)| is_child(node)).map(|(_, at)| at).collect();
        for child in children {
            let weights = GroupWeights::of(self.tenants.nodes[child as usize].terms.weight);
            self.make_groups(child, group, weights, made)?;
        }
        Ok(())
    }

    fn set_priorities(&mut self, index: u32, priority: Priority) {
        for member in &self.tenants.members {
            if member.is_present && member.tenant == index {
                let priority = if priority.is_set() { priority } else { member.own };
                let _ = self.queue.set_priority(member.context, priority, self.now_ns);
            }
        }
    }

    fn remove_node(&mut self, name: &str, is_group: bool, now_ns: u64) -> Result<(), TermsError> {
        self.advance(now_ns);
        let index = self.tenants.find(name, is_group).ok_or_else(|| TermsError::Unknown(name.to_owned()))?;
        let has_children = self.tenants.nodes.iter().any(|node| node.is_known && node.parent == Some(index));
        let node = &mut self.tenants.nodes[index as usize];
        if node.members > 0 || has_children {
            return Err(TermsError::InUse(name.to_owned()));
        }
        node.is_known = false;
        node.terms.reserve = None;
        node.parent = None;
        let group = node.group;
        let _ = self.queue.release_group(group, self.now_ns);
        self.tenants.retired.push(group);
        let names = if is_group { &mut self.tenants.groups } else { &mut self.tenants.tenants };
        names.remove(name);
        self.limiter.set(index, None, 1, &Limits::default(), self.now_ns);
        self.kick();
        Ok(())
    }

    /// Replaces a tenant's reservation `old` by the one in its terms, or releases it.
    fn reserve(
        &mut self,
        index: u32,
        old: Option<Reserve>,
        warnings: &mut Vec<String>,
        now_ns: u64,
    ) -> Result<(), TermsError> {
        let node = &self.tenants.nodes[index as usize];
        let (group, reserve, unreserved) = (node.group, node.terms.reserve, node.unreserved);
        let Some(wanted) = reserve else {
            let _ = self.queue.release_group(group, now_ns);
            self.tenants.nodes[index as usize].unreserved = None;
            self.kick();
            return Ok(());
        };
        if self.bandwidth.is_none() || self.position_ns.is_none() {
            warnings.push(format!(
                "device {}: `bandwidth` or `position` is not configured: the admission of reservations assumes a disk of 2008 \
                 (60 MB/s, 12 ms)",
                self.name
            ));
        }
        let admitted = if self.queue.is_reserving() && !self.queue.is_switching() {
            self.reserve_now(index).map_or(Ok(()), Err)
        } else {
            // The layer takes over when the elevator's requests have completed; admission can be
            // decided now.
            self.can_promise(index, old, wanted)
        };
        if let Err(source) = admitted {
            let node = &mut self.tenants.nodes[index as usize];
            (node.terms.reserve, node.unreserved) = (old, unreserved);
            return Err(TermsError::Reserve { bytes_per_second: wanted.bytes_per_second, source });
        }
        // If a switch is in progress, the reservation takes effect at its end.
        if !self.queue.is_reserving() && self.switch_to(self.queue.kind(), true, now_ns).is_err() {
            warnings.push(format!("device {}: the elevator is being switched: the reservation follows", self.name));
        }
        Ok(())
    }

    /// Checks that the device can admit a tenant's reservation beside those of the others.
    fn can_promise(&self, index: u32, old: Option<Reserve>, wanted: Reserve) -> Result<(), ReserveError> {
        let figures = self.device_figures();
        let old = old.map(figures::reservation_of);
        let is_kept = |node: &Node| node.is_known && node.unreserved.is_none();
        let nodes = self.tenants.nodes.iter().zip(0u32..);
        let others =
            nodes.filter(|(node, at)| *at != index && is_kept(node)).filter_map(|(node, _)| node.terms.reserve);
        let load_ns = figures.load_ns(others.map(figures::reservation_of).chain(old));
        figures.admit(load_ns, old, figures::reservation_of(wanted))
    }

    /// Checks the admission of all reservations again after terms or figures have changed.
    /// Reservations that were refused are tried again; admitted ones stay even if the device is now
    /// overcommitted. Returns a warning in that case.
    pub fn recheck_reservations(&mut self) -> Vec<String> {
        let Some(reserved) = self.queue.reserved().filter(|_| !self.queue.is_switching()) else { return Vec::new() };
        let is_over = reserved.load_ns > reserved.load_ns_max;
        let (mut were_kept, mut held) = (false, 0);
        for index in 0..self.tenants.nodes.len() as u32 {
            let node = &mut self.tenants.nodes[index as usize];
            if !node.is_known || node.terms.reserve.is_none() {
                continue;
            }
            if self.queue.group_reservation(node.group).is_none() {
                self.reserve_now(index);
                continue;
            }
            held += 1;
            were_kept |= node.unreserved.is_none();
            node.unreserved = is_over.then_some(ReserveError::NoCapacity { headroom_bytes_per_second: 0 });
        }
        if !is_over || !were_kept {
            return Vec::new();
        }
        let percent = |ns: u64| ns.div_ceil(10_000_000);
        vec![format!(
            "device {}: reservations take {} % of the device's time by its present figures, and {} % can be reserved: the \
             reservations of {held} tenants are not guaranteed",
            self.name,
            percent(reserved.load_ns),
            percent(reserved.load_ns_max)
        )]
    }

    fn reserve_now(&mut self, index: u32) -> Option<ReserveError> {
        let node = &self.tenants.nodes[index as usize];
        let wanted = figures::reservation_of(node.terms.reserve?);
        let refused = self.queue.reserve_group(node.group, wanted, self.now_ns).err();
        self.kick();
        self.tenants.nodes[index as usize].unreserved = refused;
        refused
    }

    /// Makes all reservations again after a switch: a reservation ends with the elevator.
    pub(super) fn reserve_again(&mut self) {
        for index in 0..self.tenants.nodes.len() as u32 {
            let node = &self.tenants.nodes[index as usize];
            if let (true, Some(reserve)) = (node.is_known, node.terms.reserve)
                && let Some(refused) = self.reserve_now(index)
            {
                let node = &self.tenants.nodes[index as usize];
                tracing::warn!(
                    device = self.name,
                    tenant = node.name,
                    bytes_per_second = reserve.bytes_per_second,
                    "the reservation was refused: {refused}"
                );
            }
        }
    }
}

/// Returns the priority and the nice value of a client's context. A priority in the terms takes
/// precedence.
fn priority_of(terms: Priority, process: Option<ProcessPriority>) -> (Priority, i8) {
    let process = process.unwrap_or_default();
    let priority = if terms.is_set() { terms } else { process.priority };
    (priority, process.nice)
}
