//! The time of a request beyond that of the drive, on the way through the guest and its emulator,
//! which the simulated host gets too.

use crate::figures::Figure;
use crate::matrix::DELAY_NS;

/// The bytes of a request of the job.
const REQUEST_BYTES: f64 = 4096.0;

/// The overhead of a request in ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overhead {
    /// From the end of a request in the drive until the next one, which waits, reaches the drive.
    pub transport_ns: f64,
    /// From there on until a process that waited for the request has submitted its next one.
    pub turnaround_ns: f64,
}

/// Computes the overhead from the figures of the job `overhead`: one process leaves the drive idle
/// between its requests, four always have one that waits.
pub fn overhead(figures: &[Figure]) -> Option<Overhead> {
    let request_ns = |section: &str| {
        let figure = figures.iter().find(|figure| figure.section == section)?;
        Some(REQUEST_BYTES * 1e9 / figure.bytes_per_s)
    };
    let (one, four) = (request_ns("one")?, request_ns("four")?);
    Some(Overhead { transport_ns: (four - DELAY_NS).max(0.0), turnaround_ns: (one - four).max(0.0) })
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
        let found = overhead(&[figure("one", 5.5e6), figure("four", 5.2e6)]).expect("both sections are there");
        assert!((found.transport_ns - 2e5).abs() < 1.0 && (found.turnaround_ns - 3e5).abs() < 1.0, "{found:?}");
        assert_eq!(overhead(&[]), None);
    }
}
