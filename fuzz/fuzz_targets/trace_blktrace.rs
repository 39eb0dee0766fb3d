//! Arbitrary bytes as two files of blktrace, divided at a position given by the first byte. They
//! are read to the end, and the events are written and read again.
#![no_main]

use std::io::Cursor;

use hoistway_trace::blktrace::{Reader, Version, Writer};
use hoistway_trace::{Batch, Event, EventWriter, Source, Span, Stream, blkparse};
use libfuzzer_sys::fuzz_target;

fn read(files: &[&[u8]]) -> (Vec<(Event, Vec<u8>)>, Vec<u8>) {
    let stream = |bytes: &&[u8]| Stream { name: "a".into(), read: Box::new(Cursor::new(bytes.to_vec())) };
    let mut reader = Reader::new(files.iter().map(stream).collect());
    let (mut events, mut batch) = (Vec::new(), Batch::new());
    let mut text = blkparse::Writer::new(Vec::new(), "a").with_all_messages();
    while reader.next(&mut batch).is_ok() && !batch.is_empty() {
        text.write(&batch).unwrap();
        let all = batch.events().iter();
        events.extend(all.map(|event| (Event { payload: Span::default(), ..*event }, batch.payload(event).to_vec())));
    }
    assert!(reader.notices().len() < 100);
    text.finish().unwrap();
    (events, text.into_inner())
}

fuzz_target!(|bytes: &[u8]| {
    let Some((cut, rest)) = bytes.split_first() else { return };
    let (one, other) = rest.split_at((usize::from(*cut) * 16).min(rest.len()));
    let (events, _) = read(&[one, other]);
    let mut batch = Batch::new();
    events.iter().for_each(|(event, payload)| batch.push_with(*event, payload));
    let mut writer = Writer::new(Vec::new()).version(Version::V8);
    writer.write(&batch).unwrap();
    let written = writer.into_inner();
    let (again, _) = read(&[&written]);
    // Records of several CPUs in one file are sorted; none is lost.
    assert_eq!(again.len(), events.len());
});
