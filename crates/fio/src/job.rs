//! The types of a job file's contents.

use crate::tree::{FileSystemKind, TreeSpec, Walk};
use crate::units::{KbBase, print_size};
use std::{collections::HashMap, fmt, ops::RangeInclusive};

/// A valid job file.
#[derive(Clone, Debug, PartialEq)]
pub struct JobFile {
    /// The jobs in the order of the file; clones (`numjobs`) are not multiplied out.
    pub jobs: Vec<Job>,
    /// Accepted options without effect on a simulation, each once, in the order of the file.
    pub ignored: Vec<Ignored>,
    /// The options of all `[global]` sections under fio's canonical names; a later value replaces
    /// an earlier one. Flags without a value have an empty value. fio's JSON prints those with a
    /// value as `global options`.
    pub global_options: Vec<(String, String)>,
}

/// An option that was accepted and has no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ignored {
    /// The canonical name of the option.
    pub name: String,
    /// The file of the first occurrence.
    pub file: String,
    /// Line in `file`, from 1.
    pub line: u32,
}

/// A job, with its defaults and the `[global]` sections above it applied.
///
/// Fields have fio's names and fio's defaults. A unit is the last part of a name; sizes are in
/// bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Name of the section, or the value of `name=`.
    pub name: String,
    /// Index of the reporting group, from 0: `stonewall` and `new_group` start a new one.
    pub groupid: u32,
    /// Kind of requests: sequential or random, reads or writes.
    pub rw: Rw,
    /// The number after the colon of `rw=randread:8` (requests at one random offset) or of
    /// `rw=write:4k` and `rw=read:-8k` (bytes added to the offset after each sequential request).
    pub rw_modifier: Option<i64>,
    /// Offsets of the requests that follow one random offset.
    pub rw_sequencer: Sequencer,
    /// Size of requests. Default 4096.
    pub bs: Directions<BlockSize>,
    /// Size of the region, and the bytes to move unless `io_size` is set. `Percent(100)` if `size`
    /// was not given: everything in the files or the device.
    pub size: Size,
    /// True if the file gave `size`; if not, `filesize` or the device named by `filename` decides.
    pub size_given: bool,
    /// The bytes to move, if not `size`. A percentage is of `size`.
    pub io_size: Option<Size>,
    /// The size of each file, in bytes.
    pub filesize: Option<RangeInclusive<u64>>,
    /// Start of the region. A percentage is of the file.
    pub offset: Size,
    /// Increment of `offset` from one clone of the job to the next.
    pub offset_increment: Size,
    /// Bytes that a percentage offset is rounded up to; 0 means the smallest block size.
    pub offset_align: u64,
    /// The files or devices; empty if names are generated ([`Job::files_of_clone`]).
    pub filename: Vec<String>,
    /// The pattern of generated names.
    pub filename_format: String,
    /// Directories of the files; clones take turns.
    pub directory: Vec<String>,
    /// Number of files, at least 1; without effect if `filename` is given.
    pub nrfiles: u32,
    /// Number of clones, at least 1.
    pub numjobs: u32,
    /// Requests in flight, at least 1. A synchronous engine always has one.
    pub iodepth: u32,
    /// The interface through which requests are submitted.
    pub ioengine: Ioengine,
    /// True if requests bypass the page cache (`buffered` is the opposite).
    pub direct: bool,
    /// Longest runtime, in nanoseconds.
    pub runtime_ns: Option<u64>,
    /// True if the job starts over until `runtime_ns` is reached.
    pub time_based: bool,
    /// Time at the start that is not measured, in nanoseconds.
    pub ramp_time_ns: u64,
    /// Delay before the job starts, in nanoseconds; each clone draws from the range.
    pub startdelay_ns: RangeInclusive<u64>,
    /// The pause after `thinktime_blocks` requests, in nanoseconds.
    pub thinktime_ns: u64,
    /// The part of the pause that is spent computing, in nanoseconds.
    pub thinktime_spin_ns: u64,
    /// Requests between pauses, at least 1.
    pub thinktime_blocks: u32,
    /// The cap on bandwidth, in bytes a second.
    pub rate: Directions<Option<u64>>,
    /// The cap on requests a second.
    pub rate_iops: Directions<Option<u64>>,
    /// Spacing of capped requests.
    pub rate_process: RateProcess,
    /// Percentage of a mixed job that is reads, 0 to 100. Default 50.
    pub rwmixread: u8,
    /// Percentage of a random job that is random, 0 to 100; the rest is sequential. Default 100.
    pub percentage_random: Directions<u8>,
    /// The seed of the job's random numbers.
    pub randseed: Option<u64>,
    /// True if a block may be touched twice before all have been touched once.
    pub norandommap: bool,
    /// Distribution of random offsets.
    pub random_distribution: Distribution,
    /// An fsync after this many writes; 0 for none.
    pub fsync: u32,
    /// An fdatasync after this many writes; 0 for none.
    pub fdatasync: u32,
    /// True if the job ends with an fsync of what it wrote.
    pub end_fsync: bool,
    /// True if writes are synchronous (`sync=sync` or `sync=dsync`; O_SYNC and O_DSYNC).
    pub sync: bool,
    /// True if the job waits for all jobs above it.
    pub stonewall: bool,
    /// The job that this one waits for; it is above, and its name is unique.
    pub wait_for: Option<String>,
    /// True if cached pages of the job's files are dropped when the files are opened. Default true.
    pub invalidate: bool,
    /// True if the kernel is advised of the access pattern. Default true. Only mapped files depend
    /// on it.
    pub fadvise_hint: bool,
    /// Number of runs of the job, at least 1.
    pub loops: u32,
    /// Number of requests after which the job ends.
    pub number_ios: Option<u64>,
    /// The I/O priority, 0 (highest) to 7.
    pub prio: Option<u8>,
    /// The I/O priority class: 1 real time, 2 best effort, 3 idle.
    pub prioclass: Option<u8>,
    /// The nice value, -20 to 19.
    pub nice: Option<i8>,
    /// Path of the job's control group from the root, which has no name, with slashes between the
    /// names. No name is empty.
    pub cgroup: Option<String>,
    /// Weights of the groups on that path, 1 to 1000: that of the last group alone, or one for each
    /// name of `cgroup`. Empty if none was given.
    pub cgroup_weight: Vec<u32>,
    /// Bandwidth that each clone of the job reserves, in bytes a second, if the elevator takes
    /// reservations. hoistway's own option.
    pub hoistway_reserve: Option<u64>,
    /// The tree of files that the job walks through, instead of files of its own. hoistway's own
    /// option.
    pub hoistway_tree: Option<TreeSpec>,
    /// The order of the walk. hoistway's own option.
    pub hoistway_walk: Walk,
    /// The journal of the file system of all jobs. hoistway's own option.
    pub hoistway_journal: Option<FileSystemKind>,
    /// True if the clones of a group are reported as one.
    pub group_reporting: bool,
    /// True if a new reporting group starts here.
    pub new_group: bool,
    /// Prefix of the bandwidth log's name: the value of the option, or the job's name.
    pub write_bw_log: Option<String>,
    /// Window over which log entries are averaged, in milliseconds; 0 logs every request.
    pub log_avg_msec: u64,
    /// True if log lines contain the offset.
    pub log_offset: bool,
    /// True if log lines contain class and level of the priority.
    pub log_prio: bool,
    /// Window of the `bw_min` to `bw_samples` figures, in milliseconds. Default 500.
    pub bwavgtime_ms: u64,
    /// Window of the `iops_min` to `iops_samples` figures, in milliseconds. Default 500.
    pub iopsavgtime_ms: u64,
    /// The base of the prefixes `k`, `m` ...
    pub kb_base: KbBase,
    /// The options of the job's own section under fio's canonical names; a later value replaces an
    /// earlier one. Flags without a value have an empty value. fio's JSON prints those with a value
    /// as `job options`.
    pub options: Vec<(String, String)>,
    /// The line of the section, from 1.
    pub line: u32,
    /// The file of the section.
    pub file: String,
}

/// A control group of the job file: one that jobs run in, or an ancestor of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cgroup {
    /// Path of the group from the root, with slashes between the names.
    pub path: String,
    /// Weight of the group among its siblings, 1 to 1000, if a job sets it.
    pub weight: Option<u32>,
}

impl JobFile {
    /// All control groups of the jobs except the root, each once: parents before their children,
    /// otherwise in the order of the file.
    pub fn cgroups(&self) -> Vec<Cgroup> {
        let mut groups: Vec<Cgroup> = Vec::new();
        let mut places: HashMap<&str, usize> = HashMap::new();
        for (path, weight) in self.jobs.iter().flat_map(Job::cgroup_way) {
            let place = *places.entry(path).or_insert(groups.len());
            match groups.get_mut(place) {
                Some(group) => group.weight = group.weight.or(weight),
                None => groups.push(Cgroup { path: path.into(), weight }),
            }
        }
        groups
    }
}

impl Job {
    /// The groups on the path to the job's own, from the top: the path of each, and the weight that
    /// this job gives it.
    pub fn cgroup_way(&self) -> Vec<(&str, Option<u32>)> {
        let Some(path) = &self.cgroup else { return Vec::new() };
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        let paths: Vec<&str> = ends.map(|end| &path[..end]).collect();
        // A single weight belongs to the last group.
        let unweighted = paths.len().saturating_sub(self.cgroup_weight.len());
        let weights = std::iter::repeat_n(None, unweighted).chain(self.cgroup_weight.iter().copied().map(Some));
        paths.into_iter().zip(weights).collect()
    }

    /// The files of one clone of the job, with their directories; `clone` counts from 0.
    ///
    /// All clones share `filename`, which is taken literally. Generated names follow
    /// `filename_format`, by default `$jobname.$jobnum.$filenum`, as in the manual of fio.
    pub fn files_of_clone(&self, clone: u32) -> Vec<String> {
        if !self.filename.is_empty() {
            let directory = self.directory.first();
            return self.filename.iter().map(|name| in_directory(directory, name)).collect();
        }
        let directory = self.directory.get(clone as usize % self.directory.len().max(1));
        let name = |file: u32| {
            self.filename_format
                .replace("$jobname", &self.name)
                .replace("$jobnum", &clone.to_string())
                .replace("$filenum", &file.to_string())
        };
        (0..self.nrfiles).map(|file| in_directory(directory, &name(file))).collect()
    }

    /// Requests in flight that the engine allows: `iodepth`, or 1 for a synchronous engine.
    pub fn effective_iodepth(&self) -> u32 {
        if self.ioengine.is_synchronous() { 1 } else { self.iodepth }
    }

    /// The smallest request of a direction, in bytes.
    pub fn min_bs(&self, direction: Direction) -> u64 {
        self.bs.get(direction).min()
    }
}

fn in_directory(directory: Option<&String>, name: &str) -> String {
    match directory {
        Some(directory) => format!("{}/{name}", directory.trim_end_matches('/')),
        None => name.into(),
    }
}

/// The defaults of fio.
impl Default for Job {
    fn default() -> Self {
        Job {
            name: String::new(),
            groupid: 0,
            rw: Rw::Read,
            rw_modifier: None,
            rw_sequencer: Sequencer::Sequential,
            bs: Directions::both(BlockSize::Fixed(4096)),
            size: Size::Percent(100),
            size_given: false,
            io_size: None,
            filesize: None,
            offset: Size::Bytes(0),
            offset_increment: Size::Bytes(0),
            offset_align: 0,
            filename: Vec::new(),
            filename_format: "$jobname.$jobnum.$filenum".into(),
            directory: Vec::new(),
            nrfiles: 1,
            numjobs: 1,
            iodepth: 1,
            ioengine: Ioengine::Psync,
            direct: false,
            runtime_ns: None,
            time_based: false,
            ramp_time_ns: 0,
            startdelay_ns: 0..=0,
            thinktime_ns: 0,
            thinktime_spin_ns: 0,
            thinktime_blocks: 1,
            rate: Directions::both(None),
            rate_iops: Directions::both(None),
            rate_process: RateProcess::Linear,
            rwmixread: 50,
            percentage_random: Directions::both(100),
            randseed: None,
            norandommap: false,
            random_distribution: Distribution::Random,
            fsync: 0,
            fdatasync: 0,
            end_fsync: false,
            sync: false,
            stonewall: false,
            wait_for: None,
            invalidate: true,
            fadvise_hint: true,
            loops: 1,
            number_ios: None,
            prio: None,
            prioclass: None,
            nice: None,
            cgroup: None,
            cgroup_weight: Vec::new(),
            hoistway_reserve: None,
            hoistway_tree: None,
            hoistway_walk: Walk::default(),
            hoistway_journal: None,
            group_reporting: false,
            new_group: false,
            write_bw_log: None,
            log_avg_msec: 0,
            log_offset: false,
            log_prio: false,
            bwavgtime_ms: 500,
            iopsavgtime_ms: 500,
            kb_base: KbBase::Compatible,
            options: Vec::new(),
            line: 0,
            file: String::new(),
        }
    }
}

/// Direction of a request. Trims are not simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Direction {
    /// A read from the disk.
    Read,
    /// A write to the disk.
    Write,
}

/// A value for reads and one for writes, as in fio's comma lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Directions<T> {
    /// The value for reads.
    pub read: T,
    /// The value for writes.
    pub write: T,
}

impl<T> Directions<T> {
    /// The same value for both directions.
    pub fn both(value: T) -> Self
    where
        T: Clone,
    {
        Directions { read: value.clone(), write: value }
    }

    /// The value of one direction.
    pub fn get(&self, direction: Direction) -> &T {
        match direction {
            Direction::Read => &self.read,
            Direction::Write => &self.write,
        }
    }
}

/// The kind of a job's requests: fio's `rw`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rw {
    /// `read`: sequential reads.
    Read,
    /// `write`: sequential writes.
    Write,
    /// `randread`: random reads.
    Randread,
    /// `randwrite`: random writes.
    Randwrite,
    /// `rw` or `readwrite`: sequential, mixed by `rwmixread`.
    Readwrite,
    /// `randrw`: random, mixed by `rwmixread`.
    Randrw,
}

impl Rw {
    /// Returns true if any request reads.
    pub fn reads(self) -> bool {
        !matches!(self, Rw::Write | Rw::Randwrite)
    }

    /// Returns true if any request writes.
    pub fn writes(self) -> bool {
        !matches!(self, Rw::Read | Rw::Randread)
    }

    /// Returns true if offsets are random.
    pub fn is_random(self) -> bool {
        matches!(self, Rw::Randread | Rw::Randwrite | Rw::Randrw)
    }
}

impl fmt::Display for Rw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Rw::Read => "read",
            Rw::Write => "write",
            Rw::Randread => "randread",
            Rw::Randwrite => "randwrite",
            Rw::Readwrite => "rw",
            Rw::Randrw => "randrw",
        })
    }
}

/// The offsets of the eight requests of `rw=randread:8`: fio's `rw_sequencer`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sequencer {
    /// Each request follows the one before.
    Sequential,
    /// All requests have the same offset.
    Identical,
}

/// The spacing of capped requests: fio's `rate_process`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateProcess {
    /// Even intervals.
    Linear,
    /// The arrivals of a Poisson process.
    Poisson,
}

/// The size of requests of one direction, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockSize {
    /// One size, at least 1.
    Fixed(u64),
    /// A multiple of `min`, up to `max`; `1 <= min <= max`.
    Range {
        /// The smallest size, and the step.
        min: u64,
        /// The largest size.
        max: u64,
    },
    /// Sizes drawn by percentage; 1 to 64 entries whose percentages add up to 100.
    Split(Vec<SplitEntry>),
}

impl BlockSize {
    /// The smallest request, in bytes.
    pub fn min(&self) -> u64 {
        match self {
            BlockSize::Fixed(bytes) => *bytes,
            BlockSize::Range { min, .. } => *min,
            BlockSize::Split(entries) => entries.iter().map(|e| e.bytes).min().unwrap_or(0),
        }
    }

    /// The largest request, in bytes.
    pub fn max(&self) -> u64 {
        match self {
            BlockSize::Fixed(bytes) => *bytes,
            BlockSize::Range { max, .. } => *max,
            BlockSize::Split(entries) => entries.iter().map(|e| e.bytes).max().unwrap_or(0),
        }
    }
}

/// The form of a job file, without the percentages' place in a comma list.
impl fmt::Display for BlockSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BlockSize::Fixed(bytes) => f.write_str(&print_size(*bytes)),
            BlockSize::Range { min, max } => write!(f, "{}-{}", print_size(*min), print_size(*max)),
            BlockSize::Split(entries) => {
                for (i, entry) in entries.iter().enumerate() {
                    let colon = if i > 0 { ":" } else { "" };
                    write!(f, "{colon}{}/{}", print_size(entry.bytes), entry.percent)?;
                }
                Ok(())
            }
        }
    }
}

/// One size of a `bssplit` and its share of the requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitEntry {
    /// The size of a request, in bytes, at least 1.
    pub bytes: u64,
    /// Share of the requests, 0 to 100. Shares left blank have been given the rest.
    pub percent: u8,
}

/// A number of bytes, or a percentage of a size that the job file does not contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// A number of bytes.
    Bytes(u64),
    /// A percentage, 1 to 100.
    Percent(u8),
}

impl Size {
    /// The number of bytes, given the size of the whole.
    pub fn of(self, whole: u64) -> u64 {
        match self {
            Size::Bytes(bytes) => bytes,
            // Split so that no product overflows.
            Size::Percent(percent) => {
                let percent = u64::from(percent);
                whole / 100 * percent + whole % 100 * percent / 100
            }
        }
    }
}

/// The form of a job file.
impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Size::Bytes(bytes) => f.write_str(&print_size(*bytes)),
            Size::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

/// The distribution of random offsets over the region: fio's `random_distribution`.
#[derive(Clone, Debug, PartialEq)]
pub enum Distribution {
    /// All blocks with the same probability.
    Random,
    /// Zipf's law with this theta: above 0, not 1.
    Zipf(f64),
    /// Pareto's law with this power: between 0 and 1, both excluded.
    Pareto(f64),
    /// Normal around the middle, with this deviation in percent: 0 to below 100.
    Normal(f64),
    /// Consecutive zones of the region, each with its share of the requests; 1 to 256 zones, both
    /// columns adding up to 100.
    Zoned(Vec<Zone>),
}

/// One zone of a zoned distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone {
    /// Share of the requests, in percent.
    pub access_percent: u8,
    /// Share of the region, in percent.
    pub span_percent: u8,
}

/// The interface through which requests are submitted: fio's `ioengine`, as far as a simulated host
/// supports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ioengine {
    /// `sync`: lseek and read or write. Synchronous.
    Sync,
    /// `psync`: pread or pwrite. Synchronous; fio's default.
    Psync,
    /// `vsync`: readv or writev, adjacent requests coalesced into one submission. Synchronous.
    Vsync,
    /// `pvsync`: preadv or pwritev. Synchronous.
    Pvsync,
    /// `pvsync2`: preadv2 or pwritev2. Synchronous.
    Pvsync2,
    /// `mmap`: a mapped file and memcpy. Synchronous.
    Mmap,
    /// `libaio`: Linux asynchronous I/O. Asynchronous with `direct=1`; Linux makes buffered
    /// requests wait.
    Libaio,
    /// `io_uring`. Asynchronous, buffered or direct.
    IoUring,
    /// `posixaio`: aio_read and aio_write, by threads of the C library. Asynchronous.
    PosixAio,
    /// `null`: no request is made at all. Synchronous.
    Null,
}

impl Ioengine {
    /// Returns true if a request returns only after its completion, so that one is in flight at any
    /// `iodepth`.
    pub fn is_synchronous(self) -> bool {
        !matches!(self, Ioengine::Libaio | Ioengine::IoUring | Ioengine::PosixAio)
    }

    /// The name in fio.
    pub fn name(self) -> &'static str {
        match self {
            Ioengine::Sync => "sync",
            Ioengine::Psync => "psync",
            Ioengine::Vsync => "vsync",
            Ioengine::Pvsync => "pvsync",
            Ioengine::Pvsync2 => "pvsync2",
            Ioengine::Mmap => "mmap",
            Ioengine::Libaio => "libaio",
            Ioengine::IoUring => "io_uring",
            Ioengine::PosixAio => "posixaio",
            Ioengine::Null => "null",
        }
    }

    /// All supported engines.
    pub const ALL: [Ioengine; 10] = [
        Ioengine::Sync,
        Ioengine::Psync,
        Ioengine::Vsync,
        Ioengine::Pvsync,
        Ioengine::Pvsync2,
        Ioengine::Mmap,
        Ioengine::Libaio,
        Ioengine::IoUring,
        Ioengine::PosixAio,
        Ioengine::Null,
    ];
}

impl fmt::Display for Ioengine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
