//! File handles: names of inodes that need no descriptor, so that a million known inodes cost only
//! memory.

use std::hash::{Hash as _, Hasher as _};
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use rustc_hash::FxHasher;
use rustix::fs::OFlags;
use rustix::io::Errno;

/// Maximum size of a handle in bytes (`MAX_HANDLE_SZ`).
const LARGEST: usize = 128;

/// Maximum size in bytes of a handle stored inline, which covers ext4, xfs, tmpfs and btrfs.
const INLINE: usize = 20;

/// A file handle. It names one inode, also after the inode number was reused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Handle {
    kind: i32,
    bytes: Bytes,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Bytes {
    Inline(u8, [u8; INLINE]),
    Heap(Box<[u8]>),
}

/// `struct file_handle` with room for the largest handle.
#[repr(C)]
struct Raw {
    bytes: u32,
    kind: i32,
    handle: [u8; LARGEST],
}

impl Handle {
    /// Returns the handle of an open file. Fails with `EOPNOTSUPP` if the file system has none.
    pub(super) fn of(fd: impl AsFd) -> io::Result<Handle> {
        let mut raw = Raw { bytes: LARGEST as u32, kind: 0, handle: [0; LARGEST] };
        let mut mount: libc::c_int = 0;
        // SAFETY: `raw` is a `struct file_handle` followed by as many bytes as it declares, the
        // name is an empty C string, and both outlive the call.
        let result = unsafe {
            libc::syscall(
                libc::SYS_name_to_handle_at,
                fd.as_fd().as_raw_fd(),
                c"".as_ptr(),
                &raw mut raw,
                &raw mut mount,
                libc::AT_EMPTY_PATH,
            )
        };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        let used = raw.handle.get(..raw.bytes as usize).ok_or(Errno::OVERFLOW)?;
        let bytes = if used.len() <= INLINE {
            let mut inline = [0; INLINE];
            inline[..used.len()].copy_from_slice(used);
            Bytes::Inline(used.len() as u8, inline)
        } else {
            Bytes::Heap(used.into())
        };
        Ok(Handle { kind: raw.kind, bytes })
    }

    /// Returns a number that differs from that of other inodes with the same inode number. It is
    /// never 0.
    pub(super) fn generation(&self) -> u64 {
        let mut hasher = FxHasher::default();
        self.kind.hash(&mut hasher);
        self.bytes().hash(&mut hasher);
        hasher.finish() | 1
    }

    fn bytes(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Inline(length, bytes) => &bytes[..usize::from(*length)],
            Bytes::Heap(bytes) => bytes,
        }
    }

    /// Opens the inode on the file system of `mount`. Fails with `ESTALE` if the inode no longer
    /// exists.
    pub(super) fn open(&self, mount: impl AsFd, flags: OFlags) -> io::Result<OwnedFd> {
        let bytes = self.bytes();
        let mut raw = Raw { bytes: bytes.len() as u32, kind: self.kind, handle: [0; LARGEST] };
        raw.handle[..bytes.len()].copy_from_slice(bytes);
        // SAFETY: `raw` is a `struct file_handle` as above and outlives the call.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_open_by_handle_at,
                mount.as_fd().as_raw_fd(),
                &raw mut raw,
                (flags | OFlags::CLOEXEC).bits() as libc::c_int,
            )
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just created this descriptor for this process.
        Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
    }
}
