//! Errors before and during a simulation.

use hoistway_core::Violation;
use hoistway_drive::Profile;

/// A contradiction within the simulator: an error of its own, not of the user.
#[derive(Debug)]
pub(crate) struct Defect(Box<Problem>);

/// A contradiction, as the end of a sentence. It is behind a pointer, so that a result that may be
/// a defect fits into registers.
#[derive(Debug)]
struct Problem(String);

impl Defect {
    pub fn new(problem: String) -> Defect {
        Defect(Box::new(Problem(problem)))
    }

    pub fn into_problem(self) -> String {
        self.0.0
    }
}

/// Reasons why a simulation was not run or ended early.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// A job asks for something that the simulation cannot do.
    #[error("{file}:{line}: job `{job}`: {problem}; {remedy}")]
    Job {
        /// The job file.
        file: String,
        /// The line of the job's section, from 1.
        line: u32,
        /// The job's name.
        job: String,
        /// The problem, with the value.
        problem: String,
        /// The remedy.
        remedy: String,
    },
    /// The job file contains no jobs.
    #[error("the job file has no jobs: write at least one section, as in `[readers]`")]
    NoJobs,
    /// The files of all jobs need more room than the drive has.
    #[error(
        "{file}:{line}: the files need {needed_bytes} bytes and the drive has {capacity_bytes}: make `{largest}` smaller or take a larger drive{}",
        larger_drive(*.needed_bytes)
    )]
    DriveTooSmall {
        /// The job file.
        file: String,
        /// The line of the job with the largest file.
        line: u32,
        /// Bytes that all files need together.
        needed_bytes: u64,
        /// Capacity of the drive, in bytes.
        capacity_bytes: u64,
        /// Name of the largest file.
        largest: String,
    },
    /// A setting of the host is out of range.
    #[error("host setting {name} is {value}: it takes {range}")]
    Host {
        /// The name of the setting.
        name: &'static str,
        /// The rejected value.
        value: u64,
        /// The allowed range.
        range: &'static str,
    },
    /// No elevator has this name.
    #[error("there is no elevator `{name}`{suggestion}")]
    UnknownElevator {
        /// The unknown name.
        name: String,
        /// The names near it, and the command that lists all.
        suggestion: String,
    },
    /// A comparison without elevators.
    #[error("no elevator to compare: name at least one of {known}")]
    NoElevators {
        /// The names of all elevators, separated by commas.
        known: String,
    },
    /// A setting that is not of the form `elevator.tunable=value`.
    #[error("`{text}` is no setting: write elevator.tunable=value, as in cfq-v3.slice_idle=8ms")]
    SettingForm {
        /// The setting as it was given.
        text: String,
    },
    /// A setting for an elevator that is not among the compared ones.
    #[error("`{text}` sets a tunable of `{elevator}`, which is not among the compared: {compared}")]
    SettingUnused {
        /// The setting as it was given.
        text: String,
        /// The elevator that the setting names.
        elevator: String,
        /// The compared elevators, separated by commas.
        compared: String,
    },
    /// A setting for a tunable that the elevator does not have.
    #[error("`{text}`: {elevator} has no tunable `{tunable}`: {known}")]
    UnknownTunable {
        /// The setting as it was given.
        text: String,
        /// The name of the elevator.
        elevator: String,
        /// The unknown name of a tunable.
        tunable: String,
        /// The elevator's tunables, separated by commas, or the statement that it has none.
        known: String,
    },
    /// A setting whose value is not in the tunable's unit or range.
    #[error("`{text}`: {problem}")]
    TunableValue {
        /// The setting as it was given.
        text: String,
        /// The problem with the value, and the valid values.
        problem: String,
    },
    /// The caller cancelled the run.
    #[error("cancelled")]
    Cancelled,
    /// No event is left, or virtual time does not advance, and processes are unfinished: a defect
    /// of the simulator.
    #[error(
        "defect: the simulation under {elevator} with seed {seed} makes no progress at {now_ns} ns with {unfinished} \
         unfinished processes: {state}; please report it with the job file"
    )]
    Stuck {
        /// The name of the elevator.
        elevator: String,
        /// The seed that replays the run.
        seed: u64,
        /// The virtual time, in ns.
        now_ns: u64,
        /// Number of processes that have not ended.
        unfinished: usize,
        /// The event that each process waits for, and the position of each request.
        state: String,
    },
    /// The drive never completes its commands, and processes wait for it.
    #[error(
        "the drive does not answer: under {elevator} with seed {seed}, {commands} commands were in it at {now_ns} ns, the last answer \
         came at {answered_ns} ns, and {state}; its profile says for how long it hangs (`faults.hangs`)"
    )]
    DriveHangs {
        /// The name of the elevator.
        elevator: String,
        /// The seed that replays the run.
        seed: u64,
        /// The virtual time, in ns.
        now_ns: u64,
        /// Time at which the drive last completed a command, in ns; 0 if it never did.
        answered_ns: u64,
        /// Number of commands in the drive.
        commands: u32,
        /// The event that each process waits for.
        state: String,
    },
    /// A custom elevator broke a rule of the request queue.
    #[error("elevator `{elevator}` with seed {seed}: {violation}{}", failure.as_ref().map(|text| format!(": {text}")).unwrap_or_default())]
    Violation {
        /// The elevator.
        elevator: &'static str,
        /// The seed that replays the run.
        seed: u64,
        /// The first answer that broke a rule, and the rule.
        violation: Box<Violation>,
        /// The error that the elevator reported of its own code.
        failure: Option<String>,
    },
    /// The request queue or the drive refused a valid operation: a defect of the simulator.
    #[error("defect: with seed {seed}, at {now_ns} ns: {problem}; please report it with the job file")]
    Defect {
        /// The seed that replays the run.
        seed: u64,
        /// The virtual time, in ns.
        now_ns: u64,
        /// The refused operation, with the reason.
        problem: String,
    },
}

/// The end of a message about a drive that is too small: the smallest built-in model of a drive
/// that has this many bytes.
pub(crate) fn larger_drive(needed_bytes: u64) -> String {
    let capacity = |name: &&str| Profile::builtin(name).map_or(0, |profile| profile.capacity_sectors() * 512);
    let large = Profile::names().filter(|name| *name != "null" && capacity(name) >= needed_bytes);
    match large.min_by_key(capacity) {
        Some(name) => format!(", as in --drive {name}"),
        None => " (none of `hoistway drives` is that large)".to_owned(),
    }
}
