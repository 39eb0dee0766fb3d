//! From the threads that read to the one that writes: the archive in buffers, batch by batch in order. There are only so many buffers.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::header::Facts;
use super::trouble::Told;

/// How many bytes of the archive a buffer holds.
pub(super) const SEGMENT_BYTES: usize = 256 << 10;

/// A part of the archive.
#[derive(Debug)]
pub(super) struct Segment {
    bytes: Box<[u8]>,
    used: usize,
    /// What happens at which of its bytes, in the order in which it was found out.
    marks: Vec<(usize, Mark)>,
    /// How many members begin in it.
    pub members: u64,
}

/// What is to be done where it stands in the archive.
#[derive(Debug)]
pub(super) enum Mark {
    /// Something is to be told.
    Told(Told),
    /// A file that other names may lead to. If one of these was written before, a link to it is written in its place.
    Shared(Box<Shared>),
    /// What has come since the last [`Mark::Shared`] with data was that file's.
    SharedEnd,
}

impl Segment {
    fn new() -> Segment {
        Segment { bytes: vec![0; SEGMENT_BYTES].into(), used: 0, marks: Vec::new(), members: 0 }
    }

    /// What is in it.
    pub fn filled(&self) -> &[u8] {
        &self.bytes[..self.used]
    }

    /// Marks what comes next.
    pub fn mark(&mut self, mark: Mark) {
        self.mark_at(self.used, mark);
    }

    /// Marks bytes that are there already.
    pub fn mark_at(&mut self, at: usize, mark: Mark) {
        self.marks.push((at, mark));
    }

    /// Its marks in the order of its bytes, and at the same byte in the order in which they were made. It has none after that.
    pub fn take_marks(&mut self) -> Vec<(usize, Mark)> {
        self.marks.sort_by_key(|(at, _)| *at);
        std::mem::take(&mut self.marks)
    }

    /// How much there is room for.
    pub fn room(&self) -> usize {
        self.bytes.len() - self.used
    }

    /// Takes so many bytes of the room, at most what there is, and answers where they begin. What they are is what they were before.
    pub fn take(&mut self, bytes: usize) -> usize {
        let begins = self.used;
        self.used += bytes.min(self.room());
        begins
    }

    /// Bytes that were taken.
    pub fn part(&mut self, begins: usize, bytes: usize) -> &mut [u8] {
        &mut self.bytes[begins..begins + bytes]
    }

    /// Appends as many of the bytes as there is room for, and answers how many.
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

/// One of several names of a file.
#[derive(Debug)]
pub(super) struct Shared {
    /// Device and inode.
    pub key: (u64, u64),
    /// The name of the member.
    pub name: Vec<u8>,
    /// What the header of a link tells.
    pub facts: Facts,
    /// Whether a link may lead to it.
    pub may_be_target: bool,
    /// Whether the member follows, for the case that no other name was written before.
    pub has_data: bool,
}

/// Whoever waits is sent home: the archive was given up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stopped;

/// The way from those who read to the one who writes.
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
    /// What is there of it and of those behind it that somebody reads.
    slots: VecDeque<Slot>,
    free: Vec<Segment>,
    /// Buffers that are not free.
    in_use: usize,
    /// Who sleeps: nobody is woken who does not, for that is a system call, too.
    writer_waits: bool,
    readers_wait: usize,
    stopped: bool,
}

#[derive(Default)]
struct Slot {
    segments: VecDeque<Segment>,
    is_done: bool,
}

/// Buffers that only the batch that is being written may take: it must be able to go on when those behind it have read as far ahead as they may.
const RESERVED: usize = 2;

impl Queue {
    /// One for so many batches, with so many bytes of buffers at most.
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

    /// The next batch for somebody to read; none when all are taken.
    pub fn claim(&self) -> Option<usize> {
        let mut state = self.lock();
        let batch = state.writing + state.slots.len();
        if batch >= self.batches || state.stopped {
            return None;
        }
        state.slots.push_back(Slot::default());
        Some(batch)
    }

    /// A buffer for a part of a batch, as soon as there is one.
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

    /// Adds what comes next of a batch that was claimed.
    pub fn put(&self, batch: usize, segment: Segment) {
        self.change(batch, |slot| slot.segments.push_back(segment));
    }

    /// Nothing is added to this batch any more.
    pub fn finish(&self, batch: usize) {
        self.change(batch, |slot| slot.is_done = true);
    }

    /// What is to be written next, as soon as it is there; none after the last, or when it was given up.
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
                    // Whoever reads the batch that is next may take what was reserved.
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

    /// Gives a buffer back that was written.
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

    /// Sends everybody home.
    pub fn stop(&self) {
        self.lock().stopped = true;
        self.for_readers.notify_all();
        self.for_writer.notify_all();
    }

    /// Whether everybody was sent home.
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
    fn what_is_read_comes_out_batch_by_batch_however_they_went_in() {
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
    fn marks_stand_at_their_bytes_also_when_they_come_late() {
        let told = |name: &str| Mark::Told(Told::Member(name.as_bytes().to_vec()));
        let mut segment = Segment::new();
        segment.mark(told("a"));
        segment.mark(told("b"));
        assert_eq!(segment.push(b"12"), 2);
        segment.mark(told("d"));
        segment.mark_at(1, told("c"));
        let marks: Vec<_> = segment.take_marks().into_iter().map(|(at, mark)| format!("{at} {mark:?}")).collect();
        assert_eq!(marks.len(), 4);
        for (mark, wanted) in marks.iter().zip([(0, b'a'), (0, b'b'), (1, b'c'), (2, b'd')]) {
            let (at, name) = wanted;
            assert_eq!(*mark, format!("{at} {:?}", Mark::Told(Told::Member(vec![name]))));
        }
    }

    #[test]
    fn the_batch_that_is_written_goes_on_when_others_have_taken_all_they_may() {
        // Four buffers: two for whoever reads ahead, two for the batch that is written.
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
    fn whoever_waits_is_sent_home_when_it_is_given_up() {
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
