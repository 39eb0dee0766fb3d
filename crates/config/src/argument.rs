//! What the command line says, as a draft: `--export NAME=PATH|mem:SIZE|null:SIZE[,key=value...]`
//! and what overrides a file.

use std::path::{Path, PathBuf};

use hoistway_core::Kind;

use crate::draft::{Draft, Entry, Place, Problem, Said, Value};
use crate::keys::{KEYS, Section};
use crate::names::{did_you_mean, list};
use crate::surroundings::Surroundings;
use crate::value;

/// Sections whose keys an `--export` may give.
const OF_AN_EXPORT: [Section; 3] = [Section::Export, Section::Device, Section::Tenant];
/// Keys of theirs that it may not: names and rules follow from the export, lists and tables have no
/// place in it.
const NOT_OF_AN_EXPORT: [&str; 12] = [
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
    /// Takes in an `--export`. One of the same name in the file gives way to it; one that lies on
    /// the same file shares its device. Mistakes are told by [`Draft::check`].
    ///
    /// ```text
    /// db=/srv/db.img,weight=300,reserve=20M        the file's bytes, under the name db
    /// scratch=mem:1G,elevator=bfq                  memory
    /// /srv/disk.img,read-only                      the default export
    /// ```
    ///
    /// A comma in a path or a value is written twice.
    pub fn export(&mut self, argument: &str, surroundings: &dyn Surroundings) {
        let place = Place::Argument(format!("--export {argument}").into());
        let mut parts = split_at_commas(argument).into_iter();
        let first = parts.next().unwrap_or_default();
        let (name, backend) = first.split_once('=').map_or(("", first.as_str()), |(name, backend)| (name, backend));
        let text = |text: &str| Said { value: Value::Text(text.to_owned()), place: place.clone() };
        let mut given = Given {
            export: Entry::new(Section::Export, place.clone()),
            device: Entry::new(Section::Device, place.clone()),
            tenant: Entry::new(Section::Tenant, place.clone()),
        };
        for part in parts {
            let (key, value) = part.split_once('=').map_or((part.as_str(), None), |(key, value)| (key, Some(value)));
            let value = value.map_or(Value::Switch(true), |value| Value::Text(value.to_owned()));
            if let Err(text) = given.set(&key.trim().replace('-', "_"), key, Said { value, place: place.clone() }) {
                self.problems.push(Problem { place: place.clone(), text });
            }
        }
        if backend.is_empty() {
            let text = "there is no backend: write NAME=PATH, NAME=mem:SIZE or NAME=null:SIZE".to_owned();
            return self.problems.push(Problem { place, text });
        }
        let device = self.device_of(name, backend, given.device, surroundings);
        given.export.say("name", text(name));
        given.export.say("device", text(&device));
        match self.exports.iter().position(|export| is_text(export, "name", name)) {
            Some(old) if matches!(self.exports[old].place, Place::File { .. }) => self.exports[old] = given.export,
            _ => self.exports.push(given.export),
        }
        if !given.tenant.is_empty() {
            given.tenant.say("name", text(if name.is_empty() { "default-export" } else { name }));
            given.tenant.say("export", text(name));
            self.tenants.push(given.tenant);
        }
    }

    /// The name of the device that such a backend is, made if there is none yet.
    fn device_of(&mut self, name: &str, backend: &str, given: Entry, surroundings: &dyn Surroundings) -> String {
        let place = given.place.clone();
        let path = value::backend_path(backend).map(|path| surroundings.identity(Path::new(path)));
        let known = self.devices.iter_mut().find_map(|device| {
            let there = path_of(device, surroundings)?;
            let named = device.get("name").and_then(|said| said.text().map(str::to_owned))?;
            (path.as_ref() == Some(&there)).then_some((device, named))
        });
        let Some((device, named)) = known else {
            let wanted =
                value::backend_path(backend).and_then(|path| Path::new(path).file_name()?.to_str().map(str::to_owned));
            // Memory and nothing have no name of their own: the export's, or what they are.
            let kind = if backend.starts_with("mem") { "mem" } else { "null" };
            let nameless = if name.is_empty() { kind } else { name };
            let named = self.free_name(&wanted.unwrap_or_else(|| nameless.to_owned()));
            let mut device = given;
            let text = |text: &str| Said { value: Value::Text(text.to_owned()), place: place.clone() };
            device.say("name", text(&named));
            device.say("backend", text(backend));
            self.devices.push(device);
            return named;
        };
        for (key, said) in given.keys() {
            let contradicted =
                device.get(key).filter(|old| old.value != said.value && matches!(old.place, Place::Argument(_)));
            if let Some(old) = contradicted {
                let text = format!(
                    "`{key}` is {} and {} in `{}`, which lies on the same device: give it once",
                    said.value, old.value, old.place
                );
                self.problems.push(Problem { place: place.clone(), text });
            } else {
                device.say(key, said.clone());
            }
        }
        named
    }

    /// A device's name that nobody has, like this one.
    fn free_name(&self, wanted: &str) -> String {
        let fit: String = wanted.chars().filter(|c| value::is_of_names(*c)).take(48).collect();
        let fit = if fit.trim_matches('.').is_empty() { "device".to_owned() } else { fit };
        let taken = |name: &str| self.devices.iter().any(|device| is_text(device, "name", name));
        let numbered = (2u64..).map(|number| format!("{fit}-{number}"));
        std::iter::once(fit.clone()).chain(numbered).find(|name| !taken(name)).unwrap_or(fit)
    }

    /// Says a key on the command line, in place of the file: `option` is the option, for messages.
    ///
    /// # Panics
    /// Never: a key that there is not becomes a problem that [`Draft::check`] tells.
    pub fn set(&mut self, section: Section, key: &str, option: &str, value: &str) {
        let place = Place::Argument(format!("{option} {value}").into());
        let said = Said { value: Value::Text(value.to_owned()), place: place.clone() };
        self.set_said(section, key, &place, said);
    }

    /// Says on the command line that something is so.
    pub fn switch_on(&mut self, section: Section, key: &str, option: &str) {
        let place = Place::Argument(option.into());
        let said = Said { value: Value::Switch(true), place: place.clone() };
        self.set_said(section, key, &place, said);
    }

    /// Says on the command line where to listen, in place of all that the file says of it.
    pub fn listen(&mut self, sockets: &[PathBuf], addresses: &[String]) {
        if sockets.is_empty() && addresses.is_empty() {
            return;
        }
        let list = |option: &str, values: Vec<String>| {
            let said = |value: String| {
                let place = Place::Argument(format!("{option} {value}").into());
                Said { value: Value::Text(value), place }
            };
            let place = Place::Argument(option.into());
            (!values.is_empty()).then(|| Said { value: Value::List(values.into_iter().map(said).collect()), place })
        };
        let sockets = sockets.iter().map(|path| path.to_string_lossy().into_owned()).collect();
        for (key, said) in [("socket", list("--socket", sockets)), ("address", list("--listen", addresses.to_vec()))] {
            self.listen.remove(key);
            if let Some(said) = said {
                self.listen.say(key, said);
            }
        }
    }

    /// Sets a tunable of every device that has this elevator.
    pub fn set_tunable(&mut self, elevator: Kind, tunable: &str, value: i64) {
        let name = elevator.info().name;
        let place = Place::Argument(format!("--set {name}.{tunable}={value}").into());
        let said = Said { value: Value::Integer(Some(value.into())), place: place.clone() };
        let has_it = |device: &&mut Entry| {
            let named = device.get("elevator").and_then(Said::text).and_then(Kind::from_name);
            named == Some(elevator)
        };
        let mut found = false;
        for device in self.devices.iter_mut().filter(has_it) {
            found = true;
            let mut pairs = match device.get("tunables").map(|said| said.value.clone()) {
                Some(Value::Table(pairs)) => pairs,
                _ => Vec::new(),
            };
            pairs.retain(|(name, ..)| name != tunable);
            pairs.push((tunable.to_owned(), place.clone(), said.clone()));
            device.say("tunables", Said { value: Value::Table(pairs), place: place.clone() });
        }
        if !found {
            let text = format!("no device is told to have the elevator {name}: say --elevator {name}");
            self.problems.push(Problem { place, text });
        }
    }

    /// Says a key of every device on the command line, but of those whose own `--export` says it.
    fn set_said(&mut self, section: Section, key: &str, place: &Place, said: Said) {
        let mut problems = Vec::new();
        if section.is_list() {
            for entry in self.many(section) {
                let old = entry.get(key);
                if old.is_some_and(|old| matches!(old.place, Place::Argument(_))) {
                    continue;
                }
                if key == "elevator" && old.is_some_and(|old| old.value != said.value) {
                    // They are the other elevator's.
                    entry.remove("tunables");
                }
                if let Err(problem) = entry.set(key, place, said.clone()) {
                    problems.push(problem);
                }
            }
        } else if let Err(problem) = self.single(section).set(key, place, said) {
            problems.push(problem);
        }
        self.problems.extend(problems);
    }
}

/// What an `--export` gives.
struct Given {
    export: Entry,
    device: Entry,
    tenant: Entry,
}

impl Given {
    /// Takes a key to where it belongs; `written` is the key as it was written.
    fn set(&mut self, key: &str, written: &str, said: Said) -> Result<(), String> {
        let allowed = KEYS
            .iter()
            .filter(|known| OF_AN_EXPORT.contains(&known.section) && !NOT_OF_AN_EXPORT.contains(&known.name));
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
        entry.say(known.name, said);
        Ok(())
    }
}

impl Entry {
    /// Says a key that there is.
    fn say(&mut self, key: &str, said: Said) {
        let place = said.place.clone();
        let known = self.set(key, &place, said);
        debug_assert!(known.is_ok(), "{key} is a key of {:?}", self.section);
    }
}

fn is_text(entry: &Entry, key: &str, wanted: &str) -> bool {
    entry.get(key).and_then(Said::text) == Some(wanted)
}

/// Which file a device is.
fn path_of(device: &Entry, surroundings: &dyn Surroundings) -> Option<PathBuf> {
    let said = device.get("backend")?;
    let path = value::backend_path(said.text()?)?;
    Some(surroundings.identity(&said.place.resolve(path)))
}

/// The parts between commas; two commas are one that belongs to the text.
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
