//! Cells: blocks of 4 KiB that carry their address, a sequence number and a checksum, so that a
//! lost, a stale and a misplaced write are each found when a cell is read.

use std::fmt;

use crate::prng::mix;

/// The bytes of a cell.
pub const SIZE: usize = 4096;
const MAGIC: u64 = 0x686f_6973_7477_6179;
const WORD: usize = 8;

/// Why a cell is not what was written last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// The cell has no magic number: it was never written, or other bytes are there.
    Foreign,
    /// The contents do not match the checksum.
    Torn,
    /// The cell belongs to another address.
    Misplaced {
        /// The address in the cell.
        found: u64,
    },
    /// The cell has another sequence number than the last completed write.
    Stale {
        /// The sequence number in the cell.
        found: u64,
        /// The sequence number of the last completed write.
        expected: u64,
    },
}

impl fmt::Display for Damage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Damage::Foreign => write!(formatter, "no cell: the magic number is missing"),
            Damage::Torn => write!(formatter, "torn: the checksum does not match"),
            Damage::Misplaced { found } => write!(formatter, "misplaced: the cell of address {found}"),
            Damage::Stale { found, expected } if found < expected => {
                write!(formatter, "lost write: sequence {found} instead of {expected}")
            }
            Damage::Stale { found, expected } => write!(formatter, "sequence {found} instead of {expected}"),
        }
    }
}

/// Fills a cell.
pub fn fill(cell: &mut [u8], address: u64, sequence: u64) {
    let base = mix(address.rotate_left(32) ^ sequence);
    for (index, word) in cell.chunks_exact_mut(WORD).enumerate() {
        let value = base.wrapping_add((index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        word.copy_from_slice(&value.to_le_bytes());
    }
    put(cell, 0, MAGIC);
    put(cell, 1, address);
    put(cell, 2, sequence);
    put(cell, 3, checksum(cell));
}

/// Checks a cell against its address and the sequence number of the last completed write.
pub fn check(cell: &[u8], address: u64, sequence: u64) -> Result<(), Damage> {
    if get(cell, 0) != MAGIC {
        return Err(Damage::Foreign);
    }
    if get(cell, 3) != checksum(cell) {
        return Err(Damage::Torn);
    }
    if get(cell, 1) != address {
        return Err(Damage::Misplaced { found: get(cell, 1) });
    }
    match get(cell, 2) {
        found if found == sequence => Ok(()),
        found => Err(Damage::Stale { found, expected: sequence }),
    }
}

/// A checksum of all words but the one that holds it.
fn checksum(cell: &[u8]) -> u64 {
    let mut sum = 0u64;
    for (index, word) in cell.chunks_exact(WORD).enumerate() {
        if index != 3 {
            let word = word.try_into().map_or(0, u64::from_le_bytes);
            sum = (sum.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
    }
    sum
}

fn get(cell: &[u8], index: usize) -> u64 {
    let bytes = cell.get(index * WORD..(index + 1) * WORD).unwrap_or_default();
    bytes.try_into().map_or(0, u64::from_le_bytes)
}

fn put(cell: &mut [u8], index: usize, value: u64) {
    if let Some(bytes) = cell.get_mut(index * WORD..(index + 1) * WORD) {
        bytes.copy_from_slice(&value.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(address: u64, sequence: u64) -> Vec<u8> {
        let mut cell = vec![0; SIZE];
        fill(&mut cell, address, sequence);
        cell
    }

    #[test]
    fn a_cell_that_was_written_last_is_accepted() {
        assert_eq!(check(&cell(7, 3), 7, 3), Ok(()));
    }

    #[test]
    fn lost_misplaced_torn_and_foreign_cells_are_found() {
        assert_eq!(check(&cell(7, 2), 7, 3), Err(Damage::Stale { found: 2, expected: 3 }));
        assert_eq!(check(&cell(8, 3), 7, 3), Err(Damage::Misplaced { found: 8 }));
        assert_eq!(check(&vec![0; SIZE], 7, 3), Err(Damage::Foreign));
        let mut torn = cell(7, 3);
        torn[2048..].copy_from_slice(&cell(7, 2)[2048..]);
        assert_eq!(check(&torn, 7, 3), Err(Damage::Torn));
    }

    #[test]
    fn every_byte_is_protected() {
        for at in (0..SIZE).step_by(97) {
            let mut damaged = cell(1, 1);
            damaged[at] ^= 1;
            assert!(check(&damaged, 1, 1).is_err(), "byte {at}");
        }
    }

    #[test]
    fn a_lost_write_is_named_in_the_message() {
        let text = Damage::Stale { found: 2, expected: 3 }.to_string();
        assert_eq!(text, "lost write: sequence 2 instead of 3");
    }
}
