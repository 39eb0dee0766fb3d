//! The angle of the platter, in 2^32 steps a revolution, computed from the clock.

/// A rotating platter. Every method is integer arithmetic on the value of the clock, so errors do
/// not accumulate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Platter {
    /// The time of one revolution in units of 2^-32 ns.
    period_fp: u64,
    /// Revolutions a nanosecond, in units of 2^-96.
    turns_per_ns: u128,
    /// The angle at time 0.
    phase: u32,
    /// The largest delay, as an angle, at which a sector is still read: two nanoseconds, the
    /// resolution of the clock.
    tolerance: u32,
}

impl Platter {
    /// Creates a platter with a revolution of `revolution_ns` (1 to 2^31 ns) that is at `phase`
    /// revolutions at time 0.
    pub(crate) fn new(revolution_ns: f64, phase: f64) -> Platter {
        let period_fp = ((revolution_ns * 4_294_967_296.0).round() as u64).max(1 << 32);
        // 2^128 / period without overflow: the quotient of 2^127, doubled.
        let turns_per_ns = ((1u128 << 127) / u128::from(period_fp)) << 1;
        let tolerance = (turns_per_ns >> 63).min(1 << 30) as u32;
        Platter { period_fp, turns_per_ns, phase: angle_of(phase).1, tolerance }
    }

    /// The angle under the head at `now_ns`. The product wraps by whole revolutions, which have no
    /// effect.
    pub(crate) fn angle_at(&self, now_ns: u64) -> u32 {
        let turns = u128::from(now_ns).wrapping_mul(self.turns_per_ns);
        ((turns >> 64) as u32).wrapping_add(self.phase)
    }

    /// The time until the angle `target` is under the head, rounded down.
    pub(crate) fn wait_ns(&self, now_ns: u64, target: u32) -> u64 {
        let ahead = target.wrapping_sub(self.angle_at(now_ns));
        if ahead > u32::MAX - self.tolerance { 0 } else { self.turn_ns(u64::from(ahead)) }
    }

    /// The largest delay at which a sector is still read, 2^32 a revolution.
    #[inline]
    pub(crate) fn tolerance(&self) -> u32 {
        self.tolerance
    }

    /// The time in which the platter turns by `angle` (2^32 a revolution, several revolutions
    /// allowed), rounded down.
    pub(crate) fn turn_ns(&self, angle: u64) -> u64 {
        ((u128::from(angle) * u128::from(self.period_fp)) >> 64) as u64
    }

    /// The time of one revolution, rounded down.
    pub(crate) fn revolution_ns(&self) -> u64 {
        self.period_fp >> 32
    }

    /// The angle through which the platter turns in `span_ns`, whole revolutions included.
    pub(crate) fn angle_in(&self, span_ns: u64) -> u64 {
        (u128::from(span_ns).wrapping_mul(self.turns_per_ns) >> 64) as u64
    }
}

/// A fraction of a revolution as an angle of 2^64 steps and of 2^32 steps. Whole revolutions are
/// dropped.
pub(crate) fn angle_of(revolutions: f64) -> (u64, u32) {
    let fraction = revolutions - revolutions.floor();
    let fine = (fraction * 18_446_744_073_709_551_616.0) as u64;
    (fine, (fine >> 32) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_of_the_time_is_a_quarter_of_the_angle() {
        let platter = Platter::new(8_000_000.0, 0.5);
        assert_eq!(platter.angle_at(0), 1 << 31);
        assert!(platter.angle_at(2_000_000).abs_diff(3 << 30) <= 1);
        assert_eq!(platter.turn_ns(1 << 30), 2_000_000);
        assert_eq!(platter.turn_ns(3 << 32), 24_000_000);
        assert_eq!(platter.revolution_ns(), 8_000_000);
    }

    #[test]
    fn a_sector_that_has_just_begun_is_still_read() {
        let platter = Platter::new(8_000_000.0, 0.0);
        assert_eq!(platter.wait_ns(1_000_000, 1 << 29), 0);
        assert_eq!(platter.wait_ns(1_000_002, 1 << 29), 0);
        assert!(platter.wait_ns(1_000_004, 1 << 29) > 7_999_990);
        assert!(platter.wait_ns(999_000, 1 << 29).abs_diff(1000) <= 1);
    }

    #[test]
    fn parts_of_a_millionth_of_the_period_are_kept() {
        // After 10^6 revolutions of 3995344.8725 ns the angle is back to within a thousandth.
        let platter = Platter::new(3_995_344.872_5, 0.0);
        let angle = platter.angle_at(3_995_344_872_500) as i32;
        assert!(angle.unsigned_abs() < 1 << 22, "{angle}");
    }
}
