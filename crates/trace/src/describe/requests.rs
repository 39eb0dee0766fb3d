//! Statistics of all requests, and of the requests of each process.

use serde::Serialize;

use super::distribution::{Distribution, Figures};
use crate::event::{DeviceId, Rwbs};
use crate::request::RequestRecord;

/// Number of size classes, in powers of two: up to 512 bytes, 1 KiB ... 2 GiB, and above.
const SIZES: usize = 24;

/// Accumulates [`RequestFigures`].
#[derive(Debug)]
pub(super) struct RequestStats {
    requests: u64,
    bios: u64,
    merged: u64,
    mix: Mix,
    sizes: [[u64; 3]; SIZES],
    unfinished: u64,
    errors: u64,
    requeues: u64,
    pub q2q: Distribution,
    q2g: Distribution,
    g2i: Distribution,
    q2m: Distribution,
    i2d: Distribution,
    m2d: Distribution,
    d2c: Distribution,
    q2c: Distribution,
    flush: Distribution,
    preflush: Distribution,
    postflush: Distribution,
    pub think: Distribution,
    pub seeks: Distances,
}

/// Statistics of a set of requests: all of them, or those of a process.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RequestFigures {
    /// Number of requests; for a process, those whose first bio it submitted.
    pub requests: u64,
    /// Number of submitted bios.
    pub bios: u64,
    /// Number of bios that were merged into an existing request.
    pub merged: u64,
    /// Bios by operation.
    pub mix: Mix,
    /// Requests by size, without requests of size 0.
    pub sizes: Vec<SizeCount>,
    /// Number of requests without a completion in the trace.
    pub unfinished: u64,
    /// Number of failed requests.
    pub errors: u64,
    /// Number of times that the driver returned a request.
    pub requeues: u64,
    /// Distances between bios in order of submission.
    pub seeks: SeekFigures,
    /// Durations of the steps.
    pub phases: Phases,
    /// Time in ns from a completion to the next submission of the same process.
    pub think_ns: Figures,
}

/// Number of bios and bytes by operation, and number of bios with each flag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Mix {
    /// Number of reads.
    pub reads: u64,
    /// Bytes of the reads.
    pub read_bytes: u64,
    /// Number of writes.
    pub writes: u64,
    /// Bytes of the writes.
    pub write_bytes: u64,
    /// Number of discards.
    pub discards: u64,
    /// Bytes of the discards.
    pub discard_bytes: u64,
    /// Number of flushes without data.
    pub flushes: u64,
    /// Number of other bios: passed-through commands.
    pub others: u64,
    /// Number of synchronous bios.
    pub sync: u64,
    /// Number of bios of file-system metadata.
    pub meta: u64,
    /// Number of read-ahead bios.
    pub ahead: u64,
    /// Number of bios with force unit access (FUA).
    pub fua: u64,
    /// Number of bios with data and a preflush.
    pub preflush: u64,
}

/// Number of requests of a size class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SizeCount {
    /// Largest size of the class in bytes; the smallest is one more than half of it.
    pub bytes_max: u64,
    /// Number of reads.
    pub reads: u64,
    /// Number of writes.
    pub writes: u64,
    /// Number of discards.
    pub discards: u64,
}

/// Durations of the steps in ns, named as in btt: Q2Q between submissions, Q2G until the allocation
/// of the request, G2I in the plug, Q2M until the merge, I2D in the elevator, M2D from the merge to
/// the device, D2C in the device, Q2C in total. D2C and Q2C count every bio, as btt does. Flushes
/// without data are separate. Of a write with a flush sequence, Q2C contains the sequence and D2C
/// only the data: `preflush` is the flush before the data in the device, `postflush` the time from
/// the completion of the data to that of the request.
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
    pub preflush_ns: Figures,
    pub postflush_ns: Figures,
}

/// Distribution of distances between consecutive requests on one device: from the end of one
/// request to the start of the next.
#[derive(Debug)]
pub struct Distances {
    last: Option<(DeviceId, u64)>,
    sequential: u64,
    backward: u64,
    distance: Distribution,
}

/// Statistics of distances.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SeekFigures {
    /// Number of distances of 0.
    pub sequential: u64,
    /// Number of distances to a lower sector.
    pub backward: u64,
    /// Absolute distances in sectors, including those of 0.
    pub distance_sectors: Figures,
}

impl RequestStats {
    /// Creates empty statistics whose percentiles have `digits` significant digits.
    pub fn new(digits: u8) -> RequestStats {
        let distribution = || Distribution::new(digits);
        RequestStats {
            requests: 0,
            bios: 0,
            merged: 0,
            mix: Mix::default(),
            sizes: [[0; 3]; SIZES],
            unfinished: 0,
            errors: 0,
            requeues: 0,
            q2q: distribution(),
            q2g: distribution(),
            g2i: distribution(),
            q2m: distribution(),
            i2d: distribution(),
            m2d: distribution(),
            d2c: distribution(),
            q2c: distribution(),
            flush: distribution(),
            preflush: distribution(),
            postflush: distribution(),
            think: distribution(),
            seeks: Distances::new(digits),
        }
    }

    /// Counts a request and its first bio. Requests without a recorded submission count as well.
    pub fn request(&mut self, record: &RequestRecord) {
        self.requests += 1;
        self.unfinished += u64::from(record.completed_ns.is_none());
        self.errors += u64::from(record.error != 0);
        self.requeues += u64::from(record.requeues);
        self.bio(record.op, record.first_bytes(), record.bytes);
        if is_flush(record) {
            add_time(&mut self.flush, record.q2c_ns());
            return;
        }
        let op = if record.op.has(Rwbs::DISCARD) { 2 } else { usize::from(record.op.has(Rwbs::WRITE)) };
        if record.bytes > 0 {
            self.sizes[size_of(record.bytes)][op] += 1;
        }
        add_time(&mut self.preflush, record.preflush_ns());
        add_time(&mut self.postflush, record.postflush_ns());
        add_time(&mut self.q2g, record.q2g_ns());
        add_time(&mut self.g2i, record.g2i_ns());
        add_time(&mut self.i2d, record.i2d_ns());
        add_time(&mut self.d2c, record.d2c_ns());
        add_time(&mut self.q2c, record.q2c_ns());
    }

    /// Counts the merged bio at an index of a request's list.
    pub fn merged(&mut self, record: &RequestRecord, index: usize) {
        let Some(bio) = record.merged.get(index) else { return };
        self.merged += 1;
        self.bio(record.op, bio.bytes, bio.bytes);
        self.q2m.record(bio.merged_ns.saturating_sub(bio.queued_ns));
        add_time(&mut self.m2d, record.issued_ns.map(|issued_ns| issued_ns.saturating_sub(bio.merged_ns)));
        add_time(&mut self.d2c, record.d2c_ns());
        add_time(&mut self.q2c, record.completed_ns.map(|completed_ns| completed_ns.saturating_sub(bio.queued_ns)));
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

    /// Number of counted bios.
    pub fn bios(&self) -> u64 {
        self.bios
    }

    pub fn figures(&self) -> RequestFigures {
        let sizes = self.sizes.iter().enumerate().filter(|(_, counts)| counts.iter().any(|count| *count > 0));
        let size = |(index, counts): (usize, &[u64; 3])| SizeCount {
            bytes_max: 512 << index,
            reads: counts[0],
            writes: counts[1],
            discards: counts[2],
        };
        RequestFigures {
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
                preflush_ns: self.preflush.figures(),
                postflush_ns: self.postflush.figures(),
            },
            think_ns: self.think.figures(),
        }
    }
}

impl Mix {
    /// Returns the number of bytes of all operations.
    pub fn bytes(&self) -> u64 {
        self.read_bytes + self.write_bytes + self.discard_bytes
    }
}

impl SeekFigures {
    /// Returns the fraction of distances of 0, 0 to 1.
    pub fn sequential_share(&self) -> f64 {
        share(self.sequential, self.distance_sectors.count)
    }

    /// Returns the fraction of distances to a lower sector, 0 to 1.
    pub fn backward_share(&self) -> f64 {
        share(self.backward, self.distance_sectors.count)
    }
}

impl Distances {
    /// Creates an empty distribution whose percentiles have `digits` significant digits, 1 to 5.
    pub fn new(digits: u8) -> Distances {
        Distances { last: None, sequential: 0, backward: 0, distance: Distribution::new(digits) }
    }

    /// Adds a request by its first and end sector. Distances between devices do not count.
    pub fn next(&mut self, device: DeviceId, sector: u64, end: u64) {
        if let Some((last_device, last)) = self.last.replace((device, end))
            && last_device == device
        {
            self.sequential += u64::from(sector == last);
            self.backward += u64::from(sector < last);
            self.distance.record(sector.abs_diff(last));
        }
    }

    /// Adds the distance from the end of a request to the first sector of the next.
    pub fn between(&mut self, from: u64, sector: u64) {
        self.sequential += u64::from(sector == from);
        self.backward += u64::from(sector < from);
        self.distance.record(sector.abs_diff(from));
    }

    /// Returns the statistics.
    pub fn figures(&self) -> SeekFigures {
        SeekFigures { sequential: self.sequential, backward: self.backward, distance_sectors: self.distance.figures() }
    }
}

/// Returns true for flushes without data, which do not count in the phases, as with btt.
pub(super) fn is_flush(record: &RequestRecord) -> bool {
    record.bytes == 0 && record.op.has(Rwbs::FLUSH)
}

fn add_time(distribution: &mut Distribution, value: Option<u64>) {
    if let Some(value) = value {
        distribution.record(value);
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
        let figures = seeks.figures();
        assert_eq!((figures.sequential, figures.backward, figures.distance_sectors.count), (1, 1, 2));
        assert_eq!(figures.distance_sectors.mean, 6.0);
    }
}
