//! The simulated host: how large, how fast, and how its kernel behaves.

use hoistway_core::{ClockConfig, QueueConfig};

use crate::host::fs::config::FileSystemConfig;
use crate::host::journal::JournalConfig;
use crate::host::on_demand::OnDemand;
use crate::host::page::PAGE_BYTES;
use crate::host::readahead::Reader;
use crate::host::two_windows::ReadAhead;

use super::kernel::Kernel;

/// How the kernel reads ahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadAheadRules {
    /// Two windows, the current one and the one ahead of it: 2.6.22 and before.
    #[default]
    TwoWindows,
    /// On demand: at a missing page and at a page that was marked (2.6.23).
    OnDemand,
    /// The same, and streams that the state of the open file does not know are found by what is cached before them (2.6.31 and later).
    OnDemandWithHistory,
}

/// Where bios are held back so that they can be merged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Plugging {
    /// Nowhere: each goes to the elevator as it comes, and the queue is run.
    None,
    /// On the queue, for all tasks: up to 4 requests or 3 ms, until somebody waits (2.6.38 and before).
    #[default]
    Queue,
    /// On the task, while one of its calls submits: up to `requests` of them, and none any longer once one has `bytes` (2.6.39 and later).
    Task {
        /// So many are submitted at once, 1 to 1024.
        requests: u32,
        /// A request that is as long as this in KiB ends the wait; 0 is no such rule.
        kib: u32,
    },
}

/// Who writes dirty pages back, and what holds those back who make them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WriteBack {
    /// One flusher, which waits for room in the queue; writers wait while more than `dirty_percent` is dirty or being written. No kernel's:
    /// what the others have in common.
    #[default]
    Waiting,
    /// pdflush, which stays away from a congested queue; a writer that finds too much dirty writes some back itself (2.6.31 and before). Of
    /// its two to eight threads no more than one ever works for a device.
    Pdflush,
    /// One flusher; writers are paused for 200 ms at most, each for as long as its share of the device's rate asks (3.2 and later).
    Pauses,
}

/// The host. The default is the machine of J. Axboe's slides on CFQ (2006): a 3 GHz Pentium D (two cores) with 2 GB of
/// memory under Linux 2.6.18.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// The kernel in whose block layer all elevators run, and whose defaults they have where those differ from what they have here.
    /// `None`, the default: each elevator in the block layer that it was written for. [`HostConfig::kernel`] sets everything else
    /// that belongs to a kernel, too.
    pub kernel: Option<Kernel>,
    /// The queue takes twice as many requests as the controller at once, as multi-queue block layers do: the drive's own depth, but 32 at
    /// least (AHCI's, whatever the drive behind it can) and 128 at most. `queue.nr_requests` does not count then.
    pub pool_follows_drive: bool,
    /// Processors, at least 1.
    pub cpus: u32,
    /// The page cache, in MiB, 1 to 2^24. The default leaves 10 % of 2 GB to kernel and programs.
    pub page_cache_mib: u64,
    /// The longest read-ahead window, in KiB, 0 (no read-ahead) to 65536. Default 128, Linux's own.
    pub read_ahead_kib: u64,
    /// How it reads ahead.
    pub read_ahead: ReadAheadRules,
    /// Where bios are held back; `queue.plugging` follows from it.
    pub plugging: Plugging,
    /// What the kernel's work costs.
    pub costs: CpuCosts,
    /// Who writes back, and what holds writers up.
    pub write_back: WriteBack,
    /// The flusher begins to write when this share of the page cache is dirty, in percent (`dirty_background_ratio`).
    pub dirty_background_percent: u8,
    /// A writer has to wait while more than this share is dirty or being written, in percent (`dirty_ratio`).
    pub dirty_percent: u8,
    /// How often the flusher looks for old pages, in ms, at least 1 (`dirty_writeback_centisecs`).
    pub flush_interval_ms: u64,
    /// How long a page is dirty before it is old, in ms (`dirty_expire_centisecs`).
    pub dirty_expire_ms: u64,
    /// How many pages of one file the flusher writes before it turns to the next, at least 1.
    pub flush_chunk_pages: u32,
    /// Allocation groups of the file system, 1 to 65536.
    pub groups: u32,
    /// What else lies between two files (inodes, directories, small files): up to so many KiB, drawn for each gap; 0 to
    /// 1048576. Default 0: on a fresh file system files lie side by side. Files of equal size then begin at angles of
    /// the platter that have a fixed relation, and turns from one to the other cost whatever that happens to be.
    pub file_gap_kib: u64,
    /// Files lie in pieces of 64 KiB to 1 MiB, mixed among each other, as on a file system that has been in use.
    pub aged: bool,
    /// How the file system was made, for jobs that have a tree of files; `groups`, `file_gap_kib` and `aged` are for the others.
    pub file_system: FileSystemConfig,
    /// How the metadata of jobs' files is journalled. `None`, the default of all kernels, is a file system whose metadata costs nothing,
    /// unless a job says otherwise (`hoistway_journal`).
    pub journal: Option<JournalConfig>,
    /// The request queue, but for what is told elsewhere: whether it is plugged is for `plugging` to say; without a `kernel` its block layer is that of the kernel which each elevator is from
    /// (later kernels look for back merges themselves and ask the elevator before they merge; multi-queue ones have one pool of tags), and
    /// whether the device is rotational is for the drive's profile to say. Its clock ticks 250 times a second, as kernels from 2.6.13 on did unless configured
    /// otherwise: that the anticipatory elevator's wait is then a single tick of 4 ms, and ends early when the tick
    /// falls into a short think time, is part of what was measured at the time.
    pub queue: QueueConfig,
    /// The driver gives the drive no more requests at once than this (`device/queue_depth`), nor than the drive takes itself; `None`, the
    /// default: as many as that.
    pub depth_max: Option<u32>,
    /// How far the drive's spindle may be off its nominal speed, in parts per million, 0 to 10000; how far it is, and
    /// where the platter stands at time 0, is drawn. Default 2000, the 0.2 % that data sheets of desktop drives of 2006
    /// allow: what hangs on the exact ratio of a scheduler's times to a revolution differs from seed to seed. At 0 the
    /// drive is exactly what its profile says.
    pub spindle_tolerance_ppm: u32,
}

/// CPU time of the kernel's work, in ns.
///
/// The defaults are of the order that lmbench (McVoy & Staelin, USENIX 1996) reported for 3 GHz Pentium 4 class
/// machines: half a microsecond for a read or write of nothing, a microsecond for a page fault, 2 GB/s for copies in memory. A request's 5 us (two and
/// a half to submit it, as much for its interrupt and the wake-up) are an estimate for kernels and controllers of the
/// time.
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
    /// The interrupt at the end of a request, and waking whoever waits for it.
    pub completion_ns: u64,
}

impl Default for CpuCosts {
    fn default() -> Self {
        CpuCosts { system_call_ns: 500, fault_ns: 1000, copy_page_ns: 2000, bio_ns: 2500, completion_ns: 2500 }
    }
}

impl Default for HostConfig {
    fn default() -> Self {
        HostConfig {
            kernel: None,
            pool_follows_drive: false,
            cpus: 2,
            page_cache_mib: 1843,
            read_ahead_kib: 128,
            read_ahead: ReadAheadRules::default(),
            plugging: Plugging::default(),
            costs: CpuCosts::default(),
            write_back: WriteBack::default(),
            dirty_background_percent: 10,
            dirty_percent: 40,
            flush_interval_ms: 5000,
            dirty_expire_ms: 30_000,
            flush_chunk_pages: 1024,
            groups: 16,
            file_gap_kib: 0,
            aged: false,
            file_system: FileSystemConfig::default(),
            journal: None,
            queue: QueueConfig { clock: ClockConfig { hz: 250, ..ClockConfig::default() }, ..QueueConfig::default() },
            depth_max: None,
            spindle_tolerance_ppm: 2000,
        }
    }
}

impl HostConfig {
    /// The machine of the default under this kernel: its block layer for all elevators, its clock, its limits of dirty memory, the
    /// largest request that it makes, the number of requests that it takes. The file system of a job's tree
    /// is ext3, and ext4 from 3.2 on. Memory and processors are the machine's and stay.
    ///
    /// The ratios are those of the kernels' Documentation/sysctl/vm.txt (40 and 10 % up to 2.6.21, 10 and 5 % from 2.6.22, 20 and
    /// 10 % from 2.6.30). A request is at most 512 KiB (`max_sectors_kb`), from 4.7 on 1280 KiB. The multi-queue layer takes two
    /// requests for each that the controller takes at once (64 with AHCI, 256 at most); before, there were 128 a direction.
    pub fn kernel(kernel: Kernel) -> HostConfig {
        let mut host = HostConfig { kernel: Some(kernel), ..HostConfig::default() };
        host.queue.clock.hz = 250;
        (host.dirty_background_percent, host.dirty_percent) = match kernel {
            Kernel::V2_6_18 => (10, 40),
            Kernel::V2_6_24 => (5, 10),
            Kernel::V3_2 | Kernel::V6_1 => (10, 20),
        };
        host.write_back = match kernel {
            Kernel::V2_6_18 | Kernel::V2_6_24 => WriteBack::Pdflush,
            Kernel::V3_2 | Kernel::V6_1 => WriteBack::Pauses,
        };
        host.file_system = match kernel {
            Kernel::V2_6_18 | Kernel::V2_6_24 => FileSystemConfig::ext3(),
            Kernel::V3_2 | Kernel::V6_1 => FileSystemConfig::ext4(),
        };
        (host.plugging, host.read_ahead) = match kernel {
            Kernel::V2_6_18 => (Plugging::Queue, ReadAheadRules::TwoWindows),
            Kernel::V2_6_24 => (Plugging::Queue, ReadAheadRules::OnDemand),
            Kernel::V3_2 => (Plugging::Task { requests: 16, kib: 0 }, ReadAheadRules::OnDemandWithHistory),
            Kernel::V6_1 => (Plugging::Task { requests: 32, kib: 128 }, ReadAheadRules::OnDemandWithHistory),
        };
        if kernel == Kernel::V6_1 {
            host.queue.max_sectors = 2560;
            host.pool_follows_drive = true;
        }
        host
    }

    pub(crate) fn cache_pages(&self) -> u64 {
        self.page_cache_mib * ((1 << 20) / PAGE_BYTES)
    }

    /// What the kernel remembers of a file that is opened.
    pub(crate) fn reader(&self) -> Reader {
        let max = self.read_ahead_pages();
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
    fn each_kernel_is_found_by_its_version_and_makes_a_valid_host() {
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
        assert_eq!(limits, [(10, 40), (5, 10), (10, 20), (10, 20)]);
    }
}
