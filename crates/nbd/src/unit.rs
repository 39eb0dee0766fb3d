//! The part of a stream that is not whole yet.

/// Bytes that are collected until there are enough of them.
#[derive(Debug, Default)]
pub(crate) struct Unit(Vec<u8>);

impl Unit {
    /// Moves bytes from the front of `rest` until there are `bytes` here; tells whether there are.
    pub fn collect(&mut self, rest: &mut &[u8], bytes: usize) -> bool {
        let (have, missing) = (self.0.len(), bytes.saturating_sub(self.0.len()).min(rest.len()));
        let (head, tail) = rest.split_at(missing);
        if self.0.capacity() < have + missing {
            // Growth by doubling, but not beyond what the unit takes: memory follows what came, and never passes the limit.
            let room = bytes.min((have * 2).max(have + missing));
            self.0.reserve_exact(room - have);
        }
        self.0.extend_from_slice(head);
        *rest = tail;
        self.0.len() >= bytes
    }

    /// What was collected; it begins anew. Give it back with [`Unit::reuse`].
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0)
    }

    /// Bytes of memory that it holds.
    pub fn capacity(&self) -> usize {
        self.0.capacity()
    }

    /// Takes memory back, if it is little.
    pub fn reuse(&mut self, mut bytes: Vec<u8>) {
        if bytes.capacity() <= 4096 {
            bytes.clear();
            self.0 = bytes;
        }
    }
}
