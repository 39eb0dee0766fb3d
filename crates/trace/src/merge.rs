//! Merges several traces into one in order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::batch::{Batch, EVENTS_A_BATCH};
use crate::source::{DeferredError, Notice, ReadError, Source};

/// Merges sources by time. Events of the same time come in the order of the sources. Events of
/// one source keep their order whatever their times are.
pub struct Merge {
    parts: Vec<Part>,
    /// Time of the next event and index, for each part that has not ended.
    next: BinaryHeap<Reverse<(u64, usize)>>,
    is_begun: bool,
    /// The error of a part, returned after the events that were read before it.
    failed: DeferredError,
}

struct Part {
    source: Box<dyn Source + Send>,
    shift_ns: i64,
    batch: Batch,
    at: usize,
}

impl Merge {
    /// Creates a merge of sources, each with an offset in ns that is added to its times. Times
    /// saturate at 0 and at the largest 64-bit value.
    pub fn new(sources: Vec<(Box<dyn Source + Send>, i64)>) -> Merge {
        let part = |(source, shift_ns)| Part { source, shift_ns, batch: Batch::new(), at: 0 };
        Merge {
            parts: sources.into_iter().map(part).collect(),
            next: BinaryHeap::new(),
            is_begun: false,
            failed: DeferredError::default(),
        }
    }

    /// Creates a merge in which all sources start at the time of the first source that has events.
    /// The offsets in ns are added afterwards.
    pub fn aligned(sources: Vec<(PeekedSource, i64)>) -> Merge {
        let start_ns = sources.iter().find_map(|(source, _)| source.start_ns()).unwrap_or(0);
        let aligned = sources.into_iter().map(|(source, shift_ns)| {
            let offset_ns = source.start_ns().map_or(0, |own_ns| difference_ns(start_ns, own_ns));
            (Box::new(source) as Box<dyn Source + Send>, shift_ns.saturating_add(offset_ns))
        });
        Merge::new(aligned.collect())
    }

    /// Pushes the next event of a part to the heap, if there is one.
    fn enter(&mut self, index: usize) {
        let Some(part) = self.parts.get_mut(index) else { return };
        match part.time_ns() {
            Ok(Some(time_ns)) => self.next.push(Reverse((time_ns, index))),
            Ok(None) => {}
            Err(error) => self.failed.set(error),
        }
    }
}

impl Source for Merge {
    fn next(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        batch.clear();
        if !self.is_begun {
            self.is_begun = true;
            (0..self.parts.len()).for_each(|index| self.enter(index));
        }
        while batch.len() < EVENTS_A_BATCH && !self.failed.is_set() {
            let Some(Reverse((_, index))) = self.next.pop() else { break };
            let Some(part) = self.parts.get_mut(index) else { break };
            // While no other part has an earlier event, the heap does not need to be consulted.
            let limit = self.next.peek().map_or((u64::MAX, usize::MAX), |Reverse(next)| *next);
            part.copy(batch, limit, index);
            self.enter(index);
        }
        self.failed.report_after(batch).inspect_err(|_| self.next.clear())
    }

    fn notices(&mut self) -> Vec<Notice> {
        self.parts.iter_mut().flat_map(|part| part.source.notices()).collect()
    }

    fn skipped_lines(&self) -> u64 {
        self.parts.iter().map(|part| part.source.skipped_lines()).sum()
    }
}

impl Part {
    /// Returns the time of the next event in ns, or None at the end.
    fn time_ns(&mut self) -> Result<Option<u64>, ReadError> {
        if self.at >= self.batch.len() {
            self.at = 0;
            self.source.next(&mut self.batch)?;
        }
        Ok(self.batch.events().get(self.at).map(|event| event.time_ns.saturating_add_signed(self.shift_ns)))
    }

    /// Copies events up to the next event of another part, and at least one event.
    fn copy(&mut self, to: &mut Batch, limit: (u64, usize), index: usize) {
        for (copied, event) in self.batch.events().get(self.at..).unwrap_or_default().iter().enumerate() {
            let time_ns = event.time_ns.saturating_add_signed(self.shift_ns);
            if copied > 0 && ((time_ns, index) > limit || to.len() >= EVENTS_A_BATCH) {
                return;
            }
            to.push_from(&crate::Event { time_ns, ..*event }, &self.batch);
            self.at += 1;
        }
    }
}

/// Returns the difference of two times in ns, saturated to 64 bits.
fn difference_ns(to_ns: u64, from_ns: u64) -> i64 {
    i64::try_from(i128::from(to_ns) - i128::from(from_ns)).unwrap_or(if to_ns > from_ns { i64::MAX } else { i64::MIN })
}

/// A source whose first batch has been read, so that its start time is available.
pub struct PeekedSource {
    source: Box<dyn Source + Send>,
    first: Option<Batch>,
    start_ns: Option<u64>,
}

impl PeekedSource {
    /// Reads the first batch of a source.
    ///
    /// # Errors
    /// Returns the error of the source.
    pub fn new(mut source: Box<dyn Source + Send>) -> Result<PeekedSource, ReadError> {
        let mut first = Batch::new();
        source.next(&mut first)?;
        let start_ns = first.start_ns();
        Ok(PeekedSource { source, first: Some(first), start_ns })
    }

    /// Returns the time of the first event that has a moment, in ns;
    /// None if the first batch has no such event.
    pub fn start_ns(&self) -> Option<u64> {
        self.start_ns
    }
}

impl Source for PeekedSource {
    fn next(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        match self.first.take() {
            Some(first) => {
                *batch = first;
                Ok(())
            }
            None => self.source.next(batch),
        }
    }

    fn notices(&mut self) -> Vec<Notice> {
        self.source.notices()
    }

    fn skipped_lines(&self) -> u64 {
        self.source.skipped_lines()
    }
}

impl std::fmt::Debug for PeekedSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PeekedSource at {:?} ns", self.start_ns)
    }
}

impl std::fmt::Debug for Merge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Merge of {}", self.parts.len())
    }
}
