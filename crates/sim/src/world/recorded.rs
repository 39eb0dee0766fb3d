//! Processes that replay their recorded requests.

use hoistway_core::{Bio, Op};
use hoistway_fio::Direction;

use super::devices::MAIN;
use super::process::{DirectIo, Stage};
use super::state::{Flow, Token, World};
use super::task::ProcessId;
use crate::error::Defect;
use crate::record::Observer;
use crate::workload::recorded::ScriptedRequest;
use hoistway_workload::{IoUnit, Work};

impl<S: Observer> World<S> {
    /// Starts the next recorded request if it is due.
    pub(super) fn choose_recorded(&mut self, id: ProcessId) -> Result<Flow, Defect> {
        let process = &mut self.processes[id];
        if self.now_ns >= process.deadline_ns {
            process.stage = Stage::Leave;
            return Ok(Flow::On);
        }
        let (start_ns, now_ns) = (process.start_ns, self.now_ns);
        let Some(player) = &mut process.player else { return Ok(Flow::Block) };
        player.release(start_ns, now_ns);
        match player.next_ns() {
            Some(due_ns) if due_ns <= now_ns => match player.take() {
                Some(request) => self.begin_recorded(id, request, due_ns),
                None => Ok(Flow::Block),
            },
            Some(due_ns) => {
                let until_ns = due_ns.min(process.deadline_ns);
                Ok(self.sleep_until(id, until_ns))
            }
            None if process.in_flight > 0 => Ok(Flow::Block),
            None => {
                process.stage = Stage::Leave;
                Ok(Flow::On)
            }
        }
    }

    /// Submits a recorded request that was due at `due_ns`; a request longer than the queue's limit
    /// is submitted in pieces.
    fn begin_recorded(&mut self, id: ProcessId, request: ScriptedRequest, due_ns: u64) -> Result<Flow, Defect> {
        let ScriptedRequest { op, flags, preflush, fua, sector, sectors, wait, idle_ns: _ } = request;
        self.activity.note(self.now_ns);
        let process = &mut self.processes[id];
        let direction = if op == Op::Read { Direction::Read } else { Direction::Write };
        let unit = IoUnit::new(direction, 0, sector * 512, u64::from(sectors) * 512);
        let now_ns = self.now_ns;
        // The wait for room in a full queue is part of the latency of a request that comes at a
        // time of its own; one that follows a completion begins when it is submitted.
        let start_ns = if wait.outstanding_max == u32::MAX { due_ns } else { now_ns };
        let issued_ns = start_ns;
        let submitter = process.task.submitter;
        let slot = self.direct.insert(DirectIo::new(Work::Request, (id, submitter), unit, start_ns, issued_ns));
        process.in_flight += 1;
        process.stats.level.record_level(process.in_flight);
        process.stats.submit.record_batch(1);
        let context = self.devices[MAIN].context(submitter);
        let token = Token::Direct(slot).encode();
        if op == Op::Flush {
            self.direct.get_mut(slot).pending += 1;
            if !self.devices[MAIN].flush(submitter, token, now_ns)? {
                self.direct.get_mut(slot).pending -= 1;
            }
        }
        let (mut next, end) = (sector, sector + u64::from(sectors));
        while next < end {
            let sectors = (end - next).min(self.host.queue.max_sectors.into()) as u32;
            self.direct.get_mut(slot).pending += 1;
            let bio = Bio { token, context, op, sector: next, sectors, flags };
            match preflush || fua {
                true => self.devices[MAIN].submit_forced(submitter, bio, preflush, now_ns)?,
                false => self.devices[MAIN].submit(submitter, bio, now_ns)?,
            }
            next += u64::from(sectors);
        }
        // The request held one count of its own until all bios were submitted.
        self.direct_bio_over(slot, false)?;
        Ok(Flow::On)
    }
}
