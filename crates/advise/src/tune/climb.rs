//! A pattern search over ladders: asked for points, told how good they are.

use std::cmp::Ordering;
use std::collections::HashMap;

use rand::{Rng, RngExt};

use super::space::{Rung, Space};

/// Rungs at first; halved whenever no neighbour is better, and below one the search has come to a top.
const FIRST_STEP: usize = 4;
/// So many random points in vain, and there are none left.
const DRAWS: usize = 64;

/// How good something is: first that it keeps to the constraints, then the goals. Less is better.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// By how much constraints are broken; 0 if none is.
    pub violation: f64,
    /// The goals, the first of which decides; of what is to be large with the sign turned.
    pub goals: Vec<f64>,
}

impl Score {
    /// The better one is less.
    pub fn order(&self, other: &Score) -> Ordering {
        let goals = || self.goals.iter().zip(&other.goals).map(|(one, other)| one.total_cmp(other));
        self.violation
            .total_cmp(&other.violation)
            .then_with(|| goals().find(|order| order.is_ne()).unwrap_or(Ordering::Equal))
    }

    /// Whether it keeps to what the other does, and no goal is worse by more than this part.
    pub fn is_as_good_as(&self, other: &Score, part: f64) -> bool {
        let goals = self.goals.iter().zip(&other.goals).all(|(one, other)| one - other <= part * other.abs());
        self.violation <= other.violation && goals
    }
}

/// A search under way.
pub struct Climb {
    space: Space,
    at: Vec<Rung>,
    score: Option<Score>,
    step: usize,
    seen: HashMap<Vec<Rung>, Score>,
    restarts: usize,
    is_exhausted: bool,
}

impl Climb {
    /// From the defaults.
    pub fn new(space: &Space) -> Climb {
        Climb {
            at: space.default_point(),
            space: space.clone(),
            score: None,
            step: FIRST_STEP,
            seen: HashMap::new(),
            restarts: 0,
            is_exhausted: false,
        }
    }

    /// What to try next: where it stands, or all neighbours that were not tried. Empty once there is nothing left to try.
    pub fn ask(&mut self, rng: &mut impl Rng) -> Vec<Vec<Rung>> {
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

    /// What was tried is this good.
    pub fn tell(&mut self, scores: Vec<(Vec<Rung>, Score)>) {
        let best = scores.iter().min_by(|one, other| one.1.order(&other.1)).cloned();
        self.seen.extend(scores);
        let Some((point, score)) = best else { return };
        match &self.score {
            Some(at) if score.order(at).is_ge() => self.step = (self.step / 2).max(1),
            _ => (self.at, self.score) = (point, Some(score)),
        }
    }

    /// Whether everything was tried.
    pub fn is_exhausted(&self) -> bool {
        self.is_exhausted
    }

    /// How often it began anew.
    pub fn restarts(&self) -> usize {
        self.restarts
    }

    /// One ladder up or down by the step, as far as it goes.
    fn neighbours(&self) -> Vec<Vec<Rung>> {
        let mut points = Vec::new();
        for (place, (_, values, _)) in self.space.ladders.iter().enumerate() {
            let rung = self.at[place];
            for other in [rung.saturating_sub(self.step), (rung + self.step).min(values.len() - 1)] {
                if other != rung {
                    let mut point = self.at.clone();
                    point[place] = other;
                    points.push(point);
                }
            }
        }
        points
    }

    fn restart(&mut self, rng: &mut impl Rng) -> bool {
        for _ in 0..DRAWS {
            let point: Vec<Rung> =
                self.space.ladders.iter().map(|(_, values, _)| rng.random_range(0..values.len())).collect();
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

    fn search(space: &Space, evaluations: usize, value: impl Fn(&[Rung]) -> f64) -> (Vec<Rung>, f64, usize) {
        let mut rng = Pcg32::seed_from_u64(7);
        let mut climb = Climb::new(space);
        let mut tried = 0;
        while tried < evaluations && !climb.is_exhausted() {
            let points = climb.ask(&mut rng);
            tried += points.len();
            let score = |point: &Vec<Rung>| Score { violation: 0.0, goals: vec![value(point)] };
            climb.tell(points.iter().map(|point| (point.clone(), score(point))).collect());
        }
        let best = climb.seen.iter().min_by(|one, other| one.1.order(other.1)).expect("something was tried");
        (best.0.clone(), best.1.goals[0], tried)
    }

    #[test]
    fn a_planted_optimum_is_found() {
        let space = Space::of(Kind::Bfq);
        let target: Vec<Rung> =
            space.ladders.iter().enumerate().map(|(place, (_, values, _))| place * 5 % values.len()).collect();
        let far = |point: &[Rung]| point.iter().zip(&target).map(|(is, to)| (*is as f64 - *to as f64).powi(2)).sum();
        let (found, value, tried) = search(&space, 600, far);
        assert_eq!((found, value), (target, 0.0), "after {tried}");
    }

    #[test]
    fn a_hill_beside_the_mountain_is_left_by_beginning_anew() {
        let space = Space::of(Kind::MqDeadline);
        let start = space.default_point();
        // Low ground around a hill at the defaults, and a pit in the far corner that slopes towards itself.
        let value = |point: &[Rung]| {
            let near: f64 = point.iter().zip(&start).map(|(is, was)| (*is as f64 - *was as f64).abs()).sum();
            let corner: f64 = point.iter().map(|is| *is as f64).sum();
            near.min(corner / 2.0 - 5.0)
        };
        let (_, best, _) = search(&space, 1500, value);
        assert_eq!(best, -5.0);
    }

    #[test]
    fn a_space_without_ladders_is_its_defaults() {
        let (found, _, tried) = search(&Space { kind: Kind::Noop, ladders: Vec::new() }, 50, |_| 1.0);
        assert_eq!((found.len(), tried), (0, 1));
    }

    #[test]
    fn keeping_to_constraints_comes_before_goals() {
        let score = |violation, goal| Score { violation, goals: vec![goal] };
        assert_eq!(score(0.0, 9.0).order(&score(0.1, 1.0)), Ordering::Less);
        assert_eq!(score(0.0, 1.0).order(&score(0.0, 2.0)), Ordering::Less);
        assert!(score(0.0, 1.005).is_as_good_as(&score(0.0, 1.0), 0.01));
        assert!(!score(0.0, -0.9).is_as_good_as(&score(0.0, -1.0), 0.01));
    }
}
