//! The write cache of the controller: dirty sectors, and the order of write-back.

use std::collections::{BTreeMap, VecDeque};

use super::layout::Extent;
use crate::profile::{ArrayCacheProfile, CACHE_LINE_SECTORS as LINE_SECTORS, DestageOrder};

/// The largest run of sectors that is written back by one command: 128 KiB.
const RUN_SECTORS_MAX: u32 = 256;

/// A cache line: bit sets of its dirty sectors and of the sectors that a member is writing.
#[derive(Debug, Clone, Copy, Default)]
struct Line {
    dirty: u8,
    writing: u8,
    /// The epochs in which the sectors became dirty.
    dirty_epoch: u64,
    writing_epoch: u64,
}

/// Dirty sectors by column and by sector of the members.
#[derive(Debug, Clone)]
pub(super) struct Cache {
    profile: ArrayCacheProfile,
    columns: Vec<Column>,
    lines: u64,
    /// The number of flushes so far. A flush waits for the lines of earlier epochs.
    epoch: u64,
    /// The number of lines that are not on the members yet, by rising epoch.
    waiting: BTreeMap<u64, u64>,
    /// True from the high mark until the low mark is reached.
    draining: bool,
}

#[derive(Debug, Clone, Default)]
struct Column {
    lines: BTreeMap<u64, Line>,
    /// The sector at which the sweep continues.
    sweep: u64,
    /// Lines in the order in which they became dirty.
    oldest: VecDeque<u64>,
}

impl Cache {
    pub(super) fn new(profile: &ArrayCacheProfile, columns: usize) -> Cache {
        Cache {
            profile: *profile,
            columns: vec![Column::default(); columns],
            lines: 0,
            epoch: 0,
            waiting: BTreeMap::new(),
            draining: false,
        }
    }

    pub(super) fn profile(&self) -> &ArrayCacheProfile {
        &self.profile
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lines == 0
    }

    /// Returns true if members should write back in addition to the commands of the host.
    pub(super) fn is_draining(&self) -> bool {
        self.draining
    }

    /// Returns true if the cache is large enough for all extents together.
    pub(super) fn could_hold(&self, extents: &[Extent]) -> bool {
        extents.iter().map(|extent| extent.lines().count() as u64).sum::<u64>() * LINE_SECTORS <= self.profile.sectors
    }

    /// Adds the extents and returns true if there is space for them.
    pub(super) fn insert(&mut self, extents: &[Extent]) -> bool {
        let is_new = |extent: &Extent, line: &u64| {
            self.columns.get(extent.column).is_some_and(|column| !column.lines.contains_key(line))
        };
        let new: u64 =
            extents.iter().map(|extent| extent.lines().filter(|line| is_new(extent, line)).count() as u64).sum();
        if (self.lines + new) * LINE_SECTORS > self.profile.sectors {
            return false;
        }
        self.lines += new;
        for extent in extents {
            let Some(column) = self.columns.get_mut(extent.column) else { continue };
            for number in extent.lines() {
                let line = column.lines.entry(number).or_default();
                if line.dirty == 0 {
                    line.dirty_epoch = self.epoch;
                    *self.waiting.entry(self.epoch).or_default() += 1;
                    if self.profile.order == DestageOrder::Fifo {
                        column.oldest.push_back(number);
                    }
                }
                line.dirty |= extent.mask(number);
            }
        }
        self.draining |= self.lines * LINE_SECTORS > self.profile.high_sectors;
        true
    }

    /// The parts of an extent that are not in the cache.
    pub(super) fn missing(&self, extent: &Extent) -> Vec<Extent> {
        let mut missing: Vec<Extent> = Vec::new();
        let Some(column) = self.columns.get(extent.column) else { return missing };
        for number in extent.lines() {
            let held = column.lines.get(&number).map_or(0, |line| line.dirty | line.writing);
            let wanted = extent.mask(number) & !held;
            for bit in (0..LINE_SECTORS).filter(|bit| wanted & (1 << bit) != 0) {
                let sector = number * LINE_SECTORS + bit;
                match missing.last_mut() {
                    Some(last) if last.sector + u64::from(last.sectors) == sector => last.sectors += 1,
                    _ => missing.push(Extent { column: extent.column, sector, sectors: 1 }),
                }
            }
        }
        missing
    }

    /// Chooses the next sectors of a column to write back, and marks them as being written.
    pub(super) fn destage(&mut self, column: usize) -> Option<Extent> {
        let order = self.profile.order;
        let state = self.columns.get_mut(column)?;
        let first = match order {
            DestageOrder::Sweep => state.next_of_sweep(),
            DestageOrder::Fifo => state.next_of_oldest(),
        }?;
        let start = first * LINE_SECTORS + u64::from(state.lines.get(&first)?.dirty.trailing_zeros());
        let mut extent = Extent { column, sector: start, sectors: 0 };
        while extent.sectors < RUN_SECTORS_MAX {
            let sector = start + u64::from(extent.sectors);
            let bit = 1u8 << (sector % LINE_SECTORS);
            match state.lines.get(&(sector / LINE_SECTORS)) {
                Some(line) if line.dirty & bit != 0 && line.writing == 0 => extent.sectors += 1,
                _ => break,
            }
        }
        for number in extent.lines() {
            let Some(line) = state.lines.get_mut(&number) else { continue };
            line.writing = line.dirty & extent.mask(number);
            line.writing_epoch = line.dirty_epoch;
            line.dirty &= !line.writing;
            // The remaining sectors of the line wait on their own.
            if line.dirty != 0 {
                *self.waiting.entry(line.dirty_epoch).or_default() += 1;
                if order == DestageOrder::Fifo {
                    state.oldest.push_front(number);
                }
            }
        }
        state.sweep = start + u64::from(extent.sectors);
        Some(extent)
    }

    /// Marks sectors from [`Cache::destage`] as written by the members.
    pub(super) fn written(&mut self, extent: &Extent) {
        for number in extent.lines() {
            let Some(line) = self.line_mut(extent.column, number) else { continue };
            line.writing = 0;
            let epoch = line.writing_epoch;
            self.arrived(epoch);
            self.free_if_clean(extent.column, number);
        }
        self.draining &= self.lines * LINE_SECTORS > self.profile.low_sectors;
    }

    /// Drops the dirty sectors of an extent, because newer data bypass the cache.
    pub(super) fn forget(&mut self, extent: &Extent) {
        for number in extent.lines() {
            let Some(line) = self.line_mut(extent.column, number).filter(|line| line.dirty != 0) else { continue };
            line.dirty &= !extent.mask(number);
            if line.dirty == 0 {
                let epoch = line.dirty_epoch;
                self.arrived(epoch);
                self.free_if_clean(extent.column, number);
            }
        }
    }

    fn line_mut(&mut self, column: usize, number: u64) -> Option<&mut Line> {
        self.columns.get_mut(column)?.lines.get_mut(&number)
    }

    /// Counts down the lines of an epoch that are not on the members.
    fn arrived(&mut self, epoch: u64) {
        if let Some(count) = self.waiting.get_mut(&epoch) {
            *count -= 1;
            if *count == 0 {
                self.waiting.remove(&epoch);
            }
        }
    }

    fn free_if_clean(&mut self, column: usize, number: u64) {
        let Some(column) = self.columns.get_mut(column) else { return };
        if column.lines.get(&number).is_some_and(|line| line.dirty == 0 && line.writing == 0) {
            column.lines.remove(&number);
            self.lines -= 1;
        }
    }

    /// Begins a new epoch and returns the one that ended. A flush waits until
    /// [`has_written`](Cache::has_written) returns true for it.
    pub(super) fn end_epoch(&mut self) -> u64 {
        self.epoch += 1;
        self.epoch - 1
    }

    /// Returns true if all lines up to the end of an epoch are on the members.
    pub(super) fn has_written(&self, epoch: u64) -> bool {
        self.waiting.keys().next().is_none_or(|oldest| *oldest > epoch)
    }
}

impl Column {
    /// The first idle dirty line at or above the sweep position, or else the lowest one.
    fn next_of_sweep(&self) -> Option<u64> {
        let from = self.sweep / LINE_SECTORS;
        let ready = |entry: &(&u64, &Line)| entry.1.dirty != 0 && entry.1.writing == 0;
        let above = self.lines.range(from..).find(ready);
        above.or_else(|| self.lines.range(..from).find(ready)).map(|(number, _)| *number)
    }

    /// The oldest idle dirty line. Lines at the front that have been written are removed.
    fn next_of_oldest(&mut self) -> Option<u64> {
        let lines = &self.lines;
        let is_dirty = |number: &u64| lines.get(number).is_some_and(|line| line.dirty != 0);
        while self.oldest.front().is_some_and(|number| !is_dirty(number)) {
            self.oldest.pop_front();
        }
        let ready = |number: &&u64| lines.get(number).is_some_and(|line| line.dirty != 0 && line.writing == 0);
        self.oldest.iter().find(ready).copied()
    }
}

impl Extent {
    /// The numbers of the lines that the extent touches.
    fn lines(&self) -> std::ops::Range<u64> {
        self.sector / LINE_SECTORS..(self.sector + u64::from(self.sectors)).div_ceil(LINE_SECTORS)
    }

    /// A bit set of the sectors of a line that belong to the extent.
    fn mask(&self, line: u64) -> u8 {
        let end = self.sector + u64::from(self.sectors);
        let bits = (0..LINE_SECTORS).filter(|bit| (self.sector..end).contains(&(line * LINE_SECTORS + bit)));
        bits.fold(0, |mask, bit| mask | 1 << bit)
    }
}
