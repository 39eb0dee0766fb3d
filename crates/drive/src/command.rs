//! Commands to a drive, and its answers.

/// Bytes in a sector, the unit of every address in this crate.
pub const SECTOR_BYTES: u64 = 512;

/// Which way the data go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Op {
    /// From the drive to the host.
    Read,
    /// From the host to the drive.
    Write,
}

/// Data to be moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Access {
    /// Read or write.
    pub op: Op,
    /// The first sector, in units of 512 bytes from the beginning of the drive.
    pub sector: u64,
    /// How many sectors, at least 1.
    pub sectors: u32,
}

impl Access {
    /// The sector after the last.
    #[inline]
    pub fn end(&self) -> u64 {
        self.sector + u64::from(self.sectors)
    }

    /// Whether the two have a sector in common.
    #[inline]
    pub fn overlaps(&self, other: &Access) -> bool {
        self.sector < other.end() && other.sector < self.end()
    }
}

/// One command to a drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Command {
    /// Moves data. A write completes when the drive has the data, be they in its cache; with `fua` (force unit access) when they are on
    /// the media. Reads pay no heed to it.
    Transfer {
        /// What is moved.
        access: Access,
        /// To or from the media, past a write cache.
        fua: bool,
    },
    /// Completes when everything that was completed before is on the media.
    Flush,
    /// The sectors are needed no more: to a flash drive a favour, to a disk nothing.
    Discard {
        /// The first sector.
        sector: u64,
        /// How many, at least 1.
        sectors: u32,
    },
}

impl From<Access> for Command {
    fn from(access: Access) -> Command {
        Command::Transfer { access, fua: false }
    }
}

impl Command {
    /// The sectors that the command names: the first, and how many. A flush names none.
    pub fn span(&self) -> Option<(u64, u32)> {
        match *self {
            Command::Transfer { access, .. } => Some((access.sector, access.sectors)),
            Command::Discard { sector, sectors } => Some((sector, sectors)),
            Command::Flush => None,
        }
    }
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// It was done.
    Done,
    /// This sector could not be read or written, after all retries; those before it were.
    MediaError {
        /// The sector.
        sector: u64,
    },
}

/// A command that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// The number that the command was submitted with.
    pub tag: u32,
    /// When it ended and where the time went.
    pub service: Service,
    /// How it ended.
    pub status: Status,
}

/// Where the time of one command went, in nanoseconds. The sum is the time from submission to completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Phases {
    /// Waiting in the drive while it was at other commands.
    pub wait_ns: u64,
    /// Command processing, and what the interface took beyond the work of the media.
    pub overhead_ns: u64,
    /// Moving the arm, switching heads and settling, those on the way through the data included; and waiting for an arm
    /// that the drive had sent elsewhere for itself.
    pub seek_ns: u64,
    /// Waiting for sectors to come round, the rest of a skew after its head switch included.
    pub rotation_ns: u64,
    /// Sectors passing under the head.
    pub transfer_ns: u64,
}

impl Phases {
    /// From submission to completion: the sum of all.
    pub fn total_ns(&self) -> u64 {
        self.wait_ns + self.service_ns()
    }

    /// What the drive spent on the command: all but waiting.
    pub fn service_ns(&self) -> u64 {
        self.overhead_ns + self.seek_ns + self.rotation_ns + self.transfer_ns
    }
}

/// Where the data of a command came from, or went to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// The media alone.
    Media,
    /// The read-ahead buffer alone.
    Buffer,
    /// The first sectors from the buffer, the rest from the media.
    Both,
}

/// The answer to one command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Service {
    /// When the command completes, on the clock that was given to [`Drive::submit`].
    pub finish_ns: u64,
    /// Where the time went.
    pub phases: Phases,
    /// Where the data came from.
    pub source: Source,
    /// The cylinder of the command's first sector (0 for a drive without cylinders).
    pub cylinder: u32,
}

/// Why a drive refused a command, or never completes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// The command reaches beyond the last sector.
    #[error("sectors {sector} to {sector}+{sectors} reach beyond the end: the drive has sectors 0 to {}", capacity_sectors.saturating_sub(1))]
    BeyondEnd {
        /// First sector of the command.
        sector: u64,
        /// Length of the command in sectors.
        sectors: u32,
        /// Sectors that the drive has.
        capacity_sectors: u64,
    },
    /// The command names no sector.
    #[error("a command of 0 sectors at sector {sector}: at least 1 is needed")]
    ZeroLength {
        /// First sector of the command.
        sector: u64,
    },
    /// The drive has hung for ever with commands under way.
    #[error("the drive does not answer: at {since_ns} ns commands are under way, and it will never complete one")]
    NoAnswer {
        /// When it was last waited for, on the drive's clock.
        since_ns: u64,
    },
}

/// Refuses a command without sectors, and one that reaches beyond the last sector.
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
