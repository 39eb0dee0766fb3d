//! The write cache of a disk: sectors that are received and not yet written.

use std::collections::BTreeMap;

use crate::profile::WriteCacheProfile;

/// Dirty sectors as runs that neither touch nor overlap. Adjacent writes form one run.
#[derive(Debug, Clone)]
pub(super) struct WriteCache {
    /// The first sector of each run, and the sector after its last.
    runs: BTreeMap<u64, u64>,
    sectors: u64,
    profile: WriteCacheProfile,
    draining: bool,
    /// The sectors that are being written, and the time until which they occupy space.
    leaving: Leaving,
    /// The run that is being written: its next sector, and the sectors that may still be written
    /// before it is another run's turn.
    turn: Option<(u64, u64)>,
}

/// Sectors that are being written, from `start` up to but not including `end`.
#[derive(Debug, Clone, Copy, Default)]
struct Leaving {
    start: u64,
    end: u64,
    until_ns: u64,
}

impl WriteCache {
    /// The number of runs, upwards from the arm, among which the nearest in time is written first.
    const WINDOW: usize = 32;

    pub(super) fn new(profile: &WriteCacheProfile) -> WriteCache {
        WriteCache {
            runs: BTreeMap::new(),
            sectors: 0,
            profile: profile.clone(),
            draining: false,
            leaving: Leaving::default(),
            turn: None,
        }
    }

    /// Idle time of the arm after a command before write-back starts, in ns.
    pub(super) fn idle_ns(&self) -> u64 {
        self.profile.idle_ns
    }

    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Returns true from the high mark until the low mark is reached.
    pub(super) fn is_draining(&self) -> bool {
        self.draining
    }

    /// Returns true if the sectors never fit into the cache.
    pub(super) fn is_too_small_for(&self, sectors: u64) -> bool {
        sectors > self.profile.sectors
    }

    /// Returns true if there is space for the sectors at `now_ns`. Dirty sectors and an extended
    /// run need no new space. The sectors that are being written share the segment of the run, or
    /// of the new sectors, that they adjoin.
    pub(super) fn has_room(&self, now_ns: u64, start: u64, end: u64) -> bool {
        let (mut sectors, mut runs) = (self.sectors + (end - start), self.runs.len() + 1);
        for (first, after) in self.touching(start, end) {
            sectors -= after.min(end).saturating_sub(first.max(start));
            runs -= 1;
        }
        if let Some(leaving) = self.leaving_at(now_ns) {
            let adjoins = |sector: u64| (start..=end).contains(&sector) || self.runs.contains_key(&sector);
            sectors += leaving.end - leaving.start;
            runs += usize::from(!adjoins(leaving.end));
        }
        sectors <= self.profile.sectors && runs <= self.profile.runs
    }

    fn leaving_at(&self, now_ns: u64) -> Option<Leaving> {
        Some(self.leaving).filter(|leaving| leaving.until_ns > now_ns)
    }

    /// The time at which the sectors that are being written at `now_ns` free their space.
    pub(super) fn space_ns(&self, now_ns: u64) -> Option<u64> {
        self.leaving_at(now_ns).map(|leaving| leaving.until_ns)
    }

    /// Marks the sectors as being written until `until_ns`.
    pub(super) fn leave(&mut self, start: u64, end: u64, until_ns: u64) {
        let left = match self.turn {
            Some((next, left)) if next == start => left,
            _ => self.profile.turn_sectors,
        };
        self.turn = Some((end, left.saturating_sub(end - start)));
        self.remove(start, end);
        self.leaving = Leaving { start, end, until_ns };
    }

    /// Adds sectors, for which there must be space.
    pub(super) fn add(&mut self, start: u64, end: u64) {
        let touched: Vec<(u64, u64)> = self.touching(start, end).collect();
        let (mut first, mut after) = (start, end);
        for run in touched {
            self.runs.remove(&run.0);
            self.sectors -= run.1 - run.0;
            (first, after) = (first.min(run.0), after.max(run.1));
        }
        self.runs.insert(first, after);
        self.sectors += after - first;
        self.draining |= self.level() >= self.profile.high;
    }

    /// Removes sectors that have been written or have become invalid.
    pub(super) fn remove(&mut self, start: u64, end: u64) {
        let overlapping: Vec<(u64, u64)> =
            self.touching(start, end).filter(|run| run.1 > start && run.0 < end).collect();
        for (first, after) in overlapping {
            self.runs.remove(&first);
            self.sectors -= after.min(end) - first.max(start);
            if first < start {
                self.runs.insert(first, start);
            }
            if after > end {
                self.runs.insert(end, after);
            }
        }
        self.draining &= !self.is_empty() && self.level() > self.profile.low;
    }

    /// Returns true if all sectors are dirty.
    pub(super) fn holds(&self, start: u64, end: u64) -> bool {
        self.runs.range(..=start).next_back().is_some_and(|(_, after)| *after >= end)
    }

    /// The sectors to write next: the rest of the run whose turn it is, if the arm is still there,
    /// or else the run with the shortest access time among the next ones upwards from sector `arm`,
    /// around the end of the disk.
    pub(super) fn nearest(&self, arm: u64, reach_ns: impl Fn(u64) -> u64) -> Option<(u64, u64)> {
        let turn = self.turn.filter(|(next, _)| *next == arm);
        if let Some((next, left)) = turn.filter(|(_, left)| *left > 0)
            && let Some(after) = self.runs.get(&next)
        {
            return Some((next, (*after).min(next + left)));
        }
        let upwards = self.runs.range(arm..).chain(self.runs.range(..arm)).take(WriteCache::WINDOW);
        let limit = self.profile.turn_sectors;
        let (first, after) = upwards
            .map(|(first, after)| (*first, *after))
            .filter(|(first, _)| self.runs.len() == 1 || turn.is_none_or(|(next, _)| next != *first))
            .min_by_key(|(first, _)| reach_ns(*first))?;
        Some((first, after.min(first + limit)))
    }

    /// The share of the sectors that are dirty.
    fn level(&self) -> f64 {
        self.sectors as f64 / self.profile.sectors as f64
    }

    /// The runs that overlap or adjoin `start..end`, downwards.
    fn touching(&self, start: u64, end: u64) -> impl Iterator<Item = (u64, u64)> {
        let runs = self.runs.range(..=end).rev().map(|(first, after)| (*first, *after));
        runs.take_while(move |(_, after)| *after >= start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(sectors: u64, runs: usize) -> WriteCache {
        WriteCache::new(&WriteCacheProfile { sectors, runs, high: 0.75, low: 0.25, idle_ns: 0, turn_sectors: 64 })
    }

    fn runs(cache: &WriteCache) -> Vec<(u64, u64)> {
        cache.runs.iter().map(|(first, after)| (*first, *after)).collect()
    }

    #[test]
    fn adjoining_and_overlapping_writes_become_one_run() {
        let mut cache = cache(1000, 10);
        cache.add(10, 20);
        cache.add(30, 40);
        assert_eq!(runs(&cache), [(10, 20), (30, 40)]);
        cache.add(20, 30);
        assert_eq!((runs(&cache), cache.sectors), (vec![(10, 40)], 30));
        cache.add(35, 50);
        cache.add(12, 13);
        assert_eq!((runs(&cache), cache.sectors), (vec![(10, 50)], 40));
    }

    #[test]
    fn removal_keeps_the_adjacent_sectors() {
        let mut cache = cache(1000, 10);
        cache.add(10, 40);
        cache.remove(20, 30);
        assert_eq!((runs(&cache), cache.sectors), (vec![(10, 20), (30, 40)], 20));
        cache.remove(0, 15);
        cache.remove(20, 30);
        cache.remove(35, 99);
        assert_eq!((runs(&cache), cache.sectors), (vec![(15, 20), (30, 35)], 10));
        assert!(cache.holds(16, 20) && !cache.holds(16, 21) && !cache.holds(20, 21));
    }

    #[test]
    fn only_new_sectors_and_new_runs_need_space() {
        let mut cache = cache(20, 2);
        cache.add(0, 10);
        cache.add(50, 55);
        assert!(cache.has_room(0, 55, 60) && !cache.has_room(0, 55, 61));
        assert!(!cache.has_room(0, 80, 81), "a third run");
        assert!(cache.has_room(0, 0, 10) && cache.has_room(0, 5, 15) && !cache.has_room(0, 5, 16));
        // A write of the gap from 10 to 50 would join the two runs to one of 55 sectors.
        assert!(!cache.has_room(0, 10, 50));
        assert!(cache.is_too_small_for(21) && !cache.is_too_small_for(20));
    }

    #[test]
    fn space_of_sectors_being_written_is_free_when_they_are_written() {
        let mut cache = cache(20, 2);
        cache.add(0, 10);
        cache.add(50, 60);
        cache.leave(0, 10, 1000);
        assert!(!cache.has_room(999, 100, 101) && cache.has_room(1000, 100, 110));
        assert_eq!((cache.space_ns(999), cache.space_ns(1000)), (Some(1000), None));
    }

    #[test]
    fn draining_lasts_from_the_high_mark_down_to_the_low_one() {
        let mut cache = cache(100, 100);
        cache.add(0, 74);
        assert!(!cache.is_draining());
        cache.add(74, 75);
        assert!(cache.is_draining());
        cache.remove(0, 49);
        assert!(cache.is_draining());
        cache.remove(49, 50);
        assert!(!cache.is_draining());
    }

    #[test]
    fn nearest_run_in_time_comes_first_and_far_ones_wait_for_the_sweep() {
        let mut cache = cache(1000, 1000);
        for index in 0..100 {
            cache.add(index * 10, index * 10 + 5);
        }
        // The 32 runs from 500 on: the last one, at 810, is the cheapest.
        assert_eq!(cache.nearest(500, |first| 1000 - first), Some((810, 815)));
        assert_eq!(cache.nearest(995, |first| first), Some((0, 5)));
    }
}
