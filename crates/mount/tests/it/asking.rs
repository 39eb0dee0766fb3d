//! What a gate is asked, and what it is not: in whose name, for which kind of work, and nothing for what lies in memory.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hoistway_mount::{Ask, Backing, Buffer, Entered, Gate, Job, Operation, Options, WriteBack};
use rustix::fs::{Advice, fadvise};

use crate::support::{Mounted, Parking, as_user, can_mount, scratch};

const ME: u32 = 1234;

struct Stage {
    gate: Arc<Parking>,
    mounted: Mounted,
    source: tempfile::TempDir,
}

fn stage(test: &str, every: u64, options: Options) -> Option<Stage> {
    if !can_mount(test) {
        return None;
    }
    let source = scratch();
    fs::set_permissions(source.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).expect("root may");
    let gate = Parking::new(every, Duration::ZERO);
    let mounted = Mounted::new(source.path(), gate.clone(), options);
    Some(Stage { gate, mounted, source })
}

/// Waits for what the kernel does when it comes to it, 10 s at most.
fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(10);
    while !holds() {
        assert!(Instant::now() < until, "{what}: not within 10 s");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Drops what the file system below keeps of a file in memory. Pages that somebody else is busy with stay at first.
fn to_disk(path: &Path) {
    let file = File::open(path).expect("it is there");
    file.sync_all().expect("it is synced");
    wait_until("nothing of it is in memory", || {
        fadvise(&file, 0, None, Advice::DontNeed).expect("it is forgotten");
        pages_in_memory(&file).is_none_or(|pages| pages == 0)
    });
}

/// By cachestat(2), where the system has it.
fn pages_in_memory(file: &File) -> Option<u64> {
    let (range, mut pages) = ([0u64; 2], [0u64; 5]);
    // SAFETY: the call reads two numbers and writes five, which live through it.
    let result = unsafe { libc::syscall(451, file.as_raw_fd(), range.as_ptr(), pages.as_mut_ptr(), 0) };
    (result == 0).then_some(pages[0])
}

#[test]
fn what_lies_in_memory_is_read_without_asking() {
    let Some(Stage { gate, mounted, source }) = stage("reading from memory", 0, Options::default()) else { return };
    let (below, inside) = (source.path().join("a"), mounted.path().join("a"));
    fs::write(&below, vec![7; 1 << 20]).expect("it is written");
    let mut data = Vec::new();
    File::open(&inside).and_then(|mut file| file.read_to_end(&mut data)).expect("it is read");
    assert_eq!((data.len(), gate.count(Operation::Read)), (1 << 20, 0));
    to_disk(&below);
    fs::write(source.path().join("b"), vec![8; 1 << 20]).expect("it is written");
    to_disk(&source.path().join("b"));
    assert_eq!(fs::read(mounted.path().join("b")).expect("it is read").len(), 1 << 20);
    assert!(gate.count(Operation::Read) > 0);
}

#[test]
fn what_lies_in_memory_below_an_overlay_is_read_and_written_without_asking() {
    if !can_mount("reading from memory below an overlay") {
        return;
    }
    let source = scratch();
    let path = |name: &str| source.path().join(name).to_str().expect("it is plain").to_owned();
    // One overlay cannot be the upper layer of another: what is below is in memory.
    fs::create_dir(path("layers")).expect("it is made");
    fs::create_dir(path("seen")).expect("it is made");
    let Some(_layers) = OtherMount::new(&["-t", "tmpfs", "none"], &path("layers")) else { return };
    for name in ["layers/lower", "layers/upper", "layers/work"] {
        fs::create_dir(path(name)).expect("it is made");
    }
    fs::write(path("layers/lower/a"), vec![7; 1 << 20]).expect("it is written");
    let layers = format!("lowerdir={0}/lower,upperdir={0}/upper,workdir={0}/work", path("layers"));
    let Some(_overlay) = OtherMount::new(&["-t", "overlay", "none", "-o", &layers], &path("seen")) else { return };
    fs::write(path("seen/b"), vec![8; 1 << 20]).expect("it is written");
    let gate = Parking::new(0, Duration::ZERO);
    let mounted = Mounted::new(Path::new(&path("seen")), gate.clone(), Options::default());
    for (name, byte) in [("a", 7), ("b", 8)] {
        assert!(fs::read(mounted.path().join(name)).expect("it is read") == vec![byte; 1 << 20]);
    }
    // A part of a page, of which the rest is in memory.
    let file = OpenOptions::new().write(true).open(mounted.path().join("b")).expect("it is there");
    file.write_all_at(b"x", 100).expect("it is written");
    assert_eq!((gate.count(Operation::Read), gate.count(Operation::Buffered)), (0, 1));
    drop((file, mounted));
}

/// Something that is mounted for as long as this lives.
struct OtherMount(String);

impl OtherMount {
    fn new(arguments: &[&str], at: &str) -> Option<OtherMount> {
        let mounted = std::process::Command::new("mount").args(arguments).arg(at).status();
        if mounted.is_ok_and(|status| status.success()) {
            return Some(OtherMount(at.to_owned()));
        }
        assert!(std::env::var_os("CI").is_none(), "{arguments:?} cannot be mounted");
        eprintln!("skipped: {arguments:?} cannot be mounted");
        None
    }
}

impl Drop for OtherMount {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").args(["-l", &self.0]).status();
    }
}

#[test]
fn reads_that_find_a_part_in_memory_get_the_rest_when_it_is_their_turn() {
    let Some(Stage { gate, mounted, source }) = stage("reading a part from memory", 1, Options::default()) else {
        return;
    };
    let (below, inside) = (source.path().join("a"), mounted.path().join("a"));
    let data: Vec<u8> = (0..1_000_001u32).map(|at| (at % 251) as u8).collect();
    fs::write(&below, &data).expect("it is written");
    to_disk(&below);
    let file = File::open(&below).expect("it is there");
    for at in (0..1_000_000).step_by(100_000) {
        fadvise(&file, 0, None, Advice::Random).expect("no reading ahead");
        file.read_at(&mut [0; 5000], at).expect("it is read into memory");
    }
    assert!(fs::read(&inside).expect("it is read") == data);
    assert!(gate.count(Operation::Read) > 0);
}

#[test]
fn a_copy_is_read_in_whole_turns_and_written_into_memory() {
    // Whether a turn comes at once or later.
    for every in [0, 1] {
        let Some(Stage { gate, mounted, source }) = stage("copying", every, Options::default()) else { return };
        let data: Vec<u8> = (0..2_500_000u32).map(|at| (at % 251) as u8).collect();
        fs::write(source.path().join("a"), &data).expect("it is written");
        to_disk(&source.path().join("a"));
        let from = File::open(mounted.path().join("a")).expect("it is there");
        let to = File::create(mounted.path().join("b")).expect("it is created");
        let mut left = data.len();
        while left > 0 {
            let copied = rustix::fs::copy_file_range(&from, None, &to, None, left).expect("it is copied");
            assert!(copied > 0, "{left} bytes were left");
            left -= copied;
        }
        assert_eq!(rustix::fs::copy_file_range(&from, None, &to, None, 1).expect("it is the end"), 0);
        assert!(fs::read(source.path().join("b")).expect("it is read") == data);
        let shares = gate.count(Operation::Buffered) == 0;
        // Three turns of at most 1 MiB each. What the file system below shares is not written.
        assert!((3..=4).contains(&gate.count(Operation::Read)), "{} turns", gate.count(Operation::Read));
        assert!(shares || gate.count(Operation::Buffered) == 3, "{} writes", gate.count(Operation::Buffered));
        assert_eq!(gate.dirty.load(Ordering::Relaxed), data.len() as u64);
    }
}

/// A gate that counts whose turn it is.
#[derive(Default)]
struct Turns {
    is_later: bool,
    now: Arc<AtomicUsize>,
    handed: Arc<Mutex<Vec<Job>>>,
    /// How often something was written into memory, and that in a turn.
    writes: AtomicUsize,
    in_turn: AtomicUsize,
}

/// It is one's.
struct Turn(Arc<AtomicUsize>);

impl Turn {
    fn begin(now: &Arc<AtomicUsize>) -> Turn {
        now.fetch_add(1, Ordering::SeqCst);
        Turn(now.clone())
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Gate for Turns {
    type Pass<'a> = Option<Turn>;
    type Ticket<'a> = ();
    type Syncing<'a> = ();

    fn enter(&self, ask: &Ask<'_>) -> Entered<Option<Turn>, ()> {
        match ask.operation {
            Operation::Buffered => {
                self.writes.fetch_add(1, Ordering::SeqCst);
                self.in_turn.fetch_add(self.now.load(Ordering::SeqCst), Ordering::SeqCst);
                Entered::Now(None)
            }
            Operation::Read if self.is_later => Entered::Later(()),
            Operation::Read => Entered::Now(Some(Turn::begin(&self.now))),
            _ => Entered::Now(None),
        }
    }

    fn park(&self, (): (), job: Job) {
        let (turn, handed) = (Turn::begin(&self.now), self.handed.clone());
        std::thread::spawn(move || {
            crate::support::carry_out(job);
            drop(turn);
            std::mem::take(&mut *handed.lock().expect("no panic")).into_iter().for_each(crate::support::carry_out);
        });
    }

    fn hand_on(&self, work: Box<dyn FnOnce() + Send>) {
        self.handed.lock().expect("no panic").push(Job::Call(work));
    }

    fn syncing(&self, _: &Arc<Backing>) {}

    fn synced(&self, (): ()) {}
}

#[test]
fn a_copy_keeps_no_disk_while_it_writes_to_another() {
    if !can_mount("copying without keeping the disk") {
        return;
    }
    for is_later in [false, true] {
        let source = scratch();
        fs::write(source.path().join("a"), vec![7; 1 << 20]).expect("it is written");
        to_disk(&source.path().join("a"));
        let gate = Arc::new(Turns { is_later, ..Turns::default() });
        let mounted = Mounted::new(source.path(), gate.clone(), Options::default());
        let from = File::open(mounted.path().join("a")).expect("it is there");
        let to = File::create(mounted.path().join("b")).expect("it is created");
        let copied = rustix::fs::copy_file_range(&from, None, &to, None, 1 << 20).expect("it is copied");
        assert_eq!(copied, 1 << 20);
        if gate.writes.load(Ordering::SeqCst) == 0 {
            eprintln!("skipped: the file system here shares what is copied");
            return;
        }
        assert_eq!(fs::read(source.path().join("b")).expect("it is there"), vec![7; 1 << 20]);
        assert_eq!(gate.in_turn.load(Ordering::SeqCst), 0, "the turn of a read was kept (later: {is_later})");
    }
}

#[test]
fn names_in_memory_are_looked_up_without_asking() {
    let Some(Stage { gate, mounted, source }) = stage("looking up in memory", 0, Options::default()) else { return };
    fs::write(source.path().join("a"), "").expect("it is written");
    for _ in 0..10 {
        fs::metadata(mounted.path().join("a")).expect("it is there");
    }
    assert_eq!(gate.count(Operation::Look), 0);
}

#[test]
fn writes_into_memory_are_buffered_and_dirty_and_a_sync_cleans_them() {
    let Some(Stage { gate, mounted, source: _source }) = stage("buffered writes", 0, Options::default()) else {
        return;
    };
    let mut file = File::create(mounted.path().join("a")).expect("it is created");
    file.write_all(&[1; 300_000]).expect("it is written");
    assert_eq!(
        (gate.dirty.load(Ordering::Relaxed), gate.count(Operation::Write), gate.count(Operation::Sync)),
        (300_000, 0, 0)
    );
    let cleaned = gate.cleaned.load(Ordering::Relaxed);
    file.sync_data().expect("it is synced");
    assert_eq!((gate.count(Operation::Sync), gate.cleaned.load(Ordering::Relaxed)), (1, cleaned + 1));
}

#[test]
fn a_synchronous_write_is_followed_by_a_sync_before_it_is_answered() {
    let Some(Stage { gate, mounted, source: _source }) = stage("synchronous writes", 0, Options::default()) else {
        return;
    };
    for (number, flag) in [libc::O_SYNC, libc::O_DSYNC].into_iter().enumerate() {
        let path = mounted.path().join(format!("a{number}"));
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .custom_flags(flag)
            .open(path)
            .expect("it is created");
        for count in 1..=5 {
            file.write_at(b"durable", count * 10).expect("it is written");
            assert_eq!(gate.count(Operation::Sync), number as u64 * 5 + count);
        }
    }
}

#[test]
fn direct_writes_are_writes_that_are_waited_for() {
    let Some(Stage { gate, mounted, source: _source }) = stage("direct writes", 0, Options::default()) else { return };
    let path = mounted.path().join("a");
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .custom_flags(libc::O_DIRECT)
        .open(path)
        .expect("it is created");
    file.write_all_at(&Buffer::new(65_536), 0).expect("it is written");
    assert!(gate.count(Operation::Write) > 0);
    assert_eq!((gate.count(Operation::Buffered), gate.dirty.load(Ordering::Relaxed)), (0, 0));
}

#[test]
fn a_file_that_is_cut_to_nothing_or_removed_is_clean() {
    let Some(Stage { gate, mounted, source: _source }) = stage("cutting and removing", 0, Options::default()) else {
        return;
    };
    let path = mounted.path().join("a");
    let cleaned = || gate.cleaned.load(Ordering::Relaxed);
    let file = File::create(&path).expect("it is created");
    file.write_all_at(&[1; 100], 0).expect("it is written");
    let before = cleaned();
    file.set_len(0).expect("it is cut");
    assert_eq!(cleaned(), before + 1);
    file.write_all_at(&[1; 100], 0).expect("it is written");
    drop(file);
    fs::remove_file(&path).expect("it is removed");
    // The kernel tells of the last close when it comes to it, before that or after.
    wait_until("the removed file is clean", || cleaned() == before + 2);
    let file = File::create(&path).expect("it is created");
    file.write_all_at(&[1; 100], 0).expect("it is written");
    fs::remove_file(&path).expect("it is removed");
    assert_eq!(cleaned(), before + 2, "who has it open may read it still");
    drop(file);
    wait_until("the removed file is clean when it is closed", || cleaned() == before + 3);
}

#[test]
fn a_file_whose_name_another_takes_is_clean() {
    let Some(Stage { gate, mounted, source: _source }) = stage("renaming over a file", 0, Options::default()) else {
        return;
    };
    let (old, new) = (mounted.path().join("old"), mounted.path().join("new"));
    let cleaned = || gate.cleaned.load(Ordering::Relaxed);
    fs::write(&new, [2; 100]).expect("it is written");
    let before = cleaned();
    fs::hard_link(&new, mounted.path().join("too")).expect("another name of it");
    fs::rename(mounted.path().join("too"), &new).expect("that does nothing");
    fs::remove_file(mounted.path().join("too")).expect("it is there still");
    fs::write(&old, [1; 100]).expect("it is written");
    assert_eq!(cleaned(), before, "all of them have a name");
    fs::rename(&new, &old).expect("it is moved");
    // The kernel tells of the last close when it comes to it, before that or after.
    wait_until("the other one is gone", || cleaned() == before + 1);
    assert_eq!(fs::read(&old).expect("it is there"), [2; 100]);
}

#[test]
fn what_is_appended_is_dirty_where_the_file_ends_below() {
    for every in [0, 1] {
        let Some(Stage { gate, mounted, source }) = stage("appending", every, Options::default()) else { return };
        let mut file = OpenOptions::new().append(true).create(true).open(mounted.path().join("a")).expect("a file");
        file.write_all(&[1; 10]).expect("it is written");
        let last = || *gate.dirty_last.lock().expect("no panic");
        assert_eq!(last(), (0, 10));
        // Of this the kernel has not heard.
        let beside = OpenOptions::new().append(true).open(source.path().join("a")).expect("it is there");
        (&beside).write_all(&[2; 5000]).expect("it is written");
        file.write_all(&[3; 20]).expect("it is written");
        assert_eq!(last(), (5010, 20));
    }
}

#[test]
fn who_asks_is_the_thread_and_its_user() {
    let Some(Stage { gate, mounted, source: _source }) = stage("who asks", 2, Options::default()) else { return };
    let path = mounted.path().join("a");
    let tid = as_user(ME, &[], || {
        fs::write(&path, "mine").expect("it is written");
        rustix::thread::gettid().as_raw_nonzero().get() as u32
    });
    let asker = gate.asker(Operation::Buffered).expect("somebody asked");
    assert_eq!((asker.tid, asker.uid, asker.gid), (tid, ME, ME));
}

#[test]
fn what_the_kernel_writes_back_counts_for_who_opened_the_file_for_writing_last() {
    let options = Options { write_back: WriteBack::Kernel, ..Options::default() };
    let Some(Stage { gate, mounted, source: _source }) = stage("the kernel's write-back", 0, options) else { return };
    let path = mounted.path().join("a");
    let file = as_user(ME, &[], || File::create(&path).expect("it is created"));
    file.write_all_at(&[1; 200_000], 0).expect("it is gathered");
    assert_eq!(gate.dirty.load(Ordering::Relaxed), 0);
    file.sync_all().expect("it is synced");
    assert_eq!(gate.dirty.load(Ordering::Relaxed), 200_000);
    assert_eq!(gate.asker(Operation::Gathered).map(|asker| asker.uid), Some(ME));
}

#[test]
fn files_that_go_past_the_gate_are_read_and_written_without_asking() {
    let past = |asker: &hoistway_mount::Asker, backing: &Backing| {
        let path = fs::read_link(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&backing.fd)));
        asker.uid == 0 && path.is_ok_and(|path| path.to_string_lossy().contains("past"))
    };
    let options = Options { bypass: Some(Box::new(past)), ..Options::default() };
    let Some(Stage { gate, mounted, source }) = stage("files past the gate", 0, options) else { return };
    for (name, expected) in [("past", 0), ("through", 100_000)] {
        let path = mounted.path().join(name);
        let mut file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).expect("it is created");
        file.write_all(&[5; 100_000]).expect("it is written");
        assert_eq!(fs::read(&path).expect("it is read"), vec![5; 100_000]);
        assert_eq!(gate.dirty.load(Ordering::Relaxed), expected, "{name}");
        assert_eq!(fs::metadata(&path).expect("it is there").len(), 100_000);
        assert_eq!(fs::read(source.path().join(name)).expect("it is below").len(), 100_000);
    }
}

#[test]
fn changes_beside_the_mount_are_seen() {
    for every in [0, 2] {
        let options = Options { valid: Duration::from_millis(50), ..Options::default() };
        let Some(Stage { mounted, source, .. }) = stage("changes beside the mount", every, options) else { return };
        let (below, inside) = (source.path().join("a"), mounted.path().join("a"));
        fs::write(&below, "first").expect("it is written");
        assert_eq!(fs::read(&inside).expect("it is read"), b"first");
        // The same size, and soon after: only the times tell.
        for text in ["other", "third", "fifth"] {
            fs::write(&below, text).expect("it is written");
            std::thread::sleep(Duration::from_millis(60));
            assert_eq!(fs::read(&inside).expect("it is read"), text.as_bytes());
        }
        fs::rename(&below, source.path().join("b")).expect("it is moved");
        std::thread::sleep(Duration::from_millis(60));
        assert!(!inside.exists() && mounted.path().join("b").exists());
    }
}

#[test]
fn an_inode_that_is_used_again_is_another_file() {
    let options = Options { valid: Duration::from_secs(60), ..Options::default() };
    let Some(Stage { mounted, source, .. }) = stage("inodes that are used again", 0, options) else { return };
    let mut reused = 0;
    for number in 0..50 {
        let (old, new) = (format!("old-{number}"), format!("new-{number}"));
        fs::write(source.path().join(&old), "old").expect("it is written");
        let before = fs::metadata(mounted.path().join(&old)).expect("it is seen").ino();
        fs::remove_file(source.path().join(&old)).expect("it is removed behind the mount");
        fs::create_dir(source.path().join(&new)).expect("a directory takes its number, if the file system likes");
        let after = fs::metadata(mounted.path().join(&new)).expect("it is seen");
        assert!(after.is_dir());
        reused += u32::from(before == after.ino());
        fs::remove_dir(source.path().join(&new)).expect("it is removed");
    }
    eprintln!("{reused} numbers of 50 were used again");
}

#[test]
fn the_kernel_forgets_and_so_does_the_table() {
    let Some(Stage { mounted, source, .. }) = stage("forgetting", 0, Options::default()) else { return };
    for number in 0..2000 {
        fs::write(source.path().join(format!("f{number}")), "").expect("it is written");
    }
    for entry in fs::read_dir(mounted.path()).expect("a listing") {
        entry.and_then(|entry| entry.metadata()).expect("it is there");
    }
    let counts = || mounted.session.as_ref().expect("it is mounted").counts();
    assert!(counts().known > 2000, "{:?}", counts());
    assert!(counts().held < 10, "files hold no descriptors where handles work: {:?}", counts());
    for entry in fs::read_dir(mounted.path()).expect("a listing") {
        fs::remove_file(entry.expect("an entry").path()).expect("it is removed");
    }
    let until = std::time::Instant::now() + Duration::from_secs(5);
    while counts().known > 10 && std::time::Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(counts().known <= 10, "{:?}", counts());
}

#[test]
fn a_write_to_a_part_of_a_page_reads_the_rest_in_its_turn() {
    for (every, reads) in [(0, true), (0, false), (1, true)] {
        let Some(Stage { gate, mounted, source }) = stage("parts of pages", every, Options::default()) else { return };
        let (below, inside) = (source.path().join("a"), mounted.path().join("a"));
        fs::write(&below, vec![7; 1 << 20]).expect("it is written");
        to_disk(&below);
        let file = OpenOptions::new().read(reads).write(true).open(&inside).expect("it opens");
        let mut expected = vec![7; 1 << 20];
        let asked = |offset: usize, length: usize, expected: &mut Vec<u8>| {
            let before = gate.count(Operation::Read);
            let data = vec![8; length];
            file.write_all_at(&data, offset as u64).expect("it is written");
            expected.resize(expected.len().max(offset + length), 0);
            expected[offset..offset + length].copy_from_slice(&data);
            gate.count(Operation::Read) - before
        };
        for (offset, length, expects, what) in [
            (100_000, 10, 1, "a part of a page"),
            (100_010, 10, 0, "the same page again"),
            (204_800, 8192, 0, "whole pages"),
            (300_000, 4096, 2, "parts of two pages, which the kernel hands over one by one"),
            (499_712, 100, 1, "the beginning of a page"),
            (599_712, 8192, 2, "parts of two pages and a whole one"),
            (1 << 20, 1000, 0, "behind the end"),
            ((1 << 20) + 1000, 5000, 0, "behind the end, from what was written just now on"),
        ] {
            assert_eq!(asked(offset, length, &mut expected), expects, "{what}, read {reads}, every {every}");
        }
        drop(file);
        assert!(fs::read(&inside).expect("it is read") == expected, "read {reads}, every {every}");
    }
}

#[test]
fn a_file_without_a_name_is_closed_in_its_turn() {
    let Some(Stage { gate, mounted, source: _source }) = stage("the last close", 0, Options::default()) else { return };
    let inside = mounted.path().join("a");
    fs::write(&inside, "x").expect("it is written");
    for writes in [true, false] {
        fs::write(&inside, "x").expect("it is written");
        let file = OpenOptions::new().read(true).write(writes).open(&inside).expect("it opens");
        fs::remove_file(&inside).expect("it is removed");
        let before = gate.count(Operation::Change);
        drop(file);
        // The kernel tells of it after the close.
        wait_until(&format!("somebody is asked, opened to write: {writes}"), || gate.count(Operation::Change) > before);
    }
}

#[test]
fn the_gate_is_told_when_a_number_is_another_file_s() {
    let Some(Stage { gate, mounted, source }) = stage("numbers that are given away", 0, Options::default()) else {
        return;
    };
    let inside = mounted.path().join("a");
    let gone = || std::mem::take(&mut *gate.gone.lock().expect("no panic"));
    let made = || {
        fs::write(&inside, "x").expect("it is written");
        let number = fs::metadata(source.path().join("a")).expect("it is there").ino();
        gone();
        number
    };
    let number = made();
    fs::hard_link(&inside, mounted.path().join("b")).expect("it is linked");
    fs::remove_file(mounted.path().join("b")).expect("it is removed");
    assert!(gone().is_empty(), "it has a name still");
    fs::remove_file(&inside).expect("it is removed");
    // What the kernel has to close yet is closed soon.
    wait_until("its last name was its end", || gone().contains(&number));
    let number = made();
    let file = File::open(&inside).expect("it is there");
    fs::remove_file(&inside).expect("it is removed");
    assert!(!gone().contains(&number), "somebody has it open");
    drop(file);
    wait_until("its last closing was its end", || gone().contains(&number));
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &inside,
        rustix::fs::FileType::RegularFile,
        rustix::fs::Mode::from_raw_mode(0o644),
        0,
    )
    .expect("it is made");
    let number = fs::metadata(source.path().join("a")).expect("it is there").ino();
    assert!(gone().contains(&number), "a new one has the number");
}

/// A gate that keeps what it is asked for until it is let.
#[derive(Default)]
struct Held {
    holds: AtomicBool,
    jobs: Mutex<Vec<Job>>,
}

impl Gate for Held {
    type Pass<'a> = ();
    type Ticket<'a> = ();
    type Syncing<'a> = ();

    fn enter(&self, _: &Ask<'_>) -> Entered<(), ()> {
        if self.holds.load(Ordering::SeqCst) { Entered::Later(()) } else { Entered::Now(()) }
    }

    fn park(&self, (): (), job: Job) {
        self.jobs.lock().expect("no panic").push(job);
    }

    fn syncing(&self, _: &Arc<Backing>) {}

    fn synced(&self, (): ()) {}
}

#[test]
fn a_file_that_is_not_open_is_opened_in_its_turn() {
    if !can_mount("opening in turn") {
        return;
    }
    let source = scratch();
    let below = source.path().join("a");
    fs::write(&below, "x").expect("it is written");
    let gate = Arc::new(Held::default());
    let mounted =
        Mounted::new(source.path(), gate.clone(), Options { valid: Duration::from_secs(60), ..Options::default() });
    let inside = mounted.path().join("a");
    fs::metadata(&inside).expect("it is seen");
    gate.holds.store(true, Ordering::SeqCst);
    let changed = std::thread::spawn(move || fs::set_permissions(&inside, PermissionsExt::from_mode(0o600)));
    while gate.jobs.lock().expect("no panic").is_empty() {
        std::thread::sleep(Duration::from_millis(2));
    }
    // Who had it open by now would not notice.
    fs::remove_file(&below).expect("it is removed");
    gate.holds.store(false, Ordering::SeqCst);
    std::mem::take(&mut *gate.jobs.lock().expect("no panic")).into_iter().for_each(crate::support::carry_out);
    assert!(changed.join().expect("no panic").is_err(), "it was open before its turn");
}

#[test]
fn names_of_attributes_that_are_roots_are_told_to_root_alone() {
    let Some(Stage { mounted, source, .. }) = stage("names of attributes", 0, Options::default()) else { return };
    let (below, inside) = (source.path().join("a"), mounted.path().join("a"));
    fs::write(&below, "x").expect("it is written");
    fs::set_permissions(&below, PermissionsExt::from_mode(0o666)).expect("root may");
    for name in ["trusted.one", "user.one", "trusted.two"] {
        rustix::fs::setxattr(&below, name, b"1", rustix::fs::XattrFlags::empty()).expect("it can be set");
    }
    let names = || {
        let length = rustix::fs::listxattr_query(&inside).expect("it has some");
        let mut names = vec![0; length];
        let told = rustix::fs::listxattr(&inside, &mut names[..]).expect("there is room");
        assert_eq!(told, length);
        let mut names: Vec<String> = names
            .split(|byte| *byte == 0)
            .map(|name| String::from_utf8_lossy(name).into_owned())
            .filter(|name| name.contains(".one") || name.contains(".two"))
            .collect();
        names.sort();
        names
    };
    assert_eq!(names(), ["trusted.one", "trusted.two", "user.one"]);
    assert_eq!(as_user(ME, &[], names), ["user.one"]);
}
