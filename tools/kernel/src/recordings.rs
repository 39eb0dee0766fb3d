//! Recordings that the module made in a guest: they must replay identically in user space.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use hoistway_guest::transfer;
use hoistway_workspace::cargo;

/// The result of a replay.
#[derive(Debug, Default)]
pub struct Replayed {
    /// The number of recordings.
    recordings: usize,
    /// The number of records in all of them.
    records: u64,
    /// The number of records that are decisions.
    decisions: u64,
    elevators: BTreeSet<String>,
}

impl Replayed {
    /// One line about the replay.
    pub fn line(&self) -> String {
        let Replayed { recordings, records, decisions, elevators } = self;
        format!(
            "{recordings} recordings of {} elevators replay identically: {records} records, {decisions} decisions",
            elevators.len()
        )
    }

    /// The names of the elevators.
    pub fn elevators(&self) -> &BTreeSet<String> {
        &self.elevators
    }
}

/// Writes the recordings on a transfer disk to a directory and returns their files.
pub fn extract(disk: &Path, directory: &Path) -> Result<Vec<PathBuf>> {
    let _ = fs::remove_dir_all(directory);
    fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
    let mut files: Vec<PathBuf> = Vec::new();
    let received = transfer::receive(disk, |name, bytes| {
        if name.ends_with(".rec") {
            files.push(directory.join(name));
            fs::write(directory.join(name), bytes)?;
        }
        Ok(())
    });
    received.with_context(|| format!("the files of the guest on {}", disk.display()))?;
    Ok(files)
}

/// Extracts the recordings on a transfer disk and replays them with `hoistway conform`. Returns
/// None if there are none, and an error if one differs.
pub fn replay(disk: &Path, directory: &Path) -> Result<Option<Replayed>> {
    let files = extract(disk, directory)?;
    if files.is_empty() {
        return Ok(None);
    }
    let mut command = Command::new(cargo::hoistway()?);
    command.args(["conform", "--json"]).args(&files);
    let output = command.output().context("cannot start hoistway conform")?;
    let printed = String::from_utf8_lossy(&output.stdout);
    let parsed = serde_json::from_str(&printed);
    let document: serde_json::Value = parsed.with_context(|| {
        format!("hoistway conform: {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim())
    })?;
    judge(&document, files.len()).map(Some)
}

/// Adds the recordings of a document of `hoistway conform --json` up. Fails if one differs, was
/// read before its end, or is missing.
fn judge(document: &serde_json::Value, expected: usize) -> Result<Replayed> {
    let mut replayed = Replayed::default();
    let mut failures = Vec::new();
    for report in document["recordings"].as_array().context("no list of recordings")? {
        let file = report["file"].as_str().unwrap_or_default();
        let number = |key: &str| report[key].as_u64().unwrap_or(0);
        if !report["difference"].is_null() {
            let difference = &report["difference"];
            failures.push(format!(
                "{file}: record {} differs: {}: expected {}, got {}",
                difference["number"], difference["question"], difference["expected"], difference["got"]
            ));
        } else if report["complete"].as_bool() != Some(true) || number("records") == 0 {
            failures.push(format!("{file}: the recording is not complete"));
        }
        replayed.recordings += 1;
        replayed.records += number("records");
        replayed.decisions += number("decisions");
        replayed.elevators.insert(report["elevator"].as_str().unwrap_or_default().to_owned());
    }
    for error in document["errors"].as_array().into_iter().flatten() {
        failures.push(error.to_string());
    }
    if replayed.recordings != expected {
        failures.push(format!("{} of {expected} recordings were replayed", replayed.recordings));
    }
    if failures.is_empty() { Ok(replayed) } else { bail!("{}", failures.join("\n")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(second: &str) -> serde_json::Value {
        let text = format!(
            r#"{{"recordings": [
                {{"file": "a.rec", "elevator": "cfq", "records": 10, "decisions": 4, "complete": true,
                  "difference": null}}, {second}], "errors": []}}"#
        );
        serde_json::from_str(&text).expect("it is JSON")
    }

    #[test]
    fn identical_recordings_are_added_up() {
        let second = r#"{"file": "b.rec", "elevator": "fiops", "records": 5, "decisions": 1, "complete": true}"#;
        let replayed = judge(&document(second), 2).expect("they are identical");
        assert_eq!(replayed.line(), "2 recordings of 2 elevators replay identically: 15 records, 5 decisions");
        assert!(judge(&document(second), 3).is_err_and(|error| error.to_string() == "2 of 3 recordings were replayed"));
    }

    #[test]
    fn a_difference_and_a_recording_without_its_end_are_failures() {
        let second = r#"{"file": "b.rec", "elevator": "fiops", "records": 5, "complete": true,
            "difference": {"number": 3, "question": "next", "expected": "request 1", "got": "wait"}}"#;
        let error = judge(&document(second), 2).expect_err("it differs").to_string();
        assert!(error.contains("b.rec: record 3 differs") && error.contains("got \"wait\""), "{error}");
        let second = r#"{"file": "b.rec", "elevator": "fiops", "records": 5, "complete": false}"#;
        assert!(judge(&document(second), 2).is_err());
    }
}
