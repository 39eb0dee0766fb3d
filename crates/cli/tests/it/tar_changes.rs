//! `hoistway tar` and `hoistway order` on files that change, vanish and grow meanwhile, and on
//! names longer than a path may be.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Mode, OFlags};

use crate::common::{Folder, hoistway, run};

/// Size of the first file: more than the program reads ahead, so that it waits for the reader of
/// its output with the file open.
const LARGE: usize = 96 << 20;
/// The size of a header in an archive.
const BLOCK: usize = 512;

/// Result of a run during which files changed.
struct Archived {
    code: Option<i32>,
    err: String,
    archive: Vec<u8>,
}

/// Archives `t/first`, which is large, and `t/second` to a pipe, and calls `change` after the
/// header of the first file: its size is determined then, most of it is not read, and the second
/// file is not open.
fn archived_during(change: impl FnOnce(&Path)) -> Archived {
    let folder = Folder::new();
    let top = folder.path("t");
    fs::create_dir(&top).expect("a directory");
    fs::write(top.join("first"), vec![b'f'; LARGE]).expect("a file");
    fs::write(top.join("second"), "second").expect("a file");
    let args = ["tar", "-c", "--sort=name", "--readers=1", "--read-ahead=1", "t"];
    let mut command = hoistway(&args);
    command.current_dir(folder.path("")).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut output = child.stdout.take().expect("it is piped");
    let mut archive = Vec::new();
    while !archive.rchunks(BLOCK).next().is_some_and(|block| block.starts_with(b"t/first\0")) {
        let mut block = [0; BLOCK];
        output.read_exact(&mut block).expect("the header of the first file");
        archive.extend_from_slice(&block);
    }
    change(&top);
    // Errors are few: they fit into their pipe.
    output.read_to_end(&mut archive).expect("the rest");
    let output = child.wait_with_output().expect("it ends");
    let err = String::from_utf8(output.stderr).expect("text");
    Archived { code: output.status.code(), err, archive }
}

/// The files of an archive, as GNU tar extracts them: name and data.
fn extracted(archive: &[u8]) -> Vec<(String, Vec<u8>)> {
    let folder = Folder::new();
    let mut tar =
        Command::new("tar").args(["-xf", "-", "-C", &folder.name("")]).stdin(Stdio::piped()).spawn().expect("tar");
    tar.stdin.take().expect("a pipe").write_all(archive).expect("tar reads");
    assert!(tar.wait().expect("tar ends").success(), "GNU tar finds the archive damaged");
    let mut files: Vec<(String, Vec<u8>)> = fs::read_dir(folder.path("t"))
        .expect("the directory of the archive")
        .map(|entry| entry.expect("an entry").path())
        .map(|path| (path.file_name().expect("a name").to_string_lossy().into_owned(), fs::read(path).expect("a file")))
        .collect();
    files.sort();
    files
}

#[test]
fn a_file_that_grows_is_archived_with_its_first_size_and_named() {
    let ran = archived_during(|top| {
        let mut file = File::options().append(true).open(top.join("first")).expect("the file");
        file.write_all(b"more").expect("it grows");
    });
    assert_eq!((ran.code, ran.err.as_str()), (Some(1), "hoistway tar: t/first: file changed as we read it\n"));
    let files = extracted(&ran.archive);
    assert_eq!(files.len(), 2);
    assert!(files[0].1.len() == LARGE && files[0].1.iter().all(|byte| *byte == b'f'));
    assert_eq!(files[1], ("second".to_owned(), b"second".to_vec()));
}

#[test]
fn a_file_that_shrinks_is_filled_up_with_zeros_and_named() {
    let ran = archived_during(|top| {
        File::options().write(true).open(top.join("first")).and_then(|file| file.set_len(100)).expect("it shrinks");
    });
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    let message = ran.err.strip_prefix("hoistway tar: t/first: File shrank by ").expect("a message about the file");
    let (missing, end) = message.split_once(' ').expect("a number");
    assert_eq!(end, "bytes; padding with zeros\n");
    let files = extracted(&ran.archive);
    assert_eq!(files[0].1.len(), LARGE);
    let zeros = files[0].1.iter().rev().take_while(|byte| **byte == 0).count();
    assert_eq!(zeros.to_string(), missing);
    assert_eq!(files[1].1, b"second");
}

#[test]
fn a_file_that_vanishes_is_left_out_and_named() {
    let ran = archived_during(|top| fs::remove_file(top.join("second")).expect("it vanishes"));
    assert_eq!((ran.code, ran.err.as_str()), (Some(1), "hoistway tar: t/second: File removed before we read it\n"));
    let names: Vec<String> = extracted(&ran.archive).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["first"]);
}

fn extracted_names(archive: &[u8]) -> Vec<String> {
    let folder = Folder::new();
    let listed = Command::new("tar").args(["-tf", &folder.file("x.tar", archive)]).output().expect("tar");
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    String::from_utf8(listed.stdout).expect("text").lines().map(str::to_owned).collect()
}

#[test]
fn lists_and_archives_of_a_busy_tree_lack_only_files_that_change() {
    let folder = Folder::new();
    fs::create_dir(folder.path("t")).expect("a directory");
    let steady: BTreeSet<String> = (0..300).map(|number| format!("t/steady{number}")).collect();
    steady.iter().for_each(|name| fs::write(folder.path(name), name).expect("a file"));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in (0..40).cycle() {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                let path = folder.path(&format!("t/busy{round}"));
                let _ = if path.exists() { fs::remove_file(path) } else { fs::write(path, vec![b'b'; 9000]) };
            }
        });
        for _ in 0..10 {
            let ran = hoistway(&["order", "--type", "f", "t"]).current_dir(folder.path("")).output().expect("it runs");
            let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
            let names: Vec<&str> = out.lines().collect();
            assert!(steady.iter().all(|name| names.contains(&name.as_str())), "{out}");
            assert_eq!(names.len(), names.iter().collect::<BTreeSet<_>>().len(), "a name is listed twice: {out}");
            let others: Vec<&str> =
                err.lines().filter(|line| !line.contains("t/busy") && !line.starts_with("note: ")).collect();
            assert_eq!(others, [""; 0]);
            let named = err.lines().any(|line| line.starts_with("error: "));
            assert_eq!(ran.status.code(), Some(i32::from(named)), "{err}");
            let ran = hoistway(&["tar", "-cf", "x.tar", "t"]).current_dir(folder.path("")).output().expect("it runs");
            let err = String::from_utf8_lossy(&ran.stderr).into_owned();
            assert!(
                err.lines().all(|line| line.contains("t/busy") || line.contains(" t: ") || line.contains(" t/: ")),
                "{err}"
            );
            assert_eq!(ran.status.code(), Some(i32::from(!err.is_empty())), "{err}");
            let archived = extracted_names(&fs::read(folder.path("x.tar")).expect("the archive"));
            assert!(steady.iter().all(|name| archived.contains(name)), "{archived:?}");
        }
        stop.store(true, Ordering::Relaxed);
    });
}

/// Number of nested directories with names of 200 letters: a path of more than 6,000 bytes.
const DEPTH: usize = 30;

/// Creates `t/ppp.../ppp.../bottom`, whose path is longer than `PATH_MAX` (4096).
fn deep_tree() -> Folder {
    let folder = Folder::new();
    let mode = Mode::from_bits_truncate(0o755);
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    fs::create_dir(folder.path("t")).expect("a directory");
    let mut directory = rustix::fs::open(folder.path("t"), flags, mode).expect("the directory");
    let part = "p".repeat(200);
    for _ in 0..DEPTH {
        rustix::fs::mkdirat(&directory, &part, mode).expect("a directory");
        directory = rustix::fs::openat(&directory, &part, flags, mode).expect("the directory");
    }
    let file = rustix::fs::openat(&directory, "bottom", OFlags::CREATE | OFlags::WRONLY, mode).expect("a file");
    rustix::io::write(&file, b"deep").expect("it is written");
    folder
}

/// Removes a deep tree, which the temporary directory cannot.
fn remove(folder: &Folder) {
    let removed = Command::new("rm").arg("-rf").arg(folder.path("t")).status().expect("rm starts");
    assert!(removed.success(), "rm cannot remove the deep tree");
}

#[test]
fn names_longer_than_a_path_are_listed_and_archived() {
    let folder = deep_tree();
    let in_folder = |args: &[&str]| hoistway(args).current_dir(folder.path("")).output().expect("it runs");
    let listed = in_folder(&["order", "-0", "--sync", "t"]);
    assert_eq!((listed.status.code(), String::from_utf8_lossy(&listed.stderr).as_ref()), (Some(0), ""));
    let bottom = format!("t/{}/bottom", vec!["p".repeat(200); DEPTH].join("/"));
    assert!(bottom.len() > 4096 && listed.stdout.split(|byte| *byte == 0).any(|name| name == bottom.as_bytes()));
    folder.file("list", &listed.stdout);
    let again = in_folder(&["order", "-0", "--files-from0", "list"]);
    assert_eq!((again.status.code(), again.stdout.len()), (Some(0), listed.stdout.len()));
    for args in [
        &["tar", "-cf", "x.tar", "t"][..],
        &["tar", "-cf", "x.tar", "--null", "--no-recursion", "-T", "list"],
        &["tar", "--format=gnu", "-cf", "x.tar", "t"],
    ] {
        let ran = in_folder(args);
        assert_eq!((ran.status.code(), String::from_utf8_lossy(&ran.stderr).as_ref()), (Some(0), ""), "{args:?}");
        let names = extracted_names(&fs::read(folder.path("x.tar")).expect("the archive"));
        assert!(names.contains(&bottom), "{args:?}: {} names", names.len());
    }
    // The last part of a name has at most 100 bytes in the format ustar: each longer one is named
    // once.
    let ran = in_folder(&["tar", "--format=ustar", "-cf", "x.tar", "t"]);
    let err = String::from_utf8(ran.stderr).expect("text");
    let lines: Vec<&str> = err.lines().filter(|line| line.ends_with("; not dumped")).collect();
    assert_eq!((ran.status.code(), lines.len()), (Some(2), DEPTH + 1), "{err}");
    assert_eq!(lines.iter().collect::<BTreeSet<_>>().len(), lines.len(), "a name is reported twice: {err}");
    remove(&folder);
    run(&["order", &folder.name("t")]).refused(1, &["No such file"]);
}
