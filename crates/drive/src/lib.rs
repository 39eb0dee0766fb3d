//! Models of disks (geometry, seek curve, rotation, zones, the segmented read-ahead buffer), of flash, of cloud volumes and of arrays.
//!
//! A [`Profile`] is read from TOML (or taken from the built-in ones), checked once, and made into a [`Drive`]. A drive is
//! told the time and given [`Command`]s; it says when something happens next ([`Drive::next_event_ns`]) and hands out what has
//! been completed by then and where the time went ([`Drive::poll`]). It reads no clock and draws no random numbers but from its own
//! seeded stream: the same calls give the same answers on every machine.
//!
//! The service time is that of Ruemmler & Wilkes, "An introduction to disk drive modeling" (IEEE Computer 27(3), 1994):
//! command overhead, seek or head switch, rotational delay to the first sector, transfer, and the skews crossed on the way.
//!
//! ```
//! use hoistway_drive::{Access, Drive, Op, Profile};
//! let profile = Profile::builtin("sata-7200-2006").expect("a built-in profile");
//! let mut drive = Drive::new(&profile);
//! let access = Access { op: Op::Read, sector: 123_456, sectors: 8 };
//! drive.submit(0, 7, &access.into()).expect("within the disk");
//! let finish_ns = drive.next_event_ns().expect("a command is under way");
//! let completion = drive.poll(finish_ns).expect("it is over");
//! assert_eq!((completion.tag, completion.service.phases.total_ns()), (7, finish_ns));
//! ```

#![forbid(unsafe_code)]

mod array;
mod buffer;
mod builtin;
mod closed_loop;
mod cloud;
mod describe;
mod describe_queue;
mod disk;
mod faults;
pub mod fit;
mod flash;
mod geometry;
mod null;
mod pending;
mod platter;
pub mod probe;
mod profile;
mod random;
pub mod recording;
mod seek;

pub use array::Array;
pub use closed_loop::closed_loop;
pub use cloud::Cloud;
pub use describe::{BufferDescription, Description, FlashDescription, ZoneDescription, describe};
pub use disk::Disk;
pub use faults::{Faults, FaultsError, Hang};
pub use flash::{Flash, FlashCounters, greedy_write_amplification};
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

/// A drive of any kind, dispatched statically.
#[derive(Debug, Clone)]
pub enum Drive {
    /// A disk with an arm and a platter.
    Disk(Box<Disk>),
    /// A flash drive.
    Flash(Box<Flash>),
    /// A rented volume with limits on operations and bytes.
    Cloud(Box<Cloud>),
    /// Drives behind a controller.
    Array(Box<Array>),
    /// A device that takes the same time for everything.
    Null(Null),
}

impl Drive {
    /// Builds a drive from a checked profile: its arm over cylinder 0, its buffer empty.
    pub fn new(profile: &Profile) -> Drive {
        match profile.kind() {
            profile::Kind::Disk(disk) => Drive::Disk(Box::new(Disk::new(disk))),
            profile::Kind::Flash(flash) => Drive::Flash(Box::new(Flash::new(flash))),
            profile::Kind::Cloud(cloud) => Drive::Cloud(Box::new(Cloud::new(cloud))),
            profile::Kind::Array(array) => Drive::Array(Box::new(Array::new(array))),
            profile::Kind::Null(null) => Drive::Null(Null::new(null)),
        }
    }

    /// How many sectors of 512 bytes the drive has.
    pub fn capacity_sectors(&self) -> u64 {
        match self {
            Drive::Disk(disk) => disk.capacity_sectors(),
            Drive::Flash(flash) => flash.capacity_sectors(),
            Drive::Cloud(cloud) => cloud.capacity_sectors(),
            Drive::Array(array) => array.capacity_sectors(),
            Drive::Null(null) => null.capacity_sectors(),
        }
    }

    /// How many commands the drive takes at once.
    pub fn depth(&self) -> u32 {
        match self {
            Drive::Disk(disk) => disk.depth(),
            Drive::Flash(flash) => flash.depth(),
            Drive::Cloud(cloud) => cloud.depth(),
            Drive::Array(array) => array.depth(),
            Drive::Null(null) => null.depth(),
        }
    }

    /// Gives the drive a command at `now_ns`, which never decreases and stays below 2^63. It comes out of [`Drive::poll`] under the number
    /// `tag`.
    ///
    /// Host and drive agree on the time: what was due before `now_ns` has been polled. At most [`Drive::depth`] commands may be under way.
    ///
    /// # Errors
    /// [`AccessError`] when the command is empty or reaches beyond the end; the drive's state is as before.
    pub fn submit(&mut self, now_ns: u64, tag: u32, command: &Command) -> Result<(), AccessError> {
        check(command, self.capacity_sectors())?;
        match self {
            Drive::Disk(disk) => disk.submit(now_ns, tag, command),
            Drive::Flash(flash) => flash.submit(now_ns, tag, command),
            Drive::Cloud(cloud) => cloud.submit(now_ns, tag, command),
            Drive::Array(array) => array.submit(now_ns, tag, command),
            Drive::Null(null) => null.submit(now_ns, tag, command),
        }
        Ok(())
    }

    /// When [`Drive::poll`] has to be called next, if no command comes before: a command may be over then, or the drive has
    /// something of its own to do. `None` while nothing is under way.
    #[inline]
    pub fn next_event_ns(&self) -> Option<u64> {
        match self {
            Drive::Disk(disk) => disk.next_event_ns(),
            Drive::Flash(flash) => flash.next_event_ns(),
            Drive::Cloud(cloud) => cloud.next_event_ns(),
            Drive::Array(array) => array.next_event_ns(),
            Drive::Null(null) => null.next_event_ns(),
        }
    }

    /// Lets the time pass up to `now_ns` and hands out a command that is over by then, in the order in which they end; `None`
    /// when there is no other.
    #[inline]
    pub fn poll(&mut self, now_ns: u64) -> Option<Completion> {
        match self {
            Drive::Disk(disk) => disk.poll(now_ns),
            Drive::Flash(flash) => flash.poll(now_ns),
            Drive::Cloud(cloud) => cloud.poll(now_ns),
            Drive::Array(array) => array.poll(now_ns),
            Drive::Null(null) => null.poll(now_ns),
        }
    }

    /// Units of flash programmed for one that the host wrote, since the drive was made; `None` for other drives than flash, and before
    /// anything was written.
    pub fn write_amplification(&self) -> Option<f64> {
        match self {
            Drive::Flash(flash) => flash.counters().write_amplification(),
            Drive::Disk(_) | Drive::Cloud(_) | Drive::Array(_) | Drive::Null(_) => None,
        }
    }

    /// Has one command done by a drive that has no other under way, and answers when it is over.
    ///
    /// # Errors
    /// Those of [`Drive::submit`], and [`AccessError::NoAnswer`] when the drive hangs for ever.
    pub fn serve(&mut self, now_ns: u64, command: impl Into<Command>) -> Result<Completion, AccessError> {
        self.submit(now_ns, 0, &command.into())?;
        let mut clock_ns = now_ns;
        loop {
            if let Some(completion) = self.poll(clock_ns) {
                return Ok(completion);
            }
            match self.next_event_ns() {
                Some(at_ns) => clock_ns = clock_ns.max(at_ns),
                None => return Err(AccessError::NoAnswer { since_ns: clock_ns }),
            }
        }
    }
}

fn check(command: &Command, capacity_sectors: u64) -> Result<(), AccessError> {
    let Some((sector, sectors)) = command.span() else { return Ok(()) };
    if sectors == 0 {
        return Err(AccessError::ZeroLength { sector });
    }
    match sector.checked_add(u64::from(sectors)) {
        Some(end) if end <= capacity_sectors => Ok(()),
        _ => Err(AccessError::BeyondEnd { sector, sectors, capacity_sectors }),
    }
}
