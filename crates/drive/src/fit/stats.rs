//! Statistics that the fits share.

/// The value below which the share `share` of the values is; 0 without values.
pub(super) fn percentile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let index = (share * sorted.len().saturating_sub(1) as f64).round() as usize;
    sorted.get(index).copied().unwrap_or(0.0)
}

/// The mean; 0 without values.
pub(super) fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// The least-squares line through points as (value at 0, slope); level if all abscissae are equal.
pub(super) fn line(points: &[(f64, f64)]) -> (f64, f64) {
    let (xs, ys): (Vec<f64>, Vec<f64>) = points.iter().copied().unzip();
    let (x_mean, y_mean) = (mean(&xs), mean(&ys));
    let spread: f64 = xs.iter().map(|x| (x - x_mean).powi(2)).sum();
    if spread <= 0.0 {
        return (y_mean, 0.0);
    }
    let slope = points.iter().map(|(x, y)| (x - x_mean) * (y - y_mean)).sum::<f64>() / spread;
    (y_mean - slope * x_mean, slope)
}

/// The rising sequence nearest to weighted values (pool adjacent violators): falling neighbours
/// become their mean.
pub(super) fn rising(values: &[(f64, f64)]) -> Vec<f64> {
    // Blocks of (mean, weight, number of values).
    let mut blocks: Vec<(f64, f64, usize)> = Vec::new();
    for (value, weight) in values {
        let mut block = (*value, weight.max(1e-9), 1);
        while let Some(before) = blocks.last().copied().filter(|before| before.0 > block.0) {
            let weight = before.1 + block.1;
            block = ((before.0 * before.1 + block.0 * block.1) / weight, weight, before.2 + block.2);
            blocks.pop();
        }
        blocks.push(block);
    }
    blocks.iter().flat_map(|block| std::iter::repeat_n(block.0, block.2)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_equal_hand_computed_values() {
        assert_eq!(percentile(&[3.0, 1.0, 2.0], 0.5), 2.0);
        assert_eq!(line(&[(1.0, 3.0), (2.0, 5.0), (3.0, 7.0)]), (1.0, 2.0));
        assert_eq!(line(&[(1.0, 3.0), (1.0, 5.0)]), (4.0, 0.0));
        assert_eq!(rising(&[(1.0, 1.0), (4.0, 1.0), (2.0, 1.0), (3.0, 2.0), (9.0, 1.0)]), [1.0, 3.0, 3.0, 3.0, 9.0]);
    }
}
