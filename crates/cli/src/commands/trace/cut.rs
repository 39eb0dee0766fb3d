//! `hoistway trace cut`: a part of a trace.

use anyhow::Result;
use hoistway_trace::{Cut, CutFilter};

use super::{input, output};
use crate::cli::trace::CutArgs;
use crate::failure::{Exit, UsageError};

/// Writes a part of a trace.
pub fn run(args: &CutArgs) -> Result<Exit> {
    let part = CutFilter {
        from_ns: args.from.unwrap_or(0),
        to_ns: args.to,
        processes: args.process.clone(),
        sectors: args.sectors.clone(),
        devices: args.device.clone(),
    };
    if part == CutFilter::default() {
        let what = "nothing says what is to be kept: --from, --to, --process, --sectors or --device do";
        return Err(UsageError(what.into()).into());
    }
    if args.to.is_some_and(|to| to <= part.from_ns) {
        return Err(UsageError("--to lies before --from: nothing would be kept".into()).into());
    }
    let source = input::open(&args.input)?;
    let (name, files) = (source.name.clone(), source.files.clone());
    output::write(&mut Cut::new(source, part), &args.output, &name, &files)
}
