//! Files with holes: where their data are.

use std::os::fd::BorrowedFd;

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

use super::header::fill_block;
use super::pax;

/// Where a file with holes has data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Map {
    /// Offsets and lengths in bytes, ascending.
    pieces: Vec<(u64, u64)>,
    size: u64,
}

impl Map {
    /// The map of a file of `size` bytes; none if it has no holes, or the file system does not tell.
    pub fn of(file: BorrowedFd<'_>, size: u64) -> Option<Map> {
        let mut pieces = Vec::new();
        let mut at = 0;
        while at < size {
            let begins = match seek(file, SeekFrom::Data(at)) {
                Ok(begins) => begins,
                // A hole up to the end.
                Err(Errno::NXIO) => break,
                Err(_) => return None,
            };
            if begins >= size {
                break;
            }
            let ends = seek(file, SeekFrom::Hole(begins)).ok()?.min(size);
            // A file that shrinks meanwhile.
            if ends <= begins {
                break;
            }
            pieces.push((begins, ends - begins));
            at = ends;
        }
        (pieces != [(0, size)]).then_some(Map { pieces, size })
    }

    /// The bytes of the file, holes too.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Its pieces of data: offset and length.
    pub fn pieces(&self) -> &[(u64, u64)] {
        &self.pieces
    }

    /// The bytes of all pieces.
    pub fn stored(&self) -> u64 {
        self.pieces.iter().map(|(_, length)| length).sum()
    }

    /// Its pieces, and one of no bytes at the end if the file ends with a hole: readers find the size by that.
    pub fn marked(&self) -> Vec<(u64, u64)> {
        let mut pieces = self.pieces.clone();
        if pieces.last().is_none_or(|(offset, length)| offset + length < self.size) {
            pieces.push((self.size, 0));
        }
        pieces
    }

    /// It as it stands before the data in GNU's sparse format 1.0: numbers with a newline behind each, filled up to a block.
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
    fn a_file_that_ends_with_a_hole_has_a_piece_of_nothing_at_its_end() {
        let map = Map { pieces: vec![(4096, 512)], size: 10_000 };
        assert_eq!(map.marked(), [(4096, 512), (10_000, 0)]);
        assert_eq!(map.stored(), 512);
        let text = map.text();
        assert_eq!(text.len(), 512);
        assert!(text.starts_with(b"2\n4096\n512\n10000\n0\n\0"));
        assert_eq!(Map { pieces: vec![(0, 4), (8, 2)], size: 10 }.marked(), [(0, 4), (8, 2)]);
    }
}
