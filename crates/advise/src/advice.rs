//! Which of several choices to set.

use std::sync::atomic::AtomicBool;

use crate::bench::{AdviseError, Bench, Headway, Measured};
use crate::choice::Choice;
use crate::judge::{Difference, FLOOR, Spread};
use crate::objective::{Bound, Constraint, Figure, Objective};
use crate::why::{Change, changes, why};

/// What is to be judged.
#[derive(Clone, Debug)]
pub struct AdviceRequest {
    /// The workload, the drive, the host.
    pub bench: Bench,
    /// What is set now: everything is measured against it.
    pub now: Choice,
    /// What could be set; `now` need not be among them.
    pub choices: Vec<Choice>,
    /// What is only told: it is run, and never chosen.
    pub told_only: Vec<Choice>,
    /// What is to be good.
    pub objective: Objective,
    /// How many seeds, 2 or more.
    pub seeds: u32,
    /// What all of them come from.
    pub seed: u64,
    /// Differences smaller than this part are not told: [`FLOOR`], or what the model misses a recording by.
    pub floor: f64,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Set the choice.
    Change,
    /// Leave what is set: nothing is gained.
    Leave,
}

/// The answer.
#[derive(Clone, Debug)]
pub struct Advice {
    /// What to do.
    pub verdict: Verdict,
    /// The place of what to set in `judged`; with [`Verdict::Leave`] that of what is set now.
    pub chosen: usize,
    /// The place of what is set now.
    pub now: usize,
    /// All choices, in the order asked for, what is set now first unless it was among them.
    pub judged: Vec<Judged>,
    /// The figures, in the order of the objective, and then total throughput where that is not among them.
    pub figures: Vec<Figure>,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// What was chosen and what is set now on seeds that nothing was chosen by; `None` if nothing else was better on the first ones.
    pub checked: Option<Checked>,
    /// Who gains and who pays.
    pub changes: Vec<Change>,
    /// That in a sentence or two.
    pub why: String,
    /// Why the verdict is what it is, in a sentence.
    pub because: String,
}

/// One choice.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The choice.
    pub choice: Choice,
    /// Each figure over the seeds.
    pub spreads: Vec<Spread>,
    /// Each figure against what is set now.
    pub against_now: Vec<Difference>,
    /// Whether it can be chosen.
    pub can_be_set: bool,
    /// The constraints that it does not keep to.
    pub broken: Vec<Constraint>,
    /// What it showed with each seed.
    pub runs: Vec<Measured>,
}

/// The choice on other seeds.
#[derive(Clone, Debug)]
pub struct Checked {
    /// What was to be checked: the place in [`Advice::judged`].
    pub choice: usize,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// Each figure of the choice.
    pub spreads: Vec<Spread>,
    /// Each figure against what is set now.
    pub against_now: Vec<Difference>,
    /// The place of the figure by which it was judged: that of the goal which decided, or of a constraint that is broken now.
    pub figure: usize,
    /// Whether what was found holds here, too.
    pub holds: bool,
}

/// Runs all choices and judges them.
///
/// # Errors
/// [`AdviseError`].
pub fn advise(request: &AdviceRequest, headway: Headway<'_>, cancel: &AtomicBool) -> Result<Advice, AdviseError> {
    let mut choices = request.choices.clone();
    if !choices.contains(&request.now) {
        choices.insert(0, request.now.clone());
    }
    if request.seeds < 2 {
        return Err(AdviseError::Seeds { seeds: request.seeds });
    }
    let now = choices.iter().position(|choice| *choice == request.now).ok_or(AdviseError::NoChoices)?;
    let settable = choices.len();
    choices.extend(request.told_only.iter().filter(|told| !request.choices.contains(told)).cloned());
    let figures = figures(&request.objective);
    let seeds = seeds(request.seed, 0, request.seeds);
    let floor = request.floor.max(FLOOR);
    let runs = request.bench.measure(&choices, &seeds, &figures, headway, cancel)?;
    let judged = judge(&request.objective, &figures, choices, runs, (now, settable, floor));
    let pick = Pick { objective: &request.objective, figures: &figures, floor };
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
        advice.why = why(&advice.changes, &first, &judged[chosen].runs, &judged[now].runs);
        (advice.verdict, advice.chosen) = (Verdict::Change, chosen);
    } else {
        advice.because = format!(
            "{} looked better on the seeds that it was chosen by, and on others that does not hold",
            judged[chosen].choice.name()
        );
    }
    advice.checked = Some(checked);
    Ok(advice)
}

/// Seeds by number: groups of them never meet.
pub(crate) fn seeds(from: u64, group: u64, count: u32) -> Vec<u64> {
    (0..u64::from(count)).map(|place| from.wrapping_add(group * 1_000_003).wrapping_add(place)).collect()
}

/// The objective's, and what people want to see whatever is asked for.
pub(crate) fn figures(objective: &Objective) -> Vec<Figure> {
    let mut figures = objective.figures();
    let throughput = Figure { what: crate::What::Throughput, job: None };
    if !figures.contains(&throughput) {
        figures.push(throughput);
    }
    figures
}

/// The values of one figure over the seeds.
pub(crate) fn values(runs: &[Measured], figure: usize) -> Vec<f64> {
    runs.iter().filter_map(|run| run.figures.get(figure)).copied().collect()
}

fn judge(
    objective: &Objective,
    figures: &[Figure],
    choices: Vec<Choice>,
    runs: Vec<Vec<Measured>>,
    (now, settable, floor): (usize, usize, f64),
) -> Vec<Judged> {
    let spreads: Vec<Vec<Spread>> =
        runs.iter().map(|runs| (0..figures.len()).map(|figure| Spread::of(&values(runs, figure))).collect()).collect();
    let bounds = bounds(objective, figures, &spreads[..settable], now);
    let against: Vec<Vec<Difference>> = runs.iter().map(|of| against(of, &runs[now], figures, floor)).collect();
    let rows = choices.into_iter().zip(runs).zip(spreads.iter().cloned()).zip(against);
    let judged = rows.enumerate().map(|(place, (((choice, runs), spreads), against_now))| Judged {
        can_be_set: place < settable,
        broken: broken(objective, figures, &spreads, &bounds),
        choice,
        spreads,
        against_now,
        runs,
    });
    judged.collect()
}

fn against(of: &[Measured], now: &[Measured], figures: &[Figure], floor: f64) -> Vec<Difference> {
    let one = |(place, figure): (usize, &Figure)| {
        Difference::new(&values(of, place), &values(now, place), figure.what.less_is_better(), floor)
    };
    figures.iter().enumerate().map(one).collect()
}

/// Where the bound of each constraint lies, in the figure's unit: `spreads` are those of all choices.
pub(crate) fn bounds(objective: &Objective, figures: &[Figure], spreads: &[Vec<Spread>], now: usize) -> Vec<f64> {
    let bound = |constraint: &Constraint| {
        let Some(place) = figures.iter().position(|figure| *figure == constraint.figure) else { return f64::NAN };
        let means = || spreads.iter().filter_map(|spreads| spreads.get(place)).map(|spread| spread.mean);
        let best = if constraint.figure.what.less_is_better() {
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

/// The constraints that means do not keep to.
fn broken(objective: &Objective, figures: &[Figure], spreads: &[Spread], bounds: &[f64]) -> Vec<Constraint> {
    let is_broken = |(constraint, bound): &(&Constraint, &f64)| violation(constraint, figures, spreads, **bound) > 0.0;
    objective.constraints.iter().zip(bounds).filter(is_broken).map(|(constraint, _)| constraint.clone()).collect()
}

/// By which part of the bound a mean is on the wrong side of it; 0 if it is not.
pub(crate) fn violation(constraint: &Constraint, figures: &[Figure], spreads: &[Spread], bound: f64) -> f64 {
    let place = figures.iter().position(|figure| *figure == constraint.figure);
    let Some(mean) = place.and_then(|place| spreads.get(place)).map(|spread| spread.mean) else { return 0.0 };
    let short = if constraint.at_least { bound - mean } else { mean - bound };
    if short <= 0.0 { 0.0 } else { short / bound.abs().max(f64::MIN_POSITIVE) }
}

/// The choice on seeds that it was not chosen by.
fn check(
    request: &AdviceRequest,
    pick: &Pick<'_>,
    judged: &[Judged],
    (chosen, now): (usize, usize),
    cancel: &AtomicBool,
) -> Result<Checked, AdviseError> {
    let seeds = seeds(request.seed, 1, request.seeds);
    let pair = [judged[chosen].choice.clone(), judged[now].choice.clone()];
    let runs = request.bench.measure(&pair, &seeds, pick.figures, &|_, _| {}, cancel)?;
    let spreads: Vec<Spread> = (0..pick.figures.len()).map(|place| Spread::of(&values(&runs[0], place))).collect();
    let against_now = against(&runs[0], &runs[1], pick.figures, pick.floor);
    // What is chosen because a constraint is broken now is judged by that constraint.
    let broken = judged[now].broken.iter().map(|constraint| pick.place(&constraint.figure));
    let is_better = |place: &usize| against_now[*place].is_told && against_now[*place].is_better;
    let (figure, holds) = match broken.clone().next() {
        Some(figure) => (figure, broken.clone().all(|place| is_better(&place))),
        None => {
            let figure = pick.deciding(&judged[chosen].runs, &judged[now].runs);
            (figure, pick.confirms(&runs[0], &runs[1], figure))
        }
    };
    Ok(Checked { choice: chosen, seeds, spreads, against_now, figure, holds })
}

/// How one is picked.
struct Pick<'a> {
    objective: &'a Objective,
    figures: &'a [Figure],
    floor: f64,
}

impl Pick<'_> {
    fn place(&self, figure: &Figure) -> usize {
        self.figures.iter().position(|known| known == figure).unwrap_or(0)
    }

    fn difference(&self, of: &[Measured], against: &[Measured], goal: usize) -> Difference {
        let goal = &self.objective.goals[goal];
        let place = self.place(&goal.figure);
        Difference::new(&values(of, place), &values(against, place), goal.least, self.floor)
    }

    /// The first goal in which two can be told apart.
    fn decides(&self, of: &[Measured], against: &[Measured]) -> Option<Difference> {
        let goals = 0..self.objective.goals.len();
        goals.map(|goal| self.difference(of, against, goal)).find(|difference| difference.is_told)
    }

    /// Whether one is better in the figure of a goal that it was chosen for, and in the first one in which the two can be told apart now.
    fn confirms(&self, of: &[Measured], against: &[Measured], figure: usize) -> bool {
        let is_better = |difference: &Difference| difference.is_told && difference.is_better;
        let goal =
            (0..self.objective.goals.len()).find(|goal| self.place(&self.objective.goals[*goal].figure) == figure);
        goal.is_some_and(|goal| is_better(&self.difference(of, against, goal)))
            && self.decides(of, against).is_some_and(|difference| is_better(&difference))
    }

    /// The place of the figure in which two are told apart first; that of the first goal if they are not.
    fn deciding(&self, of: &[Measured], against: &[Measured]) -> usize {
        let goals = 0..self.objective.goals.len();
        let goal = goals.into_iter().find(|goal| self.difference(of, against, *goal).is_told).unwrap_or(0);
        self.place(&self.objective.goals[goal].figure)
    }

    /// The best that keeps to the constraints; of those that cannot be told from it what is set now, or else the plainest.
    fn best(&self, judged: &[Judged], now: usize) -> usize {
        let keeps: Vec<usize> =
            (0..judged.len()).filter(|place| judged[*place].can_be_set && judged[*place].broken.is_empty()).collect();
        if keeps.is_empty() {
            return now;
        }
        let mut left = keeps;
        for (number, goal) in self.objective.goals.iter().enumerate() {
            let place = self.place(&goal.figure);
            let mean = |choice: &usize| judged[*choice].spreads[place].mean * if goal.least { 1.0 } else { -1.0 };
            let Some(best) = left.iter().copied().min_by(|one, other| mean(one).total_cmp(&mean(other))) else { break };
            left.retain(|choice| {
                let difference = self.difference(&judged[best].runs, &judged[*choice].runs, number);
                !(difference.is_told && difference.is_better)
            });
        }
        if left.contains(&now) {
            return now;
        }
        let goal = &self.objective.goals[0];
        let place = self.place(&goal.figure);
        let mean = |choice: &usize| judged[*choice].spreads[place].mean * if goal.least { 1.0 } else { -1.0 };
        let tunables = |choice: &usize| judged[*choice].choice.tunables.len();
        let best = left
            .into_iter()
            .min_by(|one, other| tunables(one).cmp(&tunables(other)).then(mean(one).total_cmp(&mean(other))));
        best.unwrap_or(now)
    }

    fn why_leave(&self, judged: &[Judged], now: usize) -> String {
        let settable = || judged.iter().enumerate().filter(|(_, judged)| judged.can_be_set);
        if settable().count() == 1 {
            return "nothing else could be set".to_owned();
        }
        if !judged[now].broken.is_empty() {
            let fewest = settable().min_by_key(|(place, judged)| (judged.broken.len(), *place));
            let nearest = fewest.map_or_else(String::new, |(_, judged)| {
                format!("; {} breaks the fewest: {}", judged.choice.name(), list(&judged.broken))
            });
            return format!(
                "nothing that could be set keeps to all constraints, and what is set now breaks {}{nearest}",
                list(&judged[now].broken)
            );
        }
        let goal = &self.objective.goals[0].figure;
        if settable().any(|(place, other)| place != now && other.broken.is_empty()) {
            format!("no other choice makes {goal} better by more than could be chance and {:.0} %", self.floor * 100.0)
        } else {
            "none of the others keeps to the constraints".to_owned()
        }
    }

    fn why_change(&self, judged: &[Judged], checked: &Checked, now: usize) -> String {
        let told = |place: usize| {
            let figure = &self.figures[place];
            let told = |choice: usize| crate::told(judged[choice].spreads[place].mean, figure.what.unit());
            let difference = &judged[checked.choice].against_now[place];
            format!("{figure} is {} instead of {} ({})", told(checked.choice), told(now), percent(difference))
        };
        if judged[now].broken.is_empty() {
            return told(checked.figure);
        }
        let broken = list(&judged[now].broken);
        let text = format!("what is set now does not keep to {broken}: {}", told(checked.figure));
        // The goal is told, too, if it holds on the other seeds.
        let place = self.place(&self.objective.goals[0].figure);
        let is_sure = |difference: &Difference| difference.is_told;
        match is_sure(&judged[checked.choice].against_now[place]) && is_sure(&checked.against_now[place]) {
            true if place != checked.figure => format!("{text}; {}", told(place)),
            _ => text,
        }
    }
}

/// Constraints as a list.
fn list(constraints: &[Constraint]) -> String {
    constraints.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ")
}

/// A difference in percent, with its interval.
pub(crate) fn percent(difference: &Difference) -> String {
    let signed = |part: f64| match part {
        part if !part.is_finite() => if part > 0.0 { "more by any measure" } else { "less by any measure" }.to_owned(),
        part => format!("{:+.0} %", part * 100.0),
    };
    if !difference.mean.is_finite() || !difference.low.is_finite() || !difference.high.is_finite() {
        return signed(difference.mean);
    }
    format!("{}, 95 % between {} and {}", signed(difference.mean), signed(difference.low), signed(difference.high))
}

impl std::fmt::Display for Constraint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let relation = if self.at_least { ">=" } else { "<=" };
        write!(f, "{} {relation} ", self.figure)?;
        match self.bound {
            Bound::At(value) => f.write_str(&crate::told(value, self.figure.what.unit())),
            Bound::OfBest(share) => write!(f, "{:.0}% of best", share * 100.0),
            Bound::OfNow(share) => write!(f, "{:.0}% of now", share * 100.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(figures: &[(f64, f64)]) -> Vec<Measured> {
        let run = |(throughput, p99): &(f64, f64)| Measured {
            figures: vec![*throughput, *p99],
            jobs: Vec::new(),
            arm_share: 0.0,
            idle_share: 0.0,
        };
        figures.iter().map(run).collect()
    }

    #[test]
    fn what_was_chosen_for_one_figure_is_not_confirmed_by_another() {
        let objective = Objective::parse("throughput max, p99(worst) min", &[]).expect("it is one");
        let figures = figures(&objective);
        let pick = Pick { objective: &objective, figures: &figures, floor: FLOOR };
        let now = runs(&[(2.8, 90.0), (2.8, 91.0), (2.9, 90.0), (2.8, 89.0)]);
        // More bytes at one seed of four, and less waiting at all of them.
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
