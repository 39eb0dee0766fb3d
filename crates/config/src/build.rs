//! Parses the values of a draft one by one into a configuration. `check` compares values with each
//! other.

mod device;
mod export;
mod remote;
pub(crate) mod tenant;
pub(crate) mod terms;

use std::ffi::OsString;
use std::path::Path;

use crate::builder::ConfigBuilder;
use crate::check;
use crate::draft::{Draft, Entry};
use crate::environment::Environment;
use crate::error::ConfigError;
use crate::model::{CONTROL_NAME, CheckedConfig, Config, Listen, TlsConfig};
use crate::value;

impl Draft {
    /// Parses and checks the draft. No device or socket is opened or created.
    ///
    /// # Errors
    /// All problems, each with its location, the value, and what is allowed.
    pub fn check(&self, environment: &dyn Environment) -> Result<CheckedConfig, ConfigError> {
        let mut builder = ConfigBuilder::new(environment, Config::default());
        builder.problems.clone_from(&self.problems);
        for entry in &self.devices {
            builder.device(entry, self);
        }
        for entry in &self.exports {
            builder.export(entry, self);
        }
        for entry in &self.groups {
            builder.group(entry);
        }
        for entry in &self.tenants {
            builder.tenant(entry);
        }
        builder.listen(&self.listen);
        builder.tls(&self.tls);
        builder.control(&self.control);
        builder.config.metrics = builder.fields(&self.metrics).read("address", value::address);
        builder.config.record = builder.path(&self.top, "record");
        check::check_consistency(self, &mut builder);
        let ConfigBuilder { config, problems, warnings, .. } = builder;
        if problems.is_empty() { Ok(CheckedConfig { config, warnings }) } else { Err(ConfigError::Wrong { problems }) }
    }
}

impl ConfigBuilder<'_> {
    fn listen(&mut self, entry: &Entry) {
        let mut fields = self.fields(entry);
        let mode = fields.read("mode", value::mode);
        let sockets = fields.read_each("socket", value::path);
        let addresses = fields.read_each("address", value::nbd_address);
        self.config.insecure = self.fields(entry).read("insecure", value::switch).unwrap_or(false);
        for (path, location) in sockets {
            let path = location.resolve(&path);
            self.config.listen.push(Listen::Unix { path, mode: mode.unwrap_or(0o600) });
            self.listen_locations.push(location);
        }
        for (address, location) in addresses {
            self.config.listen.push(Listen::Tcp(address));
            self.listen_locations.push(location);
        }
    }

    fn tls(&mut self, entry: &Entry) {
        if entry.is_empty() {
            return;
        }
        let (certificate, key) = (self.path(entry, "certificate"), self.path(entry, "key"));
        let client_authority = self.path(entry, "client_authority");
        let mut fields = self.fields(entry);
        let required = fields.read("required", value::switch);
        for name in ["certificate", "key"] {
            if entry.get(name).is_none() {
                fields.missing(name, "TLS takes both, each the path of a PEM file");
            }
        }
        if let (Some(certificate), Some(key)) = (certificate, key) {
            // A server that asks for client certificates requires TLS unless the file says
            // otherwise.
            let required = required.unwrap_or(client_authority.is_some());
            self.config.tls = Some(TlsConfig { certificate, key, client_authority, required });
        }
    }

    /// Sets the control socket: the configured path, or a path beside the first Unix socket.
    fn control(&mut self, entry: &Entry) {
        let off = entry.get("socket").and_then(|located| located.text()) == Some("none");
        let problem_lines = if off { None } else { self.path(entry, "socket") };
        let beside = self.config.listen.iter().find_map(|listen| match listen {
            Listen::Unix { path, .. } => Some(path.with_file_name(control_name(path))),
            Listen::Tcp(_) => None,
        });
        let default = || self.environment.socket_directory().join(CONTROL_NAME);
        self.config.control = (!off).then(|| problem_lines.or(beside).unwrap_or_else(default));
    }
}

/// Returns the file name of the control socket beside a Unix socket: `a-control.sock` for `a.sock`,
/// so that two servers in one directory do not collide.
fn control_name(socket: &Path) -> OsString {
    let mut name = socket.file_stem().unwrap_or_default().to_owned();
    name.push("-control");
    if let Some(extension) = socket.extension() {
        name.push(".");
        name.push(extension);
    }
    name
}
