//! The queue of one disk: the flow of requests from submission to completion.

mod dispatch;
mod flush;

use std::collections::VecDeque;

use hoistway_core::Event;

use crate::entries::{Entries, Entry, Stage};
use crate::ids::IoId;
use crate::limiter::Cost;
use crate::medium::{MediumProperties, Output};
use crate::request::{Completion, IoError, IoRequest, RequestOp};
use crate::scheduler::{DiskQueueConfig, DiskScheduler, MemberId, QueueError};

use flush::{Flushes, flush_io};

pub use dispatch::TRIM_BYTES_MAX;

/// The queue of one disk. `D` is the data that the host attaches to requests, `O` the output of
/// requests.
#[derive(Debug)]
pub struct DiskQueue<D, O> {
    scheduler: DiskScheduler,
    entries: Entries<D, O>,
    /// Entries for which the request queue had no room, oldest first.
    overflow: VecDeque<IoId>,
    /// Status queries that start at the next run. They bypass the request queue.
    status_queries: VecDeque<IoId>,
    flushes: Flushes,
    /// Completions that were not yet returned, each with the slot of its client.
    completions: Vec<(u32, Completion<O>)>,
    /// The bios of one request; kept so that dispatch and completion do not allocate.
    bios: Vec<IoId>,
}

impl<D, O: Output> DiskQueue<D, O> {
    /// Creates the queue of a disk.
    ///
    /// # Errors
    /// When a value is out of its range or the elevator has no such tunable.
    pub fn new(config: &DiskQueueConfig, medium: MediumProperties, now_ns: u64) -> Result<Self, QueueError> {
        Ok(DiskQueue {
            scheduler: DiskScheduler::new(config, medium, now_ns)?,
            entries: Entries::default(),
            overflow: VecDeque::new(),
            status_queries: VecDeque::new(),
            flushes: Flushes::default(),
            completions: Vec::new(),
            bios: Vec::new(),
        })
    }

    /// Returns the scheduler: request queue, elevator, tenants, limits.
    #[inline]
    pub fn scheduler(&self) -> &DiskScheduler {
        &self.scheduler
    }

    /// Returns the scheduler for changes. The host has to call [`DiskQueue::run`] afterwards.
    #[inline]
    pub fn scheduler_mut(&mut self) -> &mut DiskScheduler {
        &mut self.scheduler
    }

    /// Returns true if no request waits or is in progress, including requests of clients that have
    /// left.
    pub fn is_idle(&self) -> bool {
        self.entries.slab.is_empty() && self.scheduler.in_flight.is_empty() && self.flushes.are_idle()
    }

    /// Submits a request. [`DiskQueue::run`] returns its completion, unless the client leaves
    /// before.
    ///
    /// Returns the id of the request's I/O, which
    /// [`MediumRequest::io`](crate::MediumRequest::io) repeats when it is dispatched.
    /// `None` if the request was refused, or completed at once, or the client has left.
    ///
    /// The I/O keeps its id until its completion: it ends only by [`DiskQueue::end_io`], by
    /// [`Begin::Done`](crate::Begin::Done), or when its client leaves. A later one may have the
    /// same id; [`DiskQueue::ticket_of`] distinguishes them.
    pub fn submit(&mut self, member: MemberId, request: IoRequest<D>, now_ns: u64) -> Option<IoId> {
        self.scheduler.advance(now_ns);
        let tenant = self.scheduler.tenants.tenant_of(member)?;
        let ticket = request.ticket;
        if let Err(error) = self.check(&request) {
            self.refuse(member, ticket, error);
            return None;
        }
        let op = request.op;
        if op == RequestOp::Cache && self.scheduler.medium.is_synchronous {
            self.completions.push((member.slot(), Completion { ticket, result: Ok(O::none()) }));
            return None;
        }
        let bytes =
            if matches!(op, RequestOp::Read | RequestOp::Write | RequestOp::Cache) { request.length } else { 0 };
        let io = self.entries.insert(Entry::new(request, member.slot(), tenant, now_ns));
        self.entries.link(io, self.scheduler.tenants.first_of(member.slot()));
        self.scheduler.tenants.account(tenant).open_request(now_ns);
        match op {
            RequestOp::Flush => {
                self.flushes.add(io);
                self.scheduler.record(now_ns, Event::Queue(flush_io(io, member.number())));
            }
            RequestOp::Status => self.status_queries.push_back(io),
            _ if self.scheduler.limiter.admit(tenant, Cost { bytes, operations: 1 }, io, now_ns) => self.admit(io),
            _ => {
                self.scheduler.tenants.account(tenant).hold(now_ns);
                self.set_stage(io, Stage::Held);
            }
        }
        self.entries.get(io).map(|_| io)
    }

    /// Returns the ticket of the request of an I/O; `None` if there is none. A host that stores ids
    /// compares tickets, because ids are reused after completion.
    #[inline]
    pub fn ticket_of(&self, io: IoId) -> Option<u64> {
        self.entries.get(io).map(|entry| entry.request.ticket)
    }

    /// Returns the data of a request that was not dispatched yet; `None` after its dispatch.
    #[inline]
    pub fn waiting_data_mut(&mut self, io: IoId) -> Option<&mut D> {
        self.entries.get_mut(io).filter(|entry| entry.is_waiting()).and_then(|entry| entry.request.data.as_mut())
    }

    /// Returns the ids and the data of all requests that were not dispatched yet.
    pub fn all_waiting_data_mut(&mut self) -> impl Iterator<Item = (IoId, &mut D)> {
        let waiting = self.entries.slab.iter_mut().filter(|(_, entry)| entry.is_waiting());
        waiting.filter_map(|(io, entry)| Some((IoId::of_index(io), entry.request.data.as_mut()?)))
    }

    /// Completes a request with an error without queueing it.
    pub fn refuse(&mut self, member: MemberId, ticket: u64, error: IoError) {
        self.completions.push((member.slot(), Completion { ticket, result: Err(error) }));
    }

    /// Removes a client. Its waiting requests are dropped; those in the device end without a
    /// completion.
    pub fn leave(&mut self, member: MemberId, now_ns: u64) {
        let now_ns = self.scheduler.advance(now_ns);
        let Some(tenant) = self.scheduler.tenants.tenant_of(member) else { return };
        let mut next = *self.scheduler.tenants.first_of(member.slot());
        let mut any_held = false;
        while let Some(io) = next
            && let Some(entry) = self.entries.get_mut(io)
        {
            next = entry.next;
            entry.dead = true;
            entry.request.data = None;
            if entry.stage == Stage::Held {
                any_held = true;
                self.drop_held(io);
            }
        }
        if any_held {
            let entries = &self.entries;
            let is_held = |io| entries.get(io).is_some_and(|entry| entry.stage == Stage::Held);
            self.scheduler.limiter.retain(tenant, is_held, now_ns);
        }
        self.drop_dead_bypasses();
        self.completions.retain(|(owner, _)| *owner != member.slot());
        let scheduler = &mut self.scheduler;
        scheduler.tenants.leave(&mut scheduler.queue, member, now_ns);
        // Before another client takes the number under which its slice is counted.
        scheduler.count_slices();
        // If the elevator idled for this client, the others can be served now.
        scheduler.kick();
    }

    /// Returns the time at which [`DiskQueue::run`] has to be called if nothing else happens; a
    /// time in the past means at once. `medium_ns` is the result of
    /// [`Medium::next_event_ns`](crate::Medium::next_event_ns).
    pub fn next_wake_ns(&self, medium_ns: Option<u64>) -> Option<u64> {
        let scheduler = &self.scheduler;
        let flush_fits = !scheduler.medium.is_emulated || scheduler.in_flight() < scheduler.depth;
        let at_once = !self.completions.is_empty()
            || !self.status_queries.is_empty()
            || (self.flushes.wants_to_begin() && flush_fits)
            || (scheduler.kicked && self.has_room());
        if at_once {
            return Some(scheduler.now_ns);
        }
        self.next_event_ns(medium_ns)
    }

    /// Returns the time of the next timer of the request queue, event of the drive model, or
    /// release by a limit.
    pub fn next_event_ns(&self, medium_ns: Option<u64>) -> Option<u64> {
        [self.scheduler.queue.next_timer(), medium_ns, self.scheduler.limiter.next_ns()].into_iter().flatten().min()
    }

    fn check(&self, request: &IoRequest<D>) -> Result<(), IoError> {
        if request.op == RequestOp::Flush {
            return Ok(());
        }
        request.op.check_range(request.offset, request.length, self.scheduler.medium.bytes)?;
        if request.length == 0 { Err(IoError::InvalidArgument) } else { Ok(()) }
    }

    fn set_stage(&mut self, io: IoId, stage: Stage) {
        if let Some(entry) = self.entries.get_mut(io) {
            entry.stage = stage;
        }
    }
}
