//! What was said, by a file or on the command line, before it is understood: keys with values and
//! the places where they stand.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::keys::{Key, Section};
use crate::names::{did_you_mean, list};

/// A place where something was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a file.
    File {
        /// Its name, as given.
        file: Arc<str>,
        /// The line, from 1.
        line: usize,
        /// The column in characters, from 1.
        column: usize,
    },
    /// On the command line, as it was written there.
    Argument(Arc<str>),
}

impl Place {
    /// A path that was written here: in a file it is relative to the file's folder.
    pub(crate) fn resolve(&self, path: &str) -> PathBuf {
        match self {
            Place::File { file, .. } => Path::new(&**file).parent().unwrap_or(Path::new("")).join(path),
            Place::Argument(_) => PathBuf::from(path),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::File { file, line, column } => write!(f, "{file}:{line}:{column}"),
            Place::Argument(argument) => f.write_str(argument),
        }
    }
}

/// Something that is wrong, or worth a warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where.
    pub place: Place,
    /// What, with the value, and what would be right.
    pub text: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.text)
    }
}

/// A value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Text(String),
    /// A whole number; `None` if it is wider than 64 bits and a sign.
    Integer(Option<i128>),
    Switch(bool),
    List(Vec<Said>),
    Table(Vec<(String, Place, Said)>),
    /// What no key takes, as it was written: a number with a point, a date.
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

/// A value and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub value: Value,
    pub place: Place,
}

/// A table: a device, an export, what is listened to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub section: Section,
    /// Where it begins.
    pub place: Place,
    values: Vec<(&'static Key, Said)>,
}

impl Entry {
    pub fn new(section: Section, place: Place) -> Entry {
        Entry { section, place, values: Vec::new() }
    }

    pub fn get(&self, name: &str) -> Option<&Said> {
        debug_assert!(self.section.keys().any(|key| key.name == name), "{name} is a key of {:?}", self.section);
        self.values.iter().find(|(key, _)| key.name == name).map(|(_, said)| said)
    }

    pub fn keys(&self) -> impl Iterator<Item = (&'static str, &Said)> {
        self.values.iter().map(|(key, said)| (key.name, said))
    }

    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Says a key, in place of what was said of it before; the problem with a key that there is
    /// not.
    pub fn set(&mut self, name: &str, place: &Place, said: Said) -> Result<(), Problem> {
        let keys = self.section.keys();
        let Some(key) = keys.clone().find(|key| key.name == name) else {
            let names = keys.map(|key| key.name);
            let near = did_you_mean(name, names.clone());
            let text =
                format!("there is no key `{name}` in {}{near}; there are {}", self.section.heading(), list(names));
            return Err(Problem { place: place.clone(), text });
        };
        match self.values.iter_mut().find(|(known, _)| known.name == key.name) {
            Some((_, old)) => *old = said,
            None => self.values.push((key, said)),
        }
        Ok(())
    }

    pub fn remove(&mut self, name: &str) {
        self.values.retain(|(key, _)| key.name != name);
    }
}

/// A configuration that has been read but not been understood yet: [`Draft::check`] does that.
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
    /// Of a mount.
    pub(crate) mount: Entry,
    pub(crate) top: Entry,
    pub(crate) problems: Vec<Problem>,
}

impl Default for Draft {
    fn default() -> Draft {
        let place = Place::Argument("the command line".into());
        let empty = |section| Entry::new(section, place.clone());
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
    /// Leaves out what is promised: for whoever wants to find out what can be.
    pub fn without_reservations(&mut self) {
        for tenant in &mut self.tenants {
            tenant.remove("reserve");
        }
    }

    /// The device that an export of the file lies on if it names none: the file's only one.
    pub(crate) fn only_device(&self) -> Option<&str> {
        let mut of_file = self.devices.iter().filter(|device| matches!(device.place, Place::File { .. }));
        match (of_file.next(), of_file.next()) {
            (Some(only), None) => only.get("name").and_then(Said::text),
            _ => None,
        }
    }

    /// The only entry of a section of which there is one.
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

    /// The entries of a section of which there are many.
    pub(crate) fn many(&mut self, section: Section) -> &mut Vec<Entry> {
        match section {
            Section::Device | Section::MountDevice => &mut self.devices,
            Section::Export => &mut self.exports,
            Section::Group => &mut self.groups,
            _ => &mut self.tenants,
        }
    }
}
