//! Aligned buffers for data between FUSE and the source.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::slice;

/// Alignment of buffers in bytes. `O_DIRECT` requires the logical block size, which is at most a
/// page on every drive.
pub const ALIGNMENT: usize = 4096;

/// A zero-initialised byte buffer of fixed size at an address suitable for `O_DIRECT`.
#[derive(Debug)]
pub struct Buffer {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: the buffer owns its memory, and bytes may be accessed from any thread.
unsafe impl Send for Buffer {}
// SAFETY: a shared reference gives read access only.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Allocates `length` zero bytes.
    ///
    /// # Panics
    /// If `length` is more than half of the address space.
    pub fn new(length: usize) -> Buffer {
        let layout = layout_of(length);
        // SAFETY: the layout's size is not zero.
        let start = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start) else { handle_alloc_error(layout) };
        Buffer { start, length }
    }
}

impl From<&[u8]> for Buffer {
    fn from(bytes: &[u8]) -> Buffer {
        let mut buffer = Buffer::new(bytes.len());
        buffer.copy_from_slice(bytes);
        buffer
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `length` bytes from `start` were allocated, are initialised, and live as long as
        // the buffer.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and the borrow of the buffer is unique.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: it was allocated with the same layout.
        unsafe { dealloc(self.start.as_ptr(), layout_of(self.length)) }
    }
}

fn layout_of(length: usize) -> Layout {
    Layout::from_size_align(length.max(1), ALIGNMENT).expect("a buffer fits into the address space")
}

thread_local! {
    static SPARE: Cell<Option<Buffer>> = const { Cell::new(None) };
}

/// Calls `work` with this thread's reusable buffer of at least `length` bytes. A nested call gets
/// a newly allocated buffer.
pub(crate) fn with_buffer<T>(length: usize, work: impl FnOnce(&mut Buffer) -> T) -> T {
    const USUAL: usize = 1 << 20;
    let mut buffer =
        SPARE.take().filter(|spare| spare.len() >= length).unwrap_or_else(|| Buffer::new(length.max(USUAL)));
    let result = work(&mut buffer);
    SPARE.set(Some(buffer));
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_buffer_is_aligned_for_direct_io() {
        for length in [0, 1, 4095, 4096, 1 << 20] {
            let buffer = Buffer::new(length);
            assert_eq!((buffer.as_ptr().addr() % ALIGNMENT, buffer.len()), (0, length));
            assert!(buffer.iter().all(|byte| *byte == 0));
        }
    }

    #[test]
    fn a_nested_call_gets_another_buffer() {
        with_buffer(10, |outer| {
            outer[0] = 1;
            with_buffer(10, |inner| assert_ne!(inner.as_ptr(), outer.as_ptr()));
            assert_eq!(outer[0], 1);
        });
    }
}
