//! The path of a request from its limits to the medium and back: admission, splitting, dispatch up
//! to the queue depth, completion.

use hoistway_core::{Bio, Flags, Next, Op, RequestId, SubmitError};

use super::DiskQueue;
use crate::entries::{Entry, Part, Split, Stage, piece_end};
use crate::ids::{CommandId, IoId};
use crate::medium::{Begin, DriveCommand, Medium, MediumEvent, MediumRequest, Output};
use crate::request::{Completion, IoError, IoRequest, RequestOp};
use crate::scheduler::InFlightRequest;

/// A trim is split into pieces of at most 64 MiB, the amount that an elevator that counts bytes
/// charges at once.
pub const TRIM_BYTES_MAX: u64 = 64 << 20;
/// The number of pieces of one request that are in progress at a time: 8 MiB at 1 MiB each.
const PIECES_IN_PROGRESS_MAX: u32 = 8;
const SECTOR_BYTES: u64 = 512;

impl<D, O: Output> DiskQueue<D, O> {
    /// Dispatches requests up to the queue depth, and appends the completions of ended requests to
    /// `done`.
    ///
    /// Under a drive model, call [`DiskQueue::catch_up`] first.
    pub fn run<M>(&mut self, medium: &mut M, now_ns: u64, done: &mut Vec<Completion<O>>)
    where
        M: Medium<Data = D, Output = O>,
    {
        let now_ns = self.scheduler.advance(now_ns);
        let scheduler = &mut self.scheduler;
        if scheduler.tenants.remove_retired(&mut scheduler.queue, now_ns) {
            scheduler.kick();
        }
        let mut budget = self.budget();
        self.step(medium, &mut budget, now_ns);
        done.extend(self.completions.drain(..).map(|(_, completion)| completion));
    }

    /// Processes the events of a drive model that were due since the last run, each at its own
    /// time: a drive takes its next command when it ends one, and an elevator's timer expires at
    /// its time, however late the host is. The host calls it before it submits new requests, so
    /// that these find the device in the right state. It does nothing for a medium without a drive
    /// model.
    pub fn catch_up<M: Medium<Data = D, Output = O>>(&mut self, medium: &mut M, now_ns: u64) {
        if !self.scheduler.medium.is_emulated {
            return;
        }
        while let Some(at_ns) = self.next_event_ns(medium.next_event_ns()).filter(|&at_ns| at_ns <= now_ns) {
            let at_ns = self.scheduler.advance(at_ns);
            let mut budget = u32::MAX;
            self.step(medium, &mut budget, at_ns);
        }
    }

    /// Does everything that is due at a time: completions of the drive model first, then the work
    /// that they and timers make possible.
    fn step<M: Medium<Data = D, Output = O>>(&mut self, medium: &mut M, budget: &mut u32, now_ns: u64) {
        loop {
            self.poll_medium(medium, now_ns);
            self.fire_timers(now_ns);
            self.release_held(now_ns);
            self.begin_flush(medium, now_ns);
            self.begin_status_queries(medium, now_ns);
            self.refill();
            let dispatched = self.dispatch(medium, budget, now_ns);
            if !dispatched || self.overflow.is_empty() {
                break;
            }
        }
        self.scheduler.count_slices();
    }

    /// Returns an I/O in progress as it began, without its data.
    pub fn io_in_progress(&self, io: IoId) -> Option<MediumRequest<()>> {
        match io {
            IoId::FLUSH => Some(MediumRequest::flush()),
            _ => self.entries.get(io).map(|entry| entry.medium_request(io, None)),
        }
    }

    /// Takes the result of an I/O that began as [`Begin::Pending`].
    #[inline]
    pub fn end_io(&mut self, io: IoId, result: Result<O, IoError>, now_ns: u64) {
        let now_ns = self.scheduler.advance(now_ns);
        match io {
            IoId::FLUSH => self.flush_io_ended(result.map(|_| ()), now_ns),
            _ => self.io_ended(io, result, now_ns),
        }
    }

    /// Returns true if the queue depth admits another request.
    pub(super) fn has_room(&self) -> bool {
        let flushing = if self.scheduler.medium.is_emulated {
            self.flushes.in_drive() + u32::from(self.flushes.wants_to_begin())
        } else {
            0
        };
        self.scheduler.in_flight() + flushing < self.scheduler.depth
    }

    /// Returns the number of requests that one run dispatches.
    ///
    /// A synchronous medium would accept every request at once. While several clients have requests
    /// waiting, a run dispatches only as many as the queue depth, or as the smallest backlog of a
    /// client, so that the elevator has requests of all clients to choose from.
    fn budget(&self) -> u32 {
        if !self.scheduler.medium.is_synchronous {
            return u32::MAX;
        }
        let (clients, least) = self.scheduler.tenants.backlog();
        if clients > 1 { self.scheduler.depth.max(least) } else { u32::MAX }
    }

    fn fire_timers(&mut self, now_ns: u64) {
        while self.scheduler.queue.next_timer().is_some_and(|at_ns| at_ns <= now_ns) {
            let kick = self.scheduler.queue.timer(now_ns);
            self.scheduler.handle_kick(kick);
        }
    }

    fn release_held(&mut self, now_ns: u64) {
        while let Some(io) = self.scheduler.limiter.release(now_ns) {
            let Some(tenant) = self.entries.get(io).map(|entry| entry.tenant) else { continue };
            self.scheduler.tenants.account(tenant).release(now_ns);
            self.admit(io);
        }
    }

    /// Queues a request that passed its limits, in pieces if it is long.
    pub(super) fn admit(&mut self, io: IoId) {
        let Some(entry) = self.entries.get_mut(io) else { return };
        let max = if entry.request.op == RequestOp::Trim { TRIM_BYTES_MAX } else { self.scheduler.piece_bytes_max() };
        if entry.request.length <= max || !self.scheduler.medium.splits_requests {
            entry.stage = Stage::Queued;
            return self.enqueue(io);
        }
        entry.stage = Stage::Split;
        let split = Split { next: entry.request.offset, pieces: 0, in_progress: 0, error: None, outputs: Vec::new() };
        entry.part = Part::Split(Box::new(split));
        self.queue_pieces(io);
    }

    /// Queues the next pieces of a split request.
    fn queue_pieces(&mut self, whole: IoId) {
        while let Some(piece) = self.next_piece(whole) {
            let io = self.entries.insert(piece);
            self.enqueue(io);
        }
    }

    fn next_piece(&mut self, whole: IoId) -> Option<Entry<D, O>> {
        let max = self.scheduler.piece_bytes_max();
        let entry = self.entries.get_mut(whole)?;
        let (end, dead) = (entry.end(), entry.dead);
        let Part::Split(split) = &mut entry.part else { return None };
        if dead || split.error.is_some() || split.next >= end || split.in_progress >= PIECES_IN_PROGRESS_MAX {
            return None;
        }
        let max = if entry.request.op == RequestOp::Trim { TRIM_BYTES_MAX } else { max };
        let (offset, index) = (split.next, split.pieces);
        split.next = piece_end(offset, end, max);
        split.pieces += 1;
        split.in_progress += 1;
        let length = split.next - offset;
        if entry.request.op == RequestOp::Read {
            split.outputs.push((length, O::none()));
        }
        let request = IoRequest { offset, length, data: None, ..entry.request };
        let piece = Entry::new(request, entry.member, entry.tenant, entry.arrival_ns);
        Some(Entry { part: Part::Piece { of: whole, index }, ..piece })
    }

    fn enqueue(&mut self, io: IoId) {
        if let Some(entry) = self.entries.get(io) {
            self.scheduler.tenants.add_waiting(entry.tenant, entry.member);
        }
        if self.overflow.is_empty() && self.offer(io) {
            return;
        }
        self.overflow.push_back(io);
    }

    /// Submits an entry to the request queue. Returns false if the queue is full.
    fn offer(&mut self, io: IoId) -> bool {
        let Some(entry) = self.entries.get(io) else { return true };
        let Some(context) = self.scheduler.tenants.context_of(entry.member) else {
            self.drop_queued(io);
            return true;
        };
        let op = match entry.request.op {
            RequestOp::Read | RequestOp::Cache => Op::Read,
            RequestOp::Trim => Op::Discard,
            RequestOp::Write | RequestOp::Zero { .. } | RequestOp::Flush | RequestOp::Status => Op::Write,
        };
        // The client of a network block device waits for each reply, so its writes are synchronous;
        // asynchronous writes of all clients would share one queue of the elevator. A host with
        // better knowledge passes hints.
        let flags = match (op, entry.request.durable) {
            (Op::Read, _) => Flags::NONE,
            (_, true) => Flags::SYNC.and(Flags::FUA),
            (_, false) if entry.request.hints.is_async => Flags::NONE,
            (_, false) => Flags::SYNC,
        };
        let flags = if entry.request.hints.is_metadata { flags.and(Flags::META) } else { flags };
        let sector = entry.request.offset / SECTOR_BYTES;
        let sectors = entry.end().div_ceil(SECTOR_BYTES) - sector;
        let sectors = u32::try_from(sectors).unwrap_or(u32::MAX);
        let bio = Bio { token: io.token(), context, op, sector, sectors, flags };
        match self.scheduler.queue.submit(bio, self.scheduler.now_ns) {
            Ok(_) => self.scheduler.kicked = true,
            Err(SubmitError::Full) => return false,
            Err(_) => {
                self.leave_queue(io);
                self.finish_entry(io, Err(IoError::InvalidArgument), self.scheduler.now_ns);
            }
        }
        self.scheduler.run_deferred();
        true
    }

    /// Submits overflowed entries to the request queue, as far as there is room.
    fn refill(&mut self) {
        while let Some(io) = self.overflow.front().copied() {
            if self.entries.is_dead(io) {
                self.overflow.pop_front();
                self.drop_queued(io);
                continue;
            }
            if !self.offer(io) {
                return;
            }
            self.overflow.pop_front();
        }
    }

    /// Dispatches requests until the queue depth is reached, the elevator has none, or the budget
    /// of the run is spent. Returns true if a request was dispatched.
    fn dispatch<M>(&mut self, medium: &mut M, budget: &mut u32, now_ns: u64) -> bool
    where
        M: Medium<Data = D, Output = O>,
    {
        let mut dispatched = false;
        while self.scheduler.kicked && *budget > 0 && self.has_room() {
            match self.scheduler.queue.next(now_ns) {
                Next::Request(id) => {
                    self.start(medium, id, now_ns);
                    *budget -= 1;
                    dispatched = true;
                }
                Next::Wait | Next::Empty => self.scheduler.kicked = false,
            }
            self.scheduler.end_left_slice();
            self.scheduler.run_deferred();
            self.scheduler.log_violation();
        }
        dispatched
    }

    /// Starts a request: one command to the drive model, and the I/O of each of its bios.
    fn start<M: Medium<Data = D, Output = O>>(&mut self, medium: &mut M, id: RequestId, now_ns: u64) {
        let mut bios = std::mem::take(&mut self.bios);
        bios.clear();
        bios.extend(self.scheduler.queue.tokens(id).map(IoId::of_token));
        let mut tenant = u32::MAX;
        let mut alive = false;
        for &io in &bios {
            self.leave_queue(io);
            alive |= !self.entries.is_dead(io);
            tenant = self.entries.get(io).map_or(tenant, |entry| entry.tenant);
        }
        if !alive {
            self.bios = bios;
            return self.complete(id, now_ns);
        }
        let busy_mark = self.scheduler.busy.enter(now_ns);
        // One bio more is counted until all have begun, so that the request cannot end before the
        // end of this call.
        let pending_bios = bios.len() as u32 + 1;
        let request = InFlightRequest { id, pending_bios, in_drive: false, bad_sector: None, busy_mark, tenant };
        let command = CommandId::of_index(self.scheduler.in_flight.insert(request));
        let account = self.scheduler.tenants.account(tenant);
        account.in_flight += 1;
        self.start_command(medium, command, id, now_ns);
        for &io in &bios {
            self.begin(medium, io, command, now_ns);
        }
        self.bios = bios;
        self.bio_ended(command, now_ns);
    }

    /// Counts the end of one bio of a request.
    fn bio_ended(&mut self, command: CommandId, now_ns: u64) {
        if let Some(request) = self.scheduler.in_flight.get_mut(command.index()) {
            request.pending_bios = request.pending_bios.saturating_sub(1);
        }
        self.finish_request(command, now_ns);
    }

    fn start_command<M>(&mut self, medium: &mut M, command: CommandId, id: RequestId, now_ns: u64)
    where
        M: Medium<Data = D, Output = O>,
    {
        if !self.scheduler.medium.is_emulated {
            return;
        }
        let Some(request) = self.scheduler.queue.request(id) else { return };
        let drive_command = DriveCommand {
            id: command,
            op: request.op(),
            sector: request.sector(),
            sectors: request.sectors(),
            fua: request.flags().has(Flags::FUA),
        };
        let in_drive = medium.start_command(&drive_command, now_ns);
        if let Some(request) = self.scheduler.in_flight.get_mut(command.index()) {
            request.in_drive = in_drive;
        }
    }

    /// Begins the I/O of one bio.
    fn begin<M: Medium<Data = D, Output = O>>(&mut self, medium: &mut M, io: IoId, command: CommandId, now_ns: u64) {
        let is_dead = self.entries.is_dead(io);
        let data = if is_dead { None } else { self.take_data(medium, io) };
        let Some(entry) = self.entries.get_mut(io) else { return };
        entry.stage = Stage::Dispatched;
        entry.dispatch_ns = now_ns;
        entry.command = Some(command);
        if is_dead {
            return self.io_ended(io, Err(IoError::Io), now_ns);
        }
        let request = entry.medium_request(io, data);
        if let Part::Piece { of, index: 0 } = entry.part
            && let Some(whole) = self.entries.get_mut(of)
        {
            whole.dispatch_ns = now_ns;
        }
        if let Begin::Done(result) = medium.begin(request) {
            self.io_ended(io, result, now_ns);
        }
    }

    /// Takes the data of a write out of its entry. The data of a piece is a copy of its part of the
    /// whole.
    fn take_data<M: Medium<Data = D, Output = O>>(&mut self, medium: &mut M, io: IoId) -> Option<D> {
        let entry = self.entries.get_mut(io)?;
        let Part::Piece { of, .. } = entry.part else { return entry.request.data.take() };
        let (offset, length) = (entry.request.offset, entry.request.length as usize);
        let whole = self.entries.get(of)?;
        let from = usize::try_from(offset - whole.request.offset).ok()?;
        medium.copy_piece(whole.request.data.as_ref()?, from, length)
    }

    /// Takes the result of the I/O of one bio.
    fn io_ended(&mut self, io: IoId, result: Result<O, IoError>, now_ns: u64) {
        let Some(entry) = self.entries.get_mut(io) else { return };
        let Some(command) = entry.command else { return self.finish_entry(io, result, now_ns) };
        entry.result = Some(result);
        self.bio_ended(command, now_ns);
    }

    /// Takes the events of the drive model that are due.
    fn poll_medium<M: Medium<Data = D, Output = O>>(&mut self, medium: &mut M, now_ns: u64) {
        while let Some(event) = medium.poll(now_ns) {
            match event {
                MediumEvent::FlushDone => self.drive_flush_ended(now_ns),
                MediumEvent::CommandDone { id, bad_sector } => {
                    if let Some(request) = self.scheduler.in_flight.get_mut(id.index()) {
                        request.in_drive = false;
                        request.bad_sector = bad_sector;
                    }
                    self.finish_request(id, now_ns);
                }
            }
        }
    }

    /// Ends a request when the drive model and the I/O of all of its bios have ended.
    fn finish_request(&mut self, command: CommandId, now_ns: u64) {
        let scheduler = &mut self.scheduler;
        let Some(request) = scheduler.in_flight.get(command.index()) else { return };
        if request.pending_bios > 0 || request.in_drive {
            return;
        }
        let request = scheduler.in_flight.remove(command.index());
        let service_ns = scheduler.busy.leave(request.busy_mark, now_ns);
        let account = scheduler.tenants.account(request.tenant);
        account.in_flight = account.in_flight.saturating_sub(1);
        account.service_ns += service_ns;
        if let Some(sector) = request.bad_sector {
            self.fail_from_sector(request.id, sector);
        }
        self.complete(request.id, now_ns);
    }

    /// Fails the bios of a request that extend beyond the start of a bad sector.
    fn fail_from_sector(&mut self, id: RequestId, sector: u64) {
        for token in self.scheduler.queue.tokens(id) {
            if let Some(entry) = self.entries.get_mut(IoId::of_token(token))
                && entry.end() > sector.saturating_mul(SECTOR_BYTES)
            {
                entry.result = Some(Err(IoError::Io));
            }
        }
    }

    /// Completes a request in the request queue, and the entries of its bios.
    fn complete(&mut self, id: RequestId, now_ns: u64) {
        let mut bios = std::mem::take(&mut self.bios);
        bios.clear();
        let scheduler = &mut self.scheduler;
        let (late, late_ns) = (scheduler.queue.late_requests(), scheduler.queue.lateness_ns(id, now_ns));
        if let Ok(kick) = scheduler.queue.complete(id, now_ns, |token| bios.push(IoId::of_token(token))) {
            scheduler.handle_kick(kick);
        }
        if scheduler.queue.late_requests() > late
            && let Some(tenant) = bios.first().and_then(|&io| self.entries.get(io)).map(|entry| entry.tenant)
        {
            let account = scheduler.tenants.account(tenant);
            account.reservation_missed += 1;
            account.reservation_late_ns += late_ns.unwrap_or(0);
        }
        for &io in &bios {
            let result = self.entries.get_mut(io).and_then(|entry| entry.result.take());
            self.finish_entry(io, result.unwrap_or(Err(IoError::Io)), now_ns);
        }
        bios.clear();
        self.bios = bios;
        self.scheduler.finish_switch();
    }

    /// Begins the waiting status queries, which bypass the request queue.
    fn begin_status_queries<M: Medium<Data = D, Output = O>>(&mut self, medium: &mut M, now_ns: u64) {
        while let Some(io) = self.status_queries.pop_front() {
            let Some(entry) = self.entries.get_mut(io) else { continue };
            entry.stage = Stage::Dispatched;
            let request = entry.medium_request(io, None);
            if let Begin::Done(result) = medium.begin(request) {
                self.finish_entry(io, result, now_ns);
            }
        }
    }

    /// Ends an entry: completes the client's request, or counts a piece of a split request.
    pub(super) fn finish_entry(&mut self, io: IoId, result: Result<O, IoError>, now_ns: u64) {
        let Some(entry) = self.entries.get(io) else { return };
        match entry.part {
            Part::Piece { of, index } => {
                self.entries.remove(io);
                self.piece_ended(of, index, result, now_ns);
            }
            Part::Whole | Part::Split(_) => self.complete_entry(io, result, now_ns),
        }
    }

    fn piece_ended(&mut self, whole: IoId, index: u32, result: Result<O, IoError>, now_ns: u64) {
        let Some(entry) = self.entries.get_mut(whole) else { return };
        let Part::Split(split) = &mut entry.part else { return };
        split.in_progress = split.in_progress.saturating_sub(1);
        match result {
            Ok(output) => {
                if let Some(piece) = split.outputs.get_mut(index as usize) {
                    piece.1 = output;
                }
            }
            Err(error) => {
                split.error.get_or_insert(error);
            }
        }
        self.queue_pieces(whole);
        let Some(entry) = self.entries.get_mut(whole) else { return };
        let (end, dead) = (entry.end(), entry.dead);
        let Part::Split(split) = &mut entry.part else { return };
        if split.in_progress > 0 || (split.next < end && split.error.is_none() && !dead) {
            return;
        }
        let result = match split.error {
            Some(error) => Err(error),
            None if split.outputs.is_empty() => Ok(O::none()),
            None => Ok(O::from_pieces(std::mem::take(&mut split.outputs))),
        };
        self.complete_entry(whole, result, now_ns);
    }

    fn complete_entry(&mut self, io: IoId, result: Result<O, IoError>, now_ns: u64) {
        let Some(member) = self.entries.get(io).map(|entry| entry.member) else { return };
        self.entries.unlink(io, self.scheduler.tenants.first_of(member));
        let entry = self.entries.remove(io);
        let account = self.scheduler.tenants.account(entry.tenant);
        account.close_request(now_ns);
        if entry.dead {
            return;
        }
        let queue_ns = entry.dispatch_ns.saturating_sub(entry.arrival_ns);
        let device_ns = now_ns.saturating_sub(entry.dispatch_ns);
        account.count(entry.request.op, entry.request.length, result.is_err(), queue_ns, device_ns);
        if queue_ns.saturating_add(device_ns) > self.scheduler.log_slow_ns {
            self.scheduler.log_slow(&entry, queue_ns, device_ns);
        }
        self.completions.push((entry.member, Completion { ticket: entry.request.ticket, result }));
    }

    /// Counts a request that leaves the request queue.
    fn leave_queue(&mut self, io: IoId) {
        if let Some(entry) = self.entries.get(io) {
            let member = (!self.entries.is_dead(io)).then_some(entry.member);
            self.scheduler.tenants.remove_waiting(entry.tenant, member);
        }
    }

    /// Drops a queued request of a client that has left.
    fn drop_queued(&mut self, io: IoId) {
        self.leave_queue(io);
        self.finish_entry(io, Err(IoError::Shutdown), self.scheduler.now_ns);
    }

    /// Drops an entry that limits hold back, of a client that has left.
    pub(super) fn drop_held(&mut self, io: IoId) {
        if let Some(entry) = self.entries.get(io) {
            self.scheduler.tenants.account(entry.tenant).release(self.scheduler.now_ns);
        }
        self.complete_entry(io, Err(IoError::Shutdown), self.scheduler.now_ns);
    }

    /// Drops flushes and status queries of clients that have left, unless they have begun.
    pub(super) fn drop_dead_bypasses(&mut self) {
        let entries = &self.entries;
        let mut dropped = self.flushes.remove_unwanted(|io| !entries.is_dead(io));
        self.status_queries.retain(|io| {
            let is_dead = entries.is_dead(*io);
            if is_dead {
                dropped.push(*io);
            }
            !is_dead
        });
        for io in dropped {
            self.complete_entry(io, Err(IoError::Shutdown), self.scheduler.now_ns);
        }
    }
}
