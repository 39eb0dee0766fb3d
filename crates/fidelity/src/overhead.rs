//! The time of a request beyond that of the drive, on the way through the guest and its emulator,
//! which the simulated host gets too.

use crate::figures::Figure;
use crate::matrix::DELAY_NS;

/// The bytes of a request of the job.
const REQUEST_BYTES: f64 = 4096.0;

/// The overhead of a request in ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overhead {
    /// From the end of a request in the drive until the kernel knows of it, and from the dispatch
    /// of the next one until that reaches the drive.
    pub transport_ns: f64,
    /// From the completion in the kernel until a process that waited for the request has submitted
    /// its next one.
    pub turnaround_ns: f64,
}

/// The kernel's run of the queue after a completion, in turnarounds: its worker thread comes after
/// the process that was woken first.
const QUEUE_RUN: f64 = 1.2;

impl Overhead {
    /// The settings of the simulated host, as lines of a host file.
    pub fn settings(&self) -> String {
        let queue_run_ns = self.turnaround_ns * QUEUE_RUN;
        let [transport, turnaround, run] =
            [self.transport_ns, self.turnaround_ns, queue_run_ns].map(|ns| ns.round() as u64);
        format!("transport_ns = {transport}\ncompletion_ns = {turnaround}\nqueue_run_ns = {run}\n")
    }
}

/// Computes the overhead from the figures of the job `overhead`: a single process lets the
/// processor sleep between its requests and leaves the drive idle until it is awake; four processes
/// always have a request that waits.
pub fn overhead(figures: &[Figure]) -> Option<Overhead> {
    let request_ns = |section: &str| {
        let figure = figures.iter().find(|figure| figure.section == section)?;
        Some(REQUEST_BYTES * 1e9 / figure.bytes_per_s)
    };
    let (one, four) = (request_ns("one")?, request_ns("four")?);
    let (gap, turnaround_ns) = ((four - DELAY_NS).max(0.0), (one - four).max(0.0));
    Some(Overhead { transport_ns: (gap - turnaround_ns).max(0.0), turnaround_ns })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Direction;

    #[test]
    fn the_overhead_is_what_requests_take_beyond_the_drive() {
        let figure = |section: &str, request_ns: f64| Figure {
            section: section.to_owned(),
            direction: Direction::Read,
            requests: 1000,
            bytes_per_s: REQUEST_BYTES * 1e9 / request_ns,
            p50_ns: 0.0,
            p99_ns: 0.0,
        };
        let found = overhead(&[figure("one", 5.7e6), figure("four", 5.5e6)]).expect("both sections are there");
        assert!((found.transport_ns - 3e5).abs() < 1.0 && (found.turnaround_ns - 2e5).abs() < 1.0, "{found:?}");
        assert!(found.settings().contains("queue_run_ns = 240000\n"));
        assert_eq!(overhead(&[]), None);
    }
}
