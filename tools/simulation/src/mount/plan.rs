//! Worlds and deliberate faults.

use hoistway_config::mount::{MountTerms, WriteBackChoice};
use hoistway_core::Kind;
use hoistway_mount::scheduled::Fault;
use hoistway_reactor::simulated::Prng;

/// A deliberate fault of the simulated file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultBelow {
    /// A sync does nothing.
    SyncDoesNothing,
    /// A rename over a file is committed before the data of the new file are on the disk.
    RenameBeforeData,
    /// A sync of a directory commits nothing.
    DirectorySyncDoesNothing,
    /// A transaction commits the names in another order.
    NamesOutOfOrder,
}

/// A deliberate fault of the gate or of the simulated file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sabotage {
    /// A fault of the gate.
    Gate(Fault),
    /// A fault of the file system below.
    Below(FaultBelow),
}

impl Sabotage {
    /// All faults.
    pub const ALL: [Sabotage; 14] = [
        Sabotage::Below(FaultBelow::SyncDoesNothing),
        Sabotage::Below(FaultBelow::RenameBeforeData),
        Sabotage::Below(FaultBelow::DirectorySyncDoesNothing),
        Sabotage::Below(FaultBelow::NamesOutOfOrder),
        Sabotage::Gate(Fault::ErrorNotRecorded),
        Sabotage::Gate(Fault::ErrorOfOtherFile),
        Sabotage::Gate(Fault::SpaceErrorNotRecorded),
        Sabotage::Gate(Fault::ThrottledWriteDropped),
        Sabotage::Gate(Fault::ChunkRangeWrong),
        Sabotage::Gate(Fault::ChunkStaysDirty),
        Sabotage::Gate(Fault::SyncIgnoresDispatchedChunks),
        Sabotage::Gate(Fault::FailedSyncDropsRanges),
        Sabotage::Gate(Fault::CancelledSyncDropsRanges),
        Sabotage::Gate(Fault::UnlinkKeepsDirtyBytes),
    ];
}

impl std::fmt::Display for Sabotage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Sabotage::Gate(fault) => write!(f, "{fault:?}"),
            Sabotage::Below(fault) => write!(f, "{fault:?}"),
        }
    }
}

/// A world, derived from a seed.
#[derive(Clone, Debug)]
pub struct MountPlan {
    /// The seed.
    pub seed: u64,
    /// The deliberate fault, if any.
    pub sabotage: Option<Sabotage>,
    /// Disks, and names on each.
    pub(super) disks: u64,
    pub(super) names: u64,
    pub(super) processes: u64,
    /// Operations of a process before the next power failure or death of the mount.
    pub(super) operations: u64,
    /// Of a thousand writes of pages, those that fail.
    pub(super) fails_permille: u64,
    pub(super) kills_permille: u64,
    /// The shortest and the longest time of a write that does not hang.
    pub(super) write_ns: (u64, u64),
    /// Pages that a disk has room for, and those of the pool that it allocates them from.
    pub(super) capacity: u64,
    pub(super) pool: u64,
    /// The file system below opens no second description.
    pub(super) reopens: bool,
    /// Power failures and deaths of the mount, after each of which a new mount starts.
    pub(super) power_failures: u64,
    pub(super) deaths: u64,
    pub(super) terms: MountTerms,
}

impl MountPlan {
    /// Derives the world of a seed.
    pub fn new(seed: u64) -> MountPlan {
        let mut prng = Prng::new(seed);
        let limit = if prng.permille(500) { prng.magnitude(16 << 20) } else { 16 << 20 };
        let by_kernel = prng.permille(100);
        let terms = MountTerms {
            elevator: Some(prng.pick(Kind::ALL)),
            depth: Some(prng.magnitude(32) as u32),
            write_back: if by_kernel { WriteBackChoice::Kernel } else { WriteBackChoice::Ours },
            dirty_limit: Some(limit),
            dirty_background: Some(if prng.permille(500) { prng.magnitude(limit) } else { limit }),
            dirty_age_ns: Some(if prng.permille(500) { prng.magnitude(3_000_000_000) } else { 3_000_000_000 }),
            ..MountTerms::default()
        };
        let capacity = prng.pick(&[u64::MAX, u64::MAX, 300, 1000]);
        MountPlan {
            seed,
            sabotage: None,
            disks: prng.between(1, 3),
            names: prng.between(1, 4),
            processes: prng.between(1, 6),
            operations: prng.between(5, 30),
            fails_permille: prng.pick(&[0, 0, 30, 200]),
            kills_permille: prng.pick(&[0, 0, 50]),
            write_ns: prng.pick(&[(10_000, 8_000_000), (20_000_000, 200_000_000)]),
            capacity,
            pool: prng.pick(&[u64::MAX, u64::MAX, capacity, 200, 600]),
            reopens: !prng.permille(50),
            power_failures: prng.pick(&[0, 1, 1, 2]),
            deaths: prng.pick(&[0, 0, 1]),
            terms,
        }
    }

    /// Returns true if the mount writes back.
    pub(super) fn writes_back(&self) -> bool {
        self.terms.write_back == WriteBackChoice::Ours
    }
}

impl std::fmt::Display for MountPlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{self:#?}")
    }
}
