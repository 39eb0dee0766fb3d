//! Facts about calling threads, from system calls and `/proc`.

use hoistway_machine::{ProcessFiles, Root};
use hoistway_reactor::{Process, peer};
use rustix::fs::fstat;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, getpriority_process, pidfd_open};

use super::rules::Facts;
#[cfg(feature = "simulated")]
use super::system::simulated::host;
use crate::Caller;

/// Requests a pidfd of a thread instead of a process (pidfd_open(2), Linux 6.9).
const PIDFD_THREAD: u32 = libc::O_EXCL as u32;

/// Reads the facts of a thread. A thread that has exited or is outside the PID namespace has only
/// its IDs. The command line is read only if `with_command` is set.
pub(super) fn read_facts(caller: Caller, with_command: bool) -> Facts {
    let mut facts = Facts {
        process: Process { pid: caller.tid, uid: caller.uid, gid: caller.gid, ..Process::default() },
        command: String::new(),
        start_id: 0,
    };
    #[cfg(feature = "simulated")]
    if let Some(host) = host() {
        facts.process.ioprio = host.io_priority(caller.tid);
        facts.start_id = u64::from(host.exists(caller.tid));
        return facts;
    }
    let Some(start_id) = start_id(caller.tid) else { return facts };
    let files = files_of(caller.tid);
    facts.start_id = start_id;
    facts.process.nice = nice(caller.tid);
    facts.process.ioprio = io_priority(caller.tid);
    facts.process.comm = files.comm();
    facts.process.cgroup = files.control_group();
    if with_command {
        facts.command = files.command_line();
    }
    facts
}

/// Returns the I/O priority class and level of a thread, as ioprio_get(2) encodes them.
pub(super) fn io_priority(tid: u32) -> u16 {
    #[cfg(feature = "simulated")]
    if let Some(host) = host() {
        return host.io_priority(tid);
    }
    peer::ioprio(tid)
}

/// Returns true if SIGKILL is pending for a thread, which then waits only for this mount's reply.
pub(super) fn is_killed(tid: u32) -> bool {
    #[cfg(feature = "simulated")]
    if let Some(host) = host() {
        return host.is_killed(tid);
    }
    files_of(tid).pending_signals().is_some_and(|signals| signals.contains(libc::SIGKILL))
}

/// Returns true if the thread exists.
pub(super) fn exists(tid: u32) -> bool {
    #[cfg(feature = "simulated")]
    if let Some(host) = host() {
        return host.exists(tid);
    }
    files_of(tid).exists()
}

fn files_of(tid: u32) -> ProcessFiles {
    ProcessFiles::new(&Root::machine(), tid)
}

/// Returns a number that distinguishes a thread from earlier ones with the same ID: the inode
/// number of its pidfd, or before Linux 6.9 its start time in clock ticks since boot. `None`: the
/// thread has exited or is outside the PID namespace.
///
/// `/proc/TID/stat` is the fallback only: reading it blocks while the process is in execve(2),
/// which may itself wait for this mount, because the kernel first writes back the files that
/// execve(2) closes.
fn start_id(tid: u32) -> Option<u64> {
    let pid = Pid::from_raw(i32::try_from(tid).ok()?)?;
    match pidfd_open(pid, PidfdFlags::from_bits_retain(PIDFD_THREAD)) {
        Ok(pidfd) => fstat(pidfd).ok().map(|status| status.st_ino.max(1)),
        Err(Errno::SRCH) => None,
        Err(_) => Some(files_of(tid).stat()?.start_ticks.max(1)),
    }
}

fn nice(tid: u32) -> i8 {
    let tid = i32::try_from(tid).ok().and_then(Pid::from_raw);
    let nice = tid.and_then(|tid| getpriority_process(Some(tid)).ok());
    nice.and_then(|nice| nice.try_into().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_running_thread_has_no_pending_sigkill() {
        assert!(!is_killed(std::process::id()));
        assert!(!is_killed(4_194_305), "there is no such thread");
    }

    #[test]
    fn an_exited_thread_has_only_its_ids() {
        // The largest possible thread ID is 4194304.
        let facts = read_facts(Caller { tid: 4_194_305, uid: 7, gid: 8 }, true);
        assert!(facts.is_exited() && facts.process.uid == 7 && facts.command.is_empty());
        assert!(!exists(4_194_305));
    }
}
