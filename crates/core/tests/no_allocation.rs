//! A queue allocates nothing after its construction: submission, merging, timers, priorities,
//! exits, groups, barriers and switching work in the tables.
//!
//! The global allocator of this test counts allocations per thread, so those of the test harness do
//! not count.

#![cfg(feature = "alloc")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use hoistway_core::{
    Bio, Capacity, Class, ContextId, DeferredWork, ElevatorStorage, Flags, GroupId, GroupWeights, Kind, Next, NoSink,
    Op, Owned, Priority, QueueConfig, RequestId, RequestQueue, Reservation, Storage, Submitted,
};

/// The system's allocator with a count of allocations.
struct Counting;

thread_local! {
    // A constant without a destructor, so access to it allocates nothing.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn allocations() -> u64 {
    ALLOCATIONS.get()
}

// SAFETY: every call is passed unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller keeps the contract of `GlobalAlloc`, which is passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `GlobalAlloc`, which is passed on.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const CAPACITY: Capacity = Capacity { requests: 96, contexts: 12, merged_bios: 128, groups: 4 };
const STEPS: u32 = 150_000;

#[test]
fn no_elevator_allocates_after_its_queue_is_created() {
    // The counter itself must count.
    let before = allocations();
    drop(std::hint::black_box(Box::new(1u8)));
    assert!(allocations() > before, "the counter does not count");

    for (kind, layered) in Kind::ALL.iter().flat_map(|&kind| [(kind, false), (kind, true)]) {
        let mut host = Host::new(kind, layered);
        // The host passes the storage of each new elevator to the queue; it is allocated before the
        // count begins.
        let mut spare: Vec<_> = Kind::ALL.iter().map(|&to| Some(elevator(to, layered))).collect();
        let kinds = Kind::ALL.len() as u32;
        let before = allocations();
        for step in 0..STEPS {
            host.step();
            let between = STEPS / (kinds + 1);
            if step % between == between / 2
                && let Some(storage) = spare.get_mut((step / between) as usize).and_then(Option::take)
            {
                let _ = host.queue.switch(storage, host.now_ns);
            }
        }
        assert_eq!(allocations() - before, 0, "{} (layered: {layered}) allocated", kind.info().name);
        assert!(host.has_covered_all_calls(), "{}: {:?}", kind.info().name, host.counts);
        assert!(!layered || host.counts.reserved > 100, "{}: {:?}", kind.info().name, host.counts);
    }
}

fn elevator(kind: Kind, layered: bool) -> ElevatorStorage<Owned<NoSink>> {
    if layered { ElevatorStorage::owned_reserving(kind, CAPACITY) } else { ElevatorStorage::owned(kind, CAPACITY) }
}

/// The number of calls and results of each kind.
#[derive(Debug, Default)]
struct Counts {
    queued: u32,
    merged: u32,
    slept: u32,
    woken: u32,
    full: u32,
    completed: u32,
    requeued: u32,
    timers: u32,
    exited: u32,
    reprioritised: u32,
    barriers: u32,
    tuned: u32,
    grouped: u32,
    ungrouped: u32,
    moved: u32,
    reserved: u32,
}

/// A host whose tables have fixed sizes.
struct Host {
    queue: RequestQueue<Owned<NoSink>>,
    now_ns: u64,
    random: u64,
    processes: [Option<(ContextId, Option<Bio>)>; 8],
    groups: [Option<GroupId>; 3],
    device: [Option<RequestId>; 4],
    counts: Counts,
}

impl Host {
    fn new(kind: Kind, layered: bool) -> Host {
        let config = QueueConfig { nr_requests: Some(32), ..QueueConfig::default() };
        let (storage, elevator) = (Storage::owned(CAPACITY), elevator(kind, layered));
        let queue = RequestQueue::new(config, storage, elevator, NoSink, 0);
        Host {
            queue,
            now_ns: 0,
            random: 88_172_645_463_325_252,
            processes: [None; 8],
            groups: [None; 3],
            device: [None; 4],
            counts: Counts::default(),
        }
    }

    /// Returns a pseudo-random number below `bound` (xorshift, Marsaglia 2003).
    fn below(&mut self, bound: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % bound
    }

    fn step(&mut self) {
        self.now_ns += self.below(400_000);
        let which = self.below(8) as usize;
        match self.below(100) {
            // Phases with more submissions than completions fill the pool and the tables.
            0..=44 => self.submit(which),
            45..=74 => self.run(),
            75..=91 => self.complete(which % 4),
            92 => self.requeue(which % 4),
            93..=95 => self.fire(),
            96 => self.exit(which),
            97 => self.set_priority(which),
            98 if self.below(3) == 0 => self.change_groups(which),
            98 if self.below(2) == 0 => self.reserve(which),
            98 => self.set_tunable(),
            _ => drop(self.queue.unplug_for_waiter(self.now_ns)),
        }
        self.work();
    }

    fn submit(&mut self, which: usize) {
        let priority = Priority::new(Class::BestEffort, self.below(8) as u8).unwrap_or_default();
        let Some(process) = self.processes.get_mut(which) else { return };
        if process.is_none() {
            *process = self.queue.create_context(which as u32, priority, 0).ok().map(|context| (context, None));
        }
        let Some((context, None)) = *process else { return };
        let op = if self.below(3) == 0 { Op::Write } else { Op::Read };
        let mut bio = Bio::new(1, context, op, self.below(4096) * 8, 8);
        if self.below(500) == 0 {
            bio.flags = Flags::BARRIER;
            bio.op = Op::Write;
            self.counts.barriers += 1;
        }
        match self.queue.submit(bio, self.now_ns).map(|(submitted, _)| submitted) {
            Ok(Submitted::Queued(_)) => self.counts.queued += 1,
            Ok(Submitted::Merged(_)) => self.counts.merged += 1,
            Ok(Submitted::Asleep) => {
                self.processes[which] = Some((context, Some(bio)));
                self.counts.slept += 1;
            }
            Err(_) => self.counts.full += 1,
        }
    }

    fn run(&mut self) {
        while let Some(free) = self.device.iter().position(Option::is_none) {
            let Next::Request(id) = self.queue.next(self.now_ns) else { return };
            self.device[free] = Some(id);
        }
    }

    fn complete(&mut self, which: usize) {
        if let Some(id) = self.device[which].take() {
            let completed = self.queue.complete(id, self.now_ns, |_| {});
            assert!(completed.is_ok(), "a request in the device can be completed");
            self.counts.completed += 1;
        }
    }

    fn requeue(&mut self, which: usize) {
        if let Some(id) = self.device[which].take() {
            assert!(self.queue.requeue(id, self.now_ns).is_ok(), "a request in the device can be requeued");
            self.counts.requeued += 1;
        }
    }

    fn fire(&mut self) {
        if let Some(at_ns) = self.queue.next_timer() {
            self.now_ns = self.now_ns.max(at_ns);
            let _ = self.queue.timer(self.now_ns);
            self.counts.timers += 1;
        }
    }

    fn exit(&mut self, which: usize) {
        if let Some((context, None)) = self.processes[which] {
            assert!(self.queue.exit_context(context, self.now_ns).is_ok(), "a running process can exit");
            self.processes[which] = None;
            self.counts.exited += 1;
        }
    }

    fn set_priority(&mut self, which: usize) {
        let class = [Class::None, Class::RealTime, Class::BestEffort, Class::Idle][self.below(4) as usize];
        let priority = Priority::new(class, self.below(8) as u8).unwrap_or_default();
        if let Some((context, _)) = self.processes[which] {
            let _ = self.queue.set_priority(context, priority, self.now_ns);
            self.counts.reprioritised += 1;
        }
    }

    /// Creates or removes a group, changes its weights, or moves a process to it.
    fn change_groups(&mut self, which: usize) {
        let (index, now_ns) = (which % self.groups.len(), self.now_ns);
        let weights = GroupWeights::of(1 + self.below(1000) as u16);
        let Some(group) = self.groups[index] else {
            let parent = self.groups[(index + 1) % 3].unwrap_or(self.queue.root_group());
            self.groups[index] = self.queue.create_group(parent, weights, now_ns).ok();
            self.counts.grouped += 1;
            return;
        };
        match self.below(4) {
            0 if self.queue.remove_group(group, now_ns).is_ok() => {
                self.groups[index] = None;
                self.counts.ungrouped += 1;
            }
            1 => drop(self.queue.set_group_weights(group, weights, now_ns)),
            _ => {
                if let Some((context, _)) = self.processes[which] {
                    assert!(self.queue.move_context(context, group, now_ns).is_ok(), "a running process can be moved");
                    self.counts.moved += 1;
                }
            }
        }
    }

    fn reserve(&mut self, which: usize) {
        let reservation = Reservation::of(1 + self.below(4_000_000));
        if let Some((context, _)) = self.processes[which] {
            let _ = self.queue.release(context, self.now_ns);
            self.counts.reserved += u32::from(self.queue.reserve(context, reservation, self.now_ns).is_ok());
        }
        if let Some(group) = self.groups[which % 3] {
            let _ = self.queue.release_group(group, self.now_ns);
            self.counts.reserved += u32::from(self.queue.reserve_group(group, reservation, self.now_ns).is_ok());
        }
    }

    fn set_tunable(&mut self) {
        let value = self.below(20) as i64;
        let which = self.below(1 + self.queue.tunables().count() as u64) as usize;
        let tunable = self.queue.tunables().nth(which).map(|(tunable, _)| tunable);
        if let Some(tunable) = tunable {
            self.counts.tuned += u32::from(self.queue.set_tunable(tunable.name, value).is_ok());
        }
    }

    fn work(&mut self) {
        while let Some(work) = self.queue.next_work() {
            match work {
                DeferredWork::Wake(context) => self.wake(context),
                _ => self.run(),
            }
        }
    }

    fn wake(&mut self, context: ContextId) {
        let sleeper = self.processes.iter_mut().flatten().find(|process| process.0 == context);
        let Some((_, asleep)) = sleeper else { return };
        let Some(bio) = asleep.take() else { return };
        self.counts.woken += 1;
        match self.queue.resubmit(bio, self.now_ns).map(|(submitted, _)| submitted) {
            Ok(Submitted::Asleep) => *asleep = Some(bio),
            _ => self.counts.queued += 1,
        }
    }

    fn has_covered_all_calls(&self) -> bool {
        let Counts {
            queued,
            merged,
            slept,
            woken,
            full: _,
            completed,
            requeued,
            timers,
            exited,
            reprioritised,
            barriers,
            tuned: _,
            grouped,
            ungrouped,
            moved,
            reserved: _,
        } = self.counts;
        let of_groups = [grouped, ungrouped, moved];
        [queued, merged, slept, woken, completed, requeued, timers, exited, reprioritised, barriers]
            .iter()
            .chain(&of_groups)
            .all(|&count| count > 0)
    }
}
