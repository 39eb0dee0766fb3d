//! Listeners and connections on io_uring.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use io_uring::squeue::Flags;
use io_uring::types::{Fd, Fixed};
use io_uring::{cqueue, opcode};
use rustix::net::Shutdown;

use super::kernel::Operation;
use super::receives::GROUP;
use super::{BLOCK_FILES, Uring};
use crate::buffer::Buffer;
use crate::engine::{ConnId, Event, ListenerId, Message};
use crate::outgoing::OutgoingMessage;
use crate::{clock, peer};

/// Delay in ns before connections are accepted again after the descriptors ran out: 0.1 s.
const ACCEPT_AGAIN_NS: u64 = 100_000_000;
/// Maximum size in bytes of one receive: 1 GiB.
const RECEIVE_BYTES_MAX: usize = 1 << 30;
/// `IORING_RECVSEND_POLL_FIRST` (io_uring_enter(2)): the kernel waits for bytes before the first
/// attempt.
const POLL_FIRST: u16 = 1;
/// Number of message descriptors kept for reuse.
const SPARE_MESSAGES_MAX: usize = 256;

/// A connection.
pub(super) struct Connection {
    socket: OwnedFd,
    is_registered: bool,
    receiving: Receiving,
    /// A receive is in the kernel.
    is_receive_pending: bool,
    /// The message in the kernel.
    sending: Option<Box<OutgoingMessage>>,
    is_closing: bool,
    is_broken: bool,
    /// The socket may hold bytes that the last receive left.
    has_more: bool,
}

enum Receiving {
    Nothing,
    Any,
    Into { buffer: Buffer, at: usize, to: usize },
}

/// A listening socket.
pub(super) struct Listener {
    socket: OwnedFd,
    /// A multishot accept is in the kernel.
    is_armed: bool,
    is_closing: bool,
}

/// Builds an operation on the socket of a connection, by its registered index or by its
/// descriptor.
macro_rules! on_socket {
    ($conn:expr, $slot:expr, $fd:ident => $build:expr) => {
        if $conn.is_registered {
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
            tracing::warn!(%error, "the mode of a listening socket cannot be set");
        }
        self.listeners.push(Some(Listener { socket, is_armed: false, is_closing: false }));
        self.arm_listeners();
        ListenerId((self.listeners.len() - 1) as u32)
    }

    pub(super) fn remove_listener(&mut self, listener: ListenerId) {
        let index = listener.0 as usize;
        let Some(Some(found)) = self.listeners.get_mut(index) else { return };
        if !found.is_armed {
            self.listeners[index] = None;
        } else if !found.is_closing {
            found.is_closing = true;
            self.cancel(Operation::Accept, listener.0);
        }
    }

    /// Starts a multishot accept on each listener without one.
    pub(super) fn arm_listeners(&mut self) {
        for index in 0..self.listeners.len() {
            let Some(listener) = self.listeners[index].as_mut().filter(|listener| !listener.is_armed) else { continue };
            listener.is_armed = true;
            let accept = opcode::AcceptMulti::new(Fd(listener.socket.as_raw_fd())).flags(libc::SOCK_CLOEXEC);
            self.ring.push(accept.build().user_data(Operation::Accept.user_data(index as u32)));
        }
    }

    pub(super) fn accepted(&mut self, index: u32, completion: &cqueue::Entry, events: &mut Vec<Event>) {
        let result = completion.result();
        // SAFETY: a result that is not negative is a new descriptor, which has no other owner.
        let socket = (result >= 0).then(|| unsafe { OwnedFd::from_raw_fd(result) });
        let Some(Some(listener)) = self.listeners.get_mut(index as usize) else { return };
        let is_closing = listener.is_closing;
        if !cqueue::more(completion.flags()) {
            listener.is_armed = false;
            if is_closing {
                self.listeners[index as usize] = None;
                return;
            }
            self.accept_later(result);
        }
        if let Some(socket) = socket.filter(|_| !is_closing) {
            let peer = peer::identify(socket.as_fd());
            let conn = self.add_connection(socket);
            events.push(Event::Accepted { listener: ListenerId(index), conn, peer });
        }
    }

    /// Schedules the next accept after the kernel ended one: at once, or after a delay if the error
    /// will persist.
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

    pub(super) fn add_connection(&mut self, socket: OwnedFd) -> ConnId {
        peer::prepare(socket.as_fd(), false);
        let conn = Connection {
            socket,
            is_registered: false,
            receiving: Receiving::Nothing,
            is_receive_pending: false,
            sending: None,
            is_closing: false,
            is_broken: false,
            has_more: true,
        };
        let id = self.connections.insert(conn);
        if id.slot < self.connections_registered_max
            && let Some(conn) = self.connections.get(id)
        {
            let descriptor = [conn.socket.as_raw_fd()];
            conn.is_registered =
                self.ring.submitter().register_files_update(BLOCK_FILES + id.slot, &descriptor).is_ok();
        }
        id
    }

    pub(super) fn start_receive(&mut self, id: ConnId) {
        let Some(conn) = self.connections.get(id).filter(|conn| !conn.is_closing) else { return };
        debug_assert!(matches!(conn.receiving, Receiving::Nothing), "one receive at a time");
        conn.receiving = Receiving::Any;
        self.push_receive(id);
    }

    pub(super) fn start_receive_into(&mut self, id: ConnId, buffer: Buffer, from: usize, to: usize) {
        let Some(conn) = self.connections.get(id).filter(|conn| !conn.is_closing) else { return };
        debug_assert!(matches!(conn.receiving, Receiving::Nothing), "one receive at a time");
        let to = to.min(buffer.len());
        if from >= to {
            self.ready.push(Event::Filled { conn: id, buffer, filled: to });
            return;
        }
        conn.receiving = Receiving::Into { buffer, at: from, to };
        // The bytes are most likely there: they are the rest of a message received before.
        conn.has_more = true;
        self.push_receive(id);
    }

    fn push_receive(&mut self, id: ConnId) {
        let Some(conn) = self.connections.get(id) else { return };
        let (to, len, flags) = match &mut conn.receiving {
            Receiving::Nothing => return,
            Receiving::Any => (std::ptr::null_mut(), 0, 0),
            Receiving::Into { buffer, at, to } => {
                let rest = &mut buffer[*at..*to];
                (rest.as_mut_ptr(), rest.len().min(RECEIVE_BYTES_MAX), libc::MSG_WAITALL)
            }
        };
        // If the last receive emptied the socket, the kernel need not try before it waits.
        let ioprio = if conn.has_more { 0 } else { POLL_FIRST };
        conn.is_receive_pending = true;
        let entry = on_socket!(conn, id.slot, fd => {
            opcode::Recv::new(fd, to, len as u32).ioprio(ioprio).flags(flags).buf_group(GROUP).build()
        });
        let entry = if to.is_null() { entry.flags(Flags::BUFFER_SELECT) } else { entry };
        self.ring.push(entry.user_data(Operation::Receive.user_data(id.slot)));
    }

    /// Starts receives again that found no buffer, at most as many as there are buffers.
    pub(super) fn resume_starved(&mut self) {
        for _ in 0..self.starved.len().min(self.receive_buffers.count()) {
            let Some(id) = self.starved.pop_front() else { return };
            if self.connections.get(id).is_some_and(|conn| !conn.is_closing) {
                self.push_receive(id);
            }
        }
    }

    pub(super) fn received(&mut self, slot: u32, completion: &cqueue::Entry, events: &mut Vec<Event>) {
        let chosen = cqueue::buffer_select(completion.flags()).and_then(|number| self.receive_buffers.take(number));
        let Some((id, conn)) = self.connections.at(slot) else { return };
        conn.is_receive_pending = false;
        conn.has_more = cqueue::sock_nonempty(completion.flags());
        if conn.is_closing {
            self.release_if_idle(slot);
            return;
        }
        let result = completion.result();
        match result {
            _ if result >= 0 => {}
            _ if -result == libc::ENOBUFS => {
                conn.has_more = true;
                self.starved.push_back(id);
                return;
            }
            _ if matches!(-result, libc::EINTR | libc::EAGAIN) => return self.push_receive(id),
            _ => return self.report_broken(id, events),
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
        let Some(conn) = self.connections.get(id).filter(|conn| !conn.is_closing) else { return };
        debug_assert!(conn.sending.is_none(), "one send at a time");
        let mut sending = self.spare_messages.pop().unwrap_or_else(OutgoingMessage::new);
        sending.load(message);
        if sending.is_sent() {
            self.ready.push(Event::Sent { conn: id, message: sending.unload() });
            return;
        }
        conn.sending = Some(sending);
        self.push_send(id);
    }

    fn push_send(&mut self, id: ConnId) {
        let Some(conn) = self.connections.get(id) else { return };
        let Some(sending) = &mut conn.sending else { return };
        let header = sending.header();
        let flags = (libc::MSG_NOSIGNAL | libc::MSG_WAITALL) as u32;
        let entry = on_socket!(conn, id.slot, fd => opcode::SendMsg::new(fd, header).flags(flags).build());
        self.ring.push(entry.user_data(Operation::Send.user_data(id.slot)));
    }

    pub(super) fn sent(&mut self, slot: u32, result: i32, events: &mut Vec<Event>) {
        let Some((id, conn)) = self.connections.at(slot) else { return };
        let Some(mut sending) = conn.sending.take() else { return };
        let again = matches!(-result, libc::EINTR | libc::EAGAIN);
        if result > 0 {
            sending.advance(result as usize);
        }
        if conn.is_closing || (result < 0 && !again) {
            sending.unload();
            self.keep_for_reuse(sending);
            if self.connections.get(id).is_some_and(|conn| conn.is_closing) {
                self.release_if_idle(slot);
            } else {
                self.report_broken(id, events);
            }
        } else if sending.is_sent() {
            events.push(Event::Sent { conn: id, message: sending.unload() });
            self.keep_for_reuse(sending);
        } else {
            conn.sending = Some(sending);
            self.push_send(id);
        }
    }

    fn keep_for_reuse(&mut self, message: Box<OutgoingMessage>) {
        if self.spare_messages.len() < SPARE_MESSAGES_MAX {
            self.spare_messages.push(message);
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

    pub(super) fn start_close(&mut self, id: ConnId) {
        let Some(conn) = self.connections.get(id).filter(|conn| !conn.is_closing) else { return };
        conn.is_closing = true;
        // The peer sees the end at once, even while operations are pending. A socket that is no
        // longer connected refuses the call.
        let _ = rustix::net::shutdown(&conn.socket, Shutdown::Both);
        let (receive, send) = (conn.is_receive_pending, conn.sending.is_some());
        if receive {
            self.cancel(Operation::Receive, id.slot);
        }
        if send {
            self.cancel(Operation::Send, id.slot);
        }
        self.ready
            .retain(|event| !matches!(event, Event::Sent { conn, .. } | Event::Filled { conn, .. } if *conn == id));
        self.release_if_idle(id.slot);
    }

    fn cancel(&mut self, operation: Operation, index: u32) {
        let cancel = opcode::AsyncCancel::new(operation.user_data(index)).build();
        self.ring.push(cancel.user_data(Operation::Cancel.user_data(index)));
    }

    /// Frees a closed connection once none of its operations is in the kernel.
    fn release_if_idle(&mut self, slot: u32) {
        let Some((_, conn)) = self.connections.at(slot) else { return };
        if !conn.is_closing || conn.is_receive_pending || conn.sending.is_some() {
            return;
        }
        if conn.is_registered
            && let Err(error) = self.ring.submitter().register_files_update(BLOCK_FILES + slot, &[-1])
        {
            tracing::error!(%error, "a closed connection cannot be removed from the file table of io_uring");
        }
        self.connections.remove(slot);
    }
}
