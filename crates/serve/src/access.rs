//! Ways in: sockets that only those can open who may, and certificates.

mod certificate;
mod sockets;
mod tls;

#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

use rustix::net::{SocketAddrUnix, getsockname};

use crate::server::Purpose;

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

/// Whether metrics may be told at an address: beyond loopback only if that was written, for they are told to anybody in plain text.
pub fn judge_metrics(address: SocketAddr, insecure: bool) -> Judgement {
    if address.ip().to_canonical().is_loopback() {
        return Judgement::Fine;
    }
    let text = format!("{address} can be reached from other machines, and metrics are told to anybody in plain text");
    if insecure {
        Judgement::Warn(text)
    } else {
        Judgement::Refuse(format!("{text}: tell them at 127.0.0.1 or [::1], or write insecure = true (--insecure)"))
    }
}

/// The same for a socket that somebody else has bound: where it is, it says itself. Who may open a Unix socket is for its owner to say; whoever steers comes
/// by one.
pub fn judge_socket(socket: BorrowedFd<'_>, purpose: Purpose, tls_required: bool, insecure: bool) -> Judgement {
    let address = match getsockname(socket) {
        Ok(address) => address,
        Err(error) => return Judgement::Refuse(format!("where it is cannot be found out: {error}")),
    };
    if SocketAddrUnix::try_from(address.clone()).is_ok() {
        return Judgement::Fine;
    }
    let Ok(address) = SocketAddr::try_from(address) else {
        return Judgement::Refuse("it is neither a Unix socket nor one of TCP".to_owned());
    };
    match purpose {
        Purpose::Nbd => judge(address, tls_required, insecure),
        Purpose::Metrics => judge_metrics(address, insecure),
        Purpose::Control => Judgement::Refuse(format!(
            "whoever reaches the control socket may change everything, and {address} asks nobody who he is: make it a Unix socket"
        )),
    }
}
