//! Write-back by the mount: what was written into memory goes to the disk as requests of whoever wrote it.
//!
//! Left to itself the kernel writes back from threads of its own, so that a disk below sees all writers as one. Here each file with data in memory is known with
//! its ranges and its last writer. When they are old enough, or too many, they become asynchronous writes of at most 1 MiB in the queue of the disk; when the turn
//! of one comes, `sync_file_range` has the kernel write just that range, and waits for it. Writers wait while too much is in memory.

use std::collections::VecDeque;
use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use hoistway_serve::config::mount::MountTerms;
use rustc_hash::{FxHashMap, FxHashSet};

use super::executors::{Executors, Run};
use super::people::Key;
use super::queue::REQUEST_BYTES_MAX;
use super::ranges::Ranges;
use super::{Shared, now_ns};
use crate::{Ask, Asker, Backing, Job, Operation};

/// How old data become unless told: 1 s.
const AGE_NS: u64 = 1_000_000_000;
/// How often it is looked for what has become old: every 250 ms.
const LOOK: Duration = Duration::from_millis(250);
/// Writes that are in queues at a time, of all files and of one.
const WRITES_MAX: u32 = 128;
const WRITES_A_FILE: u32 = 32;
/// Data that are being made durable are left alone for so long, at most: 30 s.
const HOLD_NS: u64 = 30_000_000_000;
/// Of the machine's memory a twentieth is written back in the background, and writers wait from a tenth on: half of what the kernel's own write-back has
/// (dirty_background_ratio, dirty_ratio), so that this one is first.
const BACKGROUND_PART: u64 = 20;
const LIMIT_PART: u64 = 10;

/// What is to be written back.
pub(super) struct WriteBack {
    table: Mutex<Table>,
    wanted: Condvar,
    /// Bytes in memory, those that are being written included.
    dirty: AtomicU64,
    background: u64,
    limit: u64,
    age_ns: u64,
}

/// File system and inode.
type File = (u64, u64);

#[derive(Default)]
struct Table {
    files: FxHashMap<File, Dirty>,
    /// Writes in queues or on their way to the disk.
    writes: u32,
    /// Writers that wait for room: how much they bring, and what they do then.
    waiting: VecDeque<(u64, Job)>,
    is_closed: bool,
}

/// A file with data in memory.
struct Dirty {
    file: Arc<Backing>,
    asker: Asker,
    ranges: Ranges,
    /// When the oldest of them came.
    since_ns: u64,
    /// They are not begun before this.
    held_ns: u64,
    /// Somebody waits for these to be written.
    urgent: Ranges,
    urgent_asker: Asker,
    syncs: Vec<(Asker, Job)>,
    writes: u32,
    urgent_writes: u32,
    own: Arc<OnceLock<Option<OwnedFd>>>,
}

/// A part of a file on its way to the disk.
struct Chunk {
    key: File,
    file: Arc<Backing>,
    asker: Asker,
    start: u64,
    end: u64,
    is_urgent: bool,
    own: Arc<OnceLock<Option<OwnedFd>>>,
}

impl WriteBack {
    pub fn new(terms: &MountTerms) -> WriteBack {
        let memory = memory_bytes();
        let limit = terms.dirty_limit.unwrap_or(memory / LIMIT_PART).max(REQUEST_BYTES_MAX);
        let background = terms.dirty_background.unwrap_or(memory / BACKGROUND_PART).min(limit);
        WriteBack {
            table: Mutex::default(),
            wanted: Condvar::new(),
            dirty: AtomicU64::new(0),
            background,
            limit,
            age_ns: terms.dirty_age_ns.unwrap_or(AGE_NS),
        }
    }

    /// Bytes in memory that are not on the disk, as far as they were written here.
    pub fn dirty(&self) -> u64 {
        self.dirty.load(Ordering::Relaxed)
    }

    /// From how much on it is written in the background, and writers wait, in bytes.
    pub fn bounds(&self) -> (u64, u64) {
        (self.background, self.limit)
    }

    /// Whether somebody may put so many bytes more into memory.
    #[inline]
    pub fn has_room(&self, bytes: u64) -> bool {
        let dirty = self.dirty();
        dirty == 0 || dirty.saturating_add(bytes) <= self.limit
    }

    /// Does a job when there is room for what it brings.
    pub fn wait_for_room(&self, bytes: u64, job: Job, executors: &Executors) {
        let mut table = self.lock();
        if self.has_room(bytes) || table.is_closed {
            drop(table);
            return executors.give([Run::free(job)]);
        }
        table.waiting.push_back((bytes, job));
        drop(table);
        self.wanted.notify_one();
    }

    /// Somebody has put data into memory.
    pub fn dirtied(&self, ask: &Ask<'_>) {
        let key = (ask.backing.device, ask.backing.inode);
        let mut table = self.lock();
        if table.is_closed {
            return;
        }
        let was_idle = table.files.is_empty();
        let file = table.files.entry(key).or_insert_with(|| Dirty::new(ask));
        if file.ranges.is_empty() {
            file.since_ns = now_ns();
        }
        file.asker = ask.asker;
        let added = file.ranges.add(ask.offset, ask.offset.saturating_add(ask.length));
        // The sum wraps where less is counted than before.
        let before = self.dirty.fetch_add(added as u64, Ordering::Relaxed);
        drop(table);
        if was_idle || (before <= self.background && before.wrapping_add_signed(added) > self.background) {
            self.wanted.notify_one();
        }
    }

    /// Whether so much of a file is in memory that making it durable is many requests.
    pub fn is_much(&self, backing: &Backing) -> bool {
        let table = self.lock();
        let file = table.files.get(&(backing.device, backing.inode));
        file.is_some_and(|file| file.ranges.bytes() > REQUEST_BYTES_MAX)
    }

    /// A file is about to be made durable as a whole: its data need not be written twice. Answers how many bytes that are.
    pub fn hold(&self, backing: &Backing, now_ns: u64) -> u64 {
        let mut table = self.lock();
        let Some(file) = table.files.get_mut(&(backing.device, backing.inode)) else { return 0 };
        file.held_ns = now_ns.saturating_add(HOLD_NS);
        file.ranges.bytes()
    }

    /// Nothing of a file has to be written back any more.
    pub fn cleaned(&self, backing: &Backing, executors: &Executors) {
        let key = (backing.device, backing.inode);
        let mut table = self.lock();
        let Some(file) = table.files.get_mut(&key) else { return };
        let bytes = std::mem::take(&mut file.ranges).bytes();
        file.held_ns = 0;
        if file.is_over() {
            table.files.remove(&key);
        }
        self.dirty.fetch_sub(bytes, Ordering::Relaxed);
        self.let_in(table, executors);
    }

    /// Has all data of a file written that are in memory by now, as somebody's requests that he waits for, and then does the job. Gives it back where there are none.
    pub fn clean_then(&self, backing: &Backing, asker: Asker, job: Job) -> Option<Job> {
        let mut table = self.lock();
        let closed = table.is_closed;
        let Some(file) = table.files.get_mut(&(backing.device, backing.inode)).filter(|_| !closed) else {
            return Some(job);
        };
        while let Some((start, end)) = file.ranges.take(u64::MAX) {
            // What was waited for already counts once.
            // Or more, where what lies between two counts with them.
            let twice = (end - start).wrapping_add_signed(-file.urgent.add(start, end));
            self.dirty.fetch_sub(twice, Ordering::Relaxed);
        }
        if file.urgent.is_empty() && file.urgent_writes == 0 {
            return Some(job);
        }
        file.urgent_asker = asker;
        file.syncs.push((asker, job));
        drop(table);
        self.wanted.notify_one();
        None
    }

    /// Who has data in memory.
    pub fn owners(&self) -> FxHashSet<Key> {
        self.lock().files.values().map(|file| (file.asker.tid, file.asker.uid)).collect()
    }

    /// Nothing is written back any more: it is left to the kernel, and nobody waits.
    pub fn close(&self, executors: &Executors) {
        let mut table = self.lock();
        table.is_closed = true;
        let mut jobs: Vec<Job> = table.waiting.drain(..).map(|(_, job)| job).collect();
        for (_, file) in table.files.drain() {
            jobs.extend(file.syncs.into_iter().map(|(_, job)| job));
        }
        drop(table);
        self.wanted.notify_all();
        executors.give(jobs.into_iter().map(Run::free));
    }

    /// A chunk is on the disk, or will never be. What waited for it comes back.
    fn written(&self, chunk: &Chunk, executors: &Executors) -> Vec<(Asker, Job)> {
        let mut table = self.lock();
        table.writes = table.writes.saturating_sub(1);
        self.dirty.fetch_sub(chunk.end - chunk.start, Ordering::Relaxed);
        let mut over = Vec::new();
        if let Some(file) = table.files.get_mut(&chunk.key) {
            file.writes = file.writes.saturating_sub(1);
            if chunk.is_urgent {
                file.urgent_writes = file.urgent_writes.saturating_sub(1);
                if file.urgent_writes == 0 && file.urgent.is_empty() {
                    over = std::mem::take(&mut file.syncs);
                }
            }
            if file.is_over() {
                table.files.remove(&chunk.key);
            }
        }
        self.let_in(table, executors);
        self.wanted.notify_one();
        over
    }

    /// Lets those go on who wait for room.
    fn let_in(&self, mut table: MutexGuard<'_, Table>, executors: &Executors) {
        let mut dirty = self.dirty();
        let mut jobs = Vec::new();
        while let Some((bytes, _)) = table.waiting.front() {
            if dirty > 0 && dirty.saturating_add(*bytes) > self.limit {
                break;
            }
            dirty += bytes;
            jobs.extend(table.waiting.pop_front().map(|(_, job)| Run::free(job)));
        }
        drop(table);
        executors.give(jobs);
    }

    /// What is to be written now; sleeps until there is something. `None`: nothing ever again.
    fn next(&self) -> Option<Vec<Chunk>> {
        let mut table = self.lock();
        loop {
            if table.is_closed {
                return None;
            }
            let chunks = self.due(&mut table, now_ns());
            if !chunks.is_empty() {
                return Some(chunks);
            }
            table = match table.files.is_empty() {
                true => self.wanted.wait(table).unwrap_or_else(PoisonError::into_inner),
                false => self.wanted.wait_timeout(table, LOOK).unwrap_or_else(PoisonError::into_inner).0,
            };
        }
    }

    fn due(&self, table: &mut Table, now_ns: u64) -> Vec<Chunk> {
        let mut room = WRITES_MAX.saturating_sub(table.writes);
        let mut chunks = Vec::new();
        let is_much = self.dirty() > self.background || !table.waiting.is_empty();
        let mut keys: Vec<(u64, File)> = Vec::new();
        for (key, file) in &table.files {
            let is_old = now_ns.saturating_sub(file.since_ns) >= self.age_ns;
            if !file.urgent.is_empty() {
                keys.push((0, *key));
            } else if (is_old || is_much) && now_ns >= file.held_ns && !file.ranges.is_empty() {
                keys.push((file.since_ns, *key));
            }
        }
        // What waits for longest is first, and what somebody waits for before that.
        keys.sort_unstable();
        for (_, key) in keys {
            let Some(file) = table.files.get_mut(&key) else { continue };
            while room > 0 && file.writes < WRITES_A_FILE {
                let Some(chunk) = file.chunk(key, now_ns, is_much, self.age_ns) else { break };
                chunks.push(chunk);
                table.writes += 1;
                room -= 1;
            }
        }
        chunks
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Dirty {
    fn new(ask: &Ask<'_>) -> Dirty {
        Dirty {
            file: ask.backing.clone(),
            asker: ask.asker,
            ranges: Ranges::default(),
            since_ns: 0,
            held_ns: 0,
            urgent: Ranges::default(),
            urgent_asker: ask.asker,
            syncs: Vec::new(),
            writes: 0,
            urgent_writes: 0,
            own: Arc::default(),
        }
    }

    fn is_over(&self) -> bool {
        self.ranges.is_empty() && self.urgent.is_empty() && self.writes == 0 && self.syncs.is_empty()
    }

    /// The next part of it, what is urgent first.
    fn chunk(&mut self, key: File, now_ns: u64, is_much: bool, age_ns: u64) -> Option<Chunk> {
        let is_due = (is_much || now_ns.saturating_sub(self.since_ns) >= age_ns) && now_ns >= self.held_ns;
        let (range, is_urgent) = match self.urgent.take(REQUEST_BYTES_MAX) {
            Some(range) => (range, true),
            None if is_due => (self.ranges.take(REQUEST_BYTES_MAX)?, false),
            None => return None,
        };
        self.writes += 1;
        self.urgent_writes += u32::from(is_urgent);
        let asker = if is_urgent { self.urgent_asker } else { self.asker };
        let (start, end) = range;
        Some(Chunk { key, file: self.file.clone(), asker, start, end, is_urgent, own: self.own.clone() })
    }
}

/// Starts the thread that writes back.
///
/// # Errors
/// When there is none to be had.
pub(super) fn start(shared: &Arc<Shared>) -> io::Result<()> {
    let shared = Arc::downgrade(shared);
    thread::Builder::new().name("hoistway-back".into()).spawn(move || run(&shared)).map(|_| ())
}

fn run(shared: &Weak<Shared>) {
    while let Some(shared) = shared.upgrade() {
        let Some(chunks) = shared.writeback.as_ref().and_then(WriteBack::next) else { return };
        for chunk in chunks {
            shared.write_back(chunk);
        }
    }
}

impl Shared {
    /// Puts a part of a file into the queue of its disk; it is written when its turn comes.
    fn write_back(self: &Arc<Self>, chunk: Chunk) {
        let (file, asker) = (chunk.file.clone(), chunk.asker);
        let (offset, length) = (chunk.start, chunk.end - chunk.start);
        let (of_job, is_async) = (self.clone(), !chunk.is_urgent);
        let job = Job::Call(Box::new(move || of_job.write_now(&chunk)));
        let ask = Ask { asker, operation: Operation::Buffered, backing: &file, offset, length };
        self.ask_for(&ask, is_async, job);
    }

    /// Puts something into the queue of its disk, to be done when its turn comes.
    fn ask_for(self: &Arc<Self>, ask: &Ask<'_>, is_async: bool, job: Job) {
        let Some(system) = self.systems.of(ask.backing) else { return self.executors.give([Run::free(job)]) };
        let (at, is_now) = self.ask(system, ask, is_async);
        let back = if is_now { Some(job) } else { system.queue.lock().park(at, job) };
        if let Some(job) = back {
            self.executors.give([Run::new(self, &system.queue, at, job)]);
        }
    }

    /// Has the kernel write a part of a file.
    fn write_now(self: &Arc<Self>, chunk: &Chunk) {
        if let Err(error) = chunk.write() {
            tracing::warn!(
                inode = chunk.key.1,
                offset = chunk.start,
                bytes = chunk.end - chunk.start,
                "data could not be written back ({error}): who calls fsync is told so"
            );
        }
        let Some(writeback) = &self.writeback else { return };
        for (asker, job) in writeback.written(chunk, &self.executors) {
            self.sync_now(&chunk.file, asker, job);
        }
    }

    /// Makes a file durable for somebody, after what it has in memory went through the queue.
    pub(super) fn sync_later(self: &Arc<Self>, backing: Arc<Backing>, asker: Asker, job: Job) {
        let left = match &self.writeback {
            Some(writeback) => writeback.clean_then(&backing, asker, job),
            None => Some(job),
        };
        if let Some(job) = left {
            self.sync_now(&backing, asker, job);
        }
    }

    fn sync_now(self: &Arc<Self>, backing: &Arc<Backing>, asker: Asker, job: Job) {
        self.ask_for(&Ask { asker, operation: Operation::Sync, backing, offset: 0, length: 0 }, false, job);
    }
}

impl Chunk {
    /// Writes it and waits until the disk has it.
    fn write(&self) -> io::Result<()> {
        const WRITE: libc::c_uint = libc::SYNC_FILE_RANGE_WRITE;
        const ALL: libc::c_uint =
            libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER;
        // Whoever waits for a range is told of an error, and the kernel tells it once each time that the file was opened. So this waits by a descriptor of its
        // own: the error is still there for fsync.
        let own = self.own.get_or_init(|| reopened(&self.file));
        let (fd, flags) = match own {
            Some(own) => (own.as_raw_fd(), ALL),
            None => (self.file.fd.as_raw_fd(), WRITE),
        };
        let (offset, bytes) = (self.start as libc::off64_t, (self.end - self.start) as libc::off64_t);
        // SAFETY: a call with numbers alone, on a descriptor that is open.
        match unsafe { libc::sync_file_range(fd, offset, bytes, flags) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// The same file, opened once more.
fn reopened(file: &Backing) -> Option<OwnedFd> {
    let path = format!("/proc/self/fd/{}", file.fd.as_raw_fd());
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC).open(path);
    opened.ok().map(OwnedFd::from)
}

/// The machine's memory in bytes; 1 GiB where it does not tell.
fn memory_bytes() -> u64 {
    let told = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = told.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.map_or(1 << 30, |kib| kib << 10)
}
