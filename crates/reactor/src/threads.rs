//! The engine without io_uring: epoll with non-blocking sockets, and helper threads for files.
//!
//! epoll is edge-triggered: a socket counts as ready until a call on it would block.

use std::collections::VecDeque;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::event::{EventfdFlags, Timespec, epoll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, Shutdown, SocketFlags, accept_with, recv};

use crate::buffer::{Buffer, Pool};
use crate::connector::Connector;
use crate::engine::{ConnId, Endpoint, Engine, Event, FileId, Io, IoDone, IoOp, ListenerId, Message};
use crate::files::BlockFile;
use crate::helpers::{HelperThreads, Job};
use crate::options::Options;
use crate::outgoing::OutgoingMessage;
use crate::signals::Signals;
use crate::table::Table;
use crate::wait::WaitStrategy;
use crate::wake::Waker;
use crate::{clock, peer};

/// Maximum number of events of one epoll_wait(2).
const EVENTS: usize = 256;
/// Maximum number of connections that a turn accepts from one listener.
const ACCEPTS_MAX: usize = 64;
/// Delay in ns before connections are accepted again after the descriptors ran out: 0.1 s.
const ACCEPT_AGAIN_NS: u64 = 100_000_000;
/// Number of message descriptors kept for reuse.
const SPARE_MESSAGES_MAX: usize = 256;

/// The engine on epoll and helper threads.
pub struct Threads {
    epoll: OwnedFd,
    now_ns: u64,
    wait_strategy: WaitStrategy,
    pool: Pool,
    receive_bytes: usize,
    connections: Table<Connection>,
    listeners: Vec<Option<Listener>>,
    accept_again_ns: Option<u64>,
    files: Vec<BlockFile>,
    helpers: HelperThreads,
    connector: Connector,
    signals: Option<Signals>,
    waker: Waker,
    /// Connections with a started operation or a socket that became ready.
    active: VecDeque<ConnId>,
    ready: Vec<Event>,
    #[expect(clippy::vec_box, reason = "connections take over the boxes")]
    spare_messages: Vec<Box<OutgoingMessage>>,
    helper_results: Vec<(u64, IoDone)>,
    /// The kernel has epoll_pwait2(2) (Linux 5.11), whose timeout is in ns.
    has_precise_wait: bool,
}

struct Connection {
    socket: OwnedFd,
    receiving: Receiving,
    sending: Option<Box<OutgoingMessage>>,
    is_readable: bool,
    is_writable: bool,
    /// The peer sends no more, or the connection is broken: epoll reports no further edge.
    is_hung_up: bool,
    is_broken: bool,
    /// The connection is in [`Threads::active`].
    is_active: bool,
}

enum Receiving {
    Nothing,
    Any,
    Into { buffer: Buffer, at: usize, to: usize },
}

struct Listener {
    socket: OwnedFd,
    is_readable: bool,
}

/// The object of an epoll event: the upper bits of its data. The lower 32 bits are its index.
const WAKE: u64 = 1 << 32;
const LISTENER: u64 = 2 << 32;
const CONNECTION: u64 = 3 << 32;

impl Threads {
    /// Creates the engine.
    ///
    /// # Errors
    /// The process has no descriptors left.
    pub fn new(options: &Options) -> io::Result<Threads> {
        options.descriptors_max();
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let waker = Waker::new(EventfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &waker, epoll::EventData::new_u64(WAKE), epoll::EventFlags::IN | epoll::EventFlags::ET)?;
        let signals = if options.signals { Some(Signals::catch(&waker)?) } else { None };
        clock::request_precise_timers();
        Ok(Threads {
            epoll,
            now_ns: clock::now_ns(),
            wait_strategy: WaitStrategy::new(options.watch_ns),
            pool: Pool::new(options.pool_bytes),
            receive_bytes: options.receive_bytes,
            connections: Table::new(),
            listeners: Vec::new(),
            accept_again_ns: None,
            files: Vec::new(),
            connector: Connector::new(waker.clone()),
            helpers: HelperThreads::new(options.threads.max(1), waker.clone()),
            signals,
            waker,
            active: VecDeque::new(),
            ready: Vec::new(),
            spare_messages: Vec::new(),
            helper_results: Vec::new(),
            has_precise_wait: true,
        })
    }

    /// Returns the pool of the engine's buffers.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    fn watch(&self, socket: &OwnedFd, number: u64, flags: epoll::EventFlags) {
        let data = epoll::EventData::new_u64(number);
        if let Err(error) = epoll::add(&self.epoll, socket, data, flags | epoll::EventFlags::ET) {
            tracing::error!(%error, "a socket cannot be added to epoll");
        }
    }

    fn start_receive(&mut self, id: ConnId, receiving: Receiving) {
        let Some(conn) = self.connections.get(id) else { return };
        debug_assert!(matches!(conn.receiving, Receiving::Nothing), "one receive at a time");
        conn.receiving = receiving;
        if conn.is_readable {
            self.activate(id);
        }
    }

    fn activate(&mut self, id: ConnId) {
        if let Some(conn) = self.connections.get(id)
            && !std::mem::replace(&mut conn.is_active, true)
        {
            self.active.push_back(id);
        }
    }

    /// Continues the operations of active connections, as far as they do not block.
    fn serve_active(&mut self, events: &mut Vec<Event>) {
        while let Some(id) = self.active.pop_front() {
            if let Some(conn) = self.connections.get(id) {
                conn.is_active = false;
            }
            self.try_send(id, events);
            self.try_receive(id, events);
        }
    }

    fn try_send(&mut self, id: ConnId, events: &mut Vec<Event>) {
        let Some(conn) = self.connections.get(id).filter(|conn| conn.is_writable) else { return };
        let Some(mut sending) = conn.sending.take() else { return };
        while !sending.is_sent() {
            let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
            // SAFETY: the header points to pieces of the message, which `sending` owns until after
            // the call.
            let sent = unsafe { libc::sendmsg(conn.socket.as_raw_fd(), sending.header(), flags) };
            if sent >= 0 {
                sending.advance(sent as usize);
                continue;
            }
            match io::Error::last_os_error().raw_os_error() {
                Some(libc::EINTR) => {}
                Some(libc::EAGAIN | libc::ENOBUFS) => {
                    conn.is_writable = false;
                    conn.sending = Some(sending);
                    return;
                }
                _ => {
                    sending.unload();
                    return self.report_broken(id, events);
                }
            }
        }
        events.push(Event::Sent { conn: id, message: sending.unload() });
        if self.spare_messages.len() < SPARE_MESSAGES_MAX {
            self.spare_messages.push(sending);
        }
    }

    fn try_receive(&mut self, id: ConnId, events: &mut Vec<Event>) {
        let (pool, receive_bytes) = (&self.pool, self.receive_bytes);
        let Some(conn) = self.connections.get(id) else { return };
        while conn.is_readable {
            let (mut buffer, at, to, is_any) = match std::mem::replace(&mut conn.receiving, Receiving::Nothing) {
                Receiving::Nothing => return,
                Receiving::Any => (pool.buffer(receive_bytes), 0, receive_bytes, true),
                Receiving::Into { buffer, at, to } => (buffer, at, to, false),
            };
            let received = recv(&conn.socket, &mut buffer[at..to], RecvFlags::DONTWAIT).map(|(bytes, _)| bytes);
            match received {
                Ok(bytes) => {
                    // A receive that fills less than its range has emptied the socket. The next
                    // bytes make another edge; the end of the stream does not.
                    conn.is_readable = at + bytes == to || conn.is_hung_up;
                    if is_any {
                        events.push(Event::Received { conn: id, buffer, len: bytes });
                    } else if bytes == 0 || at + bytes == to {
                        events.push(Event::Filled { conn: id, buffer, filled: at + bytes });
                    } else {
                        conn.receiving = Receiving::Into { buffer, at: at + bytes, to };
                    }
                    continue;
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => conn.is_readable = false,
                Err(_) => return self.report_broken(id, events),
            }
            conn.receiving = if is_any { Receiving::Any } else { Receiving::Into { buffer, at, to } };
        }
    }

    /// Reports once that a connection is unusable.
    fn report_broken(&mut self, id: ConnId, events: &mut Vec<Event>) {
        if let Some(conn) = self.connections.get(id)
            && !std::mem::replace(&mut conn.is_broken, true)
        {
            events.push(Event::Broken { conn: id });
        }
    }

    /// Accepts waiting connections, at most [`ACCEPTS_MAX`] of each listener.
    fn accept(&mut self, events: &mut Vec<Event>) {
        for index in 0..self.listeners.len() {
            for _ in 0..ACCEPTS_MAX {
                let Some(Some(listener)) = self
                    .listeners
                    .get_mut(index)
                    .filter(|listener| listener.as_ref().is_some_and(|listener| listener.is_readable))
                else {
                    break;
                };
                match accept_with(&listener.socket, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                    Ok(socket) => {
                        let peer = peer::identify(socket.as_fd());
                        let conn = self.adopt(socket);
                        events.push(Event::Accepted { listener: ListenerId(index as u32), conn, peer });
                    }
                    Err(Errno::AGAIN) => listener.is_readable = false,
                    Err(Errno::INTR | Errno::CONNABORTED | Errno::PERM | Errno::PROTO) => {}
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept connections; trying again in 0.1 s");
                        listener.is_readable = false;
                        self.accept_again_ns = Some(self.now_ns + ACCEPT_AGAIN_NS);
                    }
                }
            }
        }
    }

    /// Accepts again after the delay that followed a lack of descriptors.
    fn accept_again(&mut self) {
        if self.accept_again_ns.is_some_and(|again_ns| again_ns <= self.now_ns) {
            self.accept_again_ns = None;
            for listener in self.listeners.iter_mut().flatten() {
                listener.is_readable = true;
            }
        }
    }

    /// Returns true if a listener may have waiting connections.
    fn may_accept(&self) -> bool {
        self.listeners.iter().flatten().any(|listener| listener.is_readable)
    }

    /// Waits until an event or a time (`u64::MAX`: without a timeout; a past time: polls once).
    fn wait(&mut self, until_ns: u64, events: &mut Vec<Event>) -> io::Result<()> {
        let began_ns = clock::now_ns();
        let plan = self.wait_strategy.plan(began_ns, until_ns);
        if plan.poll_until_ns > began_ns {
            let is_found = self.poll_until(plan.poll_until_ns, events)?;
            self.wait_strategy.polled(is_found, clock::preemptions);
            if is_found {
                return Ok(());
            }
        }
        if self.sleep(plan.sleep_until_ns, events)? {
            return Ok(());
        }
        let woke_ns = clock::now_ns();
        if plan.sleep_until_ns > began_ns && woke_ns >= plan.sleep_until_ns {
            self.wait_strategy.overslept(plan, woke_ns);
        }
        if plan.sleep_until_ns < until_ns && (plan.sleep_until_ns..until_ns).contains(&woke_ns) {
            self.poll_until(until_ns, events)?;
            self.wait_strategy.polled_clock(clock::now_ns() - woke_ns);
        }
        Ok(())
    }

    /// Polls without sleeping until an event or the time. Returns true if there was an event.
    fn poll_until(&mut self, until_ns: u64, events: &mut Vec<Event>) -> io::Result<bool> {
        while clock::now_ns() < until_ns {
            if self.sleep(0, events)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Sleeps until an edge or a time (`u64::MAX`: without a timeout; a past time: polls once), and
    /// handles the edges. Returns true if there were any.
    fn sleep(&mut self, until_ns: u64, events: &mut Vec<Event>) -> io::Result<bool> {
        let mut edges = [MaybeUninit::<epoll::Event>::uninit(); EVENTS];
        let wait = (until_ns != u64::MAX).then(|| self.timeout(until_ns.saturating_sub(clock::now_ns())));
        let edges = match epoll::wait(&self.epoll, &mut edges, wait.as_ref()) {
            Ok((edges, _)) => edges,
            Err(Errno::INTR) => return Ok(false),
            Err(Errno::NOSYS | Errno::PERM) if self.has_precise_wait => {
                tracing::info!("timers have a resolution of 1 ms: epoll_pwait2 (Linux 5.11) is missing");
                self.has_precise_wait = false;
                return Ok(false);
            }
            Err(error) => return Err(error.into()),
        };
        let has_edges = !edges.is_empty();
        for edge in edges {
            let (number, flags) = (edge.data.u64(), edge.flags);
            let index = number as u32;
            match number - u64::from(index) {
                WAKE => self.woken(events),
                LISTENER => {
                    if let Some(Some(listener)) = self.listeners.get_mut(index as usize) {
                        listener.is_readable = true;
                    }
                }
                _ => self.connection_ready(index, flags),
            }
        }
        Ok(has_edges)
    }

    fn timeout(&self, wait_ns: u64) -> Timespec {
        // A resolution of 1 ms rounds up, so that no timer is early.
        let wait_ns = if self.has_precise_wait { wait_ns } else { wait_ns.next_multiple_of(1_000_000) };
        Timespec { tv_sec: (wait_ns / 1_000_000_000) as _, tv_nsec: (wait_ns % 1_000_000_000) as _ }
    }

    fn connection_ready(&mut self, slot: u32, flags: epoll::EventFlags) {
        use epoll::EventFlags as Flags;
        let Some((id, conn)) = self.connections.at(slot) else { return };
        let is_over = flags.intersects(Flags::HUP | Flags::ERR);
        conn.is_hung_up |= is_over || flags.contains(Flags::RDHUP);
        conn.is_readable |= conn.is_hung_up || flags.contains(Flags::IN);
        conn.is_writable |= is_over || flags.contains(Flags::OUT);
        self.activate(id);
    }

    /// Takes results of helper threads and signals.
    fn woken(&mut self, events: &mut Vec<Event>) {
        let mut count = [0; 8];
        // The read fails if the counter was read before.
        let _ = rustix::io::read(&self.waker, &mut count);
        self.helpers.take_results(&mut self.helper_results);
        events.extend(self.helper_results.drain(..).map(|(tag, done)| Event::Done { tag, done }));
        for (tag, result) in self.connector.take_results() {
            let result = result.map(|socket| self.adopt(socket));
            events.push(Event::Connected { tag, result });
        }
        if let Some(signals) = &self.signals {
            signals.take(events);
        }
    }
}

impl Engine for Threads {
    fn name(&self) -> &'static str {
        "threads"
    }

    fn now_ns(&self) -> u64 {
        self.now_ns
    }

    fn buffer(&mut self, len: usize) -> Buffer {
        self.pool.buffer(len)
    }

    fn listen(&mut self, socket: OwnedFd) -> ListenerId {
        if let Err(error) = rustix::io::ioctl_fionbio(&socket, true) {
            tracing::warn!(%error, "the mode of a listening socket cannot be set");
        }
        let index = self.listeners.len() as u32;
        self.watch(&socket, LISTENER | u64::from(index), epoll::EventFlags::IN);
        self.listeners.push(Some(Listener { socket, is_readable: true }));
        ListenerId(index)
    }

    fn unlisten(&mut self, listener: ListenerId) {
        if let Some(listener) = self.listeners.get_mut(listener.0 as usize).and_then(Option::take) {
            // Another process may share the socket, so closing it would not remove it from epoll.
            let _ = epoll::delete(&self.epoll, &listener.socket);
        }
    }

    fn adopt(&mut self, socket: OwnedFd) -> ConnId {
        peer::prepare(socket.as_fd(), true);
        let conn = Connection {
            socket,
            receiving: Receiving::Nothing,
            sending: None,
            is_readable: true,
            is_writable: true,
            is_hung_up: false,
            is_broken: false,
            is_active: false,
        };
        let id = self.connections.insert(conn);
        if let Some(conn) = self.connections.get(id) {
            use epoll::EventFlags as Flags;
            let data = epoll::EventData::new_u64(CONNECTION | u64::from(id.slot));
            let flags = Flags::IN | Flags::OUT | Flags::RDHUP | Flags::ET;
            if let Err(error) = epoll::add(&self.epoll, &conn.socket, data, flags) {
                tracing::error!(%error, "a connection cannot be added to epoll");
            }
        }
        id
    }

    fn connect(&mut self, tag: u64, to: Endpoint, timeout_ns: u64) {
        self.connector.start(tag, to, timeout_ns);
    }

    fn receive(&mut self, conn: ConnId) {
        self.start_receive(conn, Receiving::Any);
    }

    fn receive_into(&mut self, conn: ConnId, buffer: Buffer, from: usize, to: usize) {
        let to = to.min(buffer.len());
        if from >= to {
            self.ready.push(Event::Filled { conn, buffer, filled: to });
        } else {
            self.start_receive(conn, Receiving::Into { buffer, at: from, to });
        }
    }

    fn send(&mut self, id: ConnId, message: Message) {
        let Some(conn) = self.connections.get(id) else { return };
        debug_assert!(conn.sending.is_none(), "one send at a time");
        let mut sending = self.spare_messages.pop().unwrap_or_else(OutgoingMessage::new);
        sending.load(message);
        conn.sending = Some(sending);
        self.activate(id);
    }

    fn close(&mut self, id: ConnId) {
        let Some(conn) = self.connections.get(id) else { return };
        // A socket that is no longer connected refuses the call.
        let _ = rustix::net::shutdown(&conn.socket, Shutdown::Both);
        let _ = epoll::delete(&self.epoll, &conn.socket);
        self.connections.remove(id.slot);
        self.ready.retain(|event| !matches!(event, Event::Filled { conn, .. } if *conn == id));
    }

    fn open(&mut self, file: OwnedFd) -> FileId {
        self.files.push(BlockFile::new(file));
        FileId((self.files.len() - 1) as u32)
    }

    fn start(&mut self, tag: u64, mut io: Io) {
        let Some(file) = self.files.get(io.file.0 as usize) else {
            let done = IoDone { result: Err(libc::EBADF), buffer: io.buffer, extents: Vec::new(), missing: 0 };
            self.ready.push(Event::Done { tag, done });
            return;
        };
        let at = if io.op == IoOp::Read { file.read_cached(&mut io) } else { 0 };
        if io.op == IoOp::Read && at == io.length {
            let done = IoDone { result: Ok(()), buffer: io.buffer, extents: Vec::new(), missing: 0 };
            self.ready.push(Event::Done { tag, done });
        } else if matches!(io.op, IoOp::Read | IoOp::Write { .. }) && file.in_memory {
            let done = file.perform(io, at);
            self.ready.push(Event::Done { tag, done });
        } else {
            self.helpers.start(Job { tag, file: file.clone(), io, at });
        }
    }

    fn allow_busy_poll(&mut self, worthwhile: bool) {
        self.wait_strategy.allow_busy_poll(worthwhile);
    }

    fn require_precise_timers(&mut self) {
        self.wait_strategy.require_precise_timers();
    }

    fn turn(&mut self, until_ns: Option<u64>, events: &mut Vec<Event>) -> io::Result<()> {
        let until_ns = until_ns.unwrap_or(u64::MAX);
        let before = events.len();
        loop {
            events.append(&mut self.ready);
            self.serve_active(events);
            let is_idle = events.len() == before && !self.may_accept();
            let wait_until_ns = if is_idle { until_ns.min(self.accept_again_ns.unwrap_or(u64::MAX)) } else { 0 };
            self.wait(wait_until_ns, events)?;
            self.now_ns = clock::now_ns();
            self.accept_again();
            self.serve_active(events);
            self.accept(events);
            if events.len() > before || self.now_ns >= until_ns {
                return Ok(());
            }
        }
    }
}
