//! The segments of a read-ahead buffer: which sectors each holds, and which was used longest ago.

use crate::profile::Replacement;

/// One segment: the sectors from `start` up to but not including `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Segment {
    pub(crate) start: u64,
    pub(crate) end: u64,
    used: u64,
}

/// All segments. An empty one has `start == end`.
#[derive(Debug, Clone)]
pub(crate) struct Segments {
    segments: Vec<Segment>,
    segment_sectors: u64,
    replacement: Replacement,
    clock: u64,
    /// The segment to be given up next, one after the other.
    next: usize,
}

impl Segments {
    /// `count` empty segments (0: no buffer) of `segment_sectors` each.
    pub(crate) fn new(count: u32, segment_sectors: u32, replacement: Replacement) -> Segments {
        let segments = vec![Segment::default(); count as usize];
        Segments { segments, segment_sectors: u64::from(segment_sectors), replacement, clock: 0, next: 0 }
    }

    /// How many sectors a segment holds.
    pub(crate) fn segment_sectors(&self) -> u64 {
        self.segment_sectors
    }

    /// The segment that holds `sector`, or that ends right before it. The former is preferred.
    pub(crate) fn find(&self, sector: u64) -> Option<usize> {
        if self.clock == 0 {
            // None was ever used.
            return None;
        }
        let mut adjoining = None;
        for (index, segment) in self.segments.iter().enumerate() {
            // One comparison that is nearly always false: on random sectors two would mispredict, and this is on the path of every
            // command.
            if sector.wrapping_sub(segment.start) > segment.end - segment.start {
                continue;
            }
            if sector < segment.end {
                return Some(index);
            }
            if segment.start < segment.end {
                adjoining = Some(index);
            }
        }
        adjoining
    }

    /// The sectors of segment `index`.
    pub(crate) fn get(&self, index: usize) -> Segment {
        self.segments.get(index).copied().unwrap_or_default()
    }

    /// Marks segment `index` as used now.
    pub(crate) fn touch(&mut self, index: usize) {
        self.clock += 1;
        if let Some(segment) = self.segments.get_mut(index) {
            segment.used = self.clock;
        }
    }

    /// Empties a segment, by age or by turn, to be filled from `start` on.
    pub(crate) fn replace(&mut self, start: u64) -> Option<usize> {
        let index = match self.replacement {
            Replacement::Lru => self.least_recent()?,
            Replacement::RoundRobin => self.next.checked_rem(self.segments.len())?,
        };
        self.next = index + 1;
        if let Some(segment) = self.segments.get_mut(index) {
            (segment.start, segment.end) = (start, start);
        }
        self.touch(index);
        Some(index)
    }

    /// The segment used longest ago; the first of several that never were.
    fn least_recent(&self) -> Option<usize> {
        let mut least = (0, self.segments.first()?.used);
        for (index, segment) in self.segments.iter().enumerate() {
            if segment.used < least.1 {
                least = (index, segment.used);
            }
        }
        Some(least.0)
    }

    /// Lets segment `index` reach to `end`; the oldest sectors are overwritten when it is full.
    pub(crate) fn fill(&mut self, index: usize, end: u64) {
        let size = self.segment_sectors;
        if let Some(segment) = self.segments.get_mut(index) {
            segment.end = segment.end.max(end);
            segment.start = segment.start.max(segment.end.saturating_sub(size));
        }
    }

    /// Forgets the sectors `start..end`, which are being written. A segment that held some of them keeps the longer of the parts
    /// before and after.
    pub(crate) fn forget(&mut self, start: u64, end: u64) {
        for segment in &mut self.segments {
            if segment.start < end && start < segment.end {
                let before = start.saturating_sub(segment.start);
                let after = segment.end.saturating_sub(end);
                if before == 0 && after == 0 {
                    *segment = Segment::default();
                } else if before >= after {
                    segment.end = start;
                } else {
                    segment.start = end;
                }
            }
        }
    }
}
