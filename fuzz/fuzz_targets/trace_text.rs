//! Arbitrary bytes as a trace in any format but that of blktrace: the reader returns events or an
//! error. All writers accept the events, and hoistway's CSV preserves them.
#![no_main]

use std::io::Cursor;

use hoistway_trace::iolog::LogVersion;
use hoistway_trace::{
    Batch, Event, EventWriter, Format, Input, OpenOptions, Span, Stream, TimeUnit, csv, iolog, open, perfetto,
};

libfuzzer_sys::fuzz_target!(|input: (u8, u8, &[u8])| {
    let (format, unit, bytes) = input;
    let formats: Vec<Format> = Format::ALL.into_iter().filter(|format| *format != Format::Blktrace).collect();
    let options = OpenOptions {
        format: formats.get(usize::from(format) % (formats.len() + 1)).copied(),
        time_unit: TimeUnit::ALL.get(usize::from(unit) % (TimeUnit::ALL.len() + 1)).copied(),
        ..OpenOptions::default()
    };
    let events = read(bytes.to_vec(), &options);
    let mut batch = Batch::new();
    events.iter().for_each(|(event, payload)| batch.push_with(*event, payload));
    let mut slices = perfetto::Writer::new(Vec::new());
    let mut log = iolog::Writer::new(Vec::new(), LogVersion::Three);
    for writer in [&mut slices as &mut dyn EventWriter, &mut log] {
        writer.write(&batch).expect("writing to memory succeeds");
        writer.finish().expect("writing to memory succeeds");
    }
    let table = OpenOptions { format: Some(Format::Csv), ..OpenOptions::default() };
    assert_eq!(read(table_bytes(&batch), &table), events);
});

fn table_bytes(batch: &Batch) -> Vec<u8> {
    let mut table = csv::Writer::new(Vec::new());
    table.write(batch).expect("writing to memory succeeds");
    table.into_inner()
}

/// Returns the events up to the end or the first error, whose message must name the input.
fn read(bytes: Vec<u8>, options: &OpenOptions) -> Vec<(Event, Vec<u8>)> {
    let input = Input::Stream(Stream { name: "fuzz".to_owned(), read: Box::new(Cursor::new(bytes)) });
    let (mut batch, mut events) = (Batch::new(), Vec::new());
    match open(vec![input], options) {
        Err(error) => assert!(error.to_string().starts_with("fuzz")),
        Ok(mut source) => loop {
            if let Err(error) = source.next(&mut batch) {
                assert!(error.to_string().starts_with("fuzz"));
                break;
            }
            if batch.is_empty() {
                break;
            }
            let with_payload =
                |event: &Event| (Event { payload: Span::default(), ..*event }, batch.payload(event).to_vec());
            events.extend(batch.events().iter().map(with_payload));
        },
    }
    events
}
