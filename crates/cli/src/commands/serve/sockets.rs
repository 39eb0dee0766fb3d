//! Listening sockets: own ones, and those of systemd's socket activation.

use std::net::SocketAddr;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;

use anyhow::{Result, bail};
use hoistway_config::ListenPolicy;
use hoistway_config::{Config, HostEnvironment, Listen};
use hoistway_nbd::uri::{ServerAddress, TlsQuery, Uri};
use hoistway_reactor::Engine;
use hoistway_server::access::{Bound, bind_tcp, bind_unix, judge_socket};
use hoistway_server::systemd::Activated;
use hoistway_server::{Purpose, Server};
use rustix::net::getsockname;

use super::child::ServerAddresses;

/// Permissions of the control socket: its owner only.
const CONTROL_MODE: u32 = 0o600;

/// The sockets to open.
pub struct SocketPlan {
    activated: Vec<Activated>,
    tls_required: bool,
    insecure: bool,
    listen: Vec<Listen>,
    control: Option<PathBuf>,
    metrics: Option<SocketAddr>,
}

/// Open sockets.
pub struct OpenSockets {
    sockets: Vec<(OwnedFd, Purpose)>,
    /// Files of Unix sockets, which are removed with the value.
    _files: Vec<Bound>,
    /// Addresses of the exports.
    addresses: Vec<ServerAddress>,
}

impl SocketPlan {
    /// Plans the sockets of a configuration. Sockets of systemd replace those of the same purpose.
    pub fn new(config: &Config, activated: Vec<Activated>) -> SocketPlan {
        let is_activated = |purpose: Purpose| activated.iter().any(|socket| socket.purpose() == purpose);
        SocketPlan {
            listen: if is_activated(Purpose::Nbd) { Vec::new() } else { config.listen_or_default(&HostEnvironment) },
            control: config.control.clone().filter(|_| !is_activated(Purpose::Control)),
            metrics: config.metrics.filter(|_| !is_activated(Purpose::Metrics)),
            tls_required: config.tls.as_ref().is_some_and(|tls| tls.required),
            insecure: config.insecure,
            activated,
        }
    }

    /// Opens all sockets, or none.
    pub fn open(self) -> Result<OpenSockets> {
        let mut opened = OpenSockets { sockets: Vec::new(), _files: Vec::new(), addresses: Vec::new() };
        for activated in self.activated {
            let purpose = activated.purpose();
            let Activated { socket, name } = activated;
            match judge_socket(socket.as_fd(), purpose, self.tls_required, self.insecure) {
                ListenPolicy::Accept => {}
                ListenPolicy::Warn(text) => tracing::warn!("the socket `{name}` of systemd: {text}"),
                ListenPolicy::Refuse(text) => bail!("the socket `{name}` of systemd: {text}"),
            }
            tracing::info!(name, "socket received from systemd");
            match purpose {
                Purpose::Nbd => opened.add(socket),
                Purpose::Control | Purpose::Metrics => opened.sockets.push((socket, purpose)),
            }
        }
        for listen in &self.listen {
            match listen {
                Listen::Unix { path, mode } => {
                    let (socket, file) = bind_unix(path, *mode)?;
                    tracing::info!(socket = %path.display(), mode = format!("{mode:04o}"), "listening");
                    opened._files.push(file);
                    opened.add(socket);
                }
                Listen::Tcp(address) => {
                    let (socket, address) = listen_tcp(*address)?;
                    tracing::info!(%address, "listening");
                    opened.add(socket);
                }
            }
        }
        if let Some(path) = &self.control {
            let (socket, file) = bind_unix(path, CONTROL_MODE)?;
            tracing::info!(control = %path.display(), "listening");
            opened._files.push(file);
            opened.sockets.push((socket, Purpose::Control));
        }
        if let Some(address) = self.metrics {
            let (socket, address) = listen_tcp(address)?;
            tracing::info!(metrics = %address, "listening");
            opened.sockets.push((socket, Purpose::Metrics));
        }
        Ok(opened)
    }
}

impl OpenSockets {
    /// Adds a socket for clients. Its address is queried, because the system may have chosen the
    /// port.
    fn add(&mut self, socket: OwnedFd) {
        if let Some(address) = getsockname(&socket).ok().and_then(server_address) {
            self.addresses.push(address);
        }
        self.sockets.push((socket, Purpose::Nbd));
    }

    /// Addresses for the command that runs beside the server.
    pub fn addresses(&self, config: &Config) -> ServerAddresses {
        let uri = self.uris(config).into_iter().next().unwrap_or_default();
        let mut addresses = ServerAddresses { uri, ..ServerAddresses::default() };
        for address in &self.addresses {
            match address {
                ServerAddress::Unix { path } if addresses.socket.is_empty() => addresses.socket.clone_from(path),
                ServerAddress::Tcp { port, .. } if addresses.port.is_empty() => addresses.port = port.to_string(),
                _ => {}
            }
        }
        if let Some(export) = config.exports.first() {
            addresses.export.clone_from(&export.name);
        }
        addresses.tls = match &config.tls {
            None => "off",
            Some(tls) if tls.required => "require",
            Some(_) => "on",
        };
        addresses
    }

    /// Lets the server listen to the sockets.
    pub fn hand_over<E: Engine>(mut self, server: &mut Server<E>) -> OpenSockets {
        for (socket, purpose) in self.sockets.drain(..) {
            server.listen(socket, purpose);
        }
        self
    }

    /// The URI of each export at each address.
    pub fn uris(&self, config: &Config) -> Vec<String> {
        let tls = config.tls.as_ref().is_some_and(|tls| tls.required);
        let uri = |address: &ServerAddress, export: &str| {
            let (server, export) = (address.clone(), export.to_owned());
            Uri { tls, server, user: None, export, tls_query: TlsQuery::default() }.to_string()
        };
        let uris = |address| config.exports.iter().map(move |export| uri(address, &export.name));
        self.addresses.iter().flat_map(uris).collect()
    }
}

/// Listens on a TCP address. Returns the socket and its address, whose port the system chooses if
/// the port is 0.
fn listen_tcp(address: SocketAddr) -> Result<(OwnedFd, SocketAddr)> {
    let socket = bind_tcp(address)?;
    let bound = getsockname(&socket).ok().and_then(|bound| SocketAddr::try_from(bound).ok());
    Ok((socket, bound.unwrap_or(address)))
}

/// Address by which clients reach a socket; `localhost` for a socket that listens to all addresses.
fn server_address(address: rustix::net::SocketAddrAny) -> Option<ServerAddress> {
    if let Ok(unix) = rustix::net::SocketAddrUnix::try_from(address.clone()) {
        let path = unix.path()?.to_str().ok()?.to_owned();
        return Some(ServerAddress::Unix { path });
    }
    let address = SocketAddr::try_from(address).ok()?;
    let host = match address.ip() {
        ip if ip.is_unspecified() => "localhost".to_owned(),
        ip => ip.to_string(),
    };
    Some(ServerAddress::Tcp { host, port: address.port() })
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::unix::net::UnixListener;

    use super::*;

    fn activated(name: &str, address: &str) -> Activated {
        Activated { socket: TcpListener::bind(address).expect("a free port").into(), name: name.to_owned() }
    }

    #[test]
    fn sockets_of_systemd_replace_own_sockets_of_the_same_purpose() {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = UnixListener::bind(folder.path().join("c")).expect("a socket");
        let activated = vec![Activated { socket: socket.into(), name: "control".to_owned() }];
        let listen = vec![Listen::Unix { path: folder.path().join("s"), mode: 0o600 }];
        let config = Config { listen: listen.clone(), control: Some(folder.path().join("own")), ..Config::default() };
        let plan = SocketPlan::new(&config, activated);
        assert_eq!((plan.listen.clone(), plan.control.clone()), (listen, None));
        let opened = plan.open().expect("the sockets can be opened");
        let purposes: Vec<Purpose> = opened.sockets.iter().map(|(_, purpose)| *purpose).collect();
        assert_eq!(purposes, [Purpose::Control, Purpose::Nbd]);
    }

    #[test]
    fn the_listen_policy_covers_sockets_of_systemd() {
        let open = |name: &str, address: &str, insecure: bool| {
            let config = Config { insecure, ..Config::default() };
            let mut plan = SocketPlan::new(&config, vec![activated(name, address)]);
            plan.listen.clear();
            plan.open().err().map(|error| error.to_string()).unwrap_or_default()
        };
        for (name, address, insecure, expected) in [
            ("nbd", "127.0.0.1:0", false, ""),
            ("nbd", "0.0.0.0:0", false, "require TLS"),
            ("nbd", "0.0.0.0:0", true, ""),
            ("metrics", "127.0.0.1:0", false, ""),
            ("metrics", "0.0.0.0:0", false, "in plain text"),
            ("control", "127.0.0.1:0", true, "use a Unix socket"),
        ] {
            let error = open(name, address, insecure);
            let holds = error.contains(expected) && error.is_empty() == expected.is_empty();
            assert!(holds, "{name} at {address}: {error}");
        }
    }
}
