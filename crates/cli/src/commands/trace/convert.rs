//! `hoistway trace convert`: writes a trace in another format.

use anyhow::Result;

use super::{input, output};
use crate::cli::trace::{ConvertArgs, TraceOutput};
use crate::failure::Exit;

/// Writes a trace in another format.
pub fn run(args: &ConvertArgs) -> Result<Exit> {
    let mut source = input::open(&args.input)?;
    let (name, files) = (source.name.clone(), source.files.clone());
    let to = TraceOutput { format_as: args.output.format_as.or(args.to), ..args.output.clone() };
    output::write(&mut source, &to, &name, &files)
}
