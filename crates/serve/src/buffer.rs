//! Memory for what is read and written: page-aligned, pooled, and known to the kernel where the engine has registered it.

use std::ops::{Deref, DerefMut};

/// A piece of page-aligned memory, which returns to its pool when it is dropped.
#[derive(Debug)]
pub struct Buffer {
    bytes: Vec<u8>,
}

impl Buffer {
    /// Memory of its own, not from a pool.
    pub fn alone(len: usize) -> Buffer {
        Buffer { bytes: vec![0; len] }
    }
}

impl Deref for Buffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}
