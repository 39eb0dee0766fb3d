//! A server for arbitrary bytes of clients, for the fuzz target of the whole server.

use hoistway_qos::DiskQueueConfig;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

use hoistway_nbd::client::send_option;
use hoistway_nbd::wire::{client_flags, option};

use hoistway_config::{BackendConfig, Config, DeviceConfig, ExportConfig};
use hoistway_reactor::simulated::{Actor, ActorId, LinkId, Sim};
use hoistway_reactor::simulated::{LinkPlan, LinkState};
use hoistway_reactor::simulated::{Prng, SimEngine};
use hoistway_reactor::{Address, ListenerId, Peer};
use hoistway_server::{Bounds, Purpose, Server, Settings};

/// A server over memory, to which one client after the other sends arbitrary bytes.
pub struct Wire {
    sim: Rc<RefCell<Sim>>,
    server: Server<SimEngine>,
    listener: ListenerId,
}

/// The maximum number of turns of one input; a thousand bytes take some hundred.
const TURNS_MAX: u32 = 200_000;
const DEVICE_BYTES: u64 = 256 << 10;

impl Wire {
    /// Creates a server.
    ///
    /// # Panics
    /// When the server cannot be created, which does not depend on the input.
    pub fn new(seed: u64) -> Wire {
        let sim = Rc::new(RefCell::new(Sim::new(Prng::new(seed), false)));
        let settings = Settings { bounds: bounds(), ..Settings::default() };
        let engine = SimEngine::new(sim.clone());
        let mut server = Server::new(engine, &config(), settings).expect("memory is a device");
        let listener = sim.borrow_mut().add_listener();
        server.attach(listener, Purpose::Nbd);
        Wire { sim, server, listener }
    }

    /// Connects a client that sends these bytes. The first byte selects the mode: with or without a
    /// handshake, the form of replies, the size of the pieces, and an orderly end or a reset.
    ///
    /// # Errors
    /// When the server breaks its contract with the engine, does not close the connection, or keeps
    /// memory.
    pub fn play(&mut self, input: &[u8]) -> Result<(), String> {
        let Some((mode, rest)) = input.split_first() else { return Ok(()) };
        let mut bytes = opening(mode & 3);
        bytes.extend_from_slice(rest);
        let plan = LinkPlan {
            latency_ns_max: 20_000,
            capacity: if mode & 4 == 0 { 1 << 20 } else { 300 },
            piece_max: if mode & 8 == 0 { 1 << 20 } else { 5 },
        };
        let over = Rc::new(Cell::new(false));
        let script = Script {
            link: None,
            listener: self.listener,
            plan,
            bytes,
            sent: 0,
            reads: mode & 16 == 0,
            resets: mode & 32 != 0,
            shut: false,
            over: over.clone(),
        };
        let now_ns = self.sim.borrow().now_ns;
        self.sim.borrow_mut().add_actor(Box::new(script), now_ns);
        for _ in 0..TURNS_MAX {
            self.server.turn().map_err(|error| error.to_string())?;
            let bytes_max = bounds().bytes_max + (32 << 20);
            if self.server.bytes_in_progress() > bytes_max {
                return Err(format!("{} bytes are in progress", self.server.bytes_in_progress()));
            }
            if over.get() && self.server.connection_count() == 0 {
                return self.check_left();
            }
        }
        Err("the connection does not end".to_owned())
    }

    fn check_left(&self) -> Result<(), String> {
        let (bytes, buffers) = (self.server.bytes_in_progress(), self.sim.borrow().pool.outstanding());
        // A read of a closed connection may still be queued, without memory.
        if bytes != 0 || buffers != 0 {
            return Err(format!("{bytes} bytes and {buffers} buffers are kept without a connection"));
        }
        Ok(())
    }
}

/// A client that sends given bytes.
struct Script {
    link: Option<LinkId>,
    listener: ListenerId,
    plan: LinkPlan,
    bytes: Vec<u8>,
    sent: usize,
    reads: bool,
    resets: bool,
    shut: bool,
    over: Rc<Cell<bool>>,
}

impl Actor for Script {
    fn step(&mut self, me: ActorId, sim: &mut Sim) {
        if self.over.get() {
            return;
        }
        let peer = Peer { address: Address::Unix, process: None };
        let link = match self.link.or_else(|| sim.connect(self.listener, me, peer, self.plan)) {
            Some(link) => *self.link.insert(link),
            None => return self.over.set(true),
        };
        let mut some = [0; 4096];
        while self.reads && sim.read(link, &mut some) > 0 {}
        self.sent += sim.write(link, &self.bytes[self.sent..]);
        // A client that does not read may block itself: it stops after a second.
        let stuck = sim.now_ns > 1_000_000_000 && !self.reads && sim.room(link) == 0;
        if (self.sent == self.bytes.len() || stuck) && !self.shut {
            self.shut = true;
            if self.resets || !self.reads {
                sim.reset(link);
            } else {
                sim.shut(link);
            }
        }
        if sim.state(link) != LinkState::Open {
            if self.shut {
                self.over.set(true);
            } else {
                // The server closed the connection: the rest is not sent.
                self.sent = self.bytes.len();
            }
        }
        if !self.over.get() {
            sim.wake_at(sim.now_ns + 100_000, me);
        }
    }

    fn is_done(&self) -> bool {
        self.over.get()
    }
}

/// Returns the first bytes of a handshake.
fn opening(mode: u8) -> Vec<u8> {
    if mode == 0 {
        return Vec::new();
    }
    let flags = client_flags::FIXED_NEWSTYLE | client_flags::NO_ZEROES;
    let mut bytes = flags.to_be_bytes().to_vec();
    match mode {
        2 => send_option(option::STRUCTURED_REPLY, &[], &mut bytes),
        3 => send_option(option::EXTENDED_HEADERS, &[], &mut bytes),
        _ => {}
    }
    send_option(option::GO, &[0, 0, 0, 0, 0, 0], &mut bytes);
    bytes
}

fn bounds() -> Bounds {
    Bounds { requests_max: 64, connection_bytes_max: 1 << 20, bytes_max: 4 << 20, ..Bounds::default() }
}

fn config() -> Config {
    let device = DeviceConfig {
        queue: DiskQueueConfig {
            name: "memory".to_owned(),
            elevator: Some(hoistway_core::Kind::Noop),
            depth: None,
            tunables: Vec::new(),
            merge: false,
            request_bytes_max: 65_536,
            bandwidth: None,
            position_ns: None,
            log_slow_ns: DiskQueueConfig::LOG_SLOW_NS_DEFAULT,
        },
        backend: BackendConfig::Memory { bytes: DEVICE_BYTES },
        drive: None,
    };
    let export = ExportConfig {
        name: String::new(),
        description: "whatever".to_owned(),
        device: "memory".to_owned(),
        offset: 512,
        size: Some(DEVICE_BYTES - 1000),
        read_only: false,
        tenants: Vec::new(),
    };
    Config { devices: vec![device], exports: vec![export], ..Config::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hoistway_nbd::wire::RequestHeader;

    /// Returns a session in compact form: a write, reads, a flush, a zero write, a disconnect.
    fn session(mode: u8) -> Vec<u8> {
        let mut bytes = vec![mode];
        for (command, length) in [(1, 700), (0, 700), (3, 0), (6, 4096), (0, 60_000), (2, 0)] {
            let header = RequestHeader { flags: 0, command, cookie: 7, offset: 0, length };
            header.write_compact(&mut bytes);
            if command == 1 {
                bytes.extend(std::iter::repeat_n(9, 700));
            }
        }
        bytes
    }

    #[test]
    fn arbitrary_bytes_leave_no_memory_in_use() {
        let mut prng = Prng::new(1);
        let mut wire = Wire::new(1);
        for mode in 0..64 {
            assert_eq!(wire.play(&session(mode)), Ok(()), "mode {mode}");
        }
        for number in 0..300 {
            let mut input = session(prng.any() as u8);
            for _ in 0..prng.between(0, 6) {
                let at = prng.index(input.len());
                match prng.between(0, 2) {
                    0 => input[at] ^= 1 << prng.between(0, 7),
                    1 => input.truncate(at.max(1)),
                    _ => input[at] = prng.pick(&[0, 0xff, 0x80, 0x7f]),
                }
            }
            assert_eq!(wire.play(&input), Ok(()), "input {number}: {input:?}");
        }
    }
}
