//! Reads the extents of a file with `FS_IOC_FIEMAP`. The structures follow
//! Documentation/filesystems/fiemap.rst.

use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;

/// Largest number of extents per ioctl.
const EXTENTS_A_CALL: usize = 64;

/// `_IOWR('f', 11, struct fiemap)`; the structure has 32 bytes.
const FS_IOC_FIEMAP: u64 = 0xc020_660b;
/// Write dirty pages of the file before the extents are read.
const FIEMAP_FLAG_SYNC: u32 = 1;

const LAST: u32 = 0x1;
const UNKNOWN: u32 = 0x2;
const DELALLOC: u32 = 0x4;
const ENCODED: u32 = 0x8;
const DATA_INLINE: u32 = 0x200;
const UNWRITTEN: u32 = 0x800;
const SHARED: u32 = 0x2000;

/// A contiguous range of a file and its location on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// First byte in the file.
    pub logical: u64,
    /// First byte on the device; 0 for [`ExtentState::Inline`] and [`ExtentState::Unknown`].
    pub physical: u64,
    /// Length in bytes.
    pub bytes: u64,
    /// Where the data are and whether they were written.
    pub state: ExtentState,
    /// True if the data are compressed or encrypted, so that they may be shorter on the disk.
    pub encoded: bool,
    /// True if other files share the extent.
    pub shared: bool,
}

impl Extent {
    /// Creates a written extent that is neither encoded nor shared.
    pub fn on_disk(logical: u64, physical: u64, bytes: u64) -> Extent {
        Extent { logical, physical, bytes, state: ExtentState::Written, encoded: false, shared: false }
    }
}

/// The state of an extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtentState {
    /// The data are on the disk.
    Written,
    /// The range is allocated and was never written. Reads return zeros without disk access.
    Unwritten,
    /// The data are in the inode or among other metadata.
    Inline,
    /// The data are in memory and not written yet, or the file system does not report the location.
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

/// Reads extents with `FS_IOC_FIEMAP`. One reader serves any number of files.
pub struct ExtentReader {
    request: Box<Request>,
}

impl Default for ExtentReader {
    fn default() -> ExtentReader {
        const NOTHING: RawExtent =
            RawExtent { logical: 0, physical: 0, length: 0, reserved64: [0; 2], flags: 0, reserved: [0; 3] };
        ExtentReader {
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

impl ExtentReader {
    /// Passes the extents of a file to `each` in file order until `each` returns false. One ioctl
    /// requests `at_once` extents (1 to 64). `sync` writes dirty pages first.
    ///
    /// # Errors
    /// The error number of the ioctl: `EOPNOTSUPP` or `ENOTTY` if the file system does not report
    /// extents.
    pub fn for_each(
        &mut self,
        fd: BorrowedFd<'_>,
        at_once: usize,
        sync: bool,
        each: impl FnMut(Extent) -> bool,
    ) -> Result<(), Errno> {
        self.read_from(fd, 0, at_once, sync, each)
    }

    /// Passes extents to `each` until `each` returns false, starting with the first extent that
    /// ends after byte `start` of the file. Writes nothing to the disk.
    ///
    /// # Errors
    /// The error number of the ioctl: `EOPNOTSUPP` or `ENOTTY` if the file system does not report
    /// extents, `EBADF` for an `O_PATH` descriptor.
    pub fn for_each_from(
        &mut self,
        fd: BorrowedFd<'_>,
        start: u64,
        each: impl FnMut(Extent) -> bool,
    ) -> Result<(), Errno> {
        self.read_from(fd, start, EXTENTS_A_CALL, false, each)
    }

    fn read_from(
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
            // SAFETY: the kernel reads the header of the request and writes at most `extent_count`
            // extents, for which `extents` has room.
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
    // A delayed-allocation extent has several flags set, so that this test comes before
    // `UNWRITTEN`.
    let state = if has(DATA_INLINE) {
        ExtentState::Inline
    } else if has(DELALLOC) || has(UNKNOWN) {
        ExtentState::Unknown
    } else if has(UNWRITTEN) {
        ExtentState::Unwritten
    } else {
        ExtentState::Written
    };
    let physical = if state == ExtentState::Written || state == ExtentState::Unwritten { raw.physical } else { 0 };
    Extent { logical: raw.logical, physical, bytes: raw.length, state, encoded: has(ENCODED), shared: has(SHARED) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state_of(flags: u32) -> ExtentState {
        extent(&RawExtent { logical: 0, physical: 4096, length: 1, reserved64: [0; 2], flags, reserved: [0; 3] }).state
    }

    #[test]
    fn flags_show_the_place_of_an_extent() {
        assert_eq!(state_of(0), ExtentState::Written);
        assert_eq!(state_of(LAST | SHARED | ENCODED), ExtentState::Written);
        assert_eq!(state_of(UNWRITTEN), ExtentState::Unwritten);
        assert_eq!(state_of(DELALLOC | UNKNOWN | UNWRITTEN), ExtentState::Unknown);
        assert_eq!(state_of(DATA_INLINE | 0x100), ExtentState::Inline);
    }
}
