//! Flushes bypass the request queue. At most one is in progress; flushes that arrive meanwhile
//! share the next one.
//!
//! A flush covers all requests that completed before it arrived, including those that complete in
//! the same run. It does not wait for requests that are queued or in progress, because their
//! completion was not yet reported.
//!
//! A recorder gets the events that Linux has for such flushes: a submission for each flush, an
//! issue for the device's flush that covers them, and its completion.

use hoistway_core::{Event, Flags, Io, Op};

use super::DiskQueue;
use crate::entries::Stage;
use crate::ids::IoId;
use crate::medium::{Begin, Medium, MediumRequest, Output};
use crate::request::IoError;

/// The flushes of a queue.
#[derive(Debug, Default)]
pub(super) struct Flushes {
    /// Entries that wait for the next flush.
    waiting: Vec<IoId>,
    /// Entries that the flush in progress covers.
    covered: Vec<IoId>,
    in_progress: Option<FlushProgress>,
}

/// The state of the flush in progress.
#[derive(Debug)]
struct FlushProgress {
    /// The result of the medium's I/O, once it has ended.
    result: Option<Result<(), IoError>>,
    /// Whether the drive model has ended its flush.
    drive_done: bool,
}

impl Flushes {
    pub fn add(&mut self, io: IoId) {
        self.waiting.push(io);
    }

    pub fn wants_to_begin(&self) -> bool {
        self.in_progress.is_none() && !self.waiting.is_empty()
    }

    pub fn are_idle(&self) -> bool {
        self.in_progress.is_none() && self.waiting.is_empty()
    }

    /// Returns the number of flushes in the drive model.
    pub fn in_drive(&self) -> u32 {
        u32::from(self.in_progress.as_ref().is_some_and(|flush| !flush.drive_done))
    }

    /// Removes waiting flushes that are not wanted, and returns them.
    pub fn remove_unwanted(&mut self, is_wanted: impl Fn(IoId) -> bool) -> Vec<IoId> {
        let (kept, removed) = std::mem::take(&mut self.waiting).into_iter().partition(|io| is_wanted(*io));
        self.waiting = kept;
        removed
    }
}

impl<D, O: Output> DiskQueue<D, O> {
    /// Begins a flush if one waits and none is in progress. While the drive model is full the flush
    /// waits for one of its commands to end, and no other command begins before it.
    pub(super) fn begin_flush<M: Medium<Data = D, Output = O>>(&mut self, medium: &mut M, now_ns: u64) {
        while self.flushes.wants_to_begin() {
            let scheduler = &self.scheduler;
            if scheduler.medium.is_emulated && scheduler.in_flight() >= scheduler.depth {
                return;
            }
            let in_drive = medium.start_flush(now_ns);
            std::mem::swap(&mut self.flushes.covered, &mut self.flushes.waiting);
            for io in &self.flushes.covered {
                if let Some(entry) = self.entries.get_mut(*io) {
                    entry.stage = Stage::Dispatched;
                    entry.dispatch_ns = now_ns;
                }
            }
            self.flushes.in_progress = Some(FlushProgress { result: None, drive_done: !in_drive });
            self.scheduler.record(now_ns, Event::Issue(flush_io(IoId::FLUSH, 0)));
            if let Begin::Done(result) = medium.begin(MediumRequest::flush()) {
                self.flush_io_ended(result.map(|_| ()), now_ns);
            }
        }
    }

    /// Takes the result of the medium's I/O of the flush.
    pub(super) fn flush_io_ended(&mut self, result: Result<(), IoError>, now_ns: u64) {
        if let Some(flush) = &mut self.flushes.in_progress {
            flush.result = Some(result);
        }
        self.end_flush(now_ns);
    }

    /// Takes the end of the drive model's flush.
    pub(super) fn drive_flush_ended(&mut self, now_ns: u64) {
        if let Some(flush) = &mut self.flushes.in_progress {
            flush.drive_done = true;
        }
        self.end_flush(now_ns);
    }

    fn end_flush(&mut self, now_ns: u64) {
        let Some(FlushProgress { result: Some(result), drive_done: true }) = self.flushes.in_progress else { return };
        self.flushes.in_progress = None;
        self.scheduler.record(now_ns, Event::Complete(flush_io(IoId::FLUSH, 0)));
        self.scheduler.kicked = true;
        for io in std::mem::take(&mut self.flushes.covered) {
            self.finish_entry(io, result.map(|()| O::none()), now_ns);
        }
    }
}

/// Describes a flush for an event. The device's flush has no submitter: its process id is 0.
pub(super) fn flush_io(io: IoId, pid: u32) -> Io {
    Io { token: io.token(), pid, op: Op::Flush, sector: 0, sectors: 0, flags: Flags::SYNC }
}
