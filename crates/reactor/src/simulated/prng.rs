//! The random numbers of a simulation: one stream from its seed.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// A pseudo-random number generator. The same seed gives the same numbers.
#[derive(Clone, Debug)]
pub struct Prng {
    stream: Pcg64Mcg,
}

impl Prng {
    /// Creates a generator from a seed.
    pub fn new(seed: u64) -> Prng {
        Prng { stream: Pcg64Mcg::seed_from_u64(seed) }
    }

    /// Creates an independent generator for a part of the simulation, so that its numbers do not
    /// depend on the other parts.
    pub fn split(&mut self) -> Prng {
        Prng::new(self.stream.random())
    }

    /// Returns a number from `low` to `high` inclusive; `low` if `high` is smaller.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        if low >= high { low } else { self.stream.random_range(low..=high) }
    }

    /// Returns an index below `count`; 0 if `count` is 0.
    pub fn index(&mut self, count: usize) -> usize {
        if count <= 1 { 0 } else { self.stream.random_range(0..count) }
    }

    /// Returns true with a probability in thousandths.
    pub fn permille(&mut self, of_thousand: u64) -> bool {
        self.stream.random_range(0..1000) < of_thousand
    }

    /// Returns one of the values.
    ///
    /// # Panics
    /// If there is no value.
    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.index(of.len())]
    }

    /// Returns a number from 1 to `high` whose order of magnitude is uniform: small numbers are
    /// frequent, large ones occur.
    pub fn magnitude(&mut self, high: u64) -> u64 {
        let bits = 64 - high.max(1).leading_zeros();
        let ceiling = 1u64 << self.between(0, u64::from(bits) - 1).min(62);
        self.between(1, (ceiling * 2 - 1).min(high.max(1)))
    }

    /// Returns any number.
    pub fn any(&mut self) -> u64 {
        self.stream.random()
    }
}
