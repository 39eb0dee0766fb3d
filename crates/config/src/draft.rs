//! Configuration values as written in a file or on the command line: keys with values and their
//! locations, not yet parsed.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hoistway_units::printable::one_line;

use crate::keys::{Key, Section};
use crate::names::{did_you_mean, list};

/// The location of a configuration value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// In a file.
    File {
        /// The file's name as given on the command line.
        file: Arc<str>,
        /// The line, counted from 1.
        line: usize,
        /// The column in characters, counted from 1.
        column: usize,
    },
    /// On the command line; the argument as written.
    Argument(Arc<str>),
}

impl Location {
    /// Resolves a path written at this location. A path in a file is relative to the file's
    /// directory.
    pub(crate) fn resolve(&self, path: &str) -> PathBuf {
        match self {
            Location::File { file, .. } => Path::new(&**file).parent().unwrap_or(Path::new("")).join(path),
            Location::Argument(_) => PathBuf::from(path),
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::File { file, line, column } => write!(f, "{file}:{line}:{column}"),
            Location::Argument(argument) => f.write_str(argument),
        }
    }
}

/// An error or a warning about a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The location of the value.
    pub location: Location,
    /// What is wrong, with the value, and what is allowed.
    pub text: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", one_line(&self.location), one_line(&self.text))
    }
}

/// A value as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Text(String),
    /// A whole number; `None` if it does not fit 64 bits and a sign.
    Integer(Option<i128>),
    Switch(bool),
    List(Vec<LocatedValue>),
    Table(Vec<(String, Location, LocatedValue)>),
    /// A value of a type that no key takes, as written: a fraction, a date.
    Other(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Text(text) => write!(f, "{text:?}"),
            Value::Integer(Some(number)) => number.fmt(f),
            Value::Integer(None) => f.write_str("too large a number"),
            Value::Switch(switch) => switch.fmt(f),
            Value::List(_) => f.write_str("a list"),
            Value::Table(_) => f.write_str("a table"),
            Value::Other(text) => f.write_str(text),
        }
    }
}

/// A value and its location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LocatedValue {
    pub value: Value,
    pub location: Location,
}

/// The keys of one table: a device, an export, the listening addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub section: Section,
    /// The beginning of the table.
    pub location: Location,
    values: Vec<(&'static Key, LocatedValue)>,
}

impl Entry {
    pub fn new(section: Section, location: Location) -> Entry {
        Entry { section, location, values: Vec::new() }
    }

    pub fn get(&self, name: &str) -> Option<&LocatedValue> {
        debug_assert!(self.section.keys().any(|key| key.name == name), "{name} is a key of {:?}", self.section);
        self.values.iter().find(|(key, _)| key.name == name).map(|(_, located)| located)
    }

    pub fn keys(&self) -> impl Iterator<Item = (&'static str, &LocatedValue)> {
        self.values.iter().map(|(key, located)| (key.name, located))
    }

    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Sets a key, and replaces an earlier value of it. Returns a problem if the section has no
    /// such key.
    pub fn set(&mut self, name: &str, location: &Location, located: LocatedValue) -> Result<(), Problem> {
        let keys = self.section.keys();
        let Some(key) = keys.clone().find(|key| key.name == name) else {
            let names = keys.map(|key| key.name);
            let near = did_you_mean(name, names.clone());
            let text =
                format!("there is no key `{name}` in {}{near}; there are {}", self.section.heading(), list(names));
            return Err(Problem { location: location.clone(), text });
        };
        match self.values.iter_mut().find(|(known, _)| known.name == key.name) {
            Some((_, old)) => *old = located,
            None => self.values.push((key, located)),
        }
        Ok(())
    }

    pub fn remove(&mut self, name: &str) {
        self.values.retain(|(key, _)| key.name != name);
    }
}

/// A configuration that has been read but not parsed; [`Draft::check`] parses it.
#[derive(Clone, Debug)]
pub struct Draft {
    pub(crate) devices: Vec<Entry>,
    pub(crate) exports: Vec<Entry>,
    pub(crate) groups: Vec<Entry>,
    pub(crate) tenants: Vec<Entry>,
    pub(crate) listen: Entry,
    pub(crate) tls: Entry,
    pub(crate) control: Entry,
    pub(crate) metrics: Entry,
    /// The `[mount]` table of a mount's configuration.
    pub(crate) mount: Entry,
    pub(crate) top: Entry,
    pub(crate) problems: Vec<Problem>,
}

impl Default for Draft {
    fn default() -> Draft {
        let location = Location::Argument("the command line".into());
        let empty = |section| Entry::new(section, location.clone());
        Draft {
            devices: Vec::new(),
            exports: Vec::new(),
            groups: Vec::new(),
            tenants: Vec::new(),
            listen: empty(Section::Listen),
            tls: empty(Section::Tls),
            control: empty(Section::Control),
            metrics: empty(Section::Metrics),
            mount: empty(Section::Mount),
            top: empty(Section::Top),
            problems: Vec::new(),
        }
    }
}

impl Draft {
    /// Removes all reservations, so that a device can be measured before its figures are known.
    pub fn without_reservations(&mut self) {
        for tenant in &mut self.tenants {
            tenant.remove("reserve");
        }
    }

    /// Returns the device of exports that name none: the only device of the file.
    pub(crate) fn only_device(&self) -> Option<&str> {
        let mut of_file = self.devices.iter().filter(|device| matches!(device.location, Location::File { .. }));
        match (of_file.next(), of_file.next()) {
            (Some(only), None) => only.get("name").and_then(LocatedValue::text),
            _ => None,
        }
    }

    /// Returns the entry of a section that occurs once.
    pub(crate) fn single(&mut self, section: Section) -> &mut Entry {
        match section {
            Section::Listen => &mut self.listen,
            Section::Tls => &mut self.tls,
            Section::Control | Section::MountControl => &mut self.control,
            Section::Mount => &mut self.mount,
            Section::Metrics => &mut self.metrics,
            _ => &mut self.top,
        }
    }

    /// Returns the entries of a section that occurs many times.
    pub(crate) fn many(&mut self, section: Section) -> &mut Vec<Entry> {
        match section {
            Section::Device | Section::MountDevice => &mut self.devices,
            Section::Export => &mut self.exports,
            Section::Group => &mut self.groups,
            _ => &mut self.tenants,
        }
    }
}
