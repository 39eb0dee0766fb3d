//! The cost of an elevator: CPU time per request, through insert, dispatch and complete.
//!
//! The setup is that in which the kernel's own scheduler code was measured. Each process keeps 4
//! random 4 KiB reads outstanding in a closed loop. The device takes 32 requests at once and serves
//! each in a constant 200 us of virtual time. Merging, plugging and idling are off; the request
//! pool is as large as needed.

use hoistway_core::{
    Bio, Capacity, Class, ContextId, ElevatorStorage, Kick, Kind, Next, NoSink, Op, Owned, Priority, QueueConfig,
    RequestId, RequestQueue, Storage,
};
use rustix::time::{ClockId, clock_gettime};
use std::collections::VecDeque;

/// Outstanding requests per process.
const OUTSTANDING: u32 = 4;
/// Requests in the device at once.
const DEPTH: u32 = 32;
/// Service time of a request, in virtual ns.
const SERVICE_NS: u64 = 200_000;
/// Size of the disk that the reads are spread over, in sectors: 160 GB.
const DISK_SECTORS: u64 = 312_500_000;

/// CPU time in ns per request of one elevator with `processes` processes: the median of `runs` runs
/// of `requests` requests each, every run after a warm-up of a tenth.
pub fn measure(kind: Kind, processes: u32, requests: u64, runs: usize) -> f64 {
    let mut costs: Vec<f64> =
        (0..runs.max(1)).map(|run| Loop::new(kind, processes, run as u64).cost(requests)).collect();
    costs.sort_by(f64::total_cmp);
    costs[costs.len() / 2]
}

struct Loop {
    queue: RequestQueue<Owned<NoSink>>,
    contexts: Vec<ContextId>,
    /// Requests in the device with the times of their completion, in order.
    device: VecDeque<(RequestId, u64)>,
    now_ns: u64,
    random: u64,
}

impl Loop {
    fn new(kind: Kind, processes: u32, seed: u64) -> Loop {
        let capacity = Capacity { requests: processes * OUTSTANDING, contexts: processes, merged_bios: 0, groups: 1 };
        let layer = kind.info().layer;
        let config =
            QueueConfig { layer, plugging: false, merging: false, nr_requests: None, ..QueueConfig::default() };
        let (storage, elevator) = (Storage::owned(capacity), ElevatorStorage::owned(kind, capacity));
        let mut queue = RequestQueue::new(config, storage, elevator, NoSink, 0);
        for off in ["slice_idle", "antic_expire"] {
            if kind.info().tunables.iter().any(|t| t.name == off) {
                queue.set_tunable(off, 0).expect("0 is in the range of every idle time");
            }
        }
        let priority = Priority::new(Class::BestEffort, 4).expect("4 is a level");
        let contexts =
            (0..processes).map(|pid| queue.create_context(pid + 1, priority, 0).expect("there is room")).collect();
        let device = VecDeque::with_capacity(DEPTH as usize);
        let mut new = Loop { queue, contexts, device, now_ns: 0, random: seed.wrapping_add(0x9E37_79B9_7F4A_7C15) };
        for _ in 0..OUTSTANDING {
            for process in 0..processes {
                new.submit(process);
            }
        }
        new.fill_device();
        new
    }

    fn cost(mut self, requests: u64) -> f64 {
        self.run(requests / 10);
        let before = cpu_ns();
        self.run(requests);
        (cpu_ns() - before) as f64 / requests as f64
    }

    fn run(&mut self, requests: u64) {
        for _ in 0..requests {
            let (id, end_ns) = self.next_completion();
            self.now_ns = end_ns;
            let mut process = 0;
            let kick = self.queue.complete(id, end_ns, |token| process = token as u32);
            debug_assert!(kick.is_ok());
            self.submit(process);
            self.fill_device();
            while self.queue.next_work().is_some() {
                self.fill_device();
            }
        }
    }

    /// The next completion. If the device is idle, the elevator waits for a timer.
    fn next_completion(&mut self) -> (RequestId, u64) {
        loop {
            if let Some(next) = self.device.pop_front() {
                return next;
            }
            self.now_ns =
                self.queue.next_timer().expect("a wait with an idle device ends with a timer").max(self.now_ns);
            let _ = self.queue.timer(self.now_ns);
            self.fill_device();
        }
    }

    fn submit(&mut self, process: u32) {
        // xorshift (Marsaglia 2003): cheap and good enough to spread sectors.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let sector = ((u128::from(self.random) * u128::from(DISK_SECTORS / 8)) >> 64) as u64 * 8;
        let bio = Bio::new(u64::from(process), self.contexts[process as usize], Op::Read, sector, 8);
        let (_, kick) = self.queue.submit(bio, self.now_ns).expect("the storage has room for all");
        if kick == Kick::Run {
            self.fill_device();
        }
    }

    fn fill_device(&mut self) {
        while (self.device.len() as u32) < DEPTH {
            let Next::Request(id) = self.queue.next(self.now_ns) else { return };
            self.device.push_back((id, self.now_ns + SERVICE_NS));
        }
    }
}

/// CPU time of the whole process so far, in ns.
pub fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
