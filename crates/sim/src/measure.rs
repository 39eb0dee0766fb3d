//! Measurements: latencies, bandwidth over time, and the phases of the drive's time.

use std::borrow::Cow;

use hdrhistogram::Histogram;

/// Precision of percentiles: two digits, that is within 1 %, as in fio. Mean, deviation, minimum
/// and maximum are exact.
const SIGNIFICANT_DIGITS: u8 = 2;

/// The maximum number of bins of a histogram of latencies that stores only the bins in use.
pub const SPARSE_MAX: usize = 1024;

/// The counts of a histogram. Counters of 32 bits halve the memory of thousands of processes. A
/// full counter (four thousand million latencies within 1 % of each other) stays at its maximum.
#[derive(Clone, Debug)]
enum Counts {
    /// The bins in use, in ascending order, with their counts: a process of a few hundred requests
    /// needs a tenth of the memory of all bins.
    Sparse(Vec<(Bin, u32)>),
    /// All bins.
    Dense(Box<Histogram<u32>>),
}

impl Default for Counts {
    fn default() -> Self {
        Counts::Sparse(Vec::new())
    }
}

/// A bin of the histogram with two significant digits, as hdrhistogram divides values: 256 bins of
/// equal width, and 128 for each doubling after that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Bin(u32);

impl Bin {
    fn of(value: u64) -> Bin {
        let shift = 56 - (value | 255).leading_zeros();
        Bin(shift << 8 | (value >> shift) as u32)
    }

    /// The smallest value of the bin.
    fn least(self) -> u64 {
        u64::from(self.0 & 255) << (self.0 >> 8)
    }
}

impl Counts {
    fn add(&mut self, bin: Bin, count: u32) {
        match self {
            Counts::Sparse(bins) => match bins.binary_search_by_key(&bin, |known| known.0) {
                Ok(index) => bins[index].1 = bins[index].1.saturating_add(count),
                Err(index) if bins.len() < SPARSE_MAX => bins.insert(index, (bin, count)),
                Err(_) => {
                    self.make_dense();
                    self.add(bin, count);
                }
            },
            Counts::Dense(histogram) => {
                // A resizable histogram takes every value, so the call cannot fail.
                let _ = histogram.record_n(bin.least(), count);
            }
        }
    }

    fn make_dense(&mut self) {
        if let Counts::Sparse(_) = self
            && let Some(dense) = self.dense()
        {
            *self = Counts::Dense(Box::new(dense.into_owned()));
        }
    }

    /// All bins; `None` without values.
    fn dense(&self) -> Option<Cow<'_, Histogram<u32>>> {
        match self {
            Counts::Dense(histogram) => Some(Cow::Borrowed(histogram)),
            Counts::Sparse(bins) if bins.is_empty() => None,
            Counts::Sparse(bins) => {
                let mut histogram = Histogram::new(SIGNIFICANT_DIGITS).ok()?;
                for (bin, count) in bins {
                    let _ = histogram.record_n(bin.least(), *count);
                }
                Some(Cow::Owned(histogram))
            }
        }
    }
}

/// A histogram of latencies, in ns.
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    counts: Counts,
    count: u64,
    sum: u128,
    sum_of_squares: u128,
    min_ns: u64,
    max_ns: u64,
}

impl Latencies {
    /// Records a latency.
    pub fn record(&mut self, latency_ns: u64) {
        self.min_ns = if self.count == 0 { latency_ns } else { self.min_ns.min(latency_ns) };
        self.max_ns = self.max_ns.max(latency_ns);
        self.count += 1;
        self.sum += u128::from(latency_ns);
        self.sum_of_squares += u128::from(latency_ns) * u128::from(latency_ns);
        self.counts.add(Bin::of(latency_ns), 1);
    }

    /// Adds all latencies of another histogram.
    pub fn merge(&mut self, other: &Latencies) {
        if other.count == 0 {
            return;
        }
        self.min_ns = if self.count == 0 { other.min_ns } else { self.min_ns.min(other.min_ns) };
        self.max_ns = self.max_ns.max(other.max_ns);
        self.count += other.count;
        self.sum += other.sum;
        self.sum_of_squares += other.sum_of_squares;
        match &other.counts {
            Counts::Sparse(bins) => bins.iter().for_each(|(bin, count)| self.counts.add(*bin, *count)),
            Counts::Dense(theirs) => {
                self.counts.make_dense();
                match &mut self.counts {
                    Counts::Dense(mine) => drop(mine.add(&**theirs)),
                    Counts::Sparse(_) => self.counts = Counts::Dense(theirs.clone()),
                }
            }
        }
    }

    /// Number of latencies.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The mean, in ns; 0 without latencies.
    pub fn mean_ns(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }

    /// The standard deviation of the sample, in ns; 0 below two latencies.
    pub fn stddev_ns(&self) -> f64 {
        if self.count < 2 {
            return 0.0;
        }
        let (count, mean) = (self.count as f64, self.mean_ns());
        let squares = (self.sum_of_squares as f64 - count * mean * mean).max(0.0);
        (squares / (count - 1.0)).sqrt()
    }

    /// The minimum latency, in ns; 0 without latencies.
    pub fn min_ns(&self) -> u64 {
        self.min_ns
    }

    /// The greatest latency, in ns; 0 without latencies.
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// The latency in ns that `percent` percent of the latencies do not exceed, to within 1 %; 0
    /// without latencies.
    pub fn percentile_ns(&self, percent: f64) -> u64 {
        self.in_range(self.counts.dense().map_or(0, |histogram| histogram.value_at_percentile(percent)))
    }

    fn in_range(&self, value: u64) -> u64 {
        value.clamp(self.min_ns, self.max_ns)
    }

    /// The histogram's values in ascending order, each with the number of latencies that it stands
    /// for.
    pub fn bins(&self) -> impl Iterator<Item = (u64, u64)> + use<> {
        let bins: Vec<(u64, u64)> = self.counts.dense().map_or_else(Vec::new, |histogram| {
            let recorded = histogram.iter_recorded();
            recorded.map(|step| (step.value_iterated_to(), step.count_since_last_iteration())).collect()
        });
        bins.into_iter()
    }

    /// Summarises the latencies.
    pub fn summary(&self) -> Latency {
        let all = self.counts.dense();
        let percentile = |percent| self.in_range(all.as_ref().map_or(0, |bins| bins.value_at_percentile(percent)));
        Latency {
            n: self.count,
            mean: self.mean_ns(),
            stddev: self.stddev_ns(),
            min: self.min_ns,
            p50: percentile(50.0),
            p90: percentile(90.0),
            p99: percentile(99.0),
            p999: percentile(99.9),
            max: self.max_ns,
        }
    }
}

/// A summary of latencies. All fields but `n` are in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Latency {
    /// Number of latencies.
    pub n: u64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation of the sample.
    pub stddev: f64,
    /// The minimum latency.
    pub min: u64,
    /// Median (50th percentile).
    pub p50: u64,
    /// 90th percentile.
    pub p90: u64,
    /// 99th percentile.
    pub p99: u64,
    /// 99.9th percentile.
    pub p999: u64,
    /// Greatest latency.
    pub max: u64,
}

/// The maximum number of windows of all processes together; the maximum and the minimum of one
/// process.
const WINDOWS_OF_ALL: usize = 1 << 22;
const WINDOWS_MAX: usize = 1 << 20;
const WINDOWS_MIN: usize = 1 << 6;

/// Returns the number of windows or samples of each of `processes` processes. It bounds memory,
/// however long the run is.
pub fn windows_of_each(processes: usize) -> usize {
    (WINDOWS_OF_ALL / processes.max(1)).clamp(WINDOWS_MIN, WINDOWS_MAX)
}

/// Bytes and requests that completed in consecutive windows of time. If a run has more windows than
/// the maximum (a million by default), neighbouring windows are combined and the window length
/// doubles.
#[derive(Clone, Debug)]
pub struct Windows {
    window_ns: u64,
    most: u64,
    windows: Vec<Window>,
}

/// One window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Window {
    /// Bytes moved in the window.
    pub bytes: u64,
    /// Requests completed in the window.
    pub ios: u64,
}

impl Windows {
    /// Creates windows of this length, at least 1 ns.
    pub fn new(window_ns: u64) -> Windows {
        Windows::of_at_most(WINDOWS_MAX, window_ns)
    }

    /// Creates at most `most` windows (at least 1) of this length.
    pub fn of_at_most(most: usize, window_ns: u64) -> Windows {
        Windows { window_ns: window_ns.max(1), most: most.max(1) as u64, windows: Vec::new() }
    }

    /// Records a request that completed `at_ns` after the start.
    pub fn record(&mut self, at_ns: u64, bytes: u64) {
        while at_ns / self.window_ns >= self.most {
            self.halve();
        }
        let index = (at_ns / self.window_ns) as usize;
        if index >= self.windows.len() {
            self.windows.resize(index + 1, Window::default());
        }
        self.windows[index].bytes += bytes;
        self.windows[index].ios += 1;
    }

    /// Combines windows in pairs.
    fn halve(&mut self) {
        let pair = |pair: &[Window]| Window {
            bytes: pair.iter().map(|window| window.bytes).sum(),
            ios: pair.iter().map(|window| window.ios).sum(),
        };
        self.windows = self.windows.chunks(2).map(pair).collect();
        self.window_ns = self.window_ns.saturating_mul(2);
    }

    /// These windows with a length of at least `window_ns`, doubled until they have it.
    pub(crate) fn widened(&self, window_ns: u64) -> Cow<'_, Windows> {
        let mut windows = Cow::Borrowed(self);
        while windows.window_ns < window_ns {
            windows.to_mut().halve();
        }
        windows
    }

    /// The sum of both, in windows of the longer length.
    pub(crate) fn sum(&self, other: &Windows) -> Windows {
        let mut sum = self.widened(other.window_ns).into_owned();
        let other = other.widened(sum.window_ns);
        if other.windows.len() > sum.windows.len() {
            sum.windows.resize(other.windows.len(), Window::default());
        }
        for (sum, other) in sum.windows.iter_mut().zip(&other.windows) {
            sum.bytes += other.bytes;
            sum.ios += other.ios;
        }
        sum
    }

    /// The length of a window, in ns.
    pub fn window_ns(&self) -> u64 {
        self.window_ns
    }

    /// The windows, up to the last one in which a request completed.
    pub fn all(&self) -> &[Window] {
        &self.windows
    }

    /// The windows by value.
    pub(crate) fn into_all(self) -> Vec<Window> {
        self.windows
    }

    /// Bytes a second of each window that ended by `runtime_ns`; a window that was cut short is
    /// left out.
    pub fn bytes_per_s(&self, runtime_ns: u64) -> Vec<u64> {
        self.rates(runtime_ns, |window| window.bytes)
    }

    /// Requests a second of each window that ended by `runtime_ns`.
    pub fn ios_per_s(&self, runtime_ns: u64) -> Vec<u64> {
        self.rates(runtime_ns, |window| window.ios)
    }

    fn rates(&self, runtime_ns: u64, of: impl Fn(&Window) -> u64) -> Vec<u64> {
        let whole = (runtime_ns / self.window_ns) as usize;
        let seen = self.windows.iter().map(|window| rate(of(window), self.window_ns));
        seen.chain(std::iter::repeat(0)).take(whole).collect()
    }
}

/// Length of a round of a stream with deadlines, in ns.
const ROUND_NS: u64 = 1_000_000_000;

/// Number of rounds of a second that ended without the data that was due in them.
///
/// A process with a rate asks for a block of `block_bytes` (its smallest) whenever the rate allows
/// it, and each block is due a second later. The process has missed round k, counted from 0, if by
/// the end of the round it has fewer than the `k * rate / block_bytes + 1` blocks (rounded down)
/// that were due by the start of the round. Returns `None` if windows do not divide a second.
pub fn deadline_misses(windows: &Windows, runtime_ns: u64, bytes_per_s: u64, block_bytes: u64) -> Option<u64> {
    let each = ROUND_NS.is_multiple_of(windows.window_ns).then(|| (ROUND_NS / windows.window_ns) as usize)?;
    let block_bytes = block_bytes.max(1);
    let (mut bytes, mut missed) = (0, 0);
    for round in 0..runtime_ns / ROUND_NS {
        let of_round = windows.windows.iter().skip(round as usize * each).take(each);
        bytes += of_round.map(|window| window.bytes).sum::<u64>();
        let due = (round.saturating_mul(bytes_per_s) / block_bytes + 1).saturating_mul(block_bytes);
        missed += u64::from(bytes < due);
    }
    Some(missed)
}

/// A sample of a process's bandwidth: over the time since the sample before, or since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct BandwidthSample {
    /// Time of the sample, in ns since the process's start.
    pub at_ns: u64,
    /// Bytes a second since the sample before.
    pub bytes_per_s: u64,
}

/// Samples of a process's bandwidth in both directions, taken when requests complete. Beyond the
/// maximum, samples are combined in pairs, and taken half as often from then on.
#[derive(Clone, Debug)]
pub(crate) struct Sampler {
    window_ns: u64,
    most: usize,
    since_ns: u64,
    bytes: u64,
    pub taken: Vec<BandwidthSample>,
}

impl Sampler {
    /// Creates a sampler whose samples are at least `window_ns` apart, with at most `most` samples.
    pub fn new(most: usize, window_ns: u64) -> Sampler {
        Sampler { window_ns: window_ns.max(1), most: most.max(2), since_ns: 0, bytes: 0, taken: Vec::new() }
    }

    /// Records the completion of a request; times count from the start.
    pub fn record(&mut self, at_ns: u64, bytes: u64) {
        self.bytes += bytes;
        let span_ns = at_ns.saturating_sub(self.since_ns);
        if span_ns < self.window_ns {
            return;
        }
        if self.taken.len() >= self.most {
            self.halve();
        }
        self.taken.push(BandwidthSample { at_ns, bytes_per_s: rate(self.bytes, span_ns) });
        (self.since_ns, self.bytes) = (at_ns, 0);
    }

    fn halve(&mut self) {
        let mut since_ns = 0;
        let mut both = |pair: &[BandwidthSample]| {
            let (mut bytes, begun_ns) = (0u128, since_ns);
            for sample in pair {
                bytes += u128::from(sample.bytes_per_s) * u128::from(sample.at_ns - since_ns);
                since_ns = sample.at_ns;
            }
            let bytes_per_s = bytes / u128::from((since_ns - begun_ns).max(1));
            BandwidthSample { at_ns: since_ns, bytes_per_s: bytes_per_s as u64 }
        };
        self.taken = self.taken.chunks(2).map(&mut both).collect();
        self.window_ns = self.window_ns.saturating_mul(2);
    }
}

fn rate(count: u64, span_ns: u64) -> u64 {
    (u128::from(count) * 1_000_000_000 / u128::from(span_ns.max(1))) as u64
}

/// Jain's index of fairness (Jain, Chiu & Hawe, DEC-TR-301, 1984): 1 when all shares are equal, 1/n
/// when one has all.
pub fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    if squares == 0.0 { 1.0 } else { sum * sum / (shares.len() as f64 * squares) }
}

/// The phases of the drive's time, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct DriveTime {
    /// Command processing and the interface.
    pub overhead: u64,
    /// Moving the arm.
    pub seek: u64,
    /// Waiting for sectors to come under the head.
    pub rotation: u64,
    /// Transferring data under the head.
    pub transfer: u64,
    /// Idle: no request, or the elevator held requests back.
    pub idle: u64,
}

impl DriveTime {
    /// The share of a run that the drive spent on seeking and waiting for the platter, 0 to 1.
    pub fn arm_share(&self, runtime_ns: u64) -> f64 {
        if runtime_ns == 0 { 0.0 } else { (self.seek + self.rotation) as f64 / runtime_ns as f64 }
    }
}

/// The rate of `bytes` in `ns`, in bytes a second; 0 for a time of 0.
pub fn bytes_per_s(bytes: u64, ns: u64) -> f64 {
    if ns == 0 { 0.0 } else { bytes as f64 * 1e9 / ns as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_deviation_are_exact_and_percentiles_within_a_percent() {
        let mut latencies = Latencies::default();
        let mut half = Latencies::default();
        for value in 1..=1000u64 {
            if value % 2 == 0 { &mut half } else { &mut latencies }.record(value * 1000);
        }
        latencies.merge(&half);
        let summary = latencies.summary();
        assert_eq!((summary.n, summary.min, summary.max), (1000, 1000, 1_000_000));
        assert!((summary.mean - 500_500.0).abs() < 1e-6);
        // The variance of 1..=n is n(n+1)/12 for the sample: 1000 * 1001 / 12.
        assert!((summary.stddev - 1000.0 * (1000.0f64 * 1001.0 / 12.0).sqrt()).abs() < 1e-3);
        assert!((summary.p99 as f64 / 990_000.0 - 1.0).abs() < 0.01, "{}", summary.p99);
    }

    #[test]
    fn bins_are_those_of_the_histogram_with_all_bins() {
        let mut latencies = Latencies::default();
        let mut all = Histogram::<u32>::new(SIGNIFICANT_DIGITS).unwrap();
        let mut value = 1u64;
        // More than 1024 bins, so that the sparse form is left on the way.
        for step in 0..6000u64 {
            value = value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(step);
            let latency_ns = value >> (24 + step % 40);
            latencies.record(latency_ns);
            all.record(latency_ns).unwrap();
            if [100, 1000, 5999].contains(&step) {
                let expected: Vec<_> = all
                    .iter_recorded()
                    .map(|step| (step.value_iterated_to(), step.count_since_last_iteration()))
                    .collect();
                assert_eq!(latencies.bins().collect::<Vec<_>>(), expected);
            }
        }
        assert!(matches!(latencies.counts, Counts::Dense(_)));
        let mut sum = Latencies::default();
        sum.record(7);
        sum.merge(&latencies);
        assert_eq!((sum.count(), sum.percentile_ns(99.0)), (6001, latencies.percentile_ns(99.0)));
    }

    #[test]
    fn complete_windows_have_a_rate_and_empty_ones_have_zero() {
        let mut windows = Windows::new(500_000_000);
        windows.record(0, 1000);
        windows.record(499_999_999, 1000);
        windows.record(1_000_000_000, 500);
        assert_eq!(windows.bytes_per_s(1_700_000_000), [4000, 0, 1000]);
        assert_eq!(windows.ios_per_s(1_000_000_000), [4, 0]);
    }

    #[test]
    fn a_round_is_missed_if_earlier_due_blocks_are_incomplete() {
        let mut windows = Windows::new(500_000_000);
        // 3 bytes a second, in one block: the second block comes 0.1 s after its round, the third
        // in time.
        for at_ns in [400_000_000, 2_100_000_000, 2_900_000_000] {
            windows.record(at_ns, 3);
        }
        assert_eq!(deadline_misses(&windows, 3_999_999_999, 3, 3), Some(1));
        // The fourth round has no data.
        assert_eq!(deadline_misses(&windows, 4_000_000_000, 3, 3), Some(2));
        // In blocks of 1 byte, 1, 4, 7 and 10 blocks are due: the first at once, each a second
        // later.
        assert_eq!(deadline_misses(&windows, 4_000_000_000, 3, 1), Some(2));
        assert_eq!(deadline_misses(&Windows::new(300_000_000), 4_000_000_000, 3, 1), None);
    }

    #[test]
    fn a_long_run_doubles_windows_and_keeps_all_bytes() {
        let mut windows = Windows::new(1000);
        windows.record(1500, 7);
        windows.record(1000 << 20, 5);
        windows.record(3000 << 20, 3);
        assert_eq!(windows.window_ns(), 4000);
        assert_eq!(windows.all()[0], Window { bytes: 7, ios: 1 });
        assert_eq!(windows.all().iter().map(|window| window.bytes).sum::<u64>(), 15);
    }

    #[test]
    fn sums_of_windows_of_different_lengths_have_the_longer_one() {
        let (mut long, mut short) = (Windows::of_at_most(4, 1000), Windows::of_at_most(4, 1000));
        for at_ns in [500, 1500, 5500] {
            long.record(at_ns, 1);
        }
        for at_ns in [500, 1500, 3500] {
            short.record(at_ns, 10);
        }
        assert_eq!((long.window_ns(), short.window_ns()), (2000, 1000));
        for sum in [long.sum(&short), short.sum(&long)] {
            let bytes: Vec<u64> = sum.all().iter().map(|window| window.bytes).collect();
            assert_eq!((sum.window_ns(), bytes), (2000, vec![22, 10, 1]));
        }
    }

    #[test]
    fn combined_samples_keep_their_bytes() {
        let mut sampler = Sampler::new(4, 1_000_000_000);
        for second in 1..=5u64 {
            sampler.record(second * 1_000_000_000, second * 100);
        }
        let samples: Vec<(u64, u64)> =
            sampler.taken.iter().map(|sample| (sample.at_ns / 1_000_000_000, sample.bytes_per_s)).collect();
        assert_eq!(samples, [(2, 150), (4, 350), (5, 500)]);
        sampler.record(6_000_000_000, 600);
        sampler.record(7_000_000_000, 700);
        assert_eq!(sampler.taken.last().map(|sample| sample.bytes_per_s), Some(650), "over two seconds now");
    }

    #[test]
    fn the_number_of_windows_is_divided_among_processes() {
        assert_eq!([1, 4, 64, 4096, 65_536].map(windows_of_each), [1 << 20, 1 << 20, 1 << 16, 1 << 10, 1 << 6]);
    }

    #[test]
    fn jains_index_is_1_for_equal_shares_and_1_over_n_for_one_share() {
        assert!((jain(&[3.0; 8]) - 1.0).abs() < 1e-12);
        assert!((jain(&[5.0, 0.0, 0.0, 0.0]) - 0.25).abs() < 1e-12);
    }
}
