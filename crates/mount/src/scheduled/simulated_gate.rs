//! A gate in a simulated world, whose threads take turns on the thread of the world.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

use hoistway_config::mount::MountConfig;

use super::system::now_ns;
use super::writeback::Next;
use super::{Scheduled, SetUpError, timer};
use crate::Backing;

/// Creates a file on the file system of `near`. `generation` differs from that of other files with
/// the same inode number.
pub fn file_near(near: &Backing, fd: OwnedFd, inode: u64, generation: u64) -> Arc<Backing> {
    Arc::new(Backing::with_neighbour(near, fd, near.device, inode).with_generation(generation))
}

/// A gate whose threads run when the world calls [`SimulatedGate::turn`].
pub struct SimulatedGate {
    /// The gate.
    pub gate: Arc<Scheduled>,
    sweep_ns: u64,
    /// For each queue the time until which its write-back thread sleeps: that of the table, and the
    /// end of the wait.
    sleeps: Vec<(u64, u64)>,
}

impl SimulatedGate {
    /// Creates a gate on the host of this thread; `root` is a file of the first file system.
    ///
    /// # Errors
    /// An invalid configuration.
    pub fn new(root: &Arc<Backing>, config: &MountConfig) -> Result<SimulatedGate, SetUpError> {
        let gate = Arc::new(Scheduled::new(PathBuf::from("/"), root, config)?);
        Ok(SimulatedGate { gate, sweep_ns: now_ns() + timer::SWEEP_NS, sleeps: Vec::new() })
    }

    /// What is left of the gate after its end.
    pub fn remains(&self) -> Remains {
        Remains(self.gate.shared.clone())
    }

    /// Runs the threads of the gate that are due. Returns the time at which one is due next, unless
    /// a request makes it earlier.
    pub fn turn(&mut self) -> u64 {
        let shared = self.gate.shared.clone();
        let now_ns = now_ns();
        if shared.timer.poll(now_ns) <= now_ns {
            for (queue, waiters) in timer::run_queues(&shared) {
                timer::cancel_killed(&shared, &queue, &waiters);
            }
        }
        if now_ns >= self.sweep_ns {
            self.sweep_ns = now_ns + timer::SWEEP_NS;
            timer::sweep(&shared, now_ns);
        }
        let mut next_ns = self.sweep_ns;
        for (at, queue) in shared.file_systems.queues().iter().enumerate() {
            let Some(dirty_tracker) = queue.dirty_tracker.get() else { continue };
            if self.sleeps.len() <= at {
                self.sleeps.resize(at + 1, (0, 0));
            }
            let (planned_ns, wake_ns) = &mut self.sleeps[at];
            while now_ns >= *wake_ns || dirty_tracker.sleep_until_ns() < *planned_ns {
                match dirty_tracker.poll() {
                    Next::Closed => (*planned_ns, *wake_ns) = (0, u64::MAX),
                    Next::Act(action) => shared.act(queue, dirty_tracker, action),
                    Next::Sleep(wait) => {
                        *planned_ns = dirty_tracker.sleep_until_ns();
                        *wake_ns = wait.map_or(u64::MAX, |wait| now_ns.saturating_add(wait.as_nanos() as u64));
                    }
                }
            }
            next_ns = next_ns.min(*wake_ns);
        }
        next_ns.min(shared.timer.poll(0))
    }

    /// Returns the dirty bytes of all disks.
    pub fn dirty_bytes(&self) -> u64 {
        let mut bytes = 0;
        self.gate.shared.with_dirty_trackers(|dirty_tracker| bytes += dirty_tracker.dirty());
        bytes
    }

    /// Returns the bytes of a file that `gate` counts as neither written nor being written.
    pub fn pending_bytes(gate: &Scheduled, file: &Arc<Backing>) -> u64 {
        gate.shared.dirty_tracker(file).map_or(0, |(_, dirty_tracker)| dirty_tracker.pending_bytes(file))
    }
}

/// What is left of a gate after its end: jobs of killed threads can have submitted requests that
/// nothing dispatches.
pub struct Remains(Arc<super::Shared>);

impl Remains {
    /// Starts the requests that wait.
    pub fn close(&self) {
        self.0.close();
    }

    /// Returns true if no request refers to the gate.
    pub fn is_empty(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }
}
