//! From the limits to the device and back: admission to the queue, dispatch up to the depth, completion.

use hoistway_core::{Bio, DeferredWork, Flags, Kick, Next, Op, RequestId, SubmitError};
use hoistway_drive::{Access, Command};
use hoistway_nbd::wire::Errno;

use super::emulated::Emulated;
use super::work::{Entry, NONE, Part, Split, Stage, piece_end};
use super::{Answer, Device, Done, TRIM_BYTES_MAX, WorkOp};
use crate::backend::{Operation, Started};
use crate::buffer::Buffer;
use crate::engine::{Engine, IoDone};

/// The backend's tag of a flush. Entries never come to that number.
pub(super) const FLUSH_TAG: u32 = u32::MAX;
/// The drive's tag of one.
pub(super) const DRIVE_FLUSH: u32 = u32::MAX;
/// Pieces of one request that are in the queue at a time: 8 MiB at 1 MiB each.
const PIECES_AT_ONCE: u32 = 8;
const SECTOR_BYTES: u64 = 512;

/// A tag as the engine sees it.
pub(super) fn tag_of(index: u32, slot: u32) -> u64 {
    u64::from(index) << 32 | u64::from(slot)
}

/// A request of the queue in the device.
#[derive(Debug)]
pub(super) struct Flight {
    id: RequestId,
    /// The bios whose I/O has not ended.
    left: u32,
    /// The drive has not said that it is over.
    in_drive: bool,
    bad_sector: Option<u64>,
    /// What [`super::account::Busy`] wants.
    mark: u64,
    tenant: u32,
}

impl Device {
    /// Requests in the device: reads, and all others.
    pub fn in_flight_by_direction(&self) -> [u64; 2] {
        let mut counts = [0; 2];
        for (_, flight) in &self.flights {
            let op = self.queue.request(flight.id).map(|request| request.op());
            counts[usize::from(op != Some(hoistway_core::Op::Read))] += 1;
        }
        counts
    }

    /// Works: gives the device what it takes, and hands out what is done.
    pub fn run<E: Engine>(&mut self, engine: &mut E, now_ns: u64, done: &mut Vec<Done>) {
        self.catch_up(engine, now_ns);
        self.now_ns = self.now_ns.max(now_ns);
        let now_ns = self.now_ns;
        if self.tenants.remove_retired(&mut self.queue, now_ns) {
            self.told();
        }
        let mut budget = self.budget();
        self.step(engine, &mut budget, now_ns);
        done.extend(self.done.drain(..).map(|(_, done)| done));
    }

    /// Lives through what has come up in an emulated device since it was last run, each thing at its own time: a real drive is given its next command
    /// when it is done with one, and an elevator's wait ends when it ends, however late this program looks. Called before new requests are
    /// submitted, so that they find the device as it is by then; nothing for other devices.
    pub fn catch_up<E: Engine>(&mut self, engine: &mut E, now_ns: u64) {
        let Some(emulated) = &mut self.emulated else { return };
        emulated.look(now_ns);
        while let Some(at_ns) = self.next_event_ns().filter(|&at_ns| at_ns <= now_ns) {
            self.now_ns = self.now_ns.max(at_ns);
            let mut budget = u32::MAX;
            self.step(engine, &mut budget, self.now_ns);
        }
    }

    /// When a timer of the queue, the emulated drive or a limit wants something.
    pub(super) fn next_event_ns(&self) -> Option<u64> {
        let drive_ns = self.emulated.as_ref().and_then(Emulated::next_ns);
        [self.queue.next_timer(), drive_ns, self.limiter.next_ns()].into_iter().flatten().min()
    }

    /// What is to be done at a time: the drive's completions first, then what they and timers let go.
    fn step<E: Engine>(&mut self, engine: &mut E, budget: &mut u32, now_ns: u64) {
        loop {
            self.poll_drive(now_ns);
            self.fire_timers(now_ns);
            self.release_held(now_ns);
            self.begin_flush(engine, now_ns);
            self.ask(engine, now_ns);
            self.refill();
            let went_on = self.dispatch(engine, budget, now_ns);
            if !went_on || self.overflow.is_empty() {
                break;
            }
        }
    }

    /// I/O that the device began with this tag has ended.
    pub fn io_done<E: Engine>(&mut self, engine: &mut E, tag: u64, io: IoDone, now_ns: u64) {
        self.now_ns = self.now_ns.max(now_ns);
        let slot = tag as u32;
        if slot == FLUSH_TAG {
            let started = self.backend.finish(engine, tag, WorkOp::Flush, io);
            return self.flush_started(started, self.now_ns);
        }
        let Some(op) = self.entries.get(slot).map(|entry| entry.op) else { return };
        if let Started::Done(result) = self.backend.finish(engine, tag, op, io) {
            self.backend_done(slot, result, self.now_ns);
        }
    }

    /// Whether the device takes another request.
    pub(super) fn has_room(&self) -> bool {
        let flushing = if self.emulated.is_some() {
            self.flushes.in_drive() + u32::from(self.flushes.wants_to_begin())
        } else {
            0
        };
        self.in_flight + flushing < self.depth
    }

    /// How many requests one run gives the device. What answers at once would be given everything: when several clients want something, it is
    /// given `depth` requests a run instead, so that the rest waits where the elevator can choose; or as many as the client has of which least waits,
    /// for as long as all have something to be chosen from.
    fn budget(&self) -> u32 {
        if !self.is_instant {
            return u32::MAX;
        }
        let (clients, least) = self.tenants.backlog();
        if clients > 1 { self.depth.max(least) } else { u32::MAX }
    }

    fn fire_timers(&mut self, now_ns: u64) {
        while self.queue.next_timer().is_some_and(|at_ns| at_ns <= now_ns) {
            let kick = self.queue.timer(now_ns);
            self.heed(kick);
        }
    }

    fn release_held(&mut self, now_ns: u64) {
        while let Some(slot) = self.limiter.release(now_ns) {
            let Some(tenant) = self.entries.get(slot).map(|entry| entry.tenant) else { continue };
            let account = self.tenants.account(tenant);
            account.held = account.held.saturating_sub(1);
            self.admit(slot);
        }
    }

    /// Puts a request that its limits let pass into the queue, in pieces if it is long.
    pub(super) fn admit(&mut self, slot: u32) {
        let Some(entry) = self.entries.get_mut(slot) else { return };
        let max = if entry.op == WorkOp::Trim { TRIM_BYTES_MAX } else { self.request_bytes_max };
        if entry.length <= max || self.backend.is_hosted() {
            entry.stage = Stage::Queued;
            return self.enqueue(slot);
        }
        entry.stage = Stage::Split;
        let split = Split { next: entry.offset, pieces: 0, under_way: 0, error: None, parts: Vec::new() };
        entry.part = Part::Split(Box::new(split));
        self.cut(slot);
    }

    /// Puts the next pieces of a long request into the queue.
    fn cut(&mut self, whole: u32) {
        while let Some(piece) = self.next_piece(whole) {
            let slot = self.entries.insert(piece);
            self.enqueue(slot);
        }
    }

    fn next_piece(&mut self, whole: u32) -> Option<Entry> {
        let max = self.request_bytes_max;
        let entry = self.entries.get_mut(whole)?;
        let (end, dead) = (entry.end(), entry.dead);
        let Part::Split(split) = &mut entry.part else { return None };
        if dead || split.error.is_some() || split.next >= end || split.under_way >= PIECES_AT_ONCE {
            return None;
        }
        let max = if entry.op == WorkOp::Trim { TRIM_BYTES_MAX } else { max };
        let (offset, index) = (split.next, split.pieces);
        split.next = piece_end(offset, end, max);
        split.pieces += 1;
        split.under_way += 1;
        let length = split.next - offset;
        if entry.op == WorkOp::Read {
            split.parts.push((length, Answer::Nothing));
        }
        Some(Entry {
            ticket: entry.ticket,
            member: entry.member,
            tenant: entry.tenant,
            op: entry.op,
            durable: entry.durable,
            hints: entry.hints,
            stage: Stage::Queued,
            dead: false,
            offset,
            length,
            data: None,
            result: None,
            came_ns: entry.came_ns,
            begun_ns: entry.came_ns,
            part: Part::Piece { of: whole, index },
            flight: NONE,
            before: NONE,
            after: NONE,
        })
    }

    fn enqueue(&mut self, slot: u32) {
        if let Some(entry) = self.entries.get(slot) {
            self.tenants.waits(entry.tenant, entry.member);
        }
        if self.overflow.is_empty() && self.offer(slot) {
            return;
        }
        self.overflow.push_back(slot);
    }

    /// Offers a request to the queue; answers whether it was taken (or is of no use any more).
    fn offer(&mut self, slot: u32) -> bool {
        let Some(entry) = self.entries.get(slot) else { return true };
        let Some(context) = self.tenants.context_of(entry.member) else {
            self.abandon(slot);
            return true;
        };
        let op = match entry.op {
            WorkOp::Read | WorkOp::Cache => Op::Read,
            WorkOp::Trim => Op::Discard,
            WorkOp::Write | WorkOp::Zero { .. } | WorkOp::Flush | WorkOp::Status => Op::Write,
        };
        // The client of a network block device waits for every reply; and async writes of all clients would lie in one queue. A host may know better.
        let flags = match (op, entry.durable) {
            (Op::Read, _) => Flags::NONE,
            (_, true) => Flags::SYNC.and(Flags::FUA),
            (_, false) if entry.hints.is_async => Flags::NONE,
            (_, false) => Flags::SYNC,
        };
        let flags = if entry.hints.is_metadata { flags.and(Flags::META) } else { flags };
        let sector = entry.offset / SECTOR_BYTES;
        let sectors = entry.end().div_ceil(SECTOR_BYTES) - sector;
        let sectors = u32::try_from(sectors).unwrap_or(u32::MAX);
        let bio = Bio { token: u64::from(slot), context, op, sector, sectors, flags };
        match self.queue.submit(bio, self.now_ns) {
            Ok(_) => self.kicked = true,
            Err(SubmitError::Full) => return false,
            Err(_) => {
                self.leave_queue(slot);
                self.finish_entry(slot, Err(Errno::Inval), self.now_ns);
            }
        }
        self.deferred();
        true
    }

    /// Offers what waits in front of the queue, as far as there is room.
    fn refill(&mut self) {
        while let Some(slot) = self.overflow.front().copied() {
            if self.entries.is_dead(slot) {
                self.overflow.pop_front();
                self.abandon(slot);
                continue;
            }
            if !self.offer(slot) {
                return;
            }
            self.overflow.pop_front();
        }
    }

    fn heed(&mut self, kick: Kick) {
        self.kicked |= kick == Kick::Run;
        self.deferred();
    }

    /// The queue was told something beside requests (a client, a group, a tunable): what it has put off is done, and it is run again.
    pub(super) fn told(&mut self) {
        self.kicked = true;
        self.deferred();
    }

    /// Does what the queue has put off: it never puts anybody to sleep, as its pool has no bound.
    fn deferred(&mut self) {
        while let Some(work) = self.queue.next_work() {
            self.kicked |= work == DeferredWork::Run;
        }
    }

    /// Gives the device requests until it is full, nothing comes, or the budget of this run is spent. Answers whether something was given.
    fn dispatch<E: Engine>(&mut self, engine: &mut E, budget: &mut u32, now_ns: u64) -> bool {
        let mut given = false;
        while self.kicked && *budget > 0 && self.has_room() {
            match self.queue.next(now_ns) {
                Next::Request(id) => {
                    self.start(engine, id, now_ns);
                    *budget -= 1;
                    given = true;
                }
                Next::Wait | Next::Empty => self.kicked = false,
            }
            self.deferred();
        }
        given
    }

    /// Starts a request: the drive's model is given all of it as one command, the backend each of its bios.
    fn start<E: Engine>(&mut self, engine: &mut E, id: RequestId, now_ns: u64) {
        let mut tokens = std::mem::take(&mut self.tokens);
        tokens.clear();
        tokens.extend(self.queue.tokens(id).map(|token| token as u32));
        let mut tenant = NONE;
        let mut alive = false;
        for &slot in &tokens {
            self.leave_queue(slot);
            alive |= !self.entries.is_dead(slot);
            tenant = self.entries.get(slot).map_or(tenant, |entry| entry.tenant);
        }
        if !alive {
            self.tokens = tokens;
            return self.complete(id, now_ns);
        }
        let mark = self.busy.enter(now_ns);
        // It counts as one bio more until all have begun, so that it lands at the end of this call at the earliest.
        let flight = Flight { id, left: tokens.len() as u32 + 1, in_drive: false, bad_sector: None, mark, tenant };
        let number = self.flights.insert(flight) as u32;
        self.in_flight += 1;
        let account = self.tenants.account(tenant);
        account.in_flight += 1;
        self.start_in_drive(number, id, now_ns);
        for &slot in &tokens {
            self.begin(engine, slot, number, now_ns);
        }
        self.tokens = tokens;
        self.let_go(number, now_ns);
    }

    /// One bio of a request less to wait for.
    fn let_go(&mut self, number: u32, now_ns: u64) {
        if let Some(flight) = self.flights.get_mut(number as usize) {
            flight.left = flight.left.saturating_sub(1);
        }
        self.land(number, now_ns);
    }

    fn start_in_drive(&mut self, number: u32, id: RequestId, now_ns: u64) {
        let Some(emulated) = &mut self.emulated else { return };
        let Some(request) = self.queue.request(id) else { return };
        let (sector, sectors) = (request.sector(), request.sectors());
        let command = match request.op() {
            Op::Read => Command::from(Access { op: hoistway_drive::Op::Read, sector, sectors }),
            Op::Discard => Command::Discard { sector, sectors },
            Op::Write | Op::Flush => {
                let access = Access { op: hoistway_drive::Op::Write, sector, sectors };
                Command::Transfer { access, fua: request.flags().has(Flags::FUA) }
            }
        };
        // What reaches beyond the drive was refused when it came.
        if emulated.submit(now_ns, number, &command).is_ok()
            && let Some(flight) = self.flights.get_mut(number as usize)
        {
            flight.in_drive = true;
        }
    }

    /// Begins the I/O of one bio.
    fn begin<E: Engine>(&mut self, engine: &mut E, slot: u32, number: u32, now_ns: u64) {
        let is_dead = self.entries.is_dead(slot);
        let data = if is_dead { None } else { self.data_of(engine, slot) };
        let Some(entry) = self.entries.get_mut(slot) else { return };
        entry.stage = Stage::Begun;
        entry.begun_ns = now_ns;
        entry.flight = number;
        if is_dead {
            return self.backend_done(slot, Err(Errno::Io), now_ns);
        }
        let (op, offset, length, durable) = (entry.op, entry.offset, entry.length, entry.durable);
        let is_first = matches!(entry.part, Part::Piece { index: 0, .. });
        if let (Part::Piece { of, .. }, true) = (&entry.part, is_first) {
            let of = *of;
            if let Some(whole) = self.entries.get_mut(of) {
                whole.begun_ns = now_ns;
            }
        }
        let tag = tag_of(self.index, slot);
        if let Started::Done(result) = self.backend.begin(engine, Operation { tag, op, offset, length, durable, data })
        {
            self.backend_done(slot, result, now_ns);
        }
    }

    /// The data of a write; a piece's are a copy of its part of the whole.
    fn data_of<E: Engine>(&mut self, engine: &mut E, slot: u32) -> Option<Buffer> {
        let entry = self.entries.get_mut(slot)?;
        let Part::Piece { of, .. } = entry.part else { return entry.data.take() };
        let (from, length) = (entry.offset, entry.length as usize);
        let whole = self.entries.get(of)?;
        let from = usize::try_from(from - whole.offset).ok()?;
        let data = whole.data.as_ref()?.get(from..from + length)?;
        let mut piece = engine.buffer(length);
        piece.get_mut(..length)?.copy_from_slice(data);
        Some(piece)
    }

    /// The I/O of a bio has ended.
    fn backend_done(&mut self, slot: u32, result: Result<Answer, Errno>, now_ns: u64) {
        let is_given_up = self.entries.is_dead(slot);
        let Some(entry) = self.entries.get_mut(slot) else { return };
        let number = entry.flight;
        if number == NONE {
            return self.finish_entry(slot, result, now_ns);
        }
        // The system may have given up more than this write. That there was no room (ENOSPC) it says before it takes anything.
        if entry.durable && !is_given_up && result.as_ref().err() == Some(&Errno::Io) {
            self.flushes.fail(Errno::Io);
        }
        entry.result = Some(result);
        self.let_go(number, now_ns);
    }

    /// Takes notice of what the drive's model has done by now.
    fn poll_drive(&mut self, now_ns: u64) {
        while let Some(over) = self.emulated.as_mut().and_then(|emulated| emulated.poll(now_ns)) {
            if over.tag == DRIVE_FLUSH {
                self.drive_flushed(now_ns);
                continue;
            }
            if let Some(flight) = self.flights.get_mut(over.tag as usize) {
                flight.in_drive = false;
                flight.bad_sector = over.bad_sector;
            }
            self.land(over.tag, now_ns);
        }
    }

    /// Ends a request, once drive and backend are both done with it.
    fn land(&mut self, number: u32, now_ns: u64) {
        let Some(flight) = self.flights.get(number as usize) else { return };
        if flight.left > 0 || flight.in_drive {
            return;
        }
        let flight = self.flights.remove(number as usize);
        self.in_flight = self.in_flight.saturating_sub(1);
        let service_ns = self.busy.leave(flight.mark, now_ns);
        let account = self.tenants.account(flight.tenant);
        account.in_flight = account.in_flight.saturating_sub(1);
        account.service_ns += service_ns;
        if let Some(sector) = flight.bad_sector {
            self.spoil(flight.id, sector);
        }
        self.complete(flight.id, now_ns);
    }

    /// A sector could not be read or written: the bios that lie before it are sound, the others have failed.
    fn spoil(&mut self, id: RequestId, sector: u64) {
        for token in self.queue.tokens(id) {
            if let Some(entry) = self.entries.get_mut(token as u32)
                && entry.end() > sector.saturating_mul(SECTOR_BYTES)
            {
                entry.result = Some(Err(Errno::Io));
            }
        }
    }

    /// Tells the queue that a request is over, and those who asked.
    fn complete(&mut self, id: RequestId, now_ns: u64) {
        let mut tokens = std::mem::take(&mut self.tokens);
        tokens.clear();
        let late = self.queue.late_requests();
        if let Ok(kick) = self.queue.complete(id, now_ns, |token| tokens.push(token as u32)) {
            self.heed(kick);
        }
        if self.queue.late_requests() > late
            && let Some(tenant) = tokens.first().and_then(|&slot| self.entries.get(slot)).map(|entry| entry.tenant)
        {
            self.tenants.account(tenant).reservation_missed += 1;
        }
        for &slot in &tokens {
            let result = self.entries.get_mut(slot).and_then(|entry| entry.result.take());
            self.finish_entry(slot, result.unwrap_or(Err(Errno::Io)), now_ns);
        }
        tokens.clear();
        self.tokens = tokens;
        self.settle();
    }

    /// Questions pass by the queue.
    fn ask<E: Engine>(&mut self, engine: &mut E, now_ns: u64) {
        while let Some(slot) = self.questions.pop_front() {
            let Some(entry) = self.entries.get_mut(slot) else { continue };
            entry.stage = Stage::Begun;
            let (offset, length) = (entry.offset, entry.length);
            let tag = tag_of(self.index, slot);
            if let Started::Done(result) =
                self.backend.begin(engine, Operation::plain(tag, WorkOp::Status, offset, length))
            {
                self.finish_entry(slot, result, now_ns);
            }
        }
    }

    /// An entry is over: whoever asked is told, or the whole that it is a piece of.
    pub(super) fn finish_entry(&mut self, slot: u32, result: Result<Answer, Errno>, now_ns: u64) {
        let Some(entry) = self.entries.get(slot) else { return };
        match entry.part {
            Part::Piece { of, index } => {
                self.entries.slab.remove(slot as usize);
                self.piece_over(of, index, result, now_ns);
            }
            Part::Whole | Part::Split(_) => self.answer(slot, result, now_ns),
        }
    }

    fn piece_over(&mut self, whole: u32, index: u32, result: Result<Answer, Errno>, now_ns: u64) {
        let Some(entry) = self.entries.get_mut(whole) else { return };
        let Part::Split(split) = &mut entry.part else { return };
        split.under_way = split.under_way.saturating_sub(1);
        match result {
            Ok(answer) => {
                if let Some(part) = split.parts.get_mut(index as usize) {
                    part.1 = answer;
                }
            }
            Err(errno) => {
                split.error.get_or_insert(errno);
            }
        }
        self.cut(whole);
        let Some(entry) = self.entries.get_mut(whole) else { return };
        let (end, dead) = (entry.end(), entry.dead);
        let Part::Split(split) = &mut entry.part else { return };
        if split.under_way > 0 || (split.next < end && split.error.is_none() && !dead) {
            return;
        }
        let result = match split.error {
            Some(errno) => Err(errno),
            None if split.parts.is_empty() => Ok(Answer::Nothing),
            None => Ok(Answer::Parts(std::mem::take(&mut split.parts))),
        };
        self.answer(whole, result, now_ns);
    }

    fn answer(&mut self, slot: u32, result: Result<Answer, Errno>, now_ns: u64) {
        let Some(member) = self.entries.get(slot).map(|entry| entry.member) else { return };
        self.entries.unlink(slot, self.tenants.first_of(member));
        let entry = self.entries.slab.remove(slot as usize);
        let account = self.tenants.account(entry.tenant);
        account.left(now_ns);
        if entry.dead {
            return;
        }
        let queue_ns = entry.begun_ns.saturating_sub(entry.came_ns);
        let device_ns = now_ns.saturating_sub(entry.begun_ns);
        account.done(entry.op, entry.length, result.is_err(), queue_ns, device_ns);
        self.done.push((entry.member, Done { ticket: entry.ticket, result }));
    }

    /// A request does not wait in the queue any more, or in front of it.
    fn leave_queue(&mut self, slot: u32) {
        if let Some(entry) = self.entries.get(slot) {
            let member = (!self.entries.is_dead(slot)).then_some(entry.member);
            self.tenants.waits_no_more(entry.tenant, member);
        }
    }

    /// A request of somebody who has left ends before it came to the device.
    fn abandon(&mut self, slot: u32) {
        self.leave_queue(slot);
        self.finish_entry(slot, Err(Errno::Shutdown), self.now_ns);
    }

    /// Forgets an entry of somebody who has left that limits held back.
    pub(super) fn forget(&mut self, slot: u32) {
        if let Some(entry) = self.entries.get(slot) {
            let account = self.tenants.account(entry.tenant);
            account.held = account.held.saturating_sub(1);
        }
        self.answer(slot, Err(Errno::Shutdown), self.now_ns);
    }

    /// Forgets flushes and questions of somebody who has left that have not begun.
    pub(super) fn drop_dead_directs(&mut self) {
        let entries = &self.entries;
        let mut gone = self.flushes.retain(|slot| !entries.is_dead(slot));
        self.questions.retain(|slot| {
            let is_dead = entries.is_dead(*slot);
            if is_dead {
                gone.push(*slot);
            }
            !is_dead
        });
        for slot in gone {
            self.answer(slot, Err(Errno::Shutdown), self.now_ns);
        }
    }
}
