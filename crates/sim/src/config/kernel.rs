//! The kernels whose behaviour a host can take, with the parts and defaults of each.

use hoistway_core::{BlockLayer, Kind};
use hoistway_units::names::did_you_mean;

/// A kernel with a known host configuration. [`HostConfig::kernel`](super::HostConfig::kernel)
/// selects it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub enum Kernel {
    /// Linux 2.4 (2001): bdflush, short read-ahead windows, requests of 128 KiB, a tick of 10 ms.
    #[serde(rename = "2.4")]
    V2_4,
    /// Linux 2.6.18 (2006): pdflush, two read-ahead windows, plugs on the queue.
    #[serde(rename = "2.6.18")]
    V2_6_18,
    /// Linux 2.6.24 (2008): read-ahead on demand, lower dirty limits.
    #[serde(rename = "2.6.24")]
    V2_6_24,
    /// Linux 3.2 (2012): plugs on the task, a flusher a device, writers paused instead of writing
    /// themselves.
    #[serde(rename = "3.2")]
    V3_2,
    /// Linux 4.19 (2018): the last kernel with CFQ, as 3.2 with longer requests and times in ns.
    #[serde(rename = "4.19")]
    V4_19,
    /// Linux 6.1 (2022): the multi-queue block layer.
    #[serde(rename = "6.1")]
    V6_1,
    /// Linux 6.3 (2023): that of 6.1 on a server with ten cores, whose CPU times were measured with
    /// an NVMe drive.
    #[serde(rename = "6.3")]
    V6_3,
    /// Linux 6.12 (2024): as 6.1 for the workloads that are simulated.
    #[serde(rename = "6.12")]
    V6_12,
}

impl Kernel {
    /// All kernels, the oldest first.
    pub const ALL: [Kernel; 8] = [
        Kernel::V2_4,
        Kernel::V2_6_18,
        Kernel::V2_6_24,
        Kernel::V3_2,
        Kernel::V4_19,
        Kernel::V6_1,
        Kernel::V6_3,
        Kernel::V6_12,
    ];

    /// The version in its usual form.
    pub const fn name(self) -> &'static str {
        match self {
            Kernel::V2_4 => "2.4",
            Kernel::V2_6_18 => "2.6.18",
            Kernel::V2_6_24 => "2.6.24",
            Kernel::V3_2 => "3.2",
            Kernel::V4_19 => "4.19",
            Kernel::V6_1 => "6.1",
            Kernel::V6_3 => "6.3",
            Kernel::V6_12 => "6.12",
        }
    }

    /// Finds a kernel by version.
    pub fn from_name(name: &str) -> Option<Kernel> {
        Kernel::ALL.into_iter().find(|kernel| kernel.name() == name)
    }

    /// Finds a kernel by version.
    ///
    /// # Errors
    /// A message with the nearest version and all known versions.
    pub fn parse(name: &str) -> Result<Kernel, String> {
        Kernel::from_name(name).ok_or_else(|| {
            let names = Kernel::ALL.iter().map(|kernel| kernel.name());
            let known = names.clone().collect::<Vec<_>>().join(", ");
            format!("there is no host of kernel `{name}`{}; there are {known}", did_you_mean(name, names))
        })
    }

    /// The block layer of this kernel, which every elevator runs in. That of 3.2 does not differ
    /// from that of 3.4.
    pub const fn layer(self) -> BlockLayer {
        match self {
            Kernel::V2_4 | Kernel::V2_6_18 => BlockLayer::V2_6_18,
            Kernel::V2_6_24 => BlockLayer::V2_6_24,
            Kernel::V3_2 => BlockLayer::V3_4,
            Kernel::V4_19 => BlockLayer::V4_19,
            Kernel::V6_1 | Kernel::V6_3 | Kernel::V6_12 => BlockLayer::V6_1,
        }
    }

    /// The name of an elevator in this kernel: `noop` is called `none` in kernels whose block layer
    /// has many queues, as those of 6.1 and 6.3.
    pub const fn elevator_name(self, elevator: Kind) -> &'static str {
        match (self, elevator) {
            (Kernel::V6_1 | Kernel::V6_3 | Kernel::V6_12, Kind::Noop) => "none",
            _ => elevator.info().name,
        }
    }

    /// Tunables whose defaults in this kernel differ from the elevator's defaults here: the
    /// kernel's form of `deadline`, whose rules changed in 2.6.24 and 2.6.28, and those of CFQ on
    /// flash.
    ///
    /// `cfq` has the form of 4.19. Up to 4.2, CFQ kept `slice_idle` at 8 ms on a device without an
    /// arm too, and so charged time instead of requests. It did not idle on a device with its own
    /// queue, not even for a group, which `group_idle` 0 expresses.
    pub(crate) fn defaults_of(self, elevator: Kind, rotational: bool) -> &'static [(&'static str, i64)] {
        match (self, elevator.info().name) {
            (Kernel::V2_4 | Kernel::V2_6_18 | Kernel::V2_6_24 | Kernel::V3_2, "cfq") if !rotational => {
                &[("slice_idle", 8), ("group_idle", 0)]
            }
            (Kernel::V2_6_24, "deadline") => &[("form", 1)],
            (Kernel::V3_2 | Kernel::V4_19 | Kernel::V6_1 | Kernel::V6_3 | Kernel::V6_12, "deadline") => &[("form", 2)],
            (Kernel::V6_12, "mq-deadline") => &[("form", 1)],
            _ => &[],
        }
    }
}
