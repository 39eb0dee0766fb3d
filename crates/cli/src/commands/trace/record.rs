//! `hoistway trace record`.

use anyhow::{Result, bail};

use crate::cli::trace::RecordArgs;
use crate::failure::Exit;
use crate::output::Out;

pub fn run(args: &RecordArgs, _out: &mut Out) -> Result<Exit> {
    bail!(
        "{}: `trace record` is not built yet",
        args.input.files.first().map_or("-".into(), |file| file.display().to_string())
    )
}
