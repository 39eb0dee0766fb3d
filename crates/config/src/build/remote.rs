//! Parses the keys of `[[device]]` sections that concern exports of other NBD servers.

use std::path::PathBuf;

use hoistway_nbd::uri::{ServerAddress, TlsQuery};

use crate::builder::ConfigBuilder;
use crate::draft::Entry;
use crate::model::{RemoteConfig, RemoteTlsConfig};
use crate::value;

/// The keys that have no effect on other backends.
const KEYS: [&str; 6] = ["connections", "timeout", "unflushed", "tls_authority", "tls_certificate", "tls_key"];
/// The maximum number of bytes of writes that are kept: 64 GiB.
const UNFLUSHED_BYTES_MAX: u64 = 64 << 30;

/// The values of the keys of remote exports.
pub(crate) struct RemoteKeys {
    connections: Option<u64>,
    timeout_ns: Option<u64>,
    unflushed_bytes: Option<u64>,
    authority: Option<PathBuf>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
}

impl ConfigBuilder<'_> {
    /// Parses the keys of remote exports. On another backend they are problems.
    pub fn remote_keys(&mut self, entry: &Entry, is_remote: bool) -> RemoteKeys {
        let mut fields = self.fields(entry);
        let connections = fields.read("connections", |value| value::whole(value, 1, 16));
        let timeout_ns = fields.read("timeout", value::timeout_ns);
        let unflushed_bytes = fields.read("unflushed", |value| value::bytes_within(value, 0, UNFLUSHED_BYTES_MAX));
        let [authority, certificate, key] =
            ["tls_authority", "tls_certificate", "tls_key"].map(|key| self.path(entry, key));
        self.check_remote_keys(entry, is_remote);
        RemoteKeys { connections, timeout_ns, unflushed_bytes, authority, certificate, key }
    }

    /// Completes the configuration of a remote export with its keys.
    pub fn remote(&mut self, entry: &Entry, remote: RemoteConfig, keys: RemoteKeys) -> RemoteConfig {
        let mut fields = self.fields(entry);
        if remote.uri.user.is_some() {
            let location = fields.location("backend");
            let text = "the user of a URI belongs to pre-shared keys, which are not supported: leave it out".to_owned();
            fields.problem(&location, text);
        }
        let RemoteKeys { connections, timeout_ns, unflushed_bytes, .. } = keys;
        let tls = self.remote_tls(entry, &remote, keys);
        RemoteConfig {
            connections: connections.and_then(|count| u32::try_from(count).ok()).unwrap_or(remote.connections),
            timeout_ns: timeout_ns.unwrap_or(remote.timeout_ns),
            unflushed_bytes: unflushed_bytes.unwrap_or(remote.unflushed_bytes),
            tls,
            ..remote
        }
    }

    /// Determines the certificates of a remote with TLS.
    fn remote_tls(&mut self, entry: &Entry, remote: &RemoteConfig, keys: RemoteKeys) -> Option<RemoteTlsConfig> {
        let RemoteKeys { authority, certificate, key, .. } = keys;
        let environment = self.environment;
        let mut fields = self.fields(entry);
        let location = fields.location("backend");
        if !remote.uri.tls {
            let given =
                ["tls_authority", "tls_certificate", "tls_key"].into_iter().find(|key| entry.get(key).is_some());
            if let Some(key) = given {
                let text = format!("`{key}` is given, and the URI does not use TLS: write nbds:// or nbds+unix://");
                fields.problem(&entry.get(key).map_or(location, |located| located.location.clone()), text);
            }
            return None;
        }
        let TlsQuery { kind, hostname, verify_peer, certificates, psk_file } = &remote.uri.tls_query;
        if kind.as_deref().is_some_and(|kind| kind != "x509") || psk_file.is_some() {
            let text = "only certificates are supported: leave tls-type and tls-psk-file out, or write tls-type=x509";
            fields.problem(&location, text.to_owned());
        }
        if *verify_peer == Some(false) {
            let text = "the remote's certificate is always verified: leave tls-verify-peer out, and name its authority";
            fields.problem(&location, text.to_owned());
        }
        let directory = certificates.as_deref().map(|path| location.resolve(path));
        let beside = |name: &str| directory.as_ref().map(|directory| directory.join(name));
        let Some(authority) = authority.or_else(|| beside("ca-cert.pem")) else {
            let text = "TLS needs the authority of the remote's certificate: `tls_authority`, or tls-certificates=DIR in the URI";
            fields.problem(&location, text.to_owned());
            return None;
        };
        let exists = |path: &PathBuf| environment.bytes(path).is_ok();
        let identity = match (certificate, key) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => beside("client-cert.pem").filter(exists).zip(beside("client-key.pem")),
            _ => {
                let text = "`tls_certificate` and `tls_key` belong together: give both or none".to_owned();
                fields.problem(&fields.entry.location.clone(), text);
                None
            }
        };
        let host = match (&remote.uri.server, hostname) {
            (_, Some(name)) => name.clone(),
            (ServerAddress::Tcp { host, .. }, None) => host.clone(),
            (ServerAddress::Unix { .. }, None) => "localhost".to_owned(),
        };
        Some(RemoteTlsConfig { authority, identity, host })
    }

    /// Reports keys of remote exports on a device with another backend, and keys of files on a
    /// remote export.
    fn check_remote_keys(&mut self, entry: &Entry, is_remote: bool) {
        let (keys, right): (&[&str], _) = match is_remote {
            true => (&["force_in_use"], "only files and block devices have it"),
            false => (&KEYS, "only exports of other NBD servers have it (a backend nbd://HOST/EXPORT)"),
        };
        let mut fields = self.fields(entry);
        for key in keys.iter().filter(|key| entry.get(key).is_some()) {
            let location = fields.location(key);
            fields.problem(&location, format!("`{key}` is given: {right}"));
        }
    }
}
