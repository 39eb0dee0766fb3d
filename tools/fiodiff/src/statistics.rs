//! Tests of two samples for one distribution, with a level at which thousands of comparisons give
//! no false difference.

/// Standard deviations above which a difference counts: by chance one in 10^8 tests.
const DEVIATIONS_MAX: f64 = 5.7;
/// Least counts of two samples together in a bin of the chi-square test.
const BIN_MIN: f64 = 12.0;

/// Returns true if two shares, `a` of `n` and `b` of `m`, cannot be of one probability. `cluster`
/// is the number of draws that are alike on average; 1 if all are independent.
pub fn shares_differ(a: usize, n: usize, b: usize, m: usize, cluster: f64) -> bool {
    if n == 0 || m == 0 {
        return false;
    }
    let (a, n, b, m) = (a as f64, n as f64, b as f64, m as f64);
    let p = (a + b) / (n + m);
    // At least the variance of one draw, so that a handful of draws proves nothing.
    let variance = (p * (1.0 - p)).max(1.0 / (n + m)) * (1.0 / n + 1.0 / m) * cluster.max(1.0);
    (a / n - b / m).abs() > DEVIATIONS_MAX * variance.sqrt() + 1.0 / n + 1.0 / m
}

/// Returns true if two histograms with the same bins cannot be of one distribution, by the
/// chi-square test of two samples.
pub fn histograms_differ(one: &[usize], other: &[usize], cluster: f64) -> bool {
    let (n, m) = (one.iter().sum::<usize>() as f64, other.iter().sum::<usize>() as f64);
    if n < BIN_MIN || m < BIN_MIN {
        return false;
    }
    let (up, down) = ((m / n).sqrt(), (n / m).sqrt());
    let (mut sum, mut bins, mut a, mut b) = (0.0, 0u32, 0.0, 0.0);
    let mut term = |a: f64, b: f64| {
        sum += (a * up - b * down).powi(2) / (a + b);
        bins += 1;
    };
    for (one, other) in one.iter().zip(other) {
        a += *one as f64;
        b += *other as f64;
        // Rare bins are joined with the next one.
        if a + b >= BIN_MIN {
            term(std::mem::take(&mut a), std::mem::take(&mut b));
        }
    }
    if a + b > 0.0 {
        term(a, b);
    }
    bins > 1 && is_extreme(sum / cluster.max(1.0), f64::from(bins - 1))
}

/// Returns true if a chi-square of so many degrees of freedom is above the level (Wilson &
/// Hilferty, "The distribution of chi-square", PNAS 17, 1931).
fn is_extreme(chi_square: f64, freedom: f64) -> bool {
    let spread = 2.0 / (9.0 * freedom);
    ((chi_square / freedom).cbrt() - (1.0 - spread)) / spread.sqrt() > DEVIATIONS_MAX
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;

    #[test]
    fn samples_of_one_distribution_do_not_differ_and_others_do() {
        let mut rng = hoistway_workload::stream(1, 2, 3);
        let mut sample = |tilt: u32| {
            let mut bins = [0usize; 16];
            for _ in 0..400 {
                let bin = rng.random_range(0..16u32);
                bins[if bin < tilt { 0 } else { bin as usize }] += 1;
            }
            bins
        };
        for _ in 0..2_000 {
            let (one, other) = (sample(0), sample(0));
            assert!(!histograms_differ(&one, &other, 1.0), "{one:?} {other:?}");
            assert!(!shares_differ(one[0], 400, other[0], 400, 1.0));
        }
        assert!(histograms_differ(&sample(0), &sample(5), 1.0));
        assert!(shares_differ(sample(0)[0], 400, sample(5)[0], 400, 1.0));
    }
}
