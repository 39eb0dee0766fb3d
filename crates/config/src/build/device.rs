//! Parses `[[device]]` sections.

use std::path::Path;

use hoistway_core::{Kind, Reservation};
use hoistway_drive::{Profile, describe};
use hoistway_nbd::uri::Uri;

use crate::builder::ConfigBuilder;
use crate::draft::{Draft, Entry, LocatedValue, Value};
use crate::environment::Environment;
use crate::model::{BackendConfig, DeviceConfig, RemoteConfig};
use crate::names::{did_you_mean, list, suggestion};
use crate::value::{self, ParseResult, backend_path};
use hoistway_qos::{DiskQueueConfig, is_layer_tunable};

/// The message for an invalid backend.
const BACKENDS: &str = "a backend is \"file:PATH\", \"mem:SIZE\", \"null:SIZE\" or an NBD URI (\"nbd://HOST/EXPORT\")";
/// The shortest positioning time of a drive with an arm, in ns: 1 ms. A device below it counts as
/// one without an arm.
const ARM_NS_MIN: u64 = 1_000_000;
/// The largest size of a device, in bytes: offsets are signed 64-bit integers in system calls.
const BYTES_MAX: u64 = i64::MAX as u64;

impl ConfigBuilder<'_> {
    pub(super) fn device(&mut self, entry: &Entry, draft: &Draft) {
        let environment = self.environment;
        let mut fields = self.fields(entry);
        let name = fields.read("name", value::name);
        if entry.get("name").is_none() {
            fields.missing("name", "exports refer to the device by its name");
        }
        let location = fields.location("drive");
        let drive = fields.read("drive", |value| drive(value, |path| location.resolve(path), environment));
        let elevator = fields.read("elevator", value::elevator);
        let depth = fields.read("depth", |value| value::whole(value, 1, 4096));
        let direct = fields.read("direct", value::switch);
        let force_in_use = fields.read("force_in_use", value::switch).unwrap_or(false);
        let merge = fields.read("merge", value::switch).unwrap_or(true);
        let request_max = fields.read("request_max", |value| {
            value::sectors(value)?;
            value::bytes_within(value, 4 << 10, 32 << 20)
        });
        let bandwidth = fields.read("bandwidth", value::rate);
        let position_ns = fields.read("position", value::time_ns);
        let log_slow_ns = fields.read("log_slow", value::log_slow_ns).unwrap_or(DiskQueueConfig::LOG_SLOW_NS_DEFAULT);
        let figures = drive.as_ref().map(describe);
        let bandwidth = bandwidth
            .or_else(|| figures.as_ref().map(|of| (of.sequential_inner_mb_s * 1e6) as u64).filter(|of| *of > 0));
        let position_ns = position_ns.or_else(|| figures.as_ref().map(|of| (of.random_read_4k_ms * 1e6) as u64));
        let (backend, bytes) = self.backend(entry, drive.as_ref(), direct);
        let tunables = self.tunables(entry, elevator);
        let is_remote = matches!(backend, BackendConfig::Remote(_));
        let keys = self.remote_keys(entry, is_remote);
        let read_only = !draft.exports.is_empty() && self.all_read_only(draft, name.as_deref());
        let backend = match backend {
            BackendConfig::File { path, direct, .. } => BackendConfig::File { path, direct, read_only, force_in_use },
            BackendConfig::Remote(remote) => {
                let remote = RemoteConfig { read_only, ..self.remote(entry, *remote, keys) };
                BackendConfig::Remote(Box::new(remote))
            }
            other => other,
        };
        // The elevators order requests for one disk, which a remote export need not be.
        let elevator = elevator.or(is_remote.then_some(Kind::Noop));
        let rotates = match &drive {
            Some(drive) => drive.is_rotational(),
            None => matches!(backend, BackendConfig::File { .. }) && position_ns >= Some(ARM_NS_MIN),
        };
        self.device_rotates.push(rotates);
        self.device_bytes.push(bytes);
        self.config.devices.push(DeviceConfig {
            queue: DiskQueueConfig {
                name: name.unwrap_or_default(),
                elevator,
                depth: depth.and_then(|depth| u32::try_from(depth).ok()),
                tunables,
                merge,
                request_bytes_max: request_max
                    .and_then(|bytes| u32::try_from(bytes).ok())
                    .unwrap_or(DiskQueueConfig::REQUEST_BYTES_DEFAULT),
                bandwidth,
                position_ns,
                log_slow_ns,
            },
            backend,
            drive,
        });
    }

    /// Parses the backend, and returns its size in bytes if it is known.
    fn backend(
        &mut self,
        entry: &Entry,
        drive: Option<&Profile>,
        direct: Option<bool>,
    ) -> (BackendConfig, Option<u64>) {
        let environment = self.environment;
        let drive_bytes = drive.map(|drive| drive.capacity_sectors().saturating_mul(512));
        let mut fields = self.fields(entry);
        let location = fields.location("backend");
        if entry.get("backend").is_none() {
            fields.missing("backend", BACKENDS);
        }
        let read = fields.read("backend", |value| {
            let text = value::text(value)?;
            if value::is_uri(&text) {
                let uri = text.parse::<Uri>().map_err(|error| error.what)?;
                return Ok((BackendConfig::Remote(Box::new(RemoteConfig::new(uri))), None));
            }
            if let Some(path) = backend_path(&text) {
                if path.is_empty() || path.contains('\0') || (!path.contains('/') && text.contains(':') && path == text)
                {
                    return Err(BACKENDS.into());
                }
                let path = location.resolve(path);
                let bytes = environment.bytes(&path).map_err(|error| error.to_string())?;
                return Ok((BackendConfig::File { path, direct, read_only: false, force_in_use: false }, Some(bytes)));
            }
            let (kind, size) = text.split_once(':').unwrap_or((&text, ""));
            let bytes = match (size, drive_bytes) {
                ("", Some(bytes)) => bytes,
                ("", None) => return Err(format!("write the size, as in \"{kind}:1G\"")),
                (size, _) => value::sectors(&Value::Text(size.to_owned()))?,
            };
            if bytes == 0 || bytes > BYTES_MAX {
                return Err("a size is above 0 and at most 2^63 - 1 bytes".into());
            }
            let memory = kind == "mem";
            Ok((if memory { BackendConfig::Memory { bytes } } else { BackendConfig::Null { bytes } }, Some(bytes)))
        });
        let Some((backend, bytes)) = read else { return (BackendConfig::Null { bytes: 512 }, None) };
        if direct == Some(true) && !matches!(backend, BackendConfig::File { .. }) {
            let location = fields.location("direct");
            fields.problem(&location, "`direct` is true: only files have a page cache to bypass".into());
        }
        if let (Some(drive_bytes), Some(bytes)) = (drive_bytes, bytes)
            && bytes > drive_bytes
        {
            let text =
                format!("the backend has {bytes} bytes and the drive only {drive_bytes}: make the backend no larger");
            fields.problem(&location, text);
        }
        (backend, bytes)
    }

    /// Parses the tunables of an elevator, by the kernel's names.
    pub fn tunables(&mut self, entry: &Entry, elevator: Option<Kind>) -> Vec<(String, i64)> {
        let Some(located) = entry.get("tunables") else { return Vec::new() };
        let mut fields = self.fields(entry);
        let Value::Table(pairs) = &located.value else {
            fields.problem(
                &located.location,
                format!("`tunables` is {}: it takes a table, as {{ slice_idle = 0 }}", located.value),
            );
            return Vec::new();
        };
        let has_owner = |name: &str| elevator.is_some() || is_layer_tunable(name);
        if let (None, Some(_)) = (entry.get("elevator"), pairs.iter().find(|(name, ..)| !has_owner(name))) {
            let text = "`tunables` are given without an `elevator`: name the elevator that they belong to".to_owned();
            fields.problem(&located.location, text);
        }
        let mut read = Vec::new();
        for (name, location, located) in pairs.iter().filter(|(name, ..)| has_owner(name)) {
            match tunable(elevator, name, located) {
                Ok(value) => read.push((name.clone(), value)),
                Err((of_value, text)) => fields.problem(if of_value { &located.location } else { location }, text),
            }
        }
        read
    }

    /// Returns true if every export of a device is read-only, so that nothing ever writes to it.
    fn all_read_only(&self, draft: &Draft, name: Option<&str>) -> bool {
        let is_here = |export: &&Entry| match export.get("device") {
            Some(located) => located.text() == name,
            None => name.is_some() && draft.only_device() == name,
        };
        let read_only =
            |export: &Entry| export.get("read_only").is_some_and(|located| value::switch(&located.value) == Ok(true));
        let mut here = draft.exports.iter().filter(is_here).peekable();
        here.peek().is_some() && here.all(read_only)
    }
}

/// Parses a drive: a built-in name, or the path of a profile.
fn drive(
    value: &Value,
    resolve: impl Fn(&str) -> std::path::PathBuf,
    environment: &dyn Environment,
) -> ParseResult<Profile> {
    let typed = value::text(value)?;
    if let Some(profile) = Profile::builtin(&typed) {
        return Ok(profile);
    }
    let is_path = typed.contains('/') || Path::new(&typed).extension().is_some_and(|extension| extension == "toml");
    if !is_path {
        let near = suggestion(&typed, Profile::names(), "hoistway drives");
        return Err(format!("there is no such drive{near}, and any FILE.toml is one"));
    }
    let path = resolve(&typed);
    let text = environment.read(&path).map_err(|error| format!("the profile cannot be read: {error}"))?;
    Profile::from_toml(&text, &path.display().to_string()).map_err(|error| error.to_string())
}

/// Parses the value of a tunable of an elevator or of the reservation layer. An error says what is
/// wrong, and whether the value (rather than the name) is at fault.
fn tunable(kind: Option<Kind>, name: &str, located: &LocatedValue) -> Result<i64, (bool, String)> {
    let rows = kind.map_or(&[][..], |kind| kind.info().tunables);
    let Some(row) = rows.iter().chain(Reservation::TUNABLES).find(|row| row.name == name) else {
        let names = || rows.iter().map(|row| row.name);
        let elevator = kind.map_or("", |kind| kind.info().name);
        let near = did_you_mean(name, names());
        return Err((false, format!("{elevator} has no tunable `{name}`{near}; it has {}", list(names()))));
    };
    let number = match &located.value {
        Value::Integer(number) => number.and_then(|number| i64::try_from(number).ok()),
        _ => None,
    };
    number.filter(|number| (row.min..=row.max).contains(number)).ok_or_else(|| {
        (true, format!("`{name}` is {}: it takes {} to {} ({})", located.value, row.min, row.max, row.unit.label()))
    })
}
