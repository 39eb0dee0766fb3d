//! Parses values. The error of a parser says what is allowed.

use std::net::{IpAddr, SocketAddr};

use hoistway_core::Kind;
use hoistway_units::{UnitError, parse_bytes, parse_duration_ns, parse_rate, print_size};

use crate::draft::{Entry, LocatedValue, Location, Problem, Value};
use crate::names::suggestion;

/// The TCP port of NBD.
pub const NBD_PORT: u16 = 10_809;
/// The longest name of a device, tenant or group, in characters.
const NAME_MAX: usize = 64;
/// The longest text that is sent to clients, in bytes.
pub(crate) const TEXT_MAX: usize = 4096;

/// A parsed value, or a text that says what is allowed.
pub(crate) type ParseResult<T> = Result<T, String>;

impl LocatedValue {
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// An entry whose keys are being parsed.
pub(crate) struct Fields<'a> {
    pub entry: &'a Entry,
    pub problems: &'a mut Vec<Problem>,
}

impl Fields<'_> {
    /// Parses the value of a key. Returns `None` if the key is absent or its value invalid.
    pub fn read<T>(&mut self, key: &str, form: impl FnOnce(&Value) -> ParseResult<T>) -> Option<T> {
        let located = self.entry.get(key)?;
        match form(&located.value) {
            Ok(value) => Some(value),
            Err(right) => {
                self.problem(&located.location, format!("`{key}` is {}: {right}", located.value));
                None
            }
        }
    }

    /// Parses the value of a key that takes one text or a list of texts.
    pub fn read_each<T>(&mut self, key: &str, form: impl Fn(&Value) -> ParseResult<T>) -> Vec<(T, Location)> {
        let Some(located) = self.entry.get(key) else { return Vec::new() };
        let each = match &located.value {
            Value::List(each) => each.as_slice(),
            _ => std::slice::from_ref(located),
        };
        let mut read = Vec::new();
        for located in each {
            match form(&located.value) {
                Ok(value) => read.push((value, located.location.clone())),
                Err(right) => self.problem(&located.location, format!("`{key}` is {}: {right}", located.value)),
            }
        }
        read
    }

    /// Returns the location of a key's value, or that of the entry if the key is absent.
    pub fn location(&self, key: &str) -> Location {
        self.entry.get(key).map_or(&self.entry.location, |located| &located.location).clone()
    }

    pub fn problem(&mut self, location: &Location, text: String) {
        self.problems.push(Problem { location: location.clone(), text });
    }

    /// Reports a missing key.
    pub fn missing(&mut self, key: &str, right: &str) {
        let text = format!("{} has no `{key}`: {right}", self.entry.section.heading());
        self.problem(&self.entry.location.clone(), text);
    }
}

/// Parses a text.
pub(crate) fn text(value: &Value) -> ParseResult<String> {
    match value {
        Value::Text(text) => Ok(text.clone()),
        _ => Err("it takes text, in quotes".into()),
    }
}

/// Parses a path: a text that is not empty and has no NUL.
pub(crate) fn path(value: &Value) -> ParseResult<String> {
    match value {
        Value::Text(text) if !text.is_empty() && !text.contains('\0') => Ok(text.clone()),
        _ => Err("it takes a path".into()),
    }
}

/// Parses a boolean.
pub(crate) fn switch(value: &Value) -> ParseResult<bool> {
    match value {
        Value::Switch(switch) => Ok(*switch),
        Value::Text(text) if matches!(text.as_str(), "true" | "yes" | "on") => Ok(true),
        Value::Text(text) if matches!(text.as_str(), "false" | "no" | "off") => Ok(false),
        _ => Err("it takes true or false".into()),
    }
}

/// Parses a whole number within a range; on the command line it is a text.
pub(crate) fn whole(value: &Value, min: u64, max: u64) -> ParseResult<u64> {
    let number = match value {
        Value::Integer(number) => number.and_then(|number| u64::try_from(number).ok()),
        Value::Text(text) => text.parse().ok(),
        _ => None,
    };
    let right = if max == u64::MAX { format!("it takes {min} or more") } else { format!("it takes {min} to {max}") };
    number.filter(|number| (min..=max).contains(number)).ok_or(right)
}

/// Parses a size in bytes: a number, or a text with a unit.
pub(crate) fn bytes(value: &Value) -> ParseResult<u64> {
    parse_with_unit(value, parse_bytes, "it takes a size such as 256M or 4k")
}

/// Parses a size in bytes of whole sectors.
pub(crate) fn sectors(value: &Value) -> ParseResult<u64> {
    let bytes = bytes(value)?;
    if bytes.is_multiple_of(512) { Ok(bytes) } else { Err("it takes whole sectors, multiples of 512 bytes".into()) }
}

/// Parses a rate in bytes a second.
pub(crate) fn rate(value: &Value) -> ParseResult<u64> {
    match parse_with_unit(value, parse_rate, "it takes a rate in bytes a second such as 150M")? {
        0 => Err("it takes a rate above 0".into()),
        rate => Ok(rate),
    }
}

/// Parses a size in bytes within a range.
pub(crate) fn bytes_within(value: &Value, min: u64, max: u64) -> ParseResult<u64> {
    let bytes = bytes(value)?;
    let right = || format!("it takes {} to {}", print_size(min), print_size(max));
    (min..=max).contains(&bytes).then_some(bytes).ok_or_else(right)
}

fn parse_with_unit(value: &Value, parse: fn(&str) -> Result<u64, UnitError>, right: &str) -> ParseResult<u64> {
    match value {
        Value::Integer(number) => number.and_then(|number| u64::try_from(number).ok()).ok_or_else(|| right.into()),
        Value::Text(text) => parse(text).map_err(|error| why(&error, right)),
        _ => Err(right.into()),
    }
}

/// Parses a time of at most a second, in ns.
pub(crate) fn time_ns(value: &Value) -> ParseResult<u64> {
    const RIGHT: &str = "it takes a time of at most 1s, with its unit, such as 12ms or 60us";
    match value {
        Value::Text(text) => {
            let ns = parse_duration_ns(text).map_err(|error| why(&error, RIGHT))?;
            if ns <= 1_000_000_000 { Ok(ns) } else { Err(RIGHT.into()) }
        }
        _ => Err(RIGHT.into()),
    }
}

/// Parses the time from which a request counts as slow.
pub(crate) fn log_slow_ns(value: &Value) -> ParseResult<u64> {
    const RIGHT: &str = "it takes a time of 1ms to 1h, with its unit, such as 500ms or 30s";
    match value {
        Value::Text(text) => match parse_duration_ns(text).map_err(|error| why(&error, RIGHT))? {
            ns @ 1_000_000..=3_600_000_000_000 => Ok(ns),
            _ => Err(RIGHT.into()),
        },
        _ => Err(RIGHT.into()),
    }
}

/// Returns why a text is no size or time, if that is more specific than `right`.
fn why(error: &UnitError, right: &str) -> String {
    match (error, error.help()) {
        (UnitError::Unit { unit, .. }, Some(help)) if !unit.is_empty() => format!("`{unit}` is not a unit; {help}"),
        (UnitError::Fraction(_), Some(help)) => format!("it takes whole numbers; {help}"),
        (UnitError::TooLarge { most, .. }, _) => format!("that is too large; the most is {most}"),
        _ => right.into(),
    }
}

/// Parses the name of a device, tenant or group.
pub(crate) fn name(value: &Value) -> ParseResult<String> {
    let right = || format!("a name has letters, digits, `-`, `_` and `.`, and 1 to {NAME_MAX} of them");
    match value {
        Value::Text(text) if is_name(text) => Ok(text.clone()),
        _ => Err(right()),
    }
}

/// Returns true if a text is valid as the name of a device, tenant or group.
pub(crate) fn is_name(text: &str) -> bool {
    (1..=NAME_MAX).contains(&text.chars().count()) && text.chars().all(is_name_char) && text != "." && text != ".."
}

/// Returns true if names may contain this character.
pub(crate) fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

/// Parses the name of an export. Names are sent to clients, and `*` is a wildcard in rules.
pub(crate) fn export_name(value: &Value) -> ParseResult<String> {
    match value {
        Value::Text(text) if text.len() > TEXT_MAX => Err(format!("a name has at most {TEXT_MAX} bytes")),
        Value::Text(text) if text.contains('*') || text.chars().any(char::is_control) => {
            Err("a name has no `*`, which stands for any characters in rules, and no control characters".into())
        }
        Value::Text(text) => Ok(text.clone()),
        _ => Err("it takes text, in quotes".into()),
    }
}

/// Parses a description for users.
pub(crate) fn description(value: &Value) -> ParseResult<String> {
    let text = text(value)?;
    if text.len() <= TEXT_MAX { Ok(text) } else { Err(format!("it takes at most {TEXT_MAX} bytes")) }
}

/// Parses a file mode.
pub(crate) fn mode(value: &Value) -> ParseResult<u32> {
    const RIGHT: &str = "it takes octal digits in quotes, such as \"0660\"";
    match value {
        Value::Text(text) => {
            let digits = text.strip_prefix("0o").unwrap_or(text);
            u32::from_str_radix(digits, 8).ok().filter(|mode| *mode <= 0o777).ok_or_else(|| RIGHT.into())
        }
        _ => Err(RIGHT.into()),
    }
}

/// Parses an address with a port; the default port is that of NBD.
pub(crate) fn nbd_address(value: &Value) -> ParseResult<SocketAddr> {
    match value {
        Value::Text(text) => text.parse().ok().or_else(|| {
            let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
            Some(SocketAddr::new(bare.parse::<IpAddr>().ok()?, NBD_PORT))
        }),
        _ => None,
    }
    .ok_or_else(|| "it takes an IP address, with a port if it is not 10809, such as 127.0.0.1:10809 or [::1]".into())
}

/// Parses an address with a port.
pub(crate) fn address(value: &Value) -> ParseResult<SocketAddr> {
    value_text(value)
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| "it takes an IP address and a port, such as 127.0.0.1:9464".into())
}

/// Parses a network: an address and a prefix length. IPv4-mapped IPv6 addresses become IPv4.
pub(crate) fn network(value: &Value) -> ParseResult<(IpAddr, u8)> {
    const RIGHT: &str = "it takes an IP address or a network, such as 192.168.0.7, 10.0.0.0/8 or fd00::/8";
    let text = value_text(value).ok_or(RIGHT)?;
    let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
    let address: IpAddr = address.parse().map_err(|_| RIGHT)?;
    let width = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.map_or(Ok(width), |bits| bits.parse::<u8>().map_err(|_| RIGHT))?;
    if bits > width {
        return Err(format!("an address of this kind has {width} bits"));
    }
    let (address, bits) = match address {
        IpAddr::V6(six) if bits >= 96 => six.to_ipv4_mapped().map_or((address, bits), |four| (four.into(), bits - 96)),
        _ => (address, bits),
    };
    let network = crate::rules::first_bits(address, bits);
    if network == address {
        Ok((network, bits))
    } else {
        Err(format!("the network of {bits} bits is {network}/{bits}"))
    }
}

/// Parses the name of an elevator.
pub(crate) fn elevator(value: &Value) -> ParseResult<Kind> {
    let typed = value_text(value).ok_or("it takes an elevator's name, in quotes")?;
    hoistway_custom::find(typed).ok_or_else(|| {
        let all = hoistway_custom::all();
        let names = all.iter().map(|kind| kind.info().name);
        format!("there is no such elevator{}", suggestion(typed, names, "hoistway elevators"))
    })
}

/// Returns the path of a file backend; `None` for other backends.
pub(crate) fn backend_path(text: &str) -> Option<&str> {
    match text.split_once(':') {
        Some(("file", path)) => Some(path),
        _ if is_uri(text) => None,
        Some(("mem" | "null", _)) => None,
        _ if matches!(text, "mem" | "null") => None,
        _ => Some(text),
    }
}

/// Returns true if a backend is an export of another NBD server.
pub(crate) fn is_uri(text: &str) -> bool {
    let scheme = text.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    matches!(scheme.as_deref(), Some("nbd" | "nbds" | "nbd+unix" | "nbds+unix"))
}

/// Parses the time after which requests to a remote fail, in ns.
pub(crate) fn timeout_ns(value: &Value) -> ParseResult<u64> {
    const RIGHT: &str = "it takes a time from 1s to 1h, with its unit, such as 30s or 5m";
    match value {
        Value::Text(text) => {
            let ns = parse_duration_ns(text).map_err(|error| why(&error, RIGHT))?;
            if (1_000_000_000..=3_600_000_000_000).contains(&ns) { Ok(ns) } else { Err(RIGHT.into()) }
        }
        _ => Err(RIGHT.into()),
    }
}

fn value_text(value: &Value) -> Option<&str> {
    match value {
        Value::Text(text) => Some(text),
        _ => None,
    }
}
