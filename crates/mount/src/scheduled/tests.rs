//! Tests of the gate alone: threads that submit requests, and files in the page cache and on disk.

mod limits;
mod order;
mod processes;
mod writing;

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hoistway_config::mount::{MountConfig, MountTenant, MountTerms};
use hoistway_core::Kind;
use hoistway_qos::Terms;

use super::*;

/// Time limit of waits for events that normally happen at once.
const LONG: Duration = Duration::from_secs(60);
/// A tunable in ms, or an age, that no test reaches: 1 h.
const HOUR_MS: u64 = 3_600_000;
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// A gate over a temporary directory with one file.
pub struct GateFixture {
    pub gate: Arc<Scheduled>,
    pub file: Arc<Backing>,
    pub folder: tempfile::TempDir,
}

/// Mount settings of most tests: device depth 1, and no write-back by age.
pub fn terms(kind: Kind) -> MountTerms {
    MountTerms { elevator: Some(kind), depth: Some(1), dirty_age_ns: Some(u64::MAX), ..MountTerms::default() }
}

/// Waits until a state is reached, for [`LONG`] at most.
pub fn wait_until(what: &str, mut is_reached: impl FnMut() -> bool) {
    let until = Instant::now() + LONG;
    while !is_reached() {
        assert!(Instant::now() < until, "not within {} s: {what}", LONG.as_secs());
        std::thread::sleep(Duration::from_millis(1));
    }
}

pub fn fixture(mount: MountTerms) -> GateFixture {
    fixture_with(MountConfig { mount, ..MountConfig::default() })
}

pub fn fixture_with(config: MountConfig) -> GateFixture {
    // The temporary directory may be on any file system; addresses are then extents or derived.
    fixture_in(tempfile::tempdir().expect("a folder"), config)
}

/// Creates a fixture whose file has ascending addresses. On a disk the end of a file may lie before
/// its beginning; in memory, addresses are derived from offsets.
pub fn fixture_in_memory(mount: MountTerms) -> GateFixture {
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder");
    fixture_in(folder, MountConfig { mount, ..MountConfig::default() })
}

fn fixture_in(folder: tempfile::TempDir, config: MountConfig) -> GateFixture {
    let root = backing(File::open(folder.path()).expect("it is there"));
    let gate = Scheduled::new(folder.path().to_owned(), &root, &config).expect("a gate");
    let file = new_file(&folder, "file");
    GateFixture { gate: Arc::new(gate), file, folder }
}

/// Creates a durable file of 8 MiB.
pub fn new_file(folder: &tempfile::TempDir, name: &str) -> Arc<Backing> {
    let path = folder.path().join(name);
    let file = OpenOptions::new().create(true).truncate(true).read(true).write(true).open(path).expect("it is ours");
    file.write_all_at(&vec![7; 8 << 20], 0).expect("there is room");
    file.sync_all().expect("it is written");
    backing(file)
}

pub fn backing(file: File) -> Arc<Backing> {
    let metadata = file.metadata().expect("it is open");
    Arc::new(Backing::new(file.into(), metadata.dev(), metadata.ino()))
}

/// Returns this thread as a caller.
pub fn myself() -> Caller {
    Caller { tid: rustix::thread::gettid().as_raw_nonzero().get() as u32, uid: 0, gid: 0 }
}

/// An idle process that is killed when the test ends.
pub struct IdleProcess(pub Child);

impl IdleProcess {
    pub fn start() -> IdleProcess {
        let process = IdleProcess(Command::new("sleep").arg("1000").spawn().expect("every machine has a sleep"));
        // The command name changes shortly after the start, at execve(2).
        let name = || std::fs::read_to_string(format!("/proc/{}/comm", process.0.id())).expect("it is there");
        wait_until("it is called sleep", || name() == "sleep\n");
        process
    }

    pub fn caller(&self) -> Caller {
        Caller { tid: self.0.id(), uid: 0, gid: 0 }
    }

    /// Sets the I/O priority as `ionice` does.
    pub fn set_ioprio(&self, class: i32, level: i32) {
        // SAFETY: the arguments are integers.
        let set = unsafe { libc::syscall(libc::SYS_ioprio_set, 1, self.0.id() as i32, class << 13 | level) };
        assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
    }
}

impl Drop for IdleProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Completed jobs in order.
#[derive(Clone)]
pub struct Log<T: Send + 'static> {
    done: Arc<Mutex<Vec<T>>>,
    sender: Sender<()>,
    completions: Arc<Mutex<Receiver<()>>>,
}

impl<T: Send + Clone + 'static> Log<T> {
    pub fn new() -> Log<T> {
        let (sender, completions) = channel();
        Log { done: Arc::default(), sender, completions: Arc::new(Mutex::new(completions)) }
    }

    /// Creates a job that records its execution.
    pub fn job(&self, what: T) -> Job {
        let log = self.clone();
        Job::Call(Box::new(move || log.note(what)))
    }

    pub fn note(&self, what: T) {
        self.done.lock().expect("no thread has panicked").push(what);
        let _ = self.sender.send(());
    }

    /// Waits for `count` more jobs, and returns all in order.
    pub fn wait(&self, count: usize) -> Vec<T> {
        let completions = self.completions.lock().expect("no thread has panicked");
        let until = Instant::now() + LONG;
        for _ in 0..count {
            let left = until.saturating_duration_since(Instant::now());
            completions.recv_timeout(left).expect("it completes before the timeout");
        }
        self.so_far()
    }

    pub fn so_far(&self) -> Vec<T> {
        self.done.lock().expect("no thread has panicked").clone()
    }
}

impl GateFixture {
    pub fn request(&self, caller: Caller, operation: Operation, offset: u64, length: u64) -> GateRequest<'_> {
        GateRequest { caller, operation, backing: &self.file, offset, length }
    }

    /// Waits until no request is in flight. A job runs before its completion is counted.
    pub fn wait_for_idle_device(&self) {
        let queue = self.gate.shared.file_systems.queues().remove(0);
        wait_until("the device is idle", || queue.lock().device.scheduler().in_flight() == 0);
    }

    /// Takes the only dispatch slot once the device is idle.
    pub fn take(&self, caller: Caller) -> Slot<'_> {
        self.wait_for_idle_device();
        match self.gate.admit(&self.request(caller, Operation::Read, 0, 4 * KIB)) {
            Admission::Now(slot) => slot,
            Admission::Later(_) => panic!("the device is idle"),
        }
    }

    /// Queues a request while the device is busy.
    pub fn park<T: Send + Clone + 'static>(&self, request: &GateRequest<'_>, log: &Log<T>, what: T) {
        match self.gate.admit(request) {
            Admission::Later(ticket) => self.gate.park(ticket, log.job(what)),
            Admission::Now(_) => panic!("the device is busy"),
        }
    }
}

pub fn tenant(name: &str, rules: Vec<MountRule>, terms: Terms) -> MountTenant {
    MountTenant { name: name.into(), rules, terms, pass: false }
}

pub use hoistway_config::mount::MountRule;
