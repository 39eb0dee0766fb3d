//! The geometry of a disk as far as sector numbers show it: zones that shrink evenly from the
//! outside in.

/// Number of zones.
const ZONES: u32 = 8;
/// Default number of surfaces. The true number cannot be determined, because only the sectors of a
/// seek are known.
const SURFACES: u32 = 4;
/// A layout with more cylinders uses more surfaces.
const CYLINDERS_MAX: u64 = 500_000;

/// A geometry.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Layout {
    pub(super) capacity_sectors: u64,
    pub(super) surfaces: u32,
    pub(super) cylinders: u32,
    pub(super) zones: Vec<LayoutZone>,
}

/// One zone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LayoutZone {
    pub(super) first_cylinder: u32,
    pub(super) last_cylinder: u32,
    pub(super) sectors_per_track: u32,
    pub(super) first_sector: u64,
    /// Sectors after the last one of the drive.
    pub(super) spare_sectors: u64,
}

impl Layout {
    /// A geometry for `capacity_sectors` with tracks of `outer` to `inner` sectors; `None` if 255
    /// surfaces do not hold them.
    pub(super) fn new(capacity_sectors: u64, outer: f64, inner: f64) -> Option<Layout> {
        let tracks = (capacity_sectors as f64 / ((outer + inner) / 2.0)).ceil() as u64;
        let surfaces = u32::try_from(tracks / CYLINDERS_MAX).ok()?.max(SURFACES);
        let least = u32::try_from(tracks.div_ceil(u64::from(surfaces))).ok()?.max(1);
        if surfaces > 255 {
            return None;
        }
        // Rounding may have removed a few sectors of the tracks. Additional cylinders compensate.
        (least..=least.saturating_add(least / 10 + ZONES + 1))
            .map(|cylinders| Layout::of(capacity_sectors, surfaces, cylinders, (outer, inner)))
            .find(|(layout, sectors)| {
                let last = layout.zones.last().map_or(0, |zone| zone.first_sector);
                *sectors >= capacity_sectors && last < capacity_sectors
            })
            .map(|(layout, _)| layout)
    }

    /// A layout of `cylinders`, and its capacity in sectors.
    fn of(capacity_sectors: u64, surfaces: u32, cylinders: u32, tracks: (f64, f64)) -> (Layout, u64) {
        let count = ZONES.min(cylinders);
        let mut zones = Vec::with_capacity(count as usize);
        let mut sectors = 0;
        for index in 0..count {
            let first_cylinder = (u64::from(cylinders) * u64::from(index) / u64::from(count)) as u32;
            let end = (u64::from(cylinders) * u64::from(index + 1) / u64::from(count)) as u32;
            let position = (f64::from(index) + 0.5) / f64::from(count);
            let per_track = (tracks.0 + (tracks.1 - tracks.0) * position).round().clamp(2.0, 65_535.0) as u32;
            zones.push(LayoutZone {
                first_cylinder,
                last_cylinder: end - 1,
                sectors_per_track: per_track,
                first_sector: sectors,
                spare_sectors: 0,
            });
            sectors += u64::from(end - first_cylinder) * u64::from(surfaces) * u64::from(per_track);
        }
        if let Some(last) = zones.last_mut() {
            last.spare_sectors = sectors.saturating_sub(capacity_sectors);
        }
        (Layout { capacity_sectors, surfaces, cylinders, zones }, sectors)
    }

    fn zone(&self, sector: u64) -> Option<&LayoutZone> {
        let after = self.zones.partition_point(|zone| zone.first_sector <= sector);
        self.zones.get(after.saturating_sub(1))
    }

    /// The cylinder of a sector.
    pub(super) fn cylinder(&self, sector: u64) -> u32 {
        self.zone(sector).map_or(0, |zone| {
            let per_cylinder = u64::from(zone.sectors_per_track) * u64::from(self.surfaces);
            let within = (sector - zone.first_sector) / per_cylinder.max(1);
            zone.first_cylinder.saturating_add(within as u32).min(zone.last_cylinder)
        })
    }

    /// Sectors of the track at a sector.
    pub(super) fn sectors_per_track(&self, sector: u64) -> u32 {
        self.zone(sector).map_or(1, |zone| zone.sectors_per_track)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout_holds_its_capacity() {
        for capacity in [1, 1000, 4_108_652, 286_749_487, 39_063_650_304] {
            let layout = Layout::new(capacity, 1200.0, 720.0).expect("a layout");
            let last = layout.zones.last().expect("a zone");
            assert_eq!(layout.cylinder(0), 0);
            let held: u64 = layout
                .zones
                .iter()
                .map(|zone| u64::from(zone.last_cylinder + 1 - zone.first_cylinder) * u64::from(zone.sectors_per_track))
                .sum();
            assert_eq!(held * u64::from(layout.surfaces) - last.spare_sectors, capacity);
            assert!(layout.cylinder(capacity - 1) < layout.cylinders && layout.cylinders <= last.last_cylinder + 1);
        }
        assert_eq!(Layout::new(1 << 50, 2.0, 2.0), None);
    }
}
