//! The description of an elevator: its row in the registry.

use super::tunable::Tunable;
use crate::layer::BlockLayer;

/// What there is to tell of an elevator.
#[derive(Clone, Copy, Debug)]
pub struct Info {
    /// Its name.
    pub name: &'static str,
    /// Other names that it goes by.
    pub aliases: &'static [&'static str],
    /// The kernels whose decisions it takes.
    pub kernel: &'static str,
    /// The kernels that had it, in a word or two: "2.6.6-2.6.9", "posted 2003", "never".
    pub in_linux: &'static str,
    /// The idea on a line of a list: at most 52 characters.
    pub headline: &'static str,
    /// How it works, in a few sentences.
    pub idea: &'static str,
    /// What it is good for, and what not.
    pub suits: &'static str,
    /// Its tunables, in the order in which they are numbered.
    pub tunables: &'static [Tunable],
    /// The block layer that it worked in.
    pub layer: BlockLayer,
    /// Whether it divides the disk among groups; the others treat all contexts as of one group.
    pub groups: bool,
    /// Whether processes can reserve bandwidth from it as it is; from the others they can with the layer over them
    /// ([`ElevatorStorage::make_reserving`](crate::ElevatorStorage::make_reserving)).
    pub reservations: bool,
    /// The size of the pool of requests a direction that it asked for when it was attached, in kernels whose elevators did.
    pub(crate) nr_requests: Option<u32>,
    /// Whether it looked for back merges by itself in kernels whose block layer did not.
    pub(crate) hashes_back_merges: bool,
}
