//! Arbitrary bytes as one or two inputs, possibly compressed, of any format: the reader returns
//! events or an error in bounded memory.
#![no_main]

use std::io::Cursor;

use hoistway_trace::{Batch, Input, OpenOptions, Stream, open};

/// Maximum number of events that are read, because compressed input can be endless.
const EVENTS_MAX: usize = 100_000;

libfuzzer_sys::fuzz_target!(|inputs: (&[u8], Option<&[u8]>)| {
    let input =
        |bytes: &[u8]| Input::Stream(Stream { name: "fuzz".to_owned(), read: Box::new(Cursor::new(bytes.to_vec())) });
    let inputs: Vec<Input> = std::iter::once(inputs.0).chain(inputs.1).map(input).collect();
    let (mut batch, mut events) = (Batch::new(), 0);
    match open(inputs, &OpenOptions::default()) {
        Err(error) => assert!(error.to_string().starts_with("fuzz")),
        Ok(mut source) => loop {
            match source.next(&mut batch) {
                Ok(()) if batch.is_empty() || events > EVENTS_MAX => break,
                Ok(()) => events += batch.len(),
                Err(error) => {
                    assert!(error.to_string().starts_with("fuzz"));
                    break;
                }
            }
            let _ = source.notices();
        },
    }
});
