//! What is counted of all requests together, and of those of each process.

use serde::Serialize;

use super::spread::{Figures, Spread};
use crate::event::{DeviceId, Rwbs};
use crate::life::Life;

/// Requests in sizes of powers of two: up to 512 bytes, 1 KiB ... 2 GiB, and above.
const SIZES: usize = 24;

/// Counts as they come.
#[derive(Debug)]
pub(super) struct Part {
    requests: u64,
    bios: u64,
    merged: u64,
    mix: Mix,
    sizes: [[u64; 3]; SIZES],
    unfinished: u64,
    errors: u64,
    requeues: u64,
    pub q2q: Spread,
    q2g: Spread,
    g2i: Spread,
    q2m: Spread,
    i2d: Spread,
    m2d: Spread,
    d2c: Spread,
    q2c: Spread,
    flush: Spread,
    pub think: Spread,
    pub seeks: Distances,
}

/// What all requests, or those of a process, amount to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PartFigures {
    /// Requests; of a process those whose first bio is its own.
    pub requests: u64,
    /// Bios: what was submitted.
    pub bios: u64,
    /// Bios that were merged into a request that was there.
    pub merged: u64,
    /// Bios by what they do.
    pub mix: Mix,
    /// Requests by size, without those of no size.
    pub sizes: Vec<SizeCount>,
    /// Requests that the trace does not show completing.
    pub unfinished: u64,
    /// Requests that failed.
    pub errors: u64,
    /// How often the driver gave a request back.
    pub requeues: u64,
    /// Distances between bios in the order of their submission.
    pub seeks: SeekFigures,
    /// How long the steps took.
    pub phases: Phases,
    /// From a completion to the next submission of the same process.
    pub think_ns: Figures,
}

/// Bios and their bytes by what they do, and how many of them are marked how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Mix {
    /// Reads.
    pub reads: u64,
    /// Their bytes.
    pub read_bytes: u64,
    /// Writes.
    pub writes: u64,
    /// Their bytes.
    pub write_bytes: u64,
    /// Discards.
    pub discards: u64,
    /// Their bytes.
    pub discard_bytes: u64,
    /// Flushes without data.
    pub flushes: u64,
    /// Anything else: passed-through commands.
    pub others: u64,
    /// Those somebody waits for.
    pub sync: u64,
    /// A file system's own data.
    pub meta: u64,
    /// Read ahead.
    pub ahead: u64,
    /// Durable before they complete.
    pub fua: u64,
    /// With a flush before them.
    pub preflush: u64,
}

/// Requests of a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SizeCount {
    /// The greatest size, in bytes; the least is one more than half of it.
    pub bytes_max: u64,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Discards.
    pub discards: u64,
}

/// Times of steps in ns, as btt names them: Q2Q between submissions, Q2G to the request's allocation, G2I in the plug, Q2M to the merge, I2D in the elevator, M2D from
/// the merge to the device, D2C in the device, Q2C in all. D2C and Q2C count every bio, as btt does; flushes without data are apart.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Phases {
    pub q2q_ns: Figures,
    pub q2g_ns: Figures,
    pub g2i_ns: Figures,
    pub q2m_ns: Figures,
    pub i2d_ns: Figures,
    pub m2d_ns: Figures,
    pub d2c_ns: Figures,
    pub q2c_ns: Figures,
    pub flush_q2c_ns: Figures,
}

/// Distances between neighbours in an order, on one device: from the end of the one to the start of the next.
#[derive(Debug)]
pub struct Distances {
    last: Option<(DeviceId, u64)>,
    sequential: u64,
    backward: u64,
    distance: Spread,
}

/// What is told of distances.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SeekFigures {
    /// How many of them are 0.
    pub sequential: u64,
    /// How many lead back.
    pub backward: u64,
    /// How far they are, either way, with those of 0.
    pub distance_sectors: Figures,
}

impl Part {
    /// With percentiles of so many digits.
    pub fn new(digits: u8) -> Part {
        let spread = || Spread::new(digits);
        Part {
            requests: 0,
            bios: 0,
            merged: 0,
            mix: Mix::default(),
            sizes: [[0; 3]; SIZES],
            unfinished: 0,
            errors: 0,
            requeues: 0,
            q2q: spread(),
            q2g: spread(),
            g2i: spread(),
            q2m: spread(),
            i2d: spread(),
            m2d: spread(),
            d2c: spread(),
            q2c: spread(),
            flush: spread(),
            think: spread(),
            seeks: Distances::new(digits),
        }
    }

    /// Counts a request, and of its bios the first. What does not come from a submission is counted all the same.
    pub fn request(&mut self, life: &Life) {
        self.requests += 1;
        self.unfinished += u64::from(life.completed_ns.is_none());
        self.errors += u64::from(life.error != 0);
        self.requeues += u64::from(life.requeues);
        self.bio(life.op, life.first_bytes(), life.bytes);
        if is_flush(life) {
            record(&mut self.flush, life.q2c_ns());
            return;
        }
        let op = if life.op.has(Rwbs::DISCARD) { 2 } else { usize::from(life.op.has(Rwbs::WRITE)) };
        if life.bytes > 0 {
            self.sizes[size_of(life.bytes)][op] += 1;
        }
        record(&mut self.q2g, life.q2g_ns());
        record(&mut self.g2i, life.g2i_ns());
        record(&mut self.i2d, life.i2d_ns());
        record(&mut self.d2c, life.d2c_ns());
        record(&mut self.q2c, life.q2c_ns());
    }

    /// Counts the bio of a place in a request's list of merged ones.
    pub fn merged(&mut self, life: &Life, place: usize) {
        let Some(bio) = life.merged.get(place) else { return };
        self.merged += 1;
        self.bio(life.op, bio.bytes, bio.bytes);
        self.q2m.record(bio.merged_ns.saturating_sub(bio.queued_ns));
        record(&mut self.m2d, life.issued_ns.map(|issued_ns| issued_ns.saturating_sub(bio.merged_ns)));
        record(&mut self.d2c, life.d2c_ns());
        record(&mut self.q2c, life.completed_ns.map(|completed_ns| completed_ns.saturating_sub(bio.queued_ns)));
    }

    fn bio(&mut self, op: Rwbs, bytes: u32, request_bytes: u32) {
        self.bios += 1;
        let bytes = u64::from(bytes);
        let mix = &mut self.mix;
        if request_bytes == 0 && op.has(Rwbs::FLUSH) {
            mix.flushes += 1;
        } else if op.has(Rwbs::DISCARD) {
            mix.discards += 1;
            mix.discard_bytes += bytes;
        } else if op.has(Rwbs::WRITE) {
            mix.writes += 1;
            mix.write_bytes += bytes;
        } else if op.has(Rwbs::READ) {
            mix.reads += 1;
            mix.read_bytes += bytes;
        } else {
            mix.others += 1;
        }
        mix.sync += u64::from(op.has(Rwbs::SYNC));
        mix.meta += u64::from(op.has(Rwbs::META));
        mix.ahead += u64::from(op.has(Rwbs::AHEAD));
        mix.fua += u64::from(op.has(Rwbs::FUA));
        mix.preflush += u64::from(request_bytes > 0 && op.has(Rwbs::FLUSH));
    }

    /// How many bios were counted.
    pub fn bios(&self) -> u64 {
        self.bios
    }

    pub fn figures(&self) -> PartFigures {
        let sizes = self.sizes.iter().enumerate().filter(|(_, counts)| counts.iter().any(|count| *count > 0));
        let size = |(index, counts): (usize, &[u64; 3])| SizeCount {
            bytes_max: 512 << index,
            reads: counts[0],
            writes: counts[1],
            discards: counts[2],
        };
        PartFigures {
            requests: self.requests,
            bios: self.bios,
            merged: self.merged,
            mix: self.mix,
            sizes: sizes.map(size).collect(),
            unfinished: self.unfinished,
            errors: self.errors,
            requeues: self.requeues,
            seeks: self.seeks.figures(),
            phases: Phases {
                q2q_ns: self.q2q.figures(),
                q2g_ns: self.q2g.figures(),
                g2i_ns: self.g2i.figures(),
                q2m_ns: self.q2m.figures(),
                i2d_ns: self.i2d.figures(),
                m2d_ns: self.m2d.figures(),
                d2c_ns: self.d2c.figures(),
                q2c_ns: self.q2c.figures(),
                flush_q2c_ns: self.flush.figures(),
            },
            think_ns: self.think.figures(),
        }
    }
}

impl Mix {
    /// All bytes.
    pub fn bytes(&self) -> u64 {
        self.read_bytes + self.write_bytes + self.discard_bytes
    }
}

impl SeekFigures {
    /// The share of neighbours without a distance, 0 to 1.
    pub fn sequential_share(&self) -> f64 {
        share(self.sequential, self.distance_sectors.count)
    }

    /// The share that leads back, 0 to 1.
    pub fn backward_share(&self) -> f64 {
        share(self.backward, self.distance_sectors.count)
    }
}

impl Distances {
    /// None yet; percentiles are right to so many digits, 1 to 5.
    pub fn new(digits: u8) -> Distances {
        Distances { last: None, sequential: 0, backward: 0, distance: Spread::new(digits) }
    }

    /// The next one begins and ends there. Distances between devices mean nothing.
    pub fn next(&mut self, device: DeviceId, sector: u64, end: u64) {
        if let Some((last_device, last)) = self.last.replace((device, end))
            && last_device == device
        {
            self.sequential += u64::from(sector == last);
            self.backward += u64::from(sector < last);
            self.distance.record(sector.abs_diff(last));
        }
    }

    /// Counts the distance from the end of one to the first sector of the next.
    pub fn between(&mut self, from: u64, sector: u64) {
        self.sequential += u64::from(sector == from);
        self.backward += u64::from(sector < from);
        self.distance.record(sector.abs_diff(from));
    }

    /// What they amount to.
    pub fn figures(&self) -> SeekFigures {
        SeekFigures { sequential: self.sequential, backward: self.backward, distance_sectors: self.distance.figures() }
    }
}

/// Flushes without data are no part of the phases, as with btt.
pub(super) fn is_flush(life: &Life) -> bool {
    life.bytes == 0 && life.op.has(Rwbs::FLUSH)
}

fn record(spread: &mut Spread, value: Option<u64>) {
    if let Some(value) = value {
        spread.record(value);
    }
}

fn size_of(bytes: u32) -> usize {
    let sectors = bytes.div_ceil(512).max(1);
    (sectors.next_power_of_two().trailing_zeros() as usize).min(SIZES - 1)
}

fn share(of: u64, all: u64) -> f64 {
    if all == 0 { 0.0 } else { of as f64 / all as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_counted_up_to_powers_of_two() {
        assert_eq!([1, 512, 513, 4096, 4097, u32::MAX].map(size_of), [0, 0, 1, 3, 4, 23]);
    }

    #[test]
    fn distances_count_on_one_device_only() {
        let mut seeks = Distances::new(3);
        let (disk, other) = (DeviceId(1), DeviceId(2));
        seeks.next(disk, 0, 8);
        seeks.next(disk, 8, 16);
        seeks.next(disk, 4, 12);
        seeks.next(other, 0, 8);
        seeks.next(disk, 1000, 1008);
        let told = seeks.figures();
        assert_eq!((told.sequential, told.backward, told.distance_sectors.count), (1, 1, 2));
        assert_eq!(told.distance_sectors.mean, 6.0);
    }
}
