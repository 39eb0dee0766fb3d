//! Disks against requests that were recorded with them.

use std::fs;
use std::path::Path;

use rayon::prelude::*;
use serde::Serialize;

use super::error::AccuracyError;
use crate::profile::Profile;
use crate::recording::{Record, load};
use crate::validation::{CurvePoint, Validation, validate};

/// A recording and the drive that it was made with.
struct Source {
    /// The file name of the recording without `.trace.gz`.
    file: &'static str,
    /// The name of the drive's profile.
    profile: &'static str,
    /// True if the recording was made with the buffer of the drive switched off.
    buffer_off: bool,
    /// The demerit in us that DiskSim 4.0 reaches with the recording, as its own validation prints
    /// it.
    disksim_us: f64,
}

const fn source(file: &'static str, profile: &'static str, buffer_off: bool, disksim_us: f64) -> Source {
    Source { file, profile, buffer_off, disksim_us }
}

#[allow(clippy::approx_constant, reason = "0.318 ms is a measurement")]
const SOURCES: [Source; 6] = [
    source("cheetah15k5", "cheetah15k5_146", true, 297.0),
    source("atlas_III", "atlas_III", false, 378.0),
    source("barracuda", "barracuda_st32171w", false, 349.0),
    source("cheetah4LP", "cheetah4LP", false, 318.0),
    source("ibm18es", "ibm18es", false, 135.0),
    source("hp_c3323a", "hp_c3323a", false, 306.0),
];

/// The file name of the table of measured latencies.
const LATENCIES: &str = "real_drive_latency.tsv";
/// The largest ratio of the model's demerit to DiskSim's.
const RATIO: f64 = 1.5;
/// The largest RMS error in ms where the clock of the recording shows the angle of the platter.
const RMS_MS: f64 = 0.8;
/// The minimum coherence at which the clock of the recording shows the angle of the platter.
const COHERENT: f64 = 0.3;

/// The replay of a recording with the model of its drive.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RecordingCheck {
    /// The name of the profile.
    pub drive: &'static str,
    /// Number of requests.
    pub requests: usize,
    /// Agreement of the recorded completions with the angles of the sectors: 1 for perfect
    /// agreement, about 0 for chance.
    pub coherence: f64,
    /// Root mean square error in ms, request by request.
    pub rms_ms: f64,
    /// The same over requests that follow the one before within 1 ms.
    pub at_once_rms_ms: f64,
    /// Demerit in ms: the RMS distance between the two distributions of service times.
    pub demerit_ms: f64,
    /// The demerit of reads alone, in ms.
    pub read_demerit_ms: f64,
    /// The demerit of DiskSim 4.0 with the same recording, in ms.
    pub disksim_ms: f64,
    /// The demerit over DiskSim's.
    pub ratio: f64,
    /// The largest ratio that reaches the goal.
    pub ratio_goal: f64,
    /// The RMS error that the goal requires; `None` where the recording is not coherent.
    pub rms_goal_ms: Option<f64>,
    /// True if the goal is reached.
    pub reached: bool,
    /// The two distributions of service times.
    pub curve: Vec<CurvePoint>,
}

/// A recording with its replay.
pub(super) struct Recording {
    source: &'static Source,
    pub(super) records: Vec<Record>,
    pub(super) validation: Validation,
}

/// All recordings and the table of measured latencies.
pub(super) struct Recordings {
    pub(super) replayed: Vec<Recording>,
    /// Tab-separated lines.
    latencies: String,
}

impl Recording {
    fn read(folder: &Path, source: &'static Source) -> Result<Recording, AccuracyError> {
        let path = folder.join(format!("{}.trace.gz", source.file));
        let records = load(&path)?;
        let profile = Profile::builtin(source.profile).ok_or(AccuracyError::NoDrive { name: source.profile })?;
        let profile = if source.buffer_off { profile.without_buffer() } else { profile };
        let validation = validate(&profile, &records).map_err(|source| AccuracyError::Replay { path, source })?;
        Ok(Recording { source, records, validation })
    }

    /// The name of the drive's profile.
    pub(super) fn profile_name(&self) -> &'static str {
        self.source.profile
    }

    fn check(&self) -> RecordingCheck {
        let Recording { source, validation, .. } = self;
        let ratio = validation.all.demerit_ms * 1000.0 / source.disksim_us;
        let coherent = validation.coherence >= COHERENT;
        RecordingCheck {
            drive: source.profile,
            requests: validation.all.requests,
            coherence: validation.coherence,
            rms_ms: validation.all.rms_ms,
            at_once_rms_ms: validation.at_once.rms_ms,
            demerit_ms: validation.all.demerit_ms,
            read_demerit_ms: validation.reads.demerit_ms,
            disksim_ms: source.disksim_us / 1000.0,
            ratio,
            ratio_goal: RATIO,
            rms_goal_ms: coherent.then_some(RMS_MS),
            reached: ratio <= RATIO && (!coherent || validation.all.rms_ms < RMS_MS),
            curve: validation.curve.clone(),
        }
    }
}

impl Recordings {
    /// Reads the recordings in a directory and replays each.
    pub(super) fn read(folder: &Path) -> Result<Recordings, AccuracyError> {
        let replayed = SOURCES.par_iter().map(|source| Recording::read(folder, source)).collect::<Result<_, _>>()?;
        let path = folder.join(LATENCIES);
        let latencies = fs::read_to_string(&path).map_err(|source| AccuracyError::Latencies { path, source })?;
        Ok(Recordings { replayed, latencies })
    }

    /// The measured latency in us at a percentile, from a row of the table.
    pub(super) fn measured_us(&self, row: &str, percentile: &str) -> Result<f64, AccuracyError> {
        let mut lines =
            self.latencies.lines().map(|line| line.trim_start_matches("# ").split('\t').collect::<Vec<_>>());
        let header = lines.find(|fields| fields.first() == Some(&"drive"));
        let fields = lines.find(|fields| fields.first() == Some(&row));
        let value = header.zip(fields).and_then(|(header, fields)| {
            let column = header.iter().position(|name| *name == percentile)?;
            fields.get(column)?.parse().ok()
        });
        value.ok_or_else(|| AccuracyError::NoLatency { row: row.to_owned(), column: percentile.to_owned() })
    }

    /// One check for each recording.
    pub(super) fn checks(&self) -> Vec<RecordingCheck> {
        self.replayed.iter().map(Recording::check).collect()
    }
}
