//! All chance in a world: one stream of numbers from its seed.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Chance. The same seed throws the same.
#[derive(Clone, Debug)]
pub struct Prng {
    stream: Pcg64Mcg,
}

impl Prng {
    /// Prng of a seed.
    pub fn new(seed: u64) -> Prng {
        Prng { stream: Pcg64Mcg::seed_from_u64(seed) }
    }

    /// Prng of their own for a part of the world, so that it throws the same whatever the other
    /// parts do.
    pub fn split(&mut self) -> Prng {
        Prng::new(self.stream.random())
    }

    /// A number from `low` to `high`, both included; `low` if there is none between.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        if low >= high { low } else { self.stream.random_range(low..=high) }
    }

    /// An index below `count`; 0 if that is 0.
    pub fn index(&mut self, count: usize) -> usize {
        if count <= 1 { 0 } else { self.stream.random_range(0..count) }
    }

    /// True in so many of a thousand throws.
    pub fn permille(&mut self, of_thousand: u64) -> bool {
        self.stream.random_range(0..1000) < of_thousand
    }

    /// One of these.
    ///
    /// # Panics
    /// If there is none.
    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.index(of.len())]
    }

    /// A number from 1 to `high` whose order of magnitude is what chance decides: small ones are
    /// frequent, large ones come.
    pub fn magnitude(&mut self, high: u64) -> u64 {
        let bits = 64 - high.max(1).leading_zeros();
        let ceiling = 1u64 << self.between(0, u64::from(bits) - 1).min(62);
        self.between(1, (ceiling * 2 - 1).min(high.max(1)))
    }

    /// Any number.
    pub fn any(&mut self) -> u64 {
        self.stream.random()
    }
}
