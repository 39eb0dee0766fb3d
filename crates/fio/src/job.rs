//! The types of a job file's contents.

use crate::advice::FadviseHint;
use crate::command_priority::CommandPriority;
use crate::direction::{Direction, Directions, Rw};
use crate::engine::{Engine, Ioengine};
use crate::pace::{Batching, ExitWhat, Flow, LatencyTarget, SteadyState};
use crate::tree::{FileSystemKind, TreeSpec, Walk};
use crate::units::{KbBase, print_size};
use crate::write_sync::WriteSync;
use crate::zone::Zones;
use std::{collections::HashMap, fmt, ops::RangeInclusive};

/// A valid job file.
#[derive(Clone, Debug, PartialEq)]
pub struct JobFile {
    /// The jobs in the order of the file; clones (`numjobs`) are not multiplied out.
    pub jobs: Vec<Job>,
    /// Accepted options without effect on a simulation, each once, in the order of the file.
    pub ignored: Vec<Ignored>,
    /// Where the simulation differs from what the file says, in whole sentences that begin with
    /// file and line: engines that stand for others, jobs that are left out, assumed sizes.
    pub differences: Vec<String>,
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
    /// Most files that are open at a time; 0 means all.
    pub openfiles: u32,
    /// True if each pass ends with the removal of the files.
    pub unlink_each_loop: bool,
    /// True if the job ends with the removal of its files.
    pub unlink: bool,
    /// True if the job only creates its files, and is left out.
    pub create_only: bool,
    /// Number of clones, at least 1.
    pub numjobs: u32,
    /// Requests in flight, at least 1. A synchronous engine always has one.
    pub iodepth: u32,
    /// The interface through which requests are submitted.
    pub ioengine: Ioengine,
    /// The engine of the job file, if `ioengine` stands for it or the job is to be left out.
    pub stands_for: Option<&'static Engine>,
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
    /// True if the files have written data before the job starts, also if no job reads them.
    pub overwrite: bool,
    /// What a write waits for (`sync`).
    pub sync: WriteSync,
    /// True if the job waits for all jobs above it.
    pub stonewall: bool,
    /// The job that this one waits for; it is above, and its name is unique.
    pub wait_for: Option<String>,
    /// True if cached pages of the job's files are dropped when the files are opened. Default true.
    pub invalidate: bool,
    /// How the kernel is advised of the access pattern (`posix_fadvise`, `madvise`). By default the
    /// advice follows from `rw`.
    pub fadvise_hint: FadviseHint,
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
    /// How the directions are reported.
    pub unified_reporting: UnifiedReporting,
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
    /// Multiples of which random offsets are, in bytes; 0 for the smallest block size.
    pub blockalign: Directions<u64>,
    /// True if sizes from a range are any number of bytes, not multiples of the smallest.
    pub bs_unaligned: bool,
    /// True if `bs` has the size of sequential requests before the comma, and that of random ones
    /// after it.
    pub bs_is_seq_rand: bool,
    /// The zones that requests are restricted to.
    pub zones: Zones,
    /// The choice of the next file.
    pub file_service: FileService,
    /// True if other threads submit the requests (`io_submit_mode=offload`).
    pub offload: bool,
    /// The batches of an asynchronous engine.
    pub batching: Batching,
    /// Priorities of single requests.
    pub cmdprio: Directions<CommandPriority>,
    /// True if writes are forced to the medium (`writefua`).
    pub writefua: bool,
    /// True if written blocks hold a checksum (`verify`).
    pub verifies: bool,
    /// True if blocks with a checksum are read again after they were written. Default true.
    pub do_verify: bool,
    /// Number of written blocks after which they are verified; 0 for the end of the pass.
    pub verify_backlog: u64,
    /// Number of blocks that are verified at once; 0 for `verify_backlog`.
    pub verify_backlog_batch: u64,
    /// True if the job only reads what it would write (`verify_only`).
    pub verify_only: bool,
    /// True if the files are in memory before the job starts (`pre_read`).
    pub pre_read: bool,
    /// True if the job goes on until the drive is full (`fill_device`).
    pub fill_device: bool,
    /// True if pauses count from the submission of requests (`thinktime_blocks_type=issue`).
    pub thinktime_at_issue: bool,
    /// Time of requests between pauses, in nanoseconds; 0 for none.
    pub thinktime_iotime_ns: u64,
    /// True if a capped job does not catch up what it missed in its pauses.
    pub rate_ignore_thinktime: bool,
    /// The bandwidth below which the job ends with an error, in bytes a second; 0 for none.
    pub rate_min: Directions<u64>,
    /// The requests a second below which the job ends with an error; 0 for none.
    pub rate_iops_min: Directions<u64>,
    /// The time over which the rates of `rate_min` and `rate_iops_min` are measured, in
    /// milliseconds.
    pub rate_cycle_ms: u64,
    /// The latency above which the job ends with an error, in nanoseconds; 0 for none.
    pub max_latency_ns: Directions<u64>,
    /// The search for a queue depth.
    pub latency_target: LatencyTarget,
    /// The rate at which the job ends, if it is steady.
    pub steadystate: Option<SteadyState>,
    /// The time for which the rate has to be steady, in nanoseconds; 0 for no check.
    pub steadystate_duration_ns: u64,
    /// The time before the first check, in nanoseconds.
    pub steadystate_ramp_ns: u64,
    /// The share among the jobs with the same number.
    pub flow: Flow,
    /// True if other jobs end with this one.
    pub exitall: bool,
    /// The jobs that end with this one.
    pub exit_what: ExitWhat,
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
    /// Where the simulation differs from what the file says: one sentence for all options without
    /// effect, and one for each other difference.
    pub fn notes(&self) -> Vec<String> {
        let names: Vec<String> = self
            .ignored
            .iter()
            .map(|option| {
                let (name, line) = (&option.name, option.line);
                let is_first = self.ignored.iter().find(|other| other.file == option.file) == Some(option);
                if is_first { format!("{}:{line} `{name}`", option.file) } else { format!("{line} `{name}`") }
            })
            .collect();
        let options =
            (!names.is_empty()).then(|| format!("accepted without effect on a simulation: {}", names.join(", ")));
        options.into_iter().chain(self.differences.iter().cloned()).collect()
    }

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

    /// The number of files of each process.
    pub fn file_count(&self) -> u64 {
        if self.filename.is_empty() { u64::from(self.nrfiles) } else { self.filename.len() as u64 }
    }

    /// Returns true if syncs come between requests: `fsync` or `fdatasync`.
    pub fn syncs_between_requests(&self) -> bool {
        self.fsync > 0 || self.fdatasync > 0
    }

    /// Returns true if random requests keep a map of touched blocks, so that a pass touches none
    /// twice: offsets are drawn evenly, without `norandommap`, and at multiples of the block.
    pub fn touches_blocks_once(&self) -> bool {
        !self.norandommap && self.random_distribution == Distribution::Random && !self.has_other_alignment()
    }

    /// Returns true if random offsets are aligned to something else than the block size.
    pub fn has_other_alignment(&self) -> bool {
        self.directions().any(|direction| ![0, self.min_bs(direction)].contains(self.blockalign.get(direction)))
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

    /// Requests in flight that the engine allows: `iodepth`, or 1 for a synchronous engine whose
    /// requests no other threads submit.
    pub fn effective_iodepth(&self) -> u32 {
        if self.ioengine.is_synchronous() && !self.offload { 1 } else { self.iodepth }
    }

    /// The directions of the job's requests.
    pub fn directions(&self) -> impl Iterator<Item = Direction> + use<> {
        let rw = self.rw;
        Direction::ALL.into_iter().filter(move |direction| rw.uses(*direction))
    }

    /// The smallest request of a direction, in bytes.
    pub fn min_bs(&self, direction: Direction) -> u64 {
        match self.bs_is_seq_rand {
            true => self.bs.read.min().min(self.bs.write.min()),
            false => self.bs.get(direction).min(),
        }
    }
}

fn in_directory(directory: Option<&String>, name: &str) -> String {
    match directory {
        Some(directory) => format!("{}/{name}", directory.trim_end_matches('/')),
        None => name.into(),
    }
}

/// The same value for all directions.
const fn same<T: Copy>(value: T) -> Directions<T> {
    Directions { read: value, write: value, trim: value }
}

const NO_PRIORITY: CommandPriority = CommandPriority { percent: 0, class: 0, level: 0, by_size: Vec::new() };

/// The defaults of fio, without the pattern of file names.
const DEFAULTS: Job = Job {
    name: String::new(),
    groupid: 0,
    rw: Rw::Read,
    rw_modifier: None,
    rw_sequencer: Sequencer::Sequential,
    bs: Directions { read: BlockSize::Fixed(4096), write: BlockSize::Fixed(4096), trim: BlockSize::Fixed(4096) },
    size: Size::Percent(100),
    size_given: false,
    io_size: None,
    filesize: None,
    offset: Size::Bytes(0),
    offset_increment: Size::Bytes(0),
    offset_align: 0,
    filename: Vec::new(),
    filename_format: String::new(),
    directory: Vec::new(),
    nrfiles: 1,
    openfiles: 0,
    unlink_each_loop: false,
    unlink: false,
    create_only: false,
    numjobs: 1,
    iodepth: 1,
    ioengine: Ioengine::Psync,
    stands_for: None,
    direct: false,
    runtime_ns: None,
    time_based: false,
    ramp_time_ns: 0,
    startdelay_ns: 0..=0,
    thinktime_ns: 0,
    thinktime_spin_ns: 0,
    thinktime_blocks: 1,
    rate: same(None),
    rate_iops: same(None),
    rate_process: RateProcess::Linear,
    rwmixread: 50,
    percentage_random: same(100),
    randseed: None,
    norandommap: false,
    random_distribution: Distribution::Random,
    fsync: 0,
    fdatasync: 0,
    end_fsync: false,
    overwrite: false,
    sync: WriteSync::None,
    stonewall: false,
    wait_for: None,
    invalidate: true,
    fadvise_hint: FadviseHint::Pattern,
    loops: 1,
    number_ios: None,
    prio: None,
    prioclass: None,
    nice: None,
    cgroup: None,
    cgroup_weight: Vec::new(),
    hoistway_reserve: None,
    hoistway_tree: None,
    hoistway_walk: Walk::Readdir,
    hoistway_journal: None,
    group_reporting: false,
    unified_reporting: UnifiedReporting::Separate,
    new_group: false,
    write_bw_log: None,
    log_avg_msec: 0,
    log_offset: false,
    log_prio: false,
    bwavgtime_ms: 500,
    iopsavgtime_ms: 500,
    blockalign: same(0),
    bs_unaligned: false,
    bs_is_seq_rand: false,
    zones: Zones::NONE,
    file_service: FileService::RoundRobin(1),
    offload: false,
    batching: Batching::SINGLE,
    cmdprio: Directions { read: NO_PRIORITY, write: NO_PRIORITY, trim: NO_PRIORITY },
    writefua: false,
    verifies: false,
    do_verify: true,
    verify_backlog: 0,
    verify_backlog_batch: 0,
    verify_only: false,
    pre_read: false,
    fill_device: false,
    thinktime_at_issue: false,
    thinktime_iotime_ns: 0,
    rate_ignore_thinktime: false,
    rate_min: same(0),
    rate_iops_min: same(0),
    rate_cycle_ms: 1000,
    max_latency_ns: same(0),
    latency_target: LatencyTarget::NONE,
    steadystate: None,
    steadystate_duration_ns: 0,
    steadystate_ramp_ns: 0,
    flow: Flow { id: 0, weight: 0, sleep_ns: 0 },
    exitall: false,
    exit_what: ExitWhat::Group,
    kb_base: KbBase::Compatible,
    options: Vec::new(),
    line: 0,
    file: String::new(),
};

/// The defaults of fio.
impl Default for Job {
    fn default() -> Self {
        Job { filename_format: "$jobname.$jobnum.$filenum".into(), ..DEFAULTS }
    }
}

/// How reads, writes and trims are reported: fio's `unified_rw_reporting`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnifiedReporting {
    /// `none`: each direction.
    Separate,
    /// `mixed`: all directions together.
    Mixed,
    /// `both`: each direction, and all together.
    Both,
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
    /// Consecutive zones from the region's start, each with its share of the requests and its size;
    /// 1 to 256 zones, the shares adding up to 100.
    ZonedBytes(Vec<SplitEntry>),
    /// Zipf's or Pareto's law with the most popular block at this part of the region, 0 to 1, and
    /// the others behind it in the order of their popularity; or a normal distribution around it.
    Centred(Box<Distribution>, f64),
}

/// One zone of a zoned distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone {
    /// Share of the requests, in percent.
    pub access_percent: u8,
    /// Share of the region, in percent.
    pub span_percent: u8,
}

/// The choice of the next file: fio's `file_service_type`.
#[derive(Clone, Debug, PartialEq)]
pub enum FileService {
    /// `roundrobin:N`: files take turns of so many requests.
    RoundRobin(u32),
    /// `sequential`: each file is finished before the next.
    Sequential,
    /// `random:N`: a file is drawn, for so many requests.
    Random(u32),
    /// `zipf`, `pareto` and `normal`: a file is drawn by this distribution for each request.
    Drawn(Distribution),
}
