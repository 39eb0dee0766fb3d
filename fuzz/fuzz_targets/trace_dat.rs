//! Arbitrary bytes behind the magic number of trace-cmd's files, version 6 or 7: the reader returns
//! events or an error, in bounded memory.
#![no_main]

use std::io::Cursor;

use hoistway_trace::{Batch, Format, Input, OpenOptions, Stream, open};

libfuzzer_sys::fuzz_target!(|input: (bool, &[u8])| {
    let (is_newer, rest) = input;
    let version: &[u8] = if is_newer { b"7\0" } else { b"6\0" };
    let bytes = [b"\x17\x08\x44tracing", version, rest].concat();
    let input = Input::Stream(Stream { name: "fuzz".to_owned(), read: Box::new(Cursor::new(bytes)) });
    let options = OpenOptions { format: Some(Format::TraceDat), ..OpenOptions::default() };
    let Ok(mut source) = open(vec![input], &options) else { return };
    let mut batch = Batch::new();
    loop {
        match source.next(&mut batch) {
            Ok(()) if batch.is_empty() => break,
            Ok(()) => {}
            Err(error) => {
                assert!(error.to_string().starts_with("fuzz"));
                break;
            }
        }
    }
    assert!(source.notices().len() < 100);
});
