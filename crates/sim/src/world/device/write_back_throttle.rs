//! Write-back throttling of the multi-queue block layer (`wbt_lat_usec`, from 4.10 on): few
//! buffered writes are in the queue and the drive at a time, so that other requests do not wait
//! behind them.
//!
//! A write that is not direct, or a discard, takes a slot before it becomes a request and gives it
//! back when the request completes. A task without a slot sleeps in the order of arrival. The
//! number of slots follows from the depth of the device and from a *step*. At the end of each
//! window, a read that took too long moves the step towards fewer slots, and a window without slow
//! reads moves it towards more.
//!
//! The rules were measured on Debian's kernels 6.1 and 6.12 as black boxes;
//! `testdata/wbt/README.md` describes the recordings. The simulated host has no swap, and all its
//! writes without [`Flags::SYNC`] are periodic or background write-back. So the pool of swap is not
//! here, nor the limit of other write-back, which is the only one that is lower near a read. BFQ
//! and CFQ switch the throttling off.

use std::collections::VecDeque;

use hoistway_core::{Bio, Flags, Kind, Op};

use super::super::task::SubmitterId;

/// The depth for a device that takes at least as many requests, at step 0.
const DEPTH: u32 = 16;
/// The length of a window up to step 0, in ns.
const WINDOW_NS: u64 = 100_000_000;
/// Reads and writes of a window from which it has a verdict.
const SAMPLES_MIN: (u32, u32) = (1, 3);
/// Windows without a verdict after which the step moves towards 0.
const UNKNOWN_WINDOWS: u32 = 5;
/// The kernel's tick in ns: Debian has 250 a second.
const TICK_NS: u64 = 4_000_000;
/// Ticks after a writer slept in dirty throttling in which a writer counts as waiting.
const RECENT_TICKS: u64 = 250;
/// The default read latency that the throttle keeps, in ns: of rotational drives, and of others.
const LATENCY_NS: [u64; 2] = [75_000_000, 2_000_000];

/// A bio that takes a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// A write that a process or the journal waits for, but no direct one.
    Sync,
    /// Periodic or background write-back.
    Background,
    /// A discard.
    Discard,
}

impl Class {
    /// The class of a bio; `None` for a bio that takes no slot.
    pub fn of(bio: &Bio) -> Option<Class> {
        match bio.op {
            Op::Write if bio.flags.has(Flags::SYNC.and(Flags::IDLE)) => None,
            Op::Write if bio.flags.has(Flags::SYNC) || bio.flags.has(Flags::META) => Some(Class::Sync),
            Op::Write => Some(Class::Background),
            Op::Discard => Some(Class::Discard),
            Op::Read | Op::Flush => None,
        }
    }

    fn pool(self) -> usize {
        usize::from(self == Class::Discard)
    }
}

/// The properties of the device and the host that the throttle uses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    /// The maximum number of requests in the device at once: `queue_depth` of SCSI disks,
    /// `nr_requests` of others.
    pub depth: u32,
    pub rotational: bool,
    /// True if the drive has a volatile write cache (`queue/write_cache`: `write back`).
    pub write_back_cache: bool,
    /// `wbt_lat_usec` in ns; 0 for the default.
    pub latency_ns: u64,
}

/// The numbers of slots at a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Depths {
    /// Slots of writes that are waited for, and of all while writers are throttled.
    all: u32,
    /// The number below which waking begins on a drive without a volatile cache.
    normal: u32,
    background: u32,
    /// True if more steps towards more slots are refused.
    is_most: bool,
}

impl Depths {
    /// The slots of a device of depth `depth` at a step, which is above 0 with fewer slots.
    fn at(depth: u32, step: i32) -> Depths {
        let (all, is_most) = if depth <= 1 {
            (if step > 0 { 1 } else { 2 }, true)
        } else {
            let more = DEPTH.min(depth) - 1;
            let shift = step.unsigned_abs().min(31);
            let most = u64::from(depth) * 3 / 4;
            match step {
                1.. => (1 + (more >> shift), false),
                0 => (1 + more, false),
                _ if 1 + (u64::from(more) << shift) > most => (most as u32, true),
                _ => (1 + (more << shift), false),
            }
        };
        let (normal, background) = if all <= 2 { (all, 1) } else { (all.div_ceil(2), all.div_ceil(4)) };
        Depths { all, normal, background, is_most }
    }
}

/// Bios with slots, and the tasks that sleep until they get one.
#[derive(Debug)]
struct Pool<I> {
    /// Submitters with a slot for their next bio, which is no request yet.
    granted: Vec<SubmitterId>,
    requests: Vec<I>,
    sleepers: VecDeque<(SubmitterId, Class)>,
}

impl<I> Pool<I> {
    fn in_flight(&self) -> usize {
        self.granted.len() + self.requests.len()
    }
}

/// The completed requests of a window in one direction: number, and shortest time in the device.
#[derive(Clone, Copy, Debug, Default)]
struct Completed {
    count: u32,
    least_ns: u64,
}

impl Completed {
    fn add(&mut self, service_ns: u64) {
        self.least_ns = if self.count == 0 { service_ns } else { self.least_ns.min(service_ns) };
        self.count += 1;
    }
}

/// The result of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Ok,
    /// Too few requests completed, but writes are there.
    UnknownWriting,
    Unknown,
    /// Reads took too long.
    Exceeded,
}

/// The throttle of a device. `I` identifies a request.
#[derive(Debug)]
pub(super) struct WriteBackThrottle<I> {
    settings: Settings,
    step: i32,
    depths: Depths,
    /// Writes, and discards.
    pools: [Pool<I>; 2],
    /// The last tick at which a writer slept in dirty throttling; at first that of the device's
    /// creation.
    dirty_tick: u64,
    /// The read whose time in the device is watched, and the time of its issue.
    oldest_read: Option<(I, u64)>,
    /// Reads and writes of the window.
    window: [Completed; 2],
    unknown_windows: u32,
    timer_ns: Option<u64>,
}

impl<I: Copy + PartialEq> WriteBackThrottle<I> {
    /// Creates the throttle of a device at time 0. `None` for an elevator that switches it off.
    pub fn new(settings: Settings, elevator: Kind) -> Option<Self> {
        let name = elevator.info().name;
        if name.starts_with("bfq") || name.starts_with("cfq") {
            return None;
        }
        let pool = || Pool { granted: Vec::new(), requests: Vec::new(), sleepers: VecDeque::new() };
        Some(WriteBackThrottle {
            settings,
            step: 0,
            depths: Depths::at(settings.depth, 0),
            pools: [pool(), pool()],
            dirty_tick: 0,
            oldest_read: None,
            window: [Completed::default(); 2],
            unknown_windows: 0,
            timer_ns: None,
        })
    }

    /// Takes a slot for a submitter's next bio, unless it has one. Without one the task becomes a
    /// sleeper, which a later call of [`Self::completed`] or [`Self::timer`] returns when it has a
    /// slot.
    pub fn admit(&mut self, submitter: SubmitterId, class: Class, now_ns: u64) -> bool {
        let pool = &self.pools[class.pool()];
        if pool.granted.contains(&submitter) {
            return true;
        }
        if !pool.sleepers.is_empty() || pool.in_flight() >= self.limit(class, now_ns) {
            self.pools[class.pool()].sleepers.push_back((submitter, class));
            return false;
        }
        self.grant(submitter, class, now_ns);
        true
    }

    /// Passes the slot of a submitter's bio, if it has one, on to the request that the bio became.
    /// With `None` the bio was merged into a request, and the slot is returned.
    pub fn begun(&mut self, submitter: SubmitterId, class: Class, request: Option<I>) {
        let pool = &mut self.pools[class.pool()];
        if let Some(slot) = pool.granted.iter().position(|granted| *granted == submitter) {
            pool.granted.swap_remove(slot);
            pool.requests.extend(request);
        }
    }

    /// Records that a request was issued to the device.
    pub fn issued(&mut self, request: I, op: Op, now_ns: u64) {
        if op == Op::Read && self.oldest_read.is_none() {
            self.oldest_read = Some((request, now_ns));
        }
    }

    /// Records that a request completed, `service_ns` after it was issued. Slots of requests for
    /// which `is_there` returns false are returned. Returns the sleepers that have a slot now.
    pub fn completed(
        &mut self,
        (request, op): (I, Op),
        service_ns: u64,
        now_ns: u64,
        is_there: impl Fn(I) -> bool,
    ) -> Vec<SubmitterId> {
        match op {
            Op::Read => {
                self.oldest_read = self.oldest_read.filter(|(read, _)| *read != request);
                self.window[0].add(service_ns);
            }
            Op::Write | Op::Discard => self.window[1].add(service_ns),
            Op::Flush => {}
        }
        let mut woken = Vec::new();
        for index in 0..self.pools.len() {
            let pool = &mut self.pools[index];
            let before = pool.requests.len();
            pool.requests.retain(|id| *id != request && is_there(*id));
            if pool.requests.len() < before && self.wakes(index, now_ns) {
                self.wake(index, now_ns, &mut woken);
            }
        }
        woken
    }

    /// Records that a writer sleeps in dirty throttling.
    pub fn dirty_sleep(&mut self, now_ns: u64) {
        self.dirty_tick = now_ns / TICK_NS;
    }

    /// The time of the next call of [`Self::timer`], in ns.
    pub fn next_timer(&self) -> Option<u64> {
        self.timer_ns
    }

    /// Ends the window if its time is over. Returns the sleepers that have a slot now.
    pub fn timer(&mut self, now_ns: u64) -> Vec<SubmitterId> {
        let mut woken = Vec::new();
        if self.timer_ns.is_none_or(|due_ns| now_ns < due_ns) {
            return woken;
        }
        self.timer_ns = None;
        let in_flight: usize = self.pools.iter().map(Pool::in_flight).sum();
        let verdict = self.verdict(in_flight, now_ns);
        self.window = [Completed::default(); 2];
        if self.settle(verdict) {
            for index in 0..self.pools.len() {
                self.wake(index, now_ns, &mut woken);
            }
        }
        if self.step != 0 || in_flight > 0 {
            self.arm(now_ns);
        }
        woken
    }

    fn verdict(&self, in_flight: usize, now_ns: u64) -> Verdict {
        let [reads, writes] = self.window;
        let age_ns = self.oldest_read.map_or(0, |(_, issued_ns)| now_ns - issued_ns);
        if age_ns > self.window_ns() || (age_ns > self.latency_ns() && reads.count == 0) {
            return Verdict::Exceeded;
        }
        let (reads_min, writes_min) = SAMPLES_MIN;
        if reads.count < reads_min || writes.count < writes_min {
            let has_writes = writes.count > 0 || self.is_recent(now_ns) || in_flight > 0;
            return if has_writes { Verdict::UnknownWriting } else { Verdict::Unknown };
        }
        if reads.least_ns > self.latency_ns() { Verdict::Exceeded } else { Verdict::Ok }
    }

    /// Moves the step after a window. Returns true if all pools have more slots.
    fn settle(&mut self, verdict: Verdict) -> bool {
        match verdict {
            Verdict::Exceeded => {
                self.unknown_windows = 0;
                if self.depths.all > 1 {
                    self.move_to(if self.step < 0 { 0 } else { self.step + 1 });
                }
            }
            Verdict::Ok | Verdict::UnknownWriting if !self.depths.is_most => {
                self.unknown_windows = 0;
                self.move_to(self.step - 1);
                return true;
            }
            Verdict::Ok | Verdict::UnknownWriting => {}
            Verdict::Unknown => {
                self.unknown_windows += 1;
                if self.unknown_windows >= UNKNOWN_WINDOWS && self.step != 0 {
                    self.unknown_windows = 0;
                    self.move_to(self.step - self.step.signum());
                }
            }
        }
        false
    }

    fn move_to(&mut self, step: i32) {
        self.step = step;
        self.depths = Depths::at(self.settings.depth, step);
    }

    fn latency_ns(&self) -> u64 {
        match self.settings.latency_ns {
            0 => LATENCY_NS[usize::from(!self.settings.rotational)],
            set_ns => set_ns,
        }
    }

    /// The length of a window: shorter with fewer slots.
    fn window_ns(&self) -> u64 {
        match u64::try_from(self.step) {
            Ok(step @ 1..) => WINDOW_NS * 16 / ((step + 1) * 256).isqrt(),
            _ => WINDOW_NS,
        }
    }

    /// Arms the timer. It counts whole ticks and is one late.
    fn arm(&mut self, now_ns: u64) {
        let ticks = now_ns / TICK_NS + self.window_ns() / TICK_NS + 1;
        self.timer_ns = Some(ticks * TICK_NS);
    }

    /// The maximum number of slots of the pool of a bio at which it gets another one.
    fn limit(&self, class: Class, now_ns: u64) -> usize {
        let slots = match class {
            Class::Discard => self.depths.background,
            Class::Sync => self.depths.all,
            Class::Background if self.is_recent(now_ns) => self.depths.all,
            Class::Background => self.depths.background,
        };
        slots as usize
    }

    /// Returns true if a writer slept in dirty throttling within the last second.
    fn is_recent(&self, now_ns: u64) -> bool {
        now_ns / TICK_NS - self.dirty_tick < RECENT_TICKS
    }

    fn grant(&mut self, submitter: SubmitterId, class: Class, now_ns: u64) {
        self.pools[class.pool()].granted.push(submitter);
        if self.timer_ns.is_none() {
            self.arm(now_ns);
        }
    }

    /// Returns true if a completion wakes sleepers of a pool. With a volatile cache, the pool is
    /// emptied first, so that writes come in bursts.
    fn wakes(&self, index: usize, now_ns: u64) -> bool {
        let target = match index {
            1 => self.depths.background,
            _ if self.settings.write_back_cache && !self.is_recent(now_ns) => 0,
            _ => self.depths.normal,
        };
        let (target, in_flight) = (target as usize, self.pools[index].in_flight());
        in_flight == 0 || (in_flight < target && target - in_flight >= self.depths.background as usize / 2)
    }

    /// Gives slots to sleepers, up to the first whose limit is reached.
    fn wake(&mut self, index: usize, now_ns: u64, woken: &mut Vec<SubmitterId>) {
        while let Some((submitter, class)) = self.pools[index].sleepers.front().copied() {
            if self.pools[index].in_flight() >= self.limit(class, now_ns) {
                return;
            }
            self.pools[index].sleepers.pop_front();
            self.grant(submitter, class, now_ns);
            woken.push(submitter);
        }
    }
}

#[cfg(test)]
mod tests;
