//! The flusher: a kernel thread that writes dirty pages behind the writers' backs.
//!
//! As `pdflush` of Linux 2.6, it writes when more pages are dirty than the background ratio, and every few seconds
//! those that have been dirty for long. It writes a chunk of one file and turns to the next; its writes are
//! asynchronous, and it sleeps when the queue has no request for it. What it writes, and what else holds writers up, is in `writeback.rs`.

use hoistway_core::Op;

use super::state::World;
use crate::config::WriteBack;
use crate::events::EventKind;
use crate::record::Observer;

/// The flusher's process id.
pub(super) const PID: u32 = 100;

impl<S: Observer> World<S> {
    /// Whether writers have to wait.
    pub(super) fn has_too_much_dirty(&self) -> bool {
        self.cache.unwritten() > self.dirty_limits().most
    }

    /// A page has become dirty.
    pub(super) fn dirtied(&mut self) {
        if !self.flusher.ticking {
            self.flusher.ticking = true;
            self.events.arrange(self.now_ns + self.flush_interval_ns(), EventKind::FlushTick);
        }
        if self.has_background_work() {
            self.wake_flusher();
        }
    }

    pub(super) fn wake_flusher(&mut self) {
        self.wake(self.processes.len() as u32);
    }

    /// Every few seconds, while anything is dirty: old pages are to be written.
    pub(super) fn flush_tick(&mut self) {
        self.flusher.ticking = self.cache.dirty() > 0;
        if self.flusher.ticking {
            self.events.arrange(self.now_ns + self.flush_interval_ns(), EventKind::FlushTick);
            self.flusher.old_until_ns = self.now_ns.checked_sub(self.host.dirty_expire_ms * 1_000_000);
            self.wake_flusher();
        }
    }

    /// The flusher runs until it has nothing to write, or the queue has no room.
    pub(super) fn run_flusher(&mut self) {
        let task = self.processes.len() as u32;
        loop {
            if self.pay(task) {
                return;
            }
            if self.now_ns < self.flusher.until_ns {
                self.flusher.blocked = true;
                return;
            }
            if self.host.write_back == WriteBack::Pdflush && self.device.is_congested(Op::Write) {
                self.wait_for_relief(task);
                continue;
            }
            if self.device.is_held_back(task) || !self.flush_chunk(task) {
                self.flusher.blocked = true;
                return;
            }
        }
    }

    /// Writes a chunk of the next file that has something to write. Answers whether there was one.
    fn flush_chunk(&mut self, task: u32) -> bool {
        let until_ns = if self.has_background_work() { Some(u64::MAX) } else { self.flusher.old_until_ns };
        let Some(until_ns) = until_ns else { return false };
        let written = self.flush_pages(task, u64::from(self.host.flush_chunk_pages), until_ns);
        self.look_at_balance();
        if written == 0 {
            self.flusher.old_until_ns = None;
        }
        written > 0
    }

    fn has_background_work(&self) -> bool {
        self.cache.dirty() > self.dirty_limits().background || (!self.throttled.is_empty() && self.cache.dirty() > 0)
    }

    fn flush_interval_ns(&self) -> u64 {
        self.host.flush_interval_ms * 1_000_000
    }
}
