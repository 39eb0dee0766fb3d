//! Bios: the I/O operations that processes submit.

use crate::context::ContextId;

/// The operation of a bio or request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Op {
    /// Reads sectors.
    #[default]
    Read = 0,
    /// Writes sectors.
    Write = 1,
    /// Writes the disk's volatile cache to the medium. Only the queue issues flushes, around a
    /// barrier.
    Flush = 2,
    /// Marks sectors as unused on the disk. Discards count as writes.
    Discard = 3,
}

impl Op {
    /// Returns the index of the data direction: 0 for reads, 1 for all other operations.
    #[inline]
    pub const fn direction(self) -> usize {
        match self {
            Op::Read => 0,
            _ => 1,
        }
    }

    /// Returns true if a process waits for the operation: always for reads, otherwise if `SYNC` is
    /// set.
    #[inline]
    pub(crate) fn is_sync(self, flags: Flags) -> bool {
        self == Op::Read || flags.has(Flags::SYNC)
    }
}

/// Flags of a bio, inherited by its request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(u16);

impl Flags {
    /// No flag.
    pub const NONE: Flags = Flags(0);
    /// A process waits for this write. Reads count as sync without the flag.
    pub const SYNC: Flags = Flags(1);
    /// Metadata or otherwise urgent I/O (`REQ_META`, `REQ_PRIO`).
    pub const META: Flags = Flags(2);
    /// A sync write that its process will follow with more writes (`REQ_IDLE`).
    pub const IDLE: Flags = Flags(4);
    /// The process will wait for the bio: unplug the queue (`BIO_RW_SYNC` of 2.6.18).
    pub const UNPLUG: Flags = Flags(8);
    /// Forced unit access: write to the medium, bypassing the disk's volatile cache.
    pub const FUA: Flags = Flags(16);
    /// A hard barrier: completes after all earlier requests and before all later ones.
    pub const BARRIER: Flags = Flags(32);

    /// Returns the union of two sets of flags.
    #[inline]
    pub const fn and(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// Returns true if all flags of `other` are set.
    #[inline]
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
}

/// An I/O operation on one extent of the disk, as a process submits it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bio {
    /// An identifier chosen by the host. The completion returns it.
    pub token: u64,
    /// The I/O context of the submitting process.
    pub context: ContextId,
    /// The operation: read, write or discard.
    pub op: Op,
    /// The first sector, in units of 512 bytes.
    pub sector: u64,
    /// The length in sectors of 512 bytes, at least 1. A barrier may have 0 and is then only a
    /// flush.
    pub sectors: u32,
    /// Flags such as [`Flags::SYNC`].
    pub flags: Flags,
}

impl Bio {
    /// Creates a bio without flags.
    pub const fn new(token: u64, context: ContextId, op: Op, sector: u64, sectors: u32) -> Bio {
        Bio { token, context, op, sector, sectors, flags: Flags::NONE }
    }

    /// Returns the sector after the last one.
    #[inline]
    pub const fn end(&self) -> u64 {
        self.sector.saturating_add(self.sectors as u64)
    }

    /// Returns true if a process waits for the bio: a read, or a write with the flag `SYNC`.
    #[inline]
    pub(crate) fn is_sync(&self) -> bool {
        self.op.is_sync(self.flags)
    }
}
