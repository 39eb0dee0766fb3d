//! Splits a text of any length into lines with a buffer of fixed size.

use memchr::memchr;

use crate::source::{InputPosition, ReadError};
use crate::stream::Stream;

/// Maximum length of a line in bytes. The supported formats have lines of at most 1.2 KiB (a
/// message of 1,024 bytes and its head).
pub const LINE_BYTES_MAX: usize = 64 << 10;
/// Size of the read buffer in bytes.
const BUFFER_BYTES: usize = 256 << 10;
/// The UTF-8 byte order mark that some editors write at the start of a text.
pub const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads a text line by line.
pub struct Lines {
    stream: Stream,
    buffer: Vec<u8>,
    /// Start of the bytes in the buffer that were not returned yet.
    start: usize,
    /// End of the bytes in the buffer that were not returned yet.
    end: usize,
    number: u64,
    at_end: bool,
}

/// A line of a text.
#[derive(Debug)]
pub struct Line<'a> {
    /// Contents without the line end.
    pub bytes: &'a [u8],
    /// Line number, counted from 1.
    pub number: u64,
    /// True if the line has a line end. A last line without one may be incomplete.
    pub whole: bool,
}

impl Lines {
    /// Creates a line reader for an input.
    pub fn new(stream: Stream) -> Lines {
        Lines { stream, buffer: vec![0; BUFFER_BYTES], start: 0, end: 0, number: 0, at_end: false }
    }

    /// Returns the next line, or None at the end.
    ///
    /// # Errors
    /// Fails with the error of the operating system, or if a line exceeds [`LINE_BYTES_MAX`].
    pub fn next_line(&mut self) -> Result<Option<Line<'_>>, ReadError> {
        let mut searched = 0;
        loop {
            let unread = self.buffer.get(self.start..self.end).unwrap_or_default();
            if let Some(len) = memchr(b'\n', unread.get(searched..).unwrap_or_default()).map(|at| searched + at) {
                let from = self.start;
                self.start += len + 1;
                return Ok(Some(self.line(from, len, true)));
            }
            searched = unread.len();
            if searched > LINE_BYTES_MAX {
                return Err(self.too_long());
            }
            if self.at_end {
                let from = self.start;
                self.start = self.end;
                return Ok(if searched == 0 { None } else { Some(self.line(from, searched, false)) });
            }
            self.fill()?;
        }
    }

    /// Number of the line that was returned last, counted from 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Name of the input.
    pub fn name(&self) -> &str {
        &self.stream.name
    }

    fn line(&mut self, from: usize, len: usize, whole: bool) -> Line<'_> {
        self.number += 1;
        let bytes = self.buffer.get(from..from + len).unwrap_or_default();
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        let bytes = if self.number == 1 { bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes) } else { bytes };
        Line { bytes, number: self.number, whole }
    }

    fn fill(&mut self) -> Result<(), ReadError> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        let read = self.stream.read_some(self.buffer.get_mut(self.end..).unwrap_or_default())?;
        self.at_end = read == 0;
        self.end += read;
        Ok(())
    }

    fn too_long(&self) -> ReadError {
        ReadError::Bad {
            file: self.stream.name.clone(),
            position: InputPosition::Line(self.number + 1),
            what: format!("this line is longer than {} KiB: no trace has such lines", LINE_BYTES_MAX >> 10),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Read};

    use super::*;

    /// A reader that returns one byte at a time.
    struct Drops<'a>(&'a [u8]);

    impl Read for Drops<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.0.read(buffer.get_mut(..1).unwrap_or_default())
        }
    }

    fn all(text: &'static [u8]) -> Vec<String> {
        let mut lines = Lines::new(Stream { name: "a".into(), read: Box::new(Drops(text)) });
        let mut all = Vec::new();
        while let Some(line) = lines.next_line().unwrap() {
            all.push(String::from_utf8_lossy(line.bytes).into_owned());
        }
        all
    }

    #[test]
    fn all_line_ends_are_recognised_and_the_last_line_needs_none() {
        assert_eq!(all(b"\xef\xbb\xbfone\r\n\ntwo\nthree"), ["one", "", "two", "three"]);
        assert_eq!(all(b""), [""; 0]);
    }

    #[test]
    fn a_line_of_zeros_without_end_is_an_error_after_64_kib() {
        let mut lines = Lines::new(Stream { name: "zeros".into(), read: Box::new(io::repeat(0)) });
        assert_eq!(
            lines.next_line().unwrap_err().to_string(),
            "zeros:1: this line is longer than 64 KiB: no trace has such lines"
        );
    }
}
