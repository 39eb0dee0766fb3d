//! Buffers from which the kernel chooses when bytes arrive (a provided-buffer ring): a connection
//! that waits for bytes holds no buffer.

use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::Submitter;
use io_uring::types::BufRingEntry;

use crate::buffer::{Buffer, Pool};

/// The ID of the buffer group.
pub(super) const GROUP: u16 = 0;

/// Buffers to receive into.
#[derive(Debug)]
pub(super) struct ReceiveBuffers {
    /// The ring that the kernel reads: entries of 16 bytes, the tail in the reserved field of the
    /// first.
    ring: Buffer,
    /// The buffers that the kernel holds, by buffer ID.
    provided: Vec<Option<Buffer>>,
    /// Buffer IDs without a buffer.
    empty: Vec<u16>,
    tail: u16,
    buffer_bytes: usize,
}

impl ReceiveBuffers {
    /// Registers a ring of `buffers` buffers (a power of two) of `buffer_bytes` bytes each.
    ///
    /// # Errors
    /// The kernel is older than 5.19.
    pub fn register(submitter: &Submitter<'_>, buffers: u16, buffer_bytes: usize) -> std::io::Result<ReceiveBuffers> {
        let ring = Buffer::alone(usize::from(buffers) * size_of::<BufRingEntry>());
        // SAFETY: the ring is page-aligned and long enough, and the engine keeps it until its
        // io_uring instance is closed.
        unsafe { submitter.register_buf_ring_with_flags(ring.as_ptr() as u64, buffers, GROUP, 0) }?;
        let provided = (0..buffers).map(|_| None).collect();
        Ok(ReceiveBuffers { ring, provided, empty: (0..buffers).collect(), tail: 0, buffer_bytes })
    }

    /// Provides new buffers for those that the kernel has used.
    pub fn refill(&mut self, pool: &Pool) {
        if self.empty.is_empty() {
            return;
        }
        let mask = self.provided.len() as u16 - 1;
        let entries = self.ring.as_mut_ptr().cast::<BufRingEntry>();
        for number in self.empty.drain(..) {
            let mut buffer = pool.buffer(self.buffer_bytes);
            // SAFETY: the masked tail is less than the number of entries, and the kernel does not
            // read entries beyond the tail.
            let entry = unsafe { &mut *entries.add(usize::from(self.tail & mask)) };
            entry.set_addr(buffer.as_mut_ptr() as u64);
            entry.set_len(self.buffer_bytes as u32);
            entry.set_bid(number);
            self.provided[usize::from(number)] = Some(buffer);
            self.tail = self.tail.wrapping_add(1);
        }
        // SAFETY: the tail is within the ring and aligned to 2 bytes. The kernel reads it
        // concurrently, hence the atomic store.
        let tail = unsafe { AtomicU16::from_ptr(BufRingEntry::tail(entries).cast_mut()) };
        tail.store(self.tail, Ordering::Release);
    }

    /// Returns the buffer with an ID, which the kernel has used.
    pub fn take(&mut self, number: u16) -> Option<Buffer> {
        let buffer = self.provided.get_mut(usize::from(number))?.take()?;
        self.empty.push(number);
        Some(buffer)
    }

    /// Leaks the ring and its buffers: the kernel may still write to them.
    pub fn leak(&mut self) {
        std::mem::forget(std::mem::take(&mut self.provided));
        std::mem::forget(std::mem::replace(&mut self.ring, Buffer::alone(size_of::<BufRingEntry>())));
    }

    /// Returns the number of buffers.
    pub fn count(&self) -> usize {
        self.provided.len()
    }
}
