//! Turnarounds of recorded processes: the times from a completion to the next request, as a
//! function of how long the machine was idle before that completion.
//!
//! A processor that was idle for long wakes up late: it left a deep idle state, its caches are
//! cold, and its timers fire late. So the same process submits later after a seek than after a
//! hit in the drive's buffer, and an elevator that changes the waits changes the turnarounds.

/// The greatest idle time that counts, as a multiple of the longest recorded one.
const BEYOND_MAX: u64 = 4;

/// The time that a machine takes to wake up, as a function of its idle time. The default is a
/// machine that wakes up at once.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WakeUp {
    /// Increase in ns of a turnaround with [`WakeUp::root`] of the idle time.
    pub growth: f64,
    /// The longest recorded idle time in ns.
    pub recorded_max_ns: u64,
}

impl WakeUp {
    /// The fourth root of an idle time in ns. On a virtual machine, turnarounds grew by 8 us from 1
    /// to 2 ms, by 33 us from 8 to 16 ms, and by 100 us from 0.7 to 10 ms.
    pub fn root(idle_ns: u64) -> f64 {
        (idle_ns as f64).sqrt().sqrt()
    }

    /// The think time in ns after an idle time of `idle_ns`, for a recorded one after an idle time
    /// of `recorded_idle_ns`.
    pub fn think_ns(self, think_ns: u64, recorded_idle_ns: u64, idle_ns: u64) -> u64 {
        let idle_ns = idle_ns.min(self.recorded_max_ns.saturating_mul(BEYOND_MAX));
        let change_ns = self.growth * (WakeUp::root(idle_ns) - WakeUp::root(recorded_idle_ns));
        // A wake-up takes at most half of a turnaround.
        (think_ns as f64 + change_ns).max(think_ns as f64 / 2.0) as u64
    }
}

/// The last time at which a recorded process submitted a request or received a completion.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Activity {
    last_ns: u64,
    /// Time in ns without activity before the last one.
    pub(crate) idle_ns: u64,
}

impl Activity {
    /// Adds an activity. Activities at the same time have the same idle time before them.
    pub(crate) fn note(&mut self, now_ns: u64) {
        if now_ns > self.last_ns {
            *self = Activity { last_ns: now_ns, idle_ns: now_ns - self.last_ns };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1_000;

    #[test]
    fn a_turnaround_changes_with_the_fourth_root_of_the_idle_time() {
        // 1 us for each unit: 32 us after 1.05 ms, twice as much after 16.8 ms.
        let wake_up = WakeUp { growth: 1_000.0, recorded_max_ns: 1 << 24 };
        let think_us = |idle_ns: u64| wake_up.think_ns(200 * US, 1 << 24, idle_ns) / US;
        assert_eq!([1 << 24, 1 << 20, 1 << 16, 0].map(think_us), [200, 168, 152, 136]);
        assert_eq!(wake_up.think_ns(200 * US, 1 << 20, 1 << 24) / US, 232);
        assert_eq!(think_us(1 << 26), think_us(1 << 40), "beyond four times the longest one, no more is added");
        assert_eq!(wake_up.think_ns(20 * US, 1 << 24, 0) / US, 10, "at most half is taken away");
    }

    #[test]
    fn activities_at_the_same_time_have_the_same_idle_time_before_them() {
        let mut activity = Activity::default();
        let idle_ns = [10, 10, 25].map(|now_ns| {
            activity.note(now_ns);
            activity.idle_ns
        });
        assert_eq!(idle_ns, [10, 10, 15]);
    }

    #[test]
    fn a_machine_that_wakes_up_at_once_keeps_the_think_times() {
        assert_eq!(WakeUp::default().think_ns(7_654_321, 1, 1 << 40), 7_654_321);
    }
}
