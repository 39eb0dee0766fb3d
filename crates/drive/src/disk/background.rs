//! Background work of a disk: read-ahead, verification of writes, and write-back.
//!
//! Background work has no events of its own. It is computed up to the current time when the next
//! command arrives.

use super::media::{Media, MediaProgress};
use crate::command::{Access, Op, Phases, Service, Source};

impl Media {
    /// Computes the state of arm, buffer and write cache at `now_ns` after a time without commands.
    pub(super) fn background_until(&mut self, now_ns: u64) {
        self.read_ahead_until(now_ns);
        if self.verify.is_some() {
            self.verify_until(now_ns);
        }
        if self.write_cache.as_ref().is_some_and(|cache| !cache.is_empty()) {
            self.write_back_until(now_ns);
        }
    }

    /// Returns true if a write may complete in the write cache.
    pub(super) fn caches(&self, access: &Access) -> bool {
        self.write_cache.as_ref().is_some_and(|cache| !cache.is_too_small_for(u64::from(access.sectors)))
    }

    /// Returns true if the write cache has space for a write at `now_ns`.
    pub(super) fn has_room(&self, now_ns: u64, access: &Access) -> bool {
        let end = access.end();
        self.write_cache.as_ref().is_some_and(|cache| cache.has_room(now_ns, access.sector, end))
    }

    /// Writes back one run before the next command if the cache is above its high mark.
    pub(super) fn write_back_if_draining(&mut self, now_ns: u64) {
        if self.write_cache.as_ref().is_some_and(|cache| cache.is_draining()) {
            self.end_read_ahead();
            self.write_back(now_ns.max(self.busy_ns).max(self.released_ns));
        }
    }

    /// Drops sectors whose content is unused.
    pub(super) fn discard(&mut self, start: u64, end: u64) {
        if let Some(cache) = &mut self.write_cache {
            cache.remove(start, end);
        }
    }

    /// Writes back all dirty sectors, nearest first.
    pub(crate) fn flush(&mut self, now_ns: u64) -> Service {
        let now_ns = now_ns.max(self.free_ns);
        self.background_until(now_ns);
        if self.write_cache.as_ref().is_some_and(|cache| !cache.is_empty()) {
            self.end_read_ahead();
        }
        // The flush also waits for a run that is being written back.
        let mut phases = self.phases_of_wait(now_ns);
        let mut begin_ns = now_ns.max(self.busy_ns).max(self.released_ns);
        while self.write_back(begin_ns).is_some() {
            add(&mut phases, self.phases_of_wait(begin_ns));
            begin_ns = self.busy_ns;
        }
        let finish_ns = now_ns.max(self.busy_ns);
        self.released_ns = self.released_ns.max(finish_ns);
        self.free_ns = finish_ns;
        phases.seek_ns += finish_ns - now_ns - phases.total_ns();
        let source = if finish_ns > now_ns { Source::Media } else { Source::Buffer };
        Service { finish_ns, phases, source, cylinder: self.arm.cylinder }
    }

    /// Waits until the cache has space for the sectors. Returns that time, and the work of the arm
    /// in the meantime.
    pub(super) fn wait_for_space(&mut self, now_ns: u64, start: u64, end: u64) -> (u64, Phases) {
        let (mut room_ns, mut phases) = (now_ns, Phases::default());
        while let Some(cache) = self.write_cache.as_ref().filter(|cache| !cache.has_room(room_ns, start, end)) {
            if let Some(until_ns) = cache.space_ns(room_ns) {
                add(&mut phases, self.phases_of_wait(room_ns));
                room_ns = until_ns;
                continue;
            }
            self.end_read_ahead();
            let begin_ns = room_ns.max(self.busy_ns).max(self.released_ns);
            if self.write_back(begin_ns).is_none() {
                break;
            }
        }
        phases.seek_ns += (room_ns - now_ns).saturating_sub(phases.total_ns());
        (room_ns, phases)
    }

    /// Writes back the run with the shortest access time, or the part of a long run on one track.
    ///
    /// The arm is busy until the run is written. `None` if there is no dirty run.
    pub(super) fn write_back(&mut self, begin_ns: u64) -> Option<()> {
        let cache = self.write_cache.as_ref()?;
        let reach_ns = |first: u64| {
            let spot = self.geometry.locate(first);
            let moved_ns = self.mechanics.move_ns(&self.arm, &spot, Op::Write);
            moved_ns + self.platter.wait_ns(begin_ns + moved_ns, spot.angle)
        };
        let (first, after) = cache.nearest(self.arm_sector, reach_ns)?;
        let end = after.min(first + u64::from(self.geometry.locate(first).room));
        let mut progress = MediaProgress { now_ns: begin_ns, ..MediaProgress::default() };
        self.pass(&mut progress, first, end, Op::Write);
        self.set_busy(progress.now_ns, progress.rotation_ns, progress.transfer_ns);
        if let Some(cache) = &mut self.write_cache {
            cache.leave(first, end, progress.now_ns);
        }
        Some(())
    }

    /// Writes back while the arm is idle, or in any case while the cache is above its marks.
    fn write_back_until(&mut self, now_ns: u64) {
        while let Some(cache) = self.write_cache.as_ref().filter(|cache| !cache.is_empty()) {
            let mut begin_ns = self.released_ns.max(self.busy_ns).max(self.dirty_ns);
            if !cache.is_draining() {
                begin_ns = begin_ns.max(self.released_ns + cache.idle_ns());
                match self.ahead {
                    Some(ahead) if ahead.next < ahead.limit => return,
                    Some(ahead) => begin_ns = begin_ns.max(ahead.at_ns),
                    None => {}
                }
            }
            if begin_ns >= now_ns {
                return;
            }
            if cache.is_draining() {
                self.end_read_ahead();
            }
            self.write_back(begin_ns.max(self.busy_ns));
        }
    }

    /// Verifies written sectors while no command arrives, from the lowest address up and with a
    /// pause before each. At `now_ns` the arm is busy only while it moves to a sector.
    fn verify_until(&mut self, now_ns: u64) {
        let Some(mut verify) = self.verify.take() else { return };
        let mut begun_ns = self.free_ns.saturating_add(verify.delay_ns);
        while begun_ns < now_ns {
            let Some((index, access)) = verify.lowest() else { break };
            self.end_read_ahead();
            begun_ns = begun_ns.max(self.busy_ns);
            let spot = self.geometry.locate(access.sector);
            let arrived_ns = begun_ns + self.mechanics.move_ns(&self.arm, &spot, Op::Read);
            let found_ns = arrived_ns + self.platter.wait_ns(arrived_ns, spot.angle);
            let read_ns = found_ns + self.platter.turn_ns(spot.span(access.sectors));
            self.arm = spot;
            if read_ns > now_ns {
                self.set_busy(self.busy_ns.max(arrived_ns), 0, 0);
                break;
            }
            verify.remove(index);
            begun_ns = read_ns.saturating_add(verify.delay_ns);
        }
        self.verify = Some(verify);
    }
}

fn add(sum: &mut Phases, more: Phases) {
    sum.seek_ns += more.seek_ns;
    sum.rotation_ns += more.rotation_ns;
    sum.transfer_ns += more.transfer_ns;
}
