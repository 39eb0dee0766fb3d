//! Damaged Parquet files: bytes of a valid trace are overwritten or cut off. The reader returns
//! events or an error that names the file.
#![no_main]

use std::io::Cursor;

use hoistway_trace::{Batch, Format, Input, OpenOptions, Stream, open};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    // Both magic numbers are set, so that the footer and the pages are reached.
    let mut bytes = bytes.to_vec();
    if bytes.len() < 12 {
        return;
    }
    let end = bytes.len() - 4;
    bytes[..4].copy_from_slice(b"PAR1");
    bytes[end..].copy_from_slice(b"PAR1");
    let input = Input::Stream(Stream { name: "fuzz".to_owned(), read: Box::new(Cursor::new(bytes)) });
    let options = OpenOptions { format: Some(Format::Parquet), ..OpenOptions::default() };
    let mut source = match open(vec![input], &options) {
        Ok(source) => source,
        Err(error) => return assert!(error.to_string().starts_with("fuzz")),
    };
    let (mut batch, mut events) = (Batch::new(), 0);
    loop {
        match source.next(&mut batch) {
            // A page of a few bytes can stand for millions of equal rows.
            Ok(()) if batch.is_empty() || events > 100_000 => break,
            Ok(()) => events += batch.len(),
            Err(error) => {
                assert!(error.to_string().starts_with("fuzz"));
                break;
            }
        }
    }
    assert!(source.notices().len() < 100);
});
