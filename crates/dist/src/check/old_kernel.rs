//! A system with an old kernel: a virtual machine whose initial RAM disk has the files of the
//! tarball, and busybox for the commands of the blocks.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use hoistway_vm::fetch::{self, Fetched};
use hoistway_vm::initramfs::Archive;
use hoistway_vm::{console, table};

use crate::tree;

/// The longest duration of a block.
const LIMIT: Duration = Duration::from_secs(300);

/// The first process: it mounts what programs expect, runs the commands of the block in the
/// directory with the files of the tarball, and ends the machine.
const INIT: &str = "#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin HOME=/home NO_COLOR=1
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
cd /home
# Programs see no terminal.
sh /block.sh | cat
poweroff -f
";

/// What a boot of the kernel needs.
#[derive(Debug)]
pub(super) struct OldKernel {
    fetched: Fetched,
    /// The directory of all kernels, which gets the files of the machine.
    folder: PathBuf,
    /// The files of the tarball.
    root: tempfile::TempDir,
}

/// The kernel, if it was taken from its packages before.
fn existing(folder: &Path) -> Option<Fetched> {
    table::OLD_KERNELS.iter().find_map(|kernel| Fetched::existing(kernel, folder))
}

/// Returns why there is no old kernel.
pub(super) fn obstacle(folder: &Path) -> Option<String> {
    let reason = "no old kernel was taken from packages: cargo xtask guest --kernel 4.4 --packages DIR";
    existing(folder).is_none().then(|| reason.to_owned())
}

impl OldKernel {
    /// Takes a directory with the files of the tarball.
    pub(super) fn new(folder: PathBuf, root: tempfile::TempDir) -> Result<OldKernel> {
        Ok(OldKernel { fetched: existing(&folder).context("the old kernel")?, folder, root })
    }

    /// The directory with the files of the tarball.
    pub(super) fn root(&self) -> &Path {
        self.root.path()
    }

    /// Boots the kernel, runs a script and returns its output.
    pub(super) fn run(&self, script: &str) -> Result<String> {
        let mut archive = Archive::new();
        let architecture = self.fetched.kernel.architecture;
        let busybox = fetch::program(architecture, "busybox", "busybox-static", "bin/busybox", &self.folder)?;
        archive.program(&busybox, "bin/busybox")?;
        for file in tree::files_below(self.root())? {
            let path = self.root().join(&file);
            let contents = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            archive.file(&format!("home/{}", file.display()), &contents);
        }
        archive.file("init", INIT.as_bytes());
        archive.file("block.sh", script.as_bytes());
        console::run(&self.fetched, archive, LIMIT, &self.folder.join("runs/old-kernel"))
    }
}
