//! The engine on io_uring: one system call per turn submits all started operations and waits for
//! completions.
//!
//! - Connections and block files are registered with the ring. The first block file also registers
//!   the buffer pool, which pins its pages.
//! - A receive names no buffer: the kernel takes one from a ring of buffers when bytes arrive
//!   ([`ReceiveBuffers`]).
//! - A message is one `sendmsg` of all its parts. After a short send, another one sends the rest.
//! - Helper threads execute the operations that would block the engine's thread or that a file does
//!   not support: discards on block devices, block status, some zeroing.
//! - A closed connection keeps its slot until the kernel has returned all its buffers.
//!
//! | module | contents |
//! |---|---|
//! | `kernel` | the io_uring instance: submission, waiting, completions |
//! | `transfer`, `block_ring` | block I/O on a ring, and a ring for block I/O alone ([`BlockRing`](crate::BlockRing)) |
//! | `block`, `sockets`, `receives` | the engine's files, connections, and receive buffers |

mod block;
pub(crate) mod block_ring;
mod kernel;
mod receives;
mod sockets;
pub(crate) mod transfer;

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;

use io_uring::cqueue;
use rustix::event::EventfdFlags;

use self::block::FileIo;
use self::kernel::{DRAIN_NS, KernelRing, Operation};
use self::receives::ReceiveBuffers;
use self::sockets::{Connection, Listener};
use self::transfer::Transfers;
use crate::buffer::{Buffer, Pool};
use crate::clock;
use crate::connector::Connector;
use crate::engine::{ConnId, Endpoint, Engine, Event, FileId, Io, IoDone, ListenerId, Message};
use crate::files::BlockFile;
use crate::helpers::HelperThreads;
use crate::options::Options;
use crate::outgoing::OutgoingMessage;
use crate::signals::Signals;
use crate::table::Table;
use crate::wait::WaitStrategy;
use crate::wake::Waker;

/// Number of submission queue entries. A turn with more submissions needs several system calls.
const SUBMISSIONS: u32 = 1024;
/// Number of completion queue entries. Further completions stay in the kernel until there is room.
const COMPLETIONS: u32 = 16_384;
/// Number of entries at the start of the ring's file table that are reserved for block files. The
/// other entries are for connections.
const BLOCK_FILES: u32 = 64;
/// Maximum number of entries in the ring's file table. Operations on further connections name the
/// file descriptor, which costs more CPU time per operation.
const REGISTERED_MAX: u32 = 65_536;
/// Maximum number of helper threads for each file.
const HELPERS_MAX: usize = 4;

/// The engine on io_uring. The thread that creates it also uses it.
pub struct Uring {
    ring: KernelRing,
    /// Monotonic time of the last turn, in ns.
    now_ns: u64,
    wait_strategy: WaitStrategy,
    pool: Pool,
    receive_buffers: ReceiveBuffers,
    connections: Table<Connection>,
    /// Number of connections that can be registered with the ring.
    connections_registered_max: u32,
    listeners: Vec<Option<Listener>>,
    /// Monotonic time in ns at which stopped listeners accept again: after a delay if the process
    /// has no free descriptors.
    accept_again_ns: Option<u64>,
    files: Vec<BlockFile>,
    /// For each file: true if it is registered with the ring, under its index.
    files_registered: Vec<bool>,
    /// Number of registered bytes from the start of the pool; `None` before the first block file.
    pool_registered: Option<usize>,
    transfers: Transfers<FileIo>,
    /// Connections whose receive found no free receive buffer, oldest first.
    starved: VecDeque<ConnId>,
    helpers: HelperThreads,
    connector: Connector,
    signals: Option<Signals>,
    /// Events of operations that ended without the kernel. The next turn returns them.
    ready: Vec<Event>,
    #[expect(clippy::vec_box, reason = "the kernel reads the header in place: it must not move")]
    spare_messages: Vec<Box<OutgoingMessage>>,
    /// Kept for reuse, empty between turns.
    completions: Vec<cqueue::Entry>,
    /// Kept for reuse, empty between turns.
    helper_results: Vec<(u64, IoDone)>,
}

impl Uring {
    /// Creates the engine.
    ///
    /// # Errors
    /// The error of the kernel if io_uring is not permitted, the kernel is older than 6.0, or
    /// memory or descriptors ran out. [`crate::probe`] explains the cause.
    pub fn new(options: &Options) -> io::Result<Uring> {
        let waker = Waker::new(EventfdFlags::empty())?;
        let ring = KernelRing::new(SUBMISSIONS, COMPLETIONS, waker.clone())?;
        let registered = options.descriptors_max().clamp(BLOCK_FILES, REGISTERED_MAX);
        ring.submitter().register_files_sparse(registered)?;
        let receive_buffers =
            ReceiveBuffers::register(&ring.submitter(), options.receive_buffers, options.receive_bytes)?;
        let signals = if options.signals { Some(Signals::catch(&waker)?) } else { None };
        clock::request_precise_timers();
        Ok(Uring {
            ring,
            now_ns: clock::now_ns(),
            wait_strategy: WaitStrategy::new(options.watch_ns),
            pool: Pool::new(options.pool_bytes),
            receive_buffers,
            connections: Table::new(),
            connections_registered_max: registered - BLOCK_FILES,
            listeners: Vec::new(),
            accept_again_ns: None,
            files: Vec::new(),
            files_registered: Vec::new(),
            pool_registered: None,
            transfers: Transfers::default(),
            starved: VecDeque::new(),
            connector: Connector::new(waker.clone()),
            helpers: HelperThreads::new(HELPERS_MAX, waker),
            signals,
            ready: Vec::new(),
            spare_messages: Vec::new(),
            completions: Vec::new(),
            helper_results: Vec::new(),
        })
    }

    /// Returns the pool of the engine's buffers.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Submits all queued operations, and waits for a completion, at most until the monotonic time
    /// `until_ns` (`u64::MAX`: without a timeout). The wait polls, sleeps, or both: see
    /// [`WaitStrategy`]. It may return early without a completion.
    fn wait(&mut self, until_ns: u64) -> io::Result<()> {
        let began_ns = clock::now_ns();
        let plan = self.wait_strategy.plan(began_ns, until_ns);
        if plan.poll_until_ns > began_ns {
            self.ring.enter(None)?;
            // A completion that is already present is not a success of polling: it is not recorded.
            if self.ring.has_completions() {
                return Ok(());
            }
            let is_found = self.poll_until(plan.poll_until_ns)?;
            self.wait_strategy.polled(is_found, clock::preemptions);
            if is_found {
                return Ok(());
            }
        }
        let sleep_from_ns = clock::now_ns();
        if plan.sleep_until_ns > sleep_from_ns {
            self.ring.enter(Some(plan.sleep_until_ns))?;
        }
        let woke_ns = clock::now_ns();
        if self.ring.has_completions() {
            return Ok(());
        }
        if plan.sleep_until_ns > sleep_from_ns && woke_ns >= plan.sleep_until_ns {
            self.wait_strategy.overslept(plan, woke_ns);
        }
        // For a precise timer, the sleep ends before `until_ns`, and the thread polls for the rest.
        if plan.sleep_until_ns < until_ns && woke_ns < until_ns && woke_ns >= plan.sleep_until_ns {
            self.poll_until(until_ns)?;
            self.wait_strategy.polled_clock(clock::now_ns() - woke_ns);
        }
        Ok(())
    }

    /// Polls for a completion without sleeping, at most until the monotonic time `until_ns`.
    /// Returns true if there is a completion.
    fn poll_until(&mut self, until_ns: u64) -> io::Result<bool> {
        loop {
            if self.ring.has_completions() {
                return Ok(true);
            }
            if clock::now_ns() >= until_ns {
                return Ok(false);
            }
            // This flag of the kernel may stay set although no completion appears. Each iteration
            // therefore checks the time first.
            if self.ring.has_deferred_completions() {
                self.ring.enter(None)?;
            } else {
                std::hint::spin_loop();
            }
        }
    }

    /// Handles all completions and appends their events.
    fn take_completions(&mut self, events: &mut Vec<Event>) {
        let mut completions = std::mem::take(&mut self.completions);
        self.ring.take_completions(&mut completions);
        for completion in completions.drain(..) {
            match Operation::of(completion.user_data()) {
                Some((Operation::Accept, index)) => self.accepted(index, &completion, events),
                Some((Operation::Receive, slot)) => self.received(slot, &completion, events),
                Some((Operation::Send, slot)) => self.sent(slot, completion.result(), events),
                Some((Operation::Transfer, key)) => self.transfer_completed(key, completion.result(), events),
                Some((Operation::Wake, _)) => self.woken(events),
                Some((Operation::Cancel, _)) | None => {}
            }
        }
        self.completions = completions;
    }

    /// Handles a wake-up of the eventfd: appends the results of helper threads, and the signals.
    fn woken(&mut self, events: &mut Vec<Event>) {
        self.helpers.take_results(&mut self.helper_results);
        events.extend(self.helper_results.drain(..).map(|(tag, done)| Event::Done { tag, done }));
        for (tag, result) in self.connector.take_results() {
            let result = result.map(|socket| self.add_connection(socket));
            events.push(Event::Connected { tag, result });
        }
        if let Some(signals) = &self.signals {
            signals.take(events);
        }
    }

    /// Queues the operations that are not started by the host: the backlog, the read of the
    /// eventfd, receives that lacked a buffer, and accepts after a delay. Provides new receive
    /// buffers.
    fn prepare(&mut self) {
        self.ring.push_backlog();
        self.ring.arm_wake();
        self.receive_buffers.refill(&self.pool);
        self.resume_starved();
        if self.accept_again_ns.is_some_and(|again_ns| again_ns <= self.now_ns) {
            self.accept_again_ns = None;
            self.arm_listeners();
        }
    }
}

impl Engine for Uring {
    fn name(&self) -> &'static str {
        "io_uring"
    }

    fn now_ns(&self) -> u64 {
        self.now_ns
    }

    fn buffer(&mut self, len: usize) -> Buffer {
        self.pool.buffer(len)
    }

    fn listen(&mut self, socket: OwnedFd) -> ListenerId {
        self.add_listener(socket)
    }

    fn unlisten(&mut self, listener: ListenerId) {
        self.remove_listener(listener);
    }

    fn adopt(&mut self, socket: OwnedFd) -> ConnId {
        self.add_connection(socket)
    }

    fn connect(&mut self, tag: u64, to: Endpoint, timeout_ns: u64) {
        self.connector.start(tag, to, timeout_ns);
    }

    fn receive(&mut self, conn: ConnId) {
        self.start_receive(conn);
    }

    fn receive_into(&mut self, conn: ConnId, buffer: Buffer, from: usize, to: usize) {
        self.start_receive_into(conn, buffer, from, to);
    }

    fn send(&mut self, conn: ConnId, message: Message) {
        self.start_send(conn, message);
    }

    fn close(&mut self, conn: ConnId) {
        self.start_close(conn);
    }

    fn open(&mut self, file: OwnedFd) -> FileId {
        self.add_file(file)
    }

    fn start(&mut self, tag: u64, io: Io) {
        self.start_io(tag, io);
    }

    fn allow_busy_poll(&mut self, worthwhile: bool) {
        self.wait_strategy.allow_busy_poll(worthwhile);
    }

    fn require_precise_timers(&mut self) {
        self.wait_strategy.require_precise_timers();
    }

    fn turn(&mut self, until_ns: Option<u64>, events: &mut Vec<Event>) -> io::Result<()> {
        let before = events.len();
        let until_ns = until_ns.unwrap_or(u64::MAX);
        loop {
            self.prepare();
            events.append(&mut self.ready);
            let is_due = until_ns != u64::MAX && clock::now_ns() >= until_ns;
            if events.len() == before && !is_due && !self.ring.has_backlog() {
                self.wait(until_ns.min(self.accept_again_ns.unwrap_or(u64::MAX)))?;
            } else {
                self.ring.enter(None)?;
            }
            self.now_ns = clock::now_ns();
            self.take_completions(events);
            if events.len() > before || !self.ready.is_empty() || self.now_ns >= until_ns {
                events.append(&mut self.ready);
                return Ok(());
            }
        }
    }
}

impl Drop for Uring {
    /// Closes all listeners and connections, and waits up to 5 s for pending operations, because
    /// the kernel may still access their memory. Leaks the memory if operations are pending after
    /// that. Closes the files, so that their locks are free.
    fn drop(&mut self) {
        for index in 0..self.listeners.len() {
            self.remove_listener(ListenerId(index as u32));
        }
        for slot in self.connections.slots() {
            if let Some((id, _)) = self.connections.at(slot) {
                self.start_close(id);
            }
        }
        self.ring.begin_drain();
        let (mut events, end_ns) = (Vec::new(), clock::now_ns() + DRAIN_NS);
        while self.ring.drain(end_ns) {
            self.take_completions(&mut events);
            events.clear();
        }
        if self.ring.pending() > 0 {
            self.transfers.leak();
            std::mem::forget(std::mem::replace(&mut self.connections, Table::new()));
            self.receive_buffers.leak();
            std::mem::forget(self.pool.clone());
        }
        // The kernel closes the files of a ring, and so releases their locks, only a moment after
        // the ring. Another server may open them at once.
        if let Err(error) = self.ring.submitter().unregister_files() {
            tracing::debug!(%error, "the files cannot be unregistered from io_uring");
        }
    }
}
