//! The reasons for which the server closes a client's connection.

use hoistway_nbd::server::Violation;
use hoistway_qos::JoinError;

use hoistway_tls::tls_error_text;

/// Why a connection is closed. The texts appear in the log.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CloseReason {
    /// The client sent a disconnect request, or all replies were sent during a shutdown.
    #[error("the client disconnected")]
    Disconnected,
    /// The client ended its side of the connection without a disconnect request.
    #[error("the client closed the connection without a disconnect request")]
    EndOfStream,
    /// A send or receive failed.
    #[error("the connection broke")]
    Broken,
    /// The client broke the NBD protocol.
    #[error("{0}")]
    Violation(#[from] Violation),
    /// This many bytes followed STARTTLS in plain text (the injection attack of RFC 3207).
    #[error("{0} bytes came in plain text after STARTTLS: the connection may have been tampered with")]
    Injected(usize),
    /// The TLS handshake or a TLS record was invalid.
    #[error("TLS failed: {}", tls_error_text(.0))]
    Tls(rustls::Error),
    /// The client requested STARTTLS from a server without a certificate.
    #[error("the client requested STARTTLS, and the server has no certificate")]
    NoCertificate,
    /// The handshake timeout elapsed.
    #[error("the client did not choose an export in time")]
    HandshakeTimeout,
    /// The last replies were not sent before the timeout.
    #[error("the client did not take its last replies in time")]
    ReplyTimeout,
    /// The client held memory without progress while others waited for memory.
    #[error("the client stalled while others waited for memory")]
    Stalled,
    /// The device refused the client as a member of its queue.
    #[error("the client cannot join the device: {0}")]
    Join(JoinError),
    /// The server is shutting down.
    #[error("the server is shutting down")]
    Shutdown,
    /// The export was removed, or the client is no longer admitted to it.
    #[error("the export is no longer served to this client")]
    ExportWithdrawn,
    /// A request through the control tree closed the connection.
    #[error("disconnected through the control tree")]
    ByOperator,
}
