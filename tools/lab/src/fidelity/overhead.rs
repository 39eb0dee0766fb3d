//! The time of a request beyond that of the drive, on the way through the guest and its emulator,
//! which the simulated host gets too.

use super::figures::Figure;
use super::matrix::DELAY_NS;

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
    /// The standard deviation of the logarithm of the time beyond the drive.
    pub sigma: f64,
}

impl Overhead {
    /// The settings of the simulated host, as lines of a host file.
    pub fn settings(&self) -> String {
        let [transport, turnaround, sigma] =
            [self.transport_ns, self.turnaround_ns, self.sigma * 1e3].map(|value| value.round() as u64);
        format!("transport_ns = {transport}\ncompletion_ns = {turnaround}\ntransport_sigma_milli = {sigma}\n")
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
    let (transport_ns, turnaround_ns) =
        ((request_ns("four")? - DELAY_NS).max(0.0), (request_ns("one")? - request_ns("four")?).max(0.0));
    let one = figures.iter().find(|figure| figure.section == "one")?;
    let [early, late] = [one.p10_ns, one.p90_ns].map(|latency| (latency - DELAY_NS).max(1.0));
    // Nine tenths of a normal distribution are below 1.2816 deviations.
    let sigma = (late / early).ln() / (2.0 * 1.2816);
    Some(Overhead { transport_ns, turnaround_ns, sigma: sigma.clamp(0.0, 1.0) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fidelity::figures::example;

    #[test]
    fn the_overhead_is_what_requests_take_beyond_the_drive() {
        let figure = |section: &str, request_ns: f64| example(section, REQUEST_BYTES * 1e9 / request_ns, 5.5e6);
        let one = Figure { p10_ns: 5.4e6, p90_ns: 5.8e6, ..figure("one", 5.7e6) };
        let found = overhead(&[one, figure("four", 5.5e6)]).expect("both sections are there");
        assert!((found.transport_ns - 5e5).abs() < 1.0 && (found.turnaround_ns - 2e5).abs() < 1.0, "{found:?}");
        assert!((found.sigma - 0.2705).abs() < 1e-3, "{found:?}");
        assert!(found.settings().contains("completion_ns = 200000\ntransport_sigma_milli = 270\n"));
        assert_eq!(overhead(&[]), None);
    }
}
