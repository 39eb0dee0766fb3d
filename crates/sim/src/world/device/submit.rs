//! The way of a bio into the request queue: the plug of its task, the throttle of write-back, the
//! queue or the backlog.

use hoistway_core::{Bio, Kick, RequestId, SubmitError, Submitted};

use super::super::task::SubmitterId;
use super::Device;
use super::write_back_throttle::Class;
use crate::config::{DirectIssue, Plugging};
use crate::error::Defect;
use crate::record::Observer;

impl<S: Observer> Device<S> {
    /// Submits a bio. Without room in the queue, this bio and the following ones go to the
    /// submitter's backlog.
    pub fn submit(&mut self, submitter: SubmitterId, bio: Bio, now_ns: u64) -> Result<(), Defect> {
        if let (Plugging::Task { requests, kib }, Some(plug)) = (self.plugging, &mut self.submitters[submitter].plug) {
            let (count, sectors) = plug.add(bio, self.queue.config());
            if count >= requests || (kib > 0 && sectors >= kib.saturating_mul(2)) {
                let is_plugged = !plug.is_of_call;
                self.flush_plug(submitter, is_plugged, now_ns)?;
            }
            return Ok(());
        }
        let request = self.submit_now(submitter, bio, now_ns)?;
        if let (Some(id), DirectIssue::Always) = (request, self.direct_issue) {
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
    pub fn finish_call(&mut self, submitter: SubmitterId, is_plugged: bool, now_ns: u64) -> Result<(), Defect> {
        self.flush_plug(submitter, is_plugged, now_ns)?;
        self.submitters[submitter].plug = None;
        Ok(())
    }

    /// Submits the bios of a submitter's plug, then runs the queue.
    pub(super) fn flush_plug(&mut self, submitter: SubmitterId, is_plugged: bool, now_ns: u64) -> Result<(), Defect> {
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
            let request = self.submit_now(submitter, bio, now_ns)?;
            if is_direct {
                requests.extend(request);
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

    /// Submits a bio to the queue. Returns the request that it became, if it became one.
    pub(super) fn submit_now(
        &mut self,
        submitter: SubmitterId,
        bio: Bio,
        now_ns: u64,
    ) -> Result<Option<RequestId>, Defect> {
        if self.is_held_back(submitter) {
            self.submitters[submitter].backlog.push_back(bio);
            return Ok(None);
        }
        if !self.takes_slot(submitter, &bio, now_ns) {
            self.submitters[submitter].backlog.push_back(bio);
            return Ok(None);
        }
        let answer = self.queue.submit(bio, now_ns);
        let request = match answer {
            Ok((Submitted::Queued(id), _)) => Some(id),
            _ => None,
        };
        self.submitted(submitter, bio, answer, now_ns)?;
        self.work(now_ns)?;
        Ok(request)
    }

    /// Returns false if a task has to sleep until the throttle of write-back has a slot for its
    /// bio.
    #[inline]
    pub(super) fn takes_slot(&mut self, submitter: SubmitterId, bio: &Bio, now_ns: u64) -> bool {
        let Some(throttle) = &mut self.throttle else { return true };
        let (Some(class), slot) = (Class::of(bio), &mut self.submitters[submitter].slot) else {
            return true;
        };
        if slot.is_none() && throttle.admit(submitter, class, now_ns) {
            *slot = Some(class);
        }
        slot.is_some()
    }

    /// Passes the slot of a submitter's bio on to the request that it became, or returns the slot
    /// of a bio that was merged.
    pub(super) fn pass_slot(&mut self, submitter: SubmitterId, bio: &Bio, outcome: Submitted) {
        let Some(throttle) = &mut self.throttle else { return };
        if Class::of(bio).is_some()
            && let Some(class) = self.submitters[submitter].slot.take()
        {
            let request = if let Submitted::Queued(id) = outcome { Some(id) } else { None };
            throttle.begun(class, request);
        }
    }

    pub(super) fn submitted(
        &mut self,
        submitter: SubmitterId,
        bio: Bio,
        answer: Result<(Submitted, Kick), SubmitError>,
        now_ns: u64,
    ) -> Result<bool, Defect> {
        let taken = match answer {
            Ok((Submitted::Asleep, kick)) => {
                self.run_if_kicked(kick, now_ns)?;
                false
            }
            Ok((outcome, kick)) => {
                self.pass_slot(submitter, &bio, outcome);
                self.run_if_kicked(kick, now_ns)?;
                self.note_congestion();
                if !self.queue.config().plugging && !self.flushing {
                    // Without plugging, no other event would run an empty queue.
                    self.run(now_ns)?;
                }
                true
            }
            Err(SubmitError::Full) => {
                self.submitters.refused.push_back(submitter);
                false
            }
            Err(error) => {
                let Bio { sector, sectors, .. } = bio;
                let problem = format!("a bio of {sectors} sectors at sector {sector} was refused: {error:?}");
                return Err(Defect::new(problem));
            }
        };
        if !taken {
            self.submitters[submitter].backlog.push_front(bio);
        }
        Ok(taken)
    }

    /// Submits a submitter's backlog as far as the queue has room. Returns true if the backlog is
    /// empty.
    pub(super) fn retry(&mut self, submitter: SubmitterId, mut woken: bool, now_ns: u64) -> Result<bool, Defect> {
        while let Some(bio) = self.submitters[submitter].backlog.pop_front() {
            if !woken && !self.takes_slot(submitter, &bio, now_ns) {
                self.submitters[submitter].backlog.push_front(bio);
                return Ok(false);
            }
            let answer = if woken { self.queue.resubmit(bio, now_ns) } else { self.queue.submit(bio, now_ns) };
            woken = false;
            if !self.submitted(submitter, bio, answer, now_ns)? {
                return Ok(false);
            }
        }
        self.submitters.resumed.push(submitter);
        Ok(true)
    }

    /// Submits the bios of submitters that have got a slot.
    pub(super) fn resume(&mut self, woken: Vec<(SubmitterId, Class)>, now_ns: u64) -> Result<(), Defect> {
        for (submitter, class) in woken {
            self.submitters[submitter].slot = Some(class);
            self.retry(submitter, false, now_ns)?;
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
        if let Some(throttle) = &mut self.throttle {
            throttle.dirty_sleep(now_ns);
        }
    }
}
