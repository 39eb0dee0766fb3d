//! Films: every step of the requests of one run in a window of its time, to be watched slowly.

use std::cell::Cell;
use std::collections::HashSet;

use super::request::CompareRequest;
use super::run::check;
use crate::error::SimError;
use crate::record::{STEPS_MAX, Slice, Step, StepKind};
use crate::world::{self, Stop, WorldRequest};

/// The part of a run that a film shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilmWindow {
    /// Start, in ns since the start of the world.
    pub from_ns: u64,
    /// End, in ns since the start of the world.
    pub until_ns: u64,
    /// The maximum number of steps after the start.
    pub steps: usize,
}

/// One run in slow motion.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Film {
    /// Name of the elevator.
    pub elevator: String,
    /// Sectors of the drive, of 512 bytes.
    pub capacity_sectors: u64,
    /// True if the drive is a disk, whose head moves.
    pub rotational: bool,
    /// Start of the film, in ns since the start of the world.
    pub from_ns: u64,
    /// End of the film: that of the window, or the last step.
    pub until_ns: u64,
    /// True if the window has more steps than the film.
    pub is_cut: bool,
    /// The processes of the jobs.
    pub processes: Vec<FilmedProcess>,
    /// The steps in the order of time. Those before `from_ns` belong to requests that were in the
    /// queue or in the drive at that time.
    pub steps: Vec<Step>,
    /// The slices that the elevator gave to queues; empty if it has none.
    pub slices: Vec<Slice>,
}

/// A process of a film.
#[derive(Clone, Debug, serde::Serialize)]
pub struct FilmedProcess {
    /// Process id.
    pub pid: u32,
    /// Name of the job.
    pub name: String,
}

/// Runs the jobs under the first elevator of the request until the end of the window.
///
/// # Errors
/// The errors of [`compare`](crate::compare), but [`SimError::Cancelled`].
pub fn film(request: &CompareRequest, window: FilmWindow) -> Result<Film, SimError> {
    check(request)?;
    let Some(elevator) = request.elevators.first().copied() else {
        return Err(SimError::NoElevators { known: String::new() });
    };
    let world = WorldRequest {
        jobs: &request.jobs,
        profile: &request.profile,
        host: &request.host,
        elevator,
        settings: &request.settings,
        seed: request.seed,
        record: true,
        scripts: &[],
    };
    let now_ns = Cell::new(0);
    let stop = || (now_ns.get() > window.until_ns).then_some(Stop::Keep);
    let result = world::film(&world, &stop, &mut |progress| now_ns.set(progress.now_ns))?;
    let processes =
        result.processes.iter().map(|process| FilmedProcess { pid: process.plan.pid, name: process.job.name.clone() });
    let processes = processes.collect();
    let all = result.recording.steps;
    let is_full = all.len() >= STEPS_MAX;
    let (steps, is_cut) = within(all, window);
    let last_ns = steps.last().map_or(window.from_ns, |step| step.at_ns.max(window.from_ns));
    let is_cut = is_cut || (is_full && last_ns < window.until_ns);
    let until_ns = if is_cut { last_ns } else { window.until_ns.min(result.end_ns) };
    let slices = result.recording.slices.into_iter();
    let slices = slices.filter(|slice| slice.end_ns >= window.from_ns && slice.start_ns <= until_ns).collect();
    Ok(Film {
        elevator: request.host.kernel.map_or(elevator.info().name, |kernel| kernel.elevator_name(elevator)).to_owned(),
        capacity_sectors: request.profile.capacity_sectors(),
        rotational: request.profile.is_rotational(),
        from_ns: window.from_ns,
        until_ns,
        is_cut,
        processes,
        steps,
        slices,
    })
}

/// The steps of a window, and the earlier steps of requests that were not complete at its start.
/// The second value is true if steps were left out.
fn within(all: Vec<Step>, window: FilmWindow) -> (Vec<Step>, bool) {
    let start = all.partition_point(|step| step.at_ns < window.from_ns);
    let mut open: HashSet<u64> = HashSet::new();
    let mut ended: HashSet<u64> = HashSet::new();
    let mut is_open = vec![false; start];
    // A number may be given to a later request: the last end before the window counts.
    for (index, step) in all[..start].iter().enumerate().rev() {
        match step.kind {
            StepKind::Complete | StepKind::Join if !open.contains(&step.request) => {
                ended.insert(step.request);
            }
            _ if !ended.contains(&step.request) => {
                open.insert(step.request);
                is_open[index] = true;
            }
            _ => {}
        }
    }
    let mut steps: Vec<Step> =
        all[..start].iter().zip(is_open).filter(|(_, is_open)| *is_open).map(|(step, _)| *step).collect();
    let inside = all[start..].iter().take_while(|step| step.at_ns <= window.until_ns);
    let count = inside.clone().count();
    steps.extend(inside.take(window.steps));
    (steps, count > window.steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(at_ns: u64, request: u64, kind: StepKind) -> Step {
        Step { at_ns, kind, request, pid: 1, sector: 0, sectors: 8, is_write: false }
    }

    #[test]
    fn requests_that_wait_at_the_start_of_the_window_are_in_the_film() {
        let all = vec![
            step(1, 1, StepKind::Insert),
            step(2, 2, StepKind::Insert),
            step(3, 1, StepKind::Issue),
            step(4, 1, StepKind::Complete),
            step(5, 3, StepKind::Insert),
            step(6, 2, StepKind::Issue),
            step(7, 3, StepKind::Issue),
        ];
        let window = FilmWindow { from_ns: 5, until_ns: 9, steps: 2 };
        let (steps, is_cut) = within(all.clone(), window);
        assert_eq!(steps, [all[1], all[4], all[5]]);
        assert!(is_cut, "the last step is left out");
        assert!(!within(all, FilmWindow { steps: 3, ..window }).1);
    }
}
