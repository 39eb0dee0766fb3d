//! Tests of the dirty table alone, without a queue, a disk or a thread.

use std::fs::File;
use std::sync::Arc;

use hoistway_core::Class;
use proptest::prelude::*;

use super::super::issuers::{IssuerId, issuer_id};
use super::owners::Owners;
use super::table::{Chunk, ChunkId, SubmitPolicy, SyncWaiters, Table};
use super::throttle::{DirtyThrottle, ThrottledWrite};
use super::*;
use crate::{Caller, GateRequest, Job, Operation};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const DEVICE: u64 = 7;

fn caller(tid: u32) -> Caller {
    Caller { tid, uid: 0, gid: 0 }
}

fn backing(inode: u64) -> Arc<Backing> {
    let nothing = File::open("/dev/null").expect("every machine has it");
    Arc::new(Backing::new(nothing.into(), DEVICE, inode))
}

fn note_dirty(table: &mut Table, file: &Arc<Backing>, tid: u32, offset: u64, length: u64, now_ns: u64) {
    let request =
        GateRequest { caller: caller(tid), operation: Operation::BufferedWrite, backing: file, offset, length };
    table.note_dirty(file_key(file), &request, now_ns);
}

/// Submission conditions with an age of one second.
fn policy(now_ns: u64) -> SubmitPolicy {
    SubmitPolicy {
        now_ns,
        age_ns: 1_000_000_000,
        background: u64::MAX,
        is_near_file_limit: false,
        has_throttled_writes: false,
    }
}

fn submitted(table: &mut Table, policy: &SubmitPolicy) -> Vec<Chunk> {
    let mut chunks = Vec::new();
    loop {
        let mut more = Vec::new();
        table.submit_due(policy, &mut more);
        if more.is_empty() {
            return chunks;
        }
        chunks.extend(more);
    }
}

fn job() -> Job {
    Job::Call(Box::new(|| ()))
}

/// Dispatches and completes a request. Returns true if it wrote anything.
fn done(table: &mut Table, id: &ChunkId) -> (bool, SyncWaiters) {
    let was_written = table.dispatch(id).is_some();
    (was_written, table.finish(id, was_written))
}

#[test]
fn many_small_files_take_few_steps_each() {
    const FILES: u64 = 20_000;
    let mut table = Table::default();
    // One descriptor serves all of them here.
    let of_all = backing(0);
    for inode in 1..=FILES {
        let request = GateRequest {
            caller: caller(1),
            operation: Operation::BufferedWrite,
            backing: &of_all,
            offset: 0,
            length: 4 * KIB,
        };
        table.note_dirty((DEVICE, inode), &request, inode);
        if inode.is_multiple_of(500) {
            assert!(submitted(&mut table, &policy(inode)).is_empty(), "all data are young");
        }
    }
    table.steps = 0;
    let mut order = Vec::new();
    let mut queue = std::collections::VecDeque::new();
    loop {
        let mut chunks = Vec::new();
        table.submit_due(&policy(2_000_000_000), &mut chunks);
        queue.extend(chunks);
        let Some(Chunk { id, .. }) = queue.pop_front() else { break };
        assert!(queue.len() < 128, "the maximum in the device queue");
        order.push(id.file.1);
        assert!(done(&mut table, &id).0);
    }
    assert_eq!(order, (1..=FILES).collect::<Vec<_>>(), "the oldest first");
    assert!(table.steps <= 3 * FILES, "{} steps for {FILES} files", table.steps);
    assert_eq!((table.dirty(), table.files(), table.owners.ids().count()), (0, 0, 0));
}

#[test]
fn an_owner_of_many_queued_writes_leaves_slots_for_others() {
    let mut table = Table::default();
    let (of_hog, of_other) = (backing(1), backing(2));
    note_dirty(&mut table, &of_hog, 1, 0, 1000 * MIB, 0);
    let now = policy(2_000_000_000);
    let first = submitted(&mut table, &now);
    assert_eq!(first.len(), 128, "a single owner may have all slots");
    note_dirty(&mut table, &of_other, 2, 0, 100 * MIB, 0);
    let second = submitted(&mut table, &now);
    assert_eq!(second.len(), 64, "two owners may have half of them each");
    assert!(second.iter().all(|chunk| chunk.caller.tid == 2));
    // The first owner gets another slot once it has fewer than its share.
    for chunk in &first[..64] {
        done(&mut table, &chunk.id);
    }
    assert_eq!(submitted(&mut table, &now).len(), 0);
    done(&mut table, &first[64].id);
    let more = submitted(&mut table, &now);
    assert_eq!(more.iter().map(|chunk| chunk.caller.tid).collect::<Vec<_>>(), [1]);
}

#[test]
fn discarding_data_releases_them_although_their_writes_are_queued() {
    let mut table = Table::default();
    let file = backing(1);
    note_dirty(&mut table, &file, 1, 0, 4 * MIB, 0);
    let chunks = submitted(&mut table, &policy(2_000_000_000));
    assert_eq!((chunks.len(), table.dirty()), (4, 4 * MIB));
    assert!(table.dispatch(&chunks[0].id).is_some());
    assert!(table.discard(file_key(&file)).is_none());
    assert_eq!(table.dirty(), MIB, "one chunk is being written");
    for chunk in &chunks[1..] {
        assert!(!done(&mut table, &chunk.id).0, "a cancelled chunk writes nothing");
    }
    table.finish(&chunks[0].id, true);
    assert_eq!((table.dirty(), table.files(), table.owners.ids().count()), (0, 0, 0));
}

#[test]
fn chunks_dispatched_after_an_error_was_reported_use_a_new_description() {
    let mut table = Table::default();
    let file = backing(1);
    note_dirty(&mut table, &file, 1, 0, 3 * MIB, 0);
    let chunks = submitted(&mut table, &policy(2_000_000_000));
    let mut description = |renews: bool, id: &ChunkId| {
        if renews {
            table.renew_description(file_key(&file));
        }
        table.dispatch(id).expect("its data are dirty").second_descriptor
    };
    let first = description(false, &chunks[0].id);
    assert!(Arc::ptr_eq(&first, &description(false, &chunks[1].id)));
    assert!(!Arc::ptr_eq(&first, &description(true, &chunks[2].id)));
}

#[test]
fn a_sync_queues_chunks_of_other_owners_once_more_for_its_issuer() {
    let mut table = Table::default();
    let file = backing(1);
    note_dirty(&mut table, &file, 1, 0, 3 * MIB, 0);
    let of_writer = submitted(&mut table, &policy(2_000_000_000));
    assert_eq!(of_writer.len(), 3);
    assert_eq!(table.pending_bytes(file_key(&file)), 3 * MIB, "the data exceed one request");
    let mut again = Vec::new();
    assert!(table.sync_after_writeback(file_key(&file), caller(2), job(), &mut again).is_none());
    assert_eq!(
        again.iter().map(|chunk| (chunk.caller.tid, chunk.start)).collect::<Vec<_>>(),
        [(2, 0), (2, MIB), (2, 2 * MIB)]
    );
    assert!(done(&mut table, &again[0].id).1.is_none());
    assert!(done(&mut table, &again[1].id).1.is_none());
    let (was_written, syncs) = done(&mut table, &again[2].id);
    assert!(was_written && syncs.is_some_and(|(_, syncs)| syncs[0].0.tid == 2), "the sync continues");
    for chunk in &of_writer {
        assert!(!done(&mut table, &chunk.id).0, "the chunk was written already");
    }
    assert_eq!((table.dirty(), table.files(), table.owners.ids().count()), (0, 0, 0));
}

#[test]
fn data_written_after_a_sync_began_stay_dirty() {
    let mut table = Table::default();
    let file = backing(1);
    note_dirty(&mut table, &file, 1, 0, 64 * KIB, 0);
    let early = submitted(&mut table, &policy(2_000_000_000));
    note_dirty(&mut table, &file, 1, MIB, 64 * KIB, 1);
    let snapshot = table.begin_sync(file_key(&file)).expect("it has data");
    note_dirty(&mut table, &file, 1, 4 * MIB, 4 * KIB, 3_000_000_000);
    assert!(table.finish_sync(snapshot, true).is_none());
    assert_eq!(table.dirty(), 4 * KIB);
    assert!(!done(&mut table, &early[0].id).0, "the sync has written it");
    let late = submitted(&mut table, &policy(3_999_999_999));
    assert!(late.is_empty(), "the data are young");
    assert_eq!(submitted(&mut table, &policy(4_000_000_000))[0].start, 4 * MIB);
}

#[test]
fn a_sync_of_a_large_file_continues_when_another_sync_has_succeeded() {
    for is_durable in [true, false] {
        let mut table = Table::default();
        let file = backing(1);
        note_dirty(&mut table, &file, 1, 0, 100 * MIB, 0);
        assert!(table.sync_after_writeback(file_key(&file), caller(2), job(), &mut Vec::new()).is_none());
        let first = submitted(&mut table, &policy(1));
        assert_eq!(first.len(), 32, "the rest is submitted as these complete");
        let snapshot = table.begin_sync(file_key(&file)).expect("it has data");
        assert!(submitted(&mut table, &policy(2)).is_empty(), "nothing of the file is submitted meanwhile");
        let syncs = table.finish_sync(snapshot, is_durable);
        if is_durable {
            assert!(syncs.is_some_and(|(_, syncs)| syncs.len() == 1), "no awaited data are left");
            assert!(submitted(&mut table, &policy(3)).is_empty());
            for chunk in first {
                assert!(!done(&mut table, &chunk.id).0);
            }
        } else {
            assert!(syncs.is_none());
            let continued = write_all(&mut table, first);
            assert_eq!(continued, 1, "all data are written as if no sync had happened");
        }
        assert_eq!((table.dirty(), table.files(), table.owners.ids().count()), (0, 0, 0));
    }
}

/// Carries out the queued chunks and those submitted after them. Returns the number of syncs that
/// continued.
fn write_all(table: &mut Table, queued: Vec<Chunk>) -> usize {
    let mut queued = std::collections::VecDeque::from(queued);
    let mut continued = 0;
    while let Some(chunk) = queued.pop_front() {
        continued += done(table, &chunk.id).1.map_or(0, |(_, syncs)| syncs.len());
        queued.extend(submitted(table, &policy(3)));
    }
    continued
}

#[test]
fn a_failed_sync_keeps_the_age_of_the_data() {
    let mut table = Table::default();
    let file = backing(1);
    note_dirty(&mut table, &file, 1, 0, 64 * KIB, 5);
    let snapshot = table.begin_sync(file_key(&file)).expect("it has data");
    assert!(submitted(&mut table, &policy(3_000_000_000)).is_empty(), "not submitted meanwhile");
    assert!(table.finish_sync(snapshot, false).is_none());
    let again = submitted(&mut table, &policy(1_000_000_005));
    assert_eq!((again.len(), table.dirty()), (1, 64 * KIB));
}

/// Creates a throttle with a limit in bytes.
fn throttle(limit: u64) -> DirtyThrottle {
    let terms = MountTerms { dirty_limit: Some(limit), ..MountTerms::default() };
    DirtyThrottle::new(Arc::new(WriteBackShared::new(&terms)))
}

fn throttled(tid: u32, is_cancellable: bool, bytes: u64) -> ThrottledWrite {
    ThrottledWrite { owner: (tid, 0), is_cancellable, bytes, class: Class::BestEffort, job: job() }
}

#[test]
fn small_writes_do_not_overtake_a_waiting_large_write() {
    let mut table = Table::default();
    let (one, other) = (backing(1), backing(2));
    note_dirty(&mut table, &one, 1, 0, 41 * MIB, 0);
    note_dirty(&mut table, &other, 2, 0, 41 * MIB, 0);
    let limit = 80 * MIB;
    let throttle = throttle(limit);
    throttle.set_dirty(table.dirty());
    assert!(!throttle.has_room(4 * KIB));
    // Both owners exceed their shares. The large write came first, the small one after it.
    throttle.wait(throttled(1, true, MIB));
    throttle.wait(throttled(2, true, 4 * KIB));
    throttle.set_dirty(limit - 64 * KIB);
    assert_eq!(throttle.release(&table.owners).len(), 0, "no room for 1 MiB");
    assert!(!throttle.has_room(4 * KIB), "a new write does not overtake the waiting ones");
    throttle.set_dirty(limit - MIB);
    assert_eq!(throttle.release(&table.owners).len(), 1, "room for the first only");
    throttle.set_dirty(limit - 64 * KIB);
    assert_eq!(throttle.release(&table.owners).len(), 1);
    assert!(!throttle.has_waiters() && throttle.has_room(4 * KIB));
}

#[test]
fn a_higher_class_may_exceed_the_limit_further() {
    let throttle = throttle(100 * MIB);
    let is_admitted = |dirty, own_bytes: u64, class| {
        throttle.set_dirty(dirty * MIB);
        throttle.is_below_share(own_bytes * MIB, 10, MIB, || class)
    };
    let idle = |dirty| is_admitted(dirty, 0, Class::Idle);
    assert!(idle(100) && idle(124) && !idle(125));
    assert!(is_admitted(174, 0, Class::BestEffort) && !is_admitted(175, 0, Class::None));
    assert!(is_admitted(199, 0, Class::RealTime) && !is_admitted(200, 0, Class::RealTime));
    assert!(is_admitted(100, 9, Class::BestEffort), "below the share of a tenth");
    assert!(!is_admitted(100, 10, Class::RealTime), "at the share");
    throttle.set_dirty(124 * MIB);
    assert!(!throttle.is_below_share(50 * MIB, 2, MIB, || panic!("the class is not needed")));
}

#[test]
fn a_small_limit_admits_large_writes() {
    let throttle = throttle(MIB);
    throttle.set_dirty(MIB);
    assert!(throttle.is_below_share(0, 1, MIB, || Class::BestEffort));
    assert!(!throttle.is_below_share(MIB, 1, MIB, || Class::BestEffort));
    throttle.set_dirty(0);
    assert!(throttle.has_room(64 * MIB), "a single write may exceed the limit");
}

#[test]
fn a_closed_tracker_returns_all_waiting_writes() {
    let terms = MountTerms { dirty_limit: Some(MIB), ..MountTerms::default() };
    let tracker = DirtyTracker::new(Arc::new(WriteBackShared::new(&terms)));
    let file = backing(1);
    let request = GateRequest {
        caller: caller(1),
        operation: Operation::BufferedWrite,
        backing: &file,
        offset: 0,
        length: 9 * MIB,
    };
    tracker.note_dirty(&request);
    assert!(!tracker.has_room(MIB) && !tracker.is_below_share(&caller(1), MIB, || Class::BestEffort));
    let released = tracker.queue_write(&caller(1), true, MIB, Class::BestEffort, job());
    assert!(released.jobs.is_empty() && released.syncs.is_none(), "the write waits");
    assert_eq!(tracker.close().len(), 1);
    let released = tracker.queue_write(&caller(1), true, MIB, Class::BestEffort, job());
    assert_eq!(released.jobs.len(), 1, "a closed tracker throttles no write");
}

/// An operation on the table.
#[derive(Clone, Debug)]
enum Step {
    Dirtied { file: u64, tid: u32, offset: u64, length: u64 },
    Begin,
    Done { which: prop::sample::Index },
    ChunkWrite { which: prop::sample::Index },
    Clean { file: u64 },
    Sync { file: u64, is_durable: bool },
    CleanThen { file: u64, tid: u32 },
    Killed { tid: u32 },
}

fn step() -> impl Strategy<Value = Step> {
    let (file, tid) = (1u64..5, 1u32..4);
    prop_oneof![
        4 => (file.clone(), tid.clone(), 0u64..20, 1u64..5)
            .prop_map(|(file, tid, at, many)| Step::Dirtied { file, tid, offset: at * MIB / 2, length: many * MIB / 2 }),
        3 => Just(Step::Begin),
        4 => any::<prop::sample::Index>().prop_map(|which| Step::Done { which }),
        2 => any::<prop::sample::Index>().prop_map(|which| Step::ChunkWrite { which }),
        1 => file.clone().prop_map(|file| Step::Clean { file }),
        1 => (file.clone(), any::<bool>()).prop_map(|(file, is_durable)| Step::Sync { file, is_durable }),
        1 => (file, tid.clone()).prop_map(|(file, tid)| Step::CleanThen { file, tid }),
        1 => tid.prop_map(|tid| Step::Killed { tid }),
    ]
}

/// A table with its queued and dispatched chunks and the number of waiting syncs.
#[derive(Default)]
struct Scene {
    table: Table,
    queued: Vec<ChunkId>,
    dispatched: Vec<ChunkId>,
    waiting: usize,
    now_ns: u64,
}

impl Scene {
    fn count_continued(&mut self, syncs: SyncWaiters) {
        self.waiting -= syncs.map_or(0, |(_, syncs)| syncs.len());
    }

    fn step(&mut self, files: &[Arc<Backing>], step: Step) {
        let key = |file: u64| (DEVICE, file);
        self.now_ns += 300_000_000;
        match step {
            Step::Dirtied { file, tid, offset, length } => {
                note_dirty(&mut self.table, &files[file as usize], tid, offset, length, self.now_ns);
            }
            Step::Begin => {
                let chunks = submitted(&mut self.table, &policy(self.now_ns));
                self.queued.extend(chunks.iter().map(|chunk| chunk.id));
            }
            Step::Done { which } => {
                if !self.dispatched.is_empty() {
                    let id = self.dispatched.swap_remove(which.index(self.dispatched.len()));
                    let syncs = self.table.finish(&id, true);
                    self.count_continued(syncs);
                }
            }
            Step::ChunkWrite { which } => {
                if !self.queued.is_empty() {
                    let id = self.queued.swap_remove(which.index(self.queued.len()));
                    match self.table.dispatch(&id) {
                        Some(_) => self.dispatched.push(id),
                        None => {
                            let syncs = self.table.finish(&id, false);
                            self.count_continued(syncs);
                        }
                    }
                }
            }
            Step::Clean { file } => {
                let syncs = self.table.discard(key(file));
                self.count_continued(syncs);
            }
            Step::Sync { file, is_durable } => {
                if let Some(snapshot) = self.table.begin_sync(key(file)) {
                    let syncs = self.table.finish_sync(snapshot, is_durable);
                    self.count_continued(syncs);
                }
            }
            Step::Killed { tid } => self.waiting -= self.table.cancel(tid, self.now_ns).len(),
            Step::CleanThen { file, tid } => {
                let mut chunks = Vec::new();
                if self.table.sync_after_writeback(key(file), caller(tid), job(), &mut chunks).is_none() {
                    self.waiting += 1;
                }
                self.queued.extend(chunks.iter().map(|chunk| chunk.id));
            }
        }
        assert_eq!(self.table.has_waiting_syncs(), self.waiting > 0);
        let owners: Vec<IssuerId> = self.table.owners.ids().collect();
        let sum: u64 = owners.iter().map(|owner| self.table.owners.dirty_of(*owner)).sum();
        assert_eq!(sum, self.table.dirty(), "each byte has an owner");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn after_any_sequence_everything_is_written_and_every_sync_ends(steps in prop::collection::vec(step(), 0..120)) {
        let files: Vec<_> = (0..5).map(backing).collect();
        let mut scene = Scene::default();
        for step in steps {
            scene.step(&files, step);
        }
        // Advance the time and drain the queue.
        for _ in 0..10_000 {
            scene.now_ns += 2_000_000_000;
            scene.step(&files, Step::Begin);
            while let Some(id) = scene.queued.pop() {
                match scene.table.dispatch(&id) {
                    Some(_) => scene.dispatched.push(id),
                    None => {
                        let syncs = scene.table.finish(&id, false);
                        scene.count_continued(syncs);
                    }
                }
            }
            while let Some(id) = scene.dispatched.pop() {
                let syncs = scene.table.finish(&id, true);
                scene.count_continued(syncs);
            }
            if scene.table.dirty() == 0 {
                break;
            }
        }
        prop_assert_eq!((scene.table.dirty(), scene.table.files(), scene.waiting), (0, 0, 0));
        prop_assert_eq!((scene.table.owners.ids().count(), scene.table.owners.dirty_owners()), (0, 0));
    }
}

#[test]
fn awaited_data_of_a_killed_thread_become_ordinary_dirty_data() {
    let mut table = Table::default();
    let file = backing(1);
    note_dirty(&mut table, &file, 1, 0, 50 * MIB, 0);
    assert!(table.sync_after_writeback(file_key(&file), caller(2), job(), &mut Vec::new()).is_none());
    let awaited = submitted(&mut table, &policy(1));
    assert_eq!((awaited.len(), table.syncing_threads()), (32, vec![2]));
    assert_eq!((table.cancel(3, 1).len(), table.cancel(2, 1).len()), (0, 1));
    assert!(!table.has_waiting_syncs() && table.syncing_threads().is_empty());
    for chunk in &awaited {
        let (was_written, syncs) = done(&mut table, &chunk.id);
        assert!(was_written && syncs.is_none());
    }
    assert!(submitted(&mut table, &policy(2)).is_empty(), "the data are no longer awaited");
    let rest = submitted(&mut table, &policy(1_000_000_001));
    assert_eq!(rest.iter().map(|chunk| chunk.caller.tid).collect::<Vec<_>>(), [1; 18]);
}

#[test]
fn write_back_by_the_kernel_continues_when_its_owner_is_killed() {
    let throttle = throttle(8 * MIB);
    let owners = Owners::default();
    throttle.set_dirty(16 * MIB);
    for is_cancellable in [true, false] {
        throttle.wait(throttled(3, is_cancellable, MIB));
    }
    assert_eq!(throttle.waiting_threads(), [3]);
    assert!(throttle.cancel(2).is_empty());
    assert_eq!(throttle.cancel(3).len(), 1, "the write for which the issuer waits");
    assert!(throttle.waiting_threads().is_empty() && throttle.has_waiters(), "no thread waits for the other");
    assert!(throttle.cancel(3).is_empty());
    throttle.set_dirty(0);
    assert_eq!(throttle.release(&owners).len(), 1, "written when the limit allows it");
}

#[test]
fn a_chunk_knows_whether_its_file_is_open() {
    let mut table = Table::default();
    for is_open in [true, false] {
        let file = backing(1);
        note_dirty(&mut table, &file, 1, 0, MIB, 0);
        let id = submitted(&mut table, &policy(2_000_000_000)).remove(0).id;
        let still_open = is_open.then_some(file);
        let chunk_write = table.dispatch(&id).expect("it is to be written");
        assert_eq!(chunk_write.is_open, is_open);
        drop((chunk_write, still_open));
        table.finish(&id, true);
    }
}

#[test]
fn a_new_writer_takes_over_all_dirty_data_of_a_file() {
    let mut table = Table::default();
    let file = backing(1);
    note_dirty(&mut table, &file, 1, 0, 4 * MIB, 0);
    note_dirty(&mut table, &file, 2, 4 * MIB, MIB, 1);
    assert_eq!((table.owners.dirty_of((1, 0)), table.owners.dirty_of(issuer_id(&caller(2)))), (0, 5 * MIB));
    assert_eq!(table.owners.dirty_owners(), 1);
}
