//! The TLS of a connection: records on one side, plain bytes on the other.

use std::io::{Read, Write};
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, Connection, ServerConfig, ServerConnection};

use crate::names::names as certificate_names;

/// The TLS state of a connection.
pub struct Channel {
    tls: Connection,
    /// The names in the client's certificate, extracted on first use after the handshake.
    names: Option<Vec<String>>,
}

/// The state of the peer's side after received bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelState {
    /// The peer may send more.
    Open,
    /// The peer sent a close_notify alert.
    Closed,
}

impl Channel {
    /// Starts TLS as a server, with the client's next byte.
    ///
    /// # Errors
    /// The TLS library refuses the configuration.
    pub fn new(config: Arc<ServerConfig>) -> Result<Channel, rustls::Error> {
        Ok(Channel::with(ServerConnection::new(config)?.into()))
    }

    /// Starts TLS as a client of the server with this name.
    ///
    /// # Errors
    /// The TLS library refuses the configuration.
    pub fn client(config: Arc<ClientConfig>, name: ServerName<'static>) -> Result<Channel, rustls::Error> {
        Ok(Channel::with(ClientConnection::new(config, name)?.into()))
    }

    fn with(mut tls: Connection) -> Channel {
        // The memory budget bounds the output; a second bound would lose bytes.
        tls.set_buffer_limit(None);
        Channel { tls, names: None }
    }

    /// Decrypts records and appends their content to `plain`. Records for the peer, for example an
    /// alert, are available from [`Channel::records`] afterwards, even after an error.
    ///
    /// # Errors
    /// The peer violated the protocol, or a certificate is not valid.
    pub fn receive(&mut self, mut bytes: &[u8], plain: &mut Vec<u8>) -> Result<ChannelState, rustls::Error> {
        loop {
            let taken = if bytes.is_empty() { 0 } else { self.tls.read_tls(&mut bytes).unwrap_or(0) };
            let state = self.tls.process_new_packets()?;
            let had = plain.len();
            plain.reserve(state.plaintext_bytes_to_read());
            // A read from memory fails only without more data, or at an end without close_notify.
            let _ = self.tls.reader().take(state.plaintext_bytes_to_read() as u64).read_to_end(plain);
            if state.peer_has_closed() {
                return Ok(ChannelState::Closed);
            }
            if bytes.is_empty() {
                return Ok(ChannelState::Open);
            }
            if taken == 0 && plain.len() == had {
                return Err(rustls::Error::General("the records exceed the buffer".into()));
            }
        }
    }

    /// Returns true before the end of the TLS handshake.
    pub fn is_handshaking(&self) -> bool {
        self.tls.is_handshaking()
    }

    /// Encrypts bytes; the records are available from [`Channel::records`].
    pub fn send(&mut self, plain: &[u8]) {
        // The writer's buffer is unbounded and accepts all bytes.
        let _ = self.tls.writer().write_all(plain);
    }

    /// Appends the records for the peer to `out`.
    pub fn records(&mut self, out: &mut Vec<u8>) {
        while self.tls.wants_write() {
            match self.tls.write_tls(out) {
                Ok(bytes) if bytes > 0 => {}
                _ => break,
            }
        }
    }

    /// Returns true if there are records for the peer.
    pub fn has_records(&self) -> bool {
        self.tls.wants_write()
    }

    /// Sends a close_notify alert.
    pub fn close(&mut self) {
        self.tls.send_close_notify();
    }

    /// Returns the names in the client's certificate if [`Channel::client_names`] has extracted
    /// them.
    pub fn known_names(&self) -> &[String] {
        self.names.as_deref().unwrap_or_default()
    }

    /// Returns the names in the client's certificate; empty without a certificate or before the end
    /// of the handshake.
    pub fn client_names(&mut self) -> &[String] {
        if self.is_handshaking() {
            return &[];
        }
        let tls = &self.tls;
        self.names.get_or_insert_with(|| {
            tls.peer_certificates().and_then(<[CertificateDer<'_>]>::first).map(certificate_names).unwrap_or_default()
        })
    }
}

impl std::fmt::Debug for Channel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Channel").field("handshaking", &self.is_handshaking()).finish_non_exhaustive()
    }
}
