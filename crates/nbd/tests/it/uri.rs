//! URIs of exports.

use hoistway_nbd::uri::{ServerAddress, TlsQuery, Uri};

fn uri(text: &str) -> Uri {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn tcp(host: &str, port: u16) -> ServerAddress {
    ServerAddress::Tcp { host: host.to_owned(), port }
}

#[test]
fn hosts_ports_and_names_are_read() {
    for (text, place, export) in [
        ("nbd://example.com", tcp("example.com", 10809), ""),
        ("nbd://example.com/", tcp("example.com", 10809), ""),
        ("NBD://example.com:10810/disk", tcp("example.com", 10810), "disk"),
        ("nbd://127.0.0.1/a/b//c", tcp("127.0.0.1", 10809), "a/b//c"),
        ("nbd://[::1]:99/x", tcp("::1", 99), "x"),
        ("nbd://[fe80::2]/x", tcp("fe80::2", 10809), "x"),
        ("nbd:///x", tcp("localhost", 10809), "x"),
        ("nbd://h//x", tcp("h", 10809), "/x"),
        ("nbd://h/disk%40tenant%2F%3f%25", tcp("h", 10809), "disk@tenant/?%"),
        ("nbd://h/%C3%A9", tcp("h", 10809), "é"),
    ] {
        let uri = uri(text);
        assert_eq!((&uri.server, uri.export.as_str(), uri.tls), (&place, export, false), "{text}");
    }
}

#[test]
fn sockets_are_named_by_the_query() {
    let uri = uri("nbds+unix:///disk?socket=/run/a%20b&tls-type=psk&tls-psk-file=/k&tls-verify-peer=off");
    assert_eq!(uri.server, ServerAddress::Unix { path: "/run/a b".to_owned() });
    assert!(uri.tls);
    assert_eq!(uri.export, "disk");
    assert_eq!(uri.tls_query.kind.as_deref(), Some("psk"));
    assert_eq!(uri.tls_query.psk_file.as_deref(), Some("/k"));
    assert_eq!(uri.tls_query.verify_peer, Some(false));
}

#[test]
fn users_and_hostnames_are_for_tls() {
    let uri = uri("nbds://alice@example.com/d?tls-hostname=disk.example&tls-certificates=/pki");
    assert_eq!(uri.user.as_deref(), Some("alice"));
    assert_eq!(uri.tls_query.hostname.as_deref(), Some("disk.example"));
    assert_eq!(uri.tls_query.certificates.as_deref(), Some("/pki"));
    assert_eq!(TlsQuery { hostname: None, certificates: None, ..uri.tls_query }, TlsQuery::default());
}

#[test]
fn a_uri_is_printed_as_it_is_read() {
    for text in [
        "nbd://example.com/",
        "nbd://example.com:1/disk/a",
        "nbd://[::1]:99/x",
        "nbds://al%40ice@h/d%3F?tls-type=x509&tls-hostname=a.b&tls-verify-peer=1",
        "nbd+unix:///disk%40tenant?socket=/run/nbd.sock",
        "nbds+unix:///?socket=/a%26b&tls-psk-file=/k",
    ] {
        assert_eq!(uri(text).to_string(), text);
        assert_eq!(uri(&uri(text).to_string()), uri(text));
    }
}

#[test]
fn an_invalid_uri_is_explained() {
    for (text, words) in [
        ("disk", "begins with nbd://"),
        ("http://h/d", "unknown scheme \"http\""),
        ("nbd+vsock://2/d", "unknown scheme \"nbd+vsock\""),
        ("nbd://h:0/d", "1 to 65535"),
        ("nbd://h:65536/d", "\"65536\" is no port"),
        ("nbd://h:+1/d", "\"+1\" is no port"),
        ("nbd://::1/d", "is no port"),
        ("nbd://[::1/d", "the ] after an IPv6 address is missing"),
        ("nbd://[::1]x/d", "expected :PORT"),
        ("nbd://[disk]/d", "is no IPv6 address"),
        ("nbd://h/d#part", "%23"),
        ("nbd://h/%zz", "two hexadecimal digits"),
        ("nbd://h/100%", "two hexadecimal digits"),
        ("nbd://h/%00", "has a NUL"),
        ("nbd://h/%ff", "is not UTF-8"),
        ("nbd://h/d?socket=/s", "only valid with nbd+unix://"),
        ("nbd+unix:///d", "?socket=PATH"),
        ("nbd+unix://h/d?socket=/s", "a Unix socket has none"),
        ("nbd+unix:///d?socket=", "has no value"),
        ("nbd+unix:///d?socket=/a&socket=/b", "occurs twice"),
        ("nbd+unix:///d?sockt=/a", "unknown key \"sockt\": expected socket,"),
        ("nbds://h/d?x-mine=1", "unknown key \"x-mine\""),
        ("nbds://h/d?tls-verify-peer=maybe", "neither true nor false"),
        ("nbds://h/d?tls-type=ssl", "expected x509, psk or anon"),
        ("nbd://h/d?tls-type=psk", "only valid with nbds://"),
    ] {
        let error = text.parse::<Uri>().expect_err(text).to_string();
        assert!(error.contains(words) && error.contains(text), "{error}");
    }
    let long = format!("nbd://h/{}", "x".repeat(4097));
    assert!(long.parse::<Uri>().unwrap_err().what.contains("4097 bytes; the maximum is 4096"));
}
