//! Searches tunables for a workload by simulation.
//!
//! The tunables of each scheduler are ladders of values (`space.rs`). A pattern search with random
//! restarts (`pattern_search.rs`) starts at the defaults; the schedulers take turns. The points of
//! one turn are simulated in parallel. They depend only on the seed and on former results, never on
//! speed: the same seed and number of evaluations give the same answer on every machine.
//!
//! The best of hundreds of trials on a few seeds is partly luck. So the best few are simulated
//! again on other seeds, tunables without effect are reset to their defaults, and the result is
//! checked on further seeds.

mod pareto;
mod pattern_search;
mod selection;
mod space;
pub mod wording;

use std::sync::atomic::AtomicBool;

use rand::SeedableRng;
use rand_pcg::Pcg32;

use crate::advice::{self, Verdict, bounds, values, violation};
use crate::bench::{AdviseError, Bench, RunFigures};
use crate::choice::Choice;
use crate::objective::{Figure, Objective};
use hoistway_compare::{Difference, MIN_DIFFERENCE, Spread};
pub use pareto::pareto_front;
use pattern_search::PatternSearch;
pub use pattern_search::Score;
pub use selection::{QUEUE_NAMES, SelectionError, has, select_spaces};
pub use space::{Dimension, Ladder, Rung, Space};

/// The number of seeds of the search: few, because there are many trials.
const SEARCH_SEEDS: u32 = 3;
/// The number of seeds for the best few, and for the final check.
const JUDGE_SEEDS: u32 = 5;
/// The number of trials that are simulated again.
const FINALISTS: usize = 5;
/// A tunable with a smaller relative effect is reset to its default.
const MATTERS: f64 = 0.01;

/// A search to run.
#[derive(Clone, Debug)]
pub struct TuneRequest {
    /// Workload, drive and host.
    pub bench: Bench,
    /// The current settings.
    pub now: Choice,
    /// The schedulers and their ladders.
    pub spaces: Vec<Space>,
    /// Goals and constraints.
    pub objective: Objective,
    /// The seed that all random numbers follow from.
    pub seed: u64,
    /// The largest number of trials; `None` for no limit.
    pub evaluations: Option<usize>,
}

/// The progress of a search.
#[derive(Clone, Debug)]
pub struct TuneProgress {
    /// The stage in words.
    pub stage: &'static str,
    /// The number of trials so far.
    pub evaluations: usize,
    /// The best choice so far with its mean of the first goal.
    pub best: Option<(String, f64)>,
}

/// One trial of a search.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The choice.
    pub choice: Choice,
    /// The spread of each figure over the seeds of the search.
    pub spreads: Vec<Spread>,
    /// The score.
    pub score: Score,
}

/// The result of a search.
#[derive(Clone, Debug)]
pub struct TuneResult {
    /// All trials in order; the first is the current settings.
    pub tried: Vec<Trial>,
    /// The figures, as in [`crate::Advice::figures`].
    pub figures: Vec<Figure>,
    /// Indices in `tried` of the Pareto front of the first goal and the other figure, sorted by the
    /// goal.
    pub front: Vec<usize>,
    /// The index in `figures` of the other figure: that of the first constraint, or total
    /// throughput.
    pub other: usize,
    /// The best choice, without tunables that have no effect.
    pub winner: Choice,
    /// Whether to set the best choice.
    pub verdict: Verdict,
    /// The gain in the first goal over the current settings, on the seeds of the search.
    pub found: Difference,
    /// The gain on further seeds.
    pub holds: Difference,
    /// The gain over the defaults of the scheduler, on further seeds.
    pub against_defaults: Difference,
    /// The figures of the best choice, the current settings and the scheduler's defaults on further
    /// seeds.
    pub spreads: [Vec<Spread>; 3],
    /// The runs of the best choice and of the current settings on further seeds.
    pub runs: [Vec<RunFigures>; 2],
    /// The number of random restarts.
    pub restarts: usize,
    /// True if the best choice keeps to the constraints on further seeds.
    pub keeps: bool,
}

/// Runs a search until `is_over` returns true or the number of evaluations is reached.
///
/// # Errors
/// [`AdviseError`] if a simulation fails or is cancelled.
pub fn tune(
    request: &TuneRequest,
    is_over: &dyn Fn() -> bool,
    report: &dyn Fn(TuneProgress),
    cancel: &AtomicBool,
) -> Result<TuneResult, AdviseError> {
    if request.spaces.is_empty() {
        return Err(AdviseError::NoChoices);
    }
    let figures = advice::figures(&request.objective);
    let mut search = Search { request, figures, bounds: Vec::new(), tried: Vec::new(), report, cancel };
    search.try_defaults()?;
    let restarts = search.run(is_over)?;
    let winner = search.finalist()?;
    search.check(winner, restarts)
}

struct Search<'a> {
    request: &'a TuneRequest,
    figures: Vec<Figure>,
    /// The value of each constraint's bound; shares refer to what the defaults reach.
    bounds: Vec<f64>,
    tried: Vec<Trial>,
    report: &'a dyn Fn(TuneProgress),
    cancel: &'a AtomicBool,
}

impl Search<'_> {
    /// Tries the current settings and the defaults of each scheduler, and sets the bounds by them.
    fn try_defaults(&mut self) -> Result<(), AdviseError> {
        let mut choices = vec![self.request.now.clone()];
        for space in &self.request.spaces {
            let plain = space.choice(&space.default_point());
            if !choices.contains(&plain) {
                choices.push(plain);
            }
        }
        let spreads = self.measure(&choices, self.seeds())?;
        self.bounds = bounds(&self.request.objective, &self.figures, &spreads, 0);
        for (choice, spreads) in choices.into_iter().zip(spreads) {
            self.add_trial(choice, spreads);
        }
        Ok(())
    }

    /// Runs the pattern searches in turns and returns the number of restarts.
    fn run(&mut self, is_over: &dyn Fn() -> bool) -> Result<usize, AdviseError> {
        let mut rng = Pcg32::seed_from_u64(self.request.seed);
        let mut searches: Vec<PatternSearch> = self.request.spaces.iter().map(PatternSearch::new).collect();
        for turn in 0.. {
            if self.is_enough() || is_over() || searches.iter().all(PatternSearch::is_exhausted) {
                break;
            }
            let index = turn % searches.len();
            let (search, space) = (&mut searches[index], &self.request.spaces[index]);
            let mut points = search.next_points(&mut rng);
            let left = self.request.evaluations.map_or(usize::MAX, |most| most.saturating_sub(self.tried.len()));
            points.truncate(left);
            let choices: Vec<Choice> = points.iter().map(|point| space.choice(point)).collect();
            let scores = self.evaluate(choices)?;
            search.record(points.into_iter().zip(scores).collect());
            self.report_progress("searching");
        }
        Ok(searches.iter().map(PatternSearch::restarts).sum())
    }

    fn is_enough(&self) -> bool {
        self.request.evaluations.is_some_and(|most| self.tried.len() >= most)
    }

    /// The scores of choices; former trials are not repeated.
    fn evaluate(&mut self, choices: Vec<Choice>) -> Result<Vec<Score>, AdviseError> {
        let mut new: Vec<Choice> = Vec::new();
        for choice in &choices {
            if !new.contains(choice) && !self.tried.iter().any(|tried| tried.choice == *choice) {
                new.push(choice.clone());
            }
        }
        let spreads = self.measure(&new, self.seeds())?;
        for (choice, spreads) in new.into_iter().zip(spreads) {
            self.add_trial(choice, spreads);
        }
        let score =
            |choice: &Choice| self.tried.iter().find(|tried| tried.choice == *choice).map(|tried| tried.score.clone());
        Ok(choices.iter().filter_map(score).collect())
    }

    fn add_trial(&mut self, choice: Choice, spreads: Vec<Spread>) {
        let score = self.score(&spreads);
        self.tried.push(Trial { choice, spreads, score });
    }

    fn score(&self, spreads: &[Spread]) -> Score {
        let objective = &self.request.objective;
        let broken = objective.constraints.iter().zip(&self.bounds);
        let goals = objective.goals.iter().map(|goal| {
            let index = self.figures.iter().position(|figure| *figure == goal.figure).unwrap_or(0);
            spreads[index].mean * if goal.least { 1.0 } else { -1.0 }
        });
        Score {
            violation: broken.map(|(constraint, bound)| violation(constraint, &self.figures, spreads, *bound)).sum(),
            goals: goals.collect(),
        }
    }

    fn seeds(&self) -> Vec<u64> {
        advice::seeds(self.request.seed, 0, SEARCH_SEEDS)
    }

    fn runs(&self, choices: &[Choice], seeds: &[u64]) -> Result<Vec<Vec<RunFigures>>, AdviseError> {
        self.request.bench.measure(choices, seeds, &self.figures, &|_, _| {}, self.cancel)
    }

    fn measure(&self, choices: &[Choice], seeds: Vec<u64>) -> Result<Vec<Vec<Spread>>, AdviseError> {
        Ok(self.runs(choices, &seeds)?.iter().map(|runs| self.spreads(runs)).collect())
    }

    fn spreads(&self, runs: &[RunFigures]) -> Vec<Spread> {
        (0..self.figures.len()).map(|figure| Spread::of(&values(runs, figure))).collect()
    }

    fn report_progress(&self, stage: &'static str) {
        let best = self.tried.iter().min_by(|one, other| one.score.order(&other.score));
        let goal =
            self.request.objective.goals.first().and_then(|goal| self.figures.iter().position(|f| *f == goal.figure));
        let best = best.zip(goal).map(|(best, goal)| (best.choice.name(), best.spreads[goal].mean));
        (self.report)(TuneProgress { stage, evaluations: self.tried.len(), best });
    }

    /// The best of the best few on other seeds, without tunables that have no effect.
    fn finalist(&self) -> Result<Choice, AdviseError> {
        self.report_progress("judging the best again");
        let mut indices: Vec<usize> = (0..self.tried.len()).collect();
        indices.sort_by(|one, other| self.tried[*one].score.order(&self.tried[*other].score));
        let finalists: Vec<Choice> =
            indices.iter().take(FINALISTS).map(|index| self.tried[*index].choice.clone()).collect();
        let seeds = advice::seeds(self.request.seed, 2, JUDGE_SEEDS);
        let scores: Vec<Score> =
            self.measure(&finalists, seeds.clone())?.iter().map(|spreads| self.score(spreads)).collect();
        let best = finalists.into_iter().zip(scores).min_by(|one, other| one.1.order(&other.1));
        let (mut winner, mut score) = best.ok_or(AdviseError::NoChoices)?;
        for reset in resets(&winner) {
            // Each step is applied to the current winner, not to the first one.
            let without = reset.apply(&winner);
            let spreads = self.measure(std::slice::from_ref(&without), seeds.clone())?;
            let other = self.score(&spreads[0]);
            if other.is_as_good_as(&score, MATTERS) {
                (winner, score) = (without, other);
            }
        }
        Ok(winner)
    }

    /// Simulates the winner, the current settings and the defaults on further seeds.
    fn check(self, winner: Choice, restarts: usize) -> Result<TuneResult, AdviseError> {
        self.report_progress("checking on other seeds");
        let seeds = advice::seeds(self.request.seed, 3, JUDGE_SEEDS);
        let choices = [winner.clone(), self.request.now.clone(), Choice::plain(winner.kind)];
        let mut runs = self.runs(&choices, &seeds)?.into_iter();
        let [winners, nows, plains] = [(); 3].map(|()| runs.next().unwrap_or_default());
        let goal = &self.request.objective.goals[0];
        let index = self.figures.iter().position(|figure| *figure == goal.figure).unwrap_or(0);
        let difference = |of: &[RunFigures], against: &[RunFigures]| {
            Difference::new(&values(of, index), &values(against, index), goal.least, MIN_DIFFERENCE)
        };
        let spreads = [&winners, &nows, &plains].map(|runs| self.spreads(runs));
        let found = self.runs(&[winner.clone(), self.request.now.clone()], &self.seeds())?;
        let keeps = self.score(&spreads[0]).violation == 0.0;
        let keeps_now = self.score(&spreads[1]).violation == 0.0;
        let holds = difference(&winners, &nows);
        let is_better = (keeps && holds.is_significant && holds.is_better) || (keeps && !keeps_now);
        let other = self.request.objective.constraints.first().map(|constraint| &constraint.figure);
        let throughput = Figure { metric: crate::Metric::Throughput, job: None };
        let other = other.filter(|figure| **figure != goal.figure).unwrap_or(&throughput);
        let other = self.figures.iter().position(|figure| figure == other).unwrap_or(0);
        let axes = |tried: &Trial| {
            let axis = |figure: usize| {
                let less = self.figures[figure].metric.less_is_better();
                tried.spreads[figure].mean * if less { 1.0 } else { -1.0 }
            };
            (axis(index), axis(other))
        };
        Ok(TuneResult {
            front: pareto_front(&self.tried.iter().map(axes).collect::<Vec<_>>()),
            other,
            verdict: if winner != self.request.now && is_better { Verdict::Change } else { Verdict::Leave },
            found: difference(&found[0], &found[1]),
            holds,
            against_defaults: difference(&winners, &plains),
            spreads,
            runs: [winners, nows],
            restarts,
            keeps,
            winner,
            figures: self.figures,
            tried: self.tried,
        })
    }
}

/// A setting of a choice that can be reset.
enum Reset {
    Tunable(&'static str),
    ReadAhead,
    Requests,
    Depth,
}

impl Reset {
    fn apply(&self, choice: &Choice) -> Choice {
        let mut choice = choice.clone();
        match self {
            Reset::Tunable(name) => choice.tunables.retain(|(set, _)| set != name),
            Reset::ReadAhead => choice.read_ahead_kib = None,
            Reset::Requests => choice.nr_requests = None,
            Reset::Depth => choice.queue_depth = None,
        }
        choice
    }
}

/// The settings of a choice that can be reset.
fn resets(choice: &Choice) -> Vec<Reset> {
    let tunables = choice.tunables.iter().map(|(name, _)| Reset::Tunable(name));
    let queue = [
        choice.read_ahead_kib.map(|_| Reset::ReadAhead),
        choice.nr_requests.map(|_| Reset::Requests),
        choice.queue_depth.map(|_| Reset::Depth),
    ];
    tunables.chain(queue.into_iter().flatten()).collect()
}
