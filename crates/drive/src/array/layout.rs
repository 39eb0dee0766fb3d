//! The mapping of array sectors to members.

use crate::profile::ArrayProfile;

/// Consecutive sectors of one column. Each copy of the column has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) column: usize,
    /// The first sector on the member.
    pub(super) sector: u64,
    pub(super) sectors: u32,
}

/// Chunks are distributed over the columns in turn. A column is a group of members with the same
/// sectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    columns: u64,
    copies: usize,
    chunk: u64,
    member_sectors: u64,
}

impl Layout {
    pub(super) fn new(profile: &ArrayProfile) -> Layout {
        let (columns, chunk) = (u64::from(profile.columns()), u64::from(profile.chunk_sectors.max(1)));
        let member_sectors = profile.member_sectors();
        Layout { columns, copies: profile.copies.max(1) as usize, chunk, member_sectors }
    }

    pub(super) fn capacity_sectors(&self) -> u64 {
        self.columns * self.member_sectors
    }

    pub(super) fn columns(&self) -> usize {
        self.columns as usize
    }

    /// The indices of the members of a column.
    pub(super) fn copies(&self, column: usize) -> std::ops::Range<usize> {
        column * self.copies..(column + 1) * self.copies
    }

    /// The extents of a range of sectors, one for each column. Consecutive chunks of a column are
    /// consecutive on its members.
    pub(super) fn extents(&self, sector: u64, sectors: u32) -> Vec<Extent> {
        let mut extents: Vec<Extent> = Vec::new();
        let (mut at, end) = (sector, sector + u64::from(sectors));
        while at < end {
            let (chunk, offset) = (at / self.chunk, at % self.chunk);
            let length = (self.chunk - offset).min(end - at);
            let column = (chunk % self.columns) as usize;
            match extents.iter_mut().find(|extent| extent.column == column) {
                Some(extent) => extent.sectors += length as u32,
                None => extents.push(Extent {
                    column,
                    sector: chunk / self.columns * self.chunk + offset,
                    sectors: length as u32,
                }),
            }
            at += length;
        }
        extents
    }

    /// The array sector at `sector` of the members of a column.
    pub(super) fn array_sector(&self, column: usize, sector: u64) -> u64 {
        let (chunk, offset) = (sector / self.chunk, sector % self.chunk);
        (chunk * self.columns + column as u64) * self.chunk + offset
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUT: Layout = Layout { columns: 3, copies: 2, chunk: 16, member_sectors: 1600 };

    #[test]
    fn chunks_go_round_the_columns() {
        // Sectors 8 to 15 of chunk 0, chunks 1, 2, 3 and the first 4 sectors of chunk 4: columns 0,
        // 1, 2, 0, 1.
        let extent = |column, sector, sectors| Extent { column, sector, sectors };
        assert_eq!(LAYOUT.extents(8, 60), [extent(0, 8, 24), extent(1, 0, 20), extent(2, 0, 16)]);
        assert_eq!(LAYOUT.copies(2), 4..6);
        assert_eq!(LAYOUT.capacity_sectors(), 4800);
    }

    #[test]
    fn every_sector_has_one_position_and_is_found_there() {
        let mut positions: Vec<(usize, u64)> = Vec::new();
        for sector in 0..4800 {
            let [extent] = LAYOUT.extents(sector, 1)[..] else { panic!("one sector, one extent") };
            assert!(extent.sector < 1600);
            assert_eq!(LAYOUT.array_sector(extent.column, extent.sector), sector);
            positions.push((extent.column, extent.sector));
        }
        positions.sort_unstable();
        positions.dedup();
        assert_eq!(positions.len(), 4800);
    }
}
