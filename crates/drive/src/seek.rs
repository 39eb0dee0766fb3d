//! Seek curves: seek time by distance in cylinders.

/// A seek curve. Times are in milliseconds, distances in cylinders and at least 1.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SeekCurve {
    /// Points (distance, ms) by distance, joined by straight lines. The last line continues.
    Table(Vec<(u32, f64)>),
    /// Lee & Katz: `single` for one cylinder, `average` over uniform pairs, `full` for the full
    /// stroke.
    LeeKatz { single_ms: f64, average_ms: f64, full_ms: f64 },
    /// Ruemmler & Wilkes: `a + b sqrt(d)` below `knee` cylinders, `c + e d` from there.
    RuemmlerWilkes { knee_cylinders: u32, a_ms: f64, b_ms: f64, c_ms: f64, e_ms: f64 },
}

impl SeekCurve {
    /// Seek time in ms for `distance` cylinders on a drive of `cylinders`; 0 for no distance. The
    /// caller refuses negative results.
    pub(crate) fn time_ms(&self, distance: u32, cylinders: u32) -> f64 {
        if distance == 0 {
            return 0.0;
        }
        let d = f64::from(distance);
        match self {
            SeekCurve::Table(points) => interpolate(points, distance),
            SeekCurve::LeeKatz { single_ms, average_ms, full_ms } => {
                three_points(*single_ms, lee_katz(*single_ms, *average_ms, *full_ms, cylinders), d)
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

    /// Seek times in ns for every distance from 0 to `cylinders - 1`.
    pub(crate) fn table_ns(&self, cylinders: u32) -> Vec<u32> {
        let cylinders = cylinders.max(1);
        // Values that do not depend on the distance are computed once: there are up to half a
        // million distances.
        let times_ns: Vec<u32> = match self {
            SeekCurve::Table(points) => {
                let mut after = 0;
                let time_ms = |distance| {
                    after += points.iter().skip(after).take_while(|point| point.0 < distance).count();
                    interpolate_before(points, after, distance)
                };
                (1..cylinders).map(time_ms).map(ms_to_ns).collect()
            }
            SeekCurve::LeeKatz { single_ms, average_ms, full_ms } => {
                let coefficients = lee_katz(*single_ms, *average_ms, *full_ms, cylinders);
                (1..cylinders).map(|d| ms_to_ns(three_points(*single_ms, coefficients, f64::from(d)))).collect()
            }
            SeekCurve::RuemmlerWilkes { .. } => (1..cylinders).map(|d| ms_to_ns(self.time_ms(d, cylinders))).collect(),
        };
        std::iter::once(0).chain(times_ns).collect()
    }

    /// The first distance at which the curve is lower than one cylinder before; for a table, than
    /// one point before.
    pub(crate) fn first_fall(&self, cylinders: u32) -> Option<u32> {
        match self {
            SeekCurve::Table(points) => points.windows(2).find(|pair| pair[1].1 < pair[0].1).map(|pair| pair[1].0),
            // Square roots, sums and products with non-negative factors do not fall, rounding
            // included.
            SeekCurve::LeeKatz { single_ms, average_ms, full_ms } if matches!(lee_katz(*single_ms, *average_ms, *full_ms, cylinders), (b, c) if b >= 0.0 && c >= 0.0) => {
                None
            }
            SeekCurve::RuemmlerWilkes { knee_cylinders: knee, b_ms, e_ms, .. } if *b_ms >= 0.0 && *e_ms >= 0.0 => {
                let falls = |knee: &u32| self.time_ms(*knee, cylinders) < self.time_ms(knee - 1, cylinders);
                Some(*knee).filter(|knee| (2..cylinders).contains(knee)).filter(falls)
            }
            _ => (2..cylinders).find(|d| self.time_ms(*d, cylinders) < self.time_ms(d - 1, cylinders)),
        }
    }
}

/// The coefficients `b` and `c` of Lee & Katz's three-point curve `a + b sqrt(d-1) + c (d-1)`, with
/// the mean over uniform pairs equal to the average: E[sqrt u] = 8/15 and E[u] = 1/3 for the
/// distance u of two uniform points. (E. K. Lee and R. H. Katz, "An analytic performance model of
/// disk arrays", SIGMETRICS 1993.)
pub(crate) fn lee_katz(single_ms: f64, average_ms: f64, full_ms: f64, cylinders: u32) -> (f64, f64) {
    let n = f64::from(cylinders.max(1));
    let b = (15.0 * average_ms - 10.0 * single_ms - 5.0 * full_ms) / (3.0 * n.sqrt());
    let c = (7.0 * single_ms - 15.0 * average_ms + 8.0 * full_ms) / (3.0 * n);
    (b, c)
}

/// The curve of Lee & Katz at distance `d` with the coefficients `b` and `c`.
fn three_points(single_ms: f64, (b, c): (f64, f64), d: f64) -> f64 {
    single_ms + b * (d - 1.0).sqrt() + c * (d - 1.0)
}

/// Milliseconds as whole nanoseconds, rounded half up; negative values become 0.
pub(crate) fn ms_to_ns(ms: f64) -> u32 {
    // `round` is a function call on many processors. The difference to the whole part is exact.
    let ns = ms * 1e6;
    let whole = ns as u32;
    whole.saturating_add(u32::from(ns - f64::from(whole) >= 0.5))
}

fn interpolate(points: &[(u32, f64)], distance: u32) -> f64 {
    interpolate_before(points, points.partition_point(|point| point.0 < distance), distance)
}

/// Interpolates with `after`, the number of points before the distance.
fn interpolate_before(points: &[(u32, f64)], after: usize, distance: u32) -> f64 {
    let (left, right) = match (after.checked_sub(1).and_then(|i| points.get(i)), points.get(after)) {
        (_, Some(exact)) if exact.0 == distance => return exact.1,
        (Some(left), Some(right)) => (*left, *right),
        // Beyond the last point the curve continues the line through the last two.
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
    fn lee_katz_curve_has_its_three_given_times() {
        let curve = SeekCurve::LeeKatz { single_ms: 1.0, average_ms: 9.0, full_ms: 18.0 };
        assert_eq!(curve.time_ms(1, 20_000), 1.0);
        assert!((curve.time_ms(20_000, 20_000) - 18.0).abs() < 0.01);
        assert!((mean_ms(&curve, 20_000) - 9.0).abs() < 0.01);
    }

    #[test]
    fn ruemmler_wilkes_is_a_root_and_then_a_line() {
        // The HP C2247A as published: 3.81 + 0.33 sqrt d up to 300 cylinders, 7.75 + 0.0059 d from
        // there.
        let (a_ms, b_ms, c_ms, e_ms) = (3.81, 0.33, 7.75, 0.0059);
        let curve = SeekCurve::RuemmlerWilkes { knee_cylinders: 301, a_ms, b_ms, c_ms, e_ms };
        assert!((curve.time_ms(100, 2051) - 7.11).abs() < 1e-9);
        assert!((curve.time_ms(1000, 2051) - 13.65).abs() < 1e-9);
        assert_eq!(curve.time_ms(0, 2051), 0.0);
        assert_eq!(curve.first_fall(2051), None);
    }

    #[test]
    fn tables_equal_the_curve() {
        let table = SeekCurve::Table(vec![(1, 0.8), (2, 0.7), (10, 1.9), (400, 6.0), (1999, 11.3)]);
        let lee_katz = SeekCurve::LeeKatz { single_ms: 0.6, average_ms: 8.0, full_ms: 16.0 };
        let falling = SeekCurve::LeeKatz { single_ms: 2.0, average_ms: 3.0, full_ms: 20.0 };
        let (a_ms, b_ms, c_ms, e_ms) = (3.81, 0.33, 7.75, 0.0059);
        let ruemmler_wilkes = SeekCurve::RuemmlerWilkes { knee_cylinders: 301, a_ms, b_ms, c_ms, e_ms };
        for curve in [table, lee_katz, falling, ruemmler_wilkes] {
            let each: Vec<u32> = (0..2000).map(|d| (curve.time_ms(d, 2000) * 1e6).round() as u32).collect();
            assert_eq!(curve.table_ns(2000), each, "{curve:?}");
        }
    }

    #[test]
    fn first_fall_of_a_curve_is_found() {
        let curve = |average_ms, full_ms| SeekCurve::LeeKatz { single_ms: 1.0, average_ms, full_ms };
        // b = (135 - 10 - 90) / (3 sqrt n) and c = (7 - 135 + 144) / 3n: neither is negative.
        assert_eq!(curve(9.0, 18.0).first_fall(20_000), None);
        // b = (30 - 10 - 90) / (3 sqrt n): the second step falls.
        assert_eq!(curve(2.0, 18.0).first_fall(20_000), Some(2));
        let curve = |knee_cylinders, c_ms, e_ms| {
            SeekCurve::RuemmlerWilkes { knee_cylinders, a_ms: 3.81, b_ms: 0.33, c_ms, e_ms }.first_fall(2051)
        };
        // 3.81 + 0.33 sqrt 300 = 9.53 ms before the knee; 7.75 + 0.0059 * 301 = 9.53 ms at it, or
        // 6.78 ms.
        assert_eq!((curve(301, 7.75, 0.0059), curve(301, 5.0, 0.0059)), (None, Some(301)));
        assert_eq!((curve(301, 10.0, -0.001), curve(1, 7.75, 0.0059), curve(2051, 0.0, 0.0)), (Some(302), None, None));
    }

    #[test]
    fn milliseconds_are_rounded_to_whole_nanoseconds() {
        let of_ns = |ns: f64| ms_to_ns(ns / 1e6);
        assert_eq!([0.4, 0.6, 1.4, 2.6, -3.0, 1e12].map(of_ns), [0, 1, 1, 3, 0, u32::MAX]);
        assert_eq!(ms_to_ns(f64::NAN), 0);
    }

    #[test]
    fn table_continues_its_last_line() {
        let curve = SeekCurve::Table(vec![(1, 1.0), (3, 2.0), (5, 4.0)]);
        assert_eq!(curve.table_ns(8), [0, 1_000_000, 1_500_000, 2_000_000, 3_000_000, 4_000_000, 5_000_000, 6_000_000]);
    }
}
