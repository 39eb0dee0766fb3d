//! Prints a trace like blkparse: `cargo run --release -p hoistway-trace --example blkparse --
//! FILE...`

use std::io::{self, BufWriter};
use std::process::ExitCode;

use hoistway_trace::{Batch, EventWriter, Input, OpenOptions, blkparse, open};

fn main() -> ExitCode {
    let files: Vec<String> = std::env::args().skip(1).collect();
    match print(&files) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn print(files: &[String]) -> Result<(), Box<dyn std::error::Error>> {
    let mut source = open(files.iter().map(|file| Input::Path(file.into())).collect(), &OpenOptions::default())?;
    let name = files.first().map_or("", String::as_str);
    let mut text = blkparse::Writer::new(BufWriter::new(io::stdout()), name);
    let mut batch = Batch::new();
    loop {
        source.next(&mut batch)?;
        if batch.is_empty() {
            text.finish()?;
            source.notices().iter().for_each(|notice| eprintln!("note: {notice}"));
            return Ok(());
        }
        text.write(&batch)?;
    }
}
