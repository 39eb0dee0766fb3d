//! Checks of the tables `[disk]`, `[seek]`, `[overhead]`, `[interface]` and `[[zone]]`.

use std::ops::Range;

use toml::Spanned;

use super::super::raw::{RawDisk, RawForm, RawInterface, RawMapping, RawOverhead, RawProfile, RawSeek, RawZone};
use super::super::{DiskProfile, Mapping, OverheadsNs, ZoneProfile};
use super::{Check, Checked};
use crate::seek::{SeekCurve, ms_to_ns};

/// The longest time in a profile, in ms: nanoseconds then fit in 32 bits.
pub(super) const MAX_MS: f64 = 4000.0;
/// The largest number of cylinders: the seek curve is a table with one entry each.
const MAX_CYLINDERS: u32 = 1 << 24;
const MAX_SURFACES: u32 = 255;
/// The largest number of zones. The mean seek sums over all pairs of zone borders; real drives have
/// a few dozen zones.
const MAX_ZONES: usize = 4096;
const MAX_SECTORS_PER_TRACK: u32 = 65_535;

impl Check<'_> {
    pub(super) fn disk(&self, spanned: &Spanned<RawDisk>, raw: &RawProfile) -> Checked<DiskProfile> {
        let disk = spanned.as_ref();
        self.within(&disk.surfaces, "disk.surfaces", 1, MAX_SURFACES)?;
        self.within(&disk.cylinders, "disk.cylinders", 1, MAX_CYLINDERS)?;
        self.within(&disk.head_switch_ms, "disk.head_switch_ms", 0.0, MAX_MS)?;
        if let Some(settle) = &disk.write_settle_ms {
            self.within(settle, "disk.write_settle_ms", -MAX_MS, MAX_MS)?;
        }
        // The disk's skew is checked even if every zone has its own.
        self.fraction(&disk.track_skew_revolutions, "disk.track_skew_revolutions")?;
        self.fraction(&disk.change_skew_revolutions, "disk.change_skew_revolutions")?;
        let cylinders = *disk.cylinders.as_ref();
        let mapping = self.mapping(spanned)?;
        let zones = self.zones(disk, &raw.zone, spanned.span())?;
        self.spare_cylinders(disk, &zones)?;
        let slips = self.slips(disk)?;
        self.capacity(disk, mapping, &zones, &raw.zone)?;
        let Some(seek) = &raw.seek else {
            return Err(self.value(spanned.span(), "seek", "missing", "a disk has a table [seek]"));
        };
        Ok(DiskProfile {
            revolution_ns: self.revolution_ns(spanned)?,
            phase_revolutions: self.fraction(&disk.phase_revolutions, "disk.phase_revolutions")?.unwrap_or(0.0),
            surfaces: *disk.surfaces.as_ref(),
            cylinders,
            mapping,
            capacity_sectors: *disk.capacity_sectors.as_ref(),
            head_switch_ms: *disk.head_switch_ms.as_ref(),
            write_settle_ms: disk.write_settle_ms.as_ref().map_or(0.0, |settle| *settle.as_ref()),
            seek: self.seek(seek, cylinders)?,
            zones,
            slips,
            idle_verify_ms: match &disk.idle_verify_ms {
                Some(idle) => Some(self.within(idle, "disk.idle_verify_ms", 0.0, MAX_MS)?),
                None => None,
            },
            heads_apart: disk.heads_apart,
            overheads: self.overheads(raw.overhead.as_ref())?,
            interface_sector_ns: self.interface_sector_ns(raw.interface.as_ref())?,
            store_and_forward: raw.interface.as_ref().is_some_and(|interface| interface.store_and_forward),
            buffer: self.buffer(raw.buffer.as_ref())?,
            queue: self.queue(raw.queue.as_ref())?,
            faults: self.faults(raw.faults.as_ref(), *disk.capacity_sectors.as_ref())?,
        })
    }

    fn revolution_ns(&self, disk: &Spanned<RawDisk>) -> Checked<f64> {
        match (&disk.as_ref().rpm, &disk.as_ref().revolution_ns) {
            (Some(rpm), None) => Ok(6e10 / self.within(rpm, "disk.rpm", 60.0, 600_000.0)?),
            (None, Some(revolution_ns)) => self.within(revolution_ns, "disk.revolution_ns", 1e5, 1e9),
            (Some(_), Some(both)) => {
                let expected = "the rotation is given once, as `rpm` or as `revolution_ns`";
                Err(self.value(both.span(), "disk.revolution_ns", "given beside `rpm`", expected))
            }
            (None, None) => {
                let expected = "one of `rpm` (such as 7200) and `revolution_ns` is needed";
                Err(self.value(disk.span(), "disk.rpm", "missing", expected))
            }
        }
    }

    fn mapping(&self, disk: &Spanned<RawDisk>) -> Checked<Mapping> {
        match (disk.as_ref().mapping, &disk.as_ref().run_cylinders) {
            (RawMapping::Cylinder, None) => Ok(Mapping::Cylinder),
            (RawMapping::Serpentine, Some(run)) => {
                let run_cylinders = self.within(run, "disk.run_cylinders", 1, 65_535)?;
                Ok(Mapping::Serpentine { run_cylinders })
            }
            (RawMapping::Cylinder, Some(run)) => {
                let expected = "only `mapping = \"serpentine\"` has runs";
                Err(self.value(run.span(), "disk.run_cylinders", run.as_ref(), expected))
            }
            (RawMapping::Serpentine, None) => {
                let expected = "`mapping = \"serpentine\"` needs the number of cylinders in a run, such as 65";
                Err(self.value(disk.span(), "disk.run_cylinders", "missing", expected))
            }
        }
    }

    fn zones(&self, disk: &RawDisk, raw: &[Spanned<RawZone>], disk_span: Range<usize>) -> Checked<Vec<ZoneProfile>> {
        if raw.is_empty() {
            return Err(self.value(disk_span, "zone", "missing", "a disk has at least one [[zone]]"));
        }
        if let Some(beyond) = raw.get(MAX_ZONES) {
            let expected = format!("at most {MAX_ZONES} zones");
            return Err(self.value(beyond.span(), "zone", format!("number {}", MAX_ZONES + 1), &expected));
        }
        let mut zones: Vec<ZoneProfile> = Vec::with_capacity(raw.len());
        for spanned in raw {
            let zone = self.zone(disk, spanned)?;
            if let Some(before) = zones.last()
                && zone.first_cylinder <= before.last_cylinder
            {
                let expected = format!(
                    "it overlaps the zone before, which ends at cylinder {}: {} or more",
                    before.last_cylinder,
                    u64::from(before.last_cylinder) + 1
                );
                let first = &spanned.as_ref().first_cylinder;
                return Err(self.value(first.span(), "zone.first_cylinder", first.as_ref(), &expected));
            }
            zones.push(zone);
        }
        Ok(zones)
    }

    fn zone(&self, disk: &RawDisk, spanned: &Spanned<RawZone>) -> Checked<ZoneProfile> {
        let zone = spanned.as_ref();
        let sectors_per_track =
            self.within(&zone.sectors_per_track, "zone.sectors_per_track", 2, MAX_SECTORS_PER_TRACK)?;
        let (first, last) = (*zone.first_cylinder.as_ref(), *zone.last_cylinder.as_ref());
        if last < first {
            let expected = format!("a zone ends at its first cylinder or later: {first} or more");
            return Err(self.value(zone.last_cylinder.span(), "zone.last_cylinder", last, &expected));
        }
        if last >= *disk.cylinders.as_ref() {
            let expected = format!("the disk's last cylinder is {}", disk.cylinders.as_ref() - 1);
            return Err(self.value(zone.last_cylinder.span(), "zone.last_cylinder", last, &expected));
        }
        let track =
            self.skew(&zone.track_skew_sectors, &disk.track_skew_revolutions, sectors_per_track, "track_skew")?;
        let change =
            self.skew(&zone.change_skew_sectors, &disk.change_skew_revolutions, sectors_per_track, "change_skew")?;
        let group = self.fraction(&disk.group_skew_revolutions, "disk.group_skew_revolutions")?;
        let (track, change) = (track.unwrap_or(0.0), change.or(track).unwrap_or(0.0));
        let spare_sectors_per_run = match &zone.spare_sectors_per_run {
            Some(spare) => self.within(spare, "zone.spare_sectors_per_run", 0, sectors_per_track - 1)?,
            None => 0,
        };
        Ok(ZoneProfile {
            first_cylinder: first,
            last_cylinder: last,
            sectors_per_track,
            track_skew_revolutions: track,
            change_skew_revolutions: change,
            group_skew_revolutions: group.unwrap_or(change),
            offset_revolutions: self.offset(zone, sectors_per_track)?,
            empty_front_sectors: zone.empty_front_sectors.as_ref().map_or(0, |front| *front.as_ref()),
            spare_sectors_per_run,
            spare_sectors: zone.spare_sectors.as_ref().map_or(0, |spare| *spare.as_ref()),
        })
    }

    /// A skew in revolutions: the zone's, given in sectors, or the disk's.
    fn skew(
        &self,
        own: &Option<Spanned<f64>>,
        general: &Option<Spanned<f64>>,
        sectors_per_track: u32,
        name: &str,
    ) -> Checked<Option<f64>> {
        let per_track = f64::from(sectors_per_track);
        match own {
            Some(sectors) => {
                let sectors = self.within(sectors, &format!("zone.{name}_sectors"), 0.0, per_track)?;
                Ok(Some(sectors / per_track))
            }
            None => self.fraction(general, &format!("disk.{name}_revolutions")),
        }
    }

    fn offset(&self, zone: &RawZone, sectors_per_track: u32) -> Checked<Option<f64>> {
        let per_track = f64::from(sectors_per_track);
        match (&zone.offset_sectors, &zone.offset_revolutions) {
            (Some(sectors), None) => Ok(Some(self.within(sectors, "zone.offset_sectors", 0.0, per_track)? / per_track)),
            (Some(_), Some(both)) => {
                let expected = "the offset is given once, as `offset_sectors` or as `offset_revolutions`";
                Err(self.value(both.span(), "zone.offset_revolutions", "given beside `offset_sectors`", expected))
            }
            (None, revolutions) => self.fraction(revolutions, "zone.offset_revolutions"),
        }
    }

    fn spare_cylinders(&self, disk: &RawDisk, zones: &[ZoneProfile]) -> Checked<()> {
        let in_zones: u32 = zones.iter().map(ZoneProfile::cylinders).sum();
        let unused = disk.cylinders.as_ref() - in_zones;
        let declared = disk.spare_cylinders.as_ref().map_or(0, |spare| *spare.as_ref());
        if unused == declared {
            return Ok(());
        }
        let expected = format!(
            "{in_zones} of {} cylinders belong to zones: `spare_cylinders = {unused}`, or zones for them",
            disk.cylinders.as_ref()
        );
        let (span, value) = match &disk.spare_cylinders {
            Some(spare) => (spare.span(), declared.to_string()),
            None => (disk.cylinders.span(), "not given".to_string()),
        };
        Err(self.value(span, "disk.spare_cylinders", value, &expected))
    }

    fn slips(&self, disk: &RawDisk) -> Checked<Vec<(u64, u32)>> {
        let mut slips: Vec<(u64, u32)> = Vec::with_capacity(disk.slips.len());
        for spanned in &disk.slips {
            let (sector, count) = *spanned.as_ref();
            let smallest = slips.last().map_or(0, |before| before.0 + 1);
            if sector < smallest || sector >= *disk.capacity_sectors.as_ref() {
                let expected = format!("sectors rise and are within the disk: {smallest} or more here");
                return Err(self.value(spanned.span(), "disk.slips", format!("[{sector}, {count}]"), &expected));
            }
            slips.push((sector, count));
        }
        Ok(slips)
    }

    fn capacity(
        &self,
        disk: &RawDisk,
        mapping: Mapping,
        zones: &[ZoneProfile],
        raw: &[Spanned<RawZone>],
    ) -> Checked<()> {
        let surfaces = *disk.surfaces.as_ref();
        let mut addressable = 0u64;
        for (zone, spanned) in zones.iter().zip(raw) {
            match zone.mapped_sectors(surfaces, mapping) {
                Some(mapped) if mapped > 0 => addressable += mapped,
                _ => {
                    let expected = format!(
                        "the zone has {} sectors: fewer than that may be spare or empty",
                        zone.geometry_sectors(surfaces)
                    );
                    let (span, value) = match (&spanned.as_ref().spare_sectors, &spanned.as_ref().empty_front_sectors) {
                        (Some(spare), _) => (spare.span(), *spare.as_ref()),
                        (None, Some(front)) => (front.span(), *front.as_ref()),
                        (None, None) => (spanned.span(), u64::from(zone.spare_sectors_per_run)),
                    };
                    return Err(self.value(span, "zone.spare_sectors", value, &expected));
                }
            }
        }
        let slipped: u64 = disk.slips.iter().map(|slip| u64::from(slip.as_ref().1)).sum();
        let addressable = addressable.saturating_sub(slipped);
        let capacity = *disk.capacity_sectors.as_ref();
        if capacity == addressable {
            return Ok(());
        }
        let expected = if capacity > addressable {
            format!("the zones have {addressable} sectors with an address: at most that many")
        } else {
            format!(
                "the zones have {addressable} sectors with an address: that many, or {} more declared as `spare_sectors`",
                addressable - capacity
            )
        };
        Err(self.value(disk.capacity_sectors.span(), "disk.capacity_sectors", capacity, &expected))
    }

    fn seek(&self, spanned: &Spanned<RawSeek>, cylinders: u32) -> Checked<SeekCurve> {
        let seek = spanned.as_ref();
        let ms = |value: &Option<Spanned<f64>>, key: &str| match value {
            Some(ms) => self.within(ms, &format!("seek.{key}"), -MAX_MS, MAX_MS),
            None => Err(self.value(spanned.span(), &format!("seek.{key}"), "missing", "this form of curve needs it")),
        };
        let curve = match seek.form {
            RawForm::Table => self.seek_table(spanned)?,
            RawForm::LeeKatz => SeekCurve::LeeKatz {
                single_ms: ms(&seek.single_ms, "single_ms")?,
                average_ms: ms(&seek.average_ms, "average_ms")?,
                full_ms: ms(&seek.full_ms, "full_ms")?,
            },
            RawForm::RuemmlerWilkes => SeekCurve::RuemmlerWilkes {
                knee_cylinders: match &seek.knee_cylinders {
                    Some(knee) => self.within(knee, "seek.knee_cylinders", 1, MAX_CYLINDERS)?,
                    None => {
                        let expected = "this form of curve needs the distance at which it becomes linear";
                        return Err(self.value(spanned.span(), "seek.knee_cylinders", "missing", expected));
                    }
                },
                a_ms: ms(&seek.a_ms, "a_ms")?,
                b_ms: ms(&seek.b_ms, "b_ms")?,
                c_ms: ms(&seek.c_ms, "c_ms")?,
                e_ms: ms(&seek.e_ms, "e_ms")?,
            },
        };
        self.seek_shape(spanned, &curve, cylinders)?;
        Ok(curve)
    }

    /// Checks that the curve neither falls nor is negative. Only a table marked as measured may
    /// fall.
    fn seek_shape(&self, spanned: &Spanned<RawSeek>, curve: &SeekCurve, cylinders: u32) -> Checked<()> {
        let may_fall = spanned.as_ref().measured && spanned.as_ref().form == RawForm::Table;
        if let Some(distance) = curve.first_fall(cylinders).filter(|_| !may_fall) {
            let (span, value) = match &spanned.as_ref().points_ms {
                Some(points) => {
                    let point = points.iter().find(|point| point.as_ref().0 == distance);
                    let ms = point.map_or(0.0, |point| point.as_ref().1);
                    (point.map_or(spanned.span(), Spanned::span), format!("{ms} ms at distance {distance}"))
                }
                None => {
                    (spanned.span(), format!("{:.4} ms at distance {distance}", curve.time_ms(distance, cylinders)))
                }
            };
            let expected = match spanned.as_ref().form {
                RawForm::Table => "the curve falls there: at least the previous point, or `measured = true`",
                _ => "the curve falls there: a formula must rise with the distance",
            };
            return Err(self.value(span, "seek", value, expected));
        }
        let outside = |distance: &u32| !(0.0..=MAX_MS).contains(&curve.time_ms(*distance, cylinders));
        // A formula rises, so its ends are its extremes. A search over all distances would take
        // most of the time to build a drive.
        let may_be_outside = match spanned.as_ref().form {
            RawForm::Table => true,
            _ => cylinders > 1 && (outside(&1) || outside(&(cylinders - 1))),
        };
        if let Some(distance) = (1..cylinders).find(|distance| may_be_outside && outside(distance)) {
            let value = format!("{:.4} ms at distance {distance}", curve.time_ms(distance, cylinders));
            return Err(self.value(spanned.span(), "seek", value, &format!("a seek takes 0 to {MAX_MS} ms")));
        }
        Ok(())
    }

    fn seek_table(&self, spanned: &Spanned<RawSeek>) -> Checked<SeekCurve> {
        let Some(points) = spanned.as_ref().points_ms.as_ref().filter(|points| !points.is_empty()) else {
            let expected = "`form = \"table\"` needs at least one point [distance in cylinders, ms]";
            return Err(self.value(spanned.span(), "seek.points_ms", "missing", expected));
        };
        let mut checked: Vec<(u32, f64)> = Vec::with_capacity(points.len());
        for point in points {
            let (distance, ms) = *point.as_ref();
            let smallest = checked.last().map_or(1, |before| u64::from(before.0) + 1);
            if u64::from(distance) < smallest {
                let expected = format!("distances rise from 1 on: {smallest} or more here");
                return Err(self.value(point.span(), "seek.points_ms", format!("[{distance}, {ms}]"), &expected));
            }
            if !(0.0..=MAX_MS).contains(&ms) {
                let expected = format!("a seek takes 0 to {MAX_MS} ms");
                return Err(self.value(point.span(), "seek.points_ms", format!("[{distance}, {ms}]"), &expected));
            }
            checked.push((distance, ms));
        }
        Ok(SeekCurve::Table(checked))
    }

    pub(super) fn interface_sector_ns(&self, raw: Option<&RawInterface>) -> Checked<u32> {
        match raw.and_then(|raw| raw.sector_ns.as_ref()) {
            Some(sector_ns) => self.within(sector_ns, "interface.sector_ns", 0, 1_000_000_000),
            None => Ok(0),
        }
    }

    pub(super) fn overheads(&self, raw: Option<&RawOverhead>) -> Checked<OverheadsNs> {
        let Some(raw) = raw else { return Ok(OverheadsNs::default()) };
        let ns = |value: &Option<Spanned<f64>>, key: &str| match value {
            Some(ms) => self.within(ms, &format!("overhead.{key}"), 0.0, MAX_MS).map(ms_to_ns),
            None => Ok(0),
        };
        Ok(OverheadsNs {
            read_hit_after_read: ns(&raw.read_hit_after_read_ms, "read_hit_after_read_ms")?,
            read_hit_after_write: ns(&raw.read_hit_after_write_ms, "read_hit_after_write_ms")?,
            read_miss_after_read: ns(&raw.read_miss_after_read_ms, "read_miss_after_read_ms")?,
            read_miss_after_write: ns(&raw.read_miss_after_write_ms, "read_miss_after_write_ms")?,
            write_hit_after_read: ns(&raw.write_hit_after_read_ms, "write_hit_after_read_ms")?,
            write_hit_after_write: ns(&raw.write_hit_after_write_ms, "write_hit_after_write_ms")?,
            write_miss_after_read: ns(&raw.write_miss_after_read_ms, "write_miss_after_read_ms")?,
            write_miss_after_write: ns(&raw.write_miss_after_write_ms, "write_miss_after_write_ms")?,
        })
    }
}
