//! One turn of the event loop.
//!
//! A turn calls its parts in this order; each may assume what the earlier ones did:
//!
//! 1. `catch_up_devices`: emulated drives are at the current time, before requests reach them.
//! 2. `handle_event` for each event since the last turn: received bytes become requests, which wait
//!    in the elevators, so that an elevator sees all of them before it decides.
//! 3. `expire_connections`: connections whose deadline has passed, or that stall while others wait
//!    for memory, are closed, and their memory is free.
//! 4. `update_watch`: the shares of the tenants up to now are sampled.
//! 5. `run_devices`: the elevators decide once, and completions become replies in the connections'
//!    messages. Nothing has been sent yet.
//! 6. `admit_memory_waiters`: connections that waited for memory go on with what the steps 3 and 5
//!    released. Their requests run in the next turn, which begins at once: their devices have
//!    something to do ([`Device::next_wake_ns`](hoistway_blockdev::Device::next_wake_ns)).
//! 7. `send_messages`: each connection with output sends it in one message.
//! 8. `continue_drain`: a shutdown goes on when the last connection is closed, or its deadline has
//!    passed.
//!
//! Nothing here blocks, reads a clock or opens a file, except for the wait in `Engine::turn` before
//! step 1.

use std::io;

use hoistway_blockdev::DeviceId;
use hoistway_qos::Completion;
use hoistway_reactor::{ConnId, Engine, Event, IoDone, ListenerId, Peer, Signal};

use crate::admin::connection::{ADMIN_CONNECTIONS_MAX, AdminConnection, AdminEvent};
use crate::close_reason::CloseReason;
use crate::connection::Connection;
use crate::drain_state::DrainState;
use crate::lists::MemoryQueue;
use crate::outgoing;
use crate::purpose::Purpose;
use crate::server::{Server, Turn};
use crate::state::ServerState;
use crate::ticket::{TicketOwner, owner_of};

/// The interval of checks for stalled clients while others wait for memory, in ns.
const STALL_CHECK_NS: u64 = 1_000_000_000;

impl<E: Engine> Server<E> {
    /// Runs turns until one needs an action of the caller, or the server has shut down.
    ///
    /// # Errors
    /// When the engine fails.
    pub fn run(&mut self) -> io::Result<Turn> {
        loop {
            match self.turn()? {
                Turn::Running => {}
                other => return Ok(other),
            }
        }
    }

    /// Waits for events and handles them.
    ///
    /// # Errors
    /// When the engine fails.
    pub fn turn(&mut self) -> io::Result<Turn> {
        if let Some(turn) = self.next_result() {
            return Ok(turn);
        }
        let until = self.next_wake();
        let allow_busy_poll = self.state.reply_history.end_turn(self.state.now_ns);
        self.state.engine.allow_busy_poll(allow_busy_poll);
        let mut events = std::mem::take(&mut self.events);
        self.state.engine.turn(until, &mut events)?;
        self.state.now_ns = self.state.engine.now_ns();
        self.catch_up_devices();
        for event in events.drain(..) {
            let turn = self.handle_event(event);
            self.pending_turns.extend(turn);
        }
        self.events = events;
        if let Some((every_ns, next_ns)) = &mut self.alarm
            && *next_ns <= self.state.now_ns
        {
            *next_ns = self.state.now_ns.saturating_add(*every_ns);
            self.pending_turns.push_back(Turn::Alarm);
        }
        if std::mem::take(&mut self.admin.reload_requested) {
            self.pending_turns.push_back(Turn::Reload);
        }
        self.expire_connections();
        self.update_watch();
        self.run_devices();
        self.admit_memory_waiters();
        self.send_messages();
        self.continue_drain();
        Ok(self.next_result().unwrap_or(Turn::Running))
    }

    /// Returns the next result that the caller must act on: each call of [`Server::turn`] returns
    /// one, and the end of the server follows all others.
    fn next_result(&mut self) -> Option<Turn> {
        let ended = || self.state.drain.ended().map(|clean| Turn::Ended { clean });
        self.pending_turns.pop_front().or_else(ended)
    }

    /// Returns the time in ns at which the server must act even without an event.
    fn next_wake(&self) -> Option<u64> {
        let devices = self.state.devices.iter().filter_map(|device| device.next_wake_ns()).min();
        let drain = self.state.drain.deadline_ns();
        // A wait for memory may be a wait for a client that has stalled.
        let stall = (!self.state.memory_waiters.is_empty()).then(|| self.later(STALL_CHECK_NS));
        let alarm = self.alarm.map(|(_, next_ns)| next_ns);
        let watch = self.is_watched().then(|| self.watch.due_ns());
        [devices, drain, stall, alarm, watch, self.state.deadlines.first()].into_iter().flatten().min()
    }

    /// Handles an event. Returns the result of the turn if the caller must act.
    fn handle_event(&mut self, event: Event) -> Option<Turn> {
        match self.pass_to_device(event)? {
            Event::Accepted { listener, conn, peer } => self.accept(listener, conn, peer),
            Event::Received { conn, buffer, len } => {
                if let Some(connection) = self.connections.get_mut(conn) {
                    connection.receive_bytes(&buffer[..len], &mut self.state);
                    drop(buffer);
                    self.advance_connection(conn);
                } else {
                    self.handle_admin_event(conn, AdminEvent::Received(&buffer[..len]));
                }
            }
            Event::Filled { conn, buffer, filled } => {
                if let Some(connection) = self.connections.get_mut(conn) {
                    connection.payload_filled(buffer, filled, &mut self.state);
                    self.advance_connection(conn);
                }
            }
            Event::Sent { conn, message } => {
                outgoing::recycle(&mut self.state.spare, message);
                if let Some(connection) = self.connections.get_mut(conn) {
                    connection.message_sent(&mut self.state);
                    self.advance_connection(conn);
                } else {
                    self.handle_admin_event(conn, AdminEvent::Sent);
                }
            }
            Event::Broken { conn } => {
                if let Some(connection) = self.connections.get_mut(conn) {
                    connection.transport_failed();
                    self.advance_connection(conn);
                } else {
                    self.close_admin_connection(conn);
                }
            }
            Event::Done { tag, done } => self.complete_io(tag, done),
            Event::Connected { .. } => {}
            Event::Signal(Signal::Terminate) => {
                // The first signal during a shutdown that began without a signal does not end the
                // server at once.
                if std::mem::replace(&mut self.terminate_received, true) || self.state.drain == DrainState::Serving {
                    self.drain();
                }
                return Some(Turn::Draining);
            }
            Event::Signal(Signal::Reload) => return Some(Turn::Reload),
            Event::Signal(Signal::Child) => return Some(Turn::Child),
        }
        None
    }

    /// Passes an event of a connection that a device has opened to this device. Returns all other
    /// events.
    fn pass_to_device(&mut self, event: Event) -> Option<Event> {
        let ServerState { devices, engine, now_ns, .. } = &mut self.state;
        let device = match event {
            Event::Connected { tag, .. } => devices.get_mut(DeviceId::of_tag(tag).index()),
            Event::Received { conn, .. }
            | Event::Filled { conn, .. }
            | Event::Sent { conn, .. }
            | Event::Broken { conn }
                if self.connections.get_mut(conn).is_none() =>
            {
                devices.iter_mut().find(|device| device.owns(conn))
            }
            _ => None,
        };
        match device {
            Some(device) => device.connection_event(engine, event, *now_ns),
            None => return Some(event),
        }
        None
    }

    fn accept(&mut self, listener: ListenerId, id: ConnId, peer: Peer) {
        let purpose = self.listeners.iter().find(|(known, _)| *known == listener).map(|(_, purpose)| *purpose);
        match purpose {
            Some(Purpose::Nbd) => self.accept_client(id, peer),
            Some(purpose) if self.has_room_for(purpose) => {
                tracing::debug!(?purpose, from = %peer.address, process = ?peer.process, "connected");
                let admin =
                    if purpose == Purpose::Control { AdminConnection::control() } else { AdminConnection::metrics() };
                self.admin_connections.insert(id, admin);
                self.handle_admin_event(id, AdminEvent::Accepted);
            }
            // The listener was closed meanwhile, or there are too many connections.
            _ => self.state.engine.close(id),
        }
    }

    /// Returns true if another control or metrics connection may be accepted. The oldest metrics
    /// connection is closed for a new one: slow clients cannot keep others out.
    fn has_room_for(&mut self, purpose: Purpose) -> bool {
        let same = self.admin_connections.iter().filter(|(_, admin)| admin.purpose() == purpose);
        if same.clone().count() < ADMIN_CONNECTIONS_MAX {
            return true;
        }
        // The deadline follows the last answer, or the connection's beginning.
        let oldest = same.min_by_key(|(id, _)| self.state.deadlines.get(*id)).map(|(id, _)| id);
        match oldest.filter(|_| purpose == Purpose::Metrics) {
            Some(oldest) => {
                self.close_admin_connection(oldest);
                true
            }
            None => false,
        }
    }

    fn accept_client(&mut self, id: ConnId, peer: Peer) {
        if self.connections.len() >= self.state.budget.bounds().connections_max {
            if !std::mem::replace(&mut self.limit_logged, true) {
                let connections = self.connections.len();
                tracing::warn!(connections, "connection limit reached: further clients are refused until some leave");
            }
            return self.state.engine.close(id);
        }
        self.accepted_total += 1;
        let number = self.accepted_total;
        tracing::debug!(client = number, from = %peer.address, process = ?peer.process, "connected");
        self.connections.insert(id, Connection::accept(id, number, peer, &mut self.state));
        self.admin.ids_by_number.insert(number, id);
        self.advance_connection(id);
    }

    /// Advances a connection after an event, and removes it if it is closed.
    pub(crate) fn advance_connection(&mut self, id: ConnId) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        connection.advance(&mut self.state);
        if connection.close_reason().is_some() {
            self.remove_connection(id);
        }
    }

    /// Closes a connection and drops its requests.
    fn remove_connection(&mut self, id: ConnId) {
        let Some(connection) = self.connections.remove(id) else { return };
        self.admin.ids_by_number.remove(&connection.number);
        connection.release_resources(&mut self.state);
        self.state.engine.close(id);
        self.limit_logged = false;
        if !self.retired.is_empty() {
            self.forget_retired();
        }
    }

    /// Closes connections whose deadline has passed, and those that stall while others wait for
    /// memory.
    fn expire_connections(&mut self) {
        while let Some(id) = self.state.deadlines.take_expired(self.state.now_ns) {
            if let Some(connection) = self.connections.get_mut(id) {
                connection.expire();
            }
            self.advance_connection(id);
            self.close_admin_connection(id);
        }
        if self.state.memory_waiters.is_empty() || self.state.now_ns < self.stall_check_ns {
            return;
        }
        self.stall_check_ns = self.later(STALL_CHECK_NS);
        for id in self.connections.ids() {
            if let Some(connection) = self.connections.get_mut(id)
                && connection.is_stalled(self.state.budget.bounds(), self.state.now_ns)
            {
                connection.close(CloseReason::Stalled);
                self.advance_connection(id);
            }
        }
    }

    /// Samples the shares of each tenant once a second if a control or metrics socket exists.
    fn update_watch(&mut self) {
        if self.is_watched() && self.watch.due_ns() <= self.state.now_ns {
            let mut watch = std::mem::take(&mut self.watch);
            watch.tick(self.state.now_ns, self);
            self.watch = watch;
        }
    }

    fn is_watched(&self) -> bool {
        self.listeners.iter().any(|(_, purpose)| *purpose != Purpose::Nbd)
    }

    /// Passes the completion of block I/O to its device.
    fn complete_io(&mut self, tag: u64, done: IoDone) {
        let ServerState { devices, engine, now_ns, .. } = &mut self.state;
        if let Some(device) = devices.get_mut(DeviceId::of_tag(tag).index()) {
            device.io_done(engine, tag, done, *now_ns);
        }
    }

    /// Advances emulated drives to the current time before new requests reach them.
    fn catch_up_devices(&mut self) {
        let ServerState { devices, engine, now_ns, .. } = &mut self.state;
        for device in devices {
            device.catch_up(engine, *now_ns);
        }
    }

    /// Runs the queues of all devices and passes their completions to the connections.
    fn run_devices(&mut self) {
        let ServerState { devices, engine, now_ns, .. } = &mut self.state;
        for device in devices {
            device.run(engine, *now_ns, &mut self.completions);
        }
        let mut completions = std::mem::take(&mut self.completions);
        for Completion { ticket, result } in completions.drain(..) {
            match owner_of(ticket) {
                TicketOwner::Flush { device } => self.complete_flush(device, result.is_ok()),
                TicketOwner::Request { connection, key } => {
                    if let Some(connection) = self.connections.get_by_ticket(connection) {
                        connection.complete(key, result, &mut self.state);
                    }
                }
            }
        }
        self.completions = completions;
    }

    /// Resumes connections that wait for memory: in each queue from the first until one still has
    /// to wait.
    fn admit_memory_waiters(&mut self) {
        // The first of a tenant's queue may move to the common queue, and back.
        let tenants = self.state.memory_waiters.tenants();
        for queue in tenants.into_iter().map(MemoryQueue::OfTenant).chain([MemoryQueue::Common]) {
            while let Some(id) = self.state.memory_waiters.first(queue) {
                if !self.resume_first(id, queue) {
                    break;
                }
                self.state.memory_waiters.remove_first(queue);
                self.requeue_or_advance(id);
            }
        }
    }

    /// Resumes the first connection of a queue. Returns true if it no longer waits in that queue.
    fn resume_first(&mut self, id: ConnId, queue: MemoryQueue) -> bool {
        let Some(connection) = self.connections.get_mut(id) else { return true };
        connection.resume(&mut self.state);
        connection.queue() != Some(queue)
    }

    /// Advances a connection that left a queue for memory; it may enter the other queue.
    fn requeue_or_advance(&mut self, id: ConnId) {
        if let Some(connection) = self.connections.get_mut(id) {
            connection.enqueue_if_blocked(&mut self.state);
        }
        self.advance_connection(id);
    }

    /// Sends the output of all connections that have some.
    fn send_messages(&mut self) {
        // A connection that closes may add a last message: it enters the list again, at its end.
        while let Some(id) = self.state.senders.take_first() {
            let Some(connection) = self.connections.get_mut(id) else { continue };
            if let Some(message) = connection.next_message(&mut self.state) {
                self.state.engine.send(id, message);
            }
            self.advance_connection(id);
        }
    }
}
