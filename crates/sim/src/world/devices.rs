//! The drives of the host.

use std::ops::{Index, IndexMut};

use hoistway_core::{GroupId, Priority};

use super::device::Device;
use super::task::SubmitterId;
use crate::record::Observer;

/// A drive, by its place among those of the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DriveId(u32);

/// The drive with the file system and the journal. Hosts with several drives use the others for
/// direct I/O only.
pub(super) const MAIN: DriveId = DriveId(0);

/// The drives of the host, each with its queue; at least one.
pub(super) struct Devices<S: Observer>(Vec<Device<S>>);

impl<S: Observer> Devices<S> {
    /// The devices in the order of their drives, the main one first.
    pub fn new(main: Device<S>, others: Vec<Device<S>>) -> Self {
        Devices(std::iter::once(main).chain(others).collect())
    }

    pub fn iter(&self) -> std::slice::Iter<'_, Device<S>> {
        self.0.iter()
    }

    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, Device<S>> {
        self.0.iter_mut()
    }

    /// Adds a submitter to the queues of all drives, as [`Device::add_submitter`] does to one.
    pub fn add_submitter(&mut self, pid: u32, priority: Priority, nice: i8, group: Option<GroupId>) -> bool {
        self.0.iter_mut().all(|device| device.add_submitter(pid, priority, nice, group))
    }

    /// The earliest of the times that `of` returns, with its drive: the first of several at one
    /// instant. [`u64::MAX`] stands for no time.
    #[inline]
    pub fn earliest(&self, of: impl Fn(&Device<S>) -> Option<u64>) -> (u64, DriveId) {
        // A loop, because this runs twice an event and iterator adapters cost 3 % of a run.
        let mut earliest = (u64::MAX, MAIN);
        for (drive, device) in (0..).zip(&self.0) {
            match of(device) {
                Some(at_ns) if at_ns < earliest.0 => earliest = (at_ns, DriveId(drive)),
                _ => {}
            }
        }
        earliest
    }

    /// Returns true if a queue has no room for a bio of a submitter, whose task sleeps until it
    /// has.
    #[inline]
    pub fn are_full_for(&self, submitter: SubmitterId) -> bool {
        self.0.iter().any(|device| device.is_held_back(submitter))
    }

    /// Takes a submitter whose backlog has been submitted completely.
    #[inline]
    pub fn next_resumed(&mut self) -> Option<SubmitterId> {
        for device in &mut self.0 {
            let resumed = device.next_resumed();
            if resumed.is_some() {
                return resumed;
            }
        }
        None
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
        &self.0[drive.0 as usize]
    }
}

impl<S: Observer> IndexMut<DriveId> for Devices<S> {
    #[inline]
    fn index_mut(&mut self, drive: DriveId) -> &mut Device<S> {
        &mut self.0[drive.0 as usize]
    }
}
