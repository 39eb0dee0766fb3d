//! Several traces made one, in the order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::batch::{Batch, EVENTS_A_BATCH};
use crate::source::{Notice, ReadError, Source};

/// Sources merged by time. What lies at the same time comes in the order of the sources, and what is in one source keeps its order whatever its
/// times are.
pub struct Merge {
    parts: Vec<Part>,
    /// The next event of each part that is not over: its time, and the part.
    next: BinaryHeap<Reverse<(u64, usize)>>,
    is_begun: bool,
    /// What a part failed with, told behind what was read before.
    failed: Option<ReadError>,
}

struct Part {
    source: Box<dyn Source + Send>,
    shift_ns: i64,
    batch: Batch,
    at: usize,
}

impl Merge {
    /// Of sources, each with what is added to its times, in ns. Times that would be before 0 are 0, those beyond 64 bits the largest.
    pub fn new(sources: Vec<(Box<dyn Source + Send>, i64)>) -> Merge {
        let part = |(source, shift_ns)| Part { source, shift_ns, batch: Batch::new(), at: 0 };
        Merge { parts: sources.into_iter().map(part).collect(), next: BinaryHeap::new(), is_begun: false, failed: None }
    }

    /// Enters the next event of a part, if there is one.
    fn enter(&mut self, index: usize) {
        let Some(part) = self.parts.get_mut(index) else { return };
        match part.time_ns() {
            Ok(Some(time_ns)) => self.next.push(Reverse((time_ns, index))),
            Ok(None) => {}
            Err(error) => self.failed = Some(error),
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
        while batch.len() < EVENTS_A_BATCH && self.failed.is_none() {
            let Some(Reverse((_, index))) = self.next.pop() else { break };
            let Some(part) = self.parts.get_mut(index) else { break };
            // As long as no other part has anything earlier, there is no need to ask the heap.
            let limit = self.next.peek().map_or((u64::MAX, usize::MAX), |Reverse(next)| *next);
            part.copy(batch, limit, index);
            self.enter(index);
        }
        match self.failed.take() {
            Some(error) if batch.is_empty() => {
                self.next.clear();
                Err(error)
            }
            failed => {
                self.failed = failed;
                Ok(())
            }
        }
    }

    fn notices(&mut self) -> Vec<Notice> {
        self.parts.iter_mut().flat_map(|part| part.source.notices()).collect()
    }
}

impl Part {
    /// The time of the next event; none at the end.
    fn time_ns(&mut self) -> Result<Option<u64>, ReadError> {
        if self.at >= self.batch.len() {
            self.at = 0;
            self.source.next(&mut self.batch)?;
        }
        Ok(self.batch.events().get(self.at).map(|event| event.time_ns.saturating_add_signed(self.shift_ns)))
    }

    /// Copies events up to the place of another part, and at least one.
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

/// A source of which the beginning is known already.
pub struct Begun {
    source: Box<dyn Source + Send>,
    first: Option<Batch>,
    start_ns: Option<u64>,
}

impl Begun {
    /// Reads the first batch of a source.
    ///
    /// # Errors
    /// Those of the source.
    pub fn new(mut source: Box<dyn Source + Send>) -> Result<Begun, ReadError> {
        let mut first = Batch::new();
        source.next(&mut first)?;
        let start_ns = first.start_ns();
        Ok(Begun { source, first: Some(first), start_ns })
    }

    /// The time of the first event that tells of a request, or of anything but names and clocks, in ns; none of a trace without any.
    pub fn start_ns(&self) -> Option<u64> {
        self.start_ns
    }
}

impl Source for Begun {
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
}

impl std::fmt::Debug for Begun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Begun at {:?} ns", self.start_ns)
    }
}

impl std::fmt::Debug for Merge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Merge of {}", self.parts.len())
    }
}
