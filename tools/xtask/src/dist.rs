//! The tasks of the packages. The crate `hoistway-dist` builds and checks them.

use anyhow::Result;
use hoistway_dist::{CheckOptions, Options, Source};

use crate::needs::{self, Need};
use crate::{python, tools};

/// What builds of packages need.
const NEEDS: &[Need] =
    &[Need::Program("cc"), Need::Program("python3"), Need::PythonEnvironments, Need::CargoTool("cargo-auditable")];

/// Builds the packages.
pub fn run(options: &Options) -> Result<()> {
    needs::provide(NEEDS, options.install)?;
    hoistway_dist::run(&source()?, options)
}

/// Builds the packages and installs them on clean systems.
pub fn check(options: &CheckOptions) -> Result<()> {
    needs::provide(NEEDS, true)?;
    hoistway_dist::check(&source()?, options)
}

/// Installs the packages of the program and of the Python module that the tests have built.
pub fn check_quick() -> Result<()> {
    hoistway_dist::check_quick(&source()?, &tools::hoistway()?, Some(&python::tested_module()?))
}

fn source() -> Result<Source> {
    Source::of(tools::workspace()?)
}
