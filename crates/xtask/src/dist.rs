//! The tasks of the packages. The crate `hoistway-dist` builds and checks them.

use anyhow::Result;
use hoistway_dist::{CheckOptions, Options, Source};

use crate::{python, tools};

/// Builds the packages.
pub fn run(options: &Options) -> Result<()> {
    hoistway_dist::run(&source()?, options)
}

/// Builds the packages and installs them on clean systems.
pub fn check(options: &CheckOptions) -> Result<()> {
    hoistway_dist::check(&source()?, options)
}

/// Installs the packages of the program and of the Python module that the tests have built.
pub fn check_quick() -> Result<()> {
    hoistway_dist::check_quick(&source()?, &tools::hoistway()?, Some(&python::tested_module()?))
}

fn source() -> Result<Source> {
    Source::of(tools::workspace()?)
}
