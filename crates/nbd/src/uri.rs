//! URIs of exports: `nbd://host:port/export`, `nbds://`, `nbd+unix:///export?socket=PATH`,
//! `nbds+unix://`.
//!
//! Syntax and meaning follow "The NBD Uniform Resource Indicator (URI) format". The export name is
//! the path without its first slash, percent-decoded, and may be empty. The default port is 10809.
//! Unknown keys are errors.

use std::fmt;
use std::str::FromStr;

use crate::wire::STRING_BYTES_MAX;

/// Default port of NBD.
pub const PORT: u16 = 10809;

/// A parsed URI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uri {
    /// True if TLS is required.
    pub tls: bool,
    /// Address of the server.
    pub server: ServerAddress,
    /// User name for pre-shared keys.
    pub user: Option<String>,
    /// Name of the export.
    pub export: String,
    /// TLS parameters of the query.
    pub tls_query: TlsQuery,
}

/// Address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerAddress {
    /// A TCP address.
    Tcp {
        /// Host name or IP address without brackets.
        host: String,
        /// The TCP port.
        port: u16,
    },
    /// A Unix socket.
    Unix {
        /// Path of the socket.
        path: String,
    },
}

/// TLS parameters of the query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsQuery {
    /// `tls-type`: "x509", "psk" or "anon".
    pub kind: Option<String>,
    /// `tls-hostname`: the name that the server's certificate must have, if it differs from the
    /// host.
    pub hostname: Option<String>,
    /// `tls-verify-peer`: true if the server's certificate is verified.
    pub verify_peer: Option<bool>,
    /// `tls-certificates`: a directory of certificates.
    pub certificates: Option<String>,
    /// `tls-psk-file`: a file of pre-shared keys.
    pub psk_file: Option<String>,
}

/// Error of parsing a URI.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{uri:?}: {what}")]
pub struct UriError {
    /// The invalid text.
    pub uri: String,
    /// Description of the error and of the expected form.
    pub what: String,
}

impl FromStr for Uri {
    type Err = UriError;

    fn from_str(text: &str) -> Result<Uri, UriError> {
        read(text).map_err(|what| UriError { uri: text.to_owned(), what })
    }
}

impl fmt::Display for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.tls { "nbds" } else { "nbd" })?;
        if matches!(self.server, ServerAddress::Unix { .. }) {
            f.write_str("+unix")?;
        }
        f.write_str("://")?;
        if let Some(user) = &self.user {
            write!(f, "{}@", Encoded(user, false))?;
        }
        if let ServerAddress::Tcp { host, port } = &self.server {
            match host.contains(':') {
                true => write!(f, "[{host}]")?,
                false => write!(f, "{}", Encoded(host, false))?,
            }
            if *port != PORT {
                write!(f, ":{port}")?;
            }
        }
        write!(f, "/{}", Encoded(&self.export, true))?;
        let mut mark = '?';
        let mut pair = |f: &mut fmt::Formatter<'_>, key: &str, value: Option<&str>| match value {
            Some(value) => {
                let mark = std::mem::replace(&mut mark, '&');
                write!(f, "{mark}{key}={}", Encoded(value, true))
            }
            None => Ok(()),
        };
        if let ServerAddress::Unix { path } = &self.server {
            pair(f, "socket", Some(path))?;
        }
        let verify = self.tls_query.verify_peer.map(|verify| if verify { "1" } else { "0" });
        pair(f, "tls-type", self.tls_query.kind.as_deref())?;
        pair(f, "tls-hostname", self.tls_query.hostname.as_deref())?;
        pair(f, "tls-verify-peer", verify)?;
        pair(f, "tls-certificates", self.tls_query.certificates.as_deref())?;
        pair(f, "tls-psk-file", self.tls_query.psk_file.as_deref())
    }
}

fn read(text: &str) -> Result<Uri, String> {
    let (scheme, rest) =
        text.split_once("://").ok_or("a URI begins with nbd://, nbds://, nbd+unix:// or nbds+unix://")?;
    let (tls, unix) = match scheme.to_ascii_lowercase().as_str() {
        "nbd" => (false, false),
        "nbds" => (true, false),
        "nbd+unix" => (false, true),
        "nbds+unix" => (true, true),
        _ => {
            return Err(format!("unknown scheme {scheme:?}: expected nbd, nbds, nbd+unix or nbds+unix"));
        }
    };
    if rest.contains('#') {
        return Err("a # has no meaning here; write %23 for a # in a name".to_owned());
    }
    let (before, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = before.split_once('/').unwrap_or((before, ""));
    let (user, server) = match authority.rsplit_once('@') {
        Some((user, server)) => (Some(decoded(user, "the user")?), server),
        None => (None, authority),
    };
    let export = decoded(path, "the export name")?;
    if export.len() > STRING_BYTES_MAX {
        return Err(format!("the export name has {} bytes; the maximum is {STRING_BYTES_MAX}", export.len()));
    }
    let (socket, tls_query) = read_query(query)?;
    let server = match (unix, socket) {
        (true, None) => return Err("the socket is missing: add ?socket=PATH after the export".to_owned()),
        (true, Some(_)) if !server.is_empty() => {
            return Err(format!("unexpected server name {server:?}: a Unix socket has none"));
        }
        (true, Some(path)) => ServerAddress::Unix { path },
        (false, Some(_)) => return Err("socket= is only valid with nbd+unix:// and nbds+unix://".to_owned()),
        (false, None) => read_server(server)?,
    };
    if !tls && tls_query != TlsQuery::default() {
        return Err("keys that begin with tls- are only valid with nbds:// and nbds+unix://".to_owned());
    }
    Ok(Uri { tls, server, user, export, tls_query })
}

fn read_server(text: &str) -> Result<ServerAddress, String> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, behind) = rest.split_once(']').ok_or("the ] after an IPv6 address is missing")?;
            host.parse::<std::net::Ipv6Addr>().map_err(|_| format!("{host:?} is no IPv6 address"))?;
            match behind.strip_prefix(':') {
                Some(port) => (host.to_owned(), port),
                None if behind.is_empty() => (host.to_owned(), ""),
                None => return Err(format!("unexpected {behind:?} after the address: expected :PORT")),
            }
        }
        None => {
            let (host, port) = text.split_once(':').unwrap_or((text, ""));
            (decoded(host, "the server name")?, port)
        }
    };
    let port = match port {
        "" => PORT,
        digits if digits.bytes().all(|digit| digit.is_ascii_digit()) => {
            digits.parse().ok().filter(|port| *port > 0).ok_or_else(|| bad_port(digits))?
        }
        other => return Err(bad_port(other)),
    };
    let host = if host.is_empty() { "localhost".to_owned() } else { host };
    Ok(ServerAddress::Tcp { host, port })
}

fn bad_port(text: &str) -> String {
    format!("{text:?} is no port: expected 1 to 65535 (an IPv6 address needs brackets)")
}

fn read_query(query: &str) -> Result<(Option<String>, TlsQuery), String> {
    let (mut socket, mut tls) = (None, TlsQuery::default());
    let mut verify = None;
    for pair in query.split(['&', ';']).filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let slot = match key {
            "socket" => &mut socket,
            "tls-type" => &mut tls.kind,
            "tls-hostname" => &mut tls.hostname,
            "tls-certificates" => &mut tls.certificates,
            "tls-psk-file" => &mut tls.psk_file,
            "tls-verify-peer" => &mut verify,
            _ => {
                return Err(format!(
                    "unknown key {key:?}: expected socket, tls-type, tls-hostname, tls-verify-peer, tls-certificates or tls-psk-file"
                ));
            }
        };
        if slot.is_some() {
            return Err(format!("the key {key:?} occurs twice"));
        }
        let value = decoded(value, key)?;
        if value.is_empty() {
            return Err(format!("the key {key:?} has no value"));
        }
        *slot = Some(value);
    }
    tls.verify_peer = match verify.as_deref() {
        None => None,
        Some("1" | "true" | "yes" | "on") => Some(true),
        Some("0" | "false" | "no" | "off") => Some(false),
        Some(other) => return Err(format!("tls-verify-peer={other:?} is neither true nor false")),
    };
    if let Some(kind) = &tls.kind
        && !matches!(kind.as_str(), "x509" | "psk" | "anon")
    {
        return Err(format!("unknown tls-type={kind:?}: expected x509, psk or anon"));
    }
    Ok((socket, tls))
}

/// Decodes percent-encoded bytes.
fn decoded(text: &str, what: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digit = |at: usize| tail.get(at).and_then(|digit| char::from(*digit).to_digit(16));
        let (Some(high), Some(low)) = (digit(0), digit(1)) else {
            return Err(format!("in {what} {text:?}, two hexadecimal digits must follow a %; write %25 for a %"));
        };
        bytes.push((high * 16 + low) as u8);
        rest = tail.get(2..).unwrap_or_default();
    }
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Ok(text),
        Ok(_) => Err(format!("{what} has a NUL in it")),
        Err(_) => Err(format!("{what} is not UTF-8 when decoded")),
    }
}

/// Percent-encodes a text. Slashes are kept if the second field is true.
struct Encoded<'a>(&'a str, bool);

impl fmt::Display for Encoded<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.0.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                    write!(f, "{}", char::from(byte))?;
                }
                b'/' if self.1 => f.write_str("/")?,
                _ => write!(f, "%{byte:02X}")?,
            }
        }
        Ok(())
    }
}
