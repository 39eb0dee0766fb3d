//! The player of scenarios: system calls whose results are recorded.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fmt::Debug;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, mkdirat, openat, statat};
use rustix::io;

/// A named sequence of system calls.
#[derive(Clone, Copy)]
pub struct Scenario {
    pub name: &'static str,
    pub act: fn(&mut Scene),
}

/// A directory to work in, and the record of the results.
pub struct Scene {
    pub directory: PathBuf,
    seen: Vec<String>,
}

/// Plays a scenario in a new directory. Returns the results and the final state of the directory.
pub fn play(scenario: &Scenario, within: &Path) -> Vec<String> {
    // SAFETY: the argument is an integer.
    unsafe { libc::umask(0o022) };
    let directory = within.join(scenario.name.replace([' ', '/'], "-"));
    std::fs::create_dir(&directory).expect("a new directory");
    let mut scene = Scene { directory: directory.clone(), seen: Vec::new() };
    (scenario.act)(&mut scene);
    let mut links = BTreeMap::new();
    scene.tree(&directory, &mut links);
    scene.seen
}

impl Scene {
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Records a result.
    pub fn see(&mut self, what: &str, result: impl Debug) {
        self.seen.push(format!("{what}: {result:?}"));
    }

    /// Records whether a call succeeded, or its error.
    pub fn call<T>(&mut self, what: &str, result: io::Result<T>) -> Option<T> {
        match result {
            Ok(value) => {
                self.seen.push(format!("{what}: done"));
                Some(value)
            }
            Err(error) => {
                self.seen.push(format!("{what}: error {}", error.raw_os_error()));
                None
            }
        }
    }

    pub fn open(&mut self, name: &str, flags: OFlags) -> Option<OwnedFd> {
        self.open_with(name, flags, 0o644)
    }

    pub fn open_with(&mut self, name: &str, flags: OFlags, mode: u32) -> Option<OwnedFd> {
        let opened = openat(CWD, self.path(name), flags | OFlags::CLOEXEC, Mode::from_raw_mode(mode));
        self.call(&format!("open {name} {flags:?} {mode:o}"), opened)
    }

    /// Creates a file with content, outside the record.
    pub fn file(&mut self, name: &str, data: &[u8]) {
        std::fs::write(self.path(name), data).expect("a file is written");
    }

    pub fn directory(&mut self, name: &str) {
        std::fs::create_dir(self.path(name)).expect("a directory is made");
    }

    pub fn mkdir(&mut self, name: &str, mode: u32) {
        let made = mkdirat(CWD, self.path(name), Mode::from_raw_mode(mode));
        self.call(&format!("mkdir {name} {mode:o}"), made);
    }

    pub fn unlink(&mut self, name: &str) {
        let removed = rustix::fs::unlinkat(CWD, self.path(name), AtFlags::empty());
        self.call(&format!("unlink {name}"), removed);
    }

    pub fn rmdir(&mut self, name: &str) {
        let removed = rustix::fs::unlinkat(CWD, self.path(name), AtFlags::REMOVEDIR);
        self.call(&format!("rmdir {name}"), removed);
    }

    pub fn rename(&mut self, from: &str, to: &str) {
        let renamed = rustix::fs::renameat(CWD, self.path(from), CWD, self.path(to));
        self.call(&format!("rename {from} {to}"), renamed);
    }

    pub fn link(&mut self, from: &str, to: &str) {
        let linked = rustix::fs::linkat(CWD, self.path(from), CWD, self.path(to), AtFlags::empty());
        self.call(&format!("link {from} {to}"), linked);
    }

    pub fn symlink(&mut self, target: &str, name: &str) {
        let linked = rustix::fs::symlinkat(target, CWD, self.path(name));
        self.call(&format!("symlink {target} {name}"), linked);
    }

    pub fn read(&mut self, name: &str) {
        let data = std::fs::read(self.path(name)).map(|data| digest(&data)).map_err(|error| error.raw_os_error());
        self.see(&format!("read {name}"), data);
    }

    pub fn pread(&mut self, file: impl AsFd, offset: u64, length: usize) {
        let mut buffer = vec![0; length];
        let read = rustix::io::pread(file, &mut buffer[..], offset);
        let seen = read.map(|length| digest(&buffer[..length])).map_err(|error| error.raw_os_error());
        self.see(&format!("pread {offset} {length}"), seen);
    }

    pub fn pwrite(&mut self, file: impl AsFd, offset: u64, data: &[u8]) {
        let written = rustix::io::pwrite(file, data, offset).map_err(|error| error.raw_os_error());
        self.see(&format!("pwrite {offset} {}", data.len()), written);
    }

    pub fn write(&mut self, file: impl AsFd, data: &[u8]) {
        let written = rustix::io::write(file, data).map_err(|error| error.raw_os_error());
        self.see(&format!("write {}", data.len()), written);
    }

    /// Records the attributes of a name without following links.
    pub fn stat(&mut self, name: &str) {
        let found = statat(CWD, self.path(name), AtFlags::SYMLINK_NOFOLLOW);
        let found = found.map(|found| {
            let size = if found.st_mode & libc::S_IFMT == libc::S_IFDIR { 0 } else { found.st_size };
            format!(
                "{:o} links {} owner {}:{} size {size} device {:x}",
                found.st_mode, found.st_nlink, found.st_uid, found.st_gid, found.st_rdev
            )
        });
        self.see(&format!("stat {name}"), found.map_err(|error| error.raw_os_error()));
    }

    /// Lists the final state without times and inode numbers, which differ between directories.
    fn tree(&mut self, at: &Path, links: &mut BTreeMap<(u64, u64), PathBuf>) {
        let mut names: Vec<_> = match std::fs::read_dir(at) {
            Ok(entries) => entries.filter_map(Result::ok).map(|entry| entry.file_name()).collect(),
            Err(error) => return self.see("left unreadable", error.raw_os_error()),
        };
        names.sort();
        for name in names {
            let path = at.join(&name);
            let shown = path.strip_prefix(&self.directory).expect("below").to_path_buf();
            let found = match std::fs::symlink_metadata(&path) {
                Ok(found) => found,
                Err(error) => {
                    self.see(&format!("left {}", shown.display()), error.raw_os_error());
                    continue;
                }
            };
            let kind = found.file_type();
            let size = if kind.is_dir() { 0 } else { found.size() };
            let mut line =
                format!("{:o} links {} owner {}:{} size {size}", found.mode(), found.nlink(), found.uid(), found.gid());
            if kind.is_file() {
                line += &format!(
                    " data {}",
                    std::fs::read(&path)
                        .map_or_else(|error| format!("{:?}", error.raw_os_error()), |data| digest(&data))
                );
            } else if kind.is_symlink() {
                line += &format!(" to {:?}", std::fs::read_link(&path).map_err(|error| error.raw_os_error()));
            } else if kind.is_char_device() || kind.is_block_device() {
                line += &format!(" device {:x}", found.rdev());
            }
            if !kind.is_dir() && found.nlink() > 1 {
                line += &format!(" as {:?}", links.entry((found.dev(), found.ino())).or_insert(shown.clone()));
            }
            line += &attributes(&path);
            self.see(&format!("left {}", shown.display()), line);
            if kind.is_dir() {
                self.tree(&path, links);
            }
        }
    }
}

/// Returns the extended attributes of a file in the order of their names.
fn attributes(path: &Path) -> String {
    let Ok(c_path) = CString::new(path.as_os_str().as_bytes()) else { return String::new() };
    let mut list = vec![0; 4096];
    let Ok(length) = rustix::fs::llistxattr(c_path.as_c_str(), &mut list[..]) else { return String::new() };
    let mut names: Vec<_> = list[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()).collect();
    names.sort_unstable();
    let mut text = String::new();
    for name in names {
        let mut value = vec![0; 4096];
        let got = rustix::fs::lgetxattr(c_path.as_c_str(), name, &mut value[..]).map(|length| digest(&value[..length]));
        text += &format!(" {}={got:?}", String::from_utf8_lossy(name));
    }
    text
}

/// Renders data for comparison: all of them if short, else length and FNV-1a hash.
pub fn digest(data: &[u8]) -> String {
    if data.len() <= 24 {
        return data.escape_ascii().to_string();
    }
    let sum = data
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    format!("{} bytes of sum {sum:016x}", data.len())
}

/// Returns bytes that differ between positions.
pub fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 31 + at / 256 * 7 + 1) as u8).collect()
}
