//! Decaying means in 8-bit fixed point, as CFQ and the anticipatory elevator use for think times
//! and seek distances.

/// A mean in which each new sample has the weight 1/8, in truncating integer arithmetic like the
/// kernel's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mean {
    /// The accumulated weight of the samples: 0, 32, 60, 84, 105 ... towards 256.
    pub samples: u32,
    /// The decayed sum, times 256.
    pub total: u64,
    /// The mean.
    pub mean: u64,
}

/// The mean after a sample of weight 1/`part`; the sample itself if there is no mean yet (0).
#[inline]
pub fn mean_with(mean: u64, sample: u64, part: u64) -> u64 {
    if mean == 0 {
        return sample;
    }
    let part = part.max(1);
    mean.saturating_mul(part.saturating_sub(1)).saturating_add(sample) / part
}

/// The weight above which the mean is valid: reached with the third sample (84 > 80).
const VALID_ABOVE: u32 = 80;

impl Mean {
    /// Returns true after at least three samples.
    #[inline]
    pub fn is_valid(&self) -> bool {
        self.samples > VALID_ABOVE
    }

    /// Adds a think time. The mean is rounded by half of 256.
    #[inline]
    pub fn add_think(&mut self, value: u64) {
        self.decay(value);
        self.mean = self.total.saturating_add(128) / u64::from(self.samples.max(1));
    }

    /// Adds a seek distance. The mean is rounded by half of the weight.
    #[inline]
    pub fn add_seek(&mut self, value: u64) {
        self.decay(value);
        self.mean = self.total.saturating_add(u64::from(self.samples / 2)) / u64::from(self.samples.max(1));
    }

    /// Adds a seek distance clipped to four means plus a margin: a wide one for up to two samples,
    /// then a narrow one.
    #[inline]
    pub fn add_seek_clipped(&mut self, distance: u64) {
        let margin = if self.samples <= 60 { 2 * 1024 * 1024 } else { 2 * 1024 * 64 };
        self.add_seek(distance.min(self.mean.saturating_mul(4).saturating_add(margin)));
    }

    /// Adds a value to an estimator without a weight: its mean is the decayed sum over 256.
    #[inline]
    pub fn add_unweighted(&mut self, value: u64) {
        self.total = decayed(self.total, value);
        self.mean = self.total / 256;
    }

    #[inline]
    fn decay(&mut self, value: u64) {
        // At most 249: (7 * 249 + 256) / 8.
        self.samples = self.samples.wrapping_mul(7).wrapping_add(256) / 8;
        self.total = decayed(self.total, value);
    }
}

#[inline]
fn decayed(total: u64, value: u64) -> u64 {
    total.saturating_mul(7).saturating_add(value.saturating_mul(256)) / 8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_samples_make_a_mean_valid() {
        let mut mean = Mean::default();
        let mut weights = [0; 6];
        let mut valid = [false; 6];
        for i in 0..6 {
            mean.add_think(5);
            (weights[i], valid[i]) = (mean.samples, mean.is_valid());
        }
        assert_eq!(weights, [32, 60, 84, 105, 123, 139]);
        assert_eq!(valid, [false, false, true, true, true, true]);
        assert_eq!(mean.mean, 5, "(total + 128) / samples of a constant 5");
    }
}
