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
        text: "`trimwrite` and `randtrimwrite` with `blockalign`, several processes, or several files of which a draw chooses or that are no multiples of the block",
        is: |case| {
            let has = |options: &[&str]| options.iter().any(|one| case.get(one).is_some());
            let is_even = size(case).is_some_and(|bytes| bytes.is_multiple_of(4096 * files(case)));
            let has_draws = has(&["file_service_type", "random_distribution"]);
            case.is_of("trimwrite") && (has(&["ba", "numjobs"]) || files(case) > 1 && (has_draws || !is_even))
        },
    },
    Kind {
        text: "the turns of files with `openfiles`, at random offsets or with syncs",
        is: |case| {
            let has_syncs = ["fsync", "fdatasync"].iter().any(|one| case.get(one).is_some());
            case.get("openfiles").is_some() && (case.is_of("rand") || has_syncs)
        },
    },
    Kind {
        text: "the bytes of random requests whose sizes are no multiples of the smallest (`bsrange=2k-3k`)",
        is: |case| {
            let is_once = case.get("norandommap").is_none() && case.get("random_distribution").is_none();
            case.is_of("rand") && case.get("bsrange") == Some("2k-3k") && is_once
        },
    },
    Kind {
        text: "random jobs of one direction whose other direction has blocks of another size",
        is: |case| {
            let is_mixed = case.is_of("randrw") || case.is_of("randtrimwrite");
            let has_two = case.get("bs").or_else(|| case.get("blocksize")).is_some_and(|bs| bs.contains(','));
            case.is_of("rand") && !is_mixed && has_two && case.get("norandommap").is_none()
        },
    },
    Kind {
        text: "`randrw` with `blockalign` and a distribution, or in a file that is no multiple of it",
        is: |case| {
            let is_even = |align| size(case).is_some_and(|bytes| bytes.is_multiple_of(align));
            let align = case.get("ba").and_then(bytes_of);
            let has_law = case.get("random_distribution").is_some();
            case.is_of("randrw") && align.is_some_and(|align| has_law || !is_even(align))
        },
    },
    Kind {
        text: "`zonemode=strided` with a distribution, or in a file that is no multiple of the zones",
        is: |case| {
            let is_even = size(case).is_some_and(|bytes| bytes.is_multiple_of(ZONE_BYTES));
            let has_law = case.get("random_distribution").is_some();
            case.get("zonemode") == Some("strided") && (has_law || !is_even)
        },
    },
    Kind {
        text: "runs at random offsets (`randread:2`) that end with the time or in a part of a file",
        is: |case| {
            let is_part = case.get("size").is_some_and(|size| size.contains('%'));
            let is_timed = case.get("time_based").is_some() && case.get("norandommap").is_none();
            let is_run = case.get("rw").is_some_and(|rw| rw.contains(':')) || case.get("percentage_random").is_some();
            case.is_of("rand") && is_run && (is_part || is_timed)
        },
    },
    Kind {
        text: "`random_distribution=zoned` and `zoned_abs` if zones or their last blocks reach beyond the end of a file",
        is: |case| {
            let law = case.get("random_distribution").unwrap_or_default();
            let files = if case.get("filesize").is_some() { 1 } else { files(case) };
            let bytes = size(case).map_or(0, |bytes| bytes / files);
            let is_cut = law.starts_with("zoned") && !bytes.is_multiple_of(512);
            is_cut || law.starts_with("zoned_abs") && bytes < ZONES_BYTES
        },
    },
];

/// Bytes of the largest zones of generated strided zones.
const ZONE_BYTES: u64 = 64 << 10;
/// Bytes of the zones of generated `zoned_abs`.
const ZONES_BYTES: u64 = 96 << 10;

/// The kind of a job that is known to differ.
pub fn kind_of(case: &Case) -> Option<Kind> {
    KINDS.iter().copied().find(|kind| (kind.is)(case))
}

/// The bytes of the files, as far as they are given in bytes.
fn size(case: &Case) -> Option<u64> {
    ["filesize", "size"].iter().find_map(|one| bytes_of(case.get(one)?))
}

/// The bytes of a value, in bytes or KiB.
fn bytes_of(value: &str) -> Option<u64> {
    match value.strip_suffix('k') {
        Some(kib) => kib.parse::<u64>().ok().map(|kib| kib << 10),
        None => value.parse().ok(),
    }
}

/// The number of files of a job.
fn files(case: &Case) -> u64 {
    let names = case.get("filename").map(|names| names.split(':').count() as u64);
    names.or_else(|| case.get("nrfiles")?.parse().ok()).unwrap_or(1)
}

/// The kinds as Markdown: a list.
pub fn markdown() -> String {
    KINDS.iter().map(|kind| format!("- {}\n", kind.text)).collect()
}
