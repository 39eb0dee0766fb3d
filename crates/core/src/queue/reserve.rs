//! What processes and groups have of the device: bandwidth reservations, with the reservation layer
//! over the elevator, and the slice of the active queue.

use super::{Kick, RequestQueue, Stale};
use crate::collections::NIL;
use crate::context::ContextId;
use crate::elevator::reservation::{Reservation, ReservationHolder, ReservationSummary, ReserveError};
use crate::elevator::tables::HostTypes;
use crate::elevator::{ActiveSlice, Elevator};
use crate::group::GroupId;
use crate::request::{RequestId, State};

impl<H: HostTypes> RequestQueue<H> {
    /// Returns true if processes and groups can reserve bandwidth: with the layer, and in `cfq-bw`.
    pub fn is_reserving(&self) -> bool {
        self.elevator.is_layered() || self.kind().info().reservations
    }

    /// Reserves bandwidth for a process or changes its reservation. A reduction of the load on the
    /// device is always granted; an increase must fit. The reservation ends with
    /// [`release`](Self::release), with the process, or with a switch of the elevator.
    ///
    /// A process with its own reservation does not use its group's.
    pub fn reserve(&mut self, id: ContextId, reservation: Reservation, now_ns: u64) -> Result<Kick, ReserveError> {
        self.begin(now_ns);
        let slot = self.running_context(id).ok_or(ReserveError::Stale)?;
        self.elevator.reserve(&mut self.core, ReservationHolder::Context(slot), reservation)?;
        Ok(self.end())
    }

    /// Ends a process's reservation. Its requests then use its group's reservation, if there is
    /// one, or are best effort. Without a reservation the call has no effect.
    pub fn release(&mut self, id: ContextId, now_ns: u64) -> Result<Kick, Stale> {
        self.begin(now_ns);
        let slot = self.running_context(id).ok_or(Stale)?;
        self.elevator.release(&mut self.core, ReservationHolder::Context(slot));
        Ok(self.end())
    }

    /// The reservation of a process itself, with its actual depth.
    pub fn reservation(&self, id: ContextId) -> Option<Reservation> {
        self.running_context(id).and_then(|slot| self.elevator.reservation(ReservationHolder::Context(slot)))
    }

    /// Reserves bandwidth for a group or changes its reservation. All processes directly in the
    /// group share it; those in child groups do not. A process that leaves the group takes no
    /// reservation with it; its requests until then are still served as the group's. Otherwise as
    /// [`reserve`](Self::reserve); the reservation ends with
    /// [`release_group`](Self::release_group), with the group, or with a switch of the elevator.
    pub fn reserve_group(&mut self, id: GroupId, reservation: Reservation, now_ns: u64) -> Result<Kick, ReserveError> {
        self.begin(now_ns);
        let slot = self.known_group(id).ok_or(ReserveError::Stale)?;
        self.elevator.reserve(&mut self.core, ReservationHolder::Group(slot), reservation)?;
        Ok(self.end())
    }

    /// Ends a group's reservation. Requests of its processes are then best effort. Without a
    /// reservation the call has no effect.
    pub fn release_group(&mut self, id: GroupId, now_ns: u64) -> Result<Kick, Stale> {
        self.begin(now_ns);
        let slot = self.known_group(id).ok_or(Stale)?;
        self.elevator.release(&mut self.core, ReservationHolder::Group(slot));
        Ok(self.end())
    }

    /// The reservation of a group, with its actual depth.
    pub fn group_reservation(&self, id: GroupId) -> Option<Reservation> {
        self.known_group(id).and_then(|slot| self.elevator.reservation(ReservationHolder::Group(slot)))
    }

    /// The reservations on the device; `None` if reservations are not supported.
    pub fn reserved(&self) -> Option<ReservationSummary> {
        self.elevator.reserved()
    }

    /// The slice of the active queue; `None` without one, and in elevators without slices.
    pub fn slice(&self) -> Option<ActiveSlice> {
        self.elevator.slice(&self.core)
    }

    /// By how many ns a request in the queue or in the device is behind the bound of its
    /// reservation (see [`late_requests`](Self::late_requests)), 0 if it is not. `None` if it is
    /// not within a reservation.
    pub fn lateness_ns(&self, id: RequestId, now_ns: u64) -> Option<u64> {
        self.request(id)?;
        self.elevator.lateness_ns(&self.core, id.slot, now_ns)
    }

    /// Calls `visit` with the process id and the lateness, in ns, of each request that is behind
    /// the bound of its reservation and not complete.
    pub fn for_each_late(&self, now_ns: u64, mut visit: impl FnMut(u32, u64)) {
        let requests = self.core.tables.requests.entries().iter().zip(0..NIL);
        for (request, slot) in requests.filter(|(request, _)| request.state != State::Free) {
            let late_ns = self.elevator.lateness_ns(&self.core, slot, now_ns).unwrap_or(0);
            if late_ns > 0 {
                visit(self.core.tables.contexts[request.context].pid, late_ns);
            }
        }
    }

    /// The number of reserved requests that completed later than
    /// [`ReservationSummary::delay_ns_max`] (plus the service time of requests that were in the
    /// device before them, for devices with a depth above one), since the queue was created. An
    /// increase during a call to [`complete`](Self::complete) is due to the completed request.
    pub fn late_requests(&self) -> u64 {
        self.core.late_requests
    }
}
