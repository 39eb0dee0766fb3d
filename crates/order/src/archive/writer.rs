//! The writer thread: writes the segments of the readers to the output.

use std::io::{self, Write};

use rustc_hash::FxHashMap;
use tar::EntryType;

use super::block::BLOCK;
use super::event::{ArchiveEvent, ArchiveWarning};
use super::header::Member;
use super::names;
use super::options::Options;
use super::owners::OwnerNames;
use super::queue::{LinkCandidate, Mark, Queue, Segment};
use super::summary::{ArchiveError, ArchiveSummary};

/// Smaller writes than this are collected, in bytes.
const PIECE_BYTES: usize = 64 << 10;
/// Record size. The end of an archive is padded to a multiple of it.
const RECORD: u64 = 20 * BLOCK as u64;

/// Writes the segments of the queue and inserts hard links.
pub(super) struct Writer<'a> {
    options: &'a Options<'a>,
    out: &'a mut dyn Write,
    on_event: &'a mut dyn FnMut(ArchiveEvent),
    written: ArchiveSummary,
    /// Small pieces that are not written yet.
    buffered: Vec<u8>,
    owners: OwnerNames,
    /// Name of the first written member of each file that may have hard links.
    names: FxHashMap<(u64, u64), Box<[u8]>>,
    /// True while the data of a file are skipped because a hard link was written instead.
    is_skipping: bool,
}

impl<'a> Writer<'a> {
    pub fn new(
        options: &'a Options<'a>,
        out: &'a mut dyn Write,
        on_event: &'a mut dyn FnMut(ArchiveEvent),
    ) -> Writer<'a> {
        Writer {
            options,
            out,
            on_event,
            written: ArchiveSummary::default(),
            buffered: Vec::new(),
            owners: OwnerNames::default(),
            names: FxHashMap::default(),
            is_skipping: false,
        }
    }

    /// Writes all segments and the end mark of the archive.
    pub fn run(mut self, queue: &Queue) -> Result<ArchiveSummary, ArchiveError> {
        while let Some(mut segment) = queue.next() {
            self.write(&mut segment)?;
            self.written.members += segment.members;
            queue.give_back(segment);
            if let Some(progress) = self.options.progress {
                progress(self.written.members);
            }
        }
        if queue.is_stopped() {
            return Err(ArchiveError::ReaderThreadDied);
        }
        let ends = (self.written.bytes + 2 * BLOCK as u64).next_multiple_of(RECORD);
        self.put(&vec![0; (ends - self.written.bytes) as usize])?;
        self.put_buffered()?;
        self.out.flush()?;
        Ok(self.written)
    }

    fn write(&mut self, segment: &mut Segment) -> io::Result<()> {
        let mut written = 0;
        for (at, mark) in segment.take_marks() {
            match mark {
                // Warnings about this file were reported with its first member.
                Mark::Event(ArchiveEvent::Warning(..)) if self.is_skipping => {}
                Mark::Event(event) => (self.on_event)(event),
                Mark::LinkCandidate(_) | Mark::LinkCandidateEnd => {
                    self.put_unless_skipping(&segment.filled()[written..at])?;
                    written = at;
                    self.is_skipping = match mark {
                        Mark::LinkCandidate(shared) => self.share(*shared)?,
                        _ => false,
                    };
                }
            }
        }
        self.put_unless_skipping(&segment.filled()[written..])
    }

    /// Writes a hard link if the file was written before. Returns true if the following data must
    /// be skipped.
    fn share(&mut self, shared: LinkCandidate) -> io::Result<bool> {
        let Some(first) = self.names.get(&shared.key) else {
            debug_assert!(shared.has_data, "some item before this one has met the file and put it");
            if shared.may_be_target {
                self.names.insert(shared.key, shared.name.into());
            }
            return Ok(false);
        };
        // A link to itself would delete the file when it is extracted.
        if names::same(first, &shared.name) {
            return Ok(shared.has_data);
        }
        let (user, group) = if self.options.numeric_owner {
            (&[][..], &[][..])
        } else {
            self.owners.both(shared.metadata.uid, shared.metadata.gid)
        };
        let link = Member {
            name: &shared.name,
            link: first,
            kind: EntryType::Link,
            metadata: shared.metadata,
            user,
            group,
            size: 0,
            records: &[],
            map: None,
        };
        let mut header = Vec::new();
        match link.append(self.options.format, &mut header) {
            Ok(()) => self.put(&header)?,
            Err(error) => (self.on_event)(ArchiveEvent::Warning(shared.name, ArchiveWarning::Format(error))),
        }
        Ok(shared.has_data)
    }

    fn put_unless_skipping(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.is_skipping { Ok(()) } else { self.put(bytes) }
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.buffered.len() + bytes.len() > PIECE_BYTES {
            self.put_buffered()?;
        }
        if bytes.len() < PIECE_BYTES {
            self.buffered.extend_from_slice(bytes);
        } else {
            self.out.write_all(bytes)?;
        }
        self.written.bytes += bytes.len() as u64;
        Ok(())
    }

    fn put_buffered(&mut self) -> io::Result<()> {
        self.out.write_all(&self.buffered)?;
        self.buffered.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::header::InodeMetadata;

    fn shared(name: &[u8]) -> Mark {
        let metadata = InodeMetadata { mode: 0o100_644, uid: 0, gid: 0, mtime_s: 0, mtime_ns: 0, device: (0, 0) };
        let name = name.to_vec();
        Mark::LinkCandidate(Box::new(LinkCandidate {
            key: (1, 2),
            name,
            metadata,
            may_be_target: true,
            has_data: true,
        }))
    }

    /// Returns output and events of one segment that `fill` has filled.
    fn written(fill: impl FnOnce(&mut Segment)) -> (Vec<u8>, Vec<ArchiveEvent>) {
        let queue = Queue::new(1, 1 << 20, 1);
        assert_eq!(queue.claim(), Some(0));
        let Ok(mut segment) = queue.segment(0) else { panic!("the queue is running") };
        fill(&mut segment);
        queue.put(0, segment);
        queue.finish(0);
        let (mut out, mut events) = (Vec::new(), Vec::new());
        let options = Options::default();
        let mut on_event = |event| events.push(event);
        Writer::new(&options, &mut out, &mut on_event).run(&queue).unwrap();
        (out, events)
    }

    #[test]
    fn a_file_that_two_threads_read_is_written_and_reported_once() {
        let warning = |name: &str| ArchiveEvent::Warning(name.into(), ArchiveWarning::Changed);
        let (out, events) = written(|segment| {
            for (name, byte) in [("a", b'1'), ("b", b'2')] {
                segment.mark(shared(name.as_bytes()));
                segment.push(&[byte; BLOCK]);
                segment.mark(Mark::Event(warning(name)));
                segment.mark(Mark::LinkCandidateEnd);
            }
            segment.mark(Mark::Event(warning("c")));
            segment.push(&[b'3'; BLOCK]);
        });
        assert_eq!(events, [warning("a"), warning("c")]);
        assert_eq!((&out[..BLOCK], &out[2 * BLOCK..3 * BLOCK]), (&[b'1'; BLOCK][..], &[b'3'; BLOCK][..]));
        let link = tar::Header::from_byte_slice(&out[BLOCK..2 * BLOCK]);
        assert_eq!((&*link.path_bytes(), link.entry_type()), (&b"b"[..], EntryType::Link));
        assert_eq!(link.link_name_bytes().as_deref(), Some(&b"a"[..]));
    }

    #[test]
    fn another_spelling_of_the_same_name_does_not_become_a_link_to_itself() {
        let (out, _) = written(|segment| {
            for name in ["f", "./f"] {
                segment.mark(shared(name.as_bytes()));
                segment.push(&[b'f'; BLOCK]);
                segment.mark(Mark::LinkCandidateEnd);
            }
        });
        assert!(out[..BLOCK].iter().all(|byte| *byte == b'f') && out[BLOCK..].iter().all(|byte| *byte == 0));
    }
}
