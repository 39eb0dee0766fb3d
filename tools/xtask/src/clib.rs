//! The task of the C library. The crate `hoistway-clib` builds it.

use std::path::PathBuf;

use anyhow::Result;
use hoistway_clib::Places;

use crate::tools;

/// Options of the C library.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// The prefix that receives include/hoistway.h, the libraries in lib, and
    /// lib/pkgconfig/hoistway.pc [default: clib in the target directory]
    #[arg(long, value_name = "DIR", conflicts_with = "write_abi")]
    to: Option<PathBuf>,
    /// The directory of the libraries below the prefix, such as lib64
    #[arg(long, value_name = "DIR", default_value = "lib", conflicts_with = "write_abi")]
    libdir: String,
    /// Write crates/capi/abi.txt, the description of the ABI, from the header
    #[arg(long)]
    write_abi: bool,
    /// Write it in spite of incompatible changes: the soname was in no release yet
    #[arg(long, requires = "write_abi")]
    unreleased: bool,
}

/// Builds the library, or writes the description of its ABI.
pub fn run(options: &Options) -> Result<()> {
    tools::require_all(hoistway_clib::PROGRAMS, false)?;
    let workspace = tools::workspace()?;
    if options.write_abi {
        let changes = hoistway_clib::write_abi(&workspace, options.unreleased)?;
        print!("{changes}");
        return Ok(());
    }
    let prefix = options.to.clone().unwrap_or_else(|| workspace.target_directory.join("clib"));
    let places = Places { prefix, libraries: options.libdir.trim_matches('/').to_owned(), relocatable: true };
    for path in hoistway_clib::build(&workspace, &places)? {
        println!("{}", path.display());
    }
    Ok(())
}
