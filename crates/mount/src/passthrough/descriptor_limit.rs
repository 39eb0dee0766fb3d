//! Keeping the number of open descriptors within the process limit where every known inode holds
//! one.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use fuser::INodeNo;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::FsState;
use super::locks::lock;
use crate::gate::Gate;

/// The limit of descriptors held by inodes, and the inodes that the kernel may be asked to forget.
#[derive(Debug, Default)]
pub(super) struct DescriptorLimit {
    /// Node number, parent and name of inodes that hold a descriptor, the oldest first.
    names: Mutex<VecDeque<(u64, u64, Box<OsStr>)>>,
    /// An eviction is running.
    is_evicting: AtomicBool,
}

/// Raises the descriptor limit to the maximum and divides it.
pub(super) fn apply<G: Gate>(fs: &Arc<FsState<G>>) {
    let limit = getrlimit(Resource::Nofile);
    let wanted = Rlimit { current: limit.maximum.or(Some(1 << 20)), maximum: limit.maximum };
    let limit = if setrlimit(Resource::Nofile, wanted).is_ok() { wanted.current } else { limit.current };
    fs.nodes.limit_descriptors(limit.unwrap_or(1 << 20));
}

impl<G: Gate> FsState<G> {
    /// Records the name of an inode that holds a descriptor, and starts an eviction if there are
    /// too many.
    pub(super) fn note_held(&self, number: u64, parent: u64, name: &OsString) {
        let mut names = lock(&self.descriptor_limit.names);
        names.push_back((number, parent, name.as_os_str().into()));
        let held = self.nodes.held();
        // The same inode may be recorded many times; entries of forgotten inodes are removed now
        // and then.
        if names.len() as u64 > 2 * held + 1024 {
            names.retain(|(number, ..)| self.nodes.get(*number).is_ok());
        }
        drop(names);
        if self.nodes.exceeds_limit() && !self.descriptor_limit.is_evicting.swap(true, Ordering::AcqRel) {
            self.evict();
        }
    }

    /// Asks the kernel to forget the oldest quarter of the recorded inodes. A separate thread does
    /// so, because the kernel may wait for replies of this process first. At most one such thread
    /// exists.
    fn evict(&self) {
        let guard = EvictionGuard(self.descriptor_limit.clone());
        let Some(notifier) = self.notifier.get().cloned() else { return };
        let mut names = lock(&self.descriptor_limit.names);
        let count = (names.len() / 4 + 1).min(names.len());
        let oldest: Vec<_> = names.drain(..count).collect();
        drop(names);
        let spawned = std::thread::Builder::new().name("mount-room".into()).spawn(move || {
            for (_, parent, name) in oldest {
                // An inode in use stays; a missing name does not matter.
                let _ = notifier.inval_entry(INodeNo(parent), &name);
            }
            drop(guard);
        });
        if let Err(error) = spawned {
            tracing::warn!("cannot evict inodes to free descriptors: {error}");
        }
    }
}

/// A guard that marks a running eviction.
struct EvictionGuard(Arc<DescriptorLimit>);

impl Drop for EvictionGuard {
    fn drop(&mut self) {
        self.0.is_evicting.store(false, Ordering::Release);
    }
}
