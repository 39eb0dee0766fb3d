//! The tunables of FIOPS, and the cost of requests.

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

/// The row of the registry.
pub(crate) const INFO: Info = Info {
    name: "fiops",
    aliases: &[],
    kernel: "posted for 3.4, 2012 (its second version; form 1 is the first)",
    in_linux: "posted 2012",
    headline: "Least spent goes next; made for flash",
    idea: "Each request costs its process a number of vios, by direction, sync or async, and \
           priority. The process that has spent the least goes next, in order of arrival. No \
           slices, no idling, no sorting.",
    suits: "Flash with deep queues and several processes or groups that should get equal shares of \
            requests. On a rotational disk it seeks for every request, and large requests cost as \
            much as small ones.",
    layer: BlockLayer::V3_4,
    groups: true,
    reservations: false,
    nr_requests: None,
    hashes_back_merges: false,
    tunables: &[
        scale(
            "read_scale",
            1,
            "A write costs write_scale / read_scale times as much as a read.",
            "Higher makes writes cheaper.",
        ),
        scale(
            "write_scale",
            1,
            "See read_scale.",
            "Higher where writes keep the device busy for \
                                                    longer than reads.",
        ),
        scale(
            "sync_scale",
            2,
            "An async request costs async_scale / sync_scale times as much as a sync one.",
            "Higher gives async writes a larger share.",
        ),
        scale(
            "async_scale",
            5,
            "See sync_scale.",
            "Higher favours processes that wait over background \
                                                    writes.",
        ),
        form(
            "deep_share",
            1,
            1,
            "A process that returns while requests of it are in the device keeps its position \
             instead of counting as idle.",
            "On is fair to deep queues, whose list of waiting requests is often empty for a \
             moment; such a process can fall behind and catch up.",
        ),
        form(
            "postpone_async",
            1,
            1,
            "The async requests of a class's only process wait while sync requests are in the \
             device.",
            "On lets the sync requests that follow a completion go first; a lone writer then uses \
             less of the device.",
        ),
        form(
            "sync_preempt",
            0,
            2,
            "1 serves the first process whose next request is sync if the next process's is async. \
             2 is the same as shipped in an experimental patch: without such a process, it serves \
             the one that has spent the most.",
            "On shortens the wait of reads behind async writes and lets async requests starve \
             within a class.",
        ),
        form(
            "reread_priority",
            0,
            1,
            "A changed I/O priority counts from the process's next request on. The code of 3.4 \
             reads the priority with a process's first request and never again.",
            "On, ionice takes effect.",
        ),
        Tunable {
            name: "size_cost",
            unit: Unit::Kibibytes,
            default: 0,
            min: 0,
            max: 1 << 20,
            meaning: "The size in KiB at which a request costs twice as much as an empty one; cost \
                      grows linearly with size. It should be what the device transfers in the time \
                      of one request. With 0 size has no effect, as in the kernel, where this was \
                      left to do.",
            trade_off: "Set, bandwidth is shared for large requests; with 0, requests.",
        },
        form(
            "groups",
            0,
            1,
            "Groups of contexts are served by their total vios divided by their weight, and their \
             processes within them. Nested groups compete as siblings. Left to do in the kernel.",
            "On, a group's share does not grow with the number of its processes.",
        ),
        form(
            "form",
            0,
            1,
            "0 is the second version posted. 1 is the first: every request costs the same, one \
             tree for all classes, no deep_share, no postponing.",
            "The second version has priorities and distinguishes sync requests.",
        ),
    ],
};

/// The cost of a read at normal priority, in vios.
pub(super) const VIOS: u64 = 1024;
/// Each level changes the cost by this fraction (1/5).
const LEVELS_A_COST: u64 = 5;
/// The level at which the cost is unchanged.
const NORMAL_LEVEL: u8 = crate::priority::NORMAL_LEVEL;
/// The maximum cost of a request, so that sums of costs keep their order by signed difference.
const COST_MAX: u64 = 1 << 48;

/// Returns true if the tunable at this index affects the share of a process. A changed priority
/// alone applies when the process is filed next.
pub(super) fn decides_shares(index: usize) -> bool {
    matches!(index, 9 | 10)
}

/// The action when the next request is async.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SyncPreempt {
    Off,
    On,
    Shipped,
}

/// The values of the tunables.
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

    /// Returns true if a process that returns with requests in the device keeps its position.
    pub fn shares_deep(&self) -> bool {
        self.deep_share && !self.first_form
    }

    /// Returns true if async requests may have to wait for sync ones in the device.
    pub fn postpones_async(&self) -> bool {
        self.postpone_async && !self.first_form
    }

    /// The cost of a request at this priority, in vios: at least 1. Each division truncates.
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

/// The cost of a request at a level, from its cost at level 4: each level changes it by a fifth.
pub(crate) fn cost_at_level(cost: u64, level: u8) -> u64 {
    let more = cost.saturating_mul(u64::from(level.saturating_sub(NORMAL_LEVEL))) / LEVELS_A_COST;
    let less = cost.saturating_mul(u64::from(NORMAL_LEVEL.saturating_sub(level))) / LEVELS_A_COST;
    cost.saturating_add(more).saturating_sub(less)
}
