//! The data of a checked configuration.

use std::net::SocketAddr;
use std::path::PathBuf;

use hoistway_drive::Profile;
use hoistway_nbd::uri::Uri;
use hoistway_qos::{DiskQueueConfig, Limits, Terms};

use crate::draft::Problem;
use crate::environment::Environment;

/// The file name of the default Unix socket.
pub const SOCKET_NAME: &str = "hoistway.sock";
/// The file name of the default control socket.
pub const CONTROL_NAME: &str = "hoistway-control.sock";
/// A checked configuration: names are unique, and every reference names an existing entry.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// Sockets and addresses for clients; empty if not configured, see
    /// [`Config::listen_or_default`].
    pub listen: Vec<Listen>,
    /// Allows TCP beyond loopback without TLS, and metrics there.
    pub insecure: bool,
    /// The devices.
    pub devices: Vec<DeviceConfig>,
    /// The exports.
    pub exports: Vec<ExportConfig>,
    /// The groups that tenants can be members of.
    pub groups: Vec<GroupConfig>,
    /// The tenants, in the order in which their rules are tried.
    pub tenants: Vec<TenantConfig>,
    /// The certificates, if TLS is offered.
    pub tls: Option<TlsConfig>,
    /// The path of the control socket.
    pub control: Option<PathBuf>,
    /// The address of the metrics endpoint.
    pub metrics: Option<SocketAddr>,
    /// The file of the recording.
    pub record: Option<PathBuf>,
}

/// A socket or an address for clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// A Unix socket.
    Unix {
        /// The path of the socket.
        path: PathBuf,
        /// The file mode of the socket; 0600 by default.
        mode: u32,
    },
    /// A TCP address.
    Tcp(SocketAddr),
}

/// A device: a backend, an optional drive model above it, and the queue that its exports share.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceConfig {
    /// The name and the queue: elevator, depth, merging, figures.
    pub queue: DiskQueueConfig,
    /// The storage that holds the data.
    pub backend: BackendConfig,
    /// The drive model that determines service times.
    pub drive: Option<Profile>,
}

/// The storage that holds the bytes of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackendConfig {
    /// A file or a block device.
    File {
        /// The path of the file.
        path: PathBuf,
        /// Direct I/O: required, off, or where the file allows it (`None`).
        direct: Option<bool>,
        /// The file is opened for reading only.
        read_only: bool,
        /// The file is opened for writing even if it is in use: mounted, swap, part of a volume.
        force_in_use: bool,
    },
    /// Memory, all zeroes at the start.
    Memory {
        /// The size in bytes.
        bytes: u64,
    },
    /// An export of another NBD server.
    Remote(Box<RemoteConfig>),
    /// No storage: reads return zeroes, writes are discarded.
    Null {
        /// The size in bytes.
        bytes: u64,
    },
}

/// An export of another NBD server, and the way to use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteConfig {
    /// The server and the name of the export.
    pub uri: Uri,
    /// The maximum number of connections.
    pub connections: u32,
    /// The time in ns after which requests that the remote has not completed fail.
    pub timeout_ns: u64,
    /// The maximum number of bytes of completed writes that are kept until they are flushed; 0
    /// keeps none.
    pub unflushed_bytes: u64,
    /// The certificates, if the URI requires TLS.
    pub tls: Option<RemoteTlsConfig>,
    /// All exports are read-only: the remote may be, too.
    pub read_only: bool,
}

/// The certificates of a TLS connection to a remote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteTlsConfig {
    /// The path of the authorities, one of which must have issued the remote's certificate, PEM.
    pub authority: PathBuf,
    /// The paths of the certificate chain that the remote is shown, and of its key, PEM.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// The name that the remote's certificate must have.
    pub host: String,
}

impl RemoteConfig {
    /// The default number of connections.
    pub const CONNECTIONS: u32 = 4;
    /// The default time after which requests fail, in ns.
    pub const TIMEOUT_NS: u64 = 30_000_000_000;
    /// The default number of bytes of completed writes that are kept.
    pub const UNFLUSHED_BYTES: u64 = 64 << 20;

    /// Creates a configuration with defaults, without TLS.
    pub fn new(uri: Uri) -> RemoteConfig {
        RemoteConfig {
            uri,
            connections: RemoteConfig::CONNECTIONS,
            timeout_ns: RemoteConfig::TIMEOUT_NS,
            unflushed_bytes: RemoteConfig::UNFLUSHED_BYTES,
            tls: None,
            read_only: false,
        }
    }
}

/// An export: a range of a device under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportConfig {
    /// The name that clients request; the empty name is the default export.
    pub name: String,
    /// A description for users, which clients can query.
    pub description: String,
    /// The name of the device.
    pub device: String,
    /// The first byte of the export on the device.
    pub offset: u64,
    /// The size in bytes; `None`: to the end of the device.
    pub size: Option<u64>,
    /// Writes are refused.
    pub read_only: bool,
    /// The tenants whose clients may use the export; empty: all.
    pub tenants: Vec<String>,
}

/// A group of tenants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupConfig {
    /// The name of the group.
    pub name: String,
    /// The share among siblings, 1 to 1000.
    pub weight: u16,
    /// The limits on all members together.
    pub limits: Limits,
    /// The parent group; `None` is the root.
    pub parent: Option<String>,
}

/// A tenant and the rules that assign clients to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantConfig {
    /// The name of the tenant.
    pub name: String,
    /// The rules, all of which must match; a tenant without rules matches every client.
    pub rules: Vec<Rule>,
    /// The terms: priority, weight, reservation, limits.
    pub terms: Terms,
}

/// A property that a client must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The requested export matches this pattern, in which `*` stands for any characters.
    Export(String),
    /// The client is a process of this user on a Unix socket.
    Uid(u32),
    /// The client is this process on a Unix socket.
    Pid(u32),
    /// The client's process is in this control group or in one below.
    Cgroup(String),
    /// The command of the client's process matches this pattern.
    Comm(String),
    /// A name in the client's certificate matches this pattern: the subject's common name, or a DNS
    /// name or e-mail address among the alternative names.
    Certificate(String),
    /// The client's address belongs to this network.
    Address {
        /// The address of the network.
        network: std::net::IpAddr,
        /// The length of the network prefix in bits.
        bits: u8,
    },
}

/// The TLS certificates and their policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsConfig {
    /// The path of the server's certificate chain, PEM, the server's own certificate first.
    pub certificate: PathBuf,
    /// The path of the server's private key, PEM.
    pub key: PathBuf,
    /// The path of the authorities that must have issued clients' certificates; `None`: clients
    /// need no certificate.
    pub client_authority: Option<PathBuf>,
    /// TLS is required. If false, TLS is offered beside plain text.
    pub required: bool,
}

/// A consistent configuration and its warnings.
#[derive(Clone, Debug)]
pub struct CheckedConfig {
    /// The checked configuration.
    pub config: Config,
    /// Values that are allowed but are likely mistakes.
    pub warnings: Vec<Problem>,
}

impl BackendConfig {
    /// Returns the property that differs from `old` and needs a restart; `None` if a backend opened
    /// for `old` serves for this one too. A file opened for writing also serves for reading.
    /// `force_in_use` only matters to the next open.
    pub fn differs_from(&self, old: &BackendConfig) -> Option<&'static str> {
        if let (BackendConfig::Remote(new), BackendConfig::Remote(old)) = (self, old) {
            return match (RemoteConfig { read_only: old.read_only, ..(**new).clone() }) != **old {
                true => Some("backend, or the settings of its connections"),
                false if old.read_only && !new.read_only => {
                    Some("its remote is open for reading only, and one of its exports is now writable")
                }
                false => None,
            };
        }
        let BackendConfig::File { path, direct, read_only, .. } = self else {
            return (self != old).then_some("backend");
        };
        match old {
            BackendConfig::File { path: old, .. } if path != old => Some("backend"),
            BackendConfig::File { direct: old, .. } if direct != old => Some("`direct`"),
            BackendConfig::File { read_only: true, .. } if !read_only => {
                Some("its file is open for reading only, and one of its exports is now writable")
            }
            BackendConfig::File { .. } => None,
            BackendConfig::Memory { .. } | BackendConfig::Null { .. } | BackendConfig::Remote(_) => Some("backend"),
        }
    }

    /// Keeps the mode in which the file is open for `old`.
    pub fn keep_mode(&mut self, old: &BackendConfig) {
        match (self, old) {
            (BackendConfig::File { read_only, .. }, BackendConfig::File { read_only: old, .. }) => *read_only = *old,
            (BackendConfig::Remote(new), BackendConfig::Remote(old)) => new.read_only = old.read_only,
            _ => {}
        }
    }
}

impl Config {
    /// Returns the configured sockets and addresses, or the default Unix socket in the directory
    /// for sockets.
    pub fn listen_or_default(&self, environment: &dyn Environment) -> Vec<Listen> {
        if self.listen.is_empty() {
            vec![Listen::Unix { path: environment.socket_directory().join(SOCKET_NAME), mode: 0o600 }]
        } else {
            self.listen.clone()
        }
    }
}
