//! What is in memory for one disk, for all threads: a lock, and what can be known without it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hoistway_core::Class;

use super::super::now_ns;
use super::super::people::Key;
use super::super::queue::REQUEST_BYTES_MAX;
use super::room::{Level, Writer};
use super::table::{Chunk, Going, Place, Syncs, Table, Taken, When, who};
use super::{WriteBack, file_of};
use crate::{Ask, Asker, Backing, Job};

/// Between two looks at what has become old there is at least so much time: what comes in a row is begun together, and sorted.
const LOOK: Duration = Duration::from_millis(20);
/// Whoever waits is looked at after so long, and again: 500 ms.
const ALIVE_NS: u64 = 500_000_000;

/// What is to be written back to one disk.
pub struct Ledger {
    of: Arc<WriteBack>,
    inner: Mutex<Inner>,
    wanted: Condvar,
    /// Bytes in memory, those that are being written included; and whether somebody waits for room. For whoever has not the lock.
    dirty: AtomicU64,
    is_waited_for: AtomicBool,
}

#[derive(Default)]
struct Inner {
    table: Table,
    /// Until when the thread sleeps; 0 while it does not.
    sleeps_ns: u64,
    /// When it looks whether those who wait are still alive; 0: nobody waits.
    look_ns: u64,
    /// What of it is counted with that of other disks.
    counted_files: usize,
    is_counted: bool,
}

/// What the thread has to do.
pub(super) enum Next {
    /// To put these into the queue.
    Begin(Vec<Chunk>),
    /// To look whether these threads are still there.
    Look(Vec<u32>),
}

/// What goes on after something was written: who waited for files, and for room.
#[must_use]
#[derive(Default)]
pub struct After {
    pub syncs: Syncs,
    pub jobs: Vec<Job>,
}

impl Ledger {
    pub fn new(of: Arc<WriteBack>) -> Ledger {
        Ledger {
            of,
            inner: Mutex::default(),
            wanted: Condvar::new(),
            dirty: AtomicU64::new(0),
            is_waited_for: AtomicBool::new(false),
        }
    }

    /// Bytes in memory that are not on the disk, as far as they were written here.
    pub fn dirty(&self) -> u64 {
        self.dirty.load(Ordering::Relaxed)
    }

    /// Whether anybody may put so many bytes more into memory: there is room, and nobody waits for it.
    #[inline]
    pub fn has_room(&self, bytes: u64) -> bool {
        !self.is_waited_for.load(Ordering::Relaxed) && self.level(self.dirty()).has_room(bytes)
    }

    /// Whether somebody may put more into memory although there is no room: he has less there than his part. His class is asked for where it matters.
    pub fn has_part(&self, asker: &Asker, bytes: u64, class: impl FnOnce() -> Class) -> bool {
        let inner = self.lock();
        let owners = &inner.table.owners;
        let (level, own, owing) = (self.level(inner.table.dirty()), owners.dirty_of(who(asker)), owners.owing());
        drop(inner);
        level.has_part(own, owing, bytes, class)
    }

    /// Has a job done when there is room for what it brings; `is_his`: unless the asker is killed before.
    pub fn wait_for_room(&self, asker: &Asker, is_his: bool, bytes: u64, class: Class, job: Job) -> After {
        self.after(|table| {
            if table.is_closed {
                return (None, vec![job]);
            }
            table.waiting.add(Writer { who: who(asker), is_his, bytes }, class, job);
            (None, Vec::new())
        })
    }

    /// Somebody has put data into memory.
    pub fn dirtied(&self, ask: &Ask<'_>) {
        let key = file_of(ask.backing);
        self.with(|table| {
            // Of a file too many the kernel takes care.
            if !table.is_closed && (table.has(key) || self.of.takes_file()) {
                table.dirtied(key, ask, now_ns());
            }
        });
    }

    /// Whether so much of a file waits to be written that making it durable is many requests.
    pub fn is_much(&self, backing: &Backing) -> bool {
        self.waits(backing) > REQUEST_BYTES_MAX
    }

    /// How many bytes of a file wait to be written.
    pub fn waits(&self, backing: &Backing) -> u64 {
        self.lock().table.waits(file_of(backing))
    }

    /// What a file has in memory does not exist any more.
    pub fn cleaned(&self, backing: &Backing) -> After {
        self.after(|table| (table.cleaned(file_of(backing)), Vec::new()))
    }

    /// All of a file that is in memory by now is made durable from now on.
    pub(super) fn syncing(&self, backing: &Backing) -> Option<Taken> {
        self.with(|table| table.syncing(file_of(backing)))
    }

    /// It is, or that has failed.
    pub(super) fn synced(&self, taken: Taken, is_durable: bool) -> After {
        self.after(|table| (table.synced(taken, is_durable), Vec::new()))
    }

    /// Has all data of a file that are in memory by now written as somebody's requests that he waits for, and then does the job. Gives it back where there are none.
    pub(super) fn clean_then(&self, backing: &Backing, asker: Asker, job: Job) -> (Option<Job>, Vec<Chunk>) {
        let mut chunks = Vec::new();
        let left = self.with(|table| match table.is_closed {
            true => Some(job),
            false => table.clean_then(file_of(backing), asker, job, &mut chunks),
        });
        (left, chunks)
    }

    /// The turn of a request has come: what it is to write, if it is to write anything still.
    pub(super) fn begins(&self, place: &Place) -> Option<Going> {
        self.with(|table| table.begins(place))
    }

    /// A request is over; `has_gone`: it was it that has written its part.
    pub(super) fn ended(&self, place: &Place, has_gone: bool) -> After {
        self.after(|table| (table.ended(place, has_gone), Vec::new()))
    }

    /// Who has data in memory.
    pub fn owners(&self) -> Vec<Key> {
        self.lock().table.owners.keys().collect()
    }

    /// Nothing is written back any more: what is left is the kernel's, and nobody waits. Answers what waited.
    pub fn close(&self) -> Vec<Job> {
        let jobs = self.with(Table::close);
        self.wanted.notify_all();
        jobs
    }

    /// A thread that waits was killed. What goes on after that, and what it waited for, which is not to be done.
    pub(super) fn give_up(&self, tid: u32) -> (After, Vec<Job>) {
        let mut given_up = Vec::new();
        let after = self.after(|table| {
            given_up = table.give_up(tid, now_ns());
            (None, Vec::new())
        });
        (after, given_up)
    }

    /// What is to be done now; sleeps until there is something. `None`: nothing ever again.
    pub(super) fn next(&self) -> Option<Next> {
        let mut inner = self.lock();
        loop {
            inner.sleeps_ns = 0;
            if inner.table.is_closed {
                return None;
            }
            let when = self.when();
            if let Some(waiters) = inner.look(when.now_ns) {
                return Some(Next::Look(waiters));
            }
            let mut chunks = Vec::new();
            let due_ns = inner.table.begin(&when, &mut chunks);
            if !chunks.is_empty() {
                self.publish(&mut inner);
                return Some(Next::Begin(chunks));
            }
            let look_ns = Some(inner.look_ns).filter(|look_ns| *look_ns > 0);
            let until_ns = due_ns.into_iter().chain(look_ns).min();
            inner.sleeps_ns = until_ns.unwrap_or(u64::MAX);
            inner = match until_ns {
                None => self.wanted.wait(inner).unwrap_or_else(PoisonError::into_inner),
                Some(until_ns) => {
                    let wait = Duration::from_nanos(until_ns.saturating_sub(when.now_ns)).max(LOOK);
                    self.wanted.wait_timeout(inner, wait).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// Changes the table, and lets those in for whom there is room after that.
    fn after(&self, act: impl FnOnce(&mut Table) -> (Syncs, Vec<Job>)) -> After {
        self.with(|table| {
            let (syncs, mut jobs) = act(table);
            if !table.waiting.is_empty() {
                let level = self.level(table.dirty());
                jobs.extend(table.waiting.let_in(level, &table.owners));
            }
            After { syncs, jobs }
        })
    }

    fn with<T>(&self, act: impl FnOnce(&mut Table) -> T) -> T {
        let mut inner = self.lock();
        let done = act(&mut inner.table);
        self.publish(&mut inner);
        done
    }

    /// Shows to those who have not the lock what has changed, and wakes the thread if it has something to do before it would look.
    fn publish(&self, inner: &mut Inner) {
        let Inner { table, sleeps_ns, counted_files, is_counted, .. } = inner;
        let of = &self.of;
        self.dirty.store(table.dirty(), Ordering::Relaxed);
        self.is_waited_for.store(!table.waiting.is_empty(), Ordering::Relaxed);
        let (files, is_dirty) = (table.files(), table.dirty() > 0);
        // The sum wraps where there are less than before.
        of.files.fetch_add(files.wrapping_sub(*counted_files), Ordering::Relaxed);
        of.disks.fetch_add(u64::from(is_dirty).wrapping_sub(u64::from(*is_counted)), Ordering::Relaxed);
        (*counted_files, *is_counted) = (files, is_dirty);
        if *sleeps_ns == 0 {
            return;
        }
        let when = self.when();
        let look_ns = table.is_waited_for().then_some(when.now_ns.saturating_add(ALIVE_NS));
        let next_ns = table.due_ns(&when).into_iter().chain(look_ns).min();
        if let Some(next_ns) = next_ns.filter(|next_ns| next_ns < sleeps_ns) {
            *sleeps_ns = next_ns;
            self.wanted.notify_one();
        }
    }

    fn level(&self, dirty: u64) -> Level {
        Level { dirty, limit: self.of.part(self.of.limit) }
    }

    fn when(&self) -> When {
        let of = &self.of;
        When { now_ns: now_ns(), age_ns: of.age_ns, background: of.part(of.background), is_crowded: of.is_crowded() }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Who waits, if it is time to look after them.
    fn look(&mut self, now_ns: u64) -> Option<Vec<u32>> {
        let (before_ns, waits) = (self.look_ns, self.table.is_waited_for());
        if waits && before_ns > now_ns {
            return None;
        }
        self.look_ns = if waits { now_ns.saturating_add(ALIVE_NS) } else { 0 };
        (waits && before_ns > 0).then(|| self.table.waiters())
    }
}
