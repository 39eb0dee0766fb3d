//! Write-back by the kernel: what it caches is taken into account where the file below lacks it.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use hoistway_mount::WriteBack;
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

use crate::support::{MountProcess, MountVariant, Volume, can_mount, has, scratch, wait_until};

const MIB: u64 = 1 << 20;

fn variants() -> [MountVariant; 3] {
    [MountVariant::open, MountVariant::waiting, MountVariant::scheduled].map(|variant| variant(WriteBack::Kernel))
}

fn new_file(path: &Path) -> File {
    File::options().read(true).write(true).create(true).truncate(true).open(path).expect("it is created")
}

/// Returns the ranges of a file that hold data.
fn data_ranges(file: &File) -> Vec<(u64, u64)> {
    let mut ranges = Vec::new();
    let mut at = 0;
    loop {
        match seek(file, SeekFrom::Data(at)) {
            Ok(first) => {
                at = seek(file, SeekFrom::Hole(first)).expect("every file has a hole at its end");
                ranges.push((first, at));
            }
            Err(error) => {
                assert_eq!(error, Errno::NXIO);
                return ranges;
            }
        }
    }
}

#[test]
fn a_seek_finds_data_that_were_just_written() {
    if !can_mount("seeks to cached data") {
        return;
    }
    for variant in variants() {
        let source = scratch();
        let mounted = MountProcess::new(source.path(), variant);
        let file = new_file(&mounted.path().join("a"));
        for at in [0, 4 * MIB, 8 * MIB] {
            file.write_all_at(&[7; 65_536], at).expect("it is written");
        }
        let expected = [0, 4 * MIB, 8 * MIB].map(|at| (at, at + 65_536));
        assert_eq!(data_ranges(&file), expected, "{variant:?}");
        // Data that follow the first seek, through another handle.
        let again = File::options().write(true).open(mounted.path().join("a")).expect("it is there");
        again.write_all_at(&[8; 4096], 12 * MIB).expect("it is written");
        assert_eq!(data_ranges(&file).last(), Some(&(12 * MIB, 12 * MIB + 4096)), "{variant:?}");
        drop((file, again));
        let reader = File::open(mounted.path().join("a")).expect("it is there");
        assert_eq!(data_ranges(&reader).len(), 4, "{variant:?}");
    }
}

#[test]
fn cp_copies_data_that_were_just_written_among_holes() {
    if !can_mount("cp of cached data") {
        return;
    }
    for variant in variants() {
        let source = scratch();
        let mounted = MountProcess::new(source.path(), variant);
        let (from, to) = (mounted.path().join("from"), source.path().join("to"));
        let file = new_file(&from);
        file.set_len(16 * MIB).expect("it is extended");
        for number in 0..16 {
            file.write_all_at(&[number as u8 + 1; 10_000], number * MIB + 100).expect("it is written");
        }
        let status = Command::new("cp").arg("--sparse=auto").arg(&from).arg(&to).status().expect("cp starts");
        assert!(status.success());
        let copied = fs::read(&to).expect("it is there");
        let is_complete = (0..16).all(|number| {
            let at = number * MIB as usize + 100;
            copied.get(at..at + 10_000).is_some_and(|data| data.iter().all(|byte| usize::from(*byte) == number + 1))
        });
        assert!(is_complete && copied.len() as u64 == 16 * MIB, "{variant:?}");
    }
}

#[test]
fn many_seeks_at_once_do_not_block_the_mount() {
    if !can_mount("many seeks") {
        return;
    }
    let source = scratch();
    let mounted = MountProcess::new(source.path(), MountVariant::waiting(WriteBack::Kernel));
    // More than there are session threads.
    std::thread::scope(|scope| {
        for number in 0..100 {
            let path = mounted.path().join(number.to_string());
            scope.spawn(move || {
                let file = new_file(&path);
                for at in 0..5 {
                    file.write_all_at(&[1; 4096], at * MIB).expect("it is written");
                    assert_eq!(seek(&file, SeekFrom::Data(at * MIB)), Ok(at * MIB));
                }
            });
        }
    });
}

/// Waits until a file has this size; the kernel reports the close of a file a moment later.
fn wait_for_size(path: &Path, expected: u64) {
    wait_until(&format!("the size is {expected}"), || fs::metadata(path).expect("it is there").len() == expected);
}

fn check_usable(path: &Path, size: u64) {
    let file = File::options().read(true).write(true).open(path).expect("it opens");
    // Names are valid for a second.
    std::thread::sleep(Duration::from_millis(1200));
    assert_eq!(fs::metadata(path).expect("it is there").len(), size);
    file.write_all_at(b"new", 0).and_then(|()| file.sync_all()).expect("it can be written");
    let mut start = [0; 3];
    file.read_exact_at(&mut start, 0).expect("it can be read");
    assert_eq!((&start, file.metadata().expect("it is open").len()), (b"new", size));
}

#[test]
fn the_size_is_that_of_the_disk_after_a_write_beyond_the_largest_file() {
    if !can_mount("the largest file") || !has("the largest file", "mkfs.ext4") {
        return;
    }
    let volume = Volume::new("ext4", 64);
    for (number, variant) in variants().into_iter().enumerate() {
        let mounted = MountProcess::new(&volume.path(), variant);
        let path = mounted.path().join(number.to_string());
        let file = new_file(&path);
        file.write_all_at(&[1; 5000], 0).and_then(|()| file.sync_all()).expect("it is written");
        // The largest file of ext4 has 16 TiB with blocks of 4 KiB, and less with smaller ones.
        let written = file.write_all_at(b"far", 1 << 45).and_then(|()| file.sync_all());
        assert_eq!(written.map_err(|error| error.raw_os_error()), Err(Some(libc::EFBIG)), "{variant:?}");
        drop(file);
        wait_for_size(&path, 5000);
        check_usable(&path, 5000);
    }
}

#[test]
fn the_size_is_that_of_the_disk_after_the_disk_was_full() {
    if !can_mount("a full disk") || !has("a full disk", "mkfs.ext4") {
        return;
    }
    let volume = Volume::new("ext4", 16);
    let mounted = MountProcess::new(&volume.path(), MountVariant::open(WriteBack::Kernel));
    let path = mounted.path().join("a");
    let file = new_file(&path);
    let written: io::Result<()> =
        (0..32).try_for_each(|at| file.write_all_at(&vec![1; MIB as usize], at * MIB)).and_then(|()| file.sync_all());
    assert_eq!(written.map_err(|error| error.raw_os_error()), Err(Some(libc::ENOSPC)));
    drop(file);
    // The kernel writes pages back in any order: the file may have holes where writes failed.
    let below = fs::metadata(volume.path().join("a")).expect("it is there");
    assert!(below.blocks() * 512 < 16 * MIB, "{} blocks of 512 bytes", below.blocks());
    wait_for_size(&path, below.len());
    check_usable(&path, below.len());
}

#[test]
fn a_removed_file_leaves_no_error_for_syncfs() {
    if !can_mount("syncfs after a removal") {
        return;
    }
    for variant in variants() {
        let source = scratch();
        let mounted = MountProcess::new(source.path(), variant);
        let root = File::open(mounted.path()).expect("it is there");
        for number in 0..20 {
            let (new, old) = (mounted.path().join("new"), mounted.path().join("old"));
            // Written pages have times that the kernel sends later.
            fs::write(&new, vec![7; 8192]).expect("it is written");
            fs::rename(&new, &old).expect("it replaces");
            assert_eq!(rustix::fs::syncfs(&root), Ok(()), "{variant:?}, replacement {number}");
        }
        fs::remove_file(mounted.path().join("old")).expect("it is removed");
        assert_eq!(rustix::fs::syncfs(&root), Ok(()), "{variant:?}, after the removal");
    }
}
