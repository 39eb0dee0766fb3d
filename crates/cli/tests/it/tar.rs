//! `hoistway tar`, compared with GNU tar if that is installed.

use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{Folder, Ran, hoistway, is_on_path};

/// Creates a directory with `t/a`, `t/b/c.o` and `t/b/d`.
fn small_tree() -> Folder {
    let folder = Folder::new();
    fs::create_dir_all(folder.path("t/b")).unwrap();
    fs::write(folder.path("t/a"), b"one").unwrap();
    fs::write(folder.path("t/b/c.o"), vec![b'c'; 100_000]).unwrap();
    fs::write(folder.path("t/b/d"), b"three").unwrap();
    folder
}

/// Skips a test that needs a missing program; fails instead if all tests are required.
fn skipped(why: &str) {
    assert!(std::env::var_os("CI").is_none_or(|ci| ci != "true"), "{why}");
    eprintln!("SKIPPED: {why}");
}

/// Runs `hoistway tar` in a directory.
fn tar_in(folder: &Folder, args: &[&str]) -> Ran {
    Ran::of(hoistway(&[&["tar"], args].concat()).current_dir(folder.path("")).output().unwrap())
}

/// Returns the member names of an archive, sorted, without duplicates.
fn names(folder: &Folder, archive: &str) -> Vec<String> {
    let listed = Command::new("tar").args(["-tf", &folder.name(archive)]).output().expect("tar is installed");
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    let mut names: Vec<String> = String::from_utf8(listed.stdout).unwrap().lines().map(str::to_owned).collect();
    names.sort();
    names.dedup();
    names
}

#[track_caller]
fn succeeded(ran: &Ran) {
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
}

#[test]
fn a_newcomer_s_command_writes_an_archive_and_prints_the_names() {
    let folder = small_tree();
    for bundle in ["-cvf", "cvf"] {
        let ran = tar_in(&folder, &[bundle, "x.tar", "t"]);
        succeeded(&ran);
        let mut printed: Vec<_> = ran.out.lines().collect();
        printed.sort();
        assert_eq!(printed, ["t/", "t/a", "t/b/", "t/b/c.o", "t/b/d"]);
        assert_eq!(names(&folder, "x.tar"), printed);
    }
    assert_eq!(folder.files().len(), 2, "nothing else is left: {:?}", folder.files());
    let mode = fs::metadata(folder.path("x.tar")).unwrap().mode() & 0o777;
    let wanted = fs::metadata(folder.path("t/a")).unwrap().mode() & 0o777;
    assert_eq!(mode, wanted, "as any file is made");
}

#[test]
fn each_compression_is_read_back_and_selected_by_the_suffix() {
    let folder = small_tree();
    for (args, name, program) in [
        (&["-czf"][..], "x.gz", "gzip"),
        (&["-cJf"], "x.xz", "xz"),
        (&["--zstd", "-cf"], "x.zst", "zstd"),
        (&["-caf"], "y.tgz", "gzip"),
        (&["-caf"], "y.tar.xz", "xz"),
        (&["-caf"], "y.tar.zst", "zstd"),
    ] {
        if !is_on_path(program) {
            skipped(&format!("{program} is not installed, with which GNU tar reads {name}"));
            continue;
        }
        succeeded(&tar_in(&folder, &[args, &[name, "t"]].concat()));
        assert_eq!(names(&folder, name), ["t/", "t/a", "t/b/", "t/b/c.o", "t/b/d"], "{name}");
        assert!(fs::metadata(folder.path(name)).unwrap().len() < 10_000, "{name} is compressed");
    }
    tar_in(&folder, &["-caf", "z.tar.bz2", "t"]).refused(2, &["z.tar.bz2", ".gz, .xz and .zst, not as .bz2"]);
}

#[test]
fn an_archive_goes_to_standard_output_and_names_to_standard_error() {
    let folder = small_tree();
    let ran = hoistway(&["tar", "-cv", "t"]).current_dir(folder.path("")).output().unwrap();
    assert_eq!(ran.stdout.len() % 10_240, 0);
    assert!(String::from_utf8(ran.stderr).unwrap().contains("t/b/c.o\n"));
    fs::write(folder.path("x.tar"), ran.stdout).unwrap();
    assert_eq!(names(&folder, "x.tar").len(), 5);
}

#[test]
fn matching_files_are_excluded() {
    let folder = small_tree();
    succeeded(&tar_in(&folder, &["-cf", "x.tar", "--exclude=*.o", "t"]));
    assert_eq!(names(&folder, "x.tar"), ["t/", "t/a", "t/b/", "t/b/d"]);
    fs::create_dir(folder.path("t/a.d")).unwrap();
    fs::write(folder.path("t/b/a.d"), b"a file").unwrap();
    succeeded(&tar_in(&folder, &["-cf", "x.tar", "--exclude=a.d/", "--exclude=./", "--exclude=a/", "t"]));
    assert_eq!(names(&folder, "x.tar"), ["t/", "t/a", "t/b/", "t/b/a.d", "t/b/c.o", "t/b/d"]);
    fs::remove_dir(folder.path("t/a.d")).unwrap();
    folder.file("patterns", "b\n");
    succeeded(&tar_in(&folder, &["-cf", "x.tar", "-X", "patterns", "t"]));
    assert_eq!(names(&folder, "x.tar"), ["t/", "t/a"]);
    succeeded(&tar_in(&folder, &["-cf", "x.tar", "--no-recursion", "t"]));
    assert_eq!(names(&folder, "x.tar"), ["t/"]);
}

#[test]
fn paths_and_lists_begin_in_the_directory_before_them() {
    let folder = small_tree();
    folder.file("list", "d\nd\nc.o\n");
    let ran = tar_in(&folder, &["-c", "-f", "x.tar", "t/a", "-C", "t", "-C", "b", "-T", &folder.name("list")]);
    succeeded(&ran);
    assert_eq!(names(&folder, "x.tar"), ["c.o", "d", "t/a"]);
    let mut child = hoistway(&["tar", "-cf", "y.tar", "--null", "-T", "-", "--no-recursion"])
        .current_dir(folder.path(""))
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"t/b\0t/a\0").unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(names(&folder, "y.tar"), ["t/a", "t/b/"]);
}

#[test]
fn missing_files_of_a_list_are_reported_and_the_rest_is_archived() {
    let folder = small_tree();
    folder.file("list", "t/a\nt/gone\nt/a\n");
    let ran = tar_in(&folder, &["-cf", "x.tar", "-T", "list"]);
    ran.refused(2, &["t/gone: Cannot stat: No such file or directory\n", "Exiting with failure status"]);
    assert_eq!(names(&folder, "x.tar"), ["t/a"]);
}

#[test]
fn leading_slashes_and_dots_are_removed_with_a_message() {
    let folder = small_tree();
    let ran = tar_in(&folder, &["-cf", "x.tar", &folder.name("t/a"), "t/../t/b/d"]);
    assert_eq!(ran.code, Some(0));
    assert!(ran.err.contains("Removing leading `/' from member names\n"), "{}", ran.err);
    assert!(ran.err.contains("Removing leading `t/../' from member names\n"), "{}", ran.err);
    let inside = folder.name("t/a");
    assert_eq!(names(&folder, "x.tar"), ["t/b/d", &inside[1..]].map(str::to_owned));
    succeeded(&tar_in(&folder, &["-cPf", "x.tar", &inside]));
    assert_eq!(names(&folder, "x.tar"), [inside]);
}

#[test]
fn files_of_a_parent_directory_are_extracted_below() {
    let folder = small_tree();
    let ran = hoistway(&["tar", "-cf", &folder.name("x.tar"), ".."]).current_dir(folder.path("t/b")).output().unwrap();
    let ran = Ran::of(ran);
    assert_eq!(ran.code, Some(0));
    assert!(ran.err.contains("Removing leading `..' from member names\n"), "{}", ran.err);
    let listed = Command::new("tar").args(["-tPf", &folder.name("x.tar")]).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(listed.lines().all(|name| !name.starts_with('/')), "{listed}");
    assert_eq!(names(&folder, "x.tar"), ["./", "a", "b/", "b/c.o", "b/d"]);
}

/// Extracts an archive into a directory of that name.
fn extracted(folder: &Folder, archive: &str, into: &str) {
    fs::create_dir(folder.path(into)).unwrap();
    let ran = Command::new("tar").args(["-xf", &folder.name(archive), "-C", &folder.name(into)]).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

#[test]
fn a_tree_that_is_laid_over_another_one_wins_whatever_the_order() {
    let folder = Folder::new();
    // The replacement is created first, so that it precedes the other file in disk order.
    for (tree, mode) in [("over", 0o750), ("base", 0o700)] {
        fs::create_dir_all(folder.path(&format!("{tree}/d/deep"))).unwrap();
        for file in ["one", "d/two", "d/deep/three"] {
            fs::write(folder.path(&format!("{tree}/{file}")), format!("{tree}{file}").repeat(1000)).unwrap();
        }
        fs::set_permissions(folder.path(&format!("{tree}/d")), Permissions::from_mode(mode)).unwrap();
    }
    folder.file("base/alone", "alone");
    // A directory replaces a file, and a file replaces a directory.
    folder.file("base/file", "file");
    fs::create_dir(folder.path("over/file")).unwrap();
    folder.file("over/file/inside", "inside");
    fs::create_dir(folder.path("base/directory")).unwrap();
    folder.file("base/directory/inside", "inside");
    folder.file("over/directory", "file");
    for (index, order) in ["--sort=block", "--sort=inode", "--sort=name", "--sort=none"].into_iter().enumerate() {
        let ran = tar_in(&folder, &["-cf", "x.tar", order, "-C", "base", ".", "-C", "../over", "."]);
        assert_eq!((ran.code, ran.err.lines().count()), (Some(0), 1), "{}", ran.err);
        assert!(ran.err.contains("6 files are not archived: later arguments"), "{}", ran.err);
        let into = format!("into{index}");
        extracted(&folder, "x.tar", &into);
        for file in ["one", "d/two", "d/deep/three", "file/inside", "directory"] {
            let got = fs::read(folder.path(&format!("{into}/{file}"))).unwrap();
            assert_eq!(got, fs::read(folder.path(&format!("over/{file}"))).unwrap(), "{order} {file}");
        }
        assert_eq!(fs::read(folder.path(&format!("{into}/alone"))).unwrap(), b"alone");
        let mode = fs::metadata(folder.path(&format!("{into}/d"))).unwrap().mode() & 0o777;
        assert_eq!(mode, 0o750, "{order}");
    }
}

#[test]
fn a_file_with_two_paths_is_archived_under_both() {
    let folder = small_tree();
    let inside = folder.name("t/b");
    let ran = tar_in(&folder, &["-cf", "x.tar", "-C", "t", ".", &inside, "./b//", "b/d"]);
    assert_eq!((ran.code, ran.err.lines().count()), (Some(0), 1), "{}", ran.err);
    let inside = &inside[1..];
    let mut wanted = ["./", "./a", "./b/", "./b/c.o", "b/d"].map(str::to_owned).to_vec();
    wanted.extend(["/", "/c.o", "/d"].map(|name| format!("{inside}{name}")));
    // The second argument is `./b//`.
    let found: Vec<String> = names(&folder, "x.tar").iter().map(|name| name.replace("//", "/")).collect();
    wanted.sort();
    let mut sorted = found.clone();
    sorted.sort();
    assert_eq!(sorted, wanted);
}

#[test]
fn a_list_with_two_spellings_of_a_name_has_the_file_once() {
    let folder = small_tree();
    fs::hard_link(folder.path("t/a"), folder.path("t/other")).unwrap();
    folder.file("list", "t/a\n./t//a\n");
    succeeded(&tar_in(&folder, &["-cf", "x.tar", "--no-recursion", "-T", "list"]));
    let listed = Command::new("tar").args(["-tf", &folder.name("x.tar")]).output().unwrap();
    assert_eq!(String::from_utf8(listed.stdout).unwrap().lines().count(), 1);
    extracted(&folder, "x.tar", "into");
    assert_eq!(fs::read(folder.path("into/t/a")).unwrap(), b"one");
}

#[test]
fn neither_the_archive_nor_the_file_it_replaces_is_archived() {
    let folder = small_tree();
    succeeded(&tar_in(&folder, &["-cf", "t/x.tar", "t"]));
    assert_eq!(names(&folder, "t/x.tar").len(), 5);
    let ran = tar_in(&folder, &["-cf", "t/x.tar", "t"]);
    assert_eq!((ran.code, ran.err.lines().count()), (Some(0), 1), "{}", ran.err);
    assert!(ran.err.contains("t/x.tar: archive cannot contain itself; not dumped"), "{}", ran.err);
    assert_eq!(names(&folder, "t/x.tar").len(), 5);
}

#[test]
fn a_full_disk_leaves_no_archive_that_looks_whole() {
    if !rustix::process::geteuid().is_root() {
        skipped("root is needed to mount a small file system");
        return;
    }
    let folder = small_tree();
    fs::write(folder.path("t/large"), vec![1; 3 << 20]).unwrap();
    fs::create_dir(folder.path("full")).unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "tmpfs", &folder.name("full")]).status();
    if !mounted.unwrap().success() {
        skipped("no tmpfs can be mounted");
        return;
    }
    let first = tar_in(&folder, &["-cf", "full/x.tar", "t"]);
    let left: Vec<_> = fs::read_dir(folder.path("full")).unwrap().collect();
    let compressed = tar_in(&folder, &["-czf", "full/y.tar.gz", "t/a"]);
    let before = fs::read(folder.path("full/y.tar.gz"));
    let second = tar_in(&folder, &["-cf", "full/y.tar.gz", "t"]);
    let after = fs::read(folder.path("full/y.tar.gz"));
    let _ = Command::new("umount").arg(folder.path("full")).status();
    first.refused(2, &["full/x.tar: Cannot write (nothing is left of it): No space left on device\n"]);
    assert_eq!(left.len(), 0);
    succeeded(&compressed);
    second.refused(2, &["No space left on device"]);
    assert_eq!(before.unwrap(), after.unwrap(), "the archive that was there is there still");
}

#[test]
fn unreadable_files_are_reported_and_the_rest_is_archived() {
    if !rustix::process::geteuid().is_root() {
        skipped("running as another user needs root");
        return;
    }
    let folder = small_tree();
    fs::set_permissions(folder.path(""), Permissions::from_mode(0o777)).unwrap();
    fs::set_permissions(folder.path("t/a"), Permissions::from_mode(0o600)).unwrap();
    fs::set_permissions(folder.path("t/b"), Permissions::from_mode(0o700)).unwrap();
    // Another user may not read the directory of the binary.
    let binary = folder.path("hoistway");
    fs::copy(env!("CARGO_BIN_EXE_hoistway"), &binary).unwrap();
    let mut command = Command::new(binary);
    let ran = command.args(["tar", "-cf", "x.tar", "t"]).current_dir(folder.path("")).uid(65_534).gid(65_534).output();
    let ran = Ran::of(ran.unwrap());
    ran.refused(2, &["t/a: Cannot open: Permission denied\n", "t/b: Cannot open: Permission denied\n"]);
    assert_eq!(names(&folder, "x.tar"), ["t/", "t/b/"]);
}

#[test]
fn a_loop_of_followed_links_is_reported() {
    let folder = small_tree();
    symlink("loop", folder.path("t/loop")).unwrap();
    succeeded(&tar_in(&folder, &["-cf", "x.tar", "t"]));
    tar_in(&folder, &["-chf", "x.tar", "t"]).refused(2, &["t/loop: Cannot stat: Too many levels of symbolic links"]);
    fs::remove_file(folder.path("t/loop")).unwrap();
    symlink("..", folder.path("t/b/up")).unwrap();
    let ran = tar_in(&folder, &["-chf", "x.tar", "t"]);
    ran.refused(1, &["t/b/up: this directory contains itself"]);
    assert!(names(&folder, "x.tar").len() <= 6, "{:?}", names(&folder, "x.tar"));
}

#[test]
fn unsupported_modes_are_refused_with_a_hint() {
    let folder = small_tree();
    for letter in ["-xf", "-tf", "xf", "-rf"] {
        tar_in(&folder, &[letter, "x.tar"]).refused(2, &["`tar -xf ARCHIVE` extracts"]);
    }
    tar_in(&folder, &["-f", "x.tar", "t"]).refused(2, &["hoistway tar -cf x.tar DIR"]);
    tar_in(&folder, &["-cf", "x.tar"]).refused(2, &["cannot create an empty archive"]);
    tar_in(&folder, &["-cf", "no/x.tar", "t"]).refused(2, &["no/x.tar: Cannot open: No such file or directory\n"]);
    tar_in(&folder, &["-cf", "x.tar", "-C", "no", "t"]).refused(2, &["no: Cannot open: No such file or directory"]);
    tar_in(&folder, &["-cf", "x.tar", "-T", "no"]).refused(2, &["no: Cannot open: No such file or directory"]);
    tar_in(&folder, &["-cf", "x.tar", "--format=gnu", "--acls", "t"]).refused(2, &["need the format pax"]);
    assert_eq!(folder.files(), ["t"], "nothing is left behind");
}

#[test]
fn with_few_open_files_all_are_archived() {
    let folder = Folder::new();
    fs::create_dir(folder.path("t")).unwrap();
    for file in 0..600 {
        fs::write(folder.path(&format!("t/{file}")), [b'x'; 3000]).unwrap();
    }
    // Drop the files from the page cache, if the file system has another storage for them.
    let _ = Command::new("sync").arg("-f").arg(folder.path("t")).status();
    for file in 0..600 {
        let file = fs::File::open(folder.path(&format!("t/{file}"))).unwrap();
        let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
    }
    let binary = env!("CARGO_BIN_EXE_hoistway");
    let script = format!("ulimit -n 48 && exec {binary} tar -cf x.tar --read-ahead 8192 --readers 4 t");
    succeeded(&Ran::of(Command::new("sh").args(["-c", &script]).current_dir(folder.path("")).output().unwrap()));
    assert_eq!(names(&folder, "x.tar").len(), 601);
}

#[test]
fn a_restrictive_directory_is_private_until_it_is_complete() {
    let folder = small_tree();
    fs::set_permissions(folder.path("t/b"), Permissions::from_mode(0o2775)).unwrap();
    succeeded(&tar_in(&folder, &["-cf", "x.tar", "t"]));
    let listed = Command::new("tar").args(["-tvf", &folder.name("x.tar")]).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let modes: Vec<_> = listed.lines().filter(|line| line.ends_with(" t/b/")).map(|line| &line[..10]).collect();
    assert_eq!(modes, ["drwx------", "drwxrwsr-x"]);
}

#[test]
fn a_closed_pipe_causes_no_message() {
    let folder = small_tree();
    fs::write(folder.path("t/large"), vec![1; 8 << 20]).unwrap();
    let mut child = hoistway(&["tar", "-c", "t"])
        .current_dir(folder.path(""))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut head = [0; 512];
    child.stdout.take().unwrap().read_exact(&mut head).unwrap();
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!((ran.code, ran.err.as_str()), (Some(141), ""));
}

/// Starts a run that waits for its list of names, with signals that the caller ignores. Returns
/// after it has created the temporary file.
fn waiting_run(folder: &Folder, ignored: &str) -> std::process::Child {
    let list = folder.path("list");
    let mode = rustix::fs::Mode::from_bits_truncate(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, list, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let script = format!("trap '' {ignored}; exec {} tar -cf x.tar t -T list", env!("CARGO_BIN_EXE_hoistway"));
    let mut child =
        Command::new("sh").args(["-c", &script]).current_dir(folder.path("")).stderr(Stdio::piped()).spawn().unwrap();
    while !has_partial(folder) && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    child
}

fn has_partial(folder: &Folder) -> bool {
    folder.files().iter().any(|name| name.ends_with(".partial"))
}

fn send(child: &std::process::Child, signal: rustix::process::Signal) {
    rustix::process::kill_process(rustix::process::Pid::from_child(child), signal).unwrap();
}

#[test]
fn a_signal_leaves_nothing() {
    // Repeated, because the signal arrives as soon as the file exists.
    for _ in 0..20 {
        let folder = small_tree();
        let child = waiting_run(&folder, "USR1");
        send(&child, rustix::process::Signal::TERM);
        let ran = Ran::of(child.wait_with_output().unwrap());
        assert_eq!(ran.code, Some(143), "{}", ran.err);
        assert!(ran.err.contains("nothing is left of the archive"), "{}", ran.err);
        assert!(!has_partial(&folder) && !Path::new(&folder.path("x.tar")).exists());
    }
}

#[test]
fn signals_that_its_caller_ignores_do_not_end_it() {
    for (ignored, signal) in [("HUP", rustix::process::Signal::HUP), ("INT", rustix::process::Signal::INT)] {
        let folder = small_tree();
        let child = waiting_run(&folder, ignored);
        send(&child, signal);
        // Opening the list for writing and closing it ends the list.
        drop(fs::File::options().write(true).open(folder.path("list")).unwrap());
        succeeded(&Ran::of(child.wait_with_output().unwrap()));
        assert_eq!(names(&folder, "x.tar").len(), 5);
    }
}

#[test]
fn sorted_by_name_it_has_gnu_tar_s_order() {
    let folder = small_tree();
    let gnu = Command::new("tar").args(["--sort=name", "-cf", "gnu.tar", "t"]).current_dir(folder.path("")).status();
    assert!(gnu.expect("tar is installed").success());
    succeeded(&tar_in(&folder, &["--sort=name", "-cf", "ours.tar", "t"]));
    let listed = |archive: &str| Command::new("tar").args(["-tf", &folder.name(archive)]).output().unwrap().stdout;
    assert_eq!(listed("ours.tar"), listed("gnu.tar"));
}

/// Runs a command under `strace` and returns the trace, one line per call.
fn traced(folder: &Folder, options: &[&str]) -> Option<(Ran, Vec<String>)> {
    let trace = folder.name("trace");
    let mut command = Command::new("strace");
    command.args(["-f", "-o", &trace]).args(options).arg(env!("CARGO_BIN_EXE_hoistway"));
    let Ok(output) = command.args(["tar", "-cf", "x.tar", "t"]).current_dir(folder.path("")).output() else {
        skipped("strace is not installed");
        return None;
    };
    Some((Ran::of(output), fs::read_to_string(trace).unwrap().lines().map(str::to_owned).collect()))
}

#[test]
fn an_archive_gets_its_name_when_it_is_on_the_disk() {
    let folder = small_tree();
    let Some((ran, calls)) = traced(&folder, &["-e", "trace=fsync,rename,renameat,renameat2"]) else { return };
    succeeded(&ran);
    let at = |what: &str| calls.iter().position(|call| call.contains(what) && call.ends_with("= 0"));
    let (synced, renamed) = (at("fsync"), at("rename"));
    assert!(synced.is_some() && synced < renamed, "{calls:#?}");
}

#[test]
fn a_failed_archive_leaves_no_file() {
    let folder = small_tree();
    folder.file("x.tar", "old");
    let Some((ran, _)) = traced(&folder, &["-e", "inject=fsync:error=ENOSPC"]) else { return };
    ran.refused(2, &["x.tar: Cannot write (nothing is left of it): No space left on device\n"]);
    assert_eq!(fs::read(folder.path("x.tar")).unwrap(), b"old");
    assert!(!has_partial(&folder));
}

#[test]
fn an_archive_in_a_read_only_directory_is_overwritten() {
    if !rustix::process::geteuid().is_root() {
        skipped("running as another user needs root");
        return;
    }
    let folder = small_tree();
    let binary = folder.path("hoistway");
    fs::copy(env!("CARGO_BIN_EXE_hoistway"), &binary).unwrap();
    folder.file("x.tar", vec![b'x'; 1 << 20]);
    fs::set_permissions(folder.path("x.tar"), Permissions::from_mode(0o666)).unwrap();
    fs::set_permissions(folder.path(""), Permissions::from_mode(0o755)).unwrap();
    let as_other_user = |archive: &str| {
        let mut command = Command::new(&binary);
        command.args(["tar", "-cf", archive, "t"]).current_dir(folder.path("")).uid(65_534).gid(65_534);
        Ran::of(command.output().unwrap())
    };
    let ran = as_other_user("x.tar");
    assert_eq!((ran.code, ran.err.lines().count()), (Some(0), 1), "{}", ran.err);
    assert!(
        ran.err.contains("x.tar: no temporary file can be created beside it: the old archive is overwritten"),
        "{}",
        ran.err
    );
    assert_eq!(names(&folder, "x.tar").len(), 5);
    let ran = as_other_user("new.tar");
    assert_eq!((ran.code, ran.err.as_str()), (Some(2), "hoistway tar: new.tar: Cannot open: Permission denied\n"));
}

#[test]
fn an_archive_may_have_any_name_that_a_file_may_have() {
    let folder = small_tree();
    for name in ["x".repeat(255), "ä".repeat(127), "y".repeat(239)] {
        succeeded(&tar_in(&folder, &["-cf", &name, "t"]));
        assert_eq!(names(&folder, &name).len(), 5);
    }
}

#[test]
fn the_new_archive_has_the_permissions_of_the_old_one() {
    let folder = small_tree();
    folder.file("x.tar", "old");
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(folder.path("x.tar"), Some(1000), Some(1001)).unwrap();
    }
    fs::set_permissions(folder.path("x.tar"), Permissions::from_mode(0o640)).unwrap();
    let path = folder.name("x.tar");
    let has_list = Command::new("setfacl").args(["-m", "u:1:r", &path]).status().is_ok_and(|status| status.success());
    let before = fs::metadata(&path).unwrap();
    let lists =
        || Command::new("getfacl").args(["-pn", &path]).output().map(|output| output.stdout).unwrap_or_default();
    let list = lists();
    succeeded(&tar_in(&folder, &["-cf", "x.tar", "t"]));
    let after = fs::metadata(&path).unwrap();
    let access = |of: &fs::Metadata| (of.uid(), of.gid(), of.mode());
    assert_eq!(access(&after), access(&before));
    assert_ne!(after.ino(), before.ino());
    if has_list {
        assert_eq!(String::from_utf8(lists()), String::from_utf8(list));
    } else {
        skipped("no access control lists here");
    }
}

#[test]
fn a_link_to_the_archive_stays_a_link_even_if_it_dangles() {
    let folder = small_tree();
    fs::create_dir(folder.path("far")).unwrap();
    symlink("far/x.tar", folder.path("link.tar")).unwrap();
    symlink("link.tar", folder.path("again.tar")).unwrap();
    for _ in 0..2 {
        succeeded(&tar_in(&folder, &["-cf", "again.tar", "t"]));
        assert!(fs::symlink_metadata(folder.path("again.tar")).unwrap().is_symlink());
        assert!(fs::symlink_metadata(folder.path("link.tar")).unwrap().is_symlink());
        assert_eq!(names(&folder, "far/x.tar").len(), 5);
    }
    symlink("loop.tar", folder.path("loop.tar")).unwrap();
    let ran = tar_in(&folder, &["-cf", "loop.tar", "t"]);
    assert_eq!(
        (ran.code, ran.err.as_str()),
        (Some(2), "hoistway tar: loop.tar: Cannot open: Too many levels of symbolic links\n")
    );
}

#[test]
fn the_example_with_a_stamp_archives_newer_files_only() {
    let help = hoistway(&["tar", "--help"]).output().unwrap().stdout;
    let help = String::from_utf8(help).unwrap();
    let example =
        help.lines().map(str::trim).find(|line| line.starts_with("find . -newer stamp")).expect("it is there");
    let folder = Folder::new();
    for old in ["old", "stamp"] {
        folder.file(old, "old");
    }
    std::thread::sleep(std::time::Duration::from_millis(20));
    fs::create_dir(folder.path("made")).unwrap();
    folder.file("young", "young");
    folder.file("made/too", "young");
    let script = example.replace("hoistway", env!("CARGO_BIN_EXE_hoistway"));
    succeeded(&Ran::of(Command::new("sh").args(["-c", &script]).current_dir(folder.path("")).output().unwrap()));
    assert_eq!(names(&folder, "new.tar"), ["./", "./made/", "./made/too", "./young"]);
}
