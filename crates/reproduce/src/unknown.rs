//! Experiments on what a publication does not state: values that are tried in place of a row's own.

use std::ops::Range;

use hoistway_drive::Profile;
use hoistway_sim::SimError;
use serde::Deserialize;
use toml::{Spanned, Table, Value};

use crate::error::ReproduceError;

/// A property of the published experiment that the publication does not state, with values to try.
/// The row's own value is an assumption.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unknown {
    /// The property, such as "ticks a second".
    pub name: String,
    /// The row's own value.
    pub here: String,
    /// What the publication states on the property, in a sentence without its full stop.
    pub stated: String,
    /// Number of seeds of a trial, if the row's own number takes too long.
    #[serde(default)]
    pub seeds: Option<u64>,
    /// The values to try.
    #[serde(rename = "trial")]
    pub trials: Vec<Trial>,
}

/// A value of an unknown, with the settings that stand for it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trial {
    /// The value, as the head of a column.
    value: Spanned<String>,
    /// Options of the job files: `section.option=value`.
    #[serde(default)]
    job: Vec<String>,
    /// Tunables of elevators: `deadline.fifo_batch=8`.
    #[serde(default)]
    settings: Vec<String>,
    /// Lines of a host file: `hz = 1000`.
    #[serde(default)]
    host: Vec<String>,
    /// Another built-in drive in place of the row's.
    #[serde(default)]
    drive: Option<String>,
    /// Keys of the drive's profile: `buffer.segments=8`; `zone.sectors_per_track=*1.1` multiplies
    /// the value of each zone.
    #[serde(default)]
    profile: Vec<String>,
    /// The file of the trial.
    #[serde(skip)]
    file: &'static str,
    /// The line of `value` in the file, from 1.
    #[serde(skip)]
    line: usize,
}

impl Unknown {
    /// Records the positions of the trials in the text of their file, for error messages.
    pub(crate) fn locate(&mut self, file: &'static str, text: &str) {
        for trial in &mut self.trials {
            let Range { start, .. } = trial.value.span();
            (trial.file, trial.line) = (file, text.get(..start).unwrap_or(text).matches('\n').count() + 1);
        }
    }
}

impl Trial {
    /// The value that is tried.
    pub fn value(&self) -> &str {
        self.value.get_ref()
    }

    /// The options of the job files to set.
    pub(crate) fn job(&self) -> &[String] {
        &self.job
    }

    /// The tunables of elevators to set.
    pub(crate) fn settings(&self) -> &[String] {
        &self.settings
    }

    /// The keys of the drive's profile to set.
    pub(crate) fn profile(&self) -> &[String] {
        &self.profile
    }

    /// The lines of a host file to add.
    pub(crate) fn host(&self) -> &[String] {
        &self.host
    }

    /// The drive in place of the row's.
    pub(crate) fn drive(&self) -> Option<&str> {
        self.drive.as_deref()
    }

    /// The changes that not every simulation of a row needs to have.
    pub(crate) fn changes(&self) -> impl Iterator<Item = &String> {
        self.job.iter().chain(&self.settings).chain(&self.profile)
    }

    /// Checks that each change was part of a simulation.
    pub(crate) fn check_used(&self, id: &str, used: &[bool]) -> Result<(), ReproduceError> {
        let unused = self.changes().zip(used).find(|(_, used)| !**used);
        match unused {
            None if self.is_empty() => {
                Err(self
                    .error(id, "it changes nothing: set `job`, `settings`, `host`, `drive` or `profile`".to_owned()))
            }
            None => Ok(()),
            Some((change, _)) => Err(self.error(
                id,
                format!("`{change}` changes nothing: no simulation of the row has this section, elevator or table"),
            )),
        }
    }

    fn is_empty(&self) -> bool {
        self.changes().next().is_none() && self.host.is_empty() && self.drive.is_none()
    }

    /// An error with the position of the trial. A cancelled run stays as it is.
    pub(crate) fn wrap(&self, id: &str, error: ReproduceError) -> ReproduceError {
        match error {
            ReproduceError::Run(SimError::Cancelled) | ReproduceError::Trial { .. } => error,
            ReproduceError::Job { problem, .. } => self.error(id, problem),
            other => self.error(id, other.to_string()),
        }
    }

    /// An error with the position of the trial.
    pub(crate) fn error(&self, id: &str, problem: String) -> ReproduceError {
        let (file, line) = (self.file, self.line);
        ReproduceError::Trial { file, line, id: id.to_owned(), value: self.value().to_owned(), problem }
    }
}

/// Sets an option of a job file, `section.option=value`: `None` if the text has another form,
/// `Some(None)` if the job file has no such section.
pub(crate) fn with_option(job: &str, option: &str) -> Option<Option<String>> {
    let (path, value) = option.split_once('=')?;
    let (section, option) = path.split_once('.')?;
    let (header, mut is_inside, mut is_set) = (format!("[{section}]"), false, false);
    let mut lines: Vec<String> = Vec::new();
    let mut after_header = None;
    for line in job.lines() {
        if line.starts_with('[') {
            is_inside = line.trim_end() == header;
            lines.push(line.to_owned());
            if is_inside {
                after_header = Some(lines.len());
            }
            continue;
        }
        let name = line.split('=').next().unwrap_or_default().trim();
        if is_inside && name == option {
            lines.push(format!("{option}={value}"));
            is_set = true;
        } else {
            lines.push(line.to_owned());
        }
    }
    let Some(at) = after_header else { return Some(None) };
    if !is_set {
        lines.insert(at, format!("{option}={value}"));
    }
    Some(Some(lines.join("\n") + "\n"))
}

/// Sets keys of a drive's profile in order.
///
/// # Errors
/// The problem of a key, or of the profile that results.
pub(crate) fn changed_profile(drive: &str, keys: &[String]) -> Result<Option<Profile>, String> {
    if keys.is_empty() {
        return Ok(Profile::builtin(drive));
    }
    let Some(text) = Profile::builtin_toml(drive) else { return Ok(None) };
    let mut text = text.to_owned();
    for key in keys {
        text = with_key(&text, key)?.unwrap_or(text);
    }
    Profile::from_toml(&text, &format!("drive {drive} with {}", keys.join(", "))).map(Some).map_err(|e| e.to_string())
}

/// Sets a key of a profile, `table.key=value`, in each element of an array of tables. The result is
/// `None` if the profile has no such table.
pub(crate) fn with_key(profile: &str, change: &str) -> Result<Option<String>, String> {
    let form = || format!("`{change}` is no key of a drive: write `table.key=value` or `table.key=*factor`");
    let (path, value) = change.split_once('=').ok_or_else(form)?;
    let (tables, key) = path.rsplit_once('.').ok_or_else(form)?;
    let mut table: Table = profile.parse().map_err(|error: toml::de::Error| error.to_string())?;
    // Built-in drives have no faults.
    if tables == "faults" && table.contains_key("disk") {
        table.entry("faults").or_insert_with(|| Value::Table(Table::new()));
    }
    let Some(found) = tables.split('.').try_fold(vec![&mut table], |tables, name| {
        let inner: Vec<&mut Table> = tables
            .into_iter()
            .filter_map(|table| table.get_mut(name))
            .flat_map(|value| match value {
                Value::Table(table) => vec![table],
                Value::Array(all) => all.iter_mut().filter_map(Value::as_table_mut).collect(),
                _ => Vec::new(),
            })
            .collect();
        (!inner.is_empty()).then_some(inner)
    }) else {
        return Ok(None);
    };
    for table in found {
        let new = match value.strip_prefix('*') {
            Some(factor) => {
                let factor: f64 = factor.parse().map_err(|_| form())?;
                match table.get(key) {
                    Some(Value::Integer(old)) => Value::Integer((*old as f64 * factor).round() as i64),
                    Some(Value::Float(old)) => Value::Float(old * factor),
                    _ => return Err(format!("`{change}` multiplies a key that is no number of the drive")),
                }
            }
            None => {
                format!("key = {value}").parse::<Table>().ok().and_then(|mut it| it.remove("key")).ok_or_else(form)?
            }
        };
        table.insert(key.to_owned(), new);
    }
    toml::to_string(&table).map(Some).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_replaces_that_of_its_section_or_is_added_to_it() {
        let job = "# A comment\n[global]\nbs=4k\n[a]\nrw=read\n";
        let with = |option| with_option(job, option);
        assert_eq!(with("global.bs=8k"), Some(Some("# A comment\n[global]\nbs=8k\n[a]\nrw=read\n".to_owned())));
        assert_eq!(with("a.bs=8k"), Some(Some("# A comment\n[global]\nbs=4k\n[a]\nbs=8k\nrw=read\n".to_owned())));
        assert_eq!(with("b.bs=8k"), Some(None));
        assert_eq!(with("bs=8k"), None);
    }
}
