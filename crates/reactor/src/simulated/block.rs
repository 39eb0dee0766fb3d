//! Block I/O on simulated disks.

use super::disk::SECTOR;
use super::sim::{Due, File, InFlightIo, Sabotage, Sim};
use crate::{Event, FileId, Io, IoDone, IoOp};

const EIO: i32 = 5;
const EBADF: i32 = 9;
const EINVAL: i32 = 22;
const ENOSPC: i32 = 28;
/// I/Os of a thousand that take effect in two parts.
const PARTS_PERMILLE: u64 = 150;

impl Sim {
    /// Starts an I/O. It takes effect at a random time, or in two parts at two times, and completes
    /// later.
    pub(super) fn start(&mut self, tag: u64, mut io: Io) {
        if self.crashed {
            return;
        }
        if self.sabotage == Sabotage::MixesDisks && self.prng.permille(30) {
            self.redirect(&mut io);
        }
        self.ios += 1;
        let id = self.ios;
        let numbers = [3, tag, io.offset, io.length];
        self.trace.note(self.now_ns, &numbers, format_args!("io {id} starts: {}", Described(&io)));
        let Some(file) = self.file(io.file) else {
            self.violated(format!("io {id} on file {} that is not open", io.file.0));
            self.in_flight.insert(id, InFlightIo { tag, io, result: Err(EBADF), horizon: 0, moved: 0 });
            return self.due(self.now_ns, Due::Complete(id));
        };
        if let Err(what) = self.check(&io, file) {
            self.violated(format!("io {id} ({}): {what}", Described(&io)));
        }
        let disk = &self.disks[file.disk.0];
        let (plan, horizon) = (disk.plan, disk.horizon());
        let writes = matches!(io.op, IoOp::Write { .. } | IoOp::Zero { .. });
        let result = if self.prng.permille(plan.errors_permille) {
            Err(EIO)
        } else if writes && self.prng.permille(plan.no_space_permille) {
            Err(ENOSPC)
        } else {
            Ok(())
        };
        let effect_ns = self.now_ns + self.prng.magnitude(plan.latency_ns_max);
        let hang_ns = if self.prng.permille(plan.hangs_permille) { self.prng.between(0, plan.hang_ns_max) } else { 0 };
        self.in_flight.insert(id, InFlightIo { tag, io, result, horizon, moved: 0 });
        self.due(effect_ns + hang_ns, Due::Effect(id));
    }

    fn check(&self, io: &Io, file: File) -> Result<(), String> {
        let size = self.disks[file.disk.0].plan.size as u64;
        let end = io.offset.checked_add(io.length).ok_or("it ends beyond 2^64")?;
        let data = matches!(io.op, IoOp::Read | IoOp::Write { .. });
        let held = io.buffer.as_ref().map_or(0, |buffer| buffer.len() as u64);
        if data && held < io.length {
            return Err(format!("its buffer has only {held} bytes"));
        }
        if io.op != IoOp::Read && io.op != IoOp::Flush && end > size {
            return Err(format!("it reaches beyond the end at {size}"));
        }
        if data && file.direct && !(io.offset | io.length).is_multiple_of(512) {
            return Err("direct I/O is not aligned".to_owned());
        }
        Ok(())
    }

    /// Applies an I/O, or its next part.
    pub(super) fn effect(&mut self, id: u64) {
        let Some(mut pending) = self.in_flight.remove(&id) else { return };
        let length = pending.io.length;
        let mut to = length;
        if let Some(file) = self.file(pending.io.file) {
            if self.check(&pending.io, file).is_err() {
                pending.result = Err(EINVAL);
            } else {
                let has_failed = pending.result.is_err();
                if has_failed || (pending.moved == 0 && self.prng.permille(PARTS_PERMILLE)) {
                    to = self.part(length, file.direct);
                }
                self.apply(id, &mut pending, to, file);
                if has_failed {
                    to = length;
                }
            }
        }
        let latency_ns = self.file(pending.io.file).map_or(0, |file| self.disks[file.disk.0].plan.latency_ns_max);
        pending.moved = to;
        self.in_flight.insert(id, pending);
        let next_ns = self.now_ns + self.prng.magnitude(latency_ns);
        self.due(next_ns, if to < length { Due::Effect(id) } else { Due::Complete(id) });
    }

    /// Returns the length of the first part of an I/O: whole sectors with direct I/O, else any
    /// number of bytes.
    fn part(&mut self, length: u64, direct: bool) -> u64 {
        let part = self.prng.between(0, length);
        if direct { part - part % SECTOR as u64 } else { part }
    }

    /// Applies the bytes of an I/O up to `to`. A trim is applied at once if it does not fail.
    fn apply(&mut self, id: u64, pending: &mut InFlightIo, to: u64, file: File) {
        let is_lost = self.sabotage == Sabotage::LosesWrites && self.prng.permille(30);
        let disk = &mut self.disks[file.disk.0];
        let InFlightIo { io, result, moved, .. } = pending;
        let (from, to) = (*moved as usize, to as usize);
        let at = io.offset as usize;
        match (io.op, &mut io.buffer) {
            (IoOp::Read, Some(buffer)) => disk.read(io.offset + *moved, &mut buffer[from..to]),
            (IoOp::Write { .. }, Some(buffer)) if !is_lost => disk.write(id, at + from, &buffer[from..to]),
            (IoOp::Zero { punch }, _) => disk.zero(id, at + from, to - from, punch),
            (IoOp::Trim, _) if result.is_ok() && !disk.plan.trim_keeps => disk.zero(id, at + from, to - from, true),
            _ => {}
        }
    }

    /// Redirects an I/O to a file of another disk that is large enough.
    fn redirect(&mut self, io: &mut Io) {
        let Some(own) = self.file(io.file) else { return };
        let fits = |number: &u32| {
            let other = self.files[*number as usize];
            let size = self.disks[other.disk.0].plan.size as u64;
            other.disk != own.disk && !other.direct && io.offset + io.length <= size
        };
        if let Some(number) = (0..self.files.len() as u32).find(fits) {
            io.file = FileId(number);
        }
    }

    /// Completes an I/O.
    pub(super) fn complete(&mut self, id: u64) {
        if self.sabotage == Sabotage::SwapsReads && self.prng.permille(100) {
            self.swap_read(id);
        }
        let Some(InFlightIo { tag, io, result, horizon, .. }) = self.in_flight.remove(&id) else { return };
        let (mut extents, mut missing) = (Vec::new(), 0);
        if let Some(file) = self.file(io.file) {
            let extents_max = self.prng.between(1, 5) as usize;
            let disk = &mut self.disks[file.disk.0];
            match (io.op, result) {
                (IoOp::Flush, Ok(())) if self.sabotage != Sabotage::FlushDoesNothing => disk.flush(horizon),
                (IoOp::Flush, Err(_)) if disk.plan.failed_flush_loses => disk.lose(horizon),
                (IoOp::Write { durable: true }, Ok(())) if self.sabotage != Sabotage::DurableWriteIsNot => {
                    disk.persist(id);
                }
                (IoOp::Status, Ok(())) => extents = disk.status(io.offset, io.length, extents_max),
                (IoOp::Read, Ok(())) => {
                    missing = (io.offset + io.length).saturating_sub(disk.plan.size as u64).min(io.length)
                }
                _ => {}
            }
            disk.finish(id);
        }
        if self.sabotage == Sabotage::DropsCompletions && self.prng.permille(20) {
            return;
        }
        self.trace.note(self.now_ns, &[4, id, tag], format_args!("io {id} completes: {result:?}"));
        self.events.push_back(Event::Done { tag, done: IoDone { result, buffer: io.buffer, extents, missing } });
    }

    /// Exchanges the data of two reads of the same length in flight.
    fn swap_read(&mut self, id: u64) {
        let Some(mut one) = self.in_flight.remove(&id) else { return };
        let other = self
            .in_flight
            .values_mut()
            .find(|other| one.io.op == IoOp::Read && other.io.op == IoOp::Read && other.io.length == one.io.length);
        if let (Some(other), Some(mine)) = (other, &mut one.io.buffer)
            && let Some(theirs) = &mut other.io.buffer
        {
            let length = one.io.length as usize;
            mine[..length].swap_with_slice(&mut theirs[..length]);
        }
        self.in_flight.insert(id, one);
    }
}

/// Formats an I/O for the log.
struct Described<'a>(&'a Io);

impl std::fmt::Display for Described<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} at {} length {}", self.0.op, self.0.offset, self.0.length)
    }
}
