//! Sockets and certificates on this machine.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, SanType, date_time_ymd};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConnection};

use super::{Bound, SocketError, bind_tcp, bind_unix, tls_server};
use hoistway_config::TlsConfig;
use hoistway_config::listen_policy::{ListenPolicy, judge};
use hoistway_tls::{certificate_names, tls_error_text};

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).expect("the socket's file").permissions().mode() & 0o777
}

#[test]
fn a_unix_socket_has_its_mode_and_its_file_is_removed_with_it() {
    let folder = tempfile::tempdir().expect("a folder");
    for wanted in [0o600, 0o660, 0o666] {
        let path = folder.path().join(format!("{wanted:o}.sock"));
        let (socket, bound) = bind_unix(&path, wanted).expect("a socket");
        assert_eq!(mode(&path), wanted);
        assert_eq!(bound.path(), path);
        UnixStream::connect(&path).expect("a connection");
        drop((socket, bound));
        assert!(!path.exists());
    }
}

#[test]
fn the_socket_of_a_stopped_server_is_replaced_and_that_of_a_running_one_is_busy() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("nbd.sock");
    drop(UnixListener::bind(&path).expect("a server"));
    assert!(path.exists(), "the stopped server has left its file");
    let (_socket, _bound): (_, Bound) = bind_unix(&path, 0o600).expect("a socket in its place");
    let refused = bind_unix(&path, 0o600).expect_err("a busy address");
    assert_eq!(refused.to_string(), format!("{}: busy: another server is listening there", path.display()));
    UnixStream::connect(&path).expect("the first server still listens");
}

#[test]
fn a_file_that_replaced_the_socket_is_not_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("nbd.sock");
    let (socket, bound) = bind_unix(&path, 0o600).expect("a socket");
    fs::remove_file(&path).expect("a removed file");
    let other = UnixListener::bind(&path).expect("another socket");
    drop((socket, bound));
    assert!(path.exists());
    drop(other);
}

#[test]
fn errors_name_the_path_and_the_cause() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    fs::write(&file, "text").expect("a file");
    let text_of_error = bind_unix(&file, 0o600).expect_err("a file").to_string();
    assert_eq!(
        text_of_error,
        format!("{}: a file that is not a socket exists there: remove it, or choose another path", file.display())
    );
    assert_eq!(fs::read(&file).expect("the file"), b"text");
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&file, &link).expect("a link");
    assert!(matches!(bind_unix(&link, 0o600), Err(SocketError::NotASocket { .. })));
    let long = folder.path().join("x".repeat(120));
    let text_of_error = bind_unix(&long, 0o600).expect_err("too long").to_string();
    let length = long.as_os_str().len();
    assert_eq!(
        text_of_error,
        format!("{}: the path of a socket has at most 107 bytes, this one has {length}", long.display())
    );
    let nowhere = folder.path().join("none/nbd.sock");
    let text_of_error = bind_unix(&nowhere, 0o600).expect_err("no folder").to_string();
    assert_eq!(text_of_error, format!("{}: cannot listen: No such file or directory (os error 2)", nowhere.display()));
}

#[test]
fn of_several_servers_that_start_at_once_one_gets_the_socket() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("nbd.sock");
    drop(UnixListener::bind(&path).expect("the socket of a stopped server"));
    let results: Vec<_> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..8).map(|_| scope.spawn(|| bind_unix(&path, 0o600))).collect();
        all.into_iter().map(|one| one.join().expect("no panic")).collect()
    });
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1, "{results:?}");
    UnixStream::connect(&path).expect("a connection");
}

#[test]
fn a_tcp_address_in_use_is_busy() {
    let any: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    let socket = bind_tcp(any).expect("a port");
    let address = rustix::net::getsockname(socket.as_fd()).expect("an address");
    let address = SocketAddr::try_from(address).expect("of TCP");
    TcpStream::connect(address).expect("a connection");
    let text_of_error = bind_tcp(address).expect_err("a busy address").to_string();
    assert_eq!(text_of_error, format!("{address}: busy: another server is listening there"));
    let elsewhere: SocketAddr = "192.0.2.1:7".parse().expect("an unassigned address");
    assert!(matches!(bind_tcp(elsewhere), Err(SocketError::System { .. })));
}

#[test]
fn tcp_beyond_loopback_needs_tls_or_the_insecure_option() {
    let of = |text: &str, required, insecure| judge(text.parse().expect("an address"), required, insecure);
    for here in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
        assert_eq!(of(here, false, false), ListenPolicy::Accept, "{here}");
    }
    for beyond in ["0.0.0.0:1", "[::]:1", "10.0.0.1:1", "[::ffff:10.0.0.1]:1"] {
        assert!(matches!(of(beyond, false, false), ListenPolicy::Refuse(_)), "{beyond}");
        assert!(matches!(of(beyond, false, true), ListenPolicy::Warn(_)), "{beyond}");
        assert_eq!(of(beyond, true, false), ListenPolicy::Accept, "{beyond}");
    }
}

/// A certificate authority, and files with certificates that it signed.
struct Authority {
    folder: tempfile::TempDir,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// The first and the last year in which a certificate is valid, until 1 January.
type Years = (i32, i32);
/// Years that include the current one.
const VALID: Years = (1975, 4096);
const EXPIRED: Years = (1975, 2001);
const NOT_YET: Years = (4000, 4096);

impl Authority {
    fn new() -> Authority {
        Authority::named("the authority", VALID)
    }

    fn named(name: &str, (first, last): Years) -> Authority {
        let mut params = CertificateParams::new([]).expect("parameters");
        params.distinguished_name.push(DnType::CommonName, name);
        (params.not_before, params.not_after) = (date_time_ymd(first, 1, 1), date_time_ymd(last, 1, 1));
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("an authority");
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("ca.pem"), issuer.pem()).expect("a file");
        Authority { folder, issuer }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes NAME.pem and NAME.key.
    fn sign(&self, name: &str, alternative: Vec<SanType>) {
        self.sign_for(VALID, name, alternative);
    }

    fn sign_for(&self, (first, last): Years, name: &str, alternative: Vec<SanType>) {
        let mut params = CertificateParams::new([]).expect("parameters");
        (params.not_before, params.not_after) = (date_time_ymd(first, 1, 1), date_time_ymd(last, 1, 1));
        params.distinguished_name.push(DnType::CommonName, name);
        params.subject_alt_names = alternative;
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        fs::write(self.path(&format!("{name}.pem")), certificate.pem()).expect("a file");
        let key_file = self.path(&format!("{name}.key"));
        fs::write(&key_file, key.serialize_pem()).expect("a file");
        fs::set_permissions(key_file, fs::Permissions::from_mode(0o600)).expect("a mode");
    }

    fn config(&self, name: &str) -> TlsConfig {
        TlsConfig {
            certificate: self.path(&format!("{name}.pem")),
            key: self.path(&format!("{name}.key")),
            client_authority: Some(self.path("ca.pem")),
            required: true,
        }
    }
}

fn dns(name: &str) -> SanType {
    SanType::DnsName(name.try_into().expect("a name"))
}

/// A client that certificate_name a certificate, or none.
fn client(authority: &Authority, certificate_name: Option<&str>) -> ClientConnection {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(authority.path("ca.pem")).expect("the authority")).expect("a root");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().expect("versions");
    let builder = builder.with_root_certificates(roots);
    let config = match certificate_name {
        None => builder.with_no_client_auth(),
        Some(name) => {
            let certificate =
                CertificateDer::from_pem_file(authority.path(&format!("{name}.pem"))).expect("a certificate");
            let key = PrivateKeyDer::from_pem_file(authority.path(&format!("{name}.key"))).expect("a key");
            // Unlike `with_client_auth_cert`, this accepts certificates that TLS cannot use.
            let key = rustls::crypto::ring::sign::any_supported_type(&key).expect("a key of a known kind");
            let pair = CertifiedKey::new(vec![certificate], key);
            builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(pair)))
        }
    };
    ClientConnection::new(Arc::new(config), ServerName::try_from("server.test").expect("a name")).expect("a client")
}

/// Runs a TLS handshake. Returns the server's side, or its error.
fn handshake(server: &super::TlsFiles, mut client: ClientConnection) -> Result<ServerConnection, rustls::Error> {
    let mut server = ServerConnection::new(Arc::clone(&server.server))?;
    for _ in 0..10 {
        let mut bytes = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut bytes).expect("into memory");
        }
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            server.read_tls(&mut rest).expect("from memory");
            server.process_new_packets()?;
        }
        let mut bytes = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut bytes).expect("into memory");
        }
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            client.read_tls(&mut rest).expect("from memory");
            client.process_new_packets()?;
        }
    }
    assert!(!server.is_handshaking(), "ten rounds are enough");
    client.writer().write_all(b"hello").expect("room");
    let mut bytes = Vec::new();
    client.write_tls(&mut bytes).expect("into memory");
    server.read_tls(&mut bytes.as_slice()).expect("from memory");
    server.process_new_packets()?;
    let mut text_of_error = [0; 5];
    server.reader().read_exact(&mut text_of_error).expect("what was text_of_error");
    assert_eq!(&text_of_error, b"hello");
    Ok(server)
}

#[test]
fn a_client_is_identified_by_its_certificate_and_refused_without_one() {
    let authority = Authority::new();
    authority.sign("server", vec![dns("server.test")]);
    authority.sign(
        "alice",
        vec![dns("db.example.org"), SanType::Rfc822Name("alice@example.org".try_into().expect("an address"))],
    );
    let files = tls_server(&authority.config("server")).expect("certificates");
    assert!(files.warnings.is_empty(), "{:?}", files.warnings);
    let server = handshake(&files, client(&authority, Some("alice"))).expect("a connection");
    let shown = server.peer_certificates().expect("a certificate");
    assert_eq!(certificate_names(&shown[0]), ["alice", "db.example.org", "alice@example.org"]);
    assert!(handshake(&files, client(&authority, None)).is_err(), "no certificate");

    let stranger = Authority::new();
    stranger.sign("mallory", vec![]);
    fs::copy(stranger.path("mallory.pem"), authority.path("mallory.pem")).expect("a file");
    fs::copy(stranger.path("mallory.key"), authority.path("mallory.key")).expect("a file");
    assert!(handshake(&files, client(&authority, Some("mallory"))).is_err(), "the certificate of another authority");

    let open = TlsConfig { client_authority: None, ..authority.config("server") };
    let files = tls_server(&open).expect("certificates");
    let server = handshake(&files, client(&authority, None)).expect("a connection");
    assert!(server.peer_certificates().is_none());
}

#[test]
fn errors_of_certificates_name_the_file() {
    let authority = Authority::new();
    authority.sign("server", vec![dns("server.test")]);
    authority.sign("other", vec![]);
    let good = authority.config("server");
    let text_of_error = |config: TlsConfig| {
        let text_of_error = tls_server(&config).expect_err("an invalid file").to_string();
        text_of_error.replace(&format!("{}/", authority.folder.path().display()), "")
    };
    let with = |change: &dyn Fn(&mut TlsConfig)| {
        let mut config = good.clone();
        change(&mut config);
        config
    };
    let missing = authority.path("none.pem");
    let text = authority.path("text.pem");
    fs::write(&text, "no certificate").expect("a file");
    let locked = authority.path("locked.key");
    fs::write(&locked, "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n")
        .expect("a file");
    let table: [(TlsConfig, &str); 8] = [
        (
            with(&|config| config.certificate = missing.clone()),
            "none.pem: cannot read the certificate: No such file or directory (os error 2)",
        ),
        (
            with(&|config| config.key = missing.clone()),
            "none.pem: cannot read the key: No such file or directory (os error 2)",
        ),
        (
            with(&|config| config.client_authority = Some(missing.clone())),
            "none.pem: cannot read the client authority: No such file or directory (os error 2)",
        ),
        (
            with(&|config| config.certificate = text.clone()),
            "text.pem: not a valid certificate: no -----BEGIN CERTIFICATE----- found",
        ),
        (
            with(&|config| config.key = text.clone()),
            "text.pem: not a valid key: no -----BEGIN PRIVATE KEY----- (or RSA, or EC) found",
        ),
        (
            with(&|config| config.key = locked.clone()),
            "locked.key: not a valid key: it is encrypted with a password: store it without one",
        ),
        (
            with(&|config| config.client_authority = Some(text.clone())),
            "text.pem: not a valid client authority: no -----BEGIN CERTIFICATE----- found",
        ),
        (
            with(&|config| config.certificate = authority.folder.path().to_owned()),
            "cannot read the certificate: it is a directory, and a regular file is needed",
        ),
    ];
    for (config, expected) in table {
        let text_of_error = text_of_error(config);
        assert!(
            text_of_error == expected || text_of_error.ends_with(&format!(": {expected}")),
            "{text_of_error}\nshould be\n{expected}"
        );
    }
    let mismatch = text_of_error(with(&|config| config.key = authority.path("other.key")));
    assert!(mismatch.starts_with("server.pem and other.key do not match: "), "{mismatch}");
}

#[test]
fn a_key_that_all_users_can_read_is_used_with_a_warning() {
    let authority = Authority::new();
    authority.sign("server", vec![]);
    let config = authority.config("server");
    let chmod = |mode| fs::set_permissions(&config.key, fs::Permissions::from_mode(mode)).expect("a mode");
    chmod(0o640);
    assert!(tls_server(&config).expect("certificates").warnings.is_empty(), "a group can be meant");
    chmod(0o644);
    assert_eq!(
        tls_server(&config).expect("certificates").warnings,
        [format!("{}: all users of this machine can read the key (mode 0644): chmod o-r", config.key.display())]
    );
}

/// Copies the certificate of X.509 version 1 and its key, which `openssl x509 -req` made without
/// extensions.
fn copy_version_1(authority: &Authority) {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tls");
    for name in ["version-1.pem", "version-1.key"] {
        fs::copy(from.join(name), authority.path(name)).expect("a file");
    }
}

#[test]
fn a_certificate_of_version_1_is_refused_with_the_version_that_tls_needs() {
    let authority = Authority::new();
    copy_version_1(&authority);
    let error = tls_server(&authority.config("version-1")).expect_err("an old certificate").to_string();
    let path = authority.path("version-1.pem");
    let expected = format!(
        "{}: not a valid certificate: it is an X.509 version 1 certificate, and TLS needs version 3: issue it again",
        path.display()
    );
    assert!(error.starts_with(&expected), "{error}");
    assert!(error.contains("-extfile") && error.contains("subjectAltName"), "{error}");
}

#[test]
fn certificates_that_are_not_valid_now_cause_a_warning_with_the_time() {
    let authority = Authority::new();
    let warnings = |years, name: &str| {
        authority.sign_for(years, name, vec![dns("server.test")]);
        tls_server(&authority.config(name)).expect("the server starts all the same").warnings
    };
    assert_eq!(warnings(VALID, "valid"), [""; 0]);
    for (years, name, fault) in [
        (EXPIRED, "expired", "expired at 2001-01-01T00:00:00Z (it is 2"),
        (NOT_YET, "future", "is not valid before 4000-01-01T00:00:00Z (it is 2"),
    ] {
        let path = authority.path(&format!("{name}.pem"));
        let warnings = warnings(years, name);
        let expected = format!("{}: certificate 1 of the chain {fault}", path.display());
        assert!(warnings.len() == 1 && warnings[0].starts_with(&expected), "{warnings:?}");
        assert!(warnings[0].ends_with("clients that verify it refuse the server"), "{warnings:?}");
    }
}

#[test]
fn an_authority_that_has_expired_causes_a_warning_and_its_clients_are_accepted() {
    let authority = Authority::named("the authority", EXPIRED);
    authority.sign("server", vec![dns("server.test")]);
    authority.sign("alice", vec![]);
    let files = tls_server(&authority.config("server")).expect("certificates");
    let expected = format!("{}: certificate 1 expired at 2001-01-01T00:00:00Z", authority.path("ca.pem").display());
    assert!(files.warnings.len() == 1 && files.warnings[0].starts_with(&expected), "{:?}", files.warnings);
    assert!(files.warnings[0].ends_with("are accepted all the same"), "{:?}", files.warnings);
    handshake(&files, client(&authority, Some("alice"))).expect("the claim of the warning");
}

#[test]
fn a_refused_client_certificate_is_explained() {
    let authority = Authority::new();
    authority.sign("server", vec![dns("server.test")]);
    authority.sign_for(EXPIRED, "expired", vec![]);
    authority.sign_for(NOT_YET, "future", vec![]);
    copy_version_1(&authority);
    for (issuer, name) in [("another authority", "stranger"), ("the authority", "mallory")] {
        let other = Authority::named(issuer, VALID);
        other.sign(name, vec![]);
        for file in [format!("{name}.pem"), format!("{name}.key")] {
            fs::copy(other.path(&file), authority.path(&file)).expect("a file");
        }
    }
    let files = tls_server(&authority.config("server")).expect("certificates");
    for (name, expected) in [
        (Some("expired"), "the client's certificate expired at 2001-01-01T00:00:00Z (it is 2"),
        (Some("future"), "the client's certificate is not valid before 4000-01-01T00:00:00Z (it is 2"),
        (Some("stranger"), "the client's certificate was issued by none of the authorities in `client_authority`"),
        (Some("mallory"), "the client's certificate was not signed by the authority in `client_authority`"),
        (Some("version-1"), "the client's certificate is an X.509 version 1 certificate, and TLS needs version 3"),
        (None, "the client presented no certificate, which `client_authority` requires"),
    ] {
        let error = handshake(&files, client(&authority, name)).expect_err("an invalid certificate");
        let text = tls_error_text(&error);
        assert!(text.starts_with(expected), "{text}\nshould begin with\n{expected}");
    }
}
