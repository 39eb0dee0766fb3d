//! The domains: kinds of requests with separate token pools.

use core::ops::{Index, IndexMut};

use crate::bio::Op;

/// A kind of requests with its own tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Domain {
    #[default]
    Read,
    /// Writes, sync or async.
    Write,
    Discard,
    /// All other requests: flushes, if they come as requests.
    Other,
}

impl Domain {
    pub const ALL: [Domain; 4] = [Domain::Read, Domain::Write, Domain::Discard, Domain::Other];
    /// The domains whose latencies are measured.
    pub const MEASURED: [Domain; 3] = [Domain::Read, Domain::Write, Domain::Discard];

    pub const fn of(op: Op) -> Domain {
        match op {
            Op::Read => Domain::Read,
            Op::Write => Domain::Write,
            Op::Discard => Domain::Discard,
            Op::Flush => Domain::Other,
        }
    }

    /// The domain that is tried next.
    pub const fn next(self) -> Domain {
        match self {
            Domain::Read => Domain::Write,
            Domain::Write => Domain::Discard,
            Domain::Discard => Domain::Other,
            Domain::Other => Domain::Read,
        }
    }

    /// The maximum number of its requests in the device.
    pub const fn depth_max(self) -> u32 {
        match self {
            Domain::Read => 256,
            Domain::Write => 128,
            Domain::Discard => 64,
            Domain::Other => 16,
        }
    }

    /// The number of its requests in a batch while others wait.
    pub const fn batch(self) -> u32 {
        match self {
            Domain::Read => 16,
            Domain::Write => 8,
            Domain::Discard | Domain::Other => 1,
        }
    }
}

/// One value for each domain.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PerDomain<T>(pub [T; 4]);

impl<T> Index<Domain> for PerDomain<T> {
    type Output = T;

    #[inline]
    fn index(&self, domain: Domain) -> &T {
        let [read, write, discard, other] = &self.0;
        match domain {
            Domain::Read => read,
            Domain::Write => write,
            Domain::Discard => discard,
            Domain::Other => other,
        }
    }
}

impl<T> IndexMut<Domain> for PerDomain<T> {
    #[inline]
    fn index_mut(&mut self, domain: Domain) -> &mut T {
        let [read, write, discard, other] = &mut self.0;
        match domain {
            Domain::Read => read,
            Domain::Write => write,
            Domain::Discard => discard,
            Domain::Other => other,
        }
    }
}
