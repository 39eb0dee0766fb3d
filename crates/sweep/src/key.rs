//! The keys that a sweep varies: options of jobs, keys of drives and hosts, tunables of elevators.

use std::fmt;

use hoistway_core::Kind;
use hoistway_sim::elevator_of_name;
use hoistway_units::names::did_you_mean;

/// The option or tunable that a value of a sweep sets.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    /// `job.SECTION.OPTION`: an option of a job file's section.
    Job {
        /// The name of the section, or `global`.
        section: String,
        /// The name of the option.
        option: String,
    },
    /// `drive.KEY`: a key of the drive's profile, with its tables: `queue.depth`.
    Drive(String),
    /// `host.KEY`: a key of the host.
    Host(String),
    /// `ELEVATOR.TUNABLE`: a tunable of an elevator.
    Tunable {
        /// The elevator.
        elevator: Kind,
        /// The name of the tunable.
        name: &'static str,
    },
}

impl Key {
    /// Parses a key as written in a sweep file.
    ///
    /// # Errors
    /// A sentence that says which forms there are, or which elevator or tunable is meant.
    pub fn parse(text: &str) -> Result<Key, String> {
        let forms = "write `job.SECTION.OPTION`, `drive.KEY`, `host.KEY` or `ELEVATOR.TUNABLE`";
        let Some((first, rest)) = text.split_once('.').filter(|(_, rest)| !rest.is_empty()) else {
            return Err(format!("`{text}` is no key of a sweep: {forms}"));
        };
        match first {
            "job" => match rest.rsplit_once('.') {
                Some((section, option)) if !section.is_empty() && !option.is_empty() => {
                    Ok(Key::Job { section: section.to_owned(), option: option.to_owned() })
                }
                _ => Err(format!("`{text}` names no section and option: write `job.SECTION.OPTION`")),
            },
            "drive" => Ok(Key::Drive(rest.to_owned())),
            "host" => Ok(Key::Host(rest.to_owned())),
            name => {
                let elevator = elevator_of_name(name).map_err(|error| format!("{error}; {forms}"))?;
                let tunables = elevator.info().tunables;
                let found = tunables.iter().find(|tunable| tunable.name == rest);
                found.map(|tunable| Key::Tunable { elevator, name: tunable.name }).ok_or_else(|| {
                    let near = did_you_mean(rest, tunables.iter().map(|tunable| tunable.name));
                    let name = elevator.info().name;
                    format!("{name} has no tunable `{rest}`{near}; `hoistway elevators {name}` lists them")
                })
            }
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Job { section, option } => write!(f, "job.{section}.{option}"),
            Key::Drive(key) => write!(f, "drive.{key}"),
            Key::Host(key) => write!(f, "host.{key}"),
            Key::Tunable { elevator, name } => write!(f, "{}.{name}", elevator.info().name),
        }
    }
}
