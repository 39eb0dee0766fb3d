//! `FS_IOC_FIEMAP`: a file system tells where the data of a file lie. The form is that of Documentation/filesystems/fiemap.rst.

use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;

/// How many extents are asked for at once.
const EXTENTS_A_CALL: usize = 64;

/// `_IOWR('f', 11, struct fiemap)`, of 32 bytes.
const FS_IOC_FIEMAP: u64 = 0xc020_660b;
/// What is in memory alone is written out first.
const FIEMAP_FLAG_SYNC: u32 = 1;

const LAST: u32 = 0x1;
const UNKNOWN: u32 = 0x2;
const DELALLOC: u32 = 0x4;
const ENCODED: u32 = 0x8;
const DATA_INLINE: u32 = 0x200;
const UNWRITTEN: u32 = 0x800;
const SHARED: u32 = 0x2000;

/// Data of a file that lie together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Where they begin in the file, in bytes.
    pub logical: u64,
    /// Where they begin on the device, in bytes; 0 where [`At`] is not `Disk`.
    pub physical: u64,
    /// How many bytes.
    pub bytes: u64,
    /// What lies there.
    pub at: At,
    /// Whether they are compressed or encrypted: on the disk they may be shorter.
    pub encoded: bool,
    /// Whether other files have them, too.
    pub shared: bool,
}

impl Extent {
    /// One that is on the disk, as it is, for one file alone.
    pub fn on_disk(logical: u64, physical: u64, bytes: u64) -> Extent {
        Extent { logical, physical, bytes, at: At::Disk, encoded: false, shared: false }
    }
}

/// Where an extent is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// On the disk.
    Disk,
    /// There is room for it, and nothing has been written: it reads as zeros, without the disk.
    Unwritten,
    /// Within the inode, or with other metadata.
    Inline,
    /// In memory, and on the disk as soon as it is written out; or the file system does not tell.
    Unknown,
}

#[repr(C)]
struct Request {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
    extents: [RawExtent; EXTENTS_A_CALL],
}

#[repr(C)]
#[derive(Clone, Copy)]
struct RawExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

const _: () = assert!(size_of::<RawExtent>() == 56 && size_of::<Request>() == 32 + 56 * EXTENTS_A_CALL);

/// Asks a file system where the data of file after file lie (`FS_IOC_FIEMAP`).
pub struct Asker {
    request: Box<Request>,
}

impl Default for Asker {
    fn default() -> Asker {
        const NOTHING: RawExtent =
            RawExtent { logical: 0, physical: 0, length: 0, reserved64: [0; 2], flags: 0, reserved: [0; 3] };
        Asker {
            request: Box::new(Request {
                start: 0,
                length: 0,
                flags: 0,
                mapped_extents: 0,
                extent_count: 0,
                reserved: 0,
                extents: [NOTHING; EXTENTS_A_CALL],
            }),
        }
    }
}

impl Asker {
    /// Hands the extents of a file to `each`, from its beginning, `at_once` (1 to 64) a call, until it answers `false`. With `sync` what is
    /// in memory alone is written out first.
    ///
    /// # Errors
    /// What the system says; `EOPNOTSUPP` or `ENOTTY` from a file system that does not tell.
    pub fn each(
        &mut self,
        fd: BorrowedFd<'_>,
        at_once: usize,
        sync: bool,
        each: impl FnMut(Extent) -> bool,
    ) -> Result<(), Errno> {
        self.each_behind(fd, 0, at_once, sync, each)
    }

    /// Hands the extents of a file to `each`, from the one that holds its byte `start` or is the next behind it, until it answers `false`. Nothing is written out.
    ///
    /// # Errors
    /// What the system says; `EOPNOTSUPP` or `ENOTTY` from a file system that does not tell, `EBADF` of a descriptor that is `O_PATH`.
    pub fn each_from(&mut self, fd: BorrowedFd<'_>, start: u64, each: impl FnMut(Extent) -> bool) -> Result<(), Errno> {
        self.each_behind(fd, start, EXTENTS_A_CALL, false, each)
    }

    fn each_behind(
        &mut self,
        fd: BorrowedFd<'_>,
        mut start: u64,
        at_once: usize,
        sync: bool,
        mut each: impl FnMut(Extent) -> bool,
    ) -> Result<(), Errno> {
        loop {
            self.ask(fd, start, at_once, sync)?;
            let mapped = (self.request.mapped_extents as usize).min(EXTENTS_A_CALL);
            let extents = &self.request.extents[..mapped];
            for raw in extents {
                if !each(extent(raw)) {
                    return Ok(());
                }
            }
            let Some(last) = extents.last().filter(|last| last.flags & LAST == 0) else { return Ok(()) };
            let next = last.logical.saturating_add(last.length);
            if next <= start {
                return Ok(());
            }
            start = next;
        }
    }

    fn ask(&mut self, fd: BorrowedFd<'_>, start: u64, at_once: usize, sync: bool) -> Result<(), Errno> {
        let request = &mut *self.request;
        (request.start, request.length) = (start, u64::MAX - start);
        request.flags = if sync { FIEMAP_FLAG_SYNC } else { 0 };
        request.mapped_extents = 0;
        request.extent_count = at_once.clamp(1, EXTENTS_A_CALL) as u32;
        loop {
            // SAFETY: the kernel reads the head of the request and writes at most `extent_count` extents behind it, for which there is room.
            let answer = unsafe { libc::ioctl(fd.as_raw_fd(), FS_IOC_FIEMAP as _, std::ptr::from_mut(request)) };
            if answer == 0 {
                return Ok(());
            }
            let error = std::io::Error::last_os_error();
            let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
            if errno != Errno::INTR {
                return Err(errno);
            }
        }
    }
}

fn extent(raw: &RawExtent) -> Extent {
    let has = |flag: u32| raw.flags & flag != 0;
    // An extent that waits to be written out is also of unknown place, so that this comes first.
    let at = if has(DATA_INLINE) {
        At::Inline
    } else if has(DELALLOC) || has(UNKNOWN) {
        At::Unknown
    } else if has(UNWRITTEN) {
        At::Unwritten
    } else {
        At::Disk
    };
    let physical = if at == At::Disk || at == At::Unwritten { raw.physical } else { 0 };
    Extent { logical: raw.logical, physical, bytes: raw.length, at, encoded: has(ENCODED), shared: has(SHARED) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(flags: u32) -> At {
        extent(&RawExtent { logical: 0, physical: 4096, length: 1, reserved64: [0; 2], flags, reserved: [0; 3] }).at
    }

    #[test]
    fn flags_tell_where_an_extent_is() {
        assert_eq!(told(0), At::Disk);
        assert_eq!(told(LAST | SHARED | ENCODED), At::Disk);
        assert_eq!(told(UNWRITTEN), At::Unwritten);
        assert_eq!(told(DELALLOC | UNKNOWN | UNWRITTEN), At::Unknown);
        assert_eq!(told(DATA_INLINE | 0x100), At::Inline);
    }
}
