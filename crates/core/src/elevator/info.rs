//! The description of an elevator: its row in the registry.

use super::tunable::Tunable;
use crate::layer::BlockLayer;

/// The description of an elevator.
#[derive(Clone, Copy, Debug)]
pub struct Info {
    /// The name.
    pub name: &'static str,
    /// Alternative names.
    pub aliases: &'static [&'static str],
    /// The kernel version whose decisions the elevator reproduces; for a custom elevator, its own
    /// version.
    pub kernel: &'static str,
    /// The kernel versions that contained it: "2.6.6-2.6.9", "posted 2003", "never".
    pub in_linux: &'static str,
    /// The idea in one line of at most 52 characters.
    pub headline: &'static str,
    /// The algorithm, in a few sentences.
    pub idea: &'static str,
    /// Workloads for which it is suitable or unsuitable.
    pub suits: &'static str,
    /// The tunables, in index order.
    pub tunables: &'static [Tunable],
    /// The block layer of its kernel.
    pub layer: BlockLayer,
    /// Whether the elevator shares the disk among groups; others treat all contexts as one group.
    pub groups: bool,
    /// Whether the elevator itself supports bandwidth reservations. For the others, use the layer
    /// ([`ElevatorStorage::make_reserving`](crate::ElevatorStorage::make_reserving)).
    pub reservations: bool,
    /// The pool size per direction that the elevator set when it was attached, if it did.
    pub(crate) nr_requests: Option<u32>,
    /// Whether the elevator searched for back merges in kernels whose block layer did not.
    pub(crate) hashes_back_merges: bool,
}
