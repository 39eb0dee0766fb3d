//! The terms of a tenant: priority, weight, reservation and limits.

use hoistway_core::Priority;

/// The priority, weight, reservation and limits of a tenant on each device that it uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The I/O priority; unset: that of the client's process on a Unix socket, otherwise best
    /// effort 4.
    pub priority: Priority,
    /// The weight among the tenants of one parent, 1 to 1000; effective under elevators that
    /// support groups.
    pub weight: u16,
    /// The reserved bandwidth.
    pub reserve: Option<Reserve>,
    /// The limits on its rate.
    pub limits: Limits,
    /// The parent group; `None` is the root group.
    pub parent: Option<String>,
}

/// A bandwidth reservation (the bandwidth class of `cfq-bw`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reserve {
    /// Bytes per second, reads and writes together.
    pub bytes_per_second: u64,
    /// The size of the tenant's requests in bytes, for admission; 128 KiB by default.
    pub request_bytes: u64,
}

/// Rate limits by token buckets; reads and writes together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Bytes per second.
    pub bytes: Option<Rate>,
    /// Operations per second.
    pub operations: Option<Rate>,
}

/// The rate and the depth of a token bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Units per second, 1 or more.
    pub per_second: u64,
    /// The depth of the bucket in units, 1 or more.
    pub burst: u64,
}

impl Rate {
    /// Creates a rate with the default burst: the units of a tenth of a second.
    pub fn new(per_second: u64) -> Rate {
        Rate { per_second, burst: (per_second / 10).max(1) }
    }

    /// Returns the rate changed to `per_second`. An explicit burst stays; the default burst follows
    /// the rate.
    #[must_use]
    pub fn changed_to(self, per_second: u64) -> Rate {
        let usual = Rate::new(per_second);
        if self == Rate::new(self.per_second) { usual } else { Rate { burst: self.burst, ..usual } }
    }
}

impl Default for Terms {
    fn default() -> Self {
        Terms { priority: Priority::UNSET, weight: 100, reserve: None, limits: Limits::default(), parent: None }
    }
}
