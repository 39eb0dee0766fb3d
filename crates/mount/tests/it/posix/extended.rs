//! Scenarios for extended attributes, access control lists and inode flags.

use std::os::fd::AsRawFd;

use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, XattrFlags, chmodat, getxattr, getxattr_query, lgetxattr, listxattr, listxattr_query,
    lsetxattr, removexattr, setxattr,
};

use super::scene::{Scenario, Scene, digest, pattern};

const R: OFlags = OFlags::RDONLY;
const W: OFlags = OFlags::WRONLY;
const RW: OFlags = OFlags::RDWR;
const C: OFlags = OFlags::CREATE;
const APPEND: OFlags = OFlags::APPEND;

macro_rules! scenarios {
    ($($name:literal => $act:expr;)*) => { &[$(Scenario { name: $name, act: $act }),*] };
}

fn set(s: &mut Scene, file: &str, name: &str, value: &[u8], flags: XattrFlags) {
    let set = setxattr(s.path(file), name, value, flags);
    s.call(&format!("setxattr {file} {name} {} {flags:?}", value.len()), set);
}

fn get(s: &mut Scene, file: &str, name: &str, room: usize) {
    let mut value = vec![0; room];
    let got = getxattr(s.path(file), name, &mut value[..])
        .map(|length| digest(&value[..length]))
        .map_err(|error| error.raw_os_error());
    let length = getxattr_query(s.path(file), name).map_err(|error| error.raw_os_error());
    s.see(&format!("getxattr {file} {name} {room}"), (got, length));
}

fn list(s: &mut Scene, file: &str, room: usize) {
    let mut names = vec![0; room];
    let got = listxattr(s.path(file), &mut names[..]).map(|length| {
        let mut names: Vec<_> =
            names[..length].split(|byte| *byte == 0).map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        names.sort();
        names
    });
    let length = listxattr_query(s.path(file)).map_err(|error| error.raw_os_error());
    s.see(&format!("listxattr {file} {room}"), (got.map_err(|error| error.raw_os_error()), length));
}

fn remove(s: &mut Scene, file: &str, name: &str) {
    let removed = removexattr(s.path(file), name);
    s.call(&format!("removexattr {file} {name}"), removed);
}

/// Encodes an access control list for the kernel: version 2, then tag, permissions and ID of each
/// entry.
fn acl(entries: &[(u16, u16, u32)]) -> Vec<u8> {
    let mut list = 2u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in entries {
        list.extend(tag.to_le_bytes());
        list.extend(permissions.to_le_bytes());
        list.extend(id.to_le_bytes());
    }
    list
}

const OWNER: u16 = 1;
const USER: u16 = 2;
const GROUP: u16 = 4;
const NAMED_GROUP: u16 = 8;
const MASK: u16 = 16;
const OTHER: u16 = 32;
const NO_ID: u32 = u32::MAX;
/// `FS_APPEND_FL`, which `chattr +a` sets.
const APPEND_ONLY: u32 = 0x20;
const ACCESS: &str = "system.posix_acl_access";
const DEFAULT: &str = "system.posix_acl_default";

fn flags(s: &mut Scene, file: &str, change: Option<(u32, bool)>) {
    let Some(f) = s.open(file, R) else { return };
    let mut now: libc::c_int = 0;
    // SAFETY: the command transfers one `int`, although its number encodes a `long`.
    let result = unsafe { libc::ioctl(f.as_raw_fd(), 0x8008_6601, &raw mut now) };
    let error = std::io::Error::last_os_error().raw_os_error();
    // Whether a file has extents or inline data is up to the file system, independent of these
    // scenarios.
    s.see(&format!("flags of {file}"), if result < 0 { Err(error) } else { Ok(now as u32 & 0x8030) });
    if let (Some((flag, on)), true) = (change, result >= 0) {
        let wanted = if on { now | flag as i32 } else { now & !(flag as i32) };
        // SAFETY: as above.
        let result = unsafe { libc::ioctl(f.as_raw_fd(), 0x4008_6602, &raw const wanted) };
        let error = std::io::Error::last_os_error().raw_os_error();
        s.see(&format!("set {flag:x} {on}"), if result < 0 { Err(error) } else { Ok(()) });
    }
}

pub const SCENARIOS: &[Scenario] = scenarios![
    "an extended attribute" => |s| { s.file("a", b""); set(s, "a", "user.one", b"value", XattrFlags::empty()); get(s, "a", "user.one", 100); list(s, "a", 1000); };
    "an extended attribute is replaced" => |s| { s.file("a", b""); set(s, "a", "user.one", b"value", XattrFlags::empty()); set(s, "a", "user.one", b"another value", XattrFlags::empty()); get(s, "a", "user.one", 100); };
    "an extended attribute is created or replaced only" => |s| { s.file("a", b""); set(s, "a", "user.one", b"1", XattrFlags::REPLACE); set(s, "a", "user.one", b"2", XattrFlags::CREATE); set(s, "a", "user.one", b"3", XattrFlags::CREATE); set(s, "a", "user.one", b"4", XattrFlags::REPLACE); get(s, "a", "user.one", 10); };
    "an empty extended attribute" => |s| { s.file("a", b""); set(s, "a", "user.none", b"", XattrFlags::empty()); get(s, "a", "user.none", 10); list(s, "a", 100); };
    "an extended attribute that is not there" => |s| { s.file("a", b""); get(s, "a", "user.one", 100); remove(s, "a", "user.one"); };
    "too little room for an extended attribute" => |s| { s.file("a", b""); set(s, "a", "user.one", b"0123456789", XattrFlags::empty()); get(s, "a", "user.one", 5); list(s, "a", 3); };
    "an extended attribute is removed" => |s| { s.file("a", b""); set(s, "a", "user.one", b"1", XattrFlags::empty()); set(s, "a", "user.two", b"2", XattrFlags::empty()); remove(s, "a", "user.one"); list(s, "a", 100); };
    "a large extended attribute" => |s| { s.file("a", b""); set(s, "a", "user.large", &pattern(3000), XattrFlags::empty()); get(s, "a", "user.large", 4000); };
    "an extended attribute that is too large" => |s| { s.file("a", b""); set(s, "a", "user.large", &pattern(70_000), XattrFlags::empty()); };
    "a name of an extended attribute that is too long" => |s| { s.file("a", b""); let name = format!("user.{}", "n".repeat(300)); set(s, "a", &name, b"1", XattrFlags::empty()); get(s, "a", &name, 10); };
    "an extended attribute of no kind" => |s| { s.file("a", b""); set(s, "a", "one", b"1", XattrFlags::empty()); get(s, "a", "odd.one", 10); };
    "extended attributes of a directory" => |s| { s.directory("d"); set(s, "d", "user.one", b"1", XattrFlags::empty()); get(s, "d", "user.one", 10); };
    "extended attributes of a link" => |s| { s.symlink("x", "l"); let result = lsetxattr(s.path("l"), "user.one", b"1", XattrFlags::empty()); s.call("user", result); let result = lsetxattr(s.path("l"), "trusted.one", b"1", XattrFlags::empty()); s.call("trusted", result); let mut b = [0; 10]; let got = lgetxattr(s.path("l"), "trusted.one", &mut b[..]).map_err(|error| error.raw_os_error()); s.see("got", got); };
    "trusted attributes" => |s| { s.file("a", b""); set(s, "a", "trusted.one", b"1", XattrFlags::empty()); get(s, "a", "trusted.one", 10); list(s, "a", 100); };
    "security attributes" => |s| { s.file("a", b""); set(s, "a", "security.one", b"1", XattrFlags::empty()); get(s, "a", "security.one", 10); };
    "a file's capabilities are lost when it is written to" => |s| { s.file("a", b"x"); let mut v = 0x0200_0001u32.to_le_bytes().to_vec(); v.extend([0; 16]); v[4] = 1; set(s, "a", "security.capability", &v, XattrFlags::empty()); get(s, "a", "security.capability", 100); let f = s.open("a", W).expect("there"); s.pwrite(&f, 0, b"y"); get(s, "a", "security.capability", 100); };
    "extended attributes by descriptor" => |s| { let f = s.open("a", W | C).expect("there"); s.call("fsetxattr", rustix::fs::fsetxattr(&f, "user.one", b"1", XattrFlags::empty())); s.unlink("a"); s.call("fsetxattr", rustix::fs::fsetxattr(&f, "user.two", b"2", XattrFlags::empty())); let mut b = [0; 10]; let got = rustix::fs::fgetxattr(&f, "user.two", &mut b[..]).map_err(|error| error.raw_os_error()); s.see("got", got); };
    "many extended attributes" => |s| { s.file("a", b""); for n in 0..30 { set(s, "a", &format!("user.name-{n}"), format!("{n}").as_bytes(), XattrFlags::empty()); } list(s, "a", 4000); };
    "an access control list" => |s| { s.file("a", b""); set(s, "a", ACCESS, &acl(&[(OWNER, 6, NO_ID), (USER, 4, 1000), (GROUP, 4, NO_ID), (MASK, 6, NO_ID), (OTHER, 0, NO_ID)]), XattrFlags::empty()); get(s, "a", ACCESS, 100); s.stat("a"); };
    "an access control list equal to the mode" => |s| { s.file("a", b""); set(s, "a", ACCESS, &acl(&[(OWNER, 7, NO_ID), (GROUP, 5, NO_ID), (OTHER, 1, NO_ID)]), XattrFlags::empty()); get(s, "a", ACCESS, 100); s.stat("a"); };
    "an access control list that is none" => |s| { s.file("a", b""); set(s, "a", ACCESS, b"nonsense", XattrFlags::empty()); set(s, "a", ACCESS, &acl(&[(USER, 4, 1000)]), XattrFlags::empty()); };
    "the mode changes an access control list" => |s| { s.file("a", b""); set(s, "a", ACCESS, &acl(&[(OWNER, 6, NO_ID), (USER, 7, 1000), (GROUP, 4, NO_ID), (MASK, 7, NO_ID), (OTHER, 0, NO_ID)]), XattrFlags::empty()); let r = chmodat(CWD, s.path("a"), Mode::from_raw_mode(0o640), AtFlags::empty()); s.call("chmod", r); get(s, "a", ACCESS, 100); s.stat("a"); };
    "an access control list is removed" => |s| { s.file("a", b""); set(s, "a", ACCESS, &acl(&[(OWNER, 6, NO_ID), (USER, 7, 1000), (GROUP, 4, NO_ID), (MASK, 7, NO_ID), (OTHER, 0, NO_ID)]), XattrFlags::empty()); remove(s, "a", ACCESS); get(s, "a", ACCESS, 100); s.stat("a"); };
    "a default list passes to what is made" => |s| { s.directory("d"); set(s, "d", DEFAULT, &acl(&[(OWNER, 7, NO_ID), (USER, 7, 1000), (GROUP, 5, NO_ID), (NAMED_GROUP, 6, 1001), (MASK, 7, NO_ID), (OTHER, 4, NO_ID)]), XattrFlags::empty()); s.open_with("d/f", W | C, 0o666); s.mkdir("d/e", 0o777); s.stat("d/f"); s.stat("d/e"); get(s, "d/f", ACCESS, 200); get(s, "d/e", DEFAULT, 200); };
    "a default list counts in place of the mask" => |s| { s.directory("d"); set(s, "d", DEFAULT, &acl(&[(OWNER, 7, NO_ID), (GROUP, 7, NO_ID), (OTHER, 7, NO_ID)]), XattrFlags::empty()); s.open_with("d/f", W | C, 0o666); s.stat("d/f"); };
    "the mask counts without a default list" => |s| { s.directory("d"); s.open_with("d/f", W | C, 0o666); s.mkdir("d/e", 0o777); s.stat("d/f"); s.stat("d/e"); };
    "a default list of a file" => |s| { s.file("a", b""); set(s, "a", DEFAULT, &acl(&[(OWNER, 7, NO_ID), (GROUP, 7, NO_ID), (OTHER, 7, NO_ID)]), XattrFlags::empty()); };
    "flags of a file" => |s| { s.file("a", b""); flags(s, "a", None); flags(s, "a", Some((0x20, true))); flags(s, "a", None); s.unlink("a"); let f = s.open("a", W); drop(f); flags(s, "a", Some((0x20, false))); flags(s, "a", Some((0x10, true))); flags(s, "a", Some((0x10, false))); };
    "an append-only file" => |s| {
        s.file("a", b"first ");
        flags(s, "a", Some((APPEND_ONLY, true)));
        for flags in [W, RW, W | APPEND | OFlags::TRUNC, R] { s.open("a", flags); }
        for flags in [W | APPEND, RW | APPEND, W | APPEND | OFlags::SYNC] {
            let Some(f) = s.open("a", flags) else { continue };
            s.write(&f, b"more ");
            s.pwrite(&f, 0, b"at the end ");
            s.write(&f, &pattern(10_000));
            s.call("fsync", rustix::fs::fsync(&f));
            s.call("cut", rustix::fs::ftruncate(&f, 3));
            s.see("size", rustix::fs::fstat(&f).expect("it is open").st_size);
        }
        s.unlink("a");
        s.rename("a", "b");
        s.read("a");
        flags(s, "a", Some((APPEND_ONLY, false)));
        s.open("a", W);
    };
    "an append-only file is appended to by two" => |s| {
        s.file("a", b"");
        flags(s, "a", Some((APPEND_ONLY, true)));
        let (f, g) = (s.open("a", W | APPEND), s.open("a", RW | APPEND));
        for _ in 0..5 { if let (Some(f), Some(g)) = (&f, &g) { s.write(f, b"one "); s.write(g, b"two "); s.pread(g, 0, 100); } }
        s.read("a");
        flags(s, "a", Some((APPEND_ONLY, false)));
    };
    "an append-only file is appended to by the shell" => |s| {
        s.file("log", b"0\n");
        flags(s, "log", Some((APPEND_ONLY, true)));
        let script = "for n in 1 2 3; do echo $n >> log; done; echo 4 > log";
        let status = std::process::Command::new("sh").args(["-c", script]).current_dir(&s.directory).stderr(std::process::Stdio::null()).status();
        s.see("sh", status.expect("sh").success());
        s.read("log");
        flags(s, "log", Some((APPEND_ONLY, false)));
    };
    "an append-only directory" => |s| { s.directory("d"); flags(s, "d", Some((APPEND_ONLY, true))); s.open("d/a", W | C); s.unlink("d/a"); s.rename("d/a", "d/b"); flags(s, "d", Some((APPEND_ONLY, false))); s.unlink("d/a"); };
    "flags of a directory" => |s| { s.directory("d"); flags(s, "d", None); };
    "an ioctl that files do not support" => |s| { let f = s.open("a", W | C).expect("there"); let mut n: libc::c_int = 0; let mut room = [0u8; 64]; let _ = &mut n; /* SAFETY: the structure of a terminal is smaller. */ let result = unsafe { libc::ioctl(f.as_raw_fd(), libc::TCGETS, room.as_mut_ptr()) }; s.see("TCGETS", (result, std::io::Error::last_os_error().raw_os_error())); };
];
