//! How write-back uses the queues: what is due goes in there, and is written when its turn comes.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::thread;

use hoistway_core::Class;
use rustc_hash::FxHashSet;
use rustix::fs::fstat;

use super::super::executors::Run;
use super::super::people::{self, Key};
use super::super::queue::Queue;
use super::super::rules::Whose;
use super::super::systems::FileSystem;
use super::super::{First, Shared};
use super::ledger::{After, Ledger, Next};
use super::table::{Chunk, Place, Taken};
use super::{File, file_of};
use crate::passthrough::give_up_reserves;
use crate::{Ask, Asker, Backing, Job, Operation};

/// A file that somebody makes durable. Dropped by itself it says that this has failed.
pub struct Syncing<'a> {
    of: Option<(&'a Arc<Shared>, &'a Ledger, Taken)>,
}

impl Syncing<'_> {
    /// It is durable.
    pub(in super::super) fn succeeds(mut self) {
        if let Some((shared, ledger, taken)) = self.of.take() {
            shared.go_on(ledger.synced(taken, true));
        }
    }
}

impl Drop for Syncing<'_> {
    fn drop(&mut self) {
        if let Some((shared, ledger, taken)) = self.of.take() {
            shared.go_on(ledger.synced(taken, false));
        }
    }
}

impl Shared {
    /// The ledger of the disk that a file lies on; `None` where write-back is the kernel's.
    pub(in super::super) fn ledger<'a>(self: &'a Arc<Self>, backing: &Backing) -> Option<(&'a Arc<Queue>, &'a Ledger)> {
        let of = self.writeback.as_ref()?;
        let FileSystem { queue, .. } = self.systems.of(backing)?;
        let ledger = queue.ledger.get_or_init(|| {
            let ledger = Ledger::new(of.clone());
            if of.is_closed.load(Ordering::Acquire) {
                let _ = ledger.close();
            } else if let Err(error) = start(self, queue) {
                tracing::error!("the kernel writes back to {}, as there is no thread for it: {error}", queue.name);
                let _ = ledger.close();
            }
            ledger
        });
        Some((queue, ledger))
    }

    /// The ledgers that there are.
    pub(in super::super) fn with_ledgers(&self, mut act: impl FnMut(&Ledger)) {
        for queue in self.systems.queues() {
            if let Some(ledger) = queue.ledger.get() {
                act(ledger);
            }
        }
    }

    /// Who has data in memory.
    pub(in super::super) fn owners(&self) -> FxHashSet<Key> {
        let mut owners = FxHashSet::default();
        self.with_ledgers(|ledger| owners.extend(ledger.owners()));
        owners
    }

    /// The class of somebody, for what he writes to a file. Where it is not he who waits for that, he may hold what his command line is read by until it is written: it is not
    /// looked at then.
    pub(in super::super) fn class_of(&self, asker: Asker, is_his: bool, backing: &Backing) -> Class {
        let facts = people::read(asker, is_his && self.rules.has_commands());
        let whose = self.rules.of_request(&facts, Operation::Buffered, &mut || self.path_of(backing));
        let of_tenant = match whose {
            Whose::Tenant(place) => self.rules.tenants.get(place as usize).map(|tenant| tenant.terms.priority),
            Whose::Own | Whose::Cgroup => None,
        };
        match of_tenant.filter(|priority| priority.is_set()) {
            Some(priority) => priority.class(),
            // As ioprio_get(2) has it.
            None => match facts.process.ioprio >> 13 {
                1 => Class::RealTime,
                3 => Class::Idle,
                _ => Class::BestEffort,
            },
        }
    }

    /// Has those go on who waited.
    pub(in super::super) fn go_on(self: &Arc<Self>, after: After) {
        let After { syncs, jobs } = after;
        self.executors.give(jobs.into_iter().map(Run::free));
        if let Some((backing, syncs)) = syncs {
            for (asker, job) in syncs {
                self.sync_now(&backing, asker, job);
            }
        }
    }

    /// Somebody is about to make a file durable.
    pub(in super::super) fn syncing(self: &Arc<Self>, backing: &Backing) -> Syncing<'_> {
        let of = self.ledger(backing).and_then(|(_, ledger)| Some((self, ledger, ledger.syncing(backing)?)));
        Syncing { of }
    }

    /// Makes a file durable for somebody, after what it has in memory went through the queue.
    pub(in super::super) fn sync_later(self: &Arc<Self>, backing: &Arc<Backing>, asker: Asker, job: Job) {
        let (left, chunks) = match self.ledger(backing) {
            Some((_, ledger)) => ledger.clean_then(backing, asker, job),
            None => (Some(job), Vec::new()),
        };
        for chunk in chunks {
            self.write_back(chunk);
        }
        if let Some(job) = left {
            self.sync_now(backing, asker, job);
        }
    }

    fn sync_now(self: &Arc<Self>, backing: &Arc<Backing>, asker: Asker, job: Job) {
        self.ask_for(&Ask { asker, operation: Operation::Sync, backing, offset: 0, length: 0 }, false, job);
    }

    /// Puts a part of a file into the queue of its disk; it is written when its turn comes.
    fn write_back(self: &Arc<Self>, chunk: Chunk) {
        let Chunk { place, backing, asker, start, end } = chunk;
        let ask = Ask { asker, operation: Operation::Buffered, backing: &backing, offset: start, length: end - start };
        let Some((queue, _)) = self.ledger(&backing) else { return };
        // It keeps no file open while it waits: of one that is removed meanwhile nothing is left.
        let (shared, queue) = (self.clone(), queue.clone());
        let job = Job::Call(Box::new(move || shared.write_now(&queue, &place)));
        self.ask_for(&ask, place.of.is_some(), job);
    }

    /// Does what was asked first of a file system when its turn comes, or at once if it has none.
    pub(in super::super) fn first(self: &Arc<Self>, first: &First, job: Job) {
        let First { asker, operation, ref backing, offset, length } = *first;
        match operation {
            Operation::Buffered | Operation::Gathered => Run::free(job).go(),
            _ => self.ask_for(&Ask { asker, operation, backing, offset, length }, false, job),
        }
    }

    /// Puts something into the queue of its disk, to be done when its turn comes.
    fn ask_for(self: &Arc<Self>, ask: &Ask<'_>, is_async: bool, job: Job) {
        let Some(system) = self.systems.of(ask.backing) else { return self.executors.give([Run::free(job)]) };
        let (at, is_now) = self.ask(system, ask, is_async);
        // What is written back is not waited for by who wrote it.
        let is_his = !matches!(ask.operation, Operation::Buffered | Operation::Gathered);
        let park = |job| {
            let mut state = system.queue.lock();
            if is_his { state.park_his(at, job) } else { state.park(at, job) }
        };
        let back = if is_now { Some(job) } else { park(job) };
        if let Some(job) = back {
            self.executors.give([Run::new(self, &system.queue, at, job)]);
        }
    }

    /// Writes a part of a file, if nobody has done that meanwhile.
    fn write_now(self: &Arc<Self>, queue: &Queue, place: &Place) {
        let Some(ledger) = queue.ledger.get() else { return };
        let going = ledger.begins(place);
        if let Some(going) = &going
            && let Err(error) = going.write()
            && let Some(writeback) = &self.writeback
            // Of a file without a name nobody will be told who has not got it open by now: those the kernel tells.
            && fstat(&going.backing).is_ok_and(|told| told.st_nlink > 0)
            && writeback.untold.note(place.file, error.raw_os_error().unwrap_or(libc::EIO))
        {
            tracing::warn!(
                device = queue.name,
                inode = place.file.1,
                offset = going.start,
                bytes = going.end - going.start,
                "data could not be written back ({error}): who calls fsync is told so"
            );
        }
        self.go_on(ledger.ended(place, going.is_some()));
    }

    /// The error of write-back that who opens a file has to be told of; one that was just made has none.
    pub(in super::super) fn owes(&self, backing: &Backing, is_new: bool) -> Option<i32> {
        let untold = &self.writeback.as_ref()?.untold;
        if is_new {
            untold.told(file_of(backing));
        }
        untold.of(file_of(backing))
    }

    /// Somebody was told, or nobody has to be any more.
    pub(in super::super) fn told(&self, file: File) {
        if let Some(writeback) = &self.writeback {
            writeback.untold.told(file);
        }
    }
}

/// Starts the thread that writes back to a disk.
///
/// # Errors
/// When there is none to be had.
fn start(shared: &Arc<Shared>, queue: &Arc<Queue>) -> std::io::Result<()> {
    let (shared, queue) = (Arc::downgrade(shared), Arc::downgrade(queue));
    thread::Builder::new().name("hoistway-back".into()).spawn(move || run(&shared, &queue)).map(|_| ())
}

fn run(shared: &Weak<Shared>, queue: &Weak<Queue>) {
    give_up_reserves();
    while let (Some(shared), Some(queue)) = (shared.upgrade(), queue.upgrade()) {
        // Whoever has begun this thread is about to put the ledger there.
        let ledger = queue.ledger.wait();
        match ledger.next() {
            None => return,
            Some(Next::Begin(chunks)) => chunks.into_iter().for_each(|chunk| shared.write_back(chunk)),
            Some(Next::Look(tids)) => {
                for tid in tids.into_iter().filter(|tid| people::is_killed(*tid)) {
                    let (after, jobs) = ledger.give_up(tid);
                    tracing::debug!(device = queue.name, tid, jobs = jobs.len(), "killed while it waited for room");
                    shared.executors.give(jobs.into_iter().map(Run::given_up));
                    shared.go_on(after);
                }
            }
        }
    }
}
