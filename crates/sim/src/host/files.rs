//! The placement of the jobs' large files on the disk. These files are open and their metadata is
//! in memory. A job with a tree of files gets a file system instead ([`super::fs`]), which then
//! places these files too.
//!
//! The disk is divided into allocation groups, as in XFS and ext. The files of one directory share
//! a group and follow one another in the order of their creation; each new directory takes the next
//! group. The first group is at the outer edge. A file name that starts with `/dev/` means the disk
//! itself.

use std::sync::Arc;

use rand::RngExt;
use rand_pcg::Pcg64;

use crate::error::SimError;
use crate::host::page::PAGE_SECTORS;
use crate::world::DriveId;

/// Sectors at the head of every group that the file system keeps for itself: 1 MiB.
const GROUP_HEAD_SECTORS: u64 = 2048;
/// Lengths of the pieces of files on an aged file system, in pages.
const AGED_PIECE_PAGES: std::ops::RangeInclusive<u64> = 16..=256;

/// A file that the plan of a world needs.
#[derive(Clone, Debug)]
pub(crate) struct PlannedFile {
    pub name: String,
    pub bytes: u64,
    /// The job file, and the line of the job that gives the file its size.
    pub declared_at: (Arc<str>, u32),
}

/// A file: its extents, in the order of the file.
#[derive(Clone, Debug)]
pub(crate) struct File {
    pub bytes: u64,
    /// The drive that has the file.
    pub drive: DriveId,
    extents: Vec<Extent>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Extent {
    /// First sector in the file, first sector on the disk, and the length in sectors.
    first: u64,
    disk: u64,
    sectors: u64,
}

impl File {
    /// Maps a sector of the file to its sector on the disk, with the number of contiguous sectors
    /// from there on.
    #[inline]
    pub fn locate(&self, sector: u64) -> Option<(u64, u64)> {
        let after = match self.extents.len() {
            1 => 1,
            _ => self.extents.partition_point(|extent| extent.first <= sector),
        };
        let extent = self.extents.get(after.checked_sub(1)?)?;
        let into = sector - extent.first;
        (into < extent.sectors).then(|| (extent.disk + into, extent.sectors - into))
    }

    /// The file's length in pages; the last page may be partial.
    pub fn pages(&self) -> u64 {
        self.bytes.div_ceil(PAGE_SECTORS * 512)
    }

    /// Creates a file of this length without extents.
    pub fn empty(bytes: u64) -> File {
        File { bytes, drive: DriveId::default(), extents: Vec::new() }
    }

    /// The extents in the order of the file: first sector on the disk and number of sectors.
    pub fn runs(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.extents.iter().map(|extent| (extent.disk, extent.sectors))
    }

    /// Appends an extent of `sectors` sectors that starts at sector `disk`.
    pub fn append(&mut self, disk: u64, sectors: u64) {
        if let Some(last) = self.extents.last_mut()
            && last.disk + last.sectors == disk
        {
            last.sectors += sectors;
            return;
        }
        let first = self.extents.last().map_or(0, |last| last.first + last.sectors);
        self.extents.push(Extent { first, disk, sectors });
    }
}

/// Returns true if a file name means the disk itself.
pub(crate) fn is_device(name: &str) -> bool {
    name.starts_with("/dev/")
}

/// The way in which a file system places files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// Number of allocation groups.
    pub groups: u32,
    /// Upper bound of the gap before each file, in pages; each gap is drawn.
    pub gap_pages: u64,
    /// If true, files are cut into pieces, and the pieces of different files alternate.
    pub aged: bool,
}

/// Places files in their order on a disk of `capacity_sectors` sectors.
pub(crate) fn lay_out(
    wanted: &[PlannedFile],
    capacity_sectors: u64,
    layout: Layout,
    rng: &mut Pcg64,
) -> Result<Vec<File>, SimError> {
    let mut groups = Groups::new(capacity_sectors, layout.groups);
    let mut files: Vec<File> = wanted.iter().map(|file| File::empty(file.bytes)).collect();
    let mut directories: Vec<&str> = Vec::new();
    let mut pieces: Vec<(usize, usize, u64)> = Vec::new();
    for (index, (file, wanted_file)) in files.iter_mut().zip(wanted).enumerate() {
        if is_device(&wanted_file.name) {
            file.append(0, capacity_sectors / PAGE_SECTORS * PAGE_SECTORS);
            continue;
        }
        let directory = wanted_file.name.rsplit_once('/').map_or("", |(directory, _)| directory);
        let number = directories.iter().position(|known| *known == directory).unwrap_or_else(|| {
            directories.push(directory);
            directories.len() - 1
        });
        pieces.push((index, number, file.pages() * PAGE_SECTORS));
    }
    if layout.aged {
        pieces = cut_and_shuffle(&pieces, rng);
    }
    for (index, directory, sectors) in pieces {
        if files[index].extents.is_empty() {
            groups.leave_gap(directory, rng.random_range(0..=layout.gap_pages) * PAGE_SECTORS);
        }
        if !groups.place(directory, sectors, &mut files[index]) {
            return Err(too_small(wanted, capacity_sectors));
        }
    }
    Ok(files)
}

/// The free space: the next free sector and the end of each group.
struct Groups {
    free: Vec<(u64, u64)>,
}

impl Groups {
    fn new(capacity_sectors: u64, count: u32) -> Groups {
        let pages = capacity_sectors / PAGE_SECTORS;
        let count = u64::from(count).clamp(1, pages.max(1));
        let size = pages / count * PAGE_SECTORS;
        let free = (0..count).map(|group| {
            let start = group * size;
            (start + GROUP_HEAD_SECTORS.min(size / 2) / PAGE_SECTORS * PAGE_SECTORS, start + size)
        });
        Groups { free: free.collect() }
    }

    /// Skips this many sectors of a directory's group if the group has room for them.
    fn leave_gap(&mut self, directory: usize, sectors: u64) {
        let count = self.free.len();
        let (next, end) = &mut self.free[directory % count];
        // A nearly full group keeps its space for files.
        if *end - *next > sectors.saturating_mul(16) {
            *next += sectors;
        }
    }

    /// Places this many sectors in a directory's group, and the rest in the next groups. Returns
    /// true if they fit.
    fn place(&mut self, directory: usize, mut sectors: u64, file: &mut File) -> bool {
        let count = self.free.len();
        for step in 0..count {
            let (next, end) = &mut self.free[(directory + step) % count];
            let taken = sectors.min(*end - *next);
            if taken > 0 {
                file.append(*next, taken);
                *next += taken;
                sectors -= taken;
            }
            if sectors == 0 {
                return true;
            }
        }
        false
    }
}

/// Cuts files into pieces and shuffles the pieces of each directory; each file's own pieces keep
/// their order.
fn cut_and_shuffle(files: &[(usize, usize, u64)], rng: &mut Pcg64) -> Vec<(usize, usize, u64)> {
    let mut left: Vec<(usize, usize, u64)> = files.to_vec();
    let mut pieces = Vec::new();
    while !left.is_empty() {
        let at = rng.random_range(0..left.len());
        let (index, directory, sectors) = left[at];
        let piece = (rng.random_range(AGED_PIECE_PAGES) * PAGE_SECTORS).min(sectors);
        pieces.push((index, directory, piece));
        if sectors > piece {
            left[at].2 = sectors - piece;
        } else {
            left.swap_remove(at);
        }
    }
    pieces
}

pub(crate) fn too_small(wanted: &[PlannedFile], capacity_sectors: u64) -> SimError {
    let files = wanted.iter().filter(|file| !is_device(&file.name));
    let needed_bytes = files.map(|file| file.bytes).fold(0, u64::saturating_add);
    let largest = wanted.iter().max_by_key(|file| file.bytes);
    let (file, line) = largest.map_or(("".into(), 0), |largest| largest.declared_at.clone());
    let largest = largest.map_or(String::new(), |largest| largest.name.clone());
    let capacity_bytes = capacity_sectors * 512;
    SimError::DriveTooSmall { file: file.to_string(), line, needed_bytes, capacity_bytes, largest }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(groups: u32) -> Layout {
        Layout { groups, gap_pages: 0, aged: false }
    }

    fn lay_out_plainly(files: &[(&str, u64)], capacity: u64, groups: u32) -> Result<Vec<File>, SimError> {
        lay_out(&wanted(files), capacity, plain(groups), &mut Pcg64::new(1, 2))
    }

    fn wanted(names: &[(&str, u64)]) -> Vec<PlannedFile> {
        names
            .iter()
            .map(|(name, mib)| PlannedFile {
                name: (*name).into(),
                bytes: mib << 20,
                declared_at: ("test.fio".into(), 1),
            })
            .collect()
    }

    #[test]
    fn files_of_one_directory_are_adjacent_and_directories_apart() {
        let capacity = 16 << 21;
        let files = lay_out_plainly(&[("a/1", 10), ("b/1", 10), ("a/2", 10)], capacity, 16).unwrap();
        let ten_mib = 10 << 11;
        assert_eq!(files[0].locate(0), Some((2048, ten_mib)));
        assert_eq!(files[2].locate(5), Some((2048 + ten_mib + 5, ten_mib - 5)));
        assert_eq!(files[1].locate(0), Some(((1 << 21) + 2048, ten_mib)));
        assert_eq!(files[1].locate(ten_mib), None);
    }

    #[test]
    fn gaps_move_files_apart_by_less_than_their_limit() {
        let layout = Layout { gap_pages: 256, ..plain(16) };
        let files = lay_out(&wanted(&[("a", 10), ("b", 10)]), 16 << 21, layout, &mut Pcg64::new(1, 2)).unwrap();
        let start = |file: &File| file.locate(0).unwrap().0;
        let gap = start(&files[1]) - start(&files[0]) - (10 << 11);
        assert!(gap > 0 && gap <= 2048 && gap % 8 == 0, "{gap}");
    }

    #[test]
    fn a_full_group_continues_in_the_next() {
        let files = lay_out_plainly(&[("a", 1500)], 4 << 21, 4).unwrap();
        let first = (1 << 21) - 2048;
        assert_eq!(files[0].locate(first), Some(((1 << 21) + 2048, (1500 << 11) - first)));
    }

    #[test]
    fn files_larger_than_the_drive_are_an_error_that_names_the_largest() {
        let error = lay_out_plainly(&[("a", 10), ("big", 5000)], 4 << 21, 4).unwrap_err().to_string();
        assert!(error.contains("5253365760 bytes") && error.contains("`big`"), "{error}");
    }

    #[test]
    fn an_aged_file_system_has_files_in_pieces_that_do_not_overlap() {
        let mut rng = Pcg64::new(1, 2);
        let aged = Layout { aged: true, ..plain(16) };
        let files = lay_out(&wanted(&[("a", 20), ("b", 20)]), 16 << 21, aged, &mut rng).unwrap();
        let mut extents: Vec<Extent> = files.iter().flat_map(|file| file.extents.clone()).collect();
        assert!(extents.len() > 40, "{} extents", extents.len());
        extents.sort_by_key(|extent| extent.disk);
        assert!(extents.windows(2).all(|pair| pair[0].disk + pair[0].sectors <= pair[1].disk));
        assert_eq!(extents.iter().map(|extent| extent.sectors).sum::<u64>(), 40 << 11);
    }
}
