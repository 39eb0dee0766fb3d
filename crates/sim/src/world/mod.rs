//! The simulated world: processes, host and disk in virtual time.
//!
//! Events happen in a total order, so that a seed replays a run. The order is by time. At one
//! instant, completions come first and the queue's timers last; other events keep the order in
//! which they were scheduled.

mod buffered;
mod build;
mod choose;
mod device;
mod devices;
mod direct;
mod event_loop;
mod failing;
mod faults;
mod flusher;
mod job_state;
mod journal;
pub(crate) mod layout;
mod pace;
mod process;
mod processes;
mod recorded;
mod request;
mod slab;
mod state;
mod sync;
mod task;
mod threads;
mod walk;
mod writeback;

use hoistway_core::NoSink;

use crate::error::SimError;
use crate::record::{FilmRecorder, SliceRecorder, Watch};
pub(crate) use devices::DriveId;
pub(crate) use job_state::Ending;
pub(crate) use process::{DirectionStats, Process, Stats};
pub(crate) use request::{Failures, Stop, WorldProgress, WorldRequest, WorldResult};
use state::World;
#[cfg(test)]
pub(crate) use task::ProcessId;
pub(crate) use task::Task;

/// Runs a world to its end, or until `stop` returns how to stop.
pub(crate) fn run(
    request: &WorldRequest,
    stop: &dyn Fn() -> Option<Stop>,
    progress: &mut dyn FnMut(WorldProgress),
) -> Result<WorldResult, SimError> {
    match request.record {
        // The code of a world is large: a module for browsers has one for all purposes.
        _ if cfg!(target_family = "wasm") => {
            watched(request, if request.record { Watch::Slices } else { Watch::Nothing }, stop, progress)
        }
        true => World::<SliceRecorder>::new(request)?.run(stop, progress),
        false => World::<NoSink>::new(request)?.run(stop, progress),
    }
}

/// Runs a world until `stop` returns how to stop, and records the steps of its requests.
pub(crate) fn film(
    request: &WorldRequest,
    stop: &dyn Fn() -> Option<Stop>,
    progress: &mut dyn FnMut(WorldProgress),
) -> Result<WorldResult, SimError> {
    watched(request, Watch::Steps, stop, progress)
}

fn watched(
    request: &WorldRequest,
    watch: Watch,
    stop: &dyn Fn() -> Option<Stop>,
    progress: &mut dyn FnMut(WorldProgress),
) -> Result<WorldResult, SimError> {
    let mut world = World::<FilmRecorder>::new(request)?;
    world.devices[devices::MAIN].watch(watch);
    world.run(stop, progress)
}
