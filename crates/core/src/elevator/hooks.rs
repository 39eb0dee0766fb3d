//! The greater steps of a request's way, each elevator's in a function of its own: inlined into one that has them all, the smallest elevator
//! would pay for the registers and the frame that the largest needs. An elevator that calls itself does so through these too: what it
//! consists of then has one place to be inlined at.

use super::queue_core::QueueCore;
use super::{Elevator, tables::HostTypes};
use crate::collections::Slot;

#[inline(never)]
pub fn allocate<H: HostTypes, E: Elevator<H>>(elevator: &mut E, core: &mut QueueCore<H>, request: Slot) {
    elevator.allocate(core, request);
}
#[inline(never)]
pub fn free<H: HostTypes, E: Elevator<H>>(elevator: &mut E, core: &mut QueueCore<H>, request: Slot) {
    elevator.free(core, request);
}
#[inline(never)]
pub fn insert<H: HostTypes, E: Elevator<H>>(elevator: &mut E, core: &mut QueueCore<H>, request: Slot) {
    elevator.insert(core, request);
}
#[inline(never)]
pub fn dispatch<H: HostTypes, E: Elevator<H>>(elevator: &mut E, core: &mut QueueCore<H>, force: bool) -> u32 {
    elevator.dispatch(core, force)
}
#[inline(never)]
pub fn complete<H: HostTypes, E: Elevator<H>>(elevator: &mut E, core: &mut QueueCore<H>, request: Slot) {
    elevator.complete(core, request);
}
