//! The cost of an elevator: CPU time per request, through insert, dispatch and complete.
//!
//! The setup is that in which the kernel's own scheduler code was measured. Each process keeps 4
//! random 4 KiB reads outstanding in a closed loop. The device takes 32 requests at once and serves
//! each in a constant 200 us of virtual time. Merging, plugging and idling are off; the request
//! pool is as large as needed.

use std::collections::VecDeque;

use hoistway_core::{
    Bio, Capacity, Class, ContextId, ElevatorStorage, Kick, Kind, Next, NoSink, Op, Priority, QueueConfig, RequestId,
    RequestQueue, Storage,
};
use hoistway_custom::Host;
use serde::Serialize;

use crate::clock::process_cpu_ns;
use crate::counters::{Counters, Counts};

/// Outstanding requests per process.
const OUTSTANDING: u32 = 4;
/// Requests in the device at once.
const DEPTH: u32 = 32;
/// Service time of a request, in virtual ns.
const SERVICE_NS: u64 = 200_000;
/// Size of the disk that the reads are spread over, in sectors: 160 GB.
const DISK_SECTORS: u64 = 312_500_000;

/// The parameters of the measurement.
#[derive(Clone, Debug)]
pub struct ElevatorBench {
    /// Elevators to measure.
    pub kinds: Vec<Kind>,
    /// Numbers of competing processes.
    pub processes: Vec<u32>,
    /// Requests per run.
    pub requests: u64,
    /// Runs per cell; at least one is made.
    pub runs: u16,
}

/// Costs of elevators; the document of `hoistway bench elevators --json`.
#[derive(Clone, Debug, Serialize)]
pub struct ElevatorCosts {
    /// Version of the document's form: 2.
    pub schema: u32,
    /// Requests per run.
    pub requests: u64,
    /// Runs per cell; the cell is their median.
    pub runs: u16,
    /// The reason why events are not counted, if they are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_counted: Option<String>,
    /// One entry per elevator and number of processes, by elevator.
    pub elevators: Vec<ElevatorCost>,
}

/// The cost of one elevator with a number of processes.
#[derive(Clone, Debug, Serialize)]
pub struct ElevatorCost {
    /// Name of the elevator.
    pub name: &'static str,
    /// Number of competing processes.
    pub processes: u32,
    /// CPU time per request, in ns: the median of the runs.
    pub ns_per_request: f64,
    /// The processor's events per request, of the run with that time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_request: Option<Counts>,
}

/// Measures every elevator with every number of processes; `progress` receives the number of
/// finished cells.
pub fn measure(bench: &ElevatorBench, progress: &dyn Fn(usize)) -> ElevatorCosts {
    let mut elevators = Vec::new();
    let (mut counters, not_counted) = match Counters::open() {
        Ok(counters) => (Some(counters), None),
        Err(reason) => (None, Some(reason)),
    };
    for kind in &bench.kinds {
        for &processes in &bench.processes {
            let (ns_per_request, per_request) = cost(*kind, processes, bench, &mut counters);
            elevators.push(ElevatorCost { name: kind.info().name, processes, ns_per_request, per_request });
            progress(elevators.len());
        }
    }
    ElevatorCosts { schema: 2, requests: bench.requests, runs: bench.runs, not_counted, elevators }
}

/// CPU time in ns and events per request of one elevator with `processes` processes: the run with
/// the median time, every run after a warm-up of a tenth.
fn cost(kind: Kind, processes: u32, bench: &ElevatorBench, counters: &mut Option<Counters>) -> (f64, Option<Counts>) {
    let runs = 0..bench.runs.max(1);
    let mut costs: Vec<(f64, Option<Counts>)> = runs
        .map(|run| ClosedLoop::new(kind, processes, u64::from(run)).cost(bench.requests, counters.as_mut()))
        .collect();
    costs.sort_by(|one, other| one.0.total_cmp(&other.0));
    costs[costs.len() / 2]
}

/// Processes that keep their requests outstanding on a device of constant service time.
struct ClosedLoop {
    queue: RequestQueue<Host<NoSink>>,
    contexts: Vec<ContextId>,
    /// Requests in the device with the times of their completion, in order.
    device: VecDeque<(RequestId, u64)>,
    now_ns: u64,
    random: u64,
}

impl ClosedLoop {
    fn new(kind: Kind, processes: u32, seed: u64) -> ClosedLoop {
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
        let mut new =
            ClosedLoop { queue, contexts, device, now_ns: 0, random: seed.wrapping_add(0x9E37_79B9_7F4A_7C15) };
        for _ in 0..OUTSTANDING {
            for process in 0..processes {
                new.submit(process);
            }
        }
        new.fill_device();
        new
    }

    fn cost(mut self, requests: u64, counters: Option<&mut Counters>) -> (f64, Option<Counts>) {
        self.run(requests / 10);
        let counting = counters.and_then(|counters| counters.start().is_ok().then_some(counters));
        let before = process_cpu_ns();
        self.run(requests);
        let ns_per_request = (process_cpu_ns() - before) as f64 / requests as f64;
        (ns_per_request, counting.and_then(|counters| counters.stop(requests).ok()))
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
