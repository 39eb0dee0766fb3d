//! The tunables of CFQ's final form.

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

const fn switch(name: &'static str, default: i64, meaning: &'static str, trade_off: &'static str) -> Tunable {
    Tunable { name, unit: Unit::Switch, default, min: 0, max: 1, meaning, trade_off }
}

/// The same time under the name by which it is given in microseconds.
const fn fine(name: &'static str, default_ms: i64, min: i64, meaning: &'static str) -> Tunable {
    row(name, Unit::Microseconds, default_ms * 1000, min, meaning, "As there.")
}

const COUNT: usize = 18;

/// What the registry tells of the elevator.
pub(crate) const INFO: Info = Info {
    name: "cfq",
    aliases: &["cfq-final"],
    kernel: "4.19 (this form from 2.6.33 to 4.20)",
    idea: "Groups share the disk by weight, within a group real time goes before best effort before idle, and each process has it \
           for a slice of time that its priority scales and the number of processes shortens. For one that reads in order the disk is \
           kept idle a few ms; those that seek are waited for together; two that read side by side share a queue.",
    suits: "One disk, many processes, shares by control group: fair, with short waits. Costs throughput where idling is in vain \
            (arrays, flash: there slice_idle is 0 from the start).",
    layer: BlockLayer::V4_19,
    groups: true,
    nr_requests: None,
    hashes_back_merges: false,
    tunables: &TUNABLES,
};

const TUNABLES: [Tunable; COUNT] = [
    row(
        "quantum",
        Unit::Requests,
        8,
        1,
        "Requests of one queue in the device at a time while others wait; half of it without further ado.",
        "Higher keeps a deep device busy and makes latencies of other queues longer.",
    ),
    row(
        "fifo_expire_sync",
        Unit::Milliseconds,
        125,
        1,
        "The age from which a queue's oldest request goes first, looked at once a slice; a sync request that took \
         longer holds async ones back for a while.",
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
    row("slice_async", Unit::Milliseconds, 40, 1, "The slice of an async queue at level 4.", "Longer favours writes."),
    row(
        "slice_async_rq",
        Unit::Requests,
        2,
        1,
        "The base of the number of async requests a slice: 2 * base * (8 - level), 16 at level 4.",
        "Higher favours writes and lengthens the reads' wait.",
    ),
    row(
        "slice_idle",
        Unit::Milliseconds,
        8,
        0,
        "How long the disk is kept idle for a process's next sync request; 0 never. On a device without an arm it is 0 to begin with.",
        "Longer keeps slow readers together; 0 gives throughput on devices without seeks and loses fairness.",
    ),
    row(
        "group_idle",
        Unit::Milliseconds,
        8,
        0,
        "How long it is kept idle for the last process of a group, where slice_idle does not; 0 never.",
        "Longer keeps shares of groups exact; 0 gives throughput.",
    ),
    switch(
        "low_latency",
        1,
        "1 shortens slices so that all processes have a turn within target_latency, and lets async requests into the device only slowly \
         after a late sync one.",
        "Off, slices are longer: more throughput, longer waits.",
    ),
    row(
        "target_latency",
        Unit::Milliseconds,
        300,
        1,
        "The time within which every process should have a turn.",
        "Shorter makes slices shorter and seeks more.",
    ),
    fine("slice_sync_us", 100, 1, "slice_sync in us: both names set the same time."),
    fine("slice_async_us", 40, 1, "slice_async in us."),
    fine("slice_idle_us", 8, 0, "slice_idle in us."),
    fine("group_idle_us", 8, 0, "group_idle in us."),
    fine("target_latency_us", 300, 1, "target_latency in us."),
    switch(
        "groups",
        1,
        "0 is a kernel built without groups (CONFIG_CFQ_GROUP_IOSCHED): all processes count as in the root, and nobody's group is \
         known to think long. Such a kernel had group_idle 0 too. Not a tunable of the kernel's.",
        "Off, weights of groups do not count.",
    ),
];

const NS_PER_US: u64 = 1000;
const NS_PER_MS: u64 = 1_000_000;

/// Their values; times in ns.
#[derive(Debug)]
pub(super) struct Tunables {
    pub quantum: u32,
    /// Async, sync.
    pub fifo_expire: [u64; 2],
    /// In KiB.
    back_seek_max: u64,
    pub back_penalty: u64,
    /// Async, sync.
    pub slice: [u64; 2],
    pub slice_async_rq: u32,
    pub slice_idle: u64,
    pub group_idle: u64,
    pub low_latency: bool,
    pub target_latency: u64,
    pub groups: bool,
}

impl Tunables {
    /// The defaults for a device whose arm moves, or that has none.
    pub fn defaults(rotational: bool) -> Tunables {
        let mut new = Tunables {
            quantum: 0,
            fifo_expire: [0; 2],
            back_seek_max: 0,
            back_penalty: 0,
            slice: [0; 2],
            slice_async_rq: 0,
            slice_idle: 0,
            group_idle: 0,
            low_latency: false,
            target_latency: 0,
            groups: false,
        };
        for (index, tunable) in TUNABLES.iter().enumerate() {
            new.set(index, tunable.default);
        }
        if !rotational {
            new.slice_idle = 0;
        }
        new
    }

    pub fn get(&self, index: usize) -> i64 {
        let [fifo_async, fifo_sync] = self.fifo_expire;
        let [slice_async, slice_sync] = self.slice;
        let value = match index {
            0 => u64::from(self.quantum),
            1 => fifo_sync / NS_PER_MS,
            2 => fifo_async / NS_PER_MS,
            3 => self.back_seek_max,
            4 => self.back_penalty,
            5 => slice_sync / NS_PER_MS,
            6 => slice_async / NS_PER_MS,
            7 => u64::from(self.slice_async_rq),
            8 => self.slice_idle / NS_PER_MS,
            9 => self.group_idle / NS_PER_MS,
            10 => u64::from(self.low_latency),
            11 => self.target_latency / NS_PER_MS,
            12 => slice_sync / NS_PER_US,
            13 => slice_async / NS_PER_US,
            14 => self.slice_idle / NS_PER_US,
            15 => self.group_idle / NS_PER_US,
            16 => self.target_latency / NS_PER_US,
            _ => u64::from(self.groups),
        };
        value as i64
    }

    pub fn set(&mut self, index: usize, value: i64) {
        let value = value.unsigned_abs();
        let (ms, us) = (value.saturating_mul(NS_PER_MS), value.saturating_mul(NS_PER_US));
        match index {
            0 => self.quantum = value as u32,
            1 => self.fifo_expire[1] = ms,
            2 => self.fifo_expire[0] = ms,
            3 => self.back_seek_max = value,
            4 => self.back_penalty = value,
            5 => self.slice[1] = ms,
            6 => self.slice[0] = ms,
            7 => self.slice_async_rq = value as u32,
            8 => self.slice_idle = ms,
            9 => self.group_idle = ms,
            10 => self.low_latency = value != 0,
            11 => self.target_latency = ms,
            12 => self.slice[1] = us,
            13 => self.slice[0] = us,
            14 => self.slice_idle = us,
            15 => self.group_idle = us,
            16 => self.target_latency = us,
            _ => self.groups = value != 0,
        }
    }

    /// How far behind the head a request may lie, in sectors of half a KiB.
    pub fn back_max_sectors(&self) -> u64 {
        self.back_seek_max.saturating_mul(2)
    }

    /// The length of a slice where few share the disk: a fifth of the base more or less a level.
    pub fn slice_of(&self, sync: bool, level: u8) -> u64 {
        let [slice_async, slice_sync] = self.slice;
        let base = if sync { slice_sync } else { slice_async };
        let step = base / 5;
        let longer = step.saturating_mul(u64::from(4u8.saturating_sub(level)));
        let shorter = step.saturating_mul(u64::from(level.saturating_sub(4)));
        base.saturating_add(longer).saturating_sub(shorter)
    }

    /// How many async requests a slice may have while others wait.
    pub fn max_async_requests(&self, level: u8) -> u32 {
        self.slice_async_rq.saturating_mul(2).saturating_mul(u32::from(8u8.saturating_sub(level)))
    }
}
