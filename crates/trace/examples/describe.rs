//! Describes a trace of any format: `cargo run --release -p hoistway-trace --example describe --
//! TRACE`

use std::path::Path;

use hoistway_trace::describe::describe;
use hoistway_trace::{Input, OpenOptions, files, open};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let name = std::env::args().nth(1).ok_or("usage: describe TRACE")?;
    let inputs = files::resolve(Path::new(&name))?.into_iter().map(Input::Path).collect();
    let mut source = open(inputs, &OpenOptions::default())?;
    let description = describe(source.as_mut())?;
    source.notices().iter().for_each(|notice| eprintln!("note: {notice}"));
    println!("{} requests in {:.3} s", description.all.requests, description.duration_ns as f64 / 1e9);
    for process in description.processes.iter().take(10) {
        let mix = &process.part.mix;
        println!(
            "{:24} {:9.3} MB read {:9.3} MB written",
            process.title(),
            mix.read_bytes as f64 / 1e6,
            mix.write_bytes as f64 / 1e6
        );
    }
    Ok(())
}
