//! An io_uring instance: submission with a backlog, waiting, and completions.

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;

use io_uring::squeue::Entry;
use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, Submitter, cqueue, opcode};

use crate::clock;
use crate::wake::Waker;

/// Time in ns that the end of a ring waits for operations in the kernel: 5 s.
pub(super) const DRAIN_NS: u64 = 5_000_000_000;

/// The operation of a completion: the upper 8 bits of its user data. The lower 32 bits are the
/// index of its object.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Accept = 1,
    Receive = 2,
    Send = 3,
    Wake = 4,
    Transfer = 5,
    Cancel = 6,
}

impl Operation {
    const ALL: [Operation; 6] = [
        Operation::Accept,
        Operation::Receive,
        Operation::Send,
        Operation::Wake,
        Operation::Transfer,
        Operation::Cancel,
    ];

    /// Returns the user data of an operation on the object with this index.
    pub fn user_data(self, index: u32) -> u64 {
        (self as u64) << 56 | u64::from(index)
    }

    /// Returns the operation and the index of its object.
    pub fn of(user_data: u64) -> Option<(Operation, u32)> {
        let operation = Operation::ALL.get(((user_data >> 56) as usize).checked_sub(1)?)?;
        Some((*operation, user_data as u32))
    }
}

/// An io_uring instance. The thread that creates it also submits and waits.
///
/// Memory that an operation points to belongs to its object, which the owner of the ring keeps
/// until the completion, or for ever if the ring fails.
pub(super) struct KernelRing {
    uring: IoUring,
    waker: Waker,
    /// The kernel writes the counter of the eventfd to it.
    wake_count: Box<u64>,
    is_wake_armed: bool,
    /// Submissions that found the submission queue full, oldest first.
    backlog: VecDeque<Entry>,
    /// Operations in the kernel and in the backlog.
    pending: usize,
}

impl KernelRing {
    /// Creates a ring with this many submission and completion queue entries.
    ///
    /// # Errors
    /// io_uring is not permitted, or the kernel is older than 5.11.
    pub fn new(submissions: u32, completions: u32, waker: Waker) -> io::Result<KernelRing> {
        let uring = build(submissions, completions)?;
        if !uring.params().is_feature_ext_arg() || !uring.params().is_feature_nodrop() {
            return Err(io::Error::from_raw_os_error(libc::ENOSYS));
        }
        Ok(KernelRing {
            uring,
            waker,
            wake_count: Box::new(0),
            is_wake_armed: false,
            backlog: VecDeque::new(),
            pending: 0,
        })
    }

    /// Returns the interface for registering files and buffers.
    pub fn submitter(&self) -> Submitter<'_> {
        self.uring.submitter()
    }

    /// Returns the waker that ends the wait.
    pub fn waker(&self) -> &Waker {
        &self.waker
    }

    /// Returns the number of operations in the kernel and in the backlog.
    pub fn pending(&self) -> usize {
        self.pending
    }

    /// Returns true if submissions wait for room in the submission queue.
    pub fn has_backlog(&self) -> bool {
        !self.backlog.is_empty()
    }

    /// Queues an operation for submission.
    pub fn push(&mut self, entry: Entry) {
        self.pending += 1;
        if !self.backlog.is_empty() || !self.try_push(&entry) {
            self.backlog.push_back(entry);
        }
    }

    fn try_push(&mut self, entry: &Entry) -> bool {
        for _ in 0..2 {
            // SAFETY: the memory that an entry points to stays in place until its completion: it
            // belongs to a connection, a transfer, the receive buffers, or is `wake_count`. None of
            // them is freed before, and the owner of a ring that fails leaks them.
            if unsafe { self.uring.submission().push(entry) }.is_ok() {
                return true;
            }
            // The submission queue is full. If the kernel accepts nothing at present, the entry
            // waits until completions have been taken.
            if self.uring.submit().is_err() {
                return false;
            }
        }
        false
    }

    /// Moves the backlog to the submission queue, as far as there is room.
    pub fn push_backlog(&mut self) {
        while let Some(entry) = self.backlog.pop_front() {
            if !self.try_push(&entry) {
                self.backlog.push_front(entry);
                return;
            }
        }
    }

    /// Submits a read of the eventfd, unless one is pending.
    pub fn arm_wake(&mut self) {
        if !self.is_wake_armed {
            self.is_wake_armed = true;
            let count = (&raw mut *self.wake_count).cast::<u8>();
            let entry = opcode::Read::new(Fd(self.waker.as_raw_fd()), count, 8).build();
            self.push(entry.user_data(Operation::Wake.user_data(0)));
        }
    }

    /// Submits all queued operations. With a time, also waits for a completion until then
    /// (`u64::MAX`: without a timeout).
    pub fn enter(&mut self, wait_until_ns: Option<u64>) -> io::Result<()> {
        let entered = match wait_until_ns {
            None => {
                let queue = self.uring.submission();
                let is_idle = queue.is_empty() && !queue.taskrun() && !queue.cq_overflow();
                drop(queue);
                if is_idle {
                    return Ok(());
                }
                self.uring.submit()
            }
            Some(u64::MAX) => self.uring.submit_and_wait(1),
            Some(until_ns) => {
                let wait = Timespec::from(Duration::from_nanos(until_ns.saturating_sub(clock::now_ns())));
                self.uring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&wait))
            }
        };
        match entered {
            Ok(_) => Ok(()),
            // The timeout expired, a signal arrived, or completions have to be taken first.
            Err(error)
                if matches!(error.raw_os_error(), Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN)) =>
            {
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Returns true if there is a completion to take.
    pub fn has_completions(&mut self) -> bool {
        !self.uring.completion().is_empty()
    }

    /// Returns true if the kernel has completions that only [`KernelRing::enter`] makes visible.
    pub fn has_deferred_completions(&mut self) -> bool {
        let queue = self.uring.submission();
        queue.taskrun() || queue.cq_overflow()
    }

    /// Appends all completions to `to`.
    pub fn take_completions(&mut self, to: &mut Vec<cqueue::Entry>) {
        let before = to.len();
        to.extend(self.uring.completion());
        for completion in to.get(before..).unwrap_or_default() {
            if !cqueue::more(completion.flags()) {
                self.pending -= 1;
            }
            self.is_wake_armed &= completion.user_data() != Operation::Wake.user_data(0);
        }
    }

    /// Ends the pending read of the eventfd, so that the ring can drain.
    pub fn begin_drain(&mut self) {
        if self.is_wake_armed {
            self.waker.wake();
        }
    }

    /// Waits for a completion until `end_ns` while operations are pending. Returns false if there
    /// is none to wait for.
    pub fn drain(&mut self, end_ns: u64) -> bool {
        if self.pending == 0 || clock::now_ns() >= end_ns {
            return false;
        }
        self.push_backlog();
        self.enter(Some(end_ns)).is_ok()
    }
}

impl Drop for KernelRing {
    fn drop(&mut self) {
        if self.pending > 0 {
            tracing::warn!(operations = self.pending, "the kernel has pending I/O: its memory is not freed");
            std::mem::forget(std::mem::take(&mut self.wake_count));
        }
    }
}

/// Creates a ring with the cheapest modes that this kernel supports: completions are made when the
/// thread asks for them (Linux 6.1), by this thread alone (6.0), without interrupting it (5.19).
fn build(submissions: u32, completions: u32) -> io::Result<IoUring> {
    let builder = || {
        let mut builder = IoUring::builder();
        builder.dontfork().setup_clamp().setup_cqsize(completions);
        builder
    };
    let mut deferred = builder();
    deferred.setup_single_issuer().setup_defer_taskrun().setup_taskrun_flag().setup_submit_all();
    let mut cooperative = builder();
    cooperative.setup_coop_taskrun().setup_taskrun_flag().setup_submit_all();
    let mut refused = None;
    for builder in [deferred, cooperative, builder()] {
        match builder.build(submissions) {
            Ok(ring) => return Ok(ring),
            // The kernel does not support a mode. Any other error would be repeated.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => refused = Some(error),
            Err(error) => return Err(error),
        }
    }
    Err(refused.unwrap_or_else(|| io::ErrorKind::Unsupported.into()))
}
