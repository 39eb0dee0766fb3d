//! The physical position of a sector: zone, cylinder, head and angle.
//!
//! A zone is a sequence of *runs*. With the cylinder mapping a run is a cylinder: one track on each
//! surface. With the serpentine mapping a run is `run_cylinders` tracks of one surface, and the
//! next run returns on the next surface. The same formulae describe both: sectors a run, skew from
//! track to track within a run, and skew from run to run.

use crate::platter::angle_of;
use crate::profile::{DiskProfile, Mapping, ZoneProfile};

/// The mapping of sectors to positions, compiled to integers.
#[derive(Debug, Clone)]
pub(crate) struct Geometry {
    zones: Vec<Zone>,
    surfaces: u32,
    serpentine: bool,
    /// The addresses of slips, each with the number of sectors slipped up to and including it.
    slips: Vec<(u64, u64)>,
    zone_index: Index,
    slip_index: Index,
    capacity_sectors: u64,
}

/// The position of one sector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SectorPosition {
    /// Index of the zone.
    pub(crate) zone: u32,
    /// Cylinder, counted from the outermost.
    pub(crate) cylinder: u32,
    /// Surface and head.
    pub(crate) head: u32,
    /// The angle at which the sector begins, 2^32 a revolution.
    pub(crate) angle: u32,
    /// Sectors from this one to the end of the track, this one included.
    pub(crate) room: u32,
    /// The angle of one sector, 2^64 a revolution.
    sector_angle: u64,
}

impl SectorPosition {
    /// The angle of `sectors` sectors, at most a track, 2^32 a revolution.
    pub(crate) fn span(&self, sectors: u32) -> u64 {
        u64::from(sectors).saturating_mul(self.sector_angle) >> 32
    }

    /// The number of whole sectors in `angle` (2^32 a revolution).
    pub(crate) fn sectors_in(&self, angle: u64) -> u32 {
        // A whole revolution would overflow in the shift, and no track is longer.
        if angle > u64::from(u32::MAX) { u32::MAX } else { ((angle << 32) / self.sector_angle.max(1)) as u32 }
    }

    /// Returns true if both sectors are on the same track.
    pub(crate) fn same_track(&self, other: &SectorPosition) -> bool {
        self.cylinder == other.cylinder && self.head == other.head
    }
}

#[derive(Debug, Clone)]
struct Zone {
    first_sector: u64,
    end_sector: u64,
    /// Sectors before the first mapped one.
    front: u64,
    first_cylinder: u32,
    sectors_per_track: u32,
    run_tracks: u32,
    run_sectors: u64,
    /// Runs of full length. With the serpentine mapping a shorter group of `tail_tracks` tracks a
    /// run follows.
    full_runs: u64,
    tail_tracks: u32,
    tail_sectors: u64,
    spare_per_run: u32,
    sector_angle: u64,
    track_skew: u64,
    change_skew: u64,
    group_skew: u64,
    offset: u64,
}

impl Geometry {
    /// Compiles the zones of a checked profile.
    pub(crate) fn new(disk: &DiskProfile) -> Geometry {
        let serpentine = matches!(disk.mapping, Mapping::Serpentine { .. });
        let mut slipped = 0;
        let slips = disk.slips.iter().map(|(sector, count)| {
            slipped += u64::from(*count);
            (*sector, slipped)
        });
        let slips: Vec<(u64, u64)> = slips.collect();
        let (surfaces, slip_index) = (disk.surfaces, Index::new(slips.iter().map(|slip| slip.0)));
        let zone_index = Index::new(std::iter::empty());
        let zones = Vec::with_capacity(disk.zones.len());
        let mut geometry = Geometry { zones, surfaces, serpentine, slips, zone_index, slip_index, capacity_sectors: 0 };
        for profile in &disk.zones {
            let mut zone = Zone::new(disk, profile, geometry.capacity_sectors);
            zone.offset = match (profile.offset_revolutions, geometry.zones.last()) {
                (Some(revolutions), _) => angle_of(revolutions).0,
                (None, Some(before)) => before.angle_after(disk.surfaces, serpentine),
                (None, None) => 0,
            };
            geometry.capacity_sectors = zone.end_sector;
            geometry.zones.push(zone);
        }
        geometry.capacity_sectors = geometry.capacity_sectors.saturating_sub(slipped);
        geometry.zone_index = Index::new(geometry.zones.iter().map(|zone| zone.first_sector));
        geometry
    }

    /// Number of mapped sectors.
    pub(crate) fn capacity_sectors(&self) -> u64 {
        self.capacity_sectors
    }

    /// The position of `sector`, which must be below the capacity. The last zone extends beyond the
    /// capacity.
    pub(crate) fn locate(&self, sector: u64) -> SectorPosition {
        if self.slips.is_empty() {
            return self.position(sector);
        }
        let after = self.slip_index.count_up_to(sector);
        let slipped = after.checked_sub(1).and_then(|index| self.slips.get(index)).map_or(0, |slip| slip.1);
        let mut spot = self.position(sector + slipped);
        // Slipped sectors pass under the head as a gap. Read-ahead within a track ends at such a
        // gap.
        if let Some(next) = self.slips.get(after) {
            spot.room = u64::from(spot.room).min(next.0 - sector) as u32;
        }
        spot
    }

    /// The position of a sector number that includes slipped sectors.
    fn position(&self, sector: u64) -> SectorPosition {
        let index = self.zone_index.count_up_to(sector).saturating_sub(1);
        match self.zones.get(index) {
            Some(zone) => zone.locate(sector, index as u32, self.surfaces, self.serpentine),
            None => SectorPosition { zone: 0, cylinder: 0, head: 0, angle: 0, room: 1, sector_angle: u64::MAX },
        }
    }

    /// The first address and the address after the last of every zone.
    pub(crate) fn bounds(&self) -> Vec<(u64, u64)> {
        self.zones.iter().map(|zone| (self.address(zone.first_sector), self.address(zone.end_sector))).collect()
    }

    /// The first address at or after a sector number that includes slipped sectors.
    fn address(&self, counted: u64) -> u64 {
        let before = self.slips.partition_point(|(sector, slipped)| sector + slipped <= counted);
        let slipped = before.checked_sub(1).and_then(|index| self.slips.get(index)).map_or(0, |slip| slip.1);
        let next = self.slips.get(before).map_or(u64::MAX, |slip| slip.0);
        counted.saturating_sub(slipped).min(next)
    }
}

/// A lookup in a rising list: a table of start indices, then a step or two. A binary search
/// mispredicts its branches on random sectors, and every command passes here.
#[derive(Debug, Clone)]
struct Index {
    bounds: Vec<u64>,
    /// The number of bounds before each multiple of 2^shift sectors.
    begin: Vec<u32>,
    shift: u32,
}

impl Index {
    fn new(bounds: impl Iterator<Item = u64>) -> Index {
        let bounds: Vec<u64> = bounds.collect();
        let last = bounds.last().copied().unwrap_or(0);
        // About four entries for each bound: most lookups take no step.
        let entries = (bounds.len() as u64 * 4).max(1);
        let shift = (last / entries).checked_ilog2().map_or(0, |log| log + 1);
        let count = |entry: u64| bounds.partition_point(|bound| *bound < entry << shift) as u32;
        let begin = (0..=last >> shift).map(count).collect();
        Index { bounds, begin, shift }
    }

    /// The number of bounds at or below `sector`.
    fn count_up_to(&self, sector: u64) -> usize {
        let entry = usize::try_from(sector >> self.shift).unwrap_or(usize::MAX);
        let mut count = self.begin.get(entry).map_or(self.bounds.len(), |count| *count as usize);
        while self.bounds.get(count).is_some_and(|bound| *bound <= sector) {
            count += 1;
        }
        count
    }
}

impl Zone {
    fn new(disk: &DiskProfile, profile: &ZoneProfile, first_sector: u64) -> Zone {
        let cylinders = profile.cylinders();
        let (run_tracks, full_runs, tail_tracks) = match disk.mapping {
            Mapping::Cylinder => (disk.surfaces, u64::from(cylinders), 0),
            Mapping::Serpentine { run_cylinders } => {
                let groups = u64::from(cylinders / run_cylinders);
                (run_cylinders, groups * u64::from(disk.surfaces), cylinders % run_cylinders)
            }
        };
        let spare = u64::from(profile.spare_sectors_per_run);
        let sectors_in = |tracks: u32| (u64::from(tracks) * u64::from(profile.sectors_per_track)).saturating_sub(spare);
        Zone {
            first_sector,
            end_sector: first_sector + profile.mapped_sectors(disk.surfaces, disk.mapping).unwrap_or(0),
            front: profile.empty_front_sectors,
            first_cylinder: profile.first_cylinder,
            sectors_per_track: profile.sectors_per_track,
            run_tracks,
            run_sectors: sectors_in(run_tracks).max(1),
            full_runs,
            tail_tracks,
            tail_sectors: sectors_in(tail_tracks).max(1),
            spare_per_run: profile.spare_sectors_per_run,
            sector_angle: u64::MAX / u64::from(profile.sectors_per_track.max(1)),
            track_skew: angle_of(profile.track_skew_revolutions).0,
            change_skew: angle_of(profile.change_skew_revolutions).0,
            group_skew: angle_of(profile.group_skew_revolutions).0,
            offset: 0,
        }
    }

    fn locate(&self, sector: u64, index: u32, surfaces: u32, serpentine: bool) -> SectorPosition {
        let offset = sector - self.first_sector + self.front;
        let full_sectors = self.full_runs * self.run_sectors;
        let (run, within, tracks) = if offset < full_sectors {
            let (run, within) = divided(offset, self.run_sectors);
            (run, within, self.run_tracks)
        } else {
            let (run, within) = divided(offset - full_sectors, self.tail_sectors);
            (self.full_runs + run, within, self.tail_tracks.max(1))
        };
        // Both fit in 32 bits: a run is at most 2^16 tracks of 2^16 sectors.
        let (track, on_track) = (within as u32 / self.sectors_per_track, within as u32 % self.sectors_per_track);
        let spare = if track + 1 == tracks { self.spare_per_run } else { 0 };
        let on_media = (self.sectors_per_track - spare).saturating_sub(on_track).max(1);
        let left = self.end_sector.saturating_sub(sector).max(1);
        let (cylinder, head) = self.position(run, track, tracks, surfaces, serpentine);
        let angle = self.track_angle(run, track, surfaces, serpentine);
        SectorPosition {
            zone: index,
            cylinder,
            head,
            angle: (angle.wrapping_add(u64::from(on_track).wrapping_mul(self.sector_angle)) >> 32) as u32,
            room: u64::from(on_media).min(left) as u32,
            sector_angle: self.sector_angle,
        }
    }

    /// Cylinder and head of a track. Serpentine runs alternate in direction. The next group starts
    /// on the head on which the last one ended, so the heads are 0 1 2 3, 3 2 1 0, ...
    fn position(&self, run: u64, track: u32, tracks: u32, surfaces: u32, serpentine: bool) -> (u32, u32) {
        if !serpentine {
            return (self.first_cylinder + run as u32, track);
        }
        // At most 2^24 cylinders of 255 surfaces: a run's number fits in 32 bits.
        let (group, in_group) = (run as u32 / surfaces, run as u32 % surfaces);
        let head = if group % 2 == 0 { in_group } else { surfaces - 1 - in_group };
        let step = if in_group % 2 == 0 { track } else { tracks - 1 - track };
        (self.first_cylinder + group * self.run_tracks + step, head)
    }

    /// The angle of the first sector of a track, 2^64 a revolution: the sum of all skews before it,
    /// in wrapping arithmetic.
    fn track_angle(&self, run: u64, track: u32, surfaces: u32, serpentine: bool) -> u64 {
        let full = run.min(self.full_runs);
        let groups = if serpentine { u64::from(run as u32 / surfaces) } else { 0 };
        let in_full = full * u64::from(self.run_tracks - 1);
        let in_tail = (run - full) * u64::from(self.tail_tracks.saturating_sub(1));
        (in_full + in_tail + u64::from(track))
            .wrapping_mul(self.track_skew)
            .wrapping_add((run - groups).wrapping_mul(self.change_skew))
            .wrapping_add(groups.wrapping_mul(self.group_skew))
            .wrapping_add(self.offset)
    }

    /// The default angle of the next zone: one change of cylinder after the last mapped track of
    /// this zone.
    fn angle_after(&self, surfaces: u32, serpentine: bool) -> u64 {
        let offset = self.end_sector.saturating_sub(1) - self.first_sector + self.front;
        let full_sectors = self.full_runs * self.run_sectors;
        let (run, within) = if offset < full_sectors {
            (offset / self.run_sectors, offset % self.run_sectors)
        } else {
            let beyond = offset - full_sectors;
            (self.full_runs + beyond / self.tail_sectors, beyond % self.tail_sectors)
        };
        let track = (within / u64::from(self.sectors_per_track)) as u32;
        self.track_angle(run, track, surfaces, serpentine).wrapping_add(self.group_skew)
    }
}

/// Quotient and remainder. Division in 32 bits takes a third of the time if the numbers fit.
fn divided(number: u64, divisor: u64) -> (u64, u64) {
    match (u32::try_from(number), u32::try_from(divisor)) {
        (Ok(number), Ok(divisor)) if divisor > 0 => (u64::from(number / divisor), u64::from(number % divisor)),
        _ => (number / divisor.max(1), number % divisor.max(1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Profile;

    fn geometry(name: &str) -> Geometry {
        let profile = Profile::builtin(name).expect("built in");
        Geometry::new(profile.disk().expect("a disk"))
    }

    fn disks() -> impl Iterator<Item = &'static str> {
        Profile::names().filter(|name| Profile::builtin(name).is_some_and(|profile| profile.is_disk()))
    }

    #[test]
    fn index_counts_like_a_linear_search() {
        for bounds in [vec![], vec![0], vec![5], vec![0, 1, 2, 3], vec![0, 10, 1000, 1001, 70_000], vec![3, 1 << 40]] {
            let index = Index::new(bounds.iter().copied());
            let near = bounds.iter().flat_map(|bound| [bound.saturating_sub(1), *bound, bound + 1, bound * 2]);
            for sector in near.chain([0, u64::MAX]) {
                assert_eq!(
                    index.count_up_to(sector),
                    bounds.partition_point(|b| *b <= sector),
                    "{sector} in {bounds:?}"
                );
            }
        }
    }

    #[test]
    fn tracks_of_a_zone_hold_all_its_sectors_once() {
        // A walk from track to track reaches the end of the disk and every mapped cylinder.
        for name in disks() {
            let geometry = geometry(name);
            for (first, end) in geometry.bounds() {
                let stop = end.min(first + 2_000_000);
                let (mut sector, mut positions) = (first, std::collections::HashSet::new());
                while sector < stop {
                    let spot = geometry.locate(sector);
                    assert!(spot.room > 0 && sector + u64::from(spot.room) <= end, "{name}: {sector} {spot:?}");
                    assert!(
                        positions.insert((spot.cylinder, spot.head, spot.angle)),
                        "{name}: {sector} twice at {spot:?}"
                    );
                    sector += u64::from(spot.room);
                }
            }
        }
    }

    #[test]
    fn adjacent_sectors_of_a_track_are_a_sector_apart() {
        for name in disks() {
            let geometry = geometry(name);
            let step = (geometry.capacity_sectors() / 997).max(1);
            for sector in (0..geometry.capacity_sectors() - 1).step_by(step as usize) {
                let (here, next) = (geometry.locate(sector), geometry.locate(sector + 1));
                if here.room > 1 {
                    assert!(here.same_track(&next), "{name}: {sector}");
                    let apart = u64::from(next.angle.wrapping_sub(here.angle));
                    assert!(apart.abs_diff(here.span(1)) <= 1, "{name}: {sector} {apart}");
                }
            }
        }
    }

    #[test]
    fn zones_of_the_cheetah_15k5_begin_at_the_published_sectors() {
        // The published first sectors include slipped sectors; addresses are lower by the number of
        // slips before them.
        let bounds = geometry("cheetah15k5_146").bounds();
        assert_eq!(bounds[0].0, 0);
        assert!((37_386_901..37_387_501).contains(&bounds[1].0), "{:?}", bounds[1]);
        assert_eq!(bounds[13].1, 286_749_487);
        assert!(bounds.windows(2).all(|pair| pair[0].1 == pair[1].0));
    }
}
