//! The settings of the simulated host: its size, its speed, and the behaviour of its kernel.

use hoistway_core::{BlockLayer, ClockConfig, Kind, QueueConfig};
use hoistway_drive::Profile;
use hoistway_fio::FadviseHint;

use crate::host::fs::config::FileSystemConfig;
use crate::host::journal::JournalConfig;
use crate::host::on_demand::OnDemand;
use crate::host::page::{PAGE_BYTES, PAGE_SECTORS};
use crate::host::readahead::Reader;
use crate::host::two_windows::ReadAhead;

use super::kernel::Kernel;

/// The kernel's rules of read-ahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadAheadRules {
    /// Two windows, a current and an ahead window (up to 2.6.22).
    #[default]
    TwoWindows,
    /// On demand: at a missing page, and at a page with a marker (2.6.23).
    OnDemand,
    /// On demand with history: streams that the open file's state does not know are found by the
    /// cached pages before them (2.6.31 and later).
    OnDemandWithHistory,
}

/// The place where bios are collected so that they can be merged: plugging.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Plugging {
    /// No plugging: each bio goes to the elevator at once, and the queue runs.
    None,
    /// On the queue, for all tasks: up to 4 requests or 3 ms, until a task waits (2.6.38 and
    /// before).
    #[default]
    Queue,
    /// On the task, while one of its system calls submits: up to `requests` requests, or until one
    /// of them has `kib` KiB (2.6.39 and later).
    Task {
        /// Number of requests that ends the plug, 1 to 1024.
        requests: u32,
        /// Length of a request in KiB that ends the plug; 0 for no such limit.
        kib: u32,
    },
}

/// The requests that a multi-queue block layer without an elevator (`none`) issues as they are
/// submitted. While the drive is full they wait in a list of their own, in their order and without
/// merging. The drive gets the requests of that list before those that wait in the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DirectIssue {
    /// None: all requests wait in the queue, in the order of their arrival.
    #[default]
    Never,
    /// Those of a task's plug (6.1), unless the task fell asleep while it filled the plug.
    Plugged,
    /// All but those of tasks that fell asleep, and commit blocks after their flush (6.12).
    Always,
}

/// The execution of flushes of the drive's cache, and of writes that are ordered by them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flushes {
    /// That of the block layer: barriers up to 2.6.36, then sequences.
    #[default]
    Layer,
    /// Barriers: the request queue is drained around a flush.
    Barriers,
    /// Sequences of a flush, the data and a flush, which bypass the elevator. Flushes that meet one
    /// in the drive share the next.
    Sequences,
}

/// The rules of write-back and of throttling writers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WriteBack {
    /// One flusher, which waits for room in the queue. Writers wait while more than `dirty_percent`
    /// of the cache is dirty or under write-back. This is the common core of the kernels' rules,
    /// not the rule of one kernel.
    #[default]
    Waiting,
    /// pdflush, which avoids a congested queue. A writer over the limit writes some pages back
    /// itself (2.6.31 and before). Of the kernel's two to eight threads, only one ever works for a
    /// device.
    Pdflush,
    /// One flusher. Writers are paused for up to 200 ms, each for its share of the device's rate
    /// (3.2 and later).
    Pauses,
}

/// The host. The default is the machine of J. Axboe's slides on CFQ (2006): a 3 GHz Pentium D (two
/// cores) with 2 GB of memory under Linux 2.6.18.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// The kernel whose block layer all elevators run in; elevators also take that kernel's
    /// defaults where these differ. With `None`, the default, each elevator runs in the block layer
    /// of its own kernel. [`HostConfig::kernel`] also sets all other settings that belong to a
    /// kernel.
    pub kernel: Option<Kernel>,
    /// If true, the driver takes the next request out of the elevator while the drive is full, and
    /// issues it as soon as the drive has room. Drivers of SCSI and SATA do so under a single-queue
    /// block layer; the multi-queue layer asks the elevator only if the drive has room.
    pub driver_chooses_ahead: bool,
    /// If true, the queue takes twice as many requests as the controller, as multi-queue block
    /// layers do: the drive's depth, at least 32 (AHCI's depth) and at most 128.
    /// `queue.nr_requests` does not count then.
    pub pool_follows_drive: bool,
    /// Number of processors, at least 1.
    pub cpus: u32,
    /// Number of drives of the profile, 1 to 64. Each has a queue and an elevator of its own. The
    /// first device that the jobs name is the first drive, and so on; only direct I/O reaches
    /// drives after the first.
    pub drives: u32,
    /// Size of the page cache in MiB, 1 to 2^24. The default leaves 10 % of 2 GB to kernel and
    /// programs.
    pub page_cache_mib: u64,
    /// The longest read-ahead window in KiB, 0 (no read-ahead) to 65536. The default is Linux's
    /// own, 128.
    pub read_ahead_kib: u64,
    /// The rules of read-ahead.
    pub read_ahead: ReadAheadRules,
    /// The place of plugging; `queue.plugging` follows from it.
    pub plugging: Plugging,
    /// CPU time of the kernel's work.
    pub costs: CpuCosts,
    /// The turnaround of each process in ns, in the order of the processes, for a caller that has
    /// measured it: the time from a completion until the process has it. Turnarounds of requests in
    /// flight together pass side by side. Processes beyond the end have `costs.completion_ns` of
    /// CPU time instead, as all have with the default, which is empty.
    pub turnarounds_ns: Vec<u64>,
    /// The rules of write-back and of throttling writers.
    pub write_back: WriteBack,
    /// If true, the multi-queue block layer limits the requests of write-back in flight, unless the
    /// elevator is BFQ or CFQ (`wbt_lat_usec` above 0).
    pub write_back_throttling: bool,
    /// The latency of reads in us that the throttling keeps (`wbt_lat_usec`). With 0, the default,
    /// it is that of the kernel: 75 ms for rotational drives and 2 ms for others.
    pub write_back_latency_us: u64,
    /// The requests that the multi-queue block layer issues under `none` as they are submitted.
    pub direct_issue: DirectIssue,
    /// The execution of flushes.
    pub flushes: Flushes,
    /// True if the kernel takes the drive's write cache for a volatile one, which it flushes
    /// (`queue/write_cache`: `write back`). With `None`, the default, it is as the drive reports
    /// ([`Profile::has_volatile_cache`]).
    pub write_back_cache: Option<bool>,
    /// True if the kernel sends writes with FUA to the drive (`queue/fua`). False if it writes and
    /// flushes instead. With `None`, the default, it is as the drive reports
    /// ([`Profile::has_fua`]).
    pub fua: Option<bool>,
    /// Share of the page cache in percent above which the flusher writes
    /// (`dirty_background_ratio`).
    pub dirty_background_percent: u8,
    /// Share of the page cache in percent that may be dirty or under write-back before writers wait
    /// (`dirty_ratio`).
    pub dirty_percent: u8,
    /// Interval in ms between the flusher's checks for old pages, at least 1
    /// (`dirty_writeback_centisecs`).
    pub flush_interval_ms: u64,
    /// Age in ms at which a dirty page is old (`dirty_expire_centisecs`).
    pub dirty_expire_ms: u64,
    /// Pages of one file that the flusher writes before it turns to the next file, at least 1.
    pub flush_chunk_pages: u32,
    /// Length in MiB of the partition at the start of the drive that has the file system and stands
    /// for the disk, 0 to 17179869184. 0 is the whole drive.
    pub partition_mib: u64,
    /// Allocation groups of the file system, 1 to 65536.
    pub groups: u32,
    /// Upper bound in KiB of the gap between two files (inodes, directories, small files), 0 to
    /// 1048576; each gap is drawn. With the default 0, files are contiguous, as on a fresh file
    /// system. Files of equal size then start at platter angles in a fixed relation, which decides
    /// the cost of switching between them.
    pub file_gap_kib: u64,
    /// If true, files consist of pieces of 64 KiB to 1 MiB, and pieces of different files
    /// alternate, as on an aged file system.
    pub aged: bool,
    /// The file system of jobs with a tree of files; `groups`, `file_gap_kib` and `aged` apply to
    /// other jobs.
    pub file_system: FileSystemConfig,
    /// The journal of the jobs' file system. With `None`, the default of all kernels, metadata
    /// costs nothing, unless a job sets `hoistway_journal`.
    pub journal: Option<JournalConfig>,
    /// The request queue. Three of its settings come from elsewhere: plugging from `plugging`, the
    /// rotational flag from the drive's profile, and without a `kernel` the block layer from each
    /// elevator's own kernel. (Later block layers look for back merges themselves and ask the
    /// elevator before they merge; multi-queue ones have one pool of tags.)
    ///
    /// The clock ticks 250 times a second, the default of kernels from 2.6.13 on. The anticipatory
    /// elevator's wait is then a single tick of 4 ms, which ends early when the tick falls into a
    /// short think time. The measurements of the time include that effect.
    pub queue: QueueConfig,
    /// Most requests that the driver gives the drive at once (`device/queue_depth`); the drive's
    /// own depth is the other limit. `None`, the default, is the drive's depth.
    pub depth_max: Option<u32>,
    /// Time in ns from the end of a request in the drive until the host knows of it, up to a
    /// second: the way through a virtual machine, a bridge or a network. The default 0 is that of a
    /// controller of the machine. The drive's queue has no room for another request in that time.
    pub transport_ns: u64,
    /// Spread of `transport_ns`, which is the median then: the standard deviation of the logarithm
    /// of the time, in thousandths, 0 to 3000. With the default 0 all are the same.
    pub transport_sigma_milli: u32,
    /// Time in ns within which the processes begin that start together, at most a second. Each
    /// begins at a random time in it. With 0, the default, they begin at once in the order of the
    /// job file. BFQ merges the queues of such processes into that of the first one.
    pub start_spread_ns: u64,
    /// Tolerance of the spindle speed in parts per million, 0 to 10000. The actual speed and the
    /// platter's angle at time 0 are drawn. The default 2000 is the 0.2 % of data sheets of desktop
    /// drives of 2006: effects of the exact ratio of a scheduler's times to a revolution then
    /// differ from seed to seed. With 0, the drive is exactly its profile.
    pub spindle_tolerance_ppm: u32,
}

/// CPU time of the kernel's work, in ns.
///
/// The defaults are of the order that lmbench (McVoy & Staelin, USENIX 1996) reported for 3 GHz
/// Pentium 4 class machines: half a microsecond for an empty read or write, a microsecond for a
/// page fault, 2 GB/s for copies in memory. The 5 us of a request (2.5 to submit it, 2.5 for its
/// interrupt and the wake-up) are an estimate for kernels and controllers of the time.
#[derive(Clone, Copy, Debug)]
pub struct CpuCosts {
    /// A system call.
    pub system_call_ns: u64,
    /// Copying a page of 4 KiB between kernel and process.
    pub copy_page_ns: u64,
    /// Submitting a bio.
    pub bio_ns: u64,
    /// A page fault that finds its page in memory.
    pub fault_ns: u64,
    /// The interrupt at the end of a request, and the wake-up of the waiting task; the median, if
    /// this time has a spread.
    pub completion_ns: u64,
    /// The spread of `completion_ns`: the standard deviation of its logarithm in thousandths, 0 to
    /// 3000.
    pub completion_sigma_milli: u32,
    /// The wake-up of a process that sleeps until a direct request completes: two changes of
    /// context. The process continues after it.
    pub wake_ns: u64,
    /// The work of the program for a direct request. With more than 0, the CPU time of a request's
    /// submission passes before the elevator gets the request, and io_uring reaps completed
    /// requests without a system call.
    pub program_ns: u64,
    /// The work of the elevators.
    pub elevators: ElevatorCosts,
}

/// CPU time of the elevators' work for direct requests. The elevators that have no entry cost
/// nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ElevatorCosts {
    /// The work of mq-deadline, under one lock.
    pub mq_deadline: ElevatorCost,
    /// Kyber, which has no lock that all processors take.
    pub kyber: ElevatorCost,
    /// The work of BFQ, under one lock.
    pub bfq: ElevatorCost,
}

/// CPU time of an elevator's work for a request, from insertion to completion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ElevatorCost {
    /// The work of a processor that also did the work for the request before, in ns.
    pub work_ns: u64,
    /// The mean work if another processor did that for the request before, in ns: the lock and the
    /// data under it come from the cache of that processor.
    pub shared_ns: u64,
    /// The mean work of a processor that has waited for the lock, in ns. One processor works at a
    /// time; the others spin. With 0 the processors work independently.
    pub contended_ns: u64,
}

impl ElevatorCost {
    /// No work.
    pub const NONE: ElevatorCost = ElevatorCost { work_ns: 0, shared_ns: 0, contended_ns: 0 };
}

impl ElevatorCosts {
    /// The cost of an elevator.
    pub fn of(&self, elevator: Kind) -> ElevatorCost {
        match elevator {
            Kind::MqDeadline => self.mq_deadline,
            Kind::Kyber => self.kyber,
            Kind::Bfq => self.bfq,
            _ => ElevatorCost::default(),
        }
    }
}

impl Default for CpuCosts {
    fn default() -> Self {
        CpuCosts {
            system_call_ns: 500,
            fault_ns: 1000,
            copy_page_ns: 2000,
            bio_ns: 2500,
            completion_ns: 2500,
            completion_sigma_milli: 0,
            wake_ns: 0,
            program_ns: 0,
            elevators: ElevatorCosts::default(),
        }
    }
}

impl CpuCosts {
    /// A host without any CPU time.
    pub const NONE: CpuCosts = CpuCosts {
        system_call_ns: 0,
        copy_page_ns: 0,
        bio_ns: 0,
        fault_ns: 0,
        completion_ns: 0,
        completion_sigma_milli: 0,
        wake_ns: 0,
        program_ns: 0,
        elevators: ElevatorCosts {
            mq_deadline: ElevatorCost::NONE,
            kyber: ElevatorCost::NONE,
            bfq: ElevatorCost::NONE,
        },
    };

    /// The costs of a server of 2023 under Linux 6.3, measured with an NVMe drive and fio's
    /// io_uring engine (Z. Ren, K. Doekemeijer, N. Tehrany, A. Trivedi, "BFQ, Multiqueue-Deadline,
    /// or Kyber?", ICPE 2024; raw results under the MIT licence).
    ///
    /// One process on one core makes 354,000 to 381,000 random reads a second under none: 2.7 us a
    /// request, two fifths of them in the program (figures 2 and 7). A single request at a time
    /// costs 8 us, and many processes with one request each on a core 6.2 to 8.3 us: the rest is
    /// the wake-up (figures 2 and 3). The elevators' work is the difference to none on one core
    /// (figures 2 and 7), the contended work one divided by the rate of ten cores (figures 5 and
    /// 7), and the shared work what two cores need (figure 7).
    fn measured_2023() -> CpuCosts {
        CpuCosts {
            system_call_ns: 300,
            bio_ns: 750,
            completion_ns: 600,
            wake_ns: 4500,
            program_ns: 1060,
            elevators: ElevatorCosts {
                mq_deadline: ElevatorCost { work_ns: 590, shared_ns: 950, contended_ns: 2200 },
                kyber: ElevatorCost { work_ns: 670, shared_ns: 0, contended_ns: 0 },
                bfq: ElevatorCost { work_ns: 1450, shared_ns: 2700, contended_ns: 3600 },
            },
            ..CpuCosts::default()
        }
    }
}

impl Default for HostConfig {
    fn default() -> Self {
        HostConfig {
            kernel: None,
            driver_chooses_ahead: false,
            pool_follows_drive: false,
            cpus: 2,
            drives: 1,
            page_cache_mib: 1843,
            read_ahead_kib: 128,
            read_ahead: ReadAheadRules::default(),
            plugging: Plugging::default(),
            costs: CpuCosts::default(),
            turnarounds_ns: Vec::new(),
            write_back: WriteBack::default(),
            write_back_throttling: false,
            write_back_latency_us: 0,
            direct_issue: DirectIssue::Never,
            flushes: Flushes::Layer,
            write_back_cache: None,
            fua: None,
            dirty_background_percent: 10,
            dirty_percent: 40,
            flush_interval_ms: 5000,
            dirty_expire_ms: 30_000,
            flush_chunk_pages: 1024,
            partition_mib: 0,
            groups: 16,
            file_gap_kib: 0,
            aged: false,
            file_system: FileSystemConfig::default(),
            journal: None,
            queue: QueueConfig { clock: ClockConfig { hz: 250, ..ClockConfig::default() }, ..QueueConfig::default() },
            depth_max: None,
            transport_ns: 0,
            transport_sigma_milli: 0,
            start_spread_ns: 0,
            spindle_tolerance_ppm: 2000,
        }
    }
}

impl HostConfig {
    /// The sectors of a drive that belong to the partition, in whole pages.
    pub(crate) fn partition_sectors(&self, drive_sectors: u64) -> u64 {
        let wanted = if self.partition_mib == 0 { drive_sectors } else { self.partition_mib << 11 };
        wanted.min(drive_sectors) / PAGE_SECTORS * PAGE_SECTORS
    }

    /// The default machine under this kernel: its block layer for all elevators, its clock, its
    /// dirty limits, its largest request, its number of requests. The file system of a job's tree
    /// is ext3, from 3.2 on ext4. Memory and processors stay those of the machine, except with 6.3,
    /// whose machine is a server of 2023 with ten cores.
    ///
    /// The ratios are those of the kernels' Documentation/sysctl/vm.txt (bdflush's 30 and 60 % on
    /// 2.4, 40 and 10 % up to 2.6.21,
    /// 10 and 5 % from 2.6.22, 20 and 10 % from 2.6.30). A request has at most 512 KiB
    /// (`max_sectors_kb`), from 4.7 on 1280 KiB. The multi-queue layer takes two requests for each
    /// request of the controller (64 with AHCI, 256 at most); earlier layers take 128 in each
    /// direction.
    pub fn kernel(kernel: Kernel) -> HostConfig {
        let mut host = HostConfig { kernel: Some(kernel), ..HostConfig::default() };
        host.queue.clock.hz = 250;
        (host.dirty_background_percent, host.dirty_percent) = match kernel {
            Kernel::V2_4 => (30, 60),
            Kernel::V2_6_18 => (10, 40),
            Kernel::V2_6_24 => (5, 10),
            Kernel::V3_2 | Kernel::V4_19 | Kernel::V6_1 | Kernel::V6_3 | Kernel::V6_12 => (10, 20),
        };
        host.write_back = match kernel {
            Kernel::V2_4 => WriteBack::Waiting,
            Kernel::V2_6_18 | Kernel::V2_6_24 => WriteBack::Pdflush,
            Kernel::V3_2 | Kernel::V4_19 | Kernel::V6_1 | Kernel::V6_3 | Kernel::V6_12 => WriteBack::Pauses,
        };
        host.file_system = match kernel {
            Kernel::V2_4 => FileSystemConfig::ext2(),
            Kernel::V2_6_18 | Kernel::V2_6_24 => FileSystemConfig::ext3(),
            Kernel::V3_2 | Kernel::V4_19 | Kernel::V6_1 | Kernel::V6_3 | Kernel::V6_12 => FileSystemConfig::ext4(),
        };
        (host.plugging, host.read_ahead) = match kernel {
            Kernel::V2_4 | Kernel::V2_6_18 => (Plugging::Queue, ReadAheadRules::TwoWindows),
            Kernel::V2_6_24 => (Plugging::Queue, ReadAheadRules::OnDemand),
            Kernel::V3_2 => (Plugging::Task { requests: 16, kib: 0 }, ReadAheadRules::OnDemandWithHistory),
            Kernel::V4_19 => (Plugging::Task { requests: 16, kib: 128 }, ReadAheadRules::OnDemandWithHistory),
            Kernel::V6_1 | Kernel::V6_3 | Kernel::V6_12 => {
                (Plugging::Task { requests: 32, kib: 128 }, ReadAheadRules::OnDemandWithHistory)
            }
        };
        if kernel == Kernel::V2_4 {
            // Documentation/sysctl/vm.txt of 2.4: `max-readahead` of 31 pages; MAX_SECTORS 255.
            host.queue.clock.hz = 100;
            host.read_ahead_kib = 124;
            host.queue.max_sectors = 248;
        }
        if matches!(kernel.layer(), BlockLayer::V4_19 | BlockLayer::V6_1) {
            host.queue.max_sectors = 2560;
        }
        host.driver_chooses_ahead = matches!(kernel, Kernel::V3_2 | Kernel::V4_19);
        host.write_back_throttling = kernel.layer() == BlockLayer::V6_1;
        host.direct_issue = match kernel {
            Kernel::V6_1 | Kernel::V6_3 => DirectIssue::Plugged,
            Kernel::V6_12 => DirectIssue::Always,
            _ => DirectIssue::Never,
        };
        host.pool_follows_drive = kernel.layer() == BlockLayer::V6_1;
        if kernel == Kernel::V6_3 {
            (host.cpus, host.costs) = (10, CpuCosts::measured_2023());
        }
        host
    }

    /// Returns whether the kernel flushes the cache of a drive, and whether it sends writes with
    /// FUA.
    pub(crate) fn write_cache_of(&self, profile: &Profile) -> (bool, bool) {
        let cached = self.write_back_cache.unwrap_or_else(|| profile.has_volatile_cache());
        (cached, self.fua.unwrap_or_else(|| profile.has_fua()))
    }

    pub(crate) fn cache_pages(&self) -> u64 {
        self.page_cache_mib * ((1 << 20) / PAGE_BYTES)
    }

    /// Creates the read-ahead state of a newly opened file whose reader gave an advice. The kernel
    /// doubles the longest window for sequential access. For random access it reads only the
    /// requested pages: up to 2.6.32 one by one, later all of a call together.
    pub(crate) fn reader(&self, advice: FadviseHint) -> Reader {
        let max = match advice {
            FadviseHint::Sequential => self.read_ahead_pages() * 2,
            FadviseHint::Random if self.read_ahead == ReadAheadRules::OnDemandWithHistory => {
                let longest_request = u64::from(self.queue.max_sectors) / PAGE_SECTORS;
                return Reader::Requested(longest_request.max(self.read_ahead_pages()));
            }
            FadviseHint::Random => return Reader::Requested(1),
            FadviseHint::None | FadviseHint::Pattern => self.read_ahead_pages(),
        };
        match self.read_ahead {
            ReadAheadRules::TwoWindows => Reader::TwoWindows(ReadAhead::new(max)),
            ReadAheadRules::OnDemand => Reader::OnDemand(OnDemand::new(max, false)),
            ReadAheadRules::OnDemandWithHistory => Reader::OnDemand(OnDemand::new(max, true)),
        }
    }

    pub(crate) fn read_ahead_pages(&self) -> u64 {
        self.read_ahead_kib * 1024 / PAGE_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kernel_is_found_by_its_version_and_has_a_valid_host() {
        for kernel in Kernel::ALL {
            assert_eq!(Kernel::from_name(kernel.name()), Some(kernel));
            let host = HostConfig::kernel(kernel);
            assert!(host.check().is_ok());
            assert_eq!(host.kernel, Some(kernel));
        }
        assert_eq!(Kernel::from_name("2.6"), None);
    }

    #[test]
    fn dirty_limits_are_those_of_the_version() {
        let limits =
            Kernel::ALL.map(HostConfig::kernel).map(|host| (host.dirty_background_percent, host.dirty_percent));
        assert_eq!(limits[..3], [(30, 60), (10, 40), (5, 10)]);
        assert!(limits[3..].iter().all(|limits| *limits == (10, 20)), "{limits:?}");
    }
}
