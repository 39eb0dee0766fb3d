//! `hoistway trace merge`.

use anyhow::{Result, bail};

use crate::cli::trace::MergeArgs;
use crate::failure::Exit;
use crate::output::Out;

pub fn run(args: &MergeArgs, _out: &mut Out) -> Result<Exit> {
    bail!(
        "{}: `trace merge` is not built yet",
        args.input.files.first().map_or("-".into(), |file| file.display().to_string())
    )
}
