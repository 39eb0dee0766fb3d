//! Means over seeds, with their spread.

use serde::Serialize;

/// A figure over the seeds of a case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Sample {
    /// The mean.
    pub mean: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
}

impl Sample {
    /// The sample of some figures; `None` without figures.
    pub fn of(figures: &[f64]) -> Option<Sample> {
        let count = figures.len();
        (count > 0).then(|| Sample {
            mean: figures.iter().sum::<f64>() / count as f64,
            min: figures.iter().copied().fold(f64::INFINITY, f64::min),
            max: figures.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        })
    }
}

/// The geometric mean of positive figures; `None` without figures. A figure of 0 counts as a
/// thousandth, so that one case without service does not make all others vanish.
pub(crate) fn geometric_mean(figures: impl Iterator<Item = f64>) -> Option<f64> {
    let logarithms: Vec<f64> = figures.map(|figure| figure.max(LEAST).ln()).collect();
    let count = logarithms.len();
    (count > 0).then(|| (logarithms.iter().sum::<f64>() / count as f64).exp())
}

/// The smallest figure that [`geometric_mean`] distinguishes from 0.
const LEAST: f64 = 1e-3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_have_a_mean_and_a_spread() {
        assert_eq!(Sample::of(&[]), None);
        assert_eq!(Sample::of(&[1.0, 4.0, 1.0]), Some(Sample { mean: 2.0, min: 1.0, max: 4.0 }));
    }

    #[test]
    fn a_geometric_mean_bounds_figures_from_below() {
        let mean = geometric_mean([0.5, 2.0].into_iter()).expect("two figures");
        assert!((mean - 1.0).abs() < 1e-12);
        let mean = geometric_mean([0.0, 1e3].into_iter()).expect("two figures");
        assert!((mean - 1.0).abs() < 1e-12);
        assert_eq!(geometric_mean(std::iter::empty()), None);
    }
}
