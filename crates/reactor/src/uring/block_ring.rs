//! Block I/O on borrowed files by io_uring, without sockets and without a file table.

use std::io;

use io_uring::cqueue;
use rustix::event::EventfdFlags;

use super::kernel::{DRAIN_NS, KernelRing, Operation};
use super::transfer::{BlockOp, BlockTarget, Ended, Registered, Transfers};
use crate::clock;
use crate::wake::Waker;

/// Completion queue entries for each submission queue entry. Further completions stay in the
/// kernel until there is room.
const COMPLETIONS_PER_SUBMISSION: u32 = 8;

/// An io_uring instance for block I/O. Each transfer has a target `T`, which owns or borrows its
/// file and its memory and returns when the transfer ends.
///
/// ```
/// use std::os::fd::{AsFd, BorrowedFd};
/// use hoistway_reactor::{BlockOp, BlockRing, BlockTarget};
///
/// struct Read(std::fs::File, Vec<u8>);
/// // SAFETY: the memory is on the heap and belongs to this value, as the file does.
/// unsafe impl BlockTarget for Read {
///     fn fd(&self) -> BorrowedFd<'_> {
///         self.0.as_fd()
///     }
///     fn memory(&mut self) -> &mut [u8] {
///         &mut self.1
///     }
/// }
///
/// let file = std::fs::File::open("Cargo.toml")?;
/// // io_uring may not be permitted here.
/// let Ok(mut ring) = BlockRing::new(8) else { return Ok(()) };
/// ring.start(BlockOp::Read, 0, 9, Read(file, vec![0; 9]));
/// let mut ended = Vec::new();
/// while ended.is_empty() {
///     ring.turn(&mut ended)?;
/// }
/// assert_eq!(ended[0].target.1, b"[package]");
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct BlockRing<T: BlockTarget> {
    ring: KernelRing,
    transfers: Transfers<T>,
    completions: Vec<cqueue::Entry>,
}

impl<T: BlockTarget> BlockRing<T> {
    /// Creates a ring with this many submission queue entries. The thread that creates the ring
    /// also has to use it; [`Waker`] is the exception.
    ///
    /// # Errors
    /// io_uring is not permitted, or the kernel is older than 5.11.
    pub fn new(entries: u32) -> io::Result<BlockRing<T>> {
        let waker = Waker::new(EventfdFlags::empty())?;
        let ring = KernelRing::new(entries, entries.saturating_mul(COMPLETIONS_PER_SUBMISSION), waker)?;
        Ok(BlockRing { ring, transfers: Transfers::default(), completions: Vec::new() })
    }

    /// Starts a transfer of `length` bytes at `offset`, at most as many as the target has memory
    /// for. The next [`BlockRing::turn`] submits it.
    pub fn start(&mut self, op: BlockOp, offset: u64, length: u64, target: T) {
        self.transfers.start(&mut self.ring, op, offset, length, target, Registered::default());
    }

    /// Submits transfers, waits for a completion or a wake-up, and appends the transfers that have
    /// ended. A turn may return without any.
    ///
    /// # Errors
    /// The ring has failed. Dropping it then leaks the transfers in flight, because the kernel may
    /// still access their memory.
    pub fn turn(&mut self, ended: &mut Vec<Ended<T>>) -> io::Result<()> {
        self.ring.push_backlog();
        self.ring.arm_wake();
        // While there is a backlog, completions have to be taken before the kernel accepts more.
        let wait_until_ns = if self.ring.has_backlog() { None } else { Some(u64::MAX) };
        self.ring.enter(wait_until_ns)?;
        self.take_completions(ended);
        Ok(())
    }

    fn take_completions(&mut self, ended: &mut Vec<Ended<T>>) {
        self.ring.take_completions(&mut self.completions);
        for completion in self.completions.drain(..) {
            if let Some((Operation::Transfer, key)) = Operation::of(completion.user_data()) {
                ended.extend(self.transfers.complete(&mut self.ring, key, completion.result()));
            }
        }
    }

    /// Returns the number of transfers in flight.
    pub fn in_flight(&self) -> usize {
        self.transfers.count()
    }

    /// Returns a handle by which another thread ends the wait of [`BlockRing::turn`].
    pub fn waker(&self) -> Waker {
        self.ring.waker().clone()
    }
}

impl<T: BlockTarget> Drop for BlockRing<T> {
    /// Waits for the transfers in flight, for 5 s at most. Transfers that the kernel still has then
    /// are leaked.
    fn drop(&mut self) {
        self.ring.begin_drain();
        let (mut ended, end_ns) = (Vec::new(), clock::now_ns() + DRAIN_NS);
        while self.ring.drain(end_ns) {
            self.take_completions(&mut ended);
            ended.clear();
        }
        if self.ring.pending() > 0 {
            self.transfers.leak();
        }
    }
}
