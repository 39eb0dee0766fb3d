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

/// A virtual machine with an old kernel and the files of the tarball, which boots for each block.
#[derive(Debug)]
pub(super) struct OldKernel {
    fetched: Fetched,
    /// The directory of all kernels. The image and the logs of the machine are written below it.
    folder: PathBuf,
    /// The files of the tarball.
    root: tempfile::TempDir,
}

/// Returns the old kernel if `cargo xtask guest` has extracted its packages.
fn existing(folder: &Path) -> Option<Fetched> {
    table::OLD_KERNELS.iter().find_map(|kernel| Fetched::existing(kernel, folder))
}

/// Returns why there is no old kernel.
pub(super) fn obstacle(folder: &Path) -> Option<String> {
    let reason = "no old kernel was taken from packages: cargo xtask guest --kernel 4.4 --packages DIR";
    existing(folder).is_none().then(|| reason.to_owned())
}

impl OldKernel {
    /// Creates a machine that has the files of the tarball, which are in `root`.
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
