//! Tenants: for whom a device works, and on what terms.

use hoistway_core::Priority;

/// What a tenant is promised and what it is held to, on each device that it uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Class and level; unset: a client on a Unix socket brings its process's own, others are best effort 4.
    pub priority: Priority,
    /// The share among the tenants of one parent, 1 to 1000: with elevators that know groups.
    pub weight: u16,
    /// Bandwidth that it can count on.
    pub reserve: Option<Reserve>,
    /// What it may not exceed.
    pub limits: Limits,
    /// The group that it is part of; none is the root.
    pub parent: Option<String>,
}

/// Bandwidth that a tenant can count on (the bandwidth class).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reserve {
    /// Bytes a second, reads and writes together.
    pub bytes_per_second: u64,
    /// The size of its requests in bytes, for the admission: 128 KiB unless told.
    pub request_bytes: u64,
}

/// Token buckets; reads and writes together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Bytes a second.
    pub bytes: Option<Rate>,
    /// Operations a second.
    pub operations: Option<Rate>,
}

/// A rate, and how much may come at once after a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Units a second, 1 or more.
    pub per_second: u64,
    /// Units: the depth of the bucket, 1 or more.
    pub burst: u64,
}

impl Rate {
    /// A rate with the burst that it has unless told: what comes in a tenth of a second.
    pub fn new(per_second: u64) -> Rate {
        Rate { per_second, burst: (per_second / 10).max(1) }
    }

    /// Another rate: a burst that was told stays, another follows.
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
