//! Requests that reach the gate: the caller, the kind of request, and none for cached data.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hoistway_mount::{Admission, Backing, Buffer, Gate, GateRequest, Job, Operation, Options, WriteBack};
use rustix::fs::{Advice, fadvise};

use crate::support::{
    Mounted, Parking, as_user, can_mount, drop_inode_caches, hold, memory_state, scratch, wait_until,
};

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

/// Drops cached pages of the file below. Pages that are in use stay at first.
fn to_disk(path: &Path) {
    let file = File::open(path).expect("it is there");
    file.sync_all().expect("it is synced");
    wait_until("nothing of it is in memory", || {
        fadvise(&file, 0, None, Advice::DontNeed).expect("it is forgotten");
        memory_state(&file).is_none_or(|state| state.cached == 0)
    });
}

/// Number of attempts of tests that other programs can disturb, by a sync(2) or a change of mounts.
const ATTEMPTS: usize = 20;

#[test]
fn cached_data_are_read_without_a_gate_request() {
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
fn cached_data_below_an_overlay_are_read_and_written_without_a_gate_request() {
    if !can_mount("reading from memory below an overlay") {
        return;
    }
    let source = scratch();
    let path = |name: &str| source.path().join(name).to_str().expect("it is plain").to_owned();
    // An overlay cannot be the upper layer of another: the file system below is tmpfs.
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
    // A part of a page whose rest is cached.
    let file = OpenOptions::new().write(true).open(mounted.path().join("b")).expect("it is there");
    file.write_all_at(b"x", 100).expect("it is written");
    assert_eq!((gate.count(Operation::Read), gate.count(Operation::BufferedWrite)), (0, 1));
    drop((file, mounted));
}

/// A file system mounted for the lifetime of this value.
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
fn a_partly_cached_read_gets_the_rest_after_dispatch() {
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
fn a_copy_is_read_in_large_requests_and_written_into_the_page_cache() {
    // Dispatched at once, or later.
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
        let shares = gate.count(Operation::BufferedWrite) == 0;
        // Three requests of at most 1 MiB each. A file system that shares extents writes nothing.
        assert!((3..=4).contains(&gate.count(Operation::Read)), "{} turns", gate.count(Operation::Read));
        assert!(shares || gate.count(Operation::BufferedWrite) == 3, "{} writes", gate.count(Operation::BufferedWrite));
        assert_eq!(gate.dirty.load(Ordering::Relaxed), data.len() as u64);
    }
}

/// A gate that counts requests.
#[derive(Default)]
struct Turns {
    is_later: bool,
    now: Arc<AtomicUsize>,
    handed: Arc<Mutex<Vec<Job>>>,
    /// Buffered writes, and those of them made during a dispatched request.
    writes: AtomicUsize,
    in_turn: AtomicUsize,
}

/// A dispatch slot.
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
    type Slot<'a> = Option<Turn>;
    type Ticket<'a> = ();
    type SyncGuard<'a> = ();

    fn admit(&self, ask: &GateRequest<'_>) -> Admission<Option<Turn>, ()> {
        match ask.operation {
            Operation::BufferedWrite => {
                self.writes.fetch_add(1, Ordering::SeqCst);
                self.in_turn.fetch_add(self.now.load(Ordering::SeqCst), Ordering::SeqCst);
                Admission::Now(None)
            }
            Operation::Read if self.is_later => Admission::Later(()),
            Operation::Read => Admission::Now(Some(Turn::begin(&self.now))),
            _ => Admission::Now(None),
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

    fn spawn(&self, work: Box<dyn FnOnce() + Send>) {
        self.handed.lock().expect("no panic").push(Job::Call(work));
    }

    fn begin_sync(&self, _: &Arc<Backing>) {}

    fn finish_sync(&self, (): ()) {}
}

#[test]
fn a_copy_holds_no_slot_of_the_source_disk_while_it_writes() {
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
fn cached_names_are_looked_up_without_a_gate_request() {
    let mut counts = Vec::new();
    // The kernel may need a request while another program mounts or renames something.
    for _ in 0..ATTEMPTS {
        let Some(Stage { gate, mounted, source }) = stage("looking up in memory", 0, Options::default()) else {
            return;
        };
        fs::write(source.path().join("a"), "").expect("it is written");
        for _ in 0..10 {
            fs::metadata(mounted.path().join("a")).expect("it is there");
        }
        counts.push(gate.count(Operation::MetadataRead));
        if counts.ends_with(&[0]) {
            return;
        }
    }
    panic!("requests in each attempt: {counts:?}");
}

#[test]
fn buffered_writes_make_data_dirty_and_a_sync_makes_them_clean() {
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
fn a_synchronous_write_is_followed_by_a_sync_before_the_reply() {
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
fn direct_writes_are_synchronous() {
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
    assert_eq!((gate.count(Operation::BufferedWrite), gate.dirty.load(Ordering::Relaxed)), (0, 0));
}

#[test]
fn a_truncated_or_removed_file_is_clean() {
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
    // The kernel sends the last release asynchronously.
    wait_until("the removed file is clean", || cleaned() == before + 2);
    let file = File::create(&path).expect("it is created");
    file.write_all_at(&[1; 100], 0).expect("it is written");
    fs::remove_file(&path).expect("it is removed");
    assert_eq!(cleaned(), before + 2, "an open handle may still read it");
    drop(file);
    wait_until("the removed file is clean when it is closed", || cleaned() == before + 3);
}

#[test]
fn a_removed_file_is_clean_also_if_the_kernel_has_forgotten_its_inode() {
    let Some(Stage { gate, mounted, source: _source }) = stage("removing a forgotten file", 0, Options::default())
    else {
        return;
    };
    let path = mounted.path().join("a");
    fs::write(&path, [1; 100]).expect("it is written");
    assert!(gate.has_dirty_files());
    wait_until("the kernel has forgotten the inode", || {
        drop_inode_caches();
        mounted.session.as_ref().expect("it is mounted").counts().known == 1
    });
    fs::remove_file(&path).expect("it is removed");
    assert!(!gate.has_dirty_files(), "its space is free");
}

#[test]
fn a_file_replaced_by_a_rename_is_clean() {
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
    // The kernel sends the last release asynchronously.
    wait_until("the other file is clean", || cleaned() == before + 1);
    assert_eq!(fs::read(&old).expect("it is there"), [2; 100]);
}

#[test]
fn appended_data_are_dirty_at_the_end_of_the_file_below() {
    for every in [0, 1] {
        let Some(Stage { gate, mounted, source }) = stage("appending", every, Options::default()) else { return };
        let mut file = OpenOptions::new().append(true).create(true).open(mounted.path().join("a")).expect("a file");
        file.write_all(&[1; 10]).expect("it is written");
        let last = || *gate.dirty_last.lock().expect("no panic");
        assert_eq!(last(), (0, 10));
        // The kernel above the mount has not seen this write.
        let beside = OpenOptions::new().append(true).open(source.path().join("a")).expect("it is there");
        (&beside).write_all(&[2; 5000]).expect("it is written");
        file.write_all(&[3; 20]).expect("it is written");
        assert_eq!(last(), (5010, 20));
    }
}

#[test]
fn the_caller_is_the_thread_and_its_user() {
    let Some(Stage { gate, mounted, source: _source }) = stage("the caller", 2, Options::default()) else { return };
    let path = mounted.path().join("a");
    let tid = as_user(ME, &[], || {
        fs::write(&path, "mine").expect("it is written");
        rustix::thread::gettid().as_raw_nonzero().get() as u32
    });
    let caller = gate.caller(Operation::BufferedWrite).expect("a request was made");
    assert_eq!((caller.tid, caller.uid, caller.gid), (tid, ME, ME));
}

#[test]
fn write_back_by_the_kernel_is_charged_to_the_last_opener_for_writing() {
    let options = Options { write_back: WriteBack::Kernel, ..Options::default() };
    let Some(Stage { gate, mounted, source: _source }) = stage("the kernel's write-back", 0, options) else { return };
    let dirty = || gate.dirty.load(Ordering::Relaxed);
    for attempt in 0..ATTEMPTS as u64 {
        let path = mounted.path().join(attempt.to_string());
        let file = as_user(ME, &[], || File::create(&path).expect("it is created"));
        file.write_all_at(&[1; 200_000], 0).expect("it is gathered");
        let is_gathered = dirty() == attempt * 200_000;
        file.sync_all().expect("it is synced");
        assert_eq!(dirty(), (attempt + 1) * 200_000);
        assert_eq!(gate.caller(Operation::KernelWriteback).map(|caller| caller.uid), Some(ME));
        // The sync of another program writes the data earlier.
        if is_gathered {
            return;
        }
    }
    panic!("the data were written before the sync in each attempt");
}

#[test]
fn files_that_bypass_the_gate_cause_no_requests() {
    let past = |caller: &hoistway_mount::Caller, backing: &Backing| {
        let path = fs::read_link(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&backing.fd)));
        caller.uid == 0 && path.is_ok_and(|path| path.to_string_lossy().contains("past"))
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
fn changes_outside_the_mount_become_visible() {
    for every in [0, 2] {
        let options = Options { valid: Duration::from_millis(50), ..Options::default() };
        let Some(Stage { mounted, source, .. }) = stage("changes beside the mount", every, options) else { return };
        let (below, inside) = (source.path().join("a"), mounted.path().join("a"));
        fs::write(&below, "first").expect("it is written");
        assert_eq!(fs::read(&inside).expect("it is read"), b"first");
        // The same size and soon after: only the timestamps differ.
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
fn a_reused_inode_is_another_file() {
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
fn forgotten_inodes_leave_the_node_table() {
    let Some(Stage { mounted, source, .. }) = stage("forgetting", 0, Options::default()) else { return };
    for number in 0..2000 {
        fs::write(source.path().join(format!("f{number}")), "").expect("it is written");
    }
    let counts = || mounted.session.as_ref().expect("it is mounted").counts();
    // The kernel forgets inodes at any time, for example when another test drops its caches.
    wait_until("all inodes are known", || {
        for entry in fs::read_dir(mounted.path()).expect("a listing") {
            entry.and_then(|entry| entry.metadata()).expect("it is there");
        }
        counts().known > 2000
    });
    assert!(counts().held < 10, "files hold no descriptors where handles work: {:?}", counts());
    for entry in fs::read_dir(mounted.path()).expect("a listing") {
        fs::remove_file(entry.expect("an entry").path()).expect("it is removed");
    }
    wait_until("the inodes are forgotten", || counts().known <= 10);
}

#[test]
fn a_partial_page_write_reads_the_rest_after_dispatch() {
    for (every, reads) in [(0, true), (0, false), (1, true)] {
        let Some(Stage { gate, mounted, source }) = stage("parts of pages", every, Options::default()) else { return };
        let (below, inside) = (source.path().join("a"), mounted.path().join("a"));
        fs::write(&below, vec![7; 1 << 20]).expect("it is written");
        to_disk(&below);
        let file = OpenOptions::new().read(reads).write(true).open(&inside).expect("it opens");
        let mut expected = vec![7; 1 << 20];
        let check = |offset: usize, length: usize, expected: &mut Vec<u8>| {
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
            assert_eq!(check(offset, length, &mut expected), expects, "{what}, read {reads}, every {every}");
        }
        drop(file);
        assert!(fs::read(&inside).expect("it is read") == expected, "read {reads}, every {every}");
    }
}

#[test]
fn a_large_removed_file_is_closed_after_dispatch_on_account_of_the_remover() {
    let Some(Stage { gate, mounted, source: _source }) = stage("the last close", 0, Options::default()) else { return };
    let inside = mounted.path().join("a");
    for (opens, writes) in [(true, true), (true, false), (false, false)] {
        fs::write(&inside, vec![7; 2 << 20]).expect("it is written");
        let file = OpenOptions::new().read(true).write(writes).open(&inside).expect("it opens");
        let file = opens.then_some(file);
        let before = gate.count(Operation::MetadataWrite);
        let remover = std::thread::scope(|scope| {
            let removed = || {
                fs::remove_file(&inside).expect("it is removed");
                rustix::thread::gettid().as_raw_nonzero().get() as u32
            };
            scope.spawn(removed).join().expect("no panic")
        });
        drop(file);
        // The kernel forgets the inode after the last close.
        wait_until(&format!("the removal and the close are requests, open: {opens}, to write: {writes}"), || {
            gate.count(Operation::MetadataWrite) == before + 2
        });
        assert_eq!(gate.caller(Operation::MetadataWrite).map(|caller| caller.tid), Some(remover));
    }
}

#[test]
fn a_removed_file_frees_its_blocks_when_its_last_user_closes_it() {
    let Some(Stage { mounted, source, .. }) = stage("blocks of a removed file", 0, Options::default()) else { return };
    let inside = mounted.path().join("a");
    fs::write(&inside, "x").expect("it is written");
    let number = fs::metadata(&inside).expect("it is there").ino();
    let reference = hold(&inside);
    fs::remove_file(&inside).expect("it is removed");
    let counts = || mounted.session.as_ref().expect("it is mounted").counts();
    assert_eq!(counts().held, 2, "the root and the removed file hold descriptors");
    let found = rustix::fs::fstat(&reference).expect("the inode exists");
    assert_eq!((found.st_nlink, found.st_ino, found.st_size), (0, number, 1));
    fs::write(&inside, "new").expect("it is written");
    let new = fs::metadata(&inside).expect("it is there").ino();
    assert_ne!(new, number, "the number is in use");
    assert_eq!(fs::metadata(source.path().join("a")).expect("it is there").ino(), new);
    drop(reference);
    wait_until("the inode is freed", || counts().held == 1);
}

#[test]
fn the_gate_learns_of_reused_inode_numbers() {
    let Some(Stage { gate, mounted, source }) = stage("numbers that are given away", 0, Options::default()) else {
        return;
    };
    let inside = mounted.path().join("a");
    let forgotten = || std::mem::take(&mut *gate.forgotten.lock().expect("no panic"));
    let made = || {
        fs::write(&inside, "x").expect("it is written");
        let number = fs::metadata(source.path().join("a")).expect("it is there").ino();
        forgotten();
        number
    };
    let number = made();
    fs::hard_link(&inside, mounted.path().join("b")).expect("it is linked");
    fs::remove_file(mounted.path().join("b")).expect("it is removed");
    assert!(forgotten().is_empty(), "the file still has a name");
    fs::remove_file(&inside).expect("it is removed");
    // The kernel closes the remaining files soon.
    wait_until("the removal of the last name frees the inode", || forgotten().contains(&number));
    let number = made();
    let file = File::open(&inside).expect("it is there");
    fs::remove_file(&inside).expect("it is removed");
    assert!(!forgotten().contains(&number), "the file is open");
    drop(file);
    wait_until("the last close frees the inode", || forgotten().contains(&number));
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &inside,
        rustix::fs::FileType::RegularFile,
        rustix::fs::Mode::from_raw_mode(0o644),
        0,
    )
    .expect("it is made");
    let number = fs::metadata(source.path().join("a")).expect("it is there").ino();
    assert!(forgotten().contains(&number), "a new file has the number");
}

/// A gate that holds all requests until they are released.
#[derive(Default)]
struct Held {
    holds: AtomicBool,
    jobs: Mutex<Vec<Job>>,
}

impl Gate for Held {
    type Slot<'a> = ();
    type Ticket<'a> = ();
    type SyncGuard<'a> = ();

    fn admit(&self, _: &GateRequest<'_>) -> Admission<(), ()> {
        if self.holds.load(Ordering::SeqCst) { Admission::Later(()) } else { Admission::Now(()) }
    }

    fn park(&self, (): (), job: Job) {
        self.jobs.lock().expect("no panic").push(job);
    }

    fn begin_sync(&self, _: &Arc<Backing>) {}

    fn finish_sync(&self, (): ()) {}
}

#[test]
fn an_unopened_file_is_opened_after_dispatch() {
    if !can_mount("opening in turn") {
        return;
    }
    let source = scratch();
    let below = source.path().join("a");
    fs::write(&below, "x").expect("it is written");
    let gate = Arc::new(Held::default());
    // Descriptors of lookups are kept for two of these intervals.
    let options = Options { valid: Duration::from_secs(60), idle: Duration::from_millis(10), ..Options::default() };
    let mounted = Mounted::new(source.path(), gate.clone(), options);
    let inside = mounted.path().join("a");
    fs::metadata(&inside).expect("it is seen");
    wait_until("the descriptor of the lookup is closed", || {
        let open =
            fs::read_dir("/proc/self/fd").expect("a listing").filter_map(|entry| entry.ok()?.path().read_link().ok());
        !open.into_iter().any(|path| path == below)
    });
    gate.holds.store(true, Ordering::SeqCst);
    let changed = std::thread::spawn(move || fs::set_permissions(&inside, PermissionsExt::from_mode(0o600)));
    wait_until("a request waits", || !gate.jobs.lock().expect("no panic").is_empty());
    // A test that opened it now would miss a wrong order.
    fs::remove_file(&below).expect("it is removed");
    gate.holds.store(false, Ordering::SeqCst);
    std::mem::take(&mut *gate.jobs.lock().expect("no panic")).into_iter().for_each(crate::support::carry_out);
    assert!(changed.join().expect("no panic").is_err(), "it was open before its turn");
}

#[test]
fn trusted_attribute_names_are_shown_to_root_only() {
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
        let listed = rustix::fs::listxattr(&inside, &mut names[..]).expect("there is room");
        assert_eq!(listed, length);
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
