//! Heatmaps over time: requests by sector and by latency, in a few hundred by a thousand cells.

/// Number of columns of a heatmap: one for each two buckets of the series.
pub(crate) const COLUMNS: usize = crate::series::BUCKETS / 2;
/// Number of rows of a sector heatmap.
pub(crate) const SECTOR_ROWS: usize = 256;
/// Number of rows of a latency heatmap: quarters of octaves from 1,024 ns to 256 s.
pub(crate) const LATENCY_ROWS: usize = 112;
/// Binary logarithm of the largest latency of the first row in ns: 2^10 ns.
const LATENCY_NS_MIN_LOG2: u32 = 10;
/// Upper bound of sectors (2^48, 128 PiB). Greater numbers come from pass-through commands.
const SECTORS_MAX: u64 = 1 << 48;

/// A heatmap of `rows` rows. Empty columns take no memory.
#[derive(Clone, Debug)]
pub(crate) struct Heatmap {
    rows: usize,
    columns: Vec<Option<Box<[u32]>>>,
}

impl Heatmap {
    pub fn new(rows: usize) -> Heatmap {
        Heatmap { rows, columns: vec![None; COLUMNS] }
    }

    /// Increments a cell; positions outside are ignored.
    pub fn add(&mut self, column: usize, row: usize) {
        let rows = self.rows;
        let Some(column) = self.columns.get_mut(column) else { return };
        let cells = column.get_or_insert_with(|| vec![0; rows].into_boxed_slice());
        if let Some(cell) = cells.get_mut(row) {
            *cell = cell.saturating_add(1);
        }
    }

    /// Combines each two columns into one.
    pub fn fold(&mut self) {
        for to in 0..self.columns.len() / 2 {
            let first = self.columns.get_mut(to * 2).and_then(Option::take);
            let second = self.columns.get_mut(to * 2 + 1).and_then(Option::take);
            if let Some(slot) = self.columns.get_mut(to) {
                *slot = sum(first, second);
            }
        }
    }

    /// Adds the cells of another heatmap.
    pub fn absorb(&mut self, other: &mut Heatmap) {
        for (into, other) in self.columns.iter_mut().zip(&mut other.columns) {
            *into = sum(into.take(), other.take());
        }
    }

    /// Moves every row to the row that `to` returns.
    pub fn move_rows(&mut self, to: impl Fn(usize) -> usize) {
        for column in self.columns.iter_mut().flatten() {
            let mut moved = vec![0u32; self.rows].into_boxed_slice();
            for (row, count) in column.iter().enumerate().filter(|(_, count)| **count > 0) {
                if let Some(cell) = moved.get_mut(to(row)) {
                    *cell = cell.saturating_add(*count);
                }
            }
            *column = moved;
        }
    }

    /// Number of cells that are not empty.
    pub fn filled(&self) -> usize {
        self.columns.iter().flatten().map(|column| column.iter().filter(|count| **count > 0).count()).sum()
    }

    /// Returns the cells that are not empty: cell number (column by column) and count.
    pub fn cells(&self) -> impl Iterator<Item = (u32, u32)> {
        let columns = self.columns.iter().enumerate();
        columns.filter_map(|(at, column)| Some((at, column.as_ref()?))).flat_map(move |(at, column)| {
            let filled = column.iter().enumerate().filter(|(_, count)| **count > 0);
            filled.map(move |(row, count)| ((at * self.rows + row) as u32, *count))
        })
    }
}

fn sum(first: Option<Box<[u32]>>, second: Option<Box<[u32]>>) -> Option<Box<[u32]>> {
    match (first, second) {
        (Some(mut first), Some(second)) => {
            first.iter_mut().zip(&second).for_each(|(into, other)| *into = into.saturating_add(*other));
            Some(first)
        }
        (first, second) => first.or(second),
    }
}

/// The sectors of each row of a heatmap: the finest division that covers all sectors seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SectorScale {
    /// Lowest and highest sector seen.
    seen: Option<(u64, u64)>,
    shift: u32,
    /// Number of the first row, counted from sector 0.
    base: u64,
}

/// A change of scale that moves the rows of all heatmaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowMove {
    from: SectorScale,
    to: SectorScale,
}

impl RowMove {
    /// Returns the new position of a row.
    pub fn row(self, row: usize) -> usize {
        let number = (self.from.base + row as u64) >> (self.to.shift - self.from.shift);
        number.saturating_sub(self.to.base) as usize
    }
}

impl SectorScale {
    /// Number of sectors of one row.
    pub fn row_sectors(&self) -> u64 {
        1 << self.shift
    }

    /// First sector of the first row.
    pub fn first_sector(&self) -> u64 {
        self.base << self.shift
    }

    /// Lowest and highest sector seen.
    pub fn seen(&self) -> Option<(u64, u64)> {
        self.seen
    }

    /// Returns the row of a sector that was [included](SectorScale::include) before.
    pub fn row(&self, sector: u64) -> usize {
        (sector >> self.shift).saturating_sub(self.base) as usize
    }

    /// Returns true if the sector can exist on a disk.
    pub fn is_valid(sector: u64) -> bool {
        sector < SECTORS_MAX
    }

    /// Extends the scale to a sector. Returns the move of the rows if the scale changed.
    pub fn include(&mut self, sector: u64) -> Option<RowMove> {
        let (low, high) = match self.seen {
            Some((low, high)) if low <= sector && sector <= high => return None,
            Some((low, high)) => (low.min(sector), high.max(sector)),
            None => (sector, sector),
        };
        let from = *self;
        self.seen = Some((low, high));
        let fits = |shift: u32, base: u64| low >> shift >= base && (high >> shift) - base < SECTOR_ROWS as u64;
        if from.seen.is_some() && fits(from.shift, from.base) {
            return None;
        }
        while (high >> self.shift) - (low >> self.shift) >= SECTOR_ROWS as u64 {
            self.shift += 1;
        }
        // Spare rows are divided between both sides, so that a backward pass over the disk rarely
        // moves rows.
        let spare = SECTOR_ROWS as u64 - 1 - ((high >> self.shift) - (low >> self.shift));
        self.base = (low >> self.shift).saturating_sub(spare / 2);
        from.seen.map(|_| RowMove { from, to: *self })
    }
}

/// Returns the row of a latency.
pub(crate) fn latency_row(latency_ns: u64) -> usize {
    let log2 = latency_ns.max(1).ilog2();
    if log2 < LATENCY_NS_MIN_LOG2 {
        return 0;
    }
    let quarter = (latency_ns >> (log2 - 2)) & 3;
    (((log2 - LATENCY_NS_MIN_LOG2) * 4) as usize + quarter as usize).min(LATENCY_ROWS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_widen_as_needed_and_keep_their_counts() {
        let mut scale = SectorScale::default();
        let mut heatmap = Heatmap::new(SECTOR_ROWS);
        let sectors = [1_000_000u64, 1_000_100, 999_000, 5_000_000, 10, 7];
        for sector in sectors {
            if let Some(moved) = scale.include(sector) {
                heatmap.move_rows(|row| moved.row(row));
            }
            heatmap.add(0, scale.row(sector));
        }
        let mut expected = Heatmap::new(SECTOR_ROWS);
        sectors.iter().for_each(|sector| expected.add(0, scale.row(*sector)));
        assert_eq!(heatmap.cells().collect::<Vec<_>>(), expected.cells().collect::<Vec<_>>());
        // 5,000,000 sectors in 256 rows: rows of 2^15 = 32,768 cover 8.4 M, rows of 2^14 only 4.2
        // M.
        assert_eq!((scale.row_sectors(), scale.seen()), (1 << 15, Some((7, 5_000_000))));
    }

    #[test]
    fn latencies_fall_into_quarters_of_octaves() {
        let rows: Vec<usize> = [0, 1023, 1024, 1279, 1280, 2048, 1 << 37, u64::MAX].map(latency_row).into();
        assert_eq!(rows, [0, 0, 0, 0, 1, 4, 108, 111]);
    }

    #[test]
    fn folding_adds_neighbours() {
        let mut heatmap = Heatmap::new(4);
        [(0, 1), (1, 1), (2, 3), (1023, 0)].iter().for_each(|(column, row)| heatmap.add(*column, *row));
        heatmap.fold();
        assert_eq!(heatmap.cells().collect::<Vec<_>>(), [(1, 2), (7, 1), (511 * 4, 1)]);
        assert_eq!(heatmap.filled(), 3);
    }
}
