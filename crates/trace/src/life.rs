//! The way of each request: what happened to it, from its bios' submission to its completion, found again in the events.
//!
//! The formats have no name for a request, so that its events are known by device, direction and first sector alone. Those that lie between Q and C:
//!
//! - Q begins a bio, G makes a request of it, I and D move it on. A trace may lack any of them (no elevator: no I; `noop`'s short way: no G; a device mapper: Q and C
//!   only; begun in the middle: D and C, or C alone): each takes the request as it is;
//! - M and F put a bio, or a whole request, to the end or the front of another. Merging that the kernel did not tell shows in a longer I or D: what lies behind it and waits is taken in;
//! - X cuts a bio that waits in two, both submitted when it was. A G that is shorter than its bio does the same;
//! - A that leads to a bio without a Q of its own hands the time of the Q at the upper device down;
//! - R gives a request back to the queue; its next D counts;
//! - C of a part leaves the rest in the device;
//! - among several of the same place and direction the oldest is meant, one of the same length first;
//! - flushes without data have no sector. A D without the bit of writes, which is how Linux issues them, is for all that wait; its C is theirs.
//!
//! A request whose completion was lost would be under way for ever: after [`GIVEN_UP_NS`] of the trace's time, or when [`UNDER_WAY_MAX`] others are under way, it is given up:
//! handed out as it is, without a completion. So memory is bounded for traces that have no completions at all, and none of their requests is lost.

mod table;
#[cfg(test)]
mod tests;

use rustc_hash::FxHashSet;

use crate::batch::Batch;
use crate::event::{Action, DeviceId, Event, Rwbs};
use table::{Class, Key, Slot, Stage, Table};

/// A request that is under way for longer than this, in ns of the trace, has lost its completion.
pub const GIVEN_UP_NS: u64 = 300_000_000_000;
/// So many requests may be under way before the oldest is given up.
pub const UNDER_WAY_MAX: usize = 1 << 18;

/// The way of one request. Times are those of the events; a step that the trace does not show is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Life {
    /// The device.
    pub device: DeviceId,
    /// What it does, and how: of its first bio.
    pub op: Rwbs,
    /// Its first sector when it was over (or was last seen).
    pub sector: u64,
    /// Its length in bytes then.
    pub bytes: u32,
    /// Whose it is: the process of its first bio, or who issued it where no bio was seen.
    pub pid: u32,
    /// Its first bio was submitted (Q).
    pub queued_ns: Option<u64>,
    /// The request was allocated (G).
    pub got_ns: Option<u64>,
    /// It went to the elevator (I).
    pub inserted_ns: Option<u64>,
    /// The driver took it (D), for the last time if it was given back in between.
    pub issued_ns: Option<u64>,
    /// It completed (C).
    pub completed_ns: Option<u64>,
    /// The bios that were merged into it, after its first.
    pub merged: Vec<Merged>,
    /// How often the driver gave it back (R).
    pub requeues: u32,
    /// The error with which it completed; 0 for none.
    pub error: u16,
}

/// A bio that was merged into a request that was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Merged {
    /// Whose it is.
    pub pid: u32,
    /// When it was submitted (Q), or merged where the trace does not show that.
    pub queued_ns: u64,
    /// When it was merged (M or F).
    pub merged_ns: u64,
    /// Its first sector.
    pub sector: u64,
    /// Its length in bytes.
    pub bytes: u32,
    /// To the front of the request, not to its end.
    pub front: bool,
}

impl Life {
    /// When it was first seen on its way in, in ns; `None` of those that the trace shows only completing.
    pub fn begun_ns(&self) -> Option<u64> {
        self.queued_ns.or(self.got_ns).or(self.inserted_ns).or(self.issued_ns)
    }

    /// From submission to allocation, in ns.
    pub fn q2g_ns(&self) -> Option<u64> {
        between(self.queued_ns, self.got_ns)
    }

    /// From allocation to the elevator, in ns: the time in the plug.
    pub fn g2i_ns(&self) -> Option<u64> {
        between(self.got_ns, self.inserted_ns)
    }

    /// In the elevator, in ns.
    pub fn i2d_ns(&self) -> Option<u64> {
        between(self.inserted_ns, self.issued_ns)
    }

    /// In the device, in ns.
    pub fn d2c_ns(&self) -> Option<u64> {
        between(self.issued_ns, self.completed_ns)
    }

    /// All of it, of its first bio, in ns.
    pub fn q2c_ns(&self) -> Option<u64> {
        between(self.queued_ns, self.completed_ns)
    }

    /// The first sector behind it.
    pub fn end_sector(&self) -> u64 {
        self.sector.saturating_add(u64::from(self.bytes).div_ceil(512))
    }

    /// How many bios it is made of.
    pub fn bios(&self) -> usize {
        1 + self.merged.len()
    }

    /// Its first bio's length in bytes: without what was merged into it.
    pub fn first_bytes(&self) -> u32 {
        self.merged.iter().fold(self.bytes, |left, bio| left.saturating_sub(bio.bytes))
    }
}

/// Finds the ways of requests in a stream of events: memory grows with what is under way, not with the trace.
#[derive(Debug, Default)]
pub struct Lives {
    table: Table,
    over: Vec<Life>,
    /// Devices that tell the end of a flush with the bit of flushes, and then of the request that asked for it without.
    flushes_twice: FxHashSet<DeviceId>,
    in_device: usize,
    /// Bios that came from a device above and were not submitted anew.
    handed_down: usize,
    given_up: u64,
}

impl Lives {
    /// Nothing seen yet.
    pub fn new() -> Lives {
        Lives::default()
    }

    /// Takes in events, in the order of time.
    pub fn take(&mut self, batch: &Batch) {
        for event in batch.events() {
            self.event(event, batch.payload(event));
        }
    }

    /// Takes in one event with its payload.
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

    /// The requests that are over since this was last called, in the order of their completions; among them those that were given up, without a completion.
    pub fn over(&mut self) -> std::vec::Drain<'_, Life> {
        self.over.drain(..)
    }

    /// The trace is over: what is still under way, by the time at which it was first seen.
    pub fn rest(self) -> Vec<Life> {
        self.table.into_lives()
    }

    /// How many requests, and bios that are no request yet, are under way.
    pub fn under_way(&self) -> usize {
        self.table.len()
    }

    /// How many requests are in devices.
    pub fn in_device(&self) -> usize {
        self.in_device
    }

    /// Nothing that is under way was first seen before this, in ns; `None` when nothing is.
    pub fn earliest_ns(&self) -> Option<u64> {
        self.table.oldest().map(|slot| self.table.slot(slot).first_ns)
    }

    /// How many were given up.
    pub fn given_up(&self) -> u64 {
        self.given_up
    }
}

impl Lives {
    fn queue(&mut self, event: &Event) {
        let key = Key::of(event);
        let handed_down = |slot: &Slot| slot.from.is_some() && slot.stage == Stage::Queued && slot.left == event.bytes;
        if self.handed_down > 0
            && let Some(slot) = self.table.first(key, handed_down)
        {
            self.handed_down -= 1;
            let slot = self.table.slot_mut(slot);
            slot.from = None;
            (slot.life.queued_ns, slot.life.pid, slot.life.op) = (Some(event.time_ns), event.pid, event.op);
            return;
        }
        let slot = self.add(event, Stage::Queued);
        self.table.slot_mut(slot).life.queued_ns = Some(event.time_ns);
    }

    fn get(&mut self, event: &Event) {
        let slot = match self.best(event, &[Stage::Queued]) {
            Some(slot) => self.cut_to(slot, event.bytes),
            None => self.add(event, Stage::Got),
        };
        self.table.slot_mut(slot).life.got_ns = Some(event.time_ns);
        self.table.set_stage(slot, Stage::Got);
    }

    fn insert(&mut self, event: &Event) {
        // One that was given back is inserted again; its first time counts.
        let slot = match self.best(event, &[Stage::Got, Stage::Queued, Stage::Inserted]) {
            Some(slot) => slot,
            None => self.add(event, Stage::Inserted),
        };
        self.table.slot_mut(slot).life.inserted_ns.get_or_insert(event.time_ns);
        self.table.set_stage(slot, Stage::Inserted);
        self.grow_to(slot, event);
    }

    fn issue(&mut self, event: &Event) {
        if Class::of(event) == Class::Flush && !event.op.has(Rwbs::WRITE) && self.issue_flushes(event) {
            return;
        }
        let slot = match self.best(event, &[Stage::Inserted, Stage::Got, Stage::Queued]) {
            Some(slot) if self.table.slot(slot).stage == Stage::Queued => self.cut_to(slot, event.bytes),
            Some(slot) => slot,
            None => self.add(event, Stage::Issued),
        };
        self.grow_to(slot, event);
        self.set_issued(slot, event.time_ns);
    }

    /// One flush of the device serves all that wait for one. Whether any did.
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
        self.table.slot_mut(slot).life.issued_ns = Some(time_ns);
        self.table.set_stage(slot, Stage::Issued);
    }

    fn requeue(&mut self, event: &Event) {
        if let Some(slot) = self.best(event, &[Stage::Issued]) {
            self.in_device -= 1;
            let life = &mut self.table.slot_mut(slot).life;
            life.issued_ns = None;
            life.requeues = life.requeues.saturating_add(1);
            self.table.set_stage(slot, Stage::Inserted);
        }
    }

    fn complete(&mut self, event: &Event) {
        let key = Key::of(event);
        if key.class == Class::Flush {
            return self.complete_flushes(event, key);
        }
        let slot = match self.best(event, &[Stage::Issued, Stage::Inserted, Stage::Got, Stage::Queued]) {
            Some(slot) => slot,
            None => {
                let slot = self.add(event, Stage::Queued);
                // Whoever was interrupted by the completion, not whose request it is.
                self.table.slot_mut(slot).life.pid = 0;
                slot
            }
        };
        let found = self.table.slot_mut(slot);
        if found.life.error == 0 {
            found.life.error = event.error;
        }
        if event.bytes > 0 && event.bytes < found.left {
            return self.table.advance(slot, event.bytes);
        }
        found.life.bytes = found.life.bytes.saturating_add(event.bytes.saturating_sub(found.left));
        self.end(slot, event.time_ns);
    }

    fn complete_flushes(&mut self, event: &Event, key: Key) {
        // Linux tells the end of the device's flush, and behind it that of the request, which has no bit of flushes.
        if event.op.has(Rwbs::FLUSH) {
            if !event.op.has(Rwbs::WRITE) {
                self.flushes_twice.insert(event.device);
            }
        } else if self.flushes_twice.contains(&event.device) {
            return;
        }
        let one_for_all = !event.op.has(Rwbs::WRITE);
        let mut any = false;
        while let Some(slot) = self.table.first(key, |slot| slot.stage == Stage::Issued) {
            any = true;
            self.table.slot_mut(slot).life.error = event.error;
            self.end(slot, event.time_ns);
            if !one_for_all {
                return;
            }
        }
        if !any && let Some(slot) = self.table.first(key, |_| true) {
            self.table.slot_mut(slot).life.error = event.error;
            self.end(slot, event.time_ns);
        }
    }

    fn back_merge(&mut self, event: &Event) {
        let key = Key::of(event);
        let bio = self.best(event, &[Stage::Queued]);
        if let Some(request) = self.table.ending_at(key) {
            // A request may be merged to another's end as well.
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
        self.table.slot_mut(request).life.merged.push(bio);
        self.table.lengthen(request, event.bytes, front);
    }

    /// Merges what waits - a bio or a request - into a request.
    fn absorb(&mut self, request: u32, other: u32, time_ns: u64, front: bool) {
        let life = self.take_out(other);
        let first_bytes = life.first_bytes();
        // What was put to its front lies before its first bio.
        let in_front = life.merged.iter().filter(|bio| bio.front).map(|bio| u64::from(bio.bytes / 512)).sum::<u64>();
        let first = Merged {
            pid: life.pid,
            queued_ns: life.queued_ns.unwrap_or(time_ns),
            merged_ns: time_ns,
            sector: life.sector.saturating_add(in_front),
            bytes: first_bytes,
            front,
        };
        let merged = &mut self.table.slot_mut(request).life.merged;
        merged.push(first);
        merged.extend(life.merged.iter().map(|bio| Merged { front, ..*bio }));
        self.table.lengthen(request, life.bytes, front);
    }

    /// The request is longer than what was seen of it: takes in what waits behind it, as far as its new end.
    fn grow_to(&mut self, slot: u32, event: &Event) {
        while self.table.slot(slot).left < event.bytes {
            let missing = event.bytes - self.table.slot(slot).left;
            let behind = Key { sector: self.table.slot(slot).end(), ..Key::of(event) };
            let fits =
                |other: &Slot| other.stage != Stage::Issued && other.left <= missing && other.left == other.life.bytes;
            match self.table.first(behind, fits) {
                Some(other) if other != slot => self.absorb(slot, other, event.time_ns, false),
                _ => return self.table.lengthen(slot, missing, false),
            }
        }
    }

    /// What begins here is shorter than the bio that waits: the rest of it waits on. The slot of the front part.
    fn cut_to(&mut self, slot: u32, bytes: u32) -> u32 {
        let found = self.table.slot(slot);
        if bytes == 0 || !bytes.is_multiple_of(512) || bytes >= found.left {
            return slot;
        }
        let (mut life, first_ns, from) = (found.life.clone(), found.first_ns, found.from);
        life.sector = life.sector.saturating_add(u64::from(bytes / 512));
        life.bytes = found.left - bytes;
        let class = found.class;
        self.table.shorten(slot, bytes);
        let rest = self.table.add(class, life, first_ns, Stage::Queued);
        self.handed_down += usize::from(from.is_some());
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

    /// A bio goes on to another device: the time at which it was submitted above counts there unless it is submitted there anew.
    fn remap(&mut self, event: &Event, payload: &[u8]) {
        let Some((from, sector)) = remapped_from(payload) else { return };
        let above = Key { device: from, sector, ..Key::of(event) };
        let Some(slot) = self.table.first(above, |slot| slot.stage == Stage::Queued) else { return };
        let (queued_ns, pid, op) = {
            let life = &self.table.slot(slot).life;
            (life.queued_ns, life.pid, life.op)
        };
        let below = self.add(event, Stage::Queued);
        self.handed_down += 1;
        let below = self.table.slot_mut(below);
        (below.life.queued_ns, below.life.pid, below.life.op, below.from) = (queued_ns, pid, op, Some(above));
    }
}

impl Lives {
    /// The one that an event means: of the earliest of these stages that there is, the oldest, of the event's length if there is one.
    fn best(&self, event: &Event, stages: &[Stage]) -> Option<u32> {
        let rank = |slot: &Slot| {
            let stage = stages.iter().position(|stage| *stage == slot.stage)?;
            Some(2 * stage + usize::from(slot.left != event.bytes))
        };
        self.table.least(Key::of(event), rank)
    }

    fn add(&mut self, event: &Event, stage: Stage) -> u32 {
        self.give_up(event.time_ns);
        let key = Key::of(event);
        let life = Life {
            device: event.device,
            op: event.op,
            sector: key.sector,
            bytes: event.bytes,
            pid: event.pid,
            ..Life::default()
        };
        self.table.add(key.class, life, event.time_ns, stage)
    }

    fn give_up(&mut self, now_ns: u64) {
        while let Some(slot) = self.table.oldest()
            && (self.table.len() >= UNDER_WAY_MAX
                || self.table.slot(slot).first_ns.saturating_add(GIVEN_UP_NS) < now_ns)
        {
            let found = self.table.slot(slot);
            // A bio that was handed down is given up once, above.
            let twice = found.from.is_some() && found.stage == Stage::Queued;
            let life = self.take_out(slot);
            if !twice {
                self.given_up += 1;
                self.over.push(life);
            }
        }
    }

    fn end(&mut self, slot: u32, time_ns: u64) {
        let from = self.table.slot(slot).from;
        let mut life = self.take_out(slot);
        life.completed_ns = Some(time_ns);
        self.over.push(life);
        // What was handed down without a submission of its own is the same bio: it is over above, too.
        if let Some(above) = from
            && let Some(slot) = self.table.first(above, |slot| slot.stage == Stage::Queued)
        {
            self.take_out(slot);
        }
    }

    fn take_out(&mut self, slot: u32) -> Life {
        if self.table.slot(slot).stage == Stage::Issued {
            self.in_device -= 1;
        }
        if self.table.slot(slot).from.is_some() {
            self.handed_down -= 1;
        }
        self.table.remove(slot)
    }
}

fn between(from: Option<u64>, to: Option<u64>) -> Option<u64> {
    // Clocks of CPUs differ by a little: what seems to end before it began took no time.
    Some(to?.saturating_sub(from?))
}

/// The device and the sector from which a remap leads: big-endian device, device, sector.
fn remapped_from(payload: &[u8]) -> Option<(DeviceId, u64)> {
    let device = u32::from_be_bytes(*payload.first_chunk()?);
    let sector = u64::from_be_bytes(*payload.get(8..)?.first_chunk()?);
    Some((DeviceId(device), sector))
}
