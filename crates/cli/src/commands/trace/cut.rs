//! `hoistway trace cut`.

use anyhow::{Result, bail};

use crate::cli::trace::CutArgs;
use crate::failure::Exit;
use crate::output::Out;

pub fn run(args: &CutArgs, _out: &mut Out) -> Result<Exit> {
    bail!(
        "{}: `trace cut` is not built yet",
        args.input.files.first().map_or("-".into(), |file| file.display().to_string())
    )
}
