//! The issuers of requests: calling threads and their memberships in a device queue.

use hoistway_qos::{DiskQueue, DiskScheduler, MemberId, ProcessPriority};
use hoistway_reactor::Process;
use rustc_hash::FxHashMap;

use super::rules::{Attribution, Facts};
use crate::Caller;
use crate::memory::shrink_map;

/// Validity in ns of a thread's name, control group and nice value: 1 s.
const FACTS_NS: u64 = 1_000_000_000;
/// Validity in ns of a thread's I/O priority: 1 ms.
const PRIORITY_NS: u64 = 1_000_000;
/// Time in ns without requests after which the existence of a thread is checked: 5 s.
const IDLE_NS: u64 = 5_000_000_000;

/// Thread ID and user ID of an issuer. A server thread may act as several users.
pub(super) type IssuerId = (u32, u32);

/// Returns the issuer ID of a calling thread.
pub(super) fn issuer_id(caller: &Caller) -> IssuerId {
    (caller.tid, caller.uid)
}

/// The issuers known to a device.
#[derive(Debug, Default)]
pub(super) struct IssuerTable {
    by_id: FxHashMap<IssuerId, Issuer>,
    /// The user ID of each thread's first request; only server threads have others.
    users: FxHashMap<u32, u32>,
}

/// A calling thread.
#[derive(Debug)]
pub(super) struct Issuer {
    /// Facts from `/proc`.
    pub facts: Facts,
    /// Device memberships, one per tenant.
    members: Vec<(Attribution, MemberId)>,
    /// The tenant of all requests of the thread, if it does not depend on the request.
    pub attribution: Option<Attribution>,
    /// Weights of the thread's control group and its ancestors, the outermost first, once read.
    pub weights: Vec<u16>,
    /// Time at which the facts were read, in ns.
    facts_ns: u64,
    /// Time of the last request, in ns.
    requested_ns: u64,
    /// Time at which the I/O priority was read, in ns.
    priority_ns: u64,
    /// Requests that are not complete.
    pub in_flight: u32,
    /// Completed requests.
    pub requests: u64,
    /// Bytes read and written so far.
    pub bytes: [u64; 2],
    /// Time of the first request, in ns.
    pub first_ns: u64,
}

impl IssuerTable {
    /// Returns an issuer whose facts are still valid.
    pub fn fresh(&mut self, key: IssuerId, now_ns: u64) -> Option<&mut Issuer> {
        self.by_id.get_mut(&key).filter(|issuer| now_ns.saturating_sub(issuer.facts_ns) < FACTS_NS || key.0 == 0)
    }

    /// Returns an issuer regardless of the age of its facts.
    pub fn get_mut(&mut self, key: IssuerId) -> Option<&mut Issuer> {
        self.by_id.get_mut(&key)
    }

    /// Returns the issuer of a thread, under one of its user IDs.
    pub fn by_thread(&self, tid: u32) -> Option<(IssuerId, &Issuer)> {
        let by_user = |uid: &u32| self.by_id.get_key_value(&(tid, *uid));
        // The recorded user ID may have been removed already.
        let found = self.users.get(&tid).and_then(by_user).or_else(|| self.by_id.iter().find(|(key, _)| key.0 == tid));
        found.map(|(key, issuer)| (*key, issuer))
    }

    /// Iterates over all issuers.
    pub fn iter(&self) -> impl Iterator<Item = (&IssuerId, &Issuer)> {
        self.by_id.iter()
    }

    /// Stores the facts of a thread. A thread with the same ID but another start time replaces the
    /// old issuer.
    pub fn store_facts<D>(&mut self, key: IssuerId, facts: Facts, device: &mut DiskQueue<D, ()>, now_ns: u64) {
        if let Some(issuer) = self.by_id.get_mut(&key) {
            // While requests of the previous thread are in flight, both share one entry.
            if issuer.facts.start_id == facts.start_id || facts.is_exited() || issuer.in_flight > 0 {
                let changed = issuer.facts.process.nice != facts.process.nice;
                let ioprio = issuer.facts.process.ioprio;
                if !facts.is_exited() {
                    issuer.facts = facts;
                    issuer.facts.process.ioprio = ioprio;
                }
                issuer.attribution = None;
                issuer.facts_ns = now_ns;
                if changed {
                    issuer.push_priority(device.scheduler_mut(), now_ns);
                }
                return;
            }
            issuer.leave_device(device, now_ns);
        }
        let issuer = Issuer {
            facts,
            members: Vec::new(),
            attribution: None,
            weights: Vec::new(),
            facts_ns: now_ns,
            requested_ns: now_ns,
            priority_ns: now_ns,
            in_flight: 0,
            requests: 0,
            bytes: [0; 2],
            first_ns: now_ns,
        };
        self.users.entry(key.0).or_insert(key.1);
        self.by_id.insert(key, issuer);
    }

    /// Removes those of `exited` that are still idle: another thread may have the same ID by now.
    /// Returns the number removed.
    pub fn remove_exited<D>(&mut self, exited: &[IssuerId], device: &mut DiskQueue<D, ()>, now_ns: u64) -> usize {
        let before = self.by_id.len();
        for key in exited {
            if self.by_id.get(key).is_some_and(|issuer| issuer.is_idle(now_ns))
                && let Some(mut issuer) = self.by_id.remove(key)
            {
                issuer.leave_device(device, now_ns);
                if self.users.get(&key.0) == Some(&key.1) {
                    self.users.remove(&key.0);
                }
            }
        }
        before - self.by_id.len()
    }

    /// Reduces the tables to the size that the issuers need.
    pub fn shrink(&mut self) {
        shrink_map(&mut self.by_id);
        shrink_map(&mut self.users);
    }

    /// Returns the issuers without requests for [`IDLE_NS`].
    pub fn idle(&self, now_ns: u64) -> Vec<IssuerId> {
        let idle = self.by_id.iter().filter(|(key, issuer)| key.0 != 0 && issuer.is_idle(now_ns));
        idle.map(|(key, _)| *key).collect()
    }
}

impl Issuer {
    /// Returns the device membership for an attribution, creating it with `join`; `None` if the
    /// device is full.
    pub fn member(
        &mut self,
        attribution: Attribution,
        join: impl FnOnce(&Process) -> Option<MemberId>,
    ) -> Option<MemberId> {
        if let Some((_, member)) = self.members.iter().find(|(of, _)| *of == attribution) {
            return Some(*member);
        }
        let member = join(&self.facts.process)?;
        self.members.push((attribution, member));
        Some(member)
    }

    /// Returns true if the issuer has a membership for an attribution.
    pub fn is_member(&self, attribution: Attribution) -> bool {
        self.members.iter().any(|(of, _)| *of == attribution)
    }

    /// Returns the attribution of the newest membership.
    pub fn last_attribution(&self) -> Option<Attribution> {
        self.attribution.or_else(|| self.members.last().map(|(attribution, _)| *attribution))
    }

    /// Records a request. `is_waiting`: the issuer waits for the reply, so its thread exists.
    /// Returns true if the I/O priority has to be read again, so that a change by `ionice` applies
    /// from the next request on. The priority is read at most once a millisecond, because the
    /// system call costs half as much as the rest of a request.
    #[inline]
    pub fn note_request(&mut self, is_waiting: bool, now_ns: u64) -> bool {
        self.requested_ns = now_ns;
        if !is_waiting || self.facts.process.pid == 0 || now_ns.saturating_sub(self.priority_ns) < PRIORITY_NS {
            return false;
        }
        self.priority_ns = now_ns;
        true
    }

    /// Sets the I/O priority.
    pub fn set_priority(&mut self, ioprio: u16, device: &mut DiskScheduler, now_ns: u64) {
        if self.facts.process.ioprio != ioprio {
            self.facts.process.ioprio = ioprio;
            self.push_priority(device, now_ns);
        }
    }

    /// Passes the I/O priority on to the device.
    fn push_priority(&self, device: &mut DiskScheduler, now_ns: u64) {
        for (_, member) in &self.members {
            device.set_process(*member, process_priority(&self.facts.process), now_ns);
        }
    }

    fn is_idle(&self, now_ns: u64) -> bool {
        self.in_flight == 0 && now_ns.saturating_sub(self.requested_ns) >= IDLE_NS
    }

    fn leave_device<D>(&mut self, device: &mut DiskQueue<D, ()>, now_ns: u64) {
        for (_, member) in self.members.drain(..) {
            device.leave(member, now_ns);
        }
    }
}

/// Returns the I/O priority and the nice value of a process.
pub(super) fn process_priority(process: &Process) -> ProcessPriority {
    ProcessPriority::from_ioprio(process.ioprio, process.nice)
}
