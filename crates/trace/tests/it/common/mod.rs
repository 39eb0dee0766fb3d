//! Helpers for tests of traces.
#![allow(dead_code, reason = "each test uses a part of the helpers")]

use std::io::{Cursor, Read as _};
use std::path::{Path, PathBuf};

use hoistway_trace::{Batch, Event, EventWriter, Input, OpenOptions, ReadError, Source, Span, Stream, open};

/// Path of a file of testdata/.
pub fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(name)
}

/// Opens a trace of files of testdata/.
pub fn open_files(names: &[&str]) -> Box<dyn Source + Send> {
    open(names.iter().map(|name| Input::Path(file(name))).collect(), &OpenOptions::default()).unwrap()
}

/// Returns the contents of an xz file of testdata/.
pub fn bytes(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    liblzma::read::XzDecoder::new(std::fs::File::open(file(name)).unwrap()).read_to_end(&mut bytes).unwrap();
    bytes
}

/// Creates an input of bytes.
pub fn input(name: &str, bytes: Vec<u8>) -> Input {
    Input::Stream(Stream { name: name.to_owned(), read: Box::new(Cursor::new(bytes)) })
}

/// Opens a trace of bytes.
pub fn open_bytes(bytes: Vec<u8>) -> Box<dyn Source + Send> {
    open(vec![input("input", bytes)], &OpenOptions::default()).unwrap()
}

/// Opens a trace of two inputs.
pub fn open_both(one: &[u8], two: &[u8]) -> Result<Box<dyn Source + Send>, ReadError> {
    open(vec![input("one", one.to_vec()), input("two", two.to_vec())], &OpenOptions::default())
}

/// Returns the error message for invalid bytes.
pub fn failure(bytes: Vec<u8>, options: &OpenOptions) -> String {
    let mut batch = Batch::new();
    let result = open(vec![input("input", bytes)], options).and_then(|mut source| {
        loop {
            source.next(&mut batch)?;
            if batch.is_empty() {
                return Ok(());
            }
        }
    });
    result.unwrap_err().to_string()
}

/// Returns the number of events without notes or the error, and the notices.
pub fn events_and_notices(bytes: Vec<u8>, options: &OpenOptions) -> (Result<usize, String>, Vec<String>) {
    let mut source = match open(vec![input("input", bytes)], options) {
        Ok(source) => source,
        Err(error) => return (Err(error.to_string()), Vec::new()),
    };
    let (mut batch, mut count) = (Batch::new(), 0);
    let result = loop {
        match source.next(&mut batch) {
            Ok(()) if batch.is_empty() => break Ok(count),
            Ok(()) => count += batch.events().iter().filter(|event| !event.action.is_note()).count(),
            Err(error) => break Err(error.to_string()),
        }
    };
    (result, source.notices().iter().map(ToString::to_string).collect())
}

/// Returns all events with their payloads, independent of the positions of the payloads.
pub fn events(source: &mut dyn Source) -> Vec<(Event, Vec<u8>)> {
    let (mut events, mut batch) = (Vec::new(), Batch::new());
    loop {
        source.next(&mut batch).unwrap();
        if batch.is_empty() {
            return events;
        }
        let with_payload =
            |event: &Event| (Event { payload: Span::default(), ..*event }, batch.payload(event).to_vec());
        events.extend(batch.events().iter().map(with_payload));
    }
}

/// Writes all events of a trace.
pub fn write_to(source: &mut dyn Source, sink: &mut dyn EventWriter) {
    let mut batch = Batch::new();
    loop {
        source.next(&mut batch).unwrap();
        if batch.is_empty() {
            return sink.finish().unwrap();
        }
        sink.write(&batch).unwrap();
    }
}
