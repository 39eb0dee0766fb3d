//! Files that change, shrink, grow and vanish at a fixed phase of the run.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use hoistway_order::archive::{self, ArchiveError, ArchiveEvent, ArchiveWarning, Format, Options, ReadPhase, Severity};
use hoistway_order::{FollowLinks, SortKey};
use rustix::io::Errno;
use tempfile::TempDir;

use super::{archive_of, is_possible, is_root, walked};

/// Creates a directory `t` with two files `a` and `b` of the given size.
fn two_files(bytes: usize) -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let top = folder.path().join("t");
    fs::create_dir(&top).unwrap();
    fs::write(top.join("a"), vec![b'a'; bytes]).unwrap();
    fs::write(top.join("b"), vec![b'b'; bytes]).unwrap();
    (folder, top)
}

/// Creates an archive and calls `disturb` at a phase of reading `a`.
fn disturbed(folder: &Path, wanted: ReadPhase, disturb: impl Fn() + Sync) -> (Vec<u8>, Vec<ArchiveEvent>) {
    let hook = move |moment: ReadPhase, path: &[u8]| {
        if moment == wanted && path == b"t/a" {
            disturb();
        }
    };
    archive_of(folder, &Options { by: SortKey::Name, hook: Some(&hook), ..Options::default() })
}

/// Returns name and data of all files of an archive.
fn files(bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut archive = tar::Archive::new(bytes);
    let mut found = Vec::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let mut data = Vec::new();
        std::io::Read::read_to_end(&mut entry, &mut data).unwrap();
        found.push((name, data));
    }
    found
}

fn warning(path: &str, warning: ArchiveWarning) -> ArchiveEvent {
    ArchiveEvent::Warning(path.as_bytes().to_vec(), warning)
}

#[test]
fn a_file_that_shrinks_is_filled_up_with_zeros() {
    // One file that is read at once, and one that is read in pieces.
    for bytes in [10_000, 1_000_000] {
        let (folder, top) = two_files(bytes);
        let shrink = || File::options().write(true).open(top.join("a")).unwrap().set_len(100).unwrap();
        let (archive, events) = disturbed(folder.path(), ReadPhase::Opened, shrink);
        assert_eq!(events, [warning("t/a", ArchiveWarning::Shrank { bytes: bytes as u64 - 100 })]);
        let files = files(&archive);
        let (_, data) = &files[1];
        assert_eq!(data.len(), bytes);
        assert!(data[..100].iter().all(|byte| *byte == b'a') && data[100..].iter().all(|byte| *byte == 0));
        assert_eq!(files[2], ("t/b".to_owned(), vec![b'b'; bytes]), "what follows is in its place");
    }
}

#[test]
fn a_file_that_grows_or_changes_is_reported() {
    for bytes in [10_000, 1_000_000] {
        let (folder, top) = two_files(bytes);
        let grow = || File::options().write(true).open(top.join("a")).unwrap().set_len(2 * bytes as u64).unwrap();
        let (archive, events) = disturbed(folder.path(), ReadPhase::Opened, grow);
        assert_eq!(events, [warning("t/a", ArchiveWarning::Changed)]);
        assert_eq!(files(&archive)[1].1.len(), bytes, "it is as long as its header says");
        assert_eq!(ArchiveWarning::Changed.severity(), Severity::Differs);
    }
}

#[test]
fn a_file_that_vanishes_is_reported_and_the_run_continues() {
    let (folder, top) = two_files(10);
    let (archive, events) = disturbed(folder.path(), ReadPhase::Found, || fs::remove_file(top.join("a")).unwrap());
    assert_eq!(events, [warning("t/a", ArchiveWarning::Removed)]);
    let names: Vec<_> = files(&archive).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["t/", "t/b"]);
}

#[test]
fn the_replacement_of_a_file_is_archived() {
    let (folder, top) = two_files(10);
    let replace = || {
        fs::write(top.join("new"), b"another").unwrap();
        fs::rename(top.join("new"), top.join("a")).unwrap();
    };
    let (archive, events) = disturbed(folder.path(), ReadPhase::Found, replace);
    assert_eq!(events, []);
    assert_eq!(files(&archive)[1], ("t/a".to_owned(), b"another".to_vec()));
    let (folder, top) = two_files(10);
    let replace = || {
        fs::remove_file(top.join("a")).unwrap();
        symlink("b", top.join("a")).unwrap();
    };
    let (archive, events) = disturbed(folder.path(), ReadPhase::Found, replace);
    assert_eq!((events, files(&archive)[1].1.len()), (vec![], 0), "a link is a link, not what it leads to");
}

#[test]
fn a_link_in_place_of_a_directory_does_not_lead_out_of_the_tree() {
    let folder = TempDir::new().unwrap();
    let top = folder.path().join("t");
    fs::create_dir_all(top.join("d")).unwrap();
    fs::create_dir(folder.path().join("secret")).unwrap();
    fs::write(top.join("d/file"), b"harmless").unwrap();
    fs::write(folder.path().join("secret/file"), b"secret").unwrap();
    let hook = |moment: ReadPhase, path: &[u8]| {
        if moment == ReadPhase::Found && path == b"t/d/file" {
            fs::rename(top.join("d"), top.join("away")).unwrap();
            symlink("../secret", top.join("d")).unwrap();
        }
    };
    let options = Options { by: SortKey::Name, hook: Some(&hook), ..Options::default() };
    let (archive, events) = archive_of(folder.path(), &options);
    assert_eq!(events, [warning("t/d/file", ArchiveWarning::Removed)]);
    assert!(files(&archive).iter().all(|(_, data)| data != b"secret"));
}

#[test]
fn an_unreadable_file_is_reported_and_the_run_continues() {
    // Root may read every file; the test of the command covers another user.
    if !is_possible("root is refused nothing", !is_root()) {
        return;
    }
    let (folder, top) = two_files(10);
    fs::set_permissions(top.join("a"), Permissions::from_mode(0o000)).unwrap();
    let (archive, events) = archive_of(folder.path(), &Options::default());
    assert_eq!(events, [warning("t/a", ArchiveWarning::Open(Errno::ACCESS))]);
    assert!(files(&archive).iter().any(|(name, _)| name == "t/b"));
}

#[test]
fn sockets_and_the_archive_itself_are_left_out() {
    let (folder, top) = two_files(10);
    let _socket = std::os::unix::net::UnixListener::bind(top.join("s")).unwrap();
    let metadata = fs::metadata(top.join("a")).unwrap();
    use std::os::unix::fs::MetadataExt;
    let own = [(metadata.dev(), metadata.ino())];
    let options = Options { by: SortKey::Name, archive: &own, ..Options::default() };
    let (archive, events) = archive_of(folder.path(), &options);
    assert_eq!(events, [warning("t/a", ArchiveWarning::Itself), warning("t/s", ArchiveWarning::Socket)]);
    assert!(
        events
            .iter()
            .all(|event| matches!(event, ArchiveEvent::Warning(_, warning) if warning.severity() == Severity::Note))
    );
    assert_eq!(files(&archive).len(), 2);
}

#[test]
fn links_are_followed_on_request() {
    let (folder, top) = two_files(10);
    fs::create_dir(folder.path().join("far")).unwrap();
    fs::write(folder.path().join("far/file"), b"far").unwrap();
    symlink("../far", top.join("c")).unwrap();
    symlink("b", top.join("d")).unwrap();
    let (archive, events) =
        archive_of(folder.path(), &Options { by: SortKey::Name, follow: FollowLinks::Always, ..Options::default() });
    assert_eq!(events, []);
    let names: Vec<_> = files(&archive).into_iter().map(|(name, data)| (name, data.len())).collect();
    let wanted = [("t/", 0), ("t/a", 10), ("t/b", 10), ("t/c/", 0), ("t/c/file", 3), ("t/d", 0)];
    assert_eq!(names, wanted.map(|(name, bytes)| (name.to_owned(), bytes)), "d is b under another name");
}

#[test]
fn a_file_that_cannot_be_a_link_target_is_stored_again() {
    let (folder, top) = two_files(10);
    // In ustar a link target has at most 100 bytes.
    let long = top.join(format!("A{}", "n".repeat(98)));
    fs::hard_link(top.join("a"), &long).unwrap();
    fs::hard_link(top.join("a"), top.join("c")).unwrap();
    let options = Options { by: SortKey::Name, format: Format::Ustar, ..Options::default() };
    let (archive, events) = archive_of(folder.path(), &options);
    assert_eq!(events, []);
    let sizes: Vec<_> = files(&archive).into_iter().map(|(_, data)| data.len()).collect();
    assert_eq!(sizes, [0, 10, 10, 10, 0], "t/A..., a and b have data, and c is a link");
}

#[test]
fn a_failing_output_ends_the_run_without_an_end_mark() {
    struct Full(usize);
    impl std::io::Write for Full {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            if self.0 < bytes.len() {
                return Err(rustix::io::Errno::NOSPC.into());
            }
            self.0 -= bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let (folder, _top) = two_files(3_000_000);
    for by in [SortKey::Auto, SortKey::Name] {
        let options = Options { by, read_ahead_bytes: 1 << 20, ..Options::default() };
        let tree = walked(folder.path(), &options);
        let written = archive::write(&tree, &options, &mut Full(2_000_000), &mut |event| panic!("{event:?}"));
        assert!(matches!(written, Err(ArchiveError::Output(error)) if error.raw_os_error() == Some(28)));
    }
}

#[test]
fn paths_longer_than_path_max_are_archived() {
    let folder = TempDir::new().unwrap();
    let base = File::open(folder.path()).unwrap();
    let part = "p".repeat(200);
    let mode = rustix::fs::Mode::from_bits_truncate(0o755);
    let flags = rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::CLOEXEC;
    rustix::fs::mkdirat(&base, "t", mode).unwrap();
    let mut directory = rustix::fs::openat(&base, "t", flags, mode).unwrap();
    for _ in 0..30 {
        rustix::fs::mkdirat(&directory, &part, mode).unwrap();
        directory = rustix::fs::openat(&directory, &part, flags, mode).unwrap();
    }
    let create = rustix::fs::OFlags::CREATE | rustix::fs::OFlags::WRONLY;
    let file = rustix::fs::openat(&directory, "bottom", create, mode).unwrap();
    rustix::io::write(&file, b"deep").unwrap();
    let (archive, events) = archive_of(folder.path(), &Options::default());
    assert_eq!(events, []);
    let found = files(&archive);
    let (name, data) = found.iter().find(|(name, _)| name.ends_with("/bottom")).expect("it is there");
    assert_eq!((name.len(), &data[..]), (1 + 30 * 201 + 7, &b"deep"[..]));
    // The test directory cannot be removed by a path of this length.
    let removed = std::process::Command::new("rm").arg("-rf").arg(folder.path().join("t")).status();
    is_possible("rm cannot remove the deep tree", removed.is_ok_and(|status| status.success()));
}
