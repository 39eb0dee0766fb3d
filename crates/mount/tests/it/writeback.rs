//! Write-back: many files, no free descriptors, and a disk that stops accepting data.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use hoistway_control::AdminTarget as _;
use hoistway_mount::{Options, WriteBack};
use rustix::fs::{FallocateFlags, fallocate};

use crate::support::{
    MountProcess, MountVariant, Mounted, can_mount, has, memory_state, run, scheduling, scratch, wait_until,
};

#[test]
fn many_files_in_sequence_do_not_exhaust_descriptors() {
    if !can_mount("few descriptors") {
        return;
    }
    for write_back in [WriteBack::Ours, WriteBack::Kernel] {
        let place = scratch();
        let mounted = MountProcess::with_descriptors(place.path(), MountVariant::scheduled(write_back), 256);
        for folder in 0..400 {
            fs::create_dir(mounted.path().join(format!("d{folder}"))).expect("a directory");
        }
        for number in 0..2000 {
            let path = mounted.path().join(format!("d{}/f{number}", number % 400));
            fs::write(&path, format!("{number}")).unwrap_or_else(|error| panic!("file {number}: {error}"));
        }
        drop(mounted);
        for number in 0..2000 {
            let found = fs::read_to_string(place.path().join(format!("d{}/f{number}", number % 400)));
            assert_eq!(found.expect("it is there"), number.to_string());
        }
    }
}

#[test]
fn without_a_free_descriptor_the_error_is_that_of_the_system() {
    if !can_mount("no descriptors") {
        return;
    }
    let place = scratch();
    for number in 0..300 {
        fs::write(place.path().join(format!("f{number}")), "x").expect("it is written");
    }
    let mounted = MountProcess::with_descriptors(place.path(), MountVariant::scheduled(WriteBack::Ours), 256);
    let mut open = Vec::new();
    let reported = loop {
        match File::open(mounted.path().join(format!("f{}", open.len()))) {
            Ok(file) => open.push(file),
            Err(error) => break error.raw_os_error(),
        }
    };
    assert_eq!(reported, Some(libc::ENFILE), "the caller itself has free descriptors");
    drop(open);
    // The kernel reports the close of a file a moment later.
    let mut found = None;
    wait_until("there are free descriptors again", || match fs::read(mounted.path().join("f299")) {
        Err(error) if error.raw_os_error() == Some(libc::ENFILE) => false,
        read => {
            found = Some(read);
            true
        }
    });
    assert_eq!(found.expect("it was read").expect("it is there"), b"x");
}

/// A file system on an overcommitted disk: after a while writes fail.
struct Failing {
    place: tempfile::TempDir,
}

impl Failing {
    fn new() -> Failing {
        let failing = Failing { place: scratch() };
        let (memory, at) = (failing.place.path().join("memory"), failing.at());
        fs::create_dir(&memory).and_then(|()| fs::create_dir(&at)).expect("directories");
        run("mount", &["-t", "tmpfs", "-o", "size=32m", "tmpfs", text(&memory)]);
        let image = memory.join("image");
        File::create(&image).and_then(|image| image.set_len(64 << 20)).expect("an image");
        // No further metadata blocks are needed, and there is no journal that could fail.
        let options = "lazy_itable_init=0,lazy_journal_init=0";
        run("mkfs.ext4", &["-q", "-F", "-O", "^has_journal", "-E", options, text(&image)]);
        run("mount", &["-o", "loop,errors=continue", text(&image), text(&at)]);
        failing
    }

    fn at(&self) -> PathBuf {
        self.place.path().join("volume")
    }

    /// Makes data writes fail from now on.
    fn fills(&self) {
        run("sync", &["-f", text(&self.at())]);
        let filler = File::create(self.place.path().join("memory/filler")).expect("a file");
        let mut bytes = 32 << 20;
        while bytes >= 4096 {
            let end = filler.metadata().expect("it is open").len();
            if fallocate(&filler, FallocateFlags::empty(), end, bytes).is_err() {
                bytes /= 2;
            }
        }
    }

    fn empties(&self) {
        fs::remove_file(self.place.path().join("memory/filler")).expect("it is there");
    }
}

impl Drop for Failing {
    fn drop(&mut self) {
        for at in [self.at(), self.place.path().join("memory")] {
            let _ = std::process::Command::new("umount").args(["-l", text(&at)]).status();
        }
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path")
}

#[test]
fn a_write_back_error_is_reported_once_to_each_later_handle() {
    if !can_mount("errors of write-back") || !has("errors of write-back", "mkfs.ext4") {
        return;
    }
    let disk = Failing::new();
    let gate = scheduling(&disk.at(), WriteBack::Ours);
    let mounted = Mounted::new(&disk.at(), gate.clone(), Options::default());
    let (path, other) = (mounted.path().join("a"), mounted.path().join("b"));
    fs::write(&other, "fine").and_then(|()| File::open(&other)?.sync_all()).expect("there is room");
    let early = File::create(&path).expect("it is created");
    disk.fills();
    let client = || gate.admin().client(rustix::thread::gettid().as_raw_nonzero().get() as u64);
    let before = client().map_or(0, |client| client.written_bytes);
    early.write_all_at(&[7; 200_000], 0).expect("that is into memory");
    fs::write(&path, vec![8; 200_000]).expect("that too");
    // The data become a second old, and their write-back fails.
    let below = File::open(disk.at().join("a")).expect("it is there");
    wait_until("nothing waits for write-back", || {
        memory_state(&below).is_none_or(|state| (state.dirty, state.writeback) == (0, 0))
            && client().is_some_and(|client| client.in_flight == 0 && client.written_bytes >= before + 200_000)
    });
    drop(below);
    let (late, later) = (File::open(&path).expect("it opens"), File::open(&path).expect("it opens"));
    disk.empties();
    let sync = |file: &File| file.sync_all().map_err(|error| error.raw_os_error());
    // The kernel chooses the error of an overcommitted disk.
    let reported = sync(&early);
    assert!(matches!(reported, Err(Some(libc::EIO | libc::ENOSPC))), "the early handle reports it: {reported:?}");
    assert_eq!(sync(&early), Ok(()), "once");
    for (file, handle) in [(&late, "late"), (&later, "later")] {
        assert_eq!(sync(file), reported, "the {handle} handle reports it");
        assert_eq!(sync(file), Ok(()), "the {handle} handle reports it once");
    }
    let at_last = File::open(&path).expect("it opens");
    assert_eq!(sync(&at_last), Ok(()), "other handles have reported it");
    assert_eq!(File::open(&other).and_then(|file| file.sync_all()).map_err(drop), Ok(()), "another file has none");
}
