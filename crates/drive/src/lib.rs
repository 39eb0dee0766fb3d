//! Models of disks (geometry, seek curve, rotation, zones, the segmented read-ahead buffer) and of flash.
//!
//! A [`Profile`] is read from TOML (or taken from the built-in ones), checked once, and made into a [`Drive`]. A drive is
//! told the time and given one [`Access`] after another; it answers when each finishes and where the time went. It reads
//! no clock, draws no random numbers and uses no floating point while it serves: the same calls give the same answers on
//! every machine.
//!
//! The service time is that of Ruemmler & Wilkes, "An introduction to disk drive modeling" (IEEE Computer 27(3), 1994):
//! command overhead, seek or head switch, rotational delay to the first sector, transfer, and the skews crossed on the way.
//!
//! ```
//! use hoistway_drive::{Access, Drive, Op, Profile};
//! let profile = Profile::builtin("sata-7200-2006").expect("a built-in profile");
//! let mut drive = Drive::new(&profile);
//! let service = drive.start(0, &Access { op: Op::Read, sector: 123_456, sectors: 8 }).expect("within the disk");
//! assert_eq!(service.finish_ns, service.phases.total_ns());
//! ```

#![forbid(unsafe_code)]

mod buffer;
mod builtin;
mod describe;
mod disk;
pub mod fit;
mod flash;
mod geometry;
mod null;
mod platter;
mod profile;
pub mod recording;
mod seek;

pub use describe::{BufferDescription, Description, ZoneDescription, describe};
pub use disk::Disk;
pub use flash::Flash;
pub use null::Null;
pub use profile::{Profile, ProfileError};

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

/// One command to a drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Access {
    /// Read or write.
    pub op: Op,
    /// The first sector, in units of 512 bytes from the beginning of the drive.
    pub sector: u64,
    /// How many sectors, at least 1.
    pub sectors: u32,
}

/// Where the time of one command went, in nanoseconds. The sum is the service time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Phases {
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
    /// The service time: the sum of the four.
    pub fn total_ns(&self) -> u64 {
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
    /// When the command completes, on the clock that was given to [`Drive::start`].
    pub finish_ns: u64,
    /// Where the time went.
    pub phases: Phases,
    /// Where the data came from.
    pub source: Source,
    /// The cylinder of the command's first sector (0 for a drive without cylinders).
    pub cylinder: u32,
}

/// Why a drive refused a command.
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
}

/// A drive of any kind, dispatched statically.
#[derive(Debug, Clone)]
pub enum Drive {
    /// A disk with an arm and a platter.
    Disk(Box<Disk>),
    /// A flash drive.
    Flash(Box<Flash>),
    /// A device that takes the same time for everything.
    Null(Null),
}

impl Drive {
    /// Builds a drive from a checked profile: its arm over cylinder 0, its buffer empty.
    pub fn new(profile: &Profile) -> Drive {
        match profile.kind() {
            profile::Kind::Disk(disk) => Drive::Disk(Box::new(Disk::new(disk))),
            profile::Kind::Flash(flash) => Drive::Flash(Box::new(Flash::new(flash))),
            profile::Kind::Null(null) => Drive::Null(Null::new(null)),
        }
    }

    /// How many sectors of 512 bytes the drive has.
    pub fn capacity_sectors(&self) -> u64 {
        match self {
            Drive::Disk(disk) => disk.capacity_sectors(),
            Drive::Flash(flash) => flash.capacity_sectors(),
            Drive::Null(null) => null.capacity_sectors(),
        }
    }

    /// How many commands the drive takes at once: 1 for a disk.
    pub fn depth(&self) -> u32 {
        match self {
            Drive::Disk(_) => 1,
            Drive::Flash(flash) => flash.depth(),
            Drive::Null(null) => null.depth(),
        }
    }

    /// Gives the drive a command at `now_ns`, which never decreases and stays below 2^63, and answers when it completes.
    ///
    /// At most [`Drive::depth`] commands may be under way. A disk that is given a command before the last one has
    /// finished begins it when that one has; its `phases` then count from there.
    ///
    /// # Errors
    /// [`AccessError`] when the command is empty or reaches beyond the end; the drive's state is as before.
    pub fn start(&mut self, now_ns: u64, access: &Access) -> Result<Service, AccessError> {
        check(access, self.capacity_sectors())?;
        Ok(match self {
            Drive::Disk(disk) => disk.start(now_ns, access),
            Drive::Flash(flash) => flash.start(now_ns, access),
            Drive::Null(null) => null.start(now_ns),
        })
    }
}

fn check(access: &Access, capacity_sectors: u64) -> Result<(), AccessError> {
    if access.sectors == 0 {
        return Err(AccessError::ZeroLength { sector: access.sector });
    }
    match access.sector.checked_add(u64::from(access.sectors)) {
        Some(end) if end <= capacity_sectors => Ok(()),
        _ => Err(AccessError::BeyondEnd { sector: access.sector, sectors: access.sectors, capacity_sectors }),
    }
}
