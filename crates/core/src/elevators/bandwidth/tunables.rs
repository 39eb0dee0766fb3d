//! The tunables of the bandwidth class: the device's figures, and the treatment of unreserved
//! bandwidth.

use crate::elevator::reservation::Reservation;
use crate::elevator::tunable::{Tunable, Unit};

impl Reservation {
    /// The tunables of the layer: the device's figures for admission, and the treatment of
    /// unreserved bandwidth. They precede those of the elevator below.
    pub const TUNABLES: &'static [Tunable] = &ROWS;
}

const fn row(
    name: &'static str,
    unit: Unit,
    (default, min, max): (i64, i64, i64),
    meaning: &'static str,
    trade_off: &'static str,
) -> Tunable {
    Tunable { name, unit, default, min, max, meaning, trade_off }
}

/// The number of tunables.
pub(in crate::elevators) const COUNT: usize = 10;

/// The declarations; those of the inner elevator follow.
pub(crate) const ROWS: [Tunable; COUNT] = [
    row(
        "device_bandwidth",
        Unit::KilobytesPerSecond,
        (60_000, 1, 10_000_000),
        "The sustained rate of the device at its slowest place: on a disk, its innermost zone. 60 \
         MB/s is a 7200 rpm disk of 2008.",
        "Too high admits reservations that the device cannot serve (noted as degraded); too low \
         refuses reservations that it could serve.",
    ),
    row(
        "device_position",
        Unit::Microseconds,
        (12_000, 0, 1_000_000),
        "The positioning time per request: 12 ms for a 7200 rpm disk, 60 us for flash.",
        "As above.",
    ),
    row(
        "device_return",
        Unit::Microseconds,
        (15_000, 0, 1_000_000),
        "The return stroke at the end of a sweep: 15 ms for a disk, 0 for flash.",
        "As above.",
    ),
    row(
        "sweep_horizon",
        Unit::Milliseconds,
        (500, 1, 10_000),
        "The assumed period of sweeps, and the default depth of a bucket as a part of the rate.",
        "Longer makes larger bursts, fewer strokes and a longer wait for others.",
    ),
    row(
        "rt_headroom",
        Unit::Percent,
        (5, 0, 100),
        "The part of the device's time assumed for real-time processes. It is not enforced on them.",
        "Higher keeps the bounds under more real-time load and admits fewer reservations.",
    ),
    row(
        "be_floor",
        Unit::Percent,
        (10, 0, 100),
        "The part of the device's time that is left to best effort at any load of reservations.",
        "Higher guarantees more to best effort and admits fewer reservations.",
    ),
    row(
        "excess",
        Unit::Form,
        (0, 0, 1),
        "When requests beyond a reservation (the excess) are served: 0 after best effort, 1 in \
         turn with it, like one more process of level 4.",
        "1 gives reserving processes an unfair share at the cost of best effort.",
    ),
    row(
        "excess_wait",
        Unit::Milliseconds,
        (0, 0, 100),
        "The silence of best effort before the excess is served, unless it has a turn beside \
         waiting best effort (excess=1).",
        "0 never leaves the disk idle and serves an excess request after each one of a best-effort \
         reader that requests one at a time; 1 or 2 preserve the locality of such readers, and \
         waste as much time whenever best effort falls silent.",
    ),
    row(
        "dirs",
        Unit::Form,
        (0, 0, 2),
        "The reserved requests of a process: 0 reads, 1 writes, 2 both. The others are best effort.",
        "Buffered writes belong to the process that flushes them, so reserving them helps only \
         direct writers.",
    ),
    row(
        "bw_idle",
        Unit::Milliseconds,
        (0, 0, 2),
        "How long the disk waits for the next request of the reserving process just served, if \
         that is within its reservation.",
        "Waiting saves a seek for readers with one request at a time, and wastes the time if none \
         comes.",
    ),
];

/// The values of the tunables.
#[derive(Debug)]
pub(super) struct Tunables {
    stored: [i64; COUNT],
    pub bytes_per_second: u64,
    pub position_ns: u64,
    pub return_ns: u64,
    pub horizon_ns: u64,
    pub shares_excess: bool,
    pub excess_wait_ns: u64,
    pub reads: bool,
    pub writes: bool,
    pub idle_ns: u64,
}

impl Tunables {
    pub fn defaults() -> Tunables {
        let mut new = Tunables {
            stored: [0; COUNT],
            bytes_per_second: 0,
            position_ns: 0,
            return_ns: 0,
            horizon_ns: 0,
            shares_excess: false,
            excess_wait_ns: 0,
            reads: false,
            writes: false,
            idle_ns: 0,
        };
        for (index, tunable) in ROWS.iter().enumerate() {
            new.set(index, tunable.default);
        }
        new
    }

    pub fn get(&self, index: usize) -> i64 {
        self.stored.get(index).copied().unwrap_or(0)
    }

    pub fn set(&mut self, index: usize, value: i64) {
        if let Some(stored) = self.stored.get_mut(index) {
            *stored = value;
        }
        let value = value.unsigned_abs();
        match index {
            0 => self.bytes_per_second = value.saturating_mul(1000),
            1 => self.position_ns = value.saturating_mul(1000),
            2 => self.return_ns = value.saturating_mul(1000),
            3 => self.horizon_ns = value.saturating_mul(1_000_000),
            4 | 5 => {}
            6 => self.shares_excess = value != 0,
            7 => self.excess_wait_ns = value.saturating_mul(1_000_000),
            8 => (self.reads, self.writes) = (value != 1, value != 0),
            _ => self.idle_ns = value.saturating_mul(1_000_000),
        }
    }

    /// The device time that can be reserved, in ns a second: the rest beside real time and best
    /// effort.
    pub fn load_ns_max(&self) -> u64 {
        let kept = self.get(4).saturating_add(self.get(5)).unsigned_abs();
        100u64.saturating_sub(kept).saturating_mul(10_000_000)
    }
}
