//! Whole decision files, compressed or not.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use serde::Serialize;

use super::compare::{Difference, compare};
use super::decision::List;
use super::error::{DecisionError, ScenarioError};
use super::replay::replay_scenario;
use super::scenario::Scenario;

/// The longest accepted line, in bytes; the longest recorded line has less than 1 MB.
const LINE_LIMIT: u64 = 64 << 20;
const BUFFER: usize = 64 << 10;

/// The result of one decision file.
#[derive(Clone, Debug, Serialize)]
pub struct FileReport {
    /// The name of the file as it was given.
    pub file: String,
    /// Number of scenarios with an identical replay: the same requests, in the same order, at the
    /// same nanoseconds.
    pub identical: u32,
    /// Number of scenarios in the file.
    pub total: u32,
    /// Number of recorded decisions in the scenarios.
    pub decisions: u64,
    /// Number of decisions by list, for the lists that the file has.
    pub lists: Vec<ListCount>,
    /// The `source` of each scenario, each once.
    pub sources: Vec<&'static str>,
    /// The scenarios whose replay differs.
    pub differences: Vec<ScenarioReport>,
}

/// The number of decisions of one list in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ListCount {
    /// The list.
    pub list: List,
    /// Number of decisions in the list.
    pub decisions: u64,
}

/// A scenario whose replay differs.
#[derive(Clone, Debug, Serialize)]
pub struct ScenarioReport {
    /// The name of the scenario.
    pub name: String,
    /// Line in the file, from 1.
    pub line: usize,
    /// The first difference.
    pub difference: Difference,
    /// The events before the difference, as text.
    pub last_events: Vec<String>,
}

/// Replays all scenarios of a file (JSON lines, or gzipped JSON lines; the first bytes decide
/// which). `progress` is called after each scenario with the number of scenarios done.
///
/// # Errors
/// [`DecisionError`] if the file cannot be read, is damaged, cut off or empty, or has an invalid
/// line.
pub fn replay_file(path: &Path, mut progress: impl FnMut(u32)) -> Result<FileReport, DecisionError> {
    let file = path.display().to_string();
    let mut report = FileReport {
        file,
        total: 0,
        identical: 0,
        decisions: 0,
        lists: Vec::new(),
        sources: Vec::new(),
        differences: Vec::new(),
    };
    let mut lines = Lines::open(path)?;
    while let Some((line, text)) = lines.next()? {
        let scenario = Scenario::from_json(text).map_err(|error| bad_scenario(path, line, text, error))?;
        report.count(&scenario);
        report.total = report.total.saturating_add(1);
        match compare(&scenario, &replay_scenario(&scenario)) {
            None => report.identical = report.identical.saturating_add(1),
            Some((difference, last_events)) => {
                let name = scenario.name().to_owned();
                report.differences.push(ScenarioReport { name, line, difference, last_events });
            }
        }
        progress(report.total);
    }
    if report.total == 0 {
        return Err(DecisionError::Empty { file: path.to_owned() });
    }
    Ok(report)
}

impl FileReport {
    /// The number of recorded decisions of a list in the file; `None` if the file does not have the
    /// list.
    pub fn decisions_of(&self, list: List) -> Option<u64> {
        self.lists.iter().find(|count| count.list == list).map(|count| count.decisions)
    }

    /// Counts the recorded decisions of a scenario.
    fn count(&mut self, scenario: &Scenario) {
        for list in List::ALL {
            let Some(recorded) = scenario.expected(list) else { continue };
            let decisions = recorded.len() as u64;
            self.decisions = self.decisions.saturating_add(decisions);
            match self.lists.iter_mut().find(|count| count.list == list) {
                Some(count) => count.decisions = count.decisions.saturating_add(decisions),
                None => self.lists.push(ListCount { list, decisions }),
            }
        }
        let source = scenario.target().source;
        if !self.sources.contains(&source) {
            self.sources.push(source);
        }
    }
}

fn bad_scenario(path: &Path, line: usize, text: &[u8], error: ScenarioError) -> DecisionError {
    let file = path.to_owned();
    match error {
        ScenarioError::Json { ends_early: true, .. } if !text.ends_with(b"\n") => DecisionError::CutOff { file, line },
        error => DecisionError::Scenario { file, line, error },
    }
}

/// The lines of a file, one at a time.
struct Lines<'a> {
    path: &'a Path,
    reader: Box<dyn BufRead>,
    compressed: bool,
    line: usize,
    text: Vec<u8>,
}

impl<'a> Lines<'a> {
    fn open(path: &'a Path) -> Result<Self, DecisionError> {
        let failed = |error| DecisionError::Io { file: path.to_owned(), error };
        let mut plain = BufReader::with_capacity(BUFFER, File::open(path).map_err(failed)?);
        let beginning = plain.fill_buf().map_err(failed)?;
        if beginning.is_empty() {
            return Err(DecisionError::Empty { file: path.to_owned() });
        }
        let compressed = beginning.starts_with(&[0x1f, 0x8b]);
        if !compressed && path.extension().is_some_and(|extension| extension == "gz") {
            return Err(DecisionError::NotGzip { file: path.to_owned() });
        }
        let reader: Box<dyn BufRead> = if compressed {
            Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(plain)))
        } else {
            Box::new(plain)
        };
        Ok(Lines { path, reader, compressed, line: 0, text: Vec::new() })
    }

    /// The next line that is not blank, with its number from 1.
    fn next(&mut self) -> Result<Option<(usize, &[u8])>, DecisionError> {
        loop {
            self.text.clear();
            self.line = self.line.saturating_add(1);
            let mut limited = (&mut self.reader).take(LINE_LIMIT);
            let read = limited.read_until(b'\n', &mut self.text).map_err(|error| self.failed(error))?;
            if read == 0 {
                return Ok(None);
            }
            if read as u64 == LINE_LIMIT && !self.text.ends_with(b"\n") {
                let file = self.path.to_owned();
                return Err(DecisionError::LongLine { file, line: self.line, limit: LINE_LIMIT });
            }
            if !self.text.iter().all(u8::is_ascii_whitespace) {
                return Ok(Some((self.line, &self.text)));
            }
        }
    }

    fn failed(&self, error: io::Error) -> DecisionError {
        let (file, line) = (self.path.to_owned(), self.line);
        match error.kind() {
            io::ErrorKind::UnexpectedEof if self.compressed => DecisionError::CutOff { file, line },
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData if self.compressed => {
                DecisionError::Damaged { file, line, error }
            }
            _ => DecisionError::Io { file, error },
        }
    }
}
