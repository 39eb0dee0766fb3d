//! Scenarios for names: creating, removing, renaming, linking, listing.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, XattrFlags, fsetxattr, fstat, linkat, mkdirat, mknodat, openat,
    readlinkat, renameat_with, statat, symlinkat, unlinkat,
};

use super::scene::{Scenario, Scene};

const R: OFlags = OFlags::RDONLY;
const W: OFlags = OFlags::WRONLY;
const RW: OFlags = OFlags::RDWR;
const C: OFlags = OFlags::CREATE;

macro_rules! scenarios {
    ($($name:literal => $act:expr;)*) => { &[$(Scenario { name: $name, act: $act }),*] };
}

fn renamed(s: &mut Scene, from: &str, to: &str, flags: RenameFlags) {
    let result = renameat_with(CWD, s.path(from), CWD, s.path(to), flags);
    s.call(&format!("rename {from} {to} {flags:?}"), result);
}

fn make(s: &mut Scene, name: &str, kind: FileType, mode: u32, device: u64) {
    let made = mknodat(CWD, s.path(name), kind, Mode::from_raw_mode(mode), device);
    s.call(&format!("mknod {name} {kind:?} {mode:o}"), made);
}

/// Records what can be done with an `O_PATH` descriptor of a removed directory, as a working
/// directory is one.
fn used_when_removed(s: &mut Scene, fd: &OwnedFd) {
    let opened = openat(fd, ".", R | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    if let Some(opened) = s.call("open", opened) {
        entries(s, opened);
    }
    let status = |found: rustix::io::Result<rustix::fs::Stat>| {
        found.map(|found| (found.st_nlink, found.st_mode)).map_err(|error| error.raw_os_error())
    };
    s.see("fstat", status(fstat(fd)));
    s.see("stat .", status(statat(fd, ".", AtFlags::empty())));
    s.call("statfs", rustix::fs::fstatvfs(fd));
    s.call("create", openat(fd, "f", W | C, Mode::from_raw_mode(0o644)).map(drop));
    s.call("mkdir", mkdirat(fd, "d", Mode::from_raw_mode(0o755)));
}

/// Records what can be done in a directory whose path is longer than `PATH_MAX`.
fn in_deep_directory(s: &mut Scene, directory: &OwnedFd) {
    let Some(f) = s.call("create", openat(directory, "f", RW | C, Mode::from_raw_mode(0o644))) else { return };
    s.write(&f, b"deep");
    s.call("fsync", rustix::fs::fsync(&f));
    s.pread(&f, 0, 10);
    s.call("setxattr", fsetxattr(&f, "user.one", b"1", XattrFlags::empty()));
    s.call("rename", renameat_with(directory, "f", directory, "g", RenameFlags::empty()));
    s.call("link", linkat(directory, "g", directory, "h", AtFlags::empty()));
    s.call("symlink", symlinkat("x".repeat(1000), directory, "l"));
    let target = readlinkat(directory, "l", Vec::new()).map(|target| target.as_bytes().len());
    s.see("readlink", target.map_err(|error| error.raw_os_error()));
    let long = openat(directory, "n".repeat(256), W | C, Mode::from_raw_mode(0o644));
    s.call("a name of 256 bytes", long.map(drop));
    let listed = openat(directory, ".", R | OFlags::DIRECTORY, Mode::empty());
    if let Some(listed) = s.call("open .", listed) {
        entries(s, listed);
    }
    for name in ["g", "h", "l"] {
        s.see(
            "mode",
            statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
                .map(|found| found.st_mode)
                .map_err(|error| error.raw_os_error()),
        );
        s.call("unlink", unlinkat(directory, name, AtFlags::empty()));
    }
}

/// Returns the names in a directory in byte order, including `.` and `..`.
fn names(s: &mut Scene, name: &str) {
    let opened = openat(CWD, s.path(name), R | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    let Some(fd) = s.call(&format!("list {name}"), opened) else { return };
    s.see("in", name);
    entries(s, fd);
}

/// Records the names in an open directory in byte order, up to the first error.
fn entries(s: &mut Scene, fd: impl AsFd) {
    let mut found: Vec<_> = rustix::fs::Dir::read_from(fd)
        .expect("a stream")
        .map_while(Result::ok)
        .map(|entry| format!("{:?} {:?}", entry.file_name(), entry.file_type()))
        .collect();
    found.sort();
    s.see("names", found);
}

pub const SCENARIOS: &[Scenario] = scenarios![
    "a file is created" => |s| { s.open("a", W | C); };
    "a file that is there is opened by create" => |s| { s.file("a", b"old"); s.open("a", W | C); };
    "exclusive create of a new name" => |s| { s.open("a", W | C | OFlags::EXCL); };
    "exclusive create of a name that is there" => |s| { s.file("a", b"old"); s.open("a", W | C | OFlags::EXCL); };
    "exclusive create of a link that leads nowhere" => |s| { s.symlink("nowhere", "a"); s.open("a", W | C | OFlags::EXCL); };
    "create through a link that leads nowhere" => |s| { s.symlink("target", "a"); s.open("a", W | C); };
    "create of a directory's name" => |s| { s.directory("a"); s.open("a", W | C); };
    "create below a file" => |s| { s.file("a", b""); s.open("a/b", W | C); };
    "create below nothing" => |s| { s.open("a/b", W | C); };
    "create for reading" => |s| { s.open("a", R | C); };
    "create with no permissions at all" => |s| { if let Some(f) = s.open_with("a", RW | C, 0) { s.write(&f, b"data"); } };
    "create and cut" => |s| { s.file("a", b"old"); if let Some(f) = s.open("a", W | C | OFlags::TRUNC) { s.write(&f, b"x"); } };
    "create set-user-id" => |s| { s.open_with("a", W | C, 0o4755); };
    "create sticky and set-group-id" => |s| { s.open_with("a", W | C, 0o3777); };
    "open of nothing" => |s| { s.open("a", R); };
    "open of a directory for writing" => |s| { s.directory("a"); s.open("a", W); s.open("a", RW); };
    "open of a file as a directory" => |s| { s.file("a", b""); s.open("a", R | OFlags::DIRECTORY); };
    "open of a link without following" => |s| { s.file("a", b""); s.symlink("a", "l"); s.open("l", R | OFlags::NOFOLLOW); };
    "open of a link to itself" => |s| { s.symlink("l", "l"); s.open("l", R); };
    "open of a file with a slash behind" => |s| { s.file("a", b""); s.open("a/", R); };
    "the longest name" => |s| { s.open(&"n".repeat(255), W | C); };
    "a name that is too long" => |s| { let n = "n".repeat(256); s.open(&n, W | C); s.mkdir(&n, 0o755); s.unlink(&n); s.rename(&n, "b"); s.symlink("x", &n); };
    "a name of odd bytes" => |s| { let n = "a \n\t\u{1}\u{fc}*?"; s.open(n, W | C); s.stat(n); };
    "names that differ in case" => |s| { s.file("A", b"upper"); s.file("a", b"lower"); s.read("A"); s.read("a"); };
    "a directory is made" => |s| { s.mkdir("a", 0o755); s.stat("a"); };
    "a directory with odd permissions" => |s| { s.mkdir("a", 0o1731); s.mkdir("b", 0o2775); };
    "a directory where a file is" => |s| { s.file("a", b""); s.mkdir("a", 0o755); };
    "a directory where a directory is" => |s| { s.directory("a"); s.mkdir("a", 0o755); };
    "a directory below nothing" => |s| { s.mkdir("a/b", 0o755); };
    "a directory below a file" => |s| { s.file("a", b""); s.mkdir("a/b", 0o755); };
    "a directory counts its directories" => |s| { s.directory("a"); s.mkdir("a/b", 0o755); s.mkdir("a/c", 0o755); s.stat("a"); s.rmdir("a/b"); s.stat("a"); };
    "set-group-id directories pass their bit on" => |s| { s.mkdir("a", 0o755); chmod(s, "a", 0o2755); s.mkdir("a/b", 0o755); s.open("a/f", W | C); };
    "deep directories" => |s| { let mut p = String::new(); for _ in 0..40 { p += "d/"; s.mkdir(&p, 0o755); } s.file(&(p + "f"), b"deep"); };
    "rmdir of an empty directory" => |s| { s.directory("a"); s.rmdir("a"); s.stat("a"); };
    "rmdir of a full directory" => |s| { s.directory("a"); s.file("a/f", b""); s.rmdir("a"); };
    "rmdir of a file" => |s| { s.file("a", b""); s.rmdir("a"); };
    "rmdir of nothing" => |s| { s.rmdir("a"); };
    "rmdir of a link to a directory" => |s| { s.directory("a"); s.symlink("a", "l"); s.rmdir("l"); };
    "rmdir of dot" => |s| { s.directory("a"); s.rmdir("a/."); s.rmdir("a/.."); };
    "a directory that is removed while it is open" => |s| {
        s.directory("a");
        let fd = s.open("a", R | OFlags::DIRECTORY).expect("it is there");
        s.rmdir("a");
        let made = openat(&fd, "f", W | C, Mode::from_raw_mode(0o644));
        s.call("create in it", made.map(drop));
        let nlink = rustix::fs::fstat(&fd).map(|found| found.st_nlink).map_err(|error| error.raw_os_error());
        s.see("its links", nlink);
    };
    "a working directory that is removed" => |s| {
        s.directory("a");
        let fd = s.open("a", OFlags::PATH | OFlags::DIRECTORY).expect("it is there");
        s.rmdir("a");
        used_when_removed(s, &fd);
        let script = "mkdir b && cd b && rmdir ../b && ls -a . && ls -ld . > /dev/null";
        let output = std::process::Command::new("sh").args(["-c", script]).current_dir(&s.directory).output().expect("sh");
        s.see("ls", (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned()));
    };
    "a working directory that is replaced" => |s| {
        s.directory("a");
        s.directory("b");
        let fd = s.open("a", OFlags::PATH | OFlags::DIRECTORY).expect("it is there");
        s.rename("b", "a");
        used_when_removed(s, &fd);
        s.file("a/f", b"");
        names(s, "a");
    };
    "a tree deeper than the longest path" => |s| {
        let name = "n".repeat(250);
        let mut directories = vec![s.open(".", R | OFlags::DIRECTORY).expect("it is there")];
        for _ in 0..20 {
            let parent = directories.last().expect("the first");
            let made = mkdirat(parent, &name, Mode::from_raw_mode(0o755));
            let opened = openat(parent, &name, R | OFlags::DIRECTORY, Mode::empty());
            s.call("mkdir", made);
            directories.extend(s.call("open", opened));
        }
        let deepest = directories.pop().expect("the last");
        in_deep_directory(s, &deepest);
        drop(deepest);
        for parent in directories.iter().rev() {
            s.call("rmdir", unlinkat(parent, &name, AtFlags::REMOVEDIR));
        }
    };
    "unlink of a file" => |s| { s.file("a", b""); s.unlink("a"); s.stat("a"); };
    "unlink of nothing" => |s| { s.unlink("a"); };
    "unlink of a directory" => |s| { s.directory("a"); s.unlink("a"); };
    "unlink of a link leaves what it leads to" => |s| { s.file("a", b"x"); s.symlink("a", "l"); s.unlink("l"); };
    "unlink below a file" => |s| { s.file("a", b""); s.unlink("a/b"); };
    "unlink of one of two names" => |s| { s.file("a", b"x"); s.link("a", "b"); s.unlink("a"); s.stat("b"); s.read("b"); };
    "a file lives while it is open" => |s| {
        s.file("a", b"still here");
        let f = s.open("a", RW).expect("it is there");
        s.unlink("a");
        s.pread(&f, 0, 20);
        s.pwrite(&f, 5, b"THERE");
        s.pread(&f, 0, 20);
        let found = rustix::fs::fstat(&f).map(|found| (found.st_nlink, found.st_size)).map_err(|error| error.raw_os_error());
        s.see("fstat", found);
        s.call("ftruncate", rustix::fs::ftruncate(&f, 3));
        s.pread(&f, 0, 20);
        s.call("fchmod", rustix::fs::fchmod(&f, Mode::from_raw_mode(0o600)));
        s.call("fsync", rustix::fs::fsync(&f));
    };
    "a name is used again while its file is open" => |s| {
        s.file("a", b"first");
        let f = s.open("a", R).expect("it is there");
        s.unlink("a");
        s.file("a", b"second");
        s.pread(&f, 0, 10);
        s.read("a");
    };
    "a symbolic link" => |s| { s.symlink("some/where", "l"); s.stat("l"); };
    "a symbolic link where something is" => |s| { s.file("l", b""); s.symlink("x", "l"); };
    "a long symbolic link" => |s| { s.symlink(&"t".repeat(1000), "l"); };
    "an empty symbolic link" => |s| { s.symlink("", "l"); };
    "readlink of a file" => |s| { s.file("a", b""); let r = rustix::fs::readlinkat(CWD, s.path("a"), Vec::new()); s.call("readlink", r); };
    "links to directories are followed" => |s| { s.directory("d"); s.file("d/f", b"x"); s.symlink("d", "l"); s.read("l/f"); names(s, "l"); };
    "a link that leads up" => |s| { s.directory("d"); s.file("f", b"up"); s.symlink("../f", "d/l"); s.read("d/l"); };
    "a hard link" => |s| { s.file("a", b"x"); s.link("a", "b"); s.stat("a"); s.stat("b"); };
    "a hard link shares data" => |s| { s.file("a", b"x"); s.link("a", "b"); s.file("b", b"longer"); s.read("a"); s.stat("a"); };
    "a hard link where something is" => |s| { s.file("a", b""); s.file("b", b""); s.link("a", "b"); };
    "a hard link of nothing" => |s| { s.link("a", "b"); };
    "a hard link of a directory" => |s| { s.directory("a"); s.link("a", "b"); };
    "a hard link of a symbolic link" => |s| { s.symlink("x", "l"); s.link("l", "m"); };
    "a hard link by descriptor" => |s| {
        s.file("a", b"x");
        let f = s.open("a", R).expect("it is there");
        let linked = linkat(CWD, format!("/proc/self/fd/{}", f.as_raw_fd()), CWD, s.path("b"), AtFlags::SYMLINK_FOLLOW);
        s.call("link", linked);
    };
    "a hundred hard links" => |s| { s.file("a", b"x"); for n in 0..100 { s.link("a", &format!("l{n}")); } s.stat("a"); };
    "rename of a file" => |s| { s.file("a", b"x"); s.rename("a", "b"); s.stat("a"); };
    "rename over a file" => |s| { s.file("a", b"x"); s.file("b", b"yy"); s.rename("a", "b"); };
    "rename over a file that is open" => |s| { s.file("a", b"x"); s.file("b", b"yy"); let f = s.open("b", R).expect("there"); s.rename("a", "b"); s.pread(&f, 0, 9); s.read("b"); };
    "rename of nothing" => |s| { s.rename("a", "b"); };
    "rename to itself" => |s| { s.file("a", b"x"); s.rename("a", "a"); };
    "rename to another name of the same file" => |s| { s.file("a", b"x"); s.link("a", "b"); s.rename("a", "b"); };
    "rename of a directory" => |s| { s.directory("a"); s.file("a/f", b"x"); s.rename("a", "b"); s.read("b/f"); };
    "rename of a directory into another" => |s| { s.directory("a"); s.file("a/f", b"x"); s.directory("b"); s.rename("a", "b/c"); s.stat("b"); s.read("b/c/f"); };
    "rename of a directory into itself" => |s| { s.directory("a"); s.rename("a", "a/b"); };
    "rename of a directory over an empty one" => |s| { s.directory("a"); s.file("a/f", b""); s.directory("b"); s.rename("a", "b"); };
    "rename of a directory over a full one" => |s| { s.directory("a"); s.directory("b"); s.file("b/f", b""); s.rename("a", "b"); };
    "rename of a directory over a file" => |s| { s.directory("a"); s.file("b", b""); s.rename("a", "b"); };
    "rename of a file over a directory" => |s| { s.file("a", b""); s.directory("b"); s.rename("a", "b"); };
    "rename below a file" => |s| { s.file("a", b""); s.file("b", b""); s.rename("a", "b/c"); };
    "rename of a link" => |s| { s.file("a", b""); s.symlink("a", "l"); s.rename("l", "m"); };
    "rename between directories" => |s| { s.directory("d"); s.directory("e"); s.file("d/a", b"x"); s.rename("d/a", "e/b"); s.stat("d/a"); s.read("e/b"); };
    "rename without replacing" => |s| { s.file("a", b"x"); s.file("b", b"y"); renamed(s, "a", "b", RenameFlags::NOREPLACE); renamed(s, "a", "c", RenameFlags::NOREPLACE); };
    "rename that exchanges files" => |s| { s.file("a", b"x"); s.file("b", b"yy"); renamed(s, "a", "b", RenameFlags::EXCHANGE); s.read("a"); s.read("b"); };
    "rename that exchanges a file and a directory" => |s| { s.file("a", b"x"); s.directory("b"); s.file("b/f", b"z"); renamed(s, "a", "b", RenameFlags::EXCHANGE); s.read("a/f"); };
    "rename that exchanges with nothing" => |s| { s.file("a", b"x"); renamed(s, "a", "b", RenameFlags::EXCHANGE); };
    "rename with flags that exclude each other" => |s| { s.file("a", b"x"); renamed(s, "a", "b", RenameFlags::EXCHANGE | RenameFlags::NOREPLACE); };
    "a named pipe" => |s| { make(s, "p", FileType::Fifo, 0o640, 0); s.stat("p"); };
    "data go through a named pipe" => |s| {
        make(s, "p", FileType::Fifo, 0o600, 0);
        let both = s.open("p", RW | OFlags::NONBLOCK).expect("a pipe opens");
        s.write(&both, b"through");
        let mut buffer = [0; 16];
        let read = rustix::io::read(&both, &mut buffer[..]).map_err(|error| error.raw_os_error());
        s.see("read", (read, buffer));
    };
    "a device" => |s| { make(s, "d", FileType::CharacterDevice, 0o600, rustix::fs::makedev(1, 3)); s.stat("d"); s.read("d"); };
    "a device with large numbers" => |s| { make(s, "d", FileType::BlockDevice, 0o600, rustix::fs::makedev(300, 70_000)); s.stat("d"); };
    "a socket" => |s| {
        // The path of a socket has a length limit, so the descriptor of the directory is used.
        let directory = s.open("", R | OFlags::DIRECTORY).expect("the directory");
        let bound = std::os::unix::net::UnixListener::bind(format!("/proc/self/fd/{}/s", directory.as_raw_fd()));
        s.see("bind", bound.map(drop).map_err(|error| error.raw_os_error()));
        s.stat("s");
    };
    "a regular file by mknod" => |s| { make(s, "f", FileType::RegularFile, 0o604, 0); s.stat("f"); make(s, "f", FileType::RegularFile, 0o604, 0); };
    "an empty directory's names" => |s| { s.directory("a"); names(s, "a"); };
    "names of all kinds" => |s| { s.directory("d"); s.file("f", b""); s.symlink("f", "l"); make(s, "p", FileType::Fifo, 0o600, 0); names(s, "."); };
    "a thousand names" => |s| { s.directory("d"); for n in 0..1000 { s.file(&format!("d/name-{n}"), b""); } names(s, "d"); };
    "names that are removed while they are listed" => |s| {
        s.directory("d");
        for n in 0..500 { s.file(&format!("d/f{n}"), b""); }
        let mut count = 0;
        for entry in std::fs::read_dir(s.path("d")).expect("a listing") {
            std::fs::remove_file(entry.expect("an entry").path()).expect("it is there");
            count += 1;
        }
        s.see("removed", count);
        names(s, "d");
    };
    "going back in a listing" => going_back;
    "a listing begins anew" => |s| {
        s.directory("d");
        s.file("d/a", b"");
        let fd = s.open("d", R | OFlags::DIRECTORY).expect("it is there");
        let mut stream = rustix::fs::Dir::new(fd).expect("a stream");
        let first = stream.by_ref().filter_map(Result::ok).count();
        s.file("d/b", b"");
        stream.rewind();
        let second = stream.filter_map(Result::ok).count();
        s.see("entries", (first, second));
    };
    "the numbers in a listing are those of the files" => |s| {
        for n in 0..50 { s.file(&format!("f{n}"), b""); }
        s.directory("d");
        use std::os::unix::fs::{DirEntryExt, MetadataExt};
        let wrong = std::fs::read_dir(&s.directory).expect("a listing").filter_map(Result::ok)
            .filter(|entry| entry.metadata().is_ok_and(|found| found.ino() != entry.ino())).count();
        s.see("wrong", wrong);
    };
    "dot and dot-dot have the right numbers" => |s| {
        s.directory("d");
        s.directory("d/e");
        let fd = s.open("d/e", R | OFlags::DIRECTORY).expect("it is there");
        let numbers: Vec<_> = rustix::fs::Dir::new(fd).expect("a stream").filter_map(Result::ok).map(|entry| (entry.file_name().to_owned(), entry.ino())).collect();
        use std::os::unix::fs::MetadataExt;
        let of = |name: &str| std::fs::metadata(s.path(name)).expect("it is there").ino();
        let right = numbers.iter().filter(|(name, number)| match name.to_bytes() { b"." => *number == of("d/e"), b".." => *number == of("d"), _ => false }).count();
        s.see("right", right);
    };
];

fn chmod(s: &mut Scene, name: &str, mode: u32) {
    let changed = rustix::fs::chmodat(CWD, s.path(name), Mode::from_raw_mode(mode), AtFlags::empty());
    s.call(&format!("chmod {name} {mode:o}"), changed);
}

/// Lists a directory, records the offset of each entry, and seeks back to each: the same name must
/// follow.
fn going_back(s: &mut Scene) {
    s.directory("d");
    for n in 0..300 {
        s.file(&format!("d/f{n}"), b"");
    }
    let fd = s.open("d", R | OFlags::DIRECTORY).expect("it is there");
    let next = |fd: &std::os::fd::OwnedFd| {
        let mut buffer = vec![std::mem::MaybeUninit::uninit(); 4096];
        let mut listing = rustix::fs::RawDir::new(fd, &mut buffer);
        listing.next().map(|entry| entry.map(|entry| (entry.file_name().to_owned(), entry.next_entry_cookie())))
    };
    let (mut places, mut place) = (Vec::new(), 0);
    loop {
        rustix::fs::seek(&fd, rustix::fs::SeekFrom::Start(place)).expect("the offset is valid");
        match next(&fd) {
            Some(Ok((name, after))) => {
                places.push((place, name));
                place = after;
            }
            Some(Err(error)) => return s.see("listing", error.raw_os_error()),
            None => break,
        }
    }
    let mut different: Vec<_> = places.iter().map(|(_, name)| name.clone()).collect();
    different.sort();
    different.dedup();
    s.see("entries", (places.len(), different.len()));
    let wrong = places.iter().rev().filter(|(place, name)| {
        rustix::fs::seek(&fd, rustix::fs::SeekFrom::Start(*place)).expect("the offset is valid");
        !matches!(next(&fd), Some(Ok((found, _))) if found == *name)
    });
    let wrong = wrong.count();
    s.see("places that led elsewhere", wrong);
}
