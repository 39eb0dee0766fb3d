//! The job files, drives and hosts of a sweep, each named or written out in the sweep file.

use std::path::Path;

use hoistway_drive::Profile;
use hoistway_fio::JobSource;
use hoistway_sim::Kernel;
use toml::Table;
use toml::de::{DeTable, DeValue};

use super::{Dimension, SweepDrive, SweepHost, SweepJob, Values};
use crate::key::Key;
use crate::value::Value;

/// The host of a sweep in which each elevator runs in the block layer of its own kernel.
const OWN_HOST: &str = "own";

/// Reads an entry of `jobs`: the name of a file, or `{ name = "...", text = "..." }`.
pub(super) fn job(value: &DeValue<'_>, directory: &Path) -> Result<SweepJob, String> {
    if let Some(name) = value.as_str() {
        let source = JobSource::load(directory.join(name)).map_err(|error| error.to_string())?;
        return Ok(SweepJob { name: name.to_owned(), source });
    }
    let texts = texts(value, ["name", "text"]).ok_or(
        "an entry of `jobs` is the name of a job file, or a table with `name` and `text`: \
         `{ name = \"mine\", text = \"[reader]...\" }`",
    )?;
    let [name, text] = texts;
    let none = |path: &str, _: &str| Err(std::io::Error::other(format!("{path} cannot be included in a text")));
    let source = JobSource::new(&text, &name, &|_| None, &none);
    Ok(SweepJob { name, source })
}

/// Reads an entry of `hosts`: a kernel, `own`, the name of a file, or `{ name = "...", toml =
/// "..." }`.
pub(super) fn host(value: &DeValue<'_>, directory: &Path) -> Result<SweepHost, String> {
    let (name, text) = if let Some(name) = value.as_str() {
        let text = match Kernel::from_name(name) {
            Some(kernel) => format!("kernel = \"{}\"", kernel.name()),
            None if name == OWN_HOST => String::new(),
            None if looks_like_file(name) => read(&directory.join(name))?,
            None => {
                let kernels = Kernel::ALL.map(Kernel::name).join(", ");
                return Err(format!(
                    "there is no host `{name}`: there are {kernels}, `{OWN_HOST}` (each elevator in its own kernel), \
                     and files as in \"mine.toml\""
                ));
            }
        };
        (name.to_owned(), text)
    } else {
        let [name, text] = texts(value, ["name", "toml"])
            .ok_or("an entry of `hosts` is a kernel, a host file, or a table with `name` and `toml`")?;
        (name, text)
    };
    let settings = text.parse().map_err(|error| format!("host {name}: {error}"))?;
    Ok(SweepHost { name, settings })
}

/// Reads an entry of `drives`: a built-in drive, the name of a profile, or a table with `base` (one
/// of these) or `name` and `toml`, and keys with a value or a list of values each.
pub(super) fn drive(value: &DeValue<'_>, directory: &Path, line: u32) -> Result<SweepDrive, String> {
    if let Some(name) = value.as_str() {
        return Ok(SweepDrive { name: name.to_owned(), profile: profile(name, directory)?, dimensions: Vec::new() });
    }
    let form = "an entry of `drives` is a drive, or a table with `base` (a drive) and keys of its profile: \
                `{ base = \"cmr-8tb\", \"queue.depth\" = [1, 32] }`";
    let DeValue::Table(table) = value else { return Err(form.to_owned()) };
    let text = |key: &str| table.get(key).and_then(|value| value.get_ref().as_str());
    let (name, profile) = match (text("base"), text("name"), text("toml")) {
        (Some(base), name, None) => (name.unwrap_or(base), profile(base, directory)?),
        (None, Some(name), Some(text)) => (name, text.parse().map_err(|error| format!("drive {name}: {error}"))?),
        _ => return Err(form.to_owned()),
    };
    let mut dimensions = Vec::new();
    keys(table, "", &mut |key, value| {
        if matches!(key, "base" | "name" | "toml") {
            return Ok(());
        }
        let values = list(value).ok_or_else(|| format!("`{key}` of drive {name} is neither a value nor a list"))?;
        let rows = values.into_iter().map(|value| vec![Some(value)]).collect();
        dimensions.push(Dimension { keys: vec![Key::Drive(key.to_owned())], values: Values::Rows(rows), line });
        Ok(())
    })?;
    Ok(SweepDrive { name: name.to_owned(), profile, dimensions })
}

/// A value, or the values of a list that is not empty.
pub(super) fn list(value: &DeValue<'_>) -> Option<Vec<Value>> {
    match value {
        DeValue::Array(list) if list.is_empty() => None,
        DeValue::Array(list) => list.iter().map(|value| Value::read(value.get_ref())).collect(),
        one => Value::read(one).map(|value| vec![value]),
    }
}

/// Calls `each` for every key of a table, nested keys with their tables before a dot.
fn keys(
    table: &DeTable<'_>,
    above: &str,
    each: &mut dyn FnMut(&str, &DeValue<'_>) -> Result<(), String>,
) -> Result<(), String> {
    for (key, value) in table.iter() {
        let key = format!("{above}{}", key.get_ref());
        match value.get_ref() {
            DeValue::Table(table) => keys(table, &format!("{key}."), each)?,
            value => each(&key, value)?,
        }
    }
    Ok(())
}

/// The profile of a built-in drive or of a file.
fn profile(name: &str, directory: &Path) -> Result<Table, String> {
    let text = Profile::choose_text(name, directory).map_err(|error| error.to_string())?;
    text.toml.parse().map_err(|error| format!("drive {name}: {error}"))
}

/// The texts of a table that has these keys and no others.
fn texts<const N: usize>(value: &DeValue<'_>, keys: [&str; N]) -> Option<[String; N]> {
    let DeValue::Table(table) = value else { return None };
    let texts: Vec<String> = keys.iter().filter_map(|key| Some(table.get(*key)?.get_ref().as_str()?.into())).collect();
    (table.len() == N).then_some(texts)?.try_into().ok()
}

fn looks_like_file(name: &str) -> bool {
    name.contains('/') || Path::new(name).extension().is_some_and(|extension| extension == "toml")
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: cannot read the host file: {error}", path.display()))
}
