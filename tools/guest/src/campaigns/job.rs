//! A job of fio on a disk of the virtual machine, or on files of a file system on that disk, also
//! beside programs that walk through trees of files there. The results are files for the host.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::cgroup::{self, Group};
use super::fio::{self, PROGRAM};
use super::{Context, Failure, Verdict, walk};
use crate::device::Queue;
use crate::plan::{JobPart, JobSetup};
use crate::protocol::Counts;
use crate::{Outcome, system, transfer, wait};

/// The program that makes file systems in the initial RAM disk.
pub const MAKE_FILE_SYSTEM: &str = "/usr/sbin/mke2fs";
/// The directory in which the file system is mounted.
const MOUNTED: &str = "/tmp/files";
/// The time in which a drive writes the data of its cache to the medium.
const SETTLING: Duration = Duration::from_millis(500);

/// Runs the job under an elevator.
pub fn run(context: &mut Context, setup: &JobSetup) -> Verdict {
    fio::require()?;
    require_groups(setup)?;
    for module in ["sd_mod", "virtio_scsi"] {
        context.modules.insert(module, "")?;
    }
    let disk = wait_for_disk(&setup.serial)?;
    system::write(format!("/sys/block/{disk}/device/queue_depth"), &setup.depth.to_string())?;
    let queue = Queue::new(&disk);
    let job = Job { setup, disk: &disk };
    if setup.on_files {
        context.modules.insert("crc32c_generic", "")?;
        context.modules.insert("ext4", "")?;
        queue.select_fifo()?;
        make_file_system(&disk)?;
        job.mount()?;
    }
    let mut counts = Counts::new();
    let outcome = job.create_files().and_then(|()| job.create_trees()).and_then(|()| {
        queue.select(&setup.elevator)?;
        counts = settings(&disk);
        system::drop_caches()?;
        thread::sleep(SETTLING);
        let bytes = job.measure()?;
        counts.extend(job.walk_again()?);
        Ok(bytes)
    });
    if setup.on_files {
        // Writing what the job left behind is not measured.
        system::unmount(MOUNTED)?;
    }
    system::drop_caches()?;
    queue.select_fifo()?;
    let bytes = outcome?;
    let memory = system::read("/proc/meminfo")?;
    let available = memory.lines().find_map(|line| line.strip_prefix("MemAvailable:")).and_then(|rest| {
        let kib: u64 = rest.trim().trim_end_matches("kB").trim().parse().ok()?;
        Some(kib >> 10)
    });
    counts.insert("results_bytes".to_owned(), bytes);
    counts.insert("available_mib".to_owned(), available.unwrap_or(0));
    Ok(counts)
}

/// The settings of the queue that the simulated host needs too, as far as the kernel has them.
fn settings(disk: &str) -> Counts {
    let read = |name: &str| {
        let text = system::read(format!("/sys/block/{disk}/queue/{name}")).ok()?;
        Some((name.to_owned(), text.parse().ok()?))
    };
    ["nr_requests", "max_sectors_kb", "wbt_lat_usec", "read_ahead_kb"].into_iter().filter_map(read).collect()
}

/// A job and its disk.
struct Job<'a> {
    setup: &'a JobSetup,
    disk: &'a str,
}

/// A part of a job that runs.
enum Running {
    Fio(Child),
    Walk(walk::Running),
}

impl Job<'_> {
    /// Mounts the file system of the disk. Trees are read without access times, which would be
    /// written.
    fn mount(&self) -> Outcome<()> {
        system::mount_device(&format!("/dev/{}", self.disk), "ext4", MOUNTED, self.setup.trees.is_empty())
    }

    /// Creates the trees, and mounts the file system again, so that nothing of it is in memory.
    fn create_trees(&self) -> Outcome<()> {
        if self.setup.trees.is_empty() {
            return Ok(());
        }
        for (number, tree) in self.setup.trees.iter().enumerate() {
            walk::create(&tree_root(number), tree)?;
        }
        system::unmount(MOUNTED)?;
        self.mount()
    }

    /// Creates the files of a job that works on files.
    fn create_files(&self) -> Outcome<()> {
        if !self.setup.on_files {
            return Ok(());
        }
        for (number, part) in self.setup.parts.iter().enumerate().filter(|(_, part)| part.walk.is_none()) {
            let child = self.start(number, part, &["--create_only=1"])?;
            self.finish(number, child)?;
        }
        Ok(())
    }

    /// Runs all parts at the same time and sends their results. Returns the bytes of the results.
    fn measure(&self) -> Outcome<u64> {
        let mut groups = Vec::new();
        let mut running = Vec::new();
        for (number, part) in self.setup.parts.iter().enumerate() {
            if let Some(walk) = &part.walk {
                running.push(Running::Walk(walk::start(&tree_root(walk.tree), walk)?));
                continue;
            }
            let child = self.start(number, part, &[])?;
            if let Some((name, weight)) = &part.group {
                let group = Group::create(name)?;
                set_weight(&group, *weight)?;
                group.add(&child)?;
                groups.push(group);
            }
            running.push(Running::Fio(child));
        }
        let mut bytes = 0;
        let mut outcome = Ok(());
        for ((number, part), running) in self.setup.parts.iter().enumerate().zip(running) {
            let finished = match running {
                Running::Fio(child) => self.finish(number, child),
                Running::Walk(walk) => walk::finish(walk),
            };
            let finished = finished.and_then(|results| {
                bytes += results.len() as u64;
                transfer::send(&part.results, &results)
            });
            outcome = outcome.and(finished);
        }
        for group in groups {
            group.remove()?;
        }
        outcome.map(|()| bytes)
    }

    /// Repeats a job that is nothing but a walk to the end of a tree, which is in memory now: the
    /// time is that of the programs.
    fn walk_again(&self) -> Outcome<Option<(String, u64)>> {
        let [JobPart { walk: Some(walk), .. }] = self.setup.parts.as_slice() else { return Ok(None) };
        let begun = Instant::now();
        walk::finish(walk::start(&tree_root(walk.tree), walk)?)?;
        Ok(Some(("cached_ms".to_owned(), u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX))))
    }

    /// Starts fio with a part of the job.
    fn start(&self, number: usize, part: &JobPart, options: &[&str]) -> Outcome<Child> {
        let job = format!("/tmp/job-{number}.fio");
        std::fs::write(&job, &part.job).map_err(|error| format!("{job}: {error}"))?;
        let mut command = Command::new(PROGRAM);
        command.args(options).arg("--output-format=json").arg(format!("--output={}", results(number))).arg(job);
        command.env("DISK", format!("/dev/{}", self.disk));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command.current_dir(if self.setup.on_files { MOUNTED } else { "/tmp" });
        command.spawn().map_err(|error| format!("cannot start {PROGRAM}: {error}"))
    }

    /// Waits for the end of a part and returns its results.
    fn finish(&self, number: usize, child: Child) -> Outcome<Vec<u8>> {
        let output = child.wait_with_output().map_err(|error| format!("{PROGRAM}: {error}"))?;
        let results = std::fs::read(results(number)).unwrap_or_default();
        if output.status.success() {
            return Ok(results);
        }
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(format!("fio: {}: {} {}", output.status, errors.trim(), String::from_utf8_lossy(&results)))
    }
}

/// The path of the root of a tree.
fn tree_root(number: usize) -> PathBuf {
    Path::new(MOUNTED).join(format!("tree-{number}"))
}

/// The path of the results of a part.
fn results(number: usize) -> String {
    format!("/tmp/results-{number}.json")
}

/// Sets the weight of a group for the elevator that has a file for it.
fn set_weight(group: &Group, weight: u64) -> Outcome<()> {
    let files = ["io.bfq.weight", "io.weight"];
    let mut last = Ok(());
    for file in files {
        last = group.set(file, &weight.to_string());
        if last.is_ok() {
            return Ok(());
        }
    }
    last
}

/// Makes an ext4 file system whose tables and journal are complete, so that the kernel writes
/// nothing later on its own.
fn make_file_system(disk: &str) -> Result<(), Failure> {
    if !Path::new(MAKE_FILE_SYSTEM).exists() {
        return Err(Failure::Skipped(format!("the initial RAM disk has no {MAKE_FILE_SYSTEM}")));
    }
    let mut command = Command::new(MAKE_FILE_SYSTEM);
    command.args(["-q", "-F", "-t", "ext4", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard"]);
    command.arg(format!("/dev/{disk}")).stdin(Stdio::null());
    let output = command.output().map_err(|error| format!("cannot start {MAKE_FILE_SYSTEM}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(Failure::Failed(format!("{MAKE_FILE_SYSTEM}: {}: {}", output.status, errors.trim())))
}

/// Enables control groups of the io controller if a part of the job has one.
fn require_groups(setup: &JobSetup) -> Result<(), Failure> {
    if setup.parts.iter().any(|part| part.group.is_some()) { cgroup::require_controller("io") } else { Ok(()) }
}

/// Waits until the disk with a serial number appears. Returns its name.
fn wait_for_disk(serial: &str) -> Outcome<String> {
    let mut found = None;
    wait::wait_until(&format!("the disk {serial} does not appear"), || {
        found = system::disk_with_serial(serial)?;
        Ok(found.is_some())
    })?;
    found.ok_or_else(|| format!("there is no disk {serial}"))
}
