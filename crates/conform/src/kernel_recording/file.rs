//! Whole recordings, compressed or not.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use serde::Serialize;

use super::call::Call;
use super::error::RecordingError;
use super::reader::{MAGIC, Reader};
use super::record::{RECORD_SIZE, Record};
use super::replay::{RecordDifference, Replay};

const BUFFER: usize = 64 << 10;
/// The number of records between two reports of progress.
const STEP: u64 = 4096;

/// The number of records of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct AnswerCount {
    /// The call.
    pub call: Call,
    /// The number of its records.
    pub records: u64,
}

/// The result of replaying a recording.
#[derive(Clone, Debug, Serialize)]
pub struct RecordingReport {
    /// The name of the file as it was given.
    pub file: String,
    /// The elevator.
    pub elevator: &'static str,
    /// The version of the kernel module.
    pub module: String,
    /// The disk.
    pub disk: String,
    /// The number of queues: each change of `nr_requests` that needs more room begins a new one.
    pub queues: u32,
    /// The number of records.
    pub records: u64,
    /// The number of records before the first difference; all without one.
    pub identical: u64,
    /// The number of records whose answer is a decision: a request, a merge, a time, a limit.
    pub decisions: u64,
    /// False if the recording was read before it ended.
    pub complete: bool,
    /// The numbers of records by call.
    pub calls: Vec<AnswerCount>,
    /// The first difference.
    pub difference: Option<RecordDifference>,
}

impl RecordingReport {
    /// The number of records of a call.
    pub fn records_of(&self, call: Call) -> u64 {
        self.calls.iter().find(|count| count.call == call).map_or(0, |count| count.records)
    }

    fn count(&mut self, record: &Record) {
        let call = record.call;
        self.records = self.records.saturating_add(1);
        self.decisions = self.decisions.saturating_add(u64::from(call.is_decision()));
        match self.calls.iter_mut().find(|count| count.call == call) {
            Some(count) => count.records = count.records.saturating_add(1),
            None => self.calls.push(AnswerCount { call, records: 1 }),
        }
    }
}

fn open(path: &Path) -> io::Result<(Box<dyn Read>, bool)> {
    let mut plain = BufReader::with_capacity(BUFFER, File::open(path)?);
    if plain.fill_buf()?.starts_with(&[0x1f, 0x8b]) {
        return Ok((Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(plain))), true));
    }
    Ok((Box::new(plain), false))
}

fn reader(path: &Path) -> Result<Reader<Box<dyn Read>>, RecordingError> {
    let (source, compressed) = open(path)?;
    Reader::new(source, compressed)
}

/// Returns true if a file, compressed or not, begins like a recording of the kernel module. A file
/// that cannot be read does not.
pub fn is_recording(path: &Path) -> bool {
    let mut beginning = [0; MAGIC.len()];
    let read = open(path).and_then(|(mut source, _)| source.read_exact(&mut beginning));
    read.is_ok() && beginning == *MAGIC
}

/// Calls a function with each record of a file.
///
/// # Errors
/// [`RecordingError`] if the file cannot be read or is damaged, or the first error of `each`.
pub fn for_each_record<E: From<RecordingError>>(
    path: &Path,
    mut each: impl FnMut(&Record) -> Result<(), E>,
) -> Result<(), E> {
    let mut reader = reader(path)?;
    while let Some(record) = reader.next_record()? {
        each(&record)?;
    }
    Ok(())
}

/// Replays a recording. `progress` is called now and then with the number of records done.
///
/// # Errors
/// [`RecordingError`] if the file cannot be read, is damaged or cut off, or has lost records.
pub fn replay_recording(path: &Path, mut progress: impl FnMut(u64)) -> Result<RecordingReport, RecordingError> {
    let mut reader = reader(path)?;
    let mut replay = Replay::default();
    let mut report = RecordingReport {
        file: path.display().to_string(),
        elevator: "",
        module: String::new(),
        disk: reader.header().disk.clone(),
        queues: 0,
        records: 0,
        identical: 0,
        decisions: 0,
        complete: false,
        calls: Vec::new(),
        difference: None,
    };
    while let Some(record) = reader.next_record()? {
        report.count(&record);
        if report.difference.is_none() {
            let (offset, number) = (record.number.saturating_mul(RECORD_SIZE as u64), record.number);
            let stepped = replay.step(&record);
            report.difference = stepped.map_err(|error| RecordingError::Record { offset, number, error })?;
            report.identical = report.identical.saturating_add(u64::from(report.difference.is_none()));
        }
        if report.records.is_multiple_of(STEP) {
            progress(report.records);
        }
    }
    progress(report.records);
    report.elevator = replay.elevator().unwrap_or_default();
    report.module = replay.module().to_owned();
    report.queues = replay.queues();
    report.complete = reader.is_complete();
    Ok(report)
}
