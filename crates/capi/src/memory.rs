//! The caller's block of memory and its division into tables.

use core::mem::{align_of, size_of};

use hoistway_core::{Borrowed, Capacity, ElevatorStorage, Kind, RequestQueue, Storage, TableMaker};

use crate::arguments;
use crate::events::{CEvent, EventRing};
use crate::types::{CCapacity, CConfig, Choice, Status};

/// The host types of a queue whose tables are in the block behind it.
pub(crate) type CHost = Borrowed<'static, EventRing>;

/// The start of a block.
#[allow(missing_debug_implementations)]
#[repr(C, align(64))]
pub struct Shell {
    magic: u64,
    /// The start of the block as passed by the caller: a reference to the shell may not be used to
    /// reach the tables behind it.
    base: *mut u8,
    layout: BlockLayout,
    /// The index of the set of elevator tables in use: 0 or 1.
    in_use: usize,
    pub(crate) merged_bios: u32,
    pub(crate) queue: RequestQueue<CHost>,
}

/// Marks a block that holds a queue: "hoistway" in ASCII.
const MAGIC: u64 = u64::from_le_bytes(*b"hoistway");

/// The alignment of the block in bytes.
const ALIGNMENT: usize = 64;

/// The number of bytes that `hoistway_queue_init` needs for this capacity; 0 if it is out of range
/// or too large for this machine.
///
/// # Safety
///
/// Unless it is null or misaligned, `capacity` must point to a readable structure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_queue_size(capacity: *const CCapacity) -> usize {
    // SAFETY: guaranteed by the caller.
    let Ok(capacity) = (unsafe { arguments::read(capacity) }) else { return 0 };
    BlockLayout::new(capacity).map_or(0, |layout| layout.size)
}

/// Creates a queue in `memory` with the elevator of this index, and with the reservation layer over
/// it if the index includes `RESERVING`. A queue needs no clean-up.
///
/// # Safety
///
/// `memory` must point to `size` bytes that no other code uses while the queue exists and that do
/// not move; `capacity` and `config` to readable structures. Null and misaligned pointers are
/// refused.
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
    // SAFETY: guaranteed by the caller.
    let (capacity, config) = unsafe { (arguments::read(capacity)?, arguments::read(config)?) };
    arguments::check_out(memory)?;
    let layout = BlockLayout::new(capacity).ok_or(Status::Invalid)?;
    let config = config.checked().ok_or(Status::Invalid)?;
    let elevator = Choice::read(elevator)?;
    if size < layout.size {
        return Err(Status::TooSmall);
    }
    let base = memory.cast::<u8>();
    // SAFETY: the block is at least as large as the layout, and no other code uses it.
    let queue = unsafe {
        let events = EventRing::new(layout.event_table(base));
        RequestQueue::new(config, layout.storage(base), layout.elevator_storage(base, 0, elevator), events, now_ns)
    };
    // SAFETY: the block is aligned and begins with room for the shell.
    unsafe { memory.write(Shell { magic: MAGIC, base, layout, in_use: 0, merged_bios: capacity.merged_bios, queue }) };
    Ok(())
}

/// The queue in a block.
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
    /// Makes tables for another elevator in the unused set, which becomes the one in use.
    ///
    /// # Safety
    ///
    /// No switch may be in progress, and the storage that the last one retired must be dropped, so
    /// that there is no reference to that set.
    pub(crate) unsafe fn other_elevator_storage(&mut self, elevator: Choice) -> ElevatorStorage<CHost> {
        self.in_use ^= 1;
        // SAFETY: the tables are in the same block, behind the shell; the rest is guaranteed by the
        // caller.
        unsafe { self.layout.elevator_storage(self.base, self.in_use, elevator) }
    }
}

/// The offsets of the parts of a block: the queue's tables, the events, and two sets of elevator
/// tables of the largest size needed, so that a switch has room for the new elevator's while the
/// old one is still in use.
#[derive(Clone, Copy)]
struct BlockLayout {
    capacity: Capacity,
    queue: usize,
    events: usize,
    event_count: u32,
    elevators: [usize; 2],
    size: usize,
}

impl BlockLayout {
    fn new(requested: CCapacity) -> Option<BlockLayout> {
        let capacity = requested.checked()?;
        let queue = align(size_of::<Shell>())?;
        let events = queue.checked_add(measure(|ruler| _ = Storage::make(capacity, ruler))?)?;
        let first = events.checked_add(measure(|ruler| _ = ruler.table::<CEvent>(requested.events))?)?;
        let mut largest = 0;
        for &kind in Kind::ALL {
            // No larger without the layer.
            largest = measure(|ruler| _ = ElevatorStorage::make_reserving(kind, capacity, ruler))?.max(largest);
        }
        let second = first.checked_add(largest)?;
        let size = second.checked_add(largest).filter(|&size| size <= isize::MAX as usize)?;
        Some(BlockLayout { capacity, queue, events, event_count: requested.events, elevators: [first, second], size })
    }

    /// # Safety
    /// `base` is the start of a block of the layout's size, aligned, without other
    /// references to the queue's tables.
    unsafe fn storage(&self, base: *mut u8) -> Storage<CHost> {
        // SAFETY: guaranteed by the caller.
        Storage::make(self.capacity, &mut unsafe { Cutter::at(base, self.queue) })
    }

    /// # Safety
    /// As for [`BlockLayout::storage`], about the table of events.
    unsafe fn event_table(&self, base: *mut u8) -> &'static mut [CEvent] {
        // SAFETY: guaranteed by the caller.
        unsafe { Cutter::at(base, self.events) }.table(self.event_count)
    }

    /// # Safety
    /// As for [`BlockLayout::storage`], about the elevator's tables of set `index`, 0 or 1.
    unsafe fn elevator_storage(&self, base: *mut u8, index: usize, elevator: Choice) -> ElevatorStorage<CHost> {
        let [first, second] = self.elevators;
        let offset = if index == 0 { first } else { second };
        // SAFETY: guaranteed by the caller.
        let mut cutter = unsafe { Cutter::at(base, offset) };
        if elevator.reserving {
            ElevatorStorage::make_reserving(elevator.kind, self.capacity, &mut cutter)
        } else {
            ElevatorStorage::make(elevator.kind, self.capacity, &mut cutter)
        }
    }
}

/// Rounds up to the next multiple of the block's alignment.
fn align(offset: usize) -> Option<usize> {
    offset.checked_next_multiple_of(ALIGNMENT)
}

/// The size in bytes of the tables that `make` requests, a multiple of the alignment.
fn measure(make: impl FnOnce(&mut Ruler)) -> Option<usize> {
    let mut ruler = Ruler { end: Some(0) };
    make(&mut ruler);
    ruler.end.and_then(align)
}

/// The end and the start of a table placed behind `end`.
fn place<T>(end: usize, len: u32) -> Option<(usize, usize)> {
    const { assert!(align_of::<T>() <= ALIGNMENT) };
    let start = end.checked_next_multiple_of(align_of::<T>())?;
    let end = start.checked_add((len as usize).checked_mul(size_of::<T>())?)?;
    (end <= isize::MAX as usize).then_some((start, end))
}

/// A table maker that makes empty tables and computes the size of full ones.
struct Ruler {
    end: Option<usize>,
}

impl TableMaker<CHost> for Ruler {
    fn table<T: Default + Clone + 'static>(&mut self, len: u32) -> &'static mut [T] {
        self.end = self.end.and_then(|end| place::<T>(end, len)).map(|(_, end)| end);
        &mut []
    }
}

/// A table maker that cuts tables out of a block, one behind the other.
struct Cutter {
    start: *mut u8,
    end: usize,
}

impl Cutter {
    /// # Safety
    ///
    /// `base` must be aligned to [`ALIGNMENT`] and `offset` be a multiple of it; from there the
    /// block must have room for all requested tables, without other references to it.
    unsafe fn at(base: *mut u8, offset: usize) -> Cutter {
        // SAFETY: the offset is within the block.
        Cutter { start: unsafe { base.add(offset) }, end: 0 }
    }
}

impl TableMaker<CHost> for Cutter {
    fn table<T: Default + Clone + 'static>(&mut self, len: u32) -> &'static mut [T] {
        let Some((start, end)) = place::<T>(self.end, len) else { return &mut [] };
        self.end = end;
        // SAFETY: the caller of `at` guarantees room for these tables, which a ruler measured; the
        // start is a multiple of the alignment of `T`. Every entry is written before a reference to
        // it is made.
        unsafe {
            let first = self.start.add(start).cast::<T>();
            for index in 0..len as usize {
                first.add(index).write(T::default());
            }
            core::slice::from_raw_parts_mut(first, len as usize)
        }
    }
}
