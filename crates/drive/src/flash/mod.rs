//! A flash drive with a flash translation layer (FTL).
//!
//! The controller processes commands one after the other, with a constant time each. The dies read
//! the pages of a read in parallel, and the data cross the channels and the link. The data of a
//! write cross the link into the write buffer, where the write completes. Idle dies program the
//! buffered units, and the map changes. A die that runs out of free blocks collects garbage: the
//! block with the fewest valid units is read, its valid units are programmed elsewhere, and the
//! block is erased. The write amplification, the number of units programmed for each unit of the
//! host, is a result and not a parameter.
//!
//! Reads precede all other work of a die and may suspend a program or an erase. Garbage collection
//! is paced: for each program of the host a die moves as much as a freed page of its victim costs.
//! Or all dies collect together in turns, during which the host's data wait.
//!
//! A drive whose map would be too large may simulate a *slice* of its blocks: all dies with fewer
//! blocks each, and addresses modulo the size of the slice. Rates, latencies and write
//! amplification of a workload that covers the drive evenly are those of the whole drive. Three
//! things differ. A fresh drive begins to collect garbage earlier, in proportion to the sizes. A
//! small hot region is a larger share of the slice. Addresses that are a slice apart share a
//! location, so a discard of one frees the other.
//!
//! Not modelled: SLC caches, wear and wear levelling, read retries, map pages on flash, power
//! states.

mod buffer;
mod die;
mod dies;
mod events;
mod ftl;
mod start;
#[cfg(test)]
mod tests;
mod writes;

use std::collections::VecDeque;

pub use start::greedy_write_amplification;

use crate::command::{Access, Command, Completion, Op, Phases, Service, Source, Status};
use crate::pending::Pending;
use crate::profile::{FlashProfile, UNIT_SECTORS};
use buffer::WriteBuffer;
use die::{Die, IdleDies, PageRead};
use events::{Event, Events};
use ftl::{Ftl, Location};

/// Counters of a flash drive since its creation, in units of 4 KiB unless stated otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FlashCounters {
    /// Units written by the host, including those overwritten in the buffer.
    pub host_units: u64,
    /// Units programmed for the host: whole programs, padded when a flush cannot wait for more
    /// data.
    pub host_programmed_units: u64,
    /// Units programmed by garbage collection, including padding.
    pub moved_units: u64,
    /// Number of erases, each of a block on every plane of a die.
    pub erases: u64,
    /// Number of programs and erases suspended for reads.
    pub suspends: u64,
}

impl FlashCounters {
    /// Units programmed for each unit that the host wrote; `None` before the first write.
    pub fn write_amplification(&self) -> Option<f64> {
        let programmed = self.host_programmed_units + self.moved_units;
        (self.host_units > 0).then(|| programmed as f64 / self.host_units as f64)
    }

    /// The difference to `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &FlashCounters) -> FlashCounters {
        FlashCounters {
            host_units: self.host_units - earlier.host_units,
            host_programmed_units: self.host_programmed_units - earlier.host_programmed_units,
            moved_units: self.moved_units - earlier.moved_units,
            erases: self.erases - earlier.erases,
            suspends: self.suspends - earlier.suspends,
        }
    }
}

/// The state of a flash drive.
#[derive(Debug, Clone)]
pub(crate) struct Flash {
    profile: FlashProfile,
    ftl: Ftl,
    buffer: WriteBuffer,
    dies: Vec<Die>,
    idle: IdleDies,
    /// The die at which the search for an idle die starts.
    next_die: u32,
    /// The number of dies that have not done their part of the current turn of garbage collection;
    /// 0 between two turns.
    turn_dies: u32,
    /// The times until which controller, links (to the host, from the host) and channels are busy,
    /// in ns.
    controller_ns: u64,
    links_ns: [u64; 2],
    channels_ns: Vec<u64>,
    commands: Vec<InFlightCommand>,
    free_commands: Vec<u32>,
    /// Writes whose data wait for space in the buffer, by arrival.
    stalled: VecDeque<u32>,
    flushes: Vec<Flush>,
    /// A flush that blocks later commands, and the commands that wait for it.
    gate: Option<u32>,
    held: VecDeque<u32>,
    /// The number of arrivals at the last completed flush.
    flushed_arrivals: u64,
    events: Events,
    pending: Pending,
    /// The number of commands in flight that are not in `pending`.
    running: usize,
    counters: FlashCounters,
}

/// A command in flight.
#[derive(Debug, Clone, Copy)]
struct InFlightCommand {
    tag: u32,
    submitted_ns: u64,
    command: Command,
    /// The number of page reads or programs that have not completed.
    parts: u32,
    /// The time at which the last part of the data was complete.
    done_ns: u64,
    /// The duration of the last completed part.
    work_ns: u64,
    from_media: bool,
    from_buffer: bool,
    /// The number of units of a write that the buffer has accepted.
    accepted: u32,
}

/// A flush that waits for the buffer.
#[derive(Debug, Clone, Copy)]
struct Flush {
    command: u32,
    /// The last arrival that the flush waits for.
    arrival: u64,
    /// The number of units up to that arrival that are not programmed.
    left: usize,
}

impl Flash {
    pub(crate) fn new(profile: &FlashProfile) -> Flash {
        let buffer = if profile.buffer_units == 0 { usize::MAX } else { profile.buffer_units as usize };
        Flash {
            ftl: Ftl::new(profile),
            buffer: WriteBuffer::new(buffer),
            dies: vec![Die::new(); profile.dies as usize],
            idle: IdleDies::all(profile.dies),
            next_die: 0,
            turn_dies: 0,
            controller_ns: 0,
            links_ns: [0; 2],
            channels_ns: vec![0; profile.channels as usize],
            commands: Vec::new(),
            free_commands: Vec::new(),
            stalled: VecDeque::new(),
            flushes: Vec::new(),
            gate: None,
            held: VecDeque::new(),
            flushed_arrivals: 0,
            events: Events::default(),
            pending: Pending::default(),
            running: 0,
            counters: FlashCounters::default(),
            profile: profile.clone(),
        }
    }

    /// Capacity in sectors of 512 bytes.
    pub(crate) fn capacity_sectors(&self) -> u64 {
        self.profile.capacity_sectors
    }

    /// The largest number of commands in flight.
    pub(crate) fn depth(&self) -> u32 {
        self.profile.depth
    }

    /// The counters so far.
    pub(crate) fn counters(&self) -> FlashCounters {
        let in_buffer = self.buffer.len() as u64;
        FlashCounters { host_units: self.counters.host_units.saturating_sub(in_buffer), ..self.counters }
    }

    pub(crate) fn submit(&mut self, now_ns: u64, tag: u32, command: &Command) {
        self.advance(now_ns);
        let running = InFlightCommand {
            tag,
            submitted_ns: now_ns,
            command: *command,
            parts: 0,
            done_ns: now_ns,
            work_ns: 0,
            from_media: false,
            from_buffer: false,
            accepted: 0,
        };
        self.running += 1;
        let number = match self.free_commands.pop() {
            Some(number) => {
                self.commands[number as usize] = running;
                number
            }
            None => {
                self.commands.push(running);
                self.commands.len() as u32 - 1
            }
        };
        let ready_ns = now_ns.max(self.controller_ns).saturating_add(self.profile.command_ns);
        self.controller_ns = ready_ns;
        if ready_ns == now_ns {
            self.ready(number, now_ns);
        } else {
            self.events.add(ready_ns, Event::Ready(number));
        }
    }

    /// A command completes at the earliest its interface time after the event that completes it.
    #[inline]
    pub(crate) fn next_event_ns(&self) -> Option<u64> {
        let pending_ns = self.pending.next_event_ns();
        if self.running == 0 {
            return pending_ns;
        }
        let event_ns = self.events.next_ns().map(|at_ns| at_ns.saturating_add(self.profile.interface_ns));
        match (pending_ns, event_ns) {
            (Some(pending_ns), Some(event_ns)) => Some(pending_ns.min(event_ns)),
            (one, other) => one.or(other),
        }
    }

    #[inline]
    pub(crate) fn poll(&mut self, now_ns: u64) -> Option<Completion> {
        loop {
            let event_ns = self.events.next_ns().filter(|at_ns| *at_ns <= now_ns && self.running > 0);
            match (self.pending.next_event_ns(), event_ns) {
                (Some(pending_ns), Some(event_ns)) if pending_ns <= event_ns => return self.pending.poll(now_ns),
                (_, Some(_)) => self.step(),
                (_, None) => return self.pending.poll(now_ns),
            }
        }
    }

    /// Processes the events up to `now_ns`.
    fn advance(&mut self, now_ns: u64) {
        while self.events.next_ns().is_some_and(|at_ns| at_ns <= now_ns) {
            self.step();
        }
    }

    fn step(&mut self) {
        match self.events.pop() {
            Some((now_ns, Event::Die { die, event_number })) => self.die_event(die, event_number, now_ns),
            Some((now_ns, Event::Ready(number))) => self.ready(number, now_ns),
            Some((now_ns, Event::Arrived(number))) => self.arrived(number, now_ns),
            Some((now_ns, Event::Flushed(number))) => self.flushed(number, now_ns),
            None => {}
        }
    }

    /// Starts a command that the controller has processed.
    fn ready(&mut self, number: u32, now_ns: u64) {
        if self.gate.is_some() {
            self.held.push_back(number);
            return;
        }
        match self.commands[number as usize].command {
            Command::Transfer { access, .. } if access.op == Op::Read => self.read(number, &access, now_ns),
            Command::Transfer { access, .. } => {
                let sectors = u64::from(access.sectors);
                let further_units = sectors.div_ceil(UNIT_SECTORS).saturating_sub(1);
                let way = usize::from(self.profile.link_full_duplex);
                let now_ns = now_ns.max(self.links_ns[way]).saturating_add(self.profile.write_ns);
                let arrival_ns = self.cross_link(Op::Write, sectors, further_units, now_ns);
                self.commands[number as usize].work_ns = self.profile.link.ns(u64::from(access.sectors));
                self.events.add(arrival_ns.saturating_add(self.profile.write_latency_ns), Event::Arrived(number));
            }
            Command::Flush => self.flush(number, now_ns),
            Command::Discard { sector, sectors } => {
                self.discard(sector, u64::from(sectors));
                self.commands[number as usize].from_buffer = true;
                self.complete(number, now_ns);
            }
        }
    }

    fn read(&mut self, number: u32, access: &Access, now_ns: u64) {
        let end = access.end();
        let mut memory_sectors = 0;
        let mut part: Option<PageRead> = None;
        let mut parts = 0;
        for unit in access.sector / UNIT_SECTORS..end.div_ceil(UNIT_SECTORS) {
            let from = access.sector.max(unit * UNIT_SECTORS);
            let sectors = (end.min((unit + 1) * UNIT_SECTORS) - from) as u32;
            let Some(location) = self.media_location(unit) else {
                memory_sectors += u64::from(sectors);
                continue;
            };
            let row = self.ftl.row(location);
            match &mut part {
                Some(part) if part.row == row => part.sectors += sectors,
                _ => {
                    if let Some(whole) = part.replace(PageRead { command: number, row, sectors }) {
                        self.commands[number as usize].parts += 1;
                        self.add_read(whole, now_ns);
                    }
                    parts += 1;
                }
            }
        }
        let command = &mut self.commands[number as usize];
        (command.from_media, command.from_buffer) = (parts > 0, memory_sectors > 0);
        if let Some(whole) = part {
            command.parts += 1;
            self.add_read(whole, now_ns);
        }
        if memory_sectors > 0 {
            let work_ns = self.profile.link.ns(memory_sectors);
            let further_units = memory_sectors.div_ceil(UNIT_SECTORS) - u64::from(parts == 0);
            let crossed_ns = self.cross_link(Op::Read, memory_sectors, further_units, now_ns);
            self.part_done(number, crossed_ns, work_ns);
        }
        if parts == 0 {
            self.complete(number, self.commands[number as usize].done_ns);
        }
    }

    /// The flash location of a unit; `None` if it is in the buffer or has no data.
    fn media_location(&self, unit: u64) -> Option<u32> {
        let address = self.address(unit);
        match self.ftl.look_up(address) {
            Location::Media(location) => Some(location),
            // The buffer holds another unit of this address. The location of the older data is
            // unknown, so the one at time 0 stands in.
            Location::Buffer(slot) if !self.buffer.holds(slot, unit) => self.ftl.initial_location(address),
            Location::Unwritten | Location::Buffer(_) => None,
        }
    }

    /// The address of a unit: its number, folded into the slice.
    fn address(&self, unit: u64) -> u32 {
        let addresses = u64::from(self.ftl.addresses());
        (if unit < addresses { unit } else { unit % addresses }) as u32
    }

    /// Transfers data over the link. `further_units` of them are not the only or last unit of their
    /// command.
    fn cross_link(&mut self, op: Op, sectors: u64, further_units: u64, now_ns: u64) -> u64 {
        let way = usize::from(self.profile.link_full_duplex && op == Op::Write);
        let work_ns = self.profile.link.ns(sectors).saturating_add(further_units * self.profile.further_unit_ns);
        let link_ns = &mut self.links_ns[way];
        *link_ns = now_ns.max(*link_ns).saturating_add(work_ns);
        *link_ns
    }

    fn cross_channel(&mut self, die: u32, sectors: u64, now_ns: u64) -> u64 {
        let channel_ns = &mut self.channels_ns[(die % self.profile.channels) as usize];
        *channel_ns = now_ns.max(*channel_ns).saturating_add(self.profile.channel.ns(sectors));
        *channel_ns
    }

    /// Completes a part of a command at `done_ns`.
    fn part_done(&mut self, number: u32, done_ns: u64, work_ns: u64) {
        let command = &mut self.commands[number as usize];
        if done_ns >= command.done_ns {
            (command.done_ns, command.work_ns) = (done_ns, work_ns);
        }
    }

    /// Completes a command, apart from the interface time.
    fn complete(&mut self, number: u32, done_ns: u64) {
        let command = self.commands[number as usize];
        let finish_ns = done_ns.saturating_add(self.profile.interface_ns);
        let total_ns = finish_ns - command.submitted_ns;
        let overhead_ns = (self.profile.command_ns + self.profile.interface_ns).min(total_ns);
        let transfer_ns = command.work_ns.min(total_ns - overhead_ns);
        let phases =
            Phases { wait_ns: total_ns - overhead_ns - transfer_ns, overhead_ns, transfer_ns, ..Phases::default() };
        let source = match (command.from_media, command.from_buffer) {
            (true, true) => Source::Both,
            (false, true) => Source::Buffer,
            (_, false) => Source::Media,
        };
        self.pending.add(command.tag, Service { finish_ns, phases, source, cylinder: 0 }, Status::Done);
        self.free_commands.push(number);
        self.running -= 1;
    }

    /// Discards the whole units of a range. Partial units keep their data.
    fn discard(&mut self, sector: u64, sectors: u64) {
        let first = sector.div_ceil(UNIT_SECTORS);
        let mut end = (sector + sectors) / UNIT_SECTORS;
        if sector + sectors == self.profile.capacity_sectors {
            end = self.profile.capacity_units();
        }
        // A range beyond the size of the slice discards all of it.
        for unit in first..end.min(first + u64::from(self.ftl.addresses())) {
            let address = self.address(unit);
            self.ftl.discard(address);
        }
    }
}
