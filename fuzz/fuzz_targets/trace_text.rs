//! Any bytes as a trace in a text format: events or an error, which hoistway's own CSV holds as they are and every writer takes.
#![no_main]

use std::io::Cursor;

use hoistway_trace::iolog::LogVersion;
use hoistway_trace::{
    Batch, Event, Format, Input, OpenOptions, Sink, Span, Stream, TimeUnit, csv, iolog, open, perfetto,
};

libfuzzer_sys::fuzz_target!(|input: (u8, u8, &[u8])| {
    let (format, unit, bytes) = input;
    let texts: Vec<Format> = Format::ALL.into_iter().filter(|format| *format != Format::Blktrace).collect();
    let options = OpenOptions {
        format: texts.get(usize::from(format) % (texts.len() + 1)).copied(),
        time_unit: TimeUnit::ALL.get(usize::from(unit) % (TimeUnit::ALL.len() + 1)).copied(),
        sector_bytes: None,
    };
    let events = read(bytes.to_vec(), &options);
    let mut batch = Batch::new();
    events.iter().for_each(|(event, payload)| batch.push_with(*event, payload));
    let mut slices = perfetto::Writer::new(Vec::new());
    let mut log = iolog::Writer::new(Vec::new(), LogVersion::Three);
    for sink in [&mut slices as &mut dyn Sink, &mut log] {
        sink.write(&batch).expect("memory takes everything");
        sink.finish().expect("memory takes everything");
    }
    let table = OpenOptions { format: Some(Format::Csv), ..OpenOptions::default() };
    assert_eq!(read(table_bytes(&batch), &table), events);
});

fn table_bytes(batch: &Batch) -> Vec<u8> {
    let mut table = csv::Writer::new(Vec::new());
    table.write(batch).expect("memory takes everything");
    table.into_inner()
}

/// The events up to the end or the first error, which has to say something.
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
