//! Command-line arguments as parts of a draft: `--export
//! NAME=PATH|mem:SIZE|null:SIZE|URI[,key=value...]` and the options that override a configuration
//! file.

use std::path::{Path, PathBuf};

use hoistway_core::Kind;

use crate::draft::{Draft, Entry, LocatedValue, Location, Problem, Value};
use crate::environment::Environment;
use crate::keys::{KEYS, Section};
use crate::names::{did_you_mean, list};
use crate::value;

/// Sections whose keys an `--export` may set.
const EXPORT_SECTIONS: [Section; 3] = [Section::Export, Section::Device, Section::Tenant];
/// Keys of these sections that an `--export` may not set: names and rules follow from the export,
/// and lists and tables have no syntax there.
const EXCLUDED_KEYS: [&str; 12] = [
    "name",
    "backend",
    "tunables",
    "device",
    "tenants",
    "export",
    "uid",
    "pid",
    "comm",
    "cgroup",
    "certificate",
    "address",
];

impl Draft {
    /// Adds an `--export`. It replaces an export of the same name in the file, and shares the
    /// device of an export of the same backend file. [`Draft::check`] reports errors.
    ///
    /// ```text
    /// db=/srv/db.img,weight=300,reserve=20M        the file's bytes, under the name db
    /// scratch=mem:1G,elevator=bfq                  memory
    /// /srv/disk.img,read-only                      the default export
    /// vm=nbd://store/vm,timeout=1m                 an export of another server
    /// ```
    ///
    /// A comma in a path or a value is written twice.
    pub fn export(&mut self, argument: &str, environment: &dyn Environment) {
        let location = Location::Argument(format!("--export {argument}").into());
        let mut parts = split_at_commas(argument).into_iter();
        let first = parts.next().unwrap_or_default();
        // The query of a URI has equals signs, too.
        let named = first.split_once('=').filter(|_| !value::is_uri(&first));
        let (name, backend) = named.unwrap_or(("", first.as_str()));
        let text = |text: &str| LocatedValue { value: Value::Text(text.to_owned()), location: location.clone() };
        let mut given = ExportArgument {
            export: Entry::new(Section::Export, location.clone()),
            device: Entry::new(Section::Device, location.clone()),
            tenant: Entry::new(Section::Tenant, location.clone()),
        };
        for part in parts {
            let (key, value) = part.split_once('=').map_or((part.as_str(), None), |(key, value)| (key, Some(value)));
            let value = value.map_or(Value::Switch(true), |value| Value::Text(value.to_owned()));
            if let Err(text) =
                given.set(&key.trim().replace('-', "_"), key, LocatedValue { value, location: location.clone() })
            {
                self.problems.push(Problem { location: location.clone(), text });
            }
        }
        if backend.is_empty() {
            let text = "there is no backend: write NAME=PATH, NAME=mem:SIZE, NAME=null:SIZE or NAME=nbd://HOST/EXPORT"
                .to_owned();
            return self.problems.push(Problem { location, text });
        }
        let device = self.device_of(name, backend, given.device, environment);
        given.export.set_known("name", text(name));
        given.export.set_known("device", text(&device));
        match self.exports.iter().position(|export| is_text(export, "name", name)) {
            Some(old) if matches!(self.exports[old].location, Location::File { .. }) => {
                self.exports[old] = given.export
            }
            _ => self.exports.push(given.export),
        }
        if !given.tenant.is_empty() {
            given.tenant.set_known("name", text(if name.is_empty() { "default-export" } else { name }));
            given.tenant.set_known("export", text(name));
            self.tenants.push(given.tenant);
        }
    }

    /// Returns the name of the device with this backend; adds the device if the draft has none.
    fn device_of(&mut self, name: &str, backend: &str, given: Entry, environment: &dyn Environment) -> String {
        let location = given.location.clone();
        let path = storage_of(backend, Path::to_path_buf, environment);
        let known = self.devices.iter_mut().find_map(|device| {
            let there = path_of(device, environment)?;
            let named = device.get("name").and_then(|located| located.text().map(str::to_owned))?;
            (path.as_ref() == Some(&there)).then_some((device, named))
        });
        let Some((device, named)) = known else {
            let wanted =
                value::backend_path(backend).and_then(|path| Path::new(path).file_name()?.to_str().map(str::to_owned));
            // Other backends have no file name: the export's name or the kind serves instead.
            let kind = match backend {
                _ if value::is_uri(backend) => "remote",
                _ if backend.starts_with("mem") => "mem",
                _ => "null",
            };
            let nameless = if name.is_empty() { kind } else { name };
            let named = self.free_name(&wanted.unwrap_or_else(|| nameless.to_owned()));
            let mut device = given;
            let text = |text: &str| LocatedValue { value: Value::Text(text.to_owned()), location: location.clone() };
            device.set_known("name", text(&named));
            device.set_known("backend", text(backend));
            self.devices.push(device);
            return named;
        };
        for (key, located) in given.keys() {
            let contradicted = device
                .get(key)
                .filter(|old| old.value != located.value && matches!(old.location, Location::Argument(_)));
            if let Some(old) = contradicted {
                let text = format!(
                    "`{key}` is {} and {} in `{}`, another export of the same device: set it once",
                    located.value, old.value, old.location
                );
                self.problems.push(Problem { location: location.clone(), text });
            } else {
                device.set_known(key, located.clone());
            }
        }
        named
    }

    /// Returns a device name similar to `wanted` that no device of the draft has.
    fn free_name(&self, wanted: &str) -> String {
        let fit: String = wanted.chars().filter(|c| value::is_name_char(*c)).take(48).collect();
        let fit = if fit.trim_matches('.').is_empty() { "device".to_owned() } else { fit };
        let taken = |name: &str| self.devices.iter().any(|device| is_text(device, "name", name));
        let numbered = (2u64..).map(|number| format!("{fit}-{number}"));
        std::iter::once(fit.clone()).chain(numbered).find(|name| !taken(name)).unwrap_or(fit)
    }

    /// Sets a key from the command line; the value replaces that of the file. `option` is the
    /// command-line option, for messages.
    ///
    /// # Panics
    /// Never: an unknown key becomes a problem that [`Draft::check`] reports.
    pub fn set(&mut self, section: Section, key: &str, option: &str, value: &str) {
        let location = Location::Argument(format!("{option} {value}").into());
        let located = LocatedValue { value: Value::Text(value.to_owned()), location: location.clone() };
        self.set_in_entries(section, key, &location, located);
    }

    /// Sets a boolean key to true from the command line.
    pub fn switch_on(&mut self, section: Section, key: &str, option: &str) {
        let location = Location::Argument(option.into());
        let located = LocatedValue { value: Value::Switch(true), location: location.clone() };
        self.set_in_entries(section, key, &location, located);
    }

    /// Sets the listening sockets and addresses from the command line; they replace all those of
    /// the file.
    pub fn listen(&mut self, sockets: &[PathBuf], addresses: &[String]) {
        if sockets.is_empty() && addresses.is_empty() {
            return;
        }
        let list = |option: &str, values: Vec<String>| {
            let located = |value: String| {
                let location = Location::Argument(format!("{option} {value}").into());
                LocatedValue { value: Value::Text(value), location }
            };
            let location = Location::Argument(option.into());
            (!values.is_empty())
                .then(|| LocatedValue { value: Value::List(values.into_iter().map(located).collect()), location })
        };
        let sockets = sockets.iter().map(|path| path.to_string_lossy().into_owned()).collect();
        for (key, located) in [("socket", list("--socket", sockets)), ("address", list("--listen", addresses.to_vec()))]
        {
            self.listen.remove(key);
            if let Some(located) = located {
                self.listen.set_known(key, located);
            }
        }
    }

    /// Sets a tunable of every device that has this elevator.
    pub fn set_tunable(&mut self, elevator: Kind, tunable: &str, value: i64) {
        let name = elevator.info().name;
        let location = Location::Argument(format!("--set {name}.{tunable}={value}").into());
        let located = LocatedValue { value: Value::Integer(Some(value.into())), location: location.clone() };
        let has_it = |device: &&mut Entry| {
            let named = device.get("elevator").and_then(LocatedValue::text).and_then(hoistway_custom::find);
            named == Some(elevator)
        };
        let mut found = false;
        for device in self.devices.iter_mut().filter(has_it) {
            found = true;
            let mut pairs = match device.get("tunables").map(|located| located.value.clone()) {
                Some(Value::Table(pairs)) => pairs,
                _ => Vec::new(),
            };
            pairs.retain(|(name, ..)| name != tunable);
            pairs.push((tunable.to_owned(), location.clone(), located.clone()));
            device.set_known("tunables", LocatedValue { value: Value::Table(pairs), location: location.clone() });
        }
        if !found {
            let text = format!("no device has the elevator {name}: add --elevator {name}");
            self.problems.push(Problem { location, text });
        }
    }

    /// Sets a key in every entry of a section, except entries whose own `--export` sets the key.
    fn set_in_entries(&mut self, section: Section, key: &str, location: &Location, located: LocatedValue) {
        let mut problems = Vec::new();
        if section.is_list() {
            for entry in self.many(section) {
                let old = entry.get(key);
                if old.is_some_and(|old| matches!(old.location, Location::Argument(_))) {
                    continue;
                }
                if key == "elevator" && old.is_some_and(|old| old.value != located.value) {
                    // The tunables belong to the other elevator.
                    entry.remove("tunables");
                }
                if let Err(problem) = entry.set(key, location, located.clone()) {
                    problems.push(problem);
                }
            }
        } else if let Err(problem) = self.single(section).set(key, location, located) {
            problems.push(problem);
        }
        self.problems.extend(problems);
    }
}

/// The keys of an `--export`, sorted into the entries that they belong to.
struct ExportArgument {
    export: Entry,
    device: Entry,
    tenant: Entry,
}

impl ExportArgument {
    /// Sets a key in the entry that it belongs to; `written` is the key as written, for messages.
    fn set(&mut self, key: &str, written: &str, located: LocatedValue) -> Result<(), String> {
        let allowed = KEYS
            .iter()
            .filter(|known| EXPORT_SECTIONS.contains(&known.section) && !EXCLUDED_KEYS.contains(&known.name));
        let Some(known) = allowed.clone().find(|known| known.name == key) else {
            let names: Vec<String> = allowed.map(|known| known.name.replace('_', "-")).collect();
            let near = did_you_mean(&key.replace('_', "-"), names.iter().map(String::as_str));
            let all = list(names.iter().map(String::as_str));
            return Err(format!("there is no key `{written}` in an export{near}; there are {all}"));
        };
        let entry = match known.section {
            Section::Device => &mut self.device,
            Section::Tenant => &mut self.tenant,
            _ => &mut self.export,
        };
        if entry.get(key).is_some() {
            return Err(format!("`{written}` is given twice"));
        }
        entry.set_known(known.name, located);
        Ok(())
    }
}

impl Entry {
    /// Sets a key that the section is certain to have.
    fn set_known(&mut self, key: &str, located: LocatedValue) {
        let location = located.location.clone();
        let known = self.set(key, &location, located);
        debug_assert!(known.is_ok(), "{key} is a key of {:?}", self.section);
    }
}

fn is_text(entry: &Entry, key: &str, wanted: &str) -> bool {
    entry.get(key).and_then(LocatedValue::text) == Some(wanted)
}

/// Returns what identifies the storage of a device: the path of its file, or its URI.
fn path_of(device: &Entry, environment: &dyn Environment) -> Option<PathBuf> {
    let located = device.get("backend")?;
    storage_of(located.text()?, |path| located.location.resolve(&path.to_string_lossy()), environment)
}

/// Returns what identifies a storage: the path of its file, which `resolve` completes, or its URI.
fn storage_of(backend: &str, resolve: impl Fn(&Path) -> PathBuf, environment: &dyn Environment) -> Option<PathBuf> {
    if value::is_uri(backend) {
        return Some(backend.into());
    }
    value::backend_path(backend).map(|path| environment.identity(&resolve(Path::new(path))))
}

/// Splits a text at commas; two consecutive commas stand for one literal comma.
fn split_at_commas(text: &str) -> Vec<String> {
    let (mut parts, mut part) = (Vec::new(), String::new());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != ',' {
            part.push(c);
        } else if chars.next_if_eq(&',').is_some() {
            part.push(',');
        } else {
            parts.push(std::mem::take(&mut part));
        }
    }
    parts.push(part);
    parts
}
