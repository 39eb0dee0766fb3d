//! Executes the requests of a trace: on a file or a block device, on an NBD server, or on a drive
//! model in virtual time.
//!
//! ```text
//! RequestTracker ─▶ ReplayPlan (requests, times, dependencies) ─▶ Replay ─▶ ReplayOutcome
//!                                                       submissions │ ▲ completions
//!                                                                   ▼ │
//!                          ReplayTarget: a Device on an engine, or connections to an NBD server
//! ```
//!
//! One loop serves all targets: the engine provides the time, which is virtual for a drive model
//! ([`Virtual`]).

mod dependent;
mod figures;
mod nbd;
mod on_device;
mod plan;
mod report;
mod request;
mod trace;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use std::io;

use hoistway_blockdev::DeviceError;
use hoistway_reactor::{Engine, Event, Signal};

pub use figures::{Figures, KindFigures, ProcessFigures, ReplayOutcome};
pub use hoistway_reactor::Virtual;
pub use nbd::NbdTarget;
pub use on_device::DeviceTarget;
pub use plan::{OmittedRequests, Placement, PlacementError, ReplayPlan, ReplayPlanBuilder, TraceLayer};
pub use report::{KINDS, Percentiles, ProcessTotals, ReplayFigures, ReplayReport, RequestTotals};
pub use request::{PlannedRequest, RequestKind};
pub use trace::{ReplayTrace, ReplayTraceError, Selection};

use dependent::Dependents;

/// The largest number of requests in flight. Due requests beyond wait, which shows as lag.
pub const OUTSTANDING_MAX: usize = 4096;
/// The number of requests that are submitted before the clock is read again.
const SUBMITTED_AT_ONCE: usize = 32;

/// The times of submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timing {
    /// The recorded times.
    Recorded,
    /// As soon as fewer than `depth` requests are in flight, in the recorded order.
    Asap {
        /// The number of requests in flight, at least 1.
        depth: usize,
    },
    /// After the requests on which a request depends, and then the recorded pause: see
    /// [`hoistway_trace::dependencies`].
    Dependent,
}

/// The options of a replay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// The times of submission.
    pub timing: Timing,
    /// The factor of times and pauses: 0.5 is twice as fast.
    pub scale: f64,
}

/// A target that executes requests.
pub trait ReplayTarget<E: Engine> {
    /// Submits the request with this index in the plan.
    fn submit(&mut self, engine: &mut E, now_ns: u64, index: u32, request: &PlannedRequest);

    /// Runs the target, and appends the indices of completed requests with their errors to `done`.
    fn run(&mut self, engine: &mut E, now_ns: u64, done: &mut Vec<(u32, Option<String>)>);

    /// Returns the time of the next call of [`ReplayTarget::run`] if no event arrives before.
    fn wake_ns(&self) -> Option<u64>;

    /// Processes an event of the engine.
    ///
    /// # Errors
    /// The target can execute no further requests.
    fn take(&mut self, engine: &mut E, event: Event, now_ns: u64) -> Result<(), ReplayError>;
}

/// An error that ends or prevents a replay.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The target cannot be opened.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The target cannot execute the requests.
    #[error("{target}: {what}")]
    ReplayTarget {
        /// The name of the target.
        target: String,
        /// What is wrong with the target, and what is allowed.
        what: String,
    },
    /// The engine failed.
    #[error("the engine failed: {0}")]
    Engine(#[from] io::Error),
}

/// The progress of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The number of completed requests.
    pub done: usize,
    /// The time since the beginning in ns.
    pub elapsed_ns: u64,
}

/// Replays a plan. `watch` receives the progress now and then, and returns whether to continue; a
/// signal ends the replay too. Requests in flight are awaited in any case.
///
/// # Errors
/// The target or the engine fails. A failed request is not an error of the replay: it is counted.
pub fn replay<E: Engine, T: ReplayTarget<E>>(
    plan: &ReplayPlan,
    options: &Options,
    target: &mut T,
    engine: &mut E,
    watch: &mut dyn FnMut(Progress) -> bool,
) -> Result<ReplayOutcome, ReplayError> {
    engine.require_precise_timers();
    let mut replay = Replay::new(plan, *options, engine.now_ns());
    let (mut done, mut events) = (Vec::new(), Vec::new());
    loop {
        let now_ns = engine.now_ns();
        replay.submit_due(target, engine, now_ns);
        target.run(engine, now_ns, &mut done);
        let took = done.len();
        for (index, error) in done.drain(..) {
            match replay.data_after_flush(index, error.is_some()) {
                Some(data) => target.submit(engine, now_ns, index, &data),
                None => replay.over(index, error, now_ns),
            }
        }
        if replay.is_over() {
            return Ok(replay.outcome(now_ns));
        }
        let progress = Progress { done: replay.done, elapsed_ns: now_ns.saturating_sub(replay.start_ns) };
        if !replay.stopped && !watch(progress) {
            replay.stop();
            continue;
        }
        // Requests that completions have released may be due at once.
        let until_ns = if took > 0 { Some(now_ns) } else { replay.next_ns(now_ns, target.wake_ns()) };
        engine.turn(until_ns, &mut events)?;
        let now_ns = engine.now_ns();
        for event in events.drain(..) {
            match event {
                Event::Signal(Signal::Child) => {}
                Event::Signal(_) => replay.stop(),
                event => target.take(engine, event, now_ns)?,
            }
        }
    }
}

/// A plan in execution.
struct Replay<'a> {
    plan: &'a ReplayPlan,
    options: Options,
    start_ns: u64,
    /// The next request, for timings in the recorded order.
    next: usize,
    dependents: Option<Dependents>,
    /// Due times with the numbers of their processes, for dependent timing.
    due: BinaryHeap<Reverse<(u64, u32)>>,
    /// The submission time of each request in flight; 0 for others.
    submitted_ns: Vec<u64>,
    /// Writes in flight whose preflush has not completed.
    flushing: HashSet<u32>,
    in_flight: usize,
    done: usize,
    stopped: bool,
    outcome: ReplayOutcome,
}

impl<'a> Replay<'a> {
    fn new(plan: &'a ReplayPlan, options: Options, start_ns: u64) -> Replay<'a> {
        let mut replay = Replay {
            plan,
            options,
            start_ns,
            next: 0,
            dependents: None,
            due: BinaryHeap::new(),
            submitted_ns: vec![0; plan.requests().len()],
            flushing: HashSet::new(),
            in_flight: 0,
            done: 0,
            stopped: false,
            outcome: ReplayOutcome::new(plan.processes().len()),
        };
        if options.timing == Timing::Dependent {
            let mut dependents = Dependents::new(plan);
            let scaled = |ns: u64| scaled(ns, options.scale);
            dependents.begin(plan, &scaled, &mut |process, at_ns| {
                replay.due.push(Reverse((start_ns.saturating_add(at_ns), process)))
            });
            replay.dependents = Some(dependents);
        }
        replay
    }

    /// Submits due requests, a bounded number.
    fn submit_due<E: Engine, T: ReplayTarget<E>>(&mut self, target: &mut T, engine: &mut E, now_ns: u64) {
        for _ in 0..SUBMITTED_AT_ONCE {
            let Some((due_ns, index)) = self.peek(now_ns).filter(|_| self.may_submit()) else { return };
            if due_ns > now_ns {
                return;
            }
            match (&mut self.dependents, self.due.pop()) {
                (Some(dependents), Some(Reverse((_, process)))) => dependents.take(process),
                _ => self.next += 1,
            }
            let Some(request) = self.plan.requests().get(index as usize) else { return };
            // 0 stands for requests that are not in flight.
            self.submitted_ns[index as usize] = now_ns.max(1);
            self.in_flight += 1;
            self.outcome.submitted(now_ns - due_ns, self.in_flight);
            if request.preflush {
                self.flushing.insert(index);
                target.submit(engine, now_ns, index, &request.flush_step());
            } else {
                target.submit(engine, now_ns, index, request);
            }
        }
    }

    /// Returns the data of a write whose preflush has completed. None if the request is complete,
    /// or its preflush failed.
    fn data_after_flush(&mut self, index: u32, failed: bool) -> Option<PlannedRequest> {
        if !self.flushing.remove(&index) || failed {
            return None;
        }
        let request = self.plan.requests().get(index as usize)?;
        Some(PlannedRequest { preflush: false, ..*request })
    }

    /// Returns the next request to submit and its due time.
    fn peek(&self, now_ns: u64) -> Option<(u64, u32)> {
        if self.stopped {
            return None;
        }
        match self.options.timing {
            Timing::Dependent => {
                let Reverse((due_ns, process)) = *self.due.peek()?;
                Some((due_ns, self.dependents.as_ref()?.peek(process)?))
            }
            Timing::Asap { .. } => (self.next < self.plan.requests().len()).then_some((now_ns, self.next as u32)),
            Timing::Recorded => {
                let request = self.plan.requests().get(self.next)?;
                Some((self.start_ns.saturating_add(scaled(request.at_ns, self.options.scale)), self.next as u32))
            }
        }
    }

    fn may_submit(&self) -> bool {
        let most = match self.options.timing {
            Timing::Asap { depth } => depth.clamp(1, OUTSTANDING_MAX),
            Timing::Recorded | Timing::Dependent => OUTSTANDING_MAX,
        };
        self.in_flight < most
    }

    /// Returns the time of the next action if no event arrives before.
    fn next_ns(&self, now_ns: u64, wake_ns: Option<u64>) -> Option<u64> {
        let due_ns = if self.may_submit() { self.peek(now_ns).map(|(due_ns, _)| due_ns) } else { None };
        [due_ns, wake_ns].into_iter().flatten().min()
    }

    /// Processes the completion of a request.
    fn over(&mut self, index: u32, error: Option<String>, now_ns: u64) {
        let Some(submitted_ns) = self.submitted_ns.get_mut(index as usize) else { return };
        let latency_ns = now_ns.saturating_sub(std::mem::take(submitted_ns));
        self.in_flight = self.in_flight.saturating_sub(1);
        self.done += 1;
        let Some(request) = self.plan.requests().get(index as usize) else { return };
        self.outcome.over(request, latency_ns, error);
        let Some(dependents) = &mut self.dependents else { return };
        let scale = self.options.scale;
        let elapsed_ns = now_ns.saturating_sub(self.start_ns);
        let (due, start_ns) = (&mut self.due, self.start_ns);
        let mut release = |process: u32, at_ns: u64| due.push(Reverse((start_ns.saturating_add(at_ns), process)));
        dependents.completed(self.plan, request.process, elapsed_ns, &|ns| scaled(ns, scale), &mut release);
    }

    /// Submits no further request.
    fn stop(&mut self) {
        self.stopped = true;
    }

    fn is_over(&self) -> bool {
        self.in_flight == 0 && (self.stopped || self.done == self.plan.requests().len())
    }

    fn outcome(mut self, now_ns: u64) -> ReplayOutcome {
        self.outcome.replayed.elapsed_ns = now_ns.saturating_sub(self.start_ns);
        self.outcome.interrupted = self.done < self.plan.requests().len();
        self.outcome
    }
}

/// Scales a time or a pause; the result is bounded.
fn scaled(ns: u64, scale: f64) -> u64 {
    if scale == 1.0 {
        return ns;
    }
    // A float of this size is exact to 2^11 ns after 100 days, far below the lag of a submission.
    (ns as f64 * scale).clamp(0.0, (u64::MAX / 4) as f64) as u64
}

#[cfg(test)]
mod tests;
