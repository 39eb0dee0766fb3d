//! The processes of a world, and what must hold.

use std::io;
use std::os::fd::AsRawFd as _;
use std::rc::Rc;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use hoistway_config::mount::{MountConfig, MountTerms};
use hoistway_core::Kind;
use hoistway_mount::scheduled::simulated::{Host, enter};
use hoistway_mount::scheduled::{Fault, Scheduled};
use hoistway_mount::scheduled::{SimulatedGate, file_near};
use hoistway_mount::{Admission, Backing, Caller, Gate, GateRequest, Job, Operation};
use hoistway_reactor::simulated::Prng;

use super::disk::PAGE;
use super::host::{FileId, Machine, machine, set_machine};
use crate::WorldReport;

/// The longest wait of a request, in ns: 120 s.
const WAIT_NS_MAX: u64 = 120_000_000_000;
/// The time after the last process within which everything must be on the disk, in ns: 300 s.
const DRAIN_NS: u64 = 300_000_000_000;

/// A deliberate fault of the gate or of the simulated kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sabotage {
    /// A fault of the gate.
    Gate(Fault),
    /// A sync of the file system below does nothing.
    SyncBelowDoesNothing,
}

impl Sabotage {
    /// All faults.
    pub const ALL: [Sabotage; 6] = [
        Sabotage::SyncBelowDoesNothing,
        Sabotage::Gate(Fault::ErrorNotRecorded),
        Sabotage::Gate(Fault::ErrorOfOtherFile),
        Sabotage::Gate(Fault::ThrottledWriteDropped),
        Sabotage::Gate(Fault::ChunkRangeWrong),
        Sabotage::Gate(Fault::ChunkStaysDirty),
    ];
}

impl std::fmt::Display for Sabotage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Sabotage::Gate(fault) => write!(f, "{fault:?}"),
            Sabotage::SyncBelowDoesNothing => f.write_str("SyncBelowDoesNothing"),
        }
    }
}

/// A world, derived from a seed.
#[derive(Clone, Debug)]
pub struct MountPlan {
    /// The seed.
    pub seed: u64,
    /// The deliberate fault, if any.
    pub sabotage: Option<Sabotage>,
    disks: u64,
    files: u64,
    processes: u64,
    operations: u64,
    fails_permille: u64,
    kills_permille: u64,
    terms: MountTerms,
}

impl MountPlan {
    /// Derives the world of a seed.
    pub fn new(seed: u64) -> MountPlan {
        let mut prng = Prng::new(seed);
        let limit = prng.magnitude(16 << 20);
        let terms = MountTerms {
            elevator: Some(prng.pick(Kind::ALL)),
            depth: Some(prng.magnitude(32) as u32),
            dirty_limit: Some(limit),
            dirty_background: Some(prng.magnitude(limit)),
            dirty_age_ns: Some(prng.magnitude(3_000_000_000)),
            ..MountTerms::default()
        };
        MountPlan {
            seed,
            sabotage: None,
            disks: prng.between(1, 3),
            files: prng.between(1, 4),
            processes: prng.between(1, 6),
            operations: prng.between(5, 40),
            fails_permille: prng.pick(&[0, 0, 30, 200]),
            kills_permille: prng.pick(&[0, 0, 20]),
            terms,
        }
    }
}

impl std::fmt::Display for MountPlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{self:#?}")
    }
}

/// Plays a world.
pub fn play(plan: &MountPlan, verbose: bool) -> WorldReport {
    let mut prng = Prng::new(plan.seed ^ 0x5eed);
    let fault =
        plan.sabotage.and_then(|sabotage| if let Sabotage::Gate(fault) = sabotage { Some(fault) } else { None });
    let mut machine = match Machine::new(prng.split(), verbose, fault) {
        Ok(machine) => machine,
        Err(error) => return WorldReport::unplayed(error.to_string()),
    };
    machine.syncs_do_nothing = plan.sabotage == Some(Sabotage::SyncBelowDoesNothing);
    machine.fails_permille = plan.fails_permille;
    let machine = Rc::new(machine);
    set_machine(Some(machine.clone()));
    let host: Rc<dyn Host> = machine.clone();
    let entered = enter(host);
    let outcome = World::new(plan, &mut prng, &machine).and_then(|mut world| world.play());
    drop(entered);
    set_machine(None);
    let (trace, problem) = (machine.trace.borrow(), machine.problem.borrow_mut().take());
    let (answered, crashes) = outcome.as_ref().copied().unwrap_or_default();
    WorldReport {
        problem: problem.or(outcome.err()),
        hash: trace.hash(),
        events: trace.events(),
        answered,
        crashes,
        ended_ns: machine.now_ns.get(),
        log: trace.lines().to_vec(),
    }
}

struct World {
    machine: Rc<Machine>,
    gate: SimulatedGate,
    shared: Arc<Shared>,
    prng: Prng,
}

/// State of all processes.
struct Shared {
    gate: Arc<Scheduled>,
    files: Vec<(FileId, Arc<Backing>)>,
    handles: Mutex<Vec<Arc<Handle>>>,
    alive: AtomicUsize,
    answered: AtomicUsize,
    operations: u64,
    kills_permille: u64,
}

/// An open file handle.
struct Handle {
    file: FileId,
    backing: Arc<Backing>,
    /// The error that the mount found at the open.
    pending_error: AtomicI32,
    /// Errors that the next sync of the handle has to report.
    owed: Arc<AtomicUsize>,
}

/// A reply that a process waits for.
struct Reply {
    thread: usize,
    /// -1 while it is missing.
    errno: AtomicI32,
}

/// Answers a request with `EINTR` if it is dropped.
struct Replier(Arc<Reply>);

impl Replier {
    fn answer(&self, errno: i32) {
        if self.0.errno.compare_exchange(-1, errno, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            machine().wake(self.0.thread);
        }
    }
}

impl Drop for Replier {
    fn drop(&mut self) {
        self.answer(libc::EINTR);
    }
}

impl World {
    fn new(plan: &MountPlan, prng: &mut Prng, machine: &Rc<Machine>) -> Result<World, String> {
        let open = |file: FileId| machine.open(file).ok_or("no descriptor");
        let mut files: Vec<(FileId, Arc<Backing>)> = Vec::new();
        for device in 1..=plan.disks {
            for number in 1..=plan.files {
                let file = (device, number * 2);
                machine.with(file, |inode| inode.links = 1);
                let backing = match files.iter().find(|((other, _), _)| *other == device) {
                    Some((_, near)) => file_near(near, open(file)?, file.1),
                    None => Arc::new(Backing::new(open(file)?, file.0, file.1)),
                };
                files.push((file, backing));
            }
        }
        let config = MountConfig { mount: plan.terms.clone(), ..MountConfig::default() };
        let gate = SimulatedGate::new(&files[0].1, &config).map_err(|error| error.to_string())?;
        let shared = Arc::new(Shared {
            gate: gate.gate.clone(),
            files,
            handles: Mutex::default(),
            alive: AtomicUsize::new(plan.processes as usize),
            answered: AtomicUsize::new(0),
            operations: plan.operations,
            kills_permille: plan.kills_permille,
        });
        for process in 0..plan.processes {
            let (shared, prng) = (shared.clone(), prng.split());
            let caller = Caller { tid: 1000 + process as u32, uid: 0, gid: 0 };
            machine.spawn(Box::new(move || {
                Process { shared: shared.clone(), caller, prng, handles: Vec::new() }.live();
                shared.alive.fetch_sub(1, Ordering::Relaxed);
            }));
        }
        Ok(World { machine: machine.clone(), gate, shared, prng: prng.split() })
    }

    /// Runs the world to its end. Returns the numbers of replies and of power failures.
    fn play(&mut self) -> Result<(u64, u32), String> {
        let (mut crashes, mut crash_ns, mut ended_ns) = (0, 0, None);
        loop {
            let thread_ns = self.machine.run();
            let gate_ns = self.gate.turn();
            let now_ns = self.machine.now_ns.get();
            if let Some(problem) = self.machine.problem.borrow().clone() {
                self.leak();
                return Err(problem);
            }
            if now_ns >= crash_ns {
                crash_ns = now_ns + self.prng.magnitude(500_000_000);
                crashes += 1;
                for (file, inode) in &*self.machine.inodes.borrow() {
                    let checked = inode.check_power_failure(&mut self.prng);
                    checked.map_err(|what| format!("file {file:?}: {what}"))?;
                }
            }
            let is_over = self.shared.alive.load(Ordering::Relaxed) == 0;
            if is_over && self.gate.dirty_bytes() == 0 && thread_ns.is_none() {
                break;
            }
            if is_over && now_ns > *ended_ns.get_or_insert(now_ns) + DRAIN_NS {
                let bytes = self.gate.dirty_bytes();
                self.leak();
                return Err(format!("{bytes} bytes are dirty long after the last process"));
            }
            let next_ns = self.machine.run().into_iter().chain([gate_ns]).min().unwrap_or(now_ns);
            self.machine.now_ns.set(next_ns.clamp(now_ns, now_ns + 5_000_000_000));
        }
        self.check_end()?;
        Ok((self.shared.answered.load(Ordering::Relaxed) as u64, crashes))
    }

    fn check_end(&self) -> Result<(), String> {
        for (file, inode) in &*self.machine.inodes.borrow() {
            inode.check_written().map_err(|what| format!("file {file:?}: {what}"))?;
        }
        Ok(())
    }

    /// Leaves suspended threads of a failed world as they are.
    fn leak(&self) {
        std::mem::forget(self.machine.clone());
        std::mem::forget(self.shared.clone());
    }
}

/// A process that uses the mount.
struct Process {
    shared: Arc<Shared>,
    caller: Caller,
    prng: Prng,
    handles: Vec<Arc<Handle>>,
}

impl Process {
    fn live(&mut self) {
        for _ in 0..self.shared.operations {
            let machine = machine();
            machine.sleep(self.prng.magnitude(400_000_000));
            if self.prng.permille(self.shared.kills_permille) {
                return self.die_in_sync(&machine);
            }
            match self.prng.between(0, 9) {
                0 | 1 => self.open(),
                2..=5 => self.write(),
                6 | 7 => drop(self.sync()),
                8 => self.truncate(),
                _ => self.close(),
            }
        }
        while !self.handles.is_empty() {
            self.close();
        }
    }

    /// Is killed while it waits for a sync.
    fn die_in_sync(&mut self, machine: &Machine) {
        machine.killed.borrow_mut().insert(self.caller.tid);
        let _ = self.sync();
        while !self.handles.is_empty() {
            self.close();
        }
    }

    fn open(&mut self) {
        let (file, near) = &self.shared.files[self.prng.index(self.shared.files.len())];
        let machine = machine();
        let Some(fd) = machine.open(*file) else { return machine.violated("no descriptor".to_owned()) };
        let backing = file_near(near, fd, file.1);
        let pending_error = self.shared.gate.pending_writeback_error(&backing, false).unwrap_or(0);
        let owed = Arc::new(AtomicUsize::new(usize::from(machine.with(*file, |inode| inode.is_untold))));
        machine.owing.borrow_mut().push((*file, owed.clone()));
        let handle = Arc::new(Handle { file: *file, backing, pending_error: AtomicI32::new(pending_error), owed });
        self.shared.handles().push(handle.clone());
        self.handles.push(handle);
    }

    fn close(&mut self) {
        if self.handles.is_empty() {
            return;
        }
        let handle = self.handles.swap_remove(self.prng.index(self.handles.len()));
        self.shared.handles().retain(|other| !Arc::ptr_eq(other, &handle));
    }

    fn handle(&mut self) -> Arc<Handle> {
        if self.handles.is_empty() {
            self.open();
        }
        self.handles[self.prng.index(self.handles.len())].clone()
    }

    fn write(&mut self) {
        let handle = self.handle();
        let first = self.prng.between(0, 600) as usize;
        let pages = first..first + self.prng.magnitude(256) as usize;
        let (offset, length) = (first as u64 * PAGE, pages.len() as u64 * PAGE);
        let (gate, caller) = (self.shared.gate.clone(), self.caller);
        let _ = self.request(&handle.clone(), Operation::BufferedWrite, (offset, length), move || {
            let machine = machine();
            machine
                .note(&[2, u64::from(caller.tid), offset, length], format_args!("{caller:?} writes {offset} {length}"));
            let number = machine.trace.borrow().events();
            machine.with(handle.file, |inode| inode.write(pages, number));
            let operation = Operation::BufferedWrite;
            gate.note_dirty(&GateRequest { caller, operation, backing: &handle.backing, offset, length });
            0
        });
    }

    fn truncate(&mut self) {
        let handle = self.handle();
        let gate = self.shared.gate.clone();
        let _ = self.request(&handle.clone(), Operation::MetadataWrite, (0, 0), move || {
            let machine = machine();
            machine.wait_for_pages(handle.file, 0..usize::MAX);
            machine.note(&[3, handle.file.0, handle.file.1], format_args!("{:?} truncated", handle.file));
            let number = machine.trace.borrow().events();
            machine.with(handle.file, |inode| inode.truncate(number));
            gate.discard_dirty(&handle.backing);
            0
        });
    }

    /// Syncs a file, and checks that exactly the errors that are owed are reported.
    fn sync(&mut self) -> io::Result<()> {
        let handle = self.handle();
        let machine = machine();
        let promise = machine.with(handle.file, |inode| inode.promise());
        let owed = handle.owed.load(Ordering::Relaxed) > 0;
        let (shared, of_job) = (self.shared.clone(), handle.clone());
        let errno = self.request(&handle, Operation::Sync, (0, 0), move || shared.sync_below(&of_job));
        if errno == libc::EINTR {
            return Ok(());
        }
        if owed && errno == 0 {
            machine.violated(format!("a sync of {:?} does not report a write-back error", handle.file));
        }
        machine
            .note(&[4, handle.file.0, handle.file.1, errno as u64], format_args!("{:?} synced: {errno}", handle.file));
        if errno == 0 {
            machine.with(handle.file, |inode| inode.promised(&promise));
        }
        Ok(())
    }

    /// Sends a request and waits for its reply. Returns the error, or 0.
    fn request(
        &self,
        handle: &Arc<Handle>,
        operation: Operation,
        (offset, length): (u64, u64),
        work: impl FnOnce() -> i32 + Send + 'static,
    ) -> i32 {
        let machine = machine();
        let begun_ns = machine.now_ns.get();
        let request = GateRequest { caller: self.caller, operation, backing: &handle.backing, offset, length };
        self.shared.answered.fetch_add(1, Ordering::Relaxed);
        match self.shared.gate.admit(&request) {
            Admission::Now(slot) => {
                let errno = work();
                drop(slot);
                errno
            }
            Admission::Later(ticket) => {
                let reply = Arc::new(Reply { thread: machine.current(), errno: AtomicI32::new(-1) });
                let replier = Replier(reply.clone());
                let job = Job::Call(Box::new(move || {
                    replier.answer(work());
                }));
                self.shared.gate.park(ticket, job);
                while reply.errno.load(Ordering::Relaxed) == -1 {
                    machine.suspend(begun_ns + WAIT_NS_MAX);
                    if machine.now_ns.get() >= begun_ns + WAIT_NS_MAX {
                        machine.violated(format!("a {operation:?} request waits for 120 s"));
                        return libc::EINTR;
                    }
                }
                reply.errno.load(Ordering::Relaxed)
            }
        }
    }
}

impl Shared {
    fn handles(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Handle>>> {
        self.handles.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Carries out a sync as the mount does. Returns the error, or 0.
    fn sync_below(&self, handle: &Handle) -> i32 {
        let machine = machine();
        let syncing = self.gate.begin_sync(&handle.backing);
        let failed = machine.sync(handle.file, handle.backing.fd.as_raw_fd());
        if failed {
            drop(syncing)
        } else {
            self.gate.finish_sync(syncing)
        }
        let pending_error = handle.pending_error.swap(0, Ordering::Relaxed);
        let reports = failed || pending_error != 0;
        if reports {
            self.gate.clear_writeback_error(&handle.backing);
            handle.owed.store(0, Ordering::Relaxed);
            machine.with(handle.file, |inode| inode.is_untold = false);
        }
        if reports { libc::EIO } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_worlds_of_the_mount_have_no_violation() {
        for seed in 0..40 {
            assert_eq!(play(&MountPlan::new(seed), false).problem, None, "seed {seed}");
        }
    }

    #[test]
    fn a_seed_determines_its_world_of_the_mount() {
        for seed in [3, 40, 41] {
            let [one, two] = [true, false].map(|verbose| play(&MountPlan::new(seed), verbose));
            assert_eq!((one.hash, one.events), (two.hash, two.events), "seed {seed}");
        }
    }

    #[test]
    fn every_deliberate_fault_of_the_mount_is_found_within_100_worlds() {
        let is_found = |sabotage| {
            let plan = |seed| MountPlan { sabotage: Some(sabotage), ..MountPlan::new(seed) };
            (0..100).any(|seed| play(&plan(seed), false).problem.is_some())
        };
        let missed: Vec<String> = Sabotage::ALL
            .into_iter()
            .filter(|sabotage| !is_found(*sabotage))
            .map(|sabotage| sabotage.to_string())
            .collect();
        assert_eq!(missed, [""; 0]);
    }
}
