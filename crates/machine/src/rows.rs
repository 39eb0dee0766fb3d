//! What is known of the kernel's files: units, ranges, meanings.

/// What is known of a file of a queue, or of a scheduler's tunable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The file's name.
    pub name: &'static str,
    /// The unit of its number; empty where it has none.
    pub unit: &'static str,
    /// What it is unless set; none where that depends on the device.
    pub default: Option<i64>,
    /// The least that makes sense.
    pub min: i64,
    /// The most.
    pub max: i64,
    /// Of a file that takes words: these, and no numbers.
    pub words: &'static [&'static str],
    /// What it does.
    pub meaning: &'static str,
    /// What one wins and loses by changing it.
    pub trade_off: &'static str,
}

const NO_LIMIT: i64 = u32::MAX as i64;

const fn row(
    name: &'static str,
    unit: &'static str,
    range: (i64, i64),
    meaning: &'static str,
    trade_off: &'static str,
) -> Row {
    Row { name, unit, default: None, min: range.0, max: range.1, words: &[], meaning, trade_off }
}

/// The settings of a queue that are worth a person's while: those that can be set, and what shows why a scheduler does or does not matter. After the kernel's
/// Documentation/ABI/stable/sysfs-block.
pub const SETTINGS: &[Row] = &[
    row(
        "nr_requests",
        "requests",
        (1, NO_LIMIT),
        "Requests that the queue holds, for each hardware queue. The scheduler chooses among these; without one they are the device's own.",
        "More give the scheduler a wider choice, and let one who floods it delay the others longer.",
    ),
    row(
        "queue_depth",
        "requests",
        (1, NO_LIMIT),
        "Requests that the device takes at once. It has an order of its own among them, of which the scheduler knows nothing.",
        "1 leaves the order to the scheduler alone; more is faster for random reads, and hides the scheduler.",
    ),
    row(
        "read_ahead_kb",
        "KiB",
        (0, NO_LIMIT),
        "How far files are read ahead of who reads them from front to back.",
        "More is faster for streams on disks with an arm; it wastes memory and reads on small random accesses.",
    ),
    row(
        "max_sectors_kb",
        "KiB",
        (1, NO_LIMIT),
        "The largest request that is made of neighbouring ones.",
        "Larger moves more for each seek; smaller lets a short request pass sooner.",
    ),
    row(
        "wbt_lat_usec",
        "us",
        (-1, NO_LIMIT),
        "The latency of reads at which buffered writes are held back; 0 is off, -1 the kernel's default. bfq switches it off.",
        "Lower keeps reads fast while much is written; writing out takes longer.",
    ),
    row(
        "rq_affinity",
        "",
        (0, 2),
        "Where a request ends: 0 wherever its interrupt arrives, 1 on the CPUs that share a cache with who asked, 2 on the very CPU.",
        "2 keeps caches warm and costs an interrupt between CPUs.",
    ),
    row(
        "nomerges",
        "",
        (0, 2),
        "0 merges neighbouring requests, 1 only by the cheap look-ups, 2 none.",
        "Without merging it costs less CPU time, and more requests where they are small and adjacent.",
    ),
    row(
        "rotational",
        "0/1",
        (0, 1),
        "Whether it is taken for something that rotates: bfq waits longer there, file systems place files otherwise.",
        "Virtual disks often say 1 over flash, where waiting for the arm is lost time.",
    ),
    row(
        "iostats",
        "0/1",
        (0, 1),
        "Whether requests are counted in /proc/diskstats.",
        "Off saves a little CPU time; iostat and its like show nothing.",
    ),
    row(
        "add_random",
        "0/1",
        (0, 1),
        "Whether its interrupts feed the kernel's random numbers.",
        "Off saves a little CPU time on fast devices.",
    ),
    row(
        "io_timeout",
        "ms",
        (1, NO_LIMIT),
        "After this time a request counts as lost, and the device is reset.",
        "Shorter notices a dead device sooner, and kills a slow one.",
    ),
    row(
        "discard_max_bytes",
        "bytes",
        (0, i64::MAX),
        "The largest range that is told the device to be unused at once; 0 tells it nothing.",
        "Smaller keeps a slow trim from delaying reads.",
    ),
    Row {
        words: &["write back", "write through"],
        ..row(
            "write_cache",
            "",
            (0, 0),
            "What the kernel believes of the device's cache: with `write back` it sends flushes, with `write through` none.",
            "`write through` over a cache that forgets loses data when the power fails.",
        )
    },
    row("max_hw_sectors_kb", "KiB", (0, NO_LIMIT), "The largest request that the device takes.", ""),
    row("zoned", "", (0, 0), "Whether its zones have to be written from front to back.", ""),
    row("fua", "0/1", (0, 1), "Whether it can write past its cache; otherwise a flush follows each such write.", ""),
];

/// What is known of a setting.
pub fn setting(name: &str) -> Option<&'static Row> {
    SETTINGS.iter().find(|row| row.name == name)
}

/// The tunables of the kernel's schedulers, by their names in `queue/iosched` of Linux 5.0 and later. Nothing of a scheduler that is none of these.
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

/// What became of schedulers of kernels before 5.0.
pub fn successor(scheduler: &str) -> Option<&'static str> {
    match scheduler {
        "noop" => Some("none"),
        "deadline" => Some("mq-deadline"),
        "cfq" | "anticipatory" | "as" => Some("bfq"),
        _ => None,
    }
}

/// The module that a scheduler of the kernel's is in, where it is not built in.
pub fn module(scheduler: &str) -> Option<&'static str> {
    match scheduler {
        "bfq" => Some("bfq"),
        "kyber" => Some("kyber-iosched"),
        "mq-deadline" => Some("mq-deadline"),
        _ => None,
    }
}
