//! Arbitrary bytes as blkparse's text: they are read to the end or to an error, and the events are
//! written as text again.
#![no_main]

use std::io::Cursor;

use hoistway_trace::{Batch, EventWriter, Source, Stream, blkparse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let read = Box::new(Cursor::new(bytes.to_vec()));
    let mut reader = blkparse::Reader::new(Stream { name: "a".into(), read });
    let mut writer = blkparse::Writer::new(Vec::new(), "a");
    let mut batch = Batch::new();
    while reader.next(&mut batch).is_ok() && !batch.is_empty() {
        writer.write(&batch).unwrap();
    }
    writer.finish().unwrap();
    assert!(reader.notices().len() < 100);
});
