//! Recordings of real drives for tests.

use std::io::Read;

use hoistway_drive::recording::{Record, parse};

/// A recording of real requests by its name in `testdata`.
pub fn recorded(name: &str) -> Vec<Record> {
    let file = format!("testdata/{name}.trace.gz");
    let packed = std::fs::read(format!("{}/{file}", env!("CARGO_MANIFEST_DIR"))).expect("the recording");
    let mut text = String::new();
    flate2::read::GzDecoder::new(packed.as_slice()).read_to_string(&mut text).expect("gzip of text");
    parse(&text, &file).expect("a recording")
}
