//! `hoistway trace whatif`.

use anyhow::{Result, bail};

use crate::cli::trace::WhatifArgs;
use crate::failure::Exit;
use crate::output::Out;

pub fn run(args: &WhatifArgs, _out: &mut Out) -> Result<Exit> {
    bail!(
        "{}: `trace whatif` is not built yet",
        args.input.files.first().map_or("-".into(), |file| file.display().to_string())
    )
}
