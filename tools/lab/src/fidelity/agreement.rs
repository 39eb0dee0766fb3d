//! How far guests and simulator agree: errors of rates and latencies, and orders of schedulers.

use super::figures::Figure;
use super::repetition::{self, Repetition, Spread};
use super::store::Place;

/// The requests of a figure from which its median is compared.
const REQUESTS_FOR_P50: u64 = 20;
/// The requests of a figure from which its 99th percentile is compared.
const REQUESTS_FOR_P99: u64 = 100;
/// The latency from which a request has waited for the drive; shorter ones are times of the
/// emulated processor.
const DRIVE_NS: f64 = 1e6;
/// The difference of two schedulers' rates in the guest from which the better one must be named.
const DIFFERENCE: f64 = 0.10;
/// The goals: median errors, and the share of orders that are right.
pub const GOALS: [f64; 3] = [0.05, 0.15, 0.95];

/// The goal for synced jobs: the largest error of a rate.
pub const SYNC_GOAL: f64 = 0.20;

/// Runs in a guest and simulations of the same job.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The kernel, the drive, the job and the scheduler.
    pub place: Place,
    /// The runs in the guest.
    pub real: Repetition,
    /// The simulations, one seed for each run in the guest.
    pub simulated: Repetition,
}

/// The relative error of a simulated figure: -0.1 is a tenth less than in the guest.
#[derive(Clone, Debug, PartialEq)]
pub struct Errors {
    /// The errors of the rates of sections.
    pub rate: Vec<f64>,
    /// The errors of the medians of latencies.
    pub p50: Vec<f64>,
    /// The errors of the 99th percentiles.
    pub p99: Vec<f64>,
}

/// The medians of both sides by section and direction; a side without requests has None.
pub fn beside(pair: &Pair) -> Vec<(&Figure, Option<&Figure>)> {
    let same =
        |one: &Figure| pair.simulated.figures.iter().find(|other| other.is_same_part(&one.section, one.direction));
    pair.real.figures.iter().map(|one| (one, same(one))).collect()
}

/// The errors of some pairs.
pub fn errors<'a>(pairs: impl IntoIterator<Item = &'a Pair>) -> Errors {
    let mut errors = Errors { rate: Vec::new(), p50: Vec::new(), p99: Vec::new() };
    for pair in pairs {
        for (real, simulated) in beside(pair) {
            let Some(simulated) = simulated else {
                errors.rate.push(-1.0);
                continue;
            };
            let requests = real.requests.min(simulated.requests);
            errors.rate.push(simulated.bytes_per_s / real.bytes_per_s.max(1.0) - 1.0);
            if requests >= REQUESTS_FOR_P50 && real.p50_ns >= DRIVE_NS {
                errors.p50.push(simulated.p50_ns / real.p50_ns.max(1.0) - 1.0);
            }
            if requests >= REQUESTS_FOR_P99 && real.p99_ns >= DRIVE_NS {
                errors.p99.push(simulated.p99_ns / real.p99_ns.max(1.0) - 1.0);
            }
        }
    }
    errors
}

/// The median of absolute values; 0 of none.
pub fn median(errors: &[f64]) -> f64 {
    repetition::median(errors.iter().map(|error| error.abs()).collect())
}

/// The spreads of the rates of sections over the runs in the guest, of the pairs that ran more than
/// once.
pub fn spreads<'a>(pairs: impl IntoIterator<Item = &'a Pair>) -> Vec<f64> {
    let repeated = pairs.into_iter().filter(|pair| pair.real.count() > 1);
    repeated
        .flat_map(|pair| {
            pair.real.figures.iter().map(|figure| pair.real.rates(&figure.section, figure.direction).share())
        })
        .collect()
}

/// Two schedulers whose rates in the guest differ by more than a tenth, and by more than chance,
/// for one section or in all.
#[derive(Clone, Debug, PartialEq)]
pub struct Order {
    /// The kernel, the drive and the job, with the better scheduler.
    pub better: Place,
    /// The other scheduler.
    pub worse: String,
    /// The section and direction; None for the sum of all.
    pub section: Option<String>,
    /// The better median rate over the other one, in the guest and simulated.
    pub ratios: [f64; 2],
}

impl Order {
    /// Returns true if the simulator has the same scheduler ahead.
    pub fn is_right(&self) -> bool {
        self.ratios[1] > 1.0
    }
}

/// Returns true if two schedulers count for the order: the first is faster by more than a tenth,
/// and its slowest run is faster than the fastest of the other one.
fn is_clear(one: &Spread, other: &Spread) -> bool {
    one.median > other.median * (1.0 + DIFFERENCE) && one.slowest > other.fastest
}

/// All orders of schedulers in which the guest's rates differ enough.
pub fn orders(pairs: &[Pair]) -> Vec<Order> {
    let mut orders = Vec::new();
    for one in pairs {
        for other in pairs {
            let same_job = (&one.place.kernel, &one.place.drive, &one.place.job)
                == (&other.place.kernel, &other.place.drive, &other.place.job);
            if !same_job || one.place.scheduler == other.place.scheduler {
                continue;
            }
            let mut compare = |section: Option<String>, rates: &dyn Fn(&Repetition) -> Spread| {
                let [real, other_real] = [&one.real, &other.real].map(rates);
                if is_clear(&real, &other_real) {
                    let [simulated, other_simulated] = [&one.simulated, &other.simulated].map(rates);
                    let ratio = |one: Spread, other: Spread| one.median / other.median.max(1.0);
                    orders.push(Order {
                        better: one.place.clone(),
                        worse: other.place.scheduler.clone(),
                        section,
                        ratios: [ratio(real, other_real), ratio(simulated, other_simulated)],
                    });
                }
            };
            compare(None, &Repetition::totals);
            if one.real.figures.len() < 2 {
                continue;
            }
            for figure in &one.real.figures {
                let section = format!("{} {}", figure.section, figure.direction.name());
                compare(Some(section), &|runs| runs.rates(&figure.section, figure.direction));
            }
        }
    }
    orders
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fidelity::figures::example as figure;

    fn pair(scheduler: &str, real: Vec<Figure>, simulated: Vec<Figure>) -> Pair {
        let [kernel, drive, job, scheduler] = ["6.1", "d", "j", scheduler].map(str::to_owned);
        let [real, simulated] = [real, simulated].map(|figures| Repetition::new(vec![figures]));
        Pair { place: Place { kernel, drive, job, scheduler }, real, simulated }
    }

    #[test]
    fn errors_are_relative_to_the_guest() {
        let real = vec![figure("a", 100.0, 10e6), figure("b", 50.0, 1e6)];
        let one = pair("none", real, vec![figure("a", 90.0, 12e6)]);
        let errors = errors([&one]);
        assert!((errors.rate[0] + 0.1).abs() < 1e-9 && errors.rate[1] == -1.0, "{errors:?}");
        assert!((errors.p50[0] - 0.2).abs() < 1e-9 && errors.p99.len() == 1);
        assert_eq!(median(&[0.3, -0.1, 0.2]), 0.2);
    }

    #[test]
    fn orders_count_where_the_guest_differs_by_more_than_a_tenth() {
        let pairs = [
            pair("none", vec![figure("a", 100.0, 1.0)], vec![figure("a", 100.0, 1.0)]),
            pair("bfq", vec![figure("a", 105.0, 1.0)], vec![figure("a", 90.0, 1.0)]),
            pair("kyber", vec![figure("a", 50.0, 1.0)], vec![figure("a", 95.0, 1.0)]),
        ];
        let orders = orders(&pairs);
        assert_eq!(orders.len(), 2);
        let right: Vec<bool> = orders.iter().map(Order::is_right).collect();
        assert_eq!(right, [true, false]);
    }

    #[test]
    fn runs_that_overlap_do_not_count_for_the_order() {
        let with_runs = |scheduler: &str, rates: [f64; 3]| {
            let runs = rates.map(|rate| vec![figure("a", rate, 1.0)]).to_vec();
            Pair { real: Repetition::new(runs), ..pair(scheduler, Vec::new(), vec![figure("a", 1.0, 1.0)]) }
        };
        let [apart, overlapping] = [[80.0, 85.0, 99.0], [80.0, 85.0, 101.0]]
            .map(|slower| orders(&[with_runs("none", [100.0, 110.0, 120.0]), with_runs("bfq", slower)]).len());
        assert_eq!((apart, overlapping), (1, 0));
        let pairs = [with_runs("none", [90.0, 100.0, 110.0]), pair("bfq", vec![figure("a", 1.0, 1.0)], Vec::new())];
        assert_eq!(spreads(&pairs), [0.2]);
    }
}
