//! The step of `cargo xtask test` that tests the kernel module.

use anyhow::Result;
use hoistway_vm::{architecture, table};

use super::{build, test};

/// Runs the short test of the default kernel. It is skipped if the repository has no module, and
/// where programs or the packages of the kernel are missing.
pub fn check(install: bool) -> Result<()> {
    if !build::exists() {
        println!("SKIPPED: there is no kernel/Makefile");
        return Ok(());
    }
    if let Err(error) = test::require_programs(architecture::BUILD, false, install) {
        println!("SKIPPED: {error:#}");
        return Ok(());
    }
    let fetched = super::folder().and_then(|folder| super::present(&[table::find(table::DEFAULT)?], &folder));
    if let Err(error) = fetched {
        println!("SKIPPED: the packages of the kernel cannot be downloaded: {error:#}");
        return Ok(());
    }
    test::run(&test::Options::short())
}
