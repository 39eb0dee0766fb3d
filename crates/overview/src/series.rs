//! Sums over time buckets of equal length, which double whenever the trace exceeds them.

/// Maximum number of buckets of a series. When they are used up, each two become one. A chart of a
/// page is about 1,000 px wide.
pub(crate) const BUCKETS: usize = 2048;

/// Completed requests of a process in one bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counts {
    /// Number of completed reads.
    pub reads: u32,
    /// Number of completed writes.
    pub writes: u32,
    /// Number of completed flushes, discards and other requests.
    pub others: u32,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Sum of latencies (Q2C, or from the first recorded step), in ns.
    pub latency_ns: u64,
    /// Largest latency, in ns.
    pub latency_ns_max: u64,
    /// Sum of times in the drive (D2C), in ns.
    pub drive_ns: u64,
}

impl Counts {
    /// Adds other counts.
    pub fn add(&mut self, other: &Counts) {
        self.reads = self.reads.saturating_add(other.reads);
        self.writes = self.writes.saturating_add(other.writes);
        self.others = self.others.saturating_add(other.others);
        self.read_bytes = self.read_bytes.saturating_add(other.read_bytes);
        self.write_bytes = self.write_bytes.saturating_add(other.write_bytes);
        self.latency_ns = self.latency_ns.saturating_add(other.latency_ns);
        self.latency_ns_max = self.latency_ns_max.max(other.latency_ns_max);
        self.drive_ns = self.drive_ns.saturating_add(other.drive_ns);
    }
}

/// Duration of intervals of `N` kinds within each bucket. A long interval costs no more than a
/// short one: only its ends are recorded, and `settle` computes the buckets between them.
#[derive(Clone, Debug)]
pub(crate) struct IntervalSeries<const N: usize> {
    ns: Vec<[u64; N]>,
    /// Change of the number of intervals that cover the whole bucket, relative to the previous
    /// bucket.
    whole: Vec<[i32; N]>,
}

impl<const N: usize> IntervalSeries<N> {
    pub fn new() -> IntervalSeries<N> {
        IntervalSeries { ns: vec![[0; N]; BUCKETS], whole: vec![[0; N]; BUCKETS] }
    }

    /// Adds an interval in ns after the start of the trace. Buckets are `1 << shift` ns long. The
    /// part after the last bucket is ignored.
    pub fn add(&mut self, kind: usize, from_ns: u64, to_ns: u64, shift: u32) {
        if to_ns <= from_ns || kind >= N {
            return;
        }
        let (first, last) = ((from_ns >> shift) as usize, (to_ns >> shift) as usize);
        if first == last {
            return self.put(first, kind, to_ns - from_ns);
        }
        let width_ns = 1u64 << shift;
        self.put(first, kind, width_ns - (from_ns & (width_ns - 1)));
        self.put(last, kind, to_ns & (width_ns - 1));
        if last > first + 1 {
            self.step(first + 1, kind, 1);
            self.step(last, kind, -1);
        }
    }

    fn put(&mut self, bucket: usize, kind: usize, ns: u64) {
        if let Some(sum) = self.ns.get_mut(bucket).and_then(|bucket| bucket.get_mut(kind)) {
            *sum += ns;
        }
    }

    fn step(&mut self, bucket: usize, kind: usize, by: i32) {
        if let Some(step) = self.whole.get_mut(bucket).and_then(|bucket| bucket.get_mut(kind)) {
            *step += by;
        }
    }

    /// Adds the buckets between the ends of intervals to the sums.
    pub fn settle(&mut self, shift: u32) {
        let mut running = [0i64; N];
        for (ns, whole) in self.ns.iter_mut().zip(&mut self.whole) {
            for ((sum, running), step) in ns.iter_mut().zip(&mut running).zip(whole) {
                *running += i64::from(*step);
                *sum += u64::try_from(*running).unwrap_or(0) << shift;
                *step = 0;
            }
        }
    }

    /// Combines each two buckets into one of `1 << shift + 1` ns.
    pub fn fold(&mut self, shift: u32) {
        self.settle(shift);
        fold_pairs(&mut self.ns, [0; N], |into, other| {
            into.iter_mut().zip(other).for_each(|(into, other)| *into += other);
        });
    }

    /// Adds another series; both must be settled.
    pub fn absorb(&mut self, other: &IntervalSeries<N>) {
        for (into, other) in self.ns.iter_mut().zip(&other.ns) {
            into.iter_mut().zip(other).for_each(|(into, other)| *into += other);
        }
    }

    /// Returns the sums in ns; the series must be settled.
    pub fn ns(&self) -> &[[u64; N]] {
        &self.ns
    }
}

/// Combines each two neighbours in the first half and clears the second half.
pub(crate) fn fold_pairs<T: Copy>(values: &mut [T], empty: T, add: impl Fn(&mut T, &T)) {
    let half = values.len() / 2;
    for to in 0..half {
        let (Some(first), Some(second)) = (values.get(to * 2).cloned(), values.get(to * 2 + 1).cloned()) else {
            return;
        };
        let mut sum = first;
        add(&mut sum, &second);
        if let Some(slot) = values.get_mut(to) {
            *slot = sum;
        }
    }
    if let Some(rest) = values.get_mut(half..) {
        rest.fill(empty);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_distributed_over_all_buckets_that_it_covers() {
        // Buckets of 16 ns: the interval from 8 to 72 has 8, 16, 16, 16 and 8 ns.
        let mut cover = IntervalSeries::<1>::new();
        cover.add(0, 8, 72, 4);
        cover.settle(4);
        let first: Vec<u64> = cover.ns().iter().take(6).map(|[ns]| *ns).collect();
        assert_eq!(first, [8, 16, 16, 16, 8, 0]);
    }

    #[test]
    fn folding_keeps_every_nanosecond() {
        let (mut folded, mut whole) = (IntervalSeries::<2>::new(), IntervalSeries::<2>::new());
        for (from, to) in [(8, 72), (3, 5), (16, 32), (0, 100)] {
            folded.add(1, from, to, 4);
            whole.add(1, from, to, 5);
        }
        folded.fold(4);
        whole.settle(5);
        folded.settle(5);
        assert_eq!(folded.ns(), whole.ns());
        assert_eq!(folded.ns().iter().map(|[_, ns]| ns).sum::<u64>(), 64 + 2 + 16 + 100);
    }
}
