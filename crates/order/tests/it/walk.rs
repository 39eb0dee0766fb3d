//! Walks over trees in a temporary directory.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hoistway_order::walk::{self, DedupBy, Options, Walk};
use hoistway_order::{FileKind, FollowLinks, Operation, Tree, WalkError};
use rustix::fs::{Mode, OFlags, mkdirat, openat};

use crate::common::{Folder, Walked, found, paths, walked};

#[test]
fn a_walk_finds_all_names_with_types_and_inodes() {
    let folder = Folder::new();
    folder.file("a/one", "1");
    folder.file("a/b/two", "2");
    fs::create_dir(folder.path("empty")).unwrap();
    symlink("nowhere", folder.path("a/link")).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, folder.path("pipe"), rustix::fs::FileType::Fifo, Mode::RUSR, 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(folder.path("socket")).unwrap();
    let Walked { tree, problems } = walked(&[folder.root()], &Options::default());
    assert!(problems.is_empty(), "{problems:?}");
    let mut seen: Vec<PathBuf> = paths(&tree).into_iter().collect();
    seen.sort();
    assert_eq!(seen, found(&folder.root()));
    for id in tree.ids() {
        let entry = tree.entry(id);
        let mut path = Vec::new();
        tree.path_into(id, &mut path);
        let path = Path::new(OsStr::from_bytes(&path));
        let real = fs::symlink_metadata(path).unwrap();
        use std::os::unix::fs::MetadataExt;
        assert_eq!((entry.inode, entry.device), (real.ino(), real.dev()), "{path:?}");
        let kind = match path.file_name().and_then(OsStr::to_str) {
            Some("one" | "two") => FileKind::File,
            Some("link") => FileKind::Symlink,
            Some("pipe") => FileKind::Fifo,
            Some("socket") => FileKind::Socket,
            _ => FileKind::Directory,
        };
        assert_eq!(entry.kind, kind, "{path:?}");
        assert!(entry.parent.is_none_or(|parent| parent < id), "a directory comes before what is in it");
    }
}

#[test]
fn directories_are_read_in_one_way_sweeps_that_discovered_directories_join() {
    let folder = Folder::new();
    for number in 0..300u64 {
        // Created in an order unrelated to the tree.
        folder.file(&format!("{}/{}/{}/file", number * 7 % 11, number * 5 % 13, number * 3 % 17), "");
    }
    let Walked { tree, .. } = walked(&[folder.root()], &Options::default());
    let mut read: Vec<_> = tree.ids().filter_map(|id| tree.parent(id)).collect();
    read.dedup();
    let mut pending: BTreeSet<_> = tree.ids().take(1).map(|id| (tree.entry(id).inode, id)).collect();
    let mut at = 0;
    for directory in read {
        let expected = pending.iter().find(|(inode, _)| *inode >= at).or(pending.first()).copied();
        assert_eq!(expected, Some((tree.entry(directory).inode, directory)), "at {at} of {pending:?}");
        at = tree.entry(directory).inode;
        pending.remove(&(at, directory));
        let within = tree.ids().filter(|id| tree.parent(*id) == Some(directory));
        let within = within.filter(|id| tree.entry(*id).kind == FileKind::Directory);
        pending.extend(within.map(|id| (tree.entry(id).inode, id)));
    }
    assert!(pending.is_empty());
}

#[test]
fn names_of_any_bytes_and_of_255_bytes_are_found_and_opened() {
    let folder = Folder::new();
    let names: [&[u8]; 4] = [b"\xff\xfe", b"line\nbreak", &[b'n'; 255], "\u{e9}\u{4e2d}".as_bytes()];
    for name in names {
        fs::write(folder.root().join(OsStr::from_bytes(name)), name).unwrap();
    }
    let Walked { tree, problems } = walked(&[folder.root()], &Options::default());
    assert!(problems.is_empty(), "{problems:?}");
    let files: Vec<_> = tree.ids().filter(|id| tree.entry(*id).kind == FileKind::File).collect();
    assert_eq!(files.len(), names.len());
    for id in files {
        let opened = tree.open(id, OFlags::empty()).unwrap();
        let mut content = Vec::new();
        std::io::Read::read_to_end(&mut fs::File::from(opened.fd), &mut content).unwrap();
        assert_eq!(content, tree.name(id).as_bytes());
    }
}

#[test]
fn a_repeated_root_is_found_once_under_its_own_path() {
    let folder = Folder::new();
    folder.file("a/b/file", "");
    folder.file("a/other", "");
    fs::hard_link(folder.path("a/other"), folder.path("a/another")).unwrap();
    let roots = ["a/b", "a", "./a/b/", "a/other", "a/b/../other"].map(PathBuf::from);
    let base = rustix::fs::open(folder.root(), OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap();
    let options = Options { base: Some(Arc::new(base)), ..Options::default() };
    let Walked { tree, problems } = walked(&roots, &options);
    assert!(problems.is_empty(), "{problems:?}");
    let mut seen: Vec<String> = paths(&tree).iter().map(|path| path.to_str().unwrap().to_owned()).collect();
    seen.sort();
    assert_eq!(seen, ["a", "a/another", "a/b", "a/b/file", "a/other"]);
}

#[test]
fn with_path_identity_a_file_is_found_under_each_given_path() {
    let folder = Folder::new();
    folder.file("a/b/file", "");
    folder.file("a/other", "");
    let roots = ["a/b", "a", "./a/b/", "a/other", "a/b/../other"].map(PathBuf::from);
    let base = rustix::fs::open(folder.root(), OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap();
    let options = Options { base: Some(Arc::new(base)), once: DedupBy::Path, ..Options::default() };
    let Walked { tree, problems } = walked(&roots, &options);
    assert!(problems.is_empty(), "{problems:?}");
    let mut seen: Vec<String> = paths(&tree).iter().map(|path| path.to_str().unwrap().to_owned()).collect();
    seen.sort();
    assert_eq!(seen, ["a", "a/b", "a/b/../other", "a/b/file", "a/other"]);
    let absolute = folder.root().join("a/b");
    let Walked { tree, .. } = walked(&["a".into(), absolute.clone()], &options);
    let seen = paths(&tree);
    assert!(seen.contains(&"a/b/file".into()) && seen.contains(&absolute.join("file")), "{seen:?}");
    // The base directory contains all roots, and "." contains all that start there.
    for roots in [["./a/b", "."], [".", "a//b/"]] {
        let Walked { tree, .. } = walked(&roots.map(PathBuf::from), &options);
        assert_eq!(paths(&tree).iter().filter(|path| path.ends_with("a/b/file")).count(), 1, "{roots:?}");
    }
}

#[test]
fn loops_of_links_end_and_are_reported() {
    let folder = Folder::new();
    folder.file("a/file", "");
    symlink("..", folder.path("a/up")).unwrap();
    symlink("self", folder.path("self")).unwrap();
    symlink("nowhere", folder.path("broken")).unwrap();
    let never = walked(&[folder.root()], &Options::default());
    assert!(never.problems.is_empty());
    assert_eq!(never.tree.len(), 6);
    let always = walked(&[folder.root()], &Options { follow: FollowLinks::Always, ..Options::default() });
    let error_of = |name: &str| {
        let of = always.problems.iter().find(|problem| problem.path.ends_with(name.as_bytes()));
        of.unwrap_or_else(|| panic!("{name}: {:?}", always.problems)).error
    };
    assert_eq!(error_of("/a/up"), WalkError::Loop);
    assert!(matches!(
        error_of("/self"),
        WalkError::Failed { operation: Operation::Stat, errno: rustix::io::Errno::LOOP }
    ));
    assert_eq!(always.problems.len(), 2);
    let broken = always.tree.ids().find(|id| always.tree.name(*id) == "broken").expect("what leads nowhere is itself");
    assert_eq!(always.tree.entry(broken).kind, FileKind::Symlink);
}

#[test]
fn a_link_in_place_of_a_directory_does_not_lead_out_of_the_tree() {
    let (folder, elsewhere) = (Folder::new(), Folder::new());
    folder.file("a/inner/mine", "");
    elsewhere.file("inner/secret", "");
    let (mut tree, mut problems) = (Tree::new(), Vec::new());
    let mut problem = |problem| problems.push(problem);
    let (a, old) = (folder.path("a"), folder.path("old"));
    let inner = folder.path("a/inner");
    let keep = |path: &[u8], _: FileKind| {
        // Found and not entered yet.
        if path == inner.as_os_str().as_bytes() {
            fs::rename(&a, &old).unwrap();
            symlink(elsewhere.root(), &a).unwrap();
        }
        true
    };
    let options = Options { filter: Some(&keep), ..Options::default() };
    walk::walk(&[folder.root()], &options, &mut tree, &mut problem).unwrap();
    assert!(!paths(&tree).iter().any(|path| path.ends_with("secret")), "{:?}", paths(&tree));
    assert!(problems.len() == 1 && problems[0].is_gone(), "{problems:?}");
}

#[test]
fn a_root_that_is_a_link_is_followed_on_request() {
    let folder = Folder::new();
    folder.file("a/file", "");
    symlink("a", folder.path("link")).unwrap();
    symlink("file", folder.path("a/inner")).unwrap();
    let as_it_is = walked(&[folder.path("link")], &Options::default());
    assert_eq!(as_it_is.tree.len(), 1);
    let options = Options { follow: FollowLinks::Arguments, ..Options::default() };
    let followed = walked(&[folder.path("link")], &options);
    assert_eq!(followed.tree.len(), 3);
    let kinds: Vec<FileKind> = followed.tree.ids().map(|id| followed.tree.entry(id).kind).collect();
    assert!(kinds.contains(&FileKind::Symlink), "what lies below is not followed: {kinds:?}");
}

#[test]
fn a_directory_that_disappears_is_reported_and_the_walk_continues() {
    let folder = Folder::new();
    folder.file("stays/file", "");
    folder.file("goes/file", "");
    let goes = folder.path("goes");
    let keep = |path: &[u8], _: FileKind| {
        if path == goes.as_os_str().as_bytes() {
            fs::remove_dir_all(&goes).unwrap();
        }
        true
    };
    let Walked { tree, problems } = walked(&[folder.root()], &Options { filter: Some(&keep), ..Options::default() });
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].is_gone() && problems[0].path.ends_with(b"/goes"));
    assert!(paths(&tree).contains(&folder.path("stays/file")));
}

#[test]
fn a_missing_root_is_reported_with_its_path() {
    let folder = Folder::new();
    folder.file("file", "");
    let long = PathBuf::from("x".repeat(70_000));
    let Walked { tree, problems } =
        walked(&[folder.path("absent"), PathBuf::new(), long, folder.path("file")], &Options::default());
    assert_eq!((tree.len(), problems.len()), (1, 3));
    assert!(problems[0].to_string().contains("absent: stat failed: No such file"), "{}", problems[0]);
}

#[test]
fn paths_longer_than_path_max_are_walked_opened_and_listed() {
    let folder = Folder::new();
    let name = "d".repeat(200);
    let mut at = openat(rustix::fs::CWD, folder.root(), OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap();
    for _ in 0..45 {
        mkdirat(&at, &name, Mode::RWXU).unwrap();
        at = openat(&at, &name, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap();
    }
    let file = openat(&at, "file", OFlags::CREATE | OFlags::WRONLY, Mode::RUSR).unwrap();
    rustix::io::write(&file, b"deep").unwrap();
    let Walked { tree, problems } = walked(&[folder.root()], &Options::default());
    assert!(problems.is_empty(), "{problems:?}");
    let id = tree.ids().find(|id| tree.name(*id) == "file").expect("the file is found");
    let mut path = Vec::new();
    tree.path_into(id, &mut path);
    assert!(path.len() > 2 * 4096, "{}", path.len());
    assert_eq!(tree.open(id, OFlags::empty()).unwrap().stat.st_size, 4);
    let mut listed = Tree::new();
    walk::list(&mut [path.clone()].into_iter(), &Options::default(), &mut listed, &mut |p| panic!("{p}")).unwrap();
    assert_eq!(listed.entry(listed.ids().next().unwrap()).inode, tree.entry(id).inode);
}

#[test]
fn a_walk_in_batches_finds_the_same_and_discards_finished_names() {
    let folder = Folder::new();
    for directory in 0..30 {
        for file in 0..100 {
            folder.file(&format!("{directory}/{directory}/{file}"), "");
        }
    }
    let options = Options::default();
    let (mut tree, mut seen, mut largest) = (Tree::new(), Vec::new(), 0);
    let mut problem = |problem| panic!("{problem}");
    let mut walk = Walk::new(&[folder.root()], &options, &mut tree, &mut problem).unwrap();
    let mut handed_out = 0;
    loop {
        let more = walk.read_batch(100, &mut tree, &mut problem).unwrap();
        seen.extend(paths(&tree).into_iter().skip(handed_out));
        largest = largest.max(tree.len());
        walk.discard_finished(&mut tree);
        handed_out = tree.len();
        if !more {
            break;
        }
    }
    seen.sort();
    assert_eq!(seen, found(&folder.root()));
    assert!(largest < 500, "{largest} names were kept at once");
}

#[test]
fn a_replaced_file_is_not_opened() {
    let folder = Folder::new();
    folder.file("file", "old");
    folder.file("new", "new");
    let Walked { tree, .. } = walked(&[folder.path("file")], &Options::default());
    fs::rename(folder.path("new"), folder.path("file")).unwrap();
    let id = tree.ids().next().unwrap();
    assert_eq!(tree.open(id, OFlags::empty()).unwrap_err(), WalkError::Replaced);
    fs::remove_file(folder.path("file")).unwrap();
    symlink("/etc/passwd", folder.path("file")).unwrap();
    assert!(matches!(tree.open(id, OFlags::empty()), Err(WalkError::Failed { errno: rustix::io::Errno::LOOP, .. })));
}

#[test]
fn the_paths_of_a_list_are_added_once_each_and_not_entered() {
    let folder = Folder::new();
    folder.file("a/file", "");
    let path = |name: &str| folder.path(name).as_os_str().as_bytes().to_vec();
    let list = vec![path("a/file"), path("absent"), path("a"), path("a/file"), path("./a/file")];
    let (mut tree, mut problems) = (Tree::new(), Vec::new());
    let listed =
        walk::list(&mut list.into_iter(), &Options::default(), &mut tree, &mut |problem| problems.push(problem));
    assert_eq!((listed.unwrap().duplicates, tree.len(), problems.len()), (1, 3, 1));
}
