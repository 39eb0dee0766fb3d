//! A client of an export, whatever protocol it speaks: its membership in the device's queue, the
//! memory of its requests, its counters.

use hoistway_blockdev::{BlockRequest, Device, DeviceId};
use hoistway_qos::MemberId;
use hoistway_reactor::{ConnId, Engine, Peer};

use crate::budget::{Charge, HolderId, Wait};
use crate::close_reason::CloseReason;
use crate::lists::MemoryQueue;
use crate::state::ServerState;

/// The membership of a client in the queue of an export's device.
#[derive(Debug)]
pub(crate) struct Membership {
    /// The export's device.
    device: DeviceId,
    member: MemberId,
    /// The offset of the export on the device, in bytes.
    offset: u64,
    /// The name of the client's tenant; `None` if no rule names one.
    tenant: Option<Box<str>>,
    /// The memory account of the tenant.
    holder: Option<HolderId>,
    /// The charge of all requests whose replies have not been sent.
    used: Charge,
    pub(crate) counts: Counts,
}

/// The counters of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// The number of requests that were answered.
    pub(crate) requests: u64,
    /// The number of bytes of successful reads.
    pub(crate) read_bytes: u64,
    /// The number of bytes of successful writes.
    pub(crate) written_bytes: u64,
}

impl Membership {
    /// Makes the client at the other end of a connection a member of its tenant. `device` and
    /// `offset` are those of the export.
    pub(crate) fn join<E: Engine>(
        export: &str,
        (device, offset): (DeviceId, u64),
        tenant: Option<Box<str>>,
        peer: &Peer,
        state: &mut ServerState<E>,
    ) -> Result<Membership, CloseReason> {
        let member = state.join(device, tenant.as_deref(), peer)?;
        let holder = tenant.as_deref().map(|tenant| state.budget.join(tenant));
        let (used, counts) = (Charge::default(), Counts::default());
        let membership = Membership { device, member, offset, tenant, holder, used, counts };
        state.client_counts.add(export, membership.tenant_name());
        Ok(membership)
    }

    /// Returns the client's memory, and removes it from the queue of the device.
    pub(crate) fn leave<E: Engine>(self, export: &str, state: &mut ServerState<E>) {
        state.budget.release(self.holder, self.used);
        if let Some(holder) = self.holder
            && state.budget.leave(holder)
        {
            state.memory_waiters.forget(holder);
        }
        state.leave(self.device, self.member);
        state.client_counts.remove(export, self.tenant_name());
    }

    /// Returns the name of the client's tenant, if a rule names one.
    pub(crate) fn tenant(&self) -> Option<&str> {
        self.tenant.as_deref()
    }

    /// Returns the name of the tenant to which the client's requests are accounted.
    pub(crate) fn tenant_name(&self) -> &str {
        self.tenant().unwrap_or(Device::DEFAULT_TENANT)
    }

    /// Charges a request that begins.
    ///
    /// # Errors
    /// The requests whose end the request has to wait for.
    pub(crate) fn admit<E: Engine>(
        &mut self,
        id: ConnId,
        charge: Charge,
        state: &mut ServerState<E>,
    ) -> Result<(), Wait> {
        let ahead = state.memory_waiters.ahead_of(id, self.holder);
        state.budget.admit(self.used, self.holder, charge.bytes, ahead)?;
        self.used.add(charge);
        state.budget.charge(self.holder, charge);
        Ok(())
    }

    /// Returns the memory of requests to the budget.
    pub(crate) fn release<E: Engine>(&mut self, charge: Charge, state: &mut ServerState<E>) {
        self.used.sub(charge);
        state.budget.release(self.holder, charge);
    }

    /// Returns the queue in which a request waits; `None` if it waits for its own connection.
    pub(crate) fn queue_for(&self, wait: Wait) -> Option<MemoryQueue> {
        MemoryQueue::of(wait, self.holder)
    }

    /// Returns true if the device zeroes a range faster than a write of zeroes would.
    pub(crate) fn zero_is_fast<E: Engine>(&self, punch: bool, state: &ServerState<E>) -> bool {
        state.device(self.device).is_some_and(|device| device.zero_is_fast(punch))
    }

    /// Submits a request, whose offset is that on the export, to the device.
    pub(crate) fn submit<E: Engine>(&self, mut request: BlockRequest, state: &mut ServerState<E>) {
        request.offset += self.offset;
        state.submit(self.device, self.member, request);
    }
}
