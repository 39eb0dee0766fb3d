//! File systems in image files, mounted for the test. They need root, loop devices and mkfs. If
//! something is missing, the test prints a message and does nothing.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Folder;

/// A mounted file system.
pub struct Image {
    _folder: Folder,
    pub root: PathBuf,
}

impl Image {
    /// Creates a file system of type "ext4", "xfs", "btrfs" or "tmpfs" with extra options for mkfs.
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

    /// Writes a file and creates its parent directories.
    pub fn file(&self, name: &str, contents: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("the folder can be made");
        fs::write(path, contents).expect("the file can be written");
    }

    /// Writes all dirty data to the image.
    pub fn sync(&self) {
        rustix::fs::syncfs(File::open(&self.root).expect("it is mounted")).expect("it can be synced");
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        unmount(&self.root);
    }
}

/// Unmounts a file system and those below it.
pub fn unmount(root: &Path) {
    // Walks of other tests, and programs that they start, may have the mount point open for a
    // moment.
    for _ in 0..400 {
        let unmounted = Command::new("umount").arg("-R").arg(root).output();
        if unmounted.is_ok_and(|unmounted| unmounted.status.success()) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    eprintln!("{} stays mounted", root.display());
}

fn mounted(mount: &mut Command, folder: Folder, root: PathBuf) -> Option<Image> {
    match mount.output() {
        Ok(output) if output.status.success() => Some(Image { _folder: folder, root }),
        Ok(output) => skipped(&format!("nothing can be mounted: {}", String::from_utf8_lossy(&output.stderr))),
        Err(_) => skipped("mount is not installed"),
    }
}

/// Prints why a test does nothing.
pub fn skipped<T>(why: &str) -> Option<T> {
    eprintln!("SKIPPED: {}", why.trim());
    None
}

/// Returns the extents of a file from filefrag (e2fsprogs): logical and physical offset in bytes.
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
