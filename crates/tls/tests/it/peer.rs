//! A connection in memory: a channel on one side, a plain connection of the TLS library on the
//! other.

use std::io::{Read as _, Write as _};
use std::sync::Arc;

use hoistway_tls::{Channel, ChannelState, tls_client, tls_server};
use rustls::{ClientConnection, Connection, ServerConnection, SupportedProtocolVersion};

use crate::authority::{Authority, SERVER};

/// Which side the channel is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Server,
    Client,
}

pub struct Pair {
    pub channel: Channel,
    pub peer: Connection,
    /// The plain text that the channel received, and that the peer received.
    pub received: Vec<u8>,
    pub peer_received: Vec<u8>,
    /// The state that the channel reported last.
    pub state: ChannelState,
}

impl Pair {
    /// A server with the certificate `server`, which verifies clients if `shows` is a certificate.
    pub fn new(authority: &Authority, side: Side, shows: Option<&str>) -> Pair {
        Pair::of(authority, side, "server", shows.is_some(), shows)
    }

    /// A server with a certificate, and a client that shows one or none.
    pub fn of(authority: &Authority, side: Side, name: &str, verifies_clients: bool, shows: Option<&str>) -> Pair {
        let server = tls_server(&authority.server(name, verifies_clients)).expect("good files").server;
        let client = tls_client(&authority.client(shows)).expect("good files").client;
        let name = SERVER.try_into().expect("a name");
        let (channel, peer) = match side {
            Side::Server => (
                Channel::new(server).expect("a channel"),
                ClientConnection::new(client, name).expect("a client").into(),
            ),
            Side::Client => (
                Channel::client(client, name).expect("a channel"),
                ServerConnection::new(server).expect("a server").into(),
            ),
        };
        Pair::with(channel, peer)
    }

    /// A channel as a server beside a client with one version of the protocol.
    pub fn of_version(authority: &Authority, version: &'static SupportedProtocolVersion) -> Pair {
        let server = tls_server(&authority.server("server", false)).expect("good files").server;
        let mut roots = rustls::RootCertStore::empty();
        let pem = std::fs::read(authority.path("ca.pem")).expect("the authority");
        let root = rustls::pki_types::pem::PemObject::from_pem_slice(&pem).expect("a certificate");
        roots.add(root).expect("an authority");
        let client = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_protocol_versions(&[version])
            .expect("a version")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let peer = ClientConnection::new(Arc::new(client), SERVER.try_into().expect("a name")).expect("a client");
        Pair::with(Channel::new(server).expect("a channel"), peer.into())
    }

    fn with(channel: Channel, mut peer: Connection) -> Pair {
        peer.set_buffer_limit(None);
        Pair { channel, peer, received: Vec::new(), peer_received: Vec::new(), state: ChannelState::Open }
    }

    /// Takes what the peer has to send.
    pub fn of_peer(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        while self.peer.wants_write() {
            self.peer.write_tls(&mut bytes).expect("into memory");
        }
        bytes
    }

    /// Takes what the channel has to send.
    pub fn of_channel(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.channel.records(&mut bytes);
        assert!(!self.channel.has_records());
        bytes
    }

    /// Passes bytes to the channel.
    pub fn pass_to_channel(&mut self, bytes: &[u8]) -> Result<(), rustls::Error> {
        self.state = self.channel.receive(bytes, &mut self.received)?;
        Ok(())
    }

    /// Passes bytes to the peer.
    pub fn pass_to_peer(&mut self, mut bytes: &[u8]) -> Result<(), rustls::Error> {
        while !bytes.is_empty() {
            if self.peer.read_tls(&mut bytes).expect("from memory") == 0 {
                break;
            }
            let state = self.peer.process_new_packets()?;
            let mut plain = vec![0; state.plaintext_bytes_to_read()];
            self.peer.reader().read_exact(&mut plain).expect("it is there");
            self.peer_received.extend(plain);
        }
        Ok(())
    }

    /// Exchanges everything that both have to send. Each direction comes in pieces: `cuts` returns
    /// the length of the next one, at least 1.
    pub fn exchange(&mut self, mut cuts: impl FnMut() -> usize) -> Result<(), rustls::Error> {
        loop {
            let (to_channel, to_peer) = (self.of_peer(), self.of_channel());
            if to_channel.is_empty() && to_peer.is_empty() {
                return Ok(());
            }
            let mut rest = to_channel.as_slice();
            while !rest.is_empty() {
                let (piece, after) = rest.split_at(cuts().min(rest.len()));
                self.pass_to_channel(piece)?;
                rest = after;
            }
            let mut rest = to_peer.as_slice();
            while !rest.is_empty() {
                let (piece, after) = rest.split_at(cuts().min(rest.len()));
                self.pass_to_peer(piece)?;
                rest = after;
            }
        }
    }

    /// Shakes hands.
    pub fn connect(mut self) -> Pair {
        self.exchange(|| usize::MAX).expect("good certificates");
        assert!(!self.channel.is_handshaking() && !self.peer.is_handshaking());
        self
    }

    pub fn peer_sends(&mut self, plain: &[u8]) {
        self.peer.writer().write_all(plain).expect("the buffer has no limit");
    }
}

/// Bytes that do not repeat soon.
pub fn pattern(length: usize) -> Vec<u8> {
    (0..length as u64).map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}
