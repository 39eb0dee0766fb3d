//! Job files as sections of options that can be changed before they are read as jobs.

use std::{fmt, path::Path};

use crate::{
    diagnostic::{Diagnostics, LoadError},
    job::option::KnownOption,
    job_file::JobFile,
    options,
    source::{self, Entry, Position, Section},
};

/// The sections and options of a job file, with its included files and variables substituted.
///
/// The source is complete: [`fmt::Display`] prints a job file that needs neither files nor
/// variables. Diagnostics keep the file and line in which an option was written.
#[derive(Clone, Debug)]
pub struct JobSource {
    file: String,
    sections: Vec<Section>,
    faults: Diagnostics,
}

/// Reasons for which an option of a job file cannot be set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetOptionError {
    /// The job file has no section of this name.
    #[error("{file} has no section [{section}]{suggestion}")]
    UnknownSection {
        /// The name of the job file.
        file: String,
        /// The name of the section.
        section: String,
        /// Sections of similar names, the end of the sentence.
        suggestion: String,
    },
    /// fio has no option of this name.
    #[error("there is no option `{option}`{help}")]
    UnknownOption {
        /// The name.
        option: String,
        /// The nearest option, the end of the sentence.
        help: String,
    },
    /// The value would not be one value of a job file.
    #[error("the value {value:?} of `{option}` has a line end, `;` or `#`, which a job file cannot hold")]
    Value {
        /// The name of the option.
        option: String,
        /// The value.
        value: String,
    },
}

impl JobSource {
    /// Reads the text of a job file; the arguments are those of [`parse`]. Faults of
    /// the text are returned by [`JobSource::jobs`].
    pub fn new(
        text: &str,
        file_name: &str,
        env: &dyn Fn(&str) -> Option<String>,
        loader: &dyn Fn(&str, &str) -> Result<String, std::io::Error>,
    ) -> JobSource {
        let (sections, faults) = source::read(text, file_name, env, loader);
        JobSource { file: file_name.to_owned(), sections, faults: Diagnostics(faults) }
    }

    /// Reads a job file as [`load`] does.
    ///
    /// # Errors
    /// [`LoadError::Read`] if the file cannot be read.
    pub fn load(path: impl AsRef<Path>) -> Result<JobSource, LoadError> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path).map_err(|source| LoadError::Read { path: path.into(), source })?;
        let env = |name: &str| std::env::var(valid_variable(name)?).ok();
        let loader = |path: &str, including: &str| std::fs::read_to_string(source::resolve(path, including));
        Ok(JobSource::new(&text, &path.to_string_lossy(), &env, &loader))
    }

    /// A source of these sections.
    pub(crate) fn of_sections(file_name: &str, sections: Vec<Section>) -> JobSource {
        JobSource { file: file_name.to_owned(), sections, faults: Diagnostics(Vec::new()) }
    }

    /// Puts sections before those of the file, of which those with other names than `keeps` accepts
    /// are dropped; global sections are kept.
    pub(crate) fn put_before(&mut self, sections: Vec<Section>, keeps: impl Fn(&str) -> bool) {
        let own = std::mem::replace(&mut self.sections, sections);
        self.sections.extend(own.into_iter().filter(|section| section.is_global() || keeps(&section.name)));
    }

    /// Reads the jobs.
    ///
    /// # Errors
    /// All diagnostics, as from [`parse`].
    pub fn jobs(&self) -> Result<JobFile, Diagnostics> {
        crate::parse::jobs(&self.sections, &self.file, self.faults.0.clone())
    }

    /// The name of the job file.
    pub fn file_name(&self) -> &str {
        &self.file
    }

    /// The names of all sections, `global` included, in the order of the file.
    pub fn sections(&self) -> impl Iterator<Item = &str> {
        self.sections.iter().map(|section| section.name.as_str())
    }

    /// The options of all sections of this name in the order of the file; a flag without a value
    /// has none.
    pub fn options<'a>(&'a self, section: &'a str) -> impl Iterator<Item = (&'a str, Option<&'a str>)> {
        let named = self.sections.iter().filter(move |one| one.name == section);
        named.flat_map(|section| &section.entries).map(|entry| (entry.name.as_str(), entry.value.as_deref()))
    }

    /// Sets an option in all sections of this name, in place of the values that it has there;
    /// without a value the option is a flag. The section `global` is added before all others if
    /// there is none. `origin` is the file that diagnostics of the value name, and `line` its line.
    ///
    /// # Errors
    /// [`SetOptionError`] for an unknown section or option, and for a value that a job file cannot
    /// hold; nothing is changed. Whether the value is valid is checked by [`JobSource::jobs`].
    pub fn set(
        &mut self,
        section: &str,
        option: &str,
        value: Option<&str>,
        (origin, line): (&str, u32),
    ) -> Result<(), SetOptionError> {
        let known = find(option)?;
        if let Some(value) = value.filter(|value| value.contains(['\n', '\r', ';', '#'])) {
            return Err(SetOptionError::Value { option: option.to_owned(), value: value.to_owned() });
        }
        let position = Position { file: origin.into(), line, column: 1 };
        if section == "global" && !self.sections.iter().any(Section::is_global) {
            let global = Section { name: "global".to_owned(), position: position.clone(), entries: Vec::new() };
            self.sections.insert(0, global);
        }
        let entry = Entry {
            name: known.name.to_owned(),
            known: Some(known),
            value: value.map(|value| value.trim().to_owned()),
            position: position.clone(),
            value_position: position,
            unset: Vec::new(),
        };
        for section in self.named(section)? {
            section.entries.retain(|entry| !is(entry, known));
            section.entries.push(entry.clone());
        }
        Ok(())
    }

    /// Removes an option from all sections of this name. Returns true if one had it.
    ///
    /// # Errors
    /// [`SetOptionError`] for an unknown section or option.
    pub fn remove(&mut self, section: &str, option: &str) -> Result<bool, SetOptionError> {
        let known = find(option)?;
        let mut was_there = false;
        for section in self.named(section)? {
            let before = section.entries.len();
            section.entries.retain(|entry| !is(entry, known));
            was_there |= section.entries.len() < before;
        }
        Ok(was_there)
    }

    /// The sections of this name, at least one.
    fn named<'a>(
        &'a mut self,
        name: &'a str,
    ) -> Result<impl Iterator<Item = &'a mut Section> + use<'a>, SetOptionError> {
        if !self.sections.iter().any(|section| section.name == name) {
            let names = self.sections().filter(|known| *known != "global");
            let suggestion = match near_or_all(name, names.collect()) {
                names if names.is_empty() => String::new(),
                names => format!(" (it has {names})"),
            };
            let (file, section) = (self.file.clone(), name.to_owned());
            return Err(SetOptionError::UnknownSection { file, section, suggestion });
        }
        Ok(self.sections.iter_mut().filter(move |section| section.name == name))
    }
}

/// Parses the text of a job file.
///
/// `file_name` appears in diagnostics, and included files are resolved relative to it. `env`
/// returns the value of `${NAME}`. `loader` returns the text of an included file. Its arguments are
/// the path of the included file as written and the name of the including file (for an include in
/// an included file, that file's name joined to the directory of its own including file).
///
/// # Errors
/// All diagnostics; see [`Diagnostics`]. Those of engines that are refused come first, because
/// unknown options may be options of such an engine; the others are in the order of the text.
pub fn parse(
    text: &str,
    file_name: &str,
    env: &dyn Fn(&str) -> Option<String>,
    loader: &dyn Fn(&str, &str) -> Result<String, std::io::Error>,
) -> Result<JobFile, Diagnostics> {
    JobSource::new(text, file_name, env, loader).jobs()
}

/// Reads and parses a job file. Included files are relative to the including file; variables come
/// from the environment of the process.
///
/// # Errors
/// [`LoadError::Read`] if the file cannot be read, [`LoadError::Invalid`] if it is invalid.
pub fn load(path: impl AsRef<Path>) -> Result<JobFile, LoadError> {
    Ok(JobSource::load(path)?.jobs()?)
}

/// The names of sections for an error message: the near ones, or else the first ten.
fn near_or_all(typed: &str, mut names: Vec<&str>) -> String {
    let near = hoistway_units::names::near(typed, names.iter().copied());
    if !near.is_empty() {
        names = near;
    }
    let shown: Vec<String> = names.iter().take(10).map(|name| format!("[{name}]")).collect();
    let rest = if names.len() > 10 { " and others" } else { "" };
    shown.join(", ") + rest
}

/// Finds an option by name or alias.
fn find(option: &str) -> Result<&'static KnownOption, SetOptionError> {
    options::find(option).ok_or_else(|| {
        let help = options::nearest(option).map(|name| format!(": did you mean `{name}`?")).unwrap_or_default();
        SetOptionError::UnknownOption { option: option.to_owned(), help }
    })
}

/// Returns true if an entry is this option under any of its names.
fn is(entry: &Entry, option: &KnownOption) -> bool {
    entry.known.is_some_and(|known| known.name == option.name)
}

/// Filters out names that no variable can have, because some systems panic on them.
fn valid_variable(name: &str) -> Option<&str> {
    (!name.is_empty() && !name.contains(['=', '\0'])).then_some(name)
}

impl fmt::Display for JobSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, section) in self.sections.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            writeln!(f, "[{}]", section.name)?;
            for Entry { name, value, .. } in &section.entries {
                match value {
                    Some(value) => writeln!(f, "{name}={value}")?,
                    None => writeln!(f, "{name}")?,
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "; two readers\n[global]\nbs=4k\nsize=${SIZE}\n[a]\nrw=read\ninclude more\n[b]\nnumjobs=2 # twice\n";

    fn source() -> JobSource {
        let env = |name: &str| (name == "SIZE").then(|| "8m".to_owned());
        JobSource::new(TEXT, "jobs.fio", &env, &|_, _| Ok("iodepth=4\n".to_owned()))
    }

    #[test]
    fn the_printed_source_needs_neither_files_nor_variables() {
        let printed = source().to_string();
        assert_eq!(printed, "[global]\nbs=4k\nsize=8m\n\n[a]\nrw=read\niodepth=4\n\n[b]\nnumjobs=2\n");
        let again = JobSource::new(&printed, "jobs.fio", &|_| None, &|_, _| unreachable!());
        let options = |source: &JobSource| source.jobs().unwrap().jobs.into_iter().map(|job| job.options);
        assert!(options(&again).eq(options(&source())));
    }

    #[test]
    fn options_are_replaced_added_and_removed() {
        let mut jobs = source();
        jobs.set("global", "blocksize", Some("64k"), ("sweep.toml", 7)).unwrap();
        jobs.set("a", "direct", Some("1"), ("sweep.toml", 8)).unwrap();
        assert!(jobs.remove("b", "numjobs").unwrap());
        assert!(!jobs.remove("b", "numjobs").unwrap());
        assert_eq!(jobs.to_string(), "[global]\nsize=8m\nbs=64k\n\n[a]\nrw=read\niodepth=4\ndirect=1\n\n[b]\n");
        assert_eq!(jobs.jobs().unwrap().jobs[0].blocks.bs.read.min(), 64 << 10);
    }

    #[test]
    fn a_wrong_value_is_reported_where_it_was_set() {
        let mut jobs = source();
        jobs.set("b", "numjobs", Some("many"), ("sweep.toml", 7)).unwrap();
        let faults = jobs.jobs().unwrap_err().to_string();
        assert!(faults.starts_with("sweep.toml:7:1: error: numjobs: "), "{faults}");
    }

    #[test]
    fn unknown_sections_and_options_are_refused_with_near_ones() {
        let mut jobs = source();
        let set = |jobs: &mut JobSource, section, option, value| {
            jobs.set(section, option, Some(value), ("sweep.toml", 1)).unwrap_err().to_string()
        };
        assert_eq!(set(&mut jobs, "c", "bs", "4k"), "jobs.fio has no section [c] (it has [a], [b])");
        assert_eq!(set(&mut jobs, "a", "numjob", "1"), "there is no option `numjob`: did you mean `numjobs`?");
        assert!(set(&mut jobs, "a", "bs", "4k\n[x]").contains("a job file cannot hold"));
        assert_eq!(jobs.to_string(), source().to_string());
    }

    #[test]
    fn a_global_section_is_added_where_there_is_none() {
        let mut jobs = JobSource::new("[a]\nsize=1m\n", "a.fio", &|_| None, &|_, _| unreachable!());
        jobs.set("global", "bs", Some("8k"), ("it", 0)).unwrap();
        assert_eq!(jobs.to_string(), "[global]\nbs=8k\n\n[a]\nsize=1m\n");
    }
}
