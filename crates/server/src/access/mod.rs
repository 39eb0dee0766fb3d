//! Ways in: sockets that only those can open who may, and certificates.

mod certificate;
mod sockets;
mod tls;

#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

use rustix::net::{SocketAddrUnix, getsockname};

use hoistway_config::listen_policy::{ListenPolicy, judge, judge_metrics};

use crate::purpose::Purpose;

pub use certificate::names as certificate_names;
pub use rustls::ServerConfig;
pub use sockets::{Bound, SocketError, bind_tcp, bind_unix};
pub use tls::{TlsError, TlsFiles, tls_server};

/// The same for a socket that somebody else has bound: where it is, it says itself. Who may open a
/// Unix socket is for its owner to say; whoever steers comes by one.
pub fn judge_socket(socket: BorrowedFd<'_>, purpose: Purpose, tls_required: bool, insecure: bool) -> ListenPolicy {
    let address = match getsockname(socket) {
        Ok(address) => address,
        Err(error) => return ListenPolicy::Refuse(format!("where it is cannot be found out: {error}")),
    };
    if SocketAddrUnix::try_from(address.clone()).is_ok() {
        return ListenPolicy::Accept;
    }
    let Ok(address) = SocketAddr::try_from(address) else {
        return ListenPolicy::Refuse("it is neither a Unix socket nor one of TCP".to_owned());
    };
    match purpose {
        Purpose::Nbd => judge(address, tls_required, insecure),
        Purpose::Metrics => judge_metrics(address, insecure),
        Purpose::Control => ListenPolicy::Refuse(format!(
            "whoever reaches the control socket may change everything, and {address} asks nobody who he is: make it a Unix socket"
        )),
    }
}
