//! The engine on io_uring: one system call a turn hands over all that was started and waits for
//! what ends.
//!
//! - Sockets and block files are registered, and so is the pool once a block file is there (then
//!   its pages are pinned).
//! - A receive names no buffer: the kernel takes one from a ring when bytes are there
//!   ([`Receives`]).
//! - A message is one `sendmsg` of all its parts, continued where the socket took less.
//! - What io_uring cannot do without blocking (discards, block status) goes to helper threads.
//! - A connection that is closed keeps its place until the kernel has given back all that was under
//!   way.

mod block;
mod receives;
mod sockets;

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use io_uring::squeue::Entry;
use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode};
use rustix::event::EventfdFlags;
use slab::Slab;

use self::block::Flight;
use self::receives::Receives;
use self::sockets::{Conn, Listener};
use crate::buffer::{Buffer, Pool};
use crate::clock;
use crate::engine::{ConnId, Engine, Event, FileId, Io, IoDone, ListenerId, Message};
use crate::files::BlockFile;
use crate::helpers::{self, Helpers};
use crate::options::Options;
use crate::sending::Sending;
use crate::signals::Signals;
use crate::table::Table;
use crate::waiting::Waiting;

/// Submissions that a turn gathers; more are handed over in between.
const SUBMISSIONS: u32 = 1024;
/// Completions that the kernel has room for before it has to set some aside.
const COMPLETIONS: u32 = 16_384;
/// The first registered files are block files, the others connections.
const BLOCK_FILES: u32 = 64;
/// The most files that are registered. Connections beyond are used by their descriptors, which
/// costs a little more an operation.
const REGISTERED_MAX: u32 = 65_536;
/// Threads a file for what would block.
const HELPERS_MAX: usize = 4;
/// How long the end of an engine waits for what the kernel still has under way.
const END_NS: u64 = 5_000_000_000;

/// The engine on io_uring. It is made by the thread that turns it.
pub struct Uring {
    ring: IoUring,
    now_ns: u64,
    waiting: Waiting,
    pool: Pool,
    receives: Receives,
    conns: Table<Conn>,
    /// How many connections can be registered.
    conns_registered_max: u32,
    listeners: Vec<Option<Listener>>,
    /// When listeners that found no descriptor try again.
    accept_again_ns: Option<u64>,
    files: Vec<BlockFile>,
    /// Which of them the ring knows by their place.
    files_registered: Vec<bool>,
    /// How many bytes of the pool, from its beginning, are registered; none before the first block
    /// file.
    pool_registered: Option<usize>,
    flights: Slab<Flight>,
    /// Connections whose receive found no buffer.
    starved: VecDeque<ConnId>,
    helpers: Helpers,
    signals: Option<Signals>,
    wake: Arc<OwnedFd>,
    /// Where the kernel writes the count of `wake` to.
    wake_count: Box<u64>,
    wake_armed: bool,
    /// Submissions that found no room, in order.
    backlog: VecDeque<Entry>,
    /// Operations that the kernel, or the backlog, has.
    under_way: usize,
    /// What is known without the kernel: told by the next turn.
    ready: Vec<Event>,
    #[expect(clippy::vec_box, reason = "the kernel reads the header where it is: it must not move")]
    spare_sendings: Vec<Box<Sending>>,
    completions: Vec<cqueue::Entry>,
    helped: Vec<(u64, IoDone)>,
}

/// What a completion is of: the upper 8 bits of its number. The place of it is in the lower 32.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    Accept = 1,
    Receive = 2,
    Send = 3,
    Wake = 4,
    File = 5,
    Cancel = 6,
}

impl Of {
    const ALL: [Of; 6] = [Of::Accept, Of::Receive, Of::Send, Of::Wake, Of::File, Of::Cancel];

    fn number(self, place: u32) -> u64 {
        (self as u64) << 56 | u64::from(place)
    }

    fn read(number: u64) -> Option<(Of, u32)> {
        let of = Of::ALL.get(((number >> 56) as usize).checked_sub(1)?)?;
        Some((*of, number as u32))
    }
}

impl Uring {
    /// Makes the ring.
    ///
    /// # Errors
    /// When io_uring is forbidden or lacks something (Linux 6.0 has all that is needed): see
    /// [`crate::probe`].
    pub fn new(options: &Options) -> io::Result<Uring> {
        let ring = build_ring()?;
        if !ring.params().is_feature_ext_arg() || !ring.params().is_feature_nodrop() {
            return Err(io::Error::from_raw_os_error(libc::ENOSYS));
        }
        let registered = options.descriptors_max().clamp(BLOCK_FILES, REGISTERED_MAX);
        ring.submitter().register_files_sparse(registered)?;
        let receives = Receives::register(&ring.submitter(), options.receive_buffers, options.receive_bytes)?;
        let wake = helpers::waker(EventfdFlags::empty())?;
        let signals = if options.signals { Some(Signals::catch(&wake)?) } else { None };
        clock::want_exact_timers();
        Ok(Uring {
            ring,
            now_ns: clock::now_ns(),
            waiting: Waiting::new(options.watch_ns),
            pool: Pool::new(options.pool_bytes),
            receives,
            conns: Table::new(),
            conns_registered_max: registered - BLOCK_FILES,
            listeners: Vec::new(),
            accept_again_ns: None,
            files: Vec::new(),
            files_registered: Vec::new(),
            pool_registered: None,
            flights: Slab::new(),
            starved: VecDeque::new(),
            helpers: Helpers::new(HELPERS_MAX, wake.clone()),
            signals,
            wake,
            wake_count: Box::new(0),
            wake_armed: false,
            backlog: VecDeque::new(),
            under_way: 0,
            ready: Vec::new(),
            spare_sendings: Vec::new(),
            completions: Vec::new(),
            helped: Vec::new(),
        })
    }

    /// The pool that its buffers come from.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Queues an operation for the kernel.
    fn push(&mut self, entry: Entry) {
        self.under_way += 1;
        if !self.backlog.is_empty() || !self.try_push(&entry) {
            self.backlog.push_back(entry);
        }
    }

    fn try_push(&mut self, entry: &Entry) -> bool {
        for _ in 0..2 {
            // SAFETY: what an entry points to lives until its completion has come: it belongs to a
            // connection, a flight, the receive ring, or is `wake_count`; none of them is given
            // away before, and an engine that ends waits for them.
            if unsafe { self.ring.submission().push(entry) }.is_ok() {
                return true;
            }
            // The queue is full: hand it over. If the kernel takes nothing at present, the entry
            // waits until completions were taken.
            if self.ring.submit().is_err() {
                return false;
            }
        }
        false
    }

    fn push_backlog(&mut self) {
        while let Some(entry) = self.backlog.pop_front() {
            if !self.try_push(&entry) {
                self.backlog.push_front(entry);
                return;
            }
        }
    }

    /// Has the kernel watch the eventfd.
    fn arm_wake(&mut self) {
        if !self.wake_armed {
            self.wake_armed = true;
            let count = (&raw mut *self.wake_count).cast::<u8>();
            let entry = opcode::Read::new(Fd(self.wake.as_raw_fd()), count, 8).build();
            self.push(entry.user_data(Of::Wake.number(0)));
        }
    }

    /// Hands over what is queued and, if there is a time to wait until, waits for a completion.
    fn enter(&mut self, wait_until_ns: Option<u64>) -> io::Result<()> {
        let entered = match wait_until_ns {
            None => {
                let queue = self.ring.submission();
                let nothing_to_do = queue.is_empty() && !queue.taskrun() && !queue.cq_overflow();
                drop(queue);
                if nothing_to_do {
                    return Ok(());
                }
                self.ring.submit()
            }
            Some(u64::MAX) => self.ring.submit_and_wait(1),
            Some(until_ns) => {
                let wait = Timespec::from(Duration::from_nanos(until_ns.saturating_sub(clock::now_ns())));
                self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&wait))
            }
        };
        match entered {
            Ok(_) => Ok(()),
            // The time has come, a signal came, or completions have to be taken first.
            Err(error)
                if matches!(error.raw_os_error(), Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN)) =>
            {
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Hands over what is queued and waits until a completion is there, or the time has come.
    fn wait(&mut self, until_ns: u64) -> io::Result<()> {
        let began_ns = clock::now_ns();
        let plan = self.waiting.plan(began_ns, until_ns);
        if plan.watch_until_ns > began_ns {
            self.enter(None)?;
            // What is there at the first look would have been there without watching.
            if !self.ring.completion().is_empty() {
                return Ok(());
            }
            let came = self.watch_until(plan.watch_until_ns)?;
            self.waiting.watched(came, clock::preemptions);
            if came {
                return Ok(());
            }
        }
        let asleep_ns = clock::now_ns();
        if plan.sleep_until_ns > asleep_ns {
            self.enter(Some(plan.sleep_until_ns))?;
        }
        let woke_ns = clock::now_ns();
        if !self.ring.completion().is_empty() {
            return Ok(());
        }
        if plan.sleep_until_ns > asleep_ns && woke_ns >= plan.sleep_until_ns {
            self.waiting.overslept(plan, woke_ns);
        }
        if plan.sleep_until_ns < until_ns && woke_ns < until_ns && woke_ns >= plan.sleep_until_ns {
            self.watch_until(until_ns)?;
            self.waiting.watched_clock(clock::now_ns() - woke_ns);
        }
        Ok(())
    }

    /// Looks, without sleeping, until a completion is there or the time has come; answers which.
    fn watch_until(&mut self, until_ns: u64) -> io::Result<bool> {
        loop {
            if !self.ring.completion().is_empty() {
                return Ok(true);
            }
            if clock::now_ns() >= until_ns {
                return Ok(false);
            }
            let queue = self.ring.submission();
            let has_work = queue.taskrun() || queue.cq_overflow();
            drop(queue);
            // The mark may stay when there is no work any more: it is no reason to forget the time.
            if has_work {
                self.enter(None)?;
            } else {
                std::hint::spin_loop();
            }
        }
    }

    /// Takes what has ended.
    fn take_completions(&mut self, events: &mut Vec<Event>) {
        let mut completions = std::mem::take(&mut self.completions);
        completions.extend(self.ring.completion());
        for completion in completions.drain(..) {
            if !cqueue::more(completion.flags()) {
                self.under_way -= 1;
            }
            match Of::read(completion.user_data()) {
                Some((Of::Accept, place)) => self.accepted(place, &completion, events),
                Some((Of::Receive, slot)) => self.received(slot, &completion, events),
                Some((Of::Send, slot)) => self.sent(slot, completion.result(), events),
                Some((Of::File, key)) => self.flight_ended(key, completion.result(), events),
                Some((Of::Wake, _)) => {
                    self.wake_armed = false;
                    self.woken(events);
                }
                Some((Of::Cancel, _)) | None => {}
            }
        }
        self.completions = completions;
    }

    /// Helper threads are done with something, or a signal came.
    fn woken(&mut self, events: &mut Vec<Event>) {
        self.helpers.take_done(&mut self.helped);
        events.extend(self.helped.drain(..).map(|(tag, done)| Event::Done { tag, done }));
        if let Some(signals) = &self.signals {
            signals.tell(events);
        }
    }

    /// What must be queued before the kernel is entered.
    fn prepare(&mut self) {
        self.push_backlog();
        self.arm_wake();
        self.receives.refill(&self.pool);
        self.feed_starved();
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
        self.add_conn(socket)
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
        self.waiting.watch(worthwhile);
    }

    fn require_precise_timers(&mut self) {
        self.waiting.require_precise_timers();
    }

    fn turn(&mut self, until_ns: Option<u64>, events: &mut Vec<Event>) -> io::Result<()> {
        let before = events.len();
        loop {
            self.prepare();
            events.append(&mut self.ready);
            let until_ns = until_ns.unwrap_or(u64::MAX);
            let come = until_ns != u64::MAX && clock::now_ns() >= until_ns;
            let wait = events.len() == before && !come && self.backlog.is_empty();
            let until_or_again_ns = until_ns.min(self.accept_again_ns.unwrap_or(u64::MAX));
            if wait {
                self.wait(until_or_again_ns)?;
            } else {
                self.enter(None)?;
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
    /// The kernel may still write into buffers: they are freed once it has given them back.
    fn drop(&mut self) {
        for place in 0..self.listeners.len() {
            self.remove_listener(ListenerId(place as u32));
        }
        for slot in self.conns.slots() {
            if let Some((id, _)) = self.conns.at(slot) {
                self.start_close(id);
            }
        }
        if self.wake_armed {
            helpers::wake(&self.wake);
        }
        let mut unheard = Vec::new();
        let end_ns = clock::now_ns() + END_NS;
        while self.under_way > 0 && clock::now_ns() < end_ns {
            self.push_backlog();
            if self.enter(Some(end_ns)).is_err() {
                break;
            }
            self.take_completions(&mut unheard);
            unheard.clear();
        }
        if self.under_way > 0 {
            tracing::warn!(operations = self.under_way, "the kernel still has I/O under way: its memory is not freed");
            std::mem::forget(std::mem::replace(&mut self.flights, Slab::new()));
            std::mem::forget(std::mem::replace(&mut self.conns, Table::new()));
            self.receives.leave();
            std::mem::forget(self.pool.clone());
            std::mem::forget(std::mem::take(&mut self.wake_count));
        }
    }
}

/// A ring with as many of the modes that make it cheap as this kernel knows: completions are made
/// when the thread asks for them (6.1), by it alone (6.0), without interrupting it (5.19).
fn build_ring() -> io::Result<IoUring> {
    let builder = || {
        let mut builder = IoUring::builder();
        builder.dontfork().setup_clamp().setup_cqsize(COMPLETIONS);
        builder
    };
    let mut deferred = builder();
    deferred.setup_single_issuer().setup_defer_taskrun().setup_taskrun_flag().setup_submit_all();
    let mut cooperative = builder();
    cooperative.setup_coop_taskrun().setup_taskrun_flag().setup_submit_all();
    let mut refused = None;
    for builder in [deferred, cooperative, builder()] {
        match builder.build(SUBMISSIONS) {
            Ok(ring) => return Ok(ring),
            // A mode that the kernel does not know; anything else would be refused again.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => refused = Some(error),
            Err(error) => return Err(error),
        }
    }
    Err(refused.unwrap_or_else(|| io::ErrorKind::Unsupported.into()))
}
