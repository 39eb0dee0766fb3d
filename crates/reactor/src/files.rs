//! Block I/O by blocking system calls, for helper threads.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{FallocateFlags, FileType, SeekFrom, fallocate, fdatasync, seek};
use rustix::io::{Errno, ReadWriteFlags, preadv2, pwritev2};

use crate::engine::{Allocation, Io, IoDone, IoOp};

/// Maximum number of extents in the result of [`IoOp::Status`].
const EXTENTS_MAX: usize = 64;
/// Size in bytes of one write of zeroes: 256 KiB.
const ZEROES_BYTES: usize = 256 << 10;

/// A block file of an engine.
#[derive(Clone, Debug)]
pub(crate) struct BlockFile {
    pub fd: Arc<OwnedFd>,
    pub block_device: bool,
    /// Opened with `O_DIRECT`.
    pub direct: bool,
    /// On tmpfs: reads and writes do not block.
    pub in_memory: bool,
    /// Data can be transferred by io_uring.
    pub suits_ring: bool,
}

/// Returns true if io_uring transfers the data of files correctly that are on a file system with
/// this magic number (`f_type` of statfs(2)): on all but FUSE, virtiofs included.
///
/// The kernel continues a short transfer of io_uring itself. For a file that bypasses the page
/// cache (`FOPEN_DIRECT_IO`), FUSE in the kernel (seen on Linux 6.18) does not advance the position
/// of an asynchronous transfer, so the rest is transferred at the first offset again: a read across
/// the end of the file returns the file's data repeatedly, up to its full length. Whether a file
/// bypasses the page cache cannot be found out.
pub fn suits_ring(magic: u32) -> bool {
    const FUSE_MAGIC: u32 = 0x6573_5546;
    magic != FUSE_MAGIC
}

impl BlockFile {
    pub fn new(fd: OwnedFd) -> BlockFile {
        const TMPFS_MAGIC: rustix::fs::FsWord = 0x0102_1994;
        let kind = rustix::fs::fstat(&fd).map(|stat| FileType::from_raw_mode(stat.st_mode));
        let flags = rustix::fs::fcntl_getfl(&fd).unwrap_or(rustix::fs::OFlags::empty());
        let is_regular = kind == Ok(FileType::RegularFile);
        let magic = rustix::fs::fstatfs(&fd).ok().filter(|_| is_regular).map(|system| system.f_type);
        BlockFile {
            block_device: kind == Ok(FileType::BlockDevice),
            direct: flags.contains(rustix::fs::OFlags::DIRECT),
            in_memory: magic == Some(TMPFS_MAGIC),
            // The magic numbers have 32 bits.
            suits_ring: magic.is_none_or(|magic| suits_ring(magic as u32)),
            fd: Arc::new(fd),
        }
    }

    /// Carries out an operation, which may block. `at` bytes of a read or write are already done.
    pub fn perform(&self, mut io: Io, at: u64) -> IoDone {
        let (mut extents, mut missing) = (Vec::new(), 0);
        let result = match io.op {
            IoOp::Read => self.read(&mut io, at).map(|beyond_end| missing = beyond_end),
            IoOp::Write { durable } => self.write(&io, at, durable),
            IoOp::Flush => fdatasync(&self.fd),
            IoOp::Zero { punch } => self.zero(io.offset, io.length, punch),
            IoOp::Trim => self.trim(io.offset, io.length),
            IoOp::Status => {
                extents = self.status(io.offset, io.length);
                Ok(())
            }
        };
        IoDone { result: result.map_err(Errno::raw_os_error), buffer: io.buffer, extents, missing }
    }

    /// Reads the bytes that are in the page cache, from the start of the range on. Returns their
    /// number.
    pub fn read_cached(&self, io: &mut Io) -> u64 {
        if self.direct {
            return 0;
        }
        let (offset, length) = (io.offset, io.length as usize);
        let Some(bytes) = io.buffer.as_deref_mut().and_then(|buffer| buffer.get_mut(..length)) else { return 0 };
        let got = preadv2(&self.fd, &mut [io::IoSliceMut::new(bytes)], offset, ReadWriteFlags::NOWAIT);
        got.unwrap_or(0) as u64
    }

    /// Reads, and fills the rest of the buffer with zeroes at the end of the file. Returns the
    /// length of that rest.
    fn read(&self, io: &mut Io, mut at: u64) -> Result<u64, Errno> {
        let (offset, length) = (io.offset, io.length as usize);
        let bytes = io.buffer.as_deref_mut().and_then(|buffer| buffer.get_mut(..length)).ok_or(Errno::INVAL)?;
        while (at as usize) < length {
            let rest = &mut bytes[at as usize..];
            let got = preadv2(&self.fd, &mut [io::IoSliceMut::new(rest)], offset + at, ReadWriteFlags::empty());
            match got {
                Ok(got) => at += got as u64,
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error),
            }
            let is_complete = at as usize == length;
            if got == Ok(0) || (!is_complete && is_direct_end_of_file(self.direct, offset + at)) {
                bytes[at as usize..].fill(0);
                return Ok(io.length - at);
            }
        }
        Ok(0)
    }

    fn write(&self, io: &Io, mut at: u64, durable: bool) -> Result<(), Errno> {
        let bytes = io.buffer.as_deref().and_then(|buffer| buffer.get(..io.length as usize)).ok_or(Errno::INVAL)?;
        let flags = if durable { ReadWriteFlags::DSYNC } else { ReadWriteFlags::empty() };
        while at < io.length {
            match pwritev2(&self.fd, &[io::IoSlice::new(&bytes[at as usize..])], io.offset + at, flags) {
                Ok(0) => return Err(Errno::IO),
                Ok(put) => at += put as u64,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Makes a range read as zeroes: by a hole if `punch` is set, else by allocated zeroes, else by
    /// writing zeroes.
    fn zero(&self, offset: u64, length: u64, punch: bool) -> Result<(), Errno> {
        let modes = if punch {
            [FallocateFlags::PUNCH_HOLE, FallocateFlags::ZERO_RANGE].as_slice()
        } else {
            [FallocateFlags::ZERO_RANGE].as_slice()
        };
        for mode in modes {
            match retry(|| fallocate(&self.fd, *mode | FallocateFlags::KEEP_SIZE, offset, length)) {
                Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {}
                other => return other,
            }
        }
        self.write_zeroes(offset, length)
    }

    fn write_zeroes(&self, offset: u64, length: u64) -> Result<(), Errno> {
        let zeroes = crate::buffer::Buffer::alone(ZEROES_BYTES.min(length as usize));
        let mut at = 0;
        while at < length {
            let piece = &zeroes[..(length - at).min(ZEROES_BYTES as u64) as usize];
            at += retry(|| rustix::io::pwrite(&self.fd, piece, offset + at))? as u64;
        }
        Ok(())
    }

    fn trim(&self, offset: u64, length: u64) -> Result<(), Errno> {
        if self.block_device {
            return retry(|| discard(self.fd.as_fd(), offset, length));
        }
        retry(|| fallocate(&self.fd, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, offset, length))
    }

    /// Returns the allocation of a range, from `SEEK_DATA` and `SEEK_HOLE` (lseek(2)). A file
    /// system without holes reports data only.
    fn status(&self, offset: u64, length: u64) -> Vec<Allocation> {
        let all_data = |length| Allocation { length, hole: false };
        if self.block_device {
            return vec![all_data(length)];
        }
        let (mut at, end) = (offset, offset.saturating_add(length));
        let mut extents = Vec::new();
        while at < end && extents.len() + 1 < EXTENTS_MAX {
            let data = match seek(&self.fd, SeekFrom::Data(at)) {
                Ok(data) => data.clamp(at, end),
                Err(Errno::NXIO) => end,
                Err(_) => at,
            };
            if data > at {
                extents.push(Allocation { length: data - at, hole: true });
            }
            if data < end {
                // On an error the rest counts as data.
                let hole = seek(&self.fd, SeekFrom::Hole(data)).map_or(end, |hole| hole.clamp(data + 1, end));
                extents.push(all_data(hole - data));
                at = hole;
            } else {
                at = end;
            }
        }
        extents
    }
}

/// Returns true if a short direct read that reached this offset has met the end of the file: only
/// that leaves a part of a sector.
pub(crate) fn is_direct_end_of_file(is_direct: bool, reached: u64) -> bool {
    is_direct && !reached.is_multiple_of(512)
}

/// Discards a range of a block device (`BLKDISCARD`, linux/fs.h). The argument is the first byte
/// and the length.
fn discard(device: BorrowedFd<'_>, offset: u64, length: u64) -> Result<(), Errno> {
    const BLKDISCARD: libc::c_ulong = 0x1277;
    let range = [offset, length];
    // SAFETY: the kernel reads the two numbers and keeps no pointer.
    let failed = unsafe { libc::ioctl(device.as_raw_fd(), BLKDISCARD as _, range.as_ptr()) } != 0;
    if failed { Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)) } else { Ok(()) }
}

fn retry<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}
