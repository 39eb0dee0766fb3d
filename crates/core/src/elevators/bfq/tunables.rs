//! The tunables of BFQ in mainline.

use crate::elevator::info::Info;
use crate::elevator::tunable::{Tunable, Unit};
use crate::elevators::shared::slice_tunables::{
    BACK_SEEK_MAX, BACK_SEEK_PENALTY, FIFO_EXPIRE_ASYNC, FIFO_EXPIRE_SYNC, SLICE_IDLE,
};
use crate::layer::BlockLayer;

const fn row(
    name: &'static str,
    unit: Unit,
    default: i64,
    min: i64,
    meaning: &'static str,
    trade_off: &'static str,
) -> Tunable {
    Tunable { name, unit, default, min, max: i32::MAX as i64, meaning, trade_off }
}

const fn switch(name: &'static str, default: i64, meaning: &'static str, trade_off: &'static str) -> Tunable {
    Tunable { name, unit: Unit::Switch, default, min: 0, max: 1, meaning, trade_off }
}

/// The row of the registry.
pub(crate) const INFO: Info = Info {
    name: "bfq",
    aliases: &[],
    kernel: "6.1 (mainline since 4.12)",
    in_linux: "from 4.12",
    headline: "Budgets by weight; favours starting programs",
    idea: "One queue at a time is in service, for a budget of sectors. B-WF2Q+ selects the next, \
           so each queue gets the share of its weight however large its budgets are; seeky queues \
           are charged for their time. Queues that start a program or play media are raised; those \
           that read adjacent sectors share a queue; idle gaps are filled with other queues' \
           requests.",
    suits: "Personal systems on slow disks, and guaranteed bandwidth shares among processes and \
            groups. It costs more processor time per request than the other schedulers of its \
            kernel.",
    layer: BlockLayer::V6_1,
    groups: true,
    reservations: false,
    nr_requests: None,
    hashes_back_merges: true,
    tunables: &[
        Tunable {
            meaning: "The age from which a queue's oldest sync request goes first, checked once a \
                      slot.",
            ..FIFO_EXPIRE_SYNC
        },
        FIFO_EXPIRE_ASYNC,
        BACK_SEEK_MAX,
        BACK_SEEK_PENALTY,
        SLICE_IDLE,
        row("slice_idle_us", Unit::Microseconds, 8000, 0, "The same, more finely.", "As above."),
        row(
            "max_budget",
            Unit::Sectors,
            0,
            0,
            "The maximum budget; 0 is the volume that the device transfers in timeout_sync, as \
             measured.",
            "Larger seeks less; other processes wait longer for their turn.",
        ),
        row(
            "timeout_sync",
            Unit::Milliseconds,
            125,
            1,
            "The maximum time of a queue in service, sync or async.",
            "Longer seeks less; shorter bounds the time of a seeky queue.",
        ),
        switch(
            "low_latency",
            1,
            "1 raises queues for some time: the weight of a queue that starts a program is \
             multiplied by 30, that of one that plays media by 3000.",
            "On, a system stays responsive under load; off, shares follow weights alone.",
        ),
        switch(
            "strict_guarantees",
            0,
            "1 keeps the disk idle for every queue and sends one request at a time; slice_idle \
             becomes 8 ms if it is less.",
            "On, shares are exact whatever the device does with its own queue; throughput falls.",
        ),
        switch(
            "groups",
            1,
            "0 is a kernel built without CONFIG_BFQ_GROUP_IOSCHED: all processes belong to the \
             root. Not a tunable of the kernel.",
            "Off, weights of groups have no effect.",
        ),
        switch(
            "search_fixed",
            0,
            "1 selects the least finish of all eligible queues; as shipped, the search may return \
             another one. Not a tunable of the kernel.",
            "On, the delay of a queue keeps the theoretical bound.",
        ),
        switch(
            "time_fixed",
            0,
            "1 keeps the virtual time when the last queue with requests has left; as shipped it \
             can move back. Not a tunable of the kernel.",
            "On, the virtual time never decreases.",
        ),
    ],
};

/// The number of tunables.
const COUNT: usize = 13;

/// The indices of tunables with special handling.
pub(super) mod index {
    pub const FIFO_EXPIRE_SYNC: usize = 0;
    pub const FIFO_EXPIRE_ASYNC: usize = 1;
    pub const BACK_SEEK_MAX: usize = 2;
    pub const BACK_SEEK_PENALTY: usize = 3;
    pub const SLICE_IDLE: usize = 4;
    pub const SLICE_IDLE_US: usize = 5;
    pub const MAX_BUDGET: usize = 6;
    pub const TIMEOUT_SYNC: usize = 7;
    pub const LOW_LATENCY: usize = 8;
    pub const STRICT_GUARANTEES: usize = 9;
    pub const GROUPS: usize = 10;
    pub const SEARCH_FIXED: usize = 11;
    pub const TIME_FIXED: usize = 12;
}

/// The minimum idle wait of strict guarantees, in ns.
const STRICT_IDLE_NS: u64 = 8_000_000;

/// The values as stored and in the units in which they are used.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tunables {
    stored: [i64; COUNT],
    /// The ages from which requests go first, in ns: async, sync.
    pub fifo_expire_ns: [u64; 2],
    pub back_max_sectors: u64,
    pub back_penalty: u64,
    pub slice_idle_ns: u64,
    /// The maximum budget in sectors; 0 is automatic.
    pub max_budget: u64,
    pub timeout_ms: u32,
    pub low_latency: bool,
    pub strict: bool,
    pub groups: bool,
}

impl Tunables {
    pub fn defaults() -> Tunables {
        let mut new = Tunables {
            stored: [0; COUNT],
            fifo_expire_ns: [0; 2],
            back_max_sectors: 0,
            back_penalty: 0,
            slice_idle_ns: 0,
            max_budget: 0,
            timeout_ms: 0,
            low_latency: false,
            strict: false,
            groups: false,
        };
        for (index, tunable) in INFO.tunables.iter().enumerate() {
            new.set(index, tunable.default);
        }
        new
    }

    pub fn get(&self, index: usize) -> i64 {
        match index {
            index::SLICE_IDLE => (self.slice_idle_ns / 1_000_000) as i64,
            index::SLICE_IDLE_US => (self.slice_idle_ns / 1000) as i64,
            _ => self.stored.get(index).copied().unwrap_or(0),
        }
    }

    pub fn set(&mut self, index: usize, stored: i64) {
        if let Some(value) = self.stored.get_mut(index) {
            *value = stored;
        }
        let value = stored.unsigned_abs();
        let ns_of_ms = value.saturating_mul(1_000_000);
        match index {
            index::FIFO_EXPIRE_SYNC => self.fifo_expire_ns[1] = ns_of_ms,
            index::FIFO_EXPIRE_ASYNC => self.fifo_expire_ns[0] = ns_of_ms,
            // KiB to sectors.
            index::BACK_SEEK_MAX => self.back_max_sectors = value.saturating_mul(2),
            index::BACK_SEEK_PENALTY => self.back_penalty = value,
            index::SLICE_IDLE => self.slice_idle_ns = ns_of_ms,
            index::SLICE_IDLE_US => self.slice_idle_ns = value.saturating_mul(1000),
            index::MAX_BUDGET => self.max_budget = value,
            index::TIMEOUT_SYNC => self.timeout_ms = value as u32,
            index::LOW_LATENCY => self.low_latency = value != 0,
            index::STRICT_GUARANTEES => {
                self.strict = value != 0;
                if self.strict {
                    self.slice_idle_ns = self.slice_idle_ns.max(STRICT_IDLE_NS);
                }
            }
            index::GROUPS => self.groups = value != 0,
            _ => {}
        }
    }
}
