//! The tunables of the anticipatory elevator.

use super::{ASYNC, SYNC};
use crate::clock::Clock;
use crate::elevator::info::Info;
use crate::elevator::tunable::{Tunable, Unit};
use crate::layer::BlockLayer;

const fn milliseconds(name: &'static str, default: i64, meaning: &'static str, trade_off: &'static str) -> Tunable {
    Tunable { name, unit: Unit::Milliseconds, default, min: 0, max: i32::MAX as i64, meaning, trade_off }
}

/// The row of the registry.
pub(crate) const INFO: Info = Info {
    name: "anticipatory",
    aliases: &["as"],
    kernel: "2.6.18 (in Linux from 2.6.0 to 2.6.32)",
    in_linux: "2.6.0-2.6.32",
    headline: "deadline that waits for a process's next read",
    idea: "Deadline's order in timed batches of reads and writes. After a read the disk is kept \
           idle for a few ms, because the same process will probably continue nearby.",
    suits: "Single slow disks with sequential readers. Many outstanding requests, arrays and flash \
            lose throughput.",
    layer: BlockLayer::V2_6_18,
    groups: false,
    reservations: false,
    nr_requests: None,
    hashes_back_merges: true,
    tunables: &[
        milliseconds(
            "read_expire",
            125,
            "The time after which a sync request should have been started; also the interval of \
             the checks.",
            "Shorter bounds latency and interrupts streams sooner.",
        ),
        milliseconds(
            "write_expire",
            250,
            "The same for an async write.",
            "A shorter time writes data back sooner and costs seeks.",
        ),
        milliseconds(
            "read_batch_expire",
            500,
            "How long reads are served while writes wait.",
            "Longer favours reads and their throughput.",
        ),
        milliseconds(
            "write_batch_expire",
            125,
            "The intended duration of a batch of writes; the number of writes in it is adapted.",
            "Longer favours writes; reads wait longer.",
        ),
        milliseconds(
            "antic_expire",
            6,
            "How long to wait for a process's next read; 0 disables waiting.",
            "Longer preserves the locality of slower readers and leaves the disk idle longer \
             without result.",
        ),
    ],
};

/// The values, in ms as stored and in ticks.
#[derive(Debug)]
pub(super) struct Tunables {
    stored: [i64; 5],
    /// By kind, in ticks.
    pub expire: [u64; 2],
    /// By kind, in ticks.
    pub batch_expire: [u64; 2],
    pub antic_expire: u64,
}

impl Tunables {
    pub fn defaults(clock: &Clock) -> Tunables {
        let mut new = Tunables { stored: [0; 5], expire: [0; 2], batch_expire: [0; 2], antic_expire: 0 };
        for (index, tunable) in INFO.tunables.iter().enumerate() {
            new.store(index, tunable.default, clock.ticks_of_ms(tunable.default.unsigned_abs()));
        }
        // Defaults are rounded down to ticks, this one to at least one tick: 6 ms are 4 ms at 250
        // Hz, 10 ms at 100 Hz.
        new.antic_expire = new.antic_expire.max(1);
        new
    }

    pub fn get(&self, index: usize) -> i64 {
        self.stored.get(index).copied().unwrap_or(0)
    }

    pub fn set(&mut self, clock: &Clock, index: usize, ms: i64) {
        self.store(index, ms, clock.ticks_of_stored_ms(ms.unsigned_abs()));
    }

    fn store(&mut self, index: usize, ms: i64, ticks: u64) {
        if let Some(stored) = self.stored.get_mut(index) {
            *stored = ms;
        }
        match index {
            0 => self.expire[SYNC] = ticks,
            1 => self.expire[ASYNC] = ticks,
            2 => self.batch_expire[SYNC] = ticks,
            3 => self.batch_expire[ASYNC] = ticks,
            _ => self.antic_expire = ticks,
        }
    }
}
