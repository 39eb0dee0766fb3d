//! `hoistway trace merge`: one trace of several.

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
        let begun = PeekedSource::new(Box::new(opened))?;
        let shift_ns = args.shift.get(at).copied().unwrap_or(0);
        sources.push((begun, shift_ns));
    }
    // All begin when the first named does.
    let start_ns = sources.iter().find_map(|(begun, _)| begun.start_ns()).unwrap_or(0);
    let sources = sources.into_iter().map(|(begun, shift_ns)| {
        let aligned_ns = match begun.start_ns() {
            Some(own_ns) if args.align => difference(start_ns, own_ns),
            _ => 0,
        };
        (Box::new(begun) as Box<dyn Source + Send>, shift_ns.saturating_add(aligned_ns))
    });
    output::write(&mut Merge::new(sources.collect()), &args.output, &names.join("+"), &files)
}

/// What has to be added to a time to make it another, in ns.
fn difference(to_ns: u64, from_ns: u64) -> i64 {
    i64::try_from(i128::from(to_ns) - i128::from(from_ns)).unwrap_or(if to_ns > from_ns { i64::MAX } else { i64::MIN })
}
