//! The way of a bio into the request queue (steps 1 to 3 of the [device](super)).

use hoistway_core::{Bio, Kick, SubmitError, Submitted};

use super::super::task::SubmitterId;
use super::Device;
use super::controllers::Admission;
use crate::config::{DirectIssue, Plugging};
use crate::error::Defect;
use crate::record::Observer;

/// Where a bio comes from that enters the controllers and the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// From its task, or from the backlog.
    New,
    /// From the backlog: the queue has room for it now. It passed the controllers before.
    Woken,
    /// From the flush machinery, past the controllers.
    Sequence,
}

impl<S: Observer> Device<S> {
    /// Submits a bio. If a controller holds it or the queue has no room, this bio and the following
    /// ones go to the submitter's backlog.
    pub fn submit(&mut self, submitter: SubmitterId, bio: Bio, now_ns: u64) -> Result<(), Defect> {
        if let (Plugging::Task { requests, kib }, Some(plug)) = (self.plugging, &mut self.submitters[submitter].plug) {
            let (count, sectors) = plug.add(bio, self.queue.config());
            if count >= requests || (kib > 0 && sectors >= kib.saturating_mul(2)) {
                let is_plugged = !plug.is_of_call;
                self.flush_plug(submitter, is_plugged, now_ns)?;
            }
            return Ok(());
        }
        let outcome = self.submit_now(submitter, bio, now_ns)?;
        if let (Submitted::Queued(id), DirectIssue::Always) = (outcome, self.direct_issue) {
            self.issue_directly(id, now_ns)?;
        }
        Ok(())
    }

    /// Starts a submitter's plug, if the host plugs on tasks: bios are collected until
    /// [`Self::finish_plug`].
    pub fn plug(&mut self, submitter: SubmitterId) {
        if matches!(self.plugging, Plugging::Task { .. }) {
            self.submitters[submitter].plug.get_or_insert_default();
        }
    }

    /// Starts a plug as [`Self::plug`] does, for a call of direct I/O, which [`Self::finish_call`]
    /// ends.
    pub fn plug_call(&mut self, submitter: SubmitterId) {
        self.plug(submitter);
        if let Some(plug) = &mut self.submitters[submitter].plug {
            plug.is_of_call = true;
        }
    }

    /// Submits the bios of a submitter's plug and removes the plug.
    pub fn finish_plug(&mut self, submitter: SubmitterId, now_ns: u64) -> Result<(), Defect> {
        self.finish_call(submitter, true, now_ns)
    }

    /// Submits the bios of a call of direct I/O. The kernel plugs it only if it has several bios.
    #[inline]
    pub fn finish_call(&mut self, submitter: SubmitterId, is_plugged: bool, now_ns: u64) -> Result<(), Defect> {
        if self.submitters[submitter].plug.is_some() {
            self.flush_plug(submitter, is_plugged, now_ns)?;
            self.submitters[submitter].plug = None;
        }
        Ok(())
    }

    /// Submits the bios of a submitter's plug, then runs the queue.
    fn flush_plug(&mut self, submitter: SubmitterId, is_plugged: bool, now_ns: u64) -> Result<(), Defect> {
        let Some(plug) = self.submitters[submitter].plug.as_mut() else { return Ok(()) };
        let bios = plug.take();
        // With room for all and none that waits, the order of arrival is that of direct issue.
        let passes = || self.in_flight.len() as usize + bios.len() > self.depth as usize || !self.queue.is_empty();
        let is_direct = match self.direct_issue {
            DirectIssue::Never => false,
            DirectIssue::Plugged => is_plugged && passes(),
            DirectIssue::Always => passes(),
        };
        let mut requests = Vec::new();
        self.flushing = true;
        for bio in bios {
            let outcome = self.submit_now(submitter, bio, now_ns)?;
            if let (Submitted::Queued(id), true) = (outcome, is_direct) {
                requests.push(id);
            }
        }
        self.flushing = false;
        // A task that sleeps for room hands over its plug as it is: the requests wait as others do.
        if !self.is_held_back(submitter) {
            for id in requests {
                self.issue_directly(id, now_ns)?;
            }
        }
        self.run(now_ns)?;
        self.work(now_ns)
    }

    /// Submits a bio past the plug.
    fn submit_now(&mut self, submitter: SubmitterId, bio: Bio, now_ns: u64) -> Result<Submitted, Defect> {
        if self.is_held_back(submitter) {
            self.submitters[submitter].backlog.push_back(bio);
            return Ok(Submitted::Asleep);
        }
        let outcome = self.enter(submitter, bio, Entry::New, now_ns)?;
        self.work(now_ns)?;
        Ok(outcome)
    }

    /// Takes a bio through the controllers into the queue. If one of them holds it, the bio goes to
    /// the head of the backlog, and its task sleeps.
    pub(super) fn enter(
        &mut self,
        submitter: SubmitterId,
        bio: Bio,
        entry: Entry,
        now_ns: u64,
    ) -> Result<Submitted, Defect> {
        let is_held = entry == Entry::New && self.controllers.admit(submitter, &bio, now_ns) == Admission::Held;
        let answer = match entry {
            _ if is_held => Ok((Submitted::Asleep, Kick::Quiet)),
            Entry::New | Entry::Sequence => self.queue.submit(bio, now_ns),
            Entry::Woken => self.queue.resubmit(bio, now_ns),
        };
        let (outcome, kick) = match answer {
            Ok(answer) => answer,
            Err(SubmitError::Full) => {
                self.submitters.refused.push_back(submitter);
                (Submitted::Asleep, Kick::Quiet)
            }
            Err(error) => {
                let Bio { sector, sectors, .. } = bio;
                let problem = format!("a bio of {sectors} sectors at sector {sector} was refused: {error:?}");
                return Err(Defect::new(problem));
            }
        };
        self.controllers.queued(submitter, &bio, outcome);
        self.run_if_kicked(kick, now_ns)?;
        if outcome == Submitted::Asleep {
            self.submitters[submitter].backlog.push_front(bio);
            return Ok(outcome);
        }
        self.note_congestion();
        if !self.queue.config().plugging && !self.flushing {
            // Without plugging, no other event would run an empty queue.
            self.run(now_ns)?;
        }
        Ok(outcome)
    }

    /// Submits a submitter's backlog, of which `first` is the first bio, as far as the controllers
    /// and the queue take it. Returns true if the backlog is empty.
    pub(super) fn resume(&mut self, submitter: SubmitterId, first: Entry, now_ns: u64) -> Result<bool, Defect> {
        let mut entry = first;
        while let Some(bio) = self.submitters[submitter].backlog.pop_front() {
            if self.enter(submitter, bio, entry, now_ns)? == Submitted::Asleep {
                return Ok(false);
            }
            entry = Entry::New;
        }
        self.submitters.resumed.push(submitter);
        Ok(true)
    }

    /// Resumes the submitters whose first bio the controllers have admitted.
    pub(super) fn resume_admitted(&mut self, submitters: Vec<SubmitterId>, now_ns: u64) -> Result<(), Defect> {
        for submitter in submitters {
            self.resume(submitter, Entry::New, now_ns)?;
        }
        Ok(())
    }

    /// Unplugs the queue for a task that is about to sleep until its bios complete.
    pub fn unplug(&mut self, now_ns: u64) -> Result<(), Defect> {
        let kick = self.queue.unplug_for_waiter(now_ns);
        self.handle_kick(kick, now_ns)
    }

    /// Records that a writer sleeps in dirty throttling.
    pub fn dirty_sleep(&mut self, now_ns: u64) {
        self.controllers.dirty_sleep(now_ns);
    }
}
