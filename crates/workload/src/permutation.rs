//! Random permutations of block numbers that need no map of visited blocks.

use crate::mix;

const ROUNDS: u64 = 4;

/// A permutation of `0..len`: a Feistel network (Luby & Rackoff, 1988) over the next power of two.
/// Values that are too large go through the network again (Black & Rogaway, "Ciphers with arbitrary
/// finite domains", 2002). At most half of the values are too large, so two passes suffice on
/// average.
#[derive(Clone, Debug)]
pub(crate) struct Permutation {
    len: u64,
    low_bits: u32,
    high_bits: u32,
    key: u64,
}

impl Permutation {
    pub fn new(len: u64, key: u64) -> Permutation {
        let len = len.max(1);
        let bits = (64 - (len - 1).leading_zeros()).max(2);
        Permutation { len, low_bits: bits / 2, high_bits: bits - bits / 2, key }
    }

    pub fn len(&self) -> u64 {
        self.len
    }

    /// The image of `index`, which is below the length.
    pub fn get(&self, index: u64) -> u64 {
        let mut value = index % self.len;
        loop {
            value = self.pass(value);
            if value < self.len {
                return value;
            }
        }
    }

    fn pass(&self, value: u64) -> u64 {
        let (low_mask, high_mask) = ((1 << self.low_bits) - 1, (1 << self.high_bits) - 1);
        let (mut low, mut high) = (value & low_mask, value >> self.low_bits);
        // The halves may differ by a bit, so each round changes one half in its place instead of
        // exchanging them.
        for round in 0..ROUNDS {
            let key = self.key.wrapping_add(round << 56);
            if round % 2 == 0 {
                low ^= mix(high ^ key) & low_mask;
            } else {
                high ^= mix(low ^ key) & high_mask;
            }
        }
        high << self.low_bits | low
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_comes_once() {
        for len in [1, 2, 3, 5, 64, 65, 1000, 4097] {
            let permutation = Permutation::new(len, 99);
            let mut seen: Vec<u64> = (0..len).map(|index| permutation.get(index)).collect();
            seen.sort_unstable();
            assert!(seen.into_iter().eq(0..len), "length {len}");
        }
    }

    #[test]
    fn images_of_neighbours_are_far_apart_and_keys_matter() {
        let (one, two) = (Permutation::new(1 << 20, 1), Permutation::new(1 << 20, 2));
        let steps: u64 = (0..1000).map(|index| one.get(index).abs_diff(one.get(index + 1))).sum();
        // Two random numbers below n are n/3 apart on average.
        let mean = steps as f64 / 1000.0 / f64::from(1 << 20);
        assert!((mean - 1.0 / 3.0).abs() < 0.03, "{mean}");
        assert!((0..100).filter(|index| one.get(*index) == two.get(*index)).count() < 3);
    }
}
