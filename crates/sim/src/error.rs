//! What can go wrong before and during a run.

/// Why a simulation was not run, or ended early.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// A job asks for something that cannot be.
    #[error("{file}:{line}: job `{job}`: {problem}; {remedy}")]
    Job {
        /// The job file.
        file: String,
        /// The line of the job's section, from 1.
        line: u32,
        /// The job's name.
        job: String,
        /// What is wrong, with the value.
        problem: String,
        /// What would be right.
        remedy: String,
    },
    /// The job file has no jobs.
    #[error("the job file has no jobs: write at least one section, as in `[readers]`")]
    NoJobs,
    /// The files of all jobs need more room than the drive has.
    #[error(
        "{file}:{line}: the files need {needed_bytes} bytes and the drive has {capacity_bytes}: make `{largest}` smaller or take a larger drive"
    )]
    DriveTooSmall {
        /// The job file.
        file: String,
        /// The line of the job with the largest file.
        line: u32,
        /// What all files need together, in bytes.
        needed_bytes: u64,
        /// What the drive has, in bytes.
        capacity_bytes: u64,
        /// The largest of the files.
        largest: String,
    },
    /// A setting of the host is out of range.
    #[error("host setting {name} is {value}: it takes {range}")]
    Host {
        /// The setting.
        name: &'static str,
        /// Its value.
        value: u64,
        /// What it takes.
        range: &'static str,
    },
    /// No elevator goes by this name.
    #[error("there is no elevator `{name}`: there are {known}")]
    UnknownElevator {
        /// The name.
        name: String,
        /// The names that there are, with commas between them.
        known: String,
    },
    /// A comparison without elevators.
    #[error("no elevator to compare: name at least one of {known}")]
    NoElevators {
        /// The names that there are, with commas between them.
        known: String,
    },
    /// An override that is not of the form `elevator.tunable=value`.
    #[error("`{text}` is no setting: write elevator.tunable=value, as in cfq-v3.slice_idle=8ms")]
    SettingForm {
        /// What was given.
        text: String,
    },
    /// An override for an elevator that is not compared.
    #[error("`{text}` sets a tunable of `{elevator}`, which is not among the compared: {compared}")]
    SettingUnused {
        /// What was given.
        text: String,
        /// The elevator's name in it.
        elevator: String,
        /// The elevators that are compared.
        compared: String,
    },
    /// An override names a tunable that the elevator does not have.
    #[error("`{text}`: {elevator} has no tunable `{tunable}`: {known}")]
    UnknownTunable {
        /// What was given.
        text: String,
        /// The elevator.
        elevator: String,
        /// The name that it does not have.
        tunable: String,
        /// Its tunables, with commas between them, or that it has none.
        known: String,
    },
    /// An override's value is not in the tunable's unit or range.
    #[error("`{text}`: {problem}")]
    TunableValue {
        /// What was given.
        text: String,
        /// What is wrong with the value, and what would be right.
        problem: String,
    },
    /// Somebody asked for the end.
    #[error("cancelled")]
    Cancelled,
    /// No event is left, or time stands still, and processes are unfinished: a defect of the simulator.
    #[error(
        "defect: the simulation under {elevator} with seed {seed} makes no progress at {now_ns} ns with {unfinished} \
         unfinished processes ({state}); please report it with the job file"
    )]
    Stuck {
        /// The elevator.
        elevator: String,
        /// The seed that replays it.
        seed: u64,
        /// The virtual time.
        now_ns: u64,
        /// Processes that have not ended.
        unfinished: usize,
        /// What the first of them waits for.
        state: String,
    },
    /// The drive has hung for ever, and processes wait for it.
    #[error(
        "the drive does not answer: under {elevator} with seed {seed}, from {now_ns} ns on, {commands} commands are in it and {state}; \
         its profile says for how long it hangs (`faults.hangs`)"
    )]
    DriveHangs {
        /// The elevator.
        elevator: String,
        /// The seed that replays it.
        seed: u64,
        /// The virtual time.
        now_ns: u64,
        /// Commands that it holds.
        commands: u32,
        /// Who waits, and for what.
        state: String,
    },
    /// The request queue or the drive refused what it should have taken: a defect of the simulator.
    #[error("defect: with seed {seed}, at {now_ns} ns: {problem}; please report it with the job file")]
    Defect {
        /// The seed that replays it.
        seed: u64,
        /// The virtual time.
        now_ns: u64,
        /// What was refused, and why.
        problem: String,
    },
}
