//! `hoistway drives --fit`: a profile from a trace.

use std::fs;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result};
use flate2::read::MultiGzDecoder;
use hoistway_drive::fit::{Agreement, Base, FitKind, FitOptions, FittedProfile, fit_profile};
use hoistway_drive::recording::parse_any;
use serde::Serialize;

use crate::cli::{DriveKind, DrivesArgs};
use crate::drive_choice;
use crate::failure::Exit;
use crate::output::{self, Out};

/// What a file begins with that gzip made.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Fits a profile, tells what was found and what is still wrong, and writes or prints the profile.
pub fn run(trace: &Path, args: &DrivesArgs, out: &mut Out) -> Result<Exit> {
    let file = trace.display().to_string();
    let records = parse_any(&text(trace)?, &file)?;
    let base = args.base.as_deref().map(drive_choice::text).transpose()?;
    let kind = args.kind.map(|kind| match kind {
        DriveKind::Disk => FitKind::Disk,
        DriveKind::Flash => FitKind::Flash,
    });
    let named = args.output.as_deref().unwrap_or(trace).file_name().and_then(|name| name.to_str()).unwrap_or("fitted");
    let name = named.split('.').next().filter(|name| !name.is_empty()).unwrap_or("fitted");
    let base = base.as_ref().map(|(toml, file_name)| Base { toml, file_name });
    let fitted = fit_profile(&records, &FitOptions { name, kind, base }).with_context(|| file.clone())?;
    if let Some(path) = &args.output {
        fs::write(path, &fitted.toml).with_context(|| format!("{}: cannot write the profile", path.display()))?;
    }
    if args.json {
        out.json(&Document::new(&fitted))?;
    } else {
        tell(&fitted, args, out)?;
    }
    Ok(Exit::Success)
}

/// A file's text, unpacked if gzip made it.
pub(super) fn text(path: &Path) -> Result<String> {
    let bytes = fs::read(path).with_context(|| format!("{}: cannot read the trace", path.display()))?;
    let mut text = String::new();
    let read = if bytes.starts_with(&GZIP) {
        MultiGzDecoder::new(bytes.as_slice()).read_to_string(&mut text)
    } else {
        bytes.as_slice().read_to_string(&mut text)
    };
    read.with_context(|| format!("{}: the trace is no text", path.display()))?;
    Ok(text)
}

fn tell(fitted: &FittedProfile, args: &DrivesArgs, out: &mut Out) -> Result<()> {
    out.heading("Fitted")?;
    let width = fitted.found.iter().map(|finding| finding.what.len()).max().unwrap_or(0);
    for finding in &fitted.found {
        out.line(format_args!("  {:width$}  {}", finding.what, finding.value))?;
        out.line(format_args!("  {:width$}  from {}", "", finding.from))?;
    }
    super::section("Not told by the trace", out)?;
    fitted.untold.iter().try_for_each(|sentence| out.paragraph(2, sentence))?;
    super::section("The error that remains, in ms", out)?;
    let header = ["  half", "requests", "RMS", "demerit", "", "mean", "p50", "p90", "p99"];
    let mut table = output::table(&header, 1);
    for (half, agreement) in [("  fitted to", &fitted.fitted_to), ("  held out", &fitted.held_out)] {
        let errors = &agreement.errors;
        let ms = |value: f64| format!("{value:.3}");
        let row = |name: &str, what: &str, first: [String; 3], mean: f64, percentiles: [f64; 3]| {
            let mut row = vec![name.to_owned()];
            row.extend(first);
            row.push(what.to_owned());
            row.push(ms(mean));
            row.extend(percentiles.map(ms));
            row
        };
        let first = [errors.requests.to_string(), ms(errors.rms_ms), ms(errors.demerit_ms)];
        table.add_row(row(half, "recorded", first, errors.recorded_mean_ms, agreement.recorded_ms));
        table.add_row(row("", "model", Default::default(), errors.predicted_mean_ms, agreement.predicted_ms));
    }
    out.table(&mut table)?;
    out.line("")?;
    out.paragraph(
        2,
        "RMS is request by request; the demerit is the RMS distance between the two distributions of service times.",
    )?;
    match &args.output {
        Some(path) => {
            let path = path.display();
            out.line("")?;
            out.paragraph(
                0,
                &format!(
                    "Wrote {path}: `hoistway drives {path}` explains it, `hoistway compare --drive {path}` uses it."
                ),
            )?;
        }
        None => {
            super::section("The profile", out)?;
            fitted.toml.lines().try_for_each(|line| out.line(line))?;
        }
    }
    Ok(())
}

/// The JSON document of `hoistway drives --fit --json`.
#[derive(Serialize)]
struct Document<'a> {
    /// The version of this form: 1.
    schema: u32,
    /// The profile's name.
    name: &'a str,
    /// What was fitted.
    found: Vec<Found<'a>>,
    /// What the trace does not tell, a sentence each.
    untold: &'a [String],
    /// The first half of the requests, which the profile was fitted to.
    fitted_to: Half,
    /// The second half.
    held_out: Half,
    /// The profile's text.
    toml: &'a str,
}

/// A figure that was fitted.
#[derive(Serialize)]
struct Found<'a> {
    /// What it is.
    what: &'a str,
    /// The figure with its unit.
    value: &'a str,
    /// What it was found from.
    from: &'a str,
}

/// How well the model agrees with half of the trace.
#[derive(Serialize)]
struct Half {
    /// Requests.
    requests: usize,
    /// Root mean square error, request by request.
    rms_ms: f64,
    /// Root mean square distance between the distributions of service times.
    demerit_ms: f64,
    /// Mean recorded service time.
    recorded_mean_ms: f64,
    /// Mean modelled service time.
    predicted_mean_ms: f64,
    /// Recorded percentiles 50, 90 and 99.
    recorded_ms: [f64; 3],
    /// Modelled percentiles 50, 90 and 99.
    predicted_ms: [f64; 3],
}

impl<'a> Document<'a> {
    fn new(fitted: &'a FittedProfile) -> Document<'a> {
        let found = fitted.found.iter();
        Document {
            schema: 1,
            name: fitted.profile.name(),
            found: found.map(|found| Found { what: found.what, value: &found.value, from: &found.from }).collect(),
            untold: &fitted.untold,
            fitted_to: Half::new(&fitted.fitted_to),
            held_out: Half::new(&fitted.held_out),
            toml: &fitted.toml,
        }
    }
}

impl Half {
    fn new(of: &Agreement) -> Half {
        Half {
            requests: of.errors.requests,
            rms_ms: of.errors.rms_ms,
            demerit_ms: of.errors.demerit_ms,
            recorded_mean_ms: of.errors.recorded_mean_ms,
            predicted_mean_ms: of.errors.predicted_mean_ms,
            recorded_ms: of.recorded_ms,
            predicted_ms: of.predicted_ms,
        }
    }
}
