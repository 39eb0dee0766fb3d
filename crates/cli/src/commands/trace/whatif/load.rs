//! Opens a trace for a prediction.

use anyhow::Result;
use hoistway_sim::whatif::{Loaded, WhatifError};
use hoistway_trace::{Input, OpenOptions, Source, Stream};

use crate::cli::trace::WhatifArgs;
use crate::failure::UsageError;

/// Reads a trace; the second is what it is called.
pub fn load(args: &WhatifArgs) -> Result<(Loaded, String)> {
    let mut opened = open(args)?;
    match Loaded::of(&mut *opened.source, args.device.as_deref()) {
        Ok(loaded) => Ok((loaded, opened.name)),
        Err(error @ WhatifError::NoDevice { .. }) => Err(UsageError(error.to_string()).into()),
        Err(error) => Err(error.into()),
    }
}

struct Opened {
    source: Box<dyn Source + Send>,
    name: String,
}

fn open(args: &WhatifArgs) -> Result<Opened> {
    let mut inputs = Vec::new();
    for path in &args.input.files {
        if path.as_os_str() == "-" {
            inputs.push(Input::Stream(Stream { name: "-".into(), read: Box::new(std::io::stdin()) }));
            continue;
        }
        let file_of = |cpu: u32| {
            let mut name = path.as_os_str().to_owned();
            name.push(format!(".blktrace.{cpu}"));
            std::path::PathBuf::from(name)
        };
        match path.exists() || !file_of(0).exists() {
            true => inputs.push(Input::Path(path.clone())),
            false => inputs.extend((0..).map(file_of).take_while(|file| file.exists()).map(Input::Path)),
        }
    }
    let names: Vec<String> = args.input.files.iter().map(|file| file.display().to_string()).collect();
    Ok(Opened { source: hoistway_trace::open(inputs, &OpenOptions::default())?, name: names.join(" ") })
}
