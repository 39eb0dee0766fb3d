//! Aligned buffers for data between FUSE and the source.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Alignment of buffers in bytes. `O_DIRECT` requires the logical block size, which is at most a
/// page on every drive.
pub const ALIGNMENT: usize = 4096;

/// A zero-initialised byte buffer of fixed size at an address suitable for `O_DIRECT`. A large one
/// is mapped, so that its memory returns to the system.
#[derive(Debug)]
pub struct Buffer {
    memory: hoistway_reactor::Buffer,
    length: usize,
}

impl Buffer {
    /// Allocates `length` zero bytes.
    ///
    /// # Panics
    /// If `length` is more than half of the address space.
    pub fn new(length: usize) -> Buffer {
        Buffer { memory: hoistway_reactor::Buffer::alone(length), length }
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
        &self.memory[..self.length]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[..self.length]
    }
}

/// Buffers of requests that were answered, for the next ones: at most one for each session thread.
static SPARE: Mutex<Vec<Buffer>> = Mutex::new(Vec::new());

fn spare() -> MutexGuard<'static, Vec<Buffer>> {
    SPARE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls `work` with a reused buffer of at least `length` bytes. A nested call gets another one.
pub(crate) fn with_buffer<T>(length: usize, work: impl FnOnce(&mut Buffer) -> T) -> T {
    const USUAL: usize = 1 << 20;
    let found = spare().pop().filter(|buffer| buffer.len() >= length);
    let mut buffer = found.unwrap_or_else(|| Buffer::new(length.max(USUAL)));
    let result = work(&mut buffer);
    spare().push(buffer);
    result
}

/// Frees the buffers that no request uses.
pub(crate) fn free_spare_buffers() {
    // The memory is freed without the lock.
    let freed = std::mem::take(&mut *spare());
    drop(freed);
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
