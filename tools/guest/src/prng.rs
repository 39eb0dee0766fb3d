//! A pseudo-random number generator, so that a seed determines the choices of a campaign.

/// The generator (SplitMix64).
#[derive(Clone, Debug)]
pub struct Prng {
    state: u64,
}

impl Prng {
    /// Creates a generator from a seed.
    pub fn new(seed: u64) -> Prng {
        Prng { state: seed }
    }

    /// The next 64 bits.
    pub fn number(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// A number below `bound`; 0 if the bound is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.number().checked_rem(bound).unwrap_or(0)
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low).saturating_add(1))
    }

    /// An item of a list, None if it is empty.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        items.get(usize::try_from(self.below(items.len() as u64)).unwrap_or(0))
    }
}

/// The finaliser of SplitMix64: every bit of the input changes about half of the output.
pub fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_in_their_range_and_depend_on_the_seed() {
        let draw = |seed| -> Vec<u64> {
            let mut prng = Prng::new(seed);
            (0..100).map(|_| prng.between(4, 512)).collect()
        };
        assert!(draw(1).iter().all(|number| (4..=512).contains(number)));
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn nothing_is_picked_from_an_empty_list() {
        assert_eq!(Prng::new(1).pick::<u8>(&[]), None);
        assert_eq!(Prng::new(1).below(0), 0);
    }
}
