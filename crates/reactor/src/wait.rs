//! The wait of an engine's thread: sleep costs a wake-up, busy polling costs CPU time.
//!
//! - **For the next event** the thread polls for a while before it sleeps, so that a client with
//!   one request at a time waits for no wake-up. After a poll without an event, or with an
//!   involuntary context switch, the thread skips polling for twice as many waits as before; each
//!   event found by polling halves that number. So a server with rare events, or whose clients need
//!   this CPU, nearly always sleeps.
//! - **For a precise timer** the thread sleeps until shortly before the time, and polls the clock
//!   for the rest. The length of that rest follows from how late the kernel woke the thread. It is
//!   bounded for each wait and in total.

/// Waits without polling after the first poll without an event.
const SKIPS_FIRST: u32 = 8;
/// Maximum number of waits without polling: 8 doubled 8 times.
const SKIPS_MAX: u32 = 2048;
/// Polls between two checks for involuntary context switches.
const POLLS_PER_CHECK: u32 = 8;
/// Maximum time in ns for which one wait polls the clock: 200 us.
const EARLY_NS_MAX: u64 = 200_000;
/// Part of the time that may be spent on polling the clock: a tenth.
const CLOCK_SHARE: u64 = 10;
/// Maximum of the saved polling time, in ns: 10 ms.
const CREDIT_NS_MAX: u64 = 10_000_000;

/// The state from which each wait is planned.
#[derive(Debug)]
pub(crate) struct WaitStrategy {
    /// Polling time of a wait in ns; 0 disables polling for events.
    window_ns: u64,
    /// Waits that still sleep at once.
    skips: u32,
    /// Waits that sleep at once after the next poll without an event.
    next_skips: u32,
    /// The host expects single requests, for which polling pays off.
    is_worthwhile: bool,
    /// Polls since the last check for context switches.
    polls: u32,
    /// Involuntary context switches at the last check.
    preemptions: u64,
    /// Timers have to be precise.
    is_precise: bool,
    /// Time in ns by which a wait for a timer wakes early.
    early_ns: u64,
    /// Saved time for polling the clock, in ns, and the time of the last credit.
    credit_ns: u64,
    credited_ns: u64,
}

/// The phases of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WaitPlan {
    /// End of polling for events, if it is later than the start of the wait.
    pub poll_until_ns: u64,
    /// End of the sleep, if no event wakes the thread.
    pub sleep_until_ns: u64,
}

impl WaitStrategy {
    /// Creates the strategy. Each wait polls for events for at most `window_ns`.
    pub fn new(window_ns: u64) -> WaitStrategy {
        WaitStrategy {
            window_ns,
            skips: 0,
            next_skips: SKIPS_FIRST,
            is_worthwhile: true,
            polls: 0,
            preemptions: 0,
            is_precise: false,
            early_ns: 0,
            credit_ns: CREDIT_NS_MAX,
            credited_ns: 0,
        }
    }

    /// Sets whether waits may poll for events.
    pub fn allow_busy_poll(&mut self, worthwhile: bool) {
        self.is_worthwhile = worthwhile;
    }

    /// Makes timers precise by polling the clock at their end.
    pub fn require_precise_timers(&mut self) {
        self.is_precise = true;
    }

    /// Plans a wait from `now_ns` until `until_ns` (`u64::MAX`: until an event).
    pub fn plan(&mut self, now_ns: u64, until_ns: u64) -> WaitPlan {
        let window_ns = if self.skips > 0 || !self.is_worthwhile { 0 } else { self.window_ns };
        self.skips = self.skips.saturating_sub(1);
        let poll_until_ns = now_ns.saturating_add(window_ns).min(until_ns);
        if !self.is_precise || until_ns == u64::MAX {
            return WaitPlan { poll_until_ns, sleep_until_ns: until_ns };
        }
        let passed_ns = now_ns.saturating_sub(self.credited_ns);
        self.credited_ns = now_ns;
        self.credit_ns = self.credit_ns.saturating_add(passed_ns / CLOCK_SHARE).min(CREDIT_NS_MAX);
        let early_ns = if self.credit_ns >= self.early_ns { self.early_ns } else { 0 };
        WaitPlan { poll_until_ns, sleep_until_ns: until_ns.saturating_sub(early_ns) }
    }

    /// Records the result of a poll for events. `preemptions` returns the number of involuntary
    /// context switches of this thread.
    pub fn polled(&mut self, is_found: bool, preemptions: impl FnOnce() -> u64) {
        self.polls += 1;
        let mut is_preempted = false;
        if self.polls >= POLLS_PER_CHECK {
            self.polls = 0;
            let before = std::mem::replace(&mut self.preemptions, preemptions());
            is_preempted = self.preemptions > before;
        }
        if is_found && !is_preempted {
            self.next_skips = (self.next_skips / 2).max(SKIPS_FIRST);
        } else {
            self.skips = self.next_skips;
            self.next_skips = (self.next_skips * 2).min(SKIPS_MAX);
        }
    }

    /// Records that a sleep until the planned time ended at `woke_ns`.
    pub fn overslept(&mut self, plan: WaitPlan, woke_ns: u64) {
        let late_ns = woke_ns.saturating_sub(plan.sleep_until_ns);
        // It rises at once to twice the delay and falls slowly: a late completion costs more than a
        // longer poll.
        self.early_ns = (2 * late_ns).min(EARLY_NS_MAX).max(self.early_ns - self.early_ns / 64);
    }

    /// Records that the clock was polled for `ns`.
    pub fn polled_clock(&mut self, ns: u64) {
        self.credit_ns = self.credit_ns.saturating_sub(ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polls_without_events_become_rare_and_events_restore_them() {
        let mut strategy = WaitStrategy::new(32_000);
        let mut polls = 0;
        for wait in 0..10_000u64 {
            let now_ns = wait * 1_000_000;
            if strategy.plan(now_ns, u64::MAX).poll_until_ns > now_ns {
                polls += 1;
                strategy.polled(false, || 0);
            }
        }
        // 8 + 16 + ... + 2048 = 4088 waits hold the first 9; then one in 2048.
        assert!((10..=13).contains(&polls), "{polls}");
        strategy.skips = 0;
        for _ in 0..8 {
            strategy.polled(true, || 0);
        }
        strategy.polled(false, || 0);
        assert_eq!(strategy.skips, SKIPS_FIRST);
    }

    #[test]
    fn a_preempted_thread_polls_less() {
        let mut strategy = WaitStrategy::new(32_000);
        for poll in 1..=2 * u64::from(POLLS_PER_CHECK) {
            strategy.polled(true, || poll);
            assert_eq!(strategy.skips > 0, poll >= u64::from(POLLS_PER_CHECK), "{poll}");
        }
        assert_eq!(strategy.skips, SKIPS_FIRST);
    }

    #[test]
    fn a_precise_timer_wakes_early_by_twice_the_measured_delay() {
        let mut strategy = WaitStrategy::new(0);
        strategy.require_precise_timers();
        let plan = strategy.plan(0, 1_000_000);
        assert_eq!(plan.sleep_until_ns, 1_000_000, "no delay is measured yet");
        strategy.overslept(plan, 1_050_000);
        assert_eq!(strategy.plan(2_000_000, 3_000_000).sleep_until_ns, 2_900_000);
    }

    #[test]
    fn polling_the_clock_takes_at_most_a_tenth_of_the_time() {
        let mut strategy = WaitStrategy::new(0);
        strategy.require_precise_timers();
        let (mut now_ns, mut spent_ns) = (0, 0);
        while now_ns < 1_000_000_000 {
            let until_ns = now_ns + 250_000;
            let plan = strategy.plan(now_ns, until_ns);
            strategy.overslept(plan, plan.sleep_until_ns + 100_000);
            let early_ns = until_ns - plan.sleep_until_ns;
            strategy.polled_clock(early_ns);
            spent_ns += early_ns;
            now_ns = until_ns;
        }
        // A tenth of a second, and the saved time: 10 ms.
        assert!((90_000_000..=111_000_000).contains(&spent_ns), "{spent_ns}");
    }
}
