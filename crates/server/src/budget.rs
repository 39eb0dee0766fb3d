//! The memory budget: bounds on the requests in progress, whatever clients do.
//!
//! A request is charged with the bytes of its data, read or written, from the time when its header
//! is read until its reply has been handed to the kernel. If the next request of a connection does
//! not fit, the server stops receiving from that connection until other requests have ended. The
//! client's sends then block as on a slow network. The server never refuses a request for memory.

use slab::Slab;

/// Bounds on connections, on requests in progress and on their durations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The maximum number of connections, 1 or more. Further connections are closed at once.
    pub connections_max: usize,
    /// The maximum number of requests in progress of one connection, 1 to 65,535.
    pub requests_max: u32,
    /// The maximum number of bytes of data of one connection's requests in progress.
    pub connection_bytes_max: u64,
    /// The maximum number of bytes of data of all requests in progress. In the worst case each
    /// connection adds [`FLOOR_BYTES`].
    pub bytes_max: u64,
    /// The time in ns in which a client must choose an export, the TLS handshake included.
    pub handshake_ns_max: u64,
    /// The time in ns for which a shutdown waits for requests and for clients to receive replies.
    pub drain_ns_max: u64,
    /// The time in ns for which a client may delay a payload or its replies while others wait for
    /// memory, in addition to the time that the bytes take at `slow_bytes_per_second`.
    pub stall_ns_max: u64,
    /// The rate in bytes per second, above 0, at which a client is never closed as stalled.
    pub slow_bytes_per_second: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds {
            connections_max: 16_384,
            requests_max: 1024,
            connection_bytes_max: 64 << 20,
            bytes_max: 512 << 20,
            handshake_ns_max: 30_000_000_000,
            drain_ns_max: 30_000_000_000,
            stall_ns_max: 60_000_000_000,
            slow_bytes_per_second: 256 << 10,
        }
    }
}

/// The bytes that every connection may have in progress even when the budget is spent: 64 KiB, so
/// that clients with small requests never wait for the memory of clients with large ones.
pub const FLOOR_BYTES: u64 = 64 << 10;

impl Bounds {
    /// Returns true if a transfer of this many bytes that began at `since_ns` should have ended.
    pub fn is_stalled(&self, since_ns: u64, bytes: u64, now_ns: u64) -> bool {
        let transfer_ns = u128::from(bytes) * 1_000_000_000 / u128::from(self.slow_bytes_per_second.max(1));
        u128::from(now_ns.saturating_sub(since_ns)) > u128::from(self.stall_ns_max) + transfer_ns
    }
}

/// The memory that requests in progress hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Charge {
    /// The number of requests.
    pub requests: u32,
    /// The bytes of their data.
    pub bytes: u64,
}

impl Charge {
    /// Returns the charge of one request with this many bytes of data.
    pub fn of(bytes: u64) -> Charge {
        Charge { requests: 1, bytes }
    }

    /// Adds the charge of further requests.
    pub fn add(&mut self, other: Charge) {
        self.requests += other.requests;
        self.bytes += other.bytes;
    }

    /// Subtracts a charge that was added before.
    pub fn sub(&mut self, other: Charge) {
        debug_assert!(
            self.requests >= other.requests && self.bytes >= other.bytes,
            "more memory released than was charged"
        );
        self.requests = self.requests.saturating_sub(other.requests);
        self.bytes = self.bytes.saturating_sub(other.bytes);
    }
}

/// The requests whose end a waiting request needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Requests of its own connection.
    Own,
    /// Requests of its own tenant.
    Tenant,
    /// Requests of other tenants.
    Others,
}

/// The id of a tenant's memory account, valid while the tenant has a client.
pub type HolderId = usize;

/// The memory account of a tenant.
#[derive(Clone, Debug)]
struct Holder {
    tenant: Box<str>,
    clients: usize,
    used: u64,
}

/// The memory account of the server.
#[derive(Clone, Debug)]
pub struct Budget {
    bounds: Bounds,
    used: u64,
    holders: Slab<Holder>,
}

impl Budget {
    /// Creates a budget without requests in progress.
    pub fn new(bounds: Bounds) -> Budget {
        Budget { bounds, used: 0, holders: Slab::new() }
    }

    /// Returns the bounds that the budget enforces.
    pub fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// Returns the bytes of all requests in progress.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// Adds a client of a tenant, whose memory counts towards the tenant's account.
    pub fn join(&mut self, tenant: &str) -> HolderId {
        let known = self.holders.iter().find(|(_, holder)| *holder.tenant == *tenant).map(|(id, _)| id);
        let id = known.unwrap_or_else(|| self.holders.insert(Holder { tenant: tenant.into(), clients: 0, used: 0 }));
        self.holders[id].clients += 1;
        id
    }

    /// Removes a client whose memory has been released. Returns true if it was the tenant's last.
    pub fn leave(&mut self, id: HolderId) -> bool {
        let Some(holder) = self.holders.get_mut(id) else { return false };
        holder.clients = holder.clients.saturating_sub(1);
        let is_last = holder.clients == 0;
        if is_last {
            self.holders.remove(id);
        }
        is_last
    }

    /// Decides whether a connection with `own` in progress may begin a request of `bytes`. `holder`
    /// is its tenant; `queued` is the queue in which another connection waits ahead of it.
    ///
    /// A tenant, or a connection without one, may hold a quarter of the free budget: k tenants that
    /// hold all they can leave 4 / (4 + k) of the budget. So the budget is never spent, however
    /// many connections a tenant has and however long its own limit delays their requests. A tenant
    /// without memory may begin one larger request if three quarters of the budget suffice.
    ///
    /// # Errors
    /// The requests whose end the request has to wait for.
    pub fn admit(&self, own: Charge, holder: Option<HolderId>, bytes: u64, queued: Option<Wait>) -> Result<(), Wait> {
        if own.requests >= self.bounds.requests_max {
            return Err(Wait::Own);
        }
        let total = own.bytes.saturating_add(bytes);
        if total <= FLOOR_BYTES || bytes == 0 {
            return Ok(());
        }
        if own.bytes > 0 && total > self.bounds.connection_bytes_max {
            return Err(Wait::Own);
        }
        if let Some(wait) = queued {
            return Err(wait);
        }
        let held = holder.and_then(|id| self.holders.get(id)).map_or(own.bytes, |holder| holder.used);
        let free = self.bounds.bytes_max.saturating_sub(self.used);
        let is_first = held == 0 && self.used.saturating_add(bytes) <= self.bounds.bytes_max / 4 * 3;
        // Without other requests in progress one request of any size begins; otherwise it would
        // wait for ever.
        if held.saturating_add(bytes) <= free / 4 || is_first || self.used == 0 {
            return Ok(());
        }
        // A connection or tenant that holds memory waits for its own requests, not for those of
        // others.
        Err(match (own.bytes, held) {
            (1.., _) => Wait::Own,
            (0, 1..) => Wait::Tenant,
            (0, 0) => Wait::Others,
        })
    }

    /// Charges a request that begins.
    pub fn charge(&mut self, holder: Option<HolderId>, charge: Charge) {
        self.used += charge.bytes;
        if let Some(holder) = holder.and_then(|id| self.holders.get_mut(id)) {
            holder.used += charge.bytes;
        }
    }

    /// Releases the memory of requests that ended.
    pub fn release(&mut self, holder: Option<HolderId>, charge: Charge) {
        debug_assert!(self.used >= charge.bytes, "more memory released than was charged");
        self.used = self.used.saturating_sub(charge.bytes);
        if let Some(holder) = holder.and_then(|id| self.holders.get_mut(id)) {
            debug_assert!(holder.used >= charge.bytes, "a tenant releases more memory than it was charged");
            holder.used = holder.used.saturating_sub(charge.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_single_connection_reaches_the_bound_of_a_connection() {
        let mut budget = Budget::new(Bounds::default());
        let mut own = Charge::default();
        while budget.admit(own, None, MIB, None).is_ok() {
            own.add(Charge::of(MIB));
            budget.charge(None, Charge::of(MIB));
        }
        assert_eq!(own.bytes, 64 * MIB);
        assert_eq!(budget.admit(own, None, MIB, None), Err(Wait::Own));
    }

    #[test]
    fn many_connections_at_their_bound_leave_memory_for_one_more() {
        let mut budget = Budget::new(Bounds::default());
        let mut owns = vec![Charge::default(); 100];
        let mut admitted = true;
        while admitted {
            admitted = false;
            for own in &mut owns {
                if budget.admit(*own, None, 128 << 10, None).is_ok() {
                    own.add(Charge::of(128 << 10));
                    budget.charge(None, Charge::of(128 << 10));
                    admitted = true;
                }
            }
        }
        assert!(budget.used() < 512 * MIB);
        assert_eq!(budget.admit(Charge::default(), None, 128 << 10, None), Ok(()));
    }

    #[test]
    fn small_requests_begin_even_when_the_budget_is_spent() {
        let mut budget = Budget::new(Bounds::default());
        budget.charge(None, Charge::of(512 * MIB));
        assert_eq!(budget.admit(Charge::default(), None, 4096, Some(Wait::Others)), Ok(()));
        assert_eq!(budget.admit(Charge { requests: 15, bytes: 60 << 10 }, None, 4096, Some(Wait::Others)), Ok(()));
        assert_eq!(
            budget.admit(Charge { requests: 16, bytes: 64 << 10 }, None, 4096, Some(Wait::Others)),
            Err(Wait::Others)
        );
    }

    #[test]
    fn the_number_of_requests_of_a_connection_is_bounded_whatever_their_size() {
        let budget = Budget::new(Bounds { requests_max: 8, ..Bounds::default() });
        assert_eq!(budget.admit(Charge { requests: 7, bytes: 0 }, None, 0, None), Ok(()));
        assert_eq!(budget.admit(Charge { requests: 8, bytes: 0 }, None, 0, None), Err(Wait::Own));
    }

    #[test]
    fn a_request_larger_than_the_budget_begins_when_no_other_request_is_in_progress() {
        let budget = Budget::new(Bounds { bytes_max: MIB, ..Bounds::default() });
        assert_eq!(budget.admit(Charge::default(), None, 32 * MIB, None), Ok(()));
    }

    #[test]
    fn a_tenant_with_many_connections_holds_no_more_memory_than_one_with_few() {
        let mut budget = Budget::new(Bounds::default());
        let (greedy, modest) = (budget.join("greedy"), budget.join("modest"));
        for _ in 0..100 {
            assert_eq!(budget.join("greedy"), greedy);
        }
        let mut held = 0;
        // Each connection is idle and could begin one large request.
        while budget.admit(Charge::default(), Some(greedy), 8 * MIB, None).is_ok() {
            budget.charge(Some(greedy), Charge::of(8 * MIB));
            held += 8;
        }
        assert_eq!(held, 104, "a fifth: a quarter of the free budget before the last request");
        assert_eq!(budget.admit(Charge::default(), Some(greedy), 8 * MIB, None), Err(Wait::Tenant));
        assert_eq!(budget.admit(Charge::default(), Some(modest), 32 * MIB, None), Ok(()));
        budget.release(Some(greedy), Charge { requests: 13, bytes: 104 * MIB });
        assert_eq!(budget.admit(Charge::default(), Some(greedy), 8 * MIB, None), Ok(()));
    }

    #[test]
    fn a_tenant_is_forgotten_with_its_last_client() {
        let mut budget = Budget::new(Bounds::default());
        let id = budget.join("t");
        budget.join("t");
        assert_eq!((budget.leave(id), budget.leave(id), budget.holders.len()), (false, true, 0));
    }
}
