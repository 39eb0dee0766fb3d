//! Limits: requests wait here, before the queue, until the token buckets of their tenant and of the
//! groups above it have tokens.
//!
//! Requests are delayed, never refused, and requests of one tenant pass in order of arrival. A
//! tenant's own buckets release a request when they hold tokens for all of it, or are full: a
//! request larger than the bucket leaves a debt. The buckets of a group release a request of any
//! size as soon as they have no debt, so that large requests do not starve behind small ones. Among
//! the tenants that a group delays, tokens are divided by weight (start-time fair queueing: P.
//! Goyal, H. Vin and H. Cheng, SIGCOMM 1996).

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use hoistway_core::TokenBucket;

use crate::ids::IoId;
use crate::terms::{Limits, Rate};

/// The cost of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Bytes transferred; 0 for trims and zeroes.
    pub bytes: u64,
    /// Operations: 1 for each request. Flushes are not limited.
    pub operations: u64,
}

/// The limits of the tenants and groups of one device, and the requests that they delay.
#[derive(Debug, Default)]
pub struct Limiter {
    nodes: Vec<Node>,
    /// Tenants with delayed requests, by the time at which the first may pass, as estimated when
    /// the entry was made.
    heap: BinaryHeap<Reverse<Filed>>,
    /// Number of heap entries so far.
    filed: u64,
}

/// A tenant or a group.
#[derive(Debug, Default)]
struct Node {
    parent: Option<u32>,
    weight: u64,
    bytes: Option<TokenBucket>,
    operations: Option<TokenBucket>,
    /// The delayed requests, oldest first.
    held: VecDeque<(IoId, Cost)>,
    /// The number of the valid heap entry; other entries of the node are outdated.
    filed: u64,
    /// The finish tag of its last request, in its domain's virtual time.
    finish: u64,
    /// For the topmost limited group: the virtual time of its domain.
    virtual_now: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Filed {
    at_ns: u64,
    /// The start tag in virtual time.
    start: u64,
    filed: u64,
    node: u32,
}

/// Virtual time of one unit for a tenant of weight 1. Weights go to 1000, so the division loses
/// little precision.
const VIRTUAL_UNIT: u64 = 1_000;

impl Limiter {
    /// Sets the limits of node number `node`, its parent, and its weight among its siblings.
    /// Creates the node if necessary.
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

    /// Returns true if a request of this tenant passes at once, and takes its tokens. Otherwise the
    /// request waits until [`Limiter::release`] returns `item`.
    pub fn admit(&mut self, node: u32, cost: Cost, item: IoId, now_ns: u64) -> bool {
        // Requests may still wait after the last limit was removed.
        let waits = self.held(node) > 0;
        if !waits && !self.is_limited(node) {
            return true;
        }
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

    /// Returns the next request that may pass now, and takes its tokens.
    pub fn release(&mut self, now_ns: u64) -> Option<IoId> {
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

    /// Returns the time from which [`Limiter::release`] may return a request. It may be too early,
    /// but not too late.
    pub fn next_ns(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse(filed)| filed.at_ns)
    }

    /// Removes delayed requests of a tenant that are not wanted any more.
    pub fn retain(&mut self, node: u32, is_wanted: impl Fn(IoId) -> bool, now_ns: u64) {
        if let Some(entry) = self.nodes.get_mut(node as usize) {
            entry.held.retain(|(item, _)| is_wanted(*item));
            self.file(node, now_ns);
        }
    }

    /// Returns the number of delayed requests of a tenant.
    pub fn held(&self, node: u32) -> usize {
        self.nodes.get(node as usize).map_or(0, |entry| entry.held.len())
    }

    /// Returns true if a tenant or a group above it has a limit.
    fn is_limited(&self, node: u32) -> bool {
        self.path(node).any(|at| self.nodes[at as usize].is_limited())
    }

    /// Returns the node and its ancestors. A loop of parents, which configurations refuse, ends
    /// after as many steps as there are nodes.
    fn path(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        let above = |at: &u32| self.nodes.get(*at as usize).and_then(|entry| entry.parent);
        let known = Some(node).filter(|node| (*node as usize) < self.nodes.len());
        std::iter::successors(known, above).take(self.nodes.len())
    }

    /// Returns the topmost limited node, for whose tokens the tenants below it compete.
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

    /// Returns the start tag of a tenant's next request.
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
        // More steps than nodes would be a loop of parents, which configurations refuse.
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

    /// Makes a heap entry for a tenant with the time at which its first request may pass, if it has
    /// a delayed request.
    fn file(&mut self, node: u32, now_ns: u64) {
        self.filed += 1;
        let filed = self.filed;
        self.nodes[node as usize].filed = filed;
        if let Some(&(_, cost)) = self.nodes[node as usize].held.front() {
            let at_ns = self.conforms_at(node, cost, now_ns);
            self.heap.push(Reverse(Filed { at_ns, start: self.tag(node), filed, node }));
        }
    }

    /// Makes all heap entries again after a change of limits.
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

/// Sets, changes or removes a bucket. Rates are limited to 10^10 a second and bursts to 2^50.
fn change(bucket: &mut Option<TokenBucket>, rate: Option<Rate>, now_ns: u64) {
    match (bucket.as_mut(), rate) {
        (Some(bucket), Some(rate)) => bucket.change(rate.per_second, rate.burst, now_ns),
        (_, rate) => *bucket = rate.map(|rate| TokenBucket::full(rate.per_second, rate.burst, now_ns)),
    }
}
