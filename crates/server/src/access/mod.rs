//! Listening sockets with their access rights.

mod sockets;

#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

use rustix::net::{SocketAddrUnix, getsockname};

use hoistway_config::listen_policy::{ListenPolicy, judge, judge_metrics};

use crate::purpose::Purpose;

pub use hoistway_tls::{ServerConfig, TlsError, TlsFiles, tls_server};
pub use sockets::{Bound, SocketError, bind_tcp, bind_unix};

/// Decides whether the server may listen on a socket that another process has bound, by the
/// socket's own address. The owner of a Unix socket controls access to it; the control socket must
/// be one.
pub fn judge_socket(socket: BorrowedFd<'_>, purpose: Purpose, tls_required: bool, insecure: bool) -> ListenPolicy {
    let address = match getsockname(socket) {
        Ok(address) => address,
        Err(error) => return ListenPolicy::Refuse(format!("its address cannot be read: {error}")),
    };
    if SocketAddrUnix::try_from(address.clone()).is_ok() {
        return ListenPolicy::Accept;
    }
    let Ok(address) = SocketAddr::try_from(address) else {
        return ListenPolicy::Refuse("it is neither a Unix nor a TCP socket".to_owned());
    };
    match purpose {
        Purpose::Nbd => judge(address, tls_required, insecure),
        Purpose::Metrics => judge_metrics(address, insecure),
        Purpose::Control => ListenPolicy::Refuse(format!(
            "every client of the control socket may change everything, and {address} does not authenticate clients: use a Unix socket"
        )),
    }
}
