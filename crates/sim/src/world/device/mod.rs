//! A drive with its request queue: the block layer of the host.
//!
//! A bio takes these steps:
//!
//! 1. **Plug** (`Device::submit`, `plug.rs`). A task submits the bio. On hosts that plug on tasks
//!    it waits in the plug of the task's call, where it may merge with others, until the call ends
//!    or the plug is full.
//! 2. **Controllers** (`Device::enter`, `controllers.rs`). They admit the bio or hold it. A held
//!    bio waits in the backlog of its submitter, whose task sleeps.
//! 3. **Queue** (`Device::enter`). The request queue of the core merges the bio or makes it a
//!    request, and gives that to the elevator; the controllers are told which. Without room the bio
//!    waits in the backlog, too.
//! 4. **Issue** (`Device::start`). The request goes to the drive: as the elevator decides, or past
//!    all that wait on hosts that issue directly. The controllers are told. Steps of the flush
//!    machinery (`flush.rs`, `durable.rs`) precede requests; neither the elevator nor the
//!    controllers see them.
//! 5. **Completion** (`Device::drive_event`). The drive completes the request; the host knows of it
//!    after the time of transport (`transport.rs`). The queue returns the bios, the controllers are
//!    told, and the submitters that got an admission or room continue with their backlog.
//!
//! The order is the kernel's, with one exception: the kernel asks the controllers before a bio
//! enters the plug. A policy that holds or charges bios before they are requests, and learns of
//! their issue and completion (io.cost, io.latency), becomes a field of `Controllers`. A policy
//! that acts before bios merge (io.max) belongs at the beginning of step 1.

mod congestion;
mod controllers;
mod durable;
pub(super) mod flush;
mod issue;
mod lock;
mod meter;
mod plug;
mod submit;
mod submitters;
mod transport;
mod write_back_throttle;

use hoistway_core::{
    BlockLayer, ContextId, GroupId, Kind, Op, Priority, RequestId, RequestQueue, Reservation, ReserveError, Tunable,
};
use hoistway_custom::Host;
use hoistway_drive::{Drive, Jitter};

use crate::config::{DirectIssue, HostConfig, Plugging};
use crate::error::{Defect, SimError};
use crate::record::Observer;
use crate::settings::group_switch;

use super::slab::Slab;
use super::task::SubmitterId;
use congestion::Congestion;
use controllers::Controllers;
use flush::{FlushMachine, FlushRules, ReadyStep};
use lock::ElevatorLock;
use meter::Meter;
use submitters::Submitters;
use transport::Transport;

/// A drive, its request queue, and what is between tasks and the queue.
pub(crate) struct Device<S: Observer> {
    queue: RequestQueue<Host<S>>,
    drive: Drive,
    /// The maximum number of requests in the drive at once.
    depth: u32,
    /// Requests in the drive, by tag.
    in_flight: Slab<InFlight>,
    transport: Transport,
    flush_rules: FlushRules,
    flushes: FlushMachine,
    submitters: Submitters,
    pub meter: Meter,
    /// Reservations that the elevator refused although it takes reservations: the process id, and
    /// the reason.
    pub refused_reservations: Vec<(u32, ReserveError)>,
    /// True if the driver chooses the next request while the drive is full.
    chooses_ahead: bool,
    /// Where bios are plugged.
    plugging: Plugging,
    /// True while the bios of a plug are submitted: the queue runs after the last of them.
    flushing: bool,
    /// The requests that are issued as they are submitted, without an elevator.
    direct_issue: DirectIssue,
    congestion: Congestion,
    controllers: Controllers,
    /// The lock of the elevator, which costs CPU time.
    lock: ElevatorLock,
}

/// A command in the drive.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    origin: Origin,
    at_ns: u64,
}

/// The origin of a command in the drive.
#[derive(Clone, Copy, Debug)]
enum Origin {
    Request(RequestId, Op),
    Step(ReadyStep),
}

impl<S: Observer> Device<S> {
    pub fn new(
        queue: RequestQueue<Host<S>>,
        drive: Drive,
        (depth, flush_rules): (u32, FlushRules),
        host: &HostConfig,
        seed: u64,
    ) -> Self {
        let transport =
            (host.transport_ns > 0).then(|| Jitter::new(0, host.transport_ns, host.transport_sigma_milli, seed));
        let has_elevator = queue.kind() != Kind::Noop || queue.config().layer != BlockLayer::V6_1;
        let direct_issue = if has_elevator { DirectIssue::Never } else { host.direct_issue };
        Device {
            controllers: Controllers::new(host, queue.config(), queue.kind(), depth, flush_rules),
            lock: ElevatorLock::new(host.costs.elevators.of(queue.kind()), host.cpus > 1, seed),
            queue,
            drive,
            depth,
            transport: Transport::new(transport),
            in_flight: Slab::new(),
            flush_rules,
            // On 6.12 a commit block under `none` waits in the queue after its flush.
            flushes: FlushMachine::new(direct_issue == DirectIssue::Always),
            submitters: Submitters::default(),
            meter: Meter::default(),
            refused_reservations: Vec::new(),
            chooses_ahead: host.driver_chooses_ahead,
            plugging: host.plugging,
            flushing: false,
            direct_issue,
            congestion: Congestion::default(),
        }
    }

    /// Adds a submitter; submitters are numbered in the order of these calls.
    pub fn add_submitter(
        &mut self,
        pid: u32,
        priority: Priority,
        nice: i8,
        group: Option<&GroupId>,
    ) -> Result<(), Defect> {
        let refused = || Defect::new(format!("no room for a submitter of process {pid}, or for its group"));
        let context = self.queue.create_context(pid, priority, nice).map_err(|_| refused())?;
        let group = group.ok_or_else(refused)?;
        let _ = self.queue.move_context(context, *group, 0).map_err(|_| refused())?;
        self.submitters.add(context);
        Ok(())
    }

    /// Returns true if the elevator, with its current tunables, divides the disk among control
    /// groups.
    pub fn divides_by_groups(&self) -> bool {
        let switch = group_switch(self.queue.kind());
        let is_off =
            |(tunable, value): (&Tunable, i64)| switch.is_some_and(|known| known.name == tunable.name) && value == 0;
        self.queue.kind().info().groups && !self.queue.tunables().any(is_off)
    }

    /// Reserves bandwidth for a submitter if the elevator takes reservations. A refused reservation
    /// is recorded, and the submitter continues without it.
    pub fn reserve(&mut self, submitter: SubmitterId, reservation: Reservation, now_ns: u64) -> Result<(), Defect> {
        let context = self.context(submitter);
        match self.queue.reserve(context, reservation, now_ns) {
            Ok(kick) => self.handle_kick(kick, now_ns)?,
            Err(ReserveError::NotSupported) => {}
            Err(refusal) => {
                let pid = self.queue.context(context).map_or(0, |context| context.pid());
                self.refused_reservations.push((pid, refusal));
            }
        }
        Ok(())
    }

    /// Ends a submitter.
    pub fn exit(&mut self, submitter: SubmitterId, now_ns: u64) -> Result<(), Defect> {
        match self.queue.exit_context(self.context(submitter), now_ns) {
            Ok(kick) => self.handle_kick(kick, now_ns),
            Err(stale) => Err(Defect::new(format!("the exit of submitter {} was refused: {stale:?}", submitter.0))),
        }
    }

    /// The context that a submitter is in the queue.
    pub fn context(&self, submitter: SubmitterId) -> ContextId {
        self.submitters[submitter].context
    }

    /// The block layer of the queue.
    pub fn layer(&self) -> BlockLayer {
        self.queue.config().layer
    }

    /// Returns true if a submitter has a backlog: its task sleeps until the queue has room.
    #[inline]
    pub fn is_held_back(&self, submitter: SubmitterId) -> bool {
        !self.submitters[submitter].backlog.is_empty()
    }

    /// Returns the CPU time of the elevator's work for `bios` of a submitter from `at_ns` on.
    pub fn elevator_work(&mut self, submitter: SubmitterId, at_ns: u64, bios: u64) -> u64 {
        self.lock.work_ns(submitter, at_ns, bios)
    }

    /// Returns true if the request pool of this direction is congested.
    pub fn is_congested(&self, op: Op) -> bool {
        self.congestion.is(op)
    }

    /// Returns true once after the request pool stopped being congested by writes.
    pub fn take_end_of_congestion(&mut self) -> bool {
        self.congestion.take_end_of_writes()
    }

    fn note_congestion(&mut self) {
        if self.layer() == BlockLayer::V6_1 {
            return;
        }
        for op in [Op::Read, Op::Write] {
            let (used, Some(size)) = self.queue.pool_use(op) else { return };
            self.congestion.note(op, used, size);
        }
    }

    /// Returns true if [`Self::next_resumed`] or [`Self::take_end_of_congestion`] has something.
    #[inline]
    pub fn wakes_tasks(&self) -> bool {
        !self.submitters.resumed.is_empty() || self.congestion.have_writes_ended()
    }

    /// Takes a submitter whose backlog has been submitted completely.
    pub fn next_resumed(&mut self) -> Option<SubmitterId> {
        self.submitters.resumed.pop()
    }

    /// Time at which [`Self::timer`] is due.
    #[inline]
    pub fn next_timer(&self) -> Option<u64> {
        earlier(self.queue.next_timer(), self.controllers.next_timer())
    }

    /// Runs the timers that are due.
    pub fn timer(&mut self, now_ns: u64) -> Result<(), Defect> {
        let admitted = self.controllers.timer(now_ns);
        self.resume_admitted(admitted, now_ns)?;
        if self.queue.next_timer().is_some_and(|due_ns| due_ns <= now_ns) {
            let kick = self.queue.timer(now_ns);
            self.handle_kick(kick, now_ns)?;
        }
        Ok(())
    }

    /// Returns true if a custom elevator has broken a rule.
    #[inline]
    pub fn has_violation(&self) -> bool {
        self.queue.violation().is_some()
    }

    /// The rule that a custom elevator has broken, as the error of a run with this seed.
    pub fn violation(&self, seed: u64) -> Option<SimError> {
        let violation = self.queue.violation()?;
        Some(SimError::Violation {
            elevator: self.queue.kind().info().name,
            seed,
            violation: Box::new(*violation),
            failure: self.queue.failure().map(str::to_owned),
        })
    }

    /// Number of commands that the drive will never complete; `None` if the drive still has an
    /// event to come.
    pub fn unanswered(&self) -> Option<u32> {
        let commands = self.in_flight.len();
        (commands > 0 && self.next_drive_event().is_none()).then_some(commands)
    }

    /// Describes where requests are, as the end of a sentence.
    pub fn describe_requests(&self) -> String {
        let kept =
            if self.queue.is_empty() { "no request waits in the elevator" } else { "requests wait in the elevator" };
        format!("{kept}, {} are in the drive", self.in_flight.len())
    }

    /// Chooses what is recorded.
    pub fn watch(&mut self, watch: crate::record::Watch) {
        self.queue.sink_mut().watch(watch);
    }

    /// Takes the recording out of the queue.
    pub fn recording(&mut self, now_ns: u64) -> crate::record::Recording {
        let observer = self.queue.sink_mut();
        let (slices, steps) = (observer.slices(now_ns), observer.steps());
        crate::record::Recording { head: std::mem::take(&mut self.meter.head), slices, steps }
    }
}

/// The earlier of two times, if there is one.
#[inline]
fn earlier(one_ns: Option<u64>, other_ns: Option<u64>) -> Option<u64> {
    match (one_ns, other_ns) {
        (Some(one_ns), Some(other_ns)) => Some(one_ns.min(other_ns)),
        _ => one_ns.or(other_ns),
    }
}
