//! Positioning time by distance.
//!
//! A write on the home track is followed by a distant one. If the first sector passes the head
//! later by a part of a revolution, the second write completes at the same moment, until it is just
//! missed: then it completes a revolution later. Bisection finds the latest home sector from which
//! the target is reached, and then the latest moment within that sector. The drive is never idle
//! for longer, because idle drives start background work. At that moment no time is lost to
//! rotational latency. The time of a write within the home track, command and transfer, is
//! subtracted.

use super::rotation::angle;
use super::under_test::DriveUnderTest;
use super::{ProbeError, Rotation, Seek, SeekPoint};

/// Bisection steps within the time of one sector.
const HALVINGS: u32 = 6;
/// The number of tracks that are tried as the home track.
const HOMES: u64 = 16;
/// The number of tracks after the home track that are measured one by one.
const TRACKS: u64 = 64;
/// Points of the curve over the whole drive.
const POINTS: u32 = 32;
/// Positioning times that differ by less than this share of a revolution count as equal.
const SAME: f64 = 1.0 / 1024.0;
/// A head switch and a seek differ by more than this many times `SAME`. A smaller step is the rise
/// of the seek curve.
const STEP: f64 = 4.0;
/// Distance in sectors over which the density of a track is measured.
const APART: u64 = 8;

/// The track at which seeks begin.
struct HomeTrack {
    first_sector: u64,
    sectors: u64,
    revolution_ns: f64,
}

pub(super) fn probe(subject: &mut DriveUnderTest, rotation: &Rotation) -> Result<Option<Seek>, ProbeError> {
    let per_track = u64::from(rotation.first_track_sectors).max(1);
    subject.needs(per_track * (HOMES + 4))?;
    let Some((home, base_ns)) = home(subject, rotation, per_track)? else {
        subject.notes.push(format!("none of the first {HOMES} tracks can be written at the start of the seeks"));
        return Ok(None);
    };
    let from = home.first_sector + per_track / 2;
    let last = subject.capacity_sectors() - 1;
    let point = |subject: &mut DriveUnderTest, distance_sectors: u64| -> Result<Option<SeekPoint>, ProbeError> {
        let to = from + distance_sectors;
        let Some(reach_ns) = home.reach_ns(subject, to)? else { return Ok(None) };
        // A sector takes longer to pass where a track has fewer sectors.
        let sector_ns = home.sector_ns_at(subject, to)? - home.sector_ns();
        let positioning_ns = (reach_ns as f64 - base_ns as f64 - sector_ns).max(0.0).round() as u64;
        Ok(Some(SeekPoint { distance_sectors, positioning_ns }))
    };
    let mut tracks = Vec::new();
    for track in 1..=TRACKS.min((last - from) / per_track) {
        tracks.extend(point(subject, track * per_track)?);
    }
    let mut curve = Vec::new();
    let longest = (last - from) as f64;
    let shortest = (per_track as f64).min(longest);
    for number in 0..POINTS {
        let part = f64::from(number) / f64::from(POINTS - 1);
        // Equal steps of the square root, in which a seek of medium length is nearly linear.
        let root = shortest.sqrt() + (longest.sqrt() - shortest.sqrt()) * part;
        curve.extend(point(subject, ((root * root).round() as u64).min(last - from))?);
    }
    let (Some(first), Some(full)) = (tracks.first(), curve.last()) else {
        subject
            .notes
            .push(format!("no seek from sector {from} can be measured: this sector or all others cannot be written"));
        return Ok(None);
    };
    let (surfaces, next_cylinder) = surfaces(&tracks, rotation.revolution_ns * SAME);
    Ok(Some(Seek {
        head_switch_ns: surfaces.map(|_| first.positioning_ns),
        single_ns: next_cylinder.unwrap_or(first.positioning_ns),
        full_ns: full.positioning_ns,
        surfaces,
        tracks,
        curve,
    }))
}

/// The first whole track with enough writable sectors, and the time of a write of its middle after
/// one on the same track.
fn home(
    subject: &mut DriveUnderTest,
    rotation: &Rotation,
    per_track: u64,
) -> Result<Option<(HomeTrack, u64)>, ProbeError> {
    let first = home_sector(subject, rotation, per_track)?;
    for track in 0..HOMES {
        let first_sector = first + track * per_track;
        let home = HomeTrack { first_sector, sectors: per_track, revolution_ns: rotation.revolution_ns };
        if let Some(base_ns) = home.reach_ns(subject, first_sector + per_track / 2)? {
            return Ok(Some((home, base_ns)));
        }
    }
    Ok(None)
}

/// The first sector of a whole track, where the angle between adjacent sectors differs from that
/// within a track. 0 if there is none, because tracks then have no skew.
fn home_sector(subject: &mut DriveUnderTest, rotation: &Rotation, per_track: u64) -> Result<u64, ProbeError> {
    let within = 1.0 / per_track as f64;
    for sector in 1..=per_track {
        let between = angle(subject, sector - 1, sector, rotation.revolution_ns)?;
        if between.is_some_and(|angle| (angle - within).abs() > within * 0.3) {
            return Ok(sector);
        }
    }
    Ok(0)
}

impl HomeTrack {
    fn sector_ns(&self) -> f64 {
        self.revolution_ns / self.sectors as f64
    }

    /// The time of one sector at `sector`, from the angles of two pairs before it. At most one pair
    /// spans the end of a track, which widens it.
    fn sector_ns_at(&self, subject: &mut DriveUnderTest, sector: u64) -> Result<f64, ProbeError> {
        let mut least: Option<f64> = None;
        for back in [1, 2] {
            // There are fewer pairs near the beginning of the drive.
            let Some(begin) = sector.checked_sub(back * APART) else { break };
            let width = angle(subject, begin, begin + APART, self.revolution_ns)?.filter(|angle| *angle > 0.0);
            if let Some(width) = width {
                least = Some(least.map_or(width, |least| least.min(width)));
            }
        }
        Ok(least.map_or(self.sector_ns(), |width| width * self.revolution_ns / APART as f64))
    }

    /// The time of a write of `to` after one on the home track without rotational latency; `None`
    /// if either cannot be written.
    fn reach_ns(&self, subject: &mut DriveUnderTest, to: u64) -> Result<Option<u64>, ProbeError> {
        let mut after = |offset: u64, wait_ns: u64| -> Result<Option<u64>, ProbeError> {
            if subject.write_media(self.first_sector + offset)?.is_none() {
                return Ok(None);
            }
            subject.wait(wait_ns);
            subject.write_media(to)
        };
        let Some(at_once_ns) = after(0, 0)? else { return Ok(None) };
        // The completion on a clock that starts at the end of the first sector: always then, or a
        // revolution later.
        let missed_at_ns = at_once_ns as f64 + self.revolution_ns / 2.0;
        let reached = |offset: u64, wait_ns: u64, took_ns: u64| {
            offset as f64 * self.sector_ns() + (wait_ns + took_ns) as f64 <= missed_at_ns
        };
        let (mut offset, mut missed, mut least_ns) = (0, self.sectors, at_once_ns);
        while missed - offset > 1 {
            let between = offset.midpoint(missed);
            let Some(took_ns) = after(between, 0)? else { return Ok(None) };
            if reached(between, 0, took_ns) { (offset, least_ns) = (between, took_ns) } else { missed = between }
        }
        let (mut wait_ns, mut late_ns) = (0u64, self.sector_ns().ceil() as u64);
        for _ in 0..HALVINGS {
            let between_ns = wait_ns.midpoint(late_ns);
            let Some(took_ns) = after(offset, between_ns)? else { return Ok(None) };
            if reached(offset, between_ns, took_ns) {
                (wait_ns, least_ns) = (between_ns, took_ns);
            } else {
                late_ns = between_ns;
            }
        }
        Ok(Some(least_ns))
    }
}

/// The number of surfaces, and the time to the next cylinder.
///
/// With tracks cylinder by cylinder, the other surfaces are a head switch away, and then as many
/// tracks as surfaces are one cylinder away. Without two such levels the next track is on the next
/// cylinder.
fn surfaces(tracks: &[SeekPoint], same_ns: f64) -> (Option<u32>, Option<u64>) {
    let level = |from: usize| {
        let first = tracks.get(from)?.positioning_ns as f64;
        let like_first = |point: &&SeekPoint| (point.positioning_ns as f64 - first).abs() <= same_ns;
        Some(tracks.iter().skip(from).take_while(like_first).count())
    };
    let Some(switches) = level(0) else { return (None, None) };
    let Some(next) = level(switches).filter(|next| *next > switches) else { return (None, None) };
    let (first_ns, next_ns) = (tracks[0].positioning_ns, tracks[switches].positioning_ns);
    if first_ns.abs_diff(next_ns) as f64 <= same_ns * STEP {
        return (None, None);
    }
    // The drive may begin within its first cylinder. The next cylinder is whole if it ends among
    // these tracks.
    let surfaces = if switches + next < tracks.len() { next } else { switches + 1 };
    (Some(surfaces as u32), Some(next_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tracks(positioning_ns: &[u64]) -> Vec<SeekPoint> {
        let point = |(number, ns): (u64, &u64)| SeekPoint { distance_sectors: number, positioning_ns: *ns };
        (1..).zip(positioning_ns).map(point).collect()
    }

    #[test]
    fn surfaces_show_as_head_switches_before_the_next_cylinder() {
        let four = tracks(&[500, 500, 500, 900, 900, 900, 900, 1200, 1200, 1200, 1200]);
        assert_eq!(surfaces(&four, 10.0), (Some(4), Some(900)));
    }

    #[test]
    fn drive_that_begins_within_a_cylinder_shows_its_surfaces_in_the_next() {
        assert_eq!(surfaces(&tracks(&[500, 900, 900, 900, 900, 1200]), 10.0), (Some(4), Some(900)));
        // Seeks of equal time do not show the end of a cylinder.
        assert_eq!(surfaces(&tracks(&[500, 900, 900, 900, 900]), 10.0), (Some(2), Some(900)));
    }

    #[test]
    fn tracks_one_cylinder_apart_show_no_surfaces() {
        assert_eq!(surfaces(&tracks(&[900, 1200, 1400, 1500]), 10.0), (None, None));
        assert_eq!(surfaces(&tracks(&[900, 900, 900]), 10.0), (None, None));
        // A small rise of the curve is not a head switch.
        assert_eq!(surfaces(&tracks(&[900, 920, 925, 930, 950]), 10.0), (None, None));
        assert_eq!(surfaces(&[], 10.0), (None, None));
    }
}
