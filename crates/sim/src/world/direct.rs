//! Direct I/O, which bypasses the page cache.

use hoistway_core::{Bio, Flags, Op};
use hoistway_fio::Direction;

use super::process::{DirectIo, Stage};
use super::state::{Flow, Token, World};
use crate::record::Observer;
use crate::workload::offsets::IoUnit;

impl<S: Observer> World<S> {
    /// Submits a request's bios: one per extent, none larger than the queue's largest request.
    pub(super) fn begin_direct(&mut self, task: u32, unit: IoUnit) -> Flow {
        let process = &mut self.processes[task as usize];
        let file = process.files[unit.file].file;
        let io =
            DirectIo { process: task, unit, start_ns: self.now_ns, issued_ns: self.now_ns, pending: 1, failed: false };
        let slot = self.direct.insert(io);
        process.in_flight += 1;
        if !process.is_async() {
            process.stage = Stage::Direct;
        }
        let (op, flags) = match unit.direction {
            Direction::Read => (Op::Read, Flags::NONE),
            Direction::Write => (Op::Write, Flags::SYNC),
        };
        if unit.direction == Direction::Write {
            self.record_change(file, unit.offset + unit.bytes);
        }
        let context = self.device.context(task);
        let (mut sector, end) = (unit.offset / 512, (unit.offset + unit.bytes) / 512);
        self.device.plug(task);
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
            self.device.submit(task, bio, self.now_ns);
        }
        self.device.finish_plug(task, self.now_ns);
        let costs = self.host.costs;
        let process = &mut self.processes[task as usize];
        process.debt_ns += process.call_ns(costs.system_call_ns) + bios * costs.bio_ns;
        self.direct.get_mut(slot).issued_ns = self.now_ns + process.debt_ns;
        // The request held one count of its own until all bios were submitted.
        self.direct_bio_over(slot, false);
        Flow::On
    }

    pub(super) fn direct_bio_over(&mut self, slot: u32, failed: bool) {
        let io = self.direct.get_mut(slot);
        io.failed |= failed;
        io.pending -= 1;
        if io.pending == 0 {
            let task = io.process;
            self.processes[task as usize].completed.push(slot);
            self.wake(task);
        }
    }

    /// Reaps the completed requests of a process.
    pub(super) fn reap(&mut self, task: u32) {
        let process = &mut self.processes[task as usize];
        if process.completed.is_empty() {
            return;
        }
        let call_ns = process.call_ns(self.host.costs.system_call_ns);
        process.stats.complete.record_batch(process.completed.len() as u32);
        if let Some(player) = &mut process.player {
            player.completed(process.completed.len() as u64);
        }
        while let Some(slot) = process.completed.pop() {
            let io = self.direct.remove(slot);
            process.in_flight -= 1;
            process.debt_ns += self.host.costs.completion_ns;
            match io.failed {
                true => process.fail(self.now_ns),
                false => process.record(&io.unit, io.start_ns, io.issued_ns, self.now_ns),
            }
        }
        process.debt_ns += call_ns;
    }

    /// Sleeps until the only request of a synchronous process completes.
    pub(super) fn wait_direct(&mut self, task: u32) -> Flow {
        let process = &mut self.processes[task as usize];
        let Some(slot) = process.completed.pop() else { return Flow::Block };
        let io = self.direct.remove(slot);
        process.in_flight -= 1;
        process.debt_ns += self.host.costs.completion_ns;
        process.current.unit = io.unit;
        process.current.start_ns = io.start_ns;
        // O_SYNC covers the file system's metadata of the data, too.
        let syncs = io.unit.direction == Direction::Write && process.job.sync && self.journal.is_some();
        process.stage = if syncs { Stage::WriteThrough } else { Stage::Finish };
        if io.failed {
            process.stage = Stage::Finish;
            process.fail(self.now_ns);
        }
        Flow::On
    }
}
