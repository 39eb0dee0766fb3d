//! The drives of the host.

use std::ops::{Index, IndexMut};

use hoistway_core::{GroupId, Priority};

use super::device::Device;
use super::task::SubmitterId;
use crate::error::{Defect, SimError};
use crate::record::Observer;

/// A drive, by its place among those of the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DriveId(u32);

/// The drive with the file system and the journal. Hosts with several drives use the others for
/// direct I/O only.
pub(super) const MAIN: DriveId = DriveId(0);

/// The drives of the host, each with its queue.
pub(super) struct Devices<S: Observer> {
    /// The device of [`MAIN`], the only one of most hosts. It is in place, because each event looks
    /// at it.
    main: Device<S>,
    others: Vec<Device<S>>,
}

impl<S: Observer> Devices<S> {
    /// The devices in the order of their drives, the main one first.
    pub fn new(main: Device<S>, others: Vec<Device<S>>) -> Self {
        Devices { main, others }
    }

    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = &Device<S>> {
        std::iter::once(&self.main).chain(&self.others)
    }

    #[inline]
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Device<S>> {
        std::iter::once(&mut self.main).chain(&mut self.others)
    }

    /// Adds a submitter to the queues of all drives, as [`Device::add_submitter`] does to one.
    pub fn add_submitter(
        &mut self,
        pid: u32,
        priority: Priority,
        nice: i8,
        group: Option<&GroupId>,
    ) -> Result<(), Defect> {
        self.iter_mut().try_for_each(|device| device.add_submitter(pid, priority, nice, group))
    }

    /// The earliest of the times that `of` returns, with its drive: the first of several at one
    /// instant. [`u64::MAX`] stands for no time.
    #[inline]
    pub fn earliest(&self, of: impl Fn(&Device<S>) -> Option<u64>) -> (u64, DriveId) {
        // A loop, because this runs twice an event and iterator adapters cost 3 % of a run.
        let mut earliest = (of(&self.main).unwrap_or(u64::MAX), MAIN);
        for (drive, device) in (1..).zip(&self.others) {
            let at_ns = of(device).unwrap_or(u64::MAX);
            if at_ns < earliest.0 {
                earliest = (at_ns, DriveId(drive));
            }
        }
        earliest
    }

    /// The rule that the custom elevator of a device has broken, as the error of a run with this
    /// seed.
    #[inline]
    pub fn violation(&self, seed: u64) -> Option<SimError> {
        match self.main.has_violation() || self.others.iter().any(Device::has_violation) {
            true => self.iter().find_map(|device| device.violation(seed)),
            false => None,
        }
    }

    /// Returns true if a queue has no room for a bio of a submitter, whose task sleeps until it
    /// has.
    #[inline]
    pub fn are_full_for(&self, submitter: SubmitterId) -> bool {
        self.iter().any(|device| device.is_held_back(submitter))
    }

    /// Returns true if a device has something for a task that sleeps: [`Self::next_resumed`], or
    /// the end of a congestion.
    #[inline]
    pub fn wakes_tasks(&self) -> bool {
        self.main.wakes_tasks() || self.others.iter().any(Device::wakes_tasks)
    }

    /// Takes a submitter whose backlog has been submitted completely.
    pub fn next_resumed(&mut self) -> Option<SubmitterId> {
        self.iter_mut().find_map(Device::next_resumed)
    }
}

impl DriveId {
    /// The first `count` drives in turn, again and again.
    pub fn in_turn(count: u32) -> impl Iterator<Item = DriveId> {
        (0..count).map(DriveId).cycle()
    }
}

impl<S: Observer> Index<DriveId> for Devices<S> {
    type Output = Device<S>;

    #[inline]
    fn index(&self, drive: DriveId) -> &Device<S> {
        if drive == MAIN { &self.main } else { &self.others[drive.0 as usize - 1] }
    }
}

impl<S: Observer> IndexMut<DriveId> for Devices<S> {
    #[inline]
    fn index_mut(&mut self, drive: DriveId) -> &mut Device<S> {
        if drive == MAIN { &mut self.main } else { &mut self.others[drive.0 as usize - 1] }
    }
}
