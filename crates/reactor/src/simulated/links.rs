//! Simulated connections: both directions, what the server wants of them, and what the client may
//! do.

use super::pipe::Pipe;
use super::sim::{ActorId, Due, LinkId, Sabotage, Sim};
use crate::Buffer;
use crate::shared::Shared;
use crate::{ConnId, Event, ListenerId, Message, Part, Peer};

/// How a connection behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkPlan {
    /// The longest time that bytes travel, in ns.
    pub latency_ns_max: u64,
    /// Bytes that each direction holds.
    pub capacity: usize,
    /// The most bytes that one receive gives or one send takes.
    pub piece_max: usize,
}

/// A connection.
#[derive(Debug)]
pub(super) struct Link {
    plan: LinkPlan,
    actor: ActorId,
    listener: ListenerId,
    peer: Option<Peer>,
    /// Its name at the server, from its acceptance until the server closes it.
    conn: Option<ConnId>,
    up: Pipe,
    down: Pipe,
    wants: Wants,
    sending: Option<Sending>,
    /// Reset, by either side: nothing passes any more.
    dead: bool,
    /// The client is gone without a word.
    forsaken: bool,
    /// The server was told that nothing more comes; and that nothing passes any more.
    end_told: bool,
    break_told: bool,
    /// The server's machine has died, or the server has left.
    pub(super) was_cut: bool,
    /// A delivery or a push is on the agenda.
    deliver_due: bool,
    push_due: bool,
}

/// What the server waits for.
#[derive(Debug)]
enum Wants {
    Nothing,
    Any,
    Into { buffer: Buffer, at: usize, to: usize },
}

/// A message under way.
#[derive(Debug)]
struct Sending {
    message: Message,
    part: usize,
    /// Bytes of that part that are gone.
    gone: usize,
    /// Bytes of the head that parts before it have used.
    head: usize,
}

/// A connection as its client sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It lives.
    Open,
    /// The server will send no more, and all that it sent was read.
    Ended,
    /// It was reset.
    Reset,
}

/// What clients do.
impl Sim {
    /// Connects. The server hears of it a little later.
    pub fn connect(&mut self, listener: ListenerId, actor: ActorId, peer: Peer, plan: LinkPlan) -> Option<LinkId> {
        if !self.is_open(listener) {
            return None;
        }
        let link = LinkId(self.links.len());
        self.links.push(Link {
            plan,
            actor,
            listener,
            peer: Some(peer),
            conn: None,
            up: Pipe::new(plan.capacity),
            down: Pipe::new(plan.capacity),
            wants: Wants::Nothing,
            sending: None,
            dead: false,
            forsaken: false,
            end_told: false,
            break_told: false,
            was_cut: false,
            deliver_due: false,
            push_due: false,
        });
        let at_ns = self.now_ns + self.prng.magnitude(plan.latency_ns_max);
        self.due(at_ns, Due::Accept(link));
        Some(link)
    }

    /// How many bytes a client can write now.
    pub fn room(&self, link: LinkId) -> usize {
        let link = &self.links[link.0];
        if link.dead { 0 } else { link.up.room() }
    }

    /// Writes; answers how many bytes were taken.
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

    /// Reads what has come; answers how many bytes.
    pub fn read(&mut self, id: LinkId, into: &mut [u8]) -> usize {
        let now_ns = self.now_ns;
        let link = &mut self.links[id.0];
        if link.dead {
            return 0;
        }
        link.down.arrive(now_ns);
        let count = link.down.take(into);
        if count > 0 && link.sending.is_some() {
            self.push_soon(id);
        }
        count
    }

    /// How the connection stands for its client.
    pub fn state(&self, link: LinkId) -> State {
        let link = &self.links[link.0];
        match (link.dead, link.down.is_over()) {
            (true, _) => State::Reset,
            (false, true) => State::Ended,
            (false, false) => State::Open,
        }
    }

    /// The client will write no more; it still reads.
    pub fn shut(&mut self, id: LinkId) {
        let link = &mut self.links[id.0];
        let end_ns = self.now_ns + self.prng.magnitude(link.plan.latency_ns_max);
        let end_ns = link.up.end(end_ns);
        self.due(end_ns, Due::Arrive(id));
    }

    /// The client resets the connection: what is under way is lost.
    pub fn reset(&mut self, id: LinkId) {
        self.links[id.0].dead = true;
        let at_ns = self.now_ns + self.prng.magnitude(self.links[id.0].plan.latency_ns_max);
        self.due(at_ns, Due::Break(id));
    }

    /// The client vanishes without a word: the server hears nothing, ever.
    pub fn forsake(&mut self, id: LinkId) {
        self.links[id.0].forsaken = true;
    }
}

/// What the server does.
impl Sim {
    pub(super) fn receive(&mut self, conn: ConnId, wants: Option<(Buffer, usize, usize)>) {
        let Some(id) = self.of(conn, "receive") else { return };
        let link = &mut self.links[id.0];
        if !matches!(link.wants, Wants::Nothing) || link.end_told {
            let what = if link.end_told { "after the end" } else { "while another is under way" };
            return self.violated(format!("{conn:?}: a receive {what}"));
        }
        link.wants = match wants {
            None => Wants::Any,
            Some((buffer, from, to)) if from < to && to <= buffer.len() => Wants::Into { buffer, at: from, to },
            Some((buffer, from, to)) => {
                let len = buffer.len();
                return self.violated(format!("{conn:?}: receive_into from {from} to {to} of {len} bytes"));
            }
        };
        self.deliver_soon(id);
    }

    pub(super) fn send(&mut self, conn: ConnId, message: Message) {
        let Some(id) = self.of(conn, "send") else { return };
        if self.links[id.0].sending.is_some() {
            return self.violated(format!("{conn:?}: a send while another is under way"));
        }
        self.links[id.0].sending = Some(Sending { message, part: 0, gone: 0, head: 0 });
        self.push_soon(id);
    }

    pub(super) fn close(&mut self, conn: ConnId) {
        let Some(id) = self.of(conn, "close") else { return };
        self.trace.note(self.now_ns, &[5, id.0 as u64], format_args!("link {}: the server closes", id.0));
        self.places[conn.slot as usize].1 = None;
        let link = &mut self.links[id.0];
        link.conn = None;
        link.wants = Wants::Nothing;
        link.sending = None;
        let latency_ns = link.plan.latency_ns_max;
        let end_ns = self.now_ns + self.prng.magnitude(latency_ns);
        let end_ns = self.links[id.0].down.end(end_ns);
        self.due(end_ns, Due::Look(id));
    }

    fn of(&mut self, conn: ConnId, what: &str) -> Option<LinkId> {
        let place = self.places.get(conn.slot as usize).copied();
        match place {
            Some((generation, Some(link))) if generation == conn.generation => Some(link),
            _ if self.crashed => None,
            _ => {
                self.violated(format!("{conn:?}: {what}, but it is closed"));
                None
            }
        }
    }

    fn deliver_soon(&mut self, id: LinkId) {
        let link = &mut self.links[id.0];
        if !link.deliver_due && !matches!(link.wants, Wants::Nothing) && !link.forsaken {
            link.deliver_due = true;
            let at_ns = self.now_ns + self.prng.between(0, 2_000);
            self.due(at_ns, Due::Deliver(id));
        }
    }

    fn push_soon(&mut self, id: LinkId) {
        let link = &mut self.links[id.0];
        if !link.push_due {
            link.push_due = true;
            let at_ns = self.now_ns + self.prng.between(0, 2_000);
            self.due(at_ns, Due::Push(id));
        }
    }
}

/// What comes with the time.
impl Sim {
    pub(super) fn accept(&mut self, id: LinkId) {
        let listener = self.links[id.0].listener;
        if !self.is_open(listener) {
            return self.cut(id);
        }
        let free = self.places.iter().position(|(_, taken)| taken.is_none());
        let slot = free.unwrap_or_else(|| {
            self.places.push((0, None));
            self.places.len() - 1
        });
        let place = &mut self.places[slot];
        *place = (place.0 + 1, Some(id));
        let conn = ConnId { slot: slot as u32, generation: place.0 };
        let link = &mut self.links[id.0];
        link.conn = Some(conn);
        let Some(peer) = link.peer.take() else { return };
        self.trace.note(self.now_ns, &[6, id.0 as u64], format_args!("link {} is accepted as {conn:?}", id.0));
        self.events.push_back(Event::Accepted { listener, conn, peer });
        if self.links[id.0].dead {
            self.break_off(id);
        }
    }

    pub(super) fn arrive(&mut self, id: LinkId) {
        let now_ns = self.now_ns;
        self.links[id.0].up.arrive(now_ns);
        self.deliver_soon(id);
    }

    /// Serves a receive, if there is something to serve it with.
    pub(super) fn deliver(&mut self, id: LinkId) {
        let now_ns = self.now_ns;
        let link = &mut self.links[id.0];
        link.deliver_due = false;
        link.up.arrive(now_ns);
        let Some(conn) = link.conn else { return };
        let (held, over) = (link.up.held(), link.up.is_over());
        if link.dead || (held == 0 && !over) {
            return;
        }
        let piece = self.prng.between(1, held.min(link.plan.piece_max).max(1) as u64) as usize;
        match std::mem::replace(&mut link.wants, Wants::Nothing) {
            Wants::Nothing => {}
            Wants::Any => {
                let mut buffer = self.pool.buffer(piece);
                let len = link.up.take(&mut buffer[..piece]);
                link.end_told = len == 0;
                self.trace.bytes(&buffer[..len]);
                self.heard(id, len);
                self.events.push_back(Event::Received { conn, buffer, len });
            }
            Wants::Into { mut buffer, at, to } => {
                let count = link.up.take(&mut buffer[at..to.min(at + piece)]);
                self.trace.bytes(&buffer[at..at + count]);
                let filled = at + count;
                if filled == to || over {
                    link.end_told = filled < to;
                    self.heard(id, filled);
                    self.events.push_back(Event::Filled { conn, buffer, filled });
                } else {
                    link.wants = Wants::Into { buffer, at: filled, to };
                    self.deliver_soon(id);
                }
            }
        }
        self.look_soon(id);
    }

    fn heard(&mut self, id: LinkId, len: usize) {
        self.trace.note(self.now_ns, &[7, id.0 as u64], format_args!("link {}: the server has {len} bytes", id.0));
    }

    /// Moves bytes of a send on, as many as there is room for.
    pub(super) fn push(&mut self, id: LinkId) {
        let link = &mut self.links[id.0];
        link.push_due = false;
        if link.dead {
            return;
        }
        let room = link.down.room().min(link.plan.piece_max);
        let Some(sending) = &mut link.sending else { return };
        let Some(conn) = link.conn else { return };
        let wanted = self.prng.between(1, room.max(1) as u64) as usize;
        let mut bytes = sending.take(wanted.min(room));
        let over = sending.is_over();
        if self.sabotage == Sabotage::FlipsSentBits && bytes.len() > 100 && self.prng.permille(20) {
            bytes[50] ^= 4;
        }
        self.trace.bytes(&bytes);
        let count = bytes.len();
        if count > 0 {
            let arrive_ns = self.now_ns + self.prng.magnitude(link.plan.latency_ns_max);
            let arrive_ns = link.down.put(bytes, arrive_ns);
            self.due(arrive_ns, Due::Look(id));
        }
        let numbers = [8, id.0 as u64, count as u64];
        self.trace.note(self.now_ns, &numbers, format_args!("link {}: the server sent {count} bytes", id.0));
        if !over {
            if count > 0 {
                self.push_soon(id);
            }
            return;
        }
        if let Some(Sending { mut message, .. }) = self.links[id.0].sending.take() {
            message.head.clear();
            message.parts.clear();
            self.events.push_back(Event::Sent { conn, message });
        }
    }

    /// Tells the server that a connection was reset.
    pub(super) fn break_off(&mut self, id: LinkId) {
        let link = &mut self.links[id.0];
        link.wants = Wants::Nothing;
        link.sending = None;
        if let Some(conn) = link.conn
            && !link.break_told
        {
            link.break_told = true;
            self.trace.note(self.now_ns, &[9, id.0 as u64], format_args!("link {} is broken", id.0));
            self.events.push_back(Event::Broken { conn });
        }
    }

    pub(super) fn look_soon(&mut self, id: LinkId) {
        self.due(self.now_ns + 1_000, Due::Look(id));
    }

    /// The client may look: something has come, or there is room.
    pub(super) fn look(&mut self, id: LinkId) {
        let now_ns = self.now_ns;
        let link = &mut self.links[id.0];
        link.down.arrive(now_ns);
        if !link.forsaken {
            let actor = link.actor;
            self.act(actor);
        }
    }

    /// Cuts a connection from the server's side, as when its machine dies.
    pub(super) fn cut(&mut self, id: LinkId) {
        let link = &mut self.links[id.0];
        if let Some(conn) = link.conn.take() {
            self.places[conn.slot as usize].1 = None;
        }
        link.wants = Wants::Nothing;
        link.sending = None;
        if !link.dead {
            link.dead = true;
            link.was_cut = true;
            let actor = link.actor;
            let at_ns = self.now_ns + self.prng.magnitude(1_000_000);
            self.wake_at(at_ns, actor);
        }
    }
}

impl Sending {
    /// Takes up to so many bytes.
    fn take(&mut self, mut count: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(count);
        while count > 0 && self.part < self.message.parts.len() {
            let (from, len) = match &self.message.parts[self.part] {
                Part::Head { len } => (&self.message.head[self.head..], *len),
                Part::Buffer { buffer, len } => (&buffer[..], *len),
                Part::Shared(shared) => (slice(shared), shared.len()),
            };
            let some = count.min(len - self.gone);
            bytes.extend_from_slice(&from[self.gone..self.gone + some]);
            self.gone += some;
            count -= some;
            if self.gone == len {
                if let Part::Head { len } = &self.message.parts[self.part] {
                    self.head += len;
                }
                self.part += 1;
                self.gone = 0;
            }
        }
        bytes
    }

    fn is_over(&self) -> bool {
        self.message.parts[self.part.min(self.message.parts.len())..].iter().all(|part| match part {
            Part::Head { len } | Part::Buffer { len, .. } => *len == 0,
            Part::Shared(shared) => shared.is_empty(),
        })
    }
}

/// The bytes of memory that is shared with a backend.
fn slice(shared: &Shared) -> &[u8] {
    // SAFETY: `shared` keeps the memory mapped. The backend writes to it from this thread alone,
    // between turns, while no such slice is held: they live no longer than a step of the world.
    unsafe { std::slice::from_raw_parts(shared.as_ptr(), shared.len()) }
}
