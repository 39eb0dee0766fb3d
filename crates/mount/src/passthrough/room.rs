//! Keeping within the descriptors that a process may have, where every known inode holds one.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use fuser::INodeNo;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::Through;
use super::nodes::lock;
use crate::gate::Gate;

/// What the kernel can be asked to forget.
#[derive(Debug, Default)]
pub(super) struct Room {
    /// Names of inodes that hold a descriptor, those found first in front.
    names: Mutex<VecDeque<(u64, u64, Box<OsStr>)>>,
    /// From so many on some are given up.
    most: AtomicU64,
    clearing: AtomicBool,
}

/// Takes as many descriptors as this process may have, and sees how many of them inodes can hold.
pub(super) fn keep<G: Gate>(through: &Arc<Through<G>>) {
    let limit = getrlimit(Resource::Nofile);
    let wanted = Rlimit { current: limit.maximum.or(Some(1 << 20)), maximum: limit.maximum };
    let limit = if setrlimit(Resource::Nofile, wanted).is_ok() { wanted.current } else { limit.current };
    // Half of them for inodes, an eighth for directories that can be opened again; the rest is for open files, and for those whose data are to be written back.
    let limit = limit.unwrap_or(1 << 20);
    through.room.most.store(limit / 2, Ordering::Relaxed);
    through.nodes.keep_directories(limit / 8);
}

impl<G: Gate> Through<G> {
    /// An inode that holds a descriptor was found under a name.
    pub(super) fn note_held(&self, number: u64, parent: u64, name: &OsString) {
        let mut names = lock(&self.room.names);
        names.push_back((number, parent, name.as_os_str().into()));
        let held = self.nodes.held();
        // A name may be found often: what was forgotten meanwhile is thrown out now and then.
        if names.len() as u64 > 2 * held + 1024 {
            names.retain(|(number, ..)| self.nodes.get(*number).is_ok());
        }
        drop(names);
        let short = held > self.room.most.load(Ordering::Relaxed);
        if short && !self.room.clearing.swap(true, Ordering::AcqRel) {
            self.clear();
        }
    }

    /// Asks the kernel to forget a quarter of what it was told first, by a thread of its own: the kernel may wait for answers of ours before it does so. There is one such
    /// thread at a time, and it ends when it has asked for all of them.
    fn clear(&self) {
        let over = Clearing(self.room.clone());
        let Some(notifier) = self.notifier.get().cloned() else { return };
        let mut names = lock(&self.room.names);
        let some = (names.len() / 4 + 1).min(names.len());
        let oldest: Vec<_> = names.drain(..some).collect();
        drop(names);
        let asked = std::thread::Builder::new().name("mount-room".into()).spawn(move || {
            for (_, parent, name) in oldest {
                // One that is in use stays; one that is gone does not matter.
                let _ = notifier.inval_entry(INodeNo(parent), &name);
            }
            drop(over);
        });
        if let Err(error) = asked {
            tracing::warn!("cannot make room for more descriptors: {error}");
        }
    }
}

/// Held while room is made.
struct Clearing(Arc<Room>);

impl Drop for Clearing {
    fn drop(&mut self) {
        self.0.clearing.store(false, Ordering::Release);
    }
}
