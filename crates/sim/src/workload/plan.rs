//! Plans the processes and files of a world from the jobs of a job file.

use std::collections::HashMap;
use std::sync::Arc;

use hoistway_core::{Class, Priority, Reservation};
use hoistway_fio::{FileSystemKind, Job, JobFile, Size, TreeSpec, Walk};
use rand::RngExt;

use super::groups::{self, PlannedGroup};
use super::stream;
use crate::error::{SimError, larger_drive};
use crate::host::files::{PlannedFile, is_device};
use crate::host::journal::JournalConfig;
use hoistway_workload::Region;
use hoistway_workload::regions::{self, FileSizes};

/// The maximum number of processes of a job file; more are taken for a mistake.
const PROCESSES_MAX: u64 = 1 << 16;
/// Process id of the first process.
const FIRST_PID: u32 = 1001;

/// The processes, files, trees and groups of a world.
#[derive(Clone, Debug)]
pub(crate) struct WorkloadPlan {
    pub processes: Vec<ProcessPlan>,
    pub files: Vec<PlannedFile>,
    /// Journal of the file system, if a job sets it.
    pub journal: Option<JournalConfig>,
    /// Trees of files that jobs walk through.
    pub trees: Vec<PlannedTree>,
    /// Control groups without the root, parents before their children.
    pub groups: Vec<PlannedGroup>,
}

/// A tree to create. Jobs with equal tree options share one tree.
#[derive(Clone, Debug)]
pub(crate) struct PlannedTree {
    pub spec: TreeSpec,
    /// True if some job reads the single file that goes with the tree.
    pub single: bool,
    /// The job file, and the line of the first job with the tree.
    pub declared_at: (Arc<str>, u32),
}

/// One process: a clone of a job.
#[derive(Clone, Debug)]
pub(crate) struct ProcessPlan {
    /// Index of the job in the job file.
    pub job: usize,
    pub pid: u32,
    pub priority: Priority,
    pub nice: i8,
    /// Index of the control group: 0 is the root, n is entry n - 1 of [`WorkloadPlan::groups`].
    pub group: usize,
    pub reservation: Option<Reservation>,
    /// The files by their index in [`WorkloadPlan::files`], with the region of each that the
    /// process works on.
    pub files: Vec<(u32, Region)>,
    /// Index in [`WorkloadPlan::trees`] of the tree that the process walks through.
    pub tree: Option<usize>,
    /// Bytes of one pass; those of a walk are set when the tree is known.
    pub io_bytes: u64,
    pub delay_ns: u64,
    /// Seed of the process's random numbers, and its number among the processes with that seed.
    pub seed: u64,
    pub number: u64,
    pub start_condition: StartCondition,
}

/// Start conditions of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StartCondition {
    /// All jobs before this one have to end (`stonewall`, of this job or an earlier one).
    pub jobs_before: usize,
    /// This job has to end (`wait_for`).
    pub job: Option<usize>,
}

impl WorkloadPlan {
    /// Plans the processes and files of these jobs on a drive of `capacity_bytes` bytes.
    pub fn new(file: &JobFile, capacity_bytes: u64, seed: u64) -> Result<WorkloadPlan, SimError> {
        if file.jobs.is_empty() {
            return Err(SimError::NoJobs);
        }
        let count: u64 = file.jobs.iter().map(|job| u64::from(job.start.numjobs)).sum();
        if count > PROCESSES_MAX {
            let job = file.jobs.iter().max_by_key(|job| job.start.numjobs).unwrap_or(&file.jobs[0]);
            return Err(fault(
                job,
                format!("the job file makes {count} processes"),
                format!("at most {PROCESSES_MAX}"),
            ));
        }
        let mut planner = Planner {
            files: Vec::new(),
            declared: Vec::new(),
            by_name: HashMap::new(),
            trees: Vec::new(),
            capacity_bytes,
            seed,
        };
        // Files with an explicit size come first: other jobs may refer to them.
        for job in &file.jobs {
            if matches!(job.region.size, Some(Size::Bytes(_))) || job.region.filesize.is_some() {
                planner.files_of(job)?;
            }
        }
        let mut processes = Vec::new();
        let mut wall = 0;
        let (groups, group_of) = groups::plan(file);
        for ((index, job), group) in file.jobs.iter().enumerate().zip(group_of) {
            check(job)?;
            let reservation = groups::reservation(job, smallest(job))?;
            if job.start.stonewall {
                wall = index;
            }
            let waited =
                job.start.wait_for.as_ref().and_then(|name| file.jobs.iter().position(|other| other.name == *name));
            let start_condition = StartCondition { jobs_before: wall, job: waited };
            let mut tree = planner.tree_of(job)?;
            for (clone, files) in (0u32..).zip(planner.files_of(job)?) {
                if clone > 0 && job.hoistway.tree.is_some_and(|spec| spec.own) {
                    tree = planner.tree_of(job)?;
                }
                let process = planner.process(index, job, clone, files, start_condition, processes.len());
                processes.push(ProcessPlan { group, reservation, tree, ..process });
            }
        }
        Ok(WorkloadPlan { processes, journal: journal(file)?, files: planner.files, trees: planner.trees, groups })
    }
}

struct Planner {
    files: Vec<PlannedFile>,
    /// The bytes of each file of which percentages are taken.
    declared: Vec<u64>,
    by_name: HashMap<String, u32>,
    trees: Vec<PlannedTree>,
    capacity_bytes: u64,
    seed: u64,
}

/// The maximum number of files of a job's clones; each takes some hundred bytes of memory.
const MAX_FILES: u64 = 1_000_000;

impl Planner {
    /// The tree of a job that walks through one; a tree of its own is a new one in each call. All
    /// trees are on one file system.
    fn tree_of(&mut self, job: &Job) -> Result<Option<usize>, SimError> {
        let Some(spec) = job.hoistway.tree else { return Ok(None) };
        let single = job.hoistway.walk == Walk::Single;
        if let Some(index) = self.trees.iter().position(|tree| tree.spec == spec).filter(|_| !spec.own) {
            self.trees[index].single |= single;
            return Ok(Some(index));
        }
        let system = |spec: TreeSpec| (spec.kind, spec.rounds, spec.full_percent);
        if let Some(first) = self.trees.first().filter(|first| system(first.spec) != system(spec)) {
            let problem = format!("its tree is on another file system than that of line {}", first.declared_at.1);
            return Err(fault(job, problem, "give all trees the same fs, age and full, or run the jobs apart".into()));
        }
        self.trees.push(PlannedTree { spec, single, declared_at: (job.file.as_str().into(), job.line) });
        Ok(Some(self.trees.len() - 1))
    }

    /// The files and regions of each clone of a job; none for a job that walks through a tree.
    /// Unknown files are added to the plan.
    fn files_of(&mut self, job: &Job) -> Result<Vec<Vec<(u32, Region)>>, SimError> {
        if job.hoistway.tree.is_some() {
            return Ok(vec![Vec::new(); job.start.numjobs as usize]);
        }
        let made_up =
            if job.files.filename.is_empty() { u64::from(job.files.nrfiles) * u64::from(job.start.numjobs) } else { 0 };
        if made_up > MAX_FILES {
            let problem =
                format!("{} files for each of {} clones are {made_up} files", job.files.nrfiles, job.start.numjobs);
            return Err(fault(
                job,
                problem,
                format!("a simulation takes {MAX_FILES}: make nrfiles or numjobs smaller"),
            ));
        }
        let declared_at: (Arc<str>, u32) = (job.file.as_str().into(), job.line);
        let mut clones = Vec::new();
        for clone in 0..job.start.numjobs {
            let names = job.files_of_clone(clone);
            let count = names.len() as u64;
            let mut files = Vec::new();
            for name in names {
                let region = self.region(job, clone, &name, count)?;
                let filesize = job.region.filesize.as_ref().map(|range| self.file_size(range, &name));
                let bytes = region.start.saturating_add(region.len).max(filesize.unwrap_or(0));
                // A region that begins at a percentage of its own size does not move itself.
                let declared = match (job.region.offset, filesize) {
                    (Size::Percent(_), None) => region.len,
                    _ => bytes,
                };
                files.push((self.file(name, bytes, declared, &declared_at), region));
            }
            clones.push(files);
        }
        Ok(clones)
    }

    /// Adds a file of at least this size; a smaller file of the same name grows. Percentages are of
    /// `declared` bytes.
    fn file(&mut self, name: String, bytes: u64, declared: u64, declared_at: &(Arc<str>, u32)) -> u32 {
        if let Some(index) = self.by_name.get(&name).copied() {
            let known = &mut self.declared[index as usize];
            *known = declared.max(*known);
            let file = &mut self.files[index as usize];
            if bytes > file.bytes {
                (file.bytes, file.declared_at) = (bytes, declared_at.clone());
            }
            return index;
        }
        let index = self.files.len() as u32;
        let bytes = if is_device(&name) { self.capacity_bytes } else { bytes };
        self.by_name.insert(name.clone(), index);
        self.files.push(PlannedFile { name, bytes, declared_at: declared_at.clone() });
        self.declared.push(declared);
        index
    }

    fn region(&self, job: &Job, clone: u32, name: &str, files: u64) -> Result<Region, SimError> {
        let known = match is_device(name) {
            true => Some(self.capacity_bytes),
            false => self.by_name.get(name).map(|index| self.declared[*index as usize]),
        };
        let existing = known.or_else(|| job.region.fill_device.then(|| self.free_bytes()));
        let filesize = job.region.filesize.as_ref().map(|range| self.file_size(range, name));
        let Some(region) = regions::region(job, clone, files, FileSizes { existing, filesize }) else {
            let problem = format!("nothing says how large the file `{name}` is");
            return Err(fault(
                job,
                problem,
                "give size=, or filesize=, or name a device as in filename=/dev/sda".into(),
            ));
        };
        if is_device(name) && self.capacity_bytes.saturating_sub(region.start) < region.len.max(1) {
            return Err(self.beyond_device(job, clone, name, region, files));
        }
        if region.len < smallest(job) {
            let (len, block) = (region.len, smallest(job));
            let problem = match filesize.or(existing) {
                Some(end) if region.start > 0 => {
                    format!("behind offset {} the {end} bytes of `{name}` hold no block of {block} bytes", region.start)
                }
                _ => format!("the {len} bytes of `{name}` are less than one block of {block} bytes"),
            };
            return Err(fault(job, problem, "make size larger or bs smaller".into()));
        }
        Ok(region)
    }

    /// The error for a region that reaches beyond the end of a device.
    fn beyond_device(&self, job: &Job, clone: u32, name: &str, region: Region, files: u64) -> SimError {
        // The last clone reaches farthest.
        let sizes = FileSizes { existing: Some(self.capacity_bytes), filesize: None };
        let last = regions::region(job, job.start.numjobs.saturating_sub(1), files, sizes).map_or(0, |last| last.start);
        let needed = last.saturating_add(region.len.max(smallest(job)));
        let problem = match region.len {
            0 => format!("offset {} is behind the end of {name}", region.start),
            len => format!("{len} bytes from offset {} reach beyond the end of {name}", region.start),
        };
        let (clone, capacity) = (clone + 1, self.capacity_bytes);
        let of_clone =
            if job.start.numjobs > 1 { format!(" (clone {clone} of {})", job.start.numjobs) } else { String::new() };
        let remedy = format!("the drive has {capacity} bytes: take a larger drive{}", larger_drive(needed));
        fault(job, problem + &of_clone, remedy)
    }

    /// Bytes that a file can have that fills the drive, beside the files that are known: a
    /// twentieth is the file system's.
    fn free_bytes(&self) -> u64 {
        let used: u64 = self.files.iter().filter(|file| !is_device(&file.name)).map(|file| file.bytes).sum();
        (self.capacity_bytes / 20 * 19).saturating_sub(used)
    }

    /// Draws a size from the range; a file name always gets the same size.
    fn file_size(&self, range: &std::ops::RangeInclusive<u64>, name: &str) -> u64 {
        let key = name.bytes().fold(0u64, |key, byte| super::mix(key ^ u64::from(byte)));
        let (low, high) = (*range.start(), *range.end());
        stream(self.seed, key, 4).random_range(low..=high.max(low))
    }

    fn process(
        &self,
        index: usize,
        job: &Job,
        clone: u32,
        files: Vec<(u32, Region)>,
        start_condition: StartCondition,
        before: usize,
    ) -> ProcessPlan {
        let parts: Vec<Region> = files.iter().map(|(_, region)| *region).collect();
        let io_bytes = regions::pass_bytes(job, &parts);
        let (seed, number) = match job.requests.randseed {
            Some(randseed) => (randseed, u64::from(clone)),
            None => (self.seed, before as u64),
        };
        let (low, high) = (*job.start.startdelay_ns.start(), *job.start.startdelay_ns.end());
        let delay_ns = stream(seed, number, 5).random_range(low..=high.max(low));
        ProcessPlan {
            job: index,
            pid: FIRST_PID + before as u32,
            priority: priority(job),
            nice: job.priority.nice.unwrap_or(0),
            group: 0,
            reservation: None,
            files,
            tree: None,
            io_bytes,
            delay_ns,
            seed,
            number,
            start_condition,
        }
    }
}

/// The journal of the file system that all files are on.
fn journal(file: &JobFile) -> Result<Option<JournalConfig>, SimError> {
    let mut said = file.jobs.iter().filter_map(|job| job.hoistway.journal.map(|kind| (job, kind)));
    let Some((first, kind)) = said.next() else { return Ok(None) };
    if let Some((other, _)) = said.find(|(_, other)| *other != kind) {
        let problem = format!("its journal is not that of job `{}` of line {}", first.name, first.line);
        return Err(fault(
            other,
            problem,
            "give all jobs the same hoistway_journal: their files are on one file system".into(),
        ));
    }
    Ok(Some(match kind {
        FileSystemKind::Ext2 | FileSystemKind::Ext3 => JournalConfig::ext3(),
        FileSystemKind::Ext4 => JournalConfig::ext4(),
    }))
}

/// The I/O priority of a job: fio's `prio` alone means the best-effort class, `prioclass` alone
/// means level 0.
fn priority(job: &Job) -> Priority {
    let class = match (job.priority.prioclass, job.priority.prio) {
        (None, None) => return Priority::UNSET,
        (Some(1), _) => Class::RealTime,
        (Some(3), _) => Class::Idle,
        _ => Class::BestEffort,
    };
    Priority::new(class, job.priority.prio.unwrap_or(0)).unwrap_or(Priority::UNSET)
}

/// The smallest block of the directions that the job uses, in bytes.
fn smallest(job: &Job) -> u64 {
    job.directions().map(|direction| job.min_bs(direction)).min().unwrap_or(1).max(1)
}

/// Checks that direct I/O uses whole sectors.
fn check(job: &Job) -> Result<(), SimError> {
    if !job.cache.direct {
        return Ok(());
    }
    let aligned = |bytes: u64| bytes.is_multiple_of(512);
    let offset_is_aligned = match job.region.offset {
        Size::Bytes(bytes) => aligned(bytes),
        Size::Percent(_) => job.region.offset_align == 0 || aligned(job.region.offset_align),
    };
    let smallest = smallest(job);
    let sizes =
        [&job.blocks.bs.read, &job.blocks.bs.write, &job.blocks.bs.trim].into_iter().flat_map(|size| match size {
            hoistway_fio::BlockSize::Split(entries) => entries.iter().map(|entry| entry.bytes).collect(),
            size => vec![size.min(), size.max()],
        });
    let odd = sizes.chain([smallest]).find(|bytes| !aligned(*bytes));
    match (odd, offset_is_aligned) {
        (Some(bytes), _) => {
            let problem = format!("direct=1 with a block of {bytes} bytes");
            Err(fault(job, problem, "direct I/O takes multiples of 512 bytes".into()))
        }
        (None, false) => {
            let problem = format!("direct=1 with an offset of {}", job.region.offset);
            Err(fault(job, problem, "direct I/O takes multiples of 512 bytes".into()))
        }
        _ => Ok(()),
    }
}

fn fault(job: &Job, problem: String, remedy: String) -> SimError {
    SimError::Job { file: job.file.clone(), line: job.line, job: job.name.clone(), problem, remedy }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(text: &str) -> Result<WorkloadPlan, SimError> {
        let file = hoistway_fio::parse(text, "test.fio", &|_| None, &|_, _| unreachable!()).expect("a valid job file");
        WorkloadPlan::new(&file, 1 << 30, 1)
    }

    #[test]
    fn every_clone_has_a_file_of_its_own_and_the_size_is_divided_among_files() {
        let plan = plan("[a]\nsize=64m\nnumjobs=2\nnrfiles=4\n").unwrap();
        let names: Vec<&str> = plan.files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(names.len(), 8);
        assert_eq!(names[4], "a.1.0");
        assert!(plan.files.iter().all(|file| file.bytes == 16 << 20));
        assert_eq!((plan.processes[1].pid, plan.processes[1].io_bytes), (1002, 64 << 20));
    }

    #[test]
    fn offsets_move_the_region_and_lengthen_the_file() {
        let text = "[a]\nfilename=x\nsize=1m\noffset=1m\noffset_increment=2m\nnumjobs=2\n";
        let plan = plan(text).unwrap();
        assert_eq!(plan.processes[1].files, [(0, Region { start: 3 << 20, len: 1 << 20 })]);
        assert_eq!(plan.files[0].bytes, 4 << 20);
    }

    #[test]
    fn a_device_needs_no_size() {
        let device = plan("[a]\nfilename=/dev/sda\noffset=50%\n").unwrap();
        assert_eq!(device.processes[0].files[0].1, Region { start: 1 << 29, len: 1 << 29 });
    }

    #[test]
    fn impossible_jobs_are_errors_with_the_value() {
        let beyond = plan("[a]\nfilename=/dev/sda\nsize=2g\n").unwrap_err().to_string();
        assert!(beyond.contains("2147483648 bytes from offset 0") && beyond.contains("1073741824"), "{beyond}");
        let behind = plan("[a]\nfilename=/dev/sda\noffset_increment=124g\nnumjobs=30\n").unwrap_err().to_string();
        assert!(behind.contains("offset 133143986176 is behind the end of /dev/sda"), "{behind}");
        // The last clone begins at 29 * 124 GiB.
        assert!(behind.contains("take a larger drive, as in --drive cmr-4tb"), "{behind}");
        let many = plan("[a]\nsize=100m\nnrfiles=400000000\n").unwrap_err().to_string();
        assert!(many.contains("400000000 files") && many.contains("1000000"), "{many}");
        let small = plan("[a]\nsize=8k\nnrfiles=4\nbs=4k\n").unwrap_err().to_string();
        assert!(small.contains("the 2048 bytes of `a.0.0` are less than one block of 4096"), "{small}");
        let many = plan("[a]\nsize=8k\nnumjobs=100000\n").unwrap_err().to_string();
        assert!(many.contains("100000 processes; at most 65536"), "{many}");
    }

    #[test]
    fn jobs_below_a_stonewall_wait_for_all_above_it() {
        let plan = plan("[global]\nsize=1m\n[a]\n[b]\nstonewall\n[c]\n[d]\nwait_for=a\n").unwrap();
        let gates: Vec<StartCondition> = plan.processes.iter().map(|process| process.start_condition).collect();
        assert_eq!(gates[0], StartCondition::default());
        assert_eq!(gates[2], StartCondition { jobs_before: 1, job: None });
        assert_eq!(gates[3], StartCondition { jobs_before: 1, job: Some(0) });
    }

    #[test]
    fn priorities_are_fio_s() {
        let plan = plan("[global]\nsize=1m\n[a]\nprio=2\n[b]\nprioclass=1\nprio=3\n[c]\n[d]\nnice=-7\n").unwrap();
        let of = |index: usize| (plan.processes[index].priority.class(), plan.processes[index].priority.level());
        assert_eq!((of(0), of(1)), ((Class::BestEffort, 2), (Class::RealTime, 3)));
        assert_eq!((plan.processes[2].priority, plan.processes[3].nice), (Priority::UNSET, -7));
    }
}
