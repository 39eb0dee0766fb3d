//! The timer thread, which runs queues whose elevator or limits have set a timer, and the thread
//! that detects killed and exited issuers.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use super::queue::{Effects, Queue};
use super::system::{has_threads, now_ns};
use super::task::Task;
use super::{Shared, cgroups, maintenance, thread_facts};
use crate::passthrough::drop_cap_sys_resource;

/// Interval between two searches for exited threads, in ns: 5 s.
pub(super) const SWEEP_NS: u64 = 5_000_000_000;

/// Capacity of the liveness-check channel.
const CHECKS_MAX: usize = 256;

/// A queue and the IDs of threads that have waited in it for a while.
pub(super) type LivenessCheck = (Arc<Queue>, Vec<u32>);

/// The time of the next timer event.
pub(super) struct Timer {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    at_ns: u64,
    is_closed: bool,
}

impl Default for Timer {
    fn default() -> Timer {
        Timer { state: Mutex::new(State { at_ns: u64::MAX, is_closed: false }), changed: Condvar::new() }
    }
}

impl Timer {
    /// Arms the timer. A time later than the armed one wakes no thread, because the timer thread
    /// examines all queues.
    pub fn set(&self, at_ns: u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if at_ns < state.at_ns {
            state.at_ns = at_ns;
            self.changed.notify_one();
        }
    }

    /// Stops the timer thread.
    pub fn close(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).is_closed = true;
        self.changed.notify_all();
    }

    /// Returns the armed time, and disarms the timer if that is at most `now_ns`.
    #[cfg(feature = "simulated")]
    pub fn poll(&self, now_ns: u64) -> u64 {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let at_ns = state.at_ns;
        if at_ns <= now_ns {
            state.at_ns = u64::MAX;
        }
        at_ns
    }

    /// Blocks until the armed time or `until_ns`. Returns false after [`Timer::close`].
    fn wait(&self, until_ns: u64) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let now_ns = now_ns();
            let at_ns = state.at_ns.min(until_ns);
            if state.is_closed || at_ns <= now_ns {
                state.at_ns = u64::MAX;
                return !state.is_closed;
            }
            let wait = Duration::from_nanos(at_ns - now_ns);
            state = self.changed.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Starts the threads.
///
/// # Errors
/// A thread cannot be started.
pub(super) fn start(shared: &Arc<Shared>) -> io::Result<()> {
    if !has_threads() {
        return Ok(());
    }
    let (checks, checks_receiver) = sync_channel(CHECKS_MAX);
    let (of_timer, of_checker) = (Arc::downgrade(shared), Arc::downgrade(shared));
    thread::Builder::new().name("hoistway-timer".into()).spawn(move || run(&of_timer, &checks))?;
    thread::Builder::new().name("hoistway-check".into()).spawn(move || check_issuers(&of_checker, &checks_receiver))?;
    Ok(())
}

fn run(shared: &Weak<Shared>, checks: &SyncSender<LivenessCheck>) {
    drop_cap_sys_resource();
    while let Some(shared) = shared.upgrade() {
        if !shared.timer.wait(now_ns() + SWEEP_NS) {
            return;
        }
        for check in run_queues(&shared) {
            // When the channel is full, the check is skipped until the next interval.
            let _ = checks.try_send(check);
        }
    }
}

/// Runs the queues whose timers are due. Returns the threads that have waited for a while.
pub(super) fn run_queues(shared: &Arc<Shared>) -> Vec<LivenessCheck> {
    let now_ns = now_ns();
    let mut checks = Vec::new();
    for queue in shared.file_systems.queues() {
        let mut effects = Effects::default();
        let waiters = {
            let mut state = queue.lock();
            let waiters = state.waiters(now_ns);
            state.wake(now_ns, &mut effects);
            waiters
        };
        shared.apply(&queue, effects);
        if !waiters.is_empty() {
            checks.push((queue, waiters));
        }
    }
    checks
}

/// Checks the liveness of issuers, outside the timer thread: each check takes long, and timer
/// events are due within a millisecond.
fn check_issuers(shared: &Weak<Shared>, checks: &Receiver<LivenessCheck>) {
    drop_cap_sys_resource();
    let mut sweep_ns = now_ns() + SWEEP_NS;
    loop {
        let check = match checks.recv_timeout(Duration::from_nanos(sweep_ns.saturating_sub(now_ns()))) {
            Ok(check) => Some(check),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let Some(shared) = shared.upgrade() else { return };
        if let Some((queue, waiters)) = check {
            cancel_killed(&shared, &queue, &waiters);
        }
        let now_ns = now_ns();
        if now_ns >= sweep_ns {
            sweep_ns = now_ns + SWEEP_NS;
            sweep(&shared, now_ns);
        }
    }
}

/// Answers the requests of killed threads: the kernel does not let a killed thread exit while its
/// FUSE request is pending.
pub(super) fn cancel_killed(shared: &Shared, queue: &Queue, waiters: &[u32]) {
    for tid in waiters.iter().copied().filter(|tid| thread_facts::is_killed(*tid)) {
        let jobs = queue.lock().cancel(tid);
        tracing::debug!(device = queue.name, tid, jobs = jobs.len(), "a thread was killed while it waited");
        shared.executors.submit(jobs.into_iter().map(Task::cancelled));
    }
}

/// Removes issuers whose threads have exited.
pub(super) fn sweep(shared: &Arc<Shared>, now_ns: u64) {
    let owners = shared.owners();
    for queue in shared.file_systems.queues() {
        let removed = maintenance::remove_exited(&queue, now_ns, |key| owners.contains(&key), thread_facts::exists);
        if removed > 0 {
            tracing::debug!(device = queue.name, removed, "exited threads left the device");
        }
        maintenance::refresh_cgroups(&queue, now_ns, &cgroups::weight);
    }
}
