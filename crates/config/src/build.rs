//! From a draft to a configuration: each value by itself. What has to fit together is looked at in
//! `check`.

mod device;
pub(crate) mod export;
pub(crate) mod tenant;

use std::ffi::OsString;
use std::path::Path;

use crate::building::Building;
use crate::check;
use crate::draft::{Draft, Entry};
use crate::error::ConfigError;
use crate::model::{CONTROL_NAME, Checked, Config, Listen, TlsConfig};
use crate::surroundings::Surroundings;
use crate::value;

impl Draft {
    /// Understands and checks all that was said. Nothing is opened or made.
    ///
    /// # Errors
    /// Everything that is wrong, each with its place, its value and what would be right.
    pub fn check(&self, surroundings: &dyn Surroundings) -> Result<Checked, ConfigError> {
        let mut building = Building::new(surroundings, Config::default());
        building.problems.clone_from(&self.problems);
        for entry in &self.devices {
            building.device(entry, self);
        }
        for entry in &self.exports {
            building.export(entry, self);
        }
        for entry in &self.groups {
            building.group(entry);
        }
        for entry in &self.tenants {
            building.tenant(entry);
        }
        building.listen(&self.listen);
        building.tls(&self.tls);
        building.control(&self.control);
        building.config.metrics = building.fields(&self.metrics).read("address", value::address);
        building.config.record = building.path(&self.top, "record");
        check::together(self, &mut building);
        let Building { config, problems, warnings, .. } = building;
        if problems.is_empty() { Ok(Checked { config, warnings }) } else { Err(ConfigError::Wrong { problems }) }
    }
}

impl Building<'_> {
    fn listen(&mut self, entry: &Entry) {
        let mut fields = self.fields(entry);
        let mode = fields.read("mode", value::mode);
        let sockets = fields.read_each("socket", value::path);
        let addresses = fields.read_each("address", value::nbd_address);
        self.config.insecure = self.fields(entry).read("insecure", value::switch).unwrap_or(false);
        for (path, place) in sockets {
            let path = place.resolve(&path);
            self.config.listen.push(Listen::Unix { path, mode: mode.unwrap_or(0o600) });
            self.listen_places.push(place);
        }
        for (address, place) in addresses {
            self.config.listen.push(Listen::Tcp(address));
            self.listen_places.push(place);
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
            // Who asks for certificates means that nobody gets in without one, unless the opposite
            // is written.
            let required = required.unwrap_or(client_authority.is_some());
            self.config.tls = Some(TlsConfig { certificate, key, client_authority, required });
        }
    }

    /// The control socket: where it is told to be, or beside the first Unix socket.
    fn control(&mut self, entry: &Entry) {
        let off = entry.get("socket").and_then(|said| said.text()) == Some("none");
        let told = if off { None } else { self.path(entry, "socket") };
        let beside = self.config.listen.iter().find_map(|listen| match listen {
            Listen::Unix { path, .. } => Some(path.with_file_name(control_name(path))),
            Listen::Tcp(_) => None,
        });
        let usual = || self.surroundings.socket_folder().join(CONTROL_NAME);
        self.config.control = (!off).then(|| told.or(beside).unwrap_or_else(usual));
    }
}

/// What the control socket beside a Unix socket is called: `a.sock` has `a-control.sock`, so that
/// two servers in one folder have two.
fn control_name(socket: &Path) -> OsString {
    let mut name = socket.file_stem().unwrap_or_default().to_owned();
    name.push("-control");
    if let Some(extension) = socket.extension() {
        name.push(".");
        name.push(extension);
    }
    name
}
