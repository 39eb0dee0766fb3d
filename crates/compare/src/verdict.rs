//! The verdict of a comparison: which scheduler to choose, the outcome in the measure of the user,
//! and the mechanism.

use hoistway_sim::{Comparison, Run};
use hoistway_units::figures::{agreement, duration, figure, magnitude};
use hoistway_units::names::list;

use super::drive_work::{DriveWork, mechanism};
use super::jobs::{JobRun, SeededStarvation, StarvedJob, starved_jobs, starves};
use super::measures::{Figures, Measure};
use super::seeds::SeededComparison;

/// Relative difference in bandwidth below which bandwidths count as equal.
const SAME_RATE: f64 = 1.03;
/// Ratio of slowest processes, or of 99th percentiles, from which they differ.
const DIFFERENT: f64 = 1.2;
/// Ratio of the longest waits from which they differ.
const DIFFERENT_WAIT: f64 = 2.0;
/// The measures that a recommendation weighs.
const WEIGHED: [Measure; 5] =
    [Measure::SlowestBytesPerS, Measure::BytesPerS, Measure::LatencyP99Ns, Measure::LatencyMaxNs, Measure::SyncP99Ns];

/// The verdict of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Verdict {
    /// Which scheduler to choose and what it costs, what the elevators achieve, in bandwidth or
    /// waiting time, and which jobs starve: a few sentences.
    pub outcome: String,
    /// How the elevators differ in what they do to the drive, a sentence; `None` if they do not
    /// differ, or if there is no outcome to explain.
    pub mechanism: Option<String>,
}

impl Verdict {
    /// Outcome and mechanism as one text.
    pub fn text(&self) -> String {
        match &self.mechanism {
            Some(mechanism) => format!("{} {mechanism}", self.outcome),
            None => self.outcome.clone(),
        }
    }

    /// The verdict on these results; `jobs` are the results of the jobs of each run. With `seeds`,
    /// the figures are means over them, and a difference that is chance does not count.
    pub(super) fn of(comparison: &Comparison, jobs: &[Vec<JobRun>], seeds: Option<&SeededComparison>) -> Verdict {
        let runs = &comparison.runs;
        let figures = match seeds {
            Some(seeds) => seeds.elevators.iter().map(|run| Figures::mean(&run.figures)).collect(),
            None => runs.iter().zip(jobs).map(|(run, jobs)| Figures::of(run, jobs)).collect(),
        };
        let starves = match seeds {
            Some(seeds) => seeds.elevators.iter().map(|run| run.starves > 0).collect(),
            None => starves(jobs),
        };
        let judged = Judged { runs, figures, several: runs.iter().any(has_company), starves, seeds };
        let (mut sentences, pair) = judged.outcome();
        sentences.extend(match seeds {
            Some(seeds) => starved(runs, &seeds.starved_jobs, seeds.seeds.len()),
            None => starved(runs, &starved_jobs(&[jobs]), 1),
        });
        sentences.extend(seeds.map(|seeds| means(&seeds.seeds)));
        let work = |run: usize| seeds.map_or_else(|| DriveWork::of(&runs[run]), |seeds| seeds.elevators[run].work);
        let mechanism = pair.and_then(|(best, worst)| {
            let [first, second] = [best, worst].map(|run| (runs[run].elevator.as_str(), work(run)));
            mechanism((first.0, &first.1), (second.0, &second.1), comparison.rotational)
        });
        Verdict { outcome: sentences.join(" "), mechanism }
    }
}

/// The sentence on the seeds.
fn means(seeds: &[u64]) -> String {
    let (first, last) = (seeds.first().unwrap_or(&0), seeds.last().unwrap_or(&0));
    format!("Figures are means over the {} seeds {first} to {last}.", seeds.len())
}

/// Returns true if some processes ran at the same time.
fn has_company(run: &Run) -> bool {
    let phases = run.phases();
    phases.iter().max().is_some_and(|last| last + 1 < phases.len())
}

/// The runs, and what decides which of them is the best.
struct Judged<'a> {
    runs: &'a [Run],
    figures: Vec<Figures>,
    several: bool,
    starves: Vec<bool>,
    seeds: Option<&'a SeededComparison>,
}

/// The best run and the worst run by a measure, as indices, with their values.
#[derive(Clone, Copy)]
struct Pair {
    best: (usize, f64),
    worst: (usize, f64),
    /// The greater value over the lesser; 1 if the difference is chance.
    ratio: f64,
}

impl Judged<'_> {
    /// The best and the worst run by a measure. A run in which a job starves is the best only if
    /// one starves in every run.
    fn pair(&self, measure: Measure) -> Option<Pair> {
        let more = measure.more_is_better();
        let order = |a: &(usize, f64), b: &(usize, f64)| if more { a.1.total_cmp(&b.1) } else { b.1.total_cmp(&a.1) };
        let all = || self.figures.iter().map(|figures| figures.get(measure)).enumerate();
        // Of equal runs the first is the best: `max_by` returns the last.
        let fed = all().rev().filter(|(index, _)| !self.starves[*index]);
        let best = fed.max_by(order).or_else(|| all().rev().max_by(order))?;
        let worst = all().min_by(order)?;
        let (greater, lesser) = (best.1.max(worst.1), best.1.min(worst.1));
        let is_chance = self.seeds.is_some_and(|seeds| seeds.is_chance(measure, best.0, worst.0));
        Some(Pair { best, worst, ratio: if greater <= lesser || is_chance { 1.0 } else { greater / lesser } })
    }

    /// The sentences of the outcome, and the two runs that they compare.
    fn outcome(&self) -> (Vec<String>, Option<(usize, usize)>) {
        let pairs = (self.pair(Measure::BytesPerS), self.pair(Measure::SlowestBytesPerS));
        let (Some(total), Some(slowest)) = pairs else { return (Vec::new(), None) };
        if let [figures] = self.figures.as_slice() {
            return (vec![self.single(figures)], Some((0, 0)));
        }
        let slowest_sentence = || self.sentence(&slowest, "the slowest process gets", mb, " MB/s");
        let total_differs = total.ratio >= SAME_RATE;
        if self.several && slowest.ratio >= DIFFERENT.max(total.ratio) {
            let advice = self.recommendation(Measure::SlowestBytesPerS, slowest.best.0);
            let mut sentences = vec![advice, slowest_sentence()];
            sentences.extend(total_differs.then(|| self.total_sentence(&total)));
            sentences.extend(self.syncs());
            return (sentences, Some((slowest.best.0, slowest.worst.0)));
        }
        if total_differs {
            let advice = self.recommendation(Measure::BytesPerS, total.best.0);
            let mut sentences = vec![advice, self.total_sentence(&total)];
            sentences.extend((self.several && slowest.ratio >= DIFFERENT).then(slowest_sentence));
            sentences.extend(self.syncs());
            return (sentences, Some((total.best.0, total.worst.0)));
        }
        (vec![self.waits(&total)], None)
    }

    /// The outcome of a single run.
    fn single(&self, figures: &Figures) -> String {
        let (name, total) = (&self.runs[0].elevator, mb(figures.get(Measure::BytesPerS)));
        let slowest = mb(figures.get(Measure::SlowestBytesPerS));
        match self.several {
            true => format!("Under {name} the slowest process gets {slowest} MB/s, all together {total}."),
            false => format!("Under {name} the workload gets {total} MB/s."),
        }
    }

    fn total_sentence(&self, total: &Pair) -> String {
        let what = if self.several { "all processes together get" } else { "the workload gets" };
        self.sentence(total, what, mb, " MB/s")
    }

    /// The outcome for equal bandwidths: the waits may differ.
    fn waits(&self, total: &Pair) -> String {
        let is_chance =
            self.seeds.is_some_and(|seeds| seeds.is_chance(Measure::BytesPerS, total.best.0, total.worst.0));
        let most = total.best.1.max(total.worst.1).max(f64::MIN_POSITIVE);
        let mut rates = format!("bandwidths are {}", agreement((total.best.1 - total.worst.1).abs() / most));
        if is_chance && total.best.1 != total.worst.1 {
            rates.push_str(", which is chance");
        }
        let differs = |measure: Measure, what: &str| {
            let pair = self.pair(measure).filter(|pair| pair.ratio > least_ratio(measure))?;
            Some((measure, pair.best.0, self.sentence(&pair, what, time, "")))
        };
        let latency = differs(Measure::LatencyP99Ns, "99 of 100 requests take at most")
            .or_else(|| differs(Measure::LatencyMaxNs, "the longest request takes"));
        let waits: Vec<_> = latency.into_iter().chain(differs(Measure::SyncP99Ns, SYNCS)).collect();
        if let Some((measure, best, _)) = waits.first() {
            let sentences: Vec<&str> = waits.iter().map(|(_, _, sentence)| sentence.as_str()).collect();
            return format!("{} {} The {rates}.", self.recommendation(*measure, *best), sentences.join(" "));
        }
        if self.figures.windows(2).all(|two| two[0] == two[1]) {
            return "The choice of scheduler does not matter here: the results are identical.".to_owned();
        }
        format!("The choice of scheduler does not matter here: {rates}, and no latency or share differs much.")
    }

    /// The sentences that name the scheduler to choose, for which measure, and what it costs.
    fn recommendation(&self, decided_by: Measure, chosen: usize) -> String {
        let weighed = || WEIGHED.into_iter().filter(|measure| self.several || *measure != Measure::SlowestBytesPerS);
        let equal = |run: &usize| {
            *run != chosen
                && self.starves[*run] == self.starves[chosen]
                && !weighed().any(|measure| self.differs(measure, *run, chosen))
        };
        let equals = (0..self.runs.len()).filter(equal).map(|run| self.runs[run].elevator.clone()).collect::<Vec<_>>();
        let costs: Vec<String> = weighed().filter_map(|measure| self.cost(measure, chosen)).collect();
        let mut text = format!("Choose scheduler {}", self.runs[chosen].elevator);
        match equals.len() {
            0 => {}
            1 => text.push_str(&format!(" ({} does about as well)", equals[0])),
            _ => text.push_str(&format!(" ({} do about as well)", list(&equals, "and"))),
        }
        if costs.is_empty() {
            return text + ".";
        }
        let aim = match decided_by {
            Measure::SlowestBytesPerS => "the slowest process",
            Measure::BytesPerS => "bandwidth",
            Measure::SyncP99Ns => "the latency of syncs",
            _ => "latency",
        };
        format!("{text} for {aim}. It costs {}.", list(&costs, "and"))
    }

    /// What a run loses in a measure against the best one; `None` if it loses little.
    fn cost(&self, measure: Measure, chosen: usize) -> Option<String> {
        let (best, value) = self.pair(measure)?.best;
        if !self.differs(measure, best, chosen) {
            return None;
        }
        let (own, name) = (self.figures[chosen].get(measure), &self.runs[best].elevator);
        let waits = |what: &str| format!("{what} of {} (under {name} {})", time(own), time(value));
        Some(match measure {
            Measure::BytesPerS => format!("{} of the bandwidth under {name}", magnitude(1.0 - own / value)),
            Measure::SlowestBytesPerS => {
                format!("{} of what the slowest process gets under {name}", magnitude(1.0 - own / value))
            }
            Measure::LatencyMaxNs => waits("a longest wait"),
            Measure::SyncP99Ns if own.is_infinite() => "all syncs, of which none completes".to_owned(),
            Measure::SyncP99Ns => waits("a 99th percentile of syncs"),
            _ => waits("a 99th percentile of latency"),
        })
    }

    /// Returns true if two runs differ in a measure by more than chance, and by so much that it
    /// counts.
    fn differs(&self, measure: Measure, one: usize, other: usize) -> bool {
        let [a, b] = [one, other].map(|run| self.figures[run].get(measure));
        let is_chance = || self.seeds.is_some_and(|seeds| seeds.is_chance(measure, one, other));
        a.max(b) > a.min(b) * least_ratio(measure) && !is_chance()
    }

    /// The sentence on the syncs; `None` if no job syncs, or if the latencies do not differ.
    fn syncs(&self) -> Option<String> {
        let p99 = self.pair(Measure::SyncP99Ns).filter(|p99| p99.ratio > DIFFERENT)?;
        Some(self.sentence(&p99, SYNCS, time, ""))
    }

    /// "Under A WHAT 3 MB/s, under B 2."
    fn sentence(&self, pair: &Pair, what: &str, text: impl Fn(f64) -> String, unit: &str) -> String {
        let [best, worst] = [pair.best.0, pair.worst.0].map(|index| self.runs[index].elevator.as_str());
        let [good, bad] = [pair.best.1, pair.worst.1];
        let bad = match bad {
            0.0 => "nothing".to_owned(),
            bad if bad.is_infinite() => "none completes".to_owned(),
            bad => text(bad),
        };
        format!("Under {best} {what} {}{unit}, under {worst} {bad}.", text(good))
    }
}

/// A sentence on the jobs that starve, each with the elevators under which it does, and with how
/// many of the `seeds` if there are several; `None` if none starves.
fn starved(runs: &[Run], jobs: &[StarvedJob], seeds: usize) -> Option<String> {
    let text = |job: &StarvedJob| {
        let elevators = runs.iter().zip(&job.elevators);
        let under = elevators.filter_map(|(run, starved)| Some(under(&run.elevator, starved.as_ref()?, seeds)));
        let under: Vec<String> = under.collect();
        let by_rate = job.elevators.iter().flatten().any(|starved| starved.worst.processes > 0);
        let fair = job.fair_bytes_per_s.filter(|_| by_rate);
        let fair = fair.map_or_else(String::new, |fair| format!(": a fair share is {} MB/s", mb(fair)));
        format!("job `{}` starves under {}{fair}", job.name, list(&under, "and"))
    };
    let parts: Vec<String> = jobs.iter().take(LISTED).map(text).collect();
    let text = parts.join("; ");
    let text = text.strip_prefix('j').map_or_else(|| text.clone(), |rest| format!("J{rest}"));
    match jobs.len() {
        0 => None,
        1..=LISTED => Some(format!("{text}.")),
        more => Some(format!("{text}; and {} more jobs starve.", more - LISTED)),
    }
}

/// An elevator under which a job starves: "bfq (1.50 MB/s)", "bfq in 3 of 8 seeds (a request waits
/// 11.6 s)", with the figure of the worst seed.
fn under(elevator: &str, starved: &SeededStarvation, seeds: usize) -> String {
    let in_seeds = match (starved.seeds, seeds) {
        (_, 1) => String::new(),
        (some, all) if some == all => format!(" in all {all} seeds"),
        (some, all) => format!(" in {some} of {all} seeds"),
    };
    match starved.worst.wait_ns {
        Some(wait_ns) if starved.worst.processes == 0 => {
            format!("{elevator}{in_seeds} (a request waits {})", duration(wait_ns))
        }
        _ => format!("{elevator}{in_seeds} ({} MB/s)", mb(starved.worst.bytes_per_s)),
    }
}

/// The maximum number of starving jobs that the verdict names.
const LISTED: usize = 4;
/// The start of the sentence on syncs, after the name of the elevator.
const SYNCS: &str = "99 of 100 syncs take at most";

/// The ratio from which two values of a measure differ.
fn least_ratio(measure: Measure) -> f64 {
    match measure {
        Measure::BytesPerS => SAME_RATE,
        Measure::LatencyMaxNs | Measure::SyncMaxNs => DIFFERENT_WAIT,
        _ => DIFFERENT,
    }
}

fn time(ns: f64) -> String {
    duration(ns as u64)
}

/// Megabytes a second with three digits, or two for a rate that three would round to nothing.
fn mb(bytes_per_s: f64) -> String {
    let mb = bytes_per_s / 1e6;
    if mb > 0.0 && mb < 0.01 {
        let decimals = (1.0 - mb.log10().floor()) as usize;
        return format!("{mb:.decimals$}");
    }
    figure(mb)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use hoistway_core::Kind;
    use hoistway_sim::{CompareRequest, HostConfig, compare};

    use super::super::{Judgement, Starvation};
    use super::*;

    fn verdict(jobs: &str, elevators: &[Kind]) -> Verdict {
        let jobs = hoistway_fio::parse(jobs, "a.fio", &|_| None, &|_, _| unreachable!("nothing is included"));
        let request = CompareRequest {
            jobs: jobs.expect("a job file"),
            profile: hoistway_drive::Profile::builtin("sata-7200-2006").expect("a drive"),
            host: HostConfig::default(),
            elevators: elevators.to_vec(),
            settings: Vec::new(),
            seed: 1,
            record: false,
        };
        let comparison = compare(&request, &|_| {}, &AtomicBool::new(false)).expect("runs");
        Judgement::of(&comparison).verdict
    }

    #[test]
    fn the_choice_and_its_cost_come_before_the_outcome_and_the_mechanism() {
        let verdict = verdict("[a]\nsize=32m\nnumjobs=4\n", &[Kind::Deadline, Kind::CfqV3]);
        let choice = "Choose scheduler cfq-v3 for the slowest process. It costs a 99th percentile of latency of ";
        assert!(verdict.outcome.starts_with(choice), "{verdict:?}");
        let cost = " and a longest wait of 333 ms (under deadline 50.0 ms). Under cfq-v3 the slowest process gets ";
        assert!(verdict.outcome.contains(cost), "{verdict:?}");
        assert!(verdict.outcome.contains(" MB/s, under deadline "), "{verdict:?}");
        let mechanism = verdict.mechanism.expect("a mechanism");
        assert!(mechanism.starts_with("cfq-v3 turns from one process to another every"), "{mechanism}");
        assert!(mechanism.contains("deadline turns from one process to another every 489 KiB"), "{mechanism}");
    }

    /// A log with fdatasync beside a writer that does not wait.
    const LOG: &str = "[global]\nruntime=2\n[log]\nrw=write\nbs=4k\nsize=64m\nfdatasync=1\n\
                       [flood]\nrw=write\nbs=64k\nsize=1g\n";

    #[test]
    fn the_syncs_of_a_job_are_in_the_outcome_if_their_latencies_differ() {
        let found = verdict(LOG, &[Kind::MqDeadline, Kind::Bfq]).outcome;
        assert!(found.contains(" 99 of 100 syncs take at most "), "{found}");
        let without = verdict(&LOG.replace("fdatasync=1", ""), &[Kind::MqDeadline, Kind::Bfq]).outcome;
        assert!(!without.contains("syncs"), "{without}");
    }

    #[test]
    fn equal_results_are_identical_and_not_within_nothing() {
        let verdict = verdict("[a]\nsize=8m\n", &[Kind::Noop, Kind::Deadline]);
        assert_eq!(verdict.outcome, "The choice of scheduler does not matter here: the results are identical.");
        assert_eq!(verdict.mechanism, None);
    }

    #[test]
    fn a_tiny_rate_is_not_rounded_to_nothing() {
        assert_eq!([34.0, 8_512.0, 57_200.0, 57_200_000.0].map(mb), ["0.000034", "0.0085", "0.0572", "57.2"]);
    }

    #[test]
    fn a_job_that_starves_with_some_seeds_is_named_with_their_number() {
        let starved = |seeds, processes, wait_ns| SeededStarvation {
            seeds,
            worst: Starvation { processes, bytes_per_s: 1_500_000.0, wait_ns },
        };
        assert_eq!(under("bfq", &starved(3, 1, None), 8), "bfq in 3 of 8 seeds (1.50 MB/s)");
        assert_eq!(under("bfq", &starved(8, 1, None), 8), "bfq in all 8 seeds (1.50 MB/s)");
        assert_eq!(under("bfq", &starved(1, 1, None), 1), "bfq (1.50 MB/s)");
        let waits = starved(1, 0, Some(11_600_000_000));
        assert_eq!(under("bfq", &waits, 2), "bfq in 1 of 2 seeds (a request waits 11.6 s)");
    }

    #[test]
    fn a_job_that_starves_is_in_the_outcome() {
        let jobs = "[writer]\nrw=write\nbs=64k\nsize=1g\nruntime=10\n[reader]\nrw=read\nbs=4k\nsize=1g\nruntime=10\n";
        let verdict = verdict(jobs, &[Kind::Noop, Kind::CfqV3]);
        assert!(verdict.outcome.contains(". Under cfq-v3 the slowest process gets "), "{verdict:?}");
        assert!(verdict.outcome.contains("Job `reader` starves under noop ("), "{verdict:?}");
        assert!(verdict.outcome.contains("a fair share is "), "{verdict:?}");
    }
}
