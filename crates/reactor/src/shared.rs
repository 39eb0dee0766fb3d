//! Memory that is mapped once and shared: the contents of a memory backend, and zeroes.

use std::io;
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// Maximum length in bytes of [`Shared::zeroes`]: 32 MiB.
pub const ZEROES_BYTES: usize = 32 << 20;

/// Memory that a backend shares with an outgoing message, so that it is copied only once, into the
/// socket. A concurrent write to the same range may be visible in whole or in part, as the protocol
/// permits for overlapping requests.
#[derive(Clone, Debug)]
pub struct Shared {
    start: *const u8,
    len: usize,
    /// Keeps the memory mapped.
    _region: Arc<Region>,
}

// SAFETY: the memory stays mapped and is only read, by copies that tolerate concurrent writes.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

/// A mapping.
#[derive(Debug)]
pub struct Region {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the region is an address and a length; accesses through them are unsafe themselves.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Shared {
    /// Returns `len` zeroes, at most [`ZEROES_BYTES`]. They take no memory.
    pub fn zeroes(len: usize) -> Shared {
        static ZEROES: OnceLock<Arc<Region>> = OnceLock::new();
        let region = ZEROES.get_or_init(|| match Region::map(ZEROES_BYTES, ProtFlags::READ) {
            Ok(region) => Arc::new(region),
            Err(_) => std::alloc::handle_alloc_error(std::alloc::Layout::new::<[u8; ZEROES_BYTES]>()),
        });
        let len = len.min(region.len);
        Shared { start: region.start.as_ptr(), len, _region: region.clone() }
    }

    /// Returns the start of the memory.
    pub fn as_ptr(&self) -> *const u8 {
        self.start
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if the length is 0.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Copies as many bytes as fit. Returns their number.
    pub fn copy_to(&self, to: &mut [u8]) -> usize {
        let len = self.len.min(to.len());
        // SAFETY: both are mapped for `len` bytes, and the exclusive destination does not overlap.
        unsafe { std::ptr::copy_nonoverlapping(self.start, to.as_mut_ptr(), len) };
        len
    }
}

impl Region {
    /// Maps zeroed memory, which is allocated at the first write.
    ///
    /// # Errors
    /// The address space or a limit of the process has no room.
    pub fn map(len: usize, protection: ProtFlags) -> io::Result<Region> {
        // SAFETY: the kernel chooses an unused address for the mapping.
        let start = unsafe {
            mmap_anonymous(std::ptr::null_mut(), len.max(1), protection, MapFlags::PRIVATE | MapFlags::NORESERVE)
        }?;
        let start = NonNull::new(start.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Region { start, len })
    }

    /// Returns the start of the memory.
    pub fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if the length is 0.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns a part of the region, or `None` if the part extends beyond it.
    pub fn share(self: &Arc<Region>, offset: usize, len: usize) -> Option<Shared> {
        let end = offset.checked_add(len)?;
        // SAFETY: the end was checked to be within the region.
        (end <= self.len).then(|| Shared { start: unsafe { self.start().add(offset) }, len, _region: self.clone() })
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the mapping has this length, and no part of it is shared any more.
        if let Err(error) = unsafe { munmap(self.start.as_ptr().cast(), self.len.max(1)) } {
            tracing::error!(%error, len = self.len, "memory cannot be unmapped");
        }
    }
}
