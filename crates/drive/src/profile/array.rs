//! What a model of an array needs to know.

use super::Profile;

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
    pub(crate) members: Vec<Profile>,
}

impl ArrayProfile {
    /// Groups of members with the same sectors.
    pub(crate) fn columns(&self) -> u32 {
        (self.members.len() as u32 / self.copies.max(1)).max(1)
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
