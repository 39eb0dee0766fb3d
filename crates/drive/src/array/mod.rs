//! An array of drives behind a controller: striped, mirrored or both, with or without a write
//! cache.
//!
//! The controller processes commands one after the other with a constant time each. It splits a
//! command into extents of the members; the command completes with the last of them. Data cross the
//! link to the host one command after the other. These are RAID levels 0 and 1, and stripes over
//! mirrors (Patterson, Gibson & Katz, "A case for redundant arrays of inexpensive disks", SIGMOD
//! 1988).
//!
//! A read of a mirror uses the copy with the shorter queue, and among equal queues the one with the
//! nearer arm. A read that fails on one copy is retried on the others. A write goes to all copies
//! and fails if it fails on all.
//!
//! With a cache a write completes when it is in the cache. Write-back runs above the high mark,
//! when the cache is full, for a flush, and while the host is idle. With a battery the content of
//! the cache counts as written: flushes are free, and sectors leave the cache when they are on the
//! media of the members. The next flush reports a write-back that failed.

mod cache;
mod layout;
mod member;

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};

use crate::command::{Access, Command, Completion, Op, Phases, Service, Source, Status};
use crate::pending::Pending;
use crate::profile::ArrayProfile;
use cache::Cache;
use layout::{Extent, Layout};
use member::{Member, Owner, Piece};

/// The largest number of write-backs queued at a column's members: while the host is idle, and when
/// the cache needs space.
const DESTAGES_IDLE: usize = 1;
const DESTAGES_URGENT: usize = 8;

/// An array of drives.
#[derive(Debug, Clone)]
pub(crate) struct Array {
    layout: Layout,
    depth: u32,
    command_ns: u64,
    link_sector_ns: u64,
    /// The times until which controller and link are busy, in ns.
    controller_ns: u64,
    link_ns: u64,
    members: Vec<Member>,
    cache: Option<Cache>,
    /// Internal events of the controller by time and number.
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    events_made: u64,
    running: Slab<InFlightCommand>,
    destages: Slab<Destage>,
    /// Writes that wait for space in the cache.
    stalled: VecDeque<usize>,
    /// Flushes that wait for write-back, each with the epoch that it ended.
    flushes: VecDeque<(usize, u64)>,
    /// A sector of a completed write whose write-back failed.
    lost: Option<u64>,
    /// The time of the last submission or completion of the host.
    active_ns: u64,
    /// True if an event [`Event::Idle`] is pending.
    idle_check_pending: bool,
    /// True if the host has been idle long enough for write-back.
    idle: bool,
    pending: Pending,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The controller has processed a command.
    Begin(usize),
    /// The data of a write have crossed the link.
    Arrive(usize),
    /// The host may have been idle long enough for write-back.
    Idle,
}

/// A host command in flight.
#[derive(Debug, Clone)]
struct InFlightCommand {
    tag: u32,
    command: Command,
    arrived_ns: u64,
    /// Pieces that members have not completed.
    pieces: u32,
    /// Phases and cylinder of the piece that completed last.
    last: Phases,
    cylinder: u32,
    source: Source,
    /// The columns on which a piece succeeded, and the first failed sector of each column on which
    /// one failed.
    served: BTreeSet<usize>,
    failed: Vec<(usize, u64)>,
    /// The copies on which each extent of a read was tried.
    tried: Vec<(Extent, usize)>,
}

/// A write-back in flight.
#[derive(Debug, Clone)]
struct Destage {
    extent: Extent,
    copies: u32,
    served: bool,
    failed: Option<u64>,
}

impl Array {
    pub(crate) fn new(profile: &ArrayProfile) -> Array {
        let layout = Layout::new(profile);
        Array {
            layout,
            depth: profile.depth,
            command_ns: profile.command_ns,
            link_sector_ns: u64::from(profile.link_sector_ns),
            controller_ns: 0,
            link_ns: 0,
            members: profile.members.iter().enumerate().map(|(number, member)| Member::new(member, number)).collect(),
            cache: profile.cache.as_ref().map(|cache| Cache::new(cache, layout.columns())),
            events: BinaryHeap::new(),
            events_made: 0,
            running: Slab::default(),
            destages: Slab::default(),
            stalled: VecDeque::new(),
            flushes: VecDeque::new(),
            lost: None,
            active_ns: 0,
            idle_check_pending: false,
            idle: false,
            pending: Pending::default(),
        }
    }

    /// Capacity in sectors of 512 bytes.
    pub(crate) fn capacity_sectors(&self) -> u64 {
        self.layout.capacity_sectors()
    }

    /// The largest number of commands in flight.
    pub(crate) fn depth(&self) -> u32 {
        self.depth
    }

    pub(crate) fn submit(&mut self, now_ns: u64, tag: u32, command: &Command) {
        (self.active_ns, self.idle) = (now_ns, false);
        self.controller_ns = now_ns.max(self.controller_ns).saturating_add(self.command_ns);
        let number = self.running.add(InFlightCommand::new(tag, command, now_ns));
        self.at(self.controller_ns, Event::Begin(number));
    }

    pub(crate) fn next_event_ns(&self) -> Option<u64> {
        let own = self.events.peek().map(|Reverse((at_ns, ..))| *at_ns);
        let members = self.members.iter().filter_map(Member::next_event_ns).min();
        [own, members, self.pending.next_event_ns()].into_iter().flatten().min()
    }

    pub(crate) fn poll(&mut self, now_ns: u64) -> Option<Completion> {
        loop {
            let at_ns = self.next_event_ns().filter(|at_ns| *at_ns <= now_ns)?;
            match self.pending.poll(at_ns) {
                Some(done) => return Some(done),
                None => self.advance(at_ns),
            }
        }
    }

    /// Processes the events at `now_ns`: completions of members first, then internal events.
    fn advance(&mut self, now_ns: u64) {
        for number in 0..self.members.len() {
            while let Some((piece, completion)) = self.poll_member(number, now_ns) {
                match piece.owner {
                    Owner::Host(command) => self.host_piece_completed(now_ns, command, &piece, &completion),
                    Owner::Destage(destage) => self.destage_completed(now_ns, destage, &piece, &completion),
                }
            }
        }
        while let Some(Reverse((at_ns, _, event))) = self.events.peek().copied().filter(|due| due.0.0 <= now_ns) {
            self.events.pop();
            match event {
                Event::Begin(number) => self.begin(at_ns, number),
                Event::Arrive(number) => self.arrive(at_ns, number),
                Event::Idle => self.check_idle(at_ns),
            }
        }
        self.write_back();
        let full = self.needs_space();
        self.members.iter_mut().for_each(|member| member.start(now_ns, full));
    }

    fn poll_member(&mut self, number: usize, now_ns: u64) -> Option<(Piece, Completion)> {
        let member = self.members.get_mut(number)?;
        if member.next_event_ns()? > now_ns { None } else { member.poll(now_ns) }
    }

    fn at(&mut self, at_ns: u64, event: Event) {
        self.events_made += 1;
        self.events.push(Reverse((at_ns, self.events_made, event)));
    }

    /// Starts a command that the controller has processed.
    fn begin(&mut self, now_ns: u64, number: usize) {
        let Some(running) = self.running.get(number) else { return };
        match running.command {
            Command::Transfer { access: Access { op: Op::Read, sector, sectors }, .. } => {
                self.begin_read(now_ns, number, sector, sectors);
            }
            Command::Transfer { access, .. } => {
                self.link_ns = now_ns.max(self.link_ns).saturating_add(self.crossing_ns(access.sectors));
                self.at(self.link_ns, Event::Arrive(number));
            }
            Command::Flush => self.begin_flush(now_ns, number),
            Command::Discard { sector, sectors } => {
                for extent in self.layout.extents(sector, sectors) {
                    let discard = Command::Discard { sector: extent.sector, sectors: extent.sectors };
                    self.send_to_all_copies(Owner::Host(number), extent.column, discard);
                }
            }
        }
    }

    fn begin_read(&mut self, now_ns: u64, number: usize, sector: u64, sectors: u32) {
        let extents = self.layout.extents(sector, sectors);
        let missing: Vec<Extent> = match &self.cache {
            Some(cache) => extents.iter().flat_map(|extent| cache.missing(extent)).collect(),
            None => extents,
        };
        let found: u32 = sectors - missing.iter().map(|extent| extent.sectors).sum::<u32>();
        if let Some(running) = self.running.get_mut(number) {
            running.source = match (found, missing.is_empty()) {
                (_, true) => Source::Buffer,
                (0, false) => Source::Media,
                _ => Source::Both,
            };
        }
        if missing.is_empty() {
            self.complete(now_ns, number);
        }
        for extent in missing {
            let copies = self.layout.copies(extent.column);
            let read_cost = |copy: &usize| self.members.get(*copy).map(|member| member.read_cost(extent.sector));
            if let Some(copy) = copies.min_by_key(read_cost) {
                self.read_copy(number, extent, copy);
            }
        }
    }

    fn read_copy(&mut self, number: usize, extent: Extent, copy: usize) {
        let Extent { column, sector, sectors } = extent;
        let command = Access { op: Op::Read, sector, sectors }.into();
        if let (Some(running), Some(member)) = (self.running.get_mut(number), self.members.get_mut(copy)) {
            running.pieces += 1;
            running.tried.push((extent, copy));
            member.enqueue(Piece { owner: Owner::Host(number), command, column });
        }
    }

    /// Puts the data of a write into the cache, or sends them to the members.
    fn arrive(&mut self, now_ns: u64, number: usize) {
        let Some(Command::Transfer { access, fua }) = self.running.get(number).map(|running| running.command) else {
            return;
        };
        let extents = self.layout.extents(access.sector, access.sectors);
        let cached = |cache: &Cache| (cache.profile().battery || !fua) && cache.could_hold(&extents);
        if self.cache.as_ref().is_some_and(cached) {
            self.stalled.push_back(number);
            self.admit_stalled_writes(now_ns);
            return;
        }
        // The content of a cache with a battery counts as written, so a bypassing write must reach
        // the media.
        let fua = fua || self.cache.as_ref().is_some_and(|cache| cache.profile().battery);
        for extent in extents {
            if let Some(cache) = &mut self.cache {
                cache.forget(&extent);
            }
            let Extent { column, sector, sectors } = extent;
            let write = Command::Transfer { access: Access { op: Op::Write, sector, sectors }, fua };
            self.send_to_all_copies(Owner::Host(number), column, write);
        }
    }

    /// Moves stalled writes into the cache in the order of arrival.
    fn admit_stalled_writes(&mut self, now_ns: u64) {
        while let Some(&number) = self.stalled.front() {
            let access = match self.running.get(number).map(|running| running.command) {
                Some(Command::Transfer { access, .. }) => access,
                _ => return,
            };
            let extents = self.layout.extents(access.sector, access.sectors);
            if !self.cache.as_mut().is_some_and(|cache| cache.insert(&extents)) {
                return;
            }
            self.stalled.pop_front();
            self.complete(now_ns, number);
        }
    }

    fn begin_flush(&mut self, now_ns: u64, number: usize) {
        match &mut self.cache {
            Some(cache) if cache.profile().battery => self.complete(now_ns, number),
            Some(cache) => {
                let epoch = cache.end_epoch();
                self.flushes.push_back((number, epoch));
                self.release_flushes();
            }
            None => self.flush_members(number),
        }
    }

    /// Sends flushes to the members whose part of the cache has been written back.
    fn release_flushes(&mut self) {
        while let (Some(&(number, epoch)), Some(cache)) = (self.flushes.front(), &self.cache)
            && cache.has_written(epoch)
        {
            self.flushes.pop_front();
            self.flush_members(number);
        }
    }

    fn flush_members(&mut self, number: usize) {
        for column in 0..self.layout.columns() {
            self.send_to_all_copies(Owner::Host(number), column, Command::Flush);
        }
    }

    fn send_to_all_copies(&mut self, owner: Owner, column: usize, command: Command) {
        for copy in self.layout.copies(column) {
            let Some(member) = self.members.get_mut(copy) else { continue };
            member.enqueue(Piece { owner, command, column });
            if let Owner::Host(number) = owner
                && let Some(running) = self.running.get_mut(number)
            {
                running.pieces += 1;
            }
        }
    }

    fn host_piece_completed(&mut self, now_ns: u64, number: usize, piece: &Piece, completion: &Completion) {
        let Some(running) = self.running.get_mut(number) else { return };
        running.pieces -= 1;
        running.last = completion.service.phases;
        running.cylinder = completion.service.cylinder;
        match completion.status {
            Status::Done => {
                running.served.insert(piece.column);
            }
            Status::MediaError { sector } => {
                if self.retry_on_other_copy(number, piece) {
                    return;
                }
                let sector = self.layout.array_sector(piece.column, sector);
                if let Some(running) = self.running.get_mut(number) {
                    running.failed.push((piece.column, sector));
                }
            }
        }
        if self.running.get(number).is_some_and(|running| running.pieces == 0) {
            self.complete(now_ns, number);
        }
    }

    /// Retries a failed read on another copy and returns true if there is one.
    fn retry_on_other_copy(&mut self, number: usize, piece: &Piece) -> bool {
        let Command::Transfer { access: Access { op: Op::Read, sector, sectors }, .. } = piece.command else {
            return false;
        };
        let extent = Extent { column: piece.column, sector, sectors };
        let Some(running) = self.running.get(number) else { return false };
        let untried = |copy: &usize| !running.tried.contains(&(extent, *copy));
        let Some(copy) = self.layout.copies(piece.column).find(untried) else { return false };
        self.read_copy(number, extent, copy);
        true
    }

    fn destage_completed(&mut self, now_ns: u64, number: usize, piece: &Piece, completion: &Completion) {
        let Some(destage) = self.destages.get_mut(number) else { return };
        destage.copies -= 1;
        match completion.status {
            Status::Done => destage.served = true,
            Status::MediaError { sector } => destage.failed = Some(sector),
        }
        if destage.copies > 0 {
            return;
        }
        let Some(Destage { extent, served, failed, .. }) = self.destages.remove(number) else { return };
        if let Some(sector) = failed.filter(|_| !served) {
            self.lost = self.lost.or(Some(self.layout.array_sector(piece.column, sector)));
        }
        if let Some(cache) = &mut self.cache {
            cache.written(&extent);
        }
        self.admit_stalled_writes(now_ns);
        self.release_flushes();
    }

    /// Completes a command after its members and the cache. The data of a read cross the link.
    fn complete(&mut self, now_ns: u64, number: usize) {
        let Some(running) = self.running.remove(number) else { return };
        let (sectors, reads) = match running.command {
            Command::Transfer { access, .. } => (access.sectors, access.op == Op::Read),
            Command::Flush | Command::Discard { .. } => (0, false),
        };
        let crossing_ns = self.crossing_ns(sectors);
        let mut finish_ns = now_ns;
        if reads {
            self.link_ns = now_ns.max(self.link_ns).saturating_add(crossing_ns);
            finish_ns = self.link_ns;
        }
        let overhead_ns = running.last.overhead_ns + self.command_ns + crossing_ns;
        let phases = Phases { wait_ns: 0, overhead_ns, ..running.last };
        let wait_ns = (finish_ns - running.arrived_ns).saturating_sub(phases.service_ns());
        let service = Service {
            finish_ns,
            phases: Phases { wait_ns, ..phases },
            source: running.source,
            cylinder: running.cylinder,
        };
        let status = match (running.command, running.first_failure()) {
            (Command::Flush, failure) => match failure.or(self.lost.take()) {
                Some(sector) => Status::MediaError { sector },
                None => Status::Done,
            },
            (_, Some(sector)) => Status::MediaError { sector },
            (_, None) => Status::Done,
        };
        self.pending.add(running.tag, service, status);
        self.active_ns = self.active_ns.max(finish_ns);
        self.schedule_idle_check(now_ns);
    }

    fn crossing_ns(&self, sectors: u32) -> u64 {
        u64::from(sectors).saturating_mul(self.link_sector_ns)
    }

    /// Returns true if write-back must run in addition to the commands of the host.
    fn needs_space(&self) -> bool {
        !self.stalled.is_empty() || !self.flushes.is_empty() || self.cache.as_ref().is_some_and(Cache::is_draining)
    }

    /// Queues write-backs at the members.
    fn write_back(&mut self) {
        let limit = match (self.needs_space(), self.idle) {
            (true, _) => DESTAGES_URGENT,
            (false, true) => DESTAGES_IDLE,
            (false, false) => return,
        };
        for column in 0..self.layout.columns() {
            let copies = self.layout.copies(column);
            loop {
                let background = copies.clone().filter_map(|copy| self.members.get(copy)).map(Member::background);
                let Some(cache) = self.cache.as_mut().filter(|_| background.max().unwrap_or(limit) < limit) else {
                    break;
                };
                let fua = cache.profile().battery;
                let Some(extent) = cache.destage(column) else { break };
                let destage = Destage { extent, copies: copies.len() as u32, served: false, failed: None };
                let owner = Owner::Destage(self.destages.add(destage));
                let access = Access { op: Op::Write, sector: extent.sector, sectors: extent.sectors };
                self.send_to_all_copies(owner, column, Command::Transfer { access, fua });
            }
        }
    }

    /// Schedules the check for an idle host.
    fn schedule_idle_check(&mut self, now_ns: u64) {
        let Some(cache) = self.cache.as_ref().filter(|cache| !self.idle_check_pending && !cache.is_empty()) else {
            return;
        };
        let at_ns = now_ns.max(self.active_ns).saturating_add(cache.profile().idle_ns);
        self.idle_check_pending = true;
        self.at(at_ns, Event::Idle);
    }

    fn check_idle(&mut self, now_ns: u64) {
        self.idle_check_pending = false;
        let idle_ns = self.cache.as_ref().map_or(0, |cache| cache.profile().idle_ns);
        // A command in flight schedules the check when it completes.
        if self.running.is_empty() {
            self.idle = now_ns >= self.active_ns.saturating_add(idle_ns);
            if !self.idle {
                self.schedule_idle_check(self.active_ns);
            }
        }
    }
}

impl InFlightCommand {
    fn new(tag: u32, command: &Command, arrived_ns: u64) -> InFlightCommand {
        InFlightCommand {
            tag,
            command: *command,
            arrived_ns,
            pieces: 0,
            last: Phases::default(),
            cylinder: 0,
            source: if matches!(command, Command::Transfer { .. }) { Source::Media } else { Source::Buffer },
            served: BTreeSet::new(),
            failed: Vec::new(),
            tried: Vec::new(),
        }
    }

    /// The first sector that failed on every copy.
    ///
    /// A read fails if any extent failed. A write succeeds if one copy took it, a flush if all did.
    fn first_failure(&self) -> Option<u64> {
        let is_write = matches!(self.command, Command::Transfer { access, .. } if access.op == Op::Write);
        let fatal = self.failed.iter().filter(|(column, _)| !is_write || !self.served.contains(column));
        fatal.map(|(_, sector)| *sector).min()
    }
}

/// Entries with stable indices. Indices of removed entries are reused.
#[derive(Debug, Clone)]
struct Slab<T> {
    entries: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T> Default for Slab<T> {
    fn default() -> Slab<T> {
        Slab { entries: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    fn add(&mut self, entry: T) -> usize {
        if let Some(number) = self.free.pop() {
            self.entries[number] = Some(entry);
            return number;
        }
        self.entries.push(Some(entry));
        self.entries.len() - 1
    }

    fn get(&self, number: usize) -> Option<&T> {
        self.entries.get(number)?.as_ref()
    }

    fn get_mut(&mut self, number: usize) -> Option<&mut T> {
        self.entries.get_mut(number)?.as_mut()
    }

    fn remove(&mut self, number: usize) -> Option<T> {
        let entry = self.entries.get_mut(number)?.take()?;
        self.free.push(number);
        Some(entry)
    }

    fn is_empty(&self) -> bool {
        self.free.len() == self.entries.len()
    }
}
