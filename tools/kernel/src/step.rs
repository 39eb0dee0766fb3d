//! The step of `cargo xtask test` that tests the kernel module.

use anyhow::Result;
use hoistway_vm::table;

use super::{build, test};

/// Runs the short test of the default kernel. It is skipped if the repository has no module, and
/// where the packages of the kernel are missing.
pub fn check() -> Result<()> {
    if !build::exists() {
        println!("SKIPPED: there is no kernel/Makefile");
        return Ok(());
    }
    let fetched = super::folder().and_then(|folder| super::present(&[table::find(table::DEFAULT)?], &folder));
    if let Err(error) = fetched {
        println!("SKIPPED: the packages of the kernel cannot be downloaded: {error:#}");
        return Ok(());
    }
    test::run(&test::Options::short())
}

#[cfg(test)]
mod tests {
    use hoistway_vm::architecture;
    use hoistway_workspace::needs::{KERNEL, Need};

    #[test]
    fn the_needs_have_the_target_of_the_guest_program_and_what_the_boot_starts() {
        let (compiler, emulator) = (architecture::BUILD.compiler().0, architecture::BUILD.emulator().0);
        for need in [Need::Target(architecture::BUILD.target()), Need::Program(compiler), Need::Program(emulator)] {
            assert!(KERNEL.contains(&need), "{need:?}");
        }
    }
}
