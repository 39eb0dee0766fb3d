//! Buffer for incomplete input.

/// Collects bytes until a frame is complete.
#[derive(Debug, Default)]
pub(crate) struct FrameBuffer(Vec<u8>);

impl FrameBuffer {
    /// Moves bytes from the front of `rest` until the buffer has `bytes` bytes. Returns true if it
    /// is complete.
    pub fn collect(&mut self, rest: &mut &[u8], bytes: usize) -> bool {
        let (have, missing) = (self.0.len(), bytes.saturating_sub(self.0.len()).min(rest.len()));
        let (head, tail) = rest.split_at(missing);
        if self.0.capacity() < have + missing {
            // Growth by doubling, limited by the frame: memory follows the received bytes and never
            // exceeds the limit.
            let room = bytes.min((have * 2).max(have + missing));
            self.0.reserve_exact(room - have);
        }
        self.0.extend_from_slice(head);
        *rest = tail;
        self.0.len() >= bytes
    }

    /// Takes the collected bytes. Return the memory with [`FrameBuffer::reuse`].
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0)
    }

    /// Allocated memory in bytes.
    pub fn capacity(&self) -> usize {
        self.0.capacity()
    }

    /// Reuses the memory of a buffer, if it is small.
    pub fn reuse(&mut self, mut bytes: Vec<u8>) {
        if bytes.capacity() <= 4096 {
            bytes.clear();
            self.0 = bytes;
        }
    }
}
