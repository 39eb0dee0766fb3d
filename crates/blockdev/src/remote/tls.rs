//! The certificates of connections to a remote with TLS.

use std::sync::Arc;

use hoistway_config::RemoteTlsConfig;
use hoistway_tls::{ClientTls, TlsError, tls_client};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;

/// The certificates for new connections.
#[derive(Clone, Debug)]
pub(super) struct RemoteTls {
    pub client: Arc<ClientConfig>,
    /// The name that the remote's certificate must have.
    pub name: ServerName<'static>,
}

impl RemoteTls {
    /// Reads the certificates of a configuration, and logs warnings about them.
    pub fn read(config: &RemoteTlsConfig) -> Result<RemoteTls, TlsError> {
        let ClientTls { client, name, warnings } = tls_client(config)?;
        for warning in warnings {
            tracing::warn!("{warning}");
        }
        Ok(RemoteTls { client, name })
    }
}
