//! What a model of an array needs to know.

use super::single::SingleKind;

/// Sectors of a cache line, the allocation unit of the controller's cache: 4 KiB.
pub(crate) const CACHE_LINE_SECTORS: u64 = 8;

/// Drives behind a controller.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ArrayProfile {
    /// Commands that it takes at once.
    pub(crate) depth: u32,
    /// The controller's time for a command; it does one at a time.
    pub(crate) command_ns: u64,
    /// A sector's time on the way between host and controller.
    pub(crate) link_sector_ns: u32,
    /// On how many members every sector lies.
    pub(crate) copies: u32,
    /// Consecutive sectors on one member, before the next has its turn.
    pub(crate) chunk_sectors: u32,
    pub(crate) cache: Option<ArrayCacheProfile>,
    /// As many as a multiple of `copies`; members next to each other are copies.
    pub(crate) members: Vec<MemberProfile>,
}

/// One drive of an array.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MemberProfile {
    pub(crate) name: String,
    pub(crate) kind: SingleKind,
}

impl ArrayProfile {
    /// Groups of members with the same sectors.
    pub(crate) fn columns(&self) -> u32 {
        (self.members.len() as u32 / self.copies.max(1)).max(1)
    }

    /// Sectors of each member that have an address: whole chunks, so the last sectors may be unused.
    pub(crate) fn member_sectors(&self) -> u64 {
        let smallest = self.members.iter().map(|member| member.kind.capacity_sectors()).min().unwrap_or(0);
        smallest - smallest % u64::from(self.chunk_sectors.max(1))
    }

    /// Capacity in sectors of 512 bytes.
    pub(crate) fn capacity_sectors(&self) -> u64 {
        u64::from(self.columns()) * self.member_sectors()
    }
}

/// The memory in which a controller keeps what is to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ArrayCacheProfile {
    pub(crate) sectors: u64,
    /// Whether it outlives the power: then what is in it counts as written.
    pub(crate) battery: bool,
    /// Writing back begins above so many sectors and ends at so many.
    pub(crate) high_sectors: u64,
    pub(crate) low_sectors: u64,
    /// After so long without a command everything is written back.
    pub(crate) idle_ns: u64,
    pub(crate) order: DestageOrder,
}

/// Which sectors are written back first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum DestageOrder {
    /// Upwards over each member, then again from the bottom.
    Sweep,
    /// Those that have been waiting longest.
    Fifo,
}
