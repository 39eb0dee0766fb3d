//! The steps on a request's path, as one non-inlined function for each elevator. If all were
//! inlined into one function, the smallest elevator would pay for the registers and stack frame of
//! the largest. Elevators that call themselves also use these functions, so that each step is
//! inlined in one place.

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
