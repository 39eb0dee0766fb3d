//! Reserved bandwidth: what a process or group asks for and is told, where the layer of reserved bandwidth is over the elevator.

use super::{Kick, RequestQueue, Stale};
use crate::context::ContextId;
use crate::elevator::Elevator;
use crate::elevator::reservation::{Reservation, ReservationHolder, ReservationSummary, ReserveError};
use crate::elevator::tables::HostTypes;
use crate::group::GroupId;

impl<H: HostTypes> RequestQueue<H> {
    /// Whether processes and groups can reserve bandwidth: the layer is over the elevator, or the elevator is `cfq-bw`.
    pub fn is_reserving(&self) -> bool {
        self.elevator.is_layered() || self.kind().info().reservations
    }

    /// Reserves bandwidth for a process, or changes what it has reserved. A lower load on the device is always granted; of a higher one
    /// the difference must fit. The reservation ends with [`release`](Self::release), with the process, or with a switch of the elevator.
    ///
    /// A process with a reservation of its own draws on that alone, not on its group's.
    pub fn reserve(&mut self, id: ContextId, reservation: Reservation, now_ns: u64) -> Result<Kick, ReserveError> {
        self.begin(now_ns);
        let slot = self.running_context(id).ok_or(ReserveError::Stale)?;
        self.elevator.reserve(&mut self.core, ReservationHolder::Context(slot), reservation)?;
        Ok(self.end())
    }

    /// Gives a process's reservation back: what it asks for is its group's again, if that has reserved something, or best effort. Without
    /// one, nothing happens.
    pub fn release(&mut self, id: ContextId, now_ns: u64) -> Result<Kick, Stale> {
        self.begin(now_ns);
        let slot = self.running_context(id).ok_or(Stale)?;
        self.elevator.release(&mut self.core, ReservationHolder::Context(slot));
        Ok(self.end())
    }

    /// What a process has reserved for itself, its depth told.
    pub fn reservation(&self, id: ContextId) -> Option<Reservation> {
        self.running_context(id).and_then(|slot| self.elevator.reservation(ReservationHolder::Context(slot)))
    }

    /// Reserves bandwidth for a group, or changes what it has reserved: all processes that are in the group itself draw on it together,
    /// whenever they joined it; those of its child groups do not. One that leaves the group takes nothing with it: what it has asked for so
    /// far is still served as the group's. Otherwise as [`reserve`](Self::reserve); the reservation ends with
    /// [`release_group`](Self::release_group), with the group, or with a switch of the elevator.
    pub fn reserve_group(&mut self, id: GroupId, reservation: Reservation, now_ns: u64) -> Result<Kick, ReserveError> {
        self.begin(now_ns);
        let slot = self.known_group(id).ok_or(ReserveError::Stale)?;
        self.elevator.reserve(&mut self.core, ReservationHolder::Group(slot), reservation)?;
        Ok(self.end())
    }

    /// Gives a group's reservation back: what its processes ask for is best effort again. Without one, nothing happens.
    pub fn release_group(&mut self, id: GroupId, now_ns: u64) -> Result<Kick, Stale> {
        self.begin(now_ns);
        let slot = self.known_group(id).ok_or(Stale)?;
        self.elevator.release(&mut self.core, ReservationHolder::Group(slot));
        Ok(self.end())
    }

    /// What a group has reserved, its depth told.
    pub fn group_reservation(&self, id: GroupId) -> Option<Reservation> {
        self.known_group(id).and_then(|slot| self.elevator.reservation(ReservationHolder::Group(slot)))
    }

    /// How much of the device is reserved; `None` if nothing can be.
    pub fn reserved(&self) -> Option<ReservationSummary> {
        self.elevator.reserved()
    }

    /// How many requests within a reservation were done later than [`Reserved::delay_ns_max`] says (with the time of those that were in the device
    /// before it, where that is given several), in the queue's life: a count that a call to [`complete`](Self::complete) raises is about the request
    /// that it completes.
    pub fn late_requests(&self) -> u64 {
        self.core.late_requests
    }
}
