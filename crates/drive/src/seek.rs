//! Seek curves: how long the arm takes for a distance in cylinders.

/// A seek curve. Times in milliseconds, distances in cylinders, at least 1.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SeekCurve {
    /// Points (distance, ms), by distance; straight lines between them and beyond the last two.
    Table(Vec<(u32, f64)>),
    /// Lee & Katz: `single` for one cylinder, `average` over uniform pairs, `full` for the whole stroke.
    LeeKatz { single_ms: f64, average_ms: f64, full_ms: f64 },
    /// Ruemmler & Wilkes: `a + b sqrt(d)` below `knee` cylinders, `c + e d` from there.
    RuemmlerWilkes { knee_cylinders: u32, a_ms: f64, b_ms: f64, c_ms: f64, e_ms: f64 },
}

impl SeekCurve {
    /// The time for `distance` cylinders (0 is 0) on a drive of `cylinders`, in ms. Negative results are for the caller to refuse.
    pub(crate) fn time_ms(&self, distance: u32, cylinders: u32) -> f64 {
        if distance == 0 {
            return 0.0;
        }
        let d = f64::from(distance);
        match self {
            SeekCurve::Table(points) => interpolate(points, distance),
            SeekCurve::LeeKatz { single_ms, average_ms, full_ms } => {
                let (b, c) = lee_katz(*single_ms, *average_ms, *full_ms, cylinders);
                single_ms + b * (d - 1.0).sqrt() + c * (d - 1.0)
            }
            SeekCurve::RuemmlerWilkes { knee_cylinders, a_ms, b_ms, c_ms, e_ms } => {
                if distance < *knee_cylinders {
                    a_ms + b_ms * d.sqrt()
                } else {
                    c_ms + e_ms * d
                }
            }
        }
    }

    /// The curve as integer nanoseconds for every distance from 0 to `cylinders - 1`.
    pub(crate) fn table_ns(&self, cylinders: u32) -> Vec<u32> {
        (0..cylinders.max(1)).map(|d| ms_to_ns(self.time_ms(d, cylinders))).collect()
    }

    /// The first distance at which the curve is below its value one cylinder (for a table: one point) before.
    pub(crate) fn first_fall(&self, cylinders: u32) -> Option<u32> {
        match self {
            SeekCurve::Table(points) => points.windows(2).find(|pair| pair[1].1 < pair[0].1).map(|pair| pair[1].0),
            _ => (2..cylinders).find(|d| self.time_ms(*d, cylinders) < self.time_ms(d - 1, cylinders)),
        }
    }
}

/// The coefficients `b` and `c` of Lee & Katz's three-point curve `a + b sqrt(d-1) + c (d-1)`, with the mean over uniform
/// pairs equal to the average: E[sqrt u] = 8/15 and E[u] = 1/3 for the distance u of two uniform points.
/// (E. K. Lee and R. H. Katz, "An analytic performance model of disk arrays", SIGMETRICS 1993.)
pub(crate) fn lee_katz(single_ms: f64, average_ms: f64, full_ms: f64, cylinders: u32) -> (f64, f64) {
    let n = f64::from(cylinders.max(1));
    let b = (15.0 * average_ms - 10.0 * single_ms - 5.0 * full_ms) / (3.0 * n.sqrt());
    let c = (7.0 * single_ms - 15.0 * average_ms + 8.0 * full_ms) / (3.0 * n);
    (b, c)
}

/// Milliseconds as integer nanoseconds, to the nearest; what is negative counts as 0.
pub(crate) fn ms_to_ns(ms: f64) -> u32 {
    (ms * 1e6).round() as u32
}

fn interpolate(points: &[(u32, f64)], distance: u32) -> f64 {
    let after = points.partition_point(|point| point.0 < distance);
    let (left, right) = match (after.checked_sub(1).and_then(|i| points.get(i)), points.get(after)) {
        (_, Some(exact)) if exact.0 == distance => return exact.1,
        (Some(left), Some(right)) => (*left, *right),
        // Beyond the last point the curve goes on as it did between the last two.
        (Some(last), None) => match points.len().checked_sub(2).and_then(|i| points.get(i)) {
            Some(before) => (*before, *last),
            None => return last.1,
        },
        (None, Some(first)) => return first.1,
        (None, None) => return 0.0,
    };
    let share = (f64::from(distance) - f64::from(left.0)) / (f64::from(right.0) - f64::from(left.0));
    left.1 + share * (right.1 - left.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mean over pairs of uniform cylinders: 2/N^2 times the sum of (N-d) t(d).
    fn mean_ms(curve: &SeekCurve, cylinders: u32) -> f64 {
        let n = f64::from(cylinders);
        let weighed = |d: u32| (n - f64::from(d)) * curve.time_ms(d, cylinders);
        2.0 / (n * n) * (1..cylinders).map(weighed).sum::<f64>()
    }

    #[test]
    fn lee_katz_has_the_three_times_it_was_given() {
        let curve = SeekCurve::LeeKatz { single_ms: 1.0, average_ms: 9.0, full_ms: 18.0 };
        assert_eq!(curve.time_ms(1, 20_000), 1.0);
        assert!((curve.time_ms(20_000, 20_000) - 18.0).abs() < 0.01);
        assert!((mean_ms(&curve, 20_000) - 9.0).abs() < 0.01);
    }

    #[test]
    fn ruemmler_wilkes_is_a_root_and_then_a_line() {
        // The HP C2247A as published: 3.81 + 0.33 sqrt d up to 300 cylinders, 7.75 + 0.0059 d from there.
        let (a_ms, b_ms, c_ms, e_ms) = (3.81, 0.33, 7.75, 0.0059);
        let curve = SeekCurve::RuemmlerWilkes { knee_cylinders: 301, a_ms, b_ms, c_ms, e_ms };
        assert!((curve.time_ms(100, 2051) - 7.11).abs() < 1e-9);
        assert!((curve.time_ms(1000, 2051) - 13.65).abs() < 1e-9);
        assert_eq!(curve.time_ms(0, 2051), 0.0);
        assert_eq!(curve.first_fall(2051), None);
    }

    #[test]
    fn table_goes_on_along_its_last_line() {
        let curve = SeekCurve::Table(vec![(1, 1.0), (3, 2.0), (5, 4.0)]);
        assert_eq!(curve.table_ns(8), [0, 1_000_000, 1_500_000, 2_000_000, 3_000_000, 4_000_000, 5_000_000, 6_000_000]);
    }
}
