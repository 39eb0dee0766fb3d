//! How often which part of the disk was asked for when, and how often which latency was met: pictures of a few hundred by a thousand cells.

/// So many stretches of time a picture has: one for two of the series'.
pub(super) const COLUMNS: usize = super::series::BUCKETS / 2;
/// So many parts of the disk.
pub(super) const SECTOR_ROWS: usize = 256;
/// Latencies in steps of a quarter of an octave, from 1,024 ns to 256 s.
pub(super) const LATENCY_ROWS: usize = 112;
/// Below it all latencies are in the first row: 2^10 ns.
const LATENCY_NS_MIN_LOG2: u32 = 10;
/// Sectors beyond (2^48, 128 PiB) are of no disk: pass-through commands carry such numbers.
const SECTORS_MAX: u64 = 1 << 48;

/// A picture of `rows` rows, of which columns without anything cost nothing.
#[derive(Clone, Debug)]
pub(super) struct Picture {
    rows: usize,
    columns: Vec<Option<Box<[u32]>>>,
}

impl Picture {
    pub fn new(rows: usize) -> Picture {
        Picture { rows, columns: vec![None; COLUMNS] }
    }

    /// One more in a cell; those outside are left out.
    pub fn add(&mut self, column: usize, row: usize) {
        let rows = self.rows;
        let Some(column) = self.columns.get_mut(column) else { return };
        let cells = column.get_or_insert_with(|| vec![0; rows].into_boxed_slice());
        if let Some(cell) = cells.get_mut(row) {
            *cell = cell.saturating_add(1);
        }
    }

    /// Each two columns become one.
    pub fn fold(&mut self) {
        for to in 0..self.columns.len() / 2 {
            let first = self.columns.get_mut(to * 2).and_then(Option::take);
            let second = self.columns.get_mut(to * 2 + 1).and_then(Option::take);
            if let Some(slot) = self.columns.get_mut(to) {
                *slot = sum(first, second);
            }
        }
    }

    /// Adds another's cells.
    pub fn absorb(&mut self, other: &mut Picture) {
        for (into, other) in self.columns.iter_mut().zip(&mut other.columns) {
            *into = sum(into.take(), other.take());
        }
    }

    /// Moves every row to where `to` says.
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

    /// How many cells are not empty.
    pub fn filled(&self) -> usize {
        self.columns.iter().flatten().map(|column| column.iter().filter(|count| **count > 0).count()).sum()
    }

    /// The cells that are not empty: number (column by column) and count.
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

/// Which sectors a row of a picture stands for: as few as all that were seen leave room for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SectorScale {
    /// The lowest and the highest sector seen.
    seen: Option<(u64, u64)>,
    shift: u32,
    /// The first row's number, counted from sector 0.
    base: u64,
}

/// How the rows of all pictures have to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Move {
    from: SectorScale,
    to: SectorScale,
}

impl Move {
    /// Where a row goes.
    pub fn row(self, row: usize) -> usize {
        let number = (self.from.base + row as u64) >> (self.to.shift - self.from.shift);
        number.saturating_sub(self.to.base) as usize
    }
}

impl SectorScale {
    /// Sectors of one row.
    pub fn row_sectors(&self) -> u64 {
        1 << self.shift
    }

    /// The first sector of the first row.
    pub fn first_sector(&self) -> u64 {
        self.base << self.shift
    }

    /// The lowest and the highest sector that were seen.
    pub fn seen(&self) -> Option<(u64, u64)> {
        self.seen
    }

    /// The row of a sector that is within what was [taken in](SectorScale::take).
    pub fn row(&self, sector: u64) -> usize {
        (sector >> self.shift).saturating_sub(self.base) as usize
    }

    /// Whether a sector can be one of a disk.
    pub fn holds(sector: u64) -> bool {
        sector < SECTORS_MAX
    }

    /// Makes room for a sector; how rows have to move if that took more than there was.
    pub fn take(&mut self, sector: u64) -> Option<Move> {
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
        // What is over is left on both sides, so that a disk that is walked through backwards moves them seldom.
        let spare = SECTOR_ROWS as u64 - 1 - ((high >> self.shift) - (low >> self.shift));
        self.base = (low >> self.shift).saturating_sub(spare / 2);
        from.seen.map(|_| Move { from, to: *self })
    }
}

/// The row of a latency.
pub(super) fn latency_row(latency_ns: u64) -> usize {
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
    fn rows_widen_as_far_as_the_sectors_seen_need_it_and_keep_what_they_hold() {
        let mut scale = SectorScale::default();
        let mut picture = Picture::new(SECTOR_ROWS);
        let sectors = [1_000_000u64, 1_000_100, 999_000, 5_000_000, 10, 7];
        for sector in sectors {
            if let Some(moved) = scale.take(sector) {
                picture.move_rows(|row| moved.row(row));
            }
            picture.add(0, scale.row(sector));
        }
        let mut expected = Picture::new(SECTOR_ROWS);
        sectors.iter().for_each(|sector| expected.add(0, scale.row(*sector)));
        assert_eq!(picture.cells().collect::<Vec<_>>(), expected.cells().collect::<Vec<_>>());
        // 5,000,000 sectors in 256 rows: 2^15 = 32,768 each are 8.4 M, 2^14 only 4.2 M.
        assert_eq!((scale.row_sectors(), scale.seen()), (1 << 15, Some((7, 5_000_000))));
    }

    #[test]
    fn latencies_fall_into_quarters_of_octaves() {
        let rows: Vec<usize> = [0, 1023, 1024, 1279, 1280, 2048, 1 << 37, u64::MAX].map(latency_row).into();
        assert_eq!(rows, [0, 0, 0, 0, 1, 4, 108, 111]);
    }

    #[test]
    fn folding_adds_neighbours() {
        let mut picture = Picture::new(4);
        [(0, 1), (1, 1), (2, 3), (1023, 0)].iter().for_each(|(column, row)| picture.add(*column, *row));
        picture.fold();
        assert_eq!(picture.cells().collect::<Vec<_>>(), [(1, 2), (7, 1), (511 * 4, 1)]);
        assert_eq!(picture.filled(), 3);
    }
}
