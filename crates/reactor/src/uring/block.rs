//! Block files of the engine on io_uring.

use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

use super::transfer::{BlockOp, BlockTarget, Ended, Registered};
use super::{BLOCK_FILES, Uring};
use crate::buffer::BLOCK_BYTES_MAX;
use crate::engine::{Event, FileId, Io, IoDone, IoOp};
use crate::files::{BlockFile, is_direct_end_of_file};
use crate::helpers::Job;

/// Reads and writes of files in memory are copies. From this length on, 128 KiB, a kernel thread of
/// the ring makes them; shorter ones are cheaper on the engine's own thread.
const COPY_BYTES_MAX: u64 = 128 << 10;

/// Block I/O in flight.
pub(super) struct FileIo {
    tag: u64,
    io: Io,
    fd: RawFd,
    is_direct: bool,
}

// SAFETY: the engine closes a file only after its transfers have ended, and leaks their buffers if
// the ring fails. A buffer does not move with its owner.
unsafe impl BlockTarget for FileIo {
    fn fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the engine keeps every file open until its end.
        unsafe { BorrowedFd::borrow_raw(self.fd) }
    }

    fn memory(&mut self) -> &mut [u8] {
        self.io.buffer.as_deref_mut().unwrap_or_default()
    }

    fn is_end_of_file(&self, offset: u64) -> bool {
        is_direct_end_of_file(self.is_direct, offset)
    }
}

impl Uring {
    pub(super) fn add_file(&mut self, file: OwnedFd) -> FileId {
        let id = FileId(self.files.len() as u32);
        self.register_pool();
        let mut is_registered = id.0 < BLOCK_FILES;
        if is_registered && let Err(error) = self.ring.submitter().register_files_update(id.0, &[file.as_raw_fd()]) {
            tracing::warn!(%error, "a file cannot be registered with io_uring: each of its operations costs more");
            is_registered = false;
        }
        self.files_registered.push(is_registered);
        self.files.push(BlockFile::new(file));
        id
    }

    /// Registers the pool, or as much of it as may be pinned (`RLIMIT_MEMLOCK`), so that the kernel
    /// need not pin its pages for each operation.
    fn register_pool(&mut self) {
        if self.pool_registered.is_some() {
            return;
        }
        let (start, len) = self.pool.region();
        let mut bytes = len;
        while bytes >= BLOCK_BYTES_MAX {
            let memory = [libc::iovec { iov_base: start.cast(), iov_len: bytes }];
            // SAFETY: the pool stays mapped until the ring is closed; the kernel accesses only the
            // memory of operations.
            match unsafe { self.ring.submitter().register_buffers(&memory) } {
                Ok(()) => {
                    tracing::debug!(bytes, of = len, "the buffer pool is registered with io_uring");
                    self.pool_registered = Some(bytes);
                    return;
                }
                Err(error) => {
                    tracing::debug!(%error, bytes, "the buffer pool cannot be registered in this size (ulimit -l)");
                    bytes /= 2;
                }
            }
        }
        self.pool_registered = Some(0);
    }

    pub(super) fn start_io(&mut self, tag: u64, io: Io) {
        let Some(file) = self.files.get(io.file.0 as usize) else {
            return self.finish(tag, Err(libc::EBADF), io);
        };
        let has_data = matches!(io.op, IoOp::Read | IoOp::Write { .. });
        if has_data && io.buffer.as_ref().is_none_or(|buffer| (buffer.len() as u64) < io.length) {
            return self.finish(tag, Err(libc::EINVAL), io);
        }
        if has_data && file.in_memory && io.length < COPY_BYTES_MAX {
            let done = file.perform(io, 0);
            return self.ready.push(Event::Done { tag, done });
        }
        match block_op(io.op, file).filter(|_| !has_data || file.suits_ring) {
            Some(op) => self.start_transfer(tag, op, io),
            None => self.start_helper(tag, io),
        }
    }

    fn start_transfer(&mut self, tag: u64, op: BlockOp, io: Io) {
        let index = io.file.0 as usize;
        let Some(file) = self.files.get(index) else { return };
        let (region, _) = self.pool.region();
        let registered_bytes = self.pool_registered.unwrap_or(0);
        let registered = Registered {
            file: (self.files_registered.get(index) == Some(&true)).then_some(io.file.0),
            memory: io.buffer.as_ref().is_some_and(|buffer| buffer.is_within(region, registered_bytes)),
        };
        let (offset, length) = (io.offset, io.length);
        let target = FileIo { tag, fd: file.fd.as_raw_fd(), is_direct: file.direct, io };
        self.transfers.start(&mut self.ring, op, offset, length, target, registered);
    }

    fn start_helper(&mut self, tag: u64, io: Io) {
        if let Some(file) = self.files.get(io.file.0 as usize) {
            self.helpers.start(Job { tag, file: file.clone(), io, at: 0 });
        }
    }

    fn finish(&mut self, tag: u64, result: Result<(), i32>, io: Io) {
        let done = IoDone { result, buffer: io.buffer, extents: Vec::new(), missing: 0 };
        self.ready.push(Event::Done { tag, done });
    }

    pub(super) fn transfer_completed(&mut self, key: u32, result: i32, events: &mut Vec<Event>) {
        let Some(ended) = self.transfers.complete(&mut self.ring, key, result) else { return };
        let Ended { target: FileIo { tag, mut io, .. }, bytes, mut error } = ended;
        let mut missing = 0;
        match io.op {
            IoOp::Read if error.is_none() && bytes < io.length => {
                missing = io.length - bytes;
                if let Some(beyond_end) =
                    io.buffer.as_deref_mut().and_then(|buffer| buffer.get_mut(bytes as usize..io.length as usize))
                {
                    beyond_end.fill(0);
                }
            }
            IoOp::Write { .. } if error.is_none() && bytes < io.length => error = Some(libc::EIO),
            // The file cannot zero a range: a helper thread writes zeroes.
            IoOp::Zero { .. } if matches!(error, Some(libc::EOPNOTSUPP | libc::ENOSYS | libc::EINVAL)) => {
                return self.start_helper(tag, io);
            }
            _ => {}
        }
        let done = IoDone { result: error.map_or(Ok(()), Err), buffer: io.buffer, extents: Vec::new(), missing };
        events.push(Event::Done { tag, done });
    }
}

/// Returns the operation of the ring, or `None` if io_uring would block the engine's thread.
fn block_op(op: IoOp, file: &BlockFile) -> Option<BlockOp> {
    let allocate = |mode| Some(BlockOp::Allocate { mode: mode | libc::FALLOC_FL_KEEP_SIZE });
    match op {
        IoOp::Read => Some(BlockOp::Read),
        IoOp::Write { durable } => Some(BlockOp::Write { rw_flags: if durable { libc::RWF_DSYNC } else { 0 } }),
        IoOp::Flush => Some(BlockOp::Sync),
        IoOp::Zero { punch: true } => allocate(libc::FALLOC_FL_PUNCH_HOLE),
        IoOp::Zero { punch: false } => allocate(libc::FALLOC_FL_ZERO_RANGE),
        IoOp::Trim if !file.block_device => allocate(libc::FALLOC_FL_PUNCH_HOLE),
        IoOp::Trim | IoOp::Status => None,
    }
}
