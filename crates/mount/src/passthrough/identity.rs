//! Carrying out requests with the identity of the caller.
//!
//! The kernel has checked permissions before it sends a request (`default_permissions`), so most
//! work is done with the identity of this process. A new file must belong to the caller, and a
//! write by a user other than root must clear set-user-ID bits and must not take reserved blocks:
//! these use the caller's identity. The identity is set per thread (`setfsuid`) and is restored
//! when the [`CallerIdentity`] is dropped.

use std::cell::Cell;
use std::io;
use std::sync::OnceLock;

use hoistway_machine::{ProcessFiles, Root};
use rustix::io::Errno;
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

use crate::gate::Caller;

/// Capabilities of a thread while it acts as another user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rights {
    /// All of its capabilities: the kernel has checked permissions, with groups and capabilities
    /// that only it knows.
    All,
    /// All except `CAP_FSETID`, which would keep a file set-user-ID when it is changed.
    WithoutFsetid,
}

/// Identity and capabilities of this process, and whether it may take other identities.
#[derive(Debug)]
struct ProcessIdentity {
    sets: CapabilitySets,
    groups: Vec<u32>,
    is_privileged: bool,
}

/// A guard during which the thread acts as another user.
#[derive(Debug)]
pub(super) struct CallerIdentity {
    assumed: Assumed,
    groups: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Assumed {
    Nothing,
    User,
    UserAndGroup,
}

thread_local! {
    /// The file mode creation mask of this thread, if it has been set.
    static UMASK: Cell<Option<u32>> = const { Cell::new(None) };
}

fn process_identity() -> &'static ProcessIdentity {
    static IDENTITY: OnceLock<ProcessIdentity> = OnceLock::new();
    IDENTITY.get_or_init(|| {
        let sets = capabilities(None).unwrap_or(CapabilitySets {
            effective: CapabilitySet::empty(),
            permitted: CapabilitySet::empty(),
            inheritable: CapabilitySet::empty(),
        });
        let needed = CapabilitySet::SETUID | CapabilitySet::SETGID;
        let groups = rustix::process::getgroups().unwrap_or_default().into_iter().map(|group| group.as_raw()).collect();
        ProcessIdentity {
            sets,
            groups,
            is_privileged: rustix::process::geteuid().is_root() && sets.effective.contains(needed),
        }
    })
}

impl CallerIdentity {
    /// Takes the caller's user and group. An unprivileged process serves only its own user and
    /// changes nothing.
    ///
    /// # Errors
    /// `EPERM` if the kernel refuses the identity.
    pub(super) fn assume(caller: &Caller, rights: Rights) -> io::Result<CallerIdentity> {
        let process_identity = process_identity();
        if !process_identity.is_privileged || (caller.uid, caller.gid) == (0, 0) {
            return Ok(CallerIdentity { assumed: Assumed::Nothing, groups: false });
        }
        let identity = CallerIdentity { assumed: Assumed::UserAndGroup, groups: false };
        set_group(caller.gid);
        set_user(caller.uid);
        // setfsuid returns the previous value in every case: a call with an invalid user changes
        // nothing and returns the current one.
        if set_user(u32::MAX) != caller.uid {
            return Err(Errno::PERM.into());
        }
        let mut effective = process_identity.sets.effective - CapabilitySet::SYS_RESOURCE;
        effective.set(CapabilitySet::FSETID, rights == Rights::All && effective.contains(CapabilitySet::FSETID));
        set_capabilities(None, CapabilitySets { effective, ..process_identity.sets })?;
        Ok(identity)
    }

    /// Takes the caller's user only, without capabilities over files, for a write to an open file.
    /// Costs two system calls.
    pub(super) fn assume_for_write(caller: &Caller) -> CallerIdentity {
        if !CallerIdentity::must_assume_for_write(caller) {
            return CallerIdentity { assumed: Assumed::Nothing, groups: false };
        }
        set_user(caller.uid);
        CallerIdentity { assumed: Assumed::User, groups: false }
    }

    /// Takes the caller's user, group and supplementary groups, as far as `/proc` shows them.
    ///
    /// # Errors
    /// See [`CallerIdentity::assume`].
    pub(super) fn assume_with_groups(caller: &Caller, rights: Rights) -> io::Result<CallerIdentity> {
        let mut identity = CallerIdentity::assume(caller, rights)?;
        if identity.assumed != Assumed::Nothing {
            let groups = ProcessFiles::new(&Root::machine(), caller.tid).groups();
            identity.groups = set_groups(&groups).is_ok();
        }
        Ok(identity)
    }

    /// Returns true if a thread has to change its identity to write for this caller.
    pub(super) fn must_assume_for_write(caller: &Caller) -> bool {
        caller.uid != 0 && process_identity().is_privileged
    }
}

impl Drop for CallerIdentity {
    fn drop(&mut self) {
        if self.assumed == Assumed::Nothing {
            return;
        }
        // Returning to fsuid 0 also restores the capabilities over files.
        set_user(0);
        if self.assumed == Assumed::UserAndGroup {
            set_group(0);
        }
        let regrouped = if self.groups { set_groups(&process_identity().groups) } else { Ok(()) };
        // A thread that kept another identity would carry out the next request with it.
        if regrouped.is_err() || set_user(u32::MAX) != 0 {
            tracing::error!("cannot restore the identity of the process");
            std::process::abort();
        }
    }
}

/// Sets the thread's file mode creation mask. The file system below ignores the mask in a directory
/// with a default ACL, so the mask must not be applied earlier.
pub(super) fn set_umask(umask: u32) -> io::Result<()> {
    if UMASK.get().is_none() {
        // SAFETY: it takes an integer only; the thread keeps a copy of the working directory.
        if unsafe { libc::unshare(libc::CLONE_FS) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    if UMASK.get() != Some(umask) {
        // SAFETY: it takes an integer and cannot fail.
        unsafe { libc::umask(umask) };
        UMASK.set(Some(umask));
    }
    Ok(())
}

/// Sets the file system user of this thread and returns the previous one.
fn set_user(user: u32) -> u32 {
    // SAFETY: it takes an integer only. The raw system call affects this thread alone.
    unsafe { libc::syscall(libc::SYS_setfsuid, user) as u32 }
}

/// Sets the file system group of this thread and returns the previous one.
fn set_group(group: u32) -> u32 {
    // SAFETY: as above.
    unsafe { libc::syscall(libc::SYS_setfsgid, group) as u32 }
}

fn set_groups(groups: &[u32]) -> io::Result<()> {
    // SAFETY: pointer and length are those of a slice. The raw system call affects this thread
    // alone, as intended.
    let result = unsafe { libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Drops `CAP_SYS_RESOURCE`, with which threads of root could take reserved blocks or exceed quotas
/// for any caller. Threads started from now on do not inherit it.
pub(crate) fn drop_cap_sys_resource() {
    if let Ok(mut sets) = capabilities(None) {
        sets.effective -= CapabilitySet::SYS_RESOURCE;
        if let Err(error) = set_capabilities(None, sets) {
            tracing::debug!(
                "cannot drop CAP_SYS_RESOURCE, users of the mount may take blocks reserved for root: {error}"
            );
        }
    }
}
