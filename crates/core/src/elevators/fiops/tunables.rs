//! The tunables of FIOPS, and what a request costs by them.

use crate::elevator::info::Info;
use crate::elevator::tunable::{Tunable, Unit};
use crate::layer::BlockLayer;
use crate::priority::Priority;
use crate::request::Request;

const fn scale(name: &'static str, default: i64, meaning: &'static str, trade_off: &'static str) -> Tunable {
    Tunable { name, unit: Unit::Factor, default, min: 1, max: 100, meaning, trade_off }
}

const fn form(name: &'static str, default: i64, max: i64, meaning: &'static str, trade_off: &'static str) -> Tunable {
    let unit = if max == 1 { Unit::Switch } else { Unit::Form };
    Tunable { name, unit, default, min: 0, max, meaning, trade_off }
}

/// What the registry tells of the elevator.
pub(crate) const INFO: Info = Info {
    name: "fiops",
    aliases: &[],
    kernel: "posted for 3.4, 2012 (its second version; form 1 is the first)",
    in_linux: "posted 2012",
    headline: "Who has spent least goes next; made for flash",
    idea: "Each request costs its process so many vios, by direction, sync or async, and priority; the process that has spent least goes next, \
           in order of arrival. No slices, no idling, no sorting.",
    suits: "Flash with deep queues and several processes or groups that are to have equal shares of requests. On a disk with an arm it seeks \
            for every request, and large requests cost as much as small ones.",
    layer: BlockLayer::V3_4,
    groups: true,
    reservations: false,
    nr_requests: None,
    hashes_back_merges: false,
    tunables: &[
        scale(
            "read_scale",
            1,
            "A write costs write_scale / read_scale times what a read costs.",
            "Higher makes writes cheaper.",
        ),
        scale("write_scale", 1, "See read_scale.", "Higher where writes keep the device busy for longer than reads."),
        scale(
            "sync_scale",
            2,
            "An async request costs async_scale / sync_scale times what a sync one costs.",
            "Higher gives async writes a larger share.",
        ),
        scale("async_scale", 5, "See sync_scale.", "Higher favours who waits over who writes in the background."),
        form(
            "deep_share",
            1,
            1,
            "A process that returns while requests of it are in the device keeps its place, instead of being taken for one that was idle.",
            "On is fair to deep queues, whose list of waiting requests is often empty for a moment; it can be behind and catch up.",
        ),
        form(
            "postpone_async",
            1,
            1,
            "The async requests of a class's only process wait while sync requests are in the device.",
            "On lets the sync requests that follow a completion go first; a lone writer then uses less of the device.",
        ),
        form(
            "sync_preempt",
            0,
            2,
            "1 serves the first process whose next request is sync, if that of the one whose turn it is is async. 2 is that as it was shipped, in a patch \
             for experiments: if there is none, it takes the process that has spent most.",
            "On shortens the wait of reads behind async writes and lets async ones starve within a class.",
        ),
        form(
            "reread_priority",
            0,
            1,
            "A changed I/O priority counts from the process's next request on. The code of 3.4 reads the priority with a process's first request \
             and never again.",
            "On does what ionice promises.",
        ),
        Tunable {
            name: "size_cost",
            unit: Unit::Kibibytes,
            default: 0,
            min: 0,
            max: 1 << 20,
            meaning: "A request of so many KiB costs twice what an empty one would, and longer ones more in proportion: what the device transfers in the \
                      time that it takes for one request. With 0 size does not count, as in the kernel, where this was left to do.",
            trade_off: "Set, it is bandwidth that is shared, for large requests; with 0, requests.",
        },
        form(
            "groups",
            0,
            1,
            "Groups of contexts are served by what they have spent in all, divided by their weight, and their processes within them. \
             Nested groups compete side by side. Left to do in the kernel.",
            "On, a group's share does not grow with the number of its processes.",
        ),
        form(
            "form",
            0,
            1,
            "0 is the second version posted. 1 is the first: every request costs the same, one tree for all classes, no deep_share, no postponing.",
            "The second version knows priorities and what sync means.",
        ),
    ],
};

/// What a read of a process of normal priority costs.
pub(super) const VIOS: u64 = 1024;
/// A level more or less is this part of the cost.
const LEVELS_A_COST: u64 = 5;
/// The level that costs neither more nor less.
const NORMAL_LEVEL: u8 = crate::priority::NORMAL_LEVEL;
/// No request costs more: so sums of costs keep their order by signed difference.
const COST_MAX: u64 = 1 << 48;

/// Whether the tunable at this place decides which share a process belongs to; a changed priority alone counts when the process is filed next.
pub(super) fn decides_shares(index: usize) -> bool {
    matches!(index, 9 | 10)
}

/// What is done when an async request's turn has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SyncPreempt {
    Off,
    On,
    Shipped,
}

/// Their values.
#[derive(Debug)]
pub(super) struct Tunables {
    stored: [i64; 11],
    read_scale: u64,
    write_scale: u64,
    sync_scale: u64,
    async_scale: u64,
    deep_share: bool,
    postpone_async: bool,
    pub sync_preempt: SyncPreempt,
    pub reread_priority: bool,
    size_cost_bytes: u64,
    pub groups: bool,
    pub first_form: bool,
}

impl Tunables {
    pub fn defaults() -> Tunables {
        let mut new = Tunables {
            stored: [0; 11],
            read_scale: 1,
            write_scale: 1,
            sync_scale: 1,
            async_scale: 1,
            deep_share: false,
            postpone_async: false,
            sync_preempt: SyncPreempt::Off,
            reread_priority: false,
            size_cost_bytes: 0,
            groups: false,
            first_form: false,
        };
        for (index, tunable) in INFO.tunables.iter().enumerate() {
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
        let number = value.unsigned_abs();
        match index {
            0 => self.read_scale = number,
            1 => self.write_scale = number,
            2 => self.sync_scale = number,
            3 => self.async_scale = number,
            4 => self.deep_share = value != 0,
            5 => self.postpone_async = value != 0,
            6 => {
                self.sync_preempt = match value {
                    0 => SyncPreempt::Off,
                    1 => SyncPreempt::On,
                    _ => SyncPreempt::Shipped,
                }
            }
            7 => self.reread_priority = value != 0,
            // KiB to bytes.
            8 => self.size_cost_bytes = number.saturating_mul(1024),
            9 => self.groups = value != 0,
            _ => self.first_form = value != 0,
        }
    }

    /// Whether who returns with requests in the device keeps its place.
    pub fn shares_deep(&self) -> bool {
        self.deep_share && !self.first_form
    }

    /// Whether async requests may have to wait for sync ones in the device.
    pub fn postpones_async(&self) -> bool {
        self.postpone_async && !self.first_form
    }

    /// What a request costs a process of this priority, in vios: at least 1, so that nobody is served for nothing. Each division truncates.
    pub fn cost(&self, request: &Request, priority: Priority) -> u64 {
        if self.first_form {
            return VIOS;
        }
        let mut cost = VIOS;
        if self.size_cost_bytes > 0 {
            let bytes = u64::from(request.sectors).saturating_mul(512);
            cost = cost.saturating_add(cost.saturating_mul(bytes) / self.size_cost_bytes.max(1));
        }
        if request.op != crate::bio::Op::Read {
            cost = cost.saturating_mul(self.write_scale) / self.read_scale.max(1);
        }
        if !request.is_sync() {
            cost = cost.saturating_mul(self.async_scale) / self.sync_scale.max(1);
        }
        cost_at_level(cost, priority.level()).clamp(1, COST_MAX)
    }
}

/// What a request costs at a level, of what it costs at level 4: a fifth more or less a level.
pub(crate) fn cost_at_level(cost: u64, level: u8) -> u64 {
    let more = cost.saturating_mul(u64::from(level.saturating_sub(NORMAL_LEVEL))) / LEVELS_A_COST;
    let less = cost.saturating_mul(u64::from(NORMAL_LEVEL.saturating_sub(level))) / LEVELS_A_COST;
    cost.saturating_add(more).saturating_sub(less)
}
