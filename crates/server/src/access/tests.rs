//! Sockets and certificates on this machine.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, SanType};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConnection};

use super::{Bound, SocketError, bind_tcp, bind_unix, certificate_names, tls_server};
use hoistway_config::TlsConfig;
use hoistway_config::listen_policy::{ListenPolicy, judge};

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).expect("the socket's file").permissions().mode() & 0o777
}

#[test]
fn a_unix_socket_has_its_mode_and_its_file_goes_with_it() {
    let folder = tempfile::tempdir().expect("a folder");
    for wanted in [0o600, 0o660, 0o666] {
        let path = folder.path().join(format!("{wanted:o}.sock"));
        let (socket, bound) = bind_unix(&path, wanted).expect("a socket");
        assert_eq!(mode(&path), wanted);
        assert_eq!(bound.path(), path);
        UnixStream::connect(&path).expect("it is listened to");
        drop((socket, bound));
        assert!(!path.exists());
    }
}

#[test]
fn the_socket_of_a_dead_server_is_replaced_and_that_of_a_live_one_is_busy() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("nbd.sock");
    drop(UnixListener::bind(&path).expect("a server"));
    assert!(path.exists(), "the dead one has left its file");
    let (_socket, _bound): (_, Bound) = bind_unix(&path, 0o600).expect("its place");
    let refused = bind_unix(&path, 0o600).expect_err("it is taken");
    assert_eq!(refused.to_string(), format!("{}: it is busy: a server is listening there already", path.display()));
    UnixStream::connect(&path).expect("the first one still has it");
}

#[test]
fn a_socket_that_has_been_replaced_is_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("nbd.sock");
    let (socket, bound) = bind_unix(&path, 0o600).expect("a socket");
    fs::remove_file(&path).expect("somebody removes it");
    let other = UnixListener::bind(&path).expect("and makes another one");
    drop((socket, bound));
    assert!(path.exists());
    drop(other);
}

#[test]
fn what_is_in_the_way_or_cannot_be_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    fs::write(&file, "text").expect("a file");
    let said = bind_unix(&file, 0o600).expect_err("a file").to_string();
    assert_eq!(
        said,
        format!("{}: there is a file that is no socket: remove it, or choose another path", file.display())
    );
    assert_eq!(fs::read(&file).expect("it is still there"), b"text");
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&file, &link).expect("a link");
    assert!(matches!(bind_unix(&link, 0o600), Err(SocketError::NotASocket { .. })));
    let long = folder.path().join("x".repeat(120));
    let said = bind_unix(&long, 0o600).expect_err("too long").to_string();
    let length = long.as_os_str().len();
    assert_eq!(said, format!("{}: the path of a socket has at most 107 bytes, and this one {length}", long.display()));
    let nowhere = folder.path().join("none/nbd.sock");
    let said = bind_unix(&nowhere, 0o600).expect_err("no folder").to_string();
    assert_eq!(said, format!("{}: cannot be listened to: No such file or directory (os error 2)", nowhere.display()));
}

#[test]
fn of_many_servers_that_start_at_once_one_has_the_socket() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("nbd.sock");
    drop(UnixListener::bind(&path).expect("a dead one's"));
    let results: Vec<_> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..8).map(|_| scope.spawn(|| bind_unix(&path, 0o600))).collect();
        all.into_iter().map(|one| one.join().expect("no panic")).collect()
    });
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1, "{results:?}");
    UnixStream::connect(&path).expect("and it can be reached");
}

#[test]
fn a_tcp_address_that_is_taken_is_busy() {
    let any: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    let socket = bind_tcp(any).expect("a port");
    let address = rustix::net::getsockname(socket.as_fd()).expect("an address");
    let address = SocketAddr::try_from(address).expect("of TCP");
    TcpStream::connect(address).expect("it is listened to");
    let said = bind_tcp(address).expect_err("it is taken").to_string();
    assert_eq!(said, format!("{address}: it is busy: a server is listening there already"));
    let elsewhere: SocketAddr = "192.0.2.1:7".parse().expect("an address of nobody");
    assert!(matches!(bind_tcp(elsewhere), Err(SocketError::System { .. })));
}

#[test]
fn tcp_beyond_loopback_takes_tls_or_a_word() {
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

/// An authority, and files of certificates that it has signed.
struct Authority {
    folder: tempfile::TempDir,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Authority {
        let mut params = CertificateParams::new([]).expect("parameters");
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
        let mut params = CertificateParams::new([]).expect("parameters");
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

/// A client that shows a certificate, or none.
fn client(authority: &Authority, shows: Option<&str>) -> ClientConnection {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(authority.path("ca.pem")).expect("the authority")).expect("a root");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().expect("versions");
    let builder = builder.with_root_certificates(roots);
    let config = match shows {
        None => builder.with_no_client_auth(),
        Some(name) => {
            let certificate =
                CertificateDer::from_pem_file(authority.path(&format!("{name}.pem"))).expect("a certificate");
            let key = PrivateKeyDer::from_pem_file(authority.path(&format!("{name}.key"))).expect("a key");
            builder.with_client_auth_cert(vec![certificate], key).expect("a pair")
        }
    };
    ClientConnection::new(Arc::new(config), ServerName::try_from("server.test").expect("a name")).expect("a client")
}

/// Lets both talk until the handshake is over; the server's end, or why it failed.
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
    let mut said = [0; 5];
    server.reader().read_exact(&mut said).expect("what was said");
    assert_eq!(&said, b"hello");
    Ok(server)
}

#[test]
fn a_client_is_known_by_the_names_in_its_certificate_and_without_one_it_stays_out() {
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
    assert!(handshake(&files, client(&authority, Some("mallory"))).is_err(), "another authority's");

    let open = TlsConfig { client_authority: None, ..authority.config("server") };
    let files = tls_server(&open).expect("certificates");
    let server = handshake(&files, client(&authority, None)).expect("a connection");
    assert!(server.peer_certificates().is_none());
}

#[test]
fn certificates_that_are_of_no_use_are_told_with_their_file() {
    let authority = Authority::new();
    authority.sign("server", vec![dns("server.test")]);
    authority.sign("other", vec![]);
    let good = authority.config("server");
    let said = |config: TlsConfig| {
        let said = tls_server(&config).expect_err("it is of no use").to_string();
        said.replace(&format!("{}/", authority.folder.path().display()), "")
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
            "text.pem: this is no certificate: there is no -----BEGIN CERTIFICATE----- in it",
        ),
        (
            with(&|config| config.key = text.clone()),
            "text.pem: this is no key: there is no -----BEGIN PRIVATE KEY----- (or RSA, or EC) in it",
        ),
        (
            with(&|config| config.key = locked.clone()),
            "locked.key: this is no key: it is locked with a password: write it without",
        ),
        (
            with(&|config| config.client_authority = Some(text.clone())),
            "text.pem: this is no client authority: there is no -----BEGIN CERTIFICATE----- in it",
        ),
        (
            with(&|config| config.certificate = authority.folder.path().to_owned()),
            "cannot read the certificate: it is no regular file",
        ),
    ];
    for (config, expected) in table {
        let said = said(config);
        assert!(said == expected || said.ends_with(&format!(": {expected}")), "{said}\nshould be\n{expected}");
    }
    let mismatch = said(with(&|config| config.key = authority.path("other.key")));
    assert!(mismatch.starts_with("server.pem and other.key do not fit together: "), "{mismatch}");
}

#[test]
fn a_key_that_everybody_can_read_is_used_with_a_warning() {
    let authority = Authority::new();
    authority.sign("server", vec![]);
    let config = authority.config("server");
    let chmod = |mode| fs::set_permissions(&config.key, fs::Permissions::from_mode(mode)).expect("a mode");
    chmod(0o640);
    assert!(tls_server(&config).expect("certificates").warnings.is_empty(), "a group can be meant");
    chmod(0o644);
    assert_eq!(
        tls_server(&config).expect("certificates").warnings,
        [format!("{}: everybody on this machine can read the key (mode 0644): chmod o-r", config.key.display())]
    );
}
