//! Data offsets on file systems that are created for the test: ext4, xfs, btrfs and tmpfs.

use std::fs::{self, File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, symlink};
use std::path::Path;
use std::process::Command;

use hoistway_order::walk::Options;
use hoistway_order::{EntryId, ExtentState, FileKind, PathError, Placement, SortKey, Tree, WalkError, locate, sort};
use rustix::fs::{FallocateFlags, OFlags, fallocate};

use crate::common::image::{Image, filefrag, skipped};
use crate::common::{Walked, found, paths, walked};

const DISKS: [&str; 3] = ["ext4", "xfs", "btrfs"];

/// Looks up the offsets of all entries of a tree.
fn locate_all(tree: &mut Tree, options: &locate::Options<'_>) -> (locate::LocateSummary, Vec<PathError>) {
    let ids: Vec<EntryId> = tree.ids().collect();
    let mut problems = Vec::new();
    let placed = locate::locate(tree, &ids, options, &mut |problem| problems.push(problem));
    (placed, problems)
}

fn located_tree(root: &Path) -> Tree {
    let Walked { mut tree, problems } = walked(&[root.to_owned()], &Options::default());
    assert!(problems.is_empty(), "{problems:?}");
    let (_, problems) = locate_all(&mut tree, &locate::Options::default());
    assert!(problems.is_empty(), "{problems:?}");
    tree
}

fn id(tree: &Tree, name: &str) -> EntryId {
    tree.ids().find(|id| tree.name(*id) == name).unwrap_or_else(|| panic!("{name} is not there"))
}

fn placement_of(tree: &Tree, name: &str) -> Placement {
    tree.entry(id(tree, name)).placement
}

/// Makes a file whose data are dirty.
fn rewrite(image: &Image, name: &str, bytes: usize) {
    // ext4 writes a file at once that is truncated and written again (auto_da_alloc).
    let _ = fs::remove_file(image.path(name));
    image.file(name, vec![3; bytes]);
}

/// Repeats an attempt until exactly one file has data that are not on the disk. An attempt makes a
/// file dirty and looks up its offset; it returns the number of such files, and a result. Another
/// process may call sync(2) in between, which writes the data.
fn not_written<T>(mut attempt: impl FnMut() -> (usize, T)) -> T {
    (0..20)
        .map(|number| {
            std::thread::sleep(std::time::Duration::from_millis(50 * number));
            attempt()
        })
        .find_map(|(files, found)| (files == 1).then_some(found))
        .expect("a file that was not written in one of the attempts")
}

/// Creates a file of `bytes` bytes with data from `at` on.
fn sparse(path: &Path, at: u64, data: &[u8], bytes: u64) {
    let mut file = File::create(path).unwrap();
    file.set_len(bytes).unwrap();
    file.seek(SeekFrom::Start(at)).unwrap();
    file.write_all(data).unwrap();
}

#[test]
fn offsets_are_those_of_filefrag() {
    for kind in DISKS {
        let Some(image) = Image::new(kind, &[]) else { continue };
        image.file("plain", vec![1; 100_000]);
        sparse(&image.path("behind a hole"), 1 << 20, &[2; 9000], 2 << 20);
        sparse(&image.path("five gigabytes"), 9 << 29, &[3; 5000], 5 << 30);
        image.file("with attributes", vec![4; 20_000]);
        let set = rustix::fs::setxattr(
            image.path("with attributes"),
            "user.note",
            &[b'x'; 2000],
            rustix::fs::XattrFlags::empty(),
        );
        set.unwrap();
        fs::hard_link(image.path("plain"), image.path("its other name")).unwrap();
        image.sync();
        let tree = located_tree(&image.root);
        for name in ["plain", "behind a hole", "five gigabytes", "with attributes", "its other name"] {
            let Some(extents) = filefrag(&image.path(name)) else { return };
            let (_, physical) = extents.first().unwrap_or_else(|| panic!("{kind}: {name} has no extent"));
            assert_eq!(placement_of(&tree, name), Placement::Offset(*physical), "{kind}: {name}");
            let data = locate::extents(&tree, id(&tree, name), false).unwrap();
            let asked: Vec<(u64, u64)> = data.extents.iter().map(|extent| (extent.logical, extent.physical)).collect();
            assert_eq!(asked, extents, "{kind}: {name}");
            assert_eq!(data.bytes, fs::metadata(image.path(name)).unwrap().len());
        }
    }
}

#[test]
fn files_without_data_have_no_offset() {
    for kind in DISKS {
        let Some(image) = Image::new(kind, &[]) else { continue };
        image.file("empty", "");
        File::create(image.path("all hole")).unwrap().set_len(5 << 30).unwrap();
        let reserved = File::create(image.path("reserved")).unwrap();
        fallocate(&reserved, FallocateFlags::empty(), 0, 1 << 20).unwrap();
        symlink("x".repeat(1000), image.path("long link")).unwrap();
        let mut names = vec!["empty", "all hole", "reserved", "long link"];
        if kind == "btrfs" {
            // btrfs stores a few bytes among its metadata.
            image.file("short", "short");
            names.push("short");
        }
        image.sync();
        let tree = located_tree(&image.root);
        for name in names {
            assert_eq!(placement_of(&tree, name), Placement::NoData, "{kind}: {name}");
        }
        let reserved = locate::extents(&tree, id(&tree, "reserved"), false).unwrap();
        assert!(!reserved.extents.is_empty(), "{kind}: there is room for it on the disk");
        assert!(reserved.extents.iter().all(|extent| extent.state == ExtentState::Unwritten), "{kind}: {reserved:?}");
    }
}

#[test]
fn data_within_the_inode_have_no_offset_on_ext4() {
    let Some(image) = Image::new("ext4", &["-O", "inline_data", "-I", "256"]) else { return };
    image.file("tiny", "tiny");
    image.file("larger", vec![1; 5000]);
    image.sync();
    let tree = located_tree(&image.root);
    assert_eq!(placement_of(&tree, "tiny"), Placement::NoData);
    let data = locate::extents(&tree, id(&tree, "tiny"), false).unwrap();
    assert!(data.extents.iter().all(|extent| extent.state == ExtentState::Inline), "{data:?}");
    assert!(matches!(placement_of(&tree, "larger"), Placement::Offset(_)));
}

#[test]
fn preallocated_extents_before_the_data_do_not_count() {
    let Some(image) = Image::new("ext4", &[]) else { return };
    let mut file = File::create(image.path("late")).unwrap();
    fallocate(&file, FallocateFlags::empty(), 0, 1 << 20).unwrap();
    file.seek(SeekFrom::Start(512 << 10)).unwrap();
    file.write_all(&[7; 4096]).unwrap();
    image.sync();
    let tree = located_tree(&image.root);
    let data = locate::extents(&tree, id(&tree, "late"), false).unwrap();
    let written: Vec<_> = data.extents.iter().filter(|extent| extent.state == ExtentState::Written).collect();
    assert_eq!(written.len(), 1, "{data:?}");
    assert_eq!((written[0].logical, placement_of(&tree, "late")), (512 << 10, Placement::Offset(written[0].physical)));
}

#[test]
fn all_extents_of_a_fragmented_file_are_reported() {
    let Some(image) = Image::new("ext4", &[]) else { return };
    // Every other block is a hole: more extents than one ioctl returns.
    let mut file = File::create(image.path("pieces")).unwrap();
    for piece in 0..300u64 {
        file.seek(SeekFrom::Start(piece * 8192)).unwrap();
        file.write_all(&[1; 4096]).unwrap();
        file.sync_data().unwrap();
    }
    let tree = located_tree(&image.root);
    let data = locate::extents(&tree, id(&tree, "pieces"), false).unwrap();
    let logical: Vec<u64> = data.extents.iter().map(|extent| extent.logical).collect();
    assert_eq!(logical, (0..300).map(|piece| piece * 8192).collect::<Vec<u64>>());
}

#[test]
fn dirty_data_have_no_offset_until_they_are_synced() {
    let Some(image) = Image::new("ext4", &[]) else { return };
    image.sync();
    let mut tree = not_written(|| {
        rewrite(&image, "young", 50_000);
        let Walked { mut tree, .. } = walked(std::slice::from_ref(&image.root), &Options::default());
        let (summary, problems) = locate_all(&mut tree, &locate::Options::default());
        assert!(problems.is_empty());
        (summary.not_written, tree)
    });
    assert_eq!(placement_of(&tree, "young"), Placement::Unknown);
    let (summary, _) = locate_all(&mut tree, &locate::Options { sync: true, ..locate::Options::default() });
    assert_eq!(summary.not_written, 0);
    assert!(matches!(placement_of(&tree, "young"), Placement::Offset(_)));
}

#[test]
fn block_order_ascends_and_does_not_depend_on_the_number_of_threads() {
    for kind in DISKS {
        let Some(image) = Image::new(kind, &[]) else { continue };
        for number in 0..1500u64 {
            // Scattered over the directories, so that no directory is in disk order.
            image.file(&format!("{}/{}", number * 7 % 13, number * 31 % 1500), vec![1; 9000]);
        }
        image.sync();
        let tree = located_tree(&image.root);
        let sorted = sort(&tree, SortKey::Auto);
        let places: Vec<Placement> = sorted.iter().map(|id| tree.entry(*id).placement).collect();
        assert!(places.is_sorted_by_key(|place| match place {
            Placement::NoData => 0,
            Placement::Unknown => 1,
            Placement::Offset(at) => 2 + at,
        }));
        assert_eq!(places.iter().filter(|place| matches!(place, Placement::Offset(_))).count(), 1500, "{kind}");
        for threads in [1, 3, 16] {
            let mut again = tree.clone();
            again.ids().for_each(|id| again.set_placement(id, Placement::Unknown));
            locate_all(&mut again, &locate::Options { threads, ..locate::Options::default() });
            let files = |tree: &Tree| {
                tree.ids().map(|id| tree.entry(id)).filter(|e| e.kind == FileKind::File).collect::<Vec<_>>()
            };
            assert_eq!(files(&tree), files(&again), "{kind}: {threads} threads");
        }
    }
}

#[test]
fn inode_tables_agree_with_the_file_system() {
    let Some(image) = Image::new("ext4", &["-O", "inline_data", "-I", "256"]) else { return };
    for number in 0..600 {
        image.file(&format!("d{}/small{number}", number % 7), vec![1; 300 + 4096 * (number % 3)]);
    }
    image.file("empty", "");
    image.file("inline", "few");
    sparse(&image.path("behind a hole"), 1 << 20, b"data", 2 << 20);
    let reserved = File::create(image.path("reserved")).unwrap();
    fallocate(&reserved, FallocateFlags::empty(), 0, 1 << 20).unwrap();
    let pieces = File::create(image.path("pieces")).unwrap();
    for piece in 0..40 {
        pieces.write_all_at(&[7; 4096], piece * 8192).unwrap();
        pieces.sync_all().unwrap();
    }
    fs::hard_link(image.path("pieces"), image.path("linked")).unwrap();
    image.sync();
    let (read, by_tables, asked, by_asking) = not_written(|| {
        rewrite(&image, "not written", 10_000);
        let mut read = located_tree(&image.root);
        let (by_tables, problems) = locate_all(&mut read, &locate::Options::default());
        assert_eq!(problems, []);
        let mut asked = located_tree(&image.root);
        let options = locate::Options { skip_inode_tables: true, ..locate::Options::default() };
        let (by_asking, problems) = locate_all(&mut asked, &options);
        assert_eq!(problems, []);
        (by_asking.not_written, (read, by_tables, asked, by_asking))
    });
    // Not decided by their inodes: the empty file, the inline file, files that begin with a hole or
    // were never written, the dirty file, and the 40 fragmented files with two names.
    assert_eq!((by_tables.files, by_tables.from_inode_tables, by_asking.from_inode_tables), (607, 600, 0));
    assert_eq!(by_tables.not_written, by_asking.not_written);
    let places = |tree: &Tree| tree.ids().map(|id| tree.entry(id).placement).collect::<Vec<Placement>>();
    assert_eq!(places(&read), places(&asked));
    assert!(places(&read).iter().filter(|place| matches!(place, Placement::Offset(_))).count() >= 600);
}

#[test]
fn inode_tables_of_all_layouts_are_read() {
    for options in [
        &["-b", "4096", "-O", "bigalloc"][..],
        &["-b", "1024", "-O", "bigalloc"],
        &["-b", "1024", "-O", "bigalloc,^64bit"],
        &["-b", "1024", "-O", "meta_bg,^resize_inode"],
        &["-b", "1024", "-O", "meta_bg,^resize_inode,^sparse_super"],
        &["-b", "4096", "-O", "^64bit,^flex_bg", "-I", "128"],
        &["-b", "4096", "-O", "sparse_super2", "-g", "1024"],
    ] {
        let Some(image) = Image::new("ext4", options) else { return };
        for number in 0..300 {
            image.file(&format!("d{}/{number}", number % 40), vec![1; 5000]);
        }
        image.sync();
        let mut read = located_tree(&image.root);
        let (by_tables, _) = locate_all(&mut read, &locate::Options::default());
        assert_eq!(by_tables.from_inode_tables, 300, "{options:?}");
        let mut asked = located_tree(&image.root);
        locate_all(&mut asked, &locate::Options { skip_inode_tables: true, ..locate::Options::default() });
        let places = |tree: &Tree| tree.ids().map(|id| tree.entry(id).placement).collect::<Vec<Placement>>();
        assert_eq!(places(&read), places(&asked), "{options:?}");
    }
}

#[test]
fn dirty_data_are_written_before_inode_tables_are_read() {
    let Some(image) = Image::new("ext4", &[]) else { return };
    for number in 0..300 {
        image.file(&number.to_string(), vec![1; 5000]);
    }
    let mut tree = located_tree(&image.root);
    let (placed, problems) = locate_all(&mut tree, &locate::Options { sync: true, ..locate::Options::default() });
    assert_eq!((placed.from_inode_tables, placed.not_written, problems.len()), (300, 0, 0));
}

#[test]
fn a_file_system_without_extents_is_reported_once_and_sorted_by_inode() {
    let Some(image) = Image::new("tmpfs", &[]) else { return };
    for number in (0..600).rev() {
        image.file(&number.to_string(), "x");
    }
    let Walked { mut tree, .. } = walked(std::slice::from_ref(&image.root), &Options::default());
    let (summary, problems) = locate_all(&mut tree, &locate::Options::default());
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].is_note() && problems[0].error == WalkError::NoExtentMap);
    assert_eq!(summary.unsupported.iter().map(|(_, files)| *files).collect::<Vec<_>>(), [600]);
    let files = sort(&tree, SortKey::Auto).into_iter().filter(|id| tree.entry(*id).kind == FileKind::File);
    assert!(files.map(|id| tree.entry(id).inode).is_sorted());
    assert_eq!(locate::extents(&tree, id(&tree, "5"), false), Err(WalkError::NoExtentMap));
}

#[test]
fn a_mount_point_has_its_own_identity_and_is_not_entered_on_request() {
    let Some(outer) = Image::new("ext4", &[]) else { return };
    outer.file("above/file", "1");
    outer.file("under", "what lies under the mount");
    fs::create_dir(outer.path("above/inner")).unwrap();
    outer.file("elsewhere", "bound over a file");
    let mount = |args: &[&str], on: &str| {
        let mounted = Command::new("mount").args(args).arg(outer.path(on)).status();
        assert!(mounted.is_ok_and(|status| status.success()), "{args:?} {on}");
    };
    mount(&["-t", "tmpfs", "none"], "above/inner");
    outer.file("above/inner/deep/file", "2");
    let elsewhere = outer.path("elsewhere");
    mount(&["--bind", elsewhere.to_str().unwrap()], "under");
    let all = walked(std::slice::from_ref(&outer.root), &Options::default());
    assert!(all.problems.is_empty(), "{:?}", all.problems);
    let mut seen = paths(&all.tree);
    seen.sort();
    assert_eq!(seen, found(&outer.root));
    assert_eq!(all.tree.devices().len(), 2);
    // The directory entry of a mount point has the inode number of the covered directory.
    let inner = all.tree.open(id(&all.tree, "inner"), OFlags::DIRECTORY).unwrap();
    assert_eq!(inner.stat.st_dev, fs_device(&outer.path("above/inner")));
    assert!(all.tree.open(id(&all.tree, "under"), OFlags::empty()).is_ok());
    let one = walked(std::slice::from_ref(&outer.root), &Options { one_file_system: true, ..Options::default() });
    let seen = paths(&one.tree);
    assert!(seen.contains(&outer.path("above/inner")) && !seen.contains(&outer.path("above/inner/deep")));
}

#[test]
fn a_directory_mounted_within_itself_is_reported_and_not_entered_again() {
    let Some(image) = Image::new("ext4", &[]) else { return };
    image.file("a/b/file", "");
    let (a, b) = (image.path("a"), image.path("a/b"));
    let mounted = Command::new("mount").arg("--bind").args([&a, &b]).status();
    if !mounted.is_ok_and(|status| status.success()) {
        return skipped("no bind mounts here").unwrap_or_default();
    }
    let Walked { tree, problems } = walked(std::slice::from_ref(&image.root), &Options::default());
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert_eq!((problems[0].error, problems[0].path.ends_with(b"/a/b")), (WalkError::Loop, true));
    assert!(tree.len() < 8);
}

#[test]
fn files_that_vanish_during_the_lookup_are_reported_with_their_entries() {
    let Some(image) = Image::new("ext4", &[]) else { return };
    for name in ["one", "two", "three"] {
        image.file(name, vec![1; 5000]);
    }
    image.sync();
    let Walked { mut tree, .. } = walked(std::slice::from_ref(&image.root), &Options::default());
    fs::remove_file(image.path("two")).unwrap();
    let (_, problems) = locate_all(&mut tree, &locate::Options::default());
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].is_gone());
    assert_eq!(problems[0].id, Some(id(&tree, "two")));
    assert!(matches!(placement_of(&tree, "three"), Placement::Offset(_)));
}

#[test]
fn reading_leaves_access_times_unchanged() {
    let Some(image) = Image::new("ext4", &[]) else { return };
    image.file("file", "read me");
    let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    let times = fs::FileTimes::new().set_accessed(old).set_modified(old + std::time::Duration::from_secs(1));
    OpenOptions::new().write(true).open(image.path("file")).unwrap().set_times(times).unwrap();
    let Walked { tree, .. } = walked(std::slice::from_ref(&image.root), &Options::default());
    let opened = tree.open(id(&tree, "file"), OFlags::empty()).unwrap();
    let mut text = String::new();
    std::io::Read::read_to_string(&mut File::from(opened.fd), &mut text).unwrap();
    assert_eq!(text, "read me");
    assert_eq!(fs::metadata(image.path("file")).unwrap().accessed().unwrap(), old);
}

fn fs_device(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(path).unwrap().dev()
}
