//! Scenarios for attributes: modes, owners, times, sizes, statfs.

use rustix::fs::{
    AtFlags, CWD, Gid, Mode, OFlags, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, Uid, chmodat, chownat, statat,
    utimensat,
};

use super::scene::{Scenario, Scene, pattern};

const R: OFlags = OFlags::RDONLY;
const RW: OFlags = OFlags::RDWR;

macro_rules! scenarios {
    ($($name:literal => $act:expr;)*) => { &[$(Scenario { name: $name, act: $act }),*] };
}

fn chmod(s: &mut Scene, name: &str, mode: u32) {
    let changed = chmodat(CWD, s.path(name), Mode::from_raw_mode(mode), AtFlags::empty());
    s.call(&format!("chmod {name} {mode:o}"), changed);
}

fn chown(s: &mut Scene, name: &str, user: Option<u32>, group: Option<u32>, flags: AtFlags) {
    let changed = chownat(CWD, s.path(name), user.map(Uid::from_raw), group.map(Gid::from_raw), flags);
    s.call(&format!("chown {name} {user:?} {group:?}"), changed);
}

fn spec(tv_sec: i64, tv_nsec: i64) -> Timespec {
    Timespec { tv_sec, tv_nsec: tv_nsec as _ }
}

fn touch(s: &mut Scene, name: &str, last_access: Timespec, last_modification: Timespec, flags: AtFlags) {
    let touched = utimensat(CWD, s.path(name), &Timestamps { last_access, last_modification }, flags);
    s.call(&format!("utimens {name}"), touched);
}

fn times(s: &mut Scene, name: &str) {
    let found = statat(CWD, s.path(name), AtFlags::SYMLINK_NOFOLLOW).expect("it is there");
    s.see(&format!("times of {name}"), (found.st_atime, found.st_atime_nsec, found.st_mtime, found.st_mtime_nsec));
}

/// Calls a function and records which timestamps changed.
fn moved(s: &mut Scene, name: &str, act: impl FnOnce(&mut Scene)) {
    let look = |s: &Scene| statat(CWD, s.path(name), AtFlags::SYMLINK_NOFOLLOW).expect("it is there");
    // Longer than the coarsest timestamp granularity and than the attribute cache of the kernel.
    std::thread::sleep(std::time::Duration::from_millis(15));
    let before = look(s);
    act(s);
    let after = look(s);
    let modified = (before.st_mtime, before.st_mtime_nsec) != (after.st_mtime, after.st_mtime_nsec);
    let changed = (before.st_ctime, before.st_ctime_nsec) != (after.st_ctime, after.st_ctime_nsec);
    s.see(&format!("moved of {name}"), (modified, changed));
}

fn truncate(s: &mut Scene, name: &str, size: i64) {
    let path = std::ffi::CString::new(s.path(name).to_str().expect("a path")).expect("a string");
    // SAFETY: the path is a C string that outlives the call.
    let result = unsafe { libc::truncate(path.as_ptr(), size) };
    let result = if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error().raw_os_error()) };
    s.see(&format!("truncate {name} {size}"), result);
}

pub const SCENARIOS: &[Scenario] = scenarios![
    "every permission" => |s| { s.file("a", b""); for mode in [0, 0o777, 0o4711, 0o2755, 0o1777, 0o7777, 0o600] { chmod(s, "a", mode); s.stat("a"); } };
    "permissions of a directory" => |s| { s.directory("a"); chmod(s, "a", 0o3710); s.stat("a"); };
    "permissions of nothing" => |s| { chmod(s, "a", 0o600); };
    "permissions through a link" => |s| { s.file("a", b""); s.symlink("a", "l"); chmod(s, "l", 0o611); s.stat("a"); s.stat("l"); };
    "permissions of an open file" => |s| { s.file("a", b""); let f = s.open("a", R).expect("there"); s.call("fchmod", rustix::fs::fchmod(&f, Mode::from_raw_mode(0o614))); s.stat("a"); };
    "owner and group" => |s| { s.file("a", b""); chown(s, "a", Some(1000), Some(1001), AtFlags::empty()); s.stat("a"); chown(s, "a", None, Some(7), AtFlags::empty()); s.stat("a"); chown(s, "a", Some(8), None, AtFlags::empty()); s.stat("a"); chown(s, "a", None, None, AtFlags::empty()); };
    "owner of a link" => |s| { s.file("a", b""); s.symlink("a", "l"); chown(s, "l", Some(1000), Some(1000), AtFlags::SYMLINK_NOFOLLOW); s.stat("l"); s.stat("a"); };
    "owner through a link" => |s| { s.file("a", b""); s.symlink("a", "l"); chown(s, "l", Some(1000), Some(1000), AtFlags::empty()); s.stat("l"); s.stat("a"); };
    "a new owner ends set-user-id" => |s| { s.file("a", b""); chmod(s, "a", 0o6755); chown(s, "a", Some(1000), None, AtFlags::empty()); s.stat("a"); };
    "a new owner leaves a directory's bits" => |s| { s.directory("a"); chmod(s, "a", 0o6755); chown(s, "a", Some(1000), Some(1000), AtFlags::empty()); s.stat("a"); };
    "a new owner of mandatory locking's bit" => |s| { s.file("a", b""); chmod(s, "a", 0o2644); chown(s, "a", Some(1000), None, AtFlags::empty()); s.stat("a"); };
    "times that are given" => |s| { s.file("a", b""); touch(s, "a", spec(1_000_000_000, 123_456_789), spec(1_234_567_890, 987_654_321), AtFlags::empty()); times(s, "a"); };
    "times before 1970" => |s| { s.file("a", b""); touch(s, "a", spec(-1_000_000, 0), spec(-1_000_000, 0), AtFlags::empty()); times(s, "a"); };
    "times before 1970 within a second" => |s| { s.file("a", b""); touch(s, "a", spec(-2, 250_000_000), spec(-100, 1), AtFlags::empty()); times(s, "a"); };
    "times after 2038" => |s| { s.file("a", b""); touch(s, "a", spec(0x9000_0000, 5), spec(0x1_2345_6789, 6), AtFlags::empty()); times(s, "a"); };
    "one time is left" => |s| { s.file("a", b""); touch(s, "a", spec(1000, 1), spec(2000, 2), AtFlags::empty()); touch(s, "a", spec(0, UTIME_OMIT as _), spec(3000, 3), AtFlags::empty()); times(s, "a"); touch(s, "a", spec(4000, 4), spec(0, UTIME_OMIT as _), AtFlags::empty()); times(s, "a"); };
    "the time now" => |s| {
        s.file("a", b"");
        touch(s, "a", spec(1000, 1), spec(2000, 2), AtFlags::empty());
        touch(s, "a", spec(0, UTIME_NOW as _), spec(0, UTIME_NOW as _), AtFlags::empty());
        let found = statat(CWD, s.path("a"), AtFlags::empty()).expect("it is there");
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_secs() as i64;
        s.see("now", (now - found.st_atime as i64).abs() < 60 && (now - found.st_mtime as i64).abs() < 60);
    };
    "times of a link" => |s| { s.symlink("a", "l"); touch(s, "l", spec(1000, 1), spec(2000, 2), AtFlags::SYMLINK_NOFOLLOW); times(s, "l"); };
    "times of a directory" => |s| { s.directory("d"); touch(s, "d", spec(1000, 1), spec(2000, 2), AtFlags::empty()); times(s, "d"); };
    "times of nothing" => |s| { touch(s, "a", spec(1, 1), spec(2, 2), AtFlags::empty()); };
    "a time that is none" => |s| { s.file("a", b""); touch(s, "a", spec(1, 2_000_000_000), spec(2, 2), AtFlags::empty()); };
    "writing moves times" => |s| { s.file("a", b"x"); moved(s, "a", |s| { s.file("a", b"y"); }); };
    "changing a mode moves one time" => |s| { s.file("a", b"x"); moved(s, "a", |s| chmod(s, "a", 0o600)); };
    "making and removing names moves a directory's times" => |s| { s.directory("d"); moved(s, "d", |s| s.file("d/a", b"")); moved(s, "d", |s| s.unlink("d/a")); };
    "a link moves a file's time of change" => |s| { s.file("a", b"x"); moved(s, "a", |s| s.link("a", "b")); };
    "renaming moves times" => |s| { s.directory("d"); s.file("a", b"x"); moved(s, "d", |s| s.rename("a", "d/a")); };
    "cutting by name moves times if the size changes" => |s| { s.file("a", b"xyz"); moved(s, "a", |s| truncate(s, "a", 1)); };
    "cutting by name to the same size" => |s| { s.file("a", b"xyz"); moved(s, "a", |s| truncate(s, "a", 3)); };
    "cutting by descriptor moves times" => |s| { s.file("a", b"xyz"); let f = s.open("a", RW).expect("there"); moved(s, "a", |s| { s.call("ftruncate", rustix::fs::ftruncate(&f, 3)); }); };
    "cutting as it is opened moves times" => |s| { s.file("a", b""); moved(s, "a", |s| { s.open("a", RW | OFlags::TRUNC); }); };
    "a size is cut and made larger" => |s| { s.file("a", &pattern(10_000)); truncate(s, "a", 5_000); s.read("a"); truncate(s, "a", 20_000); s.read("a"); truncate(s, "a", 0); s.stat("a"); };
    "a size that cannot be" => |s| { s.file("a", b"x"); truncate(s, "a", -1); };
    "a size of nothing" => |s| { truncate(s, "a", 1); };
    "a size of a directory" => |s| { s.directory("a"); truncate(s, "a", 1); };
    "a size through a link" => |s| { s.file("a", b"xyz"); s.symlink("a", "l"); truncate(s, "l", 1); s.stat("a"); };
    "a large size without data" => |s| { s.file("a", b"x"); truncate(s, "a", 1 << 40); s.stat("a"); let blocks = statat(CWD, s.path("a"), AtFlags::empty()).expect("there").st_blocks; s.see("few blocks", blocks < 64); truncate(s, "a", 0); };
    "a file for reading cannot be cut" => |s| { s.file("a", b"xyz"); let f = s.open("a", R).expect("there"); s.call("ftruncate", rustix::fs::ftruncate(&f, 1)); };
    "blocks of a file" => |s| { s.file("a", &pattern(100_000)); let f = s.open("a", R).expect("there"); s.call("fsync", rustix::fs::fsync(&f)); let found = rustix::fs::fstat(&f).expect("there"); s.see("blocks", (found.st_blocks, found.st_blksize)); };
    "figures of the file system" => |s| {
        let found = rustix::fs::statvfs(s.directory.as_path()).expect("figures");
        s.see("figures", (found.f_blocks, found.f_bsize, found.f_frsize, found.f_namemax, found.f_files));
    };
    "access" => |s| {
        s.file("a", b"");
        chmod(s, "a", 0o600);
        for access in [rustix::fs::Access::EXISTS, rustix::fs::Access::READ_OK, rustix::fs::Access::WRITE_OK, rustix::fs::Access::EXEC_OK] {
            let result = rustix::fs::accessat(CWD, s.path("a"), access, AtFlags::empty());
            s.call(&format!("access {access:?}"), result);
        }
        let result = rustix::fs::accessat(CWD, s.path("b"), rustix::fs::Access::EXISTS, AtFlags::empty());
        s.call("access of nothing", result);
    };
    "a program is run" => |s| {
        s.file("run", b"#!/bin/sh\necho ran\n");
        chmod(s, "run", 0o755);
        let run = || std::process::Command::new(s.path("run")).output();
        // A child of another test inherits the descriptor of the writer until it runs its program.
        let is_busy = |run: &std::io::Result<_>| run.as_ref().is_err_and(|error| error.raw_os_error() == Some(libc::ETXTBSY));
        let output = (0..100).map(|_| run()).find(|run| !is_busy(run)).unwrap_or_else(run);
        let output = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        s.see("output", output.map_err(|error| error.raw_os_error()));
    };
    "a file that may not be run" => |s| { s.file("run", b"#!/bin/sh\n"); let run = std::process::Command::new(s.path("run")).output().map(drop); s.see("run", run.map_err(|error| error.raw_os_error())); };
    "all names of a file have the same attributes" => |s| { s.file("a", b"x"); s.link("a", "b"); chmod(s, "a", 0o640); s.stat("b"); s.file("b", b"xyz"); s.stat("a"); };
];
