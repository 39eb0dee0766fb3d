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

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::{AsFd, BorrowedFd};
    use std::os::unix::fs::FileExt;
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::buffer::Buffer;

    /// A transfer of a file that several transfers share.
    struct Transfer {
        file: Arc<File>,
        buffer: Buffer,
        tag: usize,
    }

    // SAFETY: the transfer shares ownership of the file and owns its buffer, which does not move.
    unsafe impl BlockTarget for Transfer {
        fn fd(&self) -> BorrowedFd<'_> {
            self.file.as_fd()
        }

        fn memory(&mut self) -> &mut [u8] {
            &mut self.buffer
        }
    }

    /// Returns a ring, or `None` if the machine permits no io_uring.
    fn ring() -> Option<BlockRing<Transfer>> {
        let ring = BlockRing::new(4);
        if let Err(error) = &ring {
            eprintln!("skipped: io_uring is not available: {error}");
        }
        ring.ok()
    }

    /// Waits for this many transfers, and returns them by tag.
    fn wait(ring: &mut BlockRing<Transfer>, count: usize) -> Vec<Ended<Transfer>> {
        let mut ended = Vec::new();
        while ended.len() < count {
            ring.turn(&mut ended).expect("the ring works");
        }
        ended.sort_by_key(|ended| ended.target.tag);
        ended
    }

    fn transfer(file: &Arc<File>, tag: usize) -> Transfer {
        let mut buffer = Buffer::alone(4096);
        buffer.fill(tag as u8 + 1);
        Transfer { file: file.clone(), buffer, tag }
    }

    #[test]
    fn a_shared_file_is_written_and_read_by_more_transfers_than_entries() {
        let Some(mut ring) = ring() else { return };
        let file = Arc::new(tempfile::tempfile().expect("a file"));
        for tag in 0..100 {
            let op = BlockOp::Write { rw_flags: if tag == 0 { libc::RWF_DSYNC } else { 0 } };
            ring.start(op, tag as u64 * 4096, 4096, transfer(&file, tag));
        }
        assert_eq!(ring.in_flight(), 100);
        let is_whole = |ended: &Ended<Transfer>| (ended.bytes, ended.error) == (4096, None);
        assert!(wait(&mut ring, 100).iter().all(is_whole));
        ring.start(BlockOp::Sync, 0, 0, transfer(&file, 0));
        assert_eq!(wait(&mut ring, 1)[0].error, None);
        for tag in 0..100 {
            ring.start(BlockOp::Read, tag as u64 * 4096, 4096, transfer(&file, 7));
        }
        let mut first_bytes: Vec<u8> = wait(&mut ring, 100).iter().map(|ended| ended.target.buffer[0]).collect();
        first_bytes.sort_unstable();
        assert!(first_bytes.iter().copied().eq(1..=100) && ring.in_flight() == 0);
    }

    #[test]
    fn a_read_is_short_at_the_end_of_the_file_and_errors_are_reported() {
        let Some(mut ring) = ring() else { return };
        let file = tempfile::NamedTempFile::new().expect("a file");
        file.as_file().write_all_at(&[9; 1000], 0).expect("there is room");
        let read_only = Arc::new(File::open(file.path()).expect("the file"));
        ring.start(BlockOp::Read, 0, 4096, transfer(&read_only, 0));
        ring.start(BlockOp::Read, 5000, 4096, transfer(&read_only, 1));
        ring.start(BlockOp::Read, 0, 1 << 40, transfer(&read_only, 2));
        ring.start(BlockOp::Write { rw_flags: 0 }, 0, 4096, transfer(&read_only, 3));
        let ended = wait(&mut ring, 4);
        let results: Vec<_> = ended.iter().map(|ended| (ended.bytes, ended.error)).collect();
        assert_eq!(results, [(1000, None), (0, None), (1000, None), (0, Some(libc::EBADF))]);
        assert_eq!((ended[0].target.buffer[999], ended[0].target.buffer[1000]), (9, 1));
    }

    #[test]
    fn another_thread_ends_the_wait() {
        let Some(mut ring) = ring() else { return };
        let waker = ring.waker();
        let thread = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(20));
            waker.wake();
        });
        let mut ended = Vec::new();
        for _ in 0..2 {
            ring.turn(&mut ended).expect("the ring works");
            assert!(ended.is_empty());
            ring.waker().wake();
        }
        thread.join().expect("no panic");
    }

    #[test]
    fn a_ring_is_dropped_with_transfers_in_flight() {
        let Some(mut ring) = ring() else { return };
        let file = Arc::new(tempfile::tempfile().expect("a file"));
        for tag in 0..50 {
            ring.start(BlockOp::Write { rw_flags: 0 }, tag as u64 * 4096, 4096, transfer(&file, tag));
        }
        drop(ring);
        assert_eq!(Arc::strong_count(&file), 1, "the targets are dropped");
        assert_eq!(file.metadata().expect("its length").len(), 50 * 4096);
    }
}
