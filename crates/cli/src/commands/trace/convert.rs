//! `hoistway trace convert`.

use anyhow::{Result, bail};

use crate::cli::trace::ConvertArgs;
use crate::failure::Exit;
use crate::output::Out;

pub fn run(args: &ConvertArgs, _out: &mut Out) -> Result<Exit> {
    bail!(
        "{}: `trace convert` is not built yet",
        args.input.files.first().map_or("-".into(), |file| file.display().to_string())
    )
}
