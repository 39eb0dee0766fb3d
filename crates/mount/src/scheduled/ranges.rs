//! Sorted, disjoint byte ranges of a file, limited in number.

/// Maximum number of ranges of a file. Beyond it the two nearest ranges are merged across their
/// gap, or the smallest range is left to the kernel's own write-back.
const RANGES_MAX: usize = 512;
/// Maximum gap in bytes across which two ranges are merged: 1 MiB.
const GAP_MAX: u64 = 1 << 20;

/// Byte ranges of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ranges {
    /// First byte and end (exclusive) of each range, in order; no two ranges touch.
    ranges: Vec<(u64, u64)>,
    bytes: u64,
}

impl Ranges {
    /// Returns the total length in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns true if there are no ranges.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Adds a range. Returns the change of the total length, which is negative if another range was
    /// dropped.
    pub fn add(&mut self, start: u64, end: u64) -> i64 {
        let before = self.bytes;
        if end <= start {
            return 0;
        }
        // The common case is a sequential writer.
        if let Some(last) = self.ranges.last_mut().filter(|last| (last.0..=last.1).contains(&start)) {
            let longer = end.saturating_sub(last.1);
            last.1 += longer;
            self.bytes += longer;
            return longer as i64;
        }
        let from = self.ranges.partition_point(|range| range.1 < start);
        let to = self.ranges.partition_point(|range| range.0 <= end);
        let touched = self.ranges.get(from..to).unwrap_or_default();
        let start = touched.first().map_or(start, |first| first.0.min(start));
        let end = touched.last().map_or(end, |last| last.1.max(end));
        self.bytes += end - start - touched.iter().map(|range| range.1 - range.0).sum::<u64>();
        self.ranges.splice(from..to, [(start, end)]);
        if self.ranges.len() > RANGES_MAX {
            self.make_room();
        }
        self.bytes.wrapping_sub(before) as i64
    }

    /// Removes at most `max_bytes` bytes from the front and returns their range.
    pub fn take(&mut self, max_bytes: u64) -> Option<(u64, u64)> {
        let first = self.ranges.first_mut()?;
        let (start, end) = (first.0, first.1.min(first.0.saturating_add(max_bytes.max(1))));
        first.0 = end;
        if first.0 == first.1 {
            self.ranges.remove(0);
        }
        self.bytes -= end - start;
        Some((start, end))
    }

    /// Merges the two nearest ranges, or drops the smallest if they are too far apart.
    fn make_room(&mut self) {
        let gap = |at: usize| Some(self.ranges.get(at + 1)?.0 - self.ranges.get(at)?.1);
        let Some(at) = (0..self.ranges.len().saturating_sub(1)).min_by_key(|at| gap(*at)) else { return };
        if gap(at).is_some_and(|gap| gap > GAP_MAX) {
            let sizes = self.ranges.iter().map(|range| range.1 - range.0).enumerate();
            if let Some((at, bytes)) = sizes.min_by_key(|(_, bytes)| *bytes) {
                self.ranges.remove(at);
                self.bytes -= bytes;
            }
            return;
        }
        self.bytes += gap(at).unwrap_or(0);
        let behind = self.ranges.remove(at + 1);
        if let Some(first) = self.ranges.get_mut(at) {
            first.1 = behind.1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn ranges_equal_a_set_of_bytes(added in prop::collection::vec((0u64..200, 0u64..20), 0..60), most in 1u64..30) {
            let (mut ranges, mut set) = (Ranges::default(), BTreeSet::new());
            for (start, length) in added {
                let before = set.len();
                set.extend(start..start + length);
                prop_assert_eq!(ranges.add(start, start + length), (set.len() - before) as i64);
                prop_assert!(ranges.ranges.windows(2).all(|pair| pair[0].1 < pair[1].0));
            }
            prop_assert_eq!(ranges.bytes(), set.len() as u64);
            let mut taken = Vec::new();
            while let Some((start, end)) = ranges.take(most) {
                prop_assert!(end - start <= most);
                taken.extend(start..end);
            }
            prop_assert_eq!(taken, set.into_iter().collect::<Vec<_>>());
            prop_assert!(ranges.is_empty() && ranges.bytes() == 0);
        }
    }

    #[test]
    fn the_number_of_ranges_is_limited() {
        let mut ranges = Ranges::default();
        for at in (0..2 * RANGES_MAX as u64).rev() {
            ranges.add(at * 100, at * 100 + 10);
        }
        assert_eq!(ranges.ranges.len(), RANGES_MAX);
        let held: u64 = ranges.ranges.iter().map(|range| range.1 - range.0).sum();
        assert_eq!(ranges.bytes(), held);
    }

    #[test]
    fn distant_ranges_are_not_merged() {
        let mut ranges = Ranges::default();
        let mut counted = 0;
        for at in 0..4 * RANGES_MAX as u64 {
            counted += ranges.add(at << 30, (at << 30) + 4096);
        }
        assert_eq!(ranges.ranges.len(), RANGES_MAX);
        assert_eq!(ranges.bytes(), RANGES_MAX as u64 * 4096);
        assert_eq!(counted, RANGES_MAX as i64 * 4096);
    }
}
