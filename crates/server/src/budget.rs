//! How much may be under way, so that memory is bounded whatever clients do.
//!
//! A request is charged with the bytes of its data, read or written, from when its header is read
//! until its reply has been handed to the kernel. A connection whose next request does not fit is
//! not received from until others have ended: the client's sends wait, as they would for a slow
//! network. Nothing is ever refused.

use slab::Slab;

/// How much may be under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Connections, 1 or more; whoever comes beyond is closed at once.
    pub connections_max: usize,
    /// Requests of one connection, 1 to 65,535.
    pub requests_max: u32,
    /// Bytes of data of one connection's requests.
    pub connection_bytes_max: u64,
    /// Bytes of data of all requests together. [`FLOOR_BYTES`] a connection come on top in the
    /// worst case.
    pub bytes_max: u64,
    /// How long a client may take to choose an export, in ns, the handshake of TLS included.
    pub handshake_ns_max: u64,
    /// How long a drain waits for requests and for clients to take their replies, in ns.
    pub drain_ns_max: u64,
    /// How long a client may take for a payload or to take its replies while others wait for the
    /// memory, in ns; and, besides, the time that their bytes take at `slow_bytes_per_second`.
    pub stall_ns_max: u64,
    /// Nobody who sends and takes so many bytes a second is ever closed for being slow; above 0.
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

/// What every connection may have under way even when the budget is spent, in bytes: 64 KiB, so
/// that nobody with small requests ever waits for the memory of those with large ones.
pub const FLOOR_BYTES: u64 = 64 << 10;

impl Bounds {
    /// Whether so many bytes should have passed by now, if their passing began at `since_ns`.
    pub fn is_stalled(&self, since_ns: u64, bytes: u64, now_ns: u64) -> bool {
        let passing_ns = u128::from(bytes) * 1_000_000_000 / u128::from(self.slow_bytes_per_second.max(1));
        u128::from(now_ns.saturating_sub(since_ns)) > u128::from(self.stall_ns_max) + passing_ns
    }
}

/// What some requests take up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Charge {
    /// How many they are.
    pub requests: u32,
    /// The bytes of their data.
    pub bytes: u64,
}

impl Charge {
    /// One request of so many bytes.
    pub fn of(bytes: u64) -> Charge {
        Charge { requests: 1, bytes }
    }

    /// Adds.
    pub fn add(&mut self, other: Charge) {
        self.requests += other.requests;
        self.bytes += other.bytes;
    }

    /// Takes away what was added before.
    pub fn sub(&mut self, other: Charge) {
        debug_assert!(self.requests >= other.requests && self.bytes >= other.bytes, "more given back than was taken");
        self.requests = self.requests.saturating_sub(other.requests);
        self.bytes = self.bytes.saturating_sub(other.bytes);
    }
}

/// Why a request has to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// For requests of its own connection.
    Own,
    /// For those of its own tenant.
    Tenant,
    /// For those of others.
    Others,
}

/// Names what a tenant holds, as long as it has a client.
pub type HolderId = usize;

/// What a tenant holds.
#[derive(Clone, Debug)]
struct Holder {
    tenant: Box<str>,
    clients: usize,
    used: u64,
}

/// The account of the whole server.
#[derive(Clone, Debug)]
pub struct Budget {
    bounds: Bounds,
    used: u64,
    holders: Slab<Holder>,
}

impl Budget {
    /// Nothing is under way.
    pub fn new(bounds: Bounds) -> Budget {
        Budget { bounds, used: 0, holders: Slab::new() }
    }

    /// What it was made with.
    pub fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// Bytes under way.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// A client of a tenant has come: what it holds counts with what other clients of the tenant
    /// hold.
    pub fn join(&mut self, tenant: &str) -> HolderId {
        let known = self.holders.iter().find(|(_, holder)| *holder.tenant == *tenant).map(|(id, _)| id);
        let id = known.unwrap_or_else(|| self.holders.insert(Holder { tenant: tenant.into(), clients: 0, used: 0 }));
        self.holders[id].clients += 1;
        id
    }

    /// It has gone, and has given back all that it had; answers whether it was the tenant's last.
    pub fn leave(&mut self, id: HolderId) -> bool {
        let Some(holder) = self.holders.get_mut(id) else { return false };
        holder.clients = holder.clients.saturating_sub(1);
        let is_last = holder.clients == 0;
        if is_last {
            self.holders.remove(id);
        }
        is_last
    }

    /// Whether a connection that has `own` under way may begin a request of `bytes`; `holder` is
    /// its tenant. `queued`: who waits already and would be overtaken.
    ///
    /// A tenant, or a connection without one, may take a quarter of what is free: k that take all
    /// they can leave 4 / (4 + k) of the budget, so it is never spent, however many connections a
    /// tenant has and however long its own limit holds their requests. A request larger than that
    /// begins alone while three quarters of the budget suffice.
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
        let alone = held == 0 && self.used.saturating_add(bytes) <= self.bounds.bytes_max / 4 * 3;
        // With nothing under way at all, one request fits whatever its size: it would wait for
        // ever.
        if held.saturating_add(bytes) <= free / 4 || alone || self.used == 0 {
            return Ok(());
        }
        // Those who hold much are served again when their own requests have ended: nobody else has
        // to make room for them.
        Err(match (own.bytes, held) {
            (1.., _) => Wait::Own,
            (0, 1..) => Wait::Tenant,
            (0, 0) => Wait::Others,
        })
    }

    /// A request begins.
    pub fn take(&mut self, holder: Option<HolderId>, charge: Charge) {
        self.used += charge.bytes;
        if let Some(holder) = holder.and_then(|id| self.holders.get_mut(id)) {
            holder.used += charge.bytes;
        }
    }

    /// Requests have ended.
    pub fn give_back(&mut self, holder: Option<HolderId>, charge: Charge) {
        debug_assert!(self.used >= charge.bytes, "more given back than was taken");
        self.used = self.used.saturating_sub(charge.bytes);
        if let Some(holder) = holder.and_then(|id| self.holders.get_mut(id)) {
            debug_assert!(holder.used >= charge.bytes, "a tenant gives back more than it took");
            holder.used = holder.used.saturating_sub(charge.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn one_connection_alone_gets_all_that_a_connection_may_have() {
        let mut budget = Budget::new(Bounds::default());
        let mut own = Charge::default();
        while budget.admit(own, None, MIB, None).is_ok() {
            own.add(Charge::of(MIB));
            budget.take(None, Charge::of(MIB));
        }
        assert_eq!(own.bytes, 64 * MIB);
        assert_eq!(budget.admit(own, None, MIB, None), Err(Wait::Own));
    }

    #[test]
    fn many_connections_that_take_all_they_can_leave_room_for_one_more() {
        let mut budget = Budget::new(Bounds::default());
        let mut owns = vec![Charge::default(); 100];
        let mut admitted = true;
        while admitted {
            admitted = false;
            for own in &mut owns {
                if budget.admit(*own, None, 128 << 10, None).is_ok() {
                    own.add(Charge::of(128 << 10));
                    budget.take(None, Charge::of(128 << 10));
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
        budget.take(None, Charge::of(512 * MIB));
        assert_eq!(budget.admit(Charge::default(), None, 4096, Some(Wait::Others)), Ok(()));
        assert_eq!(budget.admit(Charge { requests: 15, bytes: 60 << 10 }, None, 4096, Some(Wait::Others)), Ok(()));
        assert_eq!(
            budget.admit(Charge { requests: 16, bytes: 64 << 10 }, None, 4096, Some(Wait::Others)),
            Err(Wait::Others)
        );
    }

    #[test]
    fn a_connection_has_no_more_requests_than_stated_however_small_they_are() {
        let budget = Budget::new(Bounds { requests_max: 8, ..Bounds::default() });
        assert_eq!(budget.admit(Charge { requests: 7, bytes: 0 }, None, 0, None), Ok(()));
        assert_eq!(budget.admit(Charge { requests: 8, bytes: 0 }, None, 0, None), Err(Wait::Own));
    }

    #[test]
    fn a_request_larger_than_the_whole_budget_begins_when_nothing_else_is_under_way() {
        let budget = Budget::new(Bounds { bytes_max: MIB, ..Bounds::default() });
        assert_eq!(budget.admit(Charge::default(), None, 32 * MIB, None), Ok(()));
    }

    #[test]
    fn a_tenant_with_many_connections_holds_no_more_than_one_with_few() {
        let mut budget = Budget::new(Bounds::default());
        let (greedy, modest) = (budget.join("greedy"), budget.join("modest"));
        for _ in 0..100 {
            assert_eq!(budget.join("greedy"), greedy);
        }
        let mut held = 0;
        // Each connection has nothing under way and would begin a large request alone.
        while budget.admit(Charge::default(), Some(greedy), 8 * MIB, None).is_ok() {
            budget.take(Some(greedy), Charge::of(8 * MIB));
            held += 8;
        }
        assert_eq!(held, 104, "a fifth: a quarter of what is free before the last one");
        assert_eq!(budget.admit(Charge::default(), Some(greedy), 8 * MIB, None), Err(Wait::Tenant));
        assert_eq!(budget.admit(Charge::default(), Some(modest), 32 * MIB, None), Ok(()));
        budget.give_back(Some(greedy), Charge { requests: 13, bytes: 104 * MIB });
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
