//! Settles what the jobs of a valid file mean for a simulation: engines that stand for others, jobs
//! that are left out, assumed sizes.

use std::{collections::HashMap, ops::RangeInclusive};

use crate::{
    diagnostic::Diagnostic,
    direction::Rw,
    engine::EngineSupport,
    job::{Job, zones::ZoneMode},
    size::Size,
};

/// Size of a named file that no job gives a size, in bytes: fio takes the existing file.
const ASSUMED_BYTES: u64 = 1 << 30;
/// Most generated names of a job that are compared with the names that other jobs give.
const GENERATED_MAX: u32 = 4096;
/// Size of the zones of a zoned device if the job gives none, in bytes: fio asks the device.
const ASSUMED_ZONE_BYTES: u64 = 256 << 20;

/// Settles the jobs and returns the differences to the job file, in whole sentences.
pub(crate) fn settle(jobs: &mut Vec<Job>, faults: &mut Vec<Diagnostic>) -> Vec<String> {
    let mut differences = Vec::new();
    let created = created_files(jobs);
    leave_out(jobs, faults, &mut differences);
    for job in jobs.iter_mut() {
        engine(job, &mut differences);
        zones(job, &mut differences);
        // As in fio, a job without a runtime makes one pass.
        job.end.time_based &= job.end.runtime_ns.is_some();
        // fio removes regular files only.
        if job.files.filename.iter().any(|name| name.starts_with("/dev/")) {
            (job.files.unlink, job.files.unlink_each_loop) = (false, false);
        }
        if job.verification.verify_only {
            job.requests.rw = read_instead(job.requests.rw);
        }
    }
    assume_sizes(jobs, &created, &mut differences);
    differences
}

fn difference(job: &Job, text: &str) -> String {
    format!("{}:{}: job `{}` {text}", job.file, job.line, job.name)
}

/// Returns the sizes of the named files of jobs that only create them (`create_only`).
fn created_files(jobs: &[Job]) -> HashMap<String, RangeInclusive<u64>> {
    let mut created = HashMap::new();
    for job in jobs.iter().filter(|job| job.files.create_only) {
        let of_size = match job.region.size {
            Some(Size::Bytes(bytes)) => Some(bytes / job.files.filename.len().max(1) as u64),
            _ => None,
        };
        let Some(range) = job.region.filesize.clone().or_else(|| of_size.map(|bytes| bytes..=bytes)) else { continue };
        // Generated names are not those of another job.
        for name in if job.files.filename.is_empty() { Vec::new() } else { job.files_of_clone(0) } {
            created.insert(name, range.clone());
        }
    }
    created
}

/// Leaves out the jobs that only create files, and those whose engine moves no data. A stonewall
/// stays where it is.
fn leave_out(jobs: &mut Vec<Job>, faults: &mut Vec<Diagnostic>, differences: &mut Vec<String>) {
    let mut kept: Vec<Job> = Vec::with_capacity(jobs.len());
    let mut gone: Vec<String> = Vec::new();
    let mut stonewall = false;
    for mut job in std::mem::take(jobs) {
        let reason = job.submission.stands_for.and_then(|engine| match engine.support {
            EngineSupport::NoData(why) => Some(format!("engine `{}` {why}", engine.name)),
            _ => None,
        });
        let only_creates = || job.files.create_only.then(|| "`create_only`: it creates its files and ends".to_owned());
        if let Some(reason) = reason.or_else(only_creates) {
            stonewall |= job.start.stonewall;
            differences.push(difference(&job, &format!("is left out: {reason}")));
            gone.push(job.name);
            continue;
        }
        job.start.stonewall |= std::mem::take(&mut stonewall);
        job.start.wait_for = job.start.wait_for.filter(|name| !gone.contains(name));
        kept.push(job);
    }
    if kept.is_empty() {
        let why = differences.drain(..).next().unwrap_or_default();
        // The position is in the text already.
        let (place, message) = why.split_once(": ").map_or(("", why.as_str()), |(place, rest)| (place, rest));
        let (file, line) = place.rsplit_once(':').unwrap_or((place, "0"));
        faults.push(Diagnostic {
            file: file.into(),
            line: line.parse().unwrap_or(0),
            column: 1,
            message: format!("no job moves data: {message}"),
            help: Some("a comparison of schedulers needs a job that reads or writes".into()),
        });
    }
    *jobs = kept;
}

/// Makes the requests of an engine those of the one that stands for it.
fn engine(job: &mut Job, differences: &mut Vec<String>) {
    let Some(engine) = job.submission.stands_for else { return };
    match engine.support {
        EngineSupport::Direct(_, why) => {
            job.cache.direct = true;
            let remote = matches!(engine.name, "nbd" | "rbd" | "libiscsi" | "libblkio");
            if remote || job.files.filename.is_empty() && job.region.size.is_none() && job.region.filesize.is_none() {
                job.files.filename = vec![format!("/dev/{}", engine.name)];
            }
            differences.push(difference(job, &format!(": engine `{}` {why}", engine.name)).replace("` :", "`:"));
        }
        EngineSupport::Like(_, why) => {
            differences.push(difference(job, &format!(": engine `{}` {why}", engine.name)).replace("` :", "`:"));
        }
        EngineSupport::Simulated(_) | EngineSupport::NoData(_) | EngineSupport::Refused(_) => {}
    }
}

fn zones(job: &mut Job, differences: &mut Vec<String>) {
    if job.zones.mode == ZoneMode::Zbd && job.zones.size == 0 {
        job.zones.size = ASSUMED_ZONE_BYTES;
        differences.push(difference(job, "gives no zonesize: fio asks the device, here it is 256 MiB"));
    }
}

/// The reads that verify what a job would write.
fn read_instead(rw: Rw) -> Rw {
    match rw {
        Rw::Write | Rw::Trimwrite => Rw::Read,
        Rw::Randwrite | Rw::Randtrimwrite => Rw::Randread,
        other => other,
    }
}

/// Gives a size to named files of which no job says one.
fn assume_sizes(jobs: &mut [Job], created: &HashMap<String, RangeInclusive<u64>>, differences: &mut Vec<String>) {
    let gives_size =
        |job: &Job| job.region.size.is_some() || job.region.filesize.is_some() || job.hoistway.tree.is_some();
    // Names that are generated in large numbers are not named by another job.
    let is_small = |job: &Job| !job.files.filename.is_empty() || job.files.nrfiles <= GENERATED_MAX;
    let sized: Vec<String> =
        jobs.iter().filter(|job| gives_size(job) && is_small(job)).flat_map(|job| job.files_of_clone(0)).collect();
    let mut named: Vec<String> = Vec::new();
    for job in jobs.iter_mut() {
        if job.files.filename.is_empty() || gives_size(job) {
            continue;
        }
        let files = job.files_of_clone(0);
        if let Some(range) = files.first().and_then(|name| created.get(name)) {
            job.region.filesize = Some(range.clone());
            continue;
        }
        let known = |name: &String| name.starts_with("/dev/") || sized.contains(name);
        let Some(unknown) = files.iter().find(|name| !known(name)) else { continue };
        if !named.contains(unknown) {
            let text = format!("gives `{unknown}` no size: fio takes that of the existing file, here it is 1 GiB");
            differences.push(difference(job, &text));
            named.push(unknown.clone());
        }
        job.region.filesize = Some(ASSUMED_BYTES..=ASSUMED_BYTES);
    }
}
