//! Replays of recordings of the kernel module.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use hoistway_conform::kernel_recording::{Call, RecordingReport, replay_recording};
use hoistway_core::Kind;

fn recordings() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/kernel");
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.to_string_lossy().ends_with(".rec.gz"));
    files.sort();
    files
}

/// The text of a difference with its surroundings.
fn text(report: &RecordingReport) -> Option<String> {
    let difference = report.difference.as_ref()?;
    let (before, state) = (difference.before.join("\n  "), difference.state.join("\n  "));
    Some(format!("{}: {difference}\n  {before}\n  {state}", report.file))
}

#[test]
fn every_call_in_a_kernel_has_the_same_answer_here() {
    let reports: Vec<RecordingReport> =
        recordings().iter().map(|file| replay_recording(file, |_| ()).unwrap()).collect();
    let different: Vec<String> = reports.iter().filter_map(text).collect();
    assert!(different.is_empty(), "{}", different.join("\n"));
    assert!(reports.iter().all(|report| report.complete && report.identical == report.records));

    let elevators: BTreeSet<&str> = reports.iter().map(|report| report.elevator).collect();
    for kind in Kind::ALL {
        assert!(elevators.contains(kind.info().name), "no recording of {}", kind.info().name);
    }
    let mut calls = BTreeMap::new();
    for report in &reports {
        report.calls.iter().for_each(|count| *calls.entry(count.call).or_insert(0) += count.records);
    }
    for call in [
        Call::Next,
        Call::AllowsMerge,
        Call::PrepareMerge,
        Call::FindMerge,
        Call::Neighbour,
        Call::Growth,
        Call::Timer,
        Call::Move,
    ] {
        assert!(calls.get(&call).is_some_and(|count| *count > 20), "few calls of {}: {calls:?}", call.name());
    }
}
