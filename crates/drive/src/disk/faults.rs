//! Faults at run time: retries, errors, spare sectors and hangs.

use std::collections::BTreeSet;

use crate::command::{Access, Op, Phases, Service, Source, Status};
use crate::faults::Faults;

use super::media::Media;

/// The end of a hang without an end.
pub(super) const NEVER_NS: u64 = u64::MAX;
/// Sectors of a physical sector: random faults affect physical sectors of 4 KiB.
const PHYSICAL_SECTORS: u64 = 8;

/// The current faults sectors and the hangs.
#[derive(Debug, Clone)]
pub(super) struct FaultState {
    bad: Vec<(u64, u64)>,
    slow: Vec<(u64, u64)>,
    /// A physical sector is bad, or slow, if its random number is below this.
    bad_below: u64,
    slow_below: u64,
    seed: u64,
    retries_ns: u64,
    spares: u64,
    /// Sectors that are remapped to a spare sector.
    moved: BTreeSet<u64>,
    /// Begin and end in ns; the end is excluded.
    hangs: Vec<(u64, u64)>,
}

impl FaultState {
    /// The run-time state of `faults`; `None` without faults.
    pub(super) fn new(faults: &Faults, revolution_ns: u64) -> Option<FaultState> {
        if faults.is_empty() {
            return None;
        }
        let ranges =
            |sectors: &[(u64, u32)]| sectors.iter().map(|(first, count)| (*first, first + u64::from(*count))).collect();
        let below = |share: f64| (share * u64::MAX as f64) as u64;
        let ns = |ms: f64| if ms.is_finite() { (ms * 1e6) as u64 } else { NEVER_NS };
        Some(FaultState {
            bad: ranges(&faults.bad_sectors),
            slow: ranges(&faults.slow_sectors),
            bad_below: below(faults.bad_share),
            slow_below: below(faults.slow_share),
            seed: faults.seed,
            retries_ns: revolution_ns * u64::from(faults.retries),
            spares: u64::from(faults.spare_sectors),
            moved: BTreeSet::new(),
            hangs: faults
                .hangs
                .iter()
                .map(|hang| (ns(hang.at_ms), ns(hang.at_ms).saturating_add(ns(hang.for_ms))))
                .collect(),
        })
    }

    /// Returns true if any of the sectors is faulty. Such an access never uses the buffer or the
    /// write cache.
    pub(super) fn affects(&self, access: &Access) -> bool {
        sectors(access).any(|sector| self.moved.contains(&sector) || self.is_bad(sector) || self.is_slow(sector))
    }

    /// Serves an access with faulty sectors.
    pub(super) fn serve(
        &mut self,
        media: &mut Media,
        now_ns: u64,
        access: &Access,
        prepared_ns: u64,
    ) -> (Service, Status) {
        if access.op == Op::Write {
            self.remap(access);
        }
        let bad = sectors(access).find(|sector| self.is_bad(*sector));
        let slow = access.op == Op::Read && sectors(access).any(|sector| self.is_slow(sector));
        // The sectors up to and including the bad one pass under the head.
        let tried = match bad {
            Some(sector) => Access { sectors: (sector + 1 - access.sector) as u32, ..*access },
            None => *access,
        };
        media.forget(access.sector, access.end());
        let mut service = self.pass(media, now_ns, &tried, prepared_ns);
        media.forget(access.sector, access.end());
        if bad.is_some() || slow {
            service.phases.rotation_ns += self.retries_ns;
            service.finish_ns += self.retries_ns;
            media.hold_until(service.finish_ns);
        }
        (service, bad.map_or(Status::Done, |sector| Status::MediaError { sector }))
    }

    /// The start of a service that is due at `now_ns`, after any hang.
    pub(super) fn after_hang_ns(&self, now_ns: u64) -> u64 {
        let hang = self.hangs.iter().find(|(at_ns, end_ns)| *at_ns <= now_ns && now_ns < *end_ns);
        hang.map_or(now_ns, |(_, end_ns)| *end_ns)
    }

    /// The delay by hangs of a service from `begun_ns` to `finish_ns`.
    pub(super) fn delay_ns(&self, begun_ns: u64, finish_ns: u64) -> u64 {
        let mut end_ns = finish_ns;
        for (at_ns, until_ns) in &self.hangs {
            if *at_ns < end_ns && begun_ns < *until_ns {
                end_ns = end_ns.saturating_add(until_ns - begun_ns.max(*at_ns));
            }
        }
        end_ns - finish_ns
    }

    /// Serves the contiguous parts and the remapped sectors of an access one after the other. The
    /// arm seeks to each spare sector and back.
    fn pass(&self, media: &mut Media, now_ns: u64, access: &Access, prepared_ns: u64) -> Service {
        let end = access.end();
        let spare = media.capacity_sectors() - 1;
        let mut total = Service { finish_ns: now_ns, phases: Phases::default(), source: Source::Media, cylinder: 0 };
        let (mut sector, mut first) = (access.sector, true);
        while sector < end {
            let next_moved = self.moved.range(sector..end).next().copied().unwrap_or(end);
            let (at, sectors) = if next_moved == sector { (spare, 1) } else { (sector, next_moved - sector) };
            let piece = Access { op: access.op, sector: at, sectors: sectors as u32 };
            // The overhead of the command counts once.
            let service =
                media.start_prepared(total.finish_ns, &piece, true, if first { prepared_ns } else { NEVER_NS });
            if at == spare {
                media.forget(spare, spare + 1);
            }
            total.finish_ns = service.finish_ns;
            total.cylinder = if first { service.cylinder } else { total.cylinder };
            total.phases.overhead_ns += service.phases.overhead_ns;
            total.phases.seek_ns += service.phases.seek_ns;
            total.phases.rotation_ns += service.phases.rotation_ns;
            total.phases.transfer_ns += service.phases.transfer_ns;
            first = false;
            sector += sectors;
        }
        total
    }

    /// Remaps the bad sectors of a write while there are free spare sectors.
    fn remap(&mut self, access: &Access) {
        for sector in sectors(access) {
            if self.spares > 0 && self.is_bad(sector) {
                self.spares -= 1;
                self.moved.insert(sector);
            }
        }
    }

    fn is_bad(&self, sector: u64) -> bool {
        let bad = contains(&self.bad, sector) || (self.bad_below > 0 && self.draw(sector, 0) < self.bad_below);
        bad && !self.moved.contains(&sector)
    }

    fn is_slow(&self, sector: u64) -> bool {
        contains(&self.slow, sector) || (self.slow_below > 0 && self.draw(sector, 1) < self.slow_below)
    }

    /// A random number of 64 bits for a physical sector.
    ///
    /// Two rounds of a multiply-and-shift mixer, the finalizer of SplitMix64 (G. L. Steele, D. Lea
    /// and C. H. Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
    fn draw(&self, sector: u64, kind: u64) -> u64 {
        let number = (sector / PHYSICAL_SECTORS * 2 + kind).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mix(mix(number) ^ self.seed)
    }
}

fn mix(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

fn sectors(access: &Access) -> std::ops::Range<u64> {
    access.sector..access.sector + u64::from(access.sectors)
}

fn contains(ranges: &[(u64, u64)], sector: u64) -> bool {
    ranges.iter().any(|(first, end)| *first <= sector && sector < *end)
}
