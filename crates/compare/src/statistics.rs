//! Spreads over seeds, and significant differences.
//!
//! The same seed gives each choice the same drive and the same random draws, so values are compared
//! in pairs: the mean of their differences over the seeds, and the interval that holds the true
//! mean with a probability of 95 % (Student's t). A difference is significant if that interval does
//! not contain zero and the difference is at least [`MIN_DIFFERENCE`], because the model of a drive
//! is not exact below that.

use hoistway_units::figures::interval;

/// The smallest relative difference that can be significant.
pub const MIN_DIFFERENCE: f64 = 0.05;

/// Student's t for a two-sided interval of 95 %, by degrees of freedom from 1.
const T95: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/// A mean and the interval of 95 % around it.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Spread {
    /// The mean over the seeds.
    pub mean: f64,
    /// Half of the width of the interval; NaN for a single value.
    pub plus_minus: f64,
    /// The smallest value.
    pub min: f64,
    /// The largest value.
    pub max: f64,
}

impl Spread {
    /// The spread of values; NaN without values.
    pub fn of(values: &[f64]) -> Spread {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        let deviation = (squares / (count - 1.0)).sqrt();
        let t = T95.get(values.len().saturating_sub(2)).copied().unwrap_or(1.96);
        Spread {
            mean,
            plus_minus: if values.len() < 2 { f64::NAN } else { t * deviation / count.sqrt() },
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        }
    }
}

/// The difference between two choices in a figure.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Difference {
    /// The mean difference relative to the reference: -0.9 is nine tenths less.
    pub mean: f64,
    /// The lower end of the interval of 95 %.
    pub low: f64,
    /// The upper end of the interval of 95 %.
    pub high: f64,
    /// True if the difference is no chance and large enough to matter.
    #[serde(rename = "is_told")]
    pub is_significant: bool,
    /// True if the first choice is better, significantly or not.
    pub is_better: bool,
}

impl Difference {
    /// The difference of values with the same seeds in the same order. `least` is true if less is
    /// better; relative differences below `min` are not significant.
    pub fn new(of: &[f64], against: &[f64], least: bool, min: f64) -> Difference {
        let pairs = || of.iter().zip(against);
        if pairs().any(|(of, against)| !of.is_finite() || !against.is_finite()) {
            return Difference::of_missing(of, against, least);
        }
        let differences: Vec<f64> = pairs().map(|(of, against)| of - against).collect();
        let spread = Spread::of(&differences);
        let base = Spread::of(against).mean.abs();
        let part = |value: f64| match (value == 0.0, base == 0.0) {
            (true, _) => 0.0,
            (false, true) => value.signum() * f64::INFINITY,
            (false, false) => value / base,
        };
        let half = if spread.plus_minus.is_finite() { spread.plus_minus } else { f64::INFINITY };
        let (low, high) = (spread.mean - half, spread.mean + half);
        let is_chance = spread.mean == 0.0 || (low <= 0.0 && high >= 0.0);
        // A figure that cannot be negative cannot lose more than all.
        let is_amount = pairs().all(|(of, against)| *of >= 0.0 && *against >= 0.0);
        let least_low = if is_amount { -1.0 } else { f64::NEG_INFINITY };
        Difference {
            mean: part(spread.mean),
            low: part(low).max(least_low),
            high: part(high),
            is_significant: !is_chance && part(spread.mean).abs() >= min,
            is_better: (spread.mean < 0.0) == least && spread.mean != 0.0,
        }
    }

    /// Formats the interval: "95 % between -12 % and +40 %"; `None` for an infinite one.
    pub fn interval_text(&self) -> Option<String> {
        (self.low.is_finite() && self.high.is_finite()).then(|| format!("95 % {}", interval(self.low, self.high)))
    }

    /// The difference if a run has no value, because a job completed no request.
    fn of_missing(of: &[f64], against: &[f64], least: bool) -> Difference {
        let missing = |values: &[f64]| values.iter().filter(|value| !value.is_finite()).count();
        let (of, against) = (missing(of), missing(against));
        let mean = match of.cmp(&against) {
            std::cmp::Ordering::Greater => f64::INFINITY,
            std::cmp::Ordering::Less => f64::NEG_INFINITY,
            std::cmp::Ordering::Equal => 0.0,
        };
        Difference {
            mean,
            low: mean,
            high: mean,
            is_significant: mean != 0.0,
            is_better: (mean < 0.0) == least && mean != 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_follows_students_t() {
        // Mean 3, deviation sqrt(2.5) = 1.5811; 2.776 x 1.5811 / sqrt(5) = 1.963.
        let spread = Spread::of(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!((spread.mean, spread.min, spread.max), (3.0, 1.0, 5.0));
        assert!((spread.plus_minus - 1.963).abs() < 0.001, "{spread:?}");
    }

    #[test]
    fn a_difference_on_all_seeds_is_significant_and_a_mixed_one_is_not() {
        let now = [100.0, 120.0, 80.0, 110.0, 90.0];
        let better = now.map(|value| value * 0.5);
        let sure = Difference::new(&better, &now, true, MIN_DIFFERENCE);
        assert!(sure.is_significant && sure.is_better && (sure.mean + 0.5).abs() < 1e-9, "{sure:?}");
        let chance = Difference::new(&[90.0, 130.0, 85.0, 100.0, 95.0], &now, true, MIN_DIFFERENCE);
        assert!(!chance.is_significant, "{chance:?}");
    }

    #[test]
    fn an_interval_does_not_reach_below_nothing() {
        let wide = Difference::new(&[0.0, 90.0, 5.0], &[100.0, 100.0, 100.0], false, MIN_DIFFERENCE);
        assert_eq!(wide.low, -1.0);
        assert!(wide.high > 0.0 && !wide.is_significant, "{wide:?}");
    }

    #[test]
    fn a_difference_below_the_minimum_is_not_significant() {
        let now = [100.0, 120.0, 80.0];
        let little = now.map(|value| value - 3.0);
        assert!(!Difference::new(&little, &now, true, MIN_DIFFERENCE).is_significant);
        assert!(Difference::new(&little, &now, true, 0.02).is_significant);
    }

    #[test]
    fn equal_values_do_not_differ_even_at_zero() {
        let zero = Difference::new(&[0.0; 5], &[0.0; 5], true, MIN_DIFFERENCE);
        assert_eq!((zero.mean, zero.is_significant, zero.is_better), (0.0, false, false));
        let from_zero = Difference::new(&[4.0, 5.0, 6.0], &[0.0; 3], true, MIN_DIFFERENCE);
        assert!(from_zero.is_significant && !from_zero.is_better);
    }

    #[test]
    fn a_job_without_any_completion_is_worse() {
        let starved = Difference::new(&[f64::INFINITY, 5.0], &[9.0, 9.0], true, MIN_DIFFERENCE);
        assert!(starved.is_significant && !starved.is_better);
    }
}
