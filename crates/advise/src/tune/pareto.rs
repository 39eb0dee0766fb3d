//! The Pareto front of two figures.

/// The indices of the points that no other point beats in one figure without losing in the other,
/// sorted by the first figure. Less is better.
pub fn pareto_front(points: &[(f64, f64)]) -> Vec<usize> {
    let mut indices: Vec<usize> = (0..points.len()).filter(|index| points[*index].0.is_finite()).collect();
    indices.sort_by(|one, other| {
        let (one, other) = (points[*one], points[*other]);
        one.0.total_cmp(&other.0).then(one.1.total_cmp(&other.1))
    });
    let mut least = f64::INFINITY;
    indices.retain(|index| {
        let is_new = points[*index].1 < least;
        least = least.min(points[*index].1);
        is_new
    });
    indices
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_undominated_points_are_on_the_front() {
        let points = [(3.0, 1.0), (1.0, 5.0), (2.0, 6.0), (2.0, 3.0), (4.0, 1.0), (1.0, 5.0), (f64::INFINITY, 0.0)];
        assert_eq!(pareto_front(&points), [1, 3, 0]);
    }
}
