//! The server: connections on one side, devices on the other, all told by one engine.
//!
//! A turn takes in everything that has happened since the last one before any device runs, so that
//! an elevator sees all that waits; then devices run, and every connection that has something to
//! say says it in one message. Nothing here blocks, reads a clock or opens a file.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;

use hoistway_blockdev::Device;
use hoistway_blockdev::IoOutput;
use hoistway_control::Watch;
use hoistway_control::metrics::Metrics;
use hoistway_qos::{Completion, Recorder};
use hoistway_reactor::{ConnId, Engine, Event, ListenerId, Peer, Signal};

use crate::admin::AdminState;
use crate::admin_connection::{ADMIN_CONNECTIONS_MAX, AdminConnection, InputEvent};
use crate::budget::{HolderId, Wait};
use crate::connection::{Connection, Reason};
use crate::drain::Drain;
use crate::purpose::Purpose;
use crate::state::ServerState;
use crate::table::Table;
use crate::{outgoing, reload};

/// What a turn came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// There will be more.
    Running,
    /// Somebody wants the configuration to be read anew: see [`Server::reload`].
    Reload,
    /// A child process may have ended.
    Child,
    /// It is time again, as [`Server::set_alarm`] said.
    Alarm,
    /// A signal has made the server begin to leave.
    Draining,
    /// The server has drained: connections are closed, devices flushed. With `clean`, everything
    /// was answered and durable in time.
    Ended {
        /// Whether.
        clean: bool,
    },
}

/// A block server.
pub struct Server<E: Engine> {
    pub(crate) state: ServerState<E>,
    pub(crate) table: Table<Connection>,
    pub(crate) listeners: Vec<(ListenerId, Purpose)>,
    pub(crate) events: Vec<Event>,
    /// What came up in a turn beside what was told of it.
    pub(crate) turns: VecDeque<Turn>,
    pub(crate) dones: Vec<Completion<IoOutput>>,
    /// Connections that came since the start.
    pub(crate) came: u64,
    /// There are too many connections, and it was said.
    pub(crate) crowded: bool,
    pub(crate) drain: Drain,
    /// A signal has told it to leave.
    pub(crate) signalled: bool,
    /// When stalled clients are looked for next.
    pub(crate) stall_check_ns: u64,
    /// How often [`Turn::Alarm`] is wanted, and when next.
    pub(crate) alarm: Option<(u64, u64)>,
    /// What is kept for those who look and steer.
    pub(crate) admin: AdminState,
    /// Those who steer and watch.
    pub(crate) texts: Table<AdminConnection>,
    /// What each tenant got in the last second, as long as somebody may ask.
    pub(crate) watch: Watch,
    pub(crate) metrics: Metrics,
    /// What became of the last reload.
    pub(crate) reloaded: String,
    /// Tenants and groups that are no more, and in use.
    pub(crate) gone: Vec<reload::Gone>,
}

/// How often stalled clients are looked for while others wait, in ns: once a second.
const STALL_CHECK_NS: u64 = 1_000_000_000;

impl<E: Engine> Server<E> {
    /// Accepts connections from a listening socket.
    pub fn listen(&mut self, socket: OwnedFd, purpose: Purpose) -> ListenerId {
        let listener = self.state.engine.listen(socket);
        self.attach(listener, purpose);
        listener
    }

    /// The same for a socket that the engine listens on already.
    pub fn attach(&mut self, listener: ListenerId, purpose: Purpose) {
        self.listeners.push((listener, purpose));
    }

    /// The engine.
    pub fn engine_mut(&mut self) -> &mut E {
        &mut self.state.engine
    }

    /// How late the completions of emulated drives were, as lines of text.
    pub fn lateness_lines(&self) -> Vec<String> {
        self.state.devices.iter().flat_map(|device| device.lateness_lines()).collect()
    }

    /// Wants [`Turn::Alarm`] every so many ns.
    pub fn set_alarm(&mut self, every_ns: u64) {
        self.alarm = Some((every_ns, self.later(every_ns)));
    }

    /// Has everything that happens in the queues of those devices told that nobody records yet, by
    /// a recorder each. It is told their names, in the order of
    /// [`device_names`](Self::device_names) if nobody was recorded before.
    pub fn record(&mut self, mut recorder: impl FnMut(&str) -> Option<Box<dyn Recorder>>) {
        for device in self.state.devices.iter_mut().filter(|device| !device.scheduler().is_recorded()) {
            let new = recorder(device.name());
            device.set_recorder(new);
        }
    }

    /// The names of the devices.
    pub fn device_names(&self) -> Vec<&str> {
        self.state.devices.iter().map(Device::name).collect()
    }

    /// The time as the engine told it last, in ns.
    pub fn now_ns(&self) -> u64 {
        self.state.now_ns
    }

    /// How many connections there are.
    pub fn connections(&self) -> usize {
        self.table.len()
    }

    /// Bytes of data of requests that are under way.
    pub fn bytes_under_way(&self) -> u64 {
        self.state.budget.used()
    }

    /// Turns until something has to be done that is not the server's, or it has ended.
    ///
    /// # Errors
    /// When the engine is broken.
    pub fn run(&mut self) -> io::Result<Turn> {
        loop {
            match self.turn()? {
                Turn::Running => {}
                other => return Ok(other),
            }
        }
    }

    /// Waits until something happens, and does what follows from it.
    ///
    /// # Errors
    /// When the engine is broken.
    pub fn turn(&mut self) -> io::Result<Turn> {
        if let Some(turn) = self.turns.pop_front() {
            return Ok(turn);
        }
        let until = self.next_wake();
        let allow_busy_poll = self.state.answered.turn_ends(self.state.now_ns);
        self.state.engine.allow_busy_poll(allow_busy_poll);
        let mut events = std::mem::take(&mut self.events);
        self.state.engine.turn(until, &mut events)?;
        self.state.now_ns = self.state.engine.now_ns();
        self.catch_up();
        for event in events.drain(..) {
            let turn = self.happened(event);
            self.turns.extend(turn);
        }
        self.events = events;
        if let Some((every_ns, next_ns)) = &mut self.alarm
            && *next_ns <= self.state.now_ns
        {
            *next_ns = self.state.now_ns.saturating_add(*every_ns);
            self.turns.push_back(Turn::Alarm);
        }
        if std::mem::take(&mut self.admin.wants_reload) {
            self.turns.push_back(Turn::Reload);
        }
        self.expire();
        self.tick();
        self.run_devices();
        self.admit_waiting();
        self.speak();
        self.go_on_draining();
        // Of several things that came up in one turn each is told, one a call.
        Ok(match self.drain.ended() {
            Some(clean) => Turn::Ended { clean },
            None => self.turns.pop_front().unwrap_or(Turn::Running),
        })
    }

    /// When the server has to act even if nothing happens.
    fn next_wake(&mut self) -> Option<u64> {
        if self.state.has_work {
            return Some(self.state.now_ns);
        }
        let devices = self.state.devices.iter().filter_map(|device| device.next_wake_ns()).min();
        let drain = self.drain.until_ns();
        // Whoever waits for memory waits for a client that may have stalled: look again every
        // second.
        let stall = self.state.anybody_waits().then(|| self.later(STALL_CHECK_NS));
        let alarm = self.alarm.map(|(_, next_ns)| next_ns);
        let watch = self.is_watched().then(|| self.watch.due_ns());
        [devices, drain, stall, alarm, watch, self.state.next_deadline()].into_iter().flatten().min()
    }

    pub(crate) fn later(&self, ns: u64) -> u64 {
        self.state.now_ns.saturating_add(ns)
    }

    /// Does what follows from an event; answers what has to be done outside.
    fn happened(&mut self, event: Event) -> Option<Turn> {
        match event {
            Event::Accepted { listener, conn, peer } => self.accepted(listener, conn, peer),
            Event::Received { conn, buffer, len } => {
                if let Some(client) = self.table.get_mut(conn) {
                    client.received(&buffer[..len], &mut self.state);
                    drop(buffer);
                    self.settle(conn);
                } else {
                    self.text(conn, InputEvent::Bytes(&buffer[..len]));
                }
            }
            Event::Filled { conn, buffer, filled } => {
                if let Some(client) = self.table.get_mut(conn) {
                    client.filled(buffer, filled, &mut self.state);
                    self.settle(conn);
                }
            }
            Event::Sent { conn, message } => {
                outgoing::keep(&mut self.state.spare, message);
                if let Some(client) = self.table.get_mut(conn) {
                    client.sent(&mut self.state);
                    self.settle(conn);
                } else {
                    self.text(conn, InputEvent::Sent);
                }
            }
            Event::Broken { conn } => {
                if let Some(client) = self.table.get_mut(conn) {
                    client.broke();
                    self.settle(conn);
                } else {
                    self.close_text(conn);
                }
            }
            Event::Done { tag, done } => self.io_done(tag, done),
            Event::Signal(Signal::Terminate) => {
                // One that comes when the server leaves already by itself is the first all the
                // same.
                if std::mem::replace(&mut self.signalled, true) || self.drain == Drain::No {
                    self.drain();
                }
                return Some(Turn::Draining);
            }
            Event::Signal(Signal::Reload) => return Some(Turn::Reload),
            Event::Signal(Signal::Child) => return Some(Turn::Child),
        }
        None
    }

    fn accepted(&mut self, listener: ListenerId, id: ConnId, peer: Peer) {
        let purpose = self.listeners.iter().find(|(known, _)| *known == listener).map(|(_, purpose)| *purpose);
        match purpose {
            Some(Purpose::Nbd) => self.accepted_client(id, peer),
            Some(purpose)
                if self.texts.iter().filter(|text| text.purpose() == purpose).count() < ADMIN_CONNECTIONS_MAX =>
            {
                tracing::debug!(?purpose, from = %peer.address, process = ?peer.process, "connected");
                let text =
                    if purpose == Purpose::Control { AdminConnection::control() } else { AdminConnection::metrics() };
                self.texts.insert(id, text);
                self.text(id, InputEvent::Nothing);
            }
            // Somebody came by a socket that has been closed meanwhile, or is one too many.
            _ => self.state.engine.close(id),
        }
    }

    fn accepted_client(&mut self, id: ConnId, peer: Peer) {
        if self.table.len() >= self.state.budget.bounds().connections_max {
            if !std::mem::replace(&mut self.crowded, true) {
                let connections = self.table.len();
                tracing::warn!(
                    connections,
                    "as many clients as are taken: others are turned away until some have left"
                );
            }
            return self.state.engine.close(id);
        }
        self.came += 1;
        tracing::debug!(client = self.came, from = %peer.address, process = ?peer.process, "connected");
        let mut client = Connection::new(id, self.came, peer, &mut self.state);
        client.greet(&mut self.state);
        self.table.insert(id, client);
        self.admin.numbers.insert(self.came, id);
        self.settle(id);
    }

    /// After something has happened to a connection: it goes on, or is closed.
    pub(crate) fn settle(&mut self, id: ConnId) {
        let Some(client) = self.table.get_mut(id) else { return };
        client.settle(&mut self.state);
        if client.over().is_some() {
            self.remove(id);
        }
    }

    /// Closes a connection, whatever it has under way.
    fn remove(&mut self, id: ConnId) {
        let Some(mut client) = self.table.remove(id) else { return };
        self.admin.numbers.remove(&client.number);
        client.farewell(&mut self.state);
        self.state.engine.close(id);
        self.crowded = false;
        if !self.gone.is_empty() {
            self.retire();
        }
    }

    /// Closes those who did not choose an export or take their last replies in time, and those who
    /// stall while others wait for memory.
    fn expire(&mut self) {
        while let Some(id) = self.state.expired() {
            if let Some(client) = self.table.get_mut(id) {
                client.expire();
            }
            self.settle(id);
            self.close_text(id);
        }
        if !self.state.anybody_waits() || self.state.now_ns < self.stall_check_ns {
            return;
        }
        self.stall_check_ns = self.later(STALL_CHECK_NS);
        for id in self.table.ids() {
            if let Some(client) = self.table.get_mut(id)
                && client.is_stalled(self.state.budget.bounds(), self.state.now_ns)
            {
                client.end(Reason::Stalled);
                self.settle(id);
            }
        }
    }

    /// Looks once a second at what each tenant gets, where somebody may ask for it.
    fn tick(&mut self) {
        if self.is_watched() && self.watch.due_ns() <= self.state.now_ns {
            let mut watch = std::mem::take(&mut self.watch);
            watch.tick(self.state.now_ns, self);
            self.watch = watch;
        }
    }

    fn is_watched(&self) -> bool {
        self.listeners.iter().any(|(_, purpose)| *purpose != Purpose::Nbd)
    }

    /// Block I/O has ended.
    fn io_done(&mut self, tag: u64, done: hoistway_reactor::IoDone) {
        let ServerState { devices, engine, now_ns, .. } = &mut self.state;
        if let Some(device) = devices.get_mut(Device::index_of(tag) as usize) {
            device.io_done(engine, tag, done, *now_ns);
        }
    }

    /// Lets emulated drives come to the present before anything new reaches them.
    fn catch_up(&mut self) {
        let ServerState { devices, engine, now_ns, .. } = &mut self.state;
        for device in devices {
            device.catch_up(engine, *now_ns);
        }
    }

    /// Runs all devices that have something to do, and answers what is done.
    fn run_devices(&mut self) {
        self.state.has_work = false;
        let ServerState { devices, engine, now_ns, .. } = &mut self.state;
        for device in devices {
            device.run(engine, *now_ns, &mut self.dones);
        }
        let mut dones = std::mem::take(&mut self.dones);
        for Completion { ticket, result } in dones.drain(..) {
            let (slot, generation, key) = crate::connection::of_ticket(ticket);
            if slot == crate::drain::SLOT {
                self.flushed(key, result.is_ok());
            } else if let Some((_, client)) = self.table.get_by_ticket(slot, generation) {
                client.done(key, result, &mut self.state);
            }
        }
        self.dones = dones;
    }

    /// Lets those go on who wait for memory, in each line the first first, until one still has to
    /// wait.
    fn admit_waiting(&mut self) {
        // Whoever is first in a tenant's line may come into that of all, and back.
        let holders: Vec<HolderId> = self.state.waiting_within.keys().copied().collect();
        for holder in holders {
            while let Some(id) = self.state.waiting_within.get(&holder).and_then(|line| line.front().copied()) {
                if !self.admit_first(id, Wait::Tenant) {
                    break;
                }
                let Some(line) = self.state.waiting_within.get_mut(&holder) else { break };
                line.pop_front();
                if line.is_empty() {
                    self.state.waiting_within.remove(&holder);
                }
                self.settle_admitted(id);
            }
        }
        while let Some(id) = self.state.waiting.front().copied() {
            if !self.admit_first(id, Wait::Others) {
                break;
            }
            self.state.waiting.pop_front();
            self.settle_admitted(id);
        }
    }

    /// Lets the first of a line go on; answers whether it does not stand there any more.
    fn admit_first(&mut self, id: ConnId, line: Wait) -> bool {
        let Some(client) = self.table.get_mut(id) else { return true };
        client.unblock(&mut self.state);
        client.blocked != Some(line)
    }

    /// Whoever has left one line goes on, or stands in another.
    fn settle_admitted(&mut self, id: ConnId) {
        if let Some(client) = self.table.get_mut(id) {
            client.queued = false;
            client.line_up(&mut self.state);
        }
        self.settle(id);
    }

    /// Sends what there is to be sent.
    fn speak(&mut self) {
        // Whoever is closing may have a last word to say after this one: it joins the end of the
        // line.
        let mut next = 0;
        while let Some(id) = self.state.speakers.get(next).copied() {
            next += 1;
            let Some(client) = self.table.get_mut(id) else { continue };
            client.dirty = false;
            if let Some(message) = client.next_message(&mut self.state) {
                self.state.engine.send(id, message);
            }
            self.settle(id);
        }
        self.state.speakers.clear();
    }
}
