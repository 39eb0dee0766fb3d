//! Where clients connect: sockets of our own, or those that systemd hands over.

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

use super::child::Reach;

/// The control socket is for whoever runs the server.
const CONTROL_MODE: u32 = 0o600;

/// Where clients will connect.
pub struct WaysIn {
    activated: Vec<Activated>,
    tls_required: bool,
    insecure: bool,
    listen: Vec<Listen>,
    control: Option<PathBuf>,
    metrics: Option<SocketAddr>,
}

/// Where clients can connect.
pub struct Opened {
    sockets: Vec<(OwnedFd, Purpose)>,
    /// Keeps the files of Unix sockets; they go when it goes.
    _files: Vec<Bound>,
    /// Where exports are reached.
    places: Vec<ServerAddress>,
}

impl WaysIn {
    /// What a configuration says, or, for each end by itself, what systemd hands over.
    pub fn new(config: &Config, activated: Vec<Activated>) -> WaysIn {
        let handed = |purpose: Purpose| activated.iter().any(|socket| socket.purpose() == purpose);
        WaysIn {
            listen: if handed(Purpose::Nbd) { Vec::new() } else { config.listen_or_default(&HostEnvironment) },
            control: config.control.clone().filter(|_| !handed(Purpose::Control)),
            metrics: config.metrics.filter(|_| !handed(Purpose::Metrics)),
            tls_required: config.tls.as_ref().is_some_and(|tls| tls.required),
            insecure: config.insecure,
            activated,
        }
    }

    /// Opens all of them, or none.
    pub fn open(self) -> Result<Opened> {
        let mut opened = Opened { sockets: Vec::new(), _files: Vec::new(), places: Vec::new() };
        for activated in self.activated {
            let purpose = activated.purpose();
            let Activated { socket, name } = activated;
            match judge_socket(socket.as_fd(), purpose, self.tls_required, self.insecure) {
                ListenPolicy::Accept => {}
                ListenPolicy::Warn(text) => tracing::warn!("the socket `{name}` of systemd: {text}"),
                ListenPolicy::Refuse(text) => bail!("the socket `{name}` that systemd hands over: {text}"),
            }
            tracing::info!(name, "handed over by systemd");
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
                    tracing::info!(%address, "listening");
                    opened.add(bind_tcp(*address)?);
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
            tracing::info!(metrics = %address, "listening");
            opened.sockets.push((bind_tcp(address)?, Purpose::Metrics));
        }
        Ok(opened)
    }
}

impl Opened {
    /// A socket for clients. Where it is, it says itself: a port that was not told has been chosen
    /// by now.
    fn add(&mut self, socket: OwnedFd) {
        if let Some(place) = getsockname(&socket).ok().and_then(place_of) {
            self.places.push(place);
        }
        self.sockets.push((socket, Purpose::Nbd));
    }

    /// How a program that runs beside the server finds it.
    pub fn reach(&self, config: &Config) -> Reach {
        let mut reach = Reach { uri: self.uris(config).into_iter().next().unwrap_or_default(), ..Reach::default() };
        for place in &self.places {
            match place {
                ServerAddress::Unix { path } if reach.socket.is_empty() => reach.socket.clone_from(path),
                ServerAddress::Tcp { port, .. } if reach.port.is_empty() => reach.port = port.to_string(),
                _ => {}
            }
        }
        if let Some(export) = config.exports.first() {
            reach.export.clone_from(&export.name);
        }
        reach.tls = match &config.tls {
            None => "off",
            Some(tls) if tls.required => "require",
            Some(_) => "on",
        };
        reach
    }

    /// Gives the sockets to the server.
    pub fn hand_over<E: Engine>(mut self, server: &mut Server<E>) -> Opened {
        for (socket, purpose) in self.sockets.drain(..) {
            server.listen(socket, purpose);
        }
        self
    }

    /// The URI of each export at each place.
    pub fn uris(&self, config: &Config) -> Vec<String> {
        let tls = config.tls.as_ref().is_some_and(|tls| tls.required);
        let uri = |place: &ServerAddress, export: &str| {
            let (place, export) = (place.clone(), export.to_owned());
            Uri { tls, server: place, user: None, export, tls_query: TlsQuery::default() }.to_string()
        };
        self.places.iter().flat_map(|place| config.exports.iter().map(|export| uri(place, &export.name))).collect()
    }
}

/// A socket's own address as clients are told it; of one that listens to every address, this
/// machine's own.
fn place_of(address: rustix::net::SocketAddrAny) -> Option<ServerAddress> {
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
        Activated { socket: TcpListener::bind(address).expect("a port").into(), name: name.to_owned() }
    }

    #[test]
    fn each_end_has_its_own_socket_unless_it_was_handed_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = UnixListener::bind(folder.path().join("c")).expect("a socket");
        let activated = vec![Activated { socket: socket.into(), name: "control".to_owned() }];
        let listen = vec![Listen::Unix { path: folder.path().join("s"), mode: 0o600 }];
        let config = Config { listen: listen.clone(), control: Some(folder.path().join("own")), ..Config::default() };
        let ways_in = WaysIn::new(&config, activated);
        assert_eq!((ways_in.listen.clone(), ways_in.control.clone()), (listen, None));
        let opened = ways_in.open().expect("they can be opened");
        let purposes: Vec<Purpose> = opened.sockets.iter().map(|(_, purpose)| *purpose).collect();
        assert_eq!(purposes, [Purpose::Control, Purpose::Nbd]);
    }

    #[test]
    fn a_socket_that_was_handed_over_is_judged_like_an_address() {
        let open = |name: &str, address: &str, insecure: bool| {
            let config = Config { insecure, ..Config::default() };
            let mut ways_in = WaysIn::new(&config, vec![activated(name, address)]);
            ways_in.listen.clear();
            ways_in.open().err().map(|error| error.to_string()).unwrap_or_default()
        };
        for (name, address, insecure, said) in [
            ("nbd", "127.0.0.1:0", false, ""),
            ("nbd", "0.0.0.0:0", false, "require TLS"),
            ("nbd", "0.0.0.0:0", true, ""),
            ("metrics", "127.0.0.1:0", false, ""),
            ("metrics", "0.0.0.0:0", false, "in plain text"),
            ("control", "127.0.0.1:0", true, "make it a Unix socket"),
        ] {
            let told = open(name, address, insecure);
            assert!(told.contains(said) && told.is_empty() == said.is_empty(), "{name} at {address}: {told}");
        }
    }
}
