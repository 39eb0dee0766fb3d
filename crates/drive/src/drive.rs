//! The drive as a host sees it.

use crate::array::Array;
use crate::command::{AccessError, Command, Completion, check_range};
use crate::flash::FlashCounters;
use crate::profile::{Kind, Profile};
use crate::single::SingleDrive;

/// A simulated drive: a disk, a flash drive, a cloud volume, a null device or an array of them.
#[derive(Debug, Clone)]
pub struct Drive {
    model: Model,
}

#[derive(Debug, Clone)]
enum Model {
    Single(SingleDrive),
    Array(Box<Array>),
}

impl Drive {
    /// Builds the drive of a checked profile, with the arm over cylinder 0 and an empty buffer.
    pub fn new(profile: &Profile) -> Drive {
        let model = match profile.kind() {
            Kind::Single(single) => Model::Single(SingleDrive::new(single)),
            Kind::Array(array) => Model::Array(Box::new(Array::new(array))),
        };
        Drive { model }
    }

    /// Capacity in sectors of 512 bytes.
    pub fn capacity_sectors(&self) -> u64 {
        match &self.model {
            Model::Single(drive) => drive.capacity_sectors(),
            Model::Array(array) => array.capacity_sectors(),
        }
    }

    /// The largest number of commands in flight.
    pub fn depth(&self) -> u32 {
        match &self.model {
            Model::Single(drive) => drive.depth(),
            Model::Array(array) => array.depth(),
        }
    }

    /// Accepts a command at `now_ns`; [`Drive::poll`] returns its completion with the same `tag`.
    ///
    /// `now_ns` never decreases and stays below 2^63. The host polls everything that is due before
    /// `now_ns` first, and keeps at most [`Drive::depth`] commands in flight.
    ///
    /// # Errors
    /// [`AccessError`] if the command has no sectors or reaches beyond the end. The state of the
    /// drive does not change then.
    pub fn submit(&mut self, now_ns: u64, tag: u32, command: &Command) -> Result<(), AccessError> {
        check_range(command, self.capacity_sectors())?;
        match &mut self.model {
            Model::Single(drive) => drive.submit(now_ns, tag, command),
            Model::Array(array) => array.submit(now_ns, tag, command),
        }
        Ok(())
    }

    /// The time at which the host has to call [`Drive::poll`] unless it submits a command earlier.
    ///
    /// A command may complete at that time, or the drive has internal work to do. `None` while no
    /// command is in flight.
    #[inline]
    pub fn next_event_ns(&self) -> Option<u64> {
        match &self.model {
            Model::Single(drive) => drive.next_event_ns(),
            Model::Array(array) => array.next_event_ns(),
        }
    }

    /// Advances the drive to `now_ns` and returns the next command that has completed by then.
    ///
    /// Commands are returned in the order of their completion; `None` when no other has completed.
    #[inline]
    pub fn poll(&mut self, now_ns: u64) -> Option<Completion> {
        match &mut self.model {
            Model::Single(drive) => drive.poll(now_ns),
            Model::Array(array) => array.poll(now_ns),
        }
    }

    /// The counters of a flash drive; `None` for every other drive.
    pub fn flash_counters(&self) -> Option<FlashCounters> {
        match &self.model {
            Model::Single(drive) => drive.flash_counters(),
            Model::Array(_) => None,
        }
    }

    /// Write amplification of a flash drive since its creation: units programmed for each unit that
    /// the host wrote.
    ///
    /// `None` for other drives than flash, and before the first write.
    pub fn write_amplification(&self) -> Option<f64> {
        self.flash_counters()?.write_amplification()
    }

    /// Submits one command to an idle drive and returns its completion.
    ///
    /// # Errors
    /// The errors of [`Drive::submit`], and [`AccessError::NoAnswer`] if the drive hangs for ever.
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
