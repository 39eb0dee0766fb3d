//! Images of file systems, made by `examples/tar-reorder/image.sh`, and where they are mounted.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use hoistway_order::ext4::InodeTables;
use hoistway_order::plan::Laid;
use hoistway_order::{Kind, Tree, place, walk};

use crate::{repository, tools};

/// As many as the reference tree has.
const FILES: &str = "22500";
const SIZE: &str = "4G";

/// The image of a file system in use, or of one that was written once; made if it is not there.
pub fn of_files(folder: &Path, aged: bool) -> Result<PathBuf> {
    let image = folder.join(if aged { "aged.img" } else { "fresh.img" });
    if !image.exists() {
        let unfinished = folder.join("unfinished.img");
        let mut command = Command::new(repository::root().join("examples/tar-reorder/image.sh"));
        command.arg(&unfinished).args([FILES, SIZE]);
        if !aged {
            command.env("FRESH", "1");
        }
        tools::run(&mut command)?;
        fs::rename(&unfinished, &image)?;
    }
    Ok(image)
}

/// A file system on a loop device that goes past the page cache of what it lies on. It is unmounted when this is dropped.
pub struct Mounted {
    pub at: PathBuf,
    /// As /dev/loop0.
    pub device: String,
}

impl Mounted {
    /// Mounts `image`, a file in any file system, for reading: nothing of it is in memory then.
    pub fn new(image: &Path, at: &Path) -> Result<Mounted> {
        fs::create_dir_all(at).with_context(|| format!("cannot make {}", at.display()))?;
        let attach = ["--find", "--show", "--read-only", "--direct-io=on"];
        let device = tools::output(Command::new("losetup").args(attach).arg(image))?.trim().to_owned();
        let mounted = Mounted { at: at.to_owned(), device };
        // What disks have; loop devices may have more.
        tools::run(Command::new("blockdev").args(["--setra", "256", &mounted.device]))?;
        tools::run(Command::new("mount").args(["-o", "ro,noatime", &mounted.device]).arg(at))?;
        Ok(mounted)
    }

    /// Reads that the device has done since it was made, and bytes.
    pub fn reads(&self) -> Result<(u64, u64)> {
        let name = self.device.rsplit('/').next().unwrap_or_default();
        // The kernel's Documentation/block/stat.rst: reads, merged reads, sectors.
        let text = fs::read_to_string(format!("/sys/block/{name}/stat"))?;
        let figures: Vec<u64> = text.split_whitespace().map_while(|word| word.parse().ok()).collect();
        ensure!(figures.len() > 2, "/sys/block/{name}/stat is `{}`", text.trim());
        Ok((figures[0], figures[2] * 512))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // There is nobody to tell: what could not be unmounted stays, and is seen in `losetup`.
        let _ = Command::new("umount").arg(&self.at).status();
        let _ = Command::new("losetup").args(["--detach", &self.device]).status();
    }
}

/// Where the tree of an image lies, and its inodes.
pub fn laid(mounted: &Mounted) -> Result<Laid> {
    let mut tree = Tree::new();
    let mut problems = Vec::new();
    let root = mounted.at.join("tree");
    walk::walk(&[root], &walk::Options::default(), &mut tree, &mut |problem| problems.push(problem.to_string()))?;
    ensure!(problems.is_empty(), "{}", problems.join("\n"));
    let device = fs::File::open(&mounted.device)?;
    let mut laid = Laid::new(tree, Some(InodeTables::read(&device)?));
    for id in laid.tree.ids() {
        if matches!(laid.tree.entry(id).kind, Kind::File | Kind::Directory) {
            let data = place::extents(&laid.tree, id, false)
                .map_err(|trouble| anyhow::anyhow!("{:?}: {trouble:?}", laid.tree.name(id)))?;
            laid.set(id, data.bytes, &data.extents);
        }
    }
    Ok(laid)
}
