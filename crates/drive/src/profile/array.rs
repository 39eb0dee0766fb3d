//! The parameters of an array model.

use super::single::SingleKind;

/// Sectors of a cache line, the allocation unit of the controller's cache: 4 KiB.
pub(crate) const CACHE_LINE_SECTORS: u64 = 8;

/// The parameters of an array of drives behind a controller.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ArrayProfile {
    /// The largest number of commands in flight.
    pub(crate) depth: u32,
    /// Processing time of the controller for a command. It processes one command at a time.
    pub(crate) command_ns: u64,
    /// Transfer time of a sector between host and controller.
    pub(crate) link_sector_ns: u32,
    /// The number of members that hold a copy of every sector.
    pub(crate) copies: u32,
    /// Consecutive sectors on one member before the next column begins.
    pub(crate) chunk_sectors: u32,
    pub(crate) cache: Option<ArrayCacheProfile>,
    /// The drives: a multiple of `copies`. The copies of a column are adjacent.
    pub(crate) members: Vec<MemberProfile>,
}

/// One drive of an array.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MemberProfile {
    pub(crate) name: String,
    pub(crate) kind: SingleKind,
}

impl ArrayProfile {
    /// The number of columns, that is groups of members with the same sectors.
    pub(crate) fn columns(&self) -> u32 {
        (self.members.len() as u32 / self.copies.max(1)).max(1)
    }

    /// Sectors of each member that have an address: whole chunks, so the last sectors may be
    /// unused.
    pub(crate) fn member_sectors(&self) -> u64 {
        let smallest = self.members.iter().map(|member| member.kind.capacity_sectors()).min().unwrap_or(0);
        smallest - smallest % u64::from(self.chunk_sectors.max(1))
    }

    /// Capacity in sectors of 512 bytes.
    pub(crate) fn capacity_sectors(&self) -> u64 {
        u64::from(self.columns()) * self.member_sectors()
    }
}

/// The parameters of the controller's write cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ArrayCacheProfile {
    pub(crate) sectors: u64,
    /// True if the content survives a power loss. A write in the cache then counts as written.
    pub(crate) battery: bool,
    /// Write-back starts above `high_sectors` dirty sectors and ends at `low_sectors`.
    pub(crate) high_sectors: u64,
    pub(crate) low_sectors: u64,
    /// Idle time of the host after which all dirty sectors are written back.
    pub(crate) idle_ns: u64,
    pub(crate) order: DestageOrder,
}

/// The order in which dirty sectors are written back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum DestageOrder {
    /// By rising sector of each member, then again from the lowest.
    Sweep,
    /// By age, oldest first.
    Fifo,
}
