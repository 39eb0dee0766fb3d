//! `hoistway trace view`.

use anyhow::{Result, bail};

use crate::cli::trace::ViewArgs;
use crate::failure::Exit;
use crate::output::Out;

pub fn run(args: &ViewArgs, _out: &mut Out) -> Result<Exit> {
    bail!(
        "{}: `trace view` is not built yet",
        args.input.files.first().map_or("-".into(), |file| file.display().to_string())
    )
}
