//! Jobs that are refused because it is not known by which rules fio 3.33 chooses their requests:
//! generated jobs of these kinds differ from fio's (`cargo xtask fio-diff`).

use crate::direction::{Direction, Rw};
use crate::job::{Job, distribution::Distribution, files::FileService, zones::ZoneMode};
use crate::size::Size;

/// A kind of jobs that are refused.
#[derive(Clone, Copy, Debug)]
pub struct Unmodelled {
    /// The jobs, as Markdown.
    pub jobs: &'static str,
    /// The options to look at, by canonical names: the fault is at the last of them.
    pub(crate) options: &'static [&'static str],
    /// What would be simulated.
    pub(crate) help: &'static str,
    pub(crate) has: fn(&Job) -> bool,
}

/// All kinds.
pub const UNMODELLED: &[Unmodelled] = &[
    Unmodelled {
        jobs: "`rw=randtrimwrite` with `offset` or `offset_increment`",
        options: &["offset", "offset_increment"],
        help: "trim and write from the start of the file",
        has: |job| {
            job.requests.rw == Rw::Randtrimwrite
                && (has_bytes(job.region.offset) || has_bytes(job.region.offset_increment))
        },
    },
    Unmodelled {
        jobs: "`rw=trimwrite` and `rw=randtrimwrite` on several files whose size is not a multiple of the block, or with a random `file_service_type`, `random_distribution`, `norandommap` or `blockalign`",
        options: &["nrfiles", "filename", "file_service_type", "random_distribution", "norandommap", "ba"],
        help: "give the job one file, or files of whole blocks that take turns",
        has: |job| {
            let is_even = file_bytes(job).is_some_and(|bytes| bytes.is_multiple_of(job.min_bs(Direction::Trim).max(1)));
            job.requests.rw.trims_before_writes()
                && job.files.count() > 1
                && (!is_even || draws_files(job) || !job.touches_blocks_once())
        },
    },
    Unmodelled {
        jobs: "`openfiles` below the number of files, with random offsets, `fsync` or `fdatasync`",
        options: &["openfiles"],
        help: "leave openfiles out, or read and write one offset after the other without syncs",
        has: |job| {
            let is_limited = job.files.openfiles > 0 && u64::from(job.files.openfiles) < job.files.count();
            is_limited && (job.requests.rw.is_random() || job.syncs.are_between_requests())
        },
    },
    Unmodelled {
        jobs: "`zonemode=strided` with random offsets of a `random_distribution`",
        options: &["random_distribution"],
        help: "leave random_distribution out",
        has: |job| {
            is_strided(job) && job.requests.rw.is_random() && job.requests.random_distribution != Distribution::Random
        },
    },
    Unmodelled {
        jobs: "`zonemode=strided` with files whose size is not a multiple of the zones with their gaps",
        options: &["zonesize", "zonerange", "zoneskip", "size", "filesize"],
        help: "give files of whole zones, each with the gap of zoneskip behind it",
        has: |job| {
            is_strided(job) && file_bytes(job).is_some_and(|bytes| !bytes.is_multiple_of(job.zones.stride().max(1)))
        },
    },
    Unmodelled {
        jobs: "`random_distribution=zoned_abs` with zones behind the end of a file",
        options: &["random_distribution"],
        help: "give zones that end with the file, or a larger file",
        has: |job| match &job.requests.random_distribution {
            Distribution::ZonedBytes(zones) => {
                let end = zones.iter().fold(0u64, |end, zone| end.saturating_add(zone.bytes));
                file_bytes(job).is_some_and(|bytes| bytes < end)
            }
            _ => false,
        },
    },
    Unmodelled {
        jobs: "`random_distribution=zoned` and `zoned_abs` with files whose size is not a multiple of the block",
        options: &["random_distribution"],
        help: "give files of whole blocks",
        has: |job| {
            let is_uneven = |bytes: u64| job.directions().any(|way| !bytes.is_multiple_of(job.min_bs(way).max(1)));
            let is_zoned =
                matches!(job.requests.random_distribution, Distribution::Zoned(_) | Distribution::ZonedBytes(_));
            is_zoned && job.requests.rw.is_random() && file_bytes(job).is_some_and(is_uneven)
        },
    },
];

fn has_bytes(size: Size) -> bool {
    size != Size::Bytes(0)
}

/// The bytes of each file; `None` if they are not given, or drawn.
fn file_bytes(job: &Job) -> Option<u64> {
    match (&job.region.filesize, job.region.size) {
        (Some(range), _) => (range.start() == range.end()).then_some(*range.end()),
        (None, Some(Size::Bytes(bytes))) => Some(bytes / job.files.count().max(1)),
        _ => None,
    }
}

fn draws_files(job: &Job) -> bool {
    matches!(job.files.file_service, FileService::Random(_) | FileService::Drawn(_))
}

fn is_strided(job: &Job) -> bool {
    job.zones.mode == ZoneMode::Strided
}
