//! Fits the revolution and the phase of the platter to a recording.
//!
//! There are two steps. The revolution is the one at which the recorded completions, as angles,
//! agree best with the angles of the last sectors. Seeks and overheads have no effect, because a
//! completion shows the angle in any case. The phase is the one at which the service times of the
//! model are nearest to the recorded ones.
//!
//! The error request by request is the strict measure. A distribution of service times (the demerit
//! of Ruemmler & Wilkes 1994) is nearly as good with a guessed rotation.

use std::f64::consts::TAU;

use crate::command::Op;
use crate::disk::Media;
use crate::profile::{DiskProfile, Profile};
use crate::recording::Record;
use crate::replay::{ReplayError, check_recording, disk_of, replay, rms_ms};

/// The largest relative change of the revolution: 0.035 %.
pub const REVOLUTION_RANGE: f64 = 3.5e-4;

/// A fitted rotation.
#[derive(Debug, Clone, PartialEq)]
pub struct RotationFit {
    /// Time of a revolution in ns.
    pub revolution_ns: f64,
    /// The angle under the head at the first request, in revolutions.
    pub phase_revolutions: f64,
    /// Agreement of the recorded completions with the angles of the sectors: 1 for perfect
    /// agreement, about 0 for chance.
    pub coherence: f64,
    /// Root mean square error of the service times, in ms.
    pub rms_ms: f64,
    /// The given profile with the fitted rotation.
    pub profile: Profile,
}

/// Fits revolution and phase of `profile` to a recording.
///
/// Use [`Profile::without_buffer`] for a recording that was made with the buffer off.
///
/// # Errors
/// [`ReplayError`] if the profile is not that of a disk, a request is invalid for it, or there are
/// fewer than 100 requests.
pub fn fit_rotation(profile: &Profile, recording: &[Record]) -> Result<RotationFit, ReplayError> {
    let disk = disk_of(profile)?;
    if recording.len() < 100 {
        return Err(ReplayError::TooShort { found: recording.len() });
    }
    check_recording(disk, recording)?;
    let marks = marks(disk, recording);
    let (revolution_ns, resultant) = best_revolution(&marks, disk.revolution_ns);
    let fitted = |phase: f64| profile.clone().with_rotation(revolution_ns, phase);
    let mut best: Option<(f64, f64)> = None;
    // Transfers after the last sector shift the mean of the marks, so the search covers 0.04
    // revolutions around it.
    for step in -20..=20 {
        let phase = resultant.phase() + f64::from(step) * 0.002;
        let rms = rms_ms(&replay(&fitted(phase), recording)?);
        if best.is_none_or(|(_, least)| rms < least) {
            best = Some((phase, rms));
        }
    }
    let (phase, rms_ms) = best.unwrap_or((resultant.phase(), 0.0));
    Ok(RotationFit {
        revolution_ns,
        phase_revolutions: phase - phase.floor(),
        coherence: resultant.coherence(),
        rms_ms,
        profile: fitted(phase),
    })
}

/// The completion (ns) of every request and the angle (revolutions) at which its last sector ends,
/// without writes that complete in a cache.
fn marks(disk: &DiskProfile, recording: &[Record]) -> Vec<(f64, f64)> {
    let model = Media::new(disk);
    let mark = |record: &Record| {
        let last = model.locate(record.access.end() - 1);
        let end = (u64::from(last.angle) + last.span(1)) as f64 / 4_294_967_296.0;
        (record.issue_ns.saturating_add(record.service_ns) as f64, end)
    };
    let cached = disk.buffer.enabled && disk.buffer.write_cache.is_some();
    recording.iter().filter(|record| !cached || record.access.op == Op::Read).map(mark).collect()
}

/// The sum of unit vectors at the angles of the marks.
#[derive(Debug, Clone, Copy)]
struct Resultant {
    x: f64,
    y: f64,
    count: f64,
}

impl Resultant {
    fn coherence(self) -> f64 {
        self.x.hypot(self.y) / self.count
    }

    /// The angle of the platter at time 0 in revolutions, 0 or more and below 1.
    fn phase(self) -> f64 {
        let turns = self.y.atan2(self.x) / TAU;
        turns - turns.floor()
    }
}

fn resultant(marks: &[(f64, f64)], revolution_ns: f64) -> Resultant {
    let mut sum = Resultant { x: 0.0, y: 0.0, count: marks.len() as f64 };
    for (completion_ns, end) in marks {
        let turns = end - completion_ns / revolution_ns;
        let (sin, cos) = ((turns - turns.floor()) * TAU).sin_cos();
        (sum.x, sum.y) = (sum.x + cos, sum.y + sin);
    }
    sum
}

/// The revolution with the best agreement. The first grid is fine enough that the last mark turns
/// by a quarter between steps; finer grids around the best follow.
fn best_revolution(marks: &[(f64, f64)], stated_ns: f64) -> (f64, Resultant) {
    let turns = marks.iter().map(|mark| mark.0).fold(0.0, f64::max) / stated_ns;
    let mut step = 0.25 / turns.max(1.0);
    let mut centre = 0.0;
    let mut range = REVOLUTION_RANGE;
    let mut best = (stated_ns, resultant(marks, stated_ns));
    for _ in 0..4 {
        let steps = (range / step).ceil() as i64;
        for index in -steps..=steps {
            let part: f64 = centre + index as f64 * step;
            let revolution_ns = stated_ns * (1.0 + part.clamp(-REVOLUTION_RANGE, REVOLUTION_RANGE));
            let found = resultant(marks, revolution_ns);
            if found.coherence() > best.1.coherence() {
                best = (revolution_ns, found);
            }
        }
        (centre, range, step) = (best.0 / stated_ns - 1.0, step, step / 8.0);
    }
    best
}
