//! The segments of a read-ahead buffer.

use crate::profile::Replacement;

/// The sectors from `start` up to but not including `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Segment {
    pub(crate) start: u64,
    pub(crate) end: u64,
    used: u64,
}

/// All segments. An empty segment has `start == end`, an unused one `end == 0`.
#[derive(Debug, Clone)]
pub(crate) struct Segments {
    segments: Vec<Segment>,
    segment_sectors: u64,
    replacement: Replacement,
    clock: u64,
    /// The segment that is replaced next in round-robin order.
    next: usize,
}

impl Segments {
    /// Creates `count` empty segments of `segment_sectors` each; 0 segments for no buffer.
    pub(crate) fn new(count: u32, segment_sectors: u32, replacement: Replacement) -> Segments {
        let segments = vec![Segment::default(); count as usize];
        Segments { segments, segment_sectors: u64::from(segment_sectors), replacement, clock: 0, next: 0 }
    }

    /// Sectors of a segment.
    pub(crate) fn segment_sectors(&self) -> u64 {
        self.segment_sectors
    }

    /// The segment that holds `sector`, or else one that ends right before it.
    pub(crate) fn find(&self, sector: u64) -> Option<usize> {
        if self.clock == 0 {
            // No segment has been used yet.
            return None;
        }
        let mut adjoining = None;
        for (index, segment) in self.segments.iter().enumerate() {
            // One comparison that is nearly always false. On random sectors two would mispredict,
            // and every command passes here.
            if sector.wrapping_sub(segment.start) > segment.end - segment.start {
                continue;
            }
            if sector < segment.end {
                return Some(index);
            }
            if segment.end > 0 {
                adjoining = Some(index);
            }
        }
        adjoining
    }

    /// The sectors of segment `index`.
    pub(crate) fn get(&self, index: usize) -> Segment {
        self.segments.get(index).copied().unwrap_or_default()
    }

    /// Marks segment `index` as the most recently used.
    pub(crate) fn touch(&mut self, index: usize) {
        self.clock += 1;
        if let Some(segment) = self.segments.get_mut(index) {
            segment.used = self.clock;
        }
    }

    /// Empties the segment chosen by the replacement policy. It will be filled from `start` on.
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

    /// The least recently used segment; the first of several unused ones.
    fn least_recent(&self) -> Option<usize> {
        let mut least = (0, self.segments.first()?.used);
        for (index, segment) in self.segments.iter().enumerate() {
            if segment.used < least.1 {
                least = (index, segment.used);
            }
        }
        Some(least.0)
    }

    /// Extends segment `index` to `end`. The oldest sectors are dropped when the segment is full.
    pub(crate) fn fill(&mut self, index: usize, end: u64) {
        let size = self.segment_sectors;
        if let Some(segment) = self.segments.get_mut(index) {
            segment.end = segment.end.max(end);
            segment.start = segment.start.max(segment.end.saturating_sub(size));
        }
    }

    /// Drops the sectors of segment `index` before `sector`. An empty segment can still be
    /// continued.
    pub(crate) fn drop_before(&mut self, index: usize, sector: u64) {
        if let Some(segment) = self.segments.get_mut(index) {
            segment.start = sector.clamp(segment.start, segment.end);
        }
    }

    /// Empties all segments.
    pub(crate) fn clear(&mut self) {
        self.segments.fill(Segment::default());
    }

    /// Drops the sectors `start..end` because they are being written. A segment that held some of
    /// them keeps the longer of the remaining parts.
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
