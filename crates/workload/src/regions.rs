//! The part of each file that a job works on, and the bytes of one pass: `size`, `filesize`,
//! `offset`, `offset_increment` and `io_size`.
//!
//! The files exist before the jobs start, as in runs of fio after the first one. The rules were
//! measured with fio 3.33 on existing files:
//!
//! | options | bytes of the region | bytes of a pass |
//! |---|---|---|
//! | `size=S` | `S`, divided among the files; the file grows if needed | the regions |
//! | `size=P%` | `P` percent of the file, at most up to its end | the regions |
//! | `filesize=F` | from the offset to `F` | the regions |
//! | `filesize=F` and `size=S` | from the offset to `F` | `S`, at most the regions |
//! | `filesize=F` and `size=P%` | `P` percent of `F`, at most up to `F` | the regions |
//! | none of them | from the offset to the end of the file | the regions |

use hoistway_fio::{Job, Size};

use crate::request::Region;
use crate::sizes;

/// The sizes of a file that a job does not decide by `size`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileSizes {
    /// Bytes of the device, or of the file as other options or jobs decide; `None` if nothing does.
    pub existing: Option<u64>,
    /// Bytes that `filesize` gives the file, drawn from its range.
    pub filesize: Option<u64>,
}

impl FileSizes {
    /// The size of the file as a whole, which percentages are of; `None` if only `size` decides.
    fn whole(self) -> Option<u64> {
        self.filesize.or(self.existing)
    }
}

/// The part of one of `files` files that a clone of a job works on; `None` if nothing decides the
/// size of the file. The region is empty if the offset is at or beyond the end of the file.
pub fn region(job: &Job, clone: u32, files: u64, sizes: FileSizes) -> Option<Region> {
    let own = match job.region.size {
        Some(Size::Bytes(bytes)) => Some(bytes / files.max(1)),
        _ => None,
    };
    let end = sizes.whole().or(own)?;
    // fio takes percentages of an offset from the existing file, which may be larger.
    let base = sizes.existing.unwrap_or(0).max(end);
    let start = offset(job, clone, base);
    let rest = end.saturating_sub(start);
    let len = match (job.region.size, own) {
        (Some(size @ Size::Percent(_)), _) => {
            let bytes = size.of(end);
            (bytes - bytes % sizes::smallest_of_all(job).max(1)).min(rest)
        }
        (_, Some(bytes)) if sizes.filesize.is_none() => bytes,
        _ => rest,
    };
    Some(Region { start, len })
}

/// The bytes that a job moves in one pass over its regions.
pub fn pass_bytes(job: &Job, regions: &[Region]) -> u64 {
    let all = regions.iter().map(|region| region.len).fold(0u64, u64::saturating_add);
    let size = match job.region.size {
        Some(Size::Bytes(bytes)) => bytes.min(all),
        _ => all,
    };
    job.amount.io_size.map_or(size, |io_size| io_size.of(size))
}

/// Start of the region of a clone in a file of this many bytes.
fn offset(job: &Job, clone: u32, file_bytes: u64) -> u64 {
    let mut offset = job.region.offset.of(file_bytes);
    if matches!(job.region.offset, Size::Percent(_)) {
        let align = if job.region.offset_align > 0 { job.region.offset_align } else { sizes::smallest_of_all(job) };
        offset = offset.next_multiple_of(align.max(1));
    }
    offset.saturating_add(job.region.offset_increment.of(file_bytes).saturating_mul(u64::from(clone)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1 << 10;

    /// Start and length of the region in KiB, and the KiB of a pass, of a job on this many files.
    fn of(options: &str, files: u64, sizes: FileSizes) -> Option<(u64, u64, u64)> {
        let none = |path: &str, _: &str| Err(std::io::Error::other(path.to_owned()));
        let text = format!("[j]\nfilename=q\n{}\n", options.replace(' ', "\n"));
        let job = hoistway_fio::parse(&text, "job.fio", &|_| None, &none).expect("a valid job").jobs.remove(0);
        let region = region(&job, 0, files, sizes)?;
        let regions = vec![region; files as usize];
        Some((region.start / KIB, region.len / KIB, pass_bytes(&job, &regions) / KIB))
    }

    /// The figures are those of fio 3.33 on an existing file of 64 KiB.
    #[test]
    fn regions_and_passes_are_those_of_fio_on_existing_files() {
        let existing = FileSizes { existing: Some(64 * KIB), filesize: None };
        let given = FileSizes { existing: Some(64 * KIB), filesize: Some(64 * KIB) };
        for (options, files, sizes, expected) in [
            ("offset=25%", 1, existing, (16, 48, 48)),
            ("size=16k offset=16k io_size=64k", 1, existing, (16, 16, 64)),
            ("size=25% offset=16k io_size=64k", 1, existing, (16, 16, 64)),
            ("size=64k offset=25%", 1, existing, (16, 64, 64)),
            ("filesize=64k size=16k", 1, given, (0, 64, 16)),
            ("filesize=64k size=16k offset=16k io_size=64k", 1, given, (16, 48, 64)),
            ("filesize=64k size=25% offset=75% io_size=50%", 1, given, (48, 16, 8)),
            ("filesize=64k size=100% offset=50%", 1, given, (32, 32, 32)),
            ("filesize=64k offset=16k", 2, given, (16, 48, 96)),
            ("filesize=64k size=25%", 2, given, (0, 16, 32)),
            ("filesize=64k size=96k", 2, given, (0, 64, 96)),
            ("size=96k offset=16k", 2, existing, (16, 48, 96)),
            ("size=128k offset=50%", 2, existing, (32, 64, 128)),
        ] {
            assert_eq!(of(options, files, sizes), Some(expected), "{options}");
        }
        let small = FileSizes { existing: Some(64 * KIB), filesize: Some(32 * KIB) };
        assert_eq!(of("filesize=32k size=100% offset=25%", 1, small), Some((16, 16, 16)));
        assert_eq!(of("filesize=32k size=100% offset=50%", 1, small), Some((32, 0, 0)));
        assert_eq!(of("bs=4k", 1, FileSizes::default()), None);
    }
}
