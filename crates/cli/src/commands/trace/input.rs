//! The way to open traces.

use anyhow::Result;
use hoistway_trace::{Input, OpenOptions, Source};

use crate::cli::trace::TraceInput;

pub struct Opened {
    pub source: Box<dyn Source>,
    pub name: String,
}

pub fn open(input: &TraceInput) -> Result<Opened> {
    let name = input.files.first().map(|f| f.display().to_string()).unwrap_or_default();
    let source = hoistway_trace::open(input.files.iter().cloned().map(Input::Path).collect(), &OpenOptions::default())?;
    Ok(Opened { source, name })
}
