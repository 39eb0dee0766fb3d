//! What is asked of a disk: a bio.

use crate::context::ContextId;

/// What a bio or request does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Op {
    /// Reads sectors.
    #[default]
    Read = 0,
    /// Writes sectors.
    Write = 1,
    /// Makes the disk write its cache out; made by the queue itself around a barrier.
    Flush = 2,
    /// Tells the disk that sectors are not needed any more. It counts as a write.
    Discard = 3,
}

impl Op {
    /// 0 for reads, 1 for everything else: the index of the data direction.
    #[inline]
    pub const fn direction(self) -> usize {
        match self {
            Op::Read => 0,
            _ => 1,
        }
    }

    /// Whether somebody waits for what does this with these flags: for reads always, for the rest if it is marked so.
    #[inline]
    pub(crate) fn is_sync(self, flags: Flags) -> bool {
        self == Op::Read || flags.has(Flags::SYNC)
    }
}

/// Marks of a bio, which its request inherits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(u16);

impl Flags {
    /// None.
    pub const NONE: Flags = Flags(0);
    /// A write that somebody waits for. Reads count as sync without it.
    pub const SYNC: Flags = Flags(1);
    /// Metadata, or otherwise urgent (`REQ_META`, `REQ_PRIO`).
    pub const META: Flags = Flags(2);
    /// A sync write whose writer will write more (`REQ_IDLE`).
    pub const IDLE: Flags = Flags(4);
    /// The submitter is about to wait: unplug the queue (`BIO_RW_SYNC` of 2.6.18).
    pub const UNPLUG: Flags = Flags(8);
    /// To the medium, past the disk's write cache.
    pub const FUA: Flags = Flags(16);
    /// A hard barrier: everything before it is done before, everything after it after.
    pub const BARRIER: Flags = Flags(32);

    /// Both.
    #[inline]
    pub const fn and(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// Whether all of `other` is set.
    #[inline]
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
}

/// A piece of I/O as a process submits it: one extent of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bio {
    /// The submitter's own name for it; it comes back when it completes.
    pub token: u64,
    /// Who asks.
    pub context: ContextId,
    /// Read, write or discard.
    pub op: Op,
    /// The first sector, in units of 512 bytes.
    pub sector: u64,
    /// The length, in sectors of 512 bytes, at least 1 (a barrier may have 0: then it is a flush alone).
    pub sectors: u32,
    /// Marks.
    pub flags: Flags,
}

impl Bio {
    /// A plain bio without marks.
    pub const fn new(token: u64, context: ContextId, op: Op, sector: u64, sectors: u32) -> Bio {
        Bio { token, context, op, sector, sectors, flags: Flags::NONE }
    }

    /// The sector after its last.
    #[inline]
    pub const fn end(&self) -> u64 {
        self.sector.saturating_add(self.sectors as u64)
    }

    /// Whether somebody waits for it: a read, or a write that says so.
    #[inline]
    pub(crate) fn is_sync(&self) -> bool {
        self.op.is_sync(self.flags)
    }
}
