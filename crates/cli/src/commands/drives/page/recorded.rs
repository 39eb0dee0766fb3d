//! Drives against requests that were recorded with them.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use hoistway_drive::Profile;
use hoistway_drive::recording::{Record, parse_any};
use hoistway_drive::validation::{Validation, validate};
use rayon::prelude::*;

use super::super::fit::text;
use super::{Judged, judged, plot, reached};

/// A drive that requests were recorded with.
struct Recorded {
    /// The recording's file without its endings.
    file: &'static str,
    /// The profile.
    profile: &'static str,
    /// Whether the recording was made with the drive's buffer off.
    buffer_off: bool,
    /// The demerit in us that DiskSim 4.0 reaches with the recording, as its own validation prints it.
    disksim_us: f64,
}

const fn recorded(file: &'static str, profile: &'static str, buffer_off: bool, disksim_us: f64) -> Recorded {
    Recorded { file, profile, buffer_off, disksim_us }
}

#[allow(clippy::approx_constant, reason = "0.318 ms is a measurement")]
const RECORDED: [Recorded; 6] = [
    recorded("cheetah15k5", "cheetah15k5_146", true, 297.0),
    recorded("atlas_III", "atlas_III", false, 378.0),
    recorded("barracuda", "barracuda_st32171w", false, 349.0),
    recorded("cheetah4LP", "cheetah4LP", false, 318.0),
    recorded("ibm18es", "ibm18es", false, 135.0),
    recorded("hp_c3323a", "hp_c3323a", false, 306.0),
];

/// The file of measured latencies.
const LATENCIES: &str = "real_drive_latency.tsv";
/// The demerit may be so many times DiskSim's.
const RATIO: f64 = 1.5;
/// Request by request, where the recording's clock tells the platter's angle, in ms.
const RMS_MS: f64 = 0.8;
/// With less coherence it does not.
const COHERENT: f64 = 0.3;

/// All recordings, and how the models do with them.
pub struct Recordings {
    replayed: Vec<(&'static Recorded, Vec<Record>, Validation)>,
    /// Latencies measured with real drives: a table by tabulators.
    latencies: String,
}

impl Recordings {
    /// Reads the recordings in a folder and replays each.
    pub fn read(folder: &Path) -> Result<Recordings> {
        let read = |recorded: &'static Recorded| {
            let file = folder.join(format!("{}.trace.gz", recorded.file));
            let records = parse_any(&text(&file)?, &file.display().to_string())?;
            let profile =
                Profile::builtin(recorded.profile).with_context(|| format!("no drive {}", recorded.profile))?;
            let profile = if recorded.buffer_off { profile.without_buffer() } else { profile };
            let validation = validate(&profile, &records).with_context(|| file.display().to_string())?;
            Ok((recorded, records, validation))
        };
        let replayed = RECORDED.par_iter().map(read).collect::<Result<_>>()?;
        let file = folder.join(LATENCIES);
        let latencies = fs::read_to_string(&file).with_context(|| format!("{}: cannot read it", file.display()))?;
        Ok(Recordings { replayed, latencies })
    }

    /// The measured latency of a drive in us: so many percent of the requests took no longer.
    pub fn measured_us(&self, row: &str, percentile: &str) -> Result<f64> {
        let mut lines =
            self.latencies.lines().map(|line| line.trim_start_matches("# ").split('\t').collect::<Vec<_>>());
        let header =
            lines.find(|fields| fields.first() == Some(&"drive")).with_context(|| format!("{LATENCIES}: no header"))?;
        let fields =
            lines.find(|fields| fields.first() == Some(&row)).with_context(|| format!("{LATENCIES}: no {row}"))?;
        let column = header.iter().position(|name| *name == percentile);
        let value = column.and_then(|column| fields.get(column)?.parse().ok());
        value.with_context(|| format!("{LATENCIES}: no {percentile} of {row}"))
    }

    /// Name and SVG of each drive's plot.
    pub fn plots(&self) -> impl Iterator<Item = (&'static str, String)> + '_ {
        self.replayed.iter().map(|(recorded, _, validation)| {
            (recorded.profile, plot::distributions(recorded.profile, &validation.curve))
        })
    }

    /// Profile, requests and demerit of each.
    pub fn demerits(&self) -> impl ParallelIterator<Item = (&'static str, &[Record], f64)> + '_ {
        self.replayed
            .par_iter()
            .map(|(recorded, records, validation)| (recorded.profile, records.as_slice(), validation.all.demerit_ms))
    }
}

/// A line a drive, and its plot.
pub fn part(recordings: &Recordings) -> Result<String> {
    let rows = recordings.replayed.iter().map(|(recorded, _, validation)| Ok(row(recorded, validation)));
    let header = [
        "drive",
        "requests",
        "coherence",
        "RMS, ms",
        "of those at once, ms",
        "demerit, ms",
        "of reads, ms",
        "DiskSim's, ms",
        "ratio",
        "goal",
        "reached",
    ];
    let plots: String = recordings
        .plots()
        .map(|(name, _)| format!("![Service times of {name}: how many requests took at most so long, recorded and modelled](drives/{name}.svg)\n"))
        .collect();
    Ok(format!(
        "Each request is given to the model when it was recorded to be issued; revolution and angle at the start are fitted first, all other \
         figures are the profile's. *RMS* is the error request by request. The *demerit* is the RMS distance between the two distributions of \
         service times (C. Ruemmler, J. Wilkes, \"An introduction to disk drive modeling\", IEEE Computer 27(3), 1994); DiskSim's own is what its \
         validation prints for the same drive and recording. *Coherence* says whether the recording's clock tells the platter's angle: about 0, it \
         does not, and no model can be right request by request.\n\n{}\n{plots}",
        judged(&header, rows)?
    ))
}

fn row(recorded: &Recorded, validation: &Validation) -> Judged {
    let ms = |value: f64| format!("{value:.3}");
    let ratio = validation.all.demerit_ms * 1000.0 / recorded.disksim_us;
    let tracked = validation.coherence >= COHERENT;
    let good = ratio <= RATIO && (!tracked || validation.all.rms_ms < RMS_MS);
    let goal = if tracked { format!("RMS < {RMS_MS} and ratio <= {RATIO}") } else { format!("ratio <= {RATIO}") };
    let cells = vec![
        format!("`{}`", recorded.profile),
        validation.all.requests.to_string(),
        format!("{:.2}", validation.coherence),
        ms(validation.all.rms_ms),
        ms(validation.at_once.rms_ms),
        ms(validation.all.demerit_ms),
        ms(validation.reads.demerit_ms),
        ms(recorded.disksim_us / 1000.0),
        format!("{ratio:.2}"),
        goal,
        reached(good),
    ];
    (cells, good)
}
