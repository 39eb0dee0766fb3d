//! Ways in: sockets that only those can open who may, and certificates.

mod certificate;
mod sockets;
mod tls;

#[cfg(test)]
mod tests;

use std::net::SocketAddr;

pub use certificate::names as certificate_names;
pub use rustls::ServerConfig;
pub use sockets::{Bound, SocketError, bind_tcp, bind_unix};
pub use tls::{TlsError, TlsFiles, tls_server};

/// What is to be said of a TCP address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// Nothing.
    Fine,
    /// It is listened to, and somebody should know.
    Warn(String),
    /// It is not listened to.
    Refuse(String),
}

/// Whether a TCP address may be listened to: beyond loopback only where TLS is required, unless it was written that it need not be.
pub fn judge(address: SocketAddr, tls_required: bool, insecure: bool) -> Judgement {
    let here = address.ip().to_canonical().is_loopback();
    match (here || tls_required, insecure) {
        (true, _) => Judgement::Fine,
        (false, true) => Judgement::Warn(format!(
            "{address} can be reached from other machines, and whoever can may read and write in plain text"
        )),
        (false, false) => Judgement::Refuse(format!(
            "{address} can be reached from other machines: require TLS ([tls] required = true, --tls-required), listen to 127.0.0.1 or \
             [::1], or write insecure = true (--insecure)"
        )),
    }
}
