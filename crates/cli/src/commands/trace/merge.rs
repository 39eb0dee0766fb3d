//! `hoistway trace merge`: combines several traces into one.

use anyhow::Result;
use hoistway_trace::{Merge, PeekedSource, Source};

use super::{input, output};
use crate::cli::trace::{MergeArgs, TraceInput};
use crate::failure::{Exit, UsageError};

/// Writes several traces as one.
pub fn run(args: &MergeArgs) -> Result<Exit> {
    let count = args.input.files.len();
    if args.shift.len() > count {
        let what = format!("--shift has {} times for {count} traces", args.shift.len());
        return Err(UsageError(what).into());
    }
    let (mut sources, mut names, mut files) = (Vec::new(), Vec::new(), Vec::new());
    for (at, file) in args.input.files.iter().enumerate() {
        let opened = input::open(&TraceInput { files: vec![file.clone()], ..args.input.clone() })?;
        names.push(opened.name.clone());
        files.extend(opened.files.iter().cloned());
        let shift_ns = args.shift.get(at).copied().unwrap_or(0);
        sources.push((PeekedSource::new(Box::new(opened))?, shift_ns));
    }
    let mut merge = if args.align {
        Merge::aligned(sources)
    } else {
        let boxed = |(source, shift_ns)| (Box::new(source) as Box<dyn Source + Send>, shift_ns);
        Merge::new(sources.into_iter().map(boxed).collect())
    };
    output::write(&mut merge, &args.output, &names.join("+"), &files)
}
