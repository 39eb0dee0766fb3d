//! Doing the requests of a trace again: on a file or a block device, on an NBD server, or on the
//! model of a drive in virtual time.
//!
//! ```text
//!  RequestTracker ─▶ Plan (what, when, after what) ─▶ Replay ─submits─▶ Target (Device on an engine, or an NBD connection)
//!                                               └─◀─ done ─────┘        ─▶ Outcome (lag, latency, throughput; beside the recorded ones)
//! ```
//!
//! It is one loop for all targets: the engine tells the time, which with a drive's model is a
//! virtual one ([`Virtual`]).

mod dependent;
mod figures;
mod nbd;
mod on_device;
mod plan;
mod report;
mod safety;
mod trace;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;

use hoistway_blockdev::DeviceError;
use hoistway_reactor::{Engine, Event, Signal};

pub use figures::{Figures, KindFigures, Outcome, ProcessFigures};
pub use hoistway_reactor::Virtual;
pub use nbd::NbdTarget;
pub use on_device::DeviceTarget;
pub use plan::{Fit, Kind, LeftOut, Level, Plan, PlanBuilder, Planned, Unfit};
pub use report::{KINDS, Percentiles, ProcessTotals, ReplayFigures, ReplayReport, RequestTotals};
pub use safety::{InUse, check_unused};
pub use trace::{ReplayTrace, ReplayTraceError, Selection};

use dependent::Dependents;

/// Requests under way at once, at most: beyond, what is due waits, and that shows as lag.
pub const OUTSTANDING_MAX: usize = 4096;
/// Requests that are submitted before the clock is looked at again.
const SUBMITTED_AT_ONCE: usize = 32;

/// When requests are submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timing {
    /// At the times at which they were recorded.
    Recorded,
    /// As soon as fewer than so many are under way, in the recorded order.
    Asap {
        /// At least 1.
        depth: usize,
    },
    /// When what they waited for is over, and then after the recorded pause: see
    /// [`hoistway_trace::dependencies`].
    Dependent,
}

/// How a plan is done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// When requests are submitted.
    pub timing: Timing,
    /// What times between requests, and pauses, are multiplied by: 0.5 is twice as fast.
    pub scale: f64,
}

/// Something that requests are done on.
pub trait Target<E: Engine> {
    /// Begins a request: number `index` of the plan.
    fn submit(&mut self, engine: &mut E, now_ns: u64, index: u32, request: &Planned);

    /// Works, and tells which requests are over: their numbers, and the error if there is one.
    fn run(&mut self, engine: &mut E, now_ns: u64, done: &mut Vec<(u32, Option<String>)>);

    /// When [`Target::run`] has to be called next if nothing happens before.
    fn wake_ns(&self) -> Option<u64>;

    /// Something has happened.
    ///
    /// # Errors
    /// When nothing can be done on the target any more.
    fn take(&mut self, engine: &mut E, event: Event, now_ns: u64) -> Result<(), ReplayError>;
}

/// Why a replay was not possible, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The target cannot be opened.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// Requests cannot be done there.
    #[error("{target}: {what}")]
    Target {
        /// What it is called.
        target: String,
        /// What is wrong with it, and what would be right.
        what: String,
    },
    /// The engine is broken.
    #[error("the engine failed: {0}")]
    Engine(#[from] io::Error),
}

/// How far a replay is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Requests that are over.
    pub done: usize,
    /// Since the beginning, in ns.
    pub elapsed_ns: u64,
}

/// Does a plan. `watch` is told how far it is, now and then, and answers whether to go on; a signal
/// ends it as well. What is under way then is waited for.
///
/// # Errors
/// When the target or the engine breaks down. That a request fails is none: it is counted.
pub fn replay<E: Engine, T: Target<E>>(
    plan: &Plan,
    options: &Options,
    target: &mut T,
    engine: &mut E,
    watch: &mut dyn FnMut(Progress) -> bool,
) -> Result<Outcome, ReplayError> {
    engine.require_precise_timers();
    let mut replay = Replay::new(plan, *options, engine.now_ns());
    let (mut done, mut events) = (Vec::new(), Vec::new());
    loop {
        let now_ns = engine.now_ns();
        replay.submit_due(target, engine, now_ns);
        target.run(engine, now_ns, &mut done);
        let took = done.len();
        done.drain(..).for_each(|(index, error)| replay.over(index, error, now_ns));
        if replay.is_over() {
            return Ok(replay.outcome(now_ns));
        }
        let progress = Progress { done: replay.done, elapsed_ns: now_ns.saturating_sub(replay.start_ns) };
        if !replay.stopped && !watch(progress) {
            replay.stop();
            continue;
        }
        // What was let go by completions may be due at once.
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

/// A plan that is being done.
struct Replay<'a> {
    plan: &'a Plan,
    options: Options,
    start_ns: u64,
    /// The next request, of timings that keep the recorded order.
    next: usize,
    dependents: Option<Dependents>,
    /// Requests of which it is known when they are due, of dependent timing.
    due: BinaryHeap<Reverse<(u64, u32)>>,
    /// When each request that is under way was submitted; 0 for others.
    submitted_ns: Vec<u64>,
    under_way: usize,
    done: usize,
    stopped: bool,
    outcome: Outcome,
}

impl<'a> Replay<'a> {
    fn new(plan: &'a Plan, options: Options, start_ns: u64) -> Replay<'a> {
        let mut replay = Replay {
            plan,
            options,
            start_ns,
            next: 0,
            dependents: None,
            due: BinaryHeap::new(),
            submitted_ns: vec![0; plan.requests().len()],
            under_way: 0,
            done: 0,
            stopped: false,
            outcome: Outcome::new(plan),
        };
        if options.timing == Timing::Dependent {
            let mut dependents = Dependents::new(plan);
            let scaled = |ns: u64| scaled(ns, options.scale);
            dependents.begin(plan, &scaled, &mut |index, at_ns| {
                replay.due.push(Reverse((start_ns.saturating_add(at_ns), index)))
            });
            replay.dependents = Some(dependents);
        }
        replay
    }

    /// Submits what is due, a bounded number.
    fn submit_due<E: Engine, T: Target<E>>(&mut self, target: &mut T, engine: &mut E, now_ns: u64) {
        for _ in 0..SUBMITTED_AT_ONCE {
            let Some((due_ns, index)) = self.peek(now_ns).filter(|_| self.may_submit()) else { return };
            if due_ns > now_ns {
                return;
            }
            if self.options.timing == Timing::Dependent {
                self.due.pop();
            } else {
                self.next += 1;
            }
            let Some(request) = self.plan.requests().get(index as usize) else { return };
            // 0 stands for those that are not under way.
            self.submitted_ns[index as usize] = now_ns.max(1);
            self.under_way += 1;
            self.outcome.submitted(now_ns - due_ns, self.under_way);
            target.submit(engine, now_ns, index, request);
        }
    }

    /// The next request that is to be submitted, and when it is due.
    fn peek(&self, now_ns: u64) -> Option<(u64, u32)> {
        if self.stopped {
            return None;
        }
        match self.options.timing {
            Timing::Dependent => self.due.peek().map(|Reverse(due)| *due),
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
        self.under_way < most
    }

    /// When there is something to do, if nothing happens before.
    fn next_ns(&self, now_ns: u64, wake_ns: Option<u64>) -> Option<u64> {
        let due_ns = if self.may_submit() { self.peek(now_ns).map(|(due_ns, _)| due_ns) } else { None };
        [due_ns, wake_ns].into_iter().flatten().min()
    }

    /// A request is over.
    fn over(&mut self, index: u32, error: Option<String>, now_ns: u64) {
        let Some(submitted_ns) = self.submitted_ns.get_mut(index as usize) else { return };
        let latency_ns = now_ns.saturating_sub(std::mem::take(submitted_ns));
        self.under_way = self.under_way.saturating_sub(1);
        self.done += 1;
        let Some(request) = self.plan.requests().get(index as usize) else { return };
        self.outcome.over(request, latency_ns, error);
        let Some(dependents) = &mut self.dependents else { return };
        let scale = self.options.scale;
        let elapsed_ns = now_ns.saturating_sub(self.start_ns);
        let (due, start_ns) = (&mut self.due, self.start_ns);
        let mut let_go = |index: u32, at_ns: u64| due.push(Reverse((start_ns.saturating_add(at_ns), index)));
        dependents.completed(self.plan, request.process, elapsed_ns, &|ns| scaled(ns, scale), &mut let_go);
    }

    /// No further request is begun.
    fn stop(&mut self) {
        self.stopped = true;
    }

    fn is_over(&self) -> bool {
        self.under_way == 0 && (self.stopped || self.done == self.plan.requests().len())
    }

    fn outcome(mut self, now_ns: u64) -> Outcome {
        self.outcome.replayed.elapsed_ns = now_ns.saturating_sub(self.start_ns);
        self.outcome.interrupted = self.done < self.plan.requests().len();
        self.outcome
    }
}

/// A time or a pause, scaled. One beyond all times is the end of them.
fn scaled(ns: u64, scale: f64) -> u64 {
    if scale == 1.0 {
        return ns;
    }
    // A float of that size is rounded to 2^11 ns at most after 100 days: far below what a
    // submission is late by.
    (ns as f64 * scale).clamp(0.0, (u64::MAX / 4) as f64) as u64
}

#[cfg(test)]
mod tests;
