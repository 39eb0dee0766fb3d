//! Buffers that the kernel chooses from when bytes come (a provided-buffer ring): a connection that
//! waits for bytes holds none.

use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::Submitter;
use io_uring::types::BufRingEntry;

use crate::buffer::{Buffer, Pool};

/// The number of the group.
pub(super) const GROUP: u16 = 0;

/// Buffers to receive into.
#[derive(Debug)]
pub(super) struct Receives {
    /// The ring that the kernel reads: entries of 16 bytes, the tail in the reserved field of the
    /// first.
    ring: Buffer,
    /// By number: the buffer that the kernel has.
    given: Vec<Option<Buffer>>,
    /// Numbers without a buffer.
    empty: Vec<u16>,
    tail: u16,
    buffer_bytes: usize,
}

impl Receives {
    /// A ring of this many buffers (a power of two) of this many bytes each.
    pub fn register(submitter: &Submitter<'_>, buffers: u16, buffer_bytes: usize) -> std::io::Result<Receives> {
        let ring = Buffer::alone(usize::from(buffers) * size_of::<BufRingEntry>());
        // SAFETY: the ring is aligned to a page, long enough, and lives as long as this, which the
        // engine keeps until its ring is gone.
        unsafe { submitter.register_buf_ring_with_flags(ring.as_ptr() as u64, buffers, GROUP, 0) }?;
        let given = (0..buffers).map(|_| None).collect();
        Ok(Receives { ring, given, empty: (0..buffers).collect(), tail: 0, buffer_bytes })
    }

    /// Gives the kernel buffers for those that it has used.
    pub fn refill(&mut self, pool: &Pool) {
        if self.empty.is_empty() {
            return;
        }
        let mask = self.given.len() as u16 - 1;
        let entries = self.ring.as_mut_ptr().cast::<BufRingEntry>();
        for number in self.empty.drain(..) {
            let mut buffer = pool.buffer(self.buffer_bytes);
            // SAFETY: the masked tail is less than the number of entries, and the kernel does not
            // read behind the tail.
            let entry = unsafe { &mut *entries.add(usize::from(self.tail & mask)) };
            entry.set_addr(buffer.as_mut_ptr() as u64);
            entry.set_len(self.buffer_bytes as u32);
            entry.set_bid(number);
            self.given[usize::from(number)] = Some(buffer);
            self.tail = self.tail.wrapping_add(1);
        }
        // SAFETY: the tail lies in the ring, aligned to 2 bytes; the kernel reads it while it is
        // written, hence the atomic.
        let tail = unsafe { AtomicU16::from_ptr(BufRingEntry::tail(entries).cast_mut()) };
        tail.store(self.tail, Ordering::Release);
    }

    /// Takes the buffer that the kernel has used.
    pub fn take(&mut self, number: u16) -> Option<Buffer> {
        let buffer = self.given.get_mut(usize::from(number))?.take()?;
        self.empty.push(number);
        Some(buffer)
    }

    /// Leaves the ring and the buffers in it to the kernel, which may write to them yet.
    pub fn leave(&mut self) {
        std::mem::forget(std::mem::take(&mut self.given));
        std::mem::forget(std::mem::replace(&mut self.ring, Buffer::alone(size_of::<BufRingEntry>())));
    }

    /// How many buffers there are.
    pub fn count(&self) -> usize {
        self.given.len()
    }
}
