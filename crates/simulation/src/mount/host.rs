//! Simulated threads and time: each thread is a coroutine that is suspended while it waits.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use hoistway_mount::scheduled::Fault;
use hoistway_mount::scheduled::simulated::Host;
use hoistway_reactor::simulated::{Prng, Trace};

use super::disk::{Inode, PAGE, Since};

/// Bytes of the stack of a simulated thread.
const STACK_BYTES: usize = 1 << 20;

type Thread = Coroutine<(), u64, (), DefaultStack>;
/// A file system and a number on it.
pub(super) type FileId = (u64, u64);

/// The yielder of a coroutine, which lives on its stack while the coroutine runs.
type YielderPointer = NonNull<Yielder<(), u64>>;

/// A simulated machine.
pub(super) struct Machine {
    pub now_ns: Cell<u64>,
    threads: RefCell<Vec<Option<Thread>>>,
    stacks: RefCell<Vec<DefaultStack>>,
    /// Times at which threads continue.
    wakes: RefCell<BinaryHeap<Reverse<(u64, u64, usize)>>>,
    serial: Cell<u64>,
    started: RefCell<VecDeque<Box<dyn FnOnce()>>>,
    running: Cell<Option<(usize, YielderPointer)>>,
    pub inodes: RefCell<BTreeMap<FileId, Inode>>,
    pub descriptors: RefCell<BTreeMap<RawFd, (FileId, Since)>>,
    pub killed: RefCell<BTreeSet<u32>>,
    /// Open handles, and the number of errors that each has to report.
    pub owing: RefCell<Vec<(FileId, Arc<AtomicUsize>)>>,
    pub prng: RefCell<Prng>,
    pub trace: RefCell<Trace>,
    pub problem: RefCell<Option<String>>,
    pub fault: Option<Fault>,
    pub syncs_do_nothing: bool,
    /// Of a thousand writes of pages, those that fail.
    pub fails_permille: u64,
    null: File,
}

impl Machine {
    pub fn new(prng: Prng, verbose: bool, fault: Option<Fault>) -> io::Result<Machine> {
        Ok(Machine {
            now_ns: Cell::new(1_000_000_000),
            threads: RefCell::default(),
            stacks: RefCell::default(),
            wakes: RefCell::default(),
            serial: Cell::new(0),
            started: RefCell::default(),
            running: Cell::new(None),
            inodes: RefCell::default(),
            descriptors: RefCell::default(),
            killed: RefCell::default(),
            owing: RefCell::default(),
            prng: RefCell::new(prng),
            trace: RefCell::new(Trace::new(verbose)),
            problem: RefCell::default(),
            fault,
            syncs_do_nothing: false,
            fails_permille: 0,
            null: File::open("/dev/null")?,
        })
    }

    /// Records a violation.
    pub fn violated(&self, what: String) {
        self.problem.borrow_mut().get_or_insert(what);
    }

    pub fn note(&self, numbers: &[u64], line: std::fmt::Arguments<'_>) {
        self.trace.borrow_mut().note(self.now_ns.get(), numbers, line);
    }

    /// Starts a thread.
    pub fn spawn(&self, work: Box<dyn FnOnce()>) {
        self.started.borrow_mut().push_back(work);
    }

    /// Suspends the running thread until `until_ns` at most; [`Machine::wake`] ends the wait.
    pub fn suspend(&self, until_ns: u64) {
        let Some((id, yielder)) = self.running.get() else { return self.violated("the gate blocks".to_owned()) };
        self.wake_at(id, until_ns);
        // SAFETY: the yielder is on the stack of the coroutine that runs now, which calls this.
        unsafe { yielder.as_ref() }.suspend(until_ns);
    }

    pub fn sleep(&self, ns: u64) {
        let until_ns = self.now_ns.get() + ns;
        while self.now_ns.get() < until_ns {
            self.suspend(until_ns);
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

    /// Runs all threads that can run now. Returns the time at which the next one continues.
    pub fn run(&self) -> Option<u64> {
        loop {
            let started = self.started.borrow_mut().pop_front();
            if let Some(work) = started {
                self.start_now(work);
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

    fn start_now(&self, work: Box<dyn FnOnce()>) {
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
        threads[id] = Some(thread);
        drop(threads);
        self.resume(id);
    }

    fn resume(&self, id: usize) {
        let thread = self.threads.borrow_mut().get_mut(id).and_then(Option::take);
        let Some(mut thread) = thread else { return };
        let yielder = YIELDERS.with_borrow(|yielders| yielders.get(&id).copied());
        self.running.set(yielder.map(|yielder| (id, yielder)));
        let result = thread.resume(());
        if let Some((_, yielder)) = self.running.take() {
            YIELDERS.with_borrow_mut(|yielders| yielders.insert(id, yielder));
        }
        match result {
            CoroutineResult::Yield(_) => self.threads.borrow_mut()[id] = Some(thread),
            CoroutineResult::Return(()) => self.stacks.borrow_mut().push(thread.into_stack()),
        }
    }

    /// Opens a description of a file.
    pub fn open(&self, file: FileId) -> Option<OwnedFd> {
        let fd = rustix::io::fcntl_dupfd_cloexec(&self.null, 3).ok()?;
        let since = self.inodes.borrow().get(&file)?.sample();
        self.descriptors.borrow_mut().insert(fd.as_raw_fd(), (file, since));
        Some(fd)
    }

    /// Calls `act` with a file.
    pub fn with<T>(&self, file: FileId, act: impl FnOnce(&mut Inode) -> T) -> T {
        act(self.inodes.borrow_mut().entry(file).or_default())
    }

    /// Waits until no page of a range is under write-back.
    pub fn wait_for_pages(&self, file: FileId, pages: std::ops::Range<usize>) {
        while self.with(file, |inode| inode.busy.range(pages.clone()).next().is_some()) {
            self.sleep(50_000);
        }
    }

    /// Writes dirty pages to the disk.
    pub fn write_pages(&self, file: FileId, pages: std::ops::Range<usize>) {
        self.wait_for_pages(file, pages.clone());
        let taken = self.with(file, |inode| inode.begin_write(pages));
        if taken.is_empty() {
            return;
        }
        let (fails, takes_ns) = {
            let mut prng = self.prng.borrow_mut();
            let hang_ns = if prng.permille(10) { prng.between(1, 4) * 1_000_000_000 } else { 0 };
            (prng.permille(self.fails_permille), prng.magnitude(8_000_000) + 4_000 * taken.len() as u64 + hang_ns)
        };
        self.sleep(takes_ns);
        self.note(
            &[1, file.0, file.1, taken.len() as u64, u64::from(fails)],
            format_args!("{file:?} written: {fails}"),
        );
        let mut owing = self.owing.borrow_mut();
        owing.retain(|(_, owed)| Arc::strong_count(owed) > 1);
        for (_, owed) in owing.iter().filter(|(other, _)| fails && *other == file) {
            owed.store(1, Ordering::Relaxed);
        }
        drop(owing);
        self.with(file, |inode| {
            inode.end_write(&taken, fails);
            if fails {
                inode.forgive(&taken);
            }
        });
    }

    /// Makes a file durable as fsync(2). Returns true if the description reports an error.
    pub fn sync(&self, file: FileId, fd: RawFd) -> bool {
        if !self.syncs_do_nothing {
            self.write_pages(file, 0..usize::MAX);
            self.wait_for_pages(file, 0..usize::MAX);
            let takes_ns = self.prng.borrow_mut().magnitude(5_000_000);
            self.sleep(takes_ns);
            self.with(file, Inode::commit);
        }
        self.reports(fd)
    }

    fn reports(&self, fd: RawFd) -> bool {
        let mut descriptors = self.descriptors.borrow_mut();
        let Some((file, since)) = descriptors.get_mut(&fd) else { return false };
        self.with(*file, |inode| inode.reports(since))
    }

    fn file_of(&self, fd: RawFd) -> Option<FileId> {
        self.descriptors.borrow().get(&fd).map(|(file, _)| *file)
    }
}

thread_local! {
    static YIELDERS: RefCell<BTreeMap<usize, NonNull<Yielder<(), u64>>>> = const { RefCell::new(BTreeMap::new()) };
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

impl Host for Machine {
    fn now_ns(&self) -> u64 {
        self.now_ns.get()
    }

    fn start(&self, job: Box<dyn FnOnce() + Send>) {
        self.spawn(job);
    }

    fn exists(&self, _: u32) -> bool {
        true
    }

    fn is_killed(&self, tid: u32) -> bool {
        self.killed.borrow().contains(&tid)
    }

    fn io_priority(&self, tid: u32) -> u16 {
        // Classes real-time, best-effort and idle, or none.
        (tid as u16 % 4) << 13
    }

    fn descriptors_max(&self) -> u64 {
        1024
    }

    fn disk(&self, device: u64) -> (u64, bool) {
        (1 << 40, device.is_multiple_of(2))
    }

    fn links(&self, fd: RawFd) -> u64 {
        self.file_of(fd).map_or(0, |file| self.with(file, |inode| inode.links))
    }

    fn reopen(&self, fd: RawFd) -> Option<OwnedFd> {
        self.open(self.file_of(fd)?)
    }

    fn write_range(&self, fd: RawFd, (start, end): (u64, u64), waits: bool) -> io::Result<()> {
        let Some(file) = self.file_of(fd) else { return Ok(()) };
        self.write_pages(file, (start / PAGE) as usize..end.div_ceil(PAGE) as usize);
        if waits && self.reports(fd) { Err(io::Error::from_raw_os_error(libc::EIO)) } else { Ok(()) }
    }

    fn fault(&self) -> Option<Fault> {
        self.fault
    }
}
