//! JSON in the script elements of pages.

use std::io;

use hoistway_units::printable;
use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::{CharEscape, CompactFormatter, Formatter};

use crate::ReportError;

/// Returns JSON with the same values, for readers of the page. Unprintable characters are in JSON's
/// escapes.
pub fn data_json<T: Serialize>(value: &T) -> Result<String, ReportError> {
    Ok(in_script(&printable::json(&serde_json::to_string(value)?)))
}

/// Returns JSON for the scripts of the page, which show its strings: unprintable characters are
/// replaced as in all other text for people.
pub fn shown_json<T: Serialize>(value: &T) -> Result<String, ReportError> {
    let mut text = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut text, Shown))?;
    Ok(in_script(&String::from_utf8_lossy(&text)))
}

/// Escapes `<` in strings, so that neither `</script>` nor `<!--` occurs; JSON has no `<` outside
/// of strings.
fn in_script(json: &str) -> String {
    json.replace('<', "\\u003c")
}

/// Writes strings without unprintable characters. Newlines and tabs stay.
struct Shown;

impl Formatter for Shown {
    fn write_string_fragment<W: ?Sized + io::Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        if fragment.chars().all(printable::is_printable) {
            return writer.write_all(fragment.as_bytes());
        }
        // Backslashes of the text are no part of a fragment.
        writer.write_all(printable::lines(fragment).to_string().replace('\\', "\\\\").as_bytes())
    }

    fn write_char_escape<W: ?Sized + io::Write>(&mut self, writer: &mut W, escape: CharEscape) -> io::Result<()> {
        let control = match escape {
            CharEscape::AsciiControl(byte) => byte,
            CharEscape::Backspace => 0x08,
            CharEscape::FormFeed => 0x0c,
            CharEscape::CarriageReturn => b'\r',
            other => return CompactFormatter.write_char_escape(writer, other),
        };
        writer.write_all(printable::lines(char::from(control)).to_string().replace('\\', "\\\\").as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "e\u{1b}[31mv\u{9b}\u{202e}\u{8}\r\\\"<\n\tß";

    #[test]
    fn data_have_their_values() {
        let json = data_json(&TEXT).unwrap();
        assert!(json.chars().all(printable::is_printable) && !json.contains('<'), "{json}");
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), TEXT);
    }

    #[test]
    fn shown_strings_are_printable() {
        let json = shown_json(&TEXT).unwrap();
        assert!(json.chars().all(printable::is_printable) && !json.contains('<'), "{json}");
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), printable::lines(TEXT).to_string());
    }
}
