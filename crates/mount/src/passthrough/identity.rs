//! In whose name something is done.
//!
//! The kernel has checked permissions before it asks (`default_permissions`), so that most work is done in our own name. What makes a file belongs to
//! its maker, and what writes to one may not leave it set-user-id, nor take the blocks that are kept for root: that is done in the caller's.
//! The identity is a thread's own (`setfsuid`), and is given back when the [`Mask`] is dropped.

use std::cell::Cell;
use std::io;
use std::sync::OnceLock;

use rustix::io::Errno;
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

use crate::gate::Asker;

/// What the thread may do besides while it works in somebody's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rights {
    /// All that it has: permissions were checked above, with groups and capabilities that only the kernel knows.
    All,
    /// All but the one that lets a file stay set-user-id when it is changed (`CAP_FSETID`).
    NotSetId,
}

/// Whether this process can take other identities, and what it has itself.
#[derive(Debug)]
struct Ours {
    sets: CapabilitySets,
    groups: Vec<u32>,
    can: bool,
}

/// Held while a thread works in another's name.
#[derive(Debug)]
pub(super) struct Mask {
    worn: Worn,
    groups: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Worn {
    Nothing,
    User,
    UserAndGroup,
}

thread_local! {
    /// The mask of file modes that this thread has, if it has one of its own.
    static UMASK: Cell<Option<u32>> = const { Cell::new(None) };
}

fn ours() -> &'static Ours {
    static OURS: OnceLock<Ours> = OnceLock::new();
    OURS.get_or_init(|| {
        let sets = capabilities(None).unwrap_or(CapabilitySets {
            effective: CapabilitySet::empty(),
            permitted: CapabilitySet::empty(),
            inheritable: CapabilitySet::empty(),
        });
        let needed = CapabilitySet::SETUID | CapabilitySet::SETGID;
        let groups = rustix::process::getgroups().unwrap_or_default().into_iter().map(|group| group.as_raw()).collect();
        Ours { sets, groups, can: rustix::process::geteuid().is_root() && sets.effective.contains(needed) }
    })
}

impl Mask {
    /// Takes the caller's user and group. Where this process is nobody's but its owner's, the caller is the owner and nothing has to be done.
    ///
    /// # Errors
    /// `EPERM`, if the kernel does not let us.
    pub(super) fn of(asker: &Asker, rights: Rights) -> io::Result<Mask> {
        let ours = ours();
        if !ours.can || (asker.uid, asker.gid) == (0, 0) {
            return Ok(Mask { worn: Worn::Nothing, groups: false });
        }
        let mask = Mask { worn: Worn::UserAndGroup, groups: false };
        set_group(asker.gid);
        set_user(asker.uid);
        // The calls never say that they failed, but what there was before: a user that is none changes nothing and tells the present one.
        if set_user(u32::MAX) != asker.uid {
            return Err(Errno::PERM.into());
        }
        let mut effective = ours.sets.effective - CapabilitySet::SYS_RESOURCE;
        effective.set(CapabilitySet::FSETID, rights == Rights::All && effective.contains(CapabilitySet::FSETID));
        set_capabilities(None, CapabilitySets { effective, ..ours.sets })?;
        Ok(mask)
    }

    /// Takes the user alone, and no right over files: for what is written to a file that is open. It costs two system calls.
    pub(super) fn of_writer(asker: &Asker) -> Mask {
        if !Mask::is_needed_to_write(asker) {
            return Mask { worn: Worn::Nothing, groups: false };
        }
        set_user(asker.uid);
        Mask { worn: Worn::User, groups: false }
    }

    /// The caller's user, group and other groups, these as far as `/proc` tells them.
    ///
    /// # Errors
    /// As [`Mask::of`].
    pub(super) fn with_groups(asker: &Asker, rights: Rights) -> io::Result<Mask> {
        let mut mask = Mask::of(asker, rights)?;
        if mask.worn != Worn::Nothing {
            mask.groups = set_groups(&groups_of(asker.tid)).is_ok();
        }
        Ok(mask)
    }

    /// Whether a thread has to change before it writes for this caller.
    pub(super) fn is_needed_to_write(asker: &Asker) -> bool {
        asker.uid != 0 && ours().can
    }
}

impl Drop for Mask {
    fn drop(&mut self) {
        if self.worn == Worn::Nothing {
            return;
        }
        // With our user the kernel gives the rights over files back.
        set_user(0);
        if self.worn == Worn::UserAndGroup {
            set_group(0);
        }
        let regrouped = if self.groups { set_groups(&ours().groups) } else { Ok(()) };
        // A thread that stays somebody else would do the next one's work in his name.
        if regrouped.is_err() || set_user(u32::MAX) != 0 {
            tracing::error!("cannot take our own identity back");
            std::process::abort();
        }
    }
}

/// Gives the thread a mask of its own, and sets it: where a directory has a default ACL the file system leaves the mask aside, which it cannot
/// do if it was applied before.
pub(super) fn set_umask(umask: u32) -> io::Result<()> {
    if UMASK.get().is_none() {
        // SAFETY: it takes numbers only; the thread keeps its working directory, as a copy.
        if unsafe { libc::unshare(libc::CLONE_FS) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    if UMASK.get() != Some(umask) {
        // SAFETY: it takes a number and cannot fail.
        unsafe { libc::umask(umask) };
        UMASK.set(Some(umask));
    }
    Ok(())
}

/// Sets the user that file systems see of this thread, and says which it was.
fn set_user(user: u32) -> u32 {
    // SAFETY: it takes a number only, and changes this thread alone (the bare call is not passed on to others).
    unsafe { libc::syscall(libc::SYS_setfsuid, user) as u32 }
}

/// The same for the group.
fn set_group(group: u32) -> u32 {
    // SAFETY: as above.
    unsafe { libc::syscall(libc::SYS_setfsgid, group) as u32 }
}

fn set_groups(groups: &[u32]) -> io::Result<()> {
    // SAFETY: the pointer and the length are a slice's. The bare call changes this thread only, which is what is wanted.
    let result = unsafe { libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The other groups of a process. One that is gone has none.
fn groups_of(tid: u32) -> Vec<u32> {
    let status = std::fs::read_to_string(format!("/proc/{tid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Groups:")).unwrap_or_default();
    line.split_ascii_whitespace().filter_map(|group| group.parse().ok()).collect()
}

/// Gives up what would let root's threads take blocks that are kept back, or pass a quota, in everybody's name. Threads made from now on have not got it.
pub(crate) fn give_up_reserves() {
    if let Ok(mut sets) = capabilities(None) {
        sets.effective -= CapabilitySet::SYS_RESOURCE;
        if let Err(error) = set_capabilities(None, sets) {
            tracing::debug!("blocks kept for root are not kept from users of the mount: {error}");
        }
    }
}
