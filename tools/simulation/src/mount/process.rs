//! The processes that use the mount, and the calls of the mount to its gate: the same in the same
//! order as for a FUSE operation.

use std::collections::BTreeMap;
use std::ops::Range;
use std::os::fd::AsRawFd as _;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use hoistway_mount::scheduled::{Scheduled, SimulatedGate, file_near};
use hoistway_mount::{Admission, Backing, Caller, Gate, GateRequest, Job, Operation};
use hoistway_reactor::simulated::Prng;

use super::inode::{PAGE, Pages};
use super::judge::FileId;
use super::kernel::SyncError;
use super::machine::{Machine, Owner, machine};

/// The longest wait of a request, in ns: 300 s.
const WAIT_NS_MAX: u64 = 300_000_000_000;
/// Bytes of a request above which a sync waits for write-back: 1 MiB.
const REQUEST_BYTES: u64 = 1 << 20;

/// State of all processes of a mount.
pub(super) struct Shared {
    pub gate: Arc<Scheduled>,
    /// The directories of the file systems.
    pub directories: Vec<(u64, Arc<Backing>)>,
    pub files: Mutex<BTreeMap<FileId, FileState>>,
    pub names: u64,
    pub alive: AtomicUsize,
    pub answered: AtomicUsize,
    pub operations: u64,
    pub kills_permille: u64,
    /// Stores and buffered writes come from the kernel's cache above the mount.
    pub caches_above: bool,
}

/// What the mount knows of a file.
#[derive(Default)]
pub(super) struct FileState {
    opened: usize,
    descriptor: Weak<Backing>,
    /// Syncs of the file so far, and those that run now.
    syncs: usize,
    syncing: usize,
}

/// An open file handle.
struct Handle {
    file: FileId,
    backing: Arc<Backing>,
    /// The error that the mount found at the open.
    pending_error: AtomicI32,
    /// The number of errors of the file that the handle must not report.
    reported: AtomicUsize,
    /// The number of errors of the file that the handle need not report.
    excused: AtomicUsize,
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

/// A process that uses the mount.
pub(super) struct Process {
    shared: Arc<Shared>,
    caller: Caller,
    prng: Prng,
    handles: Vec<Arc<Handle>>,
}

impl Process {
    pub fn new(shared: &Arc<Shared>, tid: u32, prng: Prng) -> Process {
        let caller = Caller { tid, uid: 0, gid: 0 };
        Process { shared: shared.clone(), caller, prng, handles: Vec::new() }
    }

    /// Uses the mount until its last operation or its death.
    pub fn live(&mut self) {
        for _ in 0..self.shared.operations {
            let machine = machine();
            machine.sleep(self.prng.magnitude(400_000_000));
            if self.prng.permille(self.shared.kills_permille) {
                self.die(&machine);
                break;
            }
            match self.prng.between(0, 20) {
                0..=2 => self.open(),
                3..=7 => drop(self.write(Operation::BufferedWrite)),
                8 => self.write_directly(),
                9 if self.prng.permille(500) => self.write_much(),
                9 => self.store(),
                10..=12 => self.sync(false),
                13 => self.sync(true),
                14 => self.truncate(),
                15 => self.replace(),
                16 => self.unlink(),
                17 => self.sync_directory(),
                18 | 19 => self.close(),
                _ => self.flush_below(),
            }
        }
        while !self.handles.is_empty() {
            self.close();
        }
    }

    /// Is killed while it waits for a sync or a write.
    fn die(&mut self, machine: &Machine) {
        // Enough ranges that a sync cannot submit all of them at once.
        for _ in 0..self.prng.pick(&[1, 120]) {
            self.handle();
            if let Some(handle) = self.handles.first().cloned() {
                let first = self.prng.between(0, 4000) as usize;
                let pages = first..first + self.prng.between(1, 8) as usize;
                self.write_pages(&handle, Operation::BufferedWrite, pages);
            }
        }
        machine.killed.borrow_mut().insert(self.caller.tid);
        match self.prng.permille(800) {
            true if !self.handles.is_empty() => self.sync_handle(&self.handles[0].clone(), false),
            true => self.sync(false),
            false => drop(self.write(Operation::BufferedWrite)),
        }
    }

    fn any_name(&mut self) -> (u64, Arc<Backing>, u64) {
        let (device, directory) = &self.shared.directories[self.prng.index(self.shared.directories.len())];
        (*device, directory.clone(), self.prng.between(0, self.shared.names - 1))
    }

    /// Opens a file, which is created if the name does not exist.
    fn open(&mut self) {
        let (device, directory, name) = self.any_name();
        let opened = Arc::new(Mutex::new(None));
        let (result, shared, near) = (opened.clone(), self.shared.clone(), directory.clone());
        match machine().lookup(device, name) {
            Some(file) => *lock(&opened) = shared.register_open(file, &near, false),
            None => {
                self.request(&directory, Operation::MetadataWrite, (0, 0), move || {
                    if let Some(file) = machine().create(device, name) {
                        *lock(&result) = shared.register_open(file, &near, true);
                    }
                    0
                });
            }
        }
        // The name was created by another process meanwhile if there is no handle.
        let handle = lock(&opened).take();
        self.handles.extend(handle);
    }

    fn close(&mut self) {
        if self.handles.is_empty() {
            return;
        }
        let handle = self.handles.swap_remove(self.prng.index(self.handles.len()));
        self.shared.release(&handle);
    }

    fn handle(&mut self) -> Option<Arc<Handle>> {
        if self.handles.is_empty() {
            self.open();
        }
        self.handles.get(self.prng.index(self.handles.len())).cloned()
    }

    /// Writes into the page cache below. Returns the handle that was used.
    fn write(&mut self, operation: Operation) -> Option<Arc<Handle>> {
        let handle = self.handle()?;
        let pages = self.any_pages();
        self.write_pages(&handle, operation, pages);
        Some(handle)
    }

    fn write_pages(&self, handle: &Arc<Handle>, operation: Operation, pages: Range<usize>) {
        let operation = if self.shared.caches_above { Operation::KernelWriteback } else { operation };
        let (offset, length) = (pages.start as u64 * PAGE, pages.len() as u64 * PAGE);
        let (gate, caller, of_job) = (self.shared.gate.clone(), self.caller, handle.clone());
        let errno = self.request(&handle.backing, operation, (offset, length), move || {
            let machine = machine();
            let Handle { file, backing, .. } = &*of_job;
            match machine.write(*file, pages.clone()) {
                Ok((written, number)) => {
                    let length = written as u64 * PAGE;
                    gate.note_dirty(&GateRequest { caller, operation, backing, offset, length });
                    machine.judge.borrow_mut().note_acknowledged(*file, pages.start..pages.start + written, number);
                    0
                }
                Err(errno) => errno,
            }
        });
        if errno == libc::EINTR && operation == Operation::KernelWriteback {
            machine().violated(format!("pages of the kernel's cache for {:?} are not written", handle.file));
        }
    }

    /// Writes more than one request, which the mount may begin to write back, and then syncs.
    fn write_much(&mut self) {
        let Some(handle) = self.handle() else { return };
        for part in 0..self.prng.between(3, 6) as usize {
            let pages = part * 200..part * 200 + self.prng.between(100, 200) as usize;
            self.write_pages(&handle, Operation::BufferedWrite, pages);
            if self.prng.permille(300) {
                machine().sleep(self.prng.magnitude(100_000_000));
            }
        }
        self.sync_handle(&handle, false);
    }

    fn any_pages(&mut self) -> Range<usize> {
        let first = self.prng.between(0, 600) as usize;
        first..first + self.prng.magnitude(256) as usize
    }

    /// Stores into a mapping, and waits with msync(2).
    fn store(&mut self) {
        if let Some(handle) = self.write(Operation::KernelWriteback) {
            self.sync_handle(&handle, false);
        }
    }

    /// Writes with `O_DIRECT`, or with `O_SYNC` or `O_DSYNC`: after such a buffered write the
    /// kernel syncs the file.
    fn write_directly(&mut self) {
        let only_data = self.prng.permille(500);
        if self.prng.permille(500) {
            if let Some(handle) = self.write(Operation::BufferedWrite) {
                self.sync_handle(&handle, only_data);
            }
            return;
        }
        let Some(handle) = self.handle() else { return };
        let pages = self.any_pages();
        let (offset, length) = (pages.start as u64 * PAGE, pages.len() as u64 * PAGE);
        let (of_job, is_synchronous) = (handle.clone(), self.prng.permille(500));
        self.request(&handle.backing, Operation::Write, (offset, length), move || {
            let machine = machine();
            let Handle { file, backing, .. } = &*of_job;
            let number = match machine.write_directly(*file, pages.clone()) {
                Ok(number) => number,
                Err(errno) => return errno,
            };
            let mut errno = 0;
            if is_synchronous {
                match machine.sync(*file, backing.fd.as_raw_fd(), only_data) {
                    Ok(()) => machine.judge.borrow_mut().note_durable(*file, pages, number),
                    Err(SyncError::Refused(refused)) => errno = of_job.note_refused(&machine, refused),
                    // The mount cannot know whether the write or an earlier one has failed: a later
                    // sync of this or another handle may report the error again.
                    Err(SyncError::Lost(lost)) => errno = of_job.note_reported(&machine, lost, false),
                }
            }
            errno
        });
    }

    fn truncate(&mut self) {
        let Some(handle) = self.handle() else { return };
        let pages = if self.prng.permille(600) { 0 } else { self.prng.between(1, 700) as usize };
        let (gate, of_job) = (self.shared.gate.clone(), handle.clone());
        self.request(&handle.backing, Operation::MetadataWrite, (0, 0), move || {
            machine().truncate(of_job.file, pages);
            if pages == 0 {
                gate.discard_dirty(of_job.backing.device, of_job.backing.inode);
            }
            0
        });
    }

    /// Renames a file over another, often after a sync.
    fn replace(&mut self) {
        let (device, directory, from) = self.any_name();
        let to = self.prng.between(0, self.shared.names - 1);
        let file = machine().lookup(device, from);
        let open = self.handles.iter().find(|handle| Some(handle.file) == file).cloned();
        if let Some(handle) = open
            && self.prng.permille(500)
        {
            self.sync_handle(&handle, false);
        }
        let shared = self.shared.clone();
        self.request(&directory, Operation::MetadataWrite, (0, 0), move || {
            if let Some(replaced) = machine().rename(device, from, to) {
                shared.note_removed(replaced);
            }
            0
        });
    }

    fn unlink(&mut self) {
        let (device, directory, name) = self.any_name();
        let shared = self.shared.clone();
        self.request(&directory, Operation::MetadataWrite, (0, 0), move || {
            if let Some(removed) = machine().unlink(device, name) {
                shared.note_removed(removed);
            }
            0
        });
    }

    fn sync_directory(&mut self) {
        let (device, directory, _) = self.any_name();
        let changes = machine().judge.borrow().name_changes(device);
        let errno = self.request(&directory, Operation::Sync, (0, 0), move || {
            machine().sync_directory(device);
            0
        });
        if errno == 0 {
            machine().judge.borrow_mut().note_names_synced(device, changes);
        }
    }

    /// Has the kernel below write some pages, as it does when memory is short.
    fn flush_below(&mut self) {
        let pages = self.any_pages();
        if let Some(handle) = self.handle() {
            machine().spawn(Owner::Kernel, Box::new(move || machine().flush_some(handle.file, pages)));
        }
    }

    fn sync(&mut self, only_data: bool) {
        if let Some(handle) = self.handle() {
            self.sync_handle(&handle, only_data);
        }
    }

    /// Syncs a file, and checks that exactly the errors that the handle has to report are reported.
    fn sync_handle(&self, handle: &Arc<Handle>, only_data: bool) {
        let machine = machine();
        let file = handle.file;
        let Some((pages, errors)) = machine.with(file, |inode| (inode.live().clone(), inode.errors.len())) else {
            return;
        };
        let has_error = errors > handle.excused.load(Ordering::Relaxed);
        let is_large = SimulatedGate::pending_bytes(&self.shared.gate, &handle.backing) > REQUEST_BYTES;
        let earlier = self.shared.with_file(file, |state| {
            state.syncs += 1;
            state.syncing += 1;
            (state.syncing == 1).then_some(state.syncs)
        });
        let first = earlier.filter(|_| is_large).map(|syncs| (syncs, pages.clone()));
        let scope = machine.judge.borrow().scope(file, pages);
        let (shared, of_job) = (self.shared.clone(), handle.clone());
        let errno = self.request(&handle.backing, Operation::Sync, (0, 0), move || {
            shared.check_order(&of_job, first.as_ref());
            shared.sync_below(&of_job, only_data)
        });
        self.shared.with_file(file, |state| state.syncing -= 1);
        machine.note(&[4, file.0, file.1, errno as u64], format_args!("{file:?} synced: {errno}"));
        match errno {
            0 if has_error => machine.violated(format!("a sync of {file:?} does not report a write-back error")),
            0 => machine.judge.borrow_mut().note_synced(file, &scope, only_data),
            _ => (),
        }
    }

    /// Sends a request and waits for its reply. Returns the error, or 0.
    fn request(
        &self,
        backing: &Arc<Backing>,
        operation: Operation,
        (offset, length): (u64, u64),
        work: impl FnOnce() -> i32 + Send + 'static,
    ) -> i32 {
        let machine = machine();
        let begun_ns = machine.now_ns.get();
        let request = GateRequest { caller: self.caller, operation, backing, offset, length };
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
                        machine.violated(format!("a {operation:?} request waits for 300 s"));
                        return libc::EINTR;
                    }
                }
                reply.errno.load(Ordering::Relaxed)
            }
        }
    }
}

impl Handle {
    /// Checks that an error that the handle reports has occurred and was not reported before. After
    /// a sync no handle that is opened later reports it, unless a chunk in flight has met it too.
    /// Returns the error.
    fn note_reported(&self, machine: &Machine, errno: i32, is_sync: bool) -> i32 {
        let errors = machine.with(self.file, |inode| inode.errors.clone()).unwrap_or_default();
        let reported = self.reported.load(Ordering::Relaxed);
        if is_sync {
            self.reported.store(errors.len(), Ordering::Relaxed);
        }
        self.excused.store(errors.len(), Ordering::Relaxed);
        if !errors.get(reported..).unwrap_or_default().contains(&errno) {
            machine.violated(format!(
                "a sync of {:?} reports error {errno}; of the errors {errors:?} the first {reported} were reported",
                self.file
            ));
        }
        // Without a second description the mount may meet an error again, too.
        let is_final = is_sync && machine.reopens && !machine.written_back.borrow().contains(&self.file);
        machine.judge.borrow_mut().note_reported(self.file, errors.len(), is_final);
        errno
    }

    /// Records a sync that fails for a reason of its own, which also reports the earlier errors.
    fn note_refused(&self, machine: &Machine, errno: i32) -> i32 {
        let errors = machine.with(self.file, |inode| inode.errors.len()).unwrap_or(0);
        self.excused.store(errors, Ordering::Relaxed);
        machine.judge.borrow_mut().note_reported(self.file, errors, false);
        errno
    }
}

impl Shared {
    fn with_file<T>(&self, file: FileId, act: impl FnOnce(&mut FileState) -> T) -> T {
        act(lock(&self.files).entry(file).or_default())
    }

    /// Creates a handle as the mount does.
    fn register_open(&self, file: FileId, near: &Arc<Backing>, is_new: bool) -> Option<Arc<Handle>> {
        let machine = machine();
        let number = machine.with(file, |inode| inode.number)?;
        let Some(fd) = machine.open(file) else {
            machine.violated("no descriptor".to_owned());
            return None;
        };
        let backing = file_near(near, fd, number, file.1);
        machine.note_open(file, &backing);
        self.with_file(file, |state| {
            state.opened += 1;
            if state.descriptor.strong_count() == 0 {
                state.descriptor = Arc::downgrade(&backing);
            }
        });
        let pending_error = self.gate.pending_writeback_error(&backing, is_new).unwrap_or(0);
        let (reported, excused) = machine.judge.borrow().reported(file);
        machine.note(&[10, file.0, file.1], format_args!("{file:?} opened, pending error {pending_error}"));
        let [reported, excused] = [reported, excused].map(AtomicUsize::new);
        Some(Arc::new(Handle { file, backing, pending_error: AtomicI32::new(pending_error), reported, excused }))
    }

    /// Closes a handle as the mount does.
    fn release(&self, handle: &Arc<Handle>) {
        let is_last = self.with_file(handle.file, |state| {
            state.opened -= 1;
            state.opened == 0
        });
        if !is_last || machine().with(handle.file, |inode| inode.links).unwrap_or(0) > 0 {
            return;
        }
        self.discard(handle.file, &handle.backing);
        self.gate.forget_inode(handle.backing.device, handle.backing.inode);
        // The close frees the blocks of the file.
        let (caller, backing) = (Caller { tid: 0, uid: 0, gid: 0 }, &handle.backing);
        let request = GateRequest { caller, operation: Operation::MetadataWrite, backing, offset: 0, length: 0 };
        if let Admission::Later(ticket) = self.gate.admit(&request) {
            let last = handle.clone();
            self.gate.park(ticket, Job::Call(Box::new(move || drop(last))));
        }
    }

    /// Discards the dirty state of a file whose last name was removed, as the mount does.
    fn note_removed(&self, file: FileId) {
        let (opened, descriptor) = self.with_file(file, |state| (state.opened, state.descriptor.upgrade()));
        if opened > 0 {
            return;
        }
        let number = machine().with(file, |inode| inode.number).unwrap_or(0);
        match descriptor {
            Some(known) => self.discard(file, &known),
            None => self.gate.discard_dirty(file.0, number),
        }
        self.gate.forget_inode(file.0, number);
    }

    fn discard(&self, file: FileId, backing: &Arc<Backing>) {
        self.gate.discard_dirty(backing.device, backing.inode);
        let bytes = SimulatedGate::pending_bytes(&self.gate, backing);
        if bytes > 0 {
            machine().violated(format!("{bytes} bytes of the removed file {file:?} are dirty"));
        }
    }

    /// Checks that a sync of more than one request begins below after the write-back of the data
    /// that were dirty then, unless other syncs took part of them.
    fn check_order(&self, handle: &Handle, first: Option<&(usize, Pages)>) {
        let Some((syncs, pages)) = first else { return };
        if self.with_file(handle.file, |state| state.syncs) != *syncs {
            return;
        }
        let machine = machine();
        let page = machine.with(handle.file, |inode| inode.awaited_page(pages)).flatten();
        if let Some(page) = page.filter(|_| machine.reopens) {
            machine.violated(format!("a sync of {:?} begins before the write-back of page {page}", handle.file));
        }
    }

    /// Carries out a sync as the mount does. Returns the error, or 0.
    fn sync_below(&self, handle: &Handle, only_data: bool) -> i32 {
        let machine = machine();
        let syncing = self.gate.begin_sync(&handle.backing);
        let synced = machine.sync(handle.file, handle.backing.fd.as_raw_fd(), only_data);
        match synced {
            Ok(()) => self.gate.finish_sync(syncing),
            Err(_) => drop(syncing),
        }
        let pending_error = handle.pending_error.swap(0, Ordering::Relaxed);
        if synced.is_ok() && pending_error == 0 {
            return 0;
        }
        self.gate.clear_writeback_error(&handle.backing);
        match synced {
            Err(SyncError::Refused(errno)) => handle.note_refused(&machine, errno),
            Err(SyncError::Lost(errno)) => handle.note_reported(&machine, errno, true),
            Ok(()) => handle.note_reported(&machine, pending_error, true),
        }
    }
}

/// Locks a mutex of a world, which runs on one thread.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
