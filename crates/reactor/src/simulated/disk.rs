//! A disk with a volatile write cache: reads return written data at once, but only a flush or a
//! durable write makes data durable.

use super::prng::Prng;
use crate::Allocation;

/// The size in bytes of an atomic write.
pub const SECTOR: usize = 512;
/// The unit of allocation in bytes.
const BLOCK: usize = 4096;

/// The behaviour of a disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskPlan {
    /// Size in bytes.
    pub size: usize,
    /// Maximum latency of an I/O that does not hang, in ns.
    pub latency_ns_max: u64,
    /// I/Os of a thousand that hang.
    pub hangs_permille: u64,
    /// Maximum duration of a hang, in ns.
    pub hang_ns_max: u64,
    /// I/Os of a thousand that fail with EIO, some of them after a part took effect.
    pub errors_permille: u64,
    /// Writes of a thousand that fail with ENOSPC.
    pub no_space_permille: u64,
    /// A failed flush loses the data that it covered, and the next flush succeeds, as in kernels.
    pub failed_flush_loses: bool,
    /// A trim keeps the data; otherwise trimmed ranges read as zeroes.
    pub trim_keeps: bool,
}

/// A disk.
#[derive(Debug)]
pub struct Disk {
    /// The behaviour.
    pub plan: DiskPlan,
    /// The data that reads return.
    seen: Vec<u8>,
    /// For each block: it is allocated.
    written: Vec<bool>,
    /// The durable data.
    stable: Vec<u8>,
    /// For each sector: the order of the write that made its durable data.
    stable_order: Vec<u64>,
    cache: Vec<Cached>,
    order: u64,
    finished: u64,
}

/// A write in the cache: all sectors that it touched, with their data after the write.
#[derive(Debug)]
struct Cached {
    order: u64,
    io: u64,
    first: usize,
    sectors: Vec<u8>,
    /// The rank of its completion among all I/Os, from 1 on.
    finished: Option<u64>,
}

impl Disk {
    /// Creates a disk of zeroes without allocated blocks.
    pub fn new(plan: DiskPlan) -> Disk {
        Disk {
            plan,
            seen: vec![0; plan.size],
            written: vec![false; plan.size.div_ceil(BLOCK)],
            stable: vec![0; plan.size],
            stable_order: vec![0; plan.size.div_ceil(SECTOR)],
            cache: Vec::new(),
            order: 0,
            finished: 0,
        }
    }

    /// Reads a range. Bytes beyond the end are zeroes.
    pub fn read(&self, offset: u64, into: &mut [u8]) {
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.seen.len());
        let count = into.len().min(self.seen.len() - start);
        into[..count].copy_from_slice(&self.seen[start..start + count]);
        into[count..].fill(0);
    }

    /// Writes data of an I/O into the cache.
    pub fn write(&mut self, io: u64, offset: usize, data: &[u8]) {
        if data.is_empty() {
            return;
        }
        self.seen[offset..offset + data.len()].copy_from_slice(data);
        self.written[offset / BLOCK..=(offset + data.len() - 1) / BLOCK].fill(true);
        self.cache_write(io, offset, data.len());
    }

    /// Zeroes a range by an I/O. With `punch`, whole blocks become holes.
    pub fn zero(&mut self, io: u64, offset: usize, length: usize, punch: bool) {
        if length == 0 {
            return;
        }
        self.seen[offset..offset + length].fill(0);
        if punch {
            let (first, end) = (offset.div_ceil(BLOCK), (offset + length) / BLOCK);
            if first < end {
                self.written[first..end].fill(false);
            }
        } else {
            self.written[offset / BLOCK..=(offset + length - 1) / BLOCK].fill(true);
        }
        self.cache_write(io, offset, length);
    }

    fn cache_write(&mut self, io: u64, offset: usize, length: usize) {
        self.order += 1;
        let (first, end) = (offset / SECTOR, (offset + length).div_ceil(SECTOR));
        let sectors = self.seen[first * SECTOR..(end * SECTOR).min(self.seen.len())].to_vec();
        self.cache.push(Cached { order: self.order, io, first, sectors, finished: None });
    }

    /// Completes an I/O. Flushes that begin later cover it.
    pub fn finish(&mut self, io: u64) {
        self.finished += 1;
        for cached in self.cache.iter_mut().filter(|cached| cached.io == io) {
            cached.finished = Some(self.finished);
        }
    }

    /// Returns the completions that a flush covers if it begins now.
    pub fn horizon(&self) -> u64 {
        self.finished
    }

    /// Makes writes durable that completed up to a horizon.
    pub fn flush(&mut self, horizon: u64) {
        self.settle(|cached| cached.finished.is_some_and(|at| at <= horizon), true);
    }

    /// Makes the writes of an I/O durable.
    pub fn persist(&mut self, io: u64) {
        self.settle(|cached| cached.io == io, true);
    }

    /// Drops writes from the cache that completed up to a horizon, without making them durable.
    pub fn lose(&mut self, horizon: u64) {
        self.settle(|cached| cached.finished.is_some_and(|at| at <= horizon), false);
    }

    /// Removes writes from the cache.
    fn settle(&mut self, which: impl Fn(&Cached) -> bool, durable: bool) {
        let (settled, kept) = std::mem::take(&mut self.cache).into_iter().partition::<Vec<_>, _>(which);
        self.cache = kept;
        if durable {
            for cached in &settled {
                for index in 0..cached.sectors.len().div_ceil(SECTOR) {
                    self.stabilise(cached, index);
                }
            }
        }
    }

    /// Makes a sector of a cached write durable, unless a newer write is.
    fn stabilise(&mut self, cached: &Cached, index: usize) {
        let sector = cached.first + index;
        if self.stable_order[sector] < cached.order {
            self.stable_order[sector] = cached.order;
            let data = &cached.sectors[index * SECTOR..((index + 1) * SECTOR).min(cached.sectors.len())];
            self.stable[sector * SECTOR..sector * SECTOR + data.len()].copy_from_slice(data);
        }
    }

    /// Fails the power: random sectors of the cache reach the medium, the others are lost.
    pub fn crash(&mut self, prng: &mut Prng) {
        for cached in std::mem::take(&mut self.cache) {
            let kept_permille = prng.pick(&[0, 0, 500, 1000]);
            for index in 0..cached.sectors.len().div_ceil(SECTOR) {
                if prng.permille(kept_permille) {
                    self.stabilise(&cached, index);
                }
            }
        }
        self.seen.copy_from_slice(&self.stable);
        // A punched block whose old data reappear is allocated.
        for (block, written) in self.seen.chunks(BLOCK).zip(&mut self.written) {
            *written |= block.iter().any(|byte| *byte != 0);
        }
    }

    /// Returns the allocation of a range, at most `extents_max` extents.
    pub fn status(&self, offset: u64, length: u64, extents_max: usize) -> Vec<Allocation> {
        let end = (offset + length).min(self.seen.len() as u64);
        let (mut at, mut extents) = (offset, Vec::<Allocation>::new());
        while at < end {
            let block = (at / BLOCK as u64) as usize;
            let stop = ((block as u64 + 1) * BLOCK as u64).min(end);
            let hole = !self.written[block];
            let full = extents.len() == extents_max;
            match extents.last_mut() {
                Some(last) if last.hole == hole => last.length += stop - at,
                _ if full => break,
                _ => extents.push(Allocation { length: stop - at, hole }),
            }
            at = stop;
        }
        extents
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk() -> Disk {
        Disk::new(DiskPlan { size: 4 * SECTOR + 100, ..DiskPlan::default() })
    }

    fn byte(disk: &Disk, offset: usize) -> u8 {
        let mut one = [0];
        disk.read(offset as u64, &mut one);
        one[0]
    }

    /// Returns the possible values of a byte after a crash.
    fn after_crashes(make: impl Fn() -> Disk, offset: usize) -> Vec<u8> {
        let mut found: Vec<u8> = (0..64)
            .map(|seed| {
                let mut disk = make();
                disk.crash(&mut Prng::new(seed));
                byte(&disk, offset)
            })
            .collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    #[test]
    fn reads_return_written_data_and_a_crash_keeps_or_loses_them() {
        let make = || {
            let mut disk = disk();
            disk.write(1, 600, &[7; 1000]);
            assert_eq!(byte(&disk, 700), 7);
            disk.finish(1);
            disk
        };
        assert_eq!(after_crashes(make, 700), [0, 7]);
        let torn = (0..64).any(|seed| {
            let mut disk = make();
            disk.crash(&mut Prng::new(seed));
            byte(&disk, 700) != byte(&disk, 1500)
        });
        assert!(torn, "some crash tears the write between sectors");
    }

    #[test]
    fn a_flush_covers_exactly_the_writes_completed_before_it() {
        let make = || {
            let mut disk = disk();
            disk.write(1, 0, &[1; 512]);
            disk.finish(1);
            disk.write(2, 512, &[2; 512]);
            let horizon = disk.horizon();
            disk.finish(2);
            disk.flush(horizon);
            disk
        };
        assert_eq!(after_crashes(make, 0), [1]);
        assert_eq!(after_crashes(make, 512), [0, 2]);
    }

    #[test]
    fn an_older_write_never_replaces_a_durable_one() {
        let make = || {
            let mut disk = disk();
            disk.write(1, 0, &[1; 512]);
            disk.write(2, 0, &[2; 512]);
            disk.finish(2);
            disk.persist(2);
            disk
        };
        assert_eq!(after_crashes(make, 0), [2]);
    }

    #[test]
    fn a_failed_flush_loses_data_that_reads_still_return() {
        let make = || {
            let mut disk = disk();
            disk.write(1, 2048, &[9; 100]);
            disk.finish(1);
            disk.lose(disk.horizon());
            disk.flush(disk.horizon());
            assert_eq!(byte(&disk, 2100), 9);
            disk
        };
        assert_eq!(after_crashes(make, 2100), [0]);
    }

    #[test]
    fn unwritten_and_punched_blocks_are_holes() {
        let mut disk = Disk::new(DiskPlan { size: 4 * BLOCK, ..DiskPlan::default() });
        disk.write(1, BLOCK + 5, &[1]);
        let of = |length, hole| Allocation { length, hole };
        assert_eq!(disk.status(0, 16384, 8), [of(4096, true), of(4096, false), of(8192, true)]);
        assert_eq!(disk.status(100, 8000, 8), [of(3996, true), of(4004, false)]);
        assert_eq!(disk.status(100, 8000, 1), [of(3996, true)]);
        disk.zero(2, BLOCK, BLOCK, true);
        assert_eq!(disk.status(0, 16384, 8), [of(16384, true)]);
        disk.write(3, BLOCK, &[1; BLOCK]);
        disk.persist(3);
        disk.zero(4, BLOCK, BLOCK, true);
        disk.crash(&mut Prng::new(1));
        assert_eq!(disk.status(0, 16384, 8).len() == 3, byte(&disk, BLOCK) == 1);
    }
}
