//! CPU time of elevators.

use hoistway_bench::elevators::{ElevatorBench, measure};
use hoistway_core::Kind;

/// The numbers of processes with which CPU time is measured.
pub const COST_PROCESSES: [u32; 3] = [1, 128, 8192];

/// Requests of a run, and the number of runs whose median counts.
const REQUESTS: u64 = 400_000;
const RUNS: u16 = 3;

/// The CPU times in ns of each elevator by its name, in the order of [`COST_PROCESSES`].
pub type Costs = Vec<(String, Vec<f64>)>;

/// Measures the CPU time of a request under elevators, as `hoistway bench elevators` does.
/// `progress` receives the number of measured pairs of elevator and number of processes.
pub fn costs(elevators: &[Kind], progress: &dyn Fn(usize)) -> Costs {
    let bench =
        ElevatorBench { kinds: elevators.to_vec(), processes: COST_PROCESSES.to_vec(), requests: REQUESTS, runs: RUNS };
    let measured = measure(&bench, progress);
    let of = |kind: &Kind| {
        let name = kind.info().name;
        let times = measured.elevators.iter().filter(|cost| cost.name == name).map(|cost| cost.ns_per_request);
        (name.to_owned(), times.collect())
    };
    elevators.iter().map(of).collect()
}
