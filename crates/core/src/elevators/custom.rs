//! Runs a custom elevator in the queue, and checks its answers.
//!
//! All requests that the elevator holds are also on a list in order of arrival. The list tells the
//! oldest request, and takes over after a [`Violation`].

use crate::clock::Timer;
use crate::collections::{Count, List, NIL, Slot};
use crate::elevator::capacity::Capacity;
use crate::elevator::custom::{CustomElevator, CustomElevators, CustomKind, CustomRequest, QueueView, Rule, Violation};
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::HostTypes;
use crate::elevator::{Elevator, Merge};
use crate::request::{Arrivals, RequestId, State};

/// The mark of a request that the elevator holds, in place of a deadline.
const HELD: u64 = u64::MAX;

/// A custom elevator with the list of its requests.
pub(crate) struct Custom<H: HostTypes> {
    elevator: H::Custom,
    kind: CustomKind,
    /// The requests that the elevator holds.
    queued: List<Arrivals>,
    queued_count: u32,
    /// The number of calls of `dispatch`.
    calls: u64,
    /// The sector after the request that was dispatched last.
    position: u64,
    /// Whether the elevator has broken a rule and is not called any more.
    has_failed: bool,
}

/// A custom elevator without its queue.
pub(crate) struct CustomTables<H: HostTypes> {
    elevator: H::Custom,
    kind: CustomKind,
}

impl<H: HostTypes> CustomTables<H> {
    /// Creates the elevator of this kind, if the host has it.
    pub fn make(kind: CustomKind, capacity: Capacity) -> Option<Self> {
        Some(CustomTables { elevator: H::Custom::create(kind.info(), capacity)?, kind })
    }

    /// The kind of the elevator.
    pub fn kind(&self) -> CustomKind {
        self.kind
    }
}

impl<H: HostTypes> Custom<H> {
    /// The kind of the elevator.
    pub fn kind(&self) -> CustomKind {
        self.kind
    }

    /// Calls the elevator, and sets the timer as the elevator wants it.
    fn call<T>(
        &mut self,
        core: &mut QueueCore<H>,
        is_draining: bool,
        call: impl FnOnce(&mut H::Custom, &mut QueueView) -> T,
    ) -> T {
        let armed_ns = core.timers.armed_for(Timer::Idle);
        let mut view = QueueView {
            now_ns: core.clock.now_ns(),
            queued: self.queued_count,
            in_flight: core.in_flight,
            position: self.position,
            is_draining,
            timer_ns: armed_ns,
        };
        let answer = call(&mut self.elevator, &mut view);
        match view.timer_ns {
            Some(at_ns) if armed_ns != Some(at_ns) => core.timers.arm(Timer::Idle, at_ns),
            Some(_) => {}
            None => {
                core.timers.cancel(Timer::Idle);
            }
        }
        answer
    }

    fn remove(&mut self, core: &mut QueueCore<H>, request: Slot) {
        self.queued.remove(&mut core.tables.arrivals, request);
        core.tables.arrivals[request].deadline = 0;
        self.queued_count.decrement();
    }

    /// Moves a queued request to the dispatch list.
    fn pass_on(&mut self, core: &mut QueueCore<H>, request: Slot) -> u32 {
        self.remove(core, request);
        self.position = core.tables.requests[request].end();
        core.dispatch_append(request);
        1
    }

    /// Checks an answer of `dispatch`. Returns the request to dispatch, or [`NIL`].
    fn checked(&self, core: &QueueCore<H>, id: Option<RequestId>, is_draining: bool) -> Result<Slot, (Rule, Slot)> {
        let oldest = self.queued.head();
        if self.elevator.failure().is_some() {
            return Err((Rule::Failed, oldest));
        }
        let Some(id) = id else {
            if oldest == NIL {
                return Ok(NIL);
            }
            let may_wait = core.in_flight > 0 || core.timers.armed_for(Timer::Idle).is_some();
            return match (is_draining, may_wait) {
                (true, _) => Err((Rule::NotDrained, oldest)),
                (false, true) => Ok(NIL),
                (false, false) => Err((Rule::Stalled, oldest)),
            };
        };
        let request = &core.tables.requests[id.slot];
        if request.generation != id.generation {
            return Err((Rule::NotQueued, NIL));
        }
        if request.state == State::Free {
            return Err((Rule::NotQueued, id.slot));
        }
        if request.state != State::Sorted || core.tables.arrivals[id.slot].deadline != HELD {
            return Err((Rule::DispatchedTwice, id.slot));
        }
        let waited_ns = core.clock.now_ns().saturating_sub(core.tables.requests[oldest].submitted_ns);
        if id.slot != oldest && waited_ns > self.elevator.longest_wait_ns() {
            return Err((Rule::Starved { waited_ns }, oldest));
        }
        Ok(id.slot)
    }

    /// Records the broken rule. The elevator is not called any more.
    fn fail(&mut self, core: &mut QueueCore<H>, rule: Rule, request: Slot) {
        self.has_failed = true;
        core.timers.cancel(Timer::Idle);
        let violation = Violation {
            rule,
            at_ns: core.clock.now_ns(),
            call: self.calls,
            request: (request != NIL).then(|| describe(core, request)),
            queued: self.queued_count,
        };
        core.violation.get_or_insert(violation);
    }
}

/// The request as the elevator sees it.
fn describe<H: HostTypes>(core: &QueueCore<H>, slot: Slot) -> CustomRequest {
    let request = &core.tables.requests[slot];
    CustomRequest {
        id: RequestId { slot, generation: request.generation },
        sector: request.sector,
        sectors: request.sectors,
        op: request.op,
        is_sync: request.is_sync(),
        pid: core.tables.contexts[request.context].pid,
        priority: request.priority,
        submitted_ns: request.submitted_ns,
    }
}

impl<H: HostTypes> Elevator<H> for Custom<H> {
    type Tables = CustomTables<H>;

    fn new(_: &mut QueueCore<H>, tables: CustomTables<H>) -> Self {
        Custom {
            elevator: tables.elevator,
            kind: tables.kind,
            queued: List::default(),
            queued_count: 0,
            calls: 0,
            position: 0,
            has_failed: false,
        }
    }

    fn into_tables(self) -> CustomTables<H> {
        CustomTables { elevator: self.elevator, kind: self.kind }
    }

    fn tunable(&self, index: usize) -> i64 {
        self.elevator.tunable(index)
    }

    fn set_tunable(&mut self, _: &mut QueueCore<H>, index: usize, value: i64) {
        self.elevator.set_tunable(index, value);
    }

    fn former(&self, _: &QueueCore<H>, _: Slot) -> Slot {
        NIL
    }

    fn latter(&self, _: &QueueCore<H>, _: Slot) -> Slot {
        NIL
    }

    fn joins_queued(&self) -> bool {
        false
    }

    fn merged(&mut self, core: &mut QueueCore<H>, request: Slot, _: Merge) {
        if !self.has_failed {
            let request = describe(core, request);
            self.call(core, false, |elevator, queue| elevator.merged(queue, &request));
        }
    }

    fn joined_at_insert(&mut self, core: &mut QueueCore<H>, request: Slot) {
        self.merged(core, request, Merge::Back);
    }

    /// Two queued requests are never joined; the queue asks [`Self::joins_queued`].
    fn join(&mut self, core: &mut QueueCore<H>, _: Slot, absorbed: Slot) {
        debug_assert!(false, "queued requests are not joined");
        self.remove(core, absorbed);
    }

    fn insert(&mut self, core: &mut QueueCore<H>, request: Slot) {
        self.queued.push_back(&mut core.tables.arrivals, request);
        core.tables.arrivals[request].deadline = HELD;
        self.queued_count.increment();
        if !self.has_failed {
            let described = describe(core, request);
            self.call(core, false, |elevator, queue| elevator.insert(queue, &described));
        }
        // The elevator may have waited for this request, on an idle device that no event would run.
        if core.in_flight == 0 {
            core.run_now();
        }
    }

    fn dispatch(&mut self, core: &mut QueueCore<H>, force: bool) -> u32 {
        if !self.has_failed {
            self.calls.increment();
            let id = self.call(core, force, |elevator, queue| elevator.dispatch(queue));
            match self.checked(core, id, force) {
                Ok(NIL) => return 0,
                Ok(request) => return self.pass_on(core, request),
                Err((rule, request)) => self.fail(core, rule, request),
            }
        }
        match self.queued.head() {
            NIL => 0,
            oldest => self.pass_on(core, oldest),
        }
    }

    fn complete(&mut self, core: &mut QueueCore<H>, request: Slot) {
        if !self.has_failed {
            let described = describe(core, request);
            self.call(core, false, |elevator, queue| elevator.complete(queue, &described));
        }
        if self.queued_count > 0 {
            core.run_now();
        }
    }

    fn is_empty(&self) -> bool {
        self.queued.is_empty()
    }

    fn failure(&self) -> Option<&str> {
        self.elevator.failure()
    }

    fn exit(&mut self, core: &mut QueueCore<H>, context: Slot) {
        if !self.has_failed {
            self.elevator.exit(core.tables.contexts[context].pid);
        }
    }

    fn timer(&mut self, core: &mut QueueCore<H>, _: Timer) {
        if !self.has_failed {
            self.call(core, false, |elevator, queue| elevator.timer(queue));
        }
        core.run_now();
    }
}
