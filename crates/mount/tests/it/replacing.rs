//! Files that are replaced while other processes open, read and close them. A plain directory
//! reports no error to the readers, and neither may a mount.
//!
//! `HOISTWAY_REPLACEMENTS` sets the number of replacements of each race. `HOISTWAY_REPLACE_IN`
//! names a directory in which they run instead of mounts of their own.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::os::fd::{AsFd, AsRawFd, IntoRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use hoistway_mount::WriteBack;
use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, RenameFlags, fstat, linkat, mkdirat, open, readlinkat, rename, renameat_with, stat,
    statat, symlinkat, unlink,
};
use rustix::io::{Errno, pread, pwrite, write};

use crate::support::{MountProcess, MountVariant, can_mount, scratch};

/// Bytes of a file, all equal.
const BYTES: usize = 64;
/// Number of threads that use the name while it is replaced.
const READERS: usize = 4;

/// How the inode behind the name `v` is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Replacement {
    /// By the rename of a new file.
    Rename,
    /// By the rename of a new file with a second name, which then replaces the name `w`.
    HardLink,
    /// By the rename of a new symbolic link.
    Symlink,
    /// By the rename of a new directory.
    Directory,
    /// By its removal, after which a reader or the writer creates it.
    Unlink,
    /// By an exchange with another name.
    Exchange,
    /// By the rename of a new file, while the readers write to the old one.
    WhileWriting,
    /// By the rename of a file that had no name (`O_TMPFILE`).
    Unnamed,
}

/// The errors of a thread, with their number.
#[derive(Debug, Default)]
struct Errors(BTreeMap<String, u64>);

impl Errors {
    fn check<T>(&mut self, what: &str, result: Result<T, Errno>) -> Option<T> {
        result.map_err(|error| self.note(&format!("{what}: {error:?}"))).ok()
    }

    fn expect(&mut self, is_right: bool, what: impl Debug) {
        if !is_right {
            self.note(&format!("{what:?}"));
        }
    }

    fn note(&mut self, what: &str) {
        *self.0.entry(what.to_owned()).or_default() += 1;
    }
}

fn close(fd: OwnedFd) -> Result<(), Errno> {
    // SAFETY: the descriptor is owned and not used again.
    let result = unsafe { libc::close(fd.into_raw_fd()) };
    if result == 0 { Ok(()) } else { Err(Errno::from_io_error(&std::io::Error::last_os_error()).expect("a number")) }
}

fn create(path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    open(path, flags | OFlags::CREATE | OFlags::CLOEXEC, Mode::from_raw_mode(0o644))
}

fn write_new(errors: &mut Errors, path: &Path, digit: u8) {
    let Some(fd) = errors.check("create", create(path, OFlags::WRONLY | OFlags::TRUNC)) else { return };
    errors.check("write", write(&fd, &[digit; BYTES]));
    errors.check("close of a new file", close(fd));
}

/// Replaces the inode behind `v`.
fn replace(errors: &mut Errors, how: Replacement, way: &Path, number: u64) {
    let path = |name: &str| way.join(name);
    let digit = b'0' + (number % 10) as u8;
    match how {
        Replacement::Rename | Replacement::WhileWriting => {
            write_new(errors, &path("t"), digit);
            errors.check("rename", rename(path("t"), path("v")));
        }
        Replacement::HardLink => {
            write_new(errors, &path("t"), digit);
            errors.check("link", linkat(CWD, path("t"), CWD, path("u"), AtFlags::empty()));
            errors.check("rename", rename(path("t"), path("v")));
            errors.check("rename", rename(path("u"), path("w")));
        }
        Replacement::Symlink => {
            errors.check("symlink", symlinkat(format!("target-{number}"), CWD, path("t")));
            errors.check("rename", rename(path("t"), path("v")));
        }
        Replacement::Directory => {
            errors.check("mkdir", mkdirat(CWD, path("t"), Mode::from_raw_mode(0o755)));
            errors.check("rename", rename(path("t"), path("v")));
        }
        Replacement::Unlink => {
            if unlink(path("v")) != Err(Errno::NOENT) {
                write_new(errors, &path("v"), digit);
            }
        }
        Replacement::Exchange => {
            errors.check("exchange", renameat_with(CWD, path("t"), CWD, path("v"), RenameFlags::EXCHANGE));
        }
        Replacement::Unnamed => {
            let unnamed = open(way, OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC, Mode::from_raw_mode(0o644));
            let Some(fd) = errors.check("create without a name", unnamed) else { return };
            errors.check("write", write(&fd, &[digit; BYTES]));
            let own = format!("/proc/self/fd/{}", fd.as_raw_fd());
            errors.check("link", linkat(CWD, own, CWD, path("t"), AtFlags::SYMLINK_FOLLOW));
            errors.check("rename", rename(path("t"), path("v")));
        }
    }
}

/// Reads a whole file and checks that its bytes were written together.
fn read_file(errors: &mut Errors, how: Replacement, fd: impl AsFd) {
    let mut bytes = [0; 100];
    let Some(length) = errors.check("read", pread(&fd, &mut bytes, 0)) else { return };
    let is_empty = how == Replacement::Unlink && length == 0;
    errors.expect(length == BYTES || is_empty, ("bytes", length));
    // Writers of the same file may overtake a reader.
    let is_shared = matches!(how, Replacement::WhileWriting | Replacement::Unlink);
    errors.expect(is_shared || bytes[..length].iter().all(|byte| *byte == bytes[0]), "two files in one");
    if let Some(found) = errors.check("fstat", fstat(&fd)) {
        errors.expect(found.st_size as usize == BYTES || is_shared, ("size", found.st_size));
        errors.expect(found.st_nlink <= 2, ("links", found.st_nlink));
    }
}

fn use_file(errors: &mut Errors, how: Replacement, path: &Path, is_writer: bool) {
    let opened = match (how, is_writer) {
        (Replacement::Unlink, true) => create(path, OFlags::RDWR),
        (Replacement::WhileWriting, true) => open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()),
        _ => open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()),
    };
    if how == Replacement::Unlink && !is_writer && matches!(opened, Err(Errno::NOENT)) {
        return;
    }
    let Some(fd) = errors.check("open", opened) else { return };
    if is_writer {
        errors.check("write to a replaced file", pwrite(&fd, &[b'w'; BYTES], 0));
    }
    read_file(errors, how, &fd);
    errors.check("close", close(fd));
    if how == Replacement::Unlink {
        return;
    }
    errors.check("stat", stat(path));
    // A reference that the kernel does not report.
    let reference = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
    let Some(reference) = errors.check("open as O_PATH", reference) else { return };
    errors.check("fstat of O_PATH", fstat(&reference));
    let again = format!("/proc/self/fd/{}", reference.as_raw_fd());
    let opened = open(again, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    if let Some(fd) = errors.check("open of O_PATH", opened) {
        read_file(errors, how, &fd);
        errors.check("close", close(fd));
    }
}

fn use_link(errors: &mut Errors, path: &Path) {
    if let Some(target) = errors.check("readlink", readlinkat(CWD, path, Vec::new())) {
        errors.expect(target.as_bytes().starts_with(b"target-"), target);
    }
    errors.check("lstat", statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW));
}

fn use_directory(errors: &mut Errors, path: &Path) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Some(fd) = errors.check("open", open(path, flags, Mode::empty())) else { return };
    errors.check("fstat", fstat(&fd));
    errors.check("stat .", statat(&fd, ".", AtFlags::empty()));
    let listed = rustix::fs::Dir::read_from(&fd).map(|directory| directory.filter_map(Result::err).next());
    let listed = listed.and_then(|error| error.map_or(Ok(()), Err));
    errors.check("list", listed);
    errors.check("close", close(fd));
    errors.check("stat", stat(path));
}

/// Paths of one directory: those by which `v` is replaced and those by which it is used, in turn.
#[derive(Clone, Debug)]
struct Ways {
    replacing: Vec<PathBuf>,
    using: Vec<PathBuf>,
}

impl Ways {
    fn all(ways: &[&Path]) -> Ways {
        let ways: Vec<_> = ways.iter().map(|way| way.to_path_buf()).collect();
        Ways { replacing: ways.clone(), using: ways }
    }

    /// Returns the paths of a directory inside, which is created.
    fn below(&self, name: &str) -> Ways {
        std::fs::create_dir_all(self.replacing[0].join(name)).expect("a directory");
        let below = |ways: &[PathBuf]| ways.iter().map(|way| way.join(name)).collect();
        Ways { replacing: below(&self.replacing), using: below(&self.using) }
    }
}

/// Replaces `v` this many times while [`READERS`] threads use it. Returns the errors.
fn race(how: Replacement, Ways { replacing, using }: &Ways, replacements: u64) -> BTreeMap<String, u64> {
    let mut errors = Errors::default();
    prepare(&mut errors, how, &replacing[0]);
    let has_ended = AtomicBool::new(false);
    let reader = |number: usize| {
        let path = using[number % using.len()].join("v");
        let mut errors = Errors::default();
        while !has_ended.load(Ordering::Relaxed) {
            match how {
                Replacement::Symlink => use_link(&mut errors, &path),
                Replacement::Directory => use_directory(&mut errors, &path),
                Replacement::Unlink | Replacement::WhileWriting => {
                    use_file(&mut errors, how, &path, number.is_multiple_of(2));
                }
                _ => use_file(&mut errors, how, &path, false),
            }
        }
        errors
    };
    thread::scope(|scope| {
        let reader = &reader;
        let readers: Vec<_> = (0..READERS).map(|number| scope.spawn(move || reader(number))).collect();
        for number in 0..replacements {
            replace(&mut errors, how, &replacing[number as usize % replacing.len()], number);
        }
        has_ended.store(true, Ordering::Relaxed);
        for reader in readers {
            for (what, count) in reader.join().expect("no panic").0 {
                *errors.0.entry(what).or_default() += count;
            }
        }
    });
    errors.0
}

fn prepare(errors: &mut Errors, how: Replacement, way: &Path) {
    for name in ["t", "u", "v", "w"] {
        let _ = std::fs::remove_dir(way.join(name));
        let _ = std::fs::remove_file(way.join(name));
    }
    match how {
        Replacement::Symlink | Replacement::Directory => replace(errors, how, way, 0),
        _ => write_new(errors, &way.join("v"), b'0'),
    }
    if how == Replacement::Exchange {
        write_new(errors, &way.join("t"), b'1');
    }
}

/// Returns the number of replacements of a race.
fn replacements(usual: u64) -> u64 {
    std::env::var("HOISTWAY_REPLACEMENTS").map_or(usual, |number| number.parse().expect("a number"))
}

/// Runs races through mounts, or once in a given directory, and asserts that no call failed.
fn race_through_mounts(variants: &[MountVariant], races: &[(Replacement, u64)]) {
    if let Some(directory) = std::env::var_os("HOISTWAY_REPLACE_IN") {
        return race_all("the directory", &Ways::all(&[Path::new(&directory)]), races);
    }
    for variant in variants {
        let source = scratch();
        let mounted = MountProcess::new(source.path(), *variant);
        race_all(&format!("{variant:?}"), &Ways::all(&[mounted.path()]), races);
    }
}

fn race_all(label: &str, ways: &Ways, races: &[(Replacement, u64)]) {
    for (how, usual) in races {
        let number = replacements(*usual);
        let errors = race(*how, &ways.below(&format!("{how:?}")), number);
        eprintln!("{label}: {number} replacements by {how:?}: {errors:?}");
        assert_eq!(errors, BTreeMap::new(), "{label}, {how:?}, {number} replacements");
    }
}

#[test]
fn readers_of_a_replaced_file_see_no_error() {
    if !can_mount("files that are replaced") {
        return;
    }
    let modes = [WriteBack::Ours, WriteBack::Kernel];
    let variants = modes.map(|mode| [MountVariant::open(mode), MountVariant::scheduled(mode)]);
    race_through_mounts(&variants.concat(), &[(Replacement::Rename, 350)]);
}

#[test]
fn users_of_any_replaced_inode_see_no_error() {
    if !can_mount("inodes that are replaced") {
        return;
    }
    let races = [
        Replacement::HardLink,
        Replacement::Symlink,
        Replacement::Directory,
        Replacement::Unlink,
        Replacement::Exchange,
        Replacement::WhileWriting,
    ];
    let variants = [MountVariant::open(WriteBack::Ours), MountVariant::scheduled(WriteBack::Kernel)];
    race_through_mounts(&variants, &races.map(|how| (how, 60)));
    let by_descriptor = MountVariant { handles: false, ..MountVariant::open(WriteBack::Ours) };
    race_through_mounts(&[by_descriptor], &[(Replacement::Rename, 60)]);
}

#[test]
fn a_file_may_be_replaced_through_another_mount_or_below() {
    if !can_mount("files that are replaced elsewhere") {
        return;
    }
    let races = [Replacement::Rename, Replacement::Symlink, Replacement::Directory, Replacement::Exchange];
    let source = scratch();
    for write_back in [WriteBack::Ours, WriteBack::Kernel] {
        let first = MountProcess::new(source.path(), MountVariant::open(write_back));
        let second = MountProcess::new(source.path(), MountVariant::scheduled(write_back));
        let ways = Ways::all(&[source.path(), first.path(), second.path()]);
        race_all(&format!("two mounts, {write_back:?}"), &ways, &races.map(|how| (how, 60)));
        // The mount does not see the replacements.
        let unseen = Ways { replacing: vec![source.path().to_owned()], using: vec![first.path().to_owned()] };
        race_all(&format!("below a mount, {write_back:?}"), &unseen, &[(Replacement::Unnamed, 300)]);
    }
}
