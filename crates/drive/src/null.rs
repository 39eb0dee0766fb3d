//! A device of constant service time. A run with it measures the cost of the software above.

use crate::command::{Command, Completion, Phases, Service, Source, Status};
use crate::pending::Pending;
use crate::profile::NullProfile;

/// A device of constant service time with several commands in flight.
#[derive(Debug, Clone)]
pub(crate) struct Null {
    profile: NullProfile,
    pending: Pending,
}

impl Null {
    pub(crate) fn new(profile: &NullProfile) -> Null {
        Null { profile: *profile, pending: Pending::default() }
    }

    /// Capacity in sectors of 512 bytes.
    pub(crate) fn capacity_sectors(&self) -> u64 {
        self.profile.capacity_sectors
    }

    /// The largest number of commands in flight.
    pub(crate) fn depth(&self) -> u32 {
        self.profile.depth
    }

    pub(crate) fn submit(&mut self, now_ns: u64, tag: u32, _: &Command) {
        let phases = Phases { overhead_ns: self.profile.service_ns, ..Phases::default() };
        let finish_ns = now_ns.saturating_add(self.profile.service_ns);
        self.pending.add(tag, Service { finish_ns, phases, source: Source::Buffer, cylinder: 0 }, Status::Done);
    }

    #[inline]
    pub(crate) fn next_event_ns(&self) -> Option<u64> {
        self.pending.next_event_ns()
    }

    #[inline]
    pub(crate) fn poll(&mut self, now_ns: u64) -> Option<Completion> {
        self.pending.poll(now_ns)
    }
}
