//! Verification: the reads of what a job has written.

use std::collections::VecDeque;

use hoistway_fio::{Direction, Distribution, Job};

use crate::request::IoUnit;

/// The written blocks of a job that have not been verified.
#[derive(Clone, Debug)]
pub(crate) struct Verification {
    written: VecDeque<Written>,
    /// Blocks to verify before the next write.
    due: u64,
    /// Blocks after which some are verified, and how many of them; 0 for the end of the pass.
    backlog: u64,
    batch: u64,
    /// True if blocks may be written twice, or if there are several files: then each block is
    /// verified once, in the order of files and offsets.
    is_sorted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Written {
    file: u32,
    bytes: u32,
    offset: u64,
}

impl Verification {
    /// The verification of a job on this many files; `None` if it verifies nothing, as a job whose
    /// time is over before the end of a pass.
    pub fn new(job: &Job, files: usize) -> Option<Verification> {
        let (options, requests) = (&job.verification, &job.requests);
        let backlog = options.verify_backlog;
        let batch = if options.verify_backlog_batch > 0 { options.verify_backlog_batch } else { backlog };
        let has_turn = !job.end.time_based || backlog > 0;
        (options.verifies && options.do_verify && requests.rw.writes() && has_turn).then(|| Verification {
            written: VecDeque::new(),
            due: 0,
            backlog,
            batch,
            is_sorted: files > 1 || requests.norandommap || requests.random_distribution != Distribution::Random,
        })
    }

    /// Adds a written block.
    pub fn wrote(&mut self, unit: &IoUnit) {
        let bytes = u32::try_from(unit.bytes).unwrap_or(u32::MAX);
        self.written.push_back(Written { file: unit.file as u32, bytes, offset: unit.offset });
        if self.backlog > 0 && self.due == 0 && self.written.len() as u64 >= self.backlog {
            self.due = self.batch;
        }
    }

    /// Returns true if a block is due.
    pub fn is_due(&self) -> bool {
        self.due > 0 && !self.written.is_empty()
    }

    /// The next block that is due.
    pub fn next(&mut self) -> Option<IoUnit> {
        if self.due == 0 {
            return None;
        }
        self.due -= 1;
        let Some(written) = self.written.pop_front() else {
            self.due = 0;
            return None;
        };
        Some(IoUnit::new(Direction::Read, written.file as usize, written.offset, u64::from(written.bytes)))
    }

    /// Makes all written blocks due. Returns false if there is none.
    pub fn begin(&mut self) -> bool {
        if self.is_sorted {
            let blocks = self.written.make_contiguous();
            blocks.sort_unstable_by_key(|block| (block.file, block.offset, std::cmp::Reverse(block.bytes)));
            let mut once: VecDeque<Written> = VecDeque::new();
            for block in self.written.drain(..) {
                if once.back().is_none_or(|last| (last.file, last.offset) != (block.file, block.offset)) {
                    once.push_back(block);
                }
            }
            self.written = once;
        }
        self.due = self.written.len() as u64;
        self.due > 0
    }
}
