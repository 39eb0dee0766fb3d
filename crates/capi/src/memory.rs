//! The caller's block of memory: how it is cut into tables.

use core::mem::{align_of, size_of};

use hoistway_core::{
    Arrival, Borrowed, Capacity, Context, ElevatorStorage, HeapEntry, Kind, Least, MergedBio, Node, ProcessQueue,
    Request, RequestQueue, Storage, Work,
};

use crate::arguments;
use crate::events::{CEvent, EventRing};
use crate::types::{CCapacity, CConfig, Status};

/// The queue with its home: tables in the block behind it.
pub(crate) type Home = Borrowed<'static, EventRing>;

/// What stands at the start of a block.
#[allow(missing_debug_implementations)]
#[repr(C, align(64))]
pub struct Shell {
    magic: u64,
    /// The start of the block, as the caller gave it: a reference to the shell may not be used to reach the tables behind it.
    base: *mut u8,
    plan: Plan,
    /// Which of the two sets of elevator tables is in use.
    in_use: usize,
    pub(crate) merged_bios: u32,
    pub(crate) queue: RequestQueue<Home>,
}

/// Marks a block that holds a queue: "hoistway" in ASCII.
const MAGIC: u64 = u64::from_le_bytes(*b"hoistway");

/// The alignment of the block in bytes.
const ALIGNMENT: usize = 64;

/// How many bytes `hoistway_queue_init` needs for this capacity; 0 if it is out of range or too large for this machine.
///
/// # Safety
/// Unless it is null or badly aligned, `capacity` must point to a readable structure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_queue_size(capacity: *const CCapacity) -> usize {
    // SAFETY: the caller's promise.
    let Ok(capacity) = (unsafe { arguments::read(capacity) }) else { return 0 };
    Plan::new(capacity).map_or(0, |plan| plan.size)
}

/// Makes a queue in `memory`, with the elevator of this index. Nothing has to be undone when the queue is not needed any more.
///
/// # Safety
/// `memory` must point to `size` bytes that nobody else uses while the queue lives and that do not move; `capacity` and `config`
/// to readable structures. Null and badly aligned pointers are refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_queue_init(
    memory: *mut Shell,
    size: usize,
    capacity: *const CCapacity,
    config: *const CConfig,
    elevator: u32,
    now_ns: u64,
) -> i32 {
    // SAFETY: the caller's promise.
    let made = unsafe { init(memory, size, capacity, config, elevator, now_ns) };
    made.err().unwrap_or(Status::Ok) as i32
}

unsafe fn init(
    memory: *mut Shell,
    size: usize,
    capacity: *const CCapacity,
    config: *const CConfig,
    elevator: u32,
    now_ns: u64,
) -> Result<(), Status> {
    // SAFETY: the caller's promise.
    let (capacity, config) = unsafe { (arguments::read(capacity)?, arguments::read(config)?) };
    arguments::check_out(memory)?;
    let plan = Plan::new(capacity).ok_or(Status::Invalid)?;
    let config = config.checked().ok_or(Status::Invalid)?;
    let kind = Kind::ALL.get(elevator as usize).copied().ok_or(Status::Unknown)?;
    if size < plan.size {
        return Err(Status::TooSmall);
    }
    let base = memory.cast::<u8>();
    // SAFETY: the block is at least as large as the plan, and nobody else uses it.
    let queue = unsafe {
        let events = EventRing::new(plan.events.cut(base));
        RequestQueue::new(config, kind, plan.storage(base), plan.elevator_storage(base, 0), events, now_ns)
    };
    // SAFETY: the block is aligned and begins with room for the shell.
    unsafe { memory.write(Shell { magic: MAGIC, base, plan, in_use: 0, merged_bios: capacity.merged_bios, queue }) };
    Ok(())
}

/// The queue in a block.
///
/// # Safety
/// Unless it is null or badly aligned, `memory` must point to a block in which a queue was made, and nobody else may use it
/// while the result lives.
pub(crate) unsafe fn shell<'a>(memory: *mut Shell) -> Result<&'a mut Shell, Status> {
    arguments::check_out(memory)?;
    // SAFETY: the caller's promise. The mark catches memory in which no queue was made, as far as that can be caught.
    let shell = unsafe { &mut *memory };
    if shell.magic == MAGIC { Ok(shell) } else { Err(Status::Invalid) }
}

impl Shell {
    /// Tables for another elevator, which that one then has in use.
    ///
    /// # Safety
    /// No switch is under way and the storage that the last one retired is dropped: then nobody refers to the set that is cut.
    pub(crate) unsafe fn other_elevator_storage(&mut self) -> ElevatorStorage<Home> {
        self.in_use ^= 1;
        // SAFETY: the tables lie in the same block, behind the shell; the rest is the caller's promise.
        unsafe { self.plan.elevator_storage(self.base, self.in_use) }
    }
}

/// Where each table lies in the block.
#[derive(Clone, Copy)]
struct Plan {
    requests: Place<Request>,
    nodes: Place<Node>,
    arrivals: Place<Arrival>,
    sweep: Place<HeapEntry>,
    merged: Place<MergedBio>,
    contexts: Place<Context>,
    buckets: Place<u32>,
    work: Place<Work>,
    events: Place<CEvent>,
    elevators: [ElevatorPlan; 2],
    size: usize,
}

#[derive(Clone, Copy)]
struct ElevatorPlan {
    queues: Place<ProcessQueue>,
    nodes: Place<Node<Least>>,
    buckets: Place<u32>,
}

impl Plan {
    fn new(capacity: CCapacity) -> Option<Plan> {
        let events = capacity.events;
        let capacity = capacity.checked()?;
        let mut end = size_of::<Shell>();
        Some(Plan {
            requests: Place::after(&mut end, capacity.request_slots())?,
            nodes: Place::after(&mut end, capacity.request_slots())?,
            arrivals: Place::after(&mut end, capacity.request_slots())?,
            sweep: Place::after(&mut end, capacity.request_slots())?,
            merged: Place::after(&mut end, capacity.merged_bios)?,
            contexts: Place::after(&mut end, capacity.contexts)?,
            buckets: Place::after(&mut end, buckets(capacity.requests))?,
            work: Place::after(&mut end, capacity.work_slots())?,
            events: Place::after(&mut end, events)?,
            elevators: [ElevatorPlan::new(&mut end, capacity)?, ElevatorPlan::new(&mut end, capacity)?],
            size: end.checked_next_multiple_of(ALIGNMENT)?,
        })
    }

    /// # Safety
    /// `base` is the start of a block of the plan's size, and nobody else refers to these tables.
    unsafe fn storage(&self, base: *mut u8) -> Storage<Home> {
        // SAFETY: the caller's promise.
        unsafe {
            Storage {
                requests: self.requests.cut(base),
                nodes: self.nodes.cut(base),
                arrivals: self.arrivals.cut(base),
                sweep: self.sweep.cut(base),
                merged: self.merged.cut(base),
                contexts: self.contexts.cut(base),
                buckets: self.buckets.cut(base),
                work: self.work.cut(base),
            }
        }
    }

    /// # Safety
    /// As for [`Plan::storage`], about the tables of set `index`, 0 or 1.
    unsafe fn elevator_storage(&self, base: *mut u8, index: usize) -> ElevatorStorage<Home> {
        let [first, second] = &self.elevators;
        let plan = if index == 0 { first } else { second };
        // SAFETY: the caller's promise.
        unsafe {
            ElevatorStorage {
                queues: plan.queues.cut(base),
                nodes: plan.nodes.cut(base),
                buckets: plan.buckets.cut(base),
            }
        }
    }
}

impl ElevatorPlan {
    fn new(end: &mut usize, capacity: Capacity) -> Option<ElevatorPlan> {
        Some(ElevatorPlan {
            queues: Place::after(end, capacity.queues())?,
            nodes: Place::after(end, capacity.queues())?,
            buckets: Place::after(end, buckets(capacity.contexts))?,
        })
    }
}

fn buckets(entries: u32) -> u32 {
    entries.max(1).checked_next_power_of_two().unwrap_or(1 << 31)
}

/// The place of a table of `T` in a block.
struct Place<T> {
    offset: usize,
    len: usize,
    of: core::marker::PhantomData<T>,
}

impl<T> Clone for Place<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Place<T> {}

impl<T: Default> Place<T> {
    /// The next place, which `end` moves behind; `None` if the block would become too large.
    fn after(end: &mut usize, len: u32) -> Option<Place<T>> {
        let len = len as usize;
        let offset = end.checked_next_multiple_of(align_of::<T>())?;
        *end = offset.checked_add(len.checked_mul(size_of::<T>())?).filter(|&end| end <= isize::MAX as usize)?;
        Some(Place { offset, len, of: core::marker::PhantomData })
    }

    /// The table itself, filled with defaults.
    ///
    /// # Safety
    /// `base` is the start of a block that the place was planned for, aligned to 64 bytes, and nobody else refers to the table.
    unsafe fn cut(&self, base: *mut u8) -> &'static mut [T] {
        // SAFETY: the place lies within the block, and its offset is a multiple of the alignment of `T`. Every entry is
        // written before a reference to it is made.
        unsafe {
            let first = base.add(self.offset).cast::<T>();
            for index in 0..self.len {
                first.add(index).write(T::default());
            }
            core::slice::from_raw_parts_mut(first, self.len)
        }
    }
}
