//! What nothing else is better than in both of two figures.

/// The places of the points that no other point is better than in one figure without being worse in the other, by the first figure. Less is better.
pub fn front(points: &[(f64, f64)]) -> Vec<usize> {
    let mut places: Vec<usize> = (0..points.len()).filter(|place| points[*place].0.is_finite()).collect();
    places.sort_by(|one, other| {
        let (one, other) = (points[*one], points[*other]);
        one.0.total_cmp(&other.0).then(one.1.total_cmp(&other.1))
    });
    let mut least = f64::INFINITY;
    places.retain(|place| {
        let is_new = points[*place].1 < least;
        least = least.min(points[*place].1);
        is_new
    });
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_better_in_something_stands_in_front() {
        let points = [(3.0, 1.0), (1.0, 5.0), (2.0, 6.0), (2.0, 3.0), (4.0, 1.0), (1.0, 5.0), (f64::INFINITY, 0.0)];
        assert_eq!(front(&points), [1, 3, 0]);
    }
}
