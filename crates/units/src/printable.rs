//! Text of unknown origin for terminals, logs and messages: names of processes, jobs, files and
//! exports come from traces, job files and clients, and a control character among them would reach
//! the terminal as a command.
//!
//! [`one_line`] and [`bytes`] are for names, [`lines`] for text whose line breaks are meant,
//! [`json`] for a JSON document. Each replaces the same characters ([`is_printable`]). The result
//! is for people: a backslash stays one backslash, so it cannot be decoded.

use std::borrow::Cow;
use std::fmt::{self, Display, Write};

/// Returns true if the character takes its place in a line and has no other effect. These have
/// one: control characters (C0, DEL, C1), line and paragraph separators, characters that change the
/// direction of writing, and characters without width (General Category `Cf` of Unicode, except
/// those that take a place), because they make different names look the same.
///
/// ```
/// use hoistway_units::printable::is_printable;
/// assert!(is_printable('ß') && is_printable('水') && is_printable('\\'));
/// assert!(!is_printable('\u{1b}') && !is_printable('\u{9b}') && !is_printable('\u{202e}'));
/// ```
pub fn is_printable(letter: char) -> bool {
    let has_effect = letter.is_control()
        || matches!(
            letter,
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'..='\u{1160}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        );
    !has_effect
}

/// A value whose text is written without unprintable characters.
#[derive(Clone, Copy, Debug)]
pub struct Printable<T> {
    value: T,
    breaks: Breaks,
}

/// The treatment of newlines and tabs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Breaks {
    /// They are escaped like other control characters.
    Escaped,
    /// They stay.
    Kept,
}

/// Returns the value for a place in a line: newlines become `\n`, other unprintable characters
/// `\x1b` or `\u{202e}`.
///
/// ```
/// use hoistway_units::printable::one_line;
/// assert_eq!(one_line("a\nb\x1b[31m").to_string(), r"a\nb\x1b[31m");
/// ```
pub fn one_line<T: Display>(value: T) -> Printable<T> {
    Printable { value, breaks: Breaks::Escaped }
}

/// Returns the value as text of several lines: newlines and tabs stay. Names in the text need
/// [`one_line`], or their newlines look like the text's.
pub fn lines<T: Display>(value: T) -> Printable<T> {
    Printable { value, breaks: Breaks::Kept }
}

/// Returns bytes, such as a path, as text of one line: invalid UTF-8 becomes `\xff`.
///
/// ```
/// use hoistway_units::printable::bytes;
/// assert_eq!(bytes(b"caf\xc3\xa9\n\xff"), "café\\n\\xff");
/// ```
pub fn bytes(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        // Writing to a string cannot fail.
        let _ = write_escaped(&mut text, chunk.valid(), Breaks::Escaped);
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// Returns a JSON document with the unprintable characters of its strings in JSON's own escapes
/// (RFC 8259, section 7), so that it has the same values. Newlines and tabs between values stay.
///
/// ```
/// use hoistway_units::printable::json;
/// assert_eq!(json("{\n\"a\": \"\u{9b}\u{e0001}\"}"), "{\n\"a\": \"\\u009b\\udb40\\udc01\"}");
/// ```
pub fn json(document: &str) -> Cow<'_, str> {
    let stays = |letter| is_printable(letter) || matches!(letter, '\n' | '\t' | '\r');
    if document.chars().all(stays) {
        return Cow::Borrowed(document);
    }
    let mut text = String::with_capacity(document.len() + 16);
    for letter in document.chars() {
        if stays(letter) {
            text.push(letter);
            continue;
        }
        for unit in letter.encode_utf16(&mut [0; 2]) {
            let _ = write!(text, "\\u{unit:04x}");
        }
    }
    Cow::Owned(text)
}

/// Returns the text in one line of at most `letters` characters; a longer one ends with `…`.
///
/// ```
/// use hoistway_units::printable::shortened;
/// assert_eq!(shortened("backup\n-job", 9), "backup\\n…");
/// ```
pub fn shortened(text: &str, letters: usize) -> String {
    let line = one_line(text).to_string();
    if line.chars().count() <= letters {
        return line;
    }
    line.chars().take(letters.saturating_sub(1)).chain(['…']).take(letters).collect()
}

impl<T: Display> Display for Printable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaping { out: f, breaks: self.breaks }, "{}", self.value)
    }
}

/// Passes text on without its unprintable characters.
struct Escaping<'a, 'b> {
    out: &'a mut fmt::Formatter<'b>,
    breaks: Breaks,
}

impl Write for Escaping<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        write_escaped(self.out, text, self.breaks)
    }
}

fn write_escaped(out: &mut impl Write, text: &str, breaks: Breaks) -> fmt::Result {
    let mut rest = text;
    let stays = |letter| is_printable(letter) || breaks == Breaks::Kept && matches!(letter, '\n' | '\t');
    while let Some(at) = rest.find(|letter| !stays(letter)) {
        let (before, tail) = rest.split_at(at);
        out.write_str(before)?;
        let mut letters = tail.chars();
        let Some(letter) = letters.next() else { break };
        match letter {
            '\n' => out.write_str("\\n")?,
            '\t' => out.write_str("\\t")?,
            '\r' => out.write_str("\\r")?,
            '\0'..='\x7f' => write!(out, "\\x{:02x}", u32::from(letter))?,
            _ => write!(out, "\\u{{{:x}}}", u32::from(letter))?,
        }
        rest = letters.as_str();
    }
    out.write_str(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One character of each kind that has an effect.
    const HOSTILE: &str = "\0\u{7}\t\n\r\u{1b}\u{7f}\u{85}\u{9b}\u{200b}\u{2028}\u{202e}\u{2066}\u{feff}\u{e0041}";

    #[test]
    fn no_text_has_an_unprintable_character_afterwards() {
        for text in [
            one_line(HOSTILE).to_string(),
            bytes(HOSTILE.as_bytes()),
            shortened(HOSTILE, 20),
            lines(HOSTILE).to_string().replace(['\n', '\t'], ""),
            json(HOSTILE).replace(['\n', '\t', '\r'], ""),
        ] {
            assert!(text.chars().all(is_printable), "{text:?}");
        }
        assert_eq!(one_line(HOSTILE).to_string().matches('\\').count(), HOSTILE.chars().count());
    }

    #[test]
    fn printable_text_stays_as_it_is() {
        for text in ["", "plain", r"C:\n", "Größe 水 🙂", "a\u{301}"] {
            assert_eq!(one_line(text).to_string(), text);
            assert_eq!(json(text), text);
        }
    }

    #[test]
    fn a_json_document_keeps_its_values() {
        // serde_json is no dependency of this crate: the escapes of RFC 8259 are written out.
        let document = format!("[\"{}\"]", HOSTILE.replace(['\0', '\u{7}', '\t', '\n', '\r', '\u{1b}'], ""));
        let expected = r#"["\u007f\u0085\u009b\u200b\u2028\u202e\u2066\ufeff\udb40\udc41"]"#;
        assert_eq!(json(&document), expected);
    }

    #[test]
    fn names_are_shortened_with_a_mark() {
        assert_eq!([shortened("tenant-000012", 12), shortened("web", 3)], ["tenant-0000\u{2026}", "web"]);
        assert_eq!([shortened("web", 1), shortened("web", 0)], ["\u{2026}", ""]);
    }

    #[test]
    fn formatted_text_is_escaped_in_its_parts() {
        assert_eq!(lines(format_args!("{}:\n\t{}", one_line("a\nb"), "c\x1b")).to_string(), "a\\nb:\n\tc\\x1b");
    }
}
