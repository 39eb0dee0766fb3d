//! "cfq-bw": CFQ with time slices and priority lists, and reserved bandwidth over it.
//!
//! The idea is that of a bandwidth class between CFQ's real-time and best-effort classes (Lunde, Espeland, Stensland, Petlund and
//! Halvorsen): see `bandwidth` for how it is built here, and [`super::cfq_v3`] for what is below.

use super::bandwidth::{self, Bandwidth};
use super::cfq_v3::{self, CfqV3};
use crate::elevator::info::Info;
use crate::elevator::tunable::Tunable;
use crate::layer::BlockLayer;

/// The layer over CFQ.
pub(crate) type CfqBw<H> = Bandwidth<H, CfqV3<H>>;

const INNER: &[Tunable] = cfq_v3::INFO.tunables;
const TUNABLES: [Tunable; bandwidth::COUNT + INNER.len()] = join(INNER);

/// The layer's tunables and then the inner elevator's.
const fn join<const N: usize>(inner: &[Tunable]) -> [Tunable; N] {
    let [first, ..] = bandwidth::ROWS;
    let mut joined = [first; N];
    let (mut to, mut own, mut inner): (&mut [Tunable], &[Tunable], &[Tunable]) = (&mut joined, &bandwidth::ROWS, inner);
    while let Some((place, rest)) = to.split_first_mut() {
        if let Some((row, others)) = own.split_first() {
            (*place, own) = (*row, others);
        } else if let Some((row, others)) = inner.split_first() {
            (*place, inner) = (*row, others);
        }
        to = rest;
    }
    joined
}

/// What the registry tells of the elevator.
pub(crate) const INFO: Info = Info {
    name: "cfq-bw",
    aliases: &[],
    kernel: "2.6.18's CFQ (with reservations as none)",
    in_linux: "never",
    headline: "cfq-v3 with bandwidth that processes reserve",
    idea: "A process may reserve bytes a second. What all reserving processes have a right to by now is served in one ascending \
           sweep, before best effort; what they ask beyond that waits until nobody else asks. The rest is cfq-v3's.",
    suits: "Media streams, recorders and clients with a contract, beside others that take what is left. Without \
            reservations it is cfq-v3.",
    layer: BlockLayer::V2_6_18,
    groups: false,
    reservations: true,
    nr_requests: None,
    hashes_back_merges: true,
    tunables: &TUNABLES,
};
