//! The kinds of jobs that are known to differ, by their options.

use crate::case::Case;

/// A kind of jobs that differ from fio's.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// What differs, as a part of a sentence in Markdown.
    pub text: &'static str,
    is: fn(&Case) -> bool,
}

/// All kinds.
pub const KINDS: &[Kind] = &[
    Kind {
        text: "`trimwrite` and `randtrimwrite` with several files, `blockalign`, `loops` or a distribution",
        is: |case| {
            let has_more = ["nrfiles", "ba", "loops", "random_distribution"].iter().any(|one| case.get(one).is_some());
            case.is_of("trimwrite") && (has_more || files(case) > 1)
        },
    },
    Kind {
        text: "the turns of files that are read or written at random offsets with `openfiles`",
        is: |case| case.is_of("rand") && case.get("openfiles").is_some(),
    },
    Kind {
        text: "the bytes of random requests whose sizes are no multiples of the smallest (`bsrange=2k-3k`)",
        is: |case| {
            let is_once = case.get("norandommap").is_none() && case.get("random_distribution").is_none();
            case.is_of("rand") && case.get("bsrange") == Some("2k-3k") && is_once
        },
    },
    Kind {
        text: "`random_distribution=zoned` and `zoned_abs` if zones or their last blocks reach beyond the end of a file",
        is: |case| {
            let bytes = ["filesize", "size"].iter().find_map(|one| case.get(one)?.parse::<u64>().ok());
            let is_zoned = case.get("random_distribution").is_some_and(|law| law.starts_with("zoned"));
            let per_file = if case.get("filesize").is_some() { 1 } else { files(case) };
            is_zoned && bytes.is_none_or(|bytes| bytes % (4096 * per_file) != 0 || bytes / per_file < ZONES_BYTES)
        },
    },
];

/// Bytes of the zones of generated `zoned_abs`.
const ZONES_BYTES: u64 = 96 << 10;

/// The kind of a job that is known to differ.
pub fn kind_of(case: &Case) -> Option<Kind> {
    KINDS.iter().copied().find(|kind| (kind.is)(case))
}

/// The number of files of a job.
fn files(case: &Case) -> u64 {
    let names = case.get("filename").map(|names| names.split(':').count() as u64);
    names.or_else(|| case.get("nrfiles")?.parse().ok()).unwrap_or(1)
}
