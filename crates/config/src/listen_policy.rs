//! The policy on the addresses that the server may listen on.

use std::net::SocketAddr;

/// A metrics address that other machines can reach. Metrics are served without authentication and
/// encryption.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is reachable from other machines, and metrics are served to every client in plain text")]
pub struct ExposedMetrics(pub SocketAddr);

/// A decision on one address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenPolicy {
    /// The address is accepted.
    Accept,
    /// The address is accepted with a warning.
    Warn(String),
    /// The address is refused, for this reason.
    Refuse(String),
}

/// Returns the policy for a TCP address of NBD. Beyond loopback, TLS must be required unless
/// `insecure` is set.
pub fn judge(address: SocketAddr, tls_required: bool, insecure: bool) -> ListenPolicy {
    let here = address.ip().to_canonical().is_loopback();
    match (here || tls_required, insecure) {
        (true, _) => ListenPolicy::Accept,
        (false, true) => ListenPolicy::Warn(format!(
            "{address} is reachable from other machines, and every client that reaches it can read and write in plain text"
        )),
        (false, false) => ListenPolicy::Refuse(format!(
            "{address} is reachable from other machines: require TLS ([tls] required = true, --tls-required), listen on 127.0.0.1 or \
             [::1], or set insecure = true (--insecure)"
        )),
    }
}

/// Returns the policy for an address of the metrics endpoint, which serves every client in plain
/// text. Beyond loopback, `insecure` must be set.
pub fn judge_metrics(address: SocketAddr, insecure: bool) -> ListenPolicy {
    match (check_metrics_are_local(address), insecure) {
        (Ok(()), _) => ListenPolicy::Accept,
        (Err(exposed), true) => ListenPolicy::Warn(exposed.to_string()),
        (Err(exposed), false) => ListenPolicy::Refuse(format!(
            "{exposed}: serve them on 127.0.0.1 or [::1], or set insecure = true (--insecure)"
        )),
    }
}

/// Checks that an address of the metrics endpoint is a loopback address.
///
/// # Errors
/// [`ExposedMetrics`] for any other address.
pub fn check_metrics_are_local(address: SocketAddr) -> Result<(), ExposedMetrics> {
    if address.ip().to_canonical().is_loopback() { Ok(()) } else { Err(ExposedMetrics(address)) }
}
