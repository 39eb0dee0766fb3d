//! The purposes of listening sockets.

/// The service behind a listening socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The NBD protocol.
    Nbd,
    /// The control tree.
    Control,
    /// Metrics over HTTP.
    Metrics,
}
