//! Mounts, disk images and gates shared by the tests.

#![allow(dead_code)]

pub mod fsx;
pub mod scheduled;

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, IoSlice, IoSliceMut, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use hoistway_config::mount::{MountConfig, MountTerms, WriteBackChoice};
use hoistway_mount::scheduled::Scheduled;
use hoistway_mount::{
    Admission, Backing, Buffer, Caller, Gate, GateRequest, Job, MountOptions, Operation, Options, Session, Unscheduled,
    Users, WriteBack,
};
use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, ReadWriteFlags, preadv2, pwritev2};
use tempfile::TempDir;

/// Returns true if the machine meets a requirement. Otherwise the test is skipped with a message,
/// or fails where every requirement must be met.
pub fn can_mount(test: &str) -> bool {
    let able = rustix::process::geteuid().is_root() && Path::new("/dev/fuse").exists();
    able || skip(test, "needs root and /dev/fuse")
}

/// Returns true if a program is installed.
pub fn has(test: &str, program: &str) -> bool {
    let found = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|place| place.join(program).exists()))
        || Path::new("/sbin").join(program).exists()
        || Path::new("/usr/sbin").join(program).exists();
    found || skip(test, &format!("needs {program}"))
}

fn skip(test: &str, why: &str) -> bool {
    assert!(std::env::var_os("CI").is_none_or(|ci| ci != "true"), "{test} {why}");
    eprintln!("SKIPPED: {test} {why}");
    false
}

/// Has the kernel forget the inodes and names that are not in use.
pub fn drop_inode_caches() {
    std::fs::write("/proc/sys/vm/drop_caches", "2").expect("root may");
}

/// Opens a path without a request, so that the kernel keeps its inode although another test drops
/// its caches.
pub fn hold(path: &Path) -> OwnedFd {
    rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).expect("it is there")
}

/// Pages of a file in memory.
pub struct MemoryState {
    pub cached: u64,
    pub dirty: u64,
    pub writeback: u64,
}

/// Queries cachestat(2), if the system has it.
pub fn memory_state(file: &std::fs::File) -> Option<MemoryState> {
    let (range, mut pages) = ([0u64; 2], [0u64; 5]);
    // SAFETY: the call reads two integers and writes five; both structures outlive it.
    let result = unsafe { libc::syscall(451, file.as_raw_fd(), range.as_ptr(), pages.as_mut_ptr(), 0) };
    let [cached, dirty, writeback, ..] = pages;
    (result == 0).then_some(MemoryState { cached, dirty, writeback })
}

/// Returns a directory for test files on a disk, so that `O_DIRECT` and holes are available.
pub fn scratch() -> TempDir {
    tempfile::Builder::new().prefix("hoistway-mount-").tempdir_in("/var/tmp").expect("a directory in /var/tmp")
}

/// Runs a program that must succeed.
pub fn run(program: &str, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).output().unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Time limit of waits for a state that is normally reached at once.
pub const LONG: Duration = Duration::from_secs(60);

/// Waits until a state is reached, for [`LONG`] at most.
pub fn wait_until(what: &str, mut is_reached: impl FnMut() -> bool) {
    let until = Instant::now() + LONG;
    while !is_reached() {
        assert!(Instant::now() < until, "not within {} s: {what}", LONG.as_secs());
        thread::sleep(Duration::from_millis(5));
    }
}

/// Unmounts a file system, which may be busy for a while: a child that another test forks holds the
/// descriptors of this process until it calls exec.
pub fn unmount(directory: &str) {
    let until = Instant::now() + LONG;
    loop {
        let output = Command::new("umount").arg(directory).output().expect("umount runs");
        if output.status.success() {
            return;
        }
        assert!(Instant::now() < until, "umount {directory}: {}", String::from_utf8_lossy(&output.stderr));
        thread::sleep(Duration::from_millis(50));
    }
}

/// A temporary file system, unmounted on drop.
pub struct Volume {
    place: TempDir,
}

impl Volume {
    /// Creates a `tmpfs`, or an image of this many MiB with `mkfs.KIND`.
    pub fn new(kind: &str, mebibytes: u64) -> Volume {
        let place = scratch();
        let at = place.path().join("volume");
        std::fs::create_dir(&at).expect("a directory");
        let at = at.to_str().expect("a path").to_owned();
        if kind == "tmpfs" {
            run("mount", &["-t", "tmpfs", "-o", &format!("size={mebibytes}m,mode=755"), "tmpfs", &at]);
        } else {
            let image = place.path().join("image");
            std::fs::File::create(&image).and_then(|file| file.set_len(mebibytes << 20)).expect("an image");
            let image = image.to_str().expect("a path");
            let quiet: &[&str] = if kind == "ext4" { &["-q", "-F"] } else { &["-q", "-f"] };
            run(&format!("mkfs.{kind}"), &[quiet, &[image]].concat());
            run("mount", &["-o", "loop", image, &at]);
        }
        Volume { place }
    }

    pub fn path(&self) -> PathBuf {
        self.place.path().join("volume")
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        for _ in 0..50 {
            let output = Command::new("umount").arg(self.path()).output();
            if output.is_ok_and(|output| output.status.success()) {
                return;
            }
            thread::sleep(Duration::from_millis(50));
        }
        let _ = Command::new("umount").arg("-l").arg(self.path()).output();
    }
}

/// A mount served by this process. No file on it may be mapped: a page fault of a client thread can
/// block the server threads on the process's memory map.
pub struct Mounted {
    pub session: Option<Session>,
    place: TempDir,
}

impl Mounted {
    pub fn new<G: Gate>(source: &Path, gate: Arc<G>, options: Options) -> Mounted {
        let place = tempfile::Builder::new().prefix("hoistway-mount-").tempdir().expect("a directory");
        let mount_options = MountOptions { users: Users::All, ..MountOptions::default() };
        let session = Session::mount(source, place.path(), gate, options, &mount_options).expect("it mounts");
        Mounted { session: Some(session), place }
    }

    pub fn path(&self) -> &Path {
        self.place.path()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if let Some(session) = self.session.take() {
            let _ = session.unmount(Duration::from_secs(2));
        }
    }
}

/// Parameters of a mount in another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MountVariant {
    pub write_back: WriteBack,
    /// One of this many operations is queued; 0 for no gate.
    pub every: u64,
    pub handles: bool,
    /// Queued operations wait for the disk, with the scheduling gate.
    pub scheduled: bool,
}

impl MountVariant {
    pub fn open(write_back: WriteBack) -> MountVariant {
        MountVariant { write_back, every: 0, handles: true, scheduled: false }
    }

    pub fn waiting(write_back: WriteBack) -> MountVariant {
        MountVariant { every: 3, ..MountVariant::open(write_back) }
    }

    pub fn scheduled(write_back: WriteBack) -> MountVariant {
        MountVariant { scheduled: true, ..MountVariant::open(write_back) }
    }
}

/// A mount served by another process that runs this test binary.
pub struct MountProcess {
    child: Child,
    /// Keeps the output pipe open, since the process would fail without it.
    _output: BufReader<ChildStdout>,
    place: TempDir,
}

const SERVE: &str = "HOISTWAY_MOUNT_FOR_A_TEST";

impl MountProcess {
    pub fn new(source: &Path, variant: MountVariant) -> MountProcess {
        MountProcess::started(source, variant, "")
    }

    /// Sets the descriptor limit.
    pub fn with_descriptors(source: &Path, variant: MountVariant, most: u32) -> MountProcess {
        MountProcess::started(source, variant, &format!("ulimit -n {most} && "))
    }

    fn started(source: &Path, variant: MountVariant, before: &str) -> MountProcess {
        let place = tempfile::Builder::new().prefix("hoistway-mount-").tempdir().expect("a directory");
        let what = format!(
            "{:?}|{}|{}|{}|{}|{}",
            variant.write_back,
            variant.every,
            variant.handles,
            variant.scheduled,
            source.display(),
            place.path().display()
        );
        let child = Command::new("sh")
            .args(["-c", &format!("{before}exec \"$0\" \"$@\"")])
            .arg(std::env::current_exe().expect("a program"))
            .args(["--exact", "mounts_for_another_process", "--ignored", "--nocapture"])
            .env(SERVE, what)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut child = child.expect("the process starts");
        let mut output = BufReader::new(child.stdout.take().expect("it is piped"));
        let mounted = output.by_ref().lines().map_while(Result::ok).any(|line| line.ends_with("mounted"));
        assert!(mounted, "the other process has not mounted");
        MountProcess { child, _output: output, place }
    }

    pub fn path(&self) -> &Path {
        self.place.path()
    }

    /// Kills the process.
    pub fn kill(&mut self) {
        self.child.kill().and_then(|()| self.child.wait()).expect("it is killed");
    }

    pub fn process(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for MountProcess {
    fn drop(&mut self) {
        // The process ends when its input is closed.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
        let _ = Command::new("umount").arg("-l").arg(self.path()).stderr(Stdio::null()).status();
    }
}

/// Serves a mount if this process was started for that, until its input ends. Returns true if it
/// did.
pub fn serve() -> bool {
    let Ok(what) = std::env::var(SERVE) else { return false };
    let words: Vec<_> = what.splitn(6, '|').collect();
    let write_back = if words[0] == "Kernel" { WriteBack::Kernel } else { WriteBack::Ours };
    let options = Options { write_back, handles: words[2] == "true", ..Options::default() };
    let mount_options = MountOptions { users: Users::All, ..MountOptions::default() };
    let (source, at) = (Path::new(words[4]), Path::new(words[5]));
    let session = match words[1].parse().expect("a number") {
        0 if words[3] == "true" => Session::mount(source, at, scheduling(source, write_back), options, &mount_options),
        0 => Session::mount(source, at, Arc::new(Unscheduled), options, &mount_options),
        every => Session::mount(source, at, Parking::new(every, Duration::from_millis(1)), options, &mount_options),
    };
    let session = session.expect("it mounts");
    println!("mounted");
    let _ = io::stdin().read_to_end(&mut Vec::new());
    let _ = session.unmount(Duration::from_secs(2));
    true
}

/// Creates the scheduling gate of a directory, with a small limit of dirty memory.
pub fn scheduling(source: &Path, write_back: WriteBack) -> Arc<Scheduled> {
    let choice = match write_back {
        WriteBack::Ours => WriteBackChoice::Ours,
        WriteBack::Kernel => WriteBackChoice::Kernel,
    };
    let mount = MountTerms { write_back: choice, dirty_limit: Some(2 << 20), ..MountTerms::default() };
    let opened = std::fs::File::open(source).expect("it is there");
    let metadata = opened.metadata().expect("it is open");
    let root = Arc::new(Backing::new(opened.into(), metadata.dev(), metadata.ino()));
    let config = MountConfig { mount, ..MountConfig::default() };
    Arc::new(Scheduled::new(source.to_owned(), &root, &config).expect("a gate"))
}

/// A gate that counts requests and queues every n-th one until another thread runs it.
pub struct Parking {
    every: u64,
    entered: AtomicU64,
    jobs: Mutex<Sender<Job>>,
    pub counted: Mutex<BTreeMap<String, u64>>,
    /// The last caller of each kind of operation.
    pub callers: Mutex<BTreeMap<String, Caller>>,
    pub dirty: AtomicU64,
    /// Offset and length of the last dirty range.
    pub dirty_last: Mutex<(u64, u64)>,
    /// The last dirty file, held as a gate with write-back holds it.
    held: Mutex<Option<Arc<Backing>>>,
    /// Inodes reported as deleted or new.
    pub forgotten: Mutex<Vec<u64>>,
    pub cleaned: AtomicU64,
}

impl Parking {
    /// Queues one of `every` operations for up to `delay`.
    pub fn new(every: u64, delay: Duration) -> Arc<Parking> {
        let (jobs, taken) = channel();
        let taken = Arc::new(Mutex::new(taken));
        for number in 0..3 {
            let taken = taken.clone();
            let delay = delay * number / 2;
            thread::spawn(move || work(&taken, delay));
        }
        let (dirty, cleaned) = (AtomicU64::new(0), AtomicU64::new(0));
        Arc::new(Parking {
            every,
            entered: AtomicU64::new(0),
            jobs: Mutex::new(jobs),
            counted: Mutex::default(),
            callers: Mutex::default(),
            dirty,
            dirty_last: Mutex::default(),
            held: Mutex::default(),
            forgotten: Mutex::default(),
            cleaned,
        })
    }

    /// Returns the number of operations of a kind.
    pub fn count(&self, operation: Operation) -> u64 {
        self.counted.lock().expect("no panic").get(&format!("{operation:?}")).copied().unwrap_or(0)
    }
}

impl Parking {
    /// Returns the last caller.
    pub fn caller(&self, operation: Operation) -> Option<Caller> {
        self.callers.lock().expect("no panic").get(&format!("{operation:?}")).copied()
    }
}

impl Gate for Parking {
    type Slot<'a> = ();
    type Ticket<'a> = ();
    type SyncGuard<'a> = Arc<Backing>;

    fn admit(&self, ask: &GateRequest<'_>) -> Admission<(), ()> {
        *self.counted.lock().expect("no panic").entry(format!("{:?}", ask.operation)).or_default() += 1;
        self.callers.lock().expect("no panic").insert(format!("{:?}", ask.operation), ask.caller);
        let number = self.entered.fetch_add(1, Ordering::Relaxed);
        if self.every > 0 && number.is_multiple_of(self.every) { Admission::Later(()) } else { Admission::Now(()) }
    }

    fn park(&self, (): (), job: Job) {
        self.jobs.lock().expect("no panic").send(job).expect("workers live as long as their gate");
    }

    fn note_dirty(&self, ask: &GateRequest<'_>) {
        self.dirty.fetch_add(ask.length, Ordering::Relaxed);
        *self.dirty_last.lock().expect("no panic") = (ask.offset, ask.length);
        *self.held.lock().expect("no panic") = Some(ask.backing.clone());
    }

    fn has_dirty_files(&self) -> bool {
        self.held.lock().expect("no panic").is_some()
    }

    fn discard_dirty(&self, _: u64, inode: u64) {
        self.cleaned.fetch_add(1, Ordering::Relaxed);
        self.held.lock().expect("no panic").take_if(|held| held.inode == inode);
    }

    fn begin_sync(&self, backing: &Arc<Backing>) -> Arc<Backing> {
        backing.clone()
    }

    fn finish_sync(&self, syncing: Arc<Backing>) {
        self.discard_dirty(syncing.device, syncing.inode);
    }

    fn pending_writeback_error(&self, _: &Arc<Backing>, _: bool) -> Option<i32> {
        None
    }

    fn clear_writeback_error(&self, _: &Arc<Backing>) {}

    fn forget_inode(&self, _: u64, inode: u64) {
        self.forgotten.lock().expect("no panic").push(inode);
    }
}

fn work(jobs: &Mutex<Receiver<Job>>, delay: Duration) {
    loop {
        let Ok(job) = jobs.lock().expect("no panic").recv() else { return };
        thread::sleep(delay);
        carry_out(job);
    }
}

/// Runs a job as a gate must.
pub fn carry_out(job: Job) {
    match job {
        Job::Call(call) => call(),
        Job::Read { file, offset, length, done } => {
            let mut buffer = Buffer::new(length);
            let read = read(&file, offset, &mut buffer);
            done(read.map(|length| &buffer[..length]));
        }
        Job::Write { file, offset, data, flags, done } => {
            let flags = ReadWriteFlags::from_bits_retain(flags);
            done(pwritev2(&file, &[IoSlice::new(&data)], offset, flags).map_err(io::Error::from));
        }
    }
}

fn read(file: &Backing, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
    let mut have = 0;
    while have < buffer.len() {
        match preadv2(file, &mut [IoSliceMut::new(&mut buffer[have..])], offset + have as u64, ReadWriteFlags::empty())
        {
            Ok(0) => break,
            Ok(read) => have += read,
            Err(Errno::INTR) => {}
            Err(Errno::INVAL) if have > 0 => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(have)
}

/// Runs a function as another user, in a thread of its own, because identities are per thread.
pub fn as_user<T: Send>(user: u32, groups: &[u32], act: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let thread = scope.spawn(move || {
            // SAFETY: the raw system calls take integers and a slice, and change this thread alone.
            unsafe {
                assert_eq!(libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()), 0);
                assert_eq!(libc::syscall(libc::SYS_setresgid, user, user, user), 0);
                assert_eq!(libc::syscall(libc::SYS_setresuid, user, user, user), 0);
            }
            act()
        });
        thread.join().expect("no panic")
    })
}
