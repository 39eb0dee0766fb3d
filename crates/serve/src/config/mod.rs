//! What is served, for whom and how: from TOML, from the command line, and checked.
//!
//! A [`Draft`] is what was said, with the places where it stands; [`Draft::check`] makes a [`Config`] of it, or tells everything that is
//! wrong with it at once. Two of them are compared by [`Config::changes`].

mod argument;
mod build;
mod check;
mod draft;
mod keys;
pub mod mount;
mod names;
mod reload;
mod source;
mod surroundings;
mod value;

#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use hoistway_core::Kind;
use hoistway_drive::Profile;

use crate::tenant::{Limits, Terms};

pub use draft::{Draft, Place, Problem};
pub use keys::{KEYS, Key, Section, markdown};
pub use reload::{Change, Live};
pub use surroundings::{Machine, Surroundings, text_of};
pub use value::NBD_PORT;

/// What the Unix socket is called where no path was told.
pub const SOCKET_NAME: &str = "hoistway.sock";
/// What the control socket is called where no path was told.
pub const CONTROL_NAME: &str = "hoistway-control.sock";
/// The longest file that is read as a configuration or a drive's profile: 1 MiB.
pub const FILE_BYTES_MAX: u64 = 1 << 20;

/// A checked configuration: names are unique, what is referred to is there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// Where clients connect; empty unless told: [`Config::listen_or_usual`].
    pub listen: Vec<Listen>,
    /// TCP beyond loopback is served without TLS all the same, and metrics are told there.
    pub insecure: bool,
    /// Devices.
    pub devices: Vec<DeviceConfig>,
    /// Exports.
    pub exports: Vec<ExportConfig>,
    /// Groups that tenants can be part of.
    pub groups: Vec<GroupConfig>,
    /// Tenants, in the order in which their rules are tried.
    pub tenants: Vec<TenantConfig>,
    /// Certificates, if TLS is offered.
    pub tls: Option<TlsConfig>,
    /// Where the control socket is.
    pub control: Option<PathBuf>,
    /// Where metrics are told over HTTP.
    pub metrics: Option<SocketAddr>,
    /// Where a recording goes.
    pub record: Option<PathBuf>,
}

/// Where clients connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// A Unix socket, made with this mode (0600 unless told).
    Unix {
        /// Its path.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// TCP.
    Tcp(SocketAddr),
}

/// A device.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceConfig {
    /// Its name: letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// Where its bytes lie.
    pub backend: BackendConfig,
    /// The model of a drive that says how long everything takes.
    pub drive: Option<Profile>,
    /// The elevator; none: chosen by whether the device rotates.
    pub elevator: Option<Kind>,
    /// Requests that it is given at once; none: the backend's default.
    pub depth: Option<u32>,
    /// Tunables of the elevator, by the kernel's names.
    pub tunables: Vec<(String, i64)>,
    /// Whether neighbouring requests are merged.
    pub merge: bool,
    /// The largest request in bytes: longer ones are split.
    pub request_bytes_max: u32,
    /// What it sustains, in bytes a second, for the admission of reservations.
    pub bandwidth: Option<u64>,
    /// What positioning costs a request, in ns, for the same.
    pub position_ns: Option<u64>,
}

/// Where the bytes of a device lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackendConfig {
    /// A file or a block device.
    File {
        /// Its path.
        path: PathBuf,
        /// Past the page cache: yes, no, or where it can be (`None`).
        direct: Option<bool>,
        /// Opened for reading only.
        read_only: bool,
    },
    /// Memory, all zeroes at first.
    Memory {
        /// Its size in bytes.
        bytes: u64,
    },
    /// Nothing: reads are zeroes, writes are lost.
    Null {
        /// Its size in bytes.
        bytes: u64,
    },
}

/// An export: a part of a device under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportConfig {
    /// The name that clients ask for; empty is the default export.
    pub name: String,
    /// A line for people.
    pub description: String,
    /// The device's name.
    pub device: String,
    /// Its first byte on the device.
    pub offset: u64,
    /// Its size in bytes; none: to the end of the device.
    pub size: Option<u64>,
    /// Writes are refused.
    pub read_only: bool,
    /// The tenants that may see it; none: all.
    pub tenants: Vec<String>,
}

/// A group of tenants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupConfig {
    /// Its name.
    pub name: String,
    /// Its share among its siblings, 1 to 1000.
    pub weight: u16,
    /// What all in it together may not exceed.
    pub limits: Limits,
    /// The group that it is part of; none is the root.
    pub parent: Option<String>,
}

/// A tenant and the rules by which its clients are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantConfig {
    /// Its name.
    pub name: String,
    /// All of these must hold; none at all: everybody.
    pub rules: Vec<Rule>,
    /// Its terms.
    pub terms: Terms,
}

/// What is asked of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// It chose this export; `*` stands for any characters.
    Export(String),
    /// It is this user's process on this machine.
    Uid(u32),
    /// It is this process.
    Pid(u32),
    /// Its process is in this control group, or in one below.
    Cgroup(String),
    /// Its process's command is called so; `*` stands for any characters.
    Comm(String),
    /// The name in its certificate (subject's common name, or a DNS name or e-mail address of the alternative names); `*` stands for any characters.
    Certificate(String),
    /// It comes from this network.
    Address {
        /// The network's address.
        network: std::net::IpAddr,
        /// How many bits of it count.
        bits: u8,
    },
}

/// Certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsConfig {
    /// The server's certificates, PEM, its own first.
    pub certificate: PathBuf,
    /// Its key, PEM.
    pub key: PathBuf,
    /// The authority that clients' certificates must come from; none: clients need none.
    pub client_authority: Option<PathBuf>,
    /// Nothing is served in plain text. Otherwise TLS is offered.
    pub required: bool,
}

/// A configuration that fits together.
#[derive(Clone, Debug)]
pub struct Checked {
    /// It.
    pub config: Config,
    /// What is worth a warning.
    pub warnings: Vec<Problem>,
}

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{}: cannot read the configuration: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// What it says is wrong.
    #[error("{}", lines(problems))]
    Wrong {
        /// Everything, in the order in which it was found.
        problems: Vec<Problem>,
    },
}

impl ConfigError {
    /// Whether the command line alone is at fault, and no file.
    pub fn is_of_arguments(&self) -> bool {
        match self {
            ConfigError::Read { .. } => false,
            ConfigError::Wrong { problems } => {
                problems.iter().all(|problem| matches!(problem.place, Place::Argument(_)))
            }
        }
    }
}

impl Draft {
    /// Reads a configuration file.
    ///
    /// # Errors
    /// [`ConfigError::Read`] when it is not there, no text, or longer than [`FILE_BYTES_MAX`]. What is wrong in it is told by
    /// [`Draft::check`].
    pub fn load(path: &Path) -> Result<Draft, ConfigError> {
        let text = text_of(path).map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        Ok(Draft::from_toml(&text, &path.display().to_string()))
    }
}

impl BackendConfig {
    /// What of it has to be so from the start and is not as in `old`, for people; none: what is open for `old` serves for this as well. A file that
    /// was opened for writing can be read.
    pub fn differs_from(&self, old: &BackendConfig) -> Option<&'static str> {
        let BackendConfig::File { path, direct, read_only } = self else {
            return (self != old).then_some("backend");
        };
        match old {
            BackendConfig::File { path: old, .. } if path != old => Some("backend"),
            BackendConfig::File { direct: old, .. } if direct != old => Some("`direct`"),
            BackendConfig::File { read_only: true, .. } if !read_only => {
                Some("its file is open for reading only, as all its exports were, and one is to be written to")
            }
            BackendConfig::File { .. } => None,
            BackendConfig::Memory { .. } | BackendConfig::Null { .. } => Some("backend"),
        }
    }

    /// Notes that a file is open as it is for `old`.
    pub fn keep_mode(&mut self, old: &BackendConfig) {
        if let (BackendConfig::File { read_only, .. }, BackendConfig::File { read_only: old, .. }) = (self, old) {
            *read_only = *old;
        }
    }
}

impl Config {
    /// Where clients connect: where it was told, else a Unix socket in the folder for sockets.
    pub fn listen_or_usual(&self, surroundings: &dyn Surroundings) -> Vec<Listen> {
        if self.listen.is_empty() {
            vec![Listen::Unix { path: surroundings.socket_folder().join(SOCKET_NAME), mode: 0o600 }]
        } else {
            self.listen.clone()
        }
    }
}

fn lines(problems: &[Problem]) -> String {
    let lines: Vec<String> = problems.iter().map(Problem::to_string).collect();
    lines.join("\n")
}
