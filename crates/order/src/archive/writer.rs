//! The thread that writes: buffers of the archive in, bytes out.

use std::io::{self, Write};

use rustc_hash::FxHashMap;
use tar::EntryType;

use super::header::{BLOCK, Member};
use super::names;
use super::owners::Owners;
use super::queue::{Mark, Queue, Segment, Shared};
use super::trouble::{Told, Trouble};
use super::{Options, WriteError, Written};

/// Smaller pieces than this are put together before they are written.
const PIECE_BYTES: usize = 64 << 10;
/// What is written at once, as tapes have it: the end is filled up to a multiple of it.
const RECORD: u64 = 20 * BLOCK as u64;

/// Writes what the readers put into the queue.
pub(super) struct Writer<'a> {
    options: &'a Options<'a>,
    out: &'a mut dyn Write,
    told: &'a mut dyn FnMut(Told),
    written: Written,
    /// Small pieces that are not written yet.
    gathered: Vec<u8>,
    owners: Owners,
    /// The first names of files that may have others.
    names: FxHashMap<(u64, u64), Box<[u8]>>,
    /// Whether what comes is of a file that a link was written to.
    is_skipping: bool,
}

impl<'a> Writer<'a> {
    pub fn new(options: &'a Options<'a>, out: &'a mut dyn Write, told: &'a mut dyn FnMut(Told)) -> Writer<'a> {
        Writer {
            options,
            out,
            told,
            written: Written::default(),
            gathered: Vec::new(),
            owners: Owners::default(),
            names: FxHashMap::default(),
            is_skipping: false,
        }
    }

    /// Writes to the end, with the mark that says that nothing is missing.
    pub fn run(mut self, queue: &Queue) -> Result<Written, WriteError> {
        while let Some(mut segment) = queue.next() {
            self.write(&mut segment)?;
            self.written.members += segment.members;
            queue.give_back(segment);
            if let Some(progress) = self.options.progress {
                progress(self.written.members);
            }
        }
        if queue.is_stopped() {
            return Err(WriteError::ReaderLost);
        }
        let ends = (self.written.bytes + 2 * BLOCK as u64).next_multiple_of(RECORD);
        self.put(&vec![0; (ends - self.written.bytes) as usize])?;
        self.put_gathered()?;
        self.out.flush()?;
        Ok(self.written)
    }

    fn write(&mut self, segment: &mut Segment) -> io::Result<()> {
        let mut written = 0;
        for (at, mark) in segment.take_marks() {
            match mark {
                // Whoever reads a file that was written before has nothing to tell that was not told then.
                Mark::Told(Told::Trouble(..)) if self.is_skipping => {}
                Mark::Told(told) => (self.told)(told),
                Mark::Shared(_) | Mark::SharedEnd => {
                    self.put_unless_skipping(&segment.filled()[written..at])?;
                    written = at;
                    self.is_skipping = match mark {
                        Mark::Shared(shared) => self.share(*shared)?,
                        _ => false,
                    };
                }
            }
        }
        self.put_unless_skipping(&segment.filled()[written..])
    }

    /// Links to what was written before, and answers whether the data that follow are to be left out.
    fn share(&mut self, shared: Shared) -> io::Result<bool> {
        let Some(first) = self.names.get(&shared.key) else {
            debug_assert!(shared.has_data, "some item before this one has met the file and put it");
            if shared.may_be_target {
                self.names.insert(shared.key, shared.name.into());
            }
            return Ok(false);
        };
        // A link to itself would be the end of the file when it is extracted.
        if names::same(first, &shared.name) {
            return Ok(shared.has_data);
        }
        let (user, group) = if self.options.numeric_owner {
            (&[][..], &[][..])
        } else {
            self.owners.both(shared.facts.uid, shared.facts.gid)
        };
        let link = Member {
            name: &shared.name,
            link: first,
            kind: EntryType::Link,
            facts: shared.facts,
            user,
            group,
            size: 0,
            records: &[],
            map: None,
        };
        let mut header = Vec::new();
        match link.append(self.options.format, &mut header) {
            Ok(()) => self.put(&header)?,
            Err(unfit) => (self.told)(Told::Trouble(shared.name, Trouble::Unfit(unfit))),
        }
        Ok(shared.has_data)
    }

    fn put_unless_skipping(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.is_skipping { Ok(()) } else { self.put(bytes) }
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.gathered.len() + bytes.len() > PIECE_BYTES {
            self.put_gathered()?;
        }
        if bytes.len() < PIECE_BYTES {
            self.gathered.extend_from_slice(bytes);
        } else {
            self.out.write_all(bytes)?;
        }
        self.written.bytes += bytes.len() as u64;
        Ok(())
    }

    fn put_gathered(&mut self) -> io::Result<()> {
        self.out.write_all(&self.gathered)?;
        self.gathered.clear();
        Ok(())
    }
}
