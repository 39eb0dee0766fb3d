//! Memory that is mapped once and read by many: what a device in memory lies in, and zeroes.

use std::io;
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// The most zeroes that [`Shared::zeroes`] gives at once, in bytes.
pub const ZEROES_BYTES: usize = 32 << 20;

/// Memory that a backend shares with a message on its way out, so that it is copied once only, into
/// the socket. A write to the same range meanwhile may be seen, wholly or in part, as the protocol
/// allows of requests that overlap.
#[derive(Clone, Debug)]
pub struct Shared {
    start: *const u8,
    len: usize,
    /// What keeps the memory mapped.
    _region: Arc<Region>,
}

// SAFETY: the memory is only read through it, by copies that do not care what is written meanwhile,
// and it stays mapped.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

/// A mapping.
#[derive(Debug)]
pub struct Region {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: it is an address and a length; whoever reads or writes there answers for it.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Shared {
    /// Zeroes, at most 32 MiB of them: fewer than asked for if more are asked for. They cost no
    /// memory.
    pub fn zeroes(len: usize) -> Shared {
        static ZEROES: OnceLock<Arc<Region>> = OnceLock::new();
        let region = ZEROES.get_or_init(|| match Region::map(ZEROES_BYTES, ProtFlags::READ) {
            Ok(region) => Arc::new(region),
            Err(_) => std::alloc::handle_alloc_error(std::alloc::Layout::new::<[u8; ZEROES_BYTES]>()),
        });
        let len = len.min(region.len);
        Shared { start: region.start.as_ptr(), len, _region: region.clone() }
    }

    /// Where it begins.
    pub fn as_ptr(&self) -> *const u8 {
        self.start
    }

    /// Its length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Copies it, as much as there is room for; says how many bytes.
    pub fn copy_to(&self, to: &mut [u8]) -> usize {
        let len = self.len.min(to.len());
        // SAFETY: both are mapped for `len` bytes; nobody else has the destination, so they do not
        // overlap.
        unsafe { std::ptr::copy_nonoverlapping(self.start, to.as_mut_ptr(), len) };
        len
    }
}

impl Region {
    /// Maps memory of zeroes, which is taken from the system when it is written to.
    ///
    /// # Errors
    /// When the address space, or a limit of the process, has no room for it.
    pub fn map(len: usize, protection: ProtFlags) -> io::Result<Region> {
        // SAFETY: a new mapping, at no address that is in use.
        let start = unsafe {
            mmap_anonymous(std::ptr::null_mut(), len.max(1), protection, MapFlags::PRIVATE | MapFlags::NORESERVE)
        }?;
        let start = NonNull::new(start.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Region { start, len })
    }

    /// Where it begins.
    pub fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Its length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Shares a part of it; none that is not in it.
    pub fn share(self: &Arc<Region>, offset: usize, len: usize) -> Option<Shared> {
        let end = offset.checked_add(len)?;
        // SAFETY: the end is checked to lie in the region.
        (end <= self.len).then(|| Shared { start: unsafe { self.start().add(offset) }, len, _region: self.clone() })
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and nobody shares it any more.
        if let Err(error) = unsafe { munmap(self.start.as_ptr().cast(), self.len.max(1)) } {
            tracing::error!(%error, len = self.len, "memory could not be unmapped");
        }
    }
}
