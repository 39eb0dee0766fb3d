//! One point of a sweep: its name, and the simulation that it stands for.

use std::fmt;

use hoistway_core::Kind;
use hoistway_drive::{Profile, ProfileError};
use hoistway_fio::JobFile;
use hoistway_sim::{CompareRequest, HostConfig, HostFileError, Setting};
use sha2::{Digest, Sha256};
use toml::Table;

use crate::key::Key;
use crate::plan::{ChosenValue, PointChoice};
use crate::spec::SweepSpec;

/// The version of the library, which is part of a point: another version may compute other results.
pub const LIBRARY: &str = env!("CARGO_PKG_VERSION");

/// The name of a point: a hash of everything that determines its result.
///
/// That is the text of the job file with all changes, the profile of the drive, the host, the
/// elevator, its tunables, the seed, the shortening of jobs, and the version of the library. Names
/// of files do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PointId(u128);

impl PointId {
    /// Parses the 32 hexadecimal digits that [`fmt::Display`] prints.
    pub fn parse(text: &str) -> Option<PointId> {
        (text.len() == 32).then(|| u128::from_str_radix(text, 16).ok().map(PointId)).flatten()
    }

    /// The name of the point that a choice stands for.
    pub fn of(spec: &SweepSpec, choice: &PointChoice) -> PointId {
        Inputs::of(spec, choice).id(spec, spec.elevators[choice.elevator], choice.seed)
    }

    /// The bytes of the name, the most significant first.
    pub fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }
}

impl fmt::Display for PointId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// A point of a sweep.
#[derive(Clone, Debug)]
pub struct Point {
    /// Its name.
    pub id: PointId,
    /// The simulation with the jobs, the drive, the host, the elevator and the seed; or the reason,
    /// with file and line, for which a value cannot be used.
    pub request: Result<Box<CompareRequest>, String>,
}

/// The inputs of a point as text, with all values set.
struct Inputs {
    job: hoistway_fio::JobSource,
    profile: Table,
    host: Table,
    /// The settings of the elevator's tunables, `ELEVATOR.TUNABLE=VALUE`.
    settings: Vec<String>,
    /// The first value that could not be set.
    error: Option<String>,
}

impl Point {
    /// The point that a choice stands for.
    pub fn new(spec: &SweepSpec, choice: &PointChoice) -> Point {
        let inputs = Inputs::of(spec, choice);
        let elevator = spec.elevators[choice.elevator];
        Point { id: inputs.id(spec, elevator, choice.seed), request: inputs.request(spec, choice, elevator) }
    }
}

impl Inputs {
    fn of(spec: &SweepSpec, choice: &PointChoice) -> Inputs {
        let mut inputs = Inputs {
            job: spec.jobs[choice.job].source.clone(),
            profile: spec.drives[choice.drive].profile.clone(),
            host: spec.hosts[choice.host].settings.clone(),
            settings: Vec::new(),
            error: None,
        };
        for chosen in &choice.values {
            if let Err(problem) = inputs.set(spec, chosen) {
                let ChosenValue { key, value, line } = chosen;
                let error = format!("{}:{line}: {key} = {value}: {problem}", spec.file);
                inputs.error.get_or_insert(error);
                // The value belongs to the name of the point nevertheless.
                inputs.settings.push(format!("{key}={value}"));
            }
        }
        inputs
    }

    fn set(&mut self, spec: &SweepSpec, ChosenValue { key, value, line }: &ChosenValue) -> Result<(), String> {
        match key {
            Key::Job { section, option } => {
                let text = value.to_string();
                let set = self.job.set(section, option, Some(&text), (&spec.file, *line));
                set.map_err(|error| error.to_string())
            }
            Key::Drive(key) => set_key(&mut self.profile, key, value.to_toml()),
            Key::Host(key) => set_key(&mut self.host, key, value.to_toml()),
            Key::Tunable { .. } => {
                // In the unit of the tunable, so that `0.1s` and 100 are one point.
                let setting = Setting::parse(&format!("{key}={value}")).map_err(|error| error.to_string())?;
                self.settings.push(format!("{key}={}", setting.value));
                Ok(())
            }
        }
    }

    fn id(&self, spec: &SweepSpec, elevator: Kind, seed: u64) -> PointId {
        let mut hash = Sha256::new();
        // Each text with its length, so that two inputs never give the same bytes.
        let mut add = |text: &str| {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text.as_bytes());
        };
        let shortening = (spec.shortening.runtime_ns, spec.shortening.scale.map(f64::to_bits));
        add(LIBRARY);
        add(&self.job.to_string());
        add(&self.profile.to_string());
        add(&self.host.to_string());
        add(elevator.info().name);
        if let Kind::Custom(custom) = elevator {
            add(custom.info().kernel);
        }
        add(&seed.to_string());
        add(&format!("{shortening:?}"));
        self.settings.iter().for_each(|setting| add(setting));
        let digest = hash.finalize();
        PointId(digest.iter().take(16).fold(0, |id, byte| id << 8 | u128::from(*byte)))
    }

    fn request(&self, spec: &SweepSpec, choice: &PointChoice, elevator: Kind) -> Result<Box<CompareRequest>, String> {
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        let mut jobs: JobFile = self.job.jobs().map_err(|faults| faults.to_string())?;
        // The notes are those of the whole sweep.
        let _ = spec.shortening.apply(&mut jobs);
        let drive = &spec.drives[choice.drive].name;
        let profile = Profile::from_toml(&self.profile.to_string(), drive)
            .map_err(|error| format!("{}: drive {drive}: {}", spec.file, profile_problem(&error)))?;
        let host = &spec.hosts[choice.host].name;
        let host = HostConfig::from_toml(&self.host.to_string(), host)
            .map_err(|error| format!("{}: host {host}: {}", spec.file, host_problem(&error)))?;
        let settings = self.settings.iter().map(|setting| Setting::parse(setting));
        let settings = settings.collect::<Result<_, _>>().map_err(|error| error.to_string())?;
        let elevators = vec![elevator];
        Ok(Box::new(CompareRequest { jobs, profile, host, elevators, settings, seed: choice.seed, record: false }))
    }
}

/// Sets a key of a table; tables stand before dots and are made if they are missing.
///
/// # Errors
/// A message if a part before a dot is no table.
pub fn set_key(table: &mut Table, key: &str, value: toml::Value) -> Result<(), String> {
    let Some((outer, inner)) = key.split_once('.') else {
        table.insert(key.to_owned(), value);
        return Ok(());
    };
    let entry = table.entry(outer).or_insert_with(|| toml::Value::Table(Table::new()));
    match entry.as_table_mut() {
        Some(table) => set_key(table, inner, value),
        None => Err(format!("`{outer}` is no table: its parts cannot be set")),
    }
}

/// The problem of a profile without the position in its text, which has no file.
fn profile_problem(error: &ProfileError) -> String {
    match error {
        ProfileError::Read { .. } => error.to_string(),
        ProfileError::Toml { message, .. } => message.clone(),
        ProfileError::Value { key, value, expected, .. } => format!("`{key}` is {value}: {expected}"),
    }
}

/// The problem of a host without the position in its text.
fn host_problem(error: &HostFileError) -> String {
    match error {
        HostFileError::Read { .. } => error.to_string(),
        HostFileError::Wrong { problem, .. } => problem.clone(),
    }
}
