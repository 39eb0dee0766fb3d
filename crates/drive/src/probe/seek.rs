//! Positioning time against distance.
//!
//! What a write takes that comes from elsewhere, less what one takes that follows another of the same sector.
//!
//! A write that is given later, by a part of a revolution, ends at the same moment, until its sector can just not be reached any more: then
//! it ends a revolution later. The latest moment at which it can is found by halving. From there to the end there is no waiting for rotation.

use super::subject::Subject;
use super::{ProbeError, Rotation, Seek, SeekPoint};

/// Halvings: a revolution is told apart into 4,096 parts.
const HALVINGS: u32 = 12;
/// So many tracks behind the first are looked at one by one.
const TRACKS: u64 = 64;
/// Points of the curve over the whole drive.
const POINTS: u32 = 32;
/// Positioning times that differ by less than this part of a revolution count as the same.
const SAME: f64 = 1.0 / 1024.0;
/// A switch of heads and a seek differ by more than so many times that: less is the seek curve itself, which rises by little.
const STEP: f64 = 4.0;

pub(super) fn probe(subject: &mut Subject, rotation: &Rotation) -> Result<Option<Seek>, ProbeError> {
    let per_track = u64::from(rotation.first_track_sectors).max(1);
    subject.needs(per_track * 4)?;
    let from = per_track / 2;
    let last = subject.capacity_sectors() - 1;
    let point = |subject: &mut Subject, distance_sectors: u64| -> Result<Option<SeekPoint>, ProbeError> {
        let to = from + distance_sectors;
        let (Some(far_ns), Some(here_ns)) =
            (reach_ns(subject, rotation, from, to)?, reach_ns(subject, rotation, to, to)?)
        else {
            return Ok(None);
        };
        Ok(Some(SeekPoint { distance_sectors, positioning_ns: far_ns.saturating_sub(here_ns) }))
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
        // Equal steps of the square root, of which a seek of middle length is nearly a linear function.
        let root = shortest.sqrt() + (longest.sqrt() - shortest.sqrt()) * part;
        curve.extend(point(subject, ((root * root).round() as u64).min(last - from))?);
    }
    let (Some(first), Some(full)) = (tracks.first(), curve.last()) else {
        subject.notes.push(format!("no seek from sector {from} can be made: it or all others cannot be written"));
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

/// A rest in which a drive does what it wants to do for itself: a second.
const REST_NS: u64 = 1_000_000_000;

/// How long a write of `to` takes after one of `from` when no time is lost waiting for rotation; `None` when either cannot be written.
fn reach_ns(subject: &mut Subject, rotation: &Rotation, from: u64, to: u64) -> Result<Option<u64>, ProbeError> {
    let mut after = |wait_ns: u64| -> Result<Option<u64>, ProbeError> {
        // A drive that goes back to what it wrote when idle has done so before `from` is written, and will not leave it then.
        subject.wait(REST_NS);
        if subject.write_media(from)?.is_none() {
            return Ok(None);
        }
        subject.wait(wait_ns);
        subject.write_media(to)
    };
    let Some(at_once_ns) = after(0)? else { return Ok(None) };
    let (mut reached_ns, mut missed_ns) = (0u64, rotation.revolution_ns.ceil() as u64);
    for _ in 0..HALVINGS {
        let wait_ns = reached_ns.midpoint(missed_ns);
        let Some(took_ns) = after(wait_ns)? else { return Ok(None) };
        // It ends where it did, or a revolution later.
        if ((took_ns + wait_ns) as f64) < at_once_ns as f64 + rotation.revolution_ns / 2.0 {
            reached_ns = wait_ns;
        } else {
            missed_ns = wait_ns;
        }
    }
    Ok(Some(at_once_ns.saturating_sub(reached_ns)))
}

/// How many surfaces take turns, and the time to the next cylinder. With tracks cylinder by cylinder, the other surfaces are a head switch
/// away, and then there are as many tracks as surfaces one cylinder away. Where two levels do not follow each other so, the
/// next track is on the next cylinder.
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
    // The drive may begin in the middle of its first cylinder; the next is whole, if it ends among these tracks.
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
        // Seeks that all take the same have no end to tell by.
        assert_eq!(surfaces(&tracks(&[500, 900, 900, 900, 900]), 10.0), (Some(2), Some(900)));
    }

    #[test]
    fn tracks_one_cylinder_apart_show_no_surfaces() {
        assert_eq!(surfaces(&tracks(&[900, 1200, 1400, 1500]), 10.0), (None, None));
        assert_eq!(surfaces(&tracks(&[900, 900, 900]), 10.0), (None, None));
        // A curve that rises by little is no switch.
        assert_eq!(surfaces(&tracks(&[900, 920, 925, 930, 950]), 10.0), (None, None));
        assert_eq!(surfaces(&[], 10.0), (None, None));
    }
}
