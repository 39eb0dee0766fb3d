//! Flushes pass by the queue: one is under way at most, and those that come meanwhile share the next one.
//!
//! A flush covers what was answered before it came, also by the same run of the device. What is still queued or under way it need not wait
//! for: nobody has been told that it is done.

use hoistway_drive::Command;
use hoistway_nbd::wire::Errno;

use super::dispatch::{DRIVE_FLUSH, FLUSH_TAG, tag_of};
use super::work::Stage;
use super::{Answer, Device, WorkOp};
use crate::backend::{Operation, Started};
use crate::engine::Engine;

/// The flushes of a device.
#[derive(Debug, Default)]
pub(super) struct Flushes {
    /// They wait for the next one.
    waiting: Vec<u32>,
    /// They wait for the one that is under way.
    covered: Vec<u32>,
    under_way: Option<UnderWay>,
    /// A flush or a durable write has failed: what was written before may be lost, whatever a later flush would say.
    failed: Option<Errno>,
}

/// A flush that has begun.
#[derive(Debug)]
struct UnderWay {
    backend: Option<Result<(), Errno>>,
    drive_done: bool,
}

impl Flushes {
    pub fn add(&mut self, slot: u32) {
        self.waiting.push(slot);
    }

    pub fn wants_to_begin(&self) -> bool {
        self.under_way.is_none() && !self.waiting.is_empty()
    }

    pub fn are_idle(&self) -> bool {
        self.under_way.is_none() && self.waiting.is_empty()
    }

    /// Whether the drive has one.
    pub fn in_drive(&self) -> u32 {
        u32::from(self.under_way.as_ref().is_some_and(|flush| !flush.drive_done))
    }

    /// What was answered before may not be durable, and never will be: the system has given up what it could not write, and would call the next
    /// flush a success. All flushes fail from now on.
    pub fn fail(&mut self, errno: Errno) {
        self.failed.get_or_insert(errno);
    }

    /// Whether flushes fail whatever happens.
    pub fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// Forgets those that wait and are not wanted any more.
    pub fn retain(&mut self, is_wanted: impl Fn(u32) -> bool) -> Vec<u32> {
        let (kept, gone) = std::mem::take(&mut self.waiting).into_iter().partition(|slot| is_wanted(*slot));
        self.waiting = kept;
        gone
    }
}

impl Device {
    /// Begins a flush, if one is wanted and none is under way. A drive that is full takes it as soon as one of its commands is over: nothing else is
    /// begun before.
    pub(super) fn begin_flush<E: Engine>(&mut self, engine: &mut E, now_ns: u64) {
        while self.flushes.wants_to_begin() {
            if let Some(emulated) = &mut self.emulated {
                if self.in_flight >= self.depth {
                    return;
                }
                // A flush names no sectors: there is nothing to refuse.
                let _ = emulated.submit(now_ns, DRIVE_FLUSH, &Command::Flush);
            }
            std::mem::swap(&mut self.flushes.covered, &mut self.flushes.waiting);
            for slot in &self.flushes.covered {
                if let Some(entry) = self.entries.get_mut(*slot) {
                    entry.stage = Stage::Begun;
                    entry.begun_ns = now_ns;
                }
            }
            self.flushes.under_way = Some(UnderWay { backend: None, drive_done: self.emulated.is_none() });
            let tag = tag_of(self.index, FLUSH_TAG);
            let started = self.backend.begin(engine, Operation::plain(tag, WorkOp::Flush, 0, 0));
            self.flush_started(started, now_ns);
        }
    }

    /// What became of the backend's part.
    pub(super) fn flush_started(&mut self, started: Started, now_ns: u64) {
        let Started::Done(result) = started else { return };
        if let Some(flush) = &mut self.flushes.under_way {
            flush.backend = Some(result.map(|_| ()));
        }
        self.end_flush(now_ns);
    }

    /// The drive's part is over.
    pub(super) fn drive_flushed(&mut self, now_ns: u64) {
        if let Some(flush) = &mut self.flushes.under_way {
            flush.drive_done = true;
        }
        self.end_flush(now_ns);
    }

    fn end_flush(&mut self, now_ns: u64) {
        let Some(UnderWay { backend: Some(result), drive_done: true }) = self.flushes.under_way else { return };
        self.flushes.under_way = None;
        self.kicked = true;
        if let Err(errno) = result {
            self.flushes.fail(errno);
            tracing::error!(
                device = self.name,
                "a flush has failed ({errno:?}): what was written may be lost, and all further flushes fail"
            );
        }
        let result = self.flushes.failed.map_or(result, Err);
        for slot in std::mem::take(&mut self.flushes.covered) {
            self.finish_entry(slot, result.map(|()| Answer::Nothing), now_ns);
        }
    }
}
