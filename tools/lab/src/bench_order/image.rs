//! Images of file systems, created by `examples/tar-reorder/image.sh`, and their mounts.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};
use hoistway_order::ext4::InodeTables;
use hoistway_order::read_plan::TreeLayout;
use hoistway_order::{FileKind, Tree, locate, walk};
use hoistway_workspace::{programs, repository};

use crate::emulated::Mounted;

/// The number of files of the reference tree.
const FILES: &str = "22500";
const SIZE: &str = "4G";

/// The image of an aged file system, or of one that was written once; created if necessary.
pub fn of_files(folder: &Path, aged: bool) -> Result<PathBuf> {
    let image = folder.join(if aged { "aged.img" } else { "fresh.img" });
    if !image.exists() {
        let unfinished = folder.join("unfinished.img");
        let mut command = Command::new(repository::root().join("examples/tar-reorder/image.sh"));
        command.arg(&unfinished).args([FILES, SIZE]);
        if !aged {
            command.env("FRESH", "1");
        }
        programs::run(&mut command)?;
        fs::rename(&unfinished, &image)?;
    }
    Ok(image)
}

/// Reads the placement of the tree of an image, and its inodes.
pub fn layout(mounted: &Mounted) -> Result<TreeLayout> {
    let mut tree = Tree::new();
    let mut problems = Vec::new();
    let root = mounted.at.join("tree");
    walk::walk(&[root], &walk::Options::default(), &mut tree, &mut |problem| problems.push(problem.to_string()))?;
    ensure!(problems.is_empty(), "{}", problems.join("\n"));
    let device = fs::File::open(&mounted.device)?;
    let mut layout = TreeLayout::new(tree, Some(InodeTables::read(&device)?));
    for id in layout.tree.ids() {
        if matches!(layout.tree.entry(id).kind, FileKind::File | FileKind::Directory) {
            let data = locate::extents(&layout.tree, id, false)
                .map_err(|error| anyhow::anyhow!("{:?}: {error:?}", layout.tree.name(id)))?;
            layout.set(id, data.bytes, &data.extents);
        }
    }
    Ok(layout)
}
