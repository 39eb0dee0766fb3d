//! Flushes of the drive's cache, and writes that are safe when they complete.

use hoistway_core::{Bio, BlockLayer, Flags, Op};
use hoistway_drive::Command;

use super::super::task::SubmitterId;
use super::flush::{FlushRules, ReadyStep};
use super::issue::command_of;
use super::submit::Entry;
use super::{Device, Origin};
use crate::error::Defect;
use crate::record::Observer;

impl<S: Observer> Device<S> {
    /// Flushes the drive's cache; the completion has this token. Returns false if the cache needs
    /// no flush: nothing completes.
    pub fn flush(&mut self, submitter: SubmitterId, token: u64, now_ns: u64) -> Result<bool, Defect> {
        match self.flush_rules {
            FlushRules::WriteThrough { .. } => return Ok(false),
            FlushRules::Barriers => {
                let flags = Flags::BARRIER.and(Flags::SYNC);
                let context = self.context(submitter);
                self.submit(submitter, Bio { token, context, op: Op::Write, sector: 0, sectors: 0, flags }, now_ns)?;
            }
            FlushRules::Sequences { .. } => {
                self.flushes.add_flush(token);
                self.run(now_ns)?;
            }
        }
        Ok(true)
    }

    /// Submits a write with FUA: it is on the medium when it completes. With `preflush`, all writes
    /// that completed before it are on the medium before it is.
    pub fn submit_forced(
        &mut self,
        submitter: SubmitterId,
        bio: Bio,
        preflush: bool,
        now_ns: u64,
    ) -> Result<(), Defect> {
        let with = |flag| Bio { flags: bio.flags.and(flag), ..bio };
        let bio = match (self.flush_rules, preflush) {
            (FlushRules::Barriers | FlushRules::WriteThrough { barriers: true }, true) => with(Flags::BARRIER),
            (FlushRules::Barriers | FlushRules::WriteThrough { .. }, _) => bio,
            (FlushRules::Sequences { fua: true }, false) => with(Flags::FUA),
            (FlushRules::Sequences { fua }, _) => {
                self.flushes.add_sequence(if fua { with(Flags::FUA) } else { bio }, preflush, !fua);
                return self.take_steps(now_ns);
            }
        };
        self.submit(submitter, bio, now_ns)
    }

    /// Returns true if synchronous direct writes carry FUA: from 4.10 on. In earlier kernels a
    /// flush follows them.
    pub fn forces_direct_writes(&self) -> bool {
        self.flush_rules != FlushRules::Barriers && matches!(self.layer(), BlockLayer::V4_19 | BlockLayer::V6_1)
    }

    /// Submits data of sequences that go through the request queue, and runs the device.
    pub(super) fn take_steps(&mut self, now_ns: u64) -> Result<(), Defect> {
        while let Some(bio) = self.flushes.next_due() {
            let Some(submitter) = self.submitters.of_context(bio.context) else { continue };
            self.enter(submitter, bio, Entry::Sequence, now_ns)?;
        }
        self.run(now_ns)?;
        self.work(now_ns)
    }

    /// Starts a step of the flush machinery, which the elevator does not see.
    pub(super) fn start_step(&mut self, step: ReadyStep, now_ns: u64) -> Result<(), Defect> {
        match step {
            ReadyStep::Flush => self.start_command(Origin::Step(step), &Command::Flush, now_ns),
            ReadyStep::Data(sequence) => {
                let bio = self.flushes.data_of(sequence);
                let command = command_of(bio.op, bio.sector, bio.sectors, bio.flags);
                self.start_command(Origin::Step(step), &command, now_ns)?;
                let pid = self.queue.context(bio.context).map_or(0, |context| context.pid());
                self.count_transfer(pid, bio.sector, bio.sectors, now_ns);
                Ok(())
            }
        }
    }
}
