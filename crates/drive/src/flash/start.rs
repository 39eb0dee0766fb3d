//! The state of the flash at time 0, computed on demand. Only data that have moved are stored.
//!
//! The blocks with one number on all dies are a *row*; all blocks of a row begin with the same
//! number of valid units. Units are numbered along the rows, and a permutation maps addresses to
//! numbers (the identity after sequential writes). A drive of terabytes is thus created at once in
//! a state that takes weeks of writes.

use crate::profile::{FlashProfile, Precondition};

/// The write amplification of greedy garbage collection under uniform random writes.
///
/// `spare_factor` is `(T - U) / T` with `T` units in blocks that hold data and `U` units with an
/// address; it is above 0 and below 1. With `a = T / U` the result is `a / (a + W(-a e^-a))`, where
/// `W` is Lambert's function: P. Desnoyers, "Analytic modeling of SSD write performance", SYSTOR
/// 2012, for cleaning in the order of age, which greedy cleaning approaches as blocks grow. The
/// valid share of a block falls as `exp` with its age, and the oldest block is the emptiest. The
/// result equals `1 / (1 - u)` with `u = exp(-(1 - u) a)`, the valid share of a victim.
pub fn greedy_write_amplification(spare_factor: f64) -> f64 {
    1.0 / (1.0 - victim_valid_part(1.0 - spare_factor))
}

/// The root `u` below 1 of `u = exp(-(1 - u) / utilisation)`.
fn victim_valid_part(utilisation: f64) -> f64 {
    let (mut low, mut high) = (0.0, utilisation);
    for _ in 0..64 {
        let middle = f64::midpoint(low, high);
        let beyond = middle > (-(1.0 - middle) / utilisation).exp();
        (low, high) = if beyond { (low, middle) } else { (middle, high) };
    }
    low
}

/// The state at time 0.
#[derive(Debug, Clone)]
pub(super) struct InitialState {
    /// Valid units of each block, by row.
    valid: Vec<u32>,
    /// By row: the number of leading units of each block that hold the valid ones. It is smaller
    /// than a block for an open block.
    span: Vec<u32>,
    /// The number of the first unit of each row, and one entry for the end.
    first: Vec<u32>,
    shuffle: Option<Shuffle>,
    dies: u32,
    /// Units with consecutive numbers on one die.
    stripe_units: u32,
}

impl InitialState {
    pub(super) fn new(profile: &FlashProfile) -> InitialState {
        let (program_units, block_units) = (profile.program_units(), profile.block_units());
        let live = profile.live_units() as u32;
        let die_programs = live / profile.dies / program_units;
        let block_programs = block_units / program_units;
        let (rows, shuffle) = match profile.precondition {
            Precondition::Fresh => (Vec::new(), None),
            Precondition::Sequential => (filled(die_programs, block_programs), None),
            Precondition::Steady => {
                (aged(die_programs, block_programs, profile.data_blocks() as usize), Some(Shuffle::new(live)))
            }
        };
        let valid: Vec<u32> = rows.iter().map(|row| row.valid * program_units).collect();
        let span = rows.iter().map(|row| row.span * program_units).collect();
        let mut first = vec![0];
        for valid in &valid {
            first.push(first.last().copied().unwrap_or(0) + valid * profile.dies);
        }
        InitialState { valid, span, first, shuffle, dies: profile.dies, stripe_units: profile.stripe_units() }
    }

    /// The number of rows with data. The rows after them are free.
    pub(super) fn rows(&self) -> usize {
        self.valid.len()
    }

    /// Valid units of each block of a row.
    pub(super) fn valid_units(&self, row: usize) -> u32 {
        self.valid.get(row).copied().unwrap_or(0)
    }

    /// Programmed units of each block of a row.
    pub(super) fn programmed_units(&self, row: usize) -> u32 {
        self.span.get(row).copied().unwrap_or(0)
    }

    /// Returns true if a unit of a row is valid. The valid units are spread evenly.
    pub(super) fn is_valid(&self, row: usize, unit: u32) -> bool {
        let span = self.programmed_units(row);
        let before = |unit: u32| u64::from(unit) * u64::from(self.valid_units(row)) / u64::from(span);
        unit < span && before(unit + 1) > before(unit)
    }

    /// The die, row and unit in the block of an address; `None` if it was never written.
    pub(super) fn location(&self, address: u32) -> Option<(u32, u32, u32)> {
        let number = self.shuffle.map_or(address, |shuffle| shuffle.number(address));
        let row = self.first.partition_point(|first| *first <= number).checked_sub(1)?;
        let valid = *self.valid.get(row)?;
        let in_row = number - self.first[row];
        let stripe = in_row / self.stripe_units;
        let rank = (stripe / self.dies) * self.stripe_units + in_row % self.stripe_units;
        let unit = (u64::from(rank + 1) * u64::from(self.span[row])).div_ceil(u64::from(valid)) - 1;
        Some((stripe % self.dies, row as u32, unit as u32))
    }

    /// The address of the data at a valid location.
    pub(super) fn address(&self, die: u32, row: u32, unit: u32) -> u32 {
        let valid = self.valid_units(row as usize);
        let span = self.programmed_units(row as usize).max(1);
        let rank = (u64::from(unit) * u64::from(valid) / u64::from(span)) as u32;
        let stripe = (rank / self.stripe_units) * self.dies + die;
        let first = self.first.get(row as usize).copied().unwrap_or(0);
        let number = first + stripe * self.stripe_units + rank % self.stripe_units;
        self.shuffle.map_or(number, |shuffle| shuffle.address(number))
    }
}

/// The valid programs and the span of programs of each block of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct BlockRow {
    valid: u32,
    span: u32,
}

/// The rows of a drive that was filled sequentially.
fn filled(die_programs: u32, block_programs: u32) -> Vec<BlockRow> {
    let mut rows =
        vec![BlockRow { valid: block_programs, span: block_programs }; (die_programs / block_programs) as usize];
    let rest = die_programs % block_programs;
    if rest > 0 {
        rows.push(BlockRow { valid: rest, span: rest });
    }
    rows
}

/// The rows in the steady state of [`greedy_write_amplification`].
///
/// A row of age `x` (0 for the youngest, 1 for the next victim) has the valid share `u^x`. One
/// block of the free space is in two open blocks, for host data and for moved data, each half full.
fn aged(die_programs: u32, block_programs: u32, blocks: usize) -> Vec<BlockRow> {
    let victim = victim_valid_part(f64::from(die_programs) / (f64::from(block_programs) * blocks as f64));
    let (full, open) = if blocks < 4 { (blocks, 0) } else { (blocks - 1, block_programs / 2) };
    let in_full = die_programs.saturating_sub(2 * open);
    let weights = (0..full).map(|row| victim.powf((row as f64 + 0.5) / full as f64));
    let total: f64 = weights.clone().sum();
    let mut rows = Vec::with_capacity(full + 2);
    let (mut sum, mut given) = (0.0, 0);
    for weight in weights {
        // Rounded so that the sum over the rows is exact.
        sum += weight / total * f64::from(in_full);
        let valid = (sum.round() as u32).saturating_sub(given).min(block_programs);
        given += valid;
        rows.push(BlockRow { valid, span: block_programs });
    }
    // The remainder of the rounding goes to rows with space.
    let mut rest = in_full.saturating_sub(given);
    for row in &mut rows {
        let more = rest.min(block_programs - row.valid);
        row.valid += more;
        rest -= more;
    }
    if open > 0 {
        rows.extend([BlockRow { valid: open, span: open }; 2]);
    }
    rows
}

/// A permutation of the numbers below `count`: odd multiplications and shifts within the next power
/// of two, repeated until the result is in range.
#[derive(Debug, Clone, Copy)]
struct Shuffle {
    count: u32,
    mask: u32,
    shift: u32,
}

/// Odd multipliers (Knuth; Steele & Vigna), used with their inverses modulo 2^32.
const MULTIPLIERS: [u32; 3] = [2_654_435_769, 0x915f_77f5, 0xadb4_a92d];

impl Shuffle {
    fn new(count: u32) -> Shuffle {
        let bits = u32::BITS - count.saturating_sub(1).leading_zeros();
        let bits = bits.max(2);
        Shuffle { count, mask: u32::MAX >> (u32::BITS - bits), shift: bits.div_ceil(2) }
    }

    fn number(self, address: u32) -> u32 {
        let mut x = address;
        loop {
            for multiplier in MULTIPLIERS {
                x = x.wrapping_mul(multiplier) & self.mask;
                x ^= x >> self.shift;
            }
            if x < self.count || address >= self.count {
                return x;
            }
        }
    }

    fn address(self, number: u32) -> u32 {
        let mut x = number;
        loop {
            for multiplier in MULTIPLIERS.into_iter().rev() {
                x ^= x >> self.shift;
                x = x.wrapping_mul(inverse(multiplier)) & self.mask;
            }
            if x < self.count || number >= self.count {
                return x;
            }
        }
    }
}

/// The inverse of an odd number modulo 2^32 by Newton's iteration. Each step doubles the correct
/// bits, starting from 3.
const fn inverse(odd: u32) -> u32 {
    let mut inverse = odd;
    let mut step = 0;
    while step < 4 {
        inverse = inverse.wrapping_mul(2_u32.wrapping_sub(odd.wrapping_mul(inverse)));
        step += 1;
    }
    inverse
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_form_of_greedy_cleaning_has_its_published_values() {
        // a / (a + W(-a e^-a)) by hand: spare 1/2, a = 2, W(-2 e^-2) = -0.40637574, 2 / 1.59362426
        // = 1.255.
        assert!((greedy_write_amplification(0.5) - 1.2550).abs() < 1e-4);
        // a = 10/9: u = exp(-(1 - u) 10/9) holds for u = 0.8069: 1 / 0.1931.
        assert!((greedy_write_amplification(0.1) - 5.18).abs() < 0.01, "{}", greedy_write_amplification(0.1));
    }

    #[test]
    fn shuffle_is_a_permutation_with_its_inverse() {
        for count in [1, 2, 3, 5, 64, 1000, 4097] {
            let shuffle = Shuffle::new(count);
            let mut seen = vec![false; count as usize];
            for address in 0..count {
                let number = shuffle.number(address);
                assert!(!std::mem::replace(&mut seen[number as usize], true), "{number} of {count} twice");
                assert_eq!(shuffle.address(number), address);
            }
        }
    }

    #[test]
    fn aged_rows_hold_all_programs() {
        for (die_programs, block_programs, blocks) in [(900, 100, 10), (93, 10, 10), (7, 8, 1), (5000, 64, 90)] {
            let rows = aged(die_programs, block_programs, blocks);
            assert_eq!(rows.iter().map(|row| row.valid).sum::<u32>(), die_programs);
            assert!(rows.iter().all(|row| row.valid <= row.span && row.span <= block_programs), "{rows:?}");
        }
    }
}
