//! TLS on a connection: bytes of records on one side, plain bytes on the other, no sockets.

use std::io::{Read, Write};
use std::sync::Arc;

use rustls::{ServerConfig, ServerConnection};

use crate::access::certificate_names;

/// A connection's encryption.
pub(crate) struct Channel {
    tls: ServerConnection,
    /// The names in the client's certificate; known once the handshake is over.
    names: Option<Vec<String>>,
}

/// What came of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InputEvent {
    /// There may be more.
    Open,
    /// The client closed its side as TLS has it.
    Closed,
}

impl Channel {
    /// Encryption that begins with the client's next byte.
    pub(crate) fn new(config: Arc<ServerConfig>) -> Result<Channel, rustls::Error> {
        let mut tls = ServerConnection::new(config)?;
        // What is sent is bounded by what may be under way; a second bound would only lose bytes.
        tls.set_buffer_limit(None);
        Ok(Channel { tls, names: None })
    }

    /// Takes records and adds what they said to `plain`. What the server has to say to it, an alert
    /// for instance, is waiting in [`Channel::records`] afterwards also when this fails.
    pub(crate) fn receive(&mut self, mut bytes: &[u8], plain: &mut Vec<u8>) -> Result<InputEvent, rustls::Error> {
        loop {
            let taken = if bytes.is_empty() { 0 } else { self.tls.read_tls(&mut bytes).unwrap_or(0) };
            let state = self.tls.process_new_packets()?;
            let had = plain.len();
            plain.reserve(state.plaintext_bytes_to_read());
            // Reading from memory fails only with "nothing more for now" and "closed without a
            // word".
            let _ = self.tls.reader().take(state.plaintext_bytes_to_read() as u64).read_to_end(plain);
            if state.peer_has_closed() {
                return Ok(InputEvent::Closed);
            }
            if bytes.is_empty() {
                return Ok(InputEvent::Open);
            }
            if taken == 0 && plain.len() == had {
                return Err(rustls::Error::General("the client's records do not fit any more".into()));
            }
        }
    }

    /// Whether the handshake is still under way.
    pub(crate) fn is_handshaking(&self) -> bool {
        self.tls.is_handshaking()
    }

    /// Encrypts.
    pub(crate) fn send(&mut self, plain: &[u8]) {
        // The writer's buffer has no bound: it takes everything.
        let _ = self.tls.writer().write_all(plain);
    }

    /// Adds the records that are to be sent.
    pub(crate) fn records(&mut self, out: &mut Vec<u8>) {
        while self.tls.wants_write() {
            match self.tls.write_tls(out) {
                Ok(bytes) if bytes > 0 => {}
                _ => break,
            }
        }
    }

    /// Whether there are records to be sent.
    pub(crate) fn has_records(&self) -> bool {
        self.tls.wants_write()
    }

    /// Says goodbye.
    pub(crate) fn close(&mut self) {
        self.tls.send_close_notify();
    }

    /// The names in the client's certificate, as far as they were asked for since the handshake was
    /// over.
    pub(crate) fn known_names(&self) -> &[String] {
        self.names.as_deref().unwrap_or_default()
    }

    /// The names in the client's certificate, none if it showed none.
    pub(crate) fn client_names(&mut self) -> &[String] {
        if self.is_handshaking() {
            return &[];
        }
        let tls = &self.tls;
        self.names.get_or_insert_with(|| {
            tls.peer_certificates().and_then(<[_]>::first).map(certificate_names).unwrap_or_default()
        })
    }
}

impl std::fmt::Debug for Channel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Channel").field("handshaking", &self.is_handshaking()).finish_non_exhaustive()
    }
}
