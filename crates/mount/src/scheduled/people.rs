//! Who asks: the threads that ask, what is known of them, and the members of the device that they are.

use std::fs;

use hoistway_machine::{ProcessFiles, Root};
use hoistway_serve::device::{Device, MemberId};
use hoistway_serve::engine::{Process, peer};
use rustc_hash::FxHashMap;
use rustix::fs::fstat;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, getpriority_process, pidfd_open};

use super::queue::{Queue, State};
use super::rules::{Facts, Whose};
use crate::Asker;

/// What is known of a thread's name, control group and nice value is read anew after so long: 1 s.
const FACTS_NS: u64 = 1_000_000_000;
/// Its I/O priority is asked for again after so long: 1 ms.
const PRIORITY_NS: u64 = 1_000_000;
/// A thread that has asked for nothing for so long is looked for: 5 s.
const QUIET_NS: u64 = 5_000_000_000;

/// A thread, and as which user it asks: one that serves others may ask as several.
pub(super) type Key = (u32, u32);

/// Everybody who asks a device.
#[derive(Debug, Default)]
pub(super) struct People {
    known: FxHashMap<Key, Person>,
    /// As which user a thread asked first: there is one, but for those that serve others.
    users: FxHashMap<u32, u32>,
}

/// One who asks.
#[derive(Debug)]
pub(super) struct Person {
    /// What is known of it.
    pub facts: Facts,
    /// As whom it asks: a member for each tenant that its requests were of.
    members: Vec<(Whose, MemberId)>,
    /// As whom, where its requests are all the same tenant's.
    pub whose: Option<Whose>,
    /// The weights of its control group and of those that it lies in, the outermost first, once they were wanted.
    pub weights: Vec<u16>,
    read_ns: u64,
    asked_ns: u64,
    priority_ns: u64,
    /// Requests that are not over.
    pub open: u32,
    /// Requests so far.
    pub requests: u64,
    /// Bytes read and written so far.
    pub bytes: [u64; 2],
    /// When it asked for the first time, in ns.
    pub since_ns: u64,
}

impl People {
    /// Somebody of whom enough is known, and not too long ago.
    pub fn fresh(&mut self, key: Key, now_ns: u64) -> Option<&mut Person> {
        self.known.get_mut(&key).filter(|person| now_ns.saturating_sub(person.read_ns) < FACTS_NS || key.0 == 0)
    }

    /// Somebody, however old what is known of him is.
    pub fn get_mut(&mut self, key: Key) -> Option<&mut Person> {
        self.known.get_mut(&key)
    }

    /// A thread, as one of the users that it asks as.
    pub fn of_thread(&self, tid: u32) -> Option<(Key, &Person)> {
        let by_user = |uid: &u32| self.known.get_key_value(&(tid, *uid));
        // Who left first may have been the one that was noted.
        let found = self.users.get(&tid).and_then(by_user).or_else(|| self.known.iter().find(|(key, _)| key.0 == tid));
        found.map(|(key, person)| (*key, person))
    }

    /// Everybody.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, &Person)> {
        self.known.iter()
    }

    /// Takes in what was read of a thread. One of the same number that began at another time is another: what the old one was is left.
    pub fn learn(&mut self, key: Key, facts: Facts, device: &mut Device, now_ns: u64) {
        if let Some(person) = self.known.get_mut(&key) {
            // While requests of the one before are not over, both are one.
            if person.facts.began == facts.began || facts.is_gone() || person.open > 0 {
                let changed = person.facts.process.nice != facts.process.nice;
                let ioprio = person.facts.process.ioprio;
                if !facts.is_gone() {
                    person.facts = facts;
                    person.facts.process.ioprio = ioprio;
                }
                person.whose = None;
                person.read_ns = now_ns;
                if changed {
                    person.told(device, now_ns);
                }
                return;
            }
            person.leave(device, now_ns);
        }
        let person = Person {
            facts,
            members: Vec::new(),
            whose: None,
            weights: Vec::new(),
            read_ns: now_ns,
            asked_ns: now_ns,
            priority_ns: now_ns,
            open: 0,
            requests: 0,
            bytes: [0; 2],
            since_ns: now_ns,
        };
        self.users.entry(key.0).or_insert(key.1);
        self.known.insert(key, person);
    }

    /// Those who have nothing under way and have asked for nothing for a while.
    fn quiet(&self, now_ns: u64) -> Vec<Key> {
        let quiet = self.known.iter().filter(|(key, person)| key.0 != 0 && person.is_quiet(now_ns));
        quiet.map(|(key, _)| *key).collect()
    }
}

/// Lets those leave a queue whose threads are gone and who have nothing under way, except who is still `owed` something. Answers how many have left. The system is asked
/// while others use the queue.
pub(super) fn sweep(queue: &Queue, now_ns: u64, owed: impl Fn(Key) -> bool, is_there: impl Fn(u32) -> bool) -> usize {
    let quiet = queue.lock().people.quiet(now_ns);
    let gone: Vec<Key> = quiet.into_iter().filter(|key| !is_there(key.0) && !owed(*key)).collect();
    if gone.is_empty() {
        return 0;
    }
    let mut state = queue.lock();
    let State { people, device, .. } = &mut *state;
    let before = people.known.len();
    for key in gone {
        // Another one may have its number by now.
        if people.known.get(&key).is_some_and(|person| person.is_quiet(now_ns))
            && let Some(mut person) = people.known.remove(&key)
        {
            person.leave(device, now_ns);
            if people.users.get(&key.0) == Some(&key.1) {
                people.users.remove(&key.0);
            }
        }
    }
    before - people.known.len()
}

impl Person {
    /// The member of the device that it is as somebody's; makes one if `join` can. As nobody's own where there is no room: `None`.
    pub fn member(&mut self, whose: Whose, join: impl FnOnce(&Process) -> Option<MemberId>) -> Option<MemberId> {
        if let Some((_, member)) = self.members.iter().find(|(of, _)| *of == whose) {
            return Some(*member);
        }
        let member = join(&self.facts.process)?;
        self.members.push((whose, member));
        Some(member)
    }

    /// Whether it has a member as somebody's.
    pub fn is_member(&self, whose: Whose) -> bool {
        self.members.iter().any(|(of, _)| *of == whose)
    }

    /// As whom it asked last, for the first time.
    pub fn last(&self) -> Option<Whose> {
        self.whose.or_else(|| self.members.last().map(|(whose, _)| *whose))
    }

    /// It asks now. Says whether its I/O priority is to be asked anew, so that what `ionice` says holds from the next request on; not in the same millisecond, as the call costs
    /// as much as half of all the rest.
    #[inline]
    pub fn asks(&mut self, is_there: bool, now_ns: u64) -> bool {
        self.asked_ns = now_ns;
        if !is_there || self.facts.process.pid == 0 || now_ns.saturating_sub(self.priority_ns) < PRIORITY_NS {
            return false;
        }
        self.priority_ns = now_ns;
        true
    }

    /// Its I/O priority is this.
    pub fn has_priority(&mut self, ioprio: u16, device: &mut Device, now_ns: u64) {
        if self.facts.process.ioprio != ioprio {
            self.facts.process.ioprio = ioprio;
            self.told(device, now_ns);
        }
    }

    /// Tells the device of its priority.
    fn told(&self, device: &mut Device, now_ns: u64) {
        for (_, member) in &self.members {
            device.set_process(*member, &self.facts.process, now_ns);
        }
    }

    fn is_quiet(&self, now_ns: u64) -> bool {
        self.open == 0 && now_ns.saturating_sub(self.asked_ns) >= QUIET_NS
    }

    fn leave(&mut self, device: &mut Device, now_ns: u64) {
        for (_, member) in self.members.drain(..) {
            device.leave(member, now_ns);
        }
    }
}

/// What the system tells of a thread. Of one that is gone, or that lies outside of this program's view, nothing but who it asks as.
/// Its command line is read only if it `has_command` to be known.
pub(super) fn read(asker: Asker, has_command: bool) -> Facts {
    let mut facts = Facts {
        process: Process { pid: asker.tid, uid: asker.uid, gid: asker.gid, ..Process::default() },
        command: String::new(),
        began: 0,
    };
    let Some(began) = began(asker.tid) else { return facts };
    let tid = asker.tid;
    let read = |name: &str| fs::read(format!("/proc/{tid}/{name}")).unwrap_or_default();
    facts.began = began;
    facts.process.nice = nice(tid);
    facts.process.ioprio = peer::ioprio(tid);
    facts.process.comm = String::from_utf8_lossy(&read("comm")).trim_end_matches('\n').to_owned();
    facts.process.cgroup = ProcessFiles::new(&Root::machine(), tid).control_group();
    if has_command {
        let words = read("cmdline");
        let words: Vec<_> = words.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
        facts.command = words.join(" ").trim_end().to_owned();
    }
    facts
}

/// What tells a thread from all that had its number before: its inode among those of descriptors of processes, else, before Linux 6.9, when it began, in ticks since the start
/// of the machine. `None`: it is gone, or lies outside of this program's view.
///
/// `/proc/TID/stat` is not for us where there is another way. Who reads it waits while the process begins another program (execve), and that may wait for us: files that are
/// closed by it are written through the mount first.
fn began(tid: u32) -> Option<u64> {
    let tid = Pid::from_raw(i32::try_from(tid).ok()?)?;
    match pidfd_open(tid, PidfdFlags::from_bits_retain(PIDFD_THREAD)) {
        Ok(thread) => fstat(thread).ok().map(|told| told.st_ino.max(1)),
        Err(Errno::SRCH) => None,
        Err(_) => {
            let stat = fs::read(format!("/proc/{}/stat", tid.as_raw_nonzero())).ok()?;
            Some(began_by(&String::from_utf8_lossy(&stat)).max(1))
        }
    }
}

/// Of a thread, not of its process: from Linux 6.9 on (pidfd_open(2)).
const PIDFD_THREAD: u32 = libc::O_EXCL as u32;

fn nice(tid: u32) -> i8 {
    let tid = i32::try_from(tid).ok().and_then(Pid::from_raw);
    let nice = tid.and_then(|tid| getpriority_process(Some(tid)).ok());
    nice.and_then(|nice| nice.try_into().ok()).unwrap_or(0)
}

/// The 22nd field of `/proc/TID/stat`, behind the name in parentheses, which may hold anything.
fn began_by(stat: &str) -> u64 {
    let behind_name = stat.rsplit_once(')').map_or("", |(_, behind)| behind);
    behind_name.split_whitespace().nth(19).and_then(|field| field.parse().ok()).unwrap_or(0)
}

/// Class and level of a thread, as the system has them now.
pub(super) fn priority(tid: u32) -> u16 {
    peer::ioprio(tid)
}

/// Whether a thread is about to end, and waits for nothing but us: the signal that nobody survives is on its way to it.
pub(super) fn is_killed(tid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{tid}/status")).unwrap_or_default();
    has_kill(&status)
}

fn has_kill(status: &str) -> bool {
    let pending = status.lines().find_map(|line| line.strip_prefix("SigPnd:"));
    let pending = pending.and_then(|pending| u64::from_str_radix(pending.trim(), 16).ok()).unwrap_or(0);
    pending >> (libc::SIGKILL - 1) & 1 == 1
}

/// Whether there is such a thread.
pub(super) fn is_there(tid: u32) -> bool {
    fs::symlink_metadata(format!("/proc/{tid}")).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_s_beginning_is_found_behind_any_name() {
        let stat = "12 (a) b (c)) S 1 12 12 0 -1 4194560 1 2 3 4 5 6 7 8 25 -5 1 0 99 1234 5";
        assert_eq!(began_by(stat), 99);
        assert_eq!(began_by("nonsense"), 0);
    }

    #[test]
    fn this_thread_is_known_by_its_name_command_and_beginning() {
        let tid = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        let facts = read(Asker { tid, uid: 7, gid: 8 }, true);
        assert_eq!((facts.process.pid, facts.process.uid, facts.process.gid), (tid, 7, 8));
        assert!(!facts.process.comm.is_empty() && !facts.command.is_empty() && facts.began > 0, "{facts:?}");
        assert!(!facts.is_gone());
        assert_eq!(read(Asker { tid, uid: 7, gid: 8 }, false).command, "", "that was not asked for");
        assert!(is_there(tid));
    }

    #[test]
    fn threads_are_told_from_each_other_and_keep_what_they_are_told_by() {
        let mine = began(rustix::thread::gettid().as_raw_nonzero().get() as u32);
        let again = began(rustix::thread::gettid().as_raw_nonzero().get() as u32);
        let other = std::thread::spawn(|| began(rustix::thread::gettid().as_raw_nonzero().get() as u32));
        assert!(mine.is_some() && mine == again && mine != other.join().expect("no panic"));
    }

    #[test]
    fn who_is_killed_is_told_by_what_is_on_its_way_to_him() {
        assert!(has_kill("Name:\tcat\nSigQ:\t0/96000\nSigPnd:\t0000000000000100\nShdPnd:\t0000000000000100\n"));
        assert!(!has_kill("Name:\tcat\nSigPnd:\t0000000000004000\nShdPnd:\t0000000000000100\n"));
        assert!(!has_kill("") && !is_killed(std::process::id()));
    }

    #[test]
    fn of_a_thread_that_is_gone_nothing_is_known_but_its_user() {
        // Numbers of threads end at 4194304.
        let facts = read(Asker { tid: 4_194_305, uid: 7, gid: 8 }, true);
        assert!(facts.is_gone() && facts.process.uid == 7 && facts.command.is_empty());
        assert!(!is_there(4_194_305));
    }
}
