//! Parses job files: from sections to jobs.

use crate::{
    check,
    diagnostic::{Diagnostic, Diagnostics},
    engine::{self, EngineSupport},
    job::{Job, option::Support},
    job_file::{Ignored, JobFile},
    options, settle,
    source::{Entry, Section, unset_help},
};
use std::cmp::Ordering;

/// Reads jobs from the sections of a job file. `faults` are those of its text, and `file_name` the
/// name of the job file in diagnostics.
///
/// # Errors
/// All diagnostics, in the order of [`crate::parse`].
pub(crate) fn jobs(sections: &[Section], file_name: &str, faults: Vec<Diagnostic>) -> Result<JobFile, Diagnostics> {
    let mut builder = Builder { faults, ..Builder::default() };
    builder.sections(sections);
    if sections.iter().all(Section::is_global) && builder.is_valid() {
        let message = if sections.is_empty() { "the file has no job" } else { "the file has only [global], no job" };
        let help = Some("add a section with the job's name, as in [reader]".into());
        let file = file_name.into();
        builder.faults.push(Diagnostic { file, line: 0, column: 0, message: message.into(), help });
    }
    check::between_jobs(&mut builder.jobs, sections, &mut builder.faults);
    let mut differences = Vec::new();
    if builder.is_valid() {
        differences = settle::settle(&mut builder.jobs, &mut builder.faults);
    }
    if builder.is_valid() {
        let Builder { jobs, ignored, global_options, .. } = builder;
        return Ok(JobFile { jobs, ignored, differences, global_options });
    }
    let mut faults = in_order(builder.refused_engines, file_name);
    faults.extend(in_order(builder.faults, file_name));
    Err(Diagnostics(faults))
}

/// Sorts the diagnostics by position and removes duplicates: a `[global]` option is read again for
/// every job below it.
fn in_order(mut faults: Vec<Diagnostic>, file_name: &str) -> Vec<Diagnostic> {
    // The job file comes before included files; the sort is stable.
    let other = |fault: &Diagnostic| fault.file != file_name;
    faults.sort_by(|a, b| match (other(a), other(b)) {
        (false, false) => (a.line, a.column).cmp(&(b.line, b.column)),
        (a_other, b_other) if a_other != b_other => a_other.cmp(&b_other),
        _ if a.file == b.file => (a.line, a.column).cmp(&(b.line, b.column)),
        _ => Ordering::Equal,
    });
    let mut once: Vec<Diagnostic> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for fault in faults {
        if seen.insert((fault.file.clone(), fault.line, fault.column, fault.message.clone())) {
            once.push(fault);
        }
    }
    once
}

/// The options that set the units of all other values, even of those above them: the base of
/// prefixes, and what a number of zones (`4z`) means.
const UNITS: [&str; 3] = ["kb_base", "zonemode", "zonesize"];

#[derive(Default)]
struct Builder {
    jobs: Vec<Job>,
    ignored: Vec<Ignored>,
    global_options: Vec<(String, String)>,
    faults: Vec<Diagnostic>,
    /// The faults of engines that are refused.
    refused_engines: Vec<Diagnostic>,
}

impl Builder {
    fn is_valid(&self) -> bool {
        self.faults.is_empty() && self.refused_engines.is_empty()
    }

    fn sections(&mut self, sections: &[Section]) {
        let mut defaults: Vec<&Entry> = Vec::new();
        for section in sections {
            for entry in &section.entries {
                self.note(entry, section.is_global());
            }
            if section.is_global() {
                defaults.extend(&section.entries);
            } else {
                self.job(section, &defaults);
            }
        }
        // Without a job below it, a global section would not be checked.
        if self.jobs.is_empty() {
            let mut scratch = Job::default();
            self.apply_all(&mut scratch, &defaults);
        }
    }

    /// Records the option for fio's JSON and the list of ignored options.
    fn note(&mut self, entry: &Entry, global: bool) {
        let Some(known) = entry.known else { return };
        if matches!(known.support, Support::Ignored) && self.ignored.iter().all(|ignored| ignored.name != known.name) {
            let (file, line) = (entry.position.file.to_string(), entry.position.line);
            self.ignored.push(Ignored { name: known.name.into(), file, line });
        }
        if global {
            put(&mut self.global_options, known.name, entry.value.as_deref());
        }
    }

    fn job(&mut self, section: &Section, defaults: &[&Entry]) {
        let own: Vec<&Entry> = section.entries.iter().collect();
        let all: Vec<&Entry> = defaults.iter().copied().chain(own.iter().copied()).collect();
        let (file, line) = (section.position.file.to_string(), section.position.line);
        let mut job = Job { name: section.name.clone(), file, line, ..Job::default() };
        self.apply_all(&mut job, &all);
        for entry in own {
            if let Some(known) = entry.known {
                put(&mut job.options, known.name, entry.value.as_deref());
            }
        }
        // A log without a name has that of the job, which is known when all options are.
        if let Some(log) = job.log.write_bw_log.as_mut().filter(|log| log.is_empty()) {
            log.clone_from(&job.name);
        }
        check::job(&job, section, &all, &mut self.faults);
        self.jobs.push(job);
    }

    fn apply_all(&mut self, job: &mut Job, entries: &[&Entry]) {
        for name in UNITS {
            let last = entries.iter().rev().find(|entry| entry.known.is_some_and(|known| known.name == name));
            if let Some((known, value)) = last.and_then(|entry| entry.known.zip(entry.value.as_deref())) {
                // Errors are found again below.
                let _ = known.set(job, Some(value));
            }
        }
        let base = job.kb_base;
        for entry in entries {
            match apply_entry(job, entry) {
                Err(fault) if names_refused_engine(entry) => self.refused_engines.push(fault),
                Err(fault) => self.faults.push(fault),
                Ok(()) => {}
            }
            job.kb_base = base;
        }
    }
}

/// Returns true if an entry is the option `ioengine` with an engine that is refused.
fn names_refused_engine(entry: &Entry) -> bool {
    let engine = entry.known.filter(|known| known.name == "ioengine").and(entry.value.as_deref());
    let support = engine.and_then(engine::find).map(|engine| engine.support);
    matches!(support, Some(EngineSupport::Refused(_)))
}

fn apply_entry(job: &mut Job, entry: &Entry) -> Result<(), Diagnostic> {
    let Some(known) = entry.known else {
        let help = options::nearest(&entry.name).map(|name| format!("did you mean `{name}`?"));
        return Err(entry.position.fault(format!("unknown option `{}`", entry.name), help));
    };
    match known.support {
        Support::Ignored => Ok(()),
        Support::Refused(harmless, why) => match &entry.value {
            Some(value) if harmless.contains(&value.as_str()) => Ok(()),
            _ => {
                let help = harmless.first().map(|value| format!("only {}={value} is accepted", entry.name));
                Err(entry.position.fault(format!("option `{}` is not simulated: {why}", entry.name), help))
            }
        },
        Support::Supported(_) => known.set(job, entry.value.as_deref()).map_err(|fault| {
            let help = if entry.unset.is_empty() { fault.help } else { Some(unset_help(&entry.unset)) };
            entry.value_position.fault(format!("{}: {}", entry.name, fault.message), help)
        }),
    }
}

/// Sets an option in a list, at its first position.
fn put(options: &mut Vec<(String, String)>, name: &str, value: Option<&str>) {
    let value = value.unwrap_or_default().to_owned();
    match options.iter_mut().find(|(known, _)| known == name) {
        Some((_, old)) => *old = value,
        None => options.push((name.into(), value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{options::options, parse};

    fn with(option: &str) -> Result<JobFile, Diagnostics> {
        let none = |path: &str, _: &str| Err(std::io::Error::other(format!("no {path} here")));
        parse(&format!("[j]\nsize=1m\n{option}\n"), "job.fio", &|_| None, &none)
    }

    #[test]
    fn every_ignored_option_is_accepted_with_and_without_a_value_and_listed() {
        for known in options().filter(|known| matches!(known.support, Support::Ignored)) {
            for name in known.names() {
                for option in [format!("{name}=1"), name.to_owned()] {
                    let file = with(&option).unwrap_or_else(|faults| panic!("{faults}"));
                    assert_eq!(file.ignored, [Ignored { name: known.name.into(), file: "job.fio".into(), line: 3 }]);
                    let plain = Job { options: Vec::new(), ..file.jobs[0].clone() };
                    let without = with("").expect("nothing is wrong").jobs.remove(0);
                    assert_eq!(plain, Job { options: Vec::new(), ..without }, "{option} is not ignored");
                }
            }
        }
    }

    #[test]
    fn every_refused_option_says_so_and_takes_what_is_so_anyway() {
        for known in options() {
            let Support::Refused(harmless, why) = known.support else { continue };
            for name in known.names() {
                let faults = with(&format!("{name}=77")).expect_err(name).0;
                let expected = format!("option `{name}` is not simulated: {why}");
                assert_eq!(faults.iter().map(|fault| fault.message.as_str()).collect::<Vec<_>>(), [expected]);
                assert!(with(name).is_err(), "{name} as a flag");
                for value in harmless {
                    with(&format!("{name}={value}")).unwrap_or_else(|faults| panic!("{faults}"));
                }
            }
        }
    }
}
