//! The caller's block of memory: a header with the queue, and behind it the queue's tables.

use core::mem::{align_of, size_of};

#[cfg(not(feature = "fixed"))]
use hoistway_core::Borrowed;
use hoistway_core::{Capacity, ElevatorStorage, Kind, QueueConfig, RequestQueue, Storage, TableMaker};
#[cfg(feature = "fixed")]
use hoistway_core::{HostTypes, NoCustom};

use crate::arguments;
use crate::events::{CEvent, EventRing};
use crate::types::{CCapacity, CConfig, Choice, Status};

/// The host types of a queue whose tables are in the block behind it.
#[cfg(not(feature = "fixed"))]
pub(crate) type CHost = Borrowed<'static, EventRing>;
#[cfg(feature = "fixed")]
pub(crate) type CHost = Fixed;

/// The host types of queues that keep their elevator.
#[cfg(feature = "fixed")]
#[derive(Debug)]
pub(crate) struct Fixed;

#[cfg(feature = "fixed")]
impl HostTypes for Fixed {
    type Slots<T: 'static> = &'static mut [T];
    type Sink = EventRing;
    type Custom = NoCustom;
    const SWITCHES: bool = false;
}

/// The header at the start of a block: the queue, and the positions of its tables.
#[allow(missing_debug_implementations)]
#[repr(C, align(64))]
pub struct Shell {
    magic: u64,
    /// The caller's pointer to the block, through which the tables are accessed. A pointer derived
    /// from a reference to the header may access only the header.
    base: *mut u8,
    layout: BlockLayout,
    /// The index of the set of elevator tables in use: 0 or 1.
    in_use: usize,
    /// The capacity for merged bios: see [`CCapacity::merged_bios`].
    pub(crate) merged_bios: u32,
    /// Whether the queue keeps its elevator.
    pub(crate) fixed: bool,
    pub(crate) queue: RequestQueue<CHost>,
}

/// Marks a block that holds a queue: "hoistway" in ASCII.
const MAGIC: u64 = u64::from_le_bytes(*b"hoistway");

/// The alignment of the block in bytes.
const ALIGNMENT: usize = 64;

/// Returns the size in bytes of the block that `hoistway_queue_init` needs for a capacity. Returns
/// 0 if the capacity is out of range or too large for this machine, or the pointer is refused.
///
/// # Safety
///
/// Unless it is null or misaligned, `capacity` must point to a readable structure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_queue_size(capacity: *const CCapacity) -> usize {
    // SAFETY: guaranteed by the caller.
    let Ok(capacity) = (unsafe { arguments::read(capacity) }) else { return 0 };
    BlockLayout::new(capacity, None).map_or(0, |layout| layout.size)
}

/// Returns the size in bytes of the block that `hoistway_queue_init` needs for a capacity and an
/// elevator with the bit `FIXED`. Returns 0 if the elevator is unknown or lacks that bit, the
/// capacity is out of range or too large for this machine, or the pointer is refused.
///
/// # Safety
///
/// Unless it is null or misaligned, `capacity` must point to a readable structure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_fixed_queue_size(capacity: *const CCapacity, elevator: u32) -> usize {
    // SAFETY: guaranteed by the caller.
    let Ok(capacity) = (unsafe { arguments::read(capacity) }) else { return 0 };
    let Some(elevator) = Choice::read(elevator).ok().filter(|choice| choice.fixed) else { return 0 };
    BlockLayout::new(capacity, Some(elevator)).map_or(0, |layout| layout.size)
}

/// Creates a queue in `memory`. `elevator` is the index of an elevator; the bit `RESERVING` adds
/// the reservation layer over it, the bit `FIXED` excludes switches. There is no destructor: the
/// caller frees the memory when it no longer needs the queue.
///
/// Returns [`Status::Ok`]; [`Status::Invalid`] for a pointer, the capacity or the configuration,
/// [`Status::Unknown`] for the elevator, [`Status::TooSmall`] for `size`.
///
/// # Safety
///
/// `memory` must point to `size` bytes that stay in place and that no other code uses while the
/// queue exists. `capacity` and `config` must point to readable structures. Null and misaligned
/// pointers are refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_queue_init(
    memory: *mut Shell,
    size: usize,
    capacity: *const CCapacity,
    config: *const CConfig,
    elevator: u32,
    now_ns: u64,
) -> i32 {
    // SAFETY: guaranteed by the caller.
    let result = unsafe { init(memory, size, capacity, config, elevator, now_ns) };
    result.err().unwrap_or(Status::Ok) as i32
}

unsafe fn init(
    memory: *mut Shell,
    size: usize,
    capacity: *const CCapacity,
    config: *const CConfig,
    elevator: u32,
    now_ns: u64,
) -> Result<(), Status> {
    // SAFETY: guaranteed by the caller.
    let (capacity, config) = unsafe { (arguments::read(capacity)?, arguments::read(config)?) };
    arguments::check_out(memory)?;
    let elevator = Choice::read(elevator)?;
    let layout = BlockLayout::new(capacity, elevator.fixed.then_some(elevator)).ok_or(Status::Invalid)?;
    let config = config.checked().ok_or(Status::Invalid)?;
    if size < layout.size {
        return Err(Status::TooSmall);
    }
    // SAFETY: the block is aligned, is at least as large as the layout, and no other code uses it.
    unsafe {
        create(memory, layout, capacity.merged_bios, elevator.fixed, config, now_ns);
        attach(memory, elevator)
    }
}

/// Writes the header with a queue without an elevator. This function and [`attach`] are separate
/// so that their stack frames do not add up.
///
/// # Safety
///
/// As for [`hoistway_queue_init`], with a block of the layout's size.
#[inline(never)]
unsafe fn create(
    memory: *mut Shell,
    layout: BlockLayout,
    merged_bios: u32,
    fixed: bool,
    config: QueueConfig,
    now_ns: u64,
) {
    let base = memory.cast::<u8>();
    // SAFETY: guaranteed by the caller. Each field is written before there is a reference to the
    // header.
    unsafe {
        (&raw mut (*memory).magic).write(MAGIC);
        (&raw mut (*memory).base).write(base);
        (&raw mut (*memory).layout).write(layout);
        (&raw mut (*memory).in_use).write(0);
        (&raw mut (*memory).merged_bios).write(merged_bios);
        (&raw mut (*memory).fixed).write(fixed);
        let events = EventRing::new(layout.event_table(base));
        let queue = RequestQueue::blank(config, layout.storage(base), events, now_ns);
        (&raw mut (*memory).queue).write(queue);
    }
}

/// Gives a new queue its elevator.
///
/// # Safety
///
/// `memory` must point to a header that [`create`] has written.
#[inline(never)]
unsafe fn attach(memory: *mut Shell, elevator: Choice) -> Result<(), Status> {
    // SAFETY: guaranteed by the caller; nothing else refers to the first set of tables yet.
    let (shell, storage) = unsafe {
        let shell = &mut *memory;
        let storage = shell.layout.elevator_storage(shell.base, 0, elevator);
        (shell, storage)
    };
    shell.queue.attach(storage).map_err(|_| Status::Invalid)
}

/// Returns the header of a block in which a queue was created. [`Status::Invalid`] if the pointer
/// is null or misaligned, or the block has no magic number.
///
/// # Safety
///
/// Unless it is null or misaligned, `memory` must point to a block in which a queue was created,
/// and no other code may use it while the result exists.
pub(crate) unsafe fn shell<'a>(memory: *mut Shell) -> Result<&'a mut Shell, Status> {
    arguments::check_out(memory)?;
    // SAFETY: guaranteed by the caller. The magic number detects most memory without a queue.
    let shell = unsafe { &mut *memory };
    if shell.magic == MAGIC { Ok(shell) } else { Err(Status::Invalid) }
}

impl Shell {
    /// Creates the tables of the next elevator in the unused set, and marks that set as used.
    ///
    /// # Safety
    ///
    /// There must be no reference to the unused set: no switch of elevators is in progress, and the
    /// storage that the last switch retired was taken from the queue and dropped.
    pub(crate) unsafe fn other_elevator_storage(&mut self, elevator: Choice) -> ElevatorStorage<CHost> {
        self.in_use ^= 1;
        // SAFETY: the tables are in the same block, behind the header. The caller guarantees that
        // nothing refers to the set.
        unsafe { self.layout.elevator_storage(self.base, self.in_use, elevator) }
    }
}

/// The layout of a block: the header, the queue's tables, the table of events, and two sets of
/// elevator tables. Each set has room for any elevator, so that the tables of the old and of the
/// new elevator exist together during a switch. A queue with a fixed elevator has one set, with
/// room for its tables. Offsets and sizes are in bytes.
#[derive(Clone, Copy)]
struct BlockLayout {
    capacity: Capacity,
    /// The offset of the queue's tables.
    queue: usize,
    /// The offset of the table of events.
    events: usize,
    /// The number of entries of the table of events.
    event_count: u32,
    /// The offsets of the two sets of elevator tables.
    elevators: [usize; 2],
    /// The size of the block.
    size: usize,
}

impl BlockLayout {
    /// Computes the layout for a capacity, and for one elevator or for all of them. `None` if the
    /// capacity is out of range, or the block would exceed the address space.
    fn new(requested: CCapacity, fixed: Option<Choice>) -> Option<BlockLayout> {
        let capacity = requested.checked()?;
        let queue = align(size_of::<Shell>())?;
        let events = queue.checked_add(measure(|counter| _ = Storage::make(capacity, counter))?)?;
        let first = events.checked_add(measure(|counter| _ = counter.table::<CEvent>(requested.events))?)?;
        let (largest, sets) = match fixed {
            Some(elevator) => (measure(|counter| _ = elevator.make_storage(capacity, counter))?, 1),
            None => (largest_tables(capacity)?, 2),
        };
        let second = if sets == 2 { first.checked_add(largest)? } else { first };
        let size = second.checked_add(largest).filter(|&size| size <= isize::MAX as usize)?;
        Some(BlockLayout { capacity, queue, events, event_count: requested.events, elevators: [first, second], size })
    }

    /// Creates the tables of the queue.
    ///
    /// # Safety
    /// `base` must be the aligned start of a block of this layout's size, without other references
    /// to the tables of the queue.
    unsafe fn storage(&self, base: *mut u8) -> Storage<CHost> {
        // SAFETY: guaranteed by the caller.
        Storage::make(self.capacity, &mut unsafe { BumpAllocator::at(base, self.queue) })
    }

    /// Creates the table of events.
    ///
    /// # Safety
    /// As for [`BlockLayout::storage`], but for references to the table of events.
    unsafe fn event_table(&self, base: *mut u8) -> &'static mut [CEvent] {
        // SAFETY: guaranteed by the caller.
        unsafe { BumpAllocator::at(base, self.events) }.table(self.event_count)
    }

    /// Creates the tables of an elevator in the set `index`, 0 or 1.
    ///
    /// # Safety
    /// As for [`BlockLayout::storage`], but for references to the tables of this set.
    unsafe fn elevator_storage(&self, base: *mut u8, index: usize, elevator: Choice) -> ElevatorStorage<CHost> {
        let [first, second] = self.elevators;
        let offset = if index == 0 { first } else { second };
        // SAFETY: guaranteed by the caller.
        elevator.make_storage(self.capacity, &mut unsafe { BumpAllocator::at(base, offset) })
    }
}

/// Returns the size in bytes of the largest elevator's tables; `None` on overflow.
fn largest_tables(capacity: Capacity) -> Option<usize> {
    let mut largest = 0;
    for &kind in Kind::ALL {
        // Without the reservation layer, the tables of an elevator are not larger.
        let needed = measure(|counter| _ = ElevatorStorage::make_reserving(kind, capacity, counter))?;
        largest = needed.max(largest);
    }
    Some(largest)
}

impl Choice {
    fn make_storage(self, capacity: Capacity, maker: &mut impl TableMaker<CHost>) -> ElevatorStorage<CHost> {
        if self.reserving {
            ElevatorStorage::make_reserving(self.kind, capacity, maker)
        } else {
            ElevatorStorage::make(self.kind, capacity, maker)
        }
    }
}

/// Rounds an offset up to a multiple of the block's alignment; `None` on overflow.
fn align(offset: usize) -> Option<usize> {
    offset.checked_next_multiple_of(ALIGNMENT)
}

/// Returns the size in bytes of the tables that `make` requests, rounded up to the alignment;
/// `None` on overflow.
fn measure(make: impl FnOnce(&mut SizeCounter)) -> Option<usize> {
    let mut counter = SizeCounter { end: Some(0) };
    make(&mut counter);
    counter.end.and_then(align)
}

/// Returns the offsets in bytes of the start and the end of a table of `len` entries, which is
/// placed at the next aligned offset from `after` on; `None` on overflow.
fn place<T>(after: usize, len: u32) -> Option<(usize, usize)> {
    const { assert!(align_of::<T>() <= ALIGNMENT) };
    let start = after.checked_next_multiple_of(align_of::<T>())?;
    let end = start.checked_add((len as usize).checked_mul(size_of::<T>())?)?;
    (end <= isize::MAX as usize).then_some((start, end))
}

/// A table maker that computes the size of the requested tables. The tables that it returns are
/// empty.
struct SizeCounter {
    /// The offset in bytes behind the last table; `None` after an overflow.
    end: Option<usize>,
}

impl TableMaker<CHost> for SizeCounter {
    fn table<T: Default + Clone + 'static>(&mut self, len: u32) -> &'static mut [T] {
        self.end = self.end.and_then(|end| place::<T>(end, len)).map(|(_, end)| end);
        &mut []
    }
}

/// A table maker that places tables one behind the other in a block.
struct BumpAllocator {
    start: *mut u8,
    /// The offset in bytes from `start` behind the last table.
    end: usize,
}

impl BumpAllocator {
    /// Creates an allocator whose first table is at `offset` in the block at `base`.
    ///
    /// # Safety
    ///
    /// `base` must be aligned to [`ALIGNMENT`], and `offset` must be a multiple of it. From
    /// `offset` on, the block must have room for all requested tables, without other references to
    /// them.
    unsafe fn at(base: *mut u8, offset: usize) -> BumpAllocator {
        // SAFETY: the offset is within the block.
        BumpAllocator { start: unsafe { base.add(offset) }, end: 0 }
    }
}

impl TableMaker<CHost> for BumpAllocator {
    fn table<T: Default + Clone + 'static>(&mut self, len: u32) -> &'static mut [T] {
        let Some((start, end)) = place::<T>(self.end, len) else { return &mut [] };
        self.end = end;
        // SAFETY: the caller of `at` guarantees room for the tables, whose size a `SizeCounter`
        // computed by the same rule. The start is a multiple of the alignment of `T`. Each entry is
        // written before there is a reference to it.
        unsafe {
            let first = self.start.add(start).cast::<T>();
            for index in 0..len as usize {
                first.add(index).write(T::default());
            }
            core::slice::from_raw_parts_mut(first, len as usize)
        }
    }
}
