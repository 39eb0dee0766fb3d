//! Certificates and keys from files: each error names its file and says what would be right.

use hoistway_config::{RemoteTlsConfig, TlsConfig};
use hoistway_tls::{tls_client, tls_server};

use crate::authority::{Authority, EXPIRED, SERVER, VALID};

fn client_error(authority: &Authority, config: &RemoteTlsConfig) -> String {
    authority.text(&tls_client(config).expect_err("an invalid file"))
}

fn server_error(authority: &Authority, config: &TlsConfig) -> String {
    authority.text(&tls_server(config).expect_err("an invalid file"))
}

#[test]
fn a_key_of_another_certificate_is_an_error_that_names_both_files() {
    let authority = Authority::new();
    let expected = "do not match: the key belongs to another certificate; the first certificate of the file has to be \
                    the owner's";
    let server = TlsConfig { key: authority.path("alice.key"), ..authority.server("server", false) };
    assert_eq!(server_error(&authority, &server), format!("server.pem and alice.key {expected}"));
    let identity = Some((authority.path("alice.pem"), authority.path("server.key")));
    let client = RemoteTlsConfig { identity, ..authority.client(None) };
    assert_eq!(client_error(&authority, &client), format!("alice.pem and server.key {expected}"));
}

#[test]
fn a_chain_begins_with_the_certificate_of_the_key() {
    let authority = Authority::new();
    let read = |name: &str| std::fs::read_to_string(authority.path(name)).expect("a file");
    authority.write("chain.pem", &(read("server.pem") + &read("ca.pem")));
    authority.write("chain.key", &read("server.key"));
    tls_server(&authority.server("chain", false)).expect("a good chain");
    authority.write("chain.pem", &(read("ca.pem") + &read("server.pem")));
    let error = server_error(&authority, &authority.server("chain", false));
    assert!(error.starts_with("chain.pem and chain.key do not match: "), "{error}");
}

#[test]
fn errors_of_a_clients_files_name_the_file() {
    let authority = Authority::new();
    authority.write("text.pem", "no certificate");
    authority.write("cut.pem", "-----BEGIN CERTIFICATE-----\nMIIB\n");
    authority.write("bytes.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    authority.write("rsa.key", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n");
    let good = authority.client(Some("alice"));
    let of_authority =
        |name: &str| client_error(&authority, &RemoteTlsConfig { authority: authority.path(name), ..good.clone() });
    assert_eq!(
        of_authority("none.pem"),
        "none.pem: cannot read the authority of the remote: No such file or directory (os error 2)"
    );
    assert_eq!(
        of_authority("text.pem"),
        "text.pem: not a valid authority of the remote: no -----BEGIN CERTIFICATE----- found"
    );
    for name in ["cut.pem", "bytes.pem"] {
        let error = of_authority(name);
        assert!(error.starts_with(&format!("{name}: not a valid authority of the remote: ")), "{error}");
    }
    let of_identity = |certificate: &str, key: &str| {
        let identity = Some((authority.path(certificate), authority.path(key)));
        client_error(&authority, &RemoteTlsConfig { identity, ..good.clone() })
    };
    assert_eq!(
        of_identity("none.pem", "alice.key"),
        "none.pem: cannot read the certificate: No such file or directory (os error 2)"
    );
    assert_eq!(
        of_identity("alice.pem", "none.key"),
        "none.key: cannot read the key: No such file or directory (os error 2)"
    );
    assert_eq!(
        of_identity("alice.pem", "text.pem"),
        "text.pem: not a valid key: no -----BEGIN PRIVATE KEY----- (or RSA, or EC) found"
    );
    let error = of_identity("alice.pem", "rsa.key");
    assert!(error.starts_with("rsa.key: not a valid key: "), "{error}");
    let error = of_identity("bytes.pem", "alice.key");
    assert!(error.starts_with("bytes.pem: not a valid certificate: "), "{error}");
}

#[test]
fn the_name_of_a_server_is_a_host_name_or_an_address() {
    let authority = Authority::new();
    let with = |host: &str| RemoteTlsConfig { host: host.to_owned(), ..authority.client(None) };
    for host in [SERVER, "192.0.2.1", "2001:db8::1"] {
        assert_eq!(tls_client(&with(host)).expect("a good name").name.to_str(), host);
    }
    for host in ["", "two words", "name:10809", "[2001:db8::1]"] {
        assert_eq!(
            client_error(&authority, &with(host)),
            format!("{host:?} is no name that a certificate can have: a host name or an IP address is needed")
        );
    }
}

#[test]
fn each_certificate_of_a_chain_that_is_not_valid_causes_a_warning_with_its_number() {
    let authority = Authority::new();
    authority.issue("old", EXPIRED, &[SERVER]);
    authority.issue("new", VALID, &[SERVER]);
    let read = |name: &str| std::fs::read_to_string(authority.path(name)).expect("a file");
    authority.write("chain.pem", &(read("new.pem") + &read("old.pem") + &read("ca.pem")));
    authority.write("chain.key", &read("new.key"));
    let warnings = tls_server(&authority.server("chain", true)).expect("the server starts all the same").warnings;
    let expected =
        format!("{}: certificate 2 of the chain expired at 2001-01-01", authority.path("chain.pem").display());
    assert!(warnings.len() == 1 && warnings[0].starts_with(&expected), "{warnings:?}");
}

#[test]
fn a_clients_key_that_all_users_can_read_causes_a_warning() {
    use std::os::unix::fs::PermissionsExt as _;
    let authority = Authority::new();
    let warnings = || tls_client(&authority.client(Some("alice"))).expect("good files").warnings;
    assert_eq!(warnings(), [""; 0]);
    std::fs::set_permissions(authority.path("alice.key"), std::fs::Permissions::from_mode(0o604)).expect("a mode");
    let expected = format!(
        "{}: all users of this machine can read the key (mode 0604): chmod o-r",
        authority.path("alice.key").display()
    );
    assert_eq!(warnings(), [expected]);
}
