//! The verdict of a comparison: the outcome in the measure of the user, and the mechanism.

use hoistway_sim::{Comparison, Run};
use hoistway_units::figures::{agreement, figure};

use super::jobs::{JobRun, starves};
use super::measures::{Figures, Measure};
use super::seeds::SeededComparison;
use super::text::{duration, list};

/// Relative difference in bandwidth below which bandwidths count as equal.
const SAME_RATE: f64 = 1.03;
/// Ratio of slowest processes, or of 99th percentiles, from which they differ.
const DIFFERENT: f64 = 1.2;
/// Ratio of the longest waits from which they differ.
const DIFFERENT_WAIT: f64 = 2.0;

/// The verdict of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Verdict {
    /// What the elevators achieve, in bandwidth or waiting time, and who starves: a few sentences.
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
            None => runs.iter().map(Figures::of).collect(),
        };
        let starves = match seeds {
            Some(seeds) => seeds.elevators.iter().map(|run| run.starves > 0).collect(),
            None => starves(jobs),
        };
        let judged = Judged { runs, figures, several: runs.iter().any(has_company), starves, seeds };
        let (mut sentences, pair) = judged.outcome();
        sentences.extend(starved(runs, jobs));
        sentences.extend(seeds.map(|seeds| means(&seeds.seeds)));
        let mechanism = pair.and_then(|(best, worst)| mechanism(&runs[best], &runs[worst], comparison.rotational));
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
        let fed = all().filter(|(index, _)| !self.starves[*index]);
        let best = fed.max_by(order).or_else(|| all().max_by(order))?;
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
            let mut sentences = vec![slowest_sentence()];
            sentences.extend(total_differs.then(|| self.total_sentence(&total)));
            return (sentences, Some((slowest.best.0, slowest.worst.0)));
        }
        if total_differs {
            let mut sentences = vec![self.total_sentence(&total)];
            sentences.extend((self.several && slowest.ratio >= DIFFERENT).then(slowest_sentence));
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
        let time = |ns: f64| duration(ns as u64);
        if let Some(p99) = self.pair(Measure::LatencyP99Ns).filter(|p99| p99.ratio > DIFFERENT) {
            let text = self.sentence(&p99, "99 of 100 requests take at most", time, "");
            return format!("{text} The {rates}.");
        }
        if let Some(max) = self.pair(Measure::LatencyMaxNs).filter(|max| max.ratio > DIFFERENT_WAIT) {
            return format!("{} The {rates}.", self.sentence(&max, "the longest request takes", time, ""));
        }
        if self.figures.windows(2).all(|two| two[0] == two[1]) {
            return "No elevator is better: the results are identical.".to_owned();
        }
        format!("No elevator is better: {rates}, and no latency or share differs much.")
    }

    /// "Under A WHAT 3 MB/s, under B 2."
    fn sentence(&self, pair: &Pair, what: &str, text: impl Fn(f64) -> String, unit: &str) -> String {
        let [best, worst] = [pair.best.0, pair.worst.0].map(|index| self.runs[index].elevator.as_str());
        let [good, bad] = [pair.best.1, pair.worst.1];
        let bad = if bad == 0.0 { "nothing".to_owned() } else { text(bad) };
        format!("Under {best} {what} {}{unit}, under {worst} {bad}.", text(good))
    }
}

/// A sentence on the jobs that starve, each with the elevators under which it does; `None` if none
/// starves.
fn starved(runs: &[Run], jobs: &[Vec<JobRun>]) -> Option<String> {
    let mut parts: Vec<String> = Vec::new();
    for (index, first) in jobs.first()?.iter().enumerate() {
        let mut under: Vec<String> = Vec::new();
        for (run, job) in runs.iter().zip(jobs).filter_map(|(run, jobs)| Some((run, jobs.get(index)?))) {
            let Some(starved) = job.starved else { continue };
            under.push(match starved.wait_ns {
                Some(wait_ns) if starved.processes == 0 => {
                    format!("{} (a request waits {})", run.elevator, duration(wait_ns))
                }
                _ => format!("{} ({} MB/s)", run.elevator, mb(starved.bytes_per_s)),
            });
        }
        if under.is_empty() {
            continue;
        }
        let fair = first.fair_bytes_per_s.filter(|_| jobs.iter().any(|jobs| by_rate(jobs, index)));
        let fair = fair.map_or_else(String::new, |fair| format!(": a fair share is {} MB/s", mb(fair)));
        parts.push(format!("job `{}` starves under {}{fair}", first.name, list(&under)));
    }
    match parts.len() {
        0 => None,
        1..=LISTED => Some(format!("{}.", capital(&parts.join("; ")))),
        more => Some(format!("{}; and {} more jobs starve.", capital(&parts[..LISTED].join("; ")), more - LISTED)),
    }
}

/// Most starving jobs that the verdict names.
const LISTED: usize = 4;

fn by_rate(jobs: &[JobRun], index: usize) -> bool {
    jobs.get(index).and_then(|job| job.starved).is_some_and(|starved| starved.processes > 0)
}

/// How the best and the worst run differ in what they do to the drive.
fn mechanism(best: &Run, worst: &Run, rotational: bool) -> Option<String> {
    let idle = |run: &Run| part(run, run.drive_ns.idle);
    let arm = |run: &Run| if rotational { run.arm_share() } else { 0.0 };
    if std::ptr::eq(best, worst) {
        return Some(format!("{}.", capital(&does(best, rotational))));
    }
    if idle(worst) - idle(best) > (arm(worst) - arm(best)).max(0.05) {
        return Some(format!(
            "{} leaves the drive idle {} of the time, {} {}.",
            capital(&worst.elevator),
            percent(idle(worst)),
            best.elevator,
            percent(idle(best))
        ));
    }
    let texts = [does(best, rotational), does(worst, rotational)];
    let differ = texts[0].strip_prefix(best.elevator.as_str()) != texts[1].strip_prefix(worst.elevator.as_str());
    differ.then(|| format!("{}; {}.", capital(&texts[0]), texts[1]))
}

/// What an elevator does: how often it turns from process to process, or the size of its requests,
/// and on a disk the share of time that arm and platter cost.
fn does(run: &Run, rotational: bool) -> String {
    let share = if rotational {
        format!(": {} of the time is seek and rotation", percent(run.arm_share()))
    } else {
        String::new()
    };
    match run.turns {
        // A single process makes no turns; the first request of each process counts as one.
        turns if turns as usize > run.processes.len() && run.processes.len() > 1 => {
            let each = duration(run.runtime_ns / turns);
            let kib = run.drive_bytes / turns / 1024;
            let every = if kib >= 1024 { format!("{:.1} MiB", kib as f64 / 1024.0) } else { format!("{kib} KiB") };
            format!("{} turns from one process to another every {every} ({each}){share}", run.elevator)
        }
        _ => {
            let kib = run.drive_bytes / run.drive_requests.max(1) / 1024;
            format!("{} serves requests of {kib} KiB on average{share}", run.elevator)
        }
    }
}

fn part(run: &Run, ns: u64) -> f64 {
    if run.runtime_ns == 0 { 0.0 } else { ns as f64 / run.runtime_ns as f64 }
}

fn percent(share: f64) -> String {
    if share < 0.1 { format!("{:.1} %", share * 100.0) } else { format!("{:.0} %", share * 100.0) }
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

/// The text with a capital letter, unless it begins with the name of an elevator.
fn capital(text: &str) -> String {
    match text.strip_prefix("job ") {
        Some(rest) => format!("Job {rest}"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use hoistway_core::Kind;
    use hoistway_sim::{CompareRequest, HostConfig, compare};

    use super::super::Judgement;
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
    fn the_outcome_comes_before_the_mechanism() {
        let verdict = verdict("[a]\nsize=32m\nnumjobs=4\n", &[Kind::Deadline, Kind::CfqV3]);
        assert!(verdict.outcome.starts_with("Under cfq-v3 "), "{verdict:?}");
        assert!(verdict.outcome.contains(" MB/s, under deadline "), "{verdict:?}");
        let mechanism = verdict.mechanism.expect("a mechanism");
        assert!(mechanism.starts_with("cfq-v3 turns from one process to another every"), "{mechanism}");
        assert!(mechanism.contains("deadline turns from one process to another every 25"), "{mechanism}");
    }

    #[test]
    fn equal_results_are_identical_and_not_within_nothing() {
        let verdict = verdict("[a]\nsize=8m\n", &[Kind::Noop, Kind::Deadline]);
        assert_eq!(verdict.outcome, "No elevator is better: the results are identical.");
        assert_eq!(verdict.mechanism, None);
    }

    #[test]
    fn a_tiny_rate_is_not_rounded_to_nothing() {
        assert_eq!([34.0, 8_512.0, 57_200.0, 57_200_000.0].map(mb), ["0.000034", "0.0085", "0.0572", "57.2"]);
    }

    #[test]
    fn a_job_that_starves_is_in_the_outcome() {
        let jobs = "[writer]\nrw=write\nbs=64k\nsize=1g\nruntime=10\n[reader]\nrw=read\nbs=4k\nsize=1g\nruntime=10\n";
        let verdict = verdict(jobs, &[Kind::Noop, Kind::CfqV3]);
        assert!(verdict.outcome.starts_with("Under cfq-v3 the slowest process gets "), "{verdict:?}");
        assert!(verdict.outcome.contains("Job `reader` starves under noop ("), "{verdict:?}");
        assert!(verdict.outcome.contains("a fair share is "), "{verdict:?}");
    }
}
