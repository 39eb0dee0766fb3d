//! `hoistway trace cut`: writes a part of a trace.

use anyhow::Result;
use hoistway_trace::{Cut, CutFilter};

use super::{input, output};
use crate::cli::trace::CutArgs;
use crate::failure::{Exit, UsageError};

/// Writes a part of a trace.
pub fn run(args: &CutArgs) -> Result<Exit> {
    let filter = CutFilter {
        from_ns: args.from.unwrap_or(0),
        to_ns: args.to,
        processes: args.process.clone(),
        sectors: args.sectors.clone(),
        devices: args.device.clone(),
    };
    if filter == CutFilter::default() {
        let what = "no selection: use --from, --to, --process, --sectors or --device";
        return Err(UsageError(what.into()).into());
    }
    if args.to.is_some_and(|to| to <= filter.from_ns) {
        return Err(UsageError("--to is not after --from: nothing would be kept".into()).into());
    }
    let source = input::open(&args.input)?;
    let (name, files) = (source.name.clone(), source.files.clone());
    output::write(&mut Cut::new(source, filter), &args.output, &name, &files)
}
