//! Direct I/O, which bypasses the page cache.

use hoistway_core::{Bio, Flags, Op};
use hoistway_fio::{Direction, Ioengine, WriteSync};

use super::devices::{DriveId, MAIN};
use super::process::{AfterData, DirectIo, Stage};
use super::state::{Flow, Token, World};
use super::task::{ProcessId, SubmitterId};
use crate::error::Defect;
use crate::events::EventKind;
use crate::record::Observer;
use hoistway_workload::{IoUnit, Work};

/// The durability that a direct request has when it completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Durability {
    /// Its data have reached the drive, which may have them in its cache.
    Cached,
    /// A flush of the drive's cache, or a commit of the journal, follows the data.
    Committed,
    /// Each of its bios is written with FUA, and a flush follows as well. That flush is
    /// superfluous, but the kernels send it (docs/guest.md).
    Forced,
}

/// Requests of a call from which the kernel plugs it.
const PLUGGED_REQUESTS: usize = 3;

impl<S: Observer> World<S> {
    /// Submits a request, before or after the CPU time of its submission.
    pub(super) fn begin_direct(&mut self, id: ProcessId, unit: IoUnit) -> Result<Flow, Defect> {
        if self.works_first && unit.direction != Direction::Trim {
            let bios = unit.bytes.div_ceil(u64::from(self.host.queue.max_sectors) * 512);
            let drive = self.drive_of(id, &unit);
            let call_ns = self.processes[id].call_ns(self.host.costs.system_call_ns);
            let process = &mut self.processes[id];
            process.task.debt_ns += self.host.costs.program_ns + call_ns + bios * self.host.costs.bio_ns;
            process.submission.elevator = Some((drive, bios));
            process.submission.next = Some((unit, self.now_ns));
            process.stage = Stage::Submit;
            return Ok(Flow::On);
        }
        let (slot, bios) = self.submit_one(id, unit, self.now_ns)?;
        let costs = self.host.costs;
        let process = &mut self.processes[id];
        process.task.debt_ns += process.call_ns(costs.system_call_ns) + bios * costs.bio_ns;
        self.direct.get_mut(slot).issued_ns = self.now_ns + process.task.debt_ns;
        // The request held one count of its own until all bios were submitted.
        self.direct_bio_over(slot, false)?;
        Ok(Flow::On)
    }

    /// Submits the request whose submission is paid for.
    pub(super) fn submit(&mut self, id: ProcessId) -> Result<Flow, Defect> {
        let process = &mut self.processes[id];
        process.stage = Stage::Choose;
        let Some((unit, start_ns)) = process.submission.next.take() else { return Ok(Flow::On) };
        let (slot, _) = self.submit_one(id, unit, start_ns)?;
        self.direct_bio_over(slot, false)?;
        Ok(Flow::On)
    }

    /// The drive with the data of a request.
    fn drive_of(&self, id: ProcessId, unit: &IoUnit) -> DriveId {
        self.files[self.processes[id].files[unit.file].file as usize].drive
    }

    /// Submits a request in a call of its own. Returns the request and the number of its bios.
    fn submit_in_call(
        &mut self,
        id: ProcessId,
        submitter: SubmitterId,
        unit: IoUnit,
        start_ns: u64,
    ) -> Result<(u32, u64), Defect> {
        let drive = self.drive_of(id, &unit);
        self.devices[drive].plug_call(submitter);
        let (slot, bios) = self.submit_direct(id, submitter, unit, start_ns)?;
        self.devices[drive].finish_call(submitter, bios > 1, self.now_ns)?;
        Ok((slot, bios))
    }

    /// Submits a request that began at `start_ns`. Returns the request and the number of its bios.
    fn submit_one(&mut self, id: ProcessId, unit: IoUnit, start_ns: u64) -> Result<(u32, u64), Defect> {
        let submitter = self.submitter_for(id, &unit);
        let (slot, bios) = self.submit_in_call(id, submitter, unit, start_ns)?;
        let process = &mut self.processes[id];
        if unit.direction == Direction::Trim {
            // Every engine trims synchronously.
            process.submission.trim = Some(slot);
            process.stage = Stage::Direct;
        } else if !process.is_async() {
            process.stage = Stage::Direct;
        }
        Ok((slot, bios))
    }

    /// Submits the chosen requests of a process in one call.
    pub(super) fn submit_batch(&mut self, id: ProcessId) -> Result<(), Defect> {
        let units = std::mem::take(&mut self.processes[id].submission.batch);
        let costs = self.host.costs;
        let mut elevator = None;
        let mut slots = Vec::with_capacity(units.len());
        let mut all_bios = 0;
        let own = self.processes[id].task.submitter;
        self.devices[MAIN].plug_call(own);
        for unit in units {
            let (drive, submitter) = (self.drive_of(id, &unit), self.submitter_for(id, &unit));
            let (slot, bios) = match (drive, submitter) == (MAIN, own) {
                true => self.submit_direct(id, submitter, unit, self.now_ns)?,
                false => self.submit_in_call(id, submitter, unit, self.now_ns)?,
            };
            elevator = Some((drive, bios + elevator.map_or(0, |(_, bios)| bios)));
            all_bios += bios;
            slots.push(slot);
        }
        let is_plugged = slots.len() >= PLUGGED_REQUESTS || all_bios > slots.len() as u64;
        self.devices[MAIN].finish_call(own, is_plugged, self.now_ns)?;
        let process = &mut self.processes[id];
        process.stats.submit.record_batch(slots.len() as u32);
        process.task.debt_ns += process.call_ns(costs.system_call_ns) + all_bios * costs.bio_ns;
        process.task.debt_ns += slots.len() as u64 * costs.program_ns;
        process.submission.elevator = elevator;
        let issued_ns = self.now_ns + process.task.debt_ns;
        for slot in slots {
            self.direct.get_mut(slot).issued_ns = issued_ns;
            self.direct_bio_over(slot, false)?;
        }
        Ok(())
    }

    /// Submits a request's bios: one per extent, none larger than the queue's largest request.
    /// Returns the request and the number of its bios.
    fn submit_direct(
        &mut self,
        id: ProcessId,
        submitter: SubmitterId,
        unit: IoUnit,
        start_ns: u64,
    ) -> Result<(u32, u64), Defect> {
        let process = &mut self.processes[id];
        let file = process.files[unit.file].file;
        let drive = self.files[file as usize].drive;
        let issued_ns = self.now_ns;
        let slot = self.direct.insert(DirectIo::new(Work::Request, (id, submitter), unit, start_ns, issued_ns));
        process.in_flight += 1;
        let passes_fua = process.job.syncs.writefua;
        let durability = self.durability_of(id, &unit);
        if durability != Durability::Cached {
            self.direct.get_mut(slot).after = AfterData::Commit;
        }
        let written = if self.devices[MAIN].layer().idles_for_direct_writes() {
            Flags::SYNC.and(Flags::IDLE)
        } else {
            Flags::SYNC
        };
        let (op, flags) = match unit.direction {
            Direction::Read => (Op::Read, Flags::NONE),
            Direction::Write if passes_fua => (Op::Write, written.and(Flags::FUA)),
            Direction::Write => (Op::Write, written),
            Direction::Trim => (Op::Discard, Flags::SYNC),
        };
        if unit.direction == Direction::Write {
            self.record_change(file, unit.offset + unit.bytes);
        }
        let (now_ns, context) = (self.now_ns, self.devices[drive].context(submitter));
        let (mut sector, end) = (unit.offset / 512, (unit.offset + unit.bytes) / 512);
        let mut bios = 0;
        while sector < end {
            let Some((disk, room)) = self.files[file as usize].locate(sector) else { break };
            let sectors = room.min(end - sector).min(u64::from(self.host.queue.max_sectors));
            sector += sectors;
            bios += 1;
            let flags = if sector == end { flags.and(Flags::UNPLUG) } else { flags };
            let bio =
                Bio { token: Token::Direct(slot).encode(), context, op, sector: disk, sectors: sectors as u32, flags };
            self.direct.get_mut(slot).pending += 1;
            match durability {
                Durability::Forced => self.devices[drive].submit_forced(submitter, bio, false, now_ns)?,
                Durability::Cached | Durability::Committed => self.devices[drive].submit(submitter, bio, now_ns)?,
            }
        }
        Ok((slot, bios))
    }

    /// The durability of a request's data. A process that waits for each of its requests commits
    /// to a journal itself ([`Stage::WriteThrough`]).
    fn durability_of(&self, id: ProcessId, unit: &IoUnit) -> Durability {
        let process = &self.processes[id];
        if unit.direction != Direction::Write || process.job.syncs.sync == WriteSync::None {
            return Durability::Cached;
        }
        let file = process.files[unit.file].file;
        if self.journal.as_ref().is_some_and(|journal| journal.covers(file)) {
            return if process.is_async() { Durability::Committed } else { Durability::Cached };
        }
        if self.devices[MAIN].forces_direct_writes() { Durability::Forced } else { Durability::Committed }
    }

    pub(super) fn direct_bio_over(&mut self, slot: u32, failed: bool) -> Result<(), Defect> {
        let io = self.direct.get_mut(slot);
        io.failed |= failed;
        io.pending -= 1;
        if io.pending > 0 {
            return Ok(());
        }
        let after = std::mem::replace(&mut io.after, AfterData::Nothing);
        let io = *io;
        if !io.failed && io.work == Work::Request && io.unit.direction == Direction::Write {
            let process = &self.processes[io.process];
            let (file, data_only) = (process.files[io.unit.file].file, process.job.syncs.sync == WriteSync::Dsync);
            self.record_written(file, io.unit.offset + io.unit.bytes);
            if after == AfterData::Commit {
                self.direct.get_mut(slot).pending = 1;
                if self.commit_request(slot, io.submitter, file, data_only)? {
                    return Ok(());
                }
                self.direct.get_mut(slot).pending = 0;
            }
        }
        match self.processes[io.process].ends.turnaround_ns(self.now_ns) {
            Some(at_ns) => self.events.schedule(at_ns, EventKind::Answered(slot)),
            None => self.answered(slot),
        }
        Ok(())
    }

    /// Hands a completed request to its process.
    pub(super) fn answered(&mut self, slot: u32) {
        let io = *self.direct.get_mut(slot);
        let process = &mut self.processes[io.process];
        process.completed.push(slot);
        if process.task.is_blocked && process.completed.len() as u32 >= process.reap_min() {
            process.task.debt_ns += self.host.costs.wake_ns;
        }
        if process.job.submission.is_offloaded() && io.submitter != process.task.submitter {
            process.submission.workers.push(io.submitter);
        }
        self.wake(io.process.into());
    }

    /// Reaps the completed requests of a process.
    pub(super) fn reap(&mut self, id: ProcessId) -> Result<(), Defect> {
        let process = &mut self.processes[id];
        if process.completed.is_empty() || (process.completed.len() as u32) < process.reap_min() {
            return Ok(());
        }
        let in_ring = self.works_first && process.job.submission.ioengine == Ioengine::IoUring;
        let call_ns = if in_ring { 0 } else { process.call_ns(self.host.costs.system_call_ns) };
        // fio takes completed requests one at a time, unless the job says otherwise. With other
        // engines this matters where the last completion decides whether a sync is due.
        let most =
            if in_ring || process.job.syncs.are_between_requests() { process.reap_min() as usize } else { usize::MAX };
        let count = process.completed.len().min(process.reap_max()).min(most);
        process.stats.complete.record_batch(count as u32);
        if let Some(player) = &mut process.player {
            self.activity.note(self.now_ns);
            player.completed(count as u64, self.activity.idle_ns);
        }
        process.task.debt_ns += call_ns;
        if count < process.completed.len() {
            // The next call follows at once, even if calls cost nothing.
            process.task.debt_ns = process.task.debt_ns.max(1);
        }
        for index in (0..count).rev() {
            let slot = self.processes[id].completed.remove(index);
            let io = self.direct.remove(slot);
            let process = &mut self.processes[id];
            process.in_flight -= 1;
            process.pay_completion();
            process.generator.completed(io.work);
            match (io.failed, io.work) {
                (true, _) => process.fail(self.now_ns),
                (false, Work::Sync) => process.record_sync(io.start_ns, self.now_ns),
                (false, Work::Request) => {
                    process.record(&io.unit, io.start_ns, io.issued_ns, self.now_ns);
                    self.check_completed(id, &io.unit, io.start_ns)?;
                }
            }
        }
        Ok(())
    }

    /// Sleeps until the only request of a synchronous process completes.
    pub(super) fn wait_direct(&mut self, id: ProcessId) -> Result<Flow, Defect> {
        let process = &mut self.processes[id];
        let slot = match process.submission.trim {
            Some(trim) => {
                process.completed.iter().position(|slot| *slot == trim).map(|at| process.completed.remove(at))
            }
            None => process.completed.pop(),
        };
        let Some(slot) = slot else { return Ok(Flow::Block) };
        process.submission.trim = None;
        let io = self.direct.remove(slot);
        process.in_flight -= 1;
        process.pay_completion();
        process.current.unit = io.unit;
        process.current.start_ns = io.start_ns;
        // O_SYNC covers the file system's metadata of the data, too.
        let file = process.files[io.unit.file].file;
        let syncs = io.unit.direction == Direction::Write
            && process.job.syncs.sync != WriteSync::None
            && self.journal.as_ref().is_some_and(|journal| journal.covers(file));
        process.stage = if syncs { Stage::WriteThrough } else { Stage::Finish };
        if io.failed {
            process.stage = Stage::Finish;
            process.fail(self.now_ns);
        }
        Ok(Flow::On)
    }
}
