//! The gate alone: threads that ask it for turns, and files in memory and on the disk.

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

use hoistway_core::Kind;
use hoistway_serve::config::mount::{MountConfig, MountTenant, MountTerms};
use hoistway_serve::tenant::Terms;

use super::*;

/// How long something may take that takes no time: 20 s.
const LONG: Duration = Duration::from_secs(20);
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// A gate over a folder of its own, with one file in it.
pub struct House {
    pub gate: Arc<Scheduled>,
    pub file: Arc<Backing>,
    pub folder: tempfile::TempDir,
}

/// What holds unless a test says otherwise: one request at a time, and nothing written back by itself.
pub fn terms(kind: Kind) -> MountTerms {
    MountTerms { elevator: Some(kind), depth: Some(1), dirty_age_ns: Some(u64::MAX), ..MountTerms::default() }
}

pub fn house(mount: MountTerms) -> House {
    house_of(MountConfig { mount, ..MountConfig::default() })
}

pub fn house_of(config: MountConfig) -> House {
    // On whatever the machine keeps its temporary files; places are then those of the disk, or derived.
    let folder = tempfile::tempdir().expect("a folder");
    let root = backing(File::open(folder.path()).expect("it is there"));
    let gate = Scheduled::new(folder.path().to_owned(), &root, &config).expect("a gate");
    let file = new_file(&folder, "file");
    House { gate: Arc::new(gate), file, folder }
}

/// A file of 8 MiB, written in one go and durable.
pub fn new_file(folder: &tempfile::TempDir, name: &str) -> Arc<Backing> {
    let path = folder.path().join(name);
    let file = OpenOptions::new().create(true).truncate(true).read(true).write(true).open(path).expect("it is ours");
    file.write_all_at(&vec![7; 8 << 20], 0).expect("there is room");
    file.sync_all().expect("it is written");
    backing(file)
}

pub fn backing(file: File) -> Arc<Backing> {
    let told = file.metadata().expect("it is open");
    Arc::new(Backing::new(file.into(), told.dev(), told.ino()))
}

/// This thread.
pub fn myself() -> Asker {
    Asker { tid: rustix::thread::gettid().as_raw_nonzero().get() as u32, uid: 0, gid: 0 }
}

/// A process that does nothing, and ends with the test.
pub struct Idler(pub Child);

impl Idler {
    pub fn start() -> Idler {
        let idler = Idler(Command::new("sleep").arg("1000").spawn().expect("every machine has a sleep"));
        // It is known by its name only a little after it has begun.
        let name = || std::fs::read_to_string(format!("/proc/{}/comm", idler.0.id())).expect("it is there");
        let until = Instant::now() + LONG;
        while name() != "sleep\n" {
            assert!(Instant::now() < until, "it is called {}", name());
            std::thread::yield_now();
        }
        idler
    }

    pub fn asker(&self) -> Asker {
        Asker { tid: self.0.id(), uid: 0, gid: 0 }
    }

    /// Sets its I/O priority as `ionice` does.
    pub fn set_ioprio(&self, class: i32, level: i32) {
        // SAFETY: a call with numbers alone.
        let set = unsafe { libc::syscall(libc::SYS_ioprio_set, 1, self.0.id() as i32, class << 13 | level) };
        assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
    }
}

impl Drop for Idler {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What was done, in order.
#[derive(Clone)]
pub struct Log<T: Send + 'static> {
    done: Arc<Mutex<Vec<T>>>,
    sender: Sender<()>,
    came: Arc<Mutex<Receiver<()>>>,
}

impl<T: Send + Clone + 'static> Log<T> {
    pub fn new() -> Log<T> {
        let (sender, came) = channel();
        Log { done: Arc::default(), sender, came: Arc::new(Mutex::new(came)) }
    }

    /// A job that notes that it was done.
    pub fn job(&self, what: T) -> Job {
        let log = self.clone();
        Job::Call(Box::new(move || log.note(what)))
    }

    pub fn note(&self, what: T) {
        self.done.lock().expect("nobody has panicked").push(what);
        let _ = self.sender.send(());
    }

    /// Waits until so many more are done; answers all in order.
    pub fn wait(&self, count: usize) -> Vec<T> {
        let came = self.came.lock().expect("nobody has panicked");
        let until = Instant::now() + LONG;
        for _ in 0..count {
            let left = until.saturating_duration_since(Instant::now());
            came.recv_timeout(left).expect("it is done some time");
        }
        self.so_far()
    }

    pub fn so_far(&self) -> Vec<T> {
        self.done.lock().expect("nobody has panicked").clone()
    }
}

impl House {
    pub fn ask(&self, asker: Asker, operation: Operation, offset: u64, length: u64) -> Ask<'_> {
        Ask { asker, operation, backing: &self.file, offset, length }
    }

    /// Takes the device, which is given one request at a time, once nobody has it any more: a job is done before its end is counted.
    pub fn take(&self, asker: Asker) -> Pass<'_> {
        let queue = self.gate.shared.systems.queues().remove(0);
        let until = Instant::now() + LONG;
        while queue.lock().device.in_flight() > 0 {
            assert!(Instant::now() < until, "somebody keeps the device");
            std::thread::yield_now();
        }
        match self.gate.enter(&self.ask(asker, Operation::Read, 0, 4 * KIB)) {
            Entered::Now(pass) => pass,
            Entered::Later(_) => panic!("nobody else wants it"),
        }
    }

    /// Asks for something while the device is taken, to be done in its turn.
    pub fn park<T: Send + Clone + 'static>(&self, ask: &Ask<'_>, log: &Log<T>, what: T) {
        match self.gate.enter(ask) {
            Entered::Later(ticket) => self.gate.park(ticket, log.job(what)),
            Entered::Now(_) => panic!("the device is taken"),
        }
    }
}

pub fn tenant(name: &str, rules: Vec<MountRule>, terms: Terms) -> MountTenant {
    MountTenant { name: name.into(), rules, terms, pass: false }
}

pub use hoistway_serve::config::mount::MountRule;
