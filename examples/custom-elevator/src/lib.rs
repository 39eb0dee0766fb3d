//! `slices`: time slices for each process in turn, like CFQ, in the order of sectors within a
//! process. A slice waits a few milliseconds for the next request of its process.

use std::collections::BTreeMap;

use hoistway_core::{CustomElevator, CustomRequest, Info, Kind, QueueView, RequestId, Tunable, Unit};
use hoistway_sim::custom::{RegisterError, register};

const MS: u64 = 1_000_000;

const TUNABLES: &[Tunable] = &[
    Tunable {
        name: "slice_ms",
        unit: Unit::Milliseconds,
        default: 100,
        min: 1,
        max: 1000,
        meaning: "The length of a slice.",
        trade_off: "Longer slices cost fewer seeks, and the other processes wait longer.",
    },
    Tunable {
        name: "idle_ms",
        unit: Unit::Milliseconds,
        default: 8,
        min: 0,
        max: 100,
        meaning: "The wait for the next request of the process; 0 does not wait.",
        trade_off: "A wait keeps the head in place for sequential readers, and costs time where nothing rotates.",
    },
];

/// Registers the elevator, so that everything in this process finds it by its name.
pub fn register_slices() -> Result<Kind, RegisterError> {
    let mut info = Info::custom("slices", "1", "Time slices for each process, in turn");
    info.tunables = TUNABLES;
    register(info, |_capacity| Box::new(Slices { slice_ms: 100, idle_ms: 8, ..Slices::default() }))
}

/// The elevator of one device.
#[derive(Default)]
pub struct Slices {
    slice_ms: u64,
    idle_ms: u64,
    /// The queued requests of each process, in order of arrival. No entry is empty.
    queues: BTreeMap<u32, Vec<CustomRequest>>,
    /// The process whose slice it is.
    active: Option<u32>,
    slice_end_ns: u64,
}

impl Slices {
    /// The process after the active one.
    fn next_process(&self) -> Option<u32> {
        let later = self.active.and_then(|pid| self.queues.range(pid + 1..).next());
        later.or(self.queues.first_key_value()).map(|(pid, _)| *pid)
    }
}

impl CustomElevator for Slices {
    fn insert(&mut self, queue: &mut QueueView, request: &CustomRequest) {
        if self.active == Some(request.pid) {
            queue.cancel_timer();
        }
        self.queues.entry(request.pid).or_default().push(*request);
    }

    fn dispatch(&mut self, queue: &mut QueueView) -> Option<RequestId> {
        let has_time = self.active.is_some() && queue.now_ns() < self.slice_end_ns;
        let has_request = self.active.is_some_and(|pid| self.queues.contains_key(&pid));
        let can_wait = queue.in_flight() > 0 || queue.timer_ns().is_some();
        if has_time && !has_request && can_wait && !queue.is_draining() {
            return None;
        }
        let begins = !(has_time && has_request);
        if begins {
            queue.cancel_timer();
            self.active = self.next_process();
            self.slice_end_ns = queue.now_ns() + self.slice_ms * MS;
        }
        let pid = self.active?;
        let requests = self.queues.get_mut(&pid)?;
        // A slice begins with the oldest request, so that none waits forever, and goes on upwards
        // from there.
        let ahead = |at: &usize| requests[*at].sector.wrapping_sub(queue.position());
        let next = if begins { 0 } else { (0..requests.len()).min_by_key(ahead)? };
        let request = requests.remove(next);
        if requests.is_empty() {
            self.queues.remove(&pid);
        }
        Some(request.id)
    }

    fn complete(&mut self, queue: &mut QueueView, request: &CustomRequest) {
        let is_active = self.active == Some(request.pid) && !self.queues.contains_key(&request.pid);
        if is_active && request.is_sync && self.idle_ms > 0 {
            queue.set_timer(queue.now_ns() + self.idle_ms * MS);
        }
    }

    /// The wait is over: the slice ends.
    fn timer(&mut self, _: &mut QueueView) {
        self.slice_end_ns = 0;
    }

    fn merged(&mut self, _: &mut QueueView, request: &CustomRequest) {
        let queued = self.queues.get_mut(&request.pid);
        if let Some(known) = queued.and_then(|all| all.iter_mut().find(|known| known.id == request.id)) {
            *known = *request;
        }
    }

    fn tunable(&self, index: usize) -> i64 {
        [self.slice_ms, self.idle_ms][index] as i64
    }

    fn set_tunable(&mut self, index: usize, value: i64) {
        *[&mut self.slice_ms, &mut self.idle_ms][index] = value as u64;
    }

    /// The oldest request of a process waits for the slices of all others.
    fn longest_wait_ns(&self) -> u64 {
        60_000 * MS
    }
}
