//! Trees with one file of each type, and snapshots of their attributes.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, SeekFrom, Timespec, Timestamps, lgetxattr, llistxattr, mknodat, seek, utimensat,
};

use super::is_root;

/// A size that does not fit into 32 bits.
const FAR: u64 = (4 << 30) + 4096;

/// The attributes of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSnapshot {
    pub mode: u32,
    pub owners: (u32, u32),
    pub mtime: (i64, i64),
    pub size: u64,
    pub device: u64,
    pub target: Vec<u8>,
    /// Checksum over offsets and values of the lines that are not zero.
    pub data: u64,
    /// The first name of this file.
    pub first_name: Vec<u8>,
    pub attributes: BTreeMap<Vec<u8>, Vec<u8>>,
    /// True if the file occupies less space than its size.
    pub has_holes: bool,
}

/// Returns the attributes of all files below a directory, by path.
pub fn snapshot(folder: &Path) -> BTreeMap<Vec<u8>, FileSnapshot> {
    let mut found = BTreeMap::new();
    let mut first_names = BTreeMap::new();
    let mut waiting = vec![folder.to_owned()];
    let mut paths = Vec::new();
    while let Some(path) = waiting.pop() {
        if path.symlink_metadata().expect("it is there").is_dir() {
            waiting.extend(fs::read_dir(&path).expect("a directory").map(|entry| entry.expect("an entry").path()));
        }
        paths.push(path);
    }
    paths.sort();
    for path in paths {
        let name = path.strip_prefix(folder).expect("it lies there").as_os_str().as_bytes().to_vec();
        let file = of(&path, &name, &mut first_names);
        found.insert(name, file);
    }
    found
}

fn of(path: &Path, name: &[u8], first_names: &mut BTreeMap<u64, Vec<u8>>) -> FileSnapshot {
    let metadata = path.symlink_metadata().expect("it is there");
    let is_file = metadata.is_file();
    let is_link = metadata.is_symlink();
    let first_name = if metadata.is_dir() {
        name.to_vec()
    } else {
        first_names.entry(metadata.ino()).or_insert(name.to_vec()).clone()
    };
    FileSnapshot {
        mode: metadata.mode(),
        owners: (metadata.uid(), metadata.gid()),
        mtime: (metadata.mtime(), metadata.mtime_nsec()),
        size: if is_file { metadata.len() } else { 0 },
        device: metadata.rdev(),
        target: if is_link { fs::read_link(path).expect("a link").as_os_str().as_bytes().to_vec() } else { Vec::new() },
        data: if is_file { data(path, metadata.len()) } else { 0 },
        first_name,
        attributes: attributes(path),
        has_holes: is_file && metadata.blocks() * 512 + 65_536 < metadata.len(),
    }
}

/// Returns a checksum of a file's data in which holes equal zeros.
fn data(path: &Path, size: u64) -> u64 {
    let file = File::open(path).expect("a file");
    let mut sum = 0u64;
    let mut at = 0;
    let mut block = vec![0; 4096];
    while at < size {
        let Ok(begins) = seek(&file, SeekFrom::Data(at)) else { break };
        let ends = seek(&file, SeekFrom::Hole(begins)).expect("a hole or the end");
        let mut offset = begins - begins % 4096;
        while offset < ends {
            let got = file.read_at(&mut block, offset).expect("it can be read");
            for (index, byte) in block[..got].iter().enumerate().filter(|(_, byte)| **byte != 0) {
                sum = sum.wrapping_mul(1_000_003).wrapping_add((offset + index as u64) << 8 | u64::from(*byte));
            }
            offset += 4096;
        }
        at = offset;
    }
    sum
}

fn attributes(path: &Path) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut names = vec![0; 4096];
    let length = llistxattr(path, &mut names[..]).unwrap_or(0);
    let names: Vec<_> = names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()).collect();
    let value = |name: &[u8]| {
        let mut value = vec![0; 65_536];
        let length = lgetxattr(path, OsStr::from_bytes(name), &mut value[..]).expect("it was listed");
        value.truncate(length);
        value
    };
    let is_ours = |name: &&&[u8]| name.starts_with(b"user.") || name.starts_with(b"system.posix_acl");
    names.iter().filter(is_ours).map(|name| (name.to_vec(), value(name))).collect()
}

/// Which special features a file system supports.
#[derive(Clone, Copy)]
pub struct Takes {
    pub attributes: bool,
}

/// Creates a directory `t` with one file of each type.
pub fn make(folder: &Path, takes: Takes) -> PathBuf {
    let top = folder.join("t");
    fs::create_dir(&top).unwrap();
    let at = |name: &str| top.join(name);
    let write = |name: &str, bytes: &[u8]| fs::write(at(name), bytes).unwrap();
    write("empty", b"");
    write("one", b"1");
    write("block", &[b'b'; 512]);
    write("large", &(0..1_500_000u32).map(|n| ((n * 7) >> 3) as u8 | 1).collect::<Vec<_>>());
    fs::create_dir_all(at("a/b/c")).unwrap();
    write("a/b/c/deep", b"deep");
    fs::create_dir(at("hollow")).unwrap();
    symlink("one", at("link")).unwrap();
    symlink("x".repeat(300), at("long-link")).unwrap();
    symlink("nowhere", at("broken")).unwrap();
    fs::hard_link(at("large"), at("a/another")).unwrap();
    fs::hard_link(at("large"), at("a/b/third")).unwrap();
    fs::write(top.join("n".repeat(255)), b"255").unwrap();
    let long = format!("{}/{}", "d".repeat(200), "e".repeat(250));
    fs::create_dir_all(at(&long)).unwrap();
    write(&format!("{long}/inside"), b"far in");
    fs::write(top.join(OsStr::from_bytes(b"not-\xff-utf8")), b"raw").unwrap();
    let raw = [&b"\xfe"[..], &[b'r'; 180]].concat();
    fs::write(top.join(OsStr::from_bytes(&raw)), b"long and raw").unwrap();
    write("with\nnewline", b"n");
    write(&format!("{}\n{}", "o".repeat(120), "p".repeat(100)), b"long with a newline");
    write("tunable", b"t");
    sparse(&at("holes"), &[(0, b"head"), (300_000, b"middle")], 1 << 20);
    sparse(&at("hole"), &[], 100_000);
    sparse(&at("far"), &[(1 << 20, b"near"), (FAR, b"far")], FAR + 100_000);
    sparse(&at("many"), &(0..60).map(|n| (n * 131_072, &b"piece"[..])).collect::<Vec<_>>(), 60 * 131_072);
    if takes.attributes {
        set_attributes(&top);
    }
    if is_root() {
        special(&top);
    }
    fs::set_permissions(at("tunable"), Permissions::from_mode(0o4751)).unwrap();
    fs::set_permissions(at("hollow"), Permissions::from_mode(0o700)).unwrap();
    set_times(&top);
    top
}

/// Creates files that need root: devices, other owners, restrictive directories.
fn special(top: &Path) {
    let node =
        |name: &str, kind, device| mknodat(CWD, top.join(name), kind, Mode::from_bits_truncate(0o640), device).unwrap();
    node("null", FileType::CharacterDevice, rustix::fs::makedev(1, 3));
    node("disk", FileType::BlockDevice, rustix::fs::makedev(259, 300));
    node("pipe", FileType::Fifo, 0);
    fs::create_dir(top.join("closed")).unwrap();
    fs::write(top.join("closed/inside"), b"closed").unwrap();
    let chown = |name: &str, user, group| std::os::unix::fs::lchown(top.join(name), Some(user), Some(group)).unwrap();
    chown("one", 1, 2);
    chown("link", 1, 1);
    // More than seven octal digits.
    chown("block", 3_000_000_000, 2_500_000);
    fs::set_permissions(top.join("closed"), Permissions::from_mode(0o555)).unwrap();
    fs::create_dir(top.join("group")).unwrap();
    fs::write(top.join("group/inside"), b"group").unwrap();
    chown("group", 0, 3);
    fs::set_permissions(top.join("group"), Permissions::from_mode(0o2775)).unwrap();
}

fn set_attributes(top: &Path) {
    let set = |name: &str, key: &str, value: &[u8]| {
        rustix::fs::setxattr(top.join(name), key, value, rustix::fs::XattrFlags::empty()).unwrap();
    };
    set("one", "user.plain", b"value");
    set("one", "user.raw", b"a\nb\0c=\xff");
    set("one", "user.empty", b"");
    set("a/b", "user.of.directory", &[b'v'; 2000]);
    let facl = |args: &[&str]| {
        let status = Command::new("setfacl").args(args).status();
        if !status.is_ok_and(|status| status.success()) {
            eprintln!("SKIPPED: setfacl {args:?}");
        }
    };
    facl(&["-m", "u:1:rx,g:2:w,m:rwx", top.join("one").to_str().unwrap()]);
    facl(&["-d", "-m", "u:1:rwx", top.join("a").to_str().unwrap()]);
    // A restrictive directory with a default ACL.
    fs::create_dir(top.join("handing")).unwrap();
    fs::write(top.join("handing/inside"), b"handed").unwrap();
    facl(&["-d", "-m", "u:1:rwx", top.join("handing").to_str().unwrap()]);
    facl(&["-m", "u:2:rx", top.join("handing").to_str().unwrap()]);
    fs::set_permissions(top.join("handing"), Permissions::from_mode(0o2770)).unwrap();
}

fn sparse(path: &Path, pieces: &[(u64, &[u8])], size: u64) {
    let file = File::create(path).unwrap();
    file.set_len(size).unwrap();
    pieces.iter().for_each(|(offset, bytes)| file.write_all_at(bytes, *offset).unwrap());
}

/// Sets times with nanoseconds, one before 1970, from the bottom up.
fn set_times(top: &Path) {
    let mut paths: Vec<_> = paths_of(top);
    paths.sort_by_key(|path| std::cmp::Reverse(path.as_os_str().len()));
    for (index, path) in paths.iter().enumerate() {
        let early = path.ends_with("empty");
        let seconds = if early { -3 } else { 1_000_000_000 + index as i64 };
        let time = Timespec { tv_sec: seconds, tv_nsec: if early { 0 } else { 123_456_789 } };
        let times = Timestamps { last_access: time, last_modification: time };
        utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
    }
}

fn paths_of(top: &Path) -> Vec<PathBuf> {
    let mut waiting = vec![top.to_owned()];
    let mut paths = Vec::new();
    while let Some(path) = waiting.pop() {
        if path.symlink_metadata().unwrap().is_dir() {
            waiting.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        paths.push(path);
    }
    paths
}
