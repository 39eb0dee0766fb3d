//! Tracks requests through a trace, from the submission of their bios to their completion.
//!
//! Trace formats have no identifier for a request: events of a request match by device, direction
//! and first sector. The rules from Q to C:
//!
//! - Q begins a bio, G turns it into a request, I and D advance it. A trace may lack any of these
//!   events (no elevator: no I; the short path of `noop`: no G; a device mapper: only Q and C;
//!   started in the middle: D and C, or C alone). Each event accepts the request in any earlier
//!   stage.
//! - M and F append a bio, or a whole request, to the end or the front of another. A merge that the
//!   kernel did not record shows as a longer I or D: the waiting bios after the request are
//!   absorbed.
//! - X splits a waiting bio into two with the same submission time. A G that is shorter than its
//!   bio does the same.
//! - A (remap) to a bio without a Q of its own passes on the submission time of the upper device.
//! - R returns a request to the queue; its next D counts.
//! - C of a part leaves the rest in the device.
//! - Among several candidates of the same sector and direction, one of the same length is
//!   preferred, then the oldest.
//! - Flushes without data have no sector. A D without the write bit, which is how Linux issues
//!   flushes, serves all waiting flushes; so does its C.
//! - A write with a preflush or FUA that the kernel carries out as a sequence of commands is one
//!   request, which ends with the sequence: see [`FlushSteps`].
//! - C without a length and a direction, of a command that no other event shows, is no request.
//!
//! A request whose completion was lost would stay outstanding for ever. The tracker abandons a
//! request after [`ABANDON_AFTER_NS`] of trace time, or when [`OUTSTANDING_MAX`] others are
//! outstanding, and returns its record without a completion. This bounds the memory for traces
//! without completions.

mod flush;
mod step_counts;
mod table;
#[cfg(test)]
mod tests;

use crate::batch::Batch;
use crate::event::{Action, DeviceId, Event, Rwbs};
pub use flush::FlushSteps;
use flush::{DeviceFlushes, is_data_of_sequence, may_be_sequence};
pub use step_counts::StepCounts;
use table::{Class, Key, Slot, Stage, Table};

/// A request that is outstanding for longer than this time, in ns of the trace, has lost its
/// completion.
pub const ABANDON_AFTER_NS: u64 = 300_000_000_000;
/// Maximum number of outstanding requests before the oldest is abandoned.
pub const OUTSTANDING_MAX: usize = 1 << 18;

/// The history of one request. A step that the trace does not show is None.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestRecord {
    /// Device of the request.
    pub device: DeviceId,
    /// Operation and flags of the first bio.
    pub op: Rwbs,
    /// First sector at completion, or at the last event.
    pub sector: u64,
    /// Length in bytes at completion, or at the last event.
    pub bytes: u32,
    /// Process id of the first bio, or of the issuing process if no bio was seen.
    pub pid: u32,
    /// Submission of the first bio (Q), in ns.
    pub queued_ns: Option<u64>,
    /// Allocation of the request (G), in ns.
    pub got_ns: Option<u64>,
    /// Insertion into the elevator (I), in ns.
    pub inserted_ns: Option<u64>,
    /// Last issue to the driver (D), in ns.
    pub issued_ns: Option<u64>,
    /// Completion (C), in ns.
    pub completed_ns: Option<u64>,
    /// Steps of the flush sequence; None for a request that is a single command.
    pub flush: Option<Box<FlushSteps>>,
    /// Bios merged into the request after the first one.
    pub merged: Vec<Merged>,
    /// Number of times that the driver returned the request to the queue (R).
    pub requeues: u32,
    /// Error number of the completion; 0 for success.
    pub error: u16,
}

/// A bio that was merged into an existing request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Merged {
    /// Process id of the bio.
    pub pid: u32,
    /// Submission (Q) in ns, or the time of the merge if the trace does not show the submission.
    pub queued_ns: u64,
    /// Merge (M or F) in ns.
    pub merged_ns: u64,
    /// First sector.
    pub sector: u64,
    /// Length in bytes.
    pub bytes: u32,
    /// True for a front merge, false for a back merge.
    pub front: bool,
}

impl RequestRecord {
    /// Returns the earliest recorded time before the completion, in ns; None if the trace shows
    /// only the completion.
    pub fn first_seen_ns(&self) -> Option<u64> {
        self.queued_ns.or(self.got_ns).or(self.inserted_ns).or(self.issued_ns)
    }

    /// Time from submission to allocation, in ns.
    pub fn q2g_ns(&self) -> Option<u64> {
        between(self.queued_ns, self.got_ns)
    }

    /// Time from allocation to insertion into the elevator, in ns: the time in the plug.
    pub fn g2i_ns(&self) -> Option<u64> {
        between(self.got_ns, self.inserted_ns)
    }

    /// Time in the elevator, in ns.
    pub fn i2d_ns(&self) -> Option<u64> {
        between(self.inserted_ns, self.issued_ns)
    }

    /// Time in the device, in ns; that of the data for a flush sequence.
    pub fn d2c_ns(&self) -> Option<u64> {
        between(self.issued_ns, self.data_completed_ns())
    }

    /// Completion of the data, in ns: before the flush that ends a sequence, otherwise the
    /// completion of the request.
    pub fn data_completed_ns(&self) -> Option<u64> {
        self.flush.as_ref().and_then(|steps| steps.data_completed_ns).or(self.completed_ns)
    }

    /// Time of the flush before the data of a sequence in the device, in ns.
    pub fn preflush_ns(&self) -> Option<u64> {
        let (issued_ns, completed_ns) = self.flush.as_ref()?.before_ns?;
        Some(completed_ns.saturating_sub(issued_ns))
    }

    /// Time from the completion of the data of a sequence with FUA to the end of the request, in
    /// ns: the flush after the data and the wait for it.
    pub fn postflush_ns(&self) -> Option<u64> {
        let steps = self.flush.as_ref().filter(|_| self.op.has(Rwbs::FUA))?;
        between(steps.data_completed_ns, self.completed_ns)
    }

    /// Time from the submission of the first bio to completion, in ns.
    pub fn q2c_ns(&self) -> Option<u64> {
        between(self.queued_ns, self.completed_ns)
    }

    /// Returns the first sector after the request.
    pub fn end_sector(&self) -> u64 {
        self.sector.saturating_add(u64::from(self.bytes).div_ceil(512))
    }

    /// Number of bios in the request.
    pub fn bios(&self) -> usize {
        1 + self.merged.len()
    }

    /// Length of the first bio in bytes, without merged bios.
    pub fn first_bytes(&self) -> u32 {
        self.merged.iter().fold(self.bytes, |left, bio| left.saturating_sub(bio.bytes))
    }
}

/// Builds request records from a stream of events. Memory grows with the number of outstanding
/// requests, not with the length of the trace.
#[derive(Debug, Default)]
pub struct RequestTracker {
    table: Table,
    finished: Vec<RequestRecord>,
    flushes: DeviceFlushes,
    in_device: usize,
    /// Number of bios that were remapped from an upper device and not submitted again.
    remapped: usize,
    abandoned: u64,
}

impl RequestTracker {
    /// Creates a tracker without requests.
    pub fn new() -> RequestTracker {
        RequestTracker::default()
    }

    /// Processes the events of a batch; batches must come in order of time.
    pub fn take(&mut self, batch: &Batch) {
        for event in batch.events() {
            self.event(event, batch.payload(event));
        }
    }

    /// Processes one event with its payload.
    pub fn event(&mut self, event: &Event, payload: &[u8]) {
        match event.action {
            Action::Queue => self.queue(event),
            Action::BackMerge => self.back_merge(event),
            Action::FrontMerge => self.front_merge(event),
            Action::Get => self.get(event),
            Action::Insert => self.insert(event),
            Action::Issue => self.issue(event),
            Action::Requeue => self.requeue(event),
            Action::Complete => self.complete(event),
            Action::Split => self.split(event, payload),
            Action::Remap => self.remap(event, payload),
            _ => {}
        }
    }

    /// Takes the records of the requests that finished since the last call, in order of completion.
    /// Abandoned requests are included, without a completion.
    pub fn take_finished(&mut self) -> std::vec::Drain<'_, RequestRecord> {
        self.finished.drain(..)
    }

    /// Ends the trace and returns the outstanding requests, ordered by their first event.
    pub fn into_outstanding(self) -> Vec<RequestRecord> {
        let flushes = self.flushes;
        let mut records = self.table.into_records();
        records.iter_mut().for_each(|record| end_with_data(record, &flushes));
        records
    }

    /// Number of outstanding requests, and bios that are not part of a request yet.
    pub fn outstanding(&self) -> usize {
        self.table.len()
    }

    /// Number of requests in devices.
    pub fn in_device(&self) -> usize {
        self.in_device
    }

    /// Returns the time of the earliest first event of all outstanding requests, in ns; None if
    /// nothing is outstanding.
    pub fn earliest_ns(&self) -> Option<u64> {
        self.table.oldest().map(|slot| self.table.slot(slot).first_ns)
    }

    /// Number of abandoned requests.
    pub fn abandoned(&self) -> u64 {
        self.abandoned
    }
}

impl RequestTracker {
    fn queue(&mut self, event: &Event) {
        let key = Key::of(event);
        let remapped = |slot: &Slot| slot.from.is_some() && slot.stage == Stage::Queued && slot.left == event.bytes;
        if self.remapped > 0
            && let Some(slot) = self.table.first(key, remapped)
        {
            self.remapped -= 1;
            let slot = self.table.slot_mut(slot);
            slot.from = None;
            (slot.record.queued_ns, slot.record.pid, slot.record.op) = (Some(event.time_ns), event.pid, event.op);
            return;
        }
        let slot = self.add(event, Stage::Queued);
        self.table.slot_mut(slot).record.queued_ns = Some(event.time_ns);
    }

    fn get(&mut self, event: &Event) {
        let slot = match self.best(event, &[Stage::Queued]) {
            Some(slot) => self.cut_to(slot, event.bytes),
            None => self.add(event, Stage::Got),
        };
        self.table.slot_mut(slot).record.got_ns = Some(event.time_ns);
        self.table.set_stage(slot, Stage::Got);
    }

    fn insert(&mut self, event: &Event) {
        // A requeued request is inserted again; the first insertion counts.
        let slot = match self.best(event, &[Stage::Got, Stage::Queued, Stage::Inserted]) {
            Some(slot) => slot,
            None => self.add(event, Stage::Inserted),
        };
        self.table.slot_mut(slot).record.inserted_ns.get_or_insert(event.time_ns);
        self.table.set_stage(slot, Stage::Inserted);
        self.grow_to(slot, event);
    }

    fn issue(&mut self, event: &Event) {
        if Class::of(event) == Class::Flush && !event.op.has(Rwbs::WRITE) {
            let is_of_sequence = self.flushes.issued(event);
            if self.issue_flushes(event) || is_of_sequence {
                return;
            }
        }
        let slot = match self.best(event, &[Stage::Inserted, Stage::Got, Stage::Queued]) {
            Some(slot) if self.table.slot(slot).stage == Stage::Queued => self.cut_to(slot, event.bytes),
            Some(slot) => slot,
            None => self.add(event, Stage::Issued),
        };
        self.grow_to(slot, event);
        self.begin_data(slot, event);
        self.set_issued(slot, event.time_ns);
    }

    /// Finds out at the issue of a write whether it is the data of a sequence.
    fn begin_data(&mut self, slot: u32, event: &Event) {
        if !self.table.slot(slot).may_be_sequence {
            return;
        }
        let from_ns = self.table.slot(slot).first_ns;
        let before_ns = self.flushes.last_since(event.device, from_ns);
        let found = self.table.slot_mut(slot);
        if is_data_of_sequence(found.record.op, event.op) {
            let before_ns = before_ns.filter(|_| found.record.op.has(Rwbs::FLUSH));
            found.record.flush.get_or_insert_default().before_ns = before_ns;
        } else {
            found.may_be_sequence = false;
            self.flushes.remove_sequence(event.device);
        }
    }

    /// Marks all waiting flushes as issued, because one flush of the device serves them all.
    /// Returns true if there was any.
    fn issue_flushes(&mut self, event: &Event) -> bool {
        let mut any = false;
        while let Some(slot) = self.table.first(Key::of(event), |slot| slot.stage != Stage::Issued) {
            self.set_issued(slot, event.time_ns);
            any = true;
        }
        any
    }

    fn set_issued(&mut self, slot: u32, time_ns: u64) {
        self.in_device += 1;
        self.table.slot_mut(slot).record.issued_ns = Some(time_ns);
        self.table.set_stage(slot, Stage::Issued);
    }

    fn requeue(&mut self, event: &Event) {
        if let Some(slot) = self.best(event, &[Stage::Issued]) {
            self.in_device -= 1;
            let record = &mut self.table.slot_mut(slot).record;
            record.issued_ns = None;
            record.requeues = record.requeues.saturating_add(1);
            self.table.set_stage(slot, Stage::Inserted);
        }
    }

    fn complete(&mut self, event: &Event) {
        let key = Key::of(event);
        if key.class == Class::Flush {
            if !self.end_sequence(event) {
                self.complete_flushes(event, key);
            }
            return;
        }
        let slot = match self.best(event, &[Stage::Issued, Stage::Inserted, Stage::Got, Stage::Queued]) {
            Some(slot) => slot,
            None if event.bytes == 0 && event.op.has(Rwbs::NONE) => return,
            None => {
                let slot = self.add(event, Stage::Queued);
                // The process id of a completion is the interrupted process, not the owner.
                self.table.slot_mut(slot).record.pid = 0;
                slot
            }
        };
        let found = self.table.slot_mut(slot);
        if found.record.error == 0 {
            found.record.error = event.error;
        }
        if event.bytes > 0 && event.bytes < found.left {
            return self.table.advance(slot, event.bytes);
        }
        found.record.bytes = found.record.bytes.saturating_add(event.bytes.saturating_sub(found.left));
        match &mut found.record.flush {
            Some(steps) => {
                steps.data_completed_ns = Some(event.time_ns);
                self.in_device -= usize::from(found.stage == Stage::Issued);
                self.table.set_data_completed(slot);
            }
            None => self.end(slot, event.time_ns),
        }
    }

    /// Ends the flush sequence to which a completion without a length belongs. Returns false if
    /// there is none.
    fn end_sequence(&mut self, event: &Event) -> bool {
        if event.op.has(Rwbs::FLUSH) {
            return false;
        }
        let key = Key { sector: event.sector, device: event.device, class: Class::Write };
        let Some(slot) = self.table.first(key, |slot| slot.stage == Stage::DataCompleted) else { return false };
        self.flushes.sequence_ended(event.device);
        let record = &mut self.table.slot_mut(slot).record;
        if record.error == 0 {
            record.error = event.error;
        }
        if let Some(steps) = record.flush.as_mut().filter(|_| record.op.has(Rwbs::FUA)) {
            let from_ns = steps.data_completed_ns.unwrap_or(u64::MAX);
            steps.after_ns = self.flushes.last_since(event.device, from_ns);
        }
        self.end(slot, event.time_ns);
        true
    }

    fn complete_flushes(&mut self, event: &Event, key: Key) {
        if !self.flushes.completed(event) {
            return;
        }
        let one_for_all = !event.op.has(Rwbs::WRITE);
        let mut any = false;
        while let Some(slot) = self.table.first(key, |slot| slot.stage == Stage::Issued) {
            any = true;
            self.table.slot_mut(slot).record.error = event.error;
            self.end(slot, event.time_ns);
            if !one_for_all {
                return;
            }
        }
        if !any && let Some(slot) = self.table.first(key, |_| true) {
            self.table.slot_mut(slot).record.error = event.error;
            self.end(slot, event.time_ns);
        }
    }

    fn back_merge(&mut self, event: &Event) {
        let key = Key::of(event);
        let bio = self.best(event, &[Stage::Queued]);
        if let Some(request) = self.table.ending_at(key) {
            // A whole request may be merged to the end of another.
            match bio.or_else(|| self.best(event, &[Stage::Got, Stage::Inserted])) {
                Some(other) if other != request => self.absorb(request, other, event.time_ns, false),
                _ => self.merge_unseen(request, event, false),
            }
        }
    }

    fn front_merge(&mut self, event: &Event) {
        let behind = Key { sector: event.end_sector(), ..Key::of(event) };
        let waits = |slot: &Slot| matches!(slot.stage, Stage::Got | Stage::Inserted);
        if let Some(request) = self.table.first(behind, waits) {
            match self.best(event, &[Stage::Queued]) {
                Some(bio) => self.absorb(request, bio, event.time_ns, true),
                None => self.merge_unseen(request, event, true),
            }
        }
    }

    /// Merges a bio whose submission the trace does not show.
    fn merge_unseen(&mut self, request: u32, event: &Event, front: bool) {
        let bio = Merged {
            pid: event.pid,
            queued_ns: event.time_ns,
            merged_ns: event.time_ns,
            sector: event.sector,
            bytes: event.bytes,
            front,
        };
        self.table.slot_mut(request).record.merged.push(bio);
        self.table.lengthen(request, event.bytes, front);
    }

    /// Merges a waiting bio or request into a request.
    fn absorb(&mut self, request: u32, other: u32, time_ns: u64, front: bool) {
        let record = self.take_out(other);
        let first_bytes = record.first_bytes();
        // Bios that were merged to its front precede its first bio.
        let in_front = record.merged.iter().filter(|bio| bio.front).map(|bio| u64::from(bio.bytes / 512)).sum::<u64>();
        let first = Merged {
            pid: record.pid,
            queued_ns: record.queued_ns.unwrap_or(time_ns),
            merged_ns: time_ns,
            sector: record.sector.saturating_add(in_front),
            bytes: first_bytes,
            front,
        };
        let merged = &mut self.table.slot_mut(request).record.merged;
        merged.push(first);
        merged.extend(record.merged.iter().map(|bio| Merged { front, ..*bio }));
        self.table.lengthen(request, record.bytes, front);
    }

    /// Absorbs the waiting bios after a request when an event shows that the request is longer.
    fn grow_to(&mut self, slot: u32, event: &Event) {
        while self.table.slot(slot).left < event.bytes {
            let missing = event.bytes - self.table.slot(slot).left;
            let behind = Key { sector: self.table.slot(slot).end(), ..Key::of(event) };
            let fits = |other: &Slot| {
                other.stage != Stage::Issued && other.left <= missing && other.left == other.record.bytes
            };
            match self.table.first(behind, fits) {
                Some(other) if other != slot => self.absorb(slot, other, event.time_ns, false),
                _ => return self.table.lengthen(slot, missing, false),
            }
        }
    }

    /// Splits a waiting bio when an event shows a shorter length. The rest keeps waiting. Returns
    /// the slot of the front part.
    fn cut_to(&mut self, slot: u32, bytes: u32) -> u32 {
        let found = self.table.slot(slot);
        if bytes == 0 || !bytes.is_multiple_of(512) || bytes >= found.left {
            return slot;
        }
        let (mut record, first_ns, from) = (found.record.clone(), found.first_ns, found.from);
        record.sector = record.sector.saturating_add(u64::from(bytes / 512));
        record.bytes = found.left - bytes;
        let class = found.class;
        self.table.shorten(slot, bytes);
        let rest = self.table.add(class, record, first_ns, Stage::Queued);
        self.watch_sequence(rest);
        self.remapped += usize::from(from.is_some());
        self.table.slot_mut(rest).from = from;
        slot
    }

    fn split(&mut self, event: &Event, payload: &[u8]) {
        let Some(at) = payload.first_chunk().copied().map(u64::from_be_bytes) else { return };
        let Some(slot) = self.best(event, &[Stage::Queued]) else { return };
        if let Some(bytes) = at.checked_sub(event.sector).and_then(|sectors| sectors.checked_mul(512)) {
            self.cut_to(slot, u32::try_from(bytes).unwrap_or(u32::MAX));
        }
    }

    /// Handles a remap: the bio continues on another device with its original submission time,
    /// unless the device below records a submission.
    fn remap(&mut self, event: &Event, payload: &[u8]) {
        let Some((from, sector)) = remapped_from(payload) else { return };
        let above = Key { device: from, sector, ..Key::of(event) };
        let Some(slot) = self.table.first(above, |slot| slot.stage == Stage::Queued) else { return };
        let (queued_ns, pid, op) = {
            let record = &self.table.slot(slot).record;
            (record.queued_ns, record.pid, record.op)
        };
        let below = self.add(event, Stage::Queued);
        self.remapped += 1;
        let below = self.table.slot_mut(below);
        (below.record.queued_ns, below.record.pid, below.record.op, below.from) = (queued_ns, pid, op, Some(above));
    }
}

impl RequestTracker {
    /// Returns the request that an event refers to: of the first stage in `stages` that matches,
    /// the oldest, preferably of the event's length.
    fn best(&self, event: &Event, stages: &[Stage]) -> Option<u32> {
        let rank = |slot: &Slot| {
            let stage = stages.iter().position(|stage| *stage == slot.stage)?;
            Some(2 * stage + usize::from(slot.left != event.bytes))
        };
        self.table.least(Key::of(event), rank)
    }

    fn add(&mut self, event: &Event, stage: Stage) -> u32 {
        self.abandon(event.time_ns);
        let key = Key::of(event);
        let record = RequestRecord {
            device: event.device,
            op: event.op,
            sector: key.sector,
            bytes: event.bytes,
            pid: event.pid,
            ..RequestRecord::default()
        };
        let slot = self.table.add(key.class, record, event.time_ns, stage);
        self.watch_sequence(slot);
        slot
    }

    /// Counts a new request if it may be a flush sequence.
    fn watch_sequence(&mut self, slot: u32) {
        let found = self.table.slot_mut(slot);
        if found.class == Class::Write && may_be_sequence(found.record.op) {
            found.may_be_sequence = true;
            self.flushes.add_sequence(found.record.device);
        }
    }

    fn abandon(&mut self, now_ns: u64) {
        while let Some(slot) = self.table.oldest()
            && (self.table.len() >= OUTSTANDING_MAX
                || self.table.slot(slot).first_ns.saturating_add(ABANDON_AFTER_NS) < now_ns)
        {
            let found = self.table.slot(slot);
            // A remapped bio is abandoned once, on the upper device.
            let twice = found.from.is_some() && found.stage == Stage::Queued;
            let mut record = self.take_out(slot);
            end_with_data(&mut record, &self.flushes);
            if !twice {
                self.abandoned += u64::from(record.completed_ns.is_none());
                self.finished.push(record);
            }
        }
    }

    fn end(&mut self, slot: u32, time_ns: u64) {
        let from = self.table.slot(slot).from;
        let mut record = self.take_out(slot);
        record.completed_ns = Some(time_ns);
        self.finished.push(record);
        // A remapped bio without a submission of its own is the same bio: it ends above as well.
        if let Some(above) = from
            && let Some(slot) = self.table.first(above, |slot| slot.stage == Stage::Queued)
        {
            self.take_out(slot);
        }
    }

    fn take_out(&mut self, slot: u32) -> RequestRecord {
        if self.table.slot(slot).stage == Stage::Issued {
            self.in_device -= 1;
        }
        if self.table.slot(slot).from.is_some() {
            self.remapped -= 1;
        }
        if self.table.slot(slot).may_be_sequence {
            self.flushes.remove_sequence(self.table.slot(slot).record.device);
        }
        self.table.remove(slot)
    }
}

/// Completes a request whose data has completed and whose sequence has no end, if the trace shows
/// the end of no sequence of its device.
fn end_with_data(record: &mut RequestRecord, flushes: &DeviceFlushes) {
    if let Some(steps) = &record.flush
        && !flushes.ends_sequences(record.device)
    {
        record.completed_ns = steps.data_completed_ns;
    }
}

fn between(from: Option<u64>, to: Option<u64>) -> Option<u64> {
    // Clocks of CPUs differ slightly: a negative difference counts as 0.
    Some(to?.saturating_sub(from?))
}

/// Returns the device and sector that a remap came from. The payload holds big-endian device,
/// device and sector.
fn remapped_from(payload: &[u8]) -> Option<(DeviceId, u64)> {
    let device = u32::from_be_bytes(*payload.first_chunk()?);
    let sector = u64::from_be_bytes(*payload.get(8..)?.first_chunk()?);
    Some((DeviceId(device), sector))
}
