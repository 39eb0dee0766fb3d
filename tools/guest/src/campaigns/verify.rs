//! Verified load under one elevator, and during switches among all of them.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use super::{Context, Verdict, add, require_progress};
use crate::Outcome;
use crate::device::Queue;
use crate::load::{Load, Setup};
use crate::plan;
use crate::prng::Prng;
use crate::protocol::Counts;

/// The longest time of a request under load that a campaign accepts: QEMU emulates the processor,
/// and other programs run on the host.
pub const LONGEST_MS: u64 = 45_000;

/// The longest time of a switch of elevators: the kernel waits until all requests in the old one
/// are complete. The kernel's own mq-deadline takes 5 s at times.
const SWITCH_MS_MAX: u64 = 12_000;

/// The time between two looks at the state of a queue whose elevator is being switched.
const STATE_INTERVAL: Duration = Duration::from_secs(2);

/// Runs verified load under one elevator.
pub fn verify(context: &mut Context, device: &plan::Device, elevator: &str, seconds: u64) -> Verdict {
    let device = context.device(device, elevator)?;
    let load = Load::start(Setup::new(&device.path(), context.prng.number()))?;
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(seconds) && !load.has_failed() {
        thread::sleep(Duration::from_millis(100));
    }
    let counts = load.finish()?;
    require_progress(&counts, context.plan.limit(LONGEST_MS))?;
    Ok(counts)
}

/// Runs verified load while a thread selects one elevator after the other, changes the number of
/// requests, and reads and writes tunables.
pub fn switch(context: &mut Context, device: &plan::Device, switches: u64, pause_ms: u64) -> Verdict {
    let device = context.device(device, "none")?;
    let load = Load::start(Setup::new(&device.path(), context.prng.number()))?;
    let mut counts = Counts::new();
    let mut switched = Ok(());
    for _ in 0..switches {
        switched = one_switch(context, &device.queue(), pause_ms, &mut counts);
        if switched.is_err() || load.has_failed() {
            break;
        }
    }
    // The damage that the load found explains more than a switch that failed.
    add(&mut counts, load.finish()?);
    switched?;
    require_progress(&counts, context.plan.limit(LONGEST_MS))?;
    Ok(counts)
}

/// Selects an elevator. Returns the states of the old one in the meantime.
fn select(queue: &Queue, elevator: &str) -> Outcome<String> {
    thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        scope.spawn(move || sender.send(queue.select(elevator)));
        let mut states = String::new();
        loop {
            match receiver.recv_timeout(STATE_INTERVAL) {
                Ok(selected) => return selected.map(|()| states),
                Err(RecvTimeoutError::Timeout) => states.push_str(&queue.elevator_state()),
                Err(RecvTimeoutError::Disconnected) => return Err("the thread that selects panicked".to_owned()),
            }
        }
    })
}

/// Selects an elevator at random and uses its files.
pub fn one_switch(context: &mut Context, queue: &Queue, pause_ms: u64, counts: &mut Counts) -> Outcome<()> {
    let Some(elevator) = context.prng.pick(&context.plan.elevators) else {
        return Err("the plan names no elevators".to_owned());
    };
    let (before, begun) = (queue.selected()?, Instant::now());
    let states = select(queue, elevator)?;
    let elapsed = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    let settings = std::mem::take(&mut context.settings);
    let most = context.plan.limit(SWITCH_MS_MAX);
    if elapsed > most {
        return Err(format!(
            "the switch from {before} to {elevator} took {elapsed} ms; {most} ms is the most; set before: \
             {}; every {} s the queue was\n{states}",
            settings.join(", "),
            STATE_INTERVAL.as_secs(),
        ));
    }
    let prng: &mut Prng = &mut context.prng;
    let mut part = Counts::from([("switches".to_owned(), 1), ("longest_switch_ms".to_owned(), elapsed)]);
    if prng.below(2) == 0 {
        let requests = prng.between(4, 512);
        let accepted = queue.set_requests(requests)?;
        part.insert(if accepted { "sizes_set" } else { "sizes_refused" }.to_owned(), 1);
        context.settings.push(format!("nr_requests={requests}"));
    }
    for _ in 0..prng.below(3) {
        let [read, written, refused] = queue.exercise_tunables(prng, &mut context.settings)?;
        let figures = [("tunables_read", read), ("tunables_written", written), ("tunables_refused", refused)];
        add(&mut part, figures.map(|(name, figure)| (name.to_owned(), figure)).into());
    }
    add(counts, part);
    thread::sleep(Duration::from_millis(prng.below(pause_ms + 1)));
    Ok(())
}
