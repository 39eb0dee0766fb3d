//! Tenants and groups as groups of the queue, and clients as its I/O contexts.

use std::collections::HashMap;

use hoistway_core::{Class, ContextId, GroupError, GroupId, GroupWeights, Owned, Priority, RequestQueue, ReserveError};

use super::Device;
use super::account::Account;
use super::figures;
use super::tap::Tap;
use super::work::NONE;
use crate::engine::Process;
use crate::tenant::{Limits, Reserve, Terms};

type Queue = RequestQueue<Owned<Tap>>;

/// Names a client of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MemberId {
    slot: u32,
    generation: u32,
}

impl MemberId {
    pub(super) fn slot(self) -> u32 {
        self.slot
    }

    /// The number that it goes by in the events of the queue, where processes have their ids: 1 or more, and used again when it has left.
    pub fn number(self) -> u32 {
        self.slot + 1
    }
}

/// Why terms were not set. Nothing has changed but what could be: a reservation that was refused leaves weight, priority and limits as they were asked for, and
/// what was reserved before.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TermsError {
    /// The group that it is to be part of is not there.
    #[error("there is no group `{0}`")]
    NoGroup(String),
    /// It would be part of itself.
    #[error("`{0}` would be part of itself")]
    Loop(String),
    /// The queue has no room for another group, or the weight is out of range.
    #[error("{0}")]
    Group(GroupError),
    /// The bandwidth cannot be reserved.
    #[error("{bytes_per_second} bytes a second cannot be reserved: {source}")]
    Reserve {
        /// What was asked for.
        bytes_per_second: u64,
        /// Why not.
        source: ReserveError,
    },
    /// There is no tenant or group of this name.
    #[error("there is no tenant or group `{0}`")]
    Unknown(String),
    /// It still has clients, tenants or groups in it.
    #[error("`{0}` is still in use")]
    InUse(String),
}

/// Why a client cannot use a device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JoinError {
    /// So many clients use it already.
    #[error("the device has as many clients as it takes: {0}")]
    Full(u32),
    /// The tenant is not one of this device's.
    #[error("there is no tenant `{0}`")]
    NoTenant(String),
}

/// A tenant, or a group of tenants.
#[derive(Debug)]
struct Node {
    name: String,
    is_group: bool,
    terms: Terms,
    parent: Option<u32>,
    group: GroupId,
    members: u32,
    account: Account,
    /// Its name is in use; otherwise it is a place to be used again.
    is_known: bool,
    /// Why the reservation that it asked for is not kept, if that turned out later.
    unreserved: Option<ReserveError>,
}

/// A client.
#[derive(Debug)]
struct Member {
    generation: u32,
    is_here: bool,
    tenant: u32,
    context: ContextId,
    /// What its process brought along: what counts if the tenant's terms say nothing.
    own: Priority,
    /// The first of its requests.
    first: u32,
    /// Its requests that wait in the queue, pieces each for itself.
    waiting: u32,
    /// Where it stands among the clients of which something waits.
    waiting_place: usize,
}

/// All tenants and clients of a device.
#[derive(Debug)]
pub(super) struct Tenants {
    nodes: Vec<Node>,
    tenants: HashMap<String, u32>,
    groups: HashMap<String, u32>,
    members: Vec<Member>,
    free: Vec<u32>,
    /// Groups of the queue that were given up and cannot be removed before their last request is done.
    retired: Vec<GroupId>,
    /// Clients of which something waits in the queue, in any order.
    waiting: Vec<u32>,
}

/// Of more clients than these it is not looked for the one of which least waits: 16.
const BACKLOGS_LOOKED_AT: usize = 16;

impl Tenants {
    /// None but that of clients without one, which lie in the root group each for itself.
    pub fn new(queue: &Queue) -> Tenants {
        let default = Node::new(Device::DEFAULT_TENANT, false, queue.root_group());
        Tenants {
            nodes: vec![default],
            tenants: HashMap::new(),
            groups: HashMap::new(),
            members: Vec::new(),
            free: Vec::new(),
            retired: Vec::new(),
            waiting: Vec::new(),
        }
    }

    pub fn accounts(&self) -> impl Iterator<Item = (&str, &Account)> {
        let known = self.nodes.iter().filter(|node| node.is_known && !node.is_group);
        known.map(|node| (node.name.as_str(), &node.account))
    }

    pub fn groups(&self) -> impl Iterator<Item = &str> {
        self.nodes.iter().filter(|node| node.is_known && node.is_group).map(|node| node.name.as_str())
    }

    pub fn account_named(&self, tenant: &str) -> Option<&Account> {
        let place = if tenant == Device::DEFAULT_TENANT { Some(0) } else { self.tenants.get(tenant).copied() };
        self.nodes.get(place? as usize).filter(|node| node.is_known && !node.is_group).map(|node| &node.account)
    }

    pub fn account(&mut self, tenant: u32) -> &mut Account {
        // Places are given out by this table and never taken back; the first one is always there.
        let place = if (tenant as usize) < self.nodes.len() { tenant as usize } else { 0 };
        &mut self.nodes[place].account
    }

    /// The requests of all that wait, and that are held back.
    pub fn waiting(&self) -> (u64, u64) {
        let accounts = || self.nodes.iter().map(|node| &node.account);
        (accounts().map(|account| account.waiting).sum(), accounts().map(|account| account.held).sum())
    }

    pub fn tenant_of(&self, member: MemberId) -> Option<u32> {
        let entry = self.members.get(member.slot as usize)?;
        (entry.is_here && entry.generation == member.generation).then_some(entry.tenant)
    }

    pub fn context_of(&self, member: u32) -> Option<ContextId> {
        self.members.get(member as usize).filter(|entry| entry.is_here).map(|entry| entry.context)
    }

    /// Where the list of a client's requests begins. The place is one that this table gave out.
    pub fn first_of(&mut self, member: u32) -> &mut u32 {
        &mut self.members[member as usize].first
    }

    pub fn name_of_number(&self, number: u32) -> Option<&str> {
        let member = self.members.get(number.checked_sub(1)? as usize)?;
        self.nodes.get(member.tenant as usize).map(|node| node.name.as_str())
    }

    /// Of how many clients something waits in the queue, and how much of the one of which least does. Of many clients the least is not looked
    /// for: one.
    pub fn backlog(&self) -> (usize, u32) {
        let count = self.waiting.len();
        let waiting = |member: &u32| self.members.get(*member as usize).map_or(0, |member| member.waiting);
        let least = if count > BACKLOGS_LOOKED_AT { 1 } else { self.waiting.iter().map(waiting).min().unwrap_or(0) };
        (count, least)
    }

    /// A request of a client waits in the queue.
    pub fn waits(&mut self, tenant: u32, member: u32) {
        self.account(tenant).waiting += 1;
        if let Some(entry) = self.members.get_mut(member as usize) {
            entry.waiting += 1;
            if entry.waiting == 1 {
                entry.waiting_place = self.waiting.len();
                self.waiting.push(member);
            }
        }
    }

    /// It waits no more; of a client that has left, whose place another may have by now, there is none to count it for.
    pub fn waits_no_more(&mut self, tenant: u32, member: Option<u32>) {
        let account = self.account(tenant);
        account.waiting = account.waiting.saturating_sub(1);
        if let Some(entry) = member.and_then(|member| self.members.get_mut(member as usize)) {
            let is_last = entry.waiting == 1;
            entry.waiting = entry.waiting.saturating_sub(1);
            if is_last {
                let place = entry.waiting_place;
                self.unlist(place);
            }
        }
    }

    /// Takes a client from the list of those of which something waits.
    fn unlist(&mut self, place: usize) {
        self.waiting.swap_remove(place);
        if let Some(moved) = self.waiting.get(place).copied()
            && let Some(entry) = self.members.get_mut(moved as usize)
        {
            entry.waiting_place = place;
        }
    }

    /// Whether a tenant wants bandwidth to be reserved for it.
    pub fn any_reserves(&self) -> bool {
        self.nodes.iter().any(|node| node.is_known && node.terms.reserve.is_some())
    }

    /// A client leaves.
    pub fn leave(&mut self, queue: &mut Queue, member: MemberId, now_ns: u64) {
        let Some(entry) = self.members.get_mut(member.slot as usize) else { return };
        entry.is_here = false;
        entry.first = NONE;
        entry.generation = entry.generation.wrapping_add(1);
        let (tenant, context) = (entry.tenant, entry.context);
        if std::mem::take(&mut entry.waiting) > 0 {
            let place = entry.waiting_place;
            self.unlist(place);
        }
        self.free.push(member.slot);
        if let Some(node) = self.nodes.get_mut(tenant as usize) {
            node.members = node.members.saturating_sub(1);
        }
        // It is one of this queue's, and has not exited before.
        let _ = queue.exit_context(context, now_ns);
    }

    /// Removes groups that were given up, as far as they are empty by now; answers whether one was.
    pub fn remove_retired(&mut self, queue: &mut Queue, now_ns: u64) -> bool {
        let before = self.retired.len();
        self.retired.retain(|group| queue.remove_group(*group, now_ns) == Err(GroupError::Busy));
        self.retired.len() < before
    }

    fn find(&self, name: &str, is_group: bool) -> Option<u32> {
        if is_group { self.groups.get(name).copied() } else { self.tenants.get(name).copied() }
    }

    /// A place for a new tenant or group.
    fn add(&mut self, node: Node) -> u32 {
        let names = if node.is_group { &mut self.groups } else { &mut self.tenants };
        let free = self.nodes.iter().position(|node| !node.is_known && node.account.is_over());
        let place = free.unwrap_or(self.nodes.len()) as u32;
        names.insert(node.name.clone(), place);
        match free {
            Some(place) => self.nodes[place] = node,
            None => self.nodes.push(node),
        }
        place
    }

    /// Whether `node` is `of` or lies below it.
    fn lies_in(&self, node: u32, of: u32) -> bool {
        let above = |at: &u32| self.nodes.get(*at as usize).and_then(|node| node.parent);
        std::iter::successors(Some(node), above).take(self.nodes.len()).any(|at| at == of)
    }

    fn group_of(&self, queue: &Queue, node: Option<u32>) -> GroupId {
        node.and_then(|node| self.nodes.get(node as usize)).map_or(queue.root_group(), |node| node.group)
    }
}

impl Node {
    fn new(name: &str, is_group: bool, group: GroupId) -> Node {
        Node {
            name: name.to_owned(),
            is_group,
            terms: Terms::default(),
            parent: None,
            group,
            members: 0,
            account: Account::default(),
            is_known: true,
            unreserved: None,
        }
    }
}

impl Device {
    /// Makes a group of tenants, or changes one: its weight among its siblings, the group that it is part of, and limits that all in it share.
    ///
    /// # Errors
    /// When the parent is not there, or it cannot be made.
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

    /// Makes a tenant, or changes its terms while it works. What comes back is what should be known: terms that have no effect here.
    ///
    /// # Errors
    /// When its group is not there, or the bandwidth cannot be reserved: then the rest of the terms counts, and what was reserved before stays.
    pub fn set_tenant(&mut self, name: &str, terms: &Terms, now_ns: u64) -> Result<Vec<String>, TermsError> {
        let old = self.tenants.find(name, false).and_then(|place| self.tenants.nodes[place as usize].terms.reserve);
        let place = self.set_node(name, false, terms.clone(), now_ns)?;
        let mut warnings = Vec::new();
        let info = self.elevator().info();
        if terms.weight != GroupWeights::DEFAULT && !info.groups {
            warnings
                .push(format!("tenant {name}: a weight changes nothing under {}, which knows no groups", info.name));
        }
        if terms.priority.class() == Class::RealTime && terms.reserve.is_some() {
            warnings.push(format!(
                "tenant {name}: what is real time and reserves bandwidth is served within its reservation, not above it"
            ));
        }
        self.reserve(place, old, &mut warnings, now_ns)?;
        Ok(warnings)
    }

    /// The terms of a tenant.
    pub fn terms(&self, name: &str) -> Option<&Terms> {
        self.tenants.find(name, false).map(|place| &self.tenants.nodes[place as usize].terms)
    }

    /// The terms of a group: its weight, limits and parent.
    pub fn group_terms(&self, name: &str) -> Option<&Terms> {
        self.tenants.find(name, true).map(|place| &self.tenants.nodes[place as usize].terms)
    }

    /// Why the reservation of a tenant is not kept at present, if it is not: that can come out after a switch, or when the device's figures fall.
    pub fn unreserved(&self, name: &str) -> Option<ReserveError> {
        self.tenants.find(name, false).and_then(|place| self.tenants.nodes[place as usize].unreserved)
    }

    /// How much of the device is reserved; `None` while no tenant reserves anything.
    pub fn reserved(&self) -> Option<hoistway_core::ReservationSummary> {
        self.queue.reserved()
    }

    /// Forgets a tenant.
    ///
    /// # Errors
    /// When there is none, or it has clients.
    pub fn remove_tenant(&mut self, name: &str, now_ns: u64) -> Result<(), TermsError> {
        self.remove_node(name, false, now_ns)
    }

    /// Forgets a group.
    ///
    /// # Errors
    /// When there is none, or there is something in it.
    pub fn remove_group(&mut self, name: &str, now_ns: u64) -> Result<(), TermsError> {
        self.remove_node(name, true, now_ns)
    }

    /// Takes in a client of a tenant (of none: it stands for itself). Its priority is the tenant's, else its process's own, else best effort 4.
    ///
    /// # Errors
    /// When there is no room for it, or no such tenant.
    pub fn join(
        &mut self,
        tenant: Option<&str>,
        process: Option<&Process>,
        now_ns: u64,
    ) -> Result<MemberId, JoinError> {
        self.now_ns = self.now_ns.max(now_ns);
        let place = match tenant {
            None => 0,
            Some(name) => self.tenants.find(name, false).ok_or_else(|| JoinError::NoTenant(name.to_owned()))?,
        };
        let slot = self.tenants.free.last().copied().unwrap_or(self.tenants.members.len() as u32);
        let node = &self.tenants.nodes[place as usize];
        let (priority, nice) = priority_of(node.terms.priority, process);
        let context = self
            .queue
            .create_context(slot + 1, priority, nice)
            .map_err(|_| JoinError::Full(super::CAPACITY.contexts))?;
        // Both were made by this queue.
        let _ = self.queue.move_context(context, node.group, self.now_ns);
        let generation = self.tenants.members.get(slot as usize).map_or(0, |member| member.generation);
        let own = priority_of(Priority::UNSET, process).0;
        let member = Member {
            generation,
            is_here: true,
            tenant: place,
            context,
            own,
            first: NONE,
            waiting: 0,
            waiting_place: 0,
        };
        match self.tenants.free.pop() {
            Some(slot) => self.tenants.members[slot as usize] = member,
            None => self.tenants.members.push(member),
        }
        let node = &mut self.tenants.nodes[place as usize];
        node.members += 1;
        if let Some(recorder) = &mut self.queue.sink_mut().recorder {
            recorder.name(slot + 1, &node.name);
        }
        Ok(MemberId { slot, generation })
    }

    /// A client's process has changed: its own priority and nice value are these from its next request on. Where its tenant's terms have a priority, that counts.
    pub fn set_process(&mut self, member: MemberId, process: &Process, now_ns: u64) {
        self.now_ns = self.now_ns.max(now_ns);
        let Some(tenant) = self.tenants.tenant_of(member) else { return };
        let told = self.tenants.nodes.get(tenant as usize).map_or(Priority::UNSET, |node| node.terms.priority);
        let Some(entry) = self.tenants.members.get_mut(member.slot as usize) else { return };
        let (own, nice) = priority_of(Priority::UNSET, Some(process));
        entry.own = own;
        let context = entry.context;
        // Nice first: an elevator that reads the priority anew follows it where that is unset.
        let _ = self.queue.set_nice(context, nice, self.now_ns);
        let _ = self.queue.set_priority(context, if told.is_set() { told } else { own }, self.now_ns);
        self.told();
    }

    fn set_node(&mut self, name: &str, is_group: bool, terms: Terms, now_ns: u64) -> Result<u32, TermsError> {
        self.now_ns = self.now_ns.max(now_ns);
        let parent = match &terms.parent {
            None => None,
            Some(parent) => Some(self.tenants.find(parent, true).ok_or_else(|| TermsError::NoGroup(parent.clone()))?),
        };
        let weights = GroupWeights::of(terms.weight);
        let place = match self.tenants.find(name, is_group) {
            Some(place) => {
                self.change_node(place, parent, weights)?;
                place
            }
            None => {
                let below = self.tenants.group_of(&self.queue, parent);
                let group = self.queue.create_group(below, weights, self.now_ns).map_err(TermsError::Group)?;
                self.tenants.add(Node::new(name, is_group, group))
            }
        };
        self.limiter.set(place, parent, terms.weight, &terms.limits, self.now_ns);
        let node = &mut self.tenants.nodes[place as usize];
        let (old, new) = (node.terms.priority, terms.priority);
        node.parent = parent;
        node.terms = Terms { reserve: node.terms.reserve, ..terms.clone() };
        if old != new {
            self.set_priorities(place, new);
        }
        let node = &mut self.tenants.nodes[place as usize];
        node.terms.reserve = terms.reserve;
        self.told();
        Ok(place)
    }

    fn change_node(&mut self, place: u32, parent: Option<u32>, weights: GroupWeights) -> Result<(), TermsError> {
        if parent.is_some_and(|parent| self.tenants.lies_in(parent, place)) {
            return Err(TermsError::Loop(self.tenants.nodes[place as usize].name.clone()));
        }
        let node = &self.tenants.nodes[place as usize];
        let group = node.group;
        if node.parent == parent {
            // What the queue puts off is done when all of the terms are set.
            let _ = self.queue.set_group_weights(group, weights, self.now_ns).map_err(TermsError::Group)?;
            return Ok(());
        }
        self.move_node(place, parent, weights)
    }

    /// Groups of the queue stay where they were made: what moves gets new ones, and those below it too. All of them are made before anything
    /// moves, so that nothing has changed if one cannot be.
    fn move_node(&mut self, place: u32, parent: Option<u32>, weights: GroupWeights) -> Result<(), TermsError> {
        let below = self.tenants.group_of(&self.queue, parent);
        let mut made = Vec::new();
        if let Err(error) = self.make_groups(place, below, weights, &mut made) {
            for (_, group) in made.into_iter().rev() {
                let _ = self.queue.remove_group(group, self.now_ns);
            }
            return Err(error);
        }
        for (place, new) in made {
            let old = std::mem::replace(&mut self.tenants.nodes[place as usize].group, new);
            for member in &self.tenants.members {
                if member.is_here && member.tenant == place {
                    let _ = self.queue.move_context(member.context, new, self.now_ns);
                }
            }
            let _ = self.queue.release_group(old, self.now_ns);
            self.tenants.retired.push(old);
            // After a switch that is under way all is reserved anyway.
            if self.queue.is_reserving() && !self.queue.is_switching() {
                self.reserve_now(place);
            }
        }
        self.kicked = true;
        Ok(())
    }

    /// Makes a group for a tenant or group that moves and for all below it; adds them to `made`, each behind the one that it lies in.
    fn make_groups(
        &mut self,
        place: u32,
        below: GroupId,
        weights: GroupWeights,
        made: &mut Vec<(u32, GroupId)>,
    ) -> Result<(), TermsError> {
        let group = self.queue.create_group(below, weights, self.now_ns).map_err(TermsError::Group)?;
        made.push((place, group));
        let is_child = |node: &Node| node.is_known && node.parent == Some(place);
        let children: Vec<u32> =
            self.tenants.nodes.iter().zip(0u32..).filter(|(node, _)| is_child(node)).map(|(_, at)| at).collect();
        for child in children {
            let weights = GroupWeights::of(self.tenants.nodes[child as usize].terms.weight);
            self.make_groups(child, group, weights, made)?;
        }
        Ok(())
    }

    fn set_priorities(&mut self, place: u32, priority: Priority) {
        for member in &self.tenants.members {
            if member.is_here && member.tenant == place {
                let priority = if priority.is_set() { priority } else { member.own };
                let _ = self.queue.set_priority(member.context, priority, self.now_ns);
            }
        }
    }

    fn remove_node(&mut self, name: &str, is_group: bool, now_ns: u64) -> Result<(), TermsError> {
        self.now_ns = self.now_ns.max(now_ns);
        let place = self.tenants.find(name, is_group).ok_or_else(|| TermsError::Unknown(name.to_owned()))?;
        let has_children = self.tenants.nodes.iter().any(|node| node.is_known && node.parent == Some(place));
        let node = &mut self.tenants.nodes[place as usize];
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
        self.limiter.set(place, None, 1, &Limits::default(), self.now_ns);
        self.told();
        Ok(())
    }

    /// Reserves what a tenant's terms say in the place of `old`, or gives that back.
    fn reserve(
        &mut self,
        place: u32,
        old: Option<Reserve>,
        warnings: &mut Vec<String>,
        now_ns: u64,
    ) -> Result<(), TermsError> {
        let node = &self.tenants.nodes[place as usize];
        let (group, reserve, unreserved) = (node.group, node.terms.reserve, node.unreserved);
        let Some(wanted) = reserve else {
            let _ = self.queue.release_group(group, now_ns);
            self.tenants.nodes[place as usize].unreserved = None;
            self.told();
            return Ok(());
        };
        if self.bandwidth.is_none() || self.position_ns.is_none() {
            warnings.push(format!(
                "device {}: bandwidth or position is not told: the admission of reservations takes the device for a disk of 2008 \
                 (60 MB/s, 12 ms) there",
                self.name
            ));
        }
        let admitted = if self.queue.is_reserving() && !self.queue.is_switching() {
            self.reserve_now(place).map_or(Ok(()), Err)
        } else {
            // The layer comes when what the elevator holds is done: whether it will keep this is known now.
            self.can_promise(place, old, wanted)
        };
        if let Err(source) = admitted {
            let node = &mut self.tenants.nodes[place as usize];
            (node.terms.reserve, node.unreserved) = (old, unreserved);
            return Err(TermsError::Reserve { bytes_per_second: wanted.bytes_per_second, source });
        }
        // Where a switch is under way, what follows from the reservation is done when that is over.
        if !self.queue.is_reserving() && self.switch_to(self.queue.kind(), true, now_ns).is_err() {
            warnings.push(format!("device {}: the elevator is being switched: the reservation follows", self.name));
        }
        Ok(())
    }

    /// Whether the device can keep a tenant's reservation beside those of the others, by the figures of which the layer is told.
    fn can_promise(&self, place: u32, old: Option<Reserve>, wanted: Reserve) -> Result<(), ReserveError> {
        let figures = self.device_figures();
        let old = old.map(figures::reservation_of);
        let is_kept = |node: &Node| node.is_known && node.unreserved.is_none();
        let nodes = self.tenants.nodes.iter().zip(0u32..);
        let others =
            nodes.filter(|(node, at)| *at != place && is_kept(node)).filter_map(|(node, _)| node.terms.reserve);
        let load_ns = figures.load_ns(others.map(figures::reservation_of).chain(old));
        figures.admit(load_ns, old, figures::reservation_of(wanted))
    }

    /// Looks again whether the device can keep what it has promised: terms or figures have changed. What comes back is what should be known: that it
    /// cannot any more. Reservations stay as they are, for what they are worth; those that were not admitted are tried again.
    pub fn examine_promises(&mut self) -> Vec<String> {
        let Some(reserved) = self.queue.reserved().filter(|_| !self.queue.is_switching()) else { return Vec::new() };
        let is_over = reserved.load_ns > reserved.load_ns_max;
        let (mut were_kept, mut held) = (false, 0);
        for place in 0..self.tenants.nodes.len() as u32 {
            let node = &mut self.tenants.nodes[place as usize];
            if !node.is_known || node.terms.reserve.is_none() {
                continue;
            }
            if self.queue.group_reservation(node.group).is_none() {
                self.reserve_now(place);
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
            "device {}: what is reserved takes {} % of its time by its figures of now, and {} % can be promised: the reservations of {held} \
             tenants are not kept",
            self.name,
            percent(reserved.load_ns),
            percent(reserved.load_ns_max)
        )]
    }

    fn reserve_now(&mut self, place: u32) -> Option<ReserveError> {
        let node = &self.tenants.nodes[place as usize];
        let wanted = figures::reservation_of(node.terms.reserve?);
        let refused = self.queue.reserve_group(node.group, wanted, self.now_ns).err();
        self.told();
        self.tenants.nodes[place as usize].unreserved = refused;
        refused
    }

    /// After a switch: a reservation ends with the elevator that it was made with.
    pub(super) fn reserve_again(&mut self) {
        for place in 0..self.tenants.nodes.len() as u32 {
            let node = &self.tenants.nodes[place as usize];
            if let (true, Some(reserve)) = (node.is_known, node.terms.reserve)
                && let Some(refused) = self.reserve_now(place)
            {
                let node = &self.tenants.nodes[place as usize];
                tracing::warn!(
                    device = self.name,
                    tenant = node.name,
                    bytes_per_second = reserve.bytes_per_second,
                    "not reserved: {refused}"
                );
            }
        }
    }
}

/// The priority and the nice value of a client's context.
fn priority_of(terms: Priority, process: Option<&Process>) -> (Priority, i8) {
    let Some(process) = process else { return (terms, 0) };
    if terms.is_set() {
        return (terms, process.nice);
    }
    let class = match process.ioprio >> 13 {
        1 => Class::RealTime,
        2 => Class::BestEffort,
        3 => Class::Idle,
        _ => Class::None,
    };
    let own = Priority::new(class, (process.ioprio & 7) as u8).unwrap_or(Priority::UNSET);
    (own, process.nice)
}
