//! Trees on images of ext4, xfs and btrfs and on tmpfs, extracted by three programs. Needs root;
//! without root, a temporary directory replaces the images.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use hoistway_order::SortKey;
use hoistway_order::archive::{AttributeSelection, Format, Options};
use tempfile::TempDir;

use super::tree::{FileSnapshot, Takes, make, snapshot};
use super::{archive_into, is_installed, is_possible, is_root};
use crate::common::image::unmount;

/// A file system mounted in a temporary directory.
struct Mounted {
    folder: TempDir,
    is_mounted: bool,
}

impl Mounted {
    /// Creates an image of the given size with a program and its arguments; `None` creates a tmpfs.
    fn new(make: Option<(&str, &[&str], u64)>) -> Option<Mounted> {
        if !is_possible("root is needed to mount", is_root()) {
            return None;
        }
        let mut mounted = Mounted { folder: TempDir::new().unwrap(), is_mounted: false };
        let mut mount = Command::new("mount");
        match make {
            Some((program, args, bytes)) => {
                if !is_installed(program) {
                    return None;
                }
                let image = mounted.folder.path().join("image");
                File::create(&image).unwrap().set_len(bytes).unwrap();
                let made =
                    Command::new(program).args(args).arg(&image).stdout(Stdio::null()).stderr(Stdio::null()).status();
                assert!(made.unwrap().success(), "{program} made no file system");
                mount.args(["-o", "loop"]).arg(image);
            }
            None => {
                mount.args(["-t", "tmpfs", "tmpfs"]);
            }
        }
        fs::create_dir(mounted.root()).unwrap();
        let did = mount.arg(mounted.root()).output().unwrap();
        mounted.is_mounted = did.status.success();
        is_possible(&format!("no mount: {}", String::from_utf8_lossy(&did.stderr)), mounted.is_mounted)
            .then_some(mounted)
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if self.is_mounted {
            unmount(&self.root());
        }
    }
}

/// A program that extracts archives, and which attributes it restores.
struct Extractor {
    name: &'static str,
    program: &'static str,
    args: &'static [&'static str],
    attributes: bool,
    /// True if times are exact to the nanosecond; otherwise to the microsecond, and links have no
    /// times.
    exact: bool,
}

const EXTRACTORS: &[Extractor] = &[
    Extractor {
        name: "GNU tar",
        program: "tar",
        args: &["--xattrs", "--xattrs-include=*", "--acls", "--numeric-owner", "-xpf"],
        attributes: true,
        exact: true,
    },
    Extractor { name: "bsdtar", program: "bsdtar", args: &["--numeric-owner", "-xpf"], attributes: true, exact: true },
    Extractor {
        name: "Python's tarfile",
        program: "python3",
        args: &["-c", "import sys, tarfile; tarfile.open(sys.argv[1]).extractall(numeric_owner=True)"],
        attributes: false,
        exact: false,
    },
];

fn extract(extractor: &Extractor, archive: &Path) -> Option<TempDir> {
    if !is_installed(extractor.program) {
        return None;
    }
    let folder = TempDir::new().unwrap();
    let mut command = Command::new(extractor.program);
    // Names as bytes in any locale.
    command.env("LC_ALL", "C.UTF-8").env("PYTHONWARNINGS", "ignore").current_dir(folder.path());
    let ran = command.args(extractor.args).arg(archive).output().unwrap();
    assert!(ran.status.success(), "{}: {}", extractor.name, String::from_utf8_lossy(&ran.stderr));
    Some(folder)
}

/// Returns true if a program leaves a directory with the mode of its first member. Python's tarfile
/// did before it got filters (3.11.4).
fn keeps_first_modes(extractor: &Extractor) -> bool {
    let has_filters = || Command::new("python3").args(["-c", "import tarfile; tarfile.data_filter"]).output();
    extractor.program == "python3" && !has_filters().is_ok_and(|output| output.status.success())
}

/// Fails unless the extracted tree equals the original, as far as the program restores it.
#[track_caller]
fn compare(extractor: &Extractor, before: &Path, after: &Path) {
    let (before, after) = (snapshot(before), snapshot(after));
    let names = |found: &std::collections::BTreeMap<Vec<u8>, FileSnapshot>| -> Vec<String> {
        found.keys().map(|name| String::from_utf8_lossy(name).into_owned()).collect()
    };
    assert_eq!(names(&before), names(&after), "{}", extractor.name);
    let keeps_first_modes = keeps_first_modes(extractor);
    for (name, wanted) in before {
        let mut wanted = wanted.clone();
        let mut found = after[&name].clone();
        for file in [&mut wanted, &mut found] {
            let is_link = file.mode & 0o170_000 == 0o120_000;
            if keeps_first_modes && file.mode & 0o170_000 == 0o040_000 {
                file.mode = 0;
            }
            if !extractor.attributes {
                file.attributes.clear();
            }
            if !extractor.exact {
                file.mtime = if is_link { (0, 0) } else { (file.mtime.0, file.mtime.1 / 1000) };
            }
            if !is_root() {
                file.owners = (0, 0);
            }
            // The smallest hole differs between file systems.
            file.has_holes &= file.size > 1 << 30;
        }
        assert_eq!(found, wanted, "{}: {}", extractor.name, String::from_utf8_lossy(&name));
    }
}

/// Archives a tree in each order and compares what each program extracts.
fn round_trips(folder: &Path, takes: Takes) {
    let top = make(folder, takes);
    let away = TempDir::new().unwrap();
    let archive = away.path().join("x.tar");
    for by in [SortKey::Auto, SortKey::Name] {
        let attributes = AttributeSelection { xattrs: true, acls: true, selinux: false };
        let options = Options { by, attributes, ..Options::default() };
        let (_, events) = archive_into(folder, &options, &mut File::create(&archive).unwrap());
        assert_eq!(events, [], "no warnings");
        let bytes = archive.metadata().unwrap().len();
        assert!(bytes < 20 << 20, "holes take no room, and a file with three names is there once: {bytes}");
        for extractor in EXTRACTORS {
            if let Some(extracted) = extract(extractor, &archive) {
                compare(extractor, &top, &extracted.path().join("t"));
            }
        }
    }
}

#[test]
fn a_tree_on_ext4_survives_a_round_trip() {
    let made = Mounted::new(Some(("mkfs.ext4", &["-q", "-b", "4096"], 256 << 20)));
    if let Some(mounted) = made {
        round_trips(&mounted.root(), Takes { attributes: true });
    }
}

#[test]
fn a_tree_on_xfs_survives_a_round_trip() {
    if let Some(mounted) = Mounted::new(Some(("mkfs.xfs", &["-q"], 400 << 20))) {
        round_trips(&mounted.root(), Takes { attributes: true });
    }
}

#[test]
fn a_tree_on_btrfs_survives_a_round_trip() {
    if let Some(mounted) = Mounted::new(Some(("mkfs.btrfs", &["-q"], 400 << 20))) {
        round_trips(&mounted.root(), Takes { attributes: true });
    }
}

#[test]
fn a_tree_on_tmpfs_survives_a_round_trip() {
    if let Some(mounted) = Mounted::new(None) {
        round_trips(&mounted.root(), Takes { attributes: false });
    }
}

#[test]
fn a_tree_in_the_temporary_directory_survives_a_round_trip() {
    let folder = TempDir::new().unwrap();
    round_trips(folder.path(), Takes { attributes: false });
}

#[test]
fn gnu_and_ustar_archives_survive_a_round_trip_within_their_limits() {
    let folder = TempDir::new().unwrap();
    let top = folder.path().join("t");
    fs::create_dir_all(top.join("a")).unwrap();
    fs::write(top.join("a/one"), b"1").unwrap();
    fs::write(top.join(format!("a/{}", "n".repeat(150))), b"long").unwrap();
    fs::hard_link(top.join("a/one"), top.join("two")).unwrap();
    let hollow = File::create(top.join("hollow")).unwrap();
    hollow.set_len(5 << 30).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&hollow, b"far", 5 << 30).unwrap();
    let archive = folder.path().join("x.tar");
    let gnu = Options { format: Format::Gnu, ..Options::default() };
    let (_, events) = archive_into(folder.path(), &gnu, &mut File::create(&archive).unwrap());
    assert_eq!(events, []);
    assert!(archive.metadata().unwrap().len() < 1 << 20);
    for extractor in EXTRACTORS {
        if let Some(extracted) = extract(extractor, &archive) {
            let (before, after) = (snapshot(&top), snapshot(&extracted.path().join("t")));
            for (name, wanted) in before {
                let found = &after[&name];
                let of = |file: &FileSnapshot| (file.mode, file.size, file.data, file.first_name.clone(), file.mtime.0);
                assert_eq!(of(found), of(&wanted), "{}: {}", extractor.name, String::from_utf8_lossy(&name));
            }
        }
    }
    fs::remove_file(top.join("hollow")).unwrap();
    let ustar = Options { format: Format::Ustar, sparse: false, ..Options::default() };
    let (_, events) = archive_into(folder.path(), &ustar, &mut File::create(&archive).unwrap());
    assert_eq!(events.len(), 1, "the long name does not fit: {events:?}");
    for extractor in EXTRACTORS {
        if let Some(extracted) = extract(extractor, &archive) {
            assert_eq!(fs::read(extracted.path().join("t/two")).unwrap(), b"1");
        }
    }
}
