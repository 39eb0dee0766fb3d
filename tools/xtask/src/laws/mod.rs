//! The laws of the workspace that a program can check: the source of the core, the dependencies
//! between crates, sizes of folders, dependency cycles of modules and of parts of the kernel
//! module.

mod bare_build;
mod core_source;
mod crates;
mod folders;
mod kernel_parts;
mod modules;

use anyhow::{Result, bail};
use hoistway_workspace::packages;

/// Checks every law that needs no build.
pub fn check_sources() -> Result<()> {
    let packages = packages::packages()?;
    let mut violations = core_source::violations()?;
    violations.extend(crates::violations(&packages));
    violations.extend(folders::violations(&packages)?);
    violations.extend(modules::violations(&packages)?);
    violations.extend(kernel_parts::violations()?);
    if !violations.is_empty() {
        bail!("{} violations of the laws:\n  {}", violations.len(), violations.join("\n  "));
    }
    println!("laws: the core's source, the sizes of folders and all dependencies keep the laws");
    Ok(())
}

/// Checks every law, and builds the core for a machine without an operating system. The build is
/// skipped if its target is missing and is not to be installed.
pub fn check(install: bool) -> Result<()> {
    check_sources()?;
    match bare_build::missing(install) {
        Some(missing) => println!("SKIPPED: a build for a bare machine: {missing}"),
        None => {
            bare_build::build()?;
            println!("laws: the core builds for a bare machine");
        }
    }
    Ok(())
}
