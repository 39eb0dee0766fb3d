//! File systems in files, mounted on the spot. They need root, loop devices and the programs that make them; what is missing is said aloud, and the
//! test does nothing.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Folder;

/// A file system of its own, mounted at `root`.
pub struct Image {
    _folder: Folder,
    pub root: PathBuf,
}

impl Image {
    /// One of `kind`: "ext4", "xfs", "btrfs" or "tmpfs", with what `mkfs` is to be told beside.
    pub fn new(kind: &str, options: &[&str]) -> Option<Image> {
        if !rustix::process::geteuid().is_root() {
            return skipped("root is needed to mount a file system");
        }
        let folder = Folder::new();
        let root = folder.path("mounted");
        fs::create_dir(&root).expect("the folder can be made");
        if kind == "tmpfs" {
            return mounted(Command::new("mount").args(["-t", "tmpfs", "none"]).arg(&root), folder, root);
        }
        let file = folder.path("image");
        File::create(&file).and_then(|file| file.set_len(512 << 20)).expect("the image can be made");
        let made = Command::new(format!("mkfs.{kind}")).arg("-q").args(options).arg(&file).output();
        match made {
            Ok(made) if made.status.success() => {}
            Ok(made) => return skipped(&format!("mkfs.{kind}: {}", String::from_utf8_lossy(&made.stderr))),
            Err(_) => return skipped(&format!("mkfs.{kind} is not installed")),
        }
        mounted(Command::new("mount").args(["-t", kind, "-o", "loop"]).arg(&file).arg(&root), folder, root)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Writes a file, with the folders above it.
    pub fn file(&self, name: &str, contents: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("the folder can be made");
        fs::write(path, contents).expect("the file can be written");
    }

    /// Everything to the disk.
    pub fn sync(&self) {
        rustix::fs::syncfs(File::open(&self.root).expect("it is mounted")).expect("it can be synced");
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        // Walks of other tests look at all mounts for a moment.
        for _ in 0..40 {
            let unmounted = Command::new("umount").arg("-R").arg(&self.root).output();
            if unmounted.is_ok_and(|unmounted| unmounted.status.success()) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        eprintln!("{} stays mounted", self.root.display());
    }
}

fn mounted(mount: &mut Command, folder: Folder, root: PathBuf) -> Option<Image> {
    match mount.output() {
        Ok(output) if output.status.success() => Some(Image { _folder: folder, root }),
        Ok(output) => skipped(&format!("nothing can be mounted: {}", String::from_utf8_lossy(&output.stderr))),
        Err(_) => skipped("mount is not installed"),
    }
}

/// Says aloud why a test does nothing.
pub fn skipped<T>(why: &str) -> Option<T> {
    eprintln!("SKIPPED: {}", why.trim());
    None
}

/// Where filefrag (of e2fsprogs) says that the extents of a file begin: logical and physical, in bytes.
pub fn filefrag(path: &Path) -> Option<Vec<(u64, u64)>> {
    let Ok(output) = Command::new("filefrag").args(["-v", "-b1"]).arg(path).output() else {
        return skipped("filefrag is not installed");
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    // "   0:        0..    4095:   34816..   38911:   4096:  last,eof"
    let extent = |line: &str| {
        let mut parts = line.split(':');
        parts.next()?.trim().parse::<u32>().ok()?;
        let begins = |part: &str| part.split("..").next()?.trim().parse().ok();
        Some((begins(parts.next()?)?, begins(parts.next()?)?))
    };
    Some(text.lines().filter_map(extent).collect())
}
