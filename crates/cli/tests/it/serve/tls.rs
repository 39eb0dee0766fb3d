//! TLS: the certificates of the server and of clients.

use std::sync::Arc;

use hoistway_nbd::client::{HandshakeOptions, TlsMode};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, date_time_ymd,
};
use rustls::ClientConfig;
use rustls::RootCertStore;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use super::client::{Client, Led, shake_hands, wants};
use super::server::Server;
use crate::common::{Folder, run};

/// The year at whose beginning certificates expire.
const LAST_YEAR: i32 = 4096;

/// A certificate authority, and the files of a server certificate.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    pub fn new(folder: &Folder) -> Authority {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "the authority");
        let key = KeyPair::generate().expect("a key");
        let issuer = CertifiedIssuer::self_signed(params, key).expect("a certificate");
        folder.file("ca.pem", issuer.pem());
        let authority = Authority { issuer };
        authority.issue_server(folder, LAST_YEAR);
        authority
    }

    /// Writes a certificate of the server that is valid until 1 January of a year.
    fn issue_server(&self, folder: &Folder, last_year: i32) {
        let (certificate, key) = self.issue("localhost", ExtendedKeyUsagePurpose::ServerAuth, last_year);
        folder.file("cert.pem", certificate.pem());
        folder.file("key.pem", key.serialize_pem());
    }

    /// Writes a certificate of a client, by the names that URIs expect.
    pub fn issue_client(&self, folder: &Folder) {
        let (certificate, key) = self.issue("client", ExtendedKeyUsagePurpose::ClientAuth, LAST_YEAR);
        folder.file("client-cert.pem", certificate.pem());
        folder.file("client-key.pem", key.serialize_pem());
    }

    fn issue(&self, name: &str, purpose: ExtendedKeyUsagePurpose, last_year: i32) -> (rcgen::Certificate, KeyPair) {
        let mut params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
        params.not_after = date_time_ymd(last_year, 1, 1);
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages.push(purpose);
        let key = KeyPair::generate().expect("a key");
        (params.signed_by(&key, &self.issuer).expect("a certificate"), key)
    }

    /// The TLS configuration of a client: its trusted authority and its certificate.
    fn client(&self, shows: Option<&str>) -> Arc<ClientConfig> {
        self.client_until(LAST_YEAR, shows)
    }

    fn client_until(&self, last_year: i32, shows: Option<&str>) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from(self.issuer.der().to_vec())).expect("an authority");
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots);
        let config = match shows {
            None => builder.with_no_client_auth(),
            Some(name) => {
                let (certificate, key) = self.issue(name, ExtendedKeyUsagePurpose::ClientAuth, last_year);
                let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
                builder.with_client_auth_cert(vec![certificate.der().clone()], key).expect("they fit together")
            }
        };
        Arc::new(config)
    }
}

fn encrypted(export: &str) -> HandshakeOptions {
    HandshakeOptions { tls: TlsMode::Always, ..wants(export) }
}

#[track_caller]
fn client(server: &Server, wants: HandshakeOptions, tls: Arc<ClientConfig>) -> Client {
    match shake_hands(&server.socket(), wants, Some(tls)) {
        Ok(Led::To(client)) => *client,
        Ok(Led::Over(_)) => panic!("the handshake ended without an export"),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn tls_preserves_data() {
    let folder = Folder::new();
    let authority = Authority::new(&folder);
    let server = Server::start_in(
        folder,
        &["--export", "=mem:64M", "--tls-cert", "FOLDER/cert.pem", "--tls-key", "FOLDER/key.pem"],
    );
    let mut client = client(&server, encrypted(""), authority.client(None));
    let data: Vec<u8> = (0..3_000_001_u32).map(|at| (at % 251) as u8).collect();
    client.write(77, &data).expect("it can be written");
    client.flush().expect("it can be flushed");
    assert_eq!(client.read(77, data.len() as u64).expect("it can be read"), data);
    let mut plain = Client::of(&server.socket(), "");
    assert_eq!(plain.read(77, 1000).expect("TLS is offered, not required"), data[..1000]);
    let (code, log) = server.end();
    assert_eq!(code, Some(0), "{log}");
}

#[test]
fn required_tls_refuses_plain_text() {
    let folder = Folder::new();
    let authority = Authority::new(&folder);
    let server = Server::start_in(
        folder,
        &["--export", "=mem:1M", "--tls-cert", "FOLDER/cert.pem", "--tls-key", "FOLDER/key.pem", "--tls-required"],
    );
    assert!(server.uri(0).starts_with("nbds+unix:"), "{:?}", server.uri(0));
    assert!(shake_hands(&server.socket(), wants(""), None).is_err());
    client(&server, encrypted(""), authority.client(None)).write(0, &[1; 512]).expect("it can be written");
    assert_eq!(server.end().0, Some(0));
}

#[test]
fn a_client_certificate_determines_the_tenant() {
    let folder = Folder::new();
    let authority = Authority::new(&folder);
    folder.file(
        "config.toml",
        "[[device]]\nname = \"memory\"\nbackend = \"mem:1M\"\n\
         [[export]]\nname = \"db\"\ndevice = \"memory\"\ntenants = [\"database\"]\n\
         [[export]]\nname = \"all\"\ndevice = \"memory\"\n\
         [[tenant]]\nname = \"database\"\ncertificate = \"db-*.example\"\n\
         [[tenant]]\nname = \"others\"\n",
    );
    let server = Server::start_in(
        folder,
        &[
            "--config",
            "FOLDER/config.toml",
            "--tls-cert",
            "FOLDER/cert.pem",
            "--tls-key",
            "FOLDER/key.pem",
            "--tls-ca",
            "FOLDER/ca.pem",
            "--tls-required",
        ],
    );
    let database = authority.client(Some("db-1.example"));
    let other = authority.client(Some("web.example"));
    client(&server, encrypted("db"), Arc::clone(&database)).write(0, &[1; 512]).expect("it is the database");
    assert!(shake_hands(&server.socket(), encrypted("db"), Some(Arc::clone(&other))).is_err());
    client(&server, encrypted("all"), other).write(0, &[1; 512]).expect("it is everybody's");
    let anonymous = shake_hands(&server.socket(), encrypted("all"), Some(authority.client(None)));
    assert!(anonymous.is_err(), "a client without a certificate is refused");
    let (code, log) = server.end();
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("tenant=\"database\"") && log.contains("tenant=\"others\""), "{log}");
}

#[test]
fn a_certificate_that_has_expired_is_a_warning_and_its_refusal_by_a_client_is_explained() {
    let folder = Folder::new();
    let authority = Authority::new(&folder);
    authority.issue_server(&folder, 2001);
    let server = Server::start_in(
        folder,
        &["--export", "=mem:1M", "--tls-cert", "FOLDER/cert.pem", "--tls-key", "FOLDER/key.pem"],
    );
    let refused = shake_hands(&server.socket(), encrypted(""), Some(authority.client(None)));
    assert!(refused.is_err(), "the client verifies the certificate");
    let (code, log) = server.end();
    assert_eq!(code, Some(0), "{log}");
    for line in [
        "cert.pem: certificate 1 of the chain expired at 2001-01-01T00:00:00Z",
        "TLS failed: the client refused the server's certificate: it has expired, or is not valid yet, by the client's clock",
    ] {
        assert!(log.contains(line), "`{line}` is missing in:\n{log}");
    }
}

#[test]
fn a_client_certificate_that_has_expired_is_refused_with_the_reason_in_the_log() {
    let folder = Folder::new();
    let authority = Authority::new(&folder);
    let server = Server::start_in(
        folder,
        &[
            "--export",
            "=mem:1M",
            "--tls-cert",
            "FOLDER/cert.pem",
            "--tls-key",
            "FOLDER/key.pem",
            "--tls-ca",
            "FOLDER/ca.pem",
        ],
    );
    let expired = authority.client_until(2001, Some("db-1.example"));
    assert!(shake_hands(&server.socket(), encrypted(""), Some(expired)).is_err());
    let (code, log) = server.end();
    assert_eq!(code, Some(0), "{log}");
    let line = "TLS failed: the client's certificate expired at 2001-01-01T00:00:00Z";
    let has_line = log.lines().any(|logged| logged.contains("WARN") && logged.contains(line));
    assert!(has_line, "{log}");
}

#[test]
fn a_certificate_of_version_1_is_refused_at_the_start() {
    let folder = Folder::new();
    let file = |name: &str| format!("{}/../../testdata/tls/{name}", env!("CARGO_MANIFEST_DIR"));
    let (certificate, key) = (file("version-1.pem"), file("version-1.key"));
    let socket = folder.name("s");
    let args = ["serve", "--export", "=mem:1M", "--socket", &socket, "--tls-cert", &certificate, "--tls-key", &key];
    run(&args).refused(1, &["version-1.pem: not a valid certificate: it is an X.509 version 1 certificate"]);
}
