//! "cfq-bw": CFQ with time slices and priority lists (cfq-v3), with bandwidth reservations over it.
//!
//! The idea is a bandwidth class between CFQ's real-time and best-effort classes (Lunde, Espeland,
//! Stensland, Petlund and Halvorsen). See `bandwidth` for the layer and [`super::cfq_v3`] for the
//! elevator below it.

use super::bandwidth::{self, Bandwidth};
use super::cfq_v3::{self, CfqV3};
use crate::elevator::info::Info;
use crate::elevator::tunable::Tunable;
use crate::layer::BlockLayer;

/// The reservation layer over cfq-v3.
pub(crate) type CfqBw<H> = Bandwidth<H, CfqV3<H>>;

const INNER: &[Tunable] = cfq_v3::INFO.tunables;
const TUNABLES: [Tunable; bandwidth::COUNT + INNER.len()] = join(INNER);

/// Joins the layer's tunables and those of the inner elevator.
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

/// The row of the registry.
pub(crate) const INFO: Info = Info {
    name: "cfq-bw",
    aliases: &[],
    kernel: "2.6.18's CFQ (as long as nothing is reserved)",
    in_linux: "never",
    headline: "cfq-v3 with bandwidth reservations for processes",
    idea: "A process may reserve bandwidth in bytes a second. Requests within reservations are \
           served in ascending sweeps, before best effort. Requests beyond a reservation wait \
           until there are no others. All other requests are cfq-v3's.",
    suits: "Media streams, recorders and clients with guaranteed bandwidth, beside others that \
            share the rest. Without reservations it decides as cfq-v3.",
    layer: BlockLayer::V2_6_18,
    groups: false,
    reservations: true,
    nr_requests: None,
    hashes_back_merges: true,
    tunables: &TUNABLES,
};
