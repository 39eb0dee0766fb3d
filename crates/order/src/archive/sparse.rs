//! Data ranges of sparse files.

use std::os::fd::BorrowedFd;

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

use super::block::fill_block;
use super::pax;

/// The data ranges of a sparse file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SparseMap {
    /// Offset and length of each range in bytes, ascending.
    pieces: Vec<(u64, u64)>,
    size: u64,
}

impl SparseMap {
    /// Reads the ranges of a file of `size` bytes. `None` if it has no holes or the file system
    /// does not report them.
    pub fn of(file: BorrowedFd<'_>, size: u64) -> Option<SparseMap> {
        let mut pieces = Vec::new();
        let mut at = 0;
        while at < size {
            let begins = match seek(file, SeekFrom::Data(at)) {
                Ok(begins) => begins,
                // The rest of the file is a hole.
                Err(Errno::NXIO) => break,
                Err(_) => return None,
            };
            if begins >= size {
                break;
            }
            let ends = seek(file, SeekFrom::Hole(begins)).ok()?.min(size);
            // The file became shorter in the meantime.
            if ends <= begins {
                break;
            }
            pieces.push((begins, ends - begins));
            at = ends;
        }
        (pieces != [(0, size)]).then_some(SparseMap { pieces, size })
    }

    /// Returns the file size in bytes, including holes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns offset and length of each data range.
    pub fn pieces(&self) -> &[(u64, u64)] {
        &self.pieces
    }

    /// Returns the sum of all range lengths.
    pub fn stored(&self) -> u64 {
        self.pieces.iter().map(|(_, length)| length).sum()
    }

    /// Returns the ranges, with an empty range at the end of a file that ends with a hole. Readers
    /// take the file size from it.
    pub fn marked(&self) -> Vec<(u64, u64)> {
        let mut pieces = self.pieces.clone();
        if pieces.last().is_none_or(|(offset, length)| offset + length < self.size) {
            pieces.push((self.size, 0));
        }
        pieces
    }

    /// Returns the map in GNU's sparse format 1.0: decimal numbers, each followed by a newline,
    /// padded to a block.
    pub fn text(&self) -> Vec<u8> {
        let pieces = self.marked();
        let mut text = Vec::new();
        let mut line = |number| {
            pax::append_number(&mut text, number);
            text.push(b'\n');
        };
        line(pieces.len() as u64);
        for (offset, length) in pieces {
            line(offset);
            line(length);
        }
        fill_block(&mut text);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_final_hole_is_marked_by_an_empty_range() {
        let map = SparseMap { pieces: vec![(4096, 512)], size: 10_000 };
        assert_eq!(map.marked(), [(4096, 512), (10_000, 0)]);
        assert_eq!(map.stored(), 512);
        let text = map.text();
        assert_eq!(text.len(), 512);
        assert!(text.starts_with(b"2\n4096\n512\n10000\n0\n\0"));
        assert_eq!(SparseMap { pieces: vec![(0, 4), (8, 2)], size: 10 }.marked(), [(0, 4), (8, 2)]);
    }
}
