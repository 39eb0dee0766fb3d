//! Opens a trace for a prediction.

use anyhow::Result;
use hoistway_sim::whatif::{Loaded, WhatifError};

use crate::cli::trace::WhatifArgs;
use crate::commands::trace::input;
use crate::failure::UsageError;

/// Reads a trace; the second is what it is called.
pub fn load(args: &WhatifArgs) -> Result<(Loaded, String)> {
    let mut opened = input::open(&args.input)?;
    match Loaded::of(&mut opened, args.device.as_deref()) {
        Ok(loaded) => Ok((loaded, opened.name)),
        Err(error @ WhatifError::NoDevice { .. }) => Err(UsageError(error.to_string()).into()),
        Err(error) => Err(error.into()),
    }
}
