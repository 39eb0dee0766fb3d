//! Helpers for tests of text readers.

use std::io::Cursor;

use super::{LineFormat, TextSource};
use crate::batch::Batch;
use crate::source::{ReadError, Source};
use crate::stream::Stream;

/// Creates a source for a text with the name `a`.
fn source<F: LineFormat>(format: F, text: &str) -> TextSource<F> {
    TextSource::new(Stream { name: "a".to_owned(), read: Box::new(Cursor::new(text.to_owned().into_bytes())) }, format)
}

/// Returns the batch of a short valid text.
pub(crate) fn read<F: LineFormat>(format: F, text: &str) -> Batch {
    let mut batch = Batch::new();
    source(format, text).next(&mut batch).unwrap();
    batch
}

/// Returns the number of events without notes or the error, and the notices.
pub(crate) fn events<F: LineFormat>(format: F, text: &str) -> (Result<usize, String>, Vec<String>) {
    let mut source = source(format, text);
    let (mut batch, mut count) = (Batch::new(), 0);
    let result = loop {
        match source.next(&mut batch) {
            Ok(()) if batch.is_empty() => break Ok(count),
            Ok(()) => count += batch.events().iter().filter(|event| !event.action.is_note()).count(),
            Err(error) => break Err(error),
        }
    };
    let notices = source.notices().iter().map(ToString::to_string).collect();
    (result.map_err(|error: ReadError| error.to_string()), notices)
}

/// Returns the error of an invalid text.
pub(crate) fn failure<F: LineFormat>(format: F, text: &str) -> String {
    events(format, text).0.unwrap_err()
}
