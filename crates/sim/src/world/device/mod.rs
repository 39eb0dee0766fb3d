//! A drive with its request queue: the block layer of the host.
//!
//! A bio takes these steps:
//!
//! 1. A task submits it (`submit.rs`). On hosts that plug on tasks it waits in the plug of the
//!    task's call, where it may merge with others, until the call ends or the plug is full.
//! 2. A write that is not direct takes a slot of the throttle of write-back
//!    (`write_back_throttle.rs`); without one its task sleeps.
//! 3. The request queue of the core merges it or makes it a request, and gives that to the
//!    elevator. Without room it goes to the backlog of its task, which sleeps.
//! 4. The request is issued (`issue.rs`): as the elevator decides, or past all that wait on hosts
//!    that issue directly. Steps of the flush machinery (`flush.rs`, `durable.rs`) precede
//!    requests; the elevator does not see them.
//! 5. The drive completes it; the host knows of it after the time of transport (`transport.rs`).
//!
//! A controller of the block layer that acts before requests exist belongs between the steps 1 and
//! 2; one that acts on requests, beside the throttle in step 2.

mod congestion;
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
use flush::{FlushMachine, FlushRules, ReadyStep};
use lock::ElevatorLock;
use meter::Meter;
use submitters::Submitters;
use transport::Transport;
use write_back_throttle::{Settings, WriteBackThrottle};

/// A drive, its request queue, and what is between tasks and the queue.
pub(crate) struct Device<S: Observer> {
    queue: RequestQueue<Host<S>>,
    drive: Drive,
    /// Most requests in the drive at once.
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
    /// The throttle of write-back, if the host has one.
    throttle: Option<WriteBackThrottle<RequestId>>,
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
    Request(RequestId),
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
        let throttles = host.write_back_throttling && queue.config().layer == BlockLayer::V6_1;
        let throttle = throttles.then(|| {
            let settings = Settings {
                depth,
                rotational: queue.config().rotational,
                write_back_cache: flush_rules.has_volatile_cache(),
                latency_ns: host.write_back_latency_us * 1000,
            };
            WriteBackThrottle::new(settings, queue.kind())
        });
        Device {
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
            throttle: throttle.flatten(),
        }
    }

    /// Adds a submitter; submitters are numbered in the order of these calls. Returns false if the
    /// queue has no room.
    pub fn add_submitter(&mut self, pid: u32, priority: Priority, nice: i8, group: Option<GroupId>) -> bool {
        let Ok(context) = self.queue.create_context(pid, priority, nice) else { return false };
        let moved = group.map(|group| self.queue.move_context(context, group, 0));
        if !matches!(moved, Some(Ok(_))) {
            return false;
        }
        self.submitters.add(context);
        true
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

    /// The queue context of a submitter.
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

    /// Takes a submitter whose backlog has been submitted completely.
    #[inline]
    pub fn next_resumed(&mut self) -> Option<SubmitterId> {
        self.submitters.resumed.pop()
    }

    /// Time at which [`Self::timer`] is due.
    #[inline]
    pub fn next_timer(&self) -> Option<u64> {
        let throttle_ns = self.throttle.as_ref().and_then(WriteBackThrottle::next_timer);
        match (self.queue.next_timer(), throttle_ns) {
            (Some(queue_ns), Some(throttle_ns)) => Some(queue_ns.min(throttle_ns)),
            (queue_ns, throttle_ns) => queue_ns.or(throttle_ns),
        }
    }

    /// Runs the timers that are due.
    pub fn timer(&mut self, now_ns: u64) -> Result<(), Defect> {
        if let Some(throttle) = &mut self.throttle {
            let woken = throttle.timer(now_ns);
            self.resume(woken, now_ns)?;
        }
        if self.queue.next_timer().is_some_and(|due_ns| due_ns <= now_ns) {
            let kick = self.queue.timer(now_ns);
            self.handle_kick(kick, now_ns)?;
        }
        Ok(())
    }

    /// The rule that a custom elevator has broken, as the error of a run with this seed.
    #[inline]
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
