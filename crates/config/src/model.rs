//! The data of a checked configuration.

use std::net::SocketAddr;
use std::path::PathBuf;

use hoistway_drive::Profile;
use hoistway_qos::{DiskQueueConfig, Limits, Terms};

use crate::draft::Problem;
use crate::surroundings::Surroundings;

/// What the Unix socket is called where no path was told.
pub const SOCKET_NAME: &str = "hoistway.sock";
/// What the control socket is called where no path was told.
pub const CONTROL_NAME: &str = "hoistway-control.sock";
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

/// A device: a backend, with the model of a drive above it or not, and the queue that its exports
/// share.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceConfig {
    /// The name and the queue: elevator, depth, merging, figures.
    pub queue: DiskQueueConfig,
    /// The storage that holds the data.
    pub backend: BackendConfig,
    /// The drive model that determines service times.
    pub drive: Option<Profile>,
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
    /// The name in its certificate (subject's common name, or a DNS name or e-mail address of the
    /// alternative names); `*` stands for any characters.
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

impl BackendConfig {
    /// What of it has to be so from the start and is not as in `old`, for people; none: what is
    /// open for `old` serves for this as well. A file that was opened for writing can be read.
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
