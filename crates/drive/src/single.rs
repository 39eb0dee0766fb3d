//! A single drive, that is any drive but an array: the level at which an array sees its members.

use crate::cloud::Cloud;
use crate::command::{Command, Completion};
use crate::disk::Disk;
use crate::flash::{Flash, FlashCounters};
use crate::null::Null;
use crate::profile::SingleKind;

/// A disk, a flash drive, a cloud volume or a null device, dispatched statically.
#[derive(Debug, Clone)]
pub(crate) enum SingleDrive {
    /// A disk with an arm and a platter.
    Disk(Box<Disk>),
    /// A flash drive with a translation layer.
    Flash(Box<Flash>),
    /// A rented volume with limits on operations and bytes.
    Cloud(Box<Cloud>),
    /// A device of constant service time.
    Null(Null),
}

/// Calls the same method on the drive of every variant.
macro_rules! each {
    ($self:expr, $drive:ident => $call:expr) => {
        match $self {
            SingleDrive::Disk($drive) => $call,
            SingleDrive::Flash($drive) => $call,
            SingleDrive::Cloud($drive) => $call,
            SingleDrive::Null($drive) => $call,
        }
    };
}

impl SingleDrive {
    /// Builds the drive of a checked profile.
    pub(crate) fn new(profile: &SingleKind) -> SingleDrive {
        match profile {
            SingleKind::Disk(disk) => SingleDrive::Disk(Box::new(Disk::new(disk))),
            SingleKind::Flash(flash) => SingleDrive::Flash(Box::new(Flash::new(flash))),
            SingleKind::Cloud(cloud) => SingleDrive::Cloud(Box::new(Cloud::new(cloud))),
            SingleKind::Null(null) => SingleDrive::Null(Null::new(null)),
        }
    }

    /// Capacity in sectors of 512 bytes.
    pub(crate) fn capacity_sectors(&self) -> u64 {
        each!(self, drive => drive.capacity_sectors())
    }

    /// The largest number of commands in flight.
    pub(crate) fn depth(&self) -> u32 {
        each!(self, drive => drive.depth())
    }

    /// Accepts a command at `now_ns`; [`SingleDrive::poll`] returns its completion with the same
    /// `tag`.
    pub(crate) fn submit(&mut self, now_ns: u64, tag: u32, command: &Command) {
        each!(self, drive => drive.submit(now_ns, tag, command));
    }

    /// The time of the next event; `None` while no command is in flight.
    #[inline]
    pub(crate) fn next_event_ns(&self) -> Option<u64> {
        each!(self, drive => drive.next_event_ns())
    }

    /// Advances the drive to `now_ns` and returns the next command that has completed by then.
    #[inline]
    pub(crate) fn poll(&mut self, now_ns: u64) -> Option<Completion> {
        each!(self, drive => drive.poll(now_ns))
    }

    /// The counters of a flash drive; `None` for every other drive.
    pub(crate) fn flash_counters(&self) -> Option<FlashCounters> {
        match self {
            SingleDrive::Flash(flash) => Some(flash.counters()),
            SingleDrive::Disk(_) | SingleDrive::Cloud(_) | SingleDrive::Null(_) => None,
        }
    }
}
