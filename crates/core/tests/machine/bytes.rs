//! Cases as bytes.

use hoistway_core::{
    BlockLayer, Capacity, Class, ClockConfig, Flags, Kind, Op, OrderedMode, Priority, QueueConfig, Reservation,
};

/// The length of the header.
pub const HEADER_BYTES: usize = 8;
/// The length of a call.
pub const RECORD_BYTES: usize = 6;

/// A case: how the queue is made, and what is done with it.
#[derive(Clone, Debug)]
pub struct Case {
    pub kind: Kind,
    pub config: QueueConfig,
    pub capacity: Capacity,
    /// How many requests the device takes at once.
    pub depth: usize,
    pub calls: Vec<Call>,
}

/// A call, or what makes the host do some. Contexts and requests are chosen by number among those that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    Submit {
        process: u8,
        op: Op,
        sector: u64,
        sectors: u32,
        flags: Flags,
    },
    /// Takes one request, though nobody asked to.
    Next,
    Complete {
        which: u8,
    },
    Requeue {
        which: u8,
    },
    /// Lets time pass; timers that come due meanwhile fire late.
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
        process: u8,
    },
    SetPriority {
        process: u8,
        priority: Priority,
    },
    SetNice {
        process: u8,
        nice: i8,
    },
    Reserve {
        process: u8,
        reservation: Reservation,
    },
    Release {
        process: u8,
    },
    SetTunable {
        index: u8,
        value: i64,
    },
    Switch {
        kind: Kind,
    },
    Unplug,
}

impl Case {
    /// Reads a case; what is missing at the end reads as zeroes.
    pub fn read(bytes: &[u8]) -> Case {
        let mut header = [0; HEADER_BYTES];
        for (to, from) in header.iter_mut().zip(bytes) {
            *to = *from;
        }
        let [kind, layer, switches, pool, sizes, ordered, clock, depth] = header;
        let records = bytes.get(HEADER_BYTES..).unwrap_or_default().chunks_exact(RECORD_BYTES);
        Case {
            kind: pick(Kind::ALL, kind),
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
            },
            capacity: Capacity {
                requests: pick(&[40, 5, 12, 1], sizes & 3),
                contexts: pick(&[6, 2, 4, 1], (sizes >> 2) & 3),
                merged_bios: pick(&[64, 0, 3], pool >> 2),
                groups: pick(&[4, 1, 2], pool >> 4),
            },
            depth: pick(&[1, 2, 4, 32], depth),
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

fn call(record: &[u8]) -> Call {
    let [what, a, b, c, d, e] = record.try_into().unwrap_or([0; RECORD_BYTES]);
    match what % 32 {
        0..=9 => submit(a, b, c, d, e),
        10..=12 => Call::Next,
        13..=18 => Call::Complete { which: a },
        19 => Call::Requeue { which: a },
        20 | 21 => Call::Pass { ns: duration(a, b) },
        22..=24 => Call::Timer,
        25 => Call::Create { pid: u32::from(a % 8), priority: priority(b), nice: nice(c) },
        26 => Call::Exit { process: a },
        27 => Call::SetPriority { process: a, priority: priority(b) },
        28 if c < 64 => Call::SetNice { process: a, nice: nice(b) },
        28 if c < 112 => Call::Release { process: a },
        28 => Call::Reserve { process: a, reservation: reservation(b, c, d) },
        29 => Call::SetTunable { index: a, value: value(b, c) },
        30 => Call::Switch { kind: pick(Kind::ALL, a) },
        _ => Call::Unplug,
    }
}

/// Most bios lie in one small area, so that they touch; some lie at the ends of the disk, and some have lengths that matter.
fn submit(process: u8, place: u8, near: u8, length: u8, flags: u8) -> Call {
    let sector = match place % 16 {
        0 => u64::from(near),
        1 => u64::MAX - u64::from(near),
        2 => (1 << 63) + u64::from(near),
        3 => u64::from(near) << 20,
        _ => u64::from(near % 48) * 8,
    };
    let sectors = pick(&[8, 8, 8, 8, 8, 16, 1, 24, 0, 8, 8, 8, 1024, 8, 8, u32::MAX], length >> 1);
    let op = if length & 1 == 0 { Op::Read } else { Op::Write };
    let mut marks = Flags::NONE;
    for (bit, flag) in [(1, Flags::SYNC), (2, Flags::META), (4, Flags::IDLE), (8, Flags::UNPLUG), (16, Flags::FUA)] {
        if flags & bit != 0 {
            marks = marks.and(flag);
        }
    }
    // One in eight is a barrier, which then writes.
    if flags >> 5 == 7 {
        return Call::Submit { process, op: Op::Write, sector, sectors, flags: marks.and(Flags::BARRIER) };
    }
    Call::Submit { process, op, sector, sectors, flags: marks }
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

/// Rates that a device of the machine's speed (a few requests of 4 KiB a ms) hardly notices to such as nothing keeps up with.
fn reservation(rate: u8, depth: u8, length: u8) -> Reservation {
    let bytes_per_second = pick(&[100_000, 1_000_000, 4_000_000, 1, 0, Reservation::RATE_MAX], rate);
    let depth_bytes = pick(&[None, Some(4096), Some(65_536), Some(1), Some(0), Some(u64::MAX)], depth);
    Reservation { bytes_per_second, depth_bytes, request_bytes: pick(&[131_072, 4096, 1 << 30, 0], length) }
}

/// Small values mostly, and the ends of every range.
fn value(scale: u8, count: u8) -> i64 {
    let small = i64::from(count % 40);
    pick(&[small, small, small, 0, 1, i64::from(i32::MAX), i64::from(u32::MAX), -1, i64::MIN, i64::MAX], scale)
}
