//! Helpers for tests of readers, also of other crates.

use std::io::Cursor;

use super::{LineFormat, TextOptions, TextSource};
use crate::batch::Batch;
use crate::source::{Notice, ReadError, Source};
use crate::stream::Stream;

/// A source of one batch.
#[derive(Debug)]
pub struct SingleBatch(
    /// The batch that the source has not returned yet.
    pub Option<Batch>,
);

impl Source for SingleBatch {
    fn next(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        *batch = self.0.take().unwrap_or_default();
        Ok(())
    }

    fn notices(&mut self) -> Vec<Notice> {
        Vec::new()
    }
}

/// Creates a source for a text with the name `a`.
fn source<F: LineFormat>(format: F, text: &str) -> TextSource<F> {
    TextSource::new(Stream { name: "a".to_owned(), read: Box::new(Cursor::new(text.to_owned().into_bytes())) }, format)
}

/// Returns the batch of a short valid text.
pub fn read<F: LineFormat>(format: F, text: &str) -> Batch {
    let mut batch = Batch::new();
    source(format, text).next(&mut batch).unwrap();
    batch
}

/// Returns the number of events without notes or the error, and the notices.
pub fn events<F: LineFormat>(format: F, text: &str) -> (Result<usize, String>, Vec<String>) {
    read_all(source(format, text))
}

fn read_all<F: LineFormat>(mut source: TextSource<F>) -> (Result<usize, String>, Vec<String>) {
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

/// Returns the error of an invalid text in which invalid lines are errors.
pub fn failure<F: LineFormat>(format: F, text: &str) -> String {
    let options = TextOptions { is_strict: true, ..TextOptions::default() };
    read_all(source(format, text).with_options(&options)).0.unwrap_err()
}
