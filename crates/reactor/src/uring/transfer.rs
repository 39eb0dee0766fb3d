//! Block I/O on an io_uring instance: short transfers are continued, and interrupted ones retried.

use std::os::fd::{AsRawFd, BorrowedFd};

use io_uring::opcode;
use io_uring::squeue::Entry;
use io_uring::types::{Fd, Fixed, FsyncFlags};
use slab::Slab;

use super::kernel::{KernelRing, Operation};

/// Maximum size in bytes of one read or write: 1 GiB (the kernel's limit is just below 2 GiB).
const PIECE_BYTES_MAX: usize = 1 << 30;

/// The operation of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockOp {
    /// Reads into the target's memory, up to the end of the file.
    Read,
    /// Writes the target's memory.
    Write {
        /// `RWF_` flags of pwritev2(2), or 0.
        rw_flags: i32,
    },
    /// Makes completed writes durable (fdatasync(2)).
    Sync,
    /// Changes the allocation of the range (fallocate(2)).
    Allocate {
        /// `FALLOC_FL_` flags.
        mode: i32,
    },
}

/// The file and the memory of a transfer, with the host's state of it.
///
/// # Safety
/// The descriptor and the memory stay valid until the target is dropped. The memory does not move
/// when the target moves, and only the kernel accesses it during the transfer.
pub unsafe trait BlockTarget {
    /// Returns the file.
    fn fd(&self) -> BorrowedFd<'_>;

    /// Returns the memory of a read or write; empty for other operations.
    fn memory(&mut self) -> &mut [u8];

    /// Returns true if a short read that reached this offset has met the end of the file, so that
    /// no further read is needed.
    fn is_end_of_file(&self, offset: u64) -> bool {
        let _ = offset;
        false
    }
}

/// The end of a transfer.
#[derive(Debug)]
pub struct Ended<T> {
    /// The target of the transfer.
    pub target: T,
    /// Bytes read or written. Without an error, a read is short only at the end of the file, and a
    /// write only if the file accepts no more data.
    pub bytes: u64,
    /// The error number (`errno`) of the operation after `bytes`.
    pub error: Option<i32>,
}

/// The parts of a transfer that are registered with the ring.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Registered {
    /// The index of the file in the ring's file table.
    pub file: Option<u32>,
    /// The memory is part of registered buffer 0.
    pub memory: bool,
}

/// The transfers in flight on a ring.
pub(super) struct Transfers<T> {
    in_flight: Slab<Transfer<T>>,
}

struct Transfer<T> {
    target: T,
    op: BlockOp,
    registered: Registered,
    offset: u64,
    length: u64,
    /// Bytes transferred so far.
    done: u64,
}

/// Builds an operation on a file, by its registered index or by its descriptor.
macro_rules! on_file {
    ($transfer:expr, $fd:ident => $build:expr) => {
        match $transfer.registered.file {
            Some(index) => {
                let $fd = Fixed(index);
                $build
            }
            None => {
                let $fd = Fd($transfer.target.fd().as_raw_fd());
                $build
            }
        }
    };
}

impl<T> Default for Transfers<T> {
    fn default() -> Self {
        Transfers { in_flight: Slab::new() }
    }
}

impl<T: BlockTarget> Transfers<T> {
    /// Starts a transfer of at most as many bytes as the target has memory for.
    pub fn start(
        &mut self,
        ring: &mut KernelRing,
        op: BlockOp,
        offset: u64,
        length: u64,
        mut target: T,
        registered: Registered,
    ) {
        let length = match op {
            BlockOp::Read | BlockOp::Write { .. } => length.min(target.memory().len() as u64),
            BlockOp::Sync | BlockOp::Allocate { .. } => length,
        };
        let key = self.in_flight.insert(Transfer { target, op, registered, offset, length, done: 0 });
        self.submit(ring, key);
    }

    /// Submits the rest of a transfer.
    fn submit(&mut self, ring: &mut KernelRing, key: usize) {
        if let Some(transfer) = self.in_flight.get_mut(key) {
            ring.push(transfer.entry().user_data(Operation::Transfer.user_data(key as u32)));
        }
    }

    /// Handles a completion. Returns the transfer if it has ended.
    pub fn complete(&mut self, ring: &mut KernelRing, key: u32, result: i32) -> Option<Ended<T>> {
        let key = key as usize;
        let transfer = self.in_flight.get_mut(key)?;
        if matches!(-result, libc::EINTR | libc::EAGAIN) || transfer.advance(result) {
            self.submit(ring, key);
            return None;
        }
        let Transfer { target, done, .. } = self.in_flight.remove(key);
        Some(Ended { target, bytes: done, error: (result < 0).then_some(-result) })
    }

    /// Returns the number of transfers in flight.
    pub fn count(&self) -> usize {
        self.in_flight.len()
    }

    /// Leaks the transfers in flight: the kernel may still access their memory.
    pub fn leak(&mut self) {
        std::mem::forget(std::mem::take(&mut self.in_flight));
    }
}

impl<T: BlockTarget> Transfer<T> {
    /// Counts the transferred bytes. Returns true if the transfer has to be continued.
    fn advance(&mut self, result: i32) -> bool {
        let Ok(bytes @ 1..) = u64::try_from(result) else { return false };
        match self.op {
            BlockOp::Read | BlockOp::Write { .. } => self.done += bytes,
            BlockOp::Sync | BlockOp::Allocate { .. } => return false,
        }
        let is_read = self.op == BlockOp::Read;
        self.done < self.length && !(is_read && self.target.is_end_of_file(self.offset + self.done))
    }

    /// Builds the operation for the rest of the transfer.
    fn entry(&mut self) -> Entry {
        let (offset, length) = (self.offset + self.done, self.length);
        match self.op {
            BlockOp::Sync => on_file!(self, fd => opcode::Fsync::new(fd).flags(FsyncFlags::DATASYNC).build()),
            BlockOp::Allocate { mode } => {
                on_file!(self, fd => opcode::Fallocate::new(fd, length).offset(offset).mode(mode).build())
            }
            BlockOp::Read => {
                let (start, bytes) = self.rest();
                match self.registered.memory {
                    true => on_file!(self, fd => opcode::ReadFixed::new(fd, start, bytes, 0).offset(offset).build()),
                    false => on_file!(self, fd => opcode::Read::new(fd, start, bytes).offset(offset).build()),
                }
            }
            BlockOp::Write { rw_flags: flags } => {
                let (start, bytes) = self.rest();
                match self.registered.memory {
                    true => {
                        on_file!(self, fd => opcode::WriteFixed::new(fd, start, bytes, 0).offset(offset).rw_flags(flags).build())
                    }
                    false => {
                        on_file!(self, fd => opcode::Write::new(fd, start, bytes).offset(offset).rw_flags(flags).build())
                    }
                }
            }
        }
    }

    /// Returns the memory that is not transferred yet, at most [`PIECE_BYTES_MAX`] of it.
    fn rest(&mut self) -> (*mut u8, u32) {
        let range = self.done as usize..self.length as usize;
        let rest = self.target.memory().get_mut(range).unwrap_or_default();
        (rest.as_mut_ptr(), rest.len().min(PIECE_BYTES_MAX) as u32)
    }
}
