//! Limits: requests wait here, before the queue, until the token buckets of their tenant and of the
//! groups above it let them pass.
//!
//! Nothing is refused, only delayed; within a tenant what came first goes first. A tenant's own
//! buckets let a request pass when they hold tokens for all of it, or are full: a request larger
//! than the bucket leaves a debt. The buckets of a group above let one pass as soon as they are out
//! of debt, whatever its size, so that large requests do not starve behind small ones; among those
//! that a group holds back, tenants get tokens by their weights (start-time fair queueing: P.
//! Goyal, H. Vin and H. Cheng, SIGCOMM 1996).

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use hoistway_core::TokenBucket;

use crate::terms::{Limits, Rate};

/// What a request costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Bytes that are moved; trims and zeroes move none.
    pub bytes: u64,
    /// Operations: 1, but 0 for flushes, which never come here.
    pub operations: u64,
}

/// The limits of the tenants and groups of one device, and the requests that they hold back.
#[derive(Debug, Default)]
pub struct Limiter {
    nodes: Vec<Node>,
    /// Tenants that hold something back, by when their first request may pass, as far as was known
    /// when they were filed.
    heap: BinaryHeap<Reverse<Filed>>,
    filed: u64,
}

/// A tenant or a group.
#[derive(Debug, Default)]
struct Node {
    parent: Option<u32>,
    weight: u64,
    bytes: Option<TokenBucket>,
    operations: Option<TokenBucket>,
    /// What is held back, oldest first: the caller's numbers.
    held: VecDeque<(u32, Cost)>,
    /// The number under which it is filed; others of it in the heap are out of date.
    filed: u64,
    /// The end of what it passed last, in its domain's virtual time.
    finish: u64,
    /// Of the topmost limited group: the virtual time below it.
    virtual_now: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Filed {
    at_ns: u64,
    /// Virtual start.
    start: u64,
    filed: u64,
    node: u32,
}

/// One unit of a tenant of weight 1 in virtual time: weights go to 1000, so this divides without
/// much loss.
const VIRTUAL_UNIT: u64 = 1_000;

impl Limiter {
    /// Sets the limits of node number `node`, what it is part of and its weight there. Nodes are
    /// made as they are named.
    pub fn set(&mut self, node: u32, parent: Option<u32>, weight: u16, limits: &Limits, now_ns: u64) {
        let most = node.max(parent.unwrap_or(0)) as usize;
        if self.nodes.len() <= most {
            self.nodes.resize_with(most + 1, Node::default);
        }
        let entry = &mut self.nodes[node as usize];
        entry.parent = parent;
        entry.weight = u64::from(weight.max(1));
        change(&mut entry.bytes, limits.bytes, now_ns);
        change(&mut entry.operations, limits.operations, now_ns);
        // The set of competing nodes may have changed, so earlier virtual times have no meaning.
        for node in &mut self.nodes {
            (node.finish, node.virtual_now) = (0, 0);
        }
        self.file_all(now_ns);
    }

    /// Whether a request of this tenant may pass at once, and has paid; otherwise it is kept until
    /// [`Limiter::release`] answers `item`.
    pub fn admit(&mut self, node: u32, cost: Cost, item: u32, now_ns: u64) -> bool {
        if !self.is_limited(node) {
            return true;
        }
        let waits = !self.nodes[node as usize].held.is_empty();
        if !waits && self.conforms_at(node, cost, now_ns) <= now_ns && self.is_first(node, now_ns) {
            self.pay(node, cost, now_ns);
            return true;
        }
        self.nodes[node as usize].held.push_back((item, cost));
        if !waits {
            self.file(node, now_ns);
        }
        false
    }

    /// The next request that may pass now; it has paid.
    pub fn release(&mut self, now_ns: u64) -> Option<u32> {
        loop {
            let Reverse(filed) = self.heap.peek()?;
            let (node, number, at_ns) = (filed.node, filed.filed, filed.at_ns);
            if self.nodes[node as usize].filed != number {
                self.heap.pop();
                continue;
            }
            if at_ns > now_ns {
                return None;
            }
            self.heap.pop();
            let Some(&(item, cost)) = self.nodes[node as usize].held.front() else { continue };
            if self.conforms_at(node, cost, now_ns) > now_ns {
                self.file(node, now_ns);
                continue;
            }
            self.nodes[node as usize].held.pop_front();
            self.pay(node, cost, now_ns);
            self.file(node, now_ns);
            return Some(item);
        }
    }

    /// When [`Limiter::release`] may have something: not later than it does, sometimes earlier.
    pub fn next_ns(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse(filed)| filed.at_ns)
    }

    /// Forgets what a tenant holds back and is not wanted any more.
    pub fn retain(&mut self, node: u32, is_wanted: impl Fn(u32) -> bool, now_ns: u64) {
        if let Some(entry) = self.nodes.get_mut(node as usize) {
            entry.held.retain(|(item, _)| is_wanted(*item));
            self.file(node, now_ns);
        }
    }

    /// How many requests a tenant holds back.
    pub fn held(&self, node: u32) -> usize {
        self.nodes.get(node as usize).map_or(0, |entry| entry.held.len())
    }

    /// Whether a tenant, or a group above it, is limited at all.
    fn is_limited(&self, node: u32) -> bool {
        self.path(node).any(|at| self.nodes[at as usize].is_limited())
    }

    /// The node and those above it. A loop of parents, which configurations refuse, ends after as
    /// many steps as there are nodes.
    fn path(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        let above = |at: &u32| self.nodes.get(*at as usize).and_then(|entry| entry.parent);
        let known = Some(node).filter(|node| (*node as usize) < self.nodes.len());
        std::iter::successors(known, above).take(self.nodes.len())
    }

    /// The topmost limited node: tenants below one compete for its tokens.
    fn domain(&self, node: u32) -> u32 {
        self.path(node).filter(|at| self.nodes[*at as usize].is_limited()).last().unwrap_or(node)
    }

    fn conforms_at(&self, node: u32, cost: Cost, now_ns: u64) -> u64 {
        let mut at_ns = now_ns;
        for at in self.path(node) {
            let entry = &self.nodes[at as usize];
            let when = |bucket: Option<TokenBucket>, units: u64| {
                let Some(mut bucket) = bucket.filter(|_| units > 0) else { return now_ns };
                bucket.refill(now_ns);
                bucket.holds_at(if at == node { units } else { 0 })
            };
            at_ns = at_ns.max(when(entry.bytes, cost.bytes)).max(when(entry.operations, cost.operations));
        }
        at_ns
    }

    /// Returns true if no waiting tenant that may take the same tokens now precedes a tenant
    /// without waiting requests.
    fn is_first(&self, node: u32, now_ns: u64) -> bool {
        let Some(Reverse(first)) = self.heap.peek() else { return true };
        first.at_ns > now_ns || first.start >= self.tag(node) || self.domain(first.node) != self.domain(node)
    }

    /// The virtual start of a tenant's next request.
    fn tag(&self, node: u32) -> u64 {
        let domain = &self.nodes[self.domain(node) as usize];
        self.nodes[node as usize].finish.max(domain.virtual_now)
    }

    fn pay(&mut self, node: u32, cost: Cost, now_ns: u64) {
        let start = self.tag(node);
        let domain = self.domain(node) as usize;
        let by_bytes = self.nodes[domain].bytes.is_some();
        let units = if by_bytes { cost.bytes.max(1) } else { cost.operations };
        self.nodes[domain].virtual_now = self.nodes[domain].virtual_now.max(start);
        let entry = &mut self.nodes[node as usize];
        entry.finish = start.saturating_add(units.saturating_mul(VIRTUAL_UNIT) / entry.weight.max(1));
        let mut next = Some(node);
        // As many steps as there are nodes: more would be a loop of parents, which configurations
        // refuse.
        for _ in 0..self.nodes.len() {
            let Some(entry) = next.and_then(|at| self.nodes.get_mut(at as usize)) else { return };
            next = entry.parent;
            for (bucket, units) in [(&mut entry.bytes, cost.bytes), (&mut entry.operations, cost.operations)] {
                if let Some(bucket) = bucket {
                    bucket.refill(now_ns);
                    bucket.take(units);
                }
            }
        }
    }

    /// Files a tenant under the time at which its first request may pass, if it has one.
    fn file(&mut self, node: u32, now_ns: u64) {
        self.filed += 1;
        let filed = self.filed;
        self.nodes[node as usize].filed = filed;
        if let Some(&(_, cost)) = self.nodes[node as usize].held.front() {
            let at_ns = self.conforms_at(node, cost, now_ns);
            self.heap.push(Reverse(Filed { at_ns, start: self.tag(node), filed, node }));
        }
    }

    /// Limits have changed: what was known of when requests may pass is not true any more.
    fn file_all(&mut self, now_ns: u64) {
        self.heap.clear();
        for node in 0..self.nodes.len() as u32 {
            self.file(node, now_ns);
        }
    }
}

impl Node {
    fn is_limited(&self) -> bool {
        self.bytes.is_some() || self.operations.is_some()
    }
}

/// Sets, changes or removes a bucket. Rates go to 10^10 a second and bursts to 2^50: more is taken
/// as that.
fn change(bucket: &mut Option<TokenBucket>, rate: Option<Rate>, now_ns: u64) {
    match (bucket.as_mut(), rate) {
        (Some(bucket), Some(rate)) => bucket.change(rate.per_second, rate.burst, now_ns),
        (_, rate) => *bucket = rate.map(|rate| TokenBucket::full(rate.per_second, rate.burst, now_ns)),
    }
}
