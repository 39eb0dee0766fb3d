//! The flusher: a kernel thread that writes dirty pages back.
//!
//! Like `pdflush` of Linux 2.6, it writes while more pages are dirty than the background ratio
//! allows. Every few seconds it also writes the pages that have been dirty for long. It writes a
//! chunk of one file and then turns to the next file. Its writes are asynchronous, and it sleeps
//! while the queue has no free request. Throttling of writers is in `writeback.rs`.

use hoistway_core::Op;

use super::devices::MAIN;
use super::state::World;
use super::task::Task;
use crate::config::WriteBack;
use crate::error::Defect;
use crate::events::EventKind;
use crate::record::Observer;

/// The flusher's process id.
pub(super) const PID: u32 = 100;

impl<S: Observer> World<S> {
    /// Returns true if writers have to wait.
    pub(super) fn has_too_much_dirty(&self) -> bool {
        self.cache.unwritten() > self.dirty_limits().most
    }

    /// Schedules the flusher's work after a page became dirty.
    pub(super) fn dirtied(&mut self) {
        if !self.flusher.ticking {
            self.flusher.ticking = true;
            self.events.schedule(self.now_ns + self.flush_interval_ns(), EventKind::FlushTick);
        }
        if self.has_background_work() {
            self.wake_flusher();
        }
    }

    pub(super) fn wake_flusher(&mut self) {
        self.wake(Task::Flusher);
    }

    /// Marks old pages as due for write-back; repeats every few seconds while a page is dirty.
    pub(super) fn flush_tick(&mut self) {
        self.flusher.ticking = self.cache.dirty() > 0;
        if self.flusher.ticking {
            self.events.schedule(self.now_ns + self.flush_interval_ns(), EventKind::FlushTick);
            self.flusher.old_until_ns = self.now_ns.checked_sub(self.host.dirty_expire_ms * 1_000_000);
            self.wake_flusher();
        }
    }

    /// Runs the flusher until it has nothing to write or the queue has no room.
    pub(super) fn run_flusher(&mut self) -> Result<(), Defect> {
        let submitter = self.flusher.task.submitter;
        loop {
            if self.pay(Task::Flusher) {
                return Ok(());
            }
            if self.now_ns < self.flusher.until_ns {
                self.flusher.task.is_blocked = true;
                return Ok(());
            }
            if self.host.write_back == WriteBack::Pdflush && self.devices[MAIN].is_congested(Op::Write) {
                self.wait_for_congestion(Task::Flusher);
                continue;
            }
            if self.devices[MAIN].is_held_back(submitter) || !self.flush_chunk()? {
                self.flusher.task.is_blocked = true;
                return Ok(());
            }
        }
    }

    /// Writes a chunk of the next file with dirty pages. Returns false if there was none.
    fn flush_chunk(&mut self) -> Result<bool, Defect> {
        let until_ns = if self.has_background_work() { Some(u64::MAX) } else { self.flusher.old_until_ns };
        let Some(until_ns) = until_ns else { return Ok(false) };
        let written = self.flush_pages(Task::Flusher, u64::from(self.host.flush_chunk_pages), until_ns)?;
        self.update_balance();
        if written == 0 {
            self.flusher.old_until_ns = None;
        }
        Ok(written > 0)
    }

    fn has_background_work(&self) -> bool {
        self.cache.dirty() > self.dirty_limits().background
            || (!self.waiting.throttled.is_empty() && self.cache.dirty() > 0)
    }

    fn flush_interval_ns(&self) -> u64 {
        self.host.flush_interval_ms * 1_000_000
    }
}
