//! Draws the output of `hoistway compare --json` from standard input as a picture on standard
//! output:
//!
//! ```text
//! cargo run --release -- compare --json > compare.json
//! cargo run -p hoistway-report --example bars -- "a title" < compare.json > picture.svg
//! ```

use std::error::Error;

use hoistway_report::{Bars, Measured, bars_svg};
use serde_json::Value;

fn main() -> Result<(), Box<dyn Error>> {
    let document: Value = serde_json::from_reader(std::io::stdin())?;
    let number = |value: &Value| value.as_f64().ok_or("a number is missing: is this the JSON of `hoistway compare`?");
    let mut bars = Bars {
        title: std::env::args().nth(1).unwrap_or_default(),
        alone_bytes_per_s: number(&document["single_stream_bytes_per_s"])?,
        elevators: Vec::new(),
    };
    for elevator in document["elevators"].as_array().ok_or("no elevators: is this the JSON of `hoistway compare`?")? {
        bars.elevators.push(Measured {
            name: elevator["name"].as_str().unwrap_or_default().to_owned(),
            bytes_per_s: number(&elevator["bytes_per_s"])?,
            latency_ns_max: number(&elevator["latency_ns"]["max"])? as u64,
        });
    }
    print!("{}", bars_svg(&bars));
    Ok(())
}
