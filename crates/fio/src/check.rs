//! Checks of a whole job, and of jobs against each other.

use std::collections::HashMap;

use crate::{
    diagnostic::Diagnostic,
    direction::{Direction, Rw},
    engine::{EngineSupport, Ioengine},
    job::{Job, block_size::BlockSize, zones::ZoneMode},
    size::Size,
    source::{Entry, Position, Section},
    unmodelled::UNMODELLED,
    values::Value,
};

/// Size of a sector: the unit of direct I/O in Linux.
const SECTOR_BYTES: u64 = 512;

/// Checks one job; `entries` are all options that apply to it, the defaults first.
pub(crate) fn job(job: &Job, section: &Section, entries: &[&Entry], faults: &mut Vec<Diagnostic>) {
    let check = Check { job, section, entries };
    faults.extend(
        [
            check.nrfiles(),
            check.size(),
            check.thinktime_spin(),
            check.rates(),
            check.cgroup(),
            check.tree(),
            check.zones(),
            check.command_priority(),
            check.latency_target(),
            check.trimmed_sizes(),
        ]
        .into_iter()
        .flatten(),
    );
    faults.extend(check.unmodelled());
    for direction in job.directions() {
        faults.extend([check.sectors(direction), check.fits(direction)].into_iter().flatten());
    }
}

/// Checks references between jobs and assigns the reporting groups.
///
/// The rule for groups was observed by running fio 3.33: `stonewall` and `new_group` start one, but
/// not on the first job.
pub(crate) fn between_jobs(jobs: &mut [Job], sections: &[Section], faults: &mut Vec<Diagnostic>) {
    let mut group = 0;
    for (i, job) in jobs.iter_mut().enumerate() {
        if i > 0 && (job.start.stonewall || job.reporting.new_group) {
            group += 1;
        }
        job.groupid = group;
    }
    let mut named: HashMap<&str, usize> = HashMap::new();
    // The sections of jobs are in the order of the jobs.
    for (job, section) in jobs.iter().zip(sections.iter().filter(|section| !section.is_global())) {
        if let Some(waitee) = &job.start.wait_for {
            let position =
                last(&section.entries.iter().collect::<Vec<_>>(), &["wait_for"]).unwrap_or(&section.position);
            let fault = match named.get(waitee.as_str()).copied().unwrap_or(0) {
                1 => None,
                0 => Some((format!("no job `{waitee}` stands above"), "wait_for names a job that stands above")),
                n => Some((
                    format!("{n} jobs above are called `{waitee}`"),
                    "give the job that is waited for a name of its own",
                )),
            };
            faults
                .extend(fault.map(|(message, help)| position.fault(format!("wait_for: {message}"), Some(help.into()))));
        }
        *named.entry(&job.name).or_default() += 1;
    }
    cgroup_weights(jobs, sections, faults);
}

/// Checks that all jobs give a control group the same weight.
fn cgroup_weights(jobs: &[Job], sections: &[Section], faults: &mut Vec<Diagnostic>) {
    let mut weighed: HashMap<&str, (u32, &Job)> = HashMap::new();
    for (job, section) in jobs.iter().zip(sections.iter().filter(|section| !section.is_global())) {
        for (path, weight) in job.cgroup.way() {
            let Some(weight) = weight else { continue };
            let (first, giver) = *weighed.entry(path).or_insert((weight, job));
            if first == weight {
                continue;
            }
            let own: Vec<&Entry> = section.entries.iter().collect();
            let position = last(&own, &["cgroup_weight", "cgroup"]).unwrap_or(&section.position);
            let message = format!(
                "cgroup_weight: group `{path}` weighs {weight} in job `{}` and {first} in job `{}`, line {} of {}",
                job.name, giver.name, giver.line, giver.file
            );
            let help = "give it one weight; a job without cgroup_weight takes what others give its group";
            faults.push(position.fault(message, Some(help.into())));
        }
    }
}

struct Check<'a> {
    job: &'a Job,
    section: &'a Section,
    entries: &'a [&'a Entry],
}

impl Check<'_> {
    /// The position of the last of these options, or of the section.
    fn position(&self, names: &[&str]) -> &Position {
        last(self.entries, names).unwrap_or(&self.section.position)
    }

    fn has(&self, name: &str) -> bool {
        last(self.entries, &[name]).is_some()
    }

    fn size(&self) -> Option<Diagnostic> {
        let job = self.job;
        // An invalid option has its own diagnostic; the option is not missing.
        let is_zero = |entry: &&&Entry| canonical(entry) == Some("size") && entry.value.as_deref() == Some("0");
        let has_size = self.has("size") && self.entries.iter().rev().find(is_zero).is_none();
        if self.has("hoistway_tree") || self.has("filesize") || has_size {
            return None;
        }
        // A named file may be given its size by another job; a remote disk has one.
        let is_remote =
            job.submission.stands_for.is_some_and(|engine| !matches!(engine.support, EngineSupport::Like(..)));
        if is_remote || job.region.fill_device || self.has("filename") {
            return None;
        }
        let message = format!("job `{}` has no size", self.job.name);
        let help = "give size= or filesize=, or filename= to use a whole device or an existing file";
        Some(self.section.position.fault(message, Some(help.into())))
    }

    fn thinktime_spin(&self) -> Option<Diagnostic> {
        let job = self.job;
        (job.pauses.thinktime_spin_ns > job.pauses.thinktime_ns && !self.failed_thinktime()).then(|| {
            let message = format!("job `{}` spins for longer than its thinktime", job.name);
            self.position(&["thinktime_spin"]).fault(message, Some("thinktime_spin is a part of thinktime".into()))
        })
    }

    /// Returns true if a thinktime was given and is invalid.
    fn failed_thinktime(&self) -> bool {
        self.has("thinktime") && self.job.pauses.thinktime_ns == 0
    }

    fn rates(&self) -> Option<Diagnostic> {
        let job = self.job;
        let both = Direction::ALL
            .into_iter()
            .any(|direction| job.rates.rate.get(direction).is_some() && job.rates.rate_iops.get(direction).is_some());
        both.then(|| {
            let message = format!("job `{}` has both rate and rate_iops for one direction", job.name);
            self.position(&["rate", "rate_iops"]).fault(message, Some("keep one of the two".into()))
        })
    }

    /// Checks that weights belong to the groups of `cgroup`: one for the last group, or one for
    /// each. A weight of a global section does not count for a job without a group.
    fn cgroup(&self) -> Option<Diagnostic> {
        let job = self.job;
        let weights = job.cgroup.weights.len();
        let own: Vec<&Entry> = self.section.entries.iter().collect();
        let (message, help) = match &job.cgroup.path {
            // An invalid group has its own diagnostic.
            None if weights == 0 || self.has("cgroup") || last(&own, &["cgroup_weight"]).is_none() => return None,
            None => ("there is no group to weigh".to_owned(), "give cgroup= too, or leave the weight out".to_owned()),
            Some(_) if weights <= 1 => return None,
            Some(path) => {
                let names = path.split('/').count();
                if names == weights {
                    return None;
                }
                let message = format!("{weights} weights for the {names} groups of `{path}`");
                (message, "one weight is the last group's; or give one for each, as in 300/100".to_owned())
            }
        };
        let position = self.position(&["cgroup_weight"]);
        Some(position.fault(format!("cgroup_weight: {message}"), Some(help)))
    }

    /// Checks that a walk through a tree uses buffered reads without other options on offsets.
    fn tree(&self) -> Option<Diagnostic> {
        let job = self.job;
        let own: Vec<&Entry> = self.section.entries.iter().collect();
        if job.hoistway.tree.is_none() {
            // An order in a global section does not count for a job without a tree.
            let position = last(&own, &["hoistway_walk"]).filter(|_| !self.has("hoistway_tree"))?;
            let message = format!("hoistway_walk: job `{}` has no tree to walk through", job.name);
            return Some(position.fault(message, Some("give hoistway_tree= too, as in hoistway_tree=linux".into())));
        }
        let wrong = match job.blocks.bs.read {
            _ if job.requests.rw != Rw::Read => format!("rw is {}", job.requests.rw),
            _ if job.cache.direct => "direct is 1".to_owned(),
            BlockSize::Fixed(_) => return None,
            _ => "bs is not one size".to_owned(),
        };
        let message = format!("hoistway_tree: job `{}` walks through a tree, and {wrong}", job.name);
        let help = "files of a tree are read through the page cache with one block size: rw=read, direct=0, bs=10k";
        Some(self.position(&["rw", "direct", "buffered", "bs", "bsrange", "bssplit"]).fault(message, Some(help.into())))
    }

    /// Checks that zones have a kind and a size.
    fn zones(&self) -> Option<Diagnostic> {
        let zones = &self.job.zones;
        let (option, message, help) = match zones.mode {
            ZoneMode::None if zones.size > 0 => {
                ("zonesize", "zones without a kind".to_owned(), "give zonemode=strided or zonemode=zbd too")
            }
            ZoneMode::Strided if zones.size == 0 => {
                ("zonemode", "zones without a size".to_owned(), "give zonesize= too, as in zonesize=256m")
            }
            ZoneMode::Zbd if zones.range > 0 && zones.range != zones.size => {
                let message = format!("zonerange={} differs from zonesize={}", zones.range, zones.size);
                ("zonerange", message, "zones of a zoned device have one size: leave zonerange out")
            }
            _ => return None,
        };
        Some(self.position(&[option]).fault(format!("{option}: {message}"), Some(help.into())))
    }

    /// Checks that the engine has priorities of single requests, and that they are given once.
    fn command_priority(&self) -> Option<Diagnostic> {
        let (read, write) = (&self.job.priority.cmdprio.read, &self.job.priority.cmdprio.write);
        let used = !read.all().is_empty() || !write.all().is_empty();
        let both = [read, write].into_iter().any(|own| own.percent > 0 && !own.by_size.is_empty());
        let engine = self.job.submission.ioengine;
        let (message, help) = match () {
            () if both => ("percentage and bssplit exclude one another".to_owned(), "keep one of the two"),
            () if used && !matches!(engine, Ioengine::Libaio | Ioengine::IoUring) => {
                let message = format!("engine {engine} has no priorities of single requests");
                (message, "use ioengine=libaio or io_uring, or prio= and prioclass= for all requests")
            }
            () => return None,
        };
        let position = self.position(&["cmdprio_percentage", "cmdprio_bssplit"]);
        Some(position.fault(format!("cmdprio: {message}"), Some(help.into())))
    }

    /// Checks that each block is written as it was trimmed. fio 3.33 trims other blocks than it
    /// writes if the sizes differ, and most of them never.
    fn trimmed_sizes(&self) -> Option<Diagnostic> {
        let (rw, bs) = (self.job.requests.rw, &self.job.blocks.bs);
        let is_one = matches!(bs.trim, BlockSize::Fixed(_)) && bs.trim == bs.write;
        (rw.trims_before_writes() && !is_one).then(|| {
            let message = format!("rw={rw} with trims of {} and writes of {} is not simulated", bs.trim, bs.write);
            let help = "give both one size, as in bs=64k".to_owned();
            self.position(&["bs", "bsrange", "bssplit"]).fault(message, Some(help))
        })
    }

    /// Checks that the requests of the job follow rules that are known.
    fn unmodelled(&self) -> Option<Diagnostic> {
        let kind = UNMODELLED.iter().find(|kind| (kind.has)(self.job))?;
        let message = format!("job `{}` is not simulated: {}", self.job.name, kind.jobs.replace('`', ""));
        Some(self.position(kind.options).fault(message, Some(kind.help.into())))
    }

    /// Checks that there are files. fio 3.33 moves no bytes with `nrfiles=0`, unless files are
    /// named.
    fn nrfiles(&self) -> Option<Diagnostic> {
        let entry = self.entries.iter().rev().find(|entry| canonical(entry) == Some("nrfiles"))?;
        let count = Value { text: entry.value.as_deref()?, units: self.job.size_units() }.count_u32(0).ok()?;
        (count == 0 && self.job.files.filename.is_empty()).then(|| {
            let message = "nrfiles: a job without files makes no requests".to_owned();
            entry.value_position.fault(message, Some("use 1 or more, or leave the job out".to_owned()))
        })
    }

    /// Checks that a search for a queue depth has a time for each depth.
    fn latency_target(&self) -> Option<Diagnostic> {
        let target = self.job.latency_target;
        (target.target_ns > 0 && target.window_ns == 0).then(|| {
            let message = "latency_target: there is no time for which a depth is tried".to_owned();
            let help = "give latency_window= too, as in latency_window=5s";
            self.position(&["latency_target"]).fault(message, Some(help.into()))
        })
    }

    /// Checks that direct requests are whole sectors.
    fn sectors(&self, direction: Direction) -> Option<Diagnostic> {
        let job = self.job;
        let odd = |bytes: u64| !bytes.is_multiple_of(SECTOR_BYTES);
        let wrong = match job.blocks.bs.get(direction) {
            BlockSize::Fixed(bytes) => Some(*bytes).filter(|bytes| odd(*bytes)),
            // Requests of a range are multiples of its smallest size.
            BlockSize::Range { min, .. } if job.blocks.bs_unaligned => Some(*min | 1),
            BlockSize::Range { min, .. } => Some(*min).filter(|bytes| odd(*bytes)),
            BlockSize::Split(entries) => entries.iter().map(|entry| entry.bytes).find(|bytes| odd(*bytes)),
        };
        let align = Some(*job.blocks.blockalign.get(direction)).filter(|bytes| odd(*bytes));
        wrong.or(align).filter(|_| job.cache.direct).map(|bytes| {
            let message = format!("job `{}`: direct requests of {bytes} bytes are not whole sectors", job.name);
            let help = format!("use a multiple of {SECTOR_BYTES}, or buffered requests (direct=0)");
            self.position(&["bs", "bsrange", "bssplit"]).fault(message, Some(help))
        })
    }

    /// Checks that a region or a file holds at least one request.
    fn fits(&self, direction: Direction) -> Option<Diagnostic> {
        let job = self.job;
        let min = job.min_bs(direction);
        let kind = if matches!(job.requests.rw, Rw::Readwrite | Rw::Randrw) { "smallest request" } else { "request" };
        let (what, bytes) = match (job.region.size, &job.region.filesize) {
            (Some(Size::Bytes(size)), _) if size < min => ("size", size),
            (_, Some(filesize)) if *filesize.end() < min => ("filesize", *filesize.end()),
            _ => return None,
        };
        let message = format!("job `{}`: its {what} of {bytes} bytes holds not one {kind} of {min}", job.name);
        Some(self.position(&[what]).fault(message, Some("give a larger size or smaller requests".into())))
    }
}

fn canonical(entry: &Entry) -> Option<&'static str> {
    entry.known.map(|known| known.name)
}

/// The position of the last of these options (canonical names).
fn last<'a>(entries: &[&'a Entry], names: &[&str]) -> Option<&'a Position> {
    entries
        .iter()
        .rev()
        .find(|entry| canonical(entry).is_some_and(|name| names.contains(&name)))
        .map(|e| &e.value_position)
}
