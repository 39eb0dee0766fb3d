//! Judges choices by simulation and picks one.

use std::sync::atomic::AtomicBool;

use hoistway_units::figures::change;

use crate::bench::{AdviseError, Bench, RunFigures, RunProgress};
use crate::choice::Choice;
use crate::job_changes::{self, JobChange, changes};
use crate::objective::{Bound, Constraint, Figure, Objective};
use crate::text::value_text;
use hoistway_compare::{Difference, MIN_DIFFERENCE, Spread};

/// Choices to evaluate.
#[derive(Clone, Debug)]
pub struct AdviceRequest {
    /// Workload, drive and host.
    pub bench: Bench,
    /// The current settings, which all choices are compared with.
    pub now: Choice,
    /// The choices that can be advised; `now` need not be among them.
    pub choices: Vec<Choice>,
    /// Choices that are simulated for comparison and never advised.
    pub for_comparison: Vec<Choice>,
    /// Goals and constraints.
    pub objective: Objective,
    /// The number of seeds, 2 or more.
    pub seeds: u32,
    /// The seed that all others follow from.
    pub seed: u64,
    /// The smallest relative difference that can be significant: [`MIN_DIFFERENCE`], or the error
    /// of the model of a recording.
    pub min_difference: f64,
}

/// Whether to change the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Set the chosen settings.
    Change,
    /// Keep the current settings.
    Leave,
}

/// The result of an evaluation.
#[derive(Clone, Debug)]
pub struct Advice {
    /// Whether to change the settings.
    pub verdict: Verdict,
    /// The index of the advised choice in `judged`; with [`Verdict::Leave`] that of `now`.
    pub chosen: usize,
    /// The index of the current settings in `judged`.
    pub now: usize,
    /// All choices in the requested order; the current settings first unless they are among them.
    pub judged: Vec<EvaluatedChoice>,
    /// The figures in the order of the objective, then total throughput unless it is among them.
    pub figures: Vec<Figure>,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// The chosen and the current settings on further seeds; `None` if no choice was better.
    pub checked: Option<Validation>,
    /// The jobs that gain and lose.
    pub changes: Vec<JobChange>,
    /// The jobs that gain and lose in a sentence or two.
    pub why: String,
    /// The reason for the verdict, in a sentence.
    pub because: String,
}

/// A choice with its figures.
#[derive(Clone, Debug)]
pub struct EvaluatedChoice {
    /// The choice.
    pub choice: Choice,
    /// The spread of each figure over the seeds.
    pub spreads: Vec<Spread>,
    /// The difference of each figure to the current settings.
    pub against_now: Vec<Difference>,
    /// True if the choice can be advised.
    pub can_be_set: bool,
    /// The constraints that the choice breaks.
    pub broken: Vec<Constraint>,
    /// The figures of each run.
    pub runs: Vec<RunFigures>,
}

/// The check of a choice on further seeds.
#[derive(Clone, Debug)]
pub struct Validation {
    /// The index of the choice in [`Advice::judged`].
    pub choice: usize,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// The spread of each figure of the choice.
    pub spreads: Vec<Spread>,
    /// The difference of each figure to the current settings.
    pub against_now: Vec<Difference>,
    /// The index of the figure that decides: of the goal that decided, or of a constraint that the
    /// present settings break.
    pub figure: usize,
    /// True if the gain holds on these seeds.
    pub holds: bool,
}

/// Simulates all choices, picks one, and checks the pick on further seeds.
///
/// # Errors
/// [`AdviseError`] if a simulation fails or is cancelled, without choices, or with fewer than two
/// seeds.
pub fn advise(request: &AdviceRequest, progress: RunProgress<'_>, cancel: &AtomicBool) -> Result<Advice, AdviseError> {
    let mut choices = request.choices.clone();
    if !choices.contains(&request.now) {
        choices.insert(0, request.now.clone());
    }
    if request.seeds < 2 {
        return Err(AdviseError::Seeds { seeds: request.seeds });
    }
    let now = choices.iter().position(|choice| *choice == request.now).ok_or(AdviseError::NoChoices)?;
    let settable = choices.len();
    choices.extend(request.for_comparison.iter().filter(|choice| !request.choices.contains(choice)).cloned());
    let figures = figures(&request.objective);
    let seeds = seeds(request.seed, 0, request.seeds);
    let min_difference = request.min_difference.max(MIN_DIFFERENCE);
    let runs = request.bench.measure(&choices, &seeds, &figures, progress, cancel)?;
    let judged = judge(&request.objective, &figures, choices, runs, (now, settable, min_difference));
    let pick = Pick { objective: &request.objective, figures: &figures, min_difference };
    let chosen = pick.best(&judged, now);
    let mut advice = Advice {
        verdict: Verdict::Leave,
        chosen: now,
        now,
        figures: figures.clone(),
        seeds,
        checked: None,
        changes: Vec::new(),
        why: String::new(),
        because: String::new(),
        judged,
    };
    if chosen == now {
        advice.because = pick.why_leave(&advice.judged, now);
        return Ok(advice);
    }
    let checked = check(request, &pick, &advice.judged, (chosen, now), cancel)?;
    let holds = checked.holds;
    let judged = &advice.judged;
    advice.changes = changes(&judged[chosen].runs, &judged[now].runs);
    if holds {
        advice.because = pick.why_change(judged, &checked, now);
        let first: Vec<&str> = request.objective.goals.iter().filter_map(|goal| goal.figure.job.as_deref()).collect();
        advice.why = job_changes::summary(&advice.changes, &first, &judged[chosen].runs, &judged[now].runs);
        (advice.verdict, advice.chosen) = (Verdict::Change, chosen);
    } else {
        advice.because = format!(
            "{} was better on the seeds of the comparison, and is not on further seeds",
            judged[chosen].choice.name()
        );
    }
    advice.checked = Some(checked);
    Ok(advice)
}

/// The seeds of a group; groups do not overlap.
pub(crate) fn seeds(from: u64, group: u64, count: u32) -> Vec<u64> {
    (0..u64::from(count)).map(|index| from.wrapping_add(group * 1_000_003).wrapping_add(index)).collect()
}

/// The figures of the objective, and total throughput.
pub(crate) fn figures(objective: &Objective) -> Vec<Figure> {
    let mut figures = objective.figures();
    let throughput = Figure { metric: crate::Metric::Throughput, job: None };
    if !figures.contains(&throughput) {
        figures.push(throughput);
    }
    figures
}

/// The values of one figure over the seeds.
pub(crate) fn values(runs: &[RunFigures], figure: usize) -> Vec<f64> {
    runs.iter().filter_map(|run| run.figures.get(figure)).copied().collect()
}

fn judge(
    objective: &Objective,
    figures: &[Figure],
    choices: Vec<Choice>,
    runs: Vec<Vec<RunFigures>>,
    (now, settable, min_difference): (usize, usize, f64),
) -> Vec<EvaluatedChoice> {
    let spreads: Vec<Vec<Spread>> =
        runs.iter().map(|runs| (0..figures.len()).map(|figure| Spread::of(&values(runs, figure))).collect()).collect();
    let bounds = bounds(objective, figures, &spreads[..settable], now);
    let against: Vec<Vec<Difference>> =
        runs.iter().map(|of| against(of, &runs[now], figures, min_difference)).collect();
    let rows = choices.into_iter().zip(runs).zip(spreads.iter().cloned()).zip(against);
    let judged = rows.enumerate().map(|(index, (((choice, runs), spreads), against_now))| EvaluatedChoice {
        can_be_set: index < settable,
        broken: broken(objective, figures, &spreads, &bounds),
        choice,
        spreads,
        against_now,
        runs,
    });
    judged.collect()
}

fn against(of: &[RunFigures], now: &[RunFigures], figures: &[Figure], min_difference: f64) -> Vec<Difference> {
    let one = |(index, figure): (usize, &Figure)| {
        Difference::new(&values(of, index), &values(now, index), figure.metric.less_is_better(), min_difference)
    };
    figures.iter().enumerate().map(one).collect()
}

/// The value of each constraint's bound in the unit of its figure; `spreads` are those of all
/// choices.
pub(crate) fn bounds(objective: &Objective, figures: &[Figure], spreads: &[Vec<Spread>], now: usize) -> Vec<f64> {
    let bound = |constraint: &Constraint| {
        let Some(index) = figures.iter().position(|figure| *figure == constraint.figure) else { return f64::NAN };
        let means = || spreads.iter().filter_map(|spreads| spreads.get(index)).map(|spread| spread.mean);
        let best = if constraint.figure.metric.less_is_better() {
            means().fold(f64::INFINITY, f64::min)
        } else {
            means().fold(f64::NEG_INFINITY, f64::max)
        };
        match constraint.bound {
            Bound::At(value) => value,
            Bound::OfBest(share) => best * share,
            Bound::OfNow(share) => means().nth(now).unwrap_or(f64::NAN) * share,
        }
    };
    objective.constraints.iter().map(bound).collect()
}

/// The constraints that the means break.
fn broken(objective: &Objective, figures: &[Figure], spreads: &[Spread], bounds: &[f64]) -> Vec<Constraint> {
    let is_broken = |(constraint, bound): &(&Constraint, &f64)| violation(constraint, figures, spreads, **bound) > 0.0;
    objective.constraints.iter().zip(bounds).filter(is_broken).map(|(constraint, _)| constraint.clone()).collect()
}

/// How far a mean is beyond its bound, relative to the bound; 0 if it keeps to it.
pub(crate) fn violation(constraint: &Constraint, figures: &[Figure], spreads: &[Spread], bound: f64) -> f64 {
    let index = figures.iter().position(|figure| *figure == constraint.figure);
    let Some(mean) = index.and_then(|index| spreads.get(index)).map(|spread| spread.mean) else { return 0.0 };
    let short = if constraint.at_least { bound - mean } else { mean - bound };
    if short <= 0.0 { 0.0 } else { short / bound.abs().max(f64::MIN_POSITIVE) }
}

/// Simulates the chosen and the current settings on further seeds.
fn check(
    request: &AdviceRequest,
    pick: &Pick<'_>,
    judged: &[EvaluatedChoice],
    (chosen, now): (usize, usize),
    cancel: &AtomicBool,
) -> Result<Validation, AdviseError> {
    let seeds = seeds(request.seed, 1, request.seeds);
    let pair = [judged[chosen].choice.clone(), judged[now].choice.clone()];
    let runs = request.bench.measure(&pair, &seeds, pick.figures, &|_, _| {}, cancel)?;
    let spreads: Vec<Spread> = (0..pick.figures.len()).map(|index| Spread::of(&values(&runs[0], index))).collect();
    let against_now = against(&runs[0], &runs[1], pick.figures, pick.min_difference);
    // If the current settings break constraints, these decide.
    let broken = judged[now].broken.iter().map(|constraint| pick.index(&constraint.figure));
    let is_better = |index: &usize| against_now[*index].is_significant && against_now[*index].is_better;
    let (figure, holds) = match broken.clone().next() {
        Some(figure) => (figure, broken.clone().all(|index| is_better(&index))),
        None => {
            let figure = pick.deciding(&judged[chosen].runs, &judged[now].runs);
            (figure, pick.confirms(&runs[0], &runs[1], figure))
        }
    };
    Ok(Validation { choice: chosen, seeds, spreads, against_now, figure, holds })
}

/// The rules by which a choice is picked.
struct Pick<'a> {
    objective: &'a Objective,
    figures: &'a [Figure],
    min_difference: f64,
}

impl Pick<'_> {
    fn index(&self, figure: &Figure) -> usize {
        self.figures.iter().position(|known| known == figure).unwrap_or(0)
    }

    fn difference(&self, of: &[RunFigures], against: &[RunFigures], goal: usize) -> Difference {
        let goal = &self.objective.goals[goal];
        let index = self.index(&goal.figure);
        Difference::new(&values(of, index), &values(against, index), goal.least, self.min_difference)
    }

    /// The difference in the first goal in which two choices differ significantly.
    fn decides(&self, of: &[RunFigures], against: &[RunFigures]) -> Option<Difference> {
        let goals = 0..self.objective.goals.len();
        goals.map(|goal| self.difference(of, against, goal)).find(|difference| difference.is_significant)
    }

    /// Returns true if a choice is better in the figure that it was chosen by, and in the first
    /// goal in which the two differ significantly.
    fn confirms(&self, of: &[RunFigures], against: &[RunFigures], figure: usize) -> bool {
        let is_better = |difference: &Difference| difference.is_significant && difference.is_better;
        let goal =
            (0..self.objective.goals.len()).find(|goal| self.index(&self.objective.goals[*goal].figure) == figure);
        goal.is_some_and(|goal| is_better(&self.difference(of, against, goal)))
            && self.decides(of, against).is_some_and(|difference| is_better(&difference))
    }

    /// The index of the figure in which two choices first differ significantly; that of the first
    /// goal if they do not.
    fn deciding(&self, of: &[RunFigures], against: &[RunFigures]) -> usize {
        let goals = 0..self.objective.goals.len();
        let goal = goals.into_iter().find(|goal| self.difference(of, against, *goal).is_significant).unwrap_or(0);
        self.index(&self.objective.goals[goal].figure)
    }

    /// The best choice that keeps to the constraints. Among choices without a significant
    /// difference the current settings win, then the choice with the fewest tunables.
    fn best(&self, judged: &[EvaluatedChoice], now: usize) -> usize {
        let keeps: Vec<usize> =
            (0..judged.len()).filter(|index| judged[*index].can_be_set && judged[*index].broken.is_empty()).collect();
        if keeps.is_empty() {
            return now;
        }
        let mut left = keeps;
        for (number, goal) in self.objective.goals.iter().enumerate() {
            let index = self.index(&goal.figure);
            let mean = |choice: &usize| judged[*choice].spreads[index].mean * if goal.least { 1.0 } else { -1.0 };
            let Some(best) = left.iter().copied().min_by(|one, other| mean(one).total_cmp(&mean(other))) else { break };
            left.retain(|choice| {
                let difference = self.difference(&judged[best].runs, &judged[*choice].runs, number);
                !(difference.is_significant && difference.is_better)
            });
        }
        if left.contains(&now) {
            return now;
        }
        let goal = &self.objective.goals[0];
        let index = self.index(&goal.figure);
        let mean = |choice: &usize| judged[*choice].spreads[index].mean * if goal.least { 1.0 } else { -1.0 };
        let tunables = |choice: &usize| judged[*choice].choice.tunables.len();
        let best = left
            .into_iter()
            .min_by(|one, other| tunables(one).cmp(&tunables(other)).then(mean(one).total_cmp(&mean(other))));
        best.unwrap_or(now)
    }

    fn why_leave(&self, judged: &[EvaluatedChoice], now: usize) -> String {
        let settable = || judged.iter().enumerate().filter(|(_, judged)| judged.can_be_set);
        if settable().count() == 1 {
            return "nothing else could be set".to_owned();
        }
        if !judged[now].broken.is_empty() {
            let fewest = settable().min_by_key(|(index, judged)| (judged.broken.len(), *index));
            let nearest = fewest.map_or_else(String::new, |(_, judged)| {
                format!("; {} breaks the fewest: {}", judged.choice.name(), list(&judged.broken))
            });
            return format!(
                "no choice keeps to all constraints, and the present settings break {}{nearest}",
                list(&judged[now].broken)
            );
        }
        let goal = &self.objective.goals[0].figure;
        if settable().any(|(index, other)| index != now && other.broken.is_empty()) {
            format!(
                "no other choice improves {goal} significantly and by more than {:.0} %",
                self.min_difference * 100.0
            )
        } else {
            "no other choice keeps to the constraints".to_owned()
        }
    }

    fn why_change(&self, judged: &[EvaluatedChoice], checked: &Validation, now: usize) -> String {
        let text_of = |index: usize| {
            let figure = &self.figures[index];
            let value = |choice: usize| value_text(judged[choice].spreads[index].mean, figure.metric.unit());
            let difference = &judged[checked.choice].against_now[index];
            format!("{figure} is {} instead of {} ({})", value(checked.choice), value(now), percent(difference))
        };
        if judged[now].broken.is_empty() {
            return text_of(checked.figure);
        }
        let broken = list(&judged[now].broken);
        let text = format!("the present settings do not keep to {broken}: {}", text_of(checked.figure));
        // The goal is named too if its gain holds on the further seeds.
        let index = self.index(&self.objective.goals[0].figure);
        let is_sure = |difference: &Difference| difference.is_significant;
        match is_sure(&judged[checked.choice].against_now[index]) && is_sure(&checked.against_now[index]) {
            true if index != checked.figure => format!("{text}; {}", text_of(index)),
            _ => text,
        }
    }
}

/// Joins constraints with `and`.
fn list(constraints: &[Constraint]) -> String {
    constraints.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ")
}

/// A difference in percent with its interval.
pub(crate) fn percent(difference: &Difference) -> String {
    let mean = change(difference.mean);
    match difference.interval_text().filter(|_| difference.mean.is_finite()) {
        Some(interval) => format!("{mean}, {interval}"),
        None => mean,
    }
}

impl std::fmt::Display for Constraint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let relation = if self.at_least { ">=" } else { "<=" };
        write!(f, "{} {relation} ", self.figure)?;
        match self.bound {
            Bound::At(value) => f.write_str(&value_text(value, self.figure.metric.unit())),
            Bound::OfBest(share) => write!(f, "{:.0}% of best", share * 100.0),
            Bound::OfNow(share) => write!(f, "{:.0}% of now", share * 100.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(figures: &[(f64, f64)]) -> Vec<RunFigures> {
        let run = |(throughput, p99): &(f64, f64)| RunFigures {
            figures: vec![*throughput, *p99],
            jobs: Vec::new(),
            arm_share: 0.0,
            idle_share: 0.0,
        };
        figures.iter().map(run).collect()
    }

    #[test]
    fn a_choice_is_confirmed_only_by_the_figure_that_it_was_chosen_by() {
        let objective = Objective::parse("throughput max, p99(worst) min", &[]).expect("it is one");
        let figures = figures(&objective);
        let pick = Pick { objective: &objective, figures: &figures, min_difference: MIN_DIFFERENCE };
        let now = runs(&[(2.8, 90.0), (2.8, 91.0), (2.9, 90.0), (2.8, 89.0)]);
        // Higher throughput with one seed of four, and lower latency with all.
        let chance = runs(&[(11.0, 50.0), (2.7, 51.0), (2.6, 50.0), (2.7, 52.0)]);
        let (throughput, p99) = (0, 1);
        assert!(!pick.confirms(&chance, &now, throughput));
        assert!(pick.confirms(&chance, &now, p99));
        let more = runs(&[(5.0, 50.0), (5.1, 51.0), (5.2, 50.0), (5.1, 52.0)]);
        assert!(pick.confirms(&more, &now, throughput) && !pick.confirms(&now, &more, throughput));
        let dearer = runs(&[(2.0, 50.0), (2.1, 51.0), (2.0, 50.0), (2.1, 52.0)]);
        assert!(!pick.confirms(&dearer, &now, p99), "an earlier goal is worse");
    }
}
