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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::header::Facts;

    fn shared(name: &[u8]) -> Mark {
        let facts = Facts { mode: 0o100_644, uid: 0, gid: 0, mtime_s: 0, mtime_ns: 0, device: (0, 0) };
        let name = name.to_vec();
        Mark::Shared(Box::new(Shared { key: (1, 2), name, facts, may_be_target: true, has_data: true }))
    }

    /// What is written of one segment that was filled somehow.
    fn written(fill: impl FnOnce(&mut Segment)) -> (Vec<u8>, Vec<Told>) {
        let queue = Queue::new(1, 1 << 20, 1);
        assert_eq!(queue.claim(), Some(0));
        let Ok(mut segment) = queue.segment(0) else { panic!("nobody has stopped it") };
        fill(&mut segment);
        queue.put(0, segment);
        queue.finish(0);
        let (mut out, mut told) = (Vec::new(), Vec::new());
        let options = Options::default();
        let mut tell = |what| told.push(what);
        Writer::new(&options, &mut out, &mut tell).run(&queue).unwrap();
        (out, told)
    }

    #[test]
    fn a_file_that_two_threads_read_is_written_and_told_once() {
        let trouble = |name: &str| Told::Trouble(name.into(), Trouble::Changed);
        let (out, told) = written(|segment| {
            for (name, byte) in [("a", b'1'), ("b", b'2')] {
                segment.mark(shared(name.as_bytes()));
                segment.push(&[byte; BLOCK]);
                segment.mark(Mark::Told(trouble(name)));
                segment.mark(Mark::SharedEnd);
            }
            segment.mark(Mark::Told(trouble("c")));
            segment.push(&[b'3'; BLOCK]);
        });
        assert_eq!(told, [trouble("a"), trouble("c")]);
        assert_eq!((&out[..BLOCK], &out[2 * BLOCK..3 * BLOCK]), (&[b'1'; BLOCK][..], &[b'3'; BLOCK][..]));
        let link = tar::Header::from_byte_slice(&out[BLOCK..2 * BLOCK]);
        assert_eq!((&*link.path_bytes(), link.entry_type()), (&b"b"[..], EntryType::Link));
        assert_eq!(link.link_name_bytes().as_deref(), Some(&b"a"[..]));
    }

    #[test]
    fn the_same_name_spelled_otherwise_is_no_link_to_itself() {
        let (out, _) = written(|segment| {
            for name in ["f", "./f"] {
                segment.mark(shared(name.as_bytes()));
                segment.push(&[b'f'; BLOCK]);
                segment.mark(Mark::SharedEnd);
            }
        });
        assert!(out[..BLOCK].iter().all(|byte| *byte == b'f') && out[BLOCK..].iter().all(|byte| *byte == 0));
    }
}
