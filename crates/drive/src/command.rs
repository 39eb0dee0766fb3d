//! Commands to a drive, and their completions.

/// Bytes of a sector. Every address in this crate counts sectors of this size.
pub const SECTOR_BYTES: u64 = 512;

/// The direction of a data transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Op {
    /// From the drive to the host.
    Read,
    /// From the host to the drive.
    Write,
}

/// A transfer of consecutive sectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Access {
    /// The direction of the transfer.
    pub op: Op,
    /// The first sector, counted from the beginning of the drive.
    pub sector: u64,
    /// Number of sectors, at least 1.
    pub sectors: u32,
}

impl Access {
    /// The sector after the last one.
    #[inline]
    pub fn end(&self) -> u64 {
        self.sector + u64::from(self.sectors)
    }

    /// Returns true if the two ranges have a sector in common.
    #[inline]
    pub fn overlaps(&self, other: &Access) -> bool {
        self.sector < other.end() && other.sector < self.end()
    }
}

/// A command to a drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Command {
    /// Reads or writes sectors.
    ///
    /// A write completes when its data are in the drive, which may be the write cache. With `fua`
    /// (force unit access) it completes when they are on the media. Reads ignore `fua`.
    Transfer {
        /// The sectors and the direction.
        access: Access,
        /// Bypasses the write cache.
        fua: bool,
    },
    /// Completes when the data of all completed writes are on the media.
    Flush,
    /// Declares the content of sectors unused. It frees space on a flash drive and has no effect on
    /// a disk.
    Discard {
        /// The first sector.
        sector: u64,
        /// Number of sectors, at least 1.
        sectors: u32,
    },
}

impl From<Access> for Command {
    fn from(access: Access) -> Command {
        Command::Transfer { access, fua: false }
    }
}

impl Command {
    /// The first sector and the number of sectors of the command; `None` for a flush.
    pub fn span(&self) -> Option<(u64, u32)> {
        match *self {
            Command::Transfer { access, .. } => Some((access.sector, access.sectors)),
            Command::Discard { sector, sectors } => Some((sector, sectors)),
            Command::Flush => None,
        }
    }
}

/// The outcome of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// The command succeeded.
    Done,
    /// A sector cannot be read or written after all retries. The sectors before it were
    /// transferred.
    MediaError {
        /// The first sector that failed.
        sector: u64,
    },
}

/// A completed command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// The number with which the command was submitted.
    pub tag: u32,
    /// The time of completion and its parts.
    pub service: Service,
    /// The outcome.
    pub status: Status,
}

/// The parts of the time from submission to completion of a command, in ns.
///
/// A command may wait for work of the drive's own: for space in the write cache, or for an arm that
/// writes back, reads ahead or verifies. The wait counts as what the arm does in it: seek, rotation
/// or transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Phases {
    /// Waiting in the drive while other commands were in service.
    pub wait_ns: u64,
    /// Command processing, and the transfer time on the interface beyond the media transfer.
    pub overhead_ns: u64,
    /// Seeks, head switches and settling, including those within the transfer.
    pub seek_ns: u64,
    /// Rotational latency, including the part of a skew that remains after its head switch.
    pub rotation_ns: u64,
    /// Media transfer: sectors that pass under the head.
    pub transfer_ns: u64,
}

impl Phases {
    /// The time from submission to completion in ns: the sum of all parts.
    pub fn total_ns(&self) -> u64 {
        self.wait_ns + self.service_ns()
    }

    /// The service time in ns: all parts but the wait.
    pub fn service_ns(&self) -> u64 {
        self.overhead_ns + self.seek_ns + self.rotation_ns + self.transfer_ns
    }
}

/// The origin or the destination of the data of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// Only the media.
    Media,
    /// Only the buffer.
    Buffer,
    /// The buffer for the first sectors, and the media for the rest.
    Both,
}

/// Timing of a completed command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Service {
    /// The time of completion, on the clock of [`Drive::submit`](crate::Drive::submit).
    pub finish_ns: u64,
    /// The parts of the time since submission.
    pub phases: Phases,
    /// The origin or the destination of the data.
    pub source: Source,
    /// The cylinder of the first sector of the command; 0 for a drive without cylinders.
    pub cylinder: u32,
}

/// Reasons for which a drive refuses a command or never completes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// The command reaches beyond the last sector.
    #[error("sectors {sector} to {sector}+{sectors} reach beyond the end: the drive has sectors 0 to {}", capacity_sectors.saturating_sub(1))]
    BeyondEnd {
        /// First sector of the command.
        sector: u64,
        /// Length of the command in sectors.
        sectors: u32,
        /// Capacity of the drive in sectors.
        capacity_sectors: u64,
    },
    /// The command has no sectors.
    #[error("a command of 0 sectors at sector {sector}: at least 1 is needed")]
    ZeroLength {
        /// First sector of the command.
        sector: u64,
    },
    /// The drive hangs for ever with commands in flight.
    #[error("the drive does not respond: at {since_ns} ns commands are in flight that it will never complete")]
    NoAnswer {
        /// The time of the last wait, on the clock of the drive.
        since_ns: u64,
    },
}

/// Returns an error if the command has no sectors or reaches beyond the last sector.
pub(crate) fn check_range(command: &Command, capacity_sectors: u64) -> Result<(), AccessError> {
    let Some((sector, sectors)) = command.span() else { return Ok(()) };
    if sectors == 0 {
        return Err(AccessError::ZeroLength { sector });
    }
    match sector.checked_add(u64::from(sectors)) {
        Some(end) if end <= capacity_sectors => Ok(()),
        _ => Err(AccessError::BeyondEnd { sector, sectors, capacity_sectors }),
    }
}
