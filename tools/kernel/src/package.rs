//! The Debian package `hoistway-dkms`, which `hoistway-dist` writes, and its trial.

use std::path::PathBuf;

use anyhow::Result;
use hoistway_dist::Source;
use hoistway_workspace::cargo::{self, Workspace};
use hoistway_workspace::programs;

use super::installation;

/// Options of `cargo xtask kernel package`.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// The directory for the package; `target/kernel` by default
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Install the package in minimal Debian systems, check the modules that DKMS builds, remove
    /// the package, and boot the kernels with the modules
    #[arg(long = "try")]
    tried: bool,
    /// A kernel of the table for `--try`; may be repeated; 6.1 and 6.12 by default
    #[arg(long, value_name = "KERNEL", requires = "tried")]
    kernel: Vec<String>,
}

const PACKAGE: &str = "hoistway-dkms";

/// Builds the package.
pub fn run(options: &Options) -> Result<()> {
    programs::require_all(&[("dpkg-deb", "dpkg"), ("md5sum", "coreutils")], false)?;
    let out = match &options.out {
        Some(out) => out.clone(),
        None => cargo::target_directory()?.join("kernel"),
    };
    let package = hoistway_dist::kernel_module(&Source::of(Workspace::this()?)?, &out)?;
    println!("{}", package.display());
    if options.tried { installation::check(&package, PACKAGE, &options.kernel) } else { Ok(()) }
}
