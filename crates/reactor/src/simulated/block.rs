//! Block I/O on the simulated disks.

use super::disk::SECTOR;
use super::sim::{Due, File, Sabotage, Sim, UnderWay};
use crate::{Event, FileId, Io, IoDone, IoOp};

const EIO: i32 = 5;
const EBADF: i32 = 9;
const EINVAL: i32 = 22;
const ENOSPC: i32 = 28;
/// How many of a thousand I/Os take effect in two parts.
const PARTS_PERMILLE: u64 = 150;

impl Sim {
    /// Starts an I/O: it takes effect at a time that chance chooses, or in two parts at two times,
    /// and is over at a later one.
    pub(super) fn start(&mut self, tag: u64, mut io: Io) {
        if self.crashed {
            return;
        }
        if self.sabotage == Sabotage::MixesDisks && self.prng.permille(30) {
            self.mix_up(&mut io);
        }
        self.ios += 1;
        let id = self.ios;
        let numbers = [3, tag, io.offset, io.length];
        self.trace.note(self.now_ns, &numbers, format_args!("io {id} starts: {}", Described(&io)));
        let Some(file) = self.file(io.file) else {
            self.violated(format!("io {id} on file {} that is not open", io.file.0));
            self.under_way.insert(id, UnderWay { tag, io, result: Err(EBADF), horizon: 0, moved: 0 });
            return self.due(self.now_ns, Due::Over(id));
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
        self.under_way.insert(id, UnderWay { tag, io, result, horizon, moved: 0 });
        self.due(effect_ns + hang_ns, Due::Effect(id));
    }

    fn check(&self, io: &Io, file: File) -> Result<(), String> {
        let size = self.disks[file.disk.0].plan.size as u64;
        let end = io.offset.checked_add(io.length).ok_or("it ends beyond 2^64")?;
        let data = matches!(io.op, IoOp::Read | IoOp::Write { .. });
        let held = io.buffer.as_ref().map_or(0, |buffer| buffer.len() as u64);
        if data && held < io.length {
            return Err(format!("its buffer has {held} bytes only"));
        }
        if io.op != IoOp::Read && io.op != IoOp::Flush && end > size {
            return Err(format!("it reaches beyond the end at {size}"));
        }
        if data && file.direct && !(io.offset | io.length).is_multiple_of(512) {
            return Err("direct I/O that is not aligned".to_owned());
        }
        Ok(())
    }

    /// An I/O takes effect, or the next part of one.
    pub(super) fn effect(&mut self, id: u64) {
        let Some(mut under_way) = self.under_way.remove(&id) else { return };
        let length = under_way.io.length;
        let mut to = length;
        if let Some(file) = self.file(under_way.io.file) {
            if self.check(&under_way.io, file).is_err() {
                under_way.result = Err(EINVAL);
            } else {
                let has_failed = under_way.result.is_err();
                if has_failed || (under_way.moved == 0 && self.prng.permille(PARTS_PERMILLE)) {
                    to = self.part(length, file.direct);
                }
                self.apply(id, &mut under_way, to, file);
                if has_failed {
                    to = length;
                }
            }
        }
        let latency_ns = self.file(under_way.io.file).map_or(0, |file| self.disks[file.disk.0].plan.latency_ns_max);
        under_way.moved = to;
        self.under_way.insert(id, under_way);
        let next_ns = self.now_ns + self.prng.magnitude(latency_ns);
        self.due(next_ns, if to < length { Due::Effect(id) } else { Due::Over(id) });
    }

    /// How far an I/O comes that does not come to its end: whole sectors with direct I/O, else any
    /// bytes.
    fn part(&mut self, length: u64, direct: bool) -> u64 {
        let part = self.prng.between(0, length);
        if direct { part - part % SECTOR as u64 } else { part }
    }

    /// Does the bytes of an I/O from where it is to `to`; what has no data is done at once, wholly
    /// if it does not fail.
    fn apply(&mut self, id: u64, under_way: &mut UnderWay, to: u64, file: File) {
        let lost = self.sabotage == Sabotage::LosesWrites && self.prng.permille(30);
        let disk = &mut self.disks[file.disk.0];
        let UnderWay { io, result, moved, .. } = under_way;
        let (from, to) = (*moved as usize, to as usize);
        let at = io.offset as usize;
        match (io.op, &mut io.buffer) {
            (IoOp::Read, Some(buffer)) => disk.read(io.offset + *moved, &mut buffer[from..to]),
            (IoOp::Write { .. }, Some(buffer)) if !lost => disk.write(id, at + from, &buffer[from..to]),
            (IoOp::Zero { punch }, _) => disk.zero(id, at + from, to - from, punch),
            (IoOp::Trim, _) if result.is_ok() && !disk.plan.trim_keeps => disk.zero(id, at + from, to - from, true),
            _ => {}
        }
    }

    /// Sends an I/O to a file of another disk, if it fits there.
    fn mix_up(&mut self, io: &mut Io) {
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

    /// An I/O is over: the server hears of it.
    pub(super) fn over(&mut self, id: u64) {
        if self.sabotage == Sabotage::SwapsReads && self.prng.permille(100) {
            self.swap_read(id);
        }
        let Some(UnderWay { tag, io, result, horizon, .. }) = self.under_way.remove(&id) else { return };
        let mut extents = Vec::new();
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
                _ => {}
            }
            disk.finish(id);
        }
        if self.sabotage == Sabotage::DropsCompletions && self.prng.permille(20) {
            return;
        }
        self.trace.note(self.now_ns, &[4, id, tag], format_args!("io {id} is over: {result:?}"));
        self.events.push_back(Event::Done { tag, done: IoDone { result, buffer: io.buffer, extents } });
    }

    /// Exchanges the data of two reads of one length that are under way.
    fn swap_read(&mut self, id: u64) {
        let Some(mut one) = self.under_way.remove(&id) else { return };
        let other = self
            .under_way
            .values_mut()
            .find(|other| one.io.op == IoOp::Read && other.io.op == IoOp::Read && other.io.length == one.io.length);
        if let (Some(other), Some(mine)) = (other, &mut one.io.buffer)
            && let Some(theirs) = &mut other.io.buffer
        {
            let length = one.io.length as usize;
            mine[..length].swap_with_slice(&mut theirs[..length]);
        }
        self.under_way.insert(id, one);
    }
}

/// An I/O in a line of the log.
struct Described<'a>(&'a Io);

impl std::fmt::Display for Described<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} at {} length {}", self.0.op, self.0.offset, self.0.length)
    }
}
