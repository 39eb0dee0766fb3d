//! Four kinds of workload, generated from a seed.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// The names of the workloads.
pub const NAMES: [&str; 4] = ["streams", "random-and-stream", "database", "thinker"];

const US: u64 = 1_000;
const MS: u64 = 1_000 * US;
const KIB: u64 = 1 << 10;
const GIB: u64 = 1 << 30;
/// The range that clients use: the first 180 GiB.
const SPACE: u64 = 180 * GIB;
/// The length of a sequential stream before it starts again.
const STREAM_BYTES: u64 = 8 * GIB;

/// A client that keeps requests in flight.
#[derive(Clone, Debug)]
pub struct Client {
    pub name: &'static str,
    /// The largest number of requests in flight.
    pub depth: u32,
    /// Submits `depth` requests at once, and waits for all of them.
    pub batches: bool,
    /// The interval of a timer-driven client, in ns. It submits at each tick unless `depth`
    /// requests are in flight.
    pub timer_ns: Option<u64>,
    pub think: Pause,
    pub from: u64,
    pub span: u64,
    pub sequential: bool,
    pub bytes: u64,
    pub writes: bool,
    seed: u64,
}

/// The pause between a completion and the next request.
#[derive(Clone, Copy, Debug)]
pub enum Pause {
    /// A constant pause in ns, varied by up to a fifth.
    About(u64),
    /// An exponentially distributed pause with this mean in ns.
    Exponential(u64),
}

/// A request of a client, and the pause before it.
#[derive(Clone, Copy, Debug)]
pub struct ClientRequest {
    pub offset: u64,
    pub bytes: u64,
    pub writes: bool,
    pub pause_ns: u64,
}

impl Client {
    /// Returns the request of this number, which depends on the number alone.
    pub fn next_request(&self, number: u64) -> ClientRequest {
        let mut rng = Pcg64::seed_from_u64(self.seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let places = (self.span / self.bytes).max(1);
        let index = if self.sequential { number % places } else { rng.random_range(0..places) };
        let unit: f64 = rng.random();
        let pause_ns = match self.think {
            Pause::About(ns) => ns as f64 * (0.8 + 0.4 * unit),
            Pause::Exponential(mean_ns) => -(1.0 - unit).ln() * mean_ns as f64,
        };
        ClientRequest {
            offset: self.from + index * self.bytes,
            bytes: self.bytes,
            writes: self.writes,
            pause_ns: pause_ns as u64,
        }
    }

    /// Returns the times of new requests after a completion: `completed` of the `submitted`
    /// requests have completed.
    pub fn after(
        &self,
        completed: u64,
        submitted: u64,
        ticks: &mut u64,
        now_ns: u64,
    ) -> impl Iterator<Item = u64> + use<> {
        let pause_ns = self.next_request(completed).pause_ns;
        let (at_ns, count) = match (self.timer_ns, self.batches) {
            (Some(period_ns), _) => {
                *ticks += 1;
                ((*ticks * period_ns).max(now_ns), 1)
            }
            (None, true) if completed < submitted => (now_ns, 0),
            (None, true) => (now_ns + pause_ns, self.depth),
            (None, false) => (now_ns + pause_ns, 1),
        };
        (0..count).map(move |_| at_ns)
    }

    /// Describes the client in a few words.
    pub fn describe(&self) -> String {
        let Client { name, depth, bytes, .. } = self;
        let what = match (self.sequential, self.writes) {
            (true, false) => "reads sequentially",
            (false, false) => "reads randomly",
            (true, true) => "writes sequentially",
            (false, true) => "writes randomly",
        };
        let pace = match (self.timer_ns, self.think) {
            (Some(ns), _) => format!("every {} ms", ns / MS),
            (None, Pause::About(ns)) => format!("pauses of {:.2} ms", ns as f64 / MS as f64),
            (None, Pause::Exponential(ns)) => format!("exponentially distributed pauses of {} ms on average", ns / MS),
        };
        let way = if self.batches { "in batches of" } else { "at depth" };
        format!("{name}: {what}, {} KiB {way} {depth}, {pace}", bytes / KIB)
    }
}

/// Returns the clients of a workload.
pub fn workload(name: &str, seed: u64) -> Option<Vec<Client>> {
    let mut rng =
        Pcg64::seed_from_u64(seed.wrapping_mul(4).wrapping_add(NAMES.iter().position(|known| *known == name)? as u64));
    let rng = &mut rng;
    let mut clients = match name {
        "streams" => {
            let count = rng.random_range(4..=8);
            (0..count).map(|_| stream(rng)).collect()
        }
        "random-and-stream" => {
            let streams = rng.random_range(1..=2);
            let random = rng.random_range(2..=4);
            let mut clients: Vec<Client> = (0..streams).map(|_| stream(rng)).collect();
            clients.extend((0..random).map(|_| random_reader(rng)));
            clients
        }
        "database" => database(rng),
        _ => {
            let count = rng.random_range(2..=4);
            let mut clients: Vec<Client> = (0..count).map(|_| stream(rng)).collect();
            clients.push(thinker(rng));
            clients
        }
    };
    for client in &mut clients {
        client.seed = rng.random();
    }
    Some(clients)
}

fn choose<T: Copy>(rng: &mut Pcg64, of: &[T]) -> T {
    of[rng.random_range(0..of.len())]
}

/// A sequential reader, as of a large file.
fn stream(rng: &mut Pcg64) -> Client {
    Client {
        name: "stream",
        depth: choose(rng, &[1, 1, 2]),
        batches: false,
        timer_ns: None,
        think: Pause::About(rng.random_range(30 * US..200 * US)),
        from: rng.random_range(0..SPACE - STREAM_BYTES) / GIB * GIB,
        span: STREAM_BYTES,
        sequential: true,
        bytes: choose(rng, &[64 * KIB, 128 * KIB, 256 * KIB]),
        writes: false,
        seed: 0,
    }
}

/// A random reader.
fn random_reader(rng: &mut Pcg64) -> Client {
    Client {
        name: "random",
        depth: choose(rng, &[1, 2, 4]),
        think: Pause::About(rng.random_range(50 * US..500 * US)),
        from: rng.random_range(0..100) * GIB,
        span: rng.random_range(10..80) * GIB,
        sequential: false,
        bytes: choose(rng, &[4 * KIB, 8 * KIB, 16 * KIB]),
        ..stream(rng)
    }
}

/// Readers of a table, a writer of batches of dirty pages, and a log writer.
fn database(rng: &mut Pcg64) -> Vec<Client> {
    let (from, span) = (rng.random_range(10..100) * GIB, rng.random_range(10..40) * GIB);
    let readers = rng.random_range(3..=6);
    let mean_ns = rng.random_range(4..20) * MS;
    let reader = |rng: &mut Pcg64| Client {
        name: "reader",
        depth: 1,
        think: Pause::Exponential(mean_ns),
        from,
        span,
        bytes: 8 * KIB,
        ..random_reader(rng)
    };
    let mut clients: Vec<Client> = (0..readers).map(|_| reader(rng)).collect();
    clients.push(Client {
        name: "checkpoint",
        depth: choose(rng, &[4, 8, 16]),
        batches: true,
        think: Pause::Exponential(rng.random_range(100..300) * MS),
        writes: true,
        ..reader(rng)
    });
    clients.push(Client {
        name: "log",
        depth: 1,
        timer_ns: choose(rng, &[None, Some(25 * MS), Some(40 * MS)]),
        think: Pause::Exponential(rng.random_range(2..8) * MS),
        from: rng.random_range(0..170) * GIB,
        bytes: choose(rng, &[4 * KIB, 8 * KIB, 16 * KIB]),
        writes: true,
        ..stream(rng)
    });
    clients
}

/// A reader with pauses between short sequential reads.
fn thinker(rng: &mut Pcg64) -> Client {
    Client {
        name: "thinker",
        depth: 1,
        think: Pause::About(rng.random_range(MS..5 * MS)),
        bytes: choose(rng, &[4 * KIB, 16 * KIB]),
        ..stream(rng)
    }
}
