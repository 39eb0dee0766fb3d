//! The modules of a kernel: where they are, and in which order they are inserted.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use liblzma::read::XzDecoder;

use hoistway_workspace::programs;

/// The modules that the guest inserts where the kernel has them: devices and elevators.
pub const WANTED: &[&str] = &[
    "virtio_pci",
    "virtio_blk",
    "configfs",
    "null_blk",
    "scsi_debug",
    "virtio_scsi",
    "sd_mod",
    "loop",
    "ext4",
    "crc32c_generic",
    "mq_deadline",
    "bfq",
    "kyber_iosched",
];

/// The names of the modules that are kept, one a line.
pub fn wanted() -> String {
    WANTED.join("\n")
}

/// The modules of a kernel that are files, by `modules.dep`.
#[derive(Debug, Default)]
pub struct Modules {
    /// The files, and the names of the modules that each needs, by name.
    files: BTreeMap<String, (String, Vec<String>)>,
}

impl Modules {
    /// Reads the list in a directory such as `/lib/modules/6.12.1`.
    pub fn read(directory: &Path) -> Result<Modules> {
        let path = directory.join("modules.dep");
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Modules::parse(&text))
    }

    fn parse(dependencies: &str) -> Modules {
        let lines = dependencies.lines().filter_map(|line| line.split_once(':'));
        let files = lines.map(|(path, needed)| {
            let needed = needed.split_whitespace().map(module_name).collect();
            (module_name(path), (path.to_owned(), needed))
        });
        Modules { files: files.collect() }
    }

    /// The given modules that are files and those that they need, each with its path and the names
    /// that it needs.
    pub fn closure(&self, names: &[&str]) -> BTreeMap<String, (String, Vec<String>)> {
        let mut found = BTreeMap::new();
        let mut queue: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        while let Some(name) = queue.pop() {
            let Some((path, needed)) = self.files.get(&name) else { continue };
            if found.insert(name, (path.clone(), needed.clone())).is_none() {
                queue.extend(needed.iter().cloned());
            }
        }
        found
    }
}

/// The name of the module of a file: `kernel/block/kyber-iosched.ko.xz` is `kyber_iosched`.
fn module_name(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or(path);
    file.split(".ko").next().unwrap_or(file).replace('-', "_")
}

/// The directory of the modules of a release below the root of extracted packages.
pub fn directory(root: &Path, release: &str) -> Result<PathBuf> {
    let places = [root.join("lib/modules"), root.join("usr/lib/modules")];
    let found = places.into_iter().map(|place| place.join(release)).find(|place| place.join("kernel").is_dir());
    found.with_context(|| format!("no modules of {release} in {}", root.display()))
}

/// Writes the lists of dependencies, and removes the modules that the guest does not insert.
pub fn prune(root: &Path, release: &str) -> Result<()> {
    // depmod looks into `lib`, newer packages have their files in `usr/lib`.
    let (library, usr) = (root.join("lib"), root.join("usr/lib/modules"));
    if !library.exists() && usr.is_dir() {
        std::os::unix::fs::symlink("usr/lib", &library)?;
    }
    let directory = directory(root, release)?;
    let depmod = || programs::run(Command::new("depmod").arg("-b").arg(root).arg(release));
    depmod()?;
    let kept: BTreeSet<PathBuf> =
        Modules::read(&directory)?.closure(WANTED).into_values().map(|(path, _)| directory.join(path)).collect();
    remove_except(&directory, &kept)?;
    depmod()
}

fn remove_except(directory: &Path, kept: &BTreeSet<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() && !path.is_symlink() {
            remove_except(&path, kept)?;
        } else if path.to_string_lossy().contains(".ko") && !kept.contains(&path) {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

/// Reads a module. One that is compressed with xz or zstd is decompressed.
pub fn read_module(path: &Path) -> Result<Vec<u8>> {
    let bytes = fs::read(path).with_context(|| format!("cannot read the module {}", path.display()))?;
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("ko") => Ok(bytes),
        Some("xz") => {
            let mut module = Vec::new();
            XzDecoder::new(bytes.as_slice()).read_to_end(&mut module).with_context(|| path.display().to_string())?;
            Ok(module)
        }
        Some("zst") => {
            let output = Command::new("zstd").args(["-dcq"]).arg(path).output().context("cannot start zstd")?;
            if output.status.success() { Ok(output.stdout) } else { bail!("zstd cannot read {}", path.display()) }
        }
        _ => bail!("{} is neither .ko nor .ko.xz nor .ko.zst", path.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEPENDENCIES: &str = "kernel/drivers/block/virtio_blk.ko.xz: kernel/drivers/virtio/virtio.ko.xz \
                                kernel/drivers/virtio/virtio_ring.ko.xz\n\
                                kernel/drivers/virtio/virtio.ko.xz: kernel/drivers/virtio/virtio_ring.ko.xz\n\
                                kernel/drivers/virtio/virtio_ring.ko.xz:\nkernel/block/kyber-iosched.ko.xz:\n";

    #[test]
    fn a_closure_has_the_modules_that_a_module_needs() {
        let modules = Modules::parse(DEPENDENCIES);
        let closure = modules.closure(&["virtio_blk", "null_blk"]);
        let names: Vec<&str> = closure.keys().map(String::as_str).collect();
        assert_eq!(names, ["virtio", "virtio_blk", "virtio_ring"]);
        assert_eq!(closure["virtio"].1, ["virtio_ring"]);
    }
}
