//! The network of a simulation: the operations of clients and of the server on connections, and
//! their effects over time.

use super::ids::{ActorId, LinkId};
use super::link::{Link, LinkPlan, LinkState, PendingReceive, PendingSend};
use super::sim::{Due, Sabotage, Service, Sim};
use crate::{Buffer, ConnId, Endpoint, Event, ListenerId, Message, Peer};

/// Operations of clients.
impl Sim {
    /// Connects a client. The server accepts the connection after the latency. `None` if the
    /// listener is closed.
    pub fn connect(&mut self, listener: ListenerId, actor: ActorId, peer: Peer, plan: LinkPlan) -> Option<LinkId> {
        if !self.is_open(listener) {
            return None;
        }
        let link = LinkId(self.links.len());
        self.links.push(Link::new(plan, actor, Some(listener), Some(peer)));
        let at_ns = self.now_ns + self.prng.magnitude(plan.latency_ns_max);
        self.due(at_ns, Due::Accept(link));
        Some(link)
    }

    /// Returns the number of bytes that the client can write now.
    pub fn room(&self, link: LinkId) -> usize {
        let link = &self.links[link.0];
        if link.is_reset { 0 } else { link.up.room() }
    }

    /// Writes bytes of the client. Returns the number written.
    pub fn write(&mut self, id: LinkId, bytes: &[u8]) -> usize {
        let count = self.room(id).min(bytes.len());
        if count > 0 {
            let link = &mut self.links[id.0];
            let arrive_ns = self.now_ns + self.prng.magnitude(link.plan.latency_ns_max);
            let arrive_ns = link.up.put(bytes[..count].to_vec(), arrive_ns);
            self.due(arrive_ns, Due::Arrive(id));
        }
        count
    }

    /// Reads bytes that have arrived at the client. Returns their number.
    pub fn read(&mut self, id: LinkId, into: &mut [u8]) -> usize {
        let now_ns = self.now_ns;
        let link = &mut self.links[id.0];
        if link.is_reset {
            return 0;
        }
        link.down.arrive(now_ns);
        let count = link.down.take(into);
        if count > 0 && link.send.is_some() {
            self.push_soon(id);
        }
        count
    }

    /// Returns the state of a connection for its client.
    pub fn state(&self, link: LinkId) -> LinkState {
        let link = &self.links[link.0];
        match (link.is_reset, link.down.is_over()) {
            (true, _) => LinkState::Reset,
            (false, true) => LinkState::Ended,
            (false, false) => LinkState::Open,
        }
    }

    /// Ends the stream from the client to the server; the client still reads.
    pub fn shut(&mut self, id: LinkId) {
        let link = &mut self.links[id.0];
        let end_ns = self.now_ns + self.prng.magnitude(link.plan.latency_ns_max);
        let end_ns = link.up.end(end_ns);
        self.due(end_ns, Due::Arrive(id));
    }

    /// Resets a connection by its client. Bytes in transit are lost.
    pub fn reset(&mut self, id: LinkId) {
        self.links[id.0].is_reset = true;
        let at_ns = self.now_ns + self.prng.magnitude(self.links[id.0].plan.latency_ns_max);
        self.due(at_ns, Due::Break(id));
    }

    /// Fails the client without closing the connection: the server receives no further event.
    pub fn abandon(&mut self, id: LinkId) {
        self.links[id.0].is_abandoned = true;
    }
}

/// Servers to which the simulated server connects.
impl Sim {
    /// Adds a server at an endpoint. It accepts connections while it is up, and runs as an actor.
    pub fn add_service(&mut self, endpoint: Endpoint, actor: ActorId, plan: LinkPlan) {
        self.services.push(Service { endpoint, actor, plan, is_up: true, accepted: Vec::new() });
    }

    /// Starts or stops a service. A stopped one refuses connections; its current ones stay.
    pub fn set_up(&mut self, actor: ActorId, is_up: bool) {
        for service in self.services.iter_mut().filter(|service| service.actor == actor) {
            service.is_up = is_up;
        }
    }

    /// Returns the connections that a service has accepted since the last call.
    pub fn take_accepted(&mut self, actor: ActorId) -> Vec<LinkId> {
        let own = self.services.iter_mut().filter(|service| service.actor == actor);
        own.flat_map(|service| std::mem::take(&mut service.accepted)).collect()
    }
}

/// Operations of the server.
impl Sim {
    pub(super) fn start_connect(&mut self, tag: u64, to: &Endpoint, timeout_ns: u64) {
        let Some(service) = self.services.iter().position(|service| service.endpoint == *to) else {
            let unknown = std::io::Error::other(format!("no service at {to}"));
            return self.events.push_back(Event::Connected { tag, result: Err(unknown) });
        };
        let latency_ns = self.services[service].plan.latency_ns_max;
        let at_ns = self.now_ns + self.prng.magnitude(latency_ns).min(timeout_ns);
        self.due(at_ns, Due::Connect { tag, service });
    }

    pub(super) fn receive(&mut self, conn: ConnId, range: Option<(Buffer, usize, usize)>) {
        let Some(id) = self.of(conn, "receive") else { return };
        let link = &mut self.links[id.0];
        if !matches!(link.receive, PendingReceive::None) || link.is_end_reported {
            let when = if link.is_end_reported { "after the end of the stream" } else { "while another is pending" };
            return self.violated(format!("{conn:?}: a receive {when}"));
        }
        link.receive = match range {
            None => PendingReceive::Any,
            Some((buffer, from, to)) if from < to && to <= buffer.len() => {
                PendingReceive::Into { buffer, at: from, to }
            }
            Some((buffer, from, to)) => {
                let len = buffer.len();
                return self.violated(format!("{conn:?}: receive_into from {from} to {to} of {len} bytes"));
            }
        };
        self.deliver_soon(id);
    }

    pub(super) fn send(&mut self, conn: ConnId, message: Message) {
        let Some(id) = self.of(conn, "send") else { return };
        if self.links[id.0].send.is_some() {
            return self.violated(format!("{conn:?}: a send while another is pending"));
        }
        self.links[id.0].send = Some(PendingSend::new(message));
        self.push_soon(id);
    }

    pub(super) fn close(&mut self, conn: ConnId) {
        let Some(id) = self.of(conn, "close") else { return };
        self.trace.note(self.now_ns, &[5, id.0 as u64], format_args!("link {}: the server closes", id.0));
        self.connections[conn.slot as usize].1 = None;
        let link = &mut self.links[id.0];
        link.conn = None;
        link.receive = PendingReceive::None;
        link.send = None;
        let latency_ns = link.plan.latency_ns_max;
        let end_ns = self.now_ns + self.prng.magnitude(latency_ns);
        let end_ns = self.links[id.0].down.end(end_ns);
        self.due(end_ns, Due::Notify(id));
    }

    /// Returns the link of a connection. `operation` is for the message if it is closed.
    fn of(&mut self, conn: ConnId, operation: &str) -> Option<LinkId> {
        let entry = self.connections.get(conn.slot as usize).copied();
        match entry {
            Some((generation, Some(link))) if generation == conn.generation => Some(link),
            _ if self.crashed => None,
            _ => {
                self.violated(format!("{conn:?}: {operation}, but it is closed"));
                None
            }
        }
    }

    fn deliver_soon(&mut self, id: LinkId) {
        let link = &mut self.links[id.0];
        if !link.is_deliver_due && !matches!(link.receive, PendingReceive::None) && !link.is_abandoned {
            link.is_deliver_due = true;
            let at_ns = self.now_ns + self.prng.between(0, 2_000);
            self.due(at_ns, Due::Deliver(id));
        }
    }

    fn push_soon(&mut self, id: LinkId) {
        let link = &mut self.links[id.0];
        if !link.is_push_due {
            link.is_push_due = true;
            let at_ns = self.now_ns + self.prng.between(0, 2_000);
            self.due(at_ns, Due::Push(id));
        }
    }
}

/// Effects over time.
impl Sim {
    pub(super) fn accept(&mut self, id: LinkId) {
        let Some(listener) = self.links[id.0].listener.filter(|listener| self.is_open(*listener)) else {
            return self.cut(id);
        };
        let conn = self.assign(id);
        let Some(peer) = self.links[id.0].peer.take() else { return };
        self.trace.note(self.now_ns, &[6, id.0 as u64], format_args!("link {} is accepted as {conn:?}", id.0));
        self.events.push_back(Event::Accepted { listener, conn, peer });
        if self.links[id.0].is_reset {
            self.report_reset(id);
        }
    }

    /// Gives a link an ID at the server.
    fn assign(&mut self, id: LinkId) -> ConnId {
        let free = self.connections.iter().position(|(_, link)| link.is_none());
        let slot = free.unwrap_or_else(|| {
            self.connections.push((0, None));
            self.connections.len() - 1
        });
        let entry = &mut self.connections[slot];
        *entry = (entry.0 + 1, Some(id));
        let conn = ConnId { slot: slot as u32, generation: entry.0 };
        self.links[id.0].conn = Some(conn);
        conn
    }

    /// Ends an attempt of the server to connect to a service.
    pub(super) fn connected(&mut self, tag: u64, service: usize) {
        let Some(Service { actor, plan, is_up: true, .. }) = self.services.get(service).cloned() else {
            self.trace.note(self.now_ns, &[10, tag], format_args!("the connection {tag:#x} is refused"));
            let refused = std::io::ErrorKind::ConnectionRefused.into();
            return self.events.push_back(Event::Connected { tag, result: Err(refused) });
        };
        let id = LinkId(self.links.len());
        self.links.push(Link::new(plan, actor, None, None));
        let conn = self.assign(id);
        self.services[service].accepted.push(id);
        self.trace.note(self.now_ns, &[11, id.0 as u64, tag], format_args!("link {}: connected as {conn:?}", id.0));
        self.events.push_back(Event::Connected { tag, result: Ok(conn) });
        self.notify_soon(id);
    }

    pub(super) fn arrive(&mut self, id: LinkId) {
        let now_ns = self.now_ns;
        self.links[id.0].up.arrive(now_ns);
        self.deliver_soon(id);
    }

    /// Completes the pending receive if bytes or the end of the stream have arrived.
    pub(super) fn deliver(&mut self, id: LinkId) {
        let now_ns = self.now_ns;
        let link = &mut self.links[id.0];
        link.is_deliver_due = false;
        link.up.arrive(now_ns);
        let Some(conn) = link.conn else { return };
        let (held, is_over) = (link.up.held(), link.up.is_over());
        if link.is_reset || (held == 0 && !is_over) {
            return;
        }
        let piece = self.prng.between(1, held.min(link.plan.piece_max).max(1) as u64) as usize;
        match std::mem::replace(&mut link.receive, PendingReceive::None) {
            PendingReceive::None => {}
            PendingReceive::Any => {
                let mut buffer = self.pool.buffer(piece);
                let len = link.up.take(&mut buffer[..piece]);
                link.is_end_reported = len == 0;
                self.trace.bytes(&buffer[..len]);
                self.note_received(id, len);
                self.events.push_back(Event::Received { conn, buffer, len });
            }
            PendingReceive::Into { mut buffer, at, to } => {
                let count = link.up.take(&mut buffer[at..to.min(at + piece)]);
                self.trace.bytes(&buffer[at..at + count]);
                let filled = at + count;
                if filled == to || is_over {
                    link.is_end_reported = filled < to;
                    self.note_received(id, filled);
                    self.events.push_back(Event::Filled { conn, buffer, filled });
                } else {
                    link.receive = PendingReceive::Into { buffer, at: filled, to };
                    self.deliver_soon(id);
                }
            }
        }
        self.notify_soon(id);
    }

    fn note_received(&mut self, id: LinkId, len: usize) {
        self.trace.note(self.now_ns, &[7, id.0 as u64], format_args!("link {}: the server received {len} bytes", id.0));
    }

    /// Moves bytes of the pending send into the pipe, as many as it has room for.
    pub(super) fn push(&mut self, id: LinkId) {
        let link = &mut self.links[id.0];
        link.is_push_due = false;
        if link.is_reset {
            return;
        }
        let room = link.down.room().min(link.plan.piece_max);
        let Some(sending) = &mut link.send else { return };
        let Some(conn) = link.conn else { return };
        let wanted = self.prng.between(1, room.max(1) as u64) as usize;
        let mut bytes = sending.take(wanted.min(room));
        let is_over = sending.is_over();
        if self.sabotage == Sabotage::FlipsSentBits && bytes.len() > 100 && self.prng.permille(20) {
            bytes[50] ^= 4;
        }
        self.trace.bytes(&bytes);
        let count = bytes.len();
        if count > 0 {
            let arrive_ns = self.now_ns + self.prng.magnitude(link.plan.latency_ns_max);
            let arrive_ns = link.down.put(bytes, arrive_ns);
            self.due(arrive_ns, Due::Notify(id));
        }
        let numbers = [8, id.0 as u64, count as u64];
        self.trace.note(self.now_ns, &numbers, format_args!("link {}: the server sent {count} bytes", id.0));
        if !is_over {
            if count > 0 {
                self.push_soon(id);
            }
            return;
        }
        if let Some(PendingSend { mut message, .. }) = self.links[id.0].send.take() {
            message.head.clear();
            message.parts.clear();
            self.events.push_back(Event::Sent { conn, message });
        }
    }

    /// Notifies the server of a reset.
    pub(super) fn report_reset(&mut self, id: LinkId) {
        let link = &mut self.links[id.0];
        link.receive = PendingReceive::None;
        link.send = None;
        if let Some(conn) = link.conn
            && !link.is_reset_reported
        {
            link.is_reset_reported = true;
            self.trace.note(self.now_ns, &[9, id.0 as u64], format_args!("link {} is broken", id.0));
            self.events.push_back(Event::Broken { conn });
        }
    }

    pub(super) fn notify_soon(&mut self, id: LinkId) {
        self.due(self.now_ns + 1_000, Due::Notify(id));
    }

    /// Runs the client, because bytes have arrived or there is room for more.
    pub(super) fn notify(&mut self, id: LinkId) {
        let now_ns = self.now_ns;
        let link = &mut self.links[id.0];
        link.down.arrive(now_ns);
        if !link.is_abandoned {
            let actor = link.actor;
            self.act(actor);
        }
    }

    /// Ends a connection from the server's side, as a failure of its machine does.
    pub(super) fn cut(&mut self, id: LinkId) {
        let link = &mut self.links[id.0];
        if let Some(conn) = link.conn.take() {
            self.connections[conn.slot as usize].1 = None;
        }
        link.receive = PendingReceive::None;
        link.send = None;
        if !link.is_reset {
            link.is_reset = true;
            link.was_cut = true;
            let actor = link.actor;
            let at_ns = self.now_ns + self.prng.magnitude(1_000_000);
            self.wake_at(at_ns, actor);
        }
    }
}
