//! Simulated threads and time: each thread is a coroutine that is suspended while it waits.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::fs::File;
use std::io;
use std::os::fd::RawFd;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::Weak;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use hoistway_mount::Backing;
use hoistway_reactor::simulated::{Prng, Trace};

use super::file_system::FileSystem;
use super::inode::Since;
use super::judge::{FileId, Judge};
use super::plan::{FaultBelow, MountPlan, Sabotage};

/// Bytes of the stack of a simulated thread.
const STACK_BYTES: usize = 1 << 20;

type Thread = Coroutine<(), u64, (), DefaultStack>;
/// The yielder of a coroutine, which lives on its stack while the coroutine runs.
type YielderPointer = NonNull<Yielder<(), u64>>;
type Work = Box<dyn FnOnce()>;

/// The lifetime of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// The thread ends with the mount: its own, or a process that uses it.
    Mount,
    /// The thread ends with a power failure.
    Kernel,
}

/// A simulated machine.
pub(super) struct Machine {
    pub now_ns: Cell<u64>,
    threads: RefCell<Vec<Option<(Owner, Thread)>>>,
    stacks: RefCell<Vec<DefaultStack>>,
    /// Times at which threads continue.
    wakes: RefCell<BinaryHeap<Reverse<(u64, u64, usize)>>>,
    serial: Cell<u64>,
    started: RefCell<VecDeque<(Owner, Work)>>,
    running: Cell<Option<(usize, YielderPointer)>>,
    yielders: RefCell<BTreeMap<usize, YielderPointer>>,
    /// Threads that wait for the end of a write or of a transaction.
    waiting: RefCell<Vec<usize>>,
    is_discarding: Cell<bool>,
    pub file_systems: RefCell<BTreeMap<u64, FileSystem>>,
    pub judge: RefCell<Judge>,
    pub descriptors: RefCell<BTreeMap<RawFd, (FileId, Since)>>,
    pub opened: RefCell<Vec<(FileId, Weak<Backing>)>>,
    /// Files that the mount writes back, once for each chunk.
    pub written_back: RefCell<Vec<FileId>>,
    pub killed: RefCell<BTreeSet<u32>>,
    pub prng: RefCell<Prng>,
    pub trace: RefCell<Trace>,
    pub problem: RefCell<Option<String>>,
    pub sabotage: Option<Sabotage>,
    /// Of a thousand writes of pages, those that fail.
    pub fails_permille: u64,
    /// The shortest and the longest time of a write that does not hang.
    pub write_ns: (u64, u64),
    /// A second description of a file can be opened.
    pub reopens: bool,
    pub null: File,
}

impl Machine {
    /// Creates a machine with the disks of a world.
    pub fn new(plan: &MountPlan, prng: Prng, verbose: bool) -> io::Result<Machine> {
        let (mut judge, mut file_systems) = (Judge::default(), BTreeMap::new());
        for device in 1..=plan.disks {
            let mut system = FileSystem::new(plan.names, plan.capacity, plan.pool);
            if let Some(Sabotage::Below(fault)) = plan.sabotage {
                system.fault = Some(fault);
            }
            judge.add_directory(device, system.names.clone());
            file_systems.insert(device, system);
        }
        Ok(Machine {
            now_ns: Cell::new(1_000_000_000),
            threads: RefCell::default(),
            stacks: RefCell::default(),
            wakes: RefCell::default(),
            serial: Cell::new(0),
            started: RefCell::default(),
            running: Cell::new(None),
            yielders: RefCell::default(),
            waiting: RefCell::default(),
            is_discarding: Cell::new(false),
            file_systems: RefCell::new(file_systems),
            judge: RefCell::new(judge),
            descriptors: RefCell::default(),
            opened: RefCell::default(),
            written_back: RefCell::default(),
            killed: RefCell::default(),
            prng: RefCell::new(prng),
            trace: RefCell::new(Trace::new(verbose)),
            problem: RefCell::default(),
            sabotage: plan.sabotage,
            fails_permille: plan.fails_permille,
            write_ns: plan.write_ns,
            reopens: plan.reopens,
            null: File::open("/dev/null")?,
        })
    }

    /// Returns true if the simulated file system has a fault.
    pub fn has_fault(&self, fault: FaultBelow) -> bool {
        self.sabotage == Some(Sabotage::Below(fault))
    }

    /// Records a violation.
    pub fn violated(&self, what: String) {
        self.problem.borrow_mut().get_or_insert(what);
    }

    /// Adds an event to the trace. Returns its number.
    pub fn note(&self, numbers: &[u64], line: std::fmt::Arguments<'_>) -> u64 {
        let mut trace = self.trace.borrow_mut();
        trace.note(self.now_ns.get(), numbers, line);
        trace.events()
    }

    /// Starts a thread.
    pub fn spawn(&self, owner: Owner, work: Work) {
        self.started.borrow_mut().push_back((owner, work));
    }

    /// Suspends the running thread until [`Machine::wake`].
    pub fn block(&self) {
        if self.is_discarding.get() {
            // The killed thread ends here; `discard` catches this.
            resume_unwind(Box::new("killed"));
        }
        let Some((_, yielder)) = self.running.get() else { return self.violated("the gate blocks".to_owned()) };
        // SAFETY: the yielder is on the stack of the coroutine that runs now, which calls this.
        unsafe { yielder.as_ref() }.suspend(0);
    }

    /// Suspends the running thread until `until_ns` at most; [`Machine::wake`] ends the wait.
    pub fn suspend(&self, until_ns: u64) {
        self.wake_at(self.current(), until_ns);
        self.block();
    }

    pub fn sleep(&self, ns: u64) {
        let until_ns = self.now_ns.get() + ns;
        while self.now_ns.get() < until_ns {
            self.suspend(until_ns);
        }
    }

    /// Suspends the running thread until a write or a transaction has ended.
    pub fn wait_for_disk(&self) {
        self.waiting.borrow_mut().push(self.current());
        self.block();
    }

    /// Continues the threads that wait for a write or a transaction.
    pub fn wake_waiting(&self) {
        for thread in self.waiting.take() {
            self.wake(thread);
        }
    }

    /// Returns the running thread.
    pub fn current(&self) -> usize {
        self.running.get().map_or(usize::MAX, |(id, _)| id)
    }

    /// Continues a thread.
    pub fn wake(&self, thread: usize) {
        self.wake_at(thread, self.now_ns.get());
    }

    fn wake_at(&self, thread: usize, at_ns: u64) {
        self.serial.set(self.serial.get() + 1);
        self.wakes.borrow_mut().push(Reverse((at_ns, self.serial.get(), thread)));
    }

    /// Returns true if no thread is left.
    pub fn is_idle(&self) -> bool {
        self.started.borrow().is_empty() && self.threads.borrow().iter().all(Option::is_none)
    }

    /// Runs all threads that can run now. Returns the time at which the next one continues.
    pub fn run(&self) -> Option<u64> {
        loop {
            let started = self.started.borrow_mut().pop_front();
            if let Some((owner, work)) = started {
                self.start_now(owner, work);
                continue;
            }
            let next = self.wakes.borrow().peek().map(|Reverse((at_ns, _, thread))| (*at_ns, *thread));
            match next {
                Some((at_ns, thread)) if at_ns <= self.now_ns.get() => {
                    self.wakes.borrow_mut().pop();
                    self.resume(thread);
                }
                next => return next.map(|(at_ns, _)| at_ns),
            }
        }
    }

    fn start_now(&self, owner: Owner, work: Work) {
        let stack = self.stacks.borrow_mut().pop();
        let Some(stack) = stack.or_else(|| DefaultStack::new(STACK_BYTES).ok()) else {
            return self.violated("no stack".to_owned());
        };
        let mut threads = self.threads.borrow_mut();
        let id = threads.iter().position(Option::is_none).unwrap_or(threads.len());
        let machine: *const Machine = self;
        let thread = Coroutine::with_stack(stack, move |yielder: &Yielder<(), u64>, ()| {
            // SAFETY: the machine resumes its threads, and outlives them.
            unsafe { &*machine }.running.set(Some((id, NonNull::from(yielder))));
            work();
        });
        if id == threads.len() {
            threads.push(None);
        }
        threads[id] = Some((owner, thread));
        self.yielders.borrow_mut().remove(&id);
        drop(threads);
        self.resume(id);
    }

    fn resume(&self, id: usize) {
        let thread = self.threads.borrow_mut().get_mut(id).and_then(Option::take);
        let Some((owner, mut thread)) = thread else { return };
        let yielder = self.yielders.borrow().get(&id).copied();
        self.running.set(yielder.map(|yielder| (id, yielder)));
        let result = thread.resume(());
        if let Some((_, yielder)) = self.running.take() {
            self.yielders.borrow_mut().insert(id, yielder);
        }
        match result {
            CoroutineResult::Yield(_) => self.threads.borrow_mut()[id] = Some((owner, thread)),
            CoroutineResult::Return(()) => self.stacks.borrow_mut().push(thread.into_stack()),
        }
    }

    /// Ends all threads of the mount, or all threads.
    pub fn kill(&self, all: bool) {
        let ends = |owner: Owner| all || owner == Owner::Mount;
        loop {
            let ended = {
                let mut threads = self.threads.borrow_mut();
                let is_ended =
                    |slot: &&mut Option<(Owner, Thread)>| slot.as_ref().is_some_and(|(owner, _)| ends(*owner));
                threads.iter_mut().find(is_ended).and_then(Option::take)
            };
            // Dropping a suspended coroutine unwinds its stack.
            let Some((_, thread)) = ended else { break };
            drop(thread);
        }
        // Work that is discarded may start further work.
        loop {
            let at = self.started.borrow().iter().position(|(owner, _)| ends(*owner));
            let Some((_, work)) = at.and_then(|at| self.started.borrow_mut().remove(at)) else { break };
            self.discard(work);
        }
    }

    /// Drops what belongs to a killed mount. A job of the gate runs when it is dropped: it ends
    /// where it would wait.
    pub fn discard<T>(&self, dropped: T) {
        self.closing(|| drop(dropped));
    }

    /// Calls `act`, which ends where it would wait.
    pub fn closing(&self, act: impl FnOnce()) {
        self.is_discarding.set(true);
        let _ = catch_unwind(AssertUnwindSafe(act));
        self.is_discarding.set(false);
    }
}

thread_local! {
    static MACHINE: RefCell<Option<Rc<Machine>>> = const { RefCell::new(None) };
}

/// Sets the machine of this thread.
pub(super) fn set_machine(machine: Option<Rc<Machine>>) {
    MACHINE.set(machine);
}

/// Returns the machine of this thread.
pub(super) fn machine() -> Rc<Machine> {
    MACHINE.with_borrow(Clone::clone).expect("a world runs")
}
