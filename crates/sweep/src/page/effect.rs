//! Main effects: how far a figure depends on one key, over all values of the others.

use super::levels::Levels;

/// The effect of one key on one figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Effect {
    /// The figures of each level; `None` for a level without points.
    pub levels: Vec<Option<LevelFigures>>,
    /// The part of the variance of the figure, over all points, that is between the levels: 0 to
    /// 1 (omega squared).
    pub explained: f64,
}

/// A figure over the points of a level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LevelFigures {
    /// The mean.
    pub mean: f64,
    /// The first and the third quartile.
    pub quartiles: (f64, f64),
}

impl Effect {
    /// The effect on the values, one for each row of the levels; values that are not finite do not
    /// count.
    pub fn of(levels: &Levels, values: &[f64]) -> Effect {
        let mut groups: Vec<Vec<f64>> = vec![Vec::new(); levels.names.len()];
        for (level, value) in levels.of_rows.iter().zip(values) {
            if let (Some(level), true) = (level, value.is_finite()) {
                groups[*level].push(*value);
            }
        }
        let levels: Vec<Option<LevelFigures>> = groups.iter_mut().map(|group| figures(group)).collect();
        Effect { explained: explained(&groups, values), levels }
    }
}

/// The part of the variance of all values that is between the groups, less what chance alone
/// would put there (omega squared).
fn explained(groups: &[Vec<f64>], values: &[f64]) -> f64 {
    let all: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    let total = squares(&all, mean(&all));
    let filled: Vec<&Vec<f64>> = groups.iter().filter(|group| !group.is_empty()).collect();
    let mean_of_groups = mean(&groups.concat());
    let count: usize = filled.iter().map(|group| group.len()).sum();
    let between: f64 = filled.iter().map(|group| group.len() as f64 * (mean(group) - mean_of_groups).powi(2)).sum();
    let within: f64 = filled.iter().map(|group| squares(group, mean(group))).sum();
    if count <= filled.len() {
        return 0.0;
    }
    let by_chance = within / (count - filled.len()) as f64;
    let freedom = filled.len().saturating_sub(1) as f64;
    ((between - freedom * by_chance) / (total + by_chance)).max(0.0)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The sum of the squared distances from a value.
fn squares(values: &[f64], from: f64) -> f64 {
    values.iter().map(|value| (value - from).powi(2)).sum()
}

fn figures(values: &mut [f64]) -> Option<LevelFigures> {
    values.sort_by(f64::total_cmp);
    let at = |part: usize| values[(values.len() - 1) * part / 4];
    (!values.is_empty()).then(|| LevelFigures { mean: mean(values), quartiles: (at(1), at(3)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(of_rows: &[usize]) -> Levels {
        let names = ["a", "b"].map(str::to_owned).into();
        Levels { key: "x".into(), names, of_rows: of_rows.iter().map(|level| Some(*level)).collect() }
    }

    #[test]
    fn the_variance_is_split_between_and_within_levels() {
        // Means 1 and 3, total mean 2: between 4, within 4 x 0.25, by chance 0.5 for each level.
        let effect = Effect::of(&levels(&[0, 0, 1, 1]), &[0.5, 1.5, 2.5, 3.5]);
        assert!((effect.explained - 3.5 / 5.5).abs() < 1e-9, "{effect:?}");
        assert_eq!(effect.levels[1].map(|figures| figures.mean), Some(3.0));
    }

    #[test]
    fn a_key_of_some_points_explains_a_part_of_the_variance_of_all() {
        let mut levels = levels(&[0, 0, 1, 1]);
        levels.of_rows.extend([None, None]);
        let effect = Effect::of(&levels, &[1.0, 1.0, 3.0, 3.0, 102.0, -98.0]);
        assert!(effect.explained > 0.0 && effect.explained < 0.001, "{effect:?}");
    }

    #[test]
    fn values_that_do_not_vary_and_single_points_have_no_effect() {
        let same = Effect::of(&levels(&[0, 0, 1]), &[1.0, 1.0, 1.0]).explained;
        assert!(same.is_nan() || same == 0.0, "{same}");
        let effect = Effect::of(&levels(&[0, 1]), &[1.0, f64::NAN]);
        assert_eq!((effect.levels[1], effect.explained), (None, 0.0));
        assert_eq!(Effect::of(&levels(&[0, 1]), &[1.0, 9.0]).explained, 0.0);
    }
}
