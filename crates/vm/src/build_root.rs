//! A minimal Debian trixie in `target/kernel/build-root`: the programs in the headers of newer
//! kernels need a newer C library than that of Debian bookworm.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::archive::Mirrors;
use crate::programs;

/// The packages of the system beyond the essential ones.
const PACKAGES: &str = "make,gcc,libc6-dev,libelf1t64,libssl3t64,pahole,binutils,zstd,lz4,xz-utils,bzip2";

/// The directory of the system.
pub fn directory(folder: &Path) -> PathBuf {
    folder.join("build-root")
}

/// Returns true if the system is present with all packages.
pub fn is_complete(folder: &Path) -> bool {
    fs::read_to_string(stamp(folder)).is_ok_and(|packages| packages == PACKAGES)
}

/// The file that ends the making of the system.
fn stamp(folder: &Path) -> PathBuf {
    directory(folder).join("complete")
}

/// Makes the system unless it is present.
pub fn require(folder: &Path) -> Result<()> {
    let directory = directory(folder);
    if is_complete(folder) {
        return Ok(());
    }
    if !programs::is_root() {
        bail!("only root can make the build root {} and run programs in it", directory.display());
    }
    programs::require_all(&[("mmdebstrap", "mmdebstrap")], true)?;
    let _ = fs::remove_dir_all(&directory);
    let mut bootstrap = Command::new("mmdebstrap");
    bootstrap.args(["--quiet", "--mode=root", "--variant=essential", "--architectures=amd64"]);
    bootstrap.arg(format!("--include={PACKAGES}"));
    bootstrap.args(["--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-exclude=/usr/share/locale/*"]);
    bootstrap.arg("--aptopt=APT::Install-Recommends \"false\"");
    bootstrap.arg("trixie").arg(&directory).arg(Mirrors::of_this_machine()?.main());
    programs::run(bootstrap.stdout(Stdio::null())).context("the build root")?;
    fs::write(stamp(folder), PACKAGES)?;
    Ok(())
}

/// A command that runs a program in the system, which then has `/proc`: objtool reads it.
pub fn command(folder: &Path, program: &str) -> Command {
    const ENTER: &str = "mount --bind /proc \"$1/proc\" && exec chroot \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", ENTER, "sh"]).arg(directory(folder));
    command.args(["/usr/bin/env", "-i", "PATH=/usr/bin:/bin:/usr/sbin:/sbin", program]);
    command
}
