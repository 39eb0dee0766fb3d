//! The log as entries of the systemd journal: the text of the line as `MESSAGE`, and each field of
//! an event as a field of its own, so that `journalctl HOISTWAY_TENANT=db` finds it.
//!
//! `tracing-journald` puts the fields beside the message only, where plain `journalctl` does not
//! show them.

use std::fmt::{self, Write as _};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

use hoistway_units::printable::one_line;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

/// The socket of the journal.
const SOCKET: &str = "/run/systemd/journal/socket";

/// Writes events to the journal. An entry that the journal does not take is printed on standard
/// error.
pub struct Journal {
    socket: UnixDatagram,
}

impl Journal {
    /// Opens the journal if systemd connected standard error to it, which `JOURNAL_STREAM` says by
    /// device and inode.
    pub fn of_standard_error() -> Option<Journal> {
        let stream = std::env::var("JOURNAL_STREAM").ok()?;
        let error = std::fs::File::from(std::io::stderr().as_fd().try_clone_to_owned().ok()?);
        let metadata = error.metadata().ok()?;
        (stream == format!("{}:{}", metadata.dev(), metadata.ino())).then(|| Journal::connect(Path::new(SOCKET)))?
    }

    fn connect(path: &Path) -> Option<Journal> {
        let socket = UnixDatagram::unbound().ok()?;
        socket.connect(path).ok()?;
        Some(Journal { socket })
    }
}

impl<S: Subscriber> Layer<S> for Journal {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut entry = Entry::default();
        event.record(&mut entry);
        let metadata = event.metadata();
        let bytes = entry.bytes(*metadata.level(), metadata.target());
        if self.socket.send(&bytes).is_err() {
            eprintln!("{}{}", entry.message, entry.text);
        }
    }
}

/// The parts of an entry.
#[derive(Default)]
struct Entry {
    /// The message of the event.
    message: String,
    /// The other fields as ` name=value`, which follow the message.
    text: String,
    /// The other fields in the protocol's form.
    fields: Vec<u8>,
}

impl Entry {
    /// Returns the entry in the journal's native protocol.
    fn bytes(&self, level: Level, target: &str) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(256 + self.fields.len());
        // The priorities are those of syslog.
        let priority = match level {
            Level::ERROR => "3",
            Level::WARN => "4",
            Level::INFO => "6",
            _ => "7",
        };
        put(&mut bytes, "PRIORITY", priority);
        put(&mut bytes, "SYSLOG_IDENTIFIER", crate::program::name());
        put(&mut bytes, "HOISTWAY_TARGET", target);
        put(&mut bytes, "MESSAGE", &format!("{}{}", self.message, self.text));
        bytes.extend(&self.fields);
        bytes
    }

    fn field(&mut self, field: &Field, value: &str) {
        let value = one_line(value).to_string();
        if field.name() == "message" {
            self.message = value;
            return;
        }
        // Writing to a string cannot fail.
        let _ = write!(self.text, " {}={value}", field.name());
        put(&mut self.fields, &journal_name(field.name()), &value);
    }
}

impl Visit for Entry {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.field(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.field(field, &format!("{value:?}"));
    }
}

/// The name of a field in the journal: `HOISTWAY_` and the name in capital letters. The journal
/// takes letters, digits and underscores, 64 at most.
fn journal_name(name: &str) -> String {
    let plain = name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' });
    "HOISTWAY_".chars().chain(plain).take(64).collect()
}

/// Appends a field. The length precedes the value, which may have several lines.
fn put(bytes: &mut Vec<u8>, name: &str, value: &str) {
    bytes.extend(name.as_bytes());
    bytes.push(b'\n');
    bytes.extend((value.len() as u64).to_le_bytes());
    bytes.extend(value.as_bytes());
    bytes.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing_subscriber::layer::SubscriberExt as _;

    /// The fields of an entry in the journal's native protocol.
    fn fields(mut bytes: &[u8]) -> Vec<(String, String)> {
        let mut fields = Vec::new();
        while let Some(at) = bytes.iter().position(|&byte| byte == b'\n') {
            let name = String::from_utf8(bytes[..at].to_vec()).expect("a name");
            let (length, rest) = bytes[at + 1..].split_at(8);
            let length = u64::from_le_bytes(length.try_into().expect("8 bytes")) as usize;
            fields.push((name, String::from_utf8(rest[..length].to_vec()).expect("a value")));
            assert_eq!(rest[length], b'\n');
            bytes = &rest[length + 1..];
        }
        fields
    }

    #[test]
    fn an_event_is_an_entry_with_its_line_its_priority_and_its_fields() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("socket");
        let receiver = UnixDatagram::bind(&path).expect("a socket");
        let journal = Journal::connect(&path).expect("a journal");
        tracing::subscriber::with_default(tracing_subscriber::registry().with(journal), || {
            let error = std::io::Error::other("two\nlines");
            tracing::warn!(device = "sdb", tenant = "db", queue_ns = 12_u64, %error, "a request was slow");
        });
        let mut bytes = [0; 4096];
        let length = receiver.recv(&mut bytes).expect("an entry");
        let fields = fields(&bytes[..length]);
        let value = |name: &str| fields.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        assert_eq!(value("PRIORITY"), Some("4"));
        assert_eq!(value("MESSAGE"), Some(r"a request was slow device=sdb tenant=db queue_ns=12 error=two\nlines"));
        assert_eq!((value("HOISTWAY_DEVICE"), value("HOISTWAY_TENANT")), (Some("sdb"), Some("db")));
        assert_eq!((value("HOISTWAY_QUEUE_NS"), value("HOISTWAY_ERROR")), (Some("12"), Some(r"two\nlines")));
        assert_eq!(value("SYSLOG_IDENTIFIER"), Some("hoistway"));
    }
}
