//! The thread that comes back to a queue when its elevator or a limit lets somebody go on, and the one that looks now and then for who has gone.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use super::executors::Run;
use super::queue::{Outcome, Queue};
use super::{Shared, cgroups, now_ns, people};
use crate::passthrough::give_up_reserves;

/// How often it is looked for threads that have gone: every 5 s.
const SWEEP_NS: u64 = 5_000_000_000;

/// So many queues with people to look after may wait for that.
const LOOKS_MAX: usize = 256;

/// Threads that have waited in a queue for a while.
type Look = (Arc<Queue>, Vec<u32>);

/// When the thread is wanted next.
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
    /// It is wanted at this time. Later ones wake nobody: the thread finds out itself.
    pub fn set(&self, at_ns: u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if at_ns < state.at_ns {
            state.at_ns = at_ns;
            self.changed.notify_one();
        }
    }

    /// It is wanted no more.
    pub fn close(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).is_closed = true;
        self.changed.notify_all();
    }

    /// Waits until it is wanted, or until `until_ns`; `false`: no more.
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
/// When there are none to be had.
pub(super) fn start(shared: &Arc<Shared>) -> io::Result<()> {
    let (looks, looked) = sync_channel(LOOKS_MAX);
    let (of_timer, of_people) = (Arc::downgrade(shared), Arc::downgrade(shared));
    thread::Builder::new().name("hoistway-timer".into()).spawn(move || run(&of_timer, &looks))?;
    thread::Builder::new().name("hoistway-people".into()).spawn(move || look_after(&of_people, &looked))?;
    Ok(())
}

fn run(shared: &Weak<Shared>, looks: &SyncSender<Look>) {
    give_up_reserves();
    while let Some(shared) = shared.upgrade() {
        if !shared.timer.wait(now_ns() + SWEEP_NS) {
            return;
        }
        let now_ns = now_ns();
        for queue in shared.systems.queues() {
            let mut outcome = Outcome::default();
            let waiters = {
                let mut state = queue.lock();
                let waiters = state.waiters(now_ns);
                state.wake(now_ns, &mut outcome);
                waiters
            };
            shared.follow(&queue, outcome);
            if !waiters.is_empty() {
                // One that there is no room for comes again.
                let _ = looks.try_send((queue, waiters));
            }
        }
    }
}

/// Looks after people: that takes its time with each of them, and the timer is wanted within a millisecond.
fn look_after(shared: &Weak<Shared>, looks: &Receiver<Look>) {
    give_up_reserves();
    let mut sweep_ns = now_ns() + SWEEP_NS;
    loop {
        let look = match looks.recv_timeout(Duration::from_nanos(sweep_ns.saturating_sub(now_ns()))) {
            Ok(look) => Some(look),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let Some(shared) = shared.upgrade() else { return };
        if let Some((queue, waiters)) = look {
            give_up(&shared, &queue, &waiters);
        }
        let now_ns = now_ns();
        if now_ns >= sweep_ns {
            sweep_ns = now_ns + SWEEP_NS;
            sweep(&shared, now_ns);
        }
    }
}

/// Answers those who were killed while they wait: the kernel lets none of them go before that.
fn give_up(shared: &Shared, queue: &Queue, waiters: &[u32]) {
    for tid in waiters.iter().copied().filter(|tid| people::is_killed(*tid)) {
        let jobs = queue.lock().give_up(tid);
        tracing::debug!(device = queue.name, tid, jobs = jobs.len(), "killed while it waited");
        shared.executors.give(jobs.into_iter().map(Run::given_up));
    }
}

/// Lets those leave whose threads have gone.
fn sweep(shared: &Arc<Shared>, now_ns: u64) {
    let owed = shared.owners();
    for queue in shared.systems.queues() {
        let left = people::sweep(&queue, now_ns, |key| owed.contains(&key), people::is_there);
        if left > 0 {
            tracing::debug!(device = queue.name, left, "threads have gone");
        }
        cgroups::refresh(&queue, now_ns, &cgroups::weight);
    }
}
