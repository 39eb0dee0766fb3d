//! Scenarios for permissions and ownership: the same calls by a user other than root.

use rustix::fs::{
    AtFlags, CWD, Gid, Mode, OFlags, Uid, XattrFlags, chmodat, chownat, mkdirat, openat, setxattr, unlinkat, utimensat,
};
use rustix::io::{self, pwrite};

use super::scene::{Scenario, Scene};
use crate::support::as_user;

const R: OFlags = OFlags::RDONLY;
const W: OFlags = OFlags::WRONLY;
const RW: OFlags = OFlags::RDWR;
const C: OFlags = OFlags::CREATE;
const ME: u32 = 1234;
const MY_GROUP: u32 = 777;

macro_rules! scenarios {
    ($($name:literal => $act:expr;)*) => { &[$(Scenario { name: $name, act: $act }),*] };
}

/// Calls a function as a user with one supplementary group, and records the result.
fn me<T: Send>(s: &mut Scene, what: &str, act: impl FnOnce() -> io::Result<T> + Send) -> Option<T> {
    let result = as_user(ME, &[MY_GROUP], act);
    s.call(what, result)
}

fn own(s: &Scene, name: &str, user: u32, group: u32, mode: u32) {
    chownat(CWD, s.path(name), Some(Uid::from_raw(user)), Some(Gid::from_raw(group)), AtFlags::empty())
        .expect("root may");
    chmodat(CWD, s.path(name), Mode::from_raw_mode(mode), AtFlags::empty()).expect("root may");
}

fn mine(s: &mut Scene, name: &str, mode: u32) {
    s.directory(name);
    own(s, name, ME, ME, mode);
}

fn open(s: &mut Scene, name: &str, flags: OFlags) {
    let path = s.path(name);
    me(s, &format!("open {name} {flags:?}"), || openat(CWD, &path, flags, Mode::from_raw_mode(0o666)).map(drop));
}

pub const SCENARIOS: &[Scenario] = scenarios![
    "what is made belongs to its maker" => |s| { mine(s, "d", 0o755); open(s, "d/f", W | C); let p = s.path("d/e"); me(s, "mkdir", || mkdirat(CWD, &p, Mode::from_raw_mode(0o755))); let p = s.path("d/l"); me(s, "symlink", || rustix::fs::symlinkat("x", CWD, &p)); let p = s.path("d/p"); me(s, "mkfifo", || rustix::fs::mknodat(CWD, &p, rustix::fs::FileType::Fifo, Mode::from_raw_mode(0o600), 0)); };
    "what is made below set-group-id belongs to the group" => |s| { s.directory("d"); own(s, "d", ME, MY_GROUP, 0o2775); open(s, "d/f", W | C); let p = s.path("d/e"); me(s, "mkdir", || mkdirat(CWD, &p, Mode::from_raw_mode(0o755))); };
    "a directory of my other group" => |s| { s.directory("d"); own(s, "d", 0, MY_GROUP, 0o775); open(s, "d/f", W | C); };
    "set-group-id of a group that is not mine is not made" => |s| { s.directory("d"); own(s, "d", ME, 555, 0o2775); let p = s.path("d/f"); me(s, "create", || openat(CWD, &p, W | C, Mode::from_raw_mode(0o2775)).map(drop)); };
    "a directory of others" => |s| { s.directory("d"); own(s, "d", 0, 0, 0o755); open(s, "d/f", W | C); let p = s.path("d/e"); me(s, "mkdir", || mkdirat(CWD, &p, Mode::from_raw_mode(0o755))); };
    "a directory that may not be entered" => |s| { s.directory("d"); s.file("d/f", b"x"); own(s, "d", 0, 0, 0o744); open(s, "d/f", R); let p = s.path("d"); let n = as_user(ME, &[], || std::fs::read_dir(&p).map(|d| d.count()).map_err(|e| e.raw_os_error())); s.see("names", n); };
    "a directory that may not be listed" => |s| { s.directory("d"); s.file("d/f", b"x"); own(s, "d", 0, 0, 0o711); open(s, "d/f", R); let p = s.path("d"); let n = as_user(ME, &[], || std::fs::read_dir(&p).map(|d| d.count()).map_err(|e| e.raw_os_error())); s.see("names", n); };
    "a file of others" => |s| { s.file("a", b"x"); own(s, "a", 0, 0, 0o644); open(s, "a", R); open(s, "a", W); open(s, "a", W | OFlags::TRUNC); };
    "a file that only its owner reads" => |s| { s.file("a", b"x"); own(s, "a", 0, 0, 0o600); open(s, "a", R); };
    "a file of my other group to open" => |s| { s.file("a", b"x"); own(s, "a", 0, MY_GROUP, 0o660); open(s, "a", RW); };
    "a file that my group may not read though others may" => |s| { s.file("a", b"x"); own(s, "a", 0, MY_GROUP, 0o606); open(s, "a", R); };
    "a file that I may not read though it is mine" => |s| { s.file("a", b"x"); own(s, "a", ME, ME, 0o066); open(s, "a", R); };
    "a file that I may only write" => |s| { s.file("a", b"0123456789"); own(s, "a", ME, ME, 0o200); let p = s.path("a"); me(s, "write", || openat(CWD, &p, W, Mode::empty()).and_then(|f| pwrite(&f, b"xy", 3))); s.read("a"); };
    "a file that is made with no permissions is written" => |s| { mine(s, "d", 0o755); let p = s.path("d/a"); me(s, "write", || openat(CWD, &p, RW | C, Mode::empty()).and_then(|f| pwrite(&f, b"xy", 0))); open(s, "d/a", R); s.read("d/a"); };
    "a mode of others' files" => |s| { s.file("a", b"x"); let p = s.path("a"); me(s, "chmod", || chmodat(CWD, &p, Mode::from_raw_mode(0o777), AtFlags::empty())); };
    "a mode of my file" => |s| { s.file("a", b"x"); own(s, "a", ME, ME, 0o600); let p = s.path("a"); me(s, "chmod", || chmodat(CWD, &p, Mode::from_raw_mode(0o4751), AtFlags::empty())); s.stat("a"); };
    "set-group-id of my file of a foreign group" => |s| { s.file("a", b"x"); own(s, "a", ME, 555, 0o600); let p = s.path("a"); me(s, "chmod", || chmodat(CWD, &p, Mode::from_raw_mode(0o2751), AtFlags::empty())); s.stat("a"); };
    "set-group-id of my file of my other group" => |s| { s.file("a", b"x"); own(s, "a", ME, MY_GROUP, 0o600); let p = s.path("a"); me(s, "chmod", || chmodat(CWD, &p, Mode::from_raw_mode(0o2751), AtFlags::empty())); s.stat("a"); };
    "giving my file away" => |s| { s.file("a", b"x"); own(s, "a", ME, ME, 0o600); let p = s.path("a"); me(s, "chown", || chownat(CWD, &p, Some(Uid::from_raw(0)), None, AtFlags::empty())); };
    "giving my file to my group, and to another" => |s| { s.file("a", b"x"); own(s, "a", ME, ME, 0o6770); let p = s.path("a"); me(s, "mine", || chownat(CWD, &p, None, Some(Gid::from_raw(MY_GROUP)), AtFlags::empty())); s.stat("a"); me(s, "another", || chownat(CWD, &p, None, Some(Gid::from_raw(555)), AtFlags::empty())); };
    "writing ends set-user-id" => |s| { s.file("a", b"x"); own(s, "a", ME, ME, 0o6755); let p = s.path("a"); me(s, "write", || openat(CWD, &p, W, Mode::empty()).and_then(|f| pwrite(&f, b"y", 0))); s.stat("a"); };
    "writing by root leaves set-user-id" => |s| { s.file("a", b"x"); own(s, "a", ME, ME, 0o6755); let f = s.open("a", W).expect("there"); s.pwrite(&f, 0, b"y"); drop(f); s.stat("a"); };
    "writing another's file ends set-user-id" => |s| { s.file("a", b"x"); own(s, "a", 0, 0, 0o6777); let p = s.path("a"); me(s, "write", || openat(CWD, &p, W, Mode::empty()).and_then(|f| pwrite(&f, b"y", 0))); s.stat("a"); };
    "cutting ends set-user-id" => |s| { s.file("a", b"xyz"); own(s, "a", ME, ME, 0o6755); let p = s.path("a"); me(s, "ftruncate", || openat(CWD, &p, W, Mode::empty()).and_then(|f| rustix::fs::ftruncate(&f, 1))); s.stat("a"); };
    "cutting as it is opened ends set-user-id" => |s| { s.file("a", b"xyz"); own(s, "a", ME, ME, 0o6755); open(s, "a", W | OFlags::TRUNC); s.stat("a"); };
    "direct writing ends set-user-id" => |s| { s.file("a", &[1; 8192]); own(s, "a", ME, ME, 0o6755); let p = s.path("a"); me(s, "write", || { let buffer = hoistway_mount::Buffer::new(4096); openat(CWD, &p, W | OFlags::DIRECT, Mode::empty()).and_then(|f| pwrite(&f, &buffer, 0)) }); s.stat("a"); };
    "sticky directories keep others' files" => |s| { s.directory("d"); s.file("d/a", b"x"); own(s, "d", 0, 0, 0o1777); let p = s.path("d/a"); me(s, "unlink", || unlinkat(CWD, &p, AtFlags::empty())); let q = s.path("d/b"); me(s, "rename", || rustix::fs::renameat(CWD, &p, CWD, &q)); open(s, "d/mine", W | C); let p = s.path("d/mine"); me(s, "unlink mine", || unlinkat(CWD, &p, AtFlags::empty())); };
    "removing from a directory of mine what is not mine" => |s| { mine(s, "d", 0o755); s.file("d/a", b"x"); let p = s.path("d/a"); me(s, "unlink", || unlinkat(CWD, &p, AtFlags::empty())); };
    "removing from a directory of others" => |s| { s.directory("d"); s.file("d/a", b"x"); own(s, "d/a", ME, ME, 0o666); let p = s.path("d/a"); me(s, "unlink", || unlinkat(CWD, &p, AtFlags::empty())); };
    "times of others' files" => |s| { s.file("a", b"x"); let p = s.path("a"); let now = rustix::fs::Timestamps { last_access: rustix::fs::Timespec { tv_sec: 1, tv_nsec: 0 }, last_modification: rustix::fs::Timespec { tv_sec: 1, tv_nsec: 0 } }; me(s, "given", || utimensat(CWD, &p, &now, AtFlags::empty())); own(s, "a", 0, 0, 0o666); let touch = rustix::fs::Timestamps { last_access: rustix::fs::Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_NOW as _ }, last_modification: rustix::fs::Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_NOW as _ } }; me(s, "now", || utimensat(CWD, &p, &touch, AtFlags::empty())); me(s, "given", || utimensat(CWD, &p, &now, AtFlags::empty())); };
    "a list releases me in" => |s| { s.file("a", b"x"); own(s, "a", 0, 0, 0o600); let mut list = 2u32.to_le_bytes().to_vec(); for (tag, permissions, id) in [(1u16, 6u16, u32::MAX), (2, 4, ME), (4, 0, u32::MAX), (16, 4, u32::MAX), (32, 0, u32::MAX)] { list.extend(tag.to_le_bytes()); list.extend(permissions.to_le_bytes()); list.extend(id.to_le_bytes()); } let r = setxattr(s.path("a"), "system.posix_acl_access", &list, XattrFlags::empty()); s.call("setfacl", r); open(s, "a", R); open(s, "a", W); };
    "attributes of others' files" => |s| { s.file("a", b"x"); let p = s.path("a"); me(s, "user", || setxattr(&p, "user.one", b"1", XattrFlags::empty())); me(s, "trusted", || setxattr(&p, "trusted.one", b"1", XattrFlags::empty())); own(s, "a", ME, ME, 0o600); me(s, "user", || setxattr(&p, "user.one", b"1", XattrFlags::empty())); };
    "a list that I set ends a foreign set-group-id" => |s| { s.file("a", b"x"); own(s, "a", ME, 555, 0o2755); let mut list = 2u32.to_le_bytes().to_vec(); for (tag, permissions, id) in [(1u16, 7u16, u32::MAX), (2, 4, 99), (4, 5, u32::MAX), (16, 5, u32::MAX), (32, 0, u32::MAX)] { list.extend(tag.to_le_bytes()); list.extend(permissions.to_le_bytes()); list.extend(id.to_le_bytes()); } let p = s.path("a"); me(s, "setfacl", || setxattr(&p, "system.posix_acl_access", &list, XattrFlags::empty())); s.stat("a"); };
    "a list that I set leaves set-group-id of my other group" => |s| { s.file("a", b"x"); own(s, "a", ME, MY_GROUP, 0o2755); let mut list = 2u32.to_le_bytes().to_vec(); for (tag, permissions, id) in [(1u16, 7u16, u32::MAX), (2, 4, 99), (4, 5, u32::MAX), (16, 5, u32::MAX), (32, 0, u32::MAX)] { list.extend(tag.to_le_bytes()); list.extend(permissions.to_le_bytes()); list.extend(id.to_le_bytes()); } let p = s.path("a"); me(s, "setfacl", || setxattr(&p, "system.posix_acl_access", &list, XattrFlags::empty())); s.stat("a"); };
    "a device made without privileges" => |s| { mine(s, "d", 0o755); let p = s.path("d/dev"); me(s, "mknod", || rustix::fs::mknodat(CWD, &p, rustix::fs::FileType::CharacterDevice, Mode::from_raw_mode(0o600), rustix::fs::makedev(1, 3))); };
    "a mask of one's own" => |s| { mine(s, "d", 0o755); let p = s.path("d/f"); me(s, "create", || { /* SAFETY: the thread leaves the others' mask alone, and takes a number. */ unsafe { libc::unshare(libc::CLONE_FS); libc::umask(0o077) }; openat(CWD, &p, W | C, Mode::from_raw_mode(0o666)).map(drop) }); s.stat("d/f"); };
];
