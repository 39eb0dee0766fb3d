//! Comparisons over several seeds: spreads, and differences that are chance.
//!
//! The same seed gives every elevator the same drive, the same files and the same random draws, so
//! values are compared in pairs, as in [`Difference`]: the mean of the differences over the seeds,
//! and the interval that holds the true mean with a probability of 95 % (Student's t). A difference
//! is chance if that interval contains zero.

use std::sync::atomic::AtomicBool;

use hoistway_sim::{CompareRequest, Comparison, Progress, Run, SimError, run_each};

use super::drive_work::DriveWork;
use super::jobs::{JobRun, StarvedJob, job_runs, starved_jobs, starves, syncs};
use super::measures::{Figures, Measure};
use super::statistics::{Difference, Spread};

/// The results of all elevators over several seeds.
#[derive(Clone, Debug, serde::Serialize)]
pub struct SeededComparison {
    /// The seeds.
    pub seeds: Vec<u64>,
    /// The results of the elevators, in the order of the request.
    pub elevators: Vec<SeededRun>,
    /// The jobs that starve with some seed.
    pub starved_jobs: Vec<StarvedJob>,
}

/// The results of one elevator over several seeds.
#[derive(Clone, Debug, serde::Serialize)]
pub struct SeededRun {
    /// The name of the elevator.
    pub name: String,
    /// The number of seeds with which a job starves.
    pub starves: usize,
    /// The figures of each measure; without those of syncs if no job syncs.
    pub measures: Vec<SeededMeasure>,
    /// The values of all measures, by seed.
    #[serde(skip)]
    pub(super) figures: Vec<Figures>,
    /// The work of the drive with all seeds together.
    #[serde(skip)]
    pub(super) work: DriveWork,
}

/// One measure of one elevator over several seeds.
#[derive(Clone, Debug, serde::Serialize)]
pub struct SeededMeasure {
    /// The measure.
    pub measure: Measure,
    /// The values in the order of the seeds.
    pub values: Vec<f64>,
    /// Mean, interval of 95 %, least and greatest value.
    pub spread: Spread,
    /// The difference to the elevator with the best mean; `None` for that elevator itself.
    pub against_best: Option<Difference>,
    /// True if the difference to the best is chance, or if this is the best and another cannot be
    /// distinguished from it.
    pub is_chance: bool,
}

impl SeededComparison {
    /// Runs the request with `count - 1` seeds beyond its own, whose comparison is `first`. When
    /// `cancel` becomes true, the seed that runs is left out, and so are those after it. `progress`
    /// gets the number of the seed, from 1 on, with the progress of a run; `each` gets each seed
    /// beyond the first with its runs.
    ///
    /// # Errors
    /// The errors of [`run_each`].
    pub fn run(
        request: &CompareRequest,
        first: &Comparison,
        count: u32,
        progress: &(dyn Fn(u32, Progress) + Sync),
        each: &(dyn Fn(u64, &[Run]) + Sync),
        cancel: &AtomicBool,
    ) -> Result<SeededComparison, SimError> {
        let mut seeds = vec![request.seed];
        let mut all = vec![SeedFigures::of(first)];
        for index in 1..count {
            let seed = request.seed.wrapping_add(u64::from(index));
            let request = CompareRequest { seed, record: false, ..request.clone() };
            let runs = match run_each(&request, &|at| progress(index, at), cancel) {
                Err(SimError::Cancelled) => break,
                runs => runs?,
            };
            each(seed, &runs);
            all.push(SeedFigures::of(&Comparison { runs, seed, ..without_runs(first) }));
            seeds.push(seed);
        }
        let names = first.runs.iter().map(|run| run.elevator.clone());
        let mut elevators: Vec<SeededRun> = names
            .enumerate()
            .map(|(index, name)| SeededRun {
                name,
                starves: all.iter().filter(|seed| seed.starves[index]).count(),
                figures: all.iter().map(|seed| seed.figures[index]).collect(),
                work: all.iter().map(|seed| seed.work[index]).sum(),
                measures: Vec::new(),
            })
            .collect();
        let has_syncs = all.iter().any(|seed| syncs(&seed.jobs));
        for measure in Measure::ALL.into_iter().filter(|measure| has_syncs || !measure.is_of_syncs()) {
            for (run, measured) in measured(&elevators, measure).into_iter().enumerate() {
                elevators[run].measures.push(measured);
            }
        }
        let jobs: Vec<&[Vec<JobRun>]> = all.iter().map(|seed| seed.jobs.as_slice()).collect();
        Ok(SeededComparison { seeds, elevators, starved_jobs: starved_jobs(&jobs) })
    }

    /// Returns true if two elevators do not differ beyond chance in a measure.
    pub(super) fn is_chance(&self, measure: Measure, one: usize, other: usize) -> bool {
        let values = |index: usize| values(&self.elevators[index], measure);
        is_chance(&Difference::new(&values(one), &values(other), !measure.more_is_better(), 0.0))
    }
}

/// The results of all elevators with one seed.
struct SeedFigures {
    figures: Vec<Figures>,
    work: Vec<DriveWork>,
    jobs: Vec<Vec<JobRun>>,
    starves: Vec<bool>,
}

impl SeedFigures {
    fn of(comparison: &Comparison) -> SeedFigures {
        let jobs = job_runs(comparison);
        SeedFigures {
            figures: comparison.runs.iter().zip(&jobs).map(|(run, jobs)| Figures::of(run, jobs)).collect(),
            work: comparison.runs.iter().map(DriveWork::of).collect(),
            starves: starves(&jobs),
            jobs,
        }
    }
}

/// The comparison without its runs, which are large.
fn without_runs(comparison: &Comparison) -> Comparison {
    Comparison {
        runs: Vec::new(),
        drive: comparison.drive.clone(),
        alone_bytes_per_s: comparison.alone_bytes_per_s.clone(),
        notes: Vec::new(),
        ..*comparison
    }
}

fn values(run: &SeededRun, measure: Measure) -> Vec<f64> {
    run.figures.iter().map(|figures| figures.get(measure)).collect()
}

/// The results of all elevators in one measure.
fn measured(runs: &[SeededRun], measure: Measure) -> Vec<SeededMeasure> {
    let values: Vec<Vec<f64>> = runs.iter().map(|run| values(run, measure)).collect();
    let spreads: Vec<Spread> = values.iter().map(|values| Spread::of(values)).collect();
    let order = |a: &usize, b: &usize| spreads[*a].mean.total_cmp(&spreads[*b].mean);
    let all = 0..runs.len();
    let best = if measure.more_is_better() { all.max_by(order) } else { all.min_by(order) }.unwrap_or(0);
    let against: Vec<Option<Difference>> = (0..runs.len())
        .map(|index| {
            let difference = || Difference::new(&values[index], &values[best], !measure.more_is_better(), 0.0);
            (index != best).then(difference)
        })
        .collect();
    let is_shared = against.iter().flatten().any(is_chance);
    let rows = values.iter().zip(&spreads).zip(&against);
    rows.map(|((values, spread), against)| SeededMeasure {
        measure,
        values: values.clone(),
        spread: *spread,
        against_best: *against,
        is_chance: against.as_ref().map_or(is_shared, is_chance),
    })
    .collect()
}

fn is_chance(difference: &Difference) -> bool {
    !difference.is_significant
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(name: &str, rates: &[f64]) -> SeededRun {
        let figures = rates.iter().map(|rate| Figures::with_rate(*rate)).collect();
        SeededRun { name: name.into(), starves: 0, measures: Vec::new(), figures, work: DriveWork::default() }
    }

    #[test]
    fn a_difference_on_every_seed_counts_and_a_mixed_one_is_chance() {
        let runs = [run("a", &[10.0, 20.0, 30.0]), run("b", &[5.0, 15.0, 25.0]), run("c", &[11.0, 18.0, 30.5])];
        let rates = measured(&runs, Measure::BytesPerS);
        // The best mean is that of a: 20. b is 5 less with each seed, whatever the seeds do to
        // both.
        assert_eq!(rates.iter().map(|rate| rate.is_chance).collect::<Vec<_>>(), [true, false, true]);
        assert!(rates[0].against_best.is_none() && rates[1].against_best.is_some_and(|b| (b.mean + 0.25).abs() < 1e-9));
    }

    #[test]
    fn equal_results_are_chance() {
        let runs = [run("a", &[1.0, 2.0]), run("b", &[1.0, 2.0])];
        assert!(measured(&runs, Measure::BytesPerS).iter().all(|rate| rate.is_chance));
    }
}
