//! FUSE passthrough: files that the kernel reads and writes directly, past the gate.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use fuser::BackingId;

use super::FsState;
use super::files::FileState;
use crate::backing::Backing;
use crate::gate::{Caller, Gate};

impl<G: Gate> FsState<G> {
    /// Registers a file for FUSE passthrough if the options select it. The kernel requires all
    /// handles of a file to use the same mode, so the first open decides.
    pub(super) fn bypass(
        &self,
        caller: &Caller,
        backing: &Backing,
        state: &mut FileState,
        register: &dyn Fn(BorrowedFd<'_>) -> io::Result<BackingId>,
    ) -> Option<Arc<BackingId>> {
        let is_selected = self.options.bypass.as_ref()?;
        if !self.supports_bypass.load(Ordering::Relaxed) {
            return None;
        }
        if state.opened > 0 {
            return state.bypass.upgrade();
        }
        if !is_selected(caller, backing) {
            return None;
        }
        match register(backing.as_fd()) {
            Ok(registered) => {
                let registered = Arc::new(registered);
                state.bypass = Arc::downgrade(&registered);
                Some(registered)
            }
            Err(error) => {
                // A stacked file system below (such as overlayfs or FUSE) exceeds the stacking
                // depth.
                tracing::debug!("a file cannot use FUSE passthrough: {error}");
                if error.raw_os_error() == Some(libc::EPERM) {
                    self.supports_bypass.store(false, Ordering::Relaxed);
                }
                None
            }
        }
    }
}
