//! The tunables of CFQ's final form.

use crate::elevator::info::Info;
use crate::elevator::tunable::{Tunable, Unit};
use crate::elevators::shared::slice_tunables::{
    BACK_SEEK_MAX, BACK_SEEK_PENALTY, FIFO_EXPIRE_ASYNC, FIFO_EXPIRE_SYNC, QUANTUM, SLICE_ASYNC, SLICE_ASYNC_RQ,
    SLICE_IDLE, SLICE_SYNC, async_requests_at_level, slice_at_level,
};
use crate::layer::BlockLayer;

const fn switch(name: &'static str, default: i64, meaning: &'static str, trade_off: &'static str) -> Tunable {
    Tunable { name, unit: Unit::Switch, default, min: 0, max: 1, meaning, trade_off }
}

/// The same time under a second name, in microseconds.
const fn fine(name: &'static str, default_ms: i64, min: i64, meaning: &'static str) -> Tunable {
    let (unit, default, max) = (Unit::Microseconds, default_ms * 1000, u32::MAX as i64);
    Tunable { name, unit, default, min, max, meaning, trade_off: "As there." }
}

const COUNT: usize = 18;

/// The row of the registry.
pub(crate) const INFO: Info = Info {
    name: "cfq",
    aliases: &[],
    kernel: "4.19 (this form from 2.6.33 to 4.20)",
    in_linux: "2.6.33-4.20",
    headline: "A slice of time by group, class and process",
    idea: "Groups share the disk by weight. Within a group real time precedes best effort and \
           idle. Each process has the disk for a slice of time, scaled by its priority and \
           shortened with the number of processes. The disk is kept idle for a few ms for \
           sequential readers; seeky processes share the idling; two processes that read adjacent \
           sectors share a queue.",
    suits: "One disk, many processes, shares by control group: fair, with short waits. Costs \
            throughput where idling is useless (arrays and flash, where slice_idle defaults to 0).",
    layer: BlockLayer::V4_19,
    groups: true,
    reservations: false,
    nr_requests: None,
    hashes_back_merges: false,
    tunables: &TUNABLES,
};

const TUNABLES: [Tunable; COUNT] = [
    Tunable {
        default: 8,
        meaning: "Requests of one queue in the device at a time while others wait; half of them \
                  without further conditions.",
        ..QUANTUM
    },
    Tunable {
        meaning: "The age from which a queue's oldest request goes first, checked once a slice. A \
                  sync request that took longer holds back async requests for some time.",
        ..FIFO_EXPIRE_SYNC
    },
    FIFO_EXPIRE_ASYNC,
    BACK_SEEK_MAX,
    BACK_SEEK_PENALTY,
    SLICE_SYNC,
    SLICE_ASYNC,
    Tunable {
        meaning: "The base b of the maximum of async requests in a slice while others wait: 2 * (b \
                  + b * (7 - level)), 16 at level 4.",
        ..SLICE_ASYNC_RQ
    },
    Tunable {
        meaning: "How long the disk is kept idle for a process's next sync request; 0 disables \
                  idling. The default on non-rotational devices is 0.",
        ..SLICE_IDLE
    },
    Tunable {
        name: "group_idle",
        meaning: "How long the disk is kept idle for the last process of a group if slice_idle \
                  does not apply; 0 disables it.",
        trade_off: "Longer keeps the shares of groups exact; 0 gives throughput.",
        ..SLICE_IDLE
    },
    switch(
        "low_latency",
        1,
        "1 shortens slices so that all processes have a turn within target_latency, and lets async \
         requests into the device only slowly after a late sync request.",
        "Off, slices are longer: more throughput, longer waits.",
    ),
    Tunable {
        name: "target_latency",
        unit: Unit::Milliseconds,
        default: 300,
        min: 1,
        max: u32::MAX as i64,
        meaning: "The time within which every process should have a turn.",
        trade_off: "Shorter makes slices shorter and seeks more.",
    },
    fine("slice_sync_us", 100, 1, "slice_sync in us: both names set the same time."),
    fine("slice_async_us", 40, 1, "slice_async in us."),
    fine("slice_idle_us", 8, 0, "slice_idle in us."),
    fine("group_idle_us", 8, 0, "group_idle in us."),
    fine("target_latency_us", 300, 1, "target_latency in us."),
    switch(
        "groups",
        1,
        "0 is a kernel built without groups (CONFIG_CFQ_GROUP_IOSCHED): all processes belong to \
         the root, and think times of groups are not considered. Such a kernel also had group_idle \
         0. Not a tunable of the kernel.",
        "Off, weights of groups have no effect.",
    ),
];

const NS_PER_US: u64 = 1000;
const NS_PER_MS: u64 = 1_000_000;

/// The values; times in ns.
#[derive(Debug)]
pub(super) struct Tunables {
    pub quantum: u32,
    /// The ages from which requests go first, in ns: async, sync.
    pub fifo_expire: [u64; 2],
    /// The maximum distance behind the head, in KiB.
    back_seek_max: u64,
    pub back_penalty: u64,
    /// The base lengths of slices, in ns: async, sync.
    pub slice: [u64; 2],
    pub slice_async_rq: u32,
    pub slice_idle: u64,
    pub group_idle: u64,
    pub low_latency: bool,
    pub target_latency: u64,
    pub groups: bool,
}

impl Tunables {
    /// The defaults for a rotational or non-rotational device.
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

    /// The maximum distance behind the head, in sectors.
    pub fn back_max_sectors(&self) -> u64 {
        self.back_seek_max.saturating_mul(2)
    }

    /// The length of a slice if few contexts share the disk, in ns.
    pub fn slice_of(&self, sync: bool, level: u8) -> u64 {
        let [slice_async, slice_sync] = self.slice;
        slice_at_level(if sync { slice_sync } else { slice_async }, level)
    }

    /// The maximum of async requests in a slice while others wait.
    pub fn max_async_requests(&self, level: u8) -> u32 {
        async_requests_at_level(self.slice_async_rq, level)
    }
}
