//! The encoding of cases as bytes.

use hoistway_core::{
    BlockLayer, Capacity, Class, ClockConfig, CpuPolicy, Flags, GroupWeights, Kind, Op, OrderedMode, Priority,
    QueueConfig, Reservation,
};

/// The length of the header in bytes.
pub const HEADER_BYTES: usize = 8;
/// The bit in the elevator's byte that adds the reservation layer.
pub const LAYERED: u8 = 128;
/// The length of a call in bytes.
pub const RECORD_BYTES: usize = 6;

/// A case: the configuration of a queue, and the calls.
#[derive(Clone, Debug)]
pub struct Case {
    pub kind: Kind,
    /// Whether the reservation layer is over the elevator.
    pub layered: bool,
    pub config: QueueConfig,
    pub capacity: Capacity,
    /// The number of requests that the device takes at once.
    pub depth: usize,
    /// Whether the driver takes requests for each hardware queue separately.
    pub pulls_each: bool,
    /// Whether time stands still until the queue is run dry.
    pub stands_still: bool,
    pub calls: Vec<Call>,
}

/// A call, or an instruction to the host to make some. Contexts, groups and requests are chosen by
/// index among the existing ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    Submit {
        process: u16,
        op: Op,
        place: Place,
        sectors: u32,
        flags: Flags,
    },
    /// This many consecutive bios.
    Burst {
        process: u16,
        op: Op,
        place: Place,
        count: u8,
    },
    /// Takes one request without a kick: for one hardware queue (possibly an invalid one), or for
    /// any.
    Next {
        hw_queue: Option<u16>,
    },
    Complete {
        which: u8,
    },
    Requeue {
        which: u8,
    },
    /// Lets time pass; timers that become due meanwhile fire late.
    Pass {
        ns: u64,
    },
    /// Goes to the next timer and fires it.
    Timer,
    Create {
        pid: u32,
        priority: Priority,
        nice: i8,
    },
    Exit {
        process: u16,
    },
    SetPriority {
        process: u16,
        priority: Priority,
    },
    SetNice {
        process: u16,
        nice: i8,
    },
    SetPolicy {
        process: u16,
        policy: CpuPolicy,
    },
    SetCpu {
        process: u16,
        cpu: u16,
    },
    Reserve {
        process: u16,
        reservation: Reservation,
    },
    Release {
        process: u16,
    },
    ReserveGroup {
        group: u16,
        reservation: Reservation,
    },
    ReleaseGroup {
        group: u16,
    },
    SetTunable {
        index: u8,
        value: Value,
    },
    Switch {
        kind: Kind,
        layered: bool,
    },
    Unplug,
    CreateGroup {
        parent: u16,
        weights: GroupWeights,
    },
    Weigh {
        group: u16,
        weights: GroupWeights,
    },
    RemoveGroup {
        group: u16,
    },
    Move {
        process: u16,
        group: u16,
    },
}

/// The position of a bio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    At(u64),
    /// At the end of the process's last bio.
    AfterLast,
    /// At the start of the last bio.
    AsLast,
    /// Directly before the last bio.
    BeforeLast,
}

/// A value of a tunable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// This value, in range or not.
    Of(i64),
    Least,
    Greatest,
    /// This much above the minimum, at most the maximum.
    Above(u64),
}

impl Case {
    /// Reads a case; missing bytes at the end read as zeros.
    pub fn read(bytes: &[u8]) -> Case {
        let mut header = [0; HEADER_BYTES];
        for (to, from) in header.iter_mut().zip(bytes) {
            *to = *from;
        }
        let [kind, layer, switches, pool, sizes, ordered, clock, depth] = header;
        let records = bytes.get(HEADER_BYTES..).unwrap_or_default().chunks_exact(RECORD_BYTES);
        Case {
            kind: pick(Kind::ALL, kind & !LAYERED),
            layered: kind & LAYERED != 0,
            config: QueueConfig {
                layer: pick(&LAYERS, layer),
                clock: clock_config(clock),
                plugging: switches & 1 == 0,
                merging: switches & 6 != 6,
                nr_requests: pick(&[None, Some(4), Some(6), Some(128)], pool),
                max_sectors: pick(&[1024, 16, 64, 8, u32::MAX], sizes >> 4),
                refusal_ends_merging: switches & 8 == 0,
                ordered: ordered_mode(ordered),
                hw_queues: pick(&[1, 4], clock >> 4),
                rotational: switches & 16 == 0,
            },
            capacity: capacity(pool, sizes, depth),
            depth: pick(&[1, 2, 4, 32, 1024], depth),
            pulls_each: switches & 16 != 0,
            stands_still: switches >> 5 == 7,
            calls: records.map(call).collect(),
        }
    }
}

const LAYERS: [BlockLayer; 6] = [
    BlockLayer::V2_6_18,
    BlockLayer::V2_6_24,
    BlockLayer::V2_6_29,
    BlockLayer::V3_4,
    BlockLayer::V4_19,
    BlockLayer::V6_1,
];

fn pick<T: Copy>(of: &[T], number: u8) -> T {
    of[number as usize % of.len()]
}

fn clock_config(byte: u8) -> ClockConfig {
    let uptime_ns = pick(&[10_000_000_000, 0, u64::MAX / 4], byte >> 4);
    ClockConfig { hz: pick(&[1000, 250, 100], byte), uptime_ns }
}

fn ordered_mode(byte: u8) -> OrderedMode {
    let (flush, fua) = (byte & 4 != 0, byte & 8 != 0);
    match byte & 3 {
        0 | 1 => OrderedMode::Drain { flush, fua },
        2 => OrderedMode::Tag { flush, fua },
        _ => OrderedMode::None,
    }
}

fn capacity(pool: u8, sizes: u8, depth: u8) -> Capacity {
    if depth >> 5 == 7 {
        return Capacity { requests: 1100, contexts: 200, merged_bios: 512, groups: 30 };
    }
    Capacity {
        requests: pick(&[40, 5, 12, 1], sizes & 3),
        contexts: pick(&[6, 2, 4, 1], (sizes >> 2) & 3),
        merged_bios: pick(&[64, 0, 3], pool >> 2),
        groups: pick(&[4, 1, 2, 12], pool >> 4),
    }
}

fn call(record: &[u8]) -> Call {
    let [what, a, b, c, d, e] = record.try_into().unwrap_or([0; RECORD_BYTES]);
    match what % 64 {
        0..=18 => submit(a, b, c, d, e),
        19 => Call::Burst { process: a.into(), op: op(d), place: place(b, c), count: e % 64 },
        20..=22 => Call::Next { hw_queue: None },
        23 | 24 => Call::Next { hw_queue: Some(pick(&[0, 1, 2, 3, 9, u16::MAX], a)) },
        25..=35 => Call::Complete { which: a },
        36 => Call::Requeue { which: a },
        37..=39 => Call::Pass { ns: duration(a, b) },
        40..=45 => Call::Timer,
        46 | 47 => Call::Create { pid: u32::from(a % 8), priority: priority(b), nice: nice(c) },
        48 | 49 => Call::Exit { process: a.into() },
        50 => Call::SetPriority { process: a.into(), priority: priority(b) },
        51 if c < 64 => {
            let policy = pick(&[CpuPolicy::Normal, CpuPolicy::RealTime, CpuPolicy::Idle], b);
            Call::SetPolicy { process: a.into(), policy }
        }
        51 => Call::SetNice { process: a.into(), nice: nice(b) },
        52 => Call::SetCpu { process: a.into(), cpu: pick(&[0, 1, 2, 3, 4, 64, u16::MAX], b) },
        53 | 54 => Call::SetTunable { index: a, value: value(b, c) },
        55 => Call::Switch { kind: pick(Kind::ALL, a), layered: b & 1 != 0 },
        56 | 57 => Call::CreateGroup { parent: a.into(), weights: weights(b, c) },
        58 => Call::Weigh { group: a.into(), weights: weights(b, c) },
        59 => Call::RemoveGroup { group: a.into() },
        60 | 61 => Call::Move { process: a.into(), group: b.into() },
        62 if c < 48 => Call::Release { process: a.into() },
        62 if c < 96 => Call::ReleaseGroup { group: a.into() },
        62 if e & 1 != 0 => Call::ReserveGroup { group: a.into(), reservation: reservation(b, c, d) },
        62 => Call::Reserve { process: a.into(), reservation: reservation(b, c, d) },
        _ => Call::Unplug,
    }
}

fn submit(process: u8, place_: u8, near: u8, length: u8, flags: u8) -> Call {
    let (process, place) = (u16::from(process), place(place_, near));
    let sectors = pick(&[8, 8, 8, 8, 8, 16, 1, 24, 0, 8, 8, 8, 1024, 8, 8, u32::MAX], length >> 1);
    let mut marks = Flags::NONE;
    for (bit, flag) in [(1, Flags::SYNC), (2, Flags::META), (4, Flags::IDLE), (8, Flags::UNPLUG), (16, Flags::FUA)] {
        if flags & bit != 0 {
            marks = marks.and(flag);
        }
    }
    // One in eight is a barrier, which is then a write.
    if flags >> 5 == 7 {
        return Call::Submit { process, op: Op::Write, place, sectors, flags: marks.and(Flags::BARRIER) };
    }
    Call::Submit { process, op: op(length), place, sectors, flags: marks }
}

/// Reads and writes, and sometimes a discard.
fn op(byte: u8) -> Op {
    match byte & 1 {
        0 => Op::Read,
        _ if byte >> 5 == 7 => Op::Discard,
        _ => Op::Write,
    }
}

/// Most bios are in one small area, so that they are often adjacent; some are at the ends of the
/// disk or directly beside the last one.
fn place(scale: u8, near: u8) -> Place {
    match scale % 16 {
        0 => Place::At(u64::from(near)),
        1 => Place::At(u64::MAX - u64::from(near)),
        2 => Place::At((1 << 63) + u64::from(near)),
        3 => Place::At(u64::from(near) << 20),
        4 | 5 => Place::AfterLast,
        6 => Place::AsLast,
        7 => Place::BeforeLast,
        _ => Place::At(u64::from(near % 48) * 8),
    }
}

fn duration(scale: u8, count: u8) -> u64 {
    pick(&[250_000, 1_000_000, 1, 10_000_000, 300_000_000], scale) * u64::from(count)
}

fn priority(byte: u8) -> Priority {
    let class = pick(&[Class::None, Class::BestEffort, Class::RealTime, Class::Idle], byte);
    Priority::new(class, (byte >> 2) & 7).unwrap_or_default()
}

fn nice(byte: u8) -> i8 {
    byte as i8 % 20
}

/// Mostly within the range, on a scale of powers of two; sometimes at its ends and beyond.
fn value(scale: u8, count: u8) -> Value {
    match scale % 8 {
        0 | 1 => Value::Of(i64::from(count % 40)),
        2 => Value::Of(pick(&[0, 1, i64::from(i32::MAX), i64::from(u32::MAX), -1, i64::MIN, i64::MAX], count)),
        3 => Value::Least,
        4 => Value::Greatest,
        _ => Value::Above((1 + u64::from(count >> 6)) << (count % 61)),
    }
}

fn weights(weight: u8, leaf: u8) -> GroupWeights {
    let of = |byte: u8| pick(&[100, 1, 1000, 10, 500, 7, 0, 1001, u16::MAX], byte);
    GroupWeights { weight: of(weight), leaf_weight: of(leaf % 6) }
}

/// Rates from small ones, for a device with a few requests of 4 KiB a ms, to ones beyond any
/// capacity.
fn reservation(rate: u8, depth: u8, length: u8) -> Reservation {
    let bytes_per_second = pick(&[100_000, 1_000_000, 4_000_000, 1, 0, Reservation::RATE_MAX], rate);
    let depth_bytes = pick(&[None, Some(4096), Some(65_536), Some(1), Some(0), Some(u64::MAX)], depth);
    Reservation { bytes_per_second, depth_bytes, request_bytes: pick(&[131_072, 4096, 1 << 30, 0], length) }
}
