//! `cargo xtask kernel debug-kernel`: kernels with the sanitizers and lockdep, built from Debian's
//! sources.

use anyhow::{Result, bail};
use hoistway_vm::built::{self, Outcome, Sources};
use hoistway_vm::table::{self, Kernel};

/// Options of `cargo xtask kernel debug-kernel`.
#[derive(clap::Args, Clone, Debug)]
pub struct Options {
    /// A kernel to build, such as `6.12-kasan`; may be repeated; all of them by default
    #[arg(long, value_name = "KERNEL")]
    kernel: Vec<String>,
    /// Look for newer sources in Debian's archive
    #[arg(long)]
    update: bool,
}

/// Builds the kernels that are not present.
pub fn run(options: &Options) -> Result<()> {
    let named = |name: &String| {
        let kernel = table::find(name)?;
        if kernel.options.is_none() {
            bail!("{name} is a package: `cargo xtask kernel fetch` downloads it");
        }
        Ok(kernel)
    };
    let kernels: Vec<&'static Kernel> = match options.kernel.as_slice() {
        [] => table::DEBUG_KERNELS.iter().collect(),
        names => names.iter().map(named).collect::<Result<_>>()?,
    };
    built::require_programs()?;
    let folder = super::folder()?;
    for kernel in kernels {
        let sources = Sources::require(kernel, &folder, options.update)?;
        match built::build(kernel, &sources, &folder)? {
            Outcome::Built(seconds) => println!("{:<14} built in {seconds} s", kernel.name),
            Outcome::Present => println!("{:<14} present", kernel.name),
        }
    }
    Ok(())
}
