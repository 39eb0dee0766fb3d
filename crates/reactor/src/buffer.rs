//! Page-aligned buffers from a pool, which an engine can register with the kernel.
//!
//! A [`Pool`] is one region, divided into blocks of 4 KiB to 1 MiB in powers of two: a buddy
//! system, with short stacks of the blocks freed last in front, so that an allocation and its
//! release cost about ten ns. Longer buffers, and those for which the region has no room, are
//! allocated. A buffer is not cleared: the code that reads into it knows the filled length and
//! sends no other bytes.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// The alignment and granularity of buffers in bytes.
pub const PAGE_BYTES: usize = 4096;

/// Size in bytes of the largest block of a pool: 1 MiB.
pub const BLOCK_BYTES_MAX: usize = PAGE_BYTES << (ORDERS - 1);

/// Number of block sizes: 4 KiB << order, 4 KiB to 1 MiB.
const ORDERS: usize = 9;

/// Length in bytes from which a buffer outside the pool is mapped, 128 KiB, so that its memory
/// returns to the system.
const MAP_BYTES_MIN: usize = 128 << 10;

/// Page-aligned memory, which returns to its pool when it is dropped.
pub struct Buffer {
    start: NonNull<u8>,
    len: usize,
    origin: Origin,
    /// The pool that allocated the buffer, which counts it.
    pool: Option<Arc<Inner>>,
}

/// The origin of the memory, to which it returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Pool,
    Heap,
    Mapping,
}

/// A pool of buffers.
#[derive(Clone)]
pub struct Pool {
    inner: Arc<Inner>,
}

/// The region of a pool. It stays mapped until its last buffer is dropped.
struct Inner {
    start: NonNull<u8>,
    len: usize,
    blocks: Mutex<Blocks>,
}

// SAFETY: a buffer is the only owner of its memory, and a lock protects the lists of its pool.
unsafe impl Send for Buffer {}
// SAFETY: a shared reference gives read access only.
unsafe impl Sync for Buffer {}
// SAFETY: only buffers access the region, each its own block, and a lock protects the lists.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

impl Buffer {
    /// Allocates a buffer outside a pool: `len` zero bytes, rounded up to whole pages, at least
    /// one.
    pub fn alone(len: usize) -> Buffer {
        let len = len.max(1).next_multiple_of(PAGE_BYTES);
        if len >= MAP_BYTES_MIN {
            return Buffer { start: map(len), len, origin: Origin::Mapping, pool: None };
        }
        let layout = heap_layout(len);
        // SAFETY: the layout's size is not zero.
        let start = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start) else { handle_alloc_error(layout) };
        Buffer { start, len, origin: Origin::Heap, pool: None }
    }

    /// Returns true if the memory is part of a pool.
    pub fn is_pooled(&self) -> bool {
        self.origin == Origin::Pool
    }

    /// Returns true if the whole buffer is within `len` bytes from `start`.
    pub(crate) fn is_within(&self, start: *const u8, len: usize) -> bool {
        let (own, start) = (self.start.as_ptr() as usize, start as usize);
        own >= start && own.saturating_add(self.len) <= start.saturating_add(len)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Some(pool) = &self.pool {
            pool.give_back(self);
        }
        match self.origin {
            Origin::Pool => {}
            // SAFETY: the memory was allocated with this layout, and the buffer is its only owner.
            Origin::Heap => unsafe { dealloc(self.start.as_ptr(), heap_layout(self.len)) },
            Origin::Mapping => unmap(self.start, self.len),
        }
    }
}

impl Deref for Buffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: the buffer owns the memory, which is mapped and initialised.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and the borrow of the buffer is unique.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} bytes, {:?})", self.len, self.origin)
    }
}

impl Pool {
    /// Creates a pool of this many bytes, rounded up to whole blocks of 1 MiB. Memory is taken at
    /// first use.
    pub fn new(bytes: usize) -> Pool {
        let len = bytes.max(1).next_multiple_of(BLOCK_BYTES_MAX);
        let blocks = Mutex::new(Blocks::new(len / PAGE_BYTES));
        Pool { inner: Arc::new(Inner { start: map(len), len, blocks }) }
    }

    /// Returns a buffer of at least this length: a block of the region, or allocated memory if the
    /// region has no room.
    pub fn buffer(&self, len: usize) -> Buffer {
        let order = order_for(len);
        let page = self.inner.lock().take(order);
        let pool = Some(self.inner.clone());
        let Some(page) = page else {
            let mut buffer = Buffer::alone(len);
            buffer.pool = pool;
            return buffer;
        };
        debug_assert!((page as usize + (1 << order)) * PAGE_BYTES <= self.inner.len);
        // SAFETY: the page is within the region, which begins at `start`.
        let start = unsafe { self.inner.start.add(page as usize * PAGE_BYTES) };
        Buffer { start, len: PAGE_BYTES << order, origin: Origin::Pool, pool }
    }

    /// Returns the start of the region and its length in bytes.
    pub(crate) fn region(&self) -> (*mut u8, usize) {
        (self.inner.start.as_ptr(), self.inner.len)
    }

    /// Returns the number of buffers of this pool that exist, including those with allocated
    /// memory.
    pub fn outstanding(&self) -> usize {
        self.inner.lock().outstanding
    }

    /// Returns the bytes of the region that buffers occupy.
    pub fn bytes_used(&self) -> usize {
        self.inner.lock().used_pages * PAGE_BYTES
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pool({} of {} bytes used)", self.bytes_used(), self.inner.len)
    }
}

impl Inner {
    fn lock(&self) -> std::sync::MutexGuard<'_, Blocks> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn give_back(&self, buffer: &Buffer) {
        let mut blocks = self.lock();
        blocks.outstanding -= 1;
        if buffer.origin == Origin::Pool {
            let page = (buffer.start.as_ptr() as usize - self.start.as_ptr() as usize) / PAGE_BYTES;
            blocks.give_back(page as u32, order_for(buffer.len));
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        unmap(self.start, self.len);
    }
}

/// The free blocks of a region: stacks of those that came back last, and a buddy system below them.
struct Blocks {
    /// By order: blocks that are free, but not yet merged with their neighbours.
    recent: [Vec<u32>; ORDERS],
    buddies: Buddies,
    used_pages: usize,
    /// Buffers that are not back yet, blocks or not.
    outstanding: usize,
}

impl Blocks {
    fn new(pages: usize) -> Blocks {
        let recent = std::array::from_fn(|order| Vec::with_capacity(recent_max(order)));
        Blocks { recent, buddies: Buddies::new(pages), used_pages: 0, outstanding: 0 }
    }

    /// A block for a buffer; none where its memory has to be its own.
    fn take(&mut self, order: usize) -> Option<u32> {
        self.outstanding += 1;
        let page = match self.recent.get_mut(order)?.pop() {
            Some(page) => page,
            None => self.buddies.take(order).or_else(|| self.merge_and_take(order))?,
        };
        self.used_pages += 1 << order;
        Some(page)
    }

    /// Returns the recently freed blocks to the buddy system, which may merge them, and takes a
    /// block.
    fn merge_and_take(&mut self, order: usize) -> Option<u32> {
        for (order, recent) in self.recent.iter_mut().enumerate() {
            for page in recent.drain(..) {
                self.buddies.give_back(page, order);
            }
        }
        self.buddies.take(order)
    }

    fn give_back(&mut self, page: u32, order: usize) {
        debug_assert!(self.used_pages >= 1 << order);
        self.used_pages -= 1 << order;
        let recent = &mut self.recent[order];
        if recent.len() < recent_max(order) {
            recent.push(page);
        } else {
            self.buddies.give_back(page, order);
        }
    }
}

/// Returns the number of recently freed blocks to keep for an order: at most 1 MiB, 2 to 128
/// blocks.
fn recent_max(order: usize) -> usize {
    (BLOCK_BYTES_MAX / (PAGE_BYTES << order)).clamp(2, 128)
}

/// A buddy system. The free blocks of each order form a list, linked by the index of their first
/// page.
struct Buddies {
    heads: [u32; ORDERS],
    /// For each page: the order of the free block that begins there, or [`NO_ORDER`].
    order: Vec<u8>,
    next: Vec<u32>,
    previous: Vec<u32>,
}

const NO_PAGE: u32 = u32::MAX;
const NO_ORDER: u8 = u8::MAX;

impl Buddies {
    fn new(pages: usize) -> Buddies {
        let mut buddies = Buddies {
            heads: [NO_PAGE; ORDERS],
            order: vec![NO_ORDER; pages],
            next: vec![NO_PAGE; pages],
            previous: vec![NO_PAGE; pages],
        };
        let step = 1 << (ORDERS - 1);
        // Pushed in reverse order, so that blocks are taken from the start of the region.
        for page in (0..pages as u32).step_by(step).rev() {
            buddies.push(page, ORDERS - 1);
        }
        buddies
    }

    fn take(&mut self, order: usize) -> Option<u32> {
        let found = (order..ORDERS).find(|&order| self.heads[order] != NO_PAGE)?;
        let page = self.heads[found];
        self.unlink(page, found);
        // The upper halves of larger blocks stay free.
        for order in (order..found).rev() {
            self.push(page + (1 << order), order);
        }
        Some(page)
    }

    fn give_back(&mut self, page: u32, order: usize) {
        let (mut page, mut order) = (page, order);
        while order < ORDERS - 1 {
            let buddy = page ^ (1 << order);
            if self.order[buddy as usize] != order as u8 {
                break;
            }
            self.unlink(buddy, order);
            page = page.min(buddy);
            order += 1;
        }
        self.push(page, order);
    }

    fn push(&mut self, page: u32, order: usize) {
        let head = std::mem::replace(&mut self.heads[order], page);
        self.order[page as usize] = order as u8;
        self.next[page as usize] = head;
        self.previous[page as usize] = NO_PAGE;
        if head != NO_PAGE {
            self.previous[head as usize] = page;
        }
    }

    fn unlink(&mut self, page: u32, order: usize) {
        let (previous, next) = (self.previous[page as usize], self.next[page as usize]);
        if previous == NO_PAGE {
            self.heads[order] = next;
        } else {
            self.next[previous as usize] = next;
        }
        if next != NO_PAGE {
            self.previous[next as usize] = previous;
        }
        self.order[page as usize] = NO_ORDER;
    }
}

/// Returns the order of the smallest block that holds `len` bytes; [`ORDERS`] or more if none does.
fn order_for(len: usize) -> usize {
    let pages = len.div_ceil(PAGE_BYTES).max(1);
    pages.checked_next_power_of_two().map_or(ORDERS, |pages| pages.trailing_zeros() as usize)
}

fn heap_layout(len: usize) -> Layout {
    debug_assert!(len.is_multiple_of(PAGE_BYTES) && len < MAP_BYTES_MIN);
    Layout::from_size_align(len, PAGE_BYTES).expect("4 KiB is a power of two, and the length is below 128 KiB")
}

/// Maps zeroed memory. Like any allocation, it aborts the process if memory runs out.
fn map(len: usize) -> NonNull<u8> {
    // SAFETY: the kernel chooses an unused address for the mapping.
    let start = unsafe {
        mmap_anonymous(
            std::ptr::null_mut(),
            len,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::PRIVATE | MapFlags::NORESERVE,
        )
    };
    let start = start.ok().and_then(|start| NonNull::new(start.cast::<u8>()));
    start.unwrap_or_else(|| handle_alloc_error(Layout::array::<u8>(len).unwrap_or(Layout::new::<u8>())))
}

fn unmap(start: NonNull<u8>, len: usize) {
    // SAFETY: `map` made the mapping with this length, and its owner is being dropped.
    if let Err(error) = unsafe { munmap(start.as_ptr().cast(), len) } {
        tracing::error!(%error, len, "memory cannot be unmapped");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    #[test]
    fn buffers_are_aligned_long_enough_and_disjoint() {
        let pool = Pool::new(4 << 20);
        let mut random = Pcg64Mcg::seed_from_u64(7);
        let mut held: Vec<(Buffer, u8)> = Vec::new();
        for round in 0..20_000u32 {
            if held.len() > 40 || (!held.is_empty() && random.random_range(0..2) == 0) {
                let (buffer, mark) = held.swap_remove(random.random_range(0..held.len()));
                assert!(buffer.iter().all(|byte| *byte == mark), "another buffer overlaps");
                continue;
            }
            let len = 1usize << random.random_range(0..21);
            let mut buffer = pool.buffer(len);
            assert!(buffer.len() >= len);
            assert_eq!(buffer.as_ptr() as usize % PAGE_BYTES, 0);
            let mark = round as u8;
            buffer.fill(mark);
            held.push((buffer, mark));
        }
    }

    #[test]
    fn blocks_merge_when_all_are_freed() {
        let pool = Pool::new(2 << 20);
        let small: Vec<Buffer> = (0..512).map(|_| pool.buffer(4096)).collect();
        assert!(small.iter().all(Buffer::is_pooled));
        assert_eq!((pool.bytes_used(), pool.outstanding()), (2 << 20, 512));
        assert!(!pool.buffer(1).is_pooled(), "the pool has 512 pages");
        drop(small);
        assert_eq!((pool.bytes_used(), pool.outstanding()), (0, 0));
        let large: Vec<Buffer> = (0..2).map(|_| pool.buffer(1 << 20)).collect();
        assert!(large.iter().all(Buffer::is_pooled));
    }

    #[test]
    fn buffers_longer_than_a_block_are_allocated() {
        let pool = Pool::new(8 << 20);
        let long = pool.buffer((1 << 20) + 1);
        assert!(!long.is_pooled());
        assert_eq!(long.len(), (1 << 20) + PAGE_BYTES);
        assert!(long.iter().all(|byte| *byte == 0));
        assert_eq!(Buffer::alone(0).len(), PAGE_BYTES);
    }

    #[test]
    fn a_buffer_outlives_its_pool_and_can_be_dropped_by_another_thread() {
        let pool = Pool::new(1);
        let mut buffer = pool.buffer(4096);
        drop(pool);
        buffer.fill(1);
        std::thread::spawn(move || assert_eq!(buffer[4095], 1)).join().expect("the thread ends");
    }
}
