//! How a thread waits: sleep costs a wake-up, watching costs the processor.
//!
//! - **For the next event** it watches for a while before it sleeps, so that a client with one
//!   request at a time waits for no wake-up. Each time that it watched in vain, or was made to
//!   leave the processor to somebody meanwhile, it does without for twice as many waits; each event
//!   that it saw coming halves them. So a server whose events are far apart, or whose clients need
//!   this very processor, sleeps nearly always.
//! - **For a time** that has to be met exactly it sleeps until shortly before, and watches the
//!   clock for the rest. How long before follows from how late the system woke it, and is bounded
//!   in each wait and in all.

/// After it watched in vain for once, it sleeps at once so many times.
const SKIPS_FIRST: u32 = 8;
/// It sleeps at once so many times at most before it tries again: 8 doubled 8 times.
const SKIPS_MAX: u32 = 2048;
/// After so many times of watching it looks whether others had to take the processor from it.
const WATCHES_A_LOOK: u32 = 8;
/// The most that the clock is watched in one wait.
const EARLY_NS_MAX: u64 = 200_000;
/// Of the time that passes, one part in so many may be spent on watching the clock.
const CLOCK_SHARE: u64 = 10;
/// How much of time that was not spent is kept.
const CREDIT_NS_MAX: u64 = 10_000_000;

/// How a thread waits.
#[derive(Debug)]
pub(crate) struct Waiting {
    /// How long events are watched for; 0 for not at all.
    window_ns: u64,
    /// How many waits are still to begin with sleep.
    skips: u32,
    /// How many will after the next time in vain.
    next_skips: u32,
    /// Whether it is worth while at present.
    is_worthwhile: bool,
    /// How often it watched since it looked for others.
    watches: u32,
    /// How often the processor had been taken from the thread then.
    preemptions: u64,
    /// Whether times are met exactly.
    is_punctual: bool,
    /// How much earlier than asked for it wakes.
    early_ns: u64,
    /// Time that may be spent on watching the clock.
    credit_ns: u64,
    credited_ns: u64,
}

/// The parts of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Until then events are watched for, if that is later than the wait's beginning.
    pub watch_until_ns: u64,
    /// Until then it sleeps, if no event wakes it.
    pub sleep_until_ns: u64,
}

impl Waiting {
    /// Watches for events for at most so many ns a wait.
    pub fn new(window_ns: u64) -> Waiting {
        Waiting {
            window_ns,
            skips: 0,
            next_skips: SKIPS_FIRST,
            is_worthwhile: true,
            watches: 0,
            preemptions: 0,
            is_punctual: false,
            early_ns: 0,
            credit_ns: CREDIT_NS_MAX,
            credited_ns: 0,
        }
    }

    /// Whether watching is worth while from now on.
    pub fn watch(&mut self, worthwhile: bool) {
        self.is_worthwhile = worthwhile;
    }

    /// Times are to be met exactly from now on.
    pub fn require_precise_timers(&mut self) {
        self.is_punctual = true;
    }

    /// How to wait from `now_ns` until `until_ns` (`u64::MAX`: until something happens).
    pub fn plan(&mut self, now_ns: u64, until_ns: u64) -> Plan {
        let window_ns = if self.skips > 0 || !self.is_worthwhile { 0 } else { self.window_ns };
        self.skips = self.skips.saturating_sub(1);
        let watch_until_ns = now_ns.saturating_add(window_ns).min(until_ns);
        if !self.is_punctual || until_ns == u64::MAX {
            return Plan { watch_until_ns, sleep_until_ns: until_ns };
        }
        let passed_ns = now_ns.saturating_sub(self.credited_ns);
        self.credited_ns = now_ns;
        self.credit_ns = self.credit_ns.saturating_add(passed_ns / CLOCK_SHARE).min(CREDIT_NS_MAX);
        let early_ns = if self.credit_ns >= self.early_ns { self.early_ns } else { 0 };
        Plan { watch_until_ns, sleep_until_ns: until_ns.saturating_sub(early_ns) }
    }

    /// Events were watched for: did one come? `preemptions` tells how often the processor was taken
    /// from this thread since it began.
    pub fn watched(&mut self, came: bool, preemptions: impl FnOnce() -> u64) {
        self.watches += 1;
        let mut disturbs = false;
        if self.watches >= WATCHES_A_LOOK {
            self.watches = 0;
            let before = std::mem::replace(&mut self.preemptions, preemptions());
            disturbs = self.preemptions > before;
        }
        if came && !disturbs {
            self.next_skips = (self.next_skips / 2).max(SKIPS_FIRST);
        } else {
            self.skips = self.next_skips;
            self.next_skips = (self.next_skips * 2).min(SKIPS_MAX);
        }
    }

    /// It slept until the time that it had asked for, and woke at `woke_ns`: how late was that?
    pub fn overslept(&mut self, plan: Plan, woke_ns: u64) {
        let late_ns = woke_ns.saturating_sub(plan.sleep_until_ns);
        // Up at once to twice what was seen, down slowly: one late completion costs more than
        // watching a little longer.
        self.early_ns = (2 * late_ns).min(EARLY_NS_MAX).max(self.early_ns - self.early_ns / 64);
    }

    /// The clock was watched for so long.
    pub fn watched_clock(&mut self, ns: u64) {
        self.credit_ns = self.credit_ns.saturating_sub(ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watching_in_vain_becomes_rare_and_an_event_that_was_seen_brings_it_back() {
        let mut waiting = Waiting::new(32_000);
        let mut watched = 0;
        for wait in 0..10_000u64 {
            let now_ns = wait * 1_000_000;
            if waiting.plan(now_ns, u64::MAX).watch_until_ns > now_ns {
                watched += 1;
                waiting.watched(false, || 0);
            }
        }
        // 8 + 16 + ... + 2048 = 4088 waits hold the first 9; then one in 2048.
        assert!((10..=13).contains(&watched), "{watched}");
        waiting.skips = 0;
        for _ in 0..8 {
            waiting.watched(true, || 0);
        }
        waiting.watched(false, || 0);
        assert_eq!(waiting.skips, SKIPS_FIRST);
    }

    #[test]
    fn whoever_is_in_the_way_of_others_watches_less() {
        let mut waiting = Waiting::new(32_000);
        for watch in 1..=2 * u64::from(WATCHES_A_LOOK) {
            waiting.watched(true, || watch);
            assert_eq!(waiting.skips > 0, watch >= u64::from(WATCHES_A_LOOK), "{watch}");
        }
        assert_eq!(waiting.skips, SKIPS_FIRST);
    }

    #[test]
    fn a_time_is_met_by_waking_earlier_by_twice_what_the_system_was_late() {
        let mut waiting = Waiting::new(0);
        waiting.require_precise_timers();
        let plan = waiting.plan(0, 1_000_000);
        assert_eq!(plan.sleep_until_ns, 1_000_000, "nothing is known yet");
        waiting.overslept(plan, 1_050_000);
        assert_eq!(waiting.plan(2_000_000, 3_000_000).sleep_until_ns, 2_900_000);
    }

    #[test]
    fn watching_the_clock_takes_no_more_than_a_tenth_of_the_time() {
        let mut waiting = Waiting::new(0);
        waiting.require_precise_timers();
        let (mut now_ns, mut spent_ns) = (0, 0);
        while now_ns < 1_000_000_000 {
            let until_ns = now_ns + 250_000;
            let plan = waiting.plan(now_ns, until_ns);
            waiting.overslept(plan, plan.sleep_until_ns + 100_000);
            let early_ns = until_ns - plan.sleep_until_ns;
            waiting.watched_clock(early_ns);
            spent_ns += early_ns;
            now_ns = until_ns;
        }
        // A tenth of a second, and what may be saved up: 10 ms.
        assert!((90_000_000..=111_000_000).contains(&spent_ns), "{spent_ns}");
    }
}
