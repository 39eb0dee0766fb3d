//! The list of host settings: name, range, unit, description, and access to the field of
//! [`HostConfig`]. Host files, range checks and the documentation are made from this list.

use super::host::HostConfig;
use super::words;
use crate::error::SimError;

/// A host setting. Its value is a number here: a word is the index in its list, a switch is 0 or 1.
pub(crate) struct Key {
    pub name: &'static str,
    pub form: ValueForm,
    pub description: &'static str,
    pub get: fn(&HostConfig) -> u64,
    pub set: fn(&mut HostConfig, u64),
}

/// The values that a setting takes.
#[derive(Clone, Copy)]
pub(crate) enum ValueForm {
    Number {
        min: u64,
        max: u64,
        range: &'static str,
    },
    Word(&'static [&'static str]),
    Switch,
    /// An amount of memory with a unit; the number is in MiB.
    Memory,
}

impl ValueForm {
    /// Describes the allowed values.
    pub fn describe(self) -> String {
        match self {
            ValueForm::Number { range, .. } => range.into(),
            ValueForm::Word(words) => {
                let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
                match quoted.split_last() {
                    Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
                    _ => quoted.join(""),
                }
            }
            ValueForm::Switch => "true or false".into(),
            ValueForm::Memory => "\"2 MiB\" to \"16 TiB\", in whole MiB, GiB or TiB".into(),
        }
    }

    /// A value in the form of a host file.
    pub fn show(self, value: u64) -> String {
        match self {
            ValueForm::Number { .. } => value.to_string(),
            ValueForm::Word(words) => words.get(value as usize).map_or_else(String::new, |word| (*word).into()),
            ValueForm::Switch => (value != 0).to_string(),
            ValueForm::Memory => format!("{value} MiB"),
        }
    }
}

/// A numeric setting: name, range, description and field.
macro_rules! number {
    ($name:literal, $min:literal..=$max:expr, $range:literal, $description:literal, $($field:ident).+ as $kind:ty) => {
        Key {
            name: $name,
            form: ValueForm::Number { min: $min, max: $max, range: $range },
            description: $description,
            get: |host| u64::from(host.$($field).+),
            set: |host, value| host.$($field).+ = value as $kind,
        }
    };
}

/// A boolean setting: name, description and field.
macro_rules! switch {
    ($name:literal, $description:literal, $($field:ident).+) => {
        Key {
            name: $name,
            form: ValueForm::Switch,
            description: $description,
            get: |host| u64::from(host.$($field).+),
            set: |host, value| host.$($field).+ = value != 0,
        }
    };
}

const DAY_MS: u64 = 86_400_000;
const SECOND_NS: u64 = 1_000_000_000;

pub(crate) const KEYS: &[Key] = &[
    Key {
        name: "memory",
        form: ValueForm::Memory,
        description: "memory of the machine; nine tenths of it are page cache, kernel and programs use the rest",
        get: |host| (host.page_cache_mib * 10).div_ceil(9),
        set: |host, mib| host.page_cache_mib = (mib * 9 / 10).max(1),
    },
    number!(
        "page_cache_mib",
        1..=1 << 24,
        "1 to 16777216 MiB",
        "size of the page cache, instead of nine tenths of `memory`",
        page_cache_mib as u64
    ),
    number!("cpus", 1..=4096, "1 to 4096", "processors", cpus as u32),
    number!(
        "drives",
        1..=64,
        "1 to 64",
        "drives, each with a queue of its own: the n-th device that the jobs name is the n-th drive",
        drives as u32
    ),
    number!("hz", 1..=1000, "1 to 1000", "timer ticks a second, the clock of older elevators", queue.clock.hz as u32),
    Key {
        name: "read_ahead",
        form: ValueForm::Word(&["two-windows", "on-demand", "on-demand-history"]),
        description: "rules of read-ahead",
        get: words::read_ahead,
        set: words::set_read_ahead,
    },
    number!(
        "read_ahead_kib",
        0..=65536,
        "0 to 65536 KiB",
        "longest read-ahead window; 0 disables read-ahead",
        read_ahead_kib as u64
    ),
    Key {
        name: "plugging",
        form: ValueForm::Word(&["none", "queue", "task"]),
        description: "place where bios are collected so that they can be merged",
        get: words::plugging,
        set: words::set_plugging,
    },
    Key {
        name: "plug_requests",
        form: ValueForm::Number { min: 1, max: 1024, range: "1 to 1024" },
        description: "number of requests at which a task's plug is submitted",
        get: |host| words::plug(host).0.into(),
        set: |host, requests| words::set_plug(host, requests as u32, words::plug(host).1),
    },
    Key {
        name: "plug_kib",
        form: ValueForm::Number { min: 0, max: 65536, range: "0 to 65536 KiB" },
        description: "length of a request at which a task's plug is submitted; 0 for no such limit",
        get: |host| words::plug(host).1.into(),
        set: |host, kib| words::set_plug(host, words::plug(host).0, kib as u32),
    },
    Key {
        name: "write_back",
        form: ValueForm::Word(&["waiting", "pdflush", "pauses"]),
        description: "write-back, and throttling of writers",
        get: words::write_back,
        set: words::set_write_back,
    },
    number!(
        "dirty_background_percent",
        0..=100,
        "0 to 100 %",
        "share of the page cache above which the flusher writes",
        dirty_background_percent as u8
    ),
    number!(
        "dirty_percent",
        1..=100,
        "1 to 100 %",
        "share of the page cache that may be dirty or under write-back",
        dirty_percent as u8
    ),
    number!(
        "flush_interval_ms",
        1..=DAY_MS,
        "1 ms to a day",
        "interval of the flusher's checks for old pages",
        flush_interval_ms as u64
    ),
    number!("dirty_expire_ms", 0..=DAY_MS, "0 ms to a day", "age at which a dirty page is old", dirty_expire_ms as u64),
    number!(
        "flush_chunk_pages",
        1..=1 << 20,
        "1 to 1048576 pages",
        "pages after which the flusher turns to the next file",
        flush_chunk_pages as u32
    ),
    Key {
        name: "nr_requests",
        form: ValueForm::Number { min: 4, max: 65536, range: "4 to 65536" },
        description: "request pool per direction (multi-queue: in all); switches `pool_follows_drive` off",
        get: |host| host.queue.nr_requests.unwrap_or(65536).into(),
        set: |host, requests| (host.queue.nr_requests, host.pool_follows_drive) = (Some(requests as u32), false),
    },
    switch!(
        "driver_chooses_ahead",
        "the driver takes the next request from the elevator while the drive is full, and issues it as soon as the drive has room",
        driver_chooses_ahead
    ),
    switch!(
        "pool_follows_drive",
        "the pool is twice the controller's depth: the drive's depth, 32 to 128",
        pool_follows_drive
    ),
    number!(
        "max_sectors",
        8..=65536,
        "8 to 65536 sectors",
        "the largest request, in sectors of 512 bytes",
        queue.max_sectors as u32
    ),
    switch!(
        "write_back_throttling",
        "few requests of write-back are in flight at a time, except under BFQ and CFQ",
        write_back_throttling
    ),
    number!(
        "write_back_latency_us",
        0..=10_000_000,
        "0 to 10000000 us",
        "target of the throttling for the latency of reads (wbt_lat_usec); 0 for 75 ms on rotational drives and 2 ms on others",
        write_back_latency_us as u64
    ),
    Key {
        name: "direct_issue",
        form: ValueForm::Word(&["never", "plugged", "always"]),
        description: "requests that none issues at their submission, before the requests that wait in the queue",
        get: words::direct_issue,
        set: words::set_direct_issue,
    },
    Key {
        name: "flushes",
        form: ValueForm::Word(&["layer", "barriers", "sequences"]),
        description: "flushes of the drive's cache: as the block layer does them, by barriers (up to 2.6.36), or by sequences that bypass the elevator",
        get: words::flushes,
        set: words::set_flushes,
    },
    Key {
        name: "write_cache",
        form: ValueForm::Word(&["drive", "write-back", "write-through"]),
        description: "write cache of the drive as the kernel sees it (queue/write_cache): a write-back cache is flushed by syncs",
        get: |host| words::by_drive(host.write_back_cache),
        set: |host, word| host.write_back_cache = words::set_by_drive(word),
    },
    Key {
        name: "fua",
        form: ValueForm::Word(&["drive", "yes", "no"]),
        description: "writes with FUA are sent to the drive (queue/fua), or are written and flushed instead",
        get: |host| words::by_drive(host.fua),
        set: |host, word| host.fua = words::set_by_drive(word),
    },
    switch!("merging", "bios are merged into queued requests", queue.merging),
    number!(
        "partition_mib",
        0..=1 << 34,
        "0 to 17179869184 MiB",
        "size of a partition at the start of the drive, which the jobs use instead of the whole drive; 0 for none",
        partition_mib as u64
    ),
    number!("groups", 1..=65536, "1 to 65536", "allocation groups of the file system of plain jobs", groups as u32),
    number!(
        "file_gap_kib",
        0..=1 << 20,
        "0 to 1048576 KiB",
        "largest gap between two files of this file system",
        file_gap_kib as u64
    ),
    switch!("aged", "the files of this file system are fragmented: their pieces alternate on the disk", aged),
    Key {
        name: "file_system",
        form: ValueForm::Word(&["ext2", "ext3", "ext4"]),
        description: "the file system of jobs with a tree of files",
        get: |host| words::file_system(host),
        set: words::set_file_system,
    },
    number!(
        "system_call_ns",
        0..=SECOND_NS,
        "0 ns to a second",
        "CPU time of a system call",
        costs.system_call_ns as u64
    ),
    number!(
        "fault_ns",
        0..=SECOND_NS,
        "0 ns to a second",
        "CPU time of a page fault in a mapped file",
        costs.fault_ns as u64
    ),
    number!("copy_page_ns", 0..=SECOND_NS, "0 ns to a second", "CPU time of copying a page", costs.copy_page_ns as u64),
    number!("bio_ns", 0..=SECOND_NS, "0 ns to a second", "CPU time of submitting a bio", costs.bio_ns as u64),
    number!(
        "completion_ns",
        0..=SECOND_NS,
        "0 ns to a second",
        "CPU time of a request's interrupt and of the wake-up",
        costs.completion_ns as u64
    ),
    number!(
        "completion_sigma_milli",
        0..=3000,
        "0 to 3000 thousandths",
        "spread of completion_ns: the standard deviation of its logarithm",
        costs.completion_sigma_milli as u32
    ),
    number!(
        "transport_ns",
        0..=SECOND_NS,
        "0 ns to a second",
        "time from the end of a request in the drive until the host receives its completion",
        transport_ns as u64
    ),
    number!(
        "transport_sigma_milli",
        0..=3000,
        "0 to 3000 thousandths",
        "spread of transport_ns: the standard deviation of its logarithm",
        transport_sigma_milli as u32
    ),
    number!(
        "start_spread_ns",
        0..=SECOND_NS,
        "0 ns to a second",
        "span within which processes that start together begin, each at a random time",
        start_spread_ns as u64
    ),
    number!(
        "wake_ns",
        0..=SECOND_NS,
        "0 ns to a second",
        "CPU time of the wake-up of a process that sleeps until a direct request completes",
        costs.wake_ns as u64
    ),
    number!(
        "program_ns",
        0..=SECOND_NS,
        "0 ns to a second",
        "CPU time of the program for a direct request; if it is above 0, the elevator gets a request after the CPU time of its submission",
        costs.program_ns as u64
    ),
    number!(
        "mq_deadline_ns",
        0..=SECOND_NS,
        "0 ns to a second",
        "CPU time of mq-deadline for a direct request",
        costs.elevators.mq_deadline.work_ns as u64
    ),
    number!(
        "mq_deadline_shared_ns",
        0..=SECOND_NS,
        "0 ns to a second",
        "the same if another processor did this work for the previous request",
        costs.elevators.mq_deadline.shared_ns as u64
    ),
    number!(
        "mq_deadline_contended_ns",
        0..=SECOND_NS,
        "0 ns to a second",
        "the same if the processor had to wait for the elevator's lock; 0 for no lock",
        costs.elevators.mq_deadline.contended_ns as u64
    ),
    number!(
        "kyber_ns",
        0..=SECOND_NS,
        "0 ns to a second",
        "CPU time of kyber for a direct request",
        costs.elevators.kyber.work_ns as u64
    ),
    number!(
        "kyber_shared_ns",
        0..=SECOND_NS,
        "0 ns to a second",
        "the same if another processor did this work for the previous request",
        costs.elevators.kyber.shared_ns as u64
    ),
    number!(
        "kyber_contended_ns",
        0..=SECOND_NS,
        "0 ns to a second",
        "the same if the processor had to wait for the elevator's lock; 0 for no lock",
        costs.elevators.kyber.contended_ns as u64
    ),
    number!(
        "bfq_ns",
        0..=SECOND_NS,
        "0 ns to a second",
        "CPU time of bfq for a direct request",
        costs.elevators.bfq.work_ns as u64
    ),
    number!(
        "bfq_shared_ns",
        0..=SECOND_NS,
        "0 ns to a second",
        "the same if another processor did this work for the previous request",
        costs.elevators.bfq.shared_ns as u64
    ),
    number!(
        "bfq_contended_ns",
        0..=SECOND_NS,
        "0 ns to a second",
        "the same if the processor had to wait for the elevator's lock; 0 for no lock",
        costs.elevators.bfq.contended_ns as u64
    ),
    number!(
        "spindle_tolerance_ppm",
        0..=10_000,
        "0 to 10000 ppm",
        "tolerance of the spindle speed",
        spindle_tolerance_ppm as u32
    ),
];

impl HostConfig {
    /// Checks that each setting is in its documented range.
    ///
    /// # Errors
    /// [`SimError::Host`] for the first setting that is out of range.
    pub fn check(&self) -> Result<(), SimError> {
        for key in KEYS {
            let (value, ValueForm::Number { min, max, range }) = ((key.get)(self), key.form) else { continue };
            if !(min..=max).contains(&value) {
                return Err(SimError::Host { name: key.name, value, range });
            }
        }
        if let Some(journal) = self.journal {
            let value = journal.commit_interval_ms;
            if !(1..=3_600_000).contains(&value) {
                return Err(SimError::Host { name: "commit_interval_ms", value, range: "1 ms to an hour" });
            }
        }
        self.file_system.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_out_of_range_is_named_with_its_range() {
        let host = HostConfig { cpus: 0, ..HostConfig::default() };
        assert_eq!(host.check().unwrap_err().to_string(), "host setting cpus is 0: it takes 1 to 4096");
        assert!(HostConfig::default().check().is_ok());
    }
}
