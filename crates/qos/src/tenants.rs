//! The tables of tenants, groups and clients. Each tenant and each group is a group of the request
//! queue; each client is one of its I/O contexts.

use std::collections::HashMap;

use hoistway_core::{ContextId, GroupError, GroupId, Priority, RequestQueue, ReserveError};
use hoistway_custom::Host;

use crate::account::Account;
use crate::ids::IoId;
use crate::log_limit::LogRateLimiter;
use crate::recorder::QueueSink;
use crate::terms::Terms;

type Queue = RequestQueue<Host<QueueSink>>;

/// The name under which clients without a tenant are accounted.
pub(crate) const DEFAULT_TENANT: &str = "default";

/// Identifies a client of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MemberId {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

impl MemberId {
    pub(crate) fn slot(self) -> u32 {
        self.slot
    }

    /// Returns the client's number, which stands for a process id in the events of the queue: 1 or
    /// more. It is reused after the client has left.
    pub fn number(self) -> u32 {
        self.slot + 1
    }
}

/// A tenant, or a group of tenants.
#[derive(Debug)]
pub(crate) struct Node {
    pub name: String,
    pub is_group: bool,
    pub terms: Terms,
    pub parent: Option<u32>,
    pub group: GroupId,
    pub members: u32,
    pub account: Account,
    /// Whether the node exists; otherwise its slot can be reused.
    pub is_known: bool,
    /// Why the reservation is not in force, if it was refused after it had been admitted.
    pub unreserved: Option<ReserveError>,
    /// Limits the log of slow requests.
    pub slow_log: LogRateLimiter,
}

/// A client.
#[derive(Debug)]
pub(crate) struct Member {
    pub generation: u32,
    pub is_present: bool,
    pub tenant: u32,
    pub context: ContextId,
    /// The priority of the client's process, which applies if the tenant's terms have none.
    pub own: Priority,
    /// The first entry of the list of the client's requests.
    pub first: Option<IoId>,
    /// The number of the client's requests that wait in the queue; pieces of a split request count
    /// one each.
    pub waiting: u32,
    /// The client's index in [`Tenants::waiting`].
    pub waiting_index: usize,
}

/// All tenants, groups and clients of a device.
#[derive(Debug)]
pub(crate) struct Tenants {
    pub nodes: Vec<Node>,
    pub tenants: HashMap<String, u32>,
    pub groups: HashMap<String, u32>,
    pub members: Vec<Member>,
    pub free: Vec<u32>,
    /// Groups of the request queue that are removed when their last request completes.
    pub retired: Vec<GroupId>,
    /// Clients with requests that wait in the queue, in any order.
    pub waiting: Vec<u32>,
}

/// The number of clients up to which the smallest backlog is searched.
const BACKLOG_SEARCH_MAX: usize = 16;

impl Tenants {
    /// Creates tables with the default tenant only, whose clients are members of the root group.
    pub fn new(queue: &Queue) -> Tenants {
        let default = Node::new(DEFAULT_TENANT, false, queue.root_group());
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
        let index = if tenant == DEFAULT_TENANT { Some(0) } else { self.tenants.get(tenant).copied() };
        self.nodes.get(index? as usize).filter(|node| node.is_known && !node.is_group).map(|node| &node.account)
    }

    pub fn account(&mut self, tenant: u32) -> &mut Account {
        // Indices are created by this table and never removed; the first always exists.
        let index = if (tenant as usize) < self.nodes.len() { tenant as usize } else { 0 };
        &mut self.nodes[index].account
    }

    /// Returns the number of requests of all tenants that wait in the queue, and that limits hold
    /// back.
    pub fn waiting(&self) -> (u64, u64) {
        let accounts = || self.nodes.iter().map(|node| &node.account);
        (accounts().map(|account| account.waiting).sum(), accounts().map(|account| account.held).sum())
    }

    pub fn tenant_of(&self, member: MemberId) -> Option<u32> {
        let entry = self.members.get(member.slot as usize)?;
        (entry.is_present && entry.generation == member.generation).then_some(entry.tenant)
    }

    pub fn context_of(&self, member: u32) -> Option<ContextId> {
        self.members.get(member as usize).filter(|entry| entry.is_present).map(|entry| entry.context)
    }

    /// Returns the head of the list of a client's requests. `member` is a slot that this table
    /// assigned.
    pub fn first_of(&mut self, member: u32) -> &mut Option<IoId> {
        &mut self.members[member as usize].first
    }

    /// Returns the tenant of the client with a number.
    pub fn tenant_of_number(&self, number: u32) -> Option<u32> {
        self.members.get(number.checked_sub(1)? as usize).map(|member| member.tenant)
    }

    pub fn name_of_number(&self, number: u32) -> Option<&str> {
        self.nodes.get(self.tenant_of_number(number)? as usize).map(|node| node.name.as_str())
    }

    /// Returns the number of clients with waiting requests, and the smallest number of waiting
    /// requests among them: 1 if there are more than [`BACKLOG_SEARCH_MAX`] such clients.
    pub fn backlog(&self) -> (usize, u32) {
        let count = self.waiting.len();
        let waiting = |member: &u32| self.members.get(*member as usize).map_or(0, |member| member.waiting);
        let least = if count > BACKLOG_SEARCH_MAX { 1 } else { self.waiting.iter().map(waiting).min().unwrap_or(0) };
        (count, least)
    }

    /// Counts a request that starts to wait in the queue.
    pub fn add_waiting(&mut self, tenant: u32, member: u32) {
        self.account(tenant).waiting += 1;
        if let Some(entry) = self.members.get_mut(member as usize) {
            entry.waiting += 1;
            if entry.waiting == 1 {
                entry.waiting_index = self.waiting.len();
                self.waiting.push(member);
            }
        }
    }

    /// Counts a request that stops waiting. `member` is `None` if the client has left.
    pub fn remove_waiting(&mut self, tenant: u32, member: Option<u32>) {
        let account = self.account(tenant);
        account.waiting = account.waiting.saturating_sub(1);
        if let Some(entry) = member.and_then(|member| self.members.get_mut(member as usize)) {
            let is_last = entry.waiting == 1;
            entry.waiting = entry.waiting.saturating_sub(1);
            if is_last {
                let index = entry.waiting_index;
                self.remove_from_waiting(index);
            }
        }
    }

    /// Removes a client from the list of clients with waiting requests.
    fn remove_from_waiting(&mut self, index: usize) {
        self.waiting.swap_remove(index);
        if let Some(moved) = self.waiting.get(index).copied()
            && let Some(entry) = self.members.get_mut(moved as usize)
        {
            entry.waiting_index = index;
        }
    }

    /// Returns true if the terms of any tenant contain a reservation.
    pub fn any_reserves(&self) -> bool {
        self.nodes.iter().any(|node| node.is_known && node.terms.reserve.is_some())
    }

    /// Removes a client.
    pub fn leave(&mut self, queue: &mut Queue, member: MemberId, now_ns: u64) {
        let Some(entry) = self.members.get_mut(member.slot as usize) else { return };
        entry.is_present = false;
        entry.first = None;
        entry.generation = entry.generation.wrapping_add(1);
        let (tenant, context) = (entry.tenant, entry.context);
        if std::mem::take(&mut entry.waiting) > 0 {
            let index = entry.waiting_index;
            self.remove_from_waiting(index);
        }
        self.free.push(member.slot);
        if let Some(node) = self.nodes.get_mut(tenant as usize) {
            node.members = node.members.saturating_sub(1);
        }
        // The context was created by this queue and has not exited before.
        let _ = queue.exit_context(context, now_ns);
    }

    /// Removes released groups that have become empty. Returns true if a group was removed.
    pub fn remove_retired(&mut self, queue: &mut Queue, now_ns: u64) -> bool {
        let before = self.retired.len();
        self.retired.retain(|group| queue.remove_group(*group, now_ns) == Err(GroupError::Busy));
        self.retired.len() < before
    }

    pub fn find(&self, name: &str, is_group: bool) -> Option<u32> {
        if is_group { self.groups.get(name).copied() } else { self.tenants.get(name).copied() }
    }

    /// Stores a new tenant or group in a free slot and returns its index.
    pub fn add(&mut self, node: Node) -> u32 {
        let names = if node.is_group { &mut self.groups } else { &mut self.tenants };
        let free = self.nodes.iter().position(|node| !node.is_known && node.account.is_idle());
        let index = free.unwrap_or(self.nodes.len()) as u32;
        names.insert(node.name.clone(), index);
        match free {
            Some(index) => self.nodes[index] = node,
            None => self.nodes.push(node),
        }
        index
    }

    /// Returns true if `node` is `of` or a descendant of it.
    pub fn is_within(&self, node: u32, of: u32) -> bool {
        let above = |at: &u32| self.nodes.get(*at as usize).and_then(|node| node.parent);
        std::iter::successors(Some(node), above).take(self.nodes.len()).any(|at| at == of)
    }

    pub fn group_of(&self, queue: &Queue, node: Option<u32>) -> GroupId {
        node.and_then(|node| self.nodes.get(node as usize)).map_or(queue.root_group(), |node| node.group)
    }
}

impl Node {
    pub fn new(name: &str, is_group: bool, group: GroupId) -> Node {
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
            slow_log: LogRateLimiter::new(),
        }
    }
}
