//! The tunables of CFQ with time slices and priority lists.

use crate::clock::Clock;
use crate::layer::BlockLayer;
use crate::registry::Info;
use crate::tunable::{Tunable, Unit};

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

/// What the registry tells of the elevator.
pub(crate) const INFO: Info = Info {
    name: "cfq-v3",
    aliases: &[],
    kernel: "2.6.18 (this form from 2.6.13 to 2.6.21)",
    idea: "Each process has the disk to itself for a slice of time, which its priority scales; at the end of a burst the disk \
           is kept idle for a few ms for the process's next read. Async writes share one queue a level and are limited in number.",
    suits: "Desktops and servers with one disk and several processes: fair, with little seeking. Costs throughput where \
            idling is in vain (many random readers, arrays, flash).",
    layer: BlockLayer::V2_6_18,
    groups: false,
    reservations: false,
    nr_requests: None,
    hashes_back_merges: true,
    tunables: &[
        row(
            "quantum",
            Unit::Requests,
            4,
            1,
            "Requests moved to the dispatch list of one queue at a time.",
            "Higher keeps a deep device busy and makes latencies of other queues longer.",
        ),
        row("queued", Unit::Requests, 8, 1, "Without effect; the kernel had it still.", "None."),
        row(
            "fifo_expire_sync",
            Unit::Milliseconds,
            125,
            1,
            "The age from which a queue's oldest sync request goes first, once a slice.",
            "Shorter bounds latency within a queue and costs seeks.",
        ),
        row("fifo_expire_async", Unit::Milliseconds, 250, 1, "The same for async requests.", "As above."),
        row(
            "back_seek_max",
            Unit::Kibibytes,
            16384,
            0,
            "How far behind the head a request may lie and still be chosen before the sweep begins anew.",
            "Longer shortens seeks and may keep the head in one place.",
        ),
        row(
            "back_seek_penalty",
            Unit::Factor,
            2,
            1,
            "How many times farther a request behind the head counts.",
            "Higher makes the head move upwards more strictly.",
        ),
        row(
            "slice_sync",
            Unit::Milliseconds,
            100,
            1,
            "The slice of a sync queue at level 4; a fifth of it more or less for each level.",
            "Longer seeks less; other processes wait longer for their turn.",
        ),
        row(
            "slice_async",
            Unit::Milliseconds,
            40,
            1,
            "The slice of an async queue at level 4.",
            "Longer favours writes.",
        ),
        row(
            "slice_async_rq",
            Unit::Requests,
            2,
            1,
            "The base of the number of async requests a slice: 2 * (b + b * (7 - level)), 16 at level 4.",
            "Higher favours writes and lengthens the reads' wait.",
        ),
        row(
            "slice_idle",
            Unit::Milliseconds,
            8,
            0,
            "How long the disk is kept idle for a process's next sync request; 0 never.",
            "Longer keeps slow readers together; 0 gives throughput on devices without seeks and loses fairness.",
        ),
        Tunable {
            name: "v3_preempt_fixed",
            unit: Unit::Switch,
            default: 0,
            min: 0,
            max: 1,
            meaning: "1 lets a sync request take the disk from an async queue, as was meant; as shipped, a test that nothing can \
                      pass lets only idle-class queues be preempted. Not a tunable of the kernel's.",
            trade_off: "On, reads wait less behind writes.",
        },
    ],
};

/// Their values, as stored and in ticks.
#[derive(Debug)]
pub(super) struct Tunables {
    stored: [i64; 11],
    pub quantum: u32,
    /// Async, sync.
    pub fifo_expire: [u64; 2],
    pub back_max_sectors: u64,
    pub back_penalty: u64,
    /// Async, sync.
    pub slice: [u64; 2],
    pub slice_async_rq: u32,
    pub slice_idle: u64,
    pub preempt_fixed: bool,
}

impl Tunables {
    pub fn defaults(clock: &Clock) -> Tunables {
        let mut new = Tunables {
            stored: [0; 11],
            quantum: 0,
            fifo_expire: [0; 2],
            back_max_sectors: 0,
            back_penalty: 0,
            slice: [0; 2],
            slice_async_rq: 0,
            slice_idle: 0,
            preempt_fixed: false,
        };
        for (index, tunable) in INFO.tunables.iter().enumerate() {
            // Defaults are rounded down to ticks, but to one at least; what is stored later is rounded up.
            new.store(index, tunable.default, clock.ticks_of_ms(tunable.default.unsigned_abs()).max(1));
        }
        new
    }

    pub fn get(&self, index: usize) -> i64 {
        self.stored.get(index).copied().unwrap_or(0)
    }

    pub fn set(&mut self, clock: &Clock, index: usize, value: i64) {
        self.store(index, value, clock.ticks_of_stored_ms(value.unsigned_abs()));
    }

    /// Stores a value; `ticks` is what it comes to if it is a time in ms.
    fn store(&mut self, index: usize, value: i64, ticks: u64) {
        if let Some(stored) = self.stored.get_mut(index) {
            *stored = value;
        }
        let value = value.unsigned_abs();
        match index {
            0 => self.quantum = value as u32,
            1 => {}
            2 => self.fifo_expire[1] = ticks,
            3 => self.fifo_expire[0] = ticks,
            // KiB to sectors.
            4 => self.back_max_sectors = value.saturating_mul(2),
            5 => self.back_penalty = value,
            6 => self.slice[1] = ticks,
            7 => self.slice[0] = ticks,
            8 => self.slice_async_rq = value as u32,
            9 => self.slice_idle = ticks,
            _ => self.preempt_fixed = value != 0,
        }
    }

    /// The length of a slice in ticks: a fifth of the base more or less a level.
    pub fn slice_of(&self, sync: bool, level: u8) -> u64 {
        let base = if sync { self.slice[1] } else { self.slice[0] };
        let step = base / 5;
        let longer = step.saturating_mul(u64::from(4u8.saturating_sub(level)));
        let shorter = step.saturating_mul(u64::from(level.saturating_sub(4)));
        base.saturating_add(longer).saturating_sub(shorter)
    }

    /// How many async requests a slice may have.
    pub fn max_async_requests(&self, level: u8) -> u32 {
        let base = self.slice_async_rq;
        base.saturating_add(base.saturating_mul(u32::from(7u8.saturating_sub(level)))).saturating_mul(2)
    }
}
