//! The way of a request from the queue to the drive, and of its completion back (steps 4 and 5 of
//! the [device](super)).

use hoistway_core::{DeferredWork, Flags, Kick, Next, Op, RequestId};
use hoistway_drive::{Access, Command, Status};

use super::flush::{ReadyStep, sequence_of};
use super::submit::Entry;
use super::{Device, InFlight, Origin, earlier};
use crate::error::Defect;
use crate::record::{HeadSample, Observer};

impl<S: Observer> Device<S> {
    /// Issues a queued request past all that wait, or puts it at the end of the dispatch list if
    /// the drive is full.
    pub(super) fn issue_directly(&mut self, id: RequestId, now_ns: u64) -> Result<(), Defect> {
        let has_room = self.in_flight.len() < self.depth;
        if self.queue.bypass(id, has_room, now_ns)
            && has_room
            && let Next::Request(id) = self.queue.next(now_ns)
        {
            self.start(id, now_ns)?;
        }
        Ok(())
    }

    /// Dispatches requests until the drive is full or the elevator has none to dispatch.
    pub(super) fn run(&mut self, now_ns: u64) -> Result<(), Defect> {
        while self.in_flight.len() < self.depth {
            if let Some(step) = self.flushes.next_step() {
                self.start_step(step, now_ns)?;
                continue;
            }
            let Next::Request(id) = self.queue.next(now_ns) else { return Ok(()) };
            self.start(id, now_ns)?;
        }
        if self.chooses_ahead {
            self.queue.choose_next(now_ns);
        }
        Ok(())
    }

    #[inline]
    pub(super) fn run_if_kicked(&mut self, kick: Kick, now_ns: u64) -> Result<(), Defect> {
        if kick == Kick::Run {
            self.run(now_ns)?;
        }
        Ok(())
    }

    pub(super) fn handle_kick(&mut self, kick: Kick, now_ns: u64) -> Result<(), Defect> {
        self.run_if_kicked(kick, now_ns)?;
        self.work(now_ns)
    }

    /// Does the queue's deferred work.
    #[inline]
    pub(super) fn work(&mut self, now_ns: u64) -> Result<(), Defect> {
        while let Some(work) = self.queue.next_work() {
            self.do_work(work, now_ns)?;
        }
        Ok(())
    }

    #[inline(never)]
    fn do_work(&mut self, work: DeferredWork, now_ns: u64) -> Result<(), Defect> {
        match work {
            DeferredWork::Run => self.run(now_ns)?,
            DeferredWork::Unplug => {}
            DeferredWork::Wake(context) => {
                if let Some(submitter) = self.submitters.of_context(context) {
                    self.resume(submitter, Entry::Woken, now_ns)?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn start(&mut self, id: RequestId, now_ns: u64) -> Result<(), Defect> {
        let Some(request) = self.queue.request(id) else {
            return Err(Defect::new(format!("request {id:?} is not there")));
        };
        let (op, sector, sectors) = (request.op(), request.sector(), request.sectors());
        let command = command_of(op, sector, sectors, request.flags());
        self.controllers.issued(id, op, now_ns);
        self.start_command(Origin::Request(id, op), &command, now_ns)?;
        if !matches!(op, Op::Flush | Op::Discard) {
            let pid = self.queue.context_of(id).map_or(0, |context| context.pid());
            self.count_transfer(pid, sector, sectors, now_ns);
        }
        Ok(())
    }

    #[inline]
    pub(super) fn start_command(&mut self, origin: Origin, command: &Command, now_ns: u64) -> Result<(), Defect> {
        self.meter.started(now_ns);
        let tag = self.in_flight.insert(InFlight { origin, at_ns: now_ns });
        if let Err(error) = self.drive.submit(now_ns, tag, command) {
            return Err(Defect::new(format!("the drive refused {command:?}: {error}")));
        }
        Ok(())
    }

    /// Time at which [`Self::drive_event`] is due.
    #[inline]
    pub fn next_drive_event(&self) -> Option<u64> {
        earlier(self.drive.next_event_ns(), self.transport.next_ns())
    }

    /// Handles an event of the drive. If a command completed, the tokens of its bios are added to
    /// `tokens`, and the answer says whether it failed; all of its bios fail with it.
    pub fn drive_event(&mut self, now_ns: u64, tokens: &mut Vec<u64>) -> Result<Option<bool>, Defect> {
        let arrived = self.transport.arrived(now_ns);
        let completed = || self.drive.poll(now_ns).and_then(|completion| self.transport.send(completion, now_ns));
        let Some(completion) = arrived.or_else(completed) else { return Ok(None) };
        let InFlight { origin, at_ns: issued_ns } = self.in_flight.remove(completion.tag);
        let phases = &completion.service.phases;
        debug_assert_eq!(phases.total_ns(), now_ns - issued_ns, "the phases are the whole time");
        self.meter.completed(phases, self.in_flight.is_empty(), now_ns);
        let failed = completion.status != Status::Done;
        match origin {
            Origin::Step(step) => {
                match step {
                    ReadyStep::Flush => self.flushes.end_flush(failed, tokens),
                    ReadyStep::Data(sequence) => self.flushes.end_data(sequence, failed, tokens),
                }
                self.take_steps(now_ns)?;
            }
            Origin::Request(id, op) => {
                self.complete_in_queue(id, failed, now_ns, tokens)?;
                let is_there = |id| self.queue.request(id).is_some();
                let admitted = self.controllers.completed((id, op), now_ns - issued_ns, now_ns, is_there);
                self.resume_admitted(admitted, now_ns)?;
                while let Some(submitter) = self.submitters.refused.pop_front() {
                    if !self.resume(submitter, Entry::New, now_ns)? {
                        break;
                    }
                }
                self.work(now_ns)?;
            }
        }
        Ok(Some(failed))
    }

    /// Completes a request in the queue. Data of a sequence go back to the flush machinery.
    fn complete_in_queue(
        &mut self,
        id: RequestId,
        failed: bool,
        now_ns: u64,
        tokens: &mut Vec<u64>,
    ) -> Result<(), Defect> {
        if self.flushes.has_queued_data() {
            // A flush after these data is the next command, before requests of the queue.
            let sequences: Vec<u32> = self.queue.tokens(id).filter_map(sequence_of).collect();
            for sequence in sequences {
                self.flushes.end_queued_data(sequence, failed, tokens);
            }
        }
        let done = |token: u64| {
            if sequence_of(token).is_none() {
                tokens.push(token);
            }
        };
        match self.queue.complete(id, now_ns, done) {
            Ok(kick) => self.handle_kick(kick, now_ns)?,
            Err(stale) => return Err(Defect::new(format!("a completion was refused: {stale:?}"))),
        }
        if self.flushes.is_ready() {
            // The queue has no reason to run for them.
            self.run(now_ns)?;
        }
        self.note_congestion();
        Ok(())
    }

    /// Counts a transfer that was started for a process.
    #[inline]
    pub(super) fn count_transfer(&mut self, pid: u32, sector: u64, sectors: u32, now_ns: u64) {
        self.meter.transferred(pid, sectors);
        if S::ENABLED && self.queue.sink().is_on() {
            self.meter.head.push(HeadSample { at_ns: now_ns, sector, pid });
        }
    }
}

/// The drive command for a request.
pub(super) fn command_of(op: Op, sector: u64, sectors: u32, flags: Flags) -> Command {
    let fua = flags.has(Flags::FUA);
    match op {
        Op::Read => Command::Transfer { access: Access { op: hoistway_drive::Op::Read, sector, sectors }, fua },
        Op::Write => Command::Transfer { access: Access { op: hoistway_drive::Op::Write, sector, sectors }, fua },
        Op::Flush => Command::Flush,
        Op::Discard => Command::Discard { sector, sectors },
    }
}
