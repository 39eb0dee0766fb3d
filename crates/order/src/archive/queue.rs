//! Passes parts of the archive from the reader threads to the writer thread, batch by batch in
//! order. The number of buffers is limited.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::event::ArchiveEvent;
use super::header::InodeMetadata;

/// Size of a segment buffer in bytes.
pub(super) const SEGMENT_BYTES: usize = 256 << 10;

/// A part of the archive.
#[derive(Debug)]
pub(super) struct Segment {
    bytes: Box<[u8]>,
    used: usize,
    /// Marks by byte position, in the order of their creation.
    marks: Vec<(usize, Mark)>,
    /// Number of members that start in this segment.
    pub members: u64,
}

/// An action of the writer at a position of the archive.
#[derive(Debug)]
pub(super) enum Mark {
    /// Report an event.
    Event(ArchiveEvent),
    /// A member whose file may have other names. If another name was written before, the writer
    /// replaces the member by a hard link.
    LinkCandidate(Box<LinkCandidate>),
    /// End of the data of the last [`Mark::LinkCandidate`] with data.
    LinkCandidateEnd,
}

impl Segment {
    fn new() -> Segment {
        Segment { bytes: vec![0; SEGMENT_BYTES].into(), used: 0, marks: Vec::new(), members: 0 }
    }

    /// Returns the filled part of the buffer.
    pub fn filled(&self) -> &[u8] {
        &self.bytes[..self.used]
    }

    /// Adds a mark at the current end.
    pub fn mark(&mut self, mark: Mark) {
        self.mark_at(self.used, mark);
    }

    /// Adds a mark at an earlier position.
    pub fn mark_at(&mut self, at: usize, mark: Mark) {
        self.marks.push((at, mark));
    }

    /// Removes and returns all marks, by position and then by creation.
    pub fn take_marks(&mut self) -> Vec<(usize, Mark)> {
        self.marks.sort_by_key(|(at, _)| *at);
        std::mem::take(&mut self.marks)
    }

    /// Returns the number of free bytes.
    pub fn room(&self) -> usize {
        self.bytes.len() - self.used
    }

    /// Reserves `bytes` bytes, at most the free ones, and returns their position. Their contents
    /// are undefined.
    pub fn take(&mut self, bytes: usize) -> usize {
        let begins = self.used;
        self.used += bytes.min(self.room());
        begins
    }

    /// Returns reserved bytes for writing.
    pub fn part(&mut self, begins: usize, bytes: usize) -> &mut [u8] {
        &mut self.bytes[begins..begins + bytes]
    }

    /// Appends as many bytes as fit and returns their number.
    pub fn push(&mut self, bytes: &[u8]) -> usize {
        let taken = bytes.len().min(self.room());
        let begins = self.take(taken);
        self.part(begins, taken).copy_from_slice(&bytes[..taken]);
        taken
    }

    fn clear(&mut self) {
        self.used = 0;
        self.marks.clear();
        self.members = 0;
    }
}

/// A member whose file has or may have several names.
#[derive(Debug)]
pub(super) struct LinkCandidate {
    /// Device and inode number.
    pub key: (u64, u64),
    /// Name of the member.
    pub name: Vec<u8>,
    /// Metadata for the header of a hard link.
    pub metadata: InodeMetadata,
    /// True if a hard link may refer to this member.
    pub may_be_target: bool,
    /// True if header and data of the file follow, for the case that no other name was written
    /// before.
    pub has_data: bool,
}

/// The archive run was stopped; the calling thread must end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stopped;

/// The queue between reader threads and the writer thread.
pub(super) struct Queue {
    state: Mutex<State>,
    for_writer: Condvar,
    for_readers: Condvar,
    batches: usize,
    segments_max: usize,
}

struct State {
    /// The batch that is being written.
    writing: usize,
    /// Segments of that batch and of the claimed batches after it.
    slots: VecDeque<Slot>,
    free: Vec<Segment>,
    /// Number of segments in use.
    in_use: usize,
    /// Number of sleeping threads. A wake-up is a system call, so that it is skipped if no thread
    /// sleeps.
    writer_waits: bool,
    readers_wait: usize,
    stopped: bool,
}

#[derive(Default)]
struct Slot {
    segments: VecDeque<Segment>,
    is_done: bool,
}

/// Segments that are reserved for the batch that is being written. Otherwise, read-ahead of later
/// batches could block it.
const RESERVED: usize = 2;

impl Queue {
    /// Creates a queue for the given number of batches, with at most `bytes_max` bytes of buffers.
    pub fn new(batches: usize, bytes_max: usize, readers: usize) -> Queue {
        let state = State {
            writing: 0,
            slots: VecDeque::new(),
            free: Vec::new(),
            in_use: 0,
            writer_waits: false,
            readers_wait: 0,
            stopped: false,
        };
        Queue {
            state: Mutex::new(state),
            for_writer: Condvar::new(),
            for_readers: Condvar::new(),
            batches,
            segments_max: (bytes_max / SEGMENT_BYTES).max(readers + RESERVED),
        }
    }

    /// Claims the next batch for a reader; `None` if all batches are claimed.
    pub fn claim(&self) -> Option<usize> {
        let mut state = self.lock();
        let batch = state.writing + state.slots.len();
        if batch >= self.batches || state.stopped {
            return None;
        }
        state.slots.push_back(Slot::default());
        Some(batch)
    }

    /// Waits for a free segment for a batch.
    pub fn segment(&self, batch: usize) -> Result<Segment, Stopped> {
        let mut state = self.lock();
        loop {
            if state.stopped {
                return Err(Stopped);
            }
            let kept = if batch == state.writing { 0 } else { RESERVED };
            if state.in_use + kept < self.segments_max {
                state.in_use += 1;
                let free = state.free.pop();
                drop(state);
                return Ok(free.unwrap_or_else(Segment::new));
            }
            state.readers_wait += 1;
            state = self.for_readers.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.readers_wait -= 1;
        }
    }

    /// Adds the next segment of a claimed batch.
    pub fn put(&self, batch: usize, segment: Segment) {
        self.change(batch, |slot| slot.segments.push_back(segment));
    }

    /// Marks a batch as complete.
    pub fn finish(&self, batch: usize) {
        self.change(batch, |slot| slot.is_done = true);
    }

    /// Waits for the next segment to write. `None` after the last segment or after [`Queue::stop`].
    pub fn next(&self) -> Option<Segment> {
        let mut state = self.lock();
        loop {
            if state.stopped || state.writing == self.batches {
                return None;
            }
            if let Some(slot) = state.slots.front_mut() {
                if let Some(segment) = slot.segments.pop_front() {
                    return Some(segment);
                }
                if slot.is_done {
                    state.slots.pop_front();
                    state.writing += 1;
                    // Readers of the next batch may now use the reserved segments.
                    if state.readers_wait > 0 {
                        self.for_readers.notify_all();
                    }
                    continue;
                }
            }
            state.writer_waits = true;
            state = self.for_writer.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.writer_waits = false;
        }
    }

    /// Returns a written segment to the free list.
    pub fn give_back(&self, mut segment: Segment) {
        segment.clear();
        let mut state = self.lock();
        state.in_use -= 1;
        state.free.push(segment);
        let is_waited_for = state.readers_wait > 0;
        drop(state);
        if is_waited_for {
            self.for_readers.notify_all();
        }
    }

    /// Stops the run and wakes all threads.
    pub fn stop(&self) {
        self.lock().stopped = true;
        self.for_readers.notify_all();
        self.for_writer.notify_all();
    }

    /// Returns true after [`Queue::stop`].
    pub fn is_stopped(&self) -> bool {
        self.lock().stopped
    }

    fn change(&self, batch: usize, change: impl FnOnce(&mut Slot)) {
        let mut state = self.lock();
        let is_waited_for = batch == state.writing && state.writer_waits;
        let at = batch - state.writing;
        if let Some(slot) = state.slots.get_mut(at) {
            change(slot);
        }
        drop(state);
        if is_waited_for {
            self.for_writer.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn segments_leave_the_queue_batch_by_batch_in_order() {
        let queue = Queue::new(2, 8 * SEGMENT_BYTES, 2);
        assert_eq!((queue.claim(), queue.claim(), queue.claim()), (Some(0), Some(1), None));
        for (batch, text) in [(1, b"c"), (0, b"a"), (1, b"d"), (0, b"b")] {
            let mut segment = queue.segment(batch).unwrap();
            assert_eq!(segment.push(text), 1);
            queue.put(batch, segment);
        }
        queue.finish(1);
        queue.finish(0);
        let mut out = Vec::new();
        while let Some(segment) = queue.next() {
            out.extend_from_slice(segment.filled());
            queue.give_back(segment);
        }
        assert_eq!(out, b"abcd");
    }

    #[test]
    fn marks_are_sorted_by_position_even_if_they_are_added_late() {
        let event = |name: &str| Mark::Event(ArchiveEvent::Member(name.as_bytes().to_vec()));
        let mut segment = Segment::new();
        segment.mark(event("a"));
        segment.mark(event("b"));
        assert_eq!(segment.push(b"12"), 2);
        segment.mark(event("d"));
        segment.mark_at(1, event("c"));
        let marks: Vec<_> = segment.take_marks().into_iter().map(|(at, mark)| format!("{at} {mark:?}")).collect();
        assert_eq!(marks.len(), 4);
        for (mark, wanted) in marks.iter().zip([(0, b'a'), (0, b'b'), (1, b'c'), (2, b'd')]) {
            let (at, name) = wanted;
            assert_eq!(*mark, format!("{at} {:?}", Mark::Event(ArchiveEvent::Member(vec![name]))));
        }
    }

    #[test]
    fn the_batch_that_is_written_goes_on_when_others_have_taken_all_they_may() {
        // Four segments: two for read-ahead, two for the batch that is being written.
        let queue = Queue::new(3, 4 * SEGMENT_BYTES, 1);
        (0..3).for_each(|batch| assert_eq!(queue.claim(), Some(batch)));
        for _ in 0..2 {
            let segment = queue.segment(1).unwrap();
            queue.put(1, segment);
        }
        thread::scope(|scope| {
            let ahead = scope.spawn(|| queue.segment(2).map(|segment| queue.put(2, segment)).is_ok());
            for _ in 0..10 {
                let segment = queue.segment(0).unwrap();
                queue.put(0, segment);
                let Some(segment) = queue.next() else { panic!("it is there") };
                queue.give_back(segment);
            }
            (0..2).for_each(|batch| queue.finish(batch));
            for _ in 0..2 {
                let Some(segment) = queue.next() else { panic!("the next batch's are there") };
                queue.give_back(segment);
            }
            assert!(ahead.join().unwrap());
        });
    }

    #[test]
    fn waiting_threads_end_when_the_run_is_stopped() {
        let queue = Queue::new(2, 0, 1);
        let taken: Vec<_> = (0..3).map(|_| queue.segment(0).is_ok()).collect();
        assert_eq!(taken, [true; 3]);
        thread::scope(|scope| {
            let reader = scope.spawn(|| queue.segment(1).is_err());
            let writer = scope.spawn(|| queue.next().is_none());
            queue.stop();
            assert!(reader.join().unwrap() && writer.join().unwrap());
        });
    }
}
