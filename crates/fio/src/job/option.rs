//! Options: names, support, description, and how an option is set in a job.

use super::Job;
use crate::values::{Fault, Value};

/// The support for an option.
#[derive(Clone, Copy, Debug)]
pub enum Support {
    /// The option is applied to the job.
    Supported(Description),
    /// The option cannot affect a simulation: it is accepted, and listed once.
    Ignored,
    /// The option matters and is not simulated, for the reason of the second part. The values of
    /// the first part are accepted: they describe the behaviour that there is.
    Refused(&'static [&'static str], &'static str),
}

/// The description of an option that is applied, for the reference in docs/job-files.md.
#[derive(Clone, Copy, Debug)]
pub struct Description {
    /// The values that the option takes.
    pub takes: &'static str,
    /// The default; in back-quotes if it could be written in a job file.
    pub default: &'static str,
    /// The meaning of the option.
    pub meaning: &'static str,
    set: Set,
}

/// How an option is set in a job.
#[derive(Clone, Copy, Debug)]
enum Set {
    /// 0 or 1, or nothing for 1.
    Flag(fn(&mut Job) -> &mut bool),
    /// 0 or 1.
    Switch(fn(&mut Job) -> &mut bool),
    /// Any text, or nothing.
    Text(fn(&mut Job, &str)),
    /// A value that is not empty.
    Value(fn(&mut Job, Value) -> Result<(), Fault>),
}

/// An option of fio, or of hoistway if the name starts with `hoistway_`.
#[derive(Debug)]
pub struct KnownOption {
    /// The canonical name: the one that fio's JSON prints.
    pub name: &'static str,
    /// Aliases of the name.
    pub aliases: &'static [&'static str],
    /// The support for the option.
    pub support: Support,
}

/// The options on one subject.
#[derive(Debug)]
pub struct Subject {
    /// The heading in docs/job-files.md.
    pub heading: &'static str,
    /// The options in the order of the reference.
    pub options: &'static [KnownOption],
}

impl KnownOption {
    /// The name of the option and its aliases.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }

    /// Sets the option in a job, if it is supported; without a value it is a flag.
    pub(crate) fn set(&self, job: &mut Job, value: Option<&str>) -> Result<(), Fault> {
        let Support::Supported(Description { set, .. }) = self.support else { return Ok(()) };
        let value = value.map(|text| Value { text, units: job.size_units() });
        match (set, value) {
            (Set::Flag(field), value) => *field(job) = value.map_or(Ok(true), Value::boolean)?,
            (Set::Text(set), value) => set(job, value.map_or("", |value| value.text)),
            (_, None) => {
                return Err(Fault::with_help("the option needs a value", format!("write {}=VALUE", self.name)));
            }
            (_, Some(Value { text: "", .. })) => {
                let help = format!("write {}=VALUE, or leave the option out", self.name);
                return Err(Fault::with_help("the value is empty", help));
            }
            (Set::Switch(field), Some(value)) => *field(job) = value.boolean()?,
            (Set::Value(set), Some(value)) => set(job, value)?,
        }
        Ok(())
    }
}

/// An option with a value.
pub(super) const fn option(
    name: &'static str,
    aliases: &'static [&'static str],
    set: fn(&mut Job, Value) -> Result<(), Fault>,
    takes: &'static str,
    default: &'static str,
    meaning: &'static str,
) -> KnownOption {
    supported(name, aliases, Description { takes, default, meaning, set: Set::Value(set) })
}

/// An option whose value is any text, or missing.
pub(super) const fn text(
    name: &'static str,
    set: fn(&mut Job, &str),
    takes: &'static str,
    default: &'static str,
    meaning: &'static str,
) -> KnownOption {
    supported(name, &[], Description { takes, default, meaning, set: Set::Text(set) })
}

/// A field that is 0 or 1.
pub(super) const fn switch(
    name: &'static str,
    aliases: &'static [&'static str],
    field: fn(&mut Job) -> &mut bool,
    default: &'static str,
    meaning: &'static str,
) -> KnownOption {
    supported(name, aliases, Description { takes: "`0`, `1`", default, meaning, set: Set::Switch(field) })
}

/// A field that is 0 by default, and 1 if its option has no value.
pub(super) const fn flag(
    name: &'static str,
    aliases: &'static [&'static str],
    field: fn(&mut Job) -> &mut bool,
    meaning: &'static str,
) -> KnownOption {
    supported(name, aliases, Description { takes: "`0`, `1`", default: "`0`", meaning, set: Set::Flag(field) })
}

const fn supported(name: &'static str, aliases: &'static [&'static str], description: Description) -> KnownOption {
    KnownOption { name, aliases, support: Support::Supported(description) }
}
