//! Certificates in the handshake: who is accepted, who is refused, and what each side learns.

use hoistway_tls::tls_error_text;
use rustls::{AlertDescription, CertificateError, Error};

use crate::authority::{Authority, EXPIRED, NOT_YET, SERVER, VALID};
use crate::peer::{Pair, Side};

/// Shakes hands until one side fails. Returns the error of the channel, and the error of its peer
/// after it has received the channel's alert.
fn refusal(mut pair: Pair) -> (Option<Error>, Option<Error>) {
    for _ in 0..10 {
        let bytes = pair.of_peer();
        let error = pair.pass_to_channel(&bytes).err();
        let bytes = pair.of_channel();
        let peer_error = pair.pass_to_peer(&bytes).err();
        if error.is_some() || peer_error.is_some() {
            // If the peer failed, its alert is for the channel.
            let alert = pair.of_peer();
            let error = error.or_else(|| pair.pass_to_channel(&alert).err());
            return (error, peer_error);
        }
    }
    (None, None)
}

#[test]
fn the_names_of_a_client_are_known_after_the_handshake_and_not_before() {
    let authority = Authority::new();
    let mut pair = Pair::new(&authority, Side::Server, Some("alice"));
    assert_eq!(pair.channel.client_names(), [""; 0]);
    pair = pair.connect();
    assert_eq!(pair.channel.known_names(), [""; 0], "they were not asked for");
    assert_eq!(pair.channel.client_names(), ["alice", "db.test"]);
    assert_eq!(pair.channel.known_names(), ["alice", "db.test"]);
    let mut anonymous = Pair::new(&authority, Side::Server, None).connect();
    assert_eq!(anonymous.channel.client_names(), [""; 0]);
}

#[test]
fn a_client_whose_certificate_is_refused_gets_an_alert() {
    let authority = Authority::new();
    authority.issue("expired", EXPIRED, &[]);
    authority.issue("future", NOT_YET, &[]);
    let stranger = Authority::new();
    for file in ["pem", "key"] {
        let text = std::fs::read_to_string(stranger.path(&format!("alice.{file}"))).expect("a file");
        authority.write(&format!("stranger.{file}"), &text);
    }
    for (shows, expected, alert) in [
        (Some("expired"), "the client's certificate expired at 2001", AlertDescription::CertificateExpired),
        (Some("future"), "the client's certificate is not valid before 4000", AlertDescription::CertificateExpired),
        (Some("stranger"), "the client's certificate was not signed by", AlertDescription::DecryptError),
        (None, "the client presented no certificate", AlertDescription::CertificateRequired),
    ] {
        let (error, peer_error) = refusal(Pair::of(&authority, Side::Server, "server", true, shows));
        let text = tls_error_text(&error.expect("a refusal"));
        assert!(text.starts_with(expected), "{text}\nshould begin with\n{expected}");
        assert_eq!(peer_error, Some(Error::AlertReceived(alert)), "{shows:?}");
    }
}

#[test]
fn a_server_that_does_not_ask_accepts_clients_without_certificates() {
    let authority = Authority::new();
    assert_eq!(refusal(Pair::of(&authority, Side::Server, "server", false, None)), (None, None));
    let mut pair = Pair::of(&authority, Side::Server, "server", false, Some("alice")).connect();
    assert_eq!(pair.channel.client_names(), [""; 0], "the client shows nothing that it is not asked for");
}

#[test]
fn a_server_with_a_wrong_certificate_is_refused_and_gets_an_alert() {
    let authority = Authority::new();
    authority.issue("expired", EXPIRED, &[SERVER]);
    authority.issue("future", NOT_YET, &[SERVER]);
    authority.issue("other", VALID, &["other.test"]);
    let check = |name: &str| refusal(Pair::of(&authority, Side::Client, name, false, None));
    assert_eq!(check("server"), (None, None));
    for (name, alert) in [
        ("expired", AlertDescription::CertificateExpired),
        ("future", AlertDescription::CertificateExpired),
        ("other", AlertDescription::BadCertificate),
    ] {
        let (error, peer_error) = check(name);
        let fits = match error.expect("a refusal") {
            Error::InvalidCertificate(CertificateError::ExpiredContext { .. }) => name == "expired",
            Error::InvalidCertificate(CertificateError::NotValidYetContext { .. }) => name == "future",
            Error::InvalidCertificate(CertificateError::NotValidForNameContext { .. }) => name == "other",
            _ => false,
        };
        assert!(fits, "{name}");
        let peer_error = peer_error.expect("an alert");
        assert_eq!(peer_error, Error::AlertReceived(alert), "{name}");
        let text = tls_error_text(&peer_error);
        assert!(text.starts_with("the client refused the server's certificate: it "), "{text}");
    }
}

#[test]
fn a_server_of_another_authority_is_refused() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    for file in ["pem", "key"] {
        let text = std::fs::read_to_string(stranger.path(&format!("server.{file}"))).expect("a file");
        authority.write(&format!("stranger.{file}"), &text);
    }
    let (error, peer_error) = refusal(Pair::of(&authority, Side::Client, "stranger", false, None));
    assert!(matches!(error, Some(Error::InvalidCertificate(CertificateError::BadSignature))), "{error:?}");
    assert!(matches!(peer_error, Some(Error::AlertReceived(_))), "{peer_error:?}");
}

#[test]
fn a_client_shows_its_certificate_to_a_server_that_asks_for_it() {
    let authority = Authority::new();
    let pair = Pair::new(&authority, Side::Client, Some("alice")).connect();
    let shown = pair.peer.peer_certificates().expect("a certificate");
    assert_eq!(hoistway_tls::certificate_names(&shown[0]), ["alice", "db.test"]);
    let (_, peer_error) = refusal(Pair::of(&authority, Side::Client, "server", true, None));
    assert_eq!(peer_error, Some(Error::NoCertificatesPresented));
}
