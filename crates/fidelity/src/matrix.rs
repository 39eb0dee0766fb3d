//! What is compared: drives, jobs and schedulers.

/// A job of fio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// The name of its file.
    pub name: &'static str,
    /// The job file.
    pub text: &'static str,
    /// True if the job works on files of ext4; otherwise it works on the disk itself.
    pub on_files: bool,
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
    /// The requests that the kernel gives the drive at a time.
    pub depth: u64,
    /// The names of the jobs; all if there is none.
    pub jobs: &'static [&'static str],
}

macro_rules! job {
    ($name:literal, $on_files:literal) => {
        Job { name: $name, text: include_str!(concat!("../jobs/", $name, ".fio")), on_files: $on_files }
    };
}

/// The jobs.
pub const JOBS: [Job; 22] = [
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
];

/// The drives: one that takes a command at a time, and one with a queue and a write cache.
pub const DRIVES: [Drive; 2] = [
    Drive { name: "sata-7200-2006", profile: None, depth: 1, jobs: &[] },
    Drive {
        name: "cmr-4tb",
        profile: None,
        depth: 32,
        jobs: &[
            "stream-and-random",
            "random-depth-16",
            "random-read-write",
            "readers-and-writers",
            "cached-readers",
            "reader-and-flood",
        ],
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
    depth: 1,
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
    Kernel { name: "6.12", host: "6.12", pool: 256, schedulers: CURRENT, drives: &["sata-7200-2006", "cmr-4tb"] },
    Kernel { name: "6.1", host: "6.1", pool: 256, schedulers: CURRENT, drives: &["sata-7200-2006"] },
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
        JOBS.iter().filter(move |job| names.is_empty() || names.contains(&job.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_job_of_a_drive_exists_and_every_job_is_described() {
        for drive in DRIVES {
            assert_eq!(drive.jobs().count(), if drive.jobs.is_empty() { JOBS.len() } else { drive.jobs.len() });
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
