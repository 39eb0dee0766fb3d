//! The clock and the timers of a queue: nanoseconds, and ticks of HZ since boot.

/// The grain of the kernel's clock and the time of boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockConfig {
    /// Ticks a second, 1 to 1000. Kernels commonly used 1000, 250 and 100. The older elevators
    /// count in whole ticks.
    pub hz: u32,
    /// The uptime at the host's time 0, in ns. It matters where an elevator uses time 0 as "never".
    pub uptime_ns: u64,
}

const NS_PER_MS: u64 = 1_000_000;

impl Default for ClockConfig {
    /// 1000 Hz, ten seconds after boot.
    fn default() -> Self {
        ClockConfig { hz: 1000, uptime_ns: 10_000_000_000 }
    }
}

/// The clock of one queue. The host sets it; it never reads a time source.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    now_ns: u64,
    ticks: u64,
    /// Whole milliseconds since boot.
    ms: u64,
    /// The host's time at which the next tick or millisecond begins.
    next_unit_ns: u64,
    tick_ns: u64,
    uptime_ns: u64,
    /// The unit of [`Self::counted_ns`] in ns: 1, or the length of a tick.
    grain_ns: u64,
}

impl Clock {
    /// Creates a clock. `in_ticks` selects whole ticks for elevators that once counted in ticks;
    /// otherwise they count in ns.
    pub fn new(config: ClockConfig, in_ticks: bool, now_ns: u64) -> Clock {
        let tick_ns = 1_000_000_000 / u64::from(config.hz.clamp(1, 1000));
        // Half the range of u64 is 292 years, enough for both terms of the sum.
        let uptime_ns = config.uptime_ns.min(u64::MAX / 2);
        let grain_ns = if in_ticks { tick_ns } else { 1 };
        let mut clock = Clock { now_ns: 0, ticks: 0, ms: 0, next_unit_ns: 0, tick_ns, uptime_ns, grain_ns };
        clock.set(now_ns);
        clock
    }

    /// Sets the time in ns. A time before the current one is ignored.
    #[inline]
    pub fn set(&mut self, now_ns: u64) {
        self.now_ns = self.now_ns.max(now_ns);
        if self.now_ns >= self.next_unit_ns {
            self.find_units();
        }
    }

    /// The host's time in ns.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// The time since boot in ns, for elevators with a fine clock.
    #[inline]
    pub fn ktime_ns(&self) -> u64 {
        self.now_ns.saturating_add(self.uptime_ns)
    }

    /// The time since boot in ns, for elevators that counted in ticks before they counted in ns.
    #[inline]
    pub fn counted_ns(&self) -> u64 {
        if self.grain_ns > 1 { self.ticks.saturating_mul(self.tick_ns) } else { self.ktime_ns() }
    }

    /// Converts a host time in ns to the unit of [`Self::counted_ns`].
    #[inline]
    pub fn counted_at(&self, host_ns: u64) -> u64 {
        let ktime_ns = host_ns.saturating_add(self.uptime_ns);
        if self.grain_ns <= 1 {
            return ktime_ns;
        }
        ktime_ns.saturating_sub(ktime_ns.checked_rem(self.grain_ns).unwrap_or(0))
    }

    /// Converts a duration in ns to the unit of [`Self::counted_ns`]: whole ticks, rounded down, at
    /// least one; or unchanged.
    #[inline]
    pub fn counted_length(&self, ns: u64) -> u64 {
        if self.grain_ns <= 1 {
            return ns;
        }
        let whole = ns.saturating_sub(ns.checked_rem(self.grain_ns).unwrap_or(0));
        if ns > 0 { whole.max(self.grain_ns) } else { 0 }
    }

    /// Converts a time since boot to a host time, both in ns.
    #[inline]
    pub fn host_ns(&self, ktime_ns: u64) -> u64 {
        ktime_ns.saturating_sub(self.uptime_ns)
    }

    /// Whole ticks since boot.
    #[inline]
    pub fn ticks(&self) -> u64 {
        self.ticks
    }

    /// Whole milliseconds since boot.
    #[inline]
    pub fn ktime_ms(&self) -> u64 {
        self.ms
    }

    /// Returns the host time in ns at which tick `tick` begins.
    pub fn time_of_tick(&self, tick: u64) -> u64 {
        tick.saturating_mul(self.tick_ns).saturating_sub(self.uptime_ns)
    }

    /// Converts milliseconds to ticks, rounded down.
    pub fn ticks_of_ms(&self, ms: u64) -> u64 {
        ms.saturating_mul(1_000_000) / self.tick_ns.max(1)
    }

    /// Converts milliseconds to ticks, rounded up, as the kernel does for values written to
    /// tunables.
    pub fn ticks_of_stored_ms(&self, ms: u64) -> u64 {
        ms.saturating_mul(1_000_000).div_ceil(self.tick_ns.max(1))
    }

    /// Converts ticks to ns.
    pub fn ns_of_ticks(&self, ticks: u64) -> u64 {
        ticks.saturating_mul(self.tick_ns)
    }

    /// Converts ticks to whole milliseconds.
    pub fn ms_of_ticks(&self, ticks: u64) -> u64 {
        ticks.saturating_mul(self.tick_ns) / 1_000_000
    }

    #[cold]
    #[inline(never)]
    fn find_units(&mut self) {
        let ktime_ns = self.ktime_ns();
        self.ticks = ktime_ns / self.tick_ns.max(1);
        self.ms = ktime_ns / NS_PER_MS;
        let next_ms = self.host_ns(self.ms.saturating_add(1).saturating_mul(NS_PER_MS));
        self.next_unit_ns = self.time_of_tick(self.ticks.saturating_add(1)).min(next_ms);
    }
}

/// The timers of one queue. Timers due at the same time fire in the order in which they were armed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timers {
    slots: [Option<Armed>; Timer::COUNT],
    /// The number of slots with a timer: the search for the next one is skipped without any.
    used: u32,
    /// The number of calls of [`Self::arm`].
    armed: u64,
}

#[derive(Clone, Copy, Debug)]
struct Armed {
    at_ns: u64,
    order: u64,
}

/// The purposes of timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    Unplug = 0,
    /// The end of a wait for a process's next request.
    Idle = 1,
    /// The end of the grace period of the idle class.
    Grace = 2,
    /// The end of a window over which latencies were collected.
    Adjust = 3,
    /// A token bucket has refilled enough.
    Refill = 4,
}

impl Timer {
    const COUNT: usize = 5;
    const ALL: [Timer; Timer::COUNT] = [Timer::Unplug, Timer::Idle, Timer::Grace, Timer::Adjust, Timer::Refill];
    /// The timers that elevators arm.
    pub const ELEVATORS: [Timer; 4] = [Timer::Idle, Timer::Grace, Timer::Adjust, Timer::Refill];
}

impl Timers {
    /// Arms `timer` for `at_ns`, or moves it there. It then counts as armed last.
    pub fn arm(&mut self, timer: Timer, at_ns: u64) {
        self.armed = self.armed.wrapping_add(1);
        if let Some(slot) = self.slots.get_mut(timer as usize) {
            self.used = self.used.saturating_add(u32::from(slot.is_none()));
            *slot = Some(Armed { at_ns, order: self.armed });
        }
    }

    /// Returns the time for which a timer is armed, in ns.
    pub fn armed_for(&self, timer: Timer) -> Option<u64> {
        self.slots.get(timer as usize).and_then(|slot| slot.map(|armed| armed.at_ns))
    }

    /// Disarms a timer. Returns true if it was armed.
    #[inline]
    pub fn cancel(&mut self, timer: Timer) -> bool {
        let was_armed = self.used > 0 && self.slots.get_mut(timer as usize).is_some_and(|slot| slot.take().is_some());
        self.used = self.used.saturating_sub(u32::from(was_armed));
        was_armed
    }

    /// Returns true if a timer is armed.
    #[inline]
    pub fn is_any_armed(&self) -> bool {
        self.used > 0
    }

    /// Returns the timer that fires next, and its time in ns.
    #[inline]
    pub fn next(&self) -> Option<(Timer, u64)> {
        if self.is_any_armed() { self.first() } else { None }
    }

    fn first(&self) -> Option<(Timer, u64)> {
        let mut first: Option<(Timer, Armed)> = None;
        for (timer, slot) in Timer::ALL.into_iter().zip(self.slots) {
            let Some(armed) = slot else { continue };
            if first.is_none_or(|(_, best)| (armed.at_ns, armed.order) < (best.at_ns, best.order)) {
                first = Some((timer, armed));
            }
        }
        first.map(|(timer, armed)| (timer, armed.at_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_count_from_boot_and_begin_on_whole_milliseconds() {
        let mut clock = Clock::new(ClockConfig::default(), false, 0);
        assert_eq!(clock.ticks(), 10_000);
        clock.set(1_999_999);
        assert_eq!(clock.ticks(), 10_001);
        assert_eq!(clock.time_of_tick(10_002), 2_000_000);
    }

    #[test]
    fn an_elevator_that_counts_in_ticks_gets_whole_ticks() {
        let config = ClockConfig { hz: 250, uptime_ns: 10_001_000_000 };
        let (mut coarse, mut fine) = (Clock::new(config, true, 0), Clock::new(config, false, 0));
        coarse.set(6_500_000);
        fine.set(6_500_000);
        assert_eq!((coarse.counted_ns(), fine.counted_ns()), (10_004_000_000, 10_007_500_000));
        assert_eq!((coarse.counted_at(2_999_999), fine.counted_at(2_999_999)), (10_000_000_000, 10_003_999_999));
        assert_eq!((coarse.counted_length(125_000_000), fine.counted_length(125_000_000)), (124_000_000, 125_000_000));
        assert_eq!((coarse.counted_length(1_000_000), coarse.counted_length(0)), (4_000_000, 0));
    }

    #[test]
    fn timers_due_together_fire_in_the_order_of_arming() {
        let mut timers = Timers::default();
        timers.arm(Timer::Unplug, 5);
        timers.arm(Timer::Grace, 5);
        timers.arm(Timer::Unplug, 5);
        assert_eq!(timers.next(), Some((Timer::Grace, 5)));
        assert!(timers.cancel(Timer::Grace) && !timers.cancel(Timer::Grace));
        assert_eq!(timers.next(), Some((Timer::Unplug, 5)));
        assert!(timers.is_any_armed() && timers.cancel(Timer::Unplug));
        assert_eq!((timers.next(), timers.is_any_armed()), (None, false));
    }
}
