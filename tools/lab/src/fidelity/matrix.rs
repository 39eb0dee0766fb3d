//! What is compared: drives, jobs and schedulers.

/// The comparison that a job or a drive belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Set {
    /// Jobs under schedulers.
    Schedulers,
    /// Jobs whose writes are synced, on drives with and without a write cache.
    Syncs,
}

/// A job of fio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// The name of its file.
    pub name: &'static str,
    /// The job file.
    pub text: &'static str,
    /// True if the job works on files of ext4; otherwise it works on the disk itself.
    pub on_files: bool,
    /// The comparison.
    pub set: Set,
}

impl Job {
    /// The description: the comment in the first line of the job file.
    pub fn description(&self) -> &'static str {
        self.text.lines().next().unwrap_or_default().trim_start_matches("# ")
    }
}

/// A drive with the jobs that run on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drive {
    /// The name of the profile.
    pub name: &'static str,
    /// The text of the profile, if it is not a built-in one.
    pub profile: Option<&'static str>,
    /// The comparison.
    pub set: Set,
    /// The requests that the kernel gives the drive at a time.
    pub depth: u64,
    /// True if the disk of the guest reports a write cache.
    pub write_cache: bool,
    /// The names of the jobs; all of the comparison if there is none.
    pub jobs: &'static [&'static str],
}

macro_rules! job {
    ($name:literal, $on_files:literal) => {
        job!($name, $on_files, Set::Schedulers)
    };
    ($name:literal, $on_files:literal, $set:expr) => {
        Job { name: $name, text: include_str!(concat!("../../jobs/", $name, ".fio")), on_files: $on_files, set: $set }
    };
}

/// The jobs.
pub const JOBS: [Job; 29] = [
    job!("random-readers", false),
    job!("stream-and-random", false),
    job!("two-streams", false),
    job!("deep-streams", false),
    job!("random-mixed-sizes", false),
    job!("random-depth-16", false),
    job!("random-read-write", false),
    job!("readers-and-writers", false),
    job!("io-priorities", false),
    job!("idle-class", false),
    job!("weighted-groups", false),
    job!("thinker-and-streams", false),
    job!("cached-readers", false),
    job!("cached-readers-without-hints", false),
    job!("cached-random", false),
    job!("reader-and-flood", false),
    job!("file-readers", true),
    job!("synced-appends", true),
    job!("tree-archive", true),
    job!("tree-find", true),
    job!("tree-and-stream", true),
    job!("two-trees", true),
    job!("fsync-device", false, Set::Syncs),
    job!("fdatasync-device", false, Set::Syncs),
    job!("dsync-device", false, Set::Syncs),
    job!("log-device", false, Set::Syncs),
    job!("fsync-file", true, Set::Syncs),
    job!("dsync-file", true, Set::Syncs),
    job!("log-file", true, Set::Syncs),
];

/// The drives: for schedulers one that takes a command at a time, and one with a queue and a write
/// cache; for syncs a drive with and without its write cache.
pub const DRIVES: [Drive; 4] = [
    Drive { name: "sata-7200-2006", profile: None, set: Set::Schedulers, depth: 1, write_cache: true, jobs: &[] },
    Drive {
        name: "cmr-4tb",
        profile: None,
        set: Set::Schedulers,
        depth: 32,
        write_cache: true,
        jobs: &[
            "stream-and-random",
            "random-depth-16",
            "random-read-write",
            "readers-and-writers",
            "cached-readers",
            "reader-and-flood",
        ],
    },
    Drive { name: "cmr-8tb", profile: None, set: Set::Syncs, depth: 32, write_cache: true, jobs: &[] },
    Drive {
        name: "cmr-8tb-write-through",
        profile: Some(
            "name = \"cmr-8tb-write-through\"\nbase = \"cmr-8tb\"\nwhat = \"the drive cmr-8tb, its write cache switched off\"\n\
             source = \"That of cmr-8tb.\"\n\n[buffer]\nsegments = 32\nsegment_sectors = 4096\n\
             read_ahead_until = \"segment\"\nwrite_cache = false\n",
        ),
        set: Set::Syncs,
        depth: 32,
        write_cache: false,
        jobs: &[],
    },
];

/// The job that measures the time of a request beyond that of the drive.
pub const OVERHEAD: Job = job!("overhead", false);
/// The drive for that job. Each request takes [`DELAY_NS`].
pub const DELAY: Drive = Drive {
    name: "delay",
    profile: Some(
        "name = \"delay\"\nwhat = \"a device that completes each command after 5 ms\"\n\
         source = \"No device.\"\n\n\
         [null]\nservice_ns = 5_000_000\ndepth = 1\ncapacity_sectors = 2147483648\n",
    ),
    set: Set::Schedulers,
    depth: 1,
    write_cache: true,
    jobs: &["overhead"],
};
/// The service time of [`DELAY`] in ns.
pub const DELAY_NS: f64 = 5e6;

/// A kernel that boots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The name in the table of kernels.
    pub name: &'static str,
    /// The kernel of the simulated host.
    pub host: &'static str,
    /// The requests of a queue's pool, as the guest reports them (`nr_requests`).
    pub pool: u32,
    /// The schedulers; the first one takes requests in their order.
    pub schedulers: &'static [&'static str],
    /// The drives, by their names.
    pub drives: &'static [&'static str],
}

/// The schedulers of current kernels.
const CURRENT: &[&str] = &["none", "mq-deadline", "kyber", "bfq"];
/// The schedulers of kernels whose block layer has a single queue.
const OLD: &[&str] = &["noop", "deadline", "cfq"];

/// The kernels.
pub const KERNELS: [Kernel; 3] = [
    Kernel {
        name: "6.12",
        host: "6.12",
        pool: 256,
        schedulers: CURRENT,
        drives: &["sata-7200-2006", "cmr-4tb", "cmr-8tb", "cmr-8tb-write-through"],
    },
    Kernel {
        name: "6.1",
        host: "6.1",
        pool: 256,
        schedulers: CURRENT,
        drives: &["sata-7200-2006", "cmr-8tb", "cmr-8tb-write-through"],
    },
    Kernel { name: "4.4", host: "3.2", pool: 128, schedulers: OLD, drives: &["sata-7200-2006"] },
];

/// The memory of the guest.
pub const MEMORY_MIB: u32 = 1024;

impl Kernel {
    /// The drives that the kernel runs on.
    pub fn drives(&self) -> impl Iterator<Item = &'static Drive> + use<> {
        let names = self.drives;
        DRIVES.iter().filter(move |drive| names.contains(&drive.name))
    }
}

impl Drive {
    /// The jobs that run on the drive.
    pub fn jobs(&self) -> impl Iterator<Item = &'static Job> + use<> {
        let names = self.jobs;
        let set = self.set;
        JOBS.iter().filter(move |job| job.set == set && (names.is_empty() || names.contains(&job.name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_job_of_a_drive_exists_and_every_job_is_described() {
        for drive in DRIVES {
            let all = JOBS.iter().filter(|job| job.set == drive.set).count();
            assert_eq!(drive.jobs().count(), if drive.jobs.is_empty() { all } else { drive.jobs.len() });
        }
        for job in JOBS {
            assert!(job.text.starts_with("# ") && job.text.contains("runtime="), "{}", job.name);
            assert_eq!(job.text.contains("filename=${DISK}"), !job.on_files, "{}", job.name);
        }
    }

    #[test]
    fn there_are_at_least_sixty_pairs() {
        let pairs = |kernel: &Kernel| -> usize {
            kernel.drives().map(|drive| drive.jobs().count() * kernel.schedulers.len()).sum()
        };
        assert!(pairs(&KERNELS[0]) >= 60, "{}", pairs(&KERNELS[0]));
    }
}
