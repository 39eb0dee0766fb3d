//! The handshake: greeting, options, until a client has chosen an export.

use crate::server::Session;
use crate::{Export, Limits};

/// The exports that a client may see. Whoever answers knows who asks.
pub trait Catalogue {
    /// Names and descriptions for LIST.
    fn list(&self) -> Vec<(String, String)>;
    /// The export of this name.
    fn find(&self, name: &str) -> Option<Export>;
}

/// Whether a connection is encrypted, can be, must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tls {
    /// The server has no certificate: STARTTLS is refused.
    Off,
    /// A client may.
    Offered,
    /// Nothing but STARTTLS and ABORT is answered before (the protocol's FORCEDTLS).
    Required,
}

/// Where a handshake stands after some bytes.
#[derive(Debug)]
pub enum Progress {
    /// More bytes are needed.
    More,
    /// STARTTLS was acknowledged: once the reply is sent, what follows is TLS. Bytes that came after the option in plain text are an attack and
    /// close the connection. Go on with [`Handshake::encrypted`].
    StartTls,
    /// An export was chosen.
    Ready(Box<Session>),
    /// The client said goodbye (ABORT): send what is to be sent, then close.
    Aborted,
    /// The client broke the protocol where no error can be answered: close.
    Violated(Violation),
}

/// Why a server closes a connection without another word.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// A magic number is wrong.
    #[error("wrong magic number {found:#x} where {wanted:#x} belongs")]
    Magic {
        /// What was found.
        found: u64,
        /// What belongs there.
        wanted: u64,
    },
}

/// A handshake under way.
#[derive(Debug)]
pub struct Handshake {
    tls: Tls,
    limits: Limits,
}

impl Handshake {
    /// A new connection; `out` gets the greeting.
    pub fn new(tls: Tls, limits: Limits, out: &mut Vec<u8>) -> Handshake {
        let _ = out;
        Handshake { tls, limits }
    }

    /// Takes bytes; answers how many of them were used (call again with the rest and what has come since) and where things stand. Replies
    /// go to `out`.
    pub fn receive(&mut self, input: &[u8], catalogue: &dyn Catalogue, out: &mut Vec<u8>) -> (usize, Progress) {
        let _ = (input, catalogue, out, self.tls, self.limits);
        (0, Progress::More)
    }

    /// The connection is encrypted now.
    pub fn encrypted(&mut self) {}
}
