//! `hoistway trace reorder`.

use anyhow::{Result, bail};

use crate::cli::trace::ReorderArgs;
use crate::failure::Exit;
use crate::output::Out;

pub fn run(args: &ReorderArgs, _out: &mut Out) -> Result<Exit> {
    bail!(
        "{}: `trace reorder` is not built yet",
        args.input.files.first().map_or("-".into(), |file| file.display().to_string())
    )
}
