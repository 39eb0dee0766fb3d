//! The engine without io_uring: epoll and non-blocking sockets, threads for files.
//!
//! Sockets are watched for edges: what is ready stays noted as ready until a call says that it
//! would wait.

use std::collections::VecDeque;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, Timespec, epoll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, Shutdown, SocketFlags, accept_with, recv};

use crate::buffer::{Buffer, Pool};
use crate::engine::{ConnId, Engine, Event, FileId, Io, IoDone, IoOp, ListenerId, Message};
use crate::files::BlockFile;
use crate::helpers::{self, Helpers, Job};
use crate::options::Options;
use crate::sending::Sending;
use crate::signals::Signals;
use crate::table::Table;
use crate::waiting::Waiting;
use crate::{clock, peer};

/// What epoll tells at once.
const EVENTS: usize = 256;
/// Connections that are accepted a turn, of one listener.
const ACCEPTS_MAX: usize = 64;
/// When the system had no descriptor left, accepting is tried again after so long.
const ACCEPT_AGAIN_NS: u64 = 100_000_000;
/// Messages' lists of pieces that are kept for the next ones.
const SPARE_SENDINGS_MAX: usize = 256;

/// The engine without io_uring.
pub struct Threads {
    epoll: OwnedFd,
    now_ns: u64,
    waiting: Waiting,
    pool: Pool,
    receive_bytes: usize,
    conns: Table<Conn>,
    listeners: Vec<Option<Listener>>,
    accept_again_ns: Option<u64>,
    files: Vec<BlockFile>,
    helpers: Helpers,
    signals: Option<Signals>,
    wake: Arc<OwnedFd>,
    /// Connections that may have something to do: whoever starts something, or whose socket became
    /// ready.
    active: VecDeque<ConnId>,
    ready: Vec<Event>,
    #[expect(clippy::vec_box, reason = "a connection keeps its box, not a copy")]
    spare_sendings: Vec<Box<Sending>>,
    helped: Vec<(u64, IoDone)>,
    /// Whether `epoll_pwait2` (Linux 5.11) is there, which takes ns.
    exact_wait: bool,
}

struct Conn {
    socket: OwnedFd,
    receiving: Receiving,
    sending: Option<Box<Sending>>,
    readable: bool,
    writable: bool,
    /// The other side will send no more, or the connection is broken: there is no further edge.
    hung_up: bool,
    broken: bool,
    /// It is in `active`.
    active: bool,
}

enum Receiving {
    Nothing,
    Any,
    Into { buffer: Buffer, at: usize, to: usize },
}

struct Listener {
    socket: OwnedFd,
    readable: bool,
}

/// Whose event it is: the upper bits of its number.
const WAKE: u64 = 1 << 32;
const LISTENER: u64 = 2 << 32;
const CONN: u64 = 3 << 32;

impl Threads {
    /// Makes it.
    ///
    /// # Errors
    /// When the system gives no descriptor.
    pub fn new(options: &Options) -> io::Result<Threads> {
        options.descriptors_max();
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let wake = helpers::waker(EventfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &wake, epoll::EventData::new_u64(WAKE), epoll::EventFlags::IN | epoll::EventFlags::ET)?;
        let signals = if options.signals { Some(Signals::catch(&wake)?) } else { None };
        clock::want_exact_timers();
        Ok(Threads {
            epoll,
            now_ns: clock::now_ns(),
            waiting: Waiting::new(options.watch_ns),
            pool: Pool::new(options.pool_bytes),
            receive_bytes: options.receive_bytes,
            conns: Table::new(),
            listeners: Vec::new(),
            accept_again_ns: None,
            files: Vec::new(),
            helpers: Helpers::new(options.threads.max(1), wake.clone()),
            signals,
            wake,
            active: VecDeque::new(),
            ready: Vec::new(),
            spare_sendings: Vec::new(),
            helped: Vec::new(),
            exact_wait: true,
        })
    }

    /// The pool that its buffers come from.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    fn watch(&self, socket: &OwnedFd, number: u64, flags: epoll::EventFlags) {
        let data = epoll::EventData::new_u64(number);
        if let Err(error) = epoll::add(&self.epoll, socket, data, flags | epoll::EventFlags::ET) {
            tracing::error!(%error, "a socket cannot be watched");
        }
    }

    fn start_receive(&mut self, id: ConnId, receiving: Receiving) {
        let Some(conn) = self.conns.get(id) else { return };
        debug_assert!(matches!(conn.receiving, Receiving::Nothing), "one receive at a time");
        conn.receiving = receiving;
        if conn.readable {
            self.activate(id);
        }
    }

    fn activate(&mut self, id: ConnId) {
        if let Some(conn) = self.conns.get(id)
            && !std::mem::replace(&mut conn.active, true)
        {
            self.active.push_back(id);
        }
    }

    /// Does what can be done for connections without waiting.
    fn serve_active(&mut self, events: &mut Vec<Event>) {
        while let Some(id) = self.active.pop_front() {
            if let Some(conn) = self.conns.get(id) {
                conn.active = false;
            }
            self.try_send(id, events);
            self.try_receive(id, events);
        }
    }

    fn try_send(&mut self, id: ConnId, events: &mut Vec<Event>) {
        let Some(conn) = self.conns.get(id).filter(|conn| conn.writable) else { return };
        let Some(mut sending) = conn.sending.take() else { return };
        while !sending.is_sent() {
            let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
            // SAFETY: the header points to pieces of the message, which `sending` owns, and the
            // call is over when it returns.
            let sent = unsafe { libc::sendmsg(conn.socket.as_raw_fd(), sending.header(), flags) };
            if sent >= 0 {
                sending.advance(sent as usize);
                continue;
            }
            match io::Error::last_os_error().raw_os_error() {
                Some(libc::EINTR) => {}
                Some(libc::EAGAIN | libc::ENOBUFS) => {
                    conn.writable = false;
                    conn.sending = Some(sending);
                    return;
                }
                _ => {
                    sending.unload();
                    return self.broken(id, events);
                }
            }
        }
        events.push(Event::Sent { conn: id, message: sending.unload() });
        if self.spare_sendings.len() < SPARE_SENDINGS_MAX {
            self.spare_sendings.push(sending);
        }
    }

    fn try_receive(&mut self, id: ConnId, events: &mut Vec<Event>) {
        let (pool, receive_bytes) = (&self.pool, self.receive_bytes);
        let Some(conn) = self.conns.get(id) else { return };
        while conn.readable {
            let (mut buffer, at, to, any) = match std::mem::replace(&mut conn.receiving, Receiving::Nothing) {
                Receiving::Nothing => return,
                Receiving::Any => (pool.buffer(receive_bytes), 0, receive_bytes, true),
                Receiving::Into { buffer, at, to } => (buffer, at, to, false),
            };
            let got = recv(&conn.socket, &mut buffer[at..to], RecvFlags::DONTWAIT).map(|(got, _)| got);
            match got {
                Ok(got) => {
                    // A receive that is not filled has emptied the socket; the next bytes are
                    // another edge, but an end is none.
                    conn.readable = at + got == to || conn.hung_up;
                    if any {
                        events.push(Event::Received { conn: id, buffer, len: got });
                    } else if got == 0 || at + got == to {
                        events.push(Event::Filled { conn: id, buffer, filled: at + got });
                    } else {
                        conn.receiving = Receiving::Into { buffer, at: at + got, to };
                    }
                    continue;
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => conn.readable = false,
                Err(_) => return self.broken(id, events),
            }
            conn.receiving = if any { Receiving::Any } else { Receiving::Into { buffer, at, to } };
        }
    }

    fn broken(&mut self, id: ConnId, events: &mut Vec<Event>) {
        if let Some(conn) = self.conns.get(id)
            && !std::mem::replace(&mut conn.broken, true)
        {
            events.push(Event::Broken { conn: id });
        }
    }

    /// Accepts what waits, a bounded number.
    fn accept(&mut self, events: &mut Vec<Event>) {
        for place in 0..self.listeners.len() {
            for _ in 0..ACCEPTS_MAX {
                let Some(Some(listener)) = self
                    .listeners
                    .get_mut(place)
                    .filter(|listener| listener.as_ref().is_some_and(|listener| listener.readable))
                else {
                    break;
                };
                match accept_with(&listener.socket, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                    Ok(socket) => {
                        let who = peer::identify(socket.as_fd());
                        let conn = self.adopt(socket);
                        events.push(Event::Accepted { listener: ListenerId(place as u32), conn, peer: who });
                    }
                    Err(Errno::AGAIN) => listener.readable = false,
                    Err(Errno::INTR | Errno::CONNABORTED | Errno::PERM | Errno::PROTO) => {}
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept connections; trying again in 0.1 s");
                        listener.readable = false;
                        self.accept_again_ns = Some(self.now_ns + ACCEPT_AGAIN_NS);
                    }
                }
            }
        }
    }

    /// Tries listeners again that found no descriptor, once it is time.
    fn accept_again(&mut self) {
        if self.accept_again_ns.is_some_and(|again_ns| again_ns <= self.now_ns) {
            self.accept_again_ns = None;
            for listener in self.listeners.iter_mut().flatten() {
                listener.readable = true;
            }
        }
    }

    fn may_accept(&self) -> bool {
        self.listeners.iter().flatten().any(|listener| listener.readable)
    }

    /// Waits until something happens or a time has come (`u64::MAX`: never; one that has passed:
    /// only looks).
    fn wait(&mut self, until_ns: u64, events: &mut Vec<Event>) -> io::Result<()> {
        let began_ns = clock::now_ns();
        let plan = self.waiting.plan(began_ns, until_ns);
        if plan.watch_until_ns > began_ns {
            let came = self.look_until(plan.watch_until_ns, events)?;
            self.waiting.watched(came, clock::preemptions);
            if came {
                return Ok(());
            }
        }
        if self.sleep(plan.sleep_until_ns, events)? {
            return Ok(());
        }
        let woke_ns = clock::now_ns();
        if plan.sleep_until_ns > began_ns && woke_ns >= plan.sleep_until_ns {
            self.waiting.overslept(plan, woke_ns);
        }
        if plan.sleep_until_ns < until_ns && (plan.sleep_until_ns..until_ns).contains(&woke_ns) {
            self.look_until(until_ns, events)?;
            self.waiting.watched_clock(clock::now_ns() - woke_ns);
        }
        Ok(())
    }

    /// Looks, without sleeping, until something happens or the time has come; answers which.
    fn look_until(&mut self, until_ns: u64, events: &mut Vec<Event>) -> io::Result<bool> {
        while clock::now_ns() < until_ns {
            if self.sleep(0, events)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Sleeps until there are edges or a time has come (`u64::MAX`: never; one that has passed:
    /// only looks), and notes them; answers whether there are any.
    fn sleep(&mut self, until_ns: u64, events: &mut Vec<Event>) -> io::Result<bool> {
        let mut edges = [MaybeUninit::<epoll::Event>::uninit(); EVENTS];
        let wait = (until_ns != u64::MAX).then(|| self.timeout(until_ns.saturating_sub(clock::now_ns())));
        let edges = match epoll::wait(&self.epoll, &mut edges, wait.as_ref()) {
            Ok((edges, _)) => edges,
            Err(Errno::INTR) => return Ok(false),
            Err(Errno::NOSYS | Errno::PERM) if self.exact_wait => {
                tracing::info!("timers are exact to 1 ms only: epoll_pwait2 (Linux 5.11) is missing");
                self.exact_wait = false;
                return Ok(false);
            }
            Err(error) => return Err(error.into()),
        };
        let happened = !edges.is_empty();
        for edge in edges {
            let (number, flags) = (edge.data.u64(), edge.flags);
            let place = number as u32;
            match number - u64::from(place) {
                WAKE => self.woken(events),
                LISTENER => {
                    if let Some(Some(listener)) = self.listeners.get_mut(place as usize) {
                        listener.readable = true;
                    }
                }
                _ => self.conn_ready(place, flags),
            }
        }
        Ok(happened)
    }

    fn timeout(&self, wait_ns: u64) -> Timespec {
        // Never early: a timer that knows ms only is rounded up.
        let wait_ns = if self.exact_wait { wait_ns } else { wait_ns.next_multiple_of(1_000_000) };
        Timespec { tv_sec: (wait_ns / 1_000_000_000) as _, tv_nsec: (wait_ns % 1_000_000_000) as _ }
    }

    fn conn_ready(&mut self, slot: u32, flags: epoll::EventFlags) {
        use epoll::EventFlags as Flags;
        let Some((id, conn)) = self.conns.at(slot) else { return };
        let over = flags.intersects(Flags::HUP | Flags::ERR);
        conn.hung_up |= over || flags.contains(Flags::RDHUP);
        conn.readable |= conn.hung_up || flags.contains(Flags::IN);
        conn.writable |= over || flags.contains(Flags::OUT);
        self.activate(id);
    }

    /// Helper threads are done with something, or a signal came.
    fn woken(&mut self, events: &mut Vec<Event>) {
        let mut count = [0; 8];
        // Nothing to read means that it was read before.
        let _ = rustix::io::read(&self.wake, &mut count);
        self.helpers.take_done(&mut self.helped);
        events.extend(self.helped.drain(..).map(|(tag, done)| Event::Done { tag, done }));
        if let Some(signals) = &self.signals {
            signals.tell(events);
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
            tracing::warn!(%error, "this cannot be listened to");
        }
        let place = self.listeners.len() as u32;
        self.watch(&socket, LISTENER | u64::from(place), epoll::EventFlags::IN);
        self.listeners.push(Some(Listener { socket, readable: true }));
        ListenerId(place)
    }

    fn unlisten(&mut self, listener: ListenerId) {
        if let Some(listener) = self.listeners.get_mut(listener.0 as usize).and_then(Option::take) {
            // Another process may have the socket, too: closing it would not end the watch.
            let _ = epoll::delete(&self.epoll, &listener.socket);
        }
    }

    fn adopt(&mut self, socket: OwnedFd) -> ConnId {
        peer::prepare(socket.as_fd(), true);
        let conn = Conn {
            socket,
            receiving: Receiving::Nothing,
            sending: None,
            readable: true,
            writable: true,
            hung_up: false,
            broken: false,
            active: false,
        };
        let id = self.conns.insert(conn);
        if let Some(conn) = self.conns.get(id) {
            use epoll::EventFlags as Flags;
            let data = epoll::EventData::new_u64(CONN | u64::from(id.slot));
            let flags = Flags::IN | Flags::OUT | Flags::RDHUP | Flags::ET;
            if let Err(error) = epoll::add(&self.epoll, &conn.socket, data, flags) {
                tracing::error!(%error, "a connection cannot be watched");
            }
        }
        id
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
        let Some(conn) = self.conns.get(id) else { return };
        debug_assert!(conn.sending.is_none(), "one send at a time");
        let mut sending = self.spare_sendings.pop().unwrap_or_else(Sending::new);
        sending.load(message);
        conn.sending = Some(sending);
        self.activate(id);
    }

    fn close(&mut self, id: ConnId) {
        let Some(conn) = self.conns.get(id) else { return };
        // What is no socket, or not connected any more, needs none of it.
        let _ = rustix::net::shutdown(&conn.socket, Shutdown::Both);
        let _ = epoll::delete(&self.epoll, &conn.socket);
        self.conns.remove(id.slot);
        self.ready.retain(|event| !matches!(event, Event::Filled { conn, .. } if *conn == id));
    }

    fn open(&mut self, file: OwnedFd) -> FileId {
        self.files.push(BlockFile::new(file));
        FileId((self.files.len() - 1) as u32)
    }

    fn start(&mut self, tag: u64, mut io: Io) {
        let Some(file) = self.files.get(io.file.0 as usize) else {
            let done = IoDone { result: Err(libc::EBADF), buffer: io.buffer, extents: Vec::new() };
            self.ready.push(Event::Done { tag, done });
            return;
        };
        let at = if io.op == IoOp::Read { file.read_cached(&mut io) } else { 0 };
        if io.op == IoOp::Read && at == io.length {
            let done = IoDone { result: Ok(()), buffer: io.buffer, extents: Vec::new() };
            self.ready.push(Event::Done { tag, done });
        } else if matches!(io.op, IoOp::Read | IoOp::Write { .. }) && file.in_memory {
            let done = file.perform(io, at);
            self.ready.push(Event::Done { tag, done });
        } else {
            self.helpers.start(Job { tag, file: file.clone(), io, at });
        }
    }

    fn allow_busy_poll(&mut self, worthwhile: bool) {
        self.waiting.watch(worthwhile);
    }

    fn require_precise_timers(&mut self) {
        self.waiting.require_precise_timers();
    }

    fn turn(&mut self, until_ns: Option<u64>, events: &mut Vec<Event>) -> io::Result<()> {
        let until_ns = until_ns.unwrap_or(u64::MAX);
        let before = events.len();
        loop {
            events.append(&mut self.ready);
            self.serve_active(events);
            let idle = events.len() == before && !self.may_accept();
            let wait_until_ns = if idle { until_ns.min(self.accept_again_ns.unwrap_or(u64::MAX)) } else { 0 };
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
