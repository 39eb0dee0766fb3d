//! Four kinds of workload, drawn from a seed.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// The workloads.
pub const NAMES: [&str; 4] = ["streams", "random-and-stream", "database", "thinker"];

const US: u64 = 1_000;
const MS: u64 = 1_000 * US;
const KIB: u64 = 1 << 10;
const GIB: u64 = 1 << 30;
/// Clients work on the first 180 GiB.
const SPACE: u64 = 180 * GIB;
/// A sequential client goes through so much before it begins again.
const STREAM_BYTES: u64 = 8 * GIB;

/// A client that keeps requests under way.
#[derive(Clone, Debug)]
pub struct Client {
    pub name: &'static str,
    /// Requests under way at most.
    pub depth: u32,
    /// It makes `depth` at once, and waits for all of them.
    pub batches: bool,
    /// It asks at times of its own, so long apart, if no more than `depth` are under way.
    pub timer_ns: Option<u64>,
    pub think: Think,
    pub from: u64,
    pub span: u64,
    pub sequential: bool,
    pub bytes: u64,
    pub writes: bool,
    seed: u64,
}

/// The pause between an answer and the next request.
#[derive(Clone, Copy, Debug)]
pub enum Think {
    /// So long, give or take a fifth.
    About(u64),
    /// Exponential, with this mean.
    Exponential(u64),
}

/// What a client asks for, and the pause before it.
#[derive(Clone, Copy, Debug)]
pub struct Ask {
    pub offset: u64,
    pub bytes: u64,
    pub writes: bool,
    pub think_ns: u64,
}

impl Client {
    /// The request of this number: always the same.
    pub fn ask(&self, number: u64) -> Ask {
        let mut rng = Pcg64::seed_from_u64(self.seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let places = (self.span / self.bytes).max(1);
        let place = if self.sequential { number % places } else { rng.random_range(0..places) };
        let unit: f64 = rng.random();
        let think_ns = match self.think {
            Think::About(ns) => ns as f64 * (0.8 + 0.4 * unit),
            Think::Exponential(mean_ns) => -(1.0 - unit).ln() * mean_ns as f64,
        };
        Ask {
            offset: self.from + place * self.bytes,
            bytes: self.bytes,
            writes: self.writes,
            think_ns: think_ns as u64,
        }
    }

    /// When it makes requests, now that one more is over: `over` of the `made` ones are.
    pub fn after(&self, over: u64, made: u64, beats: &mut u64, now_ns: u64) -> impl Iterator<Item = u64> + use<> {
        let think_ns = self.ask(over).think_ns;
        let (at_ns, count) = match (self.timer_ns, self.batches) {
            (Some(period_ns), _) => {
                *beats += 1;
                ((*beats * period_ns).max(now_ns), 1)
            }
            (None, true) if over < made => (now_ns, 0),
            (None, true) => (now_ns + think_ns, self.depth),
            (None, false) => (now_ns + think_ns, 1),
        };
        (0..count).map(move |_| at_ns)
    }

    /// What it does, in a few words.
    pub fn told(&self) -> String {
        let Client { name, depth, bytes, .. } = self;
        let what = match (self.sequential, self.writes) {
            (true, false) => "reads one behind the other",
            (false, false) => "reads here and there",
            (true, true) => "writes one behind the other",
            (false, true) => "writes here and there",
        };
        let pace = match (self.timer_ns, self.think) {
            (Some(ns), _) => format!("every {} ms", ns / MS),
            (None, Think::About(ns)) => format!("pauses of {:.2} ms", ns as f64 / MS as f64),
            (None, Think::Exponential(ns)) => format!("exponential pauses of {} ms on average", ns / MS),
        };
        let way = if self.batches { "in batches of" } else { "at depth" };
        format!("{name}: {what}, {} KiB {way} {depth}, {pace}", bytes / KIB)
    }
}

/// The clients of a workload.
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
        think: Think::About(rng.random_range(30 * US..200 * US)),
        from: rng.random_range(0..SPACE - STREAM_BYTES) / GIB * GIB,
        span: STREAM_BYTES,
        sequential: true,
        bytes: choose(rng, &[64 * KIB, 128 * KIB, 256 * KIB]),
        writes: false,
        seed: 0,
    }
}

/// One that reads here and there.
fn random_reader(rng: &mut Pcg64) -> Client {
    Client {
        name: "random",
        depth: choose(rng, &[1, 2, 4]),
        think: Think::About(rng.random_range(50 * US..500 * US)),
        from: rng.random_range(0..100) * GIB,
        span: rng.random_range(10..80) * GIB,
        sequential: false,
        bytes: choose(rng, &[4 * KIB, 8 * KIB, 16 * KIB]),
        ..stream(rng)
    }
}

/// Readers of a table, a writer of batches of dirty pages, and one that writes a log.
fn database(rng: &mut Pcg64) -> Vec<Client> {
    let (from, span) = (rng.random_range(10..100) * GIB, rng.random_range(10..40) * GIB);
    let readers = rng.random_range(3..=6);
    let mean_ns = rng.random_range(4..20) * MS;
    let reader = |rng: &mut Pcg64| Client {
        name: "reader",
        depth: 1,
        think: Think::Exponential(mean_ns),
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
        think: Think::Exponential(rng.random_range(100..300) * MS),
        writes: true,
        ..reader(rng)
    });
    clients.push(Client {
        name: "log",
        depth: 1,
        timer_ns: choose(rng, &[None, Some(25 * MS), Some(40 * MS)]),
        think: Think::Exponential(rng.random_range(2..8) * MS),
        from: rng.random_range(0..170) * GIB,
        bytes: choose(rng, &[4 * KIB, 8 * KIB, 16 * KIB]),
        writes: true,
        ..stream(rng)
    });
    clients
}

/// One that reads a little, thinks about it and reads on from there.
fn thinker(rng: &mut Pcg64) -> Client {
    Client {
        name: "thinker",
        depth: 1,
        think: Think::About(rng.random_range(MS..5 * MS)),
        bytes: choose(rng, &[4 * KIB, 16 * KIB]),
        ..stream(rng)
    }
}
