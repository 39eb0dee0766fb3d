//! The request queue: submission, merging, the pool of requests, plugging, the dispatch list, barriers, completion, and
//! switching elevators.
//!
//! It follows the block layer of Linux 2.6.18 (and, by [`BlockLayer`], what later ones changed). It is told
//! the time, owns no thread, lock or timer, and is driven by calls; see [`RequestQueue`].

mod barrier;
mod groups;
mod merge;
mod plug;
mod pool;
mod reserve;
mod switch;

use crate::bio::{Bio, Flags, Op};
use crate::clock::{Clock, ClockConfig, Timer, Timers};
use crate::collections::{Arena, HashChains, List, NIL, Ring, Slot};
use crate::context::{Context, ContextId, Sleep, State as ContextState};
use crate::elevator::Elevator;
use crate::elevator::dispatch_list::DispatchList;
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::{Capacity, DeferredWork, HostTypes, QueueTables};
use crate::elevator::tunable::{Tunable, TunableError};
use crate::event::{Event, Io};
use crate::group::{FreeGroups, ROOT};
use crate::layer::{BlockLayer, Rules};
use crate::priority::{CpuPolicy, Priority};
use crate::registry::{AnyElevator, Kind};
use crate::request::{Marks, Plain, Request, RequestId, State};
use crate::storage::{ElevatorStorage, Storage};

pub use barrier::OrderedMode;
use pool::Pool;

/// How a queue behaves, beside its elevator.
#[derive(Clone, Copy, Debug)]
pub struct QueueConfig {
    /// Which kernel's block layer.
    pub layer: BlockLayer,
    /// The clock that the elevator sees.
    pub clock: ClockConfig,
    /// Hold requests back for up to 3 ms or until 4 are waiting, so that bios can be merged (2.6.18's plugging). Without it nothing
    /// starts an idle queue but the host: it runs the queue after every submission.
    pub plugging: bool,
    /// Whether bios are merged into queued requests.
    pub merging: bool,
    /// The size of the pool of requests a direction (4 or more; 128 in Linux), or `None` for as many as there is room for.
    pub nr_requests: Option<u32>,
    /// The largest request that merging makes, in sectors, 1 or more: with less than two requests' worth nothing merges.
    pub max_sectors: u32,
    /// A request that a bio was refused for size takes no more bios, as in a real kernel.
    pub refusal_ends_merging: bool,
    /// How barriers are kept.
    pub ordered: OrderedMode,
    /// The hardware queues of the device, 1 or more: only multi-queue elevators tell them apart.
    pub hw_queues: u16,
    /// Whether the device has an arm that moves (`queue/rotational`): newer elevators keep others idle less.
    pub rotational: bool,
}

impl Default for QueueConfig {
    /// A 2.6.18 queue with plugging, merging up to 512 KiB and a pool of 128 requests a direction.
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

/// The size of the pool of requests a direction in Linux, for what depends on it where the pool has no bound.
const DEFAULT_NR_REQUESTS: u32 = 128;

/// Whether the host has to run the queue: to call [`RequestQueue::next`] until its device is full or nothing comes.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kick {
    /// Nothing to do.
    Quiet,
    /// Run the queue now.
    Run,
}

/// What became of a bio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Submitted {
    /// It is part of a request that was there.
    Merged(RequestId),
    /// It became a request.
    Queued(RequestId),
    /// The pool is empty: its process sleeps. When [`Work::Wake`] names the context, call [`RequestQueue::resubmit`]
    /// with the same bio; the process submits nothing else before that.
    Asleep,
}

/// Why a bio was not taken. The queue is as it was, but for what an elevator learns when it is asked for a request to merge with (BFQ may
/// have merged two processes' queues): do what [`RequestQueue::next_work`] lists after an error, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubmitError {
    /// The storage holds no more: submit it again (or resubmit it, if that was refused) after a completion.
    Full,
    /// The context's process sleeps for a request already, with another bio.
    Asleep,
    /// The context's process was not woken: there is nothing to resubmit.
    NotWoken,
    /// The context is not one of this queue's, or has exited.
    NoContext,
    /// It has no sectors and is no barrier, or ends beyond sector 2^64.
    BadExtent,
    /// It is a barrier and the device cannot order ([`OrderedMode::None`]), or a flush, which only the queue makes: an empty
    /// barrier asks for one.
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

/// What [`RequestQueue::next`] has for the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// This request: start it.
    Request(RequestId),
    /// Nothing now, but requests are queued: the elevator waits for a timer, an arrival or a completion.
    Wait,
    /// Nothing is queued.
    Empty,
}

/// A handle is stale: what it named is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stale;

/// No room for another context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// A request queue with its elevator.
///
/// The host calls [`submit`](Self::submit) for each bio and, when told to [`Kick::Run`], gives its device what
/// [`next`](Self::next) answers; it calls [`complete`](Self::complete) as the device finishes, and [`timer`](Self::timer) when the time of
/// [`next_timer`](Self::next_timer) has come. After each of these calls (and after the run that it asked for) it does
/// what [`next_work`](Self::next_work) lists.
#[allow(missing_debug_implementations)]
pub struct RequestQueue<H: HostTypes> {
    config: QueueConfig,
    /// What both the queue's tables and the elevator's hold.
    capacity: Capacity,
    rules: Rules,
    core: QueueCore<H>,
    elevator: AnyElevator<H>,
    /// Whether back merges are looked for in the hash.
    hashing: bool,
    free_requests: List<Plain>,
    free_request_count: u32,
    free_merged: Slot,
    free_groups: List<FreeGroups>,
    pool: Pool,
    plugged: bool,
    ordered: barrier::Sequence,
    switching: switch::Switching<H>,
}

impl<H: HostTypes> RequestQueue<H> {
    /// A queue with an elevator of the kind that `elevator_storage` is for. It holds what both storages have room for.
    pub fn new(
        config: QueueConfig,
        storage: Storage<H>,
        elevator_storage: ElevatorStorage<H>,
        sink: H::Sink,
        now_ns: u64,
    ) -> Self {
        let rules = config.layer.rules();
        let capacity = storage.capacity.common(elevator_storage.capacity);
        let mut core = QueueCore {
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
            sink,
        };
        core.tables.groups[ROOT].in_use = true;
        let elevator = AnyElevator::new(&mut core, elevator_storage.tables);
        let kind = elevator.kind();
        let mut queue = RequestQueue {
            config,
            capacity,
            rules,
            core,
            elevator,
            hashing: false,
            free_requests: List::default(),
            free_request_count: 0,
            free_merged: NIL,
            free_groups: List::default(),
            pool: Pool::default(),
            plugged: false,
            ordered: barrier::Sequence::default(),
            switching: switch::Switching::new(),
        };
        queue.fit_to(kind);
        queue.fill_free_lists();
        queue
    }

    /// The queue's configuration.
    pub fn config(&self) -> &QueueConfig {
        &self.config
    }

    /// Whether bios are merged from now on, and how many sectors a request has at most then, 1 or more. What is queued stays as it is.
    pub fn set_merging(&mut self, merging: bool, max_sectors: u32) {
        self.config.merging = merging;
        self.config.max_sectors = max_sectors.max(1);
        self.core.max_sectors = self.config.max_sectors;
        self.fit_to(self.kind());
    }

    /// The kind of elevator that decides now.
    pub fn kind(&self) -> Kind {
        self.elevator.kind()
    }

    /// The sink of the trace events.
    pub fn sink(&self) -> &H::Sink {
        &self.core.sink
    }

    /// The same, to be emptied.
    pub fn sink_mut(&mut self) -> &mut H::Sink {
        &mut self.core.sink
    }

    /// How many requests of an operation's direction the pool has given out, and how many it holds a direction (multi-queue: of both); `None`
    /// is as many as there is room for. Hosts tell from it whether the queue is congested.
    pub fn pool_use(&self, op: Op) -> (u32, Option<u32>) {
        self.pool.use_of(op)
    }

    /// Requests that the driver has.
    pub fn in_flight(&self) -> u32 {
        self.core.in_flight
    }

    /// Whether nothing waits for the driver.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.core.dispatch.is_empty() && self.elevator.is_empty()
    }

    /// Takes in a process. Its entry is free again when it has exited and its last request is done.
    pub fn create_context(&mut self, pid: u32, priority: Priority, nice: i8) -> Result<ContextId, Full> {
        let slot = self.core.free_contexts.pop_front(&mut self.core.tables.contexts);
        if slot == NIL {
            return Err(Full);
        }
        let generation = self.core.tables.contexts[slot].generation.wrapping_add(1);
        self.core.tables.contexts[slot] =
            Context { generation, pid, priority, nice, state: ContextState::Running, ..Context::default() };
        self.core.enter_group(slot, ROOT);
        Ok(ContextId { slot, generation })
    }

    /// What is known of a context.
    pub fn context(&self, id: ContextId) -> Option<&Context> {
        let context = &self.core.tables.contexts[id.slot];
        (context.generation == id.generation && context.state != ContextState::Free).then_some(context)
    }

    /// The process of a context exits. Its requests are still served.
    pub fn exit_context(&mut self, id: ContextId, now_ns: u64) -> Result<Kick, Stale> {
        self.begin(now_ns);
        let slot = self.running_context(id).ok_or(Stale)?;
        self.stop_sleeping(slot);
        self.elevator.exit(&mut self.core, slot);
        self.core.tables.contexts[slot].state = ContextState::Exited;
        self.core.free_context_if_unused(slot);
        Ok(self.end())
    }

    /// Sets a context's priority ([`Priority::UNSET`]: it follows nice).
    pub fn set_priority(&mut self, id: ContextId, priority: Priority, now_ns: u64) -> Result<Kick, Stale> {
        self.begin(now_ns);
        let slot = self.running_context(id).ok_or(Stale)?;
        self.core.tables.contexts[slot].priority = priority;
        self.elevator.priority_changed(&mut self.core, slot);
        Ok(self.end())
    }

    /// Sets a context's nice value, which an unset priority follows. As in the kernel, queues that the elevator keeps for the
    /// process see it only when they read its priority anew.
    pub fn set_nice(&mut self, id: ContextId, nice: i8, now_ns: u64) -> Result<Kick, Stale> {
        self.begin(now_ns);
        let slot = self.running_context(id).ok_or(Stale)?;
        self.core.tables.contexts[slot].nice = nice;
        Ok(self.end())
    }

    /// Tells by which policy a context's process is given the CPU, which the class of an unset priority follows in block layers from 2.6.26
    /// on; it is nothing to those before. Like [`set_nice`](Self::set_nice), it is seen when the priority is read anew.
    pub fn set_cpu_policy(&mut self, id: ContextId, policy: CpuPolicy, now_ns: u64) -> Result<Kick, Stale> {
        self.begin(now_ns);
        let slot = self.running_context(id).ok_or(Stale)?;
        if self.rules.cpu_policy_counts {
            self.core.tables.contexts[slot].policy = policy;
        }
        Ok(self.end())
    }

    /// Tells on which CPU a context's process runs: multi-queue elevators file its requests by it.
    pub fn set_cpu(&mut self, id: ContextId, cpu: u16) -> Result<(), Stale> {
        let slot = self.running_context(id).ok_or(Stale)?;
        self.core.tables.contexts[slot].cpu = cpu;
        Ok(())
    }

    /// The tunables of the present elevator, with their values. Those of the layer of reserved bandwidth
    /// ([`Reservation::TUNABLES`](crate::Reservation::TUNABLES)) come first, if it is there.
    pub fn tunables(&self) -> impl Iterator<Item = (&'static Tunable, i64)> + '_ {
        // Numbered by a range: to the proof, `enumerate` could overflow.
        self.elevator.tunables().zip(0..usize::MAX).map(|(t, i)| (t, self.elevator.tunable(i)))
    }

    /// Stores a tunable of the present elevator, by the kernel's name and in the kernel's unit. The elevator sees the time of the last call;
    /// a wait that is under way ends as it was begun.
    pub fn set_tunable(&mut self, name: &str, value: i64) -> Result<(), TunableError> {
        let mut tunables = self.elevator.tunables().zip(0..usize::MAX);
        let (tunable, index) = tunables.find(|(tunable, _)| tunable.name == name).ok_or(TunableError::Unknown)?;
        if value < tunable.min || value > tunable.max {
            return Err(TunableError::OutOfRange { min: tunable.min, max: tunable.max });
        }
        self.elevator.set_tunable(&mut self.core, index, value);
        Ok(())
    }

    /// A process submits a bio.
    pub fn submit(&mut self, bio: Bio, now_ns: u64) -> Result<(Submitted, Kick), SubmitError> {
        self.begin(now_ns);
        self.check(&bio)?;
        if self.core.tables.contexts[bio.context.slot].sleep != Sleep::Awake {
            return Err(SubmitError::Asleep);
        }
        self.core.tell(|core| Event::Queue(io_of(core, &bio)));
        let submitted = match self.try_merge(&bio) {
            Some(request) => Submitted::Merged(request),
            None => self.make_request(&bio, false)?,
        };
        Ok((submitted, self.end_submission(&bio, submitted)))
    }

    /// A process that slept for a request goes on; `bio` is the one that [`submit`](Self::submit) answered [`Submitted::Asleep`] to.
    pub fn resubmit(&mut self, bio: Bio, now_ns: u64) -> Result<(Submitted, Kick), SubmitError> {
        self.begin(now_ns);
        self.check(&bio)?;
        if !self.core.tables.contexts[bio.context.slot].sleep.is_woken() {
            return Err(SubmitError::NotWoken);
        }
        let submitted = self.make_request(&bio, true)?;
        Ok((submitted, self.end_submission(&bio, submitted)))
    }

    /// A process waits for data that is on its way: what the queue holds back goes to the driver.
    pub fn unplug_for_waiter(&mut self, now_ns: u64) -> Kick {
        self.begin(now_ns);
        self.unplug();
        self.end()
    }

    /// The next request for the driver, which takes it by this call.
    pub fn next(&mut self, now_ns: u64) -> Next {
        self.begin(now_ns);
        let slot = self.next_slot();
        if slot == NIL {
            self.end_run();
            return if self.is_empty() { Next::Empty } else { Next::Wait };
        }
        self.core.dispatch.remove(&mut self.core.tables, slot);
        let request = &mut self.core.tables.requests[slot];
        request.state = State::Started;
        let id = RequestId { slot, generation: request.generation };
        self.core.in_flight = self.core.in_flight.saturating_add(1);
        self.core.tell(|core| Event::Issue(core.io(slot)));
        Next::Request(id)
    }

    /// The next request for one hardware queue of the driver, 0 to one less than the configuration's number of them. Elevators that
    /// know of one queue only answer as [`next`](Self::next) does.
    pub fn next_for(&mut self, hw_queue: u16, now_ns: u64) -> Next {
        self.core.hw_queue = Some(hw_queue);
        let next = self.next(now_ns);
        self.core.hw_queue = None;
        next
    }

    /// A request, while it is queued or in the device.
    #[inline]
    pub fn request(&self, id: RequestId) -> Option<&Request> {
        let request = &self.core.tables.requests[id.slot];
        (request.generation == id.generation && request.state != State::Free).then_some(request)
    }

    /// The tokens of a request's bios while it is queued or in the device, in the order in which they joined.
    pub fn tokens(&self, id: RequestId) -> impl Iterator<Item = u64> + '_ {
        let request = self.request(id);
        let first = request.map_or(NIL, |request| request.merged[0]);
        let next_of = |slot: Slot| (slot != NIL).then(|| &self.core.tables.merged[slot]);
        let joined = core::iter::successors(next_of(first), move |entry| next_of(entry.next));
        request.map(|request| request.token).into_iter().chain(joined.map(|entry| entry.token))
    }

    /// The context that a request was made for.
    pub fn context_of(&self, id: RequestId) -> Option<&Context> {
        let request = self.request(id)?;
        (request.context != NIL).then(|| &self.core.tables.contexts[request.context])
    }

    /// The device has finished a request; `done` gets the token of each bio in it, in the order in which they joined. A barrier's
    /// token comes with the last step of its sequence; whether a step failed is for the host to remember.
    pub fn complete(&mut self, id: RequestId, now_ns: u64, done: impl FnMut(u64)) -> Result<Kick, Stale> {
        self.begin(now_ns);
        let slot = self.started(id).ok_or(Stale)?;
        self.core.in_flight = self.core.in_flight.saturating_sub(1);
        self.core.tell(|core| Event::Complete(core.io(slot)));
        self.finish(slot, done);
        self.drained();
        self.unplug_after_completion();
        Ok(self.end())
    }

    /// The device gives a request back unserved; it will be the next one to be issued, when the host runs the queue again: that is up to
    /// the host, which knows when its device is ready.
    pub fn requeue(&mut self, id: RequestId, now_ns: u64) -> Result<Kick, Stale> {
        self.begin(now_ns);
        let slot = self.started(id).ok_or(Stale)?;
        self.core.in_flight = self.core.in_flight.saturating_sub(1);
        self.core.tell(|core| Event::Requeue(core.io(slot)));
        if self.core.tables.requests[slot].marks.has(Marks::SORTED) {
            self.elevator.deactivate(&mut self.core, slot);
        }
        self.insert_requeued(slot);
        Ok(self.end())
    }

    /// When [`timer`](Self::timer) has to be called next, in ns of the host's time.
    pub fn next_timer(&self) -> Option<u64> {
        self.core.timers.next().map(|(_, at_ns)| at_ns)
    }

    /// Fires the first timer that is due, if any is. Call it again while [`next_timer`](Self::next_timer) is not in the future.
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

    /// Takes the oldest piece of deferred work; the host does it and asks again.
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
                // Its process has exited since, and another one was woken in its place.
                DeferredWork::Wake(_) => {}
            }
        }
    }

    /// Sets up what depends on the kind of elevator.
    fn fit_to(&mut self, kind: Kind) {
        let info = kind.info();
        let hashes = self.rules.hashes_back_merges || info.hashes_back_merges;
        self.hashing = self.config.merging && hashes && !self.elevator.searches_merges();
        self.pool.set_size(self.config.nr_requests.map(|size| info.nr_requests.unwrap_or(size)));
    }

    fn fill_free_lists(&mut self) {
        let QueueCore { tables, free_contexts, dispatch, .. } = &mut self.core;
        // Tables that were handed over in different lengths hold what the shortest holds.
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

    /// What an elevator asks for while the queue is being run anyway is not asked twice.
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

    /// Allocates a request for a bio that was not merged and inserts it, or puts the process to sleep.
    fn make_request(&mut self, bio: &Bio, woken: bool) -> Result<Submitted, SubmitError> {
        if self.free_request_count <= crate::elevator::tables::RESERVED_REQUESTS {
            return Err(SubmitError::Full);
        }
        let context = bio.context.slot;
        if woken {
            self.core.tables.contexts[context].sleep = Sleep::Awake;
        }
        if !self.allocate_from_pool(context, bio, woken) {
            self.core.tell(|core| Event::Sleep(io_of(core, bio)));
            self.sleep(context, bio.op);
            if woken {
                self.pass_on(bio.op);
            }
            return Ok(Submitted::Asleep);
        }
        let slot = self.take_free_request();
        let generation = self.fill(slot, bio);
        self.core.tell(|core| Event::Get(core.io(slot)));
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

    fn take_free_request(&mut self) -> Slot {
        self.free_request_count = self.free_request_count.saturating_sub(1);
        self.free_requests.pop_front(&mut self.core.tables.requests)
    }

    fn put_free_request(&mut self, slot: Slot) {
        self.core.tables.requests[slot].state = State::Free;
        self.free_requests.push_front(&mut self.core.tables.requests, slot);
        self.free_request_count = self.free_request_count.saturating_add(1);
    }

    /// Makes a free request that of a bio; answers its generation.
    fn fill(&mut self, slot: Slot, bio: &Bio) -> u32 {
        let context = bio.context.slot;
        let now_ns = self.core.clock.now_ns();
        let entry = &mut self.core.tables.contexts[context];
        entry.requests = entry.requests.saturating_add(1);
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
        // Marks are always written whole: the processor forwards a store only to a load that it covers.
        let private = !self.switching.is_under_way();
        request.marks = if private { Marks::PRIVATE } else { Marks::default() };
        if private {
            self.switching.private = self.switching.private.saturating_add(1);
            self.elevator.allocate(&mut self.core, slot);
        }
        generation
    }

    /// Hands a new request to the elevator; one that it must not see goes to the end of the dispatch list. Answers the request that it
    /// has become part of, if it has.
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
            let joined = self.join_at_insert(slot);
            if joined.is_some() {
                self.core.run_now();
                return joined;
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
        self.core.tell(|core| Event::Insert(core.io(slot)));
        if !self.rules.multi_queue {
            self.elevator.prepare_insert(&mut self.core, slot);
        }
        self.elevator.insert(&mut self.core, slot);
        None
    }

    /// The head of the dispatch list that may go to the driver now, seen by it for the first time or not; or [`NIL`].
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

    /// Ends a request: its elevator, its bios' owner, the pool and its context let go of it.
    fn finish(&mut self, slot: Slot, mut done: impl FnMut(u64)) {
        if self.core.tables.requests[slot].marks.has(Marks::SEQUENCE) {
            return self.finish_sequence_request(slot, done);
        }
        let request = &self.core.tables.requests[slot];
        let (mut merged, sorted) = (request.merged[0], request.marks.has(Marks::SORTED));
        done(request.token);
        while merged != NIL {
            let entry = self.core.tables.merged[merged];
            done(entry.token);
            self.core.tables.merged[merged].next = self.free_merged;
            self.free_merged = merged;
            merged = entry.next;
        }
        if sorted {
            self.elevator.complete(&mut self.core, slot);
        }
        self.free_request(slot);
    }

    /// Frees a request that is done or was absorbed.
    fn free_request(&mut self, slot: Slot) {
        let request = &self.core.tables.requests[slot];
        let (op, context, private) = (request.op, request.context, request.marks.has(Marks::PRIVATE));
        if private {
            self.elevator.free(&mut self.core, slot);
        }
        self.put_free_request(slot);
        self.free_to_pool(op);
        self.core.unhold_context(context);
        if private {
            self.switching.private = self.switching.private.saturating_sub(1);
            self.switch_if_drained();
        }
    }
}

/// A bio as events show it.
fn io_of<H: HostTypes>(core: &QueueCore<H>, bio: &Bio) -> Io {
    Io {
        token: bio.token,
        pid: core.tables.contexts[bio.context.slot].pid,
        op: bio.op,
        sector: bio.sector,
        sectors: bio.sectors,
    }
}

/// Whether a bio or request writes: the index of the pool that it is allocated from.
fn direction(op: Op) -> usize {
    op.direction()
}
