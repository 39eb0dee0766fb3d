//! Minimal Debian systems below `target/kernel`, and programs that run in them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use hoistway_workspace::programs;

use crate::architecture;
use crate::archive::Mirrors;
use crate::table::Archive;

/// A minimal Debian in a directory of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DebianRoot {
    /// The name of the directory.
    pub name: &'static str,
    /// The suite.
    pub suite: &'static str,
    /// mmdebstrap's variant: `essential`, or `apt` for a system in which packages are installed.
    pub variant: &'static str,
    /// The packages beyond those of the variant, with commas.
    pub packages: &'static str,
}

impl DebianRoot {
    /// The directory of the system.
    pub fn directory(&self, folder: &Path) -> PathBuf {
        folder.join(self.name)
    }

    /// Returns true if the system is present with all packages.
    pub fn is_complete(&self, folder: &Path) -> bool {
        fs::read_to_string(self.stamp(folder)).is_ok_and(|packages| packages == self.packages)
    }

    /// The file that ends the making of the system.
    fn stamp(&self, folder: &Path) -> PathBuf {
        self.directory(folder).join("complete")
    }

    /// Makes the system unless it is present.
    pub fn require(&self, folder: &Path) -> Result<()> {
        let directory = self.directory(folder);
        if self.is_complete(folder) {
            return Ok(());
        }
        if !programs::is_root() {
            bail!("only root can make the system {} and run programs in it", directory.display());
        }
        programs::require_all(&[("mmdebstrap", "mmdebstrap")], true)?;
        let _ = fs::remove_dir_all(&directory);
        let mut bootstrap = Command::new("mmdebstrap");
        bootstrap.args(["--quiet", "--mode=root", "--architectures=amd64"]);
        bootstrap.arg(format!("--variant={}", self.variant)).arg(format!("--include={}", self.packages));
        bootstrap.args(["--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-exclude=/usr/share/locale/*"]);
        bootstrap.args(["--aptopt=APT::Install-Recommends \"false\"", "--aptopt=Acquire::Retries \"3\""]);
        bootstrap.arg(self.suite).arg(&directory).arg(Mirrors::of_this_machine()?.main());
        programs::run(bootstrap.stdout(Stdio::null())).with_context(|| format!("the system {}", self.name))?;
        fs::write(self.stamp(folder), self.packages)?;
        Ok(())
    }

    /// A command that runs a program in the system, which then has `/proc`: objtool reads it.
    pub fn command(&self, folder: &Path, program: &str) -> Command {
        const ENTER: &str = "mount --bind /proc \"$1/proc\" && exec chroot \"$@\"";
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", ENTER, "sh"]).arg(self.directory(folder));
        command.args(ENVIRONMENT).arg(program);
        command
    }
}

/// Returns the file `sources.list` of a bookworm with all updates, from the mirrors of this
/// machine.
///
/// # Errors
///
/// The configuration of apt names no mirrors of Debian.
pub fn bookworm_sources() -> Result<String> {
    Ok(Mirrors::of_this_machine()?.sources(Archive::Bookworm, architecture::BUILD.debian()))
}

/// The environment of programs in a system.
const ENVIRONMENT: [&str; 4] = ["/usr/bin/env", "-i", "PATH=/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL=C"];

/// A system whose changes are kept beside it, in an overlay: another one begins without them.
#[derive(Debug)]
pub struct Changed {
    lower: PathBuf,
    directory: PathBuf,
}

impl Changed {
    /// Begins with an unchanged system. The changes are kept in a directory, which is emptied.
    pub fn new(root: &DebianRoot, folder: &Path, directory: &Path) -> Result<Changed> {
        root.require(folder)?;
        let _ = fs::remove_dir_all(directory);
        let directory = std::path::absolute(directory)?;
        for part in ["upper", "work", "merged"] {
            fs::create_dir_all(directory.join(part)).with_context(|| format!("cannot make {}", directory.display()))?;
        }
        Ok(Changed { lower: std::path::absolute(root.directory(folder))?, directory })
    }

    /// The directory of the files that differ from those of the unchanged system. Files may be
    /// added while no program runs in the system.
    pub fn files(&self) -> PathBuf {
        self.directory.join("upper")
    }

    /// A command that runs a program in the system, which has `/proc` and an empty `/tmp`.
    pub fn command(&self, program: &str) -> Command {
        const ENTER: &str = "mount -t overlay overlay -o \"lowerdir=$1,upperdir=$2/upper,workdir=$2/work\" \
                             \"$2/merged\" && cd \"$2/merged\" && mount --bind /proc proc && \
                             mount -t tmpfs tmpfs tmp && shift 2 && exec chroot . \"$@\"";
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", ENTER, "sh"]).arg(&self.lower).arg(&self.directory);
        // The programs of packages ask no questions, and no initial RAM disks are made.
        command.args(ENVIRONMENT).args(["DEBIAN_FRONTEND=noninteractive", "INITRD=No"]).arg(program);
        command
    }
}
