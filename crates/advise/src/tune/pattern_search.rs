//! A pattern search over ladders: [`PatternSearch::next_points`] proposes points,
//! [`PatternSearch::record`] takes their scores.

use std::cmp::Ordering;
use std::collections::HashMap;

use rand::{Rng, RngExt};

use super::space::{Rung, Space};

/// The first step in rungs. It is halved when no neighbour is better; below one rung the search has
/// reached a local optimum.
const FIRST_STEP: usize = 4;
/// The number of random draws after which the space counts as exhausted.
const DRAWS: usize = 64;

/// The score of a choice: constraints first, then goals. Less is better.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// How far constraints are broken in total; 0 if none is.
    pub violation: f64,
    /// The values of the goals, the first decides; negated for goals to maximise.
    pub goals: Vec<f64>,
}

impl Score {
    /// Compares scores; the better one is less.
    pub fn order(&self, other: &Score) -> Ordering {
        let goals = || self.goals.iter().zip(&other.goals).map(|(one, other)| one.total_cmp(other));
        self.violation
            .total_cmp(&other.violation)
            .then_with(|| goals().find(|order| order.is_ne()).unwrap_or(Ordering::Equal))
    }

    /// Returns true if constraints are no more broken and no goal is worse by more than a relative
    /// tolerance.
    pub fn is_as_good_as(&self, other: &Score, part: f64) -> bool {
        let goals = self.goals.iter().zip(&other.goals).all(|(one, other)| one - other <= part * other.abs());
        self.violation <= other.violation && goals
    }
}

/// The state of a search.
pub struct PatternSearch {
    space: Space,
    at: Vec<Rung>,
    score: Option<Score>,
    step: usize,
    seen: HashMap<Vec<Rung>, Score>,
    restarts: usize,
    is_exhausted: bool,
}

impl PatternSearch {
    /// A search that starts at the defaults.
    pub fn new(space: &Space) -> PatternSearch {
        PatternSearch {
            at: space.default_point(),
            space: space.clone(),
            score: None,
            step: FIRST_STEP,
            seen: HashMap::new(),
            restarts: 0,
            is_exhausted: false,
        }
    }

    /// The points to try next: the current point, or its untried neighbours. Empty if the space is
    /// exhausted.
    pub fn next_points(&mut self, rng: &mut impl Rng) -> Vec<Vec<Rung>> {
        loop {
            if self.score.is_none() {
                return vec![self.at.clone()];
            }
            let new: Vec<Vec<Rung>> =
                self.neighbours().into_iter().filter(|point| !self.seen.contains_key(point)).collect();
            if !new.is_empty() {
                return new;
            }
            if self.step > 1 {
                self.step /= 2;
            } else if !self.restart(rng) {
                self.is_exhausted = true;
                return Vec::new();
            }
        }
    }

    /// Takes the scores of tried points and moves to the best if it is better.
    pub fn record(&mut self, scores: Vec<(Vec<Rung>, Score)>) {
        let best = scores.iter().min_by(|one, other| one.1.order(&other.1)).cloned();
        self.seen.extend(scores);
        let Some((point, score)) = best else { return };
        match &self.score {
            Some(at) if score.order(at).is_ge() => self.step = (self.step / 2).max(1),
            _ => (self.at, self.score) = (point, Some(score)),
        }
    }

    /// Returns true if the space is exhausted.
    pub fn is_exhausted(&self) -> bool {
        self.is_exhausted
    }

    /// The number of random restarts.
    pub fn restarts(&self) -> usize {
        self.restarts
    }

    /// The points one step up or down on each ladder.
    fn neighbours(&self) -> Vec<Vec<Rung>> {
        let mut points = Vec::new();
        for (index, ladder) in self.space.ladders.iter().enumerate() {
            let rung = self.at[index];
            for other in [rung.saturating_sub(self.step), (rung + self.step).min(ladder.values.len() - 1)] {
                if other != rung {
                    let mut point = self.at.clone();
                    point[index] = other;
                    points.push(point);
                }
            }
        }
        points
    }

    /// Moves to a random untried point; returns false if none is found.
    fn restart(&mut self, rng: &mut impl Rng) -> bool {
        for _ in 0..DRAWS {
            let point: Vec<Rung> =
                self.space.ladders.iter().map(|ladder| rng.random_range(0..ladder.values.len())).collect();
            if !self.seen.contains_key(&point) {
                (self.at, self.score, self.step) = (point, None, FIRST_STEP);
                self.restarts += 1;
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hoistway_core::Kind;
    use rand::SeedableRng;
    use rand_pcg::Pcg32;

    fn run_search(space: &Space, evaluations: usize, value: impl Fn(&[Rung]) -> f64) -> (Vec<Rung>, f64, usize) {
        let mut rng = Pcg32::seed_from_u64(7);
        let mut search = PatternSearch::new(space);
        let mut tried = 0;
        while tried < evaluations && !search.is_exhausted() {
            let points = search.next_points(&mut rng);
            tried += points.len();
            let score = |point: &Vec<Rung>| Score { violation: 0.0, goals: vec![value(point)] };
            search.record(points.iter().map(|point| (point.clone(), score(point))).collect());
        }
        let best = search.seen.iter().min_by(|one, other| one.1.order(other.1)).expect("something was tried");
        (best.0.clone(), best.1.goals[0], tried)
    }

    #[test]
    fn a_planted_optimum_is_found() {
        let space = Space::of(Kind::Bfq);
        let target: Vec<Rung> =
            space.ladders.iter().enumerate().map(|(index, ladder)| index * 5 % ladder.values.len()).collect();
        let far = |point: &[Rung]| point.iter().zip(&target).map(|(is, to)| (*is as f64 - *to as f64).powi(2)).sum();
        let (found, value, tried) = run_search(&space, 600, far);
        assert_eq!((found, value), (target, 0.0), "after {tried}");
    }

    #[test]
    fn a_local_optimum_is_left_by_a_restart() {
        let space = Space::of(Kind::MqDeadline);
        let start = space.default_point();
        // A local optimum at the defaults, and the global one in the far corner.
        let value = |point: &[Rung]| {
            let near: f64 = point.iter().zip(&start).map(|(is, was)| (*is as f64 - *was as f64).abs()).sum();
            let corner: f64 = point.iter().map(|is| *is as f64).sum();
            near.min(corner / 2.0 - 5.0)
        };
        let (_, best, _) = run_search(&space, 1500, value);
        assert_eq!(best, -5.0);
    }

    #[test]
    fn a_space_without_ladders_has_one_point() {
        let (found, _, tried) = run_search(&Space { kind: Kind::Noop, ladders: Vec::new() }, 50, |_| 1.0);
        assert_eq!((found.len(), tried), (0, 1));
    }

    #[test]
    fn constraints_come_before_goals() {
        let score = |violation, goal| Score { violation, goals: vec![goal] };
        assert_eq!(score(0.0, 9.0).order(&score(0.1, 1.0)), Ordering::Less);
        assert_eq!(score(0.0, 1.0).order(&score(0.0, 2.0)), Ordering::Less);
        assert!(score(0.0, 1.005).is_as_good_as(&score(0.0, 1.0), 0.01));
        assert!(!score(0.0, -0.9).is_as_good_as(&score(0.0, -1.0), 0.01));
    }
}
