//! The request queue by hand.

use std::collections::HashMap;

use hoistway_core::{
    Bio, Capacity, Class, ClockConfig, ContextId, DeferredWork, ElevatorStorage, Flags, Kick, Next, NoSink, Op,
    Priority, QueueConfig, RequestId, RequestQueue, Storage, Submitted, TunableError,
};
use hoistway_custom::Host;
use hoistway_sim::elevator_of_name;
use pyo3::prelude::*;

use crate::custom::{op_name, take_exception};
use crate::error::{HoistwayError, wrong_argument};

/// A request queue with an elevator; each call passes the time.
#[pyclass(module = "hoistway")]
pub struct QueueCore {
    /// Boxed, because Python aligns objects to 16 bytes only, and tables of the queue to 64.
    queue: Box<RequestQueue<Host<NoSink>>>,
    /// The processes with their ids.
    contexts: Vec<(ContextId, u32)>,
    /// Requests that were dispatched and are not complete, by their own token.
    dispatched: HashMap<u64, RequestId>,
    /// Bios of processes that sleep until a request is free.
    asleep: Vec<Bio>,
    last_ns: u64,
    must_run: bool,
}

/// A dispatched request: its token, operation, first sector, sectors, process, and the tokens of
/// all of its bios.
type Dispatched = (u64, &'static str, u64, u32, Option<u32>, Vec<u64>);

#[pymethods]
impl QueueCore {
    /// Creates a queue.
    #[new]
    fn new(
        elevator: &str,
        plugging: bool,
        merging: bool,
        rotational: bool,
        nr_requests: Option<u32>,
        capacity: u32,
        hz: u32,
    ) -> PyResult<QueueCore> {
        let kind = elevator_of_name(elevator).map_err(wrong_argument)?;
        let refuse = |what: &str| Err(wrong_argument(what.to_owned()));
        if nr_requests.is_some_and(|requests| requests < 4) {
            return refuse("nr_requests is 4 or more");
        }
        if !(1..=1 << 20).contains(&capacity) {
            return refuse("capacity is 1 to 1048576 requests");
        }
        if !(1..=1000).contains(&hz) {
            return refuse("hz is 1 to 1000 ticks a second");
        }
        let room = Capacity { requests: capacity, contexts: 4096, merged_bios: capacity.saturating_mul(8), groups: 1 };
        let clock = ClockConfig { hz, ..ClockConfig::default() };
        let layer = kind.info().layer;
        let config = QueueConfig { layer, clock, plugging, merging, rotational, nr_requests, ..QueueConfig::default() };
        let queue = RequestQueue::new(config, Storage::owned(room), ElevatorStorage::owned(kind, room), NoSink, 0);
        Ok(QueueCore {
            queue: Box::new(queue),
            contexts: Vec::new(),
            dispatched: HashMap::new(),
            asleep: Vec::new(),
            last_ns: 0,
            must_run: false,
        })
    }

    /// Creates a process and returns its number.
    fn add_process(&mut self, pid: u32, io_class: &str, level: u8, nice: i8) -> PyResult<usize> {
        let class = match io_class {
            "none" => Class::None,
            "realtime" => Class::RealTime,
            "best-effort" => Class::BestEffort,
            "idle" => Class::Idle,
            other => {
                return Err(wrong_argument(format!(
                    "there is no I/O class `{other}`; there are none, realtime, best-effort and idle"
                )));
            }
        };
        let priority = Priority::new(class, level)
            .ok_or_else(|| wrong_argument(format!("level {level} is out of range: 0 to 7 would be right")))?;
        let context = self.queue.create_context(pid, priority, nice);
        let context = context.map_err(|_| HoistwayError::new_err("the queue has no room for another process"))?;
        self.contexts.push((context, pid));
        Ok(self.contexts.len() - 1)
    }

    /// Submits a bio; returns `queued`, `merged` or `asleep`.
    fn submit(
        &mut self,
        token: u64,
        process: usize,
        op: &str,
        extent: (u64, u32),
        sync: bool,
        now_ns: u64,
    ) -> PyResult<&'static str> {
        self.begin(now_ns)?;
        let (context, _) =
            *self.contexts.get(process).ok_or_else(|| wrong_argument("the process is one of another queue"))?;
        let op = match op {
            "read" => Op::Read,
            "write" => Op::Write,
            "discard" => Op::Discard,
            other => {
                return Err(wrong_argument(format!(
                    "there is no operation `{other}`; there are read, write and discard"
                )));
            }
        };
        let (sector, sectors) = extent;
        if sectors == 0 || sector.checked_add(sectors.into()).is_none() {
            return Err(wrong_argument("a request has at least one sector, and ends below sector 2^64"));
        }
        let mut bio = Bio::new(token, context, op, sector, sectors);
        if sync {
            bio.flags = Flags::SYNC;
        }
        let submitted = self.queue.submit(bio, now_ns);
        let (submitted, kick) = submitted
            .map_err(|error| HoistwayError::new_err(format!("the queue refuses the request: {}", refusal(error))))?;
        self.note(kick);
        let word = match submitted {
            Submitted::Queued(_) => "queued",
            Submitted::Merged(_) => "merged",
            Submitted::Asleep => {
                self.asleep.push(bio);
                "asleep"
            }
        };
        self.work(now_ns);
        Ok(word)
    }

    /// The next request for the driver; `None` if there is none, or if the elevator waits.
    fn dispatch(&mut self, now_ns: u64) -> PyResult<Option<Dispatched>> {
        self.begin(now_ns)?;
        self.must_run = false;
        let next = self.queue.next(now_ns);
        self.check_elevator()?;
        let Next::Request(id) = next else { return Ok(None) };
        let Some(request) = self.queue.request(id) else { return Ok(None) };
        let (token, sector, sectors) = (request.token(), request.sector(), request.sectors());
        let op = op_name(request.op());
        let pid = self.queue.context_of(id).map(|context| context.pid());
        let tokens = self.queue.tokens(id).collect();
        self.dispatched.insert(token, id);
        self.work(now_ns);
        Ok(Some((token, op, sector, sectors, pid, tokens)))
    }

    /// Completes a dispatched request and returns the tokens of its bios.
    fn complete(&mut self, token: u64, now_ns: u64) -> PyResult<Vec<u64>> {
        self.begin(now_ns)?;
        let id = self.dispatched.remove(&token);
        let id = id.ok_or_else(|| wrong_argument("the request is not in the device: it was completed already"))?;
        let mut done = Vec::new();
        let kick = self.queue.complete(id, now_ns, |token| done.push(token));
        let kick = kick.map_err(|_| HoistwayError::new_err("the request is not in the device"))?;
        self.note(kick);
        self.work(now_ns);
        Ok(done)
    }

    /// The time of the next timer, in ns.
    #[getter]
    fn next_timer_ns(&self) -> Option<u64> {
        self.queue.next_timer()
    }

    /// Fires all timers that are due.
    fn timer(&mut self, now_ns: u64) -> PyResult<()> {
        self.begin(now_ns)?;
        while self.queue.next_timer().is_some_and(|at_ns| at_ns <= now_ns) {
            let kick = self.queue.timer(now_ns);
            self.note(kick);
            self.work(now_ns);
        }
        Ok(())
    }

    /// Starts an idle queue although it is plugged, as a process that waits does.
    fn unplug(&mut self, now_ns: u64) -> PyResult<()> {
        self.begin(now_ns)?;
        let kick = self.queue.unplug_for_waiter(now_ns);
        self.note(kick);
        self.work(now_ns);
        Ok(())
    }

    /// True if no request waits for the driver.
    #[getter]
    fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// True if the queue has to be run: `dispatch` until there is no request.
    #[getter]
    fn must_run(&self) -> bool {
        self.must_run
    }

    /// Requests in the device.
    #[getter]
    fn in_flight(&self) -> u32 {
        self.queue.in_flight()
    }

    /// The values of the tunables by name.
    #[getter]
    fn tunables(&self) -> HashMap<&'static str, i64> {
        self.queue.tunables().map(|(tunable, value)| (tunable.name, value)).collect()
    }

    /// Sets a tunable in its own unit.
    fn set_tunable(&mut self, name: &str, value: i64) -> PyResult<()> {
        self.queue.set_tunable(name, value).map_err(|error| match error {
            TunableError::Unknown => {
                let known: Vec<&str> = self.queue.tunables().map(|(tunable, _)| tunable.name).collect();
                wrong_argument(format!("there is no tunable `{name}`; there are {}", known.join(", ")))
            }
            TunableError::OutOfRange { min, max } => {
                wrong_argument(format!("{value} is out of range: {name} takes {min} to {max}"))
            }
        })
    }
}

impl QueueCore {
    /// Checks that time does not run backwards.
    fn begin(&mut self, now_ns: u64) -> PyResult<()> {
        if now_ns < self.last_ns {
            return Err(wrong_argument(format!("the clock runs backwards: {now_ns} ns after {} ns", self.last_ns)));
        }
        self.last_ns = now_ns;
        Ok(())
    }

    /// Checks that a custom elevator has broken no rule.
    fn check_elevator(&self) -> PyResult<()> {
        let Some(violation) = self.queue.violation() else { return Ok(()) };
        let text = format!("elevator `{}`: {violation}", self.queue.kind().info().name);
        let exception = self.queue.failure().and_then(|failure| take_exception(failure, &text));
        Err(exception.unwrap_or_else(|| HoistwayError::new_err(text)))
    }

    fn note(&mut self, kick: Kick) {
        self.must_run |= kick == Kick::Run;
    }

    /// Does the deferred work of the queue: runs it, and submits the bios of woken processes again.
    fn work(&mut self, now_ns: u64) {
        while let Some(work) = self.queue.next_work() {
            match work {
                DeferredWork::Run => self.must_run = true,
                DeferredWork::Unplug => {}
                DeferredWork::Wake(context) => {
                    let Some(index) = self.asleep.iter().position(|bio| bio.context == context) else { continue };
                    let bio = self.asleep.remove(index);
                    match self.queue.resubmit(bio, now_ns) {
                        Ok((Submitted::Asleep, kick)) => {
                            self.note(kick);
                            self.asleep.push(bio);
                        }
                        Ok((_, kick)) => self.note(kick),
                        Err(_) => self.asleep.push(bio),
                    }
                }
            }
        }
    }
}

fn refusal(error: hoistway_core::SubmitError) -> &'static str {
    use hoistway_core::SubmitError;
    match error {
        SubmitError::Full => "it is full; complete a request first",
        SubmitError::Asleep => "the process sleeps until a request of the pool is free",
        _ => "the process or the request is not valid",
    }
}
