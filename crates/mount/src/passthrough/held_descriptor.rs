//! Descriptors that keep inodes for as long as the kernel uses their nodes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::backing::Backing;

/// A descriptor that keeps an inode, counted while it exists.
#[derive(Debug)]
pub(super) struct HeldDescriptor {
    /// The descriptor, opened as `O_PATH`.
    pub(super) backing: Arc<Backing>,
    count: Arc<AtomicU64>,
}

impl HeldDescriptor {
    /// Counts the descriptor in `count` until it is dropped.
    pub(super) fn new(backing: Backing, count: &Arc<AtomicU64>) -> HeldDescriptor {
        count.fetch_add(1, Ordering::Relaxed);
        HeldDescriptor { backing: Arc::new(backing), count: count.clone() }
    }
}

impl Drop for HeldDescriptor {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}
