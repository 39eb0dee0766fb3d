//! The thread that writes: pieces of the archive in, bytes out.

use std::io::{self, Write};

use rustc_hash::FxHashMap;
use tar::EntryType;

use super::header::{BLOCK, Member};
use super::queue::{Piece, Queue, Shared};
use super::trouble::{Told, Trouble};
use super::{Options, WriteError, Written};

/// What is written at once, as tapes have it: the end is filled up to a multiple of it.
const RECORD: u64 = 20 * BLOCK as u64;

/// Writes what the readers put into the queue.
pub(super) struct Writer<'a> {
    options: &'a Options<'a>,
    out: &'a mut dyn Write,
    told: &'a mut dyn FnMut(Told),
    written: Written,
    /// The first names of files that may have others.
    names: FxHashMap<(u64, u64), Box<[u8]>>,
    /// Whether what comes is of a file that a link was written to.
    is_skipping: bool,
}

impl<'a> Writer<'a> {
    pub fn new(options: &'a Options<'a>, out: &'a mut dyn Write, told: &'a mut dyn FnMut(Told)) -> Writer<'a> {
        Writer { options, out, told, written: Written::default(), names: FxHashMap::default(), is_skipping: false }
    }

    /// Writes to the end, with the mark that says that nothing is missing.
    pub fn run(mut self, queue: &Queue) -> Result<Written, WriteError> {
        while let Some(piece) = queue.next() {
            self.write(piece, queue)?;
        }
        if queue.is_stopped() {
            return Err(WriteError::ReaderLost);
        }
        let ends = (self.written.bytes + 2 * BLOCK as u64).next_multiple_of(RECORD);
        self.put(&vec![0; (ends - self.written.bytes) as usize])?;
        self.out.flush()?;
        Ok(self.written)
    }

    fn write(&mut self, piece: Piece, queue: &Queue) -> Result<(), WriteError> {
        match piece {
            Piece::Bytes(mut segment) => {
                if !self.is_skipping {
                    self.put(segment.filled())?;
                }
                self.written.members += segment.members;
                segment.told.drain(..).for_each(&mut *self.told);
                queue.give_back(segment);
                if let Some(progress) = self.options.progress {
                    progress(self.written.members);
                }
            }
            Piece::Shared(shared) => self.share(&shared)?,
            Piece::SharedEnd => self.is_skipping = false,
        }
        Ok(())
    }

    fn share(&mut self, shared: &Shared) -> Result<(), WriteError> {
        let Some(first) = self.names.get(&shared.key) else {
            debug_assert!(shared.has_data, "some item before this one has met the file and put it");
            self.names.insert(shared.key, shared.name.clone().into());
            return Ok(());
        };
        self.is_skipping = shared.has_data;
        // A link to itself would be the end of the file when it is extracted.
        if **first == *shared.name {
            return Ok(());
        }
        let link = Member {
            name: &shared.name,
            link: first,
            kind: EntryType::Link,
            facts: shared.facts,
            user: &shared.user,
            group: &shared.group,
            size: 0,
            records: &[],
            map: None,
        };
        let mut header = Vec::new();
        match link.append(self.options.format, &mut header) {
            Ok(()) => self.put(&header)?,
            Err(unfit) => (self.told)(Told::Trouble(shared.name.clone(), Trouble::Unfit(unfit))),
        }
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        self.written.bytes += bytes.len() as u64;
        Ok(())
    }
}
