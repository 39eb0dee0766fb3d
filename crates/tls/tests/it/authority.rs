//! A certificate authority, and files with the certificates that it issued.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use hoistway_config::{RemoteTlsConfig, TlsConfig};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, SanType, date_time_ymd};

/// The first and the last year in which a certificate is valid, until 1 January.
pub type Years = (i32, i32);
/// Years that include the current one.
pub const VALID: Years = (1975, 4096);
pub const EXPIRED: Years = (1975, 2001);
pub const NOT_YET: Years = (4000, 4096);

/// The name in the server's certificate.
pub const SERVER: &str = "server.test";

pub struct Authority {
    folder: tempfile::TempDir,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    /// Makes an authority with the certificates `server` and `alice`.
    pub fn new() -> Authority {
        let mut params = CertificateParams::new([]).expect("parameters");
        params.distinguished_name.push(DnType::CommonName, "the authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("an authority");
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("ca.pem"), issuer.pem()).expect("a file");
        let authority = Authority { folder, issuer };
        authority.issue("server", VALID, &[SERVER]);
        authority.issue("alice", VALID, &["db.test"]);
        authority
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes NAME.pem and NAME.key for these DNS names.
    pub fn issue(&self, name: &str, (first, last): Years, names: &[&str]) {
        let mut params = CertificateParams::new([]).expect("parameters");
        (params.not_before, params.not_after) = (date_time_ymd(first, 1, 1), date_time_ymd(last, 1, 1));
        params.distinguished_name.push(DnType::CommonName, name);
        let alternative = names.iter().map(|name| SanType::DnsName((*name).try_into().expect("a name")));
        params.subject_alt_names = alternative.collect();
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        self.write(&format!("{name}.pem"), &certificate.pem());
        self.write(&format!("{name}.key"), &key.serialize_pem());
    }

    /// Writes a file that only its owner can read.
    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("a file");
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o600)).expect("a mode");
    }

    /// The configuration of a server with a certificate, which asks clients for one of this
    /// authority's or for none.
    pub fn server(&self, name: &str, verifies_clients: bool) -> TlsConfig {
        TlsConfig {
            certificate: self.path(&format!("{name}.pem")),
            key: self.path(&format!("{name}.key")),
            client_authority: verifies_clients.then(|| self.path("ca.pem")),
            required: true,
        }
    }

    /// The configuration of a client that shows a certificate, or none.
    pub fn client(&self, shows: Option<&str>) -> RemoteTlsConfig {
        let identity = shows.map(|name| (self.path(&format!("{name}.pem")), self.path(&format!("{name}.key"))));
        RemoteTlsConfig { authority: self.path("ca.pem"), identity, host: SERVER.to_owned() }
    }

    /// An error with the names of files in place of their paths.
    pub fn text(&self, error: &dyn std::error::Error) -> String {
        error.to_string().replace(&format!("{}/", self.folder.path().display()), "")
    }
}
