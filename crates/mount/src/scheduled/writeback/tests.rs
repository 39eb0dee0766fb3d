//! The table alone: no queue, no disk, no thread, and the time is told.

use std::fs::File as OsFile;
use std::sync::Arc;

use hoistway_core::Class;
use proptest::prelude::*;

use super::super::people::Key;
use super::room::{Level, Writer};
use super::table::{Chunk, Place, Syncs, Table, When, who};
use super::*;
use crate::{Ask, Asker, Job, Operation};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const DEVICE: u64 = 7;

fn asker(tid: u32) -> Asker {
    Asker { tid, uid: 0, gid: 0 }
}

fn backing(inode: u64) -> Arc<Backing> {
    let nothing = OsFile::open("/dev/null").expect("every machine has it");
    Arc::new(Backing::new(nothing.into(), DEVICE, inode))
}

fn dirtied(table: &mut Table, file: &Arc<Backing>, tid: u32, offset: u64, length: u64, now_ns: u64) {
    let ask = Ask { asker: asker(tid), operation: Operation::Buffered, backing: file, offset, length };
    table.dirtied(file_of(file), &ask, now_ns);
}

/// Data are begun when they are a second old.
fn when(now_ns: u64) -> When {
    When { now_ns, age_ns: 1_000_000_000, background: u64::MAX, is_crowded: false }
}

fn begun(table: &mut Table, when: &When) -> Vec<Chunk> {
    let mut chunks = Vec::new();
    loop {
        let mut more = Vec::new();
        table.begin(when, &mut more);
        if more.is_empty() {
            return chunks;
        }
        chunks.extend(more);
    }
}

fn job() -> Job {
    Job::Call(Box::new(|| ()))
}

/// Has a request's turn, and is over with it. Says whether it wrote anything.
fn done(table: &mut Table, place: &Place) -> (bool, Syncs) {
    let has_gone = table.begins(place).is_some();
    (has_gone, table.ended(place, has_gone))
}

#[test]
fn many_small_files_take_a_few_steps_each() {
    const FILES: u64 = 20_000;
    let mut table = Table::default();
    // One descriptor is enough for all of them here.
    let of_all = backing(0);
    for inode in 1..=FILES {
        let ask = Ask { asker: asker(1), operation: Operation::Buffered, backing: &of_all, offset: 0, length: 4 * KIB };
        table.dirtied((DEVICE, inode), &ask, inode);
        if inode.is_multiple_of(500) {
            assert!(begun(&mut table, &when(inode)).is_empty(), "all of them are young");
        }
    }
    table.steps = 0;
    let mut order = Vec::new();
    let mut queue = std::collections::VecDeque::new();
    loop {
        let mut chunks = Vec::new();
        table.begin(&when(2_000_000_000), &mut chunks);
        queue.extend(chunks);
        let Some(Chunk { place, .. }) = queue.pop_front() else { break };
        assert!(queue.len() < 128, "so many are in the queue at a time");
        order.push(place.file.1);
        assert!(done(&mut table, &place).0);
    }
    assert_eq!(order, (1..=FILES).collect::<Vec<_>>(), "the oldest first");
    assert!(table.steps <= 3 * FILES, "{} steps for {FILES} files", table.steps);
    assert_eq!((table.dirty(), table.files(), table.owners.keys().count()), (0, 0, 0));
}

#[test]
fn one_with_many_writes_in_the_queue_leaves_places_for_others() {
    let mut table = Table::default();
    let (of_hog, of_other) = (backing(1), backing(2));
    dirtied(&mut table, &of_hog, 1, 0, 1000 * MIB, 0);
    let now = when(2_000_000_000);
    let first = begun(&mut table, &now);
    assert_eq!(first.len(), 128, "alone he may have all places");
    dirtied(&mut table, &of_other, 2, 0, 100 * MIB, 0);
    let second = begun(&mut table, &now);
    assert_eq!(second.len(), 64, "two may have half of them each");
    assert!(second.iter().all(|chunk| chunk.asker.tid == 2));
    // He gets another when he has fewer than his part.
    for chunk in &first[..64] {
        done(&mut table, &chunk.place);
    }
    assert_eq!(begun(&mut table, &now).len(), 0);
    done(&mut table, &first[64].place);
    let more = begun(&mut table, &now);
    assert_eq!(more.iter().map(|chunk| chunk.asker.tid).collect::<Vec<_>>(), [1]);
}

#[test]
fn what_does_not_exist_any_more_is_given_back_though_it_waits_in_the_queue() {
    let mut table = Table::default();
    let file = backing(1);
    dirtied(&mut table, &file, 1, 0, 4 * MIB, 0);
    let chunks = begun(&mut table, &when(2_000_000_000));
    assert_eq!((chunks.len(), table.dirty()), (4, 4 * MIB));
    assert!(table.begins(&chunks[0].place).is_some());
    assert!(table.cleaned(file_of(&file)).is_none());
    assert_eq!(table.dirty(), MIB, "one is being written");
    for chunk in &chunks[1..] {
        assert!(!done(&mut table, &chunk.place).0, "it does nothing");
    }
    table.ended(&chunks[0].place, true);
    assert_eq!((table.dirty(), table.files(), table.owners.keys().count()), (0, 0, 0));
}

#[test]
fn who_makes_a_file_durable_has_what_others_have_in_the_queue_there_in_his_own_name() {
    let mut table = Table::default();
    let file = backing(1);
    dirtied(&mut table, &file, 1, 0, 3 * MIB, 0);
    let of_writer = begun(&mut table, &when(2_000_000_000));
    assert_eq!(of_writer.len(), 3);
    assert_eq!(table.waits(file_of(&file)), 3 * MIB, "it is much");
    let mut again = Vec::new();
    assert!(table.clean_then(file_of(&file), asker(2), job(), &mut again).is_none());
    assert_eq!(
        again.iter().map(|chunk| (chunk.asker.tid, chunk.start)).collect::<Vec<_>>(),
        [(2, 0), (2, MIB), (2, 2 * MIB)]
    );
    assert!(done(&mut table, &again[0].place).1.is_none());
    assert!(done(&mut table, &again[1].place).1.is_none());
    let (has_gone, syncs) = done(&mut table, &again[2].place);
    assert!(has_gone && syncs.is_some_and(|(_, syncs)| syncs[0].0.tid == 2), "he goes on");
    for chunk in &of_writer {
        assert!(!done(&mut table, &chunk.place).0, "it is written already");
    }
    assert_eq!((table.dirty(), table.files(), table.owners.keys().count()), (0, 0, 0));
}

#[test]
fn what_was_written_after_a_sync_began_stays_to_be_written() {
    let mut table = Table::default();
    let file = backing(1);
    dirtied(&mut table, &file, 1, 0, 64 * KIB, 0);
    let early = begun(&mut table, &when(2_000_000_000));
    dirtied(&mut table, &file, 1, MIB, 64 * KIB, 1);
    let taken = table.syncing(file_of(&file)).expect("it has data");
    dirtied(&mut table, &file, 1, 4 * MIB, 4 * KIB, 3_000_000_000);
    assert!(table.synced(taken, true).is_none());
    assert_eq!(table.dirty(), 4 * KIB);
    assert!(!done(&mut table, &early[0].place).0, "the sync has written it");
    let late = begun(&mut table, &when(3_999_999_999));
    assert!(late.is_empty(), "it is young");
    assert_eq!(begun(&mut table, &when(4_000_000_000))[0].start, 4 * MIB);
}

#[test]
fn who_waits_for_a_large_file_goes_on_when_another_has_made_it_durable() {
    for is_durable in [true, false] {
        let mut table = Table::default();
        let file = backing(1);
        dirtied(&mut table, &file, 1, 0, 100 * MIB, 0);
        assert!(table.clean_then(file_of(&file), asker(2), job(), &mut Vec::new()).is_none());
        let first = begun(&mut table, &when(1));
        assert_eq!(first.len(), 32, "the rest of it is begun as these end");
        let taken = table.syncing(file_of(&file)).expect("it has data");
        assert!(begun(&mut table, &when(2)).is_empty(), "nothing of it is begun meanwhile");
        let syncs = table.synced(taken, is_durable);
        if is_durable {
            assert!(syncs.is_some_and(|(_, syncs)| syncs.len() == 1), "nothing is left to wait for");
            assert!(begun(&mut table, &when(3)).is_empty());
            for chunk in first {
                assert!(!done(&mut table, &chunk.place).0);
            }
        } else {
            assert!(syncs.is_none());
            let went_on = write_all(&mut table, first);
            assert_eq!(went_on, 1, "all of it is written as if nothing had been");
        }
        assert_eq!((table.dirty(), table.files(), table.owners.keys().count()), (0, 0, 0));
    }
}

/// Works off what is in the queue and what comes after it; answers how many who waited for that went on.
fn write_all(table: &mut Table, queued: Vec<Chunk>) -> usize {
    let mut queued = std::collections::VecDeque::from(queued);
    let mut went_on = 0;
    while let Some(chunk) = queued.pop_front() {
        went_on += done(table, &chunk.place).1.map_or(0, |(_, syncs)| syncs.len());
        queued.extend(begun(table, &when(3)));
    }
    went_on
}

#[test]
fn a_sync_that_fails_leaves_data_as_old_as_they_were() {
    let mut table = Table::default();
    let file = backing(1);
    dirtied(&mut table, &file, 1, 0, 64 * KIB, 5);
    let taken = table.syncing(file_of(&file)).expect("it has data");
    assert!(begun(&mut table, &when(3_000_000_000)).is_empty(), "it is not begun meanwhile");
    assert!(table.synced(taken, false).is_none());
    let again = begun(&mut table, &when(1_000_000_005));
    assert_eq!((again.len(), table.dirty()), (1, 64 * KIB));
}

#[test]
fn who_waits_is_not_passed_by_those_with_little() {
    let mut table = Table::default();
    let (one, other) = (backing(1), backing(2));
    dirtied(&mut table, &one, 1, 0, 41 * MIB, 0);
    dirtied(&mut table, &other, 2, 0, 41 * MIB, 0);
    let limit = 80 * MIB;
    let level = |table: &Table| Level { dirty: table.dirty(), limit };
    assert!(!level(&table).has_room(4 * KIB));
    // Both have more than their part: who wants much came first, who wants little after him.
    table.waiting.add(Writer { who: (1, 0), is_his: true, bytes: MIB }, Class::BestEffort, job());
    table.waiting.add(Writer { who: (2, 0), is_his: true, bytes: 4 * KIB }, Class::BestEffort, job());
    let small = Level { dirty: limit - 64 * KIB, limit };
    assert_eq!(table.waiting.let_in(small, &table.owners).len(), 0, "that is no room for a MiB");
    let enough = Level { dirty: limit - MIB, limit };
    assert_eq!(table.waiting.let_in(enough, &table.owners).len(), 1, "there is room for the first alone");
    assert_eq!(table.waiting.let_in(small, &table.owners).len(), 1);
}

#[test]
fn beyond_the_limit_the_better_class_has_more_room() {
    let full = |dirty| Level { dirty: dirty * MIB, limit: 100 * MIB };
    let goes = |dirty, own: u64, class| full(dirty).has_part(own * MIB, 10, MIB, || class);
    assert!(goes(100, 0, Class::Idle) && goes(124, 0, Class::Idle) && !goes(125, 0, Class::Idle));
    assert!(goes(174, 0, Class::BestEffort) && !goes(175, 0, Class::None));
    assert!(goes(199, 0, Class::RealTime) && !goes(200, 0, Class::RealTime));
    assert!(goes(100, 9, Class::BestEffort), "a tenth is his part");
    assert!(!goes(100, 10, Class::RealTime), "and he has it");
    assert!(!full(124).has_part(50 * MIB, 2, MIB, || panic!("that does not matter")));
}

#[test]
fn small_limits_have_room_for_large_writes() {
    let level = Level { dirty: MIB, limit: MIB };
    assert!(level.has_part(0, 1, MIB, || Class::BestEffort));
    assert!(!level.has_part(MIB, 1, MIB, || Class::BestEffort));
    assert!(Level { dirty: 0, ..level }.has_room(64 * MIB), "alone it may be more than the limit");
}

/// Something that happens to a table.
#[derive(Clone, Debug)]
enum Step {
    Dirtied { file: u64, tid: u32, offset: u64, length: u64 },
    Begin,
    Done { which: prop::sample::Index },
    Going { which: prop::sample::Index },
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
        2 => any::<prop::sample::Index>().prop_map(|which| Step::Going { which }),
        1 => file.clone().prop_map(|file| Step::Clean { file }),
        1 => (file.clone(), any::<bool>()).prop_map(|(file, is_durable)| Step::Sync { file, is_durable }),
        1 => (file, tid.clone()).prop_map(|(file, tid)| Step::CleanThen { file, tid }),
        1 => tid.prop_map(|tid| Step::Killed { tid }),
    ]
}

/// A table, what is in the queue, and who waits.
#[derive(Default)]
struct Scene {
    table: Table,
    queued: Vec<Place>,
    going: Vec<Place>,
    waiting: usize,
    now_ns: u64,
}

impl Scene {
    fn went_on(&mut self, syncs: Syncs) {
        self.waiting -= syncs.map_or(0, |(_, syncs)| syncs.len());
    }

    fn step(&mut self, files: &[Arc<Backing>], step: Step) {
        let key = |file: u64| (DEVICE, file);
        self.now_ns += 300_000_000;
        match step {
            Step::Dirtied { file, tid, offset, length } => {
                dirtied(&mut self.table, &files[file as usize], tid, offset, length, self.now_ns);
            }
            Step::Begin => {
                let chunks = begun(&mut self.table, &when(self.now_ns));
                self.queued.extend(chunks.iter().map(|chunk| chunk.place));
            }
            Step::Done { which } => {
                if !self.going.is_empty() {
                    let place = self.going.swap_remove(which.index(self.going.len()));
                    let syncs = self.table.ended(&place, true);
                    self.went_on(syncs);
                }
            }
            Step::Going { which } => {
                if !self.queued.is_empty() {
                    let place = self.queued.swap_remove(which.index(self.queued.len()));
                    match self.table.begins(&place) {
                        Some(_) => self.going.push(place),
                        None => {
                            let syncs = self.table.ended(&place, false);
                            self.went_on(syncs);
                        }
                    }
                }
            }
            Step::Clean { file } => {
                let syncs = self.table.cleaned(key(file));
                self.went_on(syncs);
            }
            Step::Sync { file, is_durable } => {
                if let Some(taken) = self.table.syncing(key(file)) {
                    let syncs = self.table.synced(taken, is_durable);
                    self.went_on(syncs);
                }
            }
            Step::Killed { tid } => self.waiting -= self.table.give_up(tid, self.now_ns).len(),
            Step::CleanThen { file, tid } => {
                let mut chunks = Vec::new();
                if self.table.clean_then(key(file), asker(tid), job(), &mut chunks).is_none() {
                    self.waiting += 1;
                }
                self.queued.extend(chunks.iter().map(|chunk| chunk.place));
            }
        }
        assert_eq!(self.table.is_waited_for(), self.waiting > 0);
        let owners: Vec<Key> = self.table.owners.keys().collect();
        let sum: u64 = owners.iter().map(|owner| self.table.owners.dirty_of(*owner)).sum();
        assert_eq!(sum, self.table.dirty(), "each byte is somebody's");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_everything_is_written_and_nobody_waits_for_ever(steps in prop::collection::vec(step(), 0..120)) {
        let files: Vec<_> = (0..5).map(backing).collect();
        let mut scene = Scene::default();
        for step in steps {
            scene.step(&files, step);
        }
        // Time goes by, and the queue is worked off.
        for _ in 0..10_000 {
            scene.now_ns += 2_000_000_000;
            scene.step(&files, Step::Begin);
            while let Some(place) = scene.queued.pop() {
                match scene.table.begins(&place) {
                    Some(_) => scene.going.push(place),
                    None => {
                        let syncs = scene.table.ended(&place, false);
                        scene.went_on(syncs);
                    }
                }
            }
            while let Some(place) = scene.going.pop() {
                let syncs = scene.table.ended(&place, true);
                scene.went_on(syncs);
            }
            if scene.table.dirty() == 0 {
                break;
            }
        }
        prop_assert_eq!((scene.table.dirty(), scene.table.files(), scene.waiting), (0, 0, 0));
        prop_assert_eq!((scene.table.owners.keys().count(), scene.table.owners.owing()), (0, 0));
    }
}

#[test]
fn what_was_urgent_for_one_who_was_killed_is_written_as_the_rest() {
    let mut table = Table::default();
    let file = backing(1);
    dirtied(&mut table, &file, 1, 0, 50 * MIB, 0);
    assert!(table.clean_then(file_of(&file), asker(2), job(), &mut Vec::new()).is_none());
    let urgent = begun(&mut table, &when(1));
    assert_eq!((urgent.len(), table.waiters()), (32, vec![2]));
    table.waiting.add(Writer { who: (3, 0), is_his: true, bytes: MIB }, Class::BestEffort, job());
    assert_eq!(table.waiters(), [2, 3]);
    assert_eq!((table.give_up(2, 1).len(), table.give_up(3, 1).len()), (1, 1));
    assert!(!table.is_waited_for());
    for chunk in &urgent {
        let (has_gone, syncs) = done(&mut table, &chunk.place);
        assert!(has_gone && syncs.is_none());
    }
    assert!(begun(&mut table, &when(2)).is_empty(), "nobody is in a hurry");
    let rest = begun(&mut table, &when(1_000_000_001));
    assert_eq!(rest.iter().map(|chunk| chunk.asker.tid).collect::<Vec<_>>(), [1; 18]);
}

#[test]
fn pages_that_the_kernel_gathered_are_kept_when_the_writer_they_count_for_is_killed() {
    let mut table = Table::default();
    for is_his in [true, false] {
        table.waiting.add(Writer { who: (3, 0), is_his, bytes: MIB }, Class::BestEffort, job());
    }
    assert_eq!(table.waiters(), [3]);
    assert_eq!(table.give_up(3, 1).len(), 1, "what he waits for himself");
    assert!(table.waiters().is_empty() && table.is_waited_for(), "nobody can be killed who waits for the other");
    assert!(table.give_up(3, 1).is_empty());
    let level = Level { dirty: 0, limit: 8 * MIB };
    assert_eq!(table.waiting.let_in(level, &table.owners).len(), 1, "it is written when there is room");
}

#[test]
fn a_file_that_was_closed_needs_no_second_descriptor() {
    let mut table = Table::default();
    for is_open in [true, false] {
        let file = backing(1);
        dirtied(&mut table, &file, 1, 0, MIB, 0);
        let place = begun(&mut table, &when(2_000_000_000)).remove(0).place;
        let still_open = is_open.then_some(file);
        let going = table.begins(&place).expect("it is to be written");
        assert_eq!(going.own.is_some(), is_open);
        drop((going, still_open));
        table.ended(&place, true);
    }
}

#[test]
fn files_of_another_owner_count_for_him() {
    let mut table = Table::default();
    let file = backing(1);
    dirtied(&mut table, &file, 1, 0, 4 * MIB, 0);
    dirtied(&mut table, &file, 2, 4 * MIB, MIB, 1);
    assert_eq!((table.owners.dirty_of((1, 0)), table.owners.dirty_of(who(&asker(2)))), (0, 5 * MIB));
    assert_eq!(table.owners.owing(), 1);
}
