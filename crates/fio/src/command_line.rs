//! fio's own command line as a source of jobs: `--name=x --rw=randread ...`, and job files.
//!
//! The rules were observed by running fio 3.33:
//!
//! - Options before the first `--name` and behind `--name=global` are defaults of all jobs, those
//!   of job files included. Each `--name` begins a job. The jobs of the command line come before
//!   those of job files.
//! - An option begins with one dash or two. Its value follows `=` or is the next argument. A name
//!   may be abbreviated if the abbreviation is unambiguous.
//! - All arguments behind `--` are job files.

mod names;

use std::path::Path;

use crate::{
    diagnostic::LoadError,
    job_source::JobSource,
    options,
    source::{Entry, Position, Section},
};
use names::{FLAGS, REFUSED, WITHOUT_EFFECT};

/// The name of the command line in diagnostics; the number of an argument is its line.
pub const COMMAND_LINE: &str = "command line";

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
    /// The argument is a letter behind a dash, or has no name.
    #[error(
        "argument {number}: `{argument}` is no option that is known here and no job file: write the name of an \
         option, as in --rw=read"
    )]
    NoName {
        /// The argument.
        argument: String,
        /// The number of the argument, from 1.
        number: u32,
    },
    /// The abbreviation stands for several options.
    #[error("argument {number}: `{argument}` is ambiguous: it may be {}", listed(possible))]
    Ambiguous {
        /// The argument.
        argument: String,
        /// The names of the options.
        possible: Vec<&'static str>,
        /// The number of the argument, from 1.
        number: u32,
    },
    /// There are no arguments.
    #[error("there are no arguments of fio: write its options, as in --name=x --rw=randread --size=1g, or a job file")]
    Nothing,
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

fn listed(names: &[&str]) -> String {
    names.iter().map(|name| format!("--{name}")).collect::<Vec<_>>().join(", ")
}

/// Returns fio's arguments without the program, if the first one is `fio` or a path to it.
pub fn without_program(arguments: &[String]) -> &[String] {
    match arguments {
        [program, others @ ..] if program == "fio" || program.ends_with("/fio") => others,
        _ => arguments,
    }
}

/// Reads fio's command line, with the word `fio` at its beginning or without.
///
/// # Errors
/// [`CommandLineError`]; faults of options and values are returned by [`JobSource::jobs`].
pub fn command_line(arguments: &[String]) -> Result<CommandLine, CommandLineError> {
    let arguments = without_program(arguments);
    if arguments.is_empty() {
        return Err(CommandLineError::Nothing);
    }
    let mut reader = Reader::default();
    let mut at = 0;
    while at < arguments.len() {
        at += reader.argument(&arguments[at..], at as u32 + 1)?;
    }
    reader.finish()
}

/// Returns true for two dashes, and for one before a letter: `-5` is a value.
fn is_option(argument: &str) -> bool {
    let name = argument.strip_prefix('-').unwrap_or_default();
    name.starts_with(|first: char| first == '-' || first.is_ascii_alphabetic())
}

#[derive(Default)]
struct Reader {
    defaults: Vec<Entry>,
    jobs: Vec<Section>,
    /// True while options belong to all jobs: before the first job, and behind `--name=global`.
    sets_jobs: bool,
    file: Option<JobSource>,
    /// True behind `--`.
    options_ended: bool,
    wanted: Vec<String>,
    without_effect: Vec<String>,
}

impl Reader {
    /// Reads the first of these arguments, and its value. Returns how many arguments that were.
    fn argument(&mut self, arguments: &[String], number: u32) -> Result<usize, CommandLineError> {
        let argument = arguments[0].as_str();
        if argument == "--" && !self.options_ended {
            self.options_ended = true;
            return Ok(1);
        }
        if self.options_ended || !argument.starts_with('-') {
            if self.file.is_some() {
                return Err(CommandLineError::SecondFile { file: argument.to_owned(), number });
            }
            self.file = Some(JobSource::load(Path::new(argument))?);
            return Ok(1);
        }
        let two_dashed = argument.strip_prefix("--");
        let text = two_dashed.unwrap_or(&argument[1..]);
        let (written_name, written) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        // fio has letters for some of its options: `-h`.
        if written_name.is_empty() || two_dashed.is_none() && text.len() == 1 {
            return Err(CommandLineError::NoName { argument: argument.to_owned(), number });
        }
        let name = names::complete(written_name).map_err(|possible| CommandLineError::Ambiguous {
            argument: argument.to_owned(),
            possible,
            number,
        })?;
        if REFUSED.contains(&name) {
            return Err(CommandLineError::Refused { option: name.to_owned(), number });
        }
        let ignored = WITHOUT_EFFECT.iter().find(|(known, _)| *known == name);
        let has_value = ignored.map_or(!FLAGS.contains(&name), |(_, has_value)| *has_value);
        // The value may be the next argument. fio would take an option for the value.
        let next = arguments.get(1).filter(|_| written.is_none() && has_value).map(String::as_str);
        let value = written.or(next.filter(|next| !is_option(next)));
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
        // Dashes may stand for underlines, which fio refuses.
        let underlined = name.replace('-', "_");
        let known = options::find(name).or_else(|| options::find(&underlined));
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
        jobs.jobs.iter().map(|job| format!("{} {} {}", job.name, job.requests.rw, job.region.size_or_all())).collect()
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
        assert!(
            jobs[0].end.time_based
                && jobs[0].reporting.group_reporting
                && jobs[0].end.runtime_ns == Some(1_000_000_000)
        );
    }

    #[test]
    fn options_have_one_dash_or_two_and_may_be_abbreviated() {
        assert_eq!(jobs(&["-name=x", "-rw=write", "-size=1m"]), ["x write 1m"]);
        assert_eq!(jobs(&["-name", "x", "-thread", "-rw", "write", "-size", "1m"]), ["x write 1m"]);
        assert_eq!(jobs(&["--nam=x", "-readw=write", "--norandom", "--siz", "1m"]), ["x write 1m"]);
        // A value may have a dash, and an option is none.
        assert_eq!(jobs(&["--name=x", "--nice", "-5", "--size=1m"]), ["x read 1m"]);
        let message = |arguments: &[&str]| read(arguments).expect_err("refused").to_string();
        assert!(message(&["-name", "-rw=read"]).starts_with("argument 1: `--name` needs a value"));
        let ambiguous = message(&["--name=x", "-et=never"]);
        assert_eq!(ambiguous, "argument 2: `-et=never` is ambiguous: it may be --eta, --eta-interval, --eta-newline");
    }

    #[test]
    fn the_program_may_be_the_first_argument() {
        for program in ["fio", "/usr/bin/fio", "./fio"] {
            assert_eq!(jobs(&[program, "--name=x", "--size=1m"]), ["x read 1m"]);
            assert!(matches!(read(&[program]), Err(CommandLineError::Nothing)));
        }
        assert!(read(&[]).expect_err("no arguments").to_string().contains("--name=x --rw=randread"));
    }

    #[test]
    fn arguments_behind_two_dashes_are_job_files() {
        let error = read(&["--name=x", "--", "-size=1m"]).expect_err("no such file").to_string();
        assert!(error.contains("-size=1m"), "{error}");
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
        for letter in ["-x", "-", "--=x"] {
            assert!(message(&[letter]).starts_with(&format!("argument 1: `{letter}` is no option")), "{letter}");
        }
        let ignored =
            read(&["--eta=never", "--output-format", "json", "--name=a", "--size=4k"]).expect("a command line");
        assert_eq!(ignored.without_effect, ["eta", "output-format"]);
        let faults = read(&["--name=a", "--sise=4k"]).expect("a command line").source.jobs().unwrap_err().to_string();
        assert!(faults.contains("command line:2:1: error: unknown option `sise`"), "{faults}");
    }
}
