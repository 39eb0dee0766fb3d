//! A job: its options, each in the file of its subject, with its default, its description, and how
//! it is set.

pub(crate) mod block_size;
pub(crate) mod distribution;
pub(crate) mod extensions;
pub(crate) mod files;
pub(crate) mod option;
pub(crate) mod pacing;
pub(crate) mod priorities;
pub(crate) mod reporting;
pub(crate) mod requests;
pub(crate) mod start_and_end;
pub(crate) mod submission;
pub(crate) mod verification;
pub(crate) mod zones;

pub use extensions::Extensions;
pub use files::{Amount, Files, Region};
pub use pacing::{BlocksType, Flow, LatencyTarget, Pauses, Rates};
pub use priorities::{CgroupPath, Priorities};
pub use reporting::{Log, Reporting};
pub use requests::{BlockSizes, Requests};
pub use start_and_end::{End, Start};
pub use submission::{Batching, PageCache, Submission, SubmitMode, Syncs};
pub use verification::Verification;
pub use zones::Zones;

use crate::{direction::Direction, units::KbBase, values::SizeUnits};
use distribution::Distribution;
use zones::ZoneMode;

/// A job, with its defaults and the `[global]` sections above it applied.
///
/// Fields of the groups have fio's names and fio's defaults. A unit is the last part of a name;
/// sizes are in bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Job {
    /// Name of the section, or the value of `name=`.
    pub name: String,
    /// Index of the reporting group, from 0: `stonewall` and `new_group` start a new one.
    pub groupid: u32,
    /// Directions and order of requests.
    pub requests: Requests,
    /// Sizes of requests.
    pub blocks: BlockSizes,
    /// The part of the files that the job works on.
    pub region: Region,
    /// The bytes and requests of the job.
    pub amount: Amount,
    /// The files or devices.
    pub files: Files,
    /// The zones that requests are restricted to.
    pub zones: Zones,
    /// How requests are submitted.
    pub submission: Submission,
    /// How requests use the page cache.
    pub cache: PageCache,
    /// When written data are on the medium.
    pub syncs: Syncs,
    /// The pauses between requests.
    pub pauses: Pauses,
    /// Limits of the rates of requests.
    pub rates: Rates,
    /// The share among the jobs with the same number.
    pub flow: Flow,
    /// The search for a queue depth.
    pub latency_target: LatencyTarget,
    /// When the job and its clones start.
    pub start: Start,
    /// When the job ends, and which others end with it.
    pub end: End,
    /// The priorities of the job and of its requests.
    pub priority: Priorities,
    /// The control group.
    pub cgroup: CgroupPath,
    /// The verification of written blocks.
    pub verification: Verification,
    /// How the job is reported.
    pub reporting: Reporting,
    /// The bandwidth log.
    pub log: Log,
    /// hoistway's own options.
    pub hoistway: Extensions,
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

impl Job {
    /// The units of sizes in the values of options.
    pub(crate) fn size_units(&self) -> SizeUnits {
        let is_zoned = self.zones.mode == ZoneMode::Zbd;
        SizeUnits { base: self.kb_base, is_zoned, zone_bytes: self.zones.size }
    }

    /// Returns true if random requests keep a map of touched blocks, so that a pass touches none
    /// twice: offsets are drawn evenly, without `norandommap`, and at multiples of the block.
    pub fn touches_blocks_once(&self) -> bool {
        !self.requests.norandommap
            && self.requests.random_distribution == Distribution::Random
            && !self.has_other_alignment()
    }

    /// Returns true if random offsets are aligned to something else than the block size.
    pub fn has_other_alignment(&self) -> bool {
        self.directions().any(|direction| ![0, self.min_bs(direction)].contains(self.blocks.blockalign.get(direction)))
    }

    /// The files of one clone of the job, with their directories; `clone` counts from 0.
    ///
    /// All clones share `filename`, which is taken literally. Generated names follow
    /// `filename_format`, by default `$jobname.$jobnum.$filenum`, as in the manual of fio.
    pub fn files_of_clone(&self, clone: u32) -> Vec<String> {
        if !self.files.filename.is_empty() {
            let directory = self.files.directory.first();
            return self.files.filename.iter().map(|name| in_directory(directory, name)).collect();
        }
        let directory = self.files.directory.get(clone as usize % self.files.directory.len().max(1));
        let name = |file: u32| {
            self.files
                .filename_format
                .replace("$jobname", &self.name)
                .replace("$jobnum", &clone.to_string())
                .replace("$filenum", &file.to_string())
        };
        (0..self.files.nrfiles).map(|file| in_directory(directory, &name(file))).collect()
    }

    /// The directions of the job's requests.
    pub fn directions(&self) -> impl Iterator<Item = Direction> + use<> {
        let rw = self.requests.rw;
        Direction::ALL.into_iter().filter(move |direction| rw.uses(*direction))
    }

    /// The smallest request of a direction, in bytes.
    pub fn min_bs(&self, direction: Direction) -> u64 {
        match self.blocks.bs_is_seq_rand {
            true => self.blocks.bs.read.min().min(self.blocks.bs.write.min()),
            false => self.blocks.bs.get(direction).min(),
        }
    }
}

fn in_directory(directory: Option<&String>, name: &str) -> String {
    match directory {
        Some(directory) => format!("{}/{name}", directory.trim_end_matches('/')),
        None => name.into(),
    }
}
