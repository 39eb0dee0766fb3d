//! The request queue: submission, merging, the request pool, plugging, the dispatch list, barriers,
//! completion, and switching of elevators.
//!
//! It reproduces the block layer of Linux 2.6.18 and, by [`BlockLayer`], the changes of later
//! kernels. The host passes in the time; the queue has no thread, lock or timer of its own and is
//! driven by calls. See [`RequestQueue`].

mod ahead;
mod barrier;
mod bypass;
mod contexts;
mod groups;
mod host_merge;
mod merge;
mod plug;
mod pool;
mod reserve;
mod switch;

use crate::bio::{Bio, Flags, Op};
use crate::clock::{Clock, ClockConfig, Timer, Timers};
use crate::collections::{Arena, Count, HashChains, List, NIL, Ring, Slot};
use crate::context::{Context, ContextId, Sleep};
use crate::elevator::Elevator;
use crate::elevator::capacity::Capacity;
use crate::elevator::custom::Violation;
use crate::elevator::dispatch_list::DispatchList;
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::{DeferredWork, HostTypes, QueueTables};
use crate::elevator::tunable::{Tunable, TunableError};
use crate::event::{Event, Io};
use crate::group::{FreeGroups, ROOT};
use crate::layer::{BlockLayer, LayerRules};
use crate::registry::{AnyElevator, Kind};
use crate::request::{Marks, Request, RequestId, RequestLists, State};
use crate::storage::{ElevatorStorage, Storage};

pub use barrier::OrderedMode;
pub use host_merge::{Extent, HostSearch, MergeError, Pending};
use pool::Pool;

/// The configuration of a queue, apart from its elevator.
#[derive(Clone, Copy, Debug)]
pub struct QueueConfig {
    /// The kernel version whose block layer is reproduced.
    pub layer: BlockLayer,
    /// The clock of the elevator.
    pub clock: ClockConfig,
    /// Plugging as in 2.6.18: hold requests for up to 3 ms or until 4 are waiting, so that bios can
    /// be merged. Without plugging only the host starts an idle queue: it runs the queue after
    /// every submission.
    pub plugging: bool,
    /// Whether bios are merged into queued requests.
    pub merging: bool,
    /// The pool size per direction (4 or more; 128 in Linux), or `None` for the capacity of the
    /// storage.
    pub nr_requests: Option<u32>,
    /// The size limit of merged requests in sectors, 1 or more. A limit below two requests prevents
    /// merging.
    pub max_sectors: u32,
    /// Whether a request takes no more bios after a merge was refused because of its size, as in
    /// the kernel.
    pub refusal_ends_merging: bool,
    /// The device's support for barriers.
    pub ordered: OrderedMode,
    /// The number of hardware queues of the device, 1 or more. Only multi-queue elevators
    /// distinguish them.
    pub hw_queues: u16,
    /// Whether the device is rotational (`queue/rotational`). Newer elevators idle less on
    /// non-rotational devices.
    pub rotational: bool,
}

impl Default for QueueConfig {
    /// A 2.6.18 queue with plugging, merging up to 512 KiB, and a pool of 128 requests per
    /// direction.
    fn default() -> Self {
        QueueConfig {
            layer: BlockLayer::V2_6_18,
            clock: ClockConfig::default(),
            plugging: true,
            merging: true,
            nr_requests: Some(128),
            max_sectors: 1024,
            refusal_ends_merging: true,
            ordered: OrderedMode::Drain { flush: true, fua: false },
            hw_queues: 1,
            rotational: true,
        }
    }
}

/// Linux's pool size per direction, for computations that need one when the pool is unlimited.
const DEFAULT_NR_REQUESTS: u32 = 128;

/// Whether the host must run the queue: call [`RequestQueue::next`] until the device is full or no
/// request is returned.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kick {
    /// No run is needed.
    Quiet,
    /// Run the queue now.
    Run,
}

/// The result of a submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Submitted {
    /// The bio was merged into a queued request.
    Merged(RequestId),
    /// The bio became a request.
    Queued(RequestId),
    /// The pool is empty and the process sleeps. When [`DeferredWork::Wake`] names the context,
    /// call [`RequestQueue::resubmit`] with the same bio. The process submits no other bio before
    /// that.
    Asleep,
}

/// Errors of a submission. The queue is unchanged, except for statistics that an elevator updates
/// during the search for a merge (BFQ may have merged the queues of two processes). Process
/// [`RequestQueue::next_work`] after an error, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubmitError {
    /// The storage is full: submit (or resubmit) the bio again after a completion.
    Full,
    /// The process already sleeps for a request, with another bio.
    Asleep,
    /// The process was not woken, so there is nothing to resubmit.
    NotWoken,
    /// The context does not belong to this queue or has exited.
    NoContext,
    /// A bio without sectors that is no barrier, or one that ends beyond sector 2^64.
    BadExtent,
    /// A barrier on a device that cannot order ([`OrderedMode::None`]), or a flush. Only the queue
    /// issues flushes; submit an empty barrier instead.
    NotSupported,
}

impl core::fmt::Display for SubmitError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            SubmitError::Full => "the storage holds no more requests",
            SubmitError::Asleep => "the process sleeps for a request already",
            SubmitError::NotWoken => "the process was not woken",
            SubmitError::NoContext => "no such context, or it has exited",
            SubmitError::BadExtent => "no sectors, or an end beyond sector 2^64",
            SubmitError::NotSupported => "the device cannot order, or a flush was submitted",
        })
    }
}

impl core::error::Error for SubmitError {}

/// The result of [`RequestQueue::next`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Start this request.
    Request(RequestId),
    /// Requests are queued, but the elevator waits for a timer, an arrival or a completion.
    Wait,
    /// No request is queued.
    Empty,
}

/// The handle is stale: the object no longer exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stale;

/// The storage has no room for another context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// A request queue with its elevator.
///
/// The host calls [`submit`](Self::submit) for each bio. On [`Kick::Run`] it starts the requests
/// that [`next`](Self::next) returns. It calls [`complete`](Self::complete) when the device
/// finishes a request, and [`timer`](Self::timer) at the time of [`next_timer`](Self::next_timer).
/// After each of these calls (and the run that it caused) the host does the work that
/// [`next_work`](Self::next_work) returns.
#[allow(missing_debug_implementations)]
pub struct RequestQueue<H: HostTypes> {
    config: QueueConfig,
    /// The smaller of the capacities of the queue's and the elevator's tables.
    capacity: Capacity,
    rules: LayerRules,
    core: QueueCore<H>,
    elevator: AnyElevator<H>,
    /// Whether the merge hash is in use.
    hashing: bool,
    free_requests: List<RequestLists>,
    free_request_count: u32,
    free_merged: Slot,
    free_groups: List<FreeGroups>,
    pool: Pool,
    plugged: bool,
    ordered: barrier::Sequence,
    switching: switch::Switching<H>,
}

impl<H: HostTypes> RequestQueue<H> {
    /// Creates a queue with an elevator of the kind for which `elevator_storage` is. Its capacity
    /// is the smaller one of both storages.
    pub fn new(
        config: QueueConfig,
        storage: Storage<H>,
        elevator_storage: ElevatorStorage<H>,
        sink: H::Sink,
        now_ns: u64,
    ) -> Self {
        let capacity = storage.capacity.common(elevator_storage.capacity);
        let mut queue = Self::blank(config, Storage { capacity, ..storage }, sink, now_ns);
        _ = queue.attach(elevator_storage);
        queue
    }

    /// Creates a queue without an elevator, which refuses all contexts and bios until
    /// [`attach`](Self::attach) gives it one. Hosts with a small stack create a queue in these two
    /// steps; each moves less than [`new`](Self::new) does.
    pub fn blank(config: QueueConfig, storage: Storage<H>, sink: H::Sink, now_ns: u64) -> Self {
        let rules = config.layer.rules();
        RequestQueue {
            config,
            capacity: storage.capacity,
            rules,
            core: QueueCore {
                tables: QueueTables {
                    requests: Arena::new(storage.requests),
                    nodes: Arena::new(storage.nodes),
                    arrivals: Arena::new(storage.arrivals),
                    merged: Arena::new(storage.merged),
                    contexts: Arena::new(storage.contexts),
                    groups: Arena::new(storage.groups),
                },
                dispatch: DispatchList::new(rules.sorting_stops_at_direction, storage.sweep),
                clock: Clock::new(config.clock, rules.counts_in_ticks, now_ns),
                timers: Timers::default(),
                hash: HashChains::new(storage.buckets),
                last_merge: NIL,
                in_flight: 0,
                late_requests: 0,
                free_contexts: List::default(),
                work: Ring::new(storage.work),
                nr_requests: config.nr_requests.unwrap_or(DEFAULT_NR_REQUESTS).max(pool::SIZE_MIN),
                max_sectors: config.max_sectors,
                hw_queues: config.hw_queues.max(1),
                hw_queue: None,
                rotational: config.rotational,
                bio_flags: Flags::NONE,
                batch_max: u32::MAX,
                run_pending: false,
                run_now: false,
                violation: None,
                sink,
            },
            elevator: AnyElevator::default(),
            hashing: false,
            free_requests: List::default(),
            free_request_count: 0,
            free_merged: NIL,
            free_groups: List::default(),
            pool: Pool::default(),
            plugged: false,
            ordered: barrier::Sequence::default(),
            switching: switch::Switching::new(),
        }
    }

    /// Gives a [`blank`](Self::blank) queue its elevator. Returns the storage unused if its
    /// capacity is smaller than the queue's, or the queue has an elevator.
    pub fn attach(&mut self, storage: ElevatorStorage<H>) -> Result<(), ElevatorStorage<H>> {
        let is_attached = self.core.tables.groups[ROOT].in_use;
        if is_attached || storage.capacity.common(self.capacity) != self.capacity {
            return Err(storage);
        }
        self.core.tables.groups[ROOT].in_use = true;
        self.elevator.install(&mut self.core, storage.tables);
        self.fit_to(self.kind());
        self.fill_free_lists();
        Ok(())
    }

    /// The queue's configuration.
    pub fn config(&self) -> &QueueConfig {
        &self.config
    }

    /// Sets whether bios are merged from now on, and the size limit of merged requests in sectors,
    /// 1 or more. Queued requests do not change.
    pub fn set_merging(&mut self, merging: bool, max_sectors: u32) {
        self.config.merging = merging;
        self.config.max_sectors = max_sectors.max(1);
        self.core.max_sectors = self.config.max_sectors;
        self.fit_to(self.kind());
    }

    /// The kind of the current elevator.
    pub fn kind(&self) -> Kind {
        self.elevator.kind()
    }

    /// The sink of the trace events.
    pub fn sink(&self) -> &H::Sink {
        &self.core.sink
    }

    /// The sink of the trace events, mutable.
    pub fn sink_mut(&mut self) -> &mut H::Sink {
        &mut self.core.sink
    }

    /// Returns the allocated requests of an operation's direction (multi-queue: of both) and the
    /// pool size; `None` for an unlimited pool. Hosts use it to detect congestion.
    pub fn pool_use(&self, op: Op) -> (u32, Option<u32>) {
        self.pool.use_of(op)
    }

    /// The first answer of the current custom elevator that broke a rule. Since then the queue
    /// dispatches in order of arrival, until a [`switch`](Self::switch) attaches another elevator.
    pub fn violation(&self) -> Option<&Violation> {
        self.core.violation.as_ref()
    }

    /// The error that a custom elevator reported of its own code, if its violation is
    /// [`Rule::Failed`](crate::Rule::Failed).
    pub fn failure(&self) -> Option<&str> {
        self.elevator.failure()
    }

    /// Requests in the device.
    pub fn in_flight(&self) -> u32 {
        self.core.in_flight
    }

    /// Returns true if no request waits for the driver.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.core.dispatch.is_empty() && self.elevator.is_empty()
    }

    /// The tunables of the current elevator and their values. With the reservation layer, its
    /// tunables ([`Reservation::TUNABLES`](crate::Reservation::TUNABLES)) come first.
    pub fn tunables(&self) -> impl Iterator<Item = (&'static Tunable, i64)> + '_ {
        // A range instead of `enumerate`, whose counter could overflow as far as the proof can see.
        self.elevator.tunables().zip(0..usize::MAX).map(|(t, i)| (t, self.elevator.tunable(i)))
    }

    /// Sets a tunable of the current elevator by its kernel name, in the kernel's unit. The
    /// elevator uses the time of the previous call. A wait in progress is not changed.
    pub fn set_tunable(&mut self, name: &str, value: i64) -> Result<(), TunableError> {
        let mut tunables = self.elevator.tunables().zip(0..usize::MAX);
        let (tunable, index) = tunables.find(|(tunable, _)| tunable.name == name).ok_or(TunableError::Unknown)?;
        if value < tunable.min || value > tunable.max {
            return Err(TunableError::OutOfRange { min: tunable.min, max: tunable.max });
        }
        self.elevator.set_tunable(&mut self.core, index, value);
        Ok(())
    }

    /// Submits a bio of a process.
    pub fn submit(&mut self, bio: Bio, now_ns: u64) -> Result<(Submitted, Kick), SubmitError> {
        self.begin(now_ns);
        self.check(&bio)?;
        if self.core.tables.contexts[bio.context.slot].sleep != Sleep::Awake {
            return Err(SubmitError::Asleep);
        }
        self.core.emit(|core| Event::Queue(io_of(core, &bio)));
        let merged = if self.config.merging { self.try_merge(&bio) } else { None };
        let submitted = match merged {
            Some(request) => Submitted::Merged(request),
            None => self.make_request(&bio, false)?,
        };
        Ok((submitted, self.end_submission(&bio, submitted)))
    }

    /// Resubmits the bio of a process that slept for a request and was woken. `bio` is the one for
    /// which [`submit`](Self::submit) returned [`Submitted::Asleep`].
    pub fn resubmit(&mut self, bio: Bio, now_ns: u64) -> Result<(Submitted, Kick), SubmitError> {
        self.begin(now_ns);
        self.check(&bio)?;
        if !self.core.tables.contexts[bio.context.slot].sleep.is_woken() {
            return Err(SubmitError::NotWoken);
        }
        let submitted = self.make_request(&bio, true)?;
        Ok((submitted, self.end_submission(&bio, submitted)))
    }

    /// Unplugs the queue because a process waits for pending I/O.
    pub fn unplug_for_waiter(&mut self, now_ns: u64) -> Kick {
        self.begin(now_ns);
        self.unplug();
        self.end()
    }

    /// Returns the next request for the driver, which takes it by this call.
    pub fn next(&mut self, now_ns: u64) -> Next {
        self.begin(now_ns);
        let slot = self.next_slot();
        if slot == NIL {
            self.end_run();
            let is_empty = self.core.dispatch.is_empty() && self.elevator.is_empty();
            return if is_empty { Next::Empty } else { Next::Wait };
        }
        self.core.dispatch.remove(&mut self.core.tables, slot);
        let request = &mut self.core.tables.requests[slot];
        request.state = State::Started;
        let id = RequestId { slot, generation: request.generation };
        self.core.in_flight.increment();
        self.core.emit(|core| Event::Issue(core.io(slot)));
        Next::Request(id)
    }

    /// Returns the next request for one hardware queue, 0 to the configured number less 1.
    /// Elevators with a single queue behave as with [`next`](Self::next).
    pub fn next_for(&mut self, hw_queue: u16, now_ns: u64) -> Next {
        self.core.hw_queue = Some(hw_queue);
        let next = self.next(now_ns);
        self.core.hw_queue = None;
        next
    }

    /// The record of a request that is queued or in the device.
    #[inline]
    pub fn request(&self, id: RequestId) -> Option<&Request> {
        let request = &self.core.tables.requests[id.slot];
        (request.generation == id.generation && request.state != State::Free).then_some(request)
    }

    /// The tokens of a request's bios in the order in which they were merged, while it is queued or
    /// in the device.
    pub fn tokens(&self, id: RequestId) -> impl Iterator<Item = u64> + '_ {
        let request = self.request(id);
        let first = request.map_or(NIL, |request| request.merged[0]);
        let next_of = |slot: Slot| (slot != NIL).then(|| &self.core.tables.merged[slot]);
        let joined = core::iter::successors(next_of(first), move |entry| next_of(entry.next));
        request.map(|request| request.token).into_iter().chain(joined.map(|entry| entry.token))
    }

    /// The context for which a request was made.
    pub fn context_of(&self, id: RequestId) -> Option<&Context> {
        let request = self.request(id)?;
        (request.context != NIL).then(|| &self.core.tables.contexts[request.context])
    }

    /// Completes a request. `done` receives the token of each of its bios, in the order in which
    /// they were merged. A barrier's token is reported with the last step of its sequence; the host
    /// records whether a step failed.
    pub fn complete(&mut self, id: RequestId, now_ns: u64, done: impl FnMut(u64)) -> Result<Kick, Stale> {
        self.begin(now_ns);
        let slot = self.started(id).ok_or(Stale)?;
        self.core.in_flight.decrement();
        self.core.emit(|core| Event::Complete(core.io(slot)));
        self.finish(slot, done);
        self.drained();
        self.unplug_after_completion();
        Ok(self.end())
    }

    /// Returns an unserved request to the queue. It is issued first when the host runs the queue
    /// again. The host decides when, because only the host has the state of the device.
    pub fn requeue(&mut self, id: RequestId, now_ns: u64) -> Result<Kick, Stale> {
        self.begin(now_ns);
        let slot = self.started(id).ok_or(Stale)?;
        self.core.in_flight.decrement();
        self.core.emit(|core| Event::Requeue(core.io(slot)));
        if self.core.tables.requests[slot].marks.has(Marks::SORTED) {
            self.elevator.deactivate(&mut self.core, slot);
        }
        self.insert_requeued(slot);
        Ok(self.end())
    }

    /// The time of the next [`timer`](Self::timer) call, in ns of the host's time.
    pub fn next_timer(&self) -> Option<u64> {
        self.core.timers.next().map(|(_, at_ns)| at_ns)
    }

    /// Fires the first due timer, if any. Call it again while [`next_timer`](Self::next_timer) is
    /// not in the future.
    pub fn timer(&mut self, now_ns: u64) -> Kick {
        self.begin(now_ns);
        if let Some((timer, at_ns)) = self.core.timers.next()
            && at_ns <= self.core.clock.now_ns()
        {
            self.core.timers.cancel(timer);
            match timer {
                Timer::Unplug => self.unplug_timer(),
                timer => self.elevator.timer(&mut self.core, timer),
            }
        }
        self.end()
    }

    /// Takes the oldest item of deferred work, which the host then does.
    pub fn next_work(&mut self) -> Option<DeferredWork> {
        loop {
            match self.core.work.pop()? {
                DeferredWork::Run => {
                    self.core.run_pending = false;
                    self.remove_plug();
                    return Some(DeferredWork::Run);
                }
                DeferredWork::Unplug if self.remove_plug() => return Some(DeferredWork::Run),
                DeferredWork::Unplug => {}
                DeferredWork::Wake(context) if self.is_woken(context) => return Some(DeferredWork::Wake(context)),
                // The process has exited since; another one was woken in its place.
                DeferredWork::Wake(_) => {}
            }
        }
    }

    /// Adapts the queue to the kind of elevator.
    fn fit_to(&mut self, kind: Kind) {
        let info = kind.info();
        let hashes = self.rules.hashes_back_merges || info.hashes_back_merges;
        self.hashing = self.config.merging && hashes && !self.elevator.searches_merges();
        self.pool.set_size(self.config.nr_requests.map(|size| info.nr_requests.unwrap_or(size)));
    }

    fn fill_free_lists(&mut self) {
        let QueueCore { tables, free_contexts, dispatch, .. } = &mut self.core;
        // Tables of different lengths have the capacity of the shortest.
        let beside = tables.nodes.capacity().min(tables.arrivals.capacity()).min(dispatch.capacity());
        self.free_request_count = tables.requests.capacity().min(beside).min(self.capacity.request_slots());
        for slot in 0..self.free_request_count {
            self.free_requests.push_back(&mut tables.requests, slot);
        }
        for slot in ROOT.saturating_add(1)..tables.groups.capacity().min(self.capacity.group_slots()) {
            self.free_groups.push_back(&mut tables.groups, slot);
        }
        for slot in 0..tables.contexts.capacity().min(self.capacity.contexts) {
            free_contexts.push_back(&mut tables.contexts, slot);
        }
        for slot in (0..tables.merged.capacity()).rev() {
            tables.merged[slot].next = self.free_merged;
            self.free_merged = slot;
        }
    }

    #[inline]
    fn begin(&mut self, now_ns: u64) {
        self.core.clock.set(now_ns);
        self.core.run_now = false;
    }

    #[inline]
    fn end(&mut self) -> Kick {
        if core::mem::take(&mut self.core.run_now) { Kick::Run } else { Kick::Quiet }
    }

    /// Drops a pending run that the elevator scheduled while the queue was being run.
    fn end_run(&mut self) {
        self.core.run_now = false;
    }

    fn check(&self, bio: &Bio) -> Result<(), SubmitError> {
        self.running_context(bio.context).ok_or(SubmitError::NoContext)?;
        let barrier = bio.flags.has(Flags::BARRIER);
        if (bio.sectors == 0 && !barrier) || bio.sector.checked_add(u64::from(bio.sectors)).is_none() {
            return Err(SubmitError::BadExtent);
        }
        if bio.op == Op::Flush || (barrier && self.config.ordered == OrderedMode::None) {
            return Err(SubmitError::NotSupported);
        }
        Ok(())
    }

    #[inline]
    fn running_context(&self, id: ContextId) -> Option<Slot> {
        let context = &self.core.tables.contexts[id.slot];
        (context.generation == id.generation && context.is_running()).then_some(id.slot)
    }

    #[inline]
    fn started(&self, id: RequestId) -> Option<Slot> {
        let request = &self.core.tables.requests[id.slot];
        (request.generation == id.generation && request.state == State::Started).then_some(id.slot)
    }

    /// Allocates and inserts a request for a bio that was not merged, or puts the process to sleep.
    fn make_request(&mut self, bio: &Bio, woken: bool) -> Result<Submitted, SubmitError> {
        if !self.has_free_request() {
            return Err(SubmitError::Full);
        }
        let context = bio.context.slot;
        if woken {
            self.core.tables.contexts[context].sleep = Sleep::Awake;
        }
        if !self.allocate_from_pool(context, bio, woken) {
            self.core.emit(|core| Event::Sleep(io_of(core, bio)));
            self.sleep(context, bio.op);
            if woken {
                self.pass_wakeup_on(bio.op);
            }
            return Ok(Submitted::Asleep);
        }
        let slot = self.take_free_request();
        let generation = self.fill(slot, bio);
        self.core.emit(|core| Event::Get(core.io(slot)));
        if self.config.plugging && self.is_empty() {
            self.plug();
        }
        if let Some(joined) = self.insert(slot) {
            return Ok(Submitted::Merged(joined));
        }
        self.unplug_at_threshold();
        Ok(Submitted::Queued(RequestId { slot, generation }))
    }

    fn end_submission(&mut self, bio: &Bio, submitted: Submitted) -> Kick {
        if bio.flags.has(Flags::UNPLUG) && submitted != Submitted::Asleep {
            self.unplug();
        }
        self.end()
    }

    /// Returns true if the storage has a free request beyond those reserved for the queue itself.
    fn has_free_request(&self) -> bool {
        self.free_request_count > crate::elevator::capacity::RESERVED_REQUESTS
    }

    fn take_free_request(&mut self) -> Slot {
        self.free_request_count.decrement();
        self.free_requests.pop_front(&mut self.core.tables.requests)
    }

    fn put_free_request(&mut self, slot: Slot) {
        self.core.tables.requests[slot].state = State::Free;
        self.free_requests.push_front(&mut self.core.tables.requests, slot);
        self.free_request_count.increment();
    }

    /// Initialises a free request with a bio. Returns its generation.
    fn fill(&mut self, slot: Slot, bio: &Bio) -> u32 {
        let context = bio.context.slot;
        let now_ns = self.core.clock.now_ns();
        let entry = &mut self.core.tables.contexts[context];
        entry.requests.increment();
        let priority = entry.effective_priority();
        let request = &mut self.core.tables.requests[slot];
        let generation = request.generation.wrapping_add(1);
        request.generation = generation;
        request.sector = bio.sector;
        request.token = bio.token;
        request.submitted_ns = now_ns;
        request.sectors = bio.sectors;
        request.context = context;
        request.merged = [NIL; 2];
        request.op = bio.op;
        request.flags = bio.flags;
        request.priority = priority;
        request.state = State::Sorted;
        // Marks are always written whole: the processor forwards a store only to a load that it
        // covers.
        let private = !self.switching.is_under_way();
        request.marks = if private { Marks::PRIVATE } else { Marks::default() };
        if private {
            self.switching.private.increment();
            self.elevator.allocate(&mut self.core, slot);
        }
        generation
    }

    /// Passes a new request to the elevator, or to the end of the dispatch list if it must bypass
    /// the elevator. Returns the request into which it was merged, if it was.
    fn insert(&mut self, slot: Slot) -> Option<RequestId> {
        let request = &mut self.core.tables.requests[slot];
        let mut marks = request.marks;
        self.ordered.colour(request.flags, &mut marks);
        let goes_back = marks.has(Marks::HARD_BARRIER) || !marks.has(Marks::PRIVATE);
        if !goes_back && !self.rules.multi_queue {
            marks.set(Marks::SORTED);
        }
        request.marks = marks;
        if goes_back {
            self.insert_back(slot);
            return None;
        }
        if self.rules.multi_queue {
            self.elevator.prepare_insert(&mut self.core, slot);
            if self.config.merging
                && let Some(joined) = self.join_at_insert(slot)
            {
                self.core.run_now();
                return Some(joined);
            }
            self.core.tables.requests[slot].marks.set(Marks::SORTED);
        }
        if self.config.merging {
            if self.core.last_merge == NIL {
                self.core.last_merge = slot;
            }
            if self.hashing {
                self.hash_insert(slot);
            }
        }
        self.core.emit(|core| Event::Insert(core.io(slot)));
        if self.rules.multi_queue {
            self.elevator.insert(&mut self.core, slot);
        } else {
            self.elevator.prepare_and_insert(&mut self.core, slot);
        }
        None
    }

    /// The head of the dispatch list if it may be issued now, or [`NIL`].
    #[inline]
    fn next_slot(&mut self) -> Slot {
        loop {
            let head = self.core.dispatch.head();
            if head == NIL {
                if self.elevator.dispatch(&mut self.core, false) == 0 {
                    return NIL;
                }
                continue;
            }
            let slot = self.pass_ordered(head);
            if slot == NIL {
                return NIL;
            }
            let request = &mut self.core.tables.requests[slot];
            let (op, end) = (request.op, request.end());
            let first_time = request.marks.has(Marks::SORTED) && !request.marks.has(Marks::ACTIVATED);
            if first_time {
                request.marks.set(Marks::ACTIVATED);
                self.elevator.activate(&mut self.core, slot);
            }
            if op != Op::Flush {
                self.core.dispatch.passed(&mut self.core.tables, slot, end);
            }
            return slot;
        }
    }

    /// Ends a request: reports its bios and releases it from the elevator, the pool and its
    /// context.
    fn finish(&mut self, slot: Slot, mut done: impl FnMut(u64)) {
        if self.core.tables.requests[slot].marks.has(Marks::SEQUENCE) {
            return self.finish_sequence_request(slot, done);
        }
        let request = &self.core.tables.requests[slot];
        let (mut merged, marks) = (request.merged[0], request.marks);
        let (sorted, private) = (marks.has(Marks::SORTED), marks.has(Marks::PRIVATE));
        done(request.token);
        while merged != NIL {
            let entry = self.core.tables.merged[merged];
            done(entry.token);
            self.core.tables.merged[merged].next = self.free_merged;
            self.free_merged = merged;
            merged = entry.next;
        }
        if sorted && private {
            self.elevator.complete_and_free(&mut self.core, slot);
            self.release_request(slot);
            return self.leave_private();
        }
        if sorted {
            self.elevator.complete(&mut self.core, slot);
        }
        self.free_request(slot);
    }

    /// Frees a request that has completed or was absorbed.
    fn free_request(&mut self, slot: Slot) {
        let private = self.core.tables.requests[slot].marks.has(Marks::PRIVATE);
        if private {
            self.elevator.free(&mut self.core, slot);
        }
        self.release_request(slot);
        if private {
            self.leave_private();
        }
    }

    /// Releases a request from the table, the pool and its context.
    #[inline]
    fn release_request(&mut self, slot: Slot) {
        let request = &self.core.tables.requests[slot];
        let (op, context) = (request.op, request.context);
        self.put_free_request(slot);
        self.free_to_pool(op);
        self.core.unhold_context(context);
    }
}

/// Describes a bio for an event.
fn io_of<H: HostTypes>(core: &QueueCore<H>, bio: &Bio) -> Io {
    let Bio { token, context, op, sector, sectors, flags } = *bio;
    Io { token, pid: core.tables.contexts[context.slot].pid, op, sector, sectors, flags }
}

/// The index of the pool from which a bio or request is allocated: 0 read, 1 write.
fn direction(op: Op) -> usize {
    op.direction()
}
