//! A host that merges bios and requests as the kernel's multi-queue block layer does: a request
//! that merged last, a hash of requests by their end for back merges, and the elevator's search for
//! front merges.

use std::collections::HashMap;

use hoistway_core::{Bio, Extent, HostSearch, Kick, Merge, NoSink, Op, Owned, Priority, RequestId, RequestQueue};

pub type Queue = RequestQueue<Owned<NoSink>>;

/// What a faulty host leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It does not report that a request grew.
    NoGrowth,
    /// It reports the old extent.
    OldExtent,
    /// It does not ask for permission.
    NoVeto,
    /// It reports a growth where it joined two requests.
    GrowthForJoin,
}

/// A request of the host.
#[derive(Clone, Copy, Debug)]
pub struct HostRequest {
    pub id: RequestId,
    op: Op,
    priority: Priority,
    pub sector: u64,
    pub sectors: u32,
    is_mergeable: bool,
}

impl HostRequest {
    fn end(&self) -> u64 {
        self.sector + u64::from(self.sectors)
    }

    fn extent(&self) -> Extent {
        Extent { sector: self.sector, sectors: self.sectors }
    }
}

/// The requests that the host may merge, by their tokens.
pub struct Merger {
    pub requests: HashMap<u64, HostRequest>,
    last: Option<u64>,
    /// The tokens of the requests that end at a sector, the latest first.
    by_end: HashMap<u64, Vec<u64>>,
    max_sectors: u32,
    refusal_ends_merging: bool,
    pub fault: Option<Fault>,
    /// How often each kind of merge happened: back, front, join, join at insertion.
    pub counts: [u64; 4],
}

impl Merger {
    pub fn new(max_sectors: u32, refusal_ends_merging: bool, fault: Option<Fault>) -> Merger {
        Merger {
            requests: HashMap::new(),
            last: None,
            by_end: HashMap::new(),
            max_sectors,
            refusal_ends_merging,
            fault,
            counts: [0; 4],
        }
    }

    /// Merges a bio or submits it as a request. Returns whether the queue is to be run.
    pub fn submit(&mut self, queue: &mut Queue, bio: &Bio, now_ns: u64) -> Kick {
        if let Some((token, merge)) = self.find(queue, bio, now_ns) {
            let is_allowed = self.allows(queue, token, bio, now_ns);
            let request = &self.requests[&token];
            if is_allowed && !self.is_too_large(request.sectors, bio.sectors) {
                return self.merge(queue, token, merge, bio, now_ns);
            }
            if is_allowed && self.refusal_ends_merging {
                self.refuse(queue, token);
            }
        }
        if let Some(kick) = self.join_at_insert(queue, bio, now_ns) {
            return kick;
        }
        let (submitted, kick) = queue.submit(*bio, now_ns).expect("the storage is large");
        let hoistway_core::Submitted::Queued(id) = submitted else { panic!("the queue merges nothing itself") };
        let request = HostRequest {
            id,
            op: bio.op,
            priority: queue.request(id).expect("it is queued").priority(),
            sector: bio.sector,
            sectors: bio.sectors,
            is_mergeable: true,
        };
        self.requests.insert(bio.token, request);
        self.last.get_or_insert(bio.token);
        self.hash(bio.token);
        self.forget_dispatched(queue);
        kick
    }

    /// Forgets requests that left the elevator: the one that the driver took, and those that wait
    /// for it.
    pub fn forget_dispatched(&mut self, queue: &Queue) {
        for token in queue.dispatched().map(|request| request.token()).collect::<Vec<_>>() {
            self.forget(token);
        }
    }

    /// Forgets a request.
    pub fn forget(&mut self, token: u64) {
        self.unhash(token);
        if self.last == Some(token) {
            self.last = None;
        }
        self.requests.remove(&token);
    }

    fn find(&mut self, queue: &mut Queue, bio: &Bio, now_ns: u64) -> Option<(u64, Merge)> {
        match queue.prepare_merge(bio, now_ns) {
            HostSearch::Usual => {}
            HostSearch::Nothing => return None,
            HostSearch::Found(id, merge) => {
                let token = token_of(queue, id);
                return self.can_merge(queue, token, bio, now_ns).then_some((token, merge));
            }
        }
        if let Some(last) = self.last
            && self.can_merge(queue, last, bio, now_ns)
        {
            let request = &self.requests[&last];
            if request.end() == bio.sector {
                return Some((last, Merge::Back));
            }
            if bio.end() == request.sector {
                return Some((last, Merge::Front));
            }
        }
        if let Some(below) = self.ending_at(bio.sector)
            && self.can_merge(queue, below, bio, now_ns)
        {
            return Some((below, Merge::Back));
        }
        let (id, merge) = queue.find_merge_for_host(bio, now_ns)?;
        let token = token_of(queue, id);
        self.can_merge(queue, token, bio, now_ns).then_some((token, merge))
    }

    fn can_merge(&self, queue: &mut Queue, token: u64, bio: &Bio, now_ns: u64) -> bool {
        let Some(request) = self.requests.get(&token) else { return false };
        let priority = queue.context(bio.context).expect("the process lives").effective_priority();
        request.is_mergeable
            && request.op == bio.op
            && request.priority == priority
            && self.allows(queue, token, bio, now_ns)
    }

    fn allows(&self, queue: &mut Queue, token: u64, bio: &Bio, now_ns: u64) -> bool {
        self.fault == Some(Fault::NoVeto) || queue.allows_merge(self.requests[&token].id, bio, now_ns)
    }

    fn is_too_large(&self, one: u32, other: u32) -> bool {
        one + other > self.max_sectors
    }

    fn refuse(&mut self, queue: &mut Queue, token: u64) {
        let request = self.requests.get_mut(&token).expect("a candidate is known");
        request.is_mergeable = false;
        queue.record_refusal(request.id).expect("it is queued");
        if self.last == Some(token) {
            self.last = None;
        }
    }

    fn merge(&mut self, queue: &mut Queue, token: u64, merge: Merge, bio: &Bio, now_ns: u64) -> Kick {
        let id = self.requests[&token].id;
        let neighbour = queue.neighbour(id, merge).map(|other| token_of(queue, other));
        let before = self.requests[&token].extent();
        if merge == Merge::Back {
            self.grow(token, bio.sectors);
        } else {
            // The end, and with it the place in the hash, stays.
            let request = self.requests.get_mut(&token).expect("a candidate is known");
            request.sector = bio.sector;
            request.sectors += bio.sectors;
        }
        let grown = self.requests[&token].extent();
        self.counts[usize::from(merge == Merge::Front)] += 1;
        let pair = neighbour.map(|other| if merge == Merge::Back { (token, other) } else { (other, token) });
        if let Some((lower, upper)) = pair.filter(|&(lower, upper)| self.can_join(lower, upper)) {
            if self.fault == Some(Fault::GrowthForJoin) {
                let _ = queue.record_growth(id, merge, grown, now_ns);
            }
            return self.join(queue, lower, upper, now_ns);
        }
        self.last = Some(token);
        match self.fault {
            Some(Fault::NoGrowth) => Kick::Quiet,
            Some(Fault::OldExtent) => queue.record_growth(id, merge, before, now_ns).expect("it is queued"),
            _ => queue.record_growth(id, merge, grown, now_ns).expect("it is queued"),
        }
    }

    fn can_join(&self, lower: u64, upper: u64) -> bool {
        let (Some(a), Some(b)) = (self.requests.get(&lower), self.requests.get(&upper)) else { return false };
        let alike = a.op == b.op && a.priority == b.priority && a.is_mergeable && b.is_mergeable;
        alike && a.end() == b.sector && !self.is_too_large(a.sectors, b.sectors)
    }

    /// Merges a queued request into its lower neighbour.
    fn join(&mut self, queue: &mut Queue, lower: u64, upper: u64, now_ns: u64) -> Kick {
        self.counts[2] += 1;
        let absorbed = self.requests[&upper];
        self.forget(upper);
        self.grow(lower, absorbed.sectors);
        let request = self.requests[&lower];
        self.last = Some(lower);
        queue
            .record_join((request.id, request.extent()), (absorbed.id, absorbed.extent()), now_ns)
            .expect("both are queued")
    }

    fn grow(&mut self, token: u64, sectors: u32) {
        self.unhash(token);
        self.requests.get_mut(&token).expect("it is known").sectors += sectors;
        self.hash(token);
    }

    /// Merges a request that is about to be inserted into the end of a queued one.
    fn join_at_insert(&mut self, queue: &mut Queue, bio: &Bio, now_ns: u64) -> Option<Kick> {
        if !queue.joins_at_insert() {
            return None;
        }
        let last = self.last.filter(|&last| self.can_take(queue, last, bio));
        let below = self.ending_at(bio.sector).filter(|&below| self.can_take(queue, below, bio));
        let into = last.or(below)?;
        self.counts[3] += 1;
        self.grow(into, bio.sectors);
        let request = self.requests[&into];
        let mut kick =
            queue.record_join_at_insert(request.id, request.extent(), bio, now_ns).expect("the storage is large");
        self.last = Some(into);
        let mut at = into;
        while last.is_none() {
            let Some(below) = self.ending_at(self.requests[&at].sector).filter(|&below| self.can_join(below, at))
            else {
                break;
            };
            if self.join(queue, below, at, now_ns) == Kick::Run {
                kick = Kick::Run;
            }
            at = below;
        }
        Some(kick)
    }

    /// Returns true if a request for the bio could be merged into the end of a queued one.
    fn can_take(&self, queue: &Queue, token: u64, bio: &Bio) -> bool {
        let Some(request) = self.requests.get(&token) else { return false };
        let priority = queue.context(bio.context).expect("the process lives").effective_priority();
        let alike = request.op == bio.op && request.priority == priority && request.is_mergeable;
        alike && request.end() == bio.sector && !self.is_too_large(request.sectors, bio.sectors)
    }

    fn ending_at(&self, sector: u64) -> Option<u64> {
        let tokens = self.by_end.get(&sector)?;
        tokens.iter().copied().find(|token| self.requests[token].is_mergeable)
    }

    fn hash(&mut self, token: u64) {
        self.by_end.entry(self.requests[&token].end()).or_default().insert(0, token);
    }

    fn unhash(&mut self, token: u64) {
        if let Some(request) = self.requests.get(&token)
            && let Some(tokens) = self.by_end.get_mut(&request.end())
        {
            tokens.retain(|&other| other != token);
        }
    }
}

fn token_of(queue: &Queue, id: RequestId) -> u64 {
    queue.request(id).expect("it is queued").token()
}
