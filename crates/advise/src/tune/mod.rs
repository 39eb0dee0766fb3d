//! Tunables that suit a workload, found by simulation.
//!
//! Each scheduler's tunables are ladders of values (`space.rs`), climbed from the defaults by a pattern search with random restarts (`climb.rs`); the
//! schedulers take turns. What is asked for in one turn is simulated side by side on all cores, and depends on the seed and on what was found before,
//! never on how fast anything was: the same seed and number of evaluations give the same answer on every machine.
//!
//! What is found by trying hundreds of things on a few seeds is partly luck. So the best few are judged again on other seeds, tunables that do not matter
//! are set back to their defaults, and what is left is checked on seeds that nothing was chosen by.

mod climb;
mod front;
mod space;

use std::sync::atomic::AtomicBool;

use rand::SeedableRng;
use rand_pcg::Pcg32;

use crate::advice::{self, Verdict, bounds, values, violation};
use crate::bench::{AdviseError, Bench, Measured};
use crate::choice::Choice;
use crate::judge::{Difference, FLOOR, Spread};
use crate::objective::{Figure, Objective};
use climb::Climb;
pub use climb::Score;
pub use front::front;
pub use space::{Rung, Space, What as Dimension};

/// Seeds of the search: few, as many things are tried.
const SEARCH_SEEDS: u32 = 3;
/// Seeds by which the best few are judged, and of the check.
const JUDGE_SEEDS: u32 = 5;
/// How many are judged again.
const FINALISTS: usize = 5;
/// A tunable that makes less than this difference is set back to its default.
const MATTERS: f64 = 0.01;

/// What is to be searched.
#[derive(Clone, Debug)]
pub struct TuneRequest {
    /// The workload, the drive, the host.
    pub bench: Bench,
    /// What is set now.
    pub now: Choice,
    /// The schedulers and what may be changed of each.
    pub spaces: Vec<Space>,
    /// What is to be good.
    pub objective: Objective,
    /// What all random numbers come from.
    pub seed: u64,
    /// The most evaluations; `None`: until time is over.
    pub evaluations: Option<usize>,
}

/// How far a search has come.
#[derive(Clone, Debug)]
pub struct Progress {
    /// What is being done.
    pub stage: &'static str,
    /// Choices that were tried.
    pub evaluations: usize,
    /// The best so far, and its mean of the first goal.
    pub best: Option<(String, f64)>,
}

/// One thing that was tried.
#[derive(Clone, Debug)]
pub struct Tried {
    /// What.
    pub choice: Choice,
    /// Each figure over the seeds of the search.
    pub spreads: Vec<Spread>,
    /// How good it is.
    pub score: Score,
}

/// What was found.
#[derive(Clone, Debug)]
pub struct Tuned {
    /// All that was tried, in that order; the first is what is set now.
    pub tried: Vec<Tried>,
    /// The figures, as in [`crate::Advice::figures`].
    pub figures: Vec<Figure>,
    /// Places in `tried` of what nothing else is better than in both the first goal and the other figure, by the goal.
    pub front: Vec<usize>,
    /// The other figure's place in `figures`: that of the first constraint, or total throughput.
    pub other: usize,
    /// The winner, with as few tunables as make it.
    pub winner: Choice,
    /// Whether to set it.
    pub verdict: Verdict,
    /// The winner on the seeds of the search against what is set now, in the first goal.
    pub found: Difference,
    /// The same on seeds that nothing was chosen by.
    pub holds: Difference,
    /// There, against its scheduler's defaults.
    pub against_defaults: Difference,
    /// Each figure of the winner, of what is set now and of the scheduler's defaults on those seeds.
    pub spreads: [Vec<Spread>; 3],
    /// The runs of the winner and of what is set now on those seeds.
    pub runs: [Vec<Measured>; 2],
    /// How often a search began anew.
    pub restarts: usize,
    /// Whether the winner keeps to the constraints on those seeds.
    pub keeps: bool,
}

/// Searches, until `is_over` or the most evaluations.
///
/// # Errors
/// [`AdviseError`].
pub fn tune(
    request: &TuneRequest,
    is_over: &dyn Fn() -> bool,
    tell: &dyn Fn(Progress),
    cancel: &AtomicBool,
) -> Result<Tuned, AdviseError> {
    if request.spaces.is_empty() {
        return Err(AdviseError::NoChoices);
    }
    let figures = advice::figures(&request.objective);
    let mut search = Search { request, figures, bounds: Vec::new(), tried: Vec::new(), tell, cancel };
    search.begin()?;
    let restarts = search.climb(is_over)?;
    let winner = search.finalist()?;
    search.check(winner, restarts)
}

struct Search<'a> {
    request: &'a TuneRequest,
    figures: Vec<Figure>,
    /// Of each constraint, set by what the defaults reach.
    bounds: Vec<f64>,
    tried: Vec<Tried>,
    tell: &'a dyn Fn(Progress),
    cancel: &'a AtomicBool,
}

impl Search<'_> {
    /// What is set now and the defaults of each scheduler: bounds that are shares are shares of what these reach.
    fn begin(&mut self) -> Result<(), AdviseError> {
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
            self.note(choice, spreads);
        }
        Ok(())
    }

    fn climb(&mut self, is_over: &dyn Fn() -> bool) -> Result<usize, AdviseError> {
        let mut rng = Pcg32::seed_from_u64(self.request.seed);
        let mut climbs: Vec<Climb> = self.request.spaces.iter().map(Climb::new).collect();
        for turn in 0.. {
            if self.is_enough() || is_over() || climbs.iter().all(Climb::is_exhausted) {
                break;
            }
            let place = turn % climbs.len();
            let (climb, space) = (&mut climbs[place], &self.request.spaces[place]);
            let mut points = climb.ask(&mut rng);
            let left = self.request.evaluations.map_or(usize::MAX, |most| most.saturating_sub(self.tried.len()));
            points.truncate(left);
            let choices: Vec<Choice> = points.iter().map(|point| space.choice(point)).collect();
            let scores = self.evaluate(choices)?;
            climb.tell(points.into_iter().zip(scores).collect());
            self.say("searching");
        }
        Ok(climbs.iter().map(Climb::restarts).sum())
    }

    fn is_enough(&self) -> bool {
        self.request.evaluations.is_some_and(|most| self.tried.len() >= most)
    }

    /// Scores, from what was tried before where it was.
    fn evaluate(&mut self, choices: Vec<Choice>) -> Result<Vec<Score>, AdviseError> {
        let mut new: Vec<Choice> = Vec::new();
        for choice in &choices {
            if !new.contains(choice) && !self.tried.iter().any(|tried| tried.choice == *choice) {
                new.push(choice.clone());
            }
        }
        let spreads = self.measure(&new, self.seeds())?;
        for (choice, spreads) in new.into_iter().zip(spreads) {
            self.note(choice, spreads);
        }
        let score =
            |choice: &Choice| self.tried.iter().find(|tried| tried.choice == *choice).map(|tried| tried.score.clone());
        Ok(choices.iter().filter_map(score).collect())
    }

    fn note(&mut self, choice: Choice, spreads: Vec<Spread>) {
        let score = self.score(&spreads);
        self.tried.push(Tried { choice, spreads, score });
    }

    fn score(&self, spreads: &[Spread]) -> Score {
        let objective = &self.request.objective;
        let broken = objective.constraints.iter().zip(&self.bounds);
        let goals = objective.goals.iter().map(|goal| {
            let place = self.figures.iter().position(|figure| *figure == goal.figure).unwrap_or(0);
            spreads[place].mean * if goal.least { 1.0 } else { -1.0 }
        });
        Score {
            violation: broken.map(|(constraint, bound)| violation(constraint, &self.figures, spreads, *bound)).sum(),
            goals: goals.collect(),
        }
    }

    fn seeds(&self) -> Vec<u64> {
        advice::seeds(self.request.seed, 0, SEARCH_SEEDS)
    }

    fn runs(&self, choices: &[Choice], seeds: &[u64]) -> Result<Vec<Vec<Measured>>, AdviseError> {
        self.request.bench.measure(choices, seeds, &self.figures, &|_, _| {}, self.cancel)
    }

    fn measure(&self, choices: &[Choice], seeds: Vec<u64>) -> Result<Vec<Vec<Spread>>, AdviseError> {
        Ok(self.runs(choices, &seeds)?.iter().map(|runs| self.spreads(runs)).collect())
    }

    fn spreads(&self, runs: &[Measured]) -> Vec<Spread> {
        (0..self.figures.len()).map(|figure| Spread::of(&values(runs, figure))).collect()
    }

    fn say(&self, stage: &'static str) {
        let best = self.tried.iter().min_by(|one, other| one.score.order(&other.score));
        let goal =
            self.request.objective.goals.first().and_then(|goal| self.figures.iter().position(|f| *f == goal.figure));
        let best = best.zip(goal).map(|(best, goal)| (best.choice.name(), best.spreads[goal].mean));
        (self.tell)(Progress { stage, evaluations: self.tried.len(), best });
    }

    /// The best of the best few on other seeds, without the tunables that do not matter.
    fn finalist(&self) -> Result<Choice, AdviseError> {
        self.say("judging the best again");
        let mut places: Vec<usize> = (0..self.tried.len()).collect();
        places.sort_by(|one, other| self.tried[*one].score.order(&self.tried[*other].score));
        let finalists: Vec<Choice> =
            places.iter().take(FINALISTS).map(|place| self.tried[*place].choice.clone()).collect();
        let seeds = advice::seeds(self.request.seed, 2, JUDGE_SEEDS);
        let scores: Vec<Score> =
            self.measure(&finalists, seeds.clone())?.iter().map(|spreads| self.score(spreads)).collect();
        let best = finalists.into_iter().zip(scores).min_by(|one, other| one.1.order(&other.1));
        let (mut winner, mut score) = best.ok_or(AdviseError::NoChoices)?;
        for simpler in simpler(&winner) {
            // What stands in the list was made of the first winner: only this change of it counts.
            let without = simpler.apply(&winner);
            let spreads = self.measure(std::slice::from_ref(&without), seeds.clone())?;
            let other = self.score(&spreads[0]);
            if other.is_as_good_as(&score, MATTERS) {
                (winner, score) = (without, other);
            }
        }
        Ok(winner)
    }

    fn check(self, winner: Choice, restarts: usize) -> Result<Tuned, AdviseError> {
        self.say("checking on other seeds");
        let seeds = advice::seeds(self.request.seed, 3, JUDGE_SEEDS);
        let choices = [winner.clone(), self.request.now.clone(), Choice::plain(winner.kind)];
        let mut runs = self.runs(&choices, &seeds)?.into_iter();
        let [winners, nows, plains] = [(); 3].map(|()| runs.next().unwrap_or_default());
        let goal = &self.request.objective.goals[0];
        let place = self.figures.iter().position(|figure| *figure == goal.figure).unwrap_or(0);
        let difference = |of: &[Measured], against: &[Measured]| {
            Difference::new(&values(of, place), &values(against, place), goal.least, FLOOR)
        };
        let spreads = [&winners, &nows, &plains].map(|runs| self.spreads(runs));
        let found = self.runs(&[winner.clone(), self.request.now.clone()], &self.seeds())?;
        let keeps = self.score(&spreads[0]).violation == 0.0;
        let keeps_now = self.score(&spreads[1]).violation == 0.0;
        let holds = difference(&winners, &nows);
        let is_better = (keeps && holds.is_told && holds.is_better) || (keeps && !keeps_now);
        let other = self.request.objective.constraints.first().map(|constraint| &constraint.figure);
        let throughput = Figure { what: crate::What::Throughput, job: None };
        let other = other.filter(|figure| **figure != goal.figure).unwrap_or(&throughput);
        let other = self.figures.iter().position(|figure| figure == other).unwrap_or(0);
        let axes = |tried: &Tried| {
            let axis = |figure: usize| {
                let less = self.figures[figure].what.less_is_better();
                tried.spreads[figure].mean * if less { 1.0 } else { -1.0 }
            };
            (axis(place), axis(other))
        };
        Ok(Tuned {
            front: front(&self.tried.iter().map(axes).collect::<Vec<_>>()),
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

/// Something that is set and could be left as it is.
enum Without {
    Tunable(&'static str),
    ReadAhead,
    Requests,
    Depth,
}

impl Without {
    fn apply(&self, choice: &Choice) -> Choice {
        let mut choice = choice.clone();
        match self {
            Without::Tunable(name) => choice.tunables.retain(|(set, _)| set != name),
            Without::ReadAhead => choice.read_ahead_kib = None,
            Without::Requests => choice.nr_requests = None,
            Without::Depth => choice.queue_depth = None,
        }
        choice
    }
}

fn simpler(choice: &Choice) -> Vec<Without> {
    let tunables = choice.tunables.iter().map(|(name, _)| Without::Tunable(name));
    let queue = [
        choice.read_ahead_kib.map(|_| Without::ReadAhead),
        choice.nr_requests.map(|_| Without::Requests),
        choice.queue_depth.map(|_| Without::Depth),
    ];
    tunables.chain(queue.into_iter().flatten()).collect()
}
