//! Initial RAM disks: archives in the format that cpio calls newc.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

const DIRECTORY: u32 = 0o040_755;
const REGULAR: u32 = 0o100_755;
const CHARACTER: u32 = 0o020_600;

/// An archive that is being written.
#[derive(Debug, Default)]
pub struct Archive {
    bytes: Vec<u8>,
    directories: BTreeSet<String>,
    entries: u32,
}

impl Archive {
    /// Creates an archive with the directories that the first process mounts file systems on, and
    /// the console.
    pub fn new() -> Archive {
        let mut archive = Archive::default();
        for name in ["dev", "proc", "sys", "tmp"] {
            archive.directory(name);
        }
        archive.entry("dev/console", CHARACTER, (5, 1), &[]);
        archive
    }

    /// Adds a file, and the directories above it. The path begins without a slash.
    pub fn file(&mut self, path: &str, contents: &[u8]) {
        let parents: Vec<usize> = path.match_indices('/').map(|(at, _)| at).collect();
        for at in parents {
            self.directory(&path[..at]);
        }
        self.entry(path, REGULAR, (0, 0), contents);
    }

    /// Adds a program of this machine with its libraries.
    pub fn program(&mut self, path: &Path, at: &str) -> Result<()> {
        // ldd fails for a program without libraries.
        let listed = Command::new("ldd").arg(path).output().context("cannot start ldd")?;
        for library in libraries(&String::from_utf8_lossy(&listed.stdout)) {
            let contents = std::fs::read(&library).with_context(|| format!("cannot read {}", library.display()))?;
            self.file(library.to_string_lossy().trim_start_matches('/'), &contents);
        }
        let contents = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        self.file(at, &contents);
        Ok(())
    }

    /// Ends the archive and returns its bytes.
    pub fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, (0, 0), &[]);
        self.bytes
    }

    fn directory(&mut self, path: &str) {
        if self.directories.insert(path.to_owned()) {
            self.entry(path, DIRECTORY, (0, 0), &[]);
        }
    }

    fn entry(&mut self, path: &str, mode: u32, device: (u32, u32), contents: &[u8]) {
        self.entries += 1;
        let size = u32::try_from(contents.len()).unwrap_or(u32::MAX);
        let name = u32::try_from(path.len() + 1).unwrap_or(u32::MAX);
        // inode, mode, user, group, links, time, size, device of the file, device of the node,
        // name, checksum
        let fields = [self.entries, mode, 0, 0, 1, 0, size, 0, 0, device.0, device.1, name, 0];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(path.as_bytes());
        self.bytes.push(0);
        self.align();
        self.bytes.extend_from_slice(contents);
        self.align();
    }

    fn align(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

/// The files in the output of ldd, the dynamic linker included.
fn libraries(listed: &str) -> Vec<PathBuf> {
    let words = listed.lines().filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')));
    words.map(PathBuf::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_read_from_the_output_of_ldd() {
        let listed = "\tlinux-vdso.so.1 (0x00007ffd)\n\tlibaio.so.1 => /lib/x86_64-linux-gnu/libaio.so.1 (0x7f)\n\
                      \t/lib64/ld-linux-x86-64.so.2 (0x7f)\n";
        let expected = ["/lib/x86_64-linux-gnu/libaio.so.1", "/lib64/ld-linux-x86-64.so.2"].map(PathBuf::from);
        assert_eq!(libraries(listed), expected);
    }

    #[test]
    fn an_archive_lists_directories_once_and_before_their_files() {
        let mut archive = Archive::new();
        archive.file("modules/a.ko", b"one");
        archive.file("modules/b.ko", b"three");
        let bytes = archive.finish();
        assert_eq!(bytes.len() % 4, 0);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let entries = text.matches("070701").count();
        // Four directories, the console, `modules`, two files and the end.
        assert_eq!(entries, 9);
        assert!(text.find("modules\0") < text.find("modules/a.ko"));
    }
}
