//! The tunables of the CFQ forms with time slices: their declarations, and their values in ticks.

use crate::clock::Clock;
use crate::elevator::tunable::{Tunable, Unit};
use crate::elevators::shared::chooser::Chooser;

const fn row(
    name: &'static str,
    unit: Unit,
    default: i64,
    min: i64,
    meaning: &'static str,
    trade_off: &'static str,
) -> Tunable {
    Tunable { name, unit, default, min, max: u32::MAX as i64, meaning, trade_off }
}

pub(crate) const QUANTUM: Tunable = row(
    "quantum",
    Unit::Requests,
    4,
    1,
    "Requests moved to the dispatch list from one queue at a time.",
    "Higher keeps a device with a deep queue busy and lengthens the latencies of other queues.",
);
pub(crate) const FIFO_EXPIRE_SYNC: Tunable = row(
    "fifo_expire_sync",
    Unit::Milliseconds,
    125,
    1,
    "The age from which a queue's oldest sync request goes first, checked once a slice.",
    "Shorter bounds latency within a queue and costs seeks.",
);
pub(crate) const FIFO_EXPIRE_ASYNC: Tunable = row(
    "fifo_expire_async",
    Unit::Milliseconds,
    250,
    1,
    "The age from which a queue's oldest async request goes first.",
    "Shorter bounds latency within a queue and costs seeks.",
);
pub(crate) const BACK_SEEK_MAX: Tunable = row(
    "back_seek_max",
    Unit::Kibibytes,
    16384,
    0,
    "The largest distance behind the head at which a request may be chosen before the next sweep.",
    "A larger distance shortens seeks, but the head may stay in one region.",
);
pub(crate) const BACK_SEEK_PENALTY: Tunable = row(
    "back_seek_penalty",
    Unit::Factor,
    2,
    1,
    "The factor by which distances behind the head are multiplied in the choice of a request.",
    "With a higher factor the head moves upwards more strictly.",
);
pub(crate) const SLICE_SYNC: Tunable = row(
    "slice_sync",
    Unit::Milliseconds,
    100,
    1,
    "The slice of a sync queue at level 4; each level adds or removes a fifth.",
    "Longer seeks less, but other processes wait longer for their turn.",
);
pub(crate) const SLICE_ASYNC: Tunable =
    row("slice_async", Unit::Milliseconds, 40, 1, "The slice of an async queue at level 4.", "Longer favours writes.");
pub(crate) const SLICE_ASYNC_RQ: Tunable = row(
    "slice_async_rq",
    Unit::Requests,
    2,
    1,
    "The base b of the maximum of async requests in a slice: 2 * (b + b * (7 - level)), 16 at \
     level 4.",
    "Higher favours writes and lengthens the wait of reads.",
);
pub(crate) const SLICE_IDLE: Tunable = row(
    "slice_idle",
    Unit::Milliseconds,
    8,
    0,
    "How long the disk is kept idle for a process's next sync request; 0 disables idling.",
    "Longer preserves the locality of slow readers; 0 gives throughput on devices without seeks \
     and loses fairness.",
);

/// The values as stored and as used.
#[derive(Debug, Default)]
pub(crate) struct SliceTunables {
    /// The values as stored, in the order of the elevator's own list.
    stored: [i64; 16],
    pub quantum: u32,
    /// The ages from which requests go first, in ticks: async, sync.
    pub fifo_expire: [u64; 2],
    pub back_max_sectors: u64,
    pub back_penalty: u64,
    /// The base lengths of slices, in ticks: async, sync.
    pub slice: [u64; 2],
    pub slice_async_rq: u32,
    pub slice_idle: u64,
}

impl SliceTunables {
    /// Creates the values from the defaults of these rows.
    pub fn defaults(rows: &[Tunable], clock: &Clock) -> SliceTunables {
        let mut new = SliceTunables::default();
        debug_assert!(rows.len() <= new.stored.len());
        for (index, row) in rows.iter().enumerate() {
            // Defaults are rounded down to ticks, but to at least one; values stored later are
            // rounded up.
            new.store(row, index, row.default, clock.ticks_of_ms(row.default.unsigned_abs()).max(1));
        }
        new
    }

    /// The stored value at `index` of the rows.
    pub fn get(&self, index: usize) -> i64 {
        self.stored.get(index).copied().unwrap_or(0)
    }

    /// Sets the value at `index` of the rows.
    pub fn set(&mut self, rows: &[Tunable], clock: &Clock, index: usize, value: i64) {
        if let Some(row) = rows.get(index) {
            self.store(row, index, value, clock.ticks_of_stored_ms(value.unsigned_abs()));
        }
    }

    /// Stores a value; `ticks` is its conversion if it is a time in ms.
    fn store(&mut self, row: &Tunable, index: usize, value: i64, ticks: u64) {
        if let Some(stored) = self.stored.get_mut(index) {
            *stored = value;
        }
        let value = value.unsigned_abs();
        match row.name {
            "quantum" => self.quantum = value as u32,
            "fifo_expire_sync" => self.fifo_expire[1] = ticks,
            "fifo_expire_async" => self.fifo_expire[0] = ticks,
            // KiB to sectors.
            "back_seek_max" => self.back_max_sectors = value.saturating_mul(2),
            "back_seek_penalty" => self.back_penalty = value,
            "slice_sync" => self.slice[1] = ticks,
            "slice_async" => self.slice[0] = ticks,
            "slice_async_rq" => self.slice_async_rq = value as u32,
            "slice_idle" => self.slice_idle = ticks,
            _ => {}
        }
    }

    /// The length of a slice in ticks: each level adds or removes a fifth of the base.
    pub fn slice_of(&self, sync: bool, level: u8) -> u64 {
        slice_at_level(if sync { self.slice[1] } else { self.slice[0] }, level)
    }

    /// The maximum of async requests in a slice.
    pub fn max_async_requests(&self, level: u8) -> u32 {
        async_requests_at_level(self.slice_async_rq, level)
    }

    /// The chooser with these parameters.
    pub fn chooser(&self, marks_count: bool) -> Chooser {
        Chooser { back_max: self.back_max_sectors, back_penalty: self.back_penalty, marks_count }
    }
}

/// The length of a slice at a level, from its length at level 4: each level adds or removes a
/// fifth.
pub(crate) fn slice_at_level(base: u64, level: u8) -> u64 {
    let step = base / 5;
    let longer = step.saturating_mul(u64::from(4u8.saturating_sub(level)));
    let shorter = step.saturating_mul(u64::from(level.saturating_sub(4)));
    base.saturating_add(longer).saturating_sub(shorter)
}

/// The maximum of async requests in a slice at a level: 2 * (base + base * (7 - level)).
pub(crate) fn async_requests_at_level(base: u32, level: u8) -> u32 {
    base.saturating_add(base.saturating_mul(u32::from(7u8.saturating_sub(level)))).saturating_mul(2)
}
