//! A file of the directory below, as all its handles share it.

use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, OnceLock};

use rustix::fs::{OFlags, fcntl_getfl};
use rustix::io::{Errno, pread};

/// A file or directory below the mount that is open, or known.
#[derive(Debug)]
pub struct Backing {
    /// It, opened for what it is used for (`O_PATH` where it is only known).
    pub fd: OwnedFd,
    /// The file system that it lies on, as `st_dev` has it.
    pub device: u64,
    /// Its number there.
    pub inode: u64,
    /// What all files of the file system share that are known to lie on the same.
    pub(crate) volume: Arc<Volume>,
    /// By this the file is opened, where `fd` is another of the same file system.
    way: Option<Arc<dyn Reach>>,
}

/// What is known of a file system, once for all its files.
#[derive(Debug, Default)]
pub(crate) struct Volume {
    /// What a gate has noted of it: a number of the gate's own, 0 for nothing yet.
    pub(crate) noted: AtomicU32,
    kind: OnceLock<Option<Kind>>,
}

/// overlayfs, as statfs(2) has it.
pub(crate) const OVERLAY: u32 = 0x794c_7630;

/// What statfs(2) tells of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    /// Its kind, by the numbers that statfs(2) lists.
    pub(crate) number: u32,
    /// What tells it from others of the kind.
    pub(crate) own: [i32; 2],
}

/// Something by which a file can be opened. That may take the disk.
pub(crate) trait Reach: std::fmt::Debug + Send + Sync {
    /// Opens it, to know it (`O_PATH`).
    ///
    /// # Errors
    /// `ESTALE` if it does not exist any more.
    fn reach(&self) -> io::Result<OwnedFd>;
}

impl Backing {
    /// A file of which nothing is known yet but what it is.
    pub fn new(fd: OwnedFd, device: u64, inode: u64) -> Backing {
        Backing { fd, device, inode, volume: Arc::default(), way: None }
    }

    /// The same of one that was met beside another, most often on its file system: then what is known of that need not be found out again.
    pub(crate) fn beside(near: &Backing, fd: OwnedFd, device: u64, inode: u64) -> Backing {
        let volume = if near.device == device { near.volume.clone() } else { Arc::default() };
        Backing { fd, device, inode, volume, way: None }
    }

    /// Stands for a file that is not open: `near` is another one of its file system.
    ///
    /// # Errors
    /// When there is no descriptor to be had.
    pub(crate) fn standing_for(inode: u64, way: Arc<dyn Reach>, near: &Backing) -> io::Result<Backing> {
        let fd = rustix::io::fcntl_dupfd_cloexec(near, 3)?;
        Ok(Backing { fd, device: near.device, inode, volume: near.volume.clone(), way: Some(way) })
    }

    /// Has its file system tell this.
    #[cfg(test)]
    pub(crate) fn told(self, kind: Option<Kind>) -> Backing {
        let _ = self.volume.kind.set(kind);
        self
    }

    /// What its file system tells of itself; `None`: it told nothing when it was asked. It is asked once, which takes as long as it takes to answer.
    pub(crate) fn kind(&self) -> Option<Kind> {
        *self.volume.kind.get_or_init(|| kind_of(&self.fd))
    }

    /// Whether its file system is of one of these kinds, by the numbers that statfs(2) lists.
    pub(crate) fn is_of(&self, kinds: &[u32]) -> bool {
        self.kind().is_some_and(|kind| kinds.contains(&kind.number))
    }

    /// Does something with a descriptor of the file itself; `None` if it does not exist any more. It may take the disk.
    pub(crate) fn with_itself<T>(&self, act: impl FnOnce(BorrowedFd<'_>) -> T) -> Option<T> {
        match &self.way {
            None => Some(act(self.fd.as_fd())),
            Some(way) => way.reach().ok().map(|itself| act(itself.as_fd())),
        }
    }

    /// Reads until the buffer is full or the file ends. The kernel takes anything less for the file's end: another error is one, whatever came before it.
    pub(crate) fn read_all(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut have = 0;
        while have < buffer.len() {
            match pread(self, &mut buffer[have..], offset + have as u64) {
                Ok(0) => break,
                Ok(read) => have += read,
                Err(Errno::INTR) => {}
                Err(error) if have > 0 && self.ends_at(error) => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(have)
    }

    /// Whether an error behind the first bytes of a read is the file's end: a direct read that stopped within a block has met it, and cannot go on from there.
    pub(crate) fn ends_at(&self, error: Errno) -> bool {
        error == Errno::INVAL && fcntl_getfl(self).is_ok_and(|flags| flags.contains(OFlags::DIRECT))
    }
}

fn kind_of(fd: &OwnedFd) -> Option<Kind> {
    // SAFETY: all of it are numbers, for which zeros do.
    let mut told: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is open, and the structure lives through the call.
    if unsafe { libc::fstatfs(fd.as_raw_fd(), &raw mut told) } != 0 {
        return None;
    }
    // SAFETY: it is two numbers, of which the library shows none.
    let own = unsafe { std::mem::transmute::<libc::fsid_t, [i32; 2]>(told.f_fsid) };
    Some(Kind { number: told.f_type as u32, own })
}

impl AsFd for Backing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
