//! Rewrites a job file for two runs on extents of one drive: with the simulator and with fio.

use std::fmt::Write;

use hoistway_fio::{Job, JobFile, WriteSync};

use crate::BenchError;

/// Interval between the starts of two processes, in ms. The first requests then arrive in the same
/// order in both runs; an elevator that serves in order of arrival keeps that order for ever.
const START_INTERVAL_MS: u64 = 20;

/// Run times of a job without `runtime` or `ramp_time`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// Time at the beginning that is not measured, in seconds.
    pub ramp_seconds: u32,
    /// Measured time after the ramp, in seconds.
    pub seconds: u32,
}

/// Alignment of extents, in bytes.
const ALIGNMENT_BYTES: u64 = 1 << 20;

/// Options for the location and the engine of requests, which the rewriting replaces, and options
/// for reports.
const REPLACED: &[&str] = &[
    "buffered",
    "direct",
    "directory",
    "end_fsync",
    "file_service_type",
    "fallocate",
    "fdatasync",
    "filename",
    "filename_format",
    "filesize",
    "fsync",
    "fsync_on_close",
    "group_reporting",
    "invalidate",
    "ioengine",
    "log_avg_msec",
    "log_offset",
    "name",
    "nrfiles",
    "numjobs",
    "offset",
    "offset_align",
    "offset_increment",
    "runtime",
    "size",
    "sync",
    "thread",
    "time_based",
    "uri",
    "write_bw_log",
    "write_iops_log",
    "write_lat_log",
    "new_group",
];

/// Options without a counterpart on a server.
const REFUSED: &[&str] =
    &["cgroup", "cgroup_weight", "hoistway_journal", "hoistway_tree", "hoistway_walk", "wait_for", "writefua"];

/// The two forms of one job file.
#[derive(Debug)]
pub struct Rewritten {
    /// Job file for the simulator. Each process has its own control group, because it is a tenant
    /// of its own on the server.
    pub simulated: String,
    /// Processes; [`Process::section`] makes their sections of fio's job file.
    pub processes: Vec<Process>,
}

/// A clone of a job, on an extent of its own.
#[derive(Debug)]
pub struct Process {
    /// Name for messages: that of the job, with the number of the clone if there are several.
    pub name: String,
    /// Name in generated files, which not every job name fits.
    pub id: String,
    /// Start of the extent, in bytes.
    pub offset_bytes: u64,
    /// Length of the extent, in bytes.
    pub size_bytes: u64,
    /// I/O class and level, if the job has them.
    pub priority: Option<(u8, u8)>,
    /// Maximum of outstanding requests.
    pub depth: u32,
    options: String,
}

impl Process {
    /// The section of fio's job file.
    pub fn section(&self, uri: &str) -> String {
        format!("[{}]\nioengine=nbd\nuri={uri}\nsize={}\n{}", self.id, self.size_bytes, self.options)
    }

    /// The section without a ramp: fio measures from the first request on, as the server does.
    pub fn section_without_ramp(&self, uri: &str) -> String {
        self.section(uri).lines().filter(|line| !line.starts_with("ramp_time=")).flat_map(|line| [line, "\n"]).collect()
    }
}

/// Rewrites a job file: each clone of each job has an extent of the drive, at the greatest possible
/// distance from the others.
///
/// # Errors
/// An option that a process cannot have on one extent of a served drive.
pub fn rewrite(jobs: &JobFile, capacity_bytes: u64, times: Times) -> Result<Rewritten, BenchError> {
    let clones: u64 = jobs.jobs.iter().map(|job| u64::from(job.start.numjobs)).sum();
    let stride = capacity_bytes / clones.max(1) / ALIGNMENT_BYTES * ALIGNMENT_BYTES;
    let mut rewritten = Rewritten { simulated: String::new(), processes: Vec::new() };
    for job in &jobs.jobs {
        check_options(job, jobs)?;
        for clone in 0..job.start.numjobs {
            let offset_bytes = rewritten.processes.len() as u64 * stride;
            let mut process = process(job, jobs, clone, (offset_bytes, stride), times)?;
            process.id = format!("process-{}", rewritten.processes.len() + 1);
            if *job.start.startdelay_ns.end() == 0 {
                let _ =
                    writeln!(process.options, "startdelay={}ms", rewritten.processes.len() as u64 * START_INTERVAL_MS);
            }
            let _ = write!(
                rewritten.simulated,
                "[{0}]\nfilename=/dev/sda\ndirect=1\nioengine=io_uring\ncgroup={0}\noffset={1}\nsize={2}\n{3}",
                process.id, process.offset_bytes, process.size_bytes, process.options
            );
            if let Some((class, level)) = process.priority {
                let _ = writeln!(rewritten.simulated, "prioclass={class}\nprio={level}");
            }
            rewritten.processes.push(process);
        }
    }
    Ok(rewritten)
}

fn process(job: &Job, jobs: &JobFile, clone: u32, extent: (u64, u64), times: Times) -> Result<Process, BenchError> {
    let (offset_bytes, extent_bytes) = extent;
    let size_bytes = job.region.size_or_all().of(extent_bytes);
    if size_bytes > extent_bytes {
        return Err(job_error(
            job,
            &format!("{size_bytes} bytes per process do not fit: each process has {extent_bytes} bytes of the drive"),
        ));
    }
    let mut options = String::new();
    // A global option of a later section does not apply to an earlier job. The options of a job are
    // in its own list or in the first one.
    let own = job.options.iter();
    let inherited = jobs.global_options.iter().filter(|(name, _)| !job.options.iter().any(|(own, _)| own == name));
    for (name, value) in inherited.chain(own) {
        if REPLACED.contains(&name.as_str()) || ["prio", "prioclass"].contains(&name.as_str()) {
            continue;
        }
        if name == "stonewall" && clone > 0 {
            continue;
        }
        let _ = if value.is_empty() { writeln!(options, "{name}") } else { writeln!(options, "{name}={value}") };
    }
    if let Some(writes) = writes_between_syncs(job) {
        let _ = writeln!(options, "fsync={writes}");
    }
    let runtime_ns = job.end.runtime_ns.unwrap_or(u64::from(times.seconds) * 1_000_000_000);
    let _ = writeln!(options, "time_based\nruntime={}ms", runtime_ns / 1_000_000);
    if job.start.ramp_time_ns == 0 {
        let _ = writeln!(options, "ramp_time={}s", times.ramp_seconds);
    }
    let name = if job.start.numjobs == 1 { job.name.clone() } else { format!("{}-{}", job.name, clone + 1) };
    let priority = job
        .priority
        .prio
        .or(job.priority.prioclass)
        .map(|_| (job.priority.prioclass.unwrap_or(2), job.priority.prio.unwrap_or(4)));
    Ok(Process {
        name,
        id: String::new(),
        offset_bytes,
        size_bytes,
        priority,
        depth: job.submission.iodepth.max(1),
        options,
    })
}

/// Returns true if the job writes, and syncs between its requests.
pub fn syncs(job: &Job) -> bool {
    job.requests.rw.writes() && writes_between_syncs(job).is_some()
}

/// Writes after which a job syncs; `None` if it does not. A client of a server has one command for
/// all kinds of syncs, a flush, because fio's nbd engine sends no durable writes.
fn writes_between_syncs(job: &Job) -> Option<u32> {
    let writes_of_sync = u32::from(job.syncs.sync != WriteSync::None);
    [job.syncs.fsync, job.syncs.fdatasync, writes_of_sync].into_iter().filter(|writes| *writes > 0).min()
}

fn check_options(job: &Job, jobs: &JobFile) -> Result<(), BenchError> {
    let given = |name: &str| job.options.iter().chain(&jobs.global_options).any(|(option, _)| option == name);
    if let Some(option) = REFUSED.iter().find(|option| given(option)) {
        return Err(job_error(job, &format!("`{option}` has no counterpart on a server: remove it")));
    }
    if job.files.nrfiles > 1 || job.files.filename.len() > 1 {
        return Err(job_error(job, "a process with several files cannot be checked: each has one extent"));
    }
    Ok(())
}

fn job_error(job: &Job, text: &str) -> BenchError {
    BenchError::UnsupportedJob(format!("{}:{}: job `{}`: {text}", job.file, job.line, job.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> JobFile {
        hoistway_fio::parse(text, "job.fio", &|_| None, &|_, _| unreachable!("nothing is included"))
            .expect("a job file")
    }

    #[test]
    fn every_clone_has_an_extent_and_keeps_its_options() {
        let jobs = parse("[global]\nbs=4k\nbuffered=1\nsize=128m\nioengine=sync\n[files]\nrw=read\nnumjobs=2\n");
        let rewritten =
            rewrite(&jobs, 10 << 30, Times { ramp_seconds: 2, seconds: 7 }).expect("the jobs can be rewritten");
        let extents: Vec<_> =
            rewritten.processes.iter().map(|one| (one.name.as_str(), one.offset_bytes, one.size_bytes)).collect();
        assert_eq!(extents, [("files-1", 0, 128 << 20), ("files-2", 5 << 30, 128 << 20)]);
        assert_eq!(
            rewritten.processes[1].section("nbd+unix:///process-2?socket=s"),
            "[process-2]\nioengine=nbd\nuri=nbd+unix:///process-2?socket=s\nsize=134217728\nbs=4k\nrw=read\ntime_based\nruntime=7000ms\nramp_time=2s\nstartdelay=20ms\n"
        );
        let without = rewritten.processes[1].section_without_ramp("u");
        assert!(without.starts_with("[process-2]\n") && without.ends_with("startdelay=20ms\n"), "{without}");
        assert!(!without.contains("ramp_time"), "{without}");
        let simulated = parse(&rewritten.simulated);
        assert_eq!(
            (simulated.jobs.len(), simulated.jobs[1].cache.direct, simulated.jobs[1].end.runtime_ns),
            (2, true, Some(7_000_000_000))
        );
    }

    #[test]
    fn job_names_need_not_be_tenant_names() {
        let jobs = parse("[größte Dateien]\nrw=read\nsize=1m\n");
        let rewritten =
            rewrite(&jobs, 1 << 30, Times { ramp_seconds: 2, seconds: 1 }).expect("the jobs can be rewritten");
        let process = &rewritten.processes[0];
        assert_eq!((process.name.as_str(), process.id.as_str()), ("größte Dateien", "process-1"));
        assert!(rewritten.simulated.is_ascii() && process.section("u").is_ascii());
    }

    #[test]
    fn options_without_a_counterpart_are_refused() {
        let jobs = parse("[a]\nrw=read\nsize=1m\ncgroup=x\n");
        let error = rewrite(&jobs, 1 << 30, Times { ramp_seconds: 2, seconds: 1 }).expect_err("control groups");
        assert!(error.to_string().contains("job.fio:1: job `a`: `cgroup`"), "{error}");
    }

    #[test]
    fn every_kind_of_sync_is_a_flush() {
        for (option, fsync) in
            [("fsync=4", 4), ("fdatasync=3", 3), ("sync=dsync", 1), ("sync=sync", 1), ("end_fsync=1", 0)]
        {
            let jobs = parse(&format!("[a]\nrw=randwrite\nsize=1m\n{option}\n"));
            let rewritten =
                rewrite(&jobs, 1 << 30, Times { ramp_seconds: 2, seconds: 1 }).expect("the jobs can be rewritten");
            let simulated = &parse(&rewritten.simulated).jobs[0];
            let syncs = &simulated.syncs;
            assert_eq!((syncs.fsync, syncs.fdatasync, syncs.sync), (fsync, 0, WriteSync::None), "{option}");
            assert!(simulated.submission.ioengine.queues_syncs(), "fio's nbd engine has syncs in flight");
            assert_eq!(rewritten.processes[0].section("u").contains("\nfsync="), fsync > 0, "{option}");
        }
    }

    #[test]
    fn extents_larger_than_the_drive_are_refused() {
        let jobs = parse("[a]\nrw=read\nsize=1g\nnumjobs=4\n");
        assert!(rewrite(&jobs, 2 << 30, Times { ramp_seconds: 2, seconds: 1 }).is_err());
    }
}
