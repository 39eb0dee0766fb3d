//! Listeners and connections on io_uring.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use io_uring::squeue::Flags;
use io_uring::types::{Fd, Fixed};
use io_uring::{cqueue, opcode};
use rustix::net::Shutdown;

use super::receives::GROUP;
use super::{BLOCK_FILES, Of, Uring};
use crate::buffer::Buffer;
use crate::engine::{ConnId, Event, ListenerId, Message};
use crate::sending::Sending;
use crate::{clock, peer};

/// When the system had no descriptor left, accepting is tried again after so long.
const ACCEPT_AGAIN_NS: u64 = 100_000_000;
/// The most bytes of one receive.
const RECEIVE_BYTES_MAX: usize = 1 << 30;
/// `IORING_RECVSEND_POLL_FIRST` (io_uring_enter(2)): waits for bytes before it tries to receive.
const POLL_FIRST: u16 = 1;
/// Messages' lists of pieces that are kept for the next ones.
const SPARE_SENDINGS_MAX: usize = 256;

/// A connection.
pub(super) struct Conn {
    socket: OwnedFd,
    registered: bool,
    receiving: Receiving,
    /// The kernel has a receive.
    receive_under_way: bool,
    /// The message that the kernel has.
    sending: Option<Box<Sending>>,
    closing: bool,
    broken: bool,
    /// There were more bytes than the last receive took.
    more: bool,
}

enum Receiving {
    Nothing,
    Any,
    Into { buffer: Buffer, at: usize, to: usize },
}

/// A listening socket.
pub(super) struct Listener {
    socket: OwnedFd,
    armed: bool,
    closing: bool,
}

/// Builds an operation on the socket of a connection: on its registered place, or on its
/// descriptor.
macro_rules! on_socket {
    ($conn:expr, $slot:expr, $fd:ident => $build:expr) => {
        if $conn.registered {
            let $fd = Fixed(BLOCK_FILES + $slot);
            $build
        } else {
            let $fd = Fd($conn.socket.as_raw_fd());
            $build
        }
    };
}

impl Uring {
    pub(super) fn add_listener(&mut self, socket: OwnedFd) -> ListenerId {
        if let Err(error) = rustix::io::ioctl_fionbio(&socket, false) {
            tracing::warn!(%error, "this cannot be listened to");
        }
        self.listeners.push(Some(Listener { socket, armed: false, closing: false }));
        self.arm_listeners();
        ListenerId((self.listeners.len() - 1) as u32)
    }

    pub(super) fn remove_listener(&mut self, listener: ListenerId) {
        let place = listener.0 as usize;
        let Some(Some(found)) = self.listeners.get_mut(place) else { return };
        if !found.armed {
            self.listeners[place] = None;
        } else if !found.closing {
            found.closing = true;
            self.cancel(Of::Accept, listener.0);
        }
    }

    /// Has the kernel accept, wherever it does not.
    pub(super) fn arm_listeners(&mut self) {
        for place in 0..self.listeners.len() {
            let Some(listener) = self.listeners[place].as_mut().filter(|listener| !listener.armed) else { continue };
            listener.armed = true;
            let accept = opcode::AcceptMulti::new(Fd(listener.socket.as_raw_fd())).flags(libc::SOCK_CLOEXEC);
            self.push(accept.build().user_data(Of::Accept.number(place as u32)));
        }
    }

    pub(super) fn accepted(&mut self, place: u32, completion: &cqueue::Entry, events: &mut Vec<Event>) {
        let result = completion.result();
        // SAFETY: a result that is not negative is a descriptor that the kernel has made for us,
        // and nobody else has it.
        let socket = (result >= 0).then(|| unsafe { OwnedFd::from_raw_fd(result) });
        let Some(Some(listener)) = self.listeners.get_mut(place as usize) else { return };
        let closing = listener.closing;
        if !cqueue::more(completion.flags()) {
            listener.armed = false;
            if closing {
                self.listeners[place as usize] = None;
                return;
            }
            self.accept_later(result);
        }
        if let Some(socket) = socket.filter(|_| !closing) {
            let who = peer::identify(socket.as_fd());
            let conn = self.add_conn(socket);
            events.push(Event::Accepted { listener: ListenerId(place), conn, peer: who });
        }
    }

    /// The kernel has ceased to accept: it begins again at once, or after a while if there is a
    /// reason to wait.
    fn accept_later(&mut self, result: i32) {
        let again_ns = match -result {
            libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM | libc::EINVAL | libc::ENOTSOCK => {
                tracing::warn!(cause = %io::Error::from_raw_os_error(-result), "cannot accept connections; trying again in 0.1 s");
                clock::now_ns() + ACCEPT_AGAIN_NS
            }
            _ => 0,
        };
        self.accept_again_ns = Some(self.accept_again_ns.map_or(again_ns, |earlier| earlier.min(again_ns)));
    }

    pub(super) fn add_conn(&mut self, socket: OwnedFd) -> ConnId {
        peer::prepare(socket.as_fd(), false);
        let conn = Conn {
            socket,
            registered: false,
            receiving: Receiving::Nothing,
            receive_under_way: false,
            sending: None,
            closing: false,
            broken: false,
            more: true,
        };
        let id = self.conns.insert(conn);
        if id.slot < self.conns_registered_max
            && let Some(conn) = self.conns.get(id)
        {
            let descriptor = [conn.socket.as_raw_fd()];
            conn.registered = self.ring.submitter().register_files_update(BLOCK_FILES + id.slot, &descriptor).is_ok();
        }
        id
    }

    pub(super) fn start_receive(&mut self, id: ConnId) {
        let Some(conn) = self.conns.get(id).filter(|conn| !conn.closing) else { return };
        debug_assert!(matches!(conn.receiving, Receiving::Nothing), "one receive at a time");
        conn.receiving = Receiving::Any;
        self.push_receive(id);
    }

    pub(super) fn start_receive_into(&mut self, id: ConnId, buffer: Buffer, from: usize, to: usize) {
        let Some(conn) = self.conns.get(id).filter(|conn| !conn.closing) else { return };
        debug_assert!(matches!(conn.receiving, Receiving::Nothing), "one receive at a time");
        let to = to.min(buffer.len());
        if from >= to {
            self.ready.push(Event::Filled { conn: id, buffer, filled: to });
            return;
        }
        conn.receiving = Receiving::Into { buffer, at: from, to };
        // Most likely the bytes are there: they are the rest of what was received before.
        conn.more = true;
        self.push_receive(id);
    }

    fn push_receive(&mut self, id: ConnId) {
        let Some(conn) = self.conns.get(id) else { return };
        let (to, len, flags) = match &mut conn.receiving {
            Receiving::Nothing => return,
            Receiving::Any => (std::ptr::null_mut(), 0, 0),
            Receiving::Into { buffer, at, to } => {
                let rest = &mut buffer[*at..*to];
                (rest.as_mut_ptr(), rest.len().min(RECEIVE_BYTES_MAX), libc::MSG_WAITALL)
            }
        };
        // Where the last receive emptied the socket there is nothing yet: the kernel need not try
        // before it waits.
        let ioprio = if conn.more { 0 } else { POLL_FIRST };
        conn.receive_under_way = true;
        let entry = on_socket!(conn, id.slot, fd => {
            opcode::Recv::new(fd, to, len as u32).ioprio(ioprio).flags(flags).buf_group(GROUP).build()
        });
        let entry = if to.is_null() { entry.flags(Flags::BUFFER_SELECT) } else { entry };
        self.push(entry.user_data(Of::Receive.number(id.slot)));
    }

    /// Starts receives that found no buffer again, as many as there are buffers.
    pub(super) fn feed_starved(&mut self) {
        for _ in 0..self.starved.len().min(self.receives.count()) {
            let Some(id) = self.starved.pop_front() else { return };
            if self.conns.get(id).is_some_and(|conn| !conn.closing) {
                self.push_receive(id);
            }
        }
    }

    pub(super) fn received(&mut self, slot: u32, completion: &cqueue::Entry, events: &mut Vec<Event>) {
        let chosen = cqueue::buffer_select(completion.flags()).and_then(|number| self.receives.take(number));
        let Some((id, conn)) = self.conns.at(slot) else { return };
        conn.receive_under_way = false;
        conn.more = cqueue::sock_nonempty(completion.flags());
        if conn.closing {
            self.release_if_idle(slot);
            return;
        }
        let result = completion.result();
        match result {
            _ if result >= 0 => {}
            _ if -result == libc::ENOBUFS => {
                conn.more = true;
                self.starved.push_back(id);
                return;
            }
            _ if matches!(-result, libc::EINTR | libc::EAGAIN) => return self.push_receive(id),
            _ => return self.broken(id, events),
        }
        let len = result as usize;
        match std::mem::replace(&mut conn.receiving, Receiving::Nothing) {
            Receiving::Into { buffer, at, to } if len > 0 && at + len < to => {
                conn.receiving = Receiving::Into { buffer, at: at + len, to };
                self.push_receive(id);
            }
            Receiving::Into { buffer, at, .. } => {
                events.push(Event::Filled { conn: id, buffer, filled: at + len });
            }
            Receiving::Any | Receiving::Nothing => {
                // At the end of the stream the kernel chooses no buffer.
                let buffer = chosen.unwrap_or_else(|| self.pool.buffer(1));
                debug_assert!(len <= buffer.len());
                events.push(Event::Received { conn: id, buffer, len });
            }
        }
    }

    pub(super) fn start_send(&mut self, id: ConnId, message: Message) {
        let Some(conn) = self.conns.get(id).filter(|conn| !conn.closing) else { return };
        debug_assert!(conn.sending.is_none(), "one send at a time");
        let mut sending = self.spare_sendings.pop().unwrap_or_else(Sending::new);
        sending.load(message);
        if sending.is_sent() {
            self.ready.push(Event::Sent { conn: id, message: sending.unload() });
            return;
        }
        conn.sending = Some(sending);
        self.push_send(id);
    }

    fn push_send(&mut self, id: ConnId) {
        let Some(conn) = self.conns.get(id) else { return };
        let Some(sending) = &mut conn.sending else { return };
        let header = sending.header();
        let flags = (libc::MSG_NOSIGNAL | libc::MSG_WAITALL) as u32;
        let entry = on_socket!(conn, id.slot, fd => opcode::SendMsg::new(fd, header).flags(flags).build());
        self.push(entry.user_data(Of::Send.number(id.slot)));
    }

    pub(super) fn sent(&mut self, slot: u32, result: i32, events: &mut Vec<Event>) {
        let Some((id, conn)) = self.conns.at(slot) else { return };
        let Some(mut sending) = conn.sending.take() else { return };
        let again = matches!(-result, libc::EINTR | libc::EAGAIN);
        if result > 0 {
            sending.advance(result as usize);
        }
        if conn.closing || (result < 0 && !again) {
            sending.unload();
            self.keep_sending(sending);
            if self.conns.get(id).is_some_and(|conn| conn.closing) {
                self.release_if_idle(slot);
            } else {
                self.broken(id, events);
            }
        } else if sending.is_sent() {
            events.push(Event::Sent { conn: id, message: sending.unload() });
            self.keep_sending(sending);
        } else {
            conn.sending = Some(sending);
            self.push_send(id);
        }
    }

    fn keep_sending(&mut self, sending: Box<Sending>) {
        if self.spare_sendings.len() < SPARE_SENDINGS_MAX {
            self.spare_sendings.push(sending);
        }
    }

    /// Tells once that a connection is of no use any more.
    fn broken(&mut self, id: ConnId, events: &mut Vec<Event>) {
        if let Some(conn) = self.conns.get(id)
            && !std::mem::replace(&mut conn.broken, true)
        {
            events.push(Event::Broken { conn: id });
        }
    }

    pub(super) fn start_close(&mut self, id: ConnId) {
        let Some(conn) = self.conns.get(id).filter(|conn| !conn.closing) else { return };
        conn.closing = true;
        // The other side learns of it now, even if something is under way. What is no socket, or
        // not connected any more, needs none of it.
        let _ = rustix::net::shutdown(&conn.socket, Shutdown::Both);
        let (receive, send) = (conn.receive_under_way, conn.sending.is_some());
        if receive {
            self.cancel(Of::Receive, id.slot);
        }
        if send {
            self.cancel(Of::Send, id.slot);
        }
        self.ready
            .retain(|event| !matches!(event, Event::Sent { conn, .. } | Event::Filled { conn, .. } if *conn == id));
        self.release_if_idle(id.slot);
    }

    fn cancel(&mut self, of: Of, place: u32) {
        self.push(opcode::AsyncCancel::new(of.number(place)).build().user_data(Of::Cancel.number(place)));
    }

    /// Frees a closed connection once the kernel has nothing of it any more.
    fn release_if_idle(&mut self, slot: u32) {
        let Some((_, conn)) = self.conns.at(slot) else { return };
        if !conn.closing || conn.receive_under_way || conn.sending.is_some() {
            return;
        }
        if conn.registered
            && let Err(error) = self.ring.submitter().register_files_update(BLOCK_FILES + slot, &[-1])
        {
            tracing::error!(%error, "a connection stays registered");
        }
        self.conns.remove(slot);
    }
}
