//! TLS without sockets, for the server's clients and for connections to other servers.
//!
//! Where to change what:
//! - the records of a connection, on both sides: `channel.rs`
//! - certificates and keys from files, and their errors: `files.rs`
//! - faults of certificates and handshakes, in words that say what would be right: `validity.rs`
//! - the names in a certificate by which rules identify clients: `names.rs`
//!
#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod channel;
mod files;
mod names;
mod validity;

pub use channel::{Channel, ChannelState};
pub use files::{ClientTls, TlsError, TlsFiles, tls_client, tls_server};
pub use names::names as certificate_names;
pub use rustls::ServerConfig;
pub use validity::tls_error_text;
