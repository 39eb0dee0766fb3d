//! Units, ranges, defaults and meanings of the attributes of a queue in sysfs.

use hoistway_core::{Tunable, Unit};
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::scheduler_names::elevator_of_scheduler;

/// Describes an attribute: a setting of the queue, or a tunable of a scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttributeInfo {
    /// The file's name.
    pub name: &'static str,
    /// The unit of the number: `ms`, `requests`, `0/1`; empty for words and plain numbers.
    pub unit: &'static str,
    /// The kernel's default; `None` if it depends on the device.
    pub default: Option<i64>,
    /// The smallest value.
    pub min: i64,
    /// The largest value.
    pub max: i64,
    /// The words that the file takes instead of numbers; empty for numbers.
    pub words: &'static [&'static str],
    /// What the attribute controls.
    pub meaning: &'static str,
    /// What improves and what suffers when the value changes; may be empty.
    pub trade_off: &'static str,
}

impl AttributeInfo {
    /// The values that the file takes: `0 or 1`, `0 or more`, `1 to 9`, words, `any`; empty for
    /// files that are not set.
    pub fn range(&self) -> String {
        match (self.min, self.max) {
            _ if !self.words.is_empty() => self.words.join(", "),
            (0, 0) => String::new(),
            _ => number_range(self.min, self.max, "any"),
        }
    }

    /// A value with its unit: `8 ms`, `1 request`. Switches and plain numbers have no unit.
    pub fn with_unit(&self, value: &str) -> String {
        match self.unit {
            "" | "0/1" => value.to_owned(),
            "requests" if value == "1" => "1 request".to_owned(),
            unit => format!("{value} {unit}"),
        }
    }
}

impl Serialize for AttributeInfo {
    /// Serialises what applies: `unit`, `default`, `words` or `min` and `max`, `meaning`,
    /// `trade_off`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if !self.unit.is_empty() {
            map.serialize_entry("unit", self.unit)?;
        }
        if let Some(default) = self.default {
            map.serialize_entry("default", &default)?;
        }
        if !self.words.is_empty() {
            map.serialize_entry("words", self.words)?;
        } else if self.max > self.min {
            map.serialize_entry("min", &self.min)?;
            map.serialize_entry("max", &self.max)?;
        }
        map.serialize_entry("meaning", self.meaning)?;
        if !self.trade_off.is_empty() {
            map.serialize_entry("trade_off", self.trade_off)?;
        }
        map.end()
    }
}

/// A range in words; `unlimited` stands for one without bounds.
pub(crate) fn number_range(min: i64, max: i64, unlimited: &str) -> String {
    match (min, max) {
        (0, 1) => "0 or 1".to_owned(),
        (min, _) if min <= i64::from(i32::MIN) => unlimited.to_owned(),
        (min, max) if max >= i64::from(i32::MAX) => format!("{min} or more"),
        (min, max) => format!("{min} to {max}"),
    }
}

const NO_LIMIT: i64 = u32::MAX as i64;

const fn info(
    name: &'static str,
    unit: &'static str,
    range: (i64, i64),
    meaning: &'static str,
    trade_off: &'static str,
) -> AttributeInfo {
    AttributeInfo { name, unit, default: None, min: range.0, max: range.1, words: &[], meaning, trade_off }
}

/// The described settings of a queue: all that are worth setting, and read-only ones that show
/// whether a scheduler matters. Source: the kernel's Documentation/ABI/stable/sysfs-block.
pub const QUEUE_SETTINGS: &[AttributeInfo] = &[
    info(
        "nr_requests",
        "requests",
        (1, NO_LIMIT),
        "Requests that the queue holds, for each hardware queue. The scheduler chooses among these; without one they are the device's own.",
        "More give the scheduler a wider choice, and let a process that floods the queue delay the others longer.",
    ),
    info(
        "queue_depth",
        "requests",
        (1, NO_LIMIT),
        "Requests that the device takes at once. The device orders these itself; the scheduler has no control over them.",
        "1 leaves the order to the scheduler alone; more is faster for random reads, and hides the scheduler.",
    ),
    info(
        "read_ahead_kb",
        "KiB",
        (0, NO_LIMIT),
        "How far the kernel reads ahead in files that are read sequentially.",
        "More is faster for sequential reads on rotating disks; it wastes memory and reads on small random accesses.",
    ),
    info(
        "max_sectors_kb",
        "KiB",
        (1, NO_LIMIT),
        "The largest request that the kernel makes of adjacent ones.",
        "Larger moves more for each seek; smaller lets a short request pass sooner.",
    ),
    info(
        "wbt_lat_usec",
        "us",
        (-1, NO_LIMIT),
        "The read latency above which the kernel holds buffered writes back; 0 is off, -1 the kernel's default. bfq switches it off.",
        "Lower keeps reads fast during heavy writing; writing out takes longer.",
    ),
    info(
        "rq_affinity",
        "",
        (0, 2),
        "The CPU that completes a request: 0 the one that takes the interrupt, 1 one that shares a cache with the submitter, 2 the submitter's own.",
        "2 keeps caches warm and costs an interrupt between CPUs.",
    ),
    info(
        "nomerges",
        "",
        (0, 2),
        "0 merges adjacent requests, 1 only by the cheap look-ups, 2 none.",
        "Without merging it costs less CPU time, and more requests where they are small and adjacent.",
    ),
    info(
        "rotational",
        "0/1",
        (0, 1),
        "Whether the kernel takes the device for a rotating disk: bfq waits longer there, file systems place files otherwise.",
        "Virtual disks often report 1 over flash, where waiting for the disk arm is lost time.",
    ),
    info(
        "iostats",
        "0/1",
        (0, 1),
        "Whether the kernel counts requests in /proc/diskstats.",
        "Off saves a little CPU time; iostat and similar tools show nothing.",
    ),
    info(
        "add_random",
        "0/1",
        (0, 1),
        "Whether interrupts of the device feed the kernel's random numbers.",
        "Off saves a little CPU time on fast devices.",
    ),
    info(
        "io_timeout",
        "ms",
        (1, NO_LIMIT),
        "The time after which a request counts as lost and the kernel resets the device.",
        "Shorter notices a dead device sooner, and kills a slow one.",
    ),
    info(
        "discard_max_bytes",
        "bytes",
        (0, i64::MAX),
        "The largest range that one discard marks as unused; 0 disables discards.",
        "Smaller keeps a slow trim from delaying reads.",
    ),
    AttributeInfo {
        words: &["write back", "write through"],
        ..info(
            "write_cache",
            "",
            (0, 0),
            "The cache policy that the kernel assumes: with `write back` it sends flushes, with `write through` none.",
            "`write through` over a volatile cache loses data when the power fails.",
        )
    },
    info("max_hw_sectors_kb", "KiB", (0, NO_LIMIT), "The largest request that the device takes.", ""),
    info("zoned", "", (0, 0), "Whether the zones of the device have to be written sequentially.", ""),
    info(
        "fua",
        "0/1",
        (0, 1),
        "Whether the device can write past its cache; otherwise a flush follows each such write.",
        "",
    ),
];

/// Describes a setting of the queue; `None` for an unknown name.
pub fn setting_info(name: &str) -> Option<&'static AttributeInfo> {
    QUEUE_SETTINGS.iter().find(|info| info.name == name)
}

/// Describes the tunables of a scheduler: those in `queue/iosched` that the elevator of the same
/// name declares. The schedulers of the module `hoistway_iosched` have all of them. Empty for
/// `none` and for unknown schedulers.
///
/// ```
/// use hoistway_machine::tunable_infos;
/// let infos = tunable_infos("mq-deadline");
/// let expire = infos.iter().find(|info| info.name == "read_expire").unwrap();
/// assert_eq!((expire.unit, expire.default), ("ms", Some(500)));
/// ```
pub fn tunable_infos(scheduler: &str) -> Vec<AttributeInfo> {
    let Some(kind) = elevator_of_scheduler(scheduler) else { return Vec::new() };
    let names = kernel_tunables(scheduler);
    let has = |tunable: &&Tunable| names.is_none_or(|names| names.contains(&tunable.name));
    kind.info().tunables.iter().filter(has).map(tunable_info).collect()
}

fn tunable_info(tunable: &'static Tunable) -> AttributeInfo {
    let Tunable { name, unit, default, min, max, meaning, trade_off } = *tunable;
    let unit = match unit {
        Unit::Factor | Unit::Number | Unit::Form | Unit::Times => "",
        unit => unit.label(),
    };
    // The kernel shows the number of tags, which follows nr_requests.
    let default = (name != "async_depth").then_some(default);
    AttributeInfo { name, unit, default, min, max, words: &[], meaning, trade_off }
}

/// The tunables of the kernel's schedulers, by their names in `queue/iosched` of Linux 5.0 and
/// later; `None` for any other scheduler.
pub fn kernel_tunables(scheduler: &str) -> Option<&'static [&'static str]> {
    match scheduler {
        "none" => Some(&[]),
        "mq-deadline" => Some(&[
            "async_depth",
            "fifo_batch",
            "front_merges",
            "prio_aging_expire",
            "read_expire",
            "write_expire",
            "writes_starved",
        ]),
        "kyber" => Some(&["read_lat_nsec", "write_lat_nsec"]),
        "bfq" => Some(&[
            "back_seek_max",
            "back_seek_penalty",
            "fifo_expire_async",
            "fifo_expire_sync",
            "low_latency",
            "max_budget",
            "slice_idle",
            "slice_idle_us",
            "strict_guarantees",
            "timeout_sync",
        ]),
        _ => None,
    }
}

/// The scheduler of Linux 5.0 and later that replaces one of an older kernel.
pub fn successor(scheduler: &str) -> Option<&'static str> {
    match scheduler {
        "noop" => Some("none"),
        "deadline" => Some("mq-deadline"),
        "cfq" | "anticipatory" | "as" => Some("bfq"),
        _ => None,
    }
}

/// The kernel module of a scheduler, unless the scheduler is built in.
pub(crate) fn module(scheduler: &str) -> Option<&'static str> {
    match scheduler {
        "bfq" => Some("bfq"),
        "kyber" => Some("kyber-iosched"),
        "mq-deadline" => Some("mq-deadline"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hoistway_core::Kind;

    #[test]
    fn every_tunable_of_the_kernels_schedulers_is_described() {
        for scheduler in ["mq-deadline", "kyber", "bfq"] {
            let mut known: Vec<&str> = tunable_infos(scheduler).iter().map(|info| info.name).collect();
            known.sort_unstable();
            assert_eq!(known, kernel_tunables(scheduler).expect("one of the kernel's"), "{scheduler}");
        }
        assert!(["none", "other"].iter().all(|scheduler| tunable_infos(scheduler).is_empty()));
    }

    #[test]
    fn schedulers_of_the_module_have_all_tunables_of_their_elevators() {
        for (scheduler, kind) in [("cfq", Kind::Cfq), ("h-bfq", Kind::Bfq), ("h-mq-deadline", Kind::MqDeadline)] {
            assert_eq!(tunable_infos(scheduler).len(), kind.info().tunables.len(), "{scheduler}");
        }
    }

    #[test]
    fn a_range_names_a_limit_only_if_there_is_one() {
        let info = |min, max| AttributeInfo { min, max, ..tunable_infos("bfq")[0] };
        assert_eq!(
            [(0, 1), (1, i64::MAX), (-1, 9)].map(|(min, max)| info(min, max).range()),
            ["0 or 1", "1 or more", "-1 to 9"]
        );
    }

    #[test]
    fn a_plain_number_has_no_unit() {
        let penalty = tunable_infos("bfq").into_iter().find(|info| info.name == "back_seek_penalty").unwrap();
        assert_eq!(penalty.with_unit("2"), "2");
    }
}
