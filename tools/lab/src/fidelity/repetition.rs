//! Runs of the same job: their medians, and how far they lie apart.

use super::figures::{Direction, Figure, total};

/// The figures of repeated runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Repetition {
    /// The figures of each run.
    runs: Vec<Vec<Figure>>,
    /// The medians of the runs, by section and direction. A run without requests in a section
    /// counts as one with a rate of zero.
    pub figures: Vec<Figure>,
}

/// A rate in repeated runs, in bytes a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The rate of the slowest run.
    pub slowest: f64,
    /// The median.
    pub median: f64,
    /// The rate of the fastest run.
    pub fastest: f64,
}

impl Spread {
    /// The spread of some rates.
    fn of(rates: &[f64]) -> Spread {
        Spread {
            slowest: rates.iter().copied().reduce(f64::min).unwrap_or(0.0),
            median: median(rates.to_vec()),
            fastest: rates.iter().copied().reduce(f64::max).unwrap_or(0.0),
        }
    }

    /// The distance of the fastest run from the slowest, as a share of the median.
    pub fn share(&self) -> f64 {
        if self.median > 0.0 { (self.fastest - self.slowest) / self.median } else { 0.0 }
    }
}

impl Repetition {
    /// Takes the figures of some runs.
    pub fn new(runs: Vec<Vec<Figure>>) -> Repetition {
        let mut figures: Vec<Figure> = Vec::new();
        for figure in runs.iter().flatten() {
            if !figures.iter().any(|one| one.is_same_part(&figure.section, figure.direction)) {
                figures.push(median_figure(&runs, figure));
            }
        }
        Repetition { runs, figures }
    }

    /// The number of runs.
    pub fn count(&self) -> usize {
        self.runs.len()
    }

    /// The rates of a section in a direction.
    pub fn rates(&self, section: &str, direction: Direction) -> Spread {
        let rate = |run: &Vec<Figure>| {
            run.iter().find(|figure| figure.is_same_part(section, direction)).map_or(0.0, |figure| figure.bytes_per_s)
        };
        Spread::of(&self.runs.iter().map(rate).collect::<Vec<f64>>())
    }

    /// The rates of all sections together.
    pub fn totals(&self) -> Spread {
        Spread::of(&self.runs.iter().map(|run| total(run)).collect::<Vec<f64>>())
    }
}

/// The median of the runs' figures for the section and direction of one of them. Latencies are the
/// medians over the runs that have requests.
fn median_figure(runs: &[Vec<Figure>], one: &Figure) -> Figure {
    let found: Vec<&Figure> = runs
        .iter()
        .filter_map(|run| run.iter().find(|other| other.is_same_part(&one.section, one.direction)))
        .collect();
    let of = |value: fn(&Figure) -> f64| median(found.iter().map(|figure| value(figure)).collect());
    let without = std::iter::repeat_n(0.0, runs.len() - found.len());
    Figure {
        section: one.section.clone(),
        direction: one.direction,
        requests: of(|figure| figure.requests as f64) as u64,
        seconds: of(|figure| figure.seconds),
        bytes_per_s: median(found.iter().map(|figure| figure.bytes_per_s).chain(without).collect()),
        p10_ns: of(|figure| figure.p10_ns),
        p50_ns: of(|figure| figure.p50_ns),
        p90_ns: of(|figure| figure.p90_ns),
        p99_ns: of(|figure| figure.p99_ns),
    }
}

/// The median; the mean of the two in the middle of an even number, and 0 of none.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.get(middle) {
        None => 0.0,
        Some(value) if values.len() % 2 == 1 => *value,
        Some(value) => f64::midpoint(values[middle - 1], *value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fidelity::figures::example;

    #[test]
    fn figures_are_medians_and_a_run_without_requests_has_a_rate_of_zero() {
        let runs = vec![
            vec![example("a", 100.0, 4.0), example("b", 10.0, 1.0)],
            vec![example("a", 130.0, 6.0)],
            vec![example("a", 110.0, 5.0)],
        ];
        let repetition = Repetition::new(runs);
        assert_eq!(repetition.figures.len(), 2);
        assert_eq!((repetition.figures[0].bytes_per_s, repetition.figures[0].p99_ns), (110.0, 5.0));
        assert_eq!((repetition.figures[1].bytes_per_s, repetition.figures[1].p99_ns), (0.0, 1.0));
        let rates = repetition.rates("a", Direction::Read);
        assert_eq!(rates, Spread { slowest: 100.0, median: 110.0, fastest: 130.0 });
        assert!((rates.share() - 30.0 / 110.0).abs() < 1e-9);
        assert_eq!(repetition.totals(), Spread { slowest: 110.0, median: 110.0, fastest: 130.0 });
        assert_eq!(Repetition::new(Vec::new()).totals().share(), 0.0);
    }

    #[test]
    fn the_median_of_an_even_number_is_between_the_two_in_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0, 10.0]), 2.5);
        assert_eq!(median(vec![3.0]), 3.0);
    }
}
