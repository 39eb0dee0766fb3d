//! The gate that schedules: a queue for each disk below the mount, and every thread that asks a context of it.
//!
//! ```text
//! enter ─▶ who asks (people), whose request it is (rules), where it lies (places) ─▶ the disk's queue ─▶ its turn: Now, or Later
//!                                                                                        ▲       │
//! park ─▶ the job waits in the queue                                          pass dropped       ▼ whose turn it is by that
//!                                                                                        └── executors: io_uring, workers
//! dirtied ─▶ what is to be written back (writeback), as requests of who wrote it ─▶ the same queue
//! ```
//!
//! There is one lock a queue. It is held while a request is put in and while another is over: some hundred ns; never while a file system or `/proc` is asked.

mod callers;
mod cgroups;
mod disks;
mod executors;
mod people;
mod places;
mod queue;
mod ranges;
mod ring;
mod rules;
mod steer;
mod systems;
mod timer;
mod watching;
mod writeback;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;

use hoistway_serve::config::mount::{MountConfig, WriteBackChoice};
use hoistway_serve::device::{DeviceError, Hints, JoinError, Record, TermsError, WorkOp};
use hoistway_serve::server::Log;
use rustix::time::{ClockId, clock_gettime};

use crate::{Ask, Asker, Backing, Entered, Gate, Job, Operation};
use callers::{Callers, Stay};
use executors::{Executors, Run};
use people::Key;
use queue::{Outcome, Queue, REQUEST_BYTES_MAX, State, Wanted};
use rules::Rules;
use systems::{FileSystem, Systems};
use timer::Timer;
use writeback::{Ledger, WriteBack};

pub use disks::DiskError;
pub use steer::Operator;
pub use watching::Watching;
pub use writeback::Syncing;

/// A directory, an inode: so much is read or written for it.
const METADATA_BYTES: u64 = 4096;

/// Why a gate could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum SetUpError {
    /// A device cannot be set up so.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A tenant or a group cannot be made so.
    #[error(transparent)]
    Terms(#[from] TermsError),
    /// Nobody can use the device.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// A tunable cannot be set so.
    #[error("tunable `{tunable}` of {elevator}: {source}")]
    Tunable {
        /// The elevator's name.
        elevator: &'static str,
        /// The tunable's name.
        tunable: String,
        /// Why.
        source: hoistway_core::TunableError,
    },
    /// The device that was named is none.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// A thread could not be started.
    #[error("a thread cannot be started: {0}")]
    Thread(#[from] std::io::Error),
}

/// The gate that schedules.
pub struct Scheduled {
    shared: Arc<Shared>,
    callers: Callers,
}

/// What the threads of a gate share.
struct Shared {
    rules: Rules,
    /// What lies in front of the paths that rules are about.
    source: PathBuf,
    systems: Systems,
    timer: Timer,
    executors: Executors,
    writeback: Option<Arc<WriteBack>>,
    since_ns: u64,
}

impl Scheduled {
    /// A gate for what lies below `source`, of which `root` is an open descriptor. The device that it lies on is set up now, others as they are met.
    ///
    /// # Errors
    /// When a device cannot be set up as it was asked for, or the system has no thread for it.
    pub fn new(source: PathBuf, root: &Arc<Backing>, config: &MountConfig) -> Result<Scheduled, SetUpError> {
        let ours = config.mount.write_back == WriteBackChoice::Ours;
        let shared = Arc::new(Shared {
            rules: Rules::new(config),
            source,
            systems: Systems::new(config)?,
            timer: Timer::default(),
            executors: Executors::default(),
            writeback: ours.then(|| Arc::new(WriteBack::new(&config.mount))),
            since_ns: now_ns(),
        });
        shared.systems.add(root, now_ns())?;
        timer::start(&shared)?;
        ring::start(&shared.executors);
        if let Some(writeback) = &shared.writeback {
            let (background, limit) = writeback.bounds();
            tracing::info!(
                "written back by us: from {} MiB in memory on at once, and writers wait from {} MiB on",
                background >> 20,
                limit >> 20
            );
        }
        Ok(Scheduled { shared, callers: Callers::default() })
    }

    /// By which it is seen and steered.
    pub fn operator(&self) -> Operator {
        Operator::new(self.shared.clone())
    }

    /// Begins to tell of itself: what comes back serves the control socket and the metrics. `log` sets what is logged.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub fn watch(&self, log: Box<dyn Log + Send>) -> std::io::Result<Watching> {
        let mut operator = self.operator();
        operator.set_log(log);
        Watching::start(operator)
    }

    /// The names of the devices that are known by now.
    pub fn device_names(&self) -> Vec<String> {
        self.shared.systems.queues().iter().map(|queue| queue.name.clone()).collect()
    }

    /// The time in ns, on the clock of the devices.
    pub fn now_ns(&self) -> u64 {
        now_ns()
    }

    /// Has everything that happens in the queues of the devices that are known by now told to these recorders, or to nobody.
    pub fn record(&self, mut recorder: impl FnMut(&str) -> Option<Box<dyn Record>>) {
        for queue in self.shared.systems.queues() {
            queue.lock().device.set_recorder(recorder(&queue.name));
        }
    }

    /// Whether what a process opens here needs no scheduling, so that the kernel may read and write it by itself.
    pub fn passes(&self, asker: &Asker, backing: &Backing) -> bool {
        let shared = &self.shared;
        if !shared.rules.has_passes() {
            return false;
        }
        let facts = people::read(*asker, shared.rules.has_commands());
        shared.rules.passes(&facts, &mut || shared.path_of(backing))
    }

    /// Nothing is scheduled any more: what waits is done at once, and what is to be written back is left to the kernel.
    pub fn close(&self) {
        self.shared.close();
    }

    /// What is known of the devices by now, as lines for the log.
    pub fn told(&self) -> Vec<String> {
        self.shared.systems.told()
    }
}

impl Drop for Scheduled {
    fn drop(&mut self) {
        self.close();
    }
}

/// It is somebody's turn. When it is dropped, the device has room for another.
pub struct Pass<'a> {
    of: Option<(&'a Arc<Shared>, &'a Arc<Queue>)>,
    at: usize,
    after: Option<After>,
    /// The caller's thread is kept for so long.
    _stay: Stay<'a>,
}

/// What is to be done at the end of somebody's turn.
struct After {
    what: What,
    backing: Arc<Backing>,
    offset: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    /// Where the file lies on the disk is to be found out: the file system may read for that.
    Learn,
    /// It may lie elsewhere now than was told while it was changed.
    Changed,
}

/// Somebody's turn has not come.
pub struct Ticket<'a> {
    shared: &'a Arc<Shared>,
    waits: Waits<'a>,
}

/// For what.
enum Waits<'a> {
    /// For the disk.
    Queue {
        queue: &'a Arc<Queue>,
        at: usize,
        after: Option<After>,
    },
    /// For data to be written back: so many bytes are to be added by somebody.
    Room {
        ledger: &'a Ledger,
        backing: Arc<Backing>,
        asker: Asker,
        /// The asker waits for it himself, and with him it comes to nothing.
        is_his: bool,
        bytes: u64,
    },
    /// For nothing but a thread.
    Thread,
    /// For a thread that may find out where it lies.
    First(First),
    /// For what the file has in memory to be written back.
    Clean {
        backing: Arc<Backing>,
        asker: Asker,
    },
    Over,
}

/// The first that is asked of a file system.
struct First {
    asker: Asker,
    operation: Operation,
    backing: Arc<Backing>,
    offset: u64,
    length: u64,
}

impl Gate for Scheduled {
    type Pass<'a> = Pass<'a>;
    type Ticket<'a> = Ticket<'a>;
    type Syncing<'a> = Syncing<'a>;

    fn asked_by(&self, threads: usize) {
        self.callers.set(threads);
    }

    fn enter(&self, ask: &Ask<'_>) -> Entered<Pass<'_>, Ticket<'_>> {
        let shared = &self.shared;
        let unscheduled = || match self.callers.stay() {
            Some(stay) => Entered::Now(Pass { of: None, at: 0, after: None, _stay: stay }),
            None => Entered::Later(Ticket { shared, waits: Waits::Thread }),
        };
        if !shared.systems.knows(ask.backing) {
            // Where it lies is found out in the caller's own time: he is counted as one who is kept.
            match self.callers.stay() {
                Some(_stay) => shared.systems.of(ask.backing),
                None => return Entered::Later(Ticket { shared, waits: Waits::First(First::of(ask)) }),
            };
        }
        let ledger = match ask.operation {
            Operation::Buffered | Operation::Gathered | Operation::Sync => {
                shared.ledger(ask.backing).map(|(_, ledger)| ledger)
            }
            _ => None,
        };
        let waits = match (ask.operation, ledger) {
            (Operation::Buffered | Operation::Gathered, Some(ledger)) if !ledger.has_room(ask.length) => {
                let is_his = ask.operation == Operation::Buffered;
                let class = || shared.class_of(ask.asker, is_his, ask.backing);
                if ledger.has_part(&ask.asker, ask.length, class) {
                    return unscheduled();
                }
                Waits::Room { ledger, backing: ask.backing.clone(), asker: ask.asker, is_his, bytes: ask.length }
            }
            (Operation::Buffered | Operation::Gathered, _) => return unscheduled(),
            (Operation::Sync, Some(ledger)) if ledger.is_much(ask.backing) => {
                Waits::Clean { backing: ask.backing.clone(), asker: ask.asker }
            }
            _ => {
                let Some(system) = shared.systems.of(ask.backing) else { return unscheduled() };
                let now_ns = now_ns();
                let (wanted, learns) = shared.wanted(system, ask, false, Some(&self.callers), now_ns);
                let what = match ask.operation {
                    _ if learns => Some(What::Learn),
                    Operation::Write | Operation::Change => Some(What::Changed),
                    _ => None,
                };
                let after = what.map(|what| After { what, backing: ask.backing.clone(), offset: ask.offset });
                let queue = &system.queue;
                let (at, is_now) = shared.ask_for_this(queue, ask, &wanted, false, now_ns);
                match is_now.then(|| self.callers.stay()).flatten() {
                    Some(stay) => return Entered::Now(Pass { of: Some((shared, queue)), at, after, _stay: stay }),
                    // Its turn may have come: then it is done at once, by a thread of ours.
                    None => Waits::Queue { queue, at, after },
                }
            }
        };
        Entered::Later(Ticket { shared, waits })
    }

    fn park(&self, mut ticket: Ticket<'_>, job: Job) {
        let shared = &self.shared;
        match std::mem::replace(&mut ticket.waits, Waits::Over) {
            Waits::Queue { queue, at, after } => {
                let job = match after {
                    Some(after) => shared.with_after(after, job),
                    None => job,
                };
                // Bound first: the lock is let go before the job is done.
                let back = queue.lock().park_his(at, job);
                if let Some(job) = back {
                    shared.executors.give([Run::new(shared, queue, at, job)]);
                }
            }
            Waits::Thread => shared.executors.give([Run::free(job)]),
            Waits::First(first) => {
                let of_thread = shared.clone();
                shared.executors.give([Run::free(Job::Call(Box::new(move || of_thread.first(&first, job))))]);
            }
            Waits::Room { ledger, backing, asker, is_his, bytes } => {
                let class = shared.class_of(asker, is_his, &backing);
                shared.go_on(ledger.wait_for_room(&asker, is_his, bytes, class, job));
            }
            Waits::Clean { backing, asker } => shared.sync_later(&backing, asker, job),
            Waits::Over => {}
        }
    }

    fn hand_on(&self, work: Box<dyn FnOnce() + Send>) {
        self.shared.executors.give([Run::free(Job::Call(work))]);
    }

    fn dirtied(&self, ask: &Ask<'_>) {
        let shared = &self.shared;
        if let Some(system) = shared.systems.of(ask.backing) {
            system.places.changed(ask.backing.inode);
        }
        if let Some((_, ledger)) = shared.ledger(ask.backing) {
            ledger.dirtied(ask);
        }
    }

    fn cleaned(&self, backing: &Arc<Backing>) {
        if let Some((_, ledger)) = self.shared.ledger(backing) {
            self.shared.go_on(ledger.cleaned(backing));
        }
    }

    fn syncing(&self, backing: &Arc<Backing>) -> Syncing<'_> {
        self.shared.syncing(backing)
    }

    fn synced(&self, syncing: Syncing<'_>) {
        syncing.succeeds();
    }

    fn owes(&self, backing: &Arc<Backing>, is_new: bool) -> Option<i32> {
        self.shared.owes(backing, is_new)
    }

    fn told(&self, backing: &Arc<Backing>) {
        self.shared.told((backing.device, backing.inode));
    }

    fn gone(&self, device: u64, inode: u64) {
        self.shared.told((device, inode));
    }
}

impl First {
    fn of(ask: &Ask<'_>) -> First {
        let Ask { asker, operation, backing, offset, length } = *ask;
        First { asker, operation, backing: backing.clone(), offset, length }
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        if let Some((shared, queue)) = self.of {
            if let Some(after) = self.after.take() {
                shared.after(&after);
            }
            shared.over(queue, self.at, false);
        }
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        if let Waits::Queue { queue, at, .. } = self.waits {
            let mut outcome = Outcome::default();
            queue.lock().withdraw(at, now_ns(), &mut outcome);
            self.shared.follow(queue, outcome);
        }
    }
}

impl Shared {
    /// Puts a request into the queue of the disk that it goes to. Answers its place there, and whether it is its turn already.
    fn ask(self: &Arc<Self>, system: &FileSystem, ask: &Ask<'_>, is_async: bool) -> (usize, bool) {
        let now_ns = now_ns();
        let (wanted, _) = self.wanted(system, ask, is_async, None, now_ns);
        self.ask_for_this(&system.queue, ask, &wanted, is_async, now_ns)
    }

    fn ask_for_this(
        self: &Arc<Self>,
        queue: &Arc<Queue>,
        ask: &Ask<'_>,
        wanted: &Wanted,
        is_async: bool,
        now_ns: u64,
    ) -> (usize, bool) {
        let who: Key = (ask.asker.tid, ask.asker.uid);
        let mut state = queue.lock();
        let needs = state.needs(who, is_async, &self.rules, now_ns);
        let mut path = None;
        if needs.is_any() {
            // The system takes its time: nobody else waits for it.
            drop(state);
            let facts = needs.facts.then(|| people::read(ask.asker, self.rules.has_commands()));
            let ioprio = needs.priority.then(|| people::priority(ask.asker.tid));
            path = needs.path.then(|| self.path_of(ask.backing));
            state = queue.lock();
            let State { people, device, .. } = &mut *state;
            if let Some(facts) = facts {
                people.learn(who, facts, device, now_ns);
            }
            if let (Some(ioprio), Some(person)) = (ioprio, people.get_mut(who)) {
                person.has_priority(ioprio, device, now_ns);
            }
        }
        let whose = state.whose(who, ask.operation, &self.rules, &mut || path.take().unwrap_or_default());
        if let Some(cgroup) = state.lacks(who, whose) {
            drop(state);
            let weights = cgroups::weights(&cgroup);
            state = queue.lock();
            state.weighs(who, weights);
        }
        let member = state.member(who, whose, &self.rules, now_ns);
        let mut outcome = Outcome::default();
        let asked = state.ask(who, member, wanted, now_ns, &mut outcome);
        drop(state);
        self.follow(queue, outcome);
        asked
    }

    /// What an operation wants of its disk, and whether where that lies has to be learned in its turn. What nobody waits for is asked by threads that may wait for the disk.
    /// A caller of the session asks where it lies only while another is left.
    fn wanted(
        &self,
        system: &FileSystem,
        ask: &Ask<'_>,
        is_async: bool,
        callers: Option<&Callers>,
        now_ns: u64,
    ) -> (Wanted, bool) {
        let (places, inode) = (&system.places, ask.backing.inode);
        let bytes = ask.length.clamp(512, REQUEST_BYTES_MAX);
        let metadata = |op| {
            let place = places.of_inode(inode, METADATA_BYTES);
            let hints = Hints { is_async: false, is_metadata: true };
            (Wanted { op, place, bytes: METADATA_BYTES, hints, counts: [0; 2] }, false)
        };
        let data = |op, bytes, counts| {
            let (place, learns) = match is_async {
                true => (places.of_data(ask.backing, ask.offset, bytes, now_ns), false),
                false => {
                    let begin = || callers.map_or(Some(None), |callers| callers.stay().map(Some));
                    places.of_data_now(ask.backing, (ask.offset, bytes), begin, now_ns)
                }
            };
            (Wanted { op, place, bytes, hints: Hints { is_async, is_metadata: false }, counts }, learns)
        };
        match ask.operation {
            Operation::Read => data(WorkOp::Read, bytes, [ask.length, 0]),
            Operation::Write | Operation::Buffered | Operation::Gathered => {
                if !is_async {
                    system.places.changed(inode);
                }
                data(WorkOp::Write, bytes, [0, ask.length])
            }
            Operation::Sync => {
                let dirty = system.queue.ledger.get().map_or(0, |ledger| ledger.waits(ask.backing));
                let bytes = dirty.clamp(METADATA_BYTES, REQUEST_BYTES_MAX);
                data(WorkOp::Write, bytes, [0, dirty])
            }
            Operation::Look => metadata(WorkOp::Read),
            Operation::Change => {
                system.places.changed(inode);
                metadata(WorkOp::Write)
            }
        }
    }

    /// A job that does more at its end. What tells where a file lies is in memory by then, most often.
    fn with_after(self: &Arc<Self>, after: After, job: Job) -> Job {
        let shared = self.clone();
        match job {
            Job::Write { file, offset, data, flags, done } if after.what == What::Changed => {
                let done = Box::new(move |written| {
                    shared.after(&after);
                    done(written);
                });
                Job::Write { file, offset, data, flags, done }
            }
            job => Job::Call(Box::new(move || {
                Run::free(job).go();
                shared.after(&after);
            })),
        }
    }

    fn after(&self, after: &After) {
        let Some(system) = self.systems.of(&after.backing) else { return };
        match after.what {
            What::Learn => system.places.learn(&after.backing, after.offset, now_ns()),
            What::Changed => system.places.changed(after.backing.inode),
        }
    }

    /// An operation is over.
    fn over(self: &Arc<Self>, queue: &Arc<Queue>, at: usize, failed: bool) {
        let mut outcome = Outcome::default();
        queue.lock().end(at, failed, now_ns(), &mut outcome);
        self.follow(queue, outcome);
    }

    /// Does what has come of something: jobs whose turn it is are given to those who do them.
    #[inline]
    fn follow(self: &Arc<Self>, queue: &Arc<Queue>, outcome: Outcome) {
        let Outcome { jobs, wake_ns } = outcome;
        if let Some(wake_ns) = wake_ns {
            self.timer.set(wake_ns);
        }
        if !jobs.is_empty() {
            self.executors.give(jobs.into_iter().map(|(at, job)| Run::new(self, queue, at, job)));
        }
    }

    /// The path of a file below the mount, as it is now; of one that is nowhere there, an empty one.
    fn path_of(&self, backing: &Backing) -> String {
        use std::os::fd::AsRawFd as _;
        let path = backing.with_itself(|fd| std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())));
        let path = path.and_then(Result::ok).unwrap_or_default();
        path.strip_prefix(&self.source).map(|path| path.to_string_lossy().into_owned()).unwrap_or_default()
    }

    fn close(self: &Arc<Self>) {
        if let Some(writeback) = &self.writeback {
            writeback.close();
        }
        let mut jobs = Vec::new();
        self.with_ledgers(|ledger| jobs.extend(ledger.close()));
        self.executors.give(jobs.into_iter().map(Run::free));
        for queue in self.systems.queues() {
            let mut outcome = Outcome::default();
            queue.lock().close(&mut outcome);
            self.follow(&queue, outcome);
        }
        self.timer.close();
        self.executors.close();
    }
}

/// The time in ns, as devices are told it.
#[inline]
fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
