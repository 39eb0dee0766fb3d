//! A device that takes the same time for everything: what is left is what the software above it costs.

use crate::profile::NullProfile;
use crate::{Phases, Service, Source};

/// A device of constant service time that takes several commands at once.
#[derive(Debug, Clone)]
pub struct Null {
    profile: NullProfile,
}

impl Null {
    pub(crate) fn new(profile: &NullProfile) -> Null {
        Null { profile: *profile }
    }

    /// How many sectors the device has.
    pub fn capacity_sectors(&self) -> u64 {
        self.profile.capacity_sectors
    }

    /// How many commands it takes at once.
    pub fn depth(&self) -> u32 {
        self.profile.depth
    }

    pub(crate) fn start(&self, now_ns: u64) -> Service {
        let phases = Phases { overhead_ns: self.profile.service_ns, ..Phases::default() };
        let finish_ns = now_ns.saturating_add(self.profile.service_ns);
        Service { finish_ns, phases, source: Source::Buffer, cylinder: 0 }
    }
}
