//! The kernels that a host can be set to: which defaults and which parts each of them had.

use hoistway_core::{BlockLayer, Kind};

/// A kernel whose host is known. [`HostConfig::kernel`] selects all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub enum Kernel {
    /// Linux 2.6.18 (2006): pdflush, two read-ahead windows, plugs on the queue.
    #[serde(rename = "2.6.18")]
    V2_6_18,
    /// Linux 2.6.24 (2008): read-ahead on demand, lower dirty limits.
    #[serde(rename = "2.6.24")]
    V2_6_24,
    /// Linux 3.2 (2012): plugs on the task, a flusher a device, writers paused instead of writing themselves.
    #[serde(rename = "3.2")]
    V3_2,
    /// Linux 6.1 (2022): the multi-queue block layer.
    #[serde(rename = "6.1")]
    V6_1,
}

impl Kernel {
    /// All of them, the oldest first.
    pub const ALL: [Kernel; 4] = [Kernel::V2_6_18, Kernel::V2_6_24, Kernel::V3_2, Kernel::V6_1];

    /// Its version, as users write it.
    pub const fn name(self) -> &'static str {
        match self {
            Kernel::V2_6_18 => "2.6.18",
            Kernel::V2_6_24 => "2.6.24",
            Kernel::V3_2 => "3.2",
            Kernel::V6_1 => "6.1",
        }
    }

    /// The kernel of this version, if it is one of those that are known.
    pub fn from_name(name: &str) -> Option<Kernel> {
        Kernel::ALL.into_iter().find(|kernel| kernel.name() == name)
    }

    /// The block layer that every elevator runs in on this kernel. 3.2's does not differ from 3.4's.
    pub const fn layer(self) -> BlockLayer {
        match self {
            Kernel::V2_6_18 => BlockLayer::V2_6_18,
            Kernel::V2_6_24 => BlockLayer::V2_6_24,
            Kernel::V3_2 => BlockLayer::V3_4,
            Kernel::V6_1 => BlockLayer::V6_1,
        }
    }

    /// Tunables that an elevator had other defaults for than it has here: the kernel's form of `deadline`, whose rules changed in 2.6.24
    /// and 2.6.28, and CFQ's on flash.
    ///
    /// `cfq` is the form of 4.19. Until 4.2 it kept `slice_idle` at 8 ms on a device without an arm, too, and so went on to charge
    /// time and not requests; what made it work there was that it did not wait where the device queues by itself, not even for a
    /// group, which is what `group_idle` 0 says.
    pub(crate) fn defaults_of(self, elevator: Kind, rotational: bool) -> &'static [(&'static str, i64)] {
        match (self, elevator.info().name) {
            (Kernel::V2_6_18 | Kernel::V2_6_24 | Kernel::V3_2, "cfq") if !rotational => {
                &[("slice_idle", 8), ("group_idle", 0)]
            }
            (Kernel::V2_6_24, "deadline") => &[("form", 1)],
            (Kernel::V3_2 | Kernel::V6_1, "deadline") => &[("form", 2)],
            _ => &[],
        }
    }
}
