//! Fits a profile with a known geometry to a trace: rotation, overheads, settling, and the height
//! of the seek curve.

use toml::{Table, Value};

use crate::command::Op;
use crate::profile::{DiskProfile, Profile};
use crate::recording::Record;
use crate::seek::SeekCurve;

use super::evidence;
use super::requests::{Hits, Requests};
use super::result::{Base, Finding, FitProfileError, FittedProfile, Notes, finish};
use super::rotation::fit_rotation;
use super::stats::percentile;
use crate::replay::{Prediction, PredictionErrors, ReplayError, replay};

/// The minimum coherence at which the clock of the trace shows the angle of the platter. Below it
/// distributions are compared.
const COHERENT: f64 = 0.3;
/// The number of times that the steps are halved.
const HALVINGS: usize = 6;

/// The number of alternating fits of phase and other parameters.
const ROUNDS: usize = 3;

/// Sectors of the write cache of a base without a buffer.
const CACHE_SECTORS: i64 = 2048;

/// Changes to the base: ms before reads, ms before writes, ms of settling, and the relative change
/// of seeks.
type Changes = [f64; 4];
/// The initial steps: each parameter alone, and combinations that compensate each other, because a
/// seek takes about 5 ms.
const STEPS: [Changes; 6] = [
    [0.1, 0.0, 0.0, 0.0],
    [0.0, 0.1, 0.0, 0.0],
    [0.0, 0.0, 0.1, 0.0],
    [0.0, 0.0, 0.0, 0.04],
    [0.1, 0.1, 0.0, -0.02],
    [0.0, 0.1, -0.1, 0.0],
];

/// Fits to `half` and measures the errors of all records.
pub(super) fn fit(
    half: &[Record],
    records: &[Record],
    base: &Base,
    name: &str,
) -> Result<FittedProfile, FitProfileError> {
    let (text, cache) = with_write_cache(base, half)?;
    let base = &Base { toml: &text, ..*base };
    let stated = Profile::from_toml(base.toml, base.file_name)?;
    let rotation = fit_rotation(&stated, half)?;
    let coherent = rotation.coherence >= COHERENT;
    let mut turning = if coherent { rotation.profile } else { stated };
    let mut changes = [0.0; 4];
    let (mut before_ms, mut after_ms) = (None, 0.0);
    for _ in 0..ROUNDS {
        if coherent {
            turning = in_phase(turning, &changes, half)?;
        }
        let wrong_ms = |changes: &Changes| -> Result<f64, ReplayError> {
            let errors = PredictionErrors::of(&replay(&changed(&turning, changes), half)?);
            Ok(if coherent { errors.rms_ms } else { errors.demerit_ms })
        };
        before_ms = Some(before_ms.map_or_else(|| wrong_ms(&changes), Ok)?);
        (changes, after_ms) = descend(changes, wrong_ms)?;
        if !coherent {
            break;
        }
    }
    let before_ms = before_ms.unwrap_or(after_ms);
    let profile = changed(&turning, &changes);
    let Some(disk) = profile.disk() else {
        return Err(ReplayError::NoPlatter { name: name.to_string() }.into());
    };
    let toml = edited(base, name, disk, changes[3])?;
    let measure = if coherent { "RMS error" } else { "demerit" };
    let from = format!("{measure} of the first half: {before_ms:.3} ms before, {after_ms:.3} ms after");
    let mut found = Vec::new();
    if coherent {
        let value = format!("{:.2} ns, initial angle {:.4} revolutions", disk.revolution_ns, disk.phase_revolutions);
        let from = format!("angles of completions, coherence {:.2}", rotation.coherence);
        found.push(Finding { what: "revolution", value, from });
    }
    found.extend(cache);
    let overheads = &disk.overheads;
    let ms = |ns: u32| f64::from(ns) / 1e6;
    for (what, value) in [
        ("overhead of reads", format!("{:.3} ms", ms(overheads.read_miss_after_read))),
        ("overhead of writes", format!("{:.3} ms", ms(overheads.write_miss_after_read))),
        ("writes settle", format!("{:.3} ms", disk.write_settle_ms)),
        ("seeks", format!("{:.4} times the base's", 1.0 + changes[3])),
    ] {
        found.push(Finding { what, value, from: from.clone() });
    }
    let mut undetermined =
        vec!["Slightly more overhead and slightly shorter seeks give nearly the same errors.".to_string()];
    if !coherent {
        undetermined.push(format!(
            "The clock of the trace does not show the angle of the platter (coherence {:.2}): the revolution of the base is kept.",
            rotation.coherence
        ));
    }
    let notes = Notes { undetermined, warnings: evidence::of_base(half, rotation.coherence, COHERENT) };
    finish(toml, name, found, notes, |profile| replay(profile, records))
}

/// The text of the base with its write cache on or off as in the trace, and the finding if that
/// differs from the base.
fn with_write_cache(base: &Base, half: &[Record]) -> Result<(String, Option<Finding>), FitProfileError> {
    let unchanged = || Ok((base.toml.to_string(), None));
    let stated = Profile::from_toml(base.toml, base.file_name)?;
    let Some(disk) = stated.disk() else { return unchanged() };
    let writes = half.iter().filter(|record| record.access.op == Op::Write).count();
    let hits = Requests::new(half).write_hits;
    let has_cache = disk.buffer.enabled && disk.buffer.write_cache.is_some();
    if writes < evidence::WRITES_FEW || hits.is_some() == has_cache {
        return unchanged();
    }
    let missing = |key: &str| FitProfileError::BaseTable { file: base.file_name.to_string(), key: key.to_string() };
    let mut table = resolved(base.toml.parse().map_err(|_| missing("the file"))?);
    let mut small = Table::new();
    for (key, value) in [("segments", 1), ("segment_sectors", CACHE_SECTORS), ("read_ahead_sectors", 0)] {
        small.insert(key.to_string(), Value::Integer(value));
    }
    small.insert("read_ahead_until".to_string(), Value::String("segment".to_string()));
    if !disk.buffer.enabled {
        table.remove("buffer");
    }
    let buffer = table.entry("buffer").or_insert(Value::Table(small));
    let buffer = buffer.as_table_mut().ok_or_else(|| missing("buffer"))?;
    buffer.insert("write_cache".to_string(), Value::Boolean(hits.is_some()));
    if let Some(Hits { overhead_ms, .. }) = hits {
        let overhead = table.entry("overhead").or_insert_with(|| Value::Table(Table::new()));
        let overhead = overhead.as_table_mut().ok_or_else(|| missing("overhead"))?;
        for key in ["write_hit_after_read_ms", "write_hit_after_write_ms"] {
            overhead.insert(key.to_string(), Value::Float(rounded(overhead_ms, 6)));
        }
    }
    let (value, from) = match hits {
        Some(Hits { overhead_ms, requests, .. }) => (
            format!("on, {overhead_ms:.3} ms a write; its size is assumed"),
            format!("{requests} of {writes} writes, which are faster than the media"),
        ),
        None => ("off".to_string(), format!("{writes} writes, which take as long as reads")),
    };
    Ok((toml::to_string(&table).unwrap_or_default(), Some(Finding { what: "write cache", value, from })))
}

/// The profile with a phase at which half of the predictions are too late.
///
/// The phase with the least RMS error would compensate overheads that are still wrong. Most
/// requests have an error of the phase alone.
fn in_phase(profile: Profile, changes: &Changes, records: &[Record]) -> Result<Profile, ReplayError> {
    let predictions = replay(&changed(&profile, changes), records)?;
    let errors: Vec<f64> = predictions.iter().map(Prediction::error_ms).collect();
    let late_ms = percentile(&errors, 0.5);
    let rotation = profile.disk().map(|disk| (disk.revolution_ns, disk.phase_revolutions));
    Ok(match rotation {
        Some((revolution_ns, phase)) => profile.with_rotation(revolution_ns, phase + late_ms * 1e6 / revolution_ns),
        None => profile,
    })
}

/// Descends from `at` to a local minimum and returns it with its error.
fn descend(
    mut at: Changes,
    wrong_ms: impl Fn(&Changes) -> Result<f64, ReplayError>,
) -> Result<(Changes, f64), ReplayError> {
    let mut least_ms = wrong_ms(&at)?;
    let mut size = 1.0;
    for _ in 0..HALVINGS {
        let mut moved = true;
        while moved {
            moved = false;
            for step in STEPS {
                for sign in [size, -size] {
                    let tried: Changes = std::array::from_fn(|index| at[index] + sign * step[index]);
                    let found_ms = wrong_ms(&tried)?;
                    if found_ms < least_ms - 1e-6 {
                        (at, least_ms, moved) = (tried, found_ms, true);
                        break;
                    }
                }
            }
        }
        size /= 2.0;
    }
    Ok((at, least_ms))
}

/// The profile with changes. No parameter becomes negative.
fn changed(profile: &Profile, changes: &Changes) -> Profile {
    let mut profile = profile.clone();
    if let Some(disk) = profile.disk_mut() {
        let longer = |ns: u32, ms: f64| (f64::from(ns) + ms * 1e6).round().clamp(0.0, f64::from(u32::MAX)) as u32;
        let [reads_ms, writes_ms, settle_ms, seeks] = *changes;
        let overheads = &mut disk.overheads;
        overheads.read_miss_after_read = longer(overheads.read_miss_after_read, reads_ms);
        overheads.read_miss_after_write = longer(overheads.read_miss_after_write, reads_ms);
        overheads.write_miss_after_read = longer(overheads.write_miss_after_read, writes_ms);
        overheads.write_miss_after_write = longer(overheads.write_miss_after_write, writes_ms);
        disk.write_settle_ms += settle_ms;
        scale(&mut disk.seek, 1.0 + seeks);
    }
    profile
}

fn scale(curve: &mut SeekCurve, factor: f64) {
    match curve {
        SeekCurve::Table(points) => points.iter_mut().for_each(|point| point.1 *= factor),
        SeekCurve::LeeKatz { single_ms, average_ms, full_ms } => {
            [single_ms, average_ms, full_ms].into_iter().for_each(|ms| *ms *= factor);
        }
        SeekCurve::RuemmlerWilkes { a_ms, b_ms, c_ms, e_ms, .. } => {
            [a_ms, b_ms, c_ms, e_ms].into_iter().for_each(|ms| *ms *= factor);
        }
    }
}

/// The text of the base with the fitted parameters.
fn edited(base: &Base, name: &str, disk: &DiskProfile, seeks: f64) -> Result<String, FitProfileError> {
    let missing = |key: &str| FitProfileError::BaseTable { file: base.file_name.to_string(), key: key.to_string() };
    let table: Table = base.toml.parse().map_err(|_| missing("the file"))?;
    let mut table = resolved(table);
    let text = |table: &Table, key: &str| table.get(key).and_then(Value::as_str).unwrap_or("").to_string();
    let what = format!("{}, fitted to a trace", text(&table, "what"));
    let note =
        "Rotation, overheads of misses, settling of writes and the height of the seek curve were fitted to a trace.";
    let source = format!("{}\n\n{note}", text(&table, "source").trim());
    for (key, value) in [("name", name.to_string()), ("what", what), ("source", source)] {
        table.insert(key.to_string(), Value::String(value));
    }
    let section = table.get_mut("disk").and_then(Value::as_table_mut).ok_or_else(|| missing("disk"))?;
    section.remove("rpm");
    for (key, value) in [
        ("revolution_ns", rounded(disk.revolution_ns, 3)),
        ("phase_revolutions", rounded(disk.phase_revolutions, 6).min(0.999_999)),
        ("write_settle_ms", rounded(disk.write_settle_ms, 6)),
    ] {
        section.insert(key.to_string(), Value::Float(value));
    }
    let overhead = table.entry("overhead").or_insert_with(|| Value::Table(Table::new()));
    let overhead = overhead.as_table_mut().ok_or_else(|| missing("overhead"))?;
    for (key, ns) in [
        ("read_miss_after_read_ms", disk.overheads.read_miss_after_read),
        ("read_miss_after_write_ms", disk.overheads.read_miss_after_write),
        ("write_miss_after_read_ms", disk.overheads.write_miss_after_read),
        ("write_miss_after_write_ms", disk.overheads.write_miss_after_write),
    ] {
        overhead.insert(key.to_string(), Value::Float(f64::from(ns) / 1e6));
    }
    let seek = table.get_mut("seek").and_then(Value::as_table_mut).ok_or_else(|| missing("seek"))?;
    for (_, value) in seek.iter_mut().filter(|(key, _)| key.ends_with("_ms")) {
        scale_value(value, 1.0 + seeks);
    }
    Ok(toml::to_string(&table).unwrap_or_default())
}

/// A derived profile with the tables of its base.
fn resolved(mut table: Table) -> Table {
    let below = table.get("base").and_then(Value::as_str).and_then(Profile::builtin_toml);
    match below.and_then(|text| text.parse::<Table>().ok()) {
        Some(below) => {
            table.remove("base");
            let mut below = resolved(below);
            below.extend(table);
            below
        }
        None => table,
    }
}

/// Scales a time, or the times of points.
fn scale_value(value: &mut Value, factor: f64) {
    match value {
        Value::Float(ms) => *ms = rounded(*ms * factor, 9),
        Value::Integer(ms) => *value = Value::Float(rounded(*ms as f64 * factor, 9)),
        Value::Array(points) => {
            for point in points.iter_mut().filter_map(Value::as_array_mut) {
                point.iter_mut().skip(1).for_each(|ms| scale_value(ms, factor));
            }
        }
        _ => {}
    }
}

fn rounded(value: f64, decimals: i32) -> f64 {
    let scale = 10f64.powi(decimals);
    (value * scale).round() / scale
}
