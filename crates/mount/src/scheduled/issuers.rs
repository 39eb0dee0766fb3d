//! The issuers of requests: calling threads, facts about them, and their memberships in the device.

use std::fs;

use hoistway_machine::{ProcessFiles, Root};
use hoistway_qos::{DiskQueue, DiskScheduler, MemberId, ProcessPriority};
use hoistway_reactor::Process;
use hoistway_reactor::peer;
use rustc_hash::FxHashMap;
use rustix::fs::fstat;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, getpriority_process, pidfd_open};

use super::rules::{Attribution, Facts};
use crate::Caller;

/// Validity in ns of a thread's name, control group and nice value: 1 s.
const FACTS_NS: u64 = 1_000_000_000;
/// Validity in ns of a thread's I/O priority: 1 ms.
const PRIORITY_NS: u64 = 1_000_000;
/// Time in ns without requests after which the existence of a thread is checked: 5 s.
const IDLE_NS: u64 = 5_000_000_000;

/// Thread ID and user ID of an issuer. A server thread may act as several users.
pub(super) type IssuerId = (u32, u32);

/// The issuers known to a device.
#[derive(Debug, Default)]
pub(super) struct IssuerTable {
    known: FxHashMap<IssuerId, Issuer>,
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
    facts_ns: u64,
    requested_ns: u64,
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
        self.known.get_mut(&key).filter(|issuer| now_ns.saturating_sub(issuer.facts_ns) < FACTS_NS || key.0 == 0)
    }

    /// Returns an issuer regardless of the age of its facts.
    pub fn get_mut(&mut self, key: IssuerId) -> Option<&mut Issuer> {
        self.known.get_mut(&key)
    }

    /// Returns the issuer of a thread, under one of its user IDs.
    pub fn by_thread(&self, tid: u32) -> Option<(IssuerId, &Issuer)> {
        let by_user = |uid: &u32| self.known.get_key_value(&(tid, *uid));
        // The recorded user ID may have been removed already.
        let found = self.users.get(&tid).and_then(by_user).or_else(|| self.known.iter().find(|(key, _)| key.0 == tid));
        found.map(|(key, issuer)| (*key, issuer))
    }

    /// Iterates over all issuers.
    pub fn iter(&self) -> impl Iterator<Item = (&IssuerId, &Issuer)> {
        self.known.iter()
    }

    /// Stores the facts of a thread. A thread with the same ID but another start time replaces the
    /// old issuer.
    pub fn store_facts<D>(&mut self, key: IssuerId, facts: Facts, device: &mut DiskQueue<D, ()>, now_ns: u64) {
        if let Some(issuer) = self.known.get_mut(&key) {
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
        self.known.insert(key, issuer);
    }

    /// Removes those of `exited` that are still idle: another thread may have the same ID by now.
    /// Returns the number removed.
    pub fn remove_exited<D>(&mut self, exited: &[IssuerId], device: &mut DiskQueue<D, ()>, now_ns: u64) -> usize {
        let before = self.known.len();
        for key in exited {
            if self.known.get(key).is_some_and(|issuer| issuer.is_idle(now_ns))
                && let Some(mut issuer) = self.known.remove(key)
            {
                issuer.leave_device(device, now_ns);
                if self.users.get(&key.0) == Some(&key.1) {
                    self.users.remove(&key.0);
                }
            }
        }
        before - self.known.len()
    }

    /// Returns the issuers without requests for [`IDLE_NS`].
    pub fn idle(&self, now_ns: u64) -> Vec<IssuerId> {
        let idle = self.known.iter().filter(|(key, issuer)| key.0 != 0 && issuer.is_idle(now_ns));
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

    /// Records a request. Returns true if the I/O priority has to be read again, so that a change
    /// by `ionice` applies from the next request on. It is read at most once a millisecond, because
    /// the system call costs half as much as the rest of a request.
    #[inline]
    pub fn note_request(&mut self, exists: bool, now_ns: u64) -> bool {
        self.requested_ns = now_ns;
        if !exists || self.facts.process.pid == 0 || now_ns.saturating_sub(self.priority_ns) < PRIORITY_NS {
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

/// Reads the facts of a thread. A thread that has exited or is outside the PID namespace has only
/// its IDs. The command line is read only if `with_command` is set.
pub(super) fn read_facts(caller: Caller, with_command: bool) -> Facts {
    let mut facts = Facts {
        process: Process { pid: caller.tid, uid: caller.uid, gid: caller.gid, ..Process::default() },
        command: String::new(),
        start_id: 0,
    };
    let Some(start_id) = start_id(caller.tid) else { return facts };
    let tid = caller.tid;
    let read = |name: &str| fs::read(format!("/proc/{tid}/{name}")).unwrap_or_default();
    facts.start_id = start_id;
    facts.process.nice = nice(tid);
    facts.process.ioprio = peer::ioprio(tid);
    facts.process.comm = String::from_utf8_lossy(&read("comm")).trim_end_matches('\n').to_owned();
    facts.process.cgroup = ProcessFiles::new(&Root::machine(), tid).control_group();
    if with_command {
        let words = read("cmdline");
        let words: Vec<_> = words.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
        facts.command = words.join(" ").trim_end().to_owned();
    }
    facts
}

/// Returns a number that distinguishes a thread from earlier ones with the same ID: the inode
/// number of its pidfd, or before Linux 6.9 its start time in clock ticks since boot. `None`: the
/// thread has exited or is outside the PID namespace.
///
/// `/proc/TID/stat` is the fallback only: reading it blocks while the process is in execve(2),
/// which
/// may itself wait for this mount, because the files that it closes are written back first.
fn start_id(tid: u32) -> Option<u64> {
    let tid = Pid::from_raw(i32::try_from(tid).ok()?)?;
    match pidfd_open(tid, PidfdFlags::from_bits_retain(PIDFD_THREAD)) {
        Ok(thread) => fstat(thread).ok().map(|push_priority| push_priority.st_ino.max(1)),
        Err(Errno::SRCH) => None,
        Err(_) => {
            let stat = fs::read(format!("/proc/{}/stat", tid.as_raw_nonzero())).ok()?;
            Some(parse_start_time(&String::from_utf8_lossy(&stat)).max(1))
        }
    }
}

/// Requests a pidfd of a thread instead of a process (pidfd_open(2), Linux 6.9).
const PIDFD_THREAD: u32 = libc::O_EXCL as u32;

fn nice(tid: u32) -> i8 {
    let tid = i32::try_from(tid).ok().and_then(Pid::from_raw);
    let nice = tid.and_then(|tid| getpriority_process(Some(tid)).ok());
    nice.and_then(|nice| nice.try_into().ok()).unwrap_or(0)
}

/// Parses the 22nd field of `/proc/TID/stat`. The command name in parentheses may contain anything.
fn parse_start_time(stat: &str) -> u64 {
    let behind_name = stat.rsplit_once(')').map_or("", |(_, behind)| behind);
    behind_name.split_whitespace().nth(19).and_then(|field| field.parse().ok()).unwrap_or(0)
}

/// Returns the current I/O priority class and level of a thread.
pub(super) fn priority(tid: u32) -> u16 {
    peer::ioprio(tid)
}

/// Returns true if SIGKILL is pending for a thread, which then waits only for this mount's reply.
pub(super) fn is_killed(tid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{tid}/status")).unwrap_or_default();
    has_pending_kill(&status)
}

fn has_pending_kill(status: &str) -> bool {
    let pending = status.lines().find_map(|line| line.strip_prefix("SigPnd:"));
    let pending = pending.and_then(|pending| u64::from_str_radix(pending.trim(), 16).ok()).unwrap_or(0);
    pending >> (libc::SIGKILL - 1) & 1 == 1
}

/// Returns true if the thread exists.
pub(super) fn exists(tid: u32) -> bool {
    fs::symlink_metadata(format!("/proc/{tid}")).is_ok()
}

/// Returns the I/O priority and the nice value of a process.
pub(super) fn process_priority(process: &Process) -> ProcessPriority {
    ProcessPriority::from_ioprio(process.ioprio, process.nice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_time_is_found_behind_any_command_name() {
        let stat = "12 (a) b (c)) S 1 12 12 0 -1 4194560 1 2 3 4 5 6 7 8 25 -5 1 0 99 1234 5";
        assert_eq!(parse_start_time(stat), 99);
        assert_eq!(parse_start_time("nonsense"), 0);
    }

    #[test]
    fn the_facts_of_this_thread_are_read() {
        let tid = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        let facts = read_facts(Caller { tid, uid: 7, gid: 8 }, true);
        assert_eq!((facts.process.pid, facts.process.uid, facts.process.gid), (tid, 7, 8));
        assert!(!facts.process.comm.is_empty() && !facts.command.is_empty() && facts.start_id > 0, "{facts:?}");
        assert!(!facts.is_exited());
        assert_eq!(read_facts(Caller { tid, uid: 7, gid: 8 }, false).command, "", "not requested");
        assert!(exists(tid));
    }

    #[test]
    fn threads_have_distinct_and_stable_identities() {
        let mine = start_id(rustix::thread::gettid().as_raw_nonzero().get() as u32);
        let again = start_id(rustix::thread::gettid().as_raw_nonzero().get() as u32);
        let other = std::thread::spawn(|| start_id(rustix::thread::gettid().as_raw_nonzero().get() as u32));
        assert!(mine.is_some() && mine == again && mine != other.join().expect("no panic"));
    }

    #[test]
    fn a_pending_sigkill_is_detected() {
        assert!(has_pending_kill("Name:\tcat\nSigQ:\t0/96000\nSigPnd:\t0000000000000100\nShdPnd:\t0000000000000100\n"));
        assert!(!has_pending_kill("Name:\tcat\nSigPnd:\t0000000000004000\nShdPnd:\t0000000000000100\n"));
        assert!(!has_pending_kill("") && !is_killed(std::process::id()));
    }

    #[test]
    fn an_exited_thread_has_only_its_ids() {
        // The largest possible thread ID is 4194304.
        let facts = read_facts(Caller { tid: 4_194_305, uid: 7, gid: 8 }, true);
        assert!(facts.is_exited() && facts.process.uid == 7 && facts.command.is_empty());
        assert!(!exists(4_194_305));
    }
}
