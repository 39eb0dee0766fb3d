//! Errors of a connection to another server.

use std::io;

use hoistway_nbd::client::{HandshakeError, ProtocolError};
use hoistway_nbd::wire::{option, rep};
use hoistway_tls::TlsError;

/// Why a remote export cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// The server cannot be reached.
    #[error("cannot connect: {0}")]
    Connect(#[source] io::Error),
    /// The server did not answer in time.
    #[error("no answer within {} s", .0 / 1_000_000_000)]
    TimedOut(u64),
    /// The connection ended.
    #[error("the server closed the connection during the handshake")]
    Closed,
    /// The handshake failed.
    #[error("{}", handshake_text(.0))]
    Handshake(#[from] HandshakeError),
    /// The certificates cannot be read.
    #[error(transparent)]
    Certificates(#[from] TlsError),
    /// TLS failed, for example because a certificate is not valid.
    #[error("TLS failed: {0}")]
    Tls(#[from] rustls::Error),
    /// The server violated the protocol.
    #[error("the server violated the protocol: {0}")]
    Protocol(#[from] ProtocolError),
    /// The remote refuses writes, and an export of it does not.
    #[error(
        "the server exports it read-only: make all its exports read-only, too (`read_only = true`, or read-only in --export)"
    )]
    ReadOnly,
    /// The export has no usable size.
    #[error("its size is {size} bytes, and its blocks have {block} bytes: no block fits")]
    Empty {
        /// The size in bytes.
        size: u64,
        /// The minimum block size in bytes.
        block: u32,
    },
    /// The export has changed since the start.
    #[error("{0}: restart the server to use it")]
    Changed(String),
    /// The engine failed, or the process received a signal to end.
    #[error(transparent)]
    Engine(io::Error),
}

/// Describes a failed handshake with what would be right, where that is known.
fn handshake_text(error: &HandshakeError) -> String {
    let HandshakeError::Refused { option, kind, text } = error else {
        return format!("the handshake failed: {error}");
    };
    let reason = if text.is_empty() { String::new() } else { format!(": {text}") };
    match *kind {
        rep::ERR_UNKNOWN if *option == option::GO => format!("the server has no export of this name{reason}"),
        rep::ERR_TLS_REQD => format!("the server requires TLS, which nbds:// and nbds+unix:// use{reason}"),
        rep::ERR_POLICY => format!("the server refuses this client{reason}"),
        _ if *option == option::STARTTLS => format!("the server offers no TLS{reason}"),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_remedy_and_passes_the_servers_text_on() {
        let refused = |option, kind, text: &str| {
            RemoteError::from(HandshakeError::Refused { option, kind, text: text.to_owned() }).to_string()
        };
        assert_eq!(
            refused(option::GO, rep::ERR_UNKNOWN, "no such disk"),
            "the server has no export of this name: no such disk"
        );
        assert_eq!(
            refused(option::GO, rep::ERR_TLS_REQD, ""),
            "the server requires TLS, which nbds:// and nbds+unix:// use"
        );
    }
}
