//! A minimal Debian trixie in `target/kernel/build-root`: the programs in the headers of newer
//! kernels need a newer C library than that of Debian bookworm.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::debian_root::DebianRoot;

const ROOT: DebianRoot = DebianRoot {
    name: "build-root",
    suite: "trixie",
    variant: "essential",
    packages: "make,gcc,libc6-dev,libelf1t64,libssl3t64,pahole,binutils,zstd,lz4,xz-utils,bzip2",
};

/// The directory of the system.
pub fn directory(folder: &Path) -> PathBuf {
    ROOT.directory(folder)
}

/// Returns true if the system is present with all packages.
pub fn is_complete(folder: &Path) -> bool {
    ROOT.is_complete(folder)
}

/// Makes the system unless it is present.
pub fn require(folder: &Path) -> Result<()> {
    ROOT.require(folder)
}

/// A command that runs a program in the system, which then has `/proc`.
pub fn command(folder: &Path, program: &str) -> Command {
    ROOT.command(folder, program)
}
