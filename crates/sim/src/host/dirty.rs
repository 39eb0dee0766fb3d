//! Dirty throttling of Linux 3.2 and later: how fast writers may make pages dirty.
//!
//! Writers do not write back themselves. The kernel pauses each writer for as long as the device
//! needs for the writer's share of the pages. The share is estimated from the rates at which pages
//! are written and become dirty. The control loop holds the number of dirty pages half-way between
//! two values: the free-run ceiling, below which no writer is paused, and the limit.
//!
//! The rules are those of W. Fengguang's "IO-less dirty throttling" (LinuxCon Japan 2011; J.
//! Corbet, "No-I/O dirty throttling", LWN, 31 August 2011). One device takes all writes here, so
//! the whole limit belongs to that device. Limits of control groups are not modelled.

/// Interval between updates of the bandwidth estimate, in ns.
const UPDATE_NS: u64 = 200_000_000;
/// Gap between two updates that counts as a time without load, in ns: the estimate skips it.
const QUIET_NS: u64 = 1_000_000_000;
/// Averaging time of the bandwidth estimate, in seconds.
const AVERAGE_S: f64 = 3.0;
/// Initial estimate of the device's write rate, in pages a second: 100 MiB/s.
const UNKNOWN_PAGES_PER_S: f64 = 25_600.0;
/// The longest pause of a writer, in ns.
pub(crate) const PAUSE_NS_MAX: u64 = 200_000_000;
/// Target pause when one writer has the device, in ns.
const PAUSE_NS: f64 = 10e6;
/// The minimum number of pages between two checks of a writer, unless its pauses become too long.
const POLL_PAGES: f64 = 32.0;

/// Limits of dirty memory, in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DirtyLimits {
    /// The flusher writes while more pages than this are dirty.
    pub background: u64,
    /// Limit of pages that are dirty or under write-back.
    pub most: u64,
}

/// Estimates for one device.
#[derive(Clone, Debug)]
pub(crate) struct Balance {
    looked_ns: u64,
    dirtied: u64,
    written: u64,
    /// Pages a second that the device writes: the recent rate, and the rate smoothed a second time.
    write_rate: f64,
    write_rate_smooth: f64,
    /// Pages a second that one writer may make dirty while the number of dirty pages is at its set
    /// point.
    writer_rate: f64,
    /// Writer rate at which as many pages would become dirty as are written.
    balanced_rate: f64,
}

/// The decision for one writer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PauseDecision {
    /// Time in ns that the writer's pages should have taken; `None` if the writer may make no more
    /// pages dirty for now.
    pub period_ns: Option<u64>,
    /// The longest pause that applies now, in ns.
    pub pause_ns_max: u64,
    /// Number of pages after which the writer is checked again.
    pub pages: u32,
}

impl DirtyLimits {
    /// Free-run ceiling: no writer is paused while fewer pages are dirty.
    pub fn free_run(self) -> u64 {
        (self.background + self.most) / 2
    }

    /// Pages between two checks of a writer below the free-run ceiling: the square root of the
    /// pages left, rounded to a power of two.
    pub fn poll_interval(self, dirty: u64) -> u32 {
        match self.most.checked_sub(dirty) {
            Some(left) if left > 0 => 1 << (left.ilog2() / 2).min(30),
            _ => 1,
        }
    }

    fn set_point(self) -> f64 {
        (self.free_run() + self.most) as f64 / 2.0
    }
}

impl Default for Balance {
    fn default() -> Self {
        Balance {
            looked_ns: 0,
            dirtied: 0,
            written: 0,
            write_rate: UNKNOWN_PAGES_PER_S,
            write_rate_smooth: UNKNOWN_PAGES_PER_S,
            writer_rate: UNKNOWN_PAGES_PER_S,
            balanced_rate: UNKNOWN_PAGES_PER_S,
        }
    }
}

impl Balance {
    /// Updates the estimates if the update interval is over. `dirtied` and `written` count pages
    /// since the start of the world; `dirty` pages are dirty or under write-back.
    pub fn update(&mut self, now_ns: u64, dirty: u64, limits: DirtyLimits, dirtied: u64, written: u64) {
        let elapsed_ns = now_ns - self.looked_ns;
        if elapsed_ns < UPDATE_NS {
            return;
        }
        if elapsed_ns <= QUIET_NS {
            let elapsed_s = elapsed_ns as f64 / 1e9;
            self.steer(dirty, limits, (dirtied - self.dirtied) as f64 / elapsed_s);
            self.learn((written - self.written) as f64 / elapsed_s, elapsed_s);
        }
        (self.looked_ns, self.dirtied, self.written) = (now_ns, dirtied, written);
    }

    /// Decides how long a writer that has made `pages` pages dirty is paused.
    pub fn decide(&self, pages: u32, dirty: u64, limits: DirtyLimits) -> PauseDecision {
        let rate = self.writer_rate * self.position(dirty, limits);
        // An eighth of the time that the device needs for the dirty pages: the device must not run
        // dry during a pause.
        let eighth_ns = dirty as f64 / self.write_rate_smooth.max(1.0) / 8.0 * 1e9;
        let pause_ns_max = eighth_ns.clamp(1e6, PAUSE_NS_MAX as f64);
        if rate < 1.0 {
            return PauseDecision { period_ns: None, pause_ns_max: pause_ns_max as u64, pages: 1 };
        }
        let period_ns = (f64::from(pages) / rate * 1e9) as u64;
        // Pauses grow with the number of writers: 10 ms more each time the number doubles.
        let sharers = (self.write_rate_smooth / self.writer_rate).max(1.0).log2();
        let aim_ns = (PAUSE_NS * (1.0 + sharers)).min(pause_ns_max / 2.0);
        let mut next = rate * aim_ns / 1e9;
        if next < POLL_PAGES {
            next = (rate * pause_ns_max / 1e9).min(POLL_PAGES);
        }
        PauseDecision { period_ns: Some(period_ns), pause_ns_max: pause_ns_max as u64, pages: (next as u32).max(1) }
    }

    /// Factor for the writers' rate that follows from the number of dirty pages: 1 at the set
    /// point, 0 at the limit, up to 2 far below. The time that the device needs for the difference
    /// flattens the curve.
    fn position(&self, dirty: u64, limits: DirtyLimits) -> f64 {
        if dirty >= limits.most {
            return 0.0;
        }
        let (set_point, dirty) = (limits.set_point(), dirty as f64);
        let off = (set_point - dirty) / (limits.most as f64 - set_point + 1.0);
        let global = (1.0 + off * off * off).clamp(0.0, 2.0);
        let span = (8.0 * self.write_rate_smooth).max(1.0);
        let own = ((set_point + span - dirty) / span).max(0.25);
        global * own
    }

    /// Moves the writers' rate towards the balanced rate, only if both the rate and the number of
    /// dirty pages call for the same direction.
    fn steer(&mut self, dirty: u64, limits: DirtyLimits, dirty_rate: f64) {
        let task_rate = self.writer_rate * self.position(dirty, limits) + 1.0;
        let balanced = (task_rate * self.write_rate_smooth / dirty_rate.max(1.0)).min(self.write_rate_smooth);
        let rate = self.writer_rate;
        let step = if (dirty as f64) < limits.set_point() {
            (self.balanced_rate.min(balanced).min(task_rate) - rate).max(0.0)
        } else {
            (rate - self.balanced_rate.max(balanced).max(task_rate)).max(0.0)
        };
        // A small difference is noise: the step is halved once for each time that it fits twice
        // into the rate. An eighth of the remaining step is taken.
        let halvings = (rate / (2.0 * step + 1.0)).min(1000.0).floor();
        let step = step * 0.5f64.powi(halvings as i32) / 8.0;
        self.writer_rate = if rate < balanced { rate + step } else { rate - step }.max(1.0);
        self.balanced_rate = balanced;
    }

    fn learn(&mut self, rate: f64, elapsed_s: f64) {
        let old = self.write_rate;
        self.write_rate = (rate * elapsed_s + old * (AVERAGE_S - elapsed_s)) / AVERAGE_S;
        // The smoothed rate follows only if the last update agrees with its direction.
        let smooth = self.write_rate_smooth;
        if (smooth > old && old >= rate) || (smooth < old && old <= rate) {
            self.write_rate_smooth += (old - smooth) / 8.0;
        }
        self.write_rate_smooth = self.write_rate_smooth.max(1.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: DirtyLimits = DirtyLimits { background: 10_000, most: 20_000 };

    #[test]
    fn the_set_point_is_half_way_between_free_run_and_limit() {
        assert_eq!((LIMITS.free_run(), LIMITS.set_point()), (15_000, 17_500.0));
        let balance = Balance::default();
        let [low, right, high] = [15_000, 17_500, 20_000].map(|dirty| balance.position(dirty, LIMITS));
        // At free run off = 2500 / 2501: twice the rate, and 2500 pages are 2500 / (8 * 25600)
        // more.
        assert!((low - 2.0 * (1.0 + 2500.0 / 204_800.0)).abs() < 0.01, "{low}");
        assert_eq!((right, high), (1.0, 0.0));
    }

    #[test]
    fn writers_converge_to_equal_shares_of_the_device_rate() {
        // A device of 5000 pages/s and four writers that use their full rate, from the set point
        // on.
        let (mut balance, mut dirty) = (Balance::default(), 17_500.0);
        let (mut dirtied, mut written) = (0.0, 0.0);
        for step in 1..=20_000 {
            // Steps of 10 ms: the number of dirty pages reacts to the writers without delay.
            let made = 4.0 * 0.01 * balance.writer_rate * balance.position(dirty as u64, LIMITS);
            dirtied += made;
            written += 50.0;
            dirty = f64::max(dirty + made - 50.0, 0.0);
            balance.update(step * UPDATE_NS / 20, dirty as u64, LIMITS, dirtied as u64, written as u64);
            assert!(dirty < 20_500.0, "{dirty} at {step}");
        }
        assert!((balance.write_rate_smooth - 5000.0).abs() < 250.0, "{balance:?}");
        let share = balance.writer_rate * balance.position(dirty as u64, LIMITS);
        assert!((share - 1250.0).abs() < 125.0, "{share} {dirty} {balance:?}");
    }

    #[test]
    fn a_pause_is_the_due_time_of_the_pages_and_the_limit_allows_no_page() {
        let balance = Balance { writer_rate: 1000.0, write_rate_smooth: 1000.0, ..Balance::default() };
        let verdict = balance.decide(50, 17_500, LIMITS);
        assert_eq!((verdict.period_ns, verdict.pause_ns_max), (Some(50_000_000), 200_000_000));
        // 10 ms would be 10 pages: too few, so 32 at once.
        assert_eq!(verdict.pages, 32);
        assert_eq!(balance.decide(50, 20_000, LIMITS).period_ns, None);
    }

    #[test]
    fn a_free_writer_is_checked_after_the_root_of_the_remaining_pages() {
        assert_eq!([0, 19_000, 19_999, 25_000].map(|dirty| LIMITS.poll_interval(dirty)), [128, 16, 1, 1]);
    }
}
