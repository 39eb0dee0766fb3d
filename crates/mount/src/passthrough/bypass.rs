//! Files that go past the gate: the kernel reads and writes the file below itself.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use fuser::BackingId;

use super::Through;
use super::files::State;
use crate::backing::Backing;
use crate::gate::{Asker, Gate};

impl<G: Gate> Through<G> {
    /// Registers a file with the kernel, if it is to go past us and can. All openings of a file go one way, as the kernel demands: who is first says
    /// which.
    pub(super) fn bypass(
        &self,
        asker: &Asker,
        backing: &Backing,
        state: &mut State,
        register: &dyn Fn(BorrowedFd<'_>) -> io::Result<BackingId>,
    ) -> Option<Arc<BackingId>> {
        let wanted = self.options.bypass.as_ref()?;
        if !self.can_bypass.load(Ordering::Relaxed) {
            return None;
        }
        if state.opened > 0 {
            return state.bypass.upgrade();
        }
        if !wanted(asker, backing) {
            return None;
        }
        match register(backing.as_fd()) {
            Ok(registered) => {
                let registered = Arc::new(registered);
                state.bypass = Arc::downgrade(&registered);
                Some(registered)
            }
            Err(error) => {
                // A file system that is itself stacked on another is too deep, and so is one that is a FUSE mount.
                tracing::debug!("a file cannot go past the gate: {error}");
                if error.raw_os_error() == Some(libc::EPERM) {
                    self.can_bypass.store(false, Ordering::Relaxed);
                }
                None
            }
        }
    }
}
