//! fio's own command line as a source of jobs: `--name=x --rw=randread ...`, and job files.
//!
//! The rules were observed by running fio 3.33: options before the first `--name` and behind
//! `--name=global` are defaults of all jobs, those of job files included; each `--name` begins a
//! job; the jobs of the command line come before those of job files.

use std::path::Path;

use crate::{
    diagnostic::LoadError,
    job_source::JobSource,
    known,
    source::{Entry, Position, Section},
};

/// The name of the command line in diagnostics; the number of an argument is its line.
pub const COMMAND_LINE: &str = "command line";

/// Options of fio that are no options of jobs and change nothing in a simulation, and whether they
/// have a value.
const WITHOUT_EFFECT: &[(&str, bool)] = &[
    ("output", true),
    ("output-format", true),
    ("minimal", false),
    ("append-terse", false),
    ("terse-version", true),
    ("bandwidth-log", false),
    ("eta", true),
    ("eta-interval", true),
    ("eta-newline", true),
    ("status-interval", true),
    ("readonly", false),
    ("alloc-size", true),
    ("warnings-fatal", false),
    ("max-jobs", true),
    ("debug", true),
    ("idle-prof", true),
    ("aux-path", true),
];

/// Options of fio with which it does something else than to run jobs here.
const REFUSED: &[&str] = &[
    "client",
    "cmdhelp",
    "cpuclock-test",
    "crctest",
    "daemonize",
    "enghelp",
    "help",
    "inflate-log",
    "merge-blktrace-only",
    "parse-only",
    "remote-config",
    "server",
    "showcmd",
    "trigger",
    "trigger-file",
    "trigger-remote",
    "trigger-timeout",
    "version",
];

/// Options of jobs that fio takes without a value.
const FLAGS: &[&str] = &[
    "disable_bw_measurement",
    "disable_clat",
    "disable_lat",
    "disable_slat",
    "exitall",
    "exitall_on_error",
    "fixedbufs",
    "group_reporting",
    "gtod_reduce",
    "hipri",
    "new_group",
    "norandommap",
    "refill_buffers",
    "registerfiles",
    "sqthread_poll",
    "stonewall",
    "thread",
    "time_based",
    "verify_only",
    "wait_for_previous",
    "zero_buffers",
];

/// The jobs of fio's command line.
#[derive(Clone, Debug)]
pub struct CommandLine {
    /// The sections of the command line and of its job file.
    pub source: JobSource,
    /// The options that are no options of jobs and have no effect, each once.
    pub without_effect: Vec<String>,
}

/// The reasons why fio's command line is not read.
#[derive(Debug, thiserror::Error)]
pub enum CommandLineError {
    /// The option makes fio do something else than to run jobs on this machine.
    #[error("argument {number}: `--{option}` is an option of fio that runs no job here; leave it out")]
    Refused {
        /// The name of the option.
        option: String,
        /// The number of the argument, from 1.
        number: u32,
    },
    /// The option needs a value and is the last argument.
    #[error("argument {number}: `--{option}` needs a value, as in --{option}=VALUE")]
    NoValue {
        /// The name of the option.
        option: String,
        /// The number of the argument, from 1.
        number: u32,
    },
    /// The argument has one dash.
    #[error("argument {number}: `{argument}` is no option of fio and no job file: write options as in --rw=read")]
    OneDash {
        /// The argument.
        argument: String,
        /// The number of the argument, from 1.
        number: u32,
    },
    /// There are several job files.
    #[error("argument {number}: `{file}` is a second job file; take one, or join them")]
    SecondFile {
        /// The job file.
        file: String,
        /// The number of the argument, from 1.
        number: u32,
    },
    /// `--section` names no section of the job file.
    #[error("--section={section}: the job file has no section of this name")]
    UnknownSection {
        /// The name.
        section: String,
    },
    /// The job file cannot be read.
    #[error(transparent)]
    Load(#[from] LoadError),
}

/// Reads fio's command line without the word `fio`.
///
/// # Errors
/// [`CommandLineError`]; faults of options and values are returned by [`JobSource::jobs`].
pub fn command_line(arguments: &[String]) -> Result<CommandLine, CommandLineError> {
    let mut reader = Reader::default();
    let mut at = 0;
    while at < arguments.len() {
        at += reader.argument(&arguments[at..], at as u32 + 1)?;
    }
    reader.finish()
}

#[derive(Default)]
struct Reader {
    defaults: Vec<Entry>,
    jobs: Vec<Section>,
    /// True while options belong to all jobs: before the first job, and behind `--name=global`.
    sets_jobs: bool,
    file: Option<JobSource>,
    wanted: Vec<String>,
    without_effect: Vec<String>,
}

impl Reader {
    /// Reads the first of these arguments, and its value. Returns how many arguments that were.
    fn argument(&mut self, arguments: &[String], number: u32) -> Result<usize, CommandLineError> {
        let argument = arguments[0].as_str();
        let Some(text) = argument.strip_prefix("--") else {
            if argument.starts_with('-') {
                return Err(CommandLineError::OneDash { argument: argument.to_owned(), number });
            }
            if self.file.is_some() {
                return Err(CommandLineError::SecondFile { file: argument.to_owned(), number });
            }
            self.file = Some(JobSource::load(Path::new(argument))?);
            return Ok(1);
        };
        let (name, written) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        if REFUSED.contains(&name) {
            return Err(CommandLineError::Refused { option: name.to_owned(), number });
        }
        let ignored = WITHOUT_EFFECT.iter().find(|(known, _)| *known == name);
        let has_value = ignored.map_or(!FLAGS.contains(&name), |(_, has_value)| *has_value);
        // The value may be the next argument.
        let next = arguments.get(1).filter(|_| written.is_none() && has_value).map(String::as_str);
        let value = written.or(next.filter(|next| !next.starts_with("--")));
        let count = if written.is_none() && value.is_some() { 2 } else { 1 };
        if ignored.is_some() {
            if !self.without_effect.iter().any(|known| known == name) {
                self.without_effect.push(name.to_owned());
            }
            return Ok(count);
        }
        let position = Position { file: COMMAND_LINE.into(), line: number, column: 1 };
        let required = || value.ok_or(CommandLineError::NoValue { option: name.to_owned(), number });
        match name {
            "section" => self.wanted.push(required()?.to_owned()),
            "name" => self.section(required()?, position),
            _ => self.option(name, value, position),
        }
        Ok(count)
    }

    fn section(&mut self, name: &str, position: Position) {
        self.sets_jobs = name != "global";
        if self.sets_jobs {
            self.jobs.push(Section { name: name.to_owned(), position, entries: Vec::new() });
        }
    }

    fn option(&mut self, name: &str, value: Option<&str>, position: Position) {
        let value_position = position.clone();
        let value = value.map(|value| value.trim().to_owned());
        // fio takes dashes for underlines.
        let underlined = name.replace('-', "_");
        let known = known::find(name).or_else(|| known::find(&underlined));
        let name = known.map_or_else(|| name.to_owned(), |known| known.name.to_owned());
        let entry = Entry { name, known, value, position, value_position, unset: Vec::new() };
        match self.jobs.last_mut().filter(|_| self.sets_jobs) {
            Some(job) => job.entries.push(entry),
            None => self.defaults.push(entry),
        }
    }

    fn finish(self) -> Result<CommandLine, CommandLineError> {
        let mut sections = Vec::new();
        if let Some(first) = self.defaults.first() {
            let position = first.position.clone();
            sections.push(Section { name: "global".to_owned(), position, entries: self.defaults.clone() });
        }
        sections.extend(self.jobs);
        let Some(mut file) = self.file else {
            let source = JobSource::of_sections(COMMAND_LINE, sections);
            return Ok(CommandLine { source, without_effect: self.without_effect });
        };
        if let Some(section) = self.wanted.iter().find(|name| !file.sections().any(|known| known == name.as_str())) {
            return Err(CommandLineError::UnknownSection { section: section.clone() });
        }
        file.put_before(sections, |name| self.wanted.is_empty() || self.wanted.iter().any(|wanted| wanted == name));
        Ok(CommandLine { source: file, without_effect: self.without_effect })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(arguments: &[&str]) -> Result<CommandLine, CommandLineError> {
        command_line(&arguments.iter().map(|argument| (*argument).to_owned()).collect::<Vec<_>>())
    }

    /// Name, direction and size of each job, as fio 3.33 has them for these arguments.
    fn jobs(arguments: &[&str]) -> Vec<String> {
        let jobs = read(arguments).expect("a command line").source.jobs().unwrap_or_else(|faults| panic!("{faults}"));
        jobs.jobs.iter().map(|job| format!("{} {} {}", job.name, job.rw, job.size)).collect()
    }

    #[test]
    fn options_before_the_first_name_and_behind_global_are_defaults() {
        assert_eq!(jobs(&["--rw=write", "--size=64k", "--name=x"]), ["x write 64k"]);
        let named = ["--name=global", "--rw=write", "--name=a", "--size=64k", "--name=b", "--size=32k"];
        assert_eq!(jobs(&named), ["a write 64k", "b write 32k"]);
        let alone = ["--name=a", "--size=64k", "--rw=write", "--name=b", "--size=32k"];
        assert_eq!(jobs(&alone), ["a write 64k", "b read 32k"]);
    }

    #[test]
    fn values_may_be_arguments_of_their_own_and_flags_have_none() {
        let given =
            ["--name", "b", "--size", "16k", "--time_based", "--runtime", "1", "--group-reporting", "--rw", "read"];
        let jobs = read(&given).expect("a command line").source.jobs().expect("valid jobs").jobs;
        assert!(jobs[0].time_based && jobs[0].group_reporting && jobs[0].runtime_ns == Some(1_000_000_000));
    }

    #[test]
    fn jobs_of_the_command_line_come_before_those_of_the_file_which_may_be_selected() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("f.fio");
        std::fs::write(&path, "[f]\nsize=8k\n[g]\nsize=4k\n").expect("the file is written");
        let path = path.to_str().expect("a path");
        assert_eq!(jobs(&[path, "--name=b", "--size=16k"]), ["b read 16k", "f read 8k", "g read 4k"]);
        assert_eq!(jobs(&["--rw=write", path, "--section=g"]), ["g write 4k"]);
        let unknown = read(&[path, "--section=h"]).expect_err("no such section").to_string();
        assert_eq!(unknown, "--section=h: the job file has no section of this name");
    }

    #[test]
    fn options_that_run_no_job_are_named() {
        let message = |arguments: &[&str]| read(arguments).expect_err("refused").to_string();
        assert!(message(&["--client=host"]).starts_with("argument 1: `--client` is an option of fio"));
        assert!(message(&["--size=1m", "--name"]).starts_with("argument 2: `--name` needs a value"));
        assert!(message(&["-x"]).starts_with("argument 1: `-x` is no option of fio"));
        let ignored =
            read(&["--eta=never", "--output-format", "json", "--name=a", "--size=4k"]).expect("a command line");
        assert_eq!(ignored.without_effect, ["eta", "output-format"]);
        let faults = read(&["--name=a", "--sise=4k"]).expect("a command line").source.jobs().unwrap_err().to_string();
        assert!(faults.contains("command line:2:1: error: unknown option `sise`"), "{faults}");
    }
}
