//! A file of the source directory, shared by all its open handles.

use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, OnceLock};

use rustix::fs::{OFlags, fcntl_getfl};
use rustix::io::{Errno, pread};

/// A file or directory of the source: open for I/O, or opened as `O_PATH` only to be identified.
#[derive(Debug)]
pub struct Backing {
    /// The descriptor, opened with the access mode of its use (`O_PATH` for identification only).
    pub fd: OwnedFd,
    /// The device number of the file system (`st_dev`).
    pub device: u64,
    /// The inode number on that file system.
    pub inode: u64,
    /// Distinguishes the inode from earlier and later ones with its number; 0 if that is not known.
    pub(crate) generation: u64,
    /// State shared by all files that are known to be on the same file system.
    pub(crate) file_system: Arc<FileSystemFacts>,
    /// Opens the file itself if `fd` is a descriptor of another file of the same file system.
    opener: Option<Arc<dyn Opener>>,
}

/// Cached facts about a file system, shared by its files.
#[derive(Debug, Default)]
pub(crate) struct FileSystemFacts {
    /// Index that the gate has assigned to the file system, plus 1; 0 before the first request.
    pub(crate) gate_index: AtomicU32,
    identity: OnceLock<Option<FsIdentity>>,
}

/// The magic number of overlayfs in statfs(2).
pub(crate) const OVERLAY: u32 = 0x794c_7630;

/// The identity of a mounted file system, from statfs(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FsIdentity {
    /// The magic number of the file system type (`f_type`).
    pub(crate) magic: u32,
    /// The file system ID (`f_fsid`), which differs between two file systems of one type.
    pub(crate) fsid: [i32; 2],
}

/// Opens a file that has no descriptor yet. The call may read from the disk.
pub(crate) trait Opener: std::fmt::Debug + Send + Sync {
    /// Opens the file as `O_PATH`.
    ///
    /// # Errors
    /// `ESTALE` if the file no longer exists.
    fn open_path(&self) -> io::Result<OwnedFd>;
}

impl Backing {
    /// Creates a backing file with no cached facts about its file system.
    pub fn new(fd: OwnedFd, device: u64, inode: u64) -> Backing {
        Backing { fd, device, inode, generation: 0, file_system: Arc::default(), opener: None }
    }

    /// Creates a backing file met next to `near`. Both share the cached facts if they are on the
    /// same file system.
    pub(crate) fn with_neighbour(near: &Backing, fd: OwnedFd, device: u64, inode: u64) -> Backing {
        let file_system = if near.device == device { near.file_system.clone() } else { Arc::default() };
        Backing { fd, device, inode, generation: 0, file_system, opener: None }
    }

    /// Sets the generation of the inode.
    pub(crate) fn with_generation(self, generation: u64) -> Backing {
        Backing { generation, ..self }
    }

    /// Creates a backing file of another descriptor of the same file.
    pub(crate) fn reopened(&self, fd: OwnedFd) -> Backing {
        Backing::with_neighbour(self, fd, self.device, self.inode).with_generation(self.generation)
    }

    /// Creates a placeholder for a file that is not open. Its descriptor duplicates that of `near`,
    /// a file of the same file system.
    ///
    /// # Errors
    /// Any error of dup(2), such as `EMFILE`.
    pub(crate) fn placeholder(inode: u64, opener: Arc<dyn Opener>, near: &Backing) -> io::Result<Backing> {
        let fd = rustix::io::fcntl_dupfd_cloexec(near, 3)?;
        let file_system = near.file_system.clone();
        Ok(Backing { fd, device: near.device, inode, generation: 0, file_system, opener: Some(opener) })
    }

    /// Presets the identity of the file system.
    #[cfg(test)]
    pub(crate) fn with_identity(self, identity: Option<FsIdentity>) -> Backing {
        let _ = self.file_system.identity.set(identity);
        self
    }

    /// Returns the identity of the file system, or `None` if fstatfs(2) failed. The first call may
    /// block on the file system; its result is cached.
    pub(crate) fn identity(&self) -> Option<FsIdentity> {
        *self.file_system.identity.get_or_init(|| fs_identity(&self.fd))
    }

    /// Returns true if the file system's magic number is one of `magics`.
    pub(crate) fn is_on(&self, magics: &[u32]) -> bool {
        self.identity().is_some_and(|identity| magics.contains(&identity.magic))
    }

    /// Calls `act` with a descriptor of the file itself, or returns `None` if the file no longer
    /// exists. Opening a placeholder's file may read from the disk.
    pub(crate) fn with_descriptor<T>(&self, act: impl FnOnce(BorrowedFd<'_>) -> T) -> Option<T> {
        match &self.opener {
            None => Some(act(self.fd.as_fd())),
            Some(opener) => opener.open_path().ok().map(|fd| act(fd.as_fd())),
        }
    }

    /// Reads until the buffer is full or the file ends, and returns the number of bytes read. The
    /// FUSE kernel side takes a short read for the end of the file, so any other error fails the
    /// whole read.
    pub(crate) fn read_all(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            match pread(self, &mut buffer[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(read) => done += read,
                Err(Errno::INTR) => {}
                Err(error) if done > 0 && self.is_end_of_file(error) => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(done)
    }

    /// Returns true if an error after the first bytes of a read means the end of the file: an
    /// `O_DIRECT` read that stopped within a block cannot continue from there.
    pub(crate) fn is_end_of_file(&self, error: Errno) -> bool {
        error == Errno::INVAL && fcntl_getfl(self).is_ok_and(|flags| flags.contains(OFlags::DIRECT))
    }
}

fn fs_identity(fd: &OwnedFd) -> Option<FsIdentity> {
    // SAFETY: `statfs` consists of integers, for which zero is a valid value.
    let mut statfs: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is open, and the structure outlives the call.
    if unsafe { libc::fstatfs(fd.as_raw_fd(), &raw mut statfs) } != 0 {
        return None;
    }
    // SAFETY: `fsid_t` consists of two `int`s; the libc crate keeps its fields private.
    let fsid = unsafe { std::mem::transmute::<libc::fsid_t, [i32; 2]>(statfs.f_fsid) };
    Some(FsIdentity { magic: statfs.f_type as u32, fsid })
}

impl AsFd for Backing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
