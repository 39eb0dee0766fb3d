//! `hoistway trace describe`.

use anyhow::{Result, bail};

use crate::cli::trace::DescribeArgs;
use crate::failure::Exit;
use crate::output::Out;

pub fn run(args: &DescribeArgs, _out: &mut Out) -> Result<Exit> {
    bail!(
        "{}: `trace describe` is not built yet",
        args.input.files.first().map_or("-".into(), |file| file.display().to_string())
    )
}
