//! Reads texts in tests.

use std::io::Cursor;

use super::{LineFormat, Text};
use crate::batch::Batch;
use crate::open::Stream;
use crate::source::{ReadError, Source};

/// A text called `a`, as a source.
fn source<F: LineFormat>(format: F, text: &str) -> Text<F> {
    Text::new(Stream { name: "a".to_owned(), read: Box::new(Cursor::new(text.to_owned().into_bytes())) }, format)
}

/// The one batch of a short text that is right.
pub(crate) fn read<F: LineFormat>(format: F, text: &str) -> Batch {
    let mut batch = Batch::new();
    source(format, text).next(&mut batch).unwrap();
    batch
}

/// How many events there are (with those that are names), or the error; and what was noticed.
pub(crate) fn events<F: LineFormat>(format: F, text: &str) -> (Result<usize, String>, Vec<String>) {
    let mut source = source(format, text);
    let (mut batch, mut count) = (Batch::new(), 0);
    let outcome = loop {
        match source.next(&mut batch) {
            Ok(()) if batch.is_empty() => break Ok(count),
            Ok(()) => count += batch.events().iter().filter(|event| !event.action.is_note()).count(),
            Err(error) => break Err(error),
        }
    };
    let notices = source.notices().iter().map(ToString::to_string).collect();
    (outcome.map_err(|error: ReadError| error.to_string()), notices)
}

/// The error of a text that is wrong.
pub(crate) fn failure<F: LineFormat>(format: F, text: &str) -> String {
    events(format, text).0.unwrap_err()
}
