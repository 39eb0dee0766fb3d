//! `hoistway trace replay`.

use anyhow::{Result, bail};

use crate::cli::trace::ReplayArgs;
use crate::failure::Exit;
use crate::output::Out;

pub fn run(args: &ReplayArgs, _out: &mut Out) -> Result<Exit> {
    bail!(
        "{}: `trace replay` is not built yet",
        args.input.files.first().map_or("-".into(), |file| file.display().to_string())
    )
}
