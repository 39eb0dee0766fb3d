//! After a queue is made, nothing allocates: not submission, merging, timers, priorities, exits,
//! groups, barriers or switching.
//!
//! An allocator that counts stands in for the system's. Each thread counts its own allocations:
//! those of the test harness do not matter.

#![cfg(feature = "alloc")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use hoistway_core::{
    Bio, Capacity, Class, ContextId, DeferredWork, ElevatorStorage, Flags, GroupId, GroupWeights, Kind, Next, NoSink,
    Op, Owned, Priority, QueueConfig, RequestId, RequestQueue, Reservation, Storage, Submitted,
};

/// Counts what it is asked for and passes it on.
struct Counting;

thread_local! {
    // A constant without a destructor: to use it allocates nothing.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn allocations() -> u64 {
    ALLOCATIONS.get()
}

// SAFETY: every call is passed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const CAPACITY: Capacity = Capacity { requests: 96, contexts: 12, merged_bios: 128, groups: 4 };
const STEPS: u32 = 150_000;

#[test]
fn no_elevator_allocates_once_its_queue_is_made() {
    // The counter itself must count.
    let before = allocations();
    drop(std::hint::black_box(Box::new(1u8)));
    assert!(allocations() > before, "the counter does not count");

    for (kind, layered) in Kind::ALL.iter().flat_map(|&kind| [(kind, false), (kind, true)]) {
        let mut host = Host::new(kind, layered);
        // The storage of the elevators that are switched to is handed over, and was allocated
        // before.
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
        assert!(host.did_everything(), "{}: {:?}", kind.info().name, host.done);
        assert!(!layered || host.done.reserved > 100, "{}: {:?}", kind.info().name, host.done);
    }
}

fn elevator(kind: Kind, layered: bool) -> ElevatorStorage<Owned<NoSink>> {
    if layered { ElevatorStorage::owned_reserving(kind, CAPACITY) } else { ElevatorStorage::owned(kind, CAPACITY) }
}

/// How often each thing was done.
#[derive(Debug, Default)]
struct Done {
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

/// A host without tables that grow.
struct Host {
    queue: RequestQueue<Owned<NoSink>>,
    now_ns: u64,
    random: u64,
    processes: [Option<(ContextId, Option<Bio>)>; 8],
    groups: [Option<GroupId>; 3],
    device: [Option<RequestId>; 4],
    done: Done,
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
            done: Done::default(),
        }
    }

    /// Marsaglia's xorshift (2003).
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
            // Phases in which more is asked for than served fill the pool and the tables.
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
            self.done.barriers += 1;
        }
        match self.queue.submit(bio, self.now_ns).map(|(submitted, _)| submitted) {
            Ok(Submitted::Queued(_)) => self.done.queued += 1,
            Ok(Submitted::Merged(_)) => self.done.merged += 1,
            Ok(Submitted::Asleep) => {
                self.processes[which] = Some((context, Some(bio)));
                self.done.slept += 1;
            }
            Err(_) => self.done.full += 1,
        }
    }

    fn run(&mut self) {
        while let Some(room) = self.device.iter().position(Option::is_none) {
            let Next::Request(id) = self.queue.next(self.now_ns) else { return };
            self.device[room] = Some(id);
        }
    }

    fn complete(&mut self, which: usize) {
        if let Some(id) = self.device[which].take() {
            let completed = self.queue.complete(id, self.now_ns, |_| {});
            assert!(completed.is_ok(), "what the device has can be completed");
            self.done.completed += 1;
        }
    }

    fn requeue(&mut self, which: usize) {
        if let Some(id) = self.device[which].take() {
            assert!(self.queue.requeue(id, self.now_ns).is_ok(), "what the device has can be given back");
            self.done.requeued += 1;
        }
    }

    fn fire(&mut self) {
        if let Some(at_ns) = self.queue.next_timer() {
            self.now_ns = self.now_ns.max(at_ns);
            let _ = self.queue.timer(self.now_ns);
            self.done.timers += 1;
        }
    }

    fn exit(&mut self, which: usize) {
        if let Some((context, None)) = self.processes[which] {
            assert!(self.queue.exit_context(context, self.now_ns).is_ok(), "a running process can exit");
            self.processes[which] = None;
            self.done.exited += 1;
        }
    }

    fn set_priority(&mut self, which: usize) {
        let class = [Class::None, Class::RealTime, Class::BestEffort, Class::Idle][self.below(4) as usize];
        let priority = Priority::new(class, self.below(8) as u8).unwrap_or_default();
        if let Some((context, _)) = self.processes[which] {
            let _ = self.queue.set_priority(context, priority, self.now_ns);
            self.done.reprioritised += 1;
        }
    }

    /// Makes, weighs or removes a group, or moves a process to one.
    fn change_groups(&mut self, which: usize) {
        let (place, now_ns) = (which % self.groups.len(), self.now_ns);
        let weights = GroupWeights::of(1 + self.below(1000) as u16);
        let Some(group) = self.groups[place] else {
            let parent = self.groups[(place + 1) % 3].unwrap_or(self.queue.root_group());
            self.groups[place] = self.queue.create_group(parent, weights, now_ns).ok();
            self.done.grouped += 1;
            return;
        };
        match self.below(4) {
            0 if self.queue.remove_group(group, now_ns).is_ok() => {
                self.groups[place] = None;
                self.done.ungrouped += 1;
            }
            1 => drop(self.queue.set_group_weights(group, weights, now_ns)),
            _ => {
                if let Some((context, _)) = self.processes[which] {
                    assert!(self.queue.move_context(context, group, now_ns).is_ok(), "a running process can be moved");
                    self.done.moved += 1;
                }
            }
        }
    }

    fn reserve(&mut self, which: usize) {
        let reservation = Reservation::of(1 + self.below(4_000_000));
        if let Some((context, _)) = self.processes[which] {
            let _ = self.queue.release(context, self.now_ns);
            self.done.reserved += u32::from(self.queue.reserve(context, reservation, self.now_ns).is_ok());
        }
        if let Some(group) = self.groups[which % 3] {
            let _ = self.queue.release_group(group, self.now_ns);
            self.done.reserved += u32::from(self.queue.reserve_group(group, reservation, self.now_ns).is_ok());
        }
    }

    fn set_tunable(&mut self) {
        let value = self.below(20) as i64;
        let which = self.below(1 + self.queue.tunables().count() as u64) as usize;
        let tunable = self.queue.tunables().nth(which).map(|(tunable, _)| tunable);
        if let Some(tunable) = tunable {
            self.done.tuned += u32::from(self.queue.set_tunable(tunable.name, value).is_ok());
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
        self.done.woken += 1;
        match self.queue.resubmit(bio, self.now_ns).map(|(submitted, _)| submitted) {
            Ok(Submitted::Asleep) => *asleep = Some(bio),
            _ => self.done.queued += 1,
        }
    }

    fn did_everything(&self) -> bool {
        let Done {
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
        } = self.done;
        let of_groups = [grouped, ungrouped, moved];
        [queued, merged, slept, woken, completed, requeued, timers, exited, reprioritised, barriers]
            .iter()
            .chain(&of_groups)
            .all(|&count| count > 0)
    }
}
