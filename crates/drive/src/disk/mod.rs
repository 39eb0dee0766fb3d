//! A disk with its command queue. The mechanics - one arm, one platter - serve one access at a
//! time. The other commands wait in the queue.
//!
//! Work outside the mechanics overlaps with them. Command processing begins at arrival, so a
//! command that has waited long enough has no overhead left; the data of a waiting write arrive in
//! the meantime. Read hits and writes that fit into the write cache never wait for the arm. They
//! cross the interface one after the other in the order of arrival. (The model ignores that media
//! transfers share the interface.)
//!
//! A flush begins when the mechanics are free. A blocking flush (SATA cannot queue a flush) waits
//! for every earlier command, and every later command waits for it.

mod background;
mod faults;
mod mechanics;
mod media;
mod positioning;
mod queue;
mod verify;
mod write_cache;

use std::collections::VecDeque;

use crate::command::{Access, Command, Completion, Op, Phases, Service, Source, Status};
use crate::profile::DiskProfile;
use faults::{FaultState, NEVER_NS};
pub(crate) use media::Media;
use queue::{Queue, Waiting};

/// A disk.
#[derive(Debug, Clone)]
pub(crate) struct Disk {
    media: Media,
    depth: u32,
    queue: Queue,
    /// The command in service by the mechanics, with its completion.
    active: Option<Active>,
    /// Completions without the mechanics, in the order of time.
    interface: VecDeque<Completion>,
    /// The time until which the interface is busy with them.
    interface_ns: u64,
    /// True if a flush blocks all other commands.
    flush_blocks: bool,
    /// Waiting flushes and, if they block, the commands after them.
    held: VecDeque<HeldCommand>,
    faults: Option<Box<FaultState>>,
}

#[derive(Debug, Clone, Copy)]
struct Active {
    /// `None` for a flush.
    access: Option<Access>,
    completion: Completion,
}

/// A waiting flush, or a command that waits for a flush.
#[derive(Debug, Clone, Copy)]
struct HeldCommand {
    tag: u32,
    arrived_ns: u64,
    command: Command,
}

impl Disk {
    pub(crate) fn new(profile: &DiskProfile) -> Disk {
        let media = Media::new(profile);
        Disk {
            faults: FaultState::new(&profile.faults, media.revolution_ns()).map(Box::new),
            media,
            depth: profile.queue.depth,
            queue: Queue::new(&profile.queue),
            active: None,
            interface: VecDeque::new(),
            interface_ns: 0,
            flush_blocks: profile.queue.flush_blocks,
            held: VecDeque::new(),
        }
    }

    /// Capacity in sectors of 512 bytes.
    pub(crate) fn capacity_sectors(&self) -> u64 {
        self.media.capacity_sectors()
    }

    /// The largest number of commands in flight.
    pub(crate) fn depth(&self) -> u32 {
        self.depth
    }

    pub(crate) fn submit(&mut self, now_ns: u64, tag: u32, command: &Command) {
        let flushing = self.active.as_ref().is_some_and(|active| active.access.is_none());
        if self.flush_blocks && (flushing || !self.held.is_empty()) {
            self.held.push_back(HeldCommand { tag, arrived_ns: now_ns, command: *command });
            return;
        }
        match *command {
            Command::Transfer { access, fua } => self.transfer(now_ns, now_ns, tag, access, fua),
            Command::Discard { sector, sectors } => self.discard(now_ns, now_ns, tag, sector, sectors),
            Command::Flush => {
                self.held.push_back(HeldCommand { tag, arrived_ns: now_ns, command: *command });
                self.begin_held(now_ns);
            }
        }
    }

    pub(crate) fn next_event_ns(&self) -> Option<u64> {
        let mechanics_ns = self.active.as_ref().map(|active| active.completion.service.finish_ns);
        let interface_ns = self.interface.front().map(|held| held.service.finish_ns);
        let next_ns = match (mechanics_ns, interface_ns) {
            (Some(mechanics_ns), Some(interface_ns)) => Some(mechanics_ns.min(interface_ns)),
            (one, other) => one.or(other),
        };
        next_ns.filter(|at_ns| *at_ns < NEVER_NS)
    }

    pub(crate) fn poll(&mut self, now_ns: u64) -> Option<Completion> {
        let at_ns = self.next_event_ns().filter(|at_ns| *at_ns <= now_ns)?;
        if self.interface.front().is_some_and(|held| held.service.finish_ns == at_ns) {
            return self.interface.pop_front();
        }
        let done = self.active.take()?;
        if !self.flush_blocks {
            self.begin_held(at_ns);
        }
        if !self.queue.is_empty() {
            self.serve_filled(at_ns);
            self.begin_next(at_ns);
        }
        self.begin_held(at_ns);
        Some(done.completion)
    }

    /// Begins the oldest waiting flush if it may begin, or the commands that waited for a completed
    /// one.
    fn begin_held(&mut self, now_ns: u64) {
        while self.active.is_none() && (!self.flush_blocks || self.queue.is_empty()) {
            let Some(held) = self.held.pop_front() else { return };
            match held.command {
                Command::Flush => {
                    let begun_ns = if self.flush_blocks { now_ns.max(self.interface_ns) } else { now_ns };
                    if self.after_hang_ns(begun_ns) == NEVER_NS {
                        let completion = unanswered(held.tag, held.arrived_ns);
                        self.active = Some(Active { access: None, completion });
                        return;
                    }
                    let service = self.media.flush(begun_ns);
                    let service = self.delayed(begun_ns, service);
                    let wait_ns = service.phases.wait_ns + begun_ns - held.arrived_ns;
                    let phases = Phases { wait_ns, ..service.phases };
                    let service = Service { phases, ..service };
                    let completion = Completion { tag: held.tag, service, status: Status::Done };
                    self.active = Some(Active { access: None, completion });
                }
                Command::Transfer { .. } | Command::Discard { .. } => self.release(now_ns, held),
            }
        }
    }

    /// Admits the commands after a flush up to the next flush.
    fn release(&mut self, now_ns: u64, first: HeldCommand) {
        let mut next = Some(first);
        while let Some(held) = next {
            match held.command {
                Command::Transfer { access, fua } => self.transfer(now_ns, held.arrived_ns, held.tag, access, fua),
                Command::Discard { sector, sectors } => {
                    self.discard(now_ns, held.arrived_ns, held.tag, sector, sectors)
                }
                Command::Flush => return self.held.push_front(held),
            }
            next = self.held.pop_front();
        }
    }

    /// Completes a discard, which only drops dirty sectors.
    fn discard(&mut self, now_ns: u64, arrived_ns: u64, tag: u32, sector: u64, sectors: u32) {
        self.media.discard(sector, sector + u64::from(sectors));
        let finish_ns = now_ns.max(self.interface_ns);
        let finish_ns = self.after_hang_ns(finish_ns);
        self.interface_ns = self.interface_ns.max(finish_ns);
        let phases = Phases { wait_ns: finish_ns - arrived_ns, ..Phases::default() };
        let service = Service { finish_ns, phases, source: Source::Buffer, cylinder: 0 };
        self.interface.push_back(Completion { tag, service, status: Status::Done });
    }

    fn transfer(&mut self, now_ns: u64, arrived_ns: u64, tag: u32, access: Access, fua: bool) {
        let waiting = Waiting { tag, access, fua, arrived_ns, spot: self.media.locate(access.sector) };
        let behind = self.queue.behind(&access);
        if self.depth > 1 && behind == 0 && !self.overlaps_active(&access) {
            if self.active.is_none() {
                self.media.background_until(now_ns);
            }
            if self.serve_held(now_ns, &waiting) {
                return;
            }
        }
        if self.active.is_none() {
            self.begin(now_ns, waiting);
        } else {
            self.queue.add(waiting, behind);
        }
    }

    /// Returns true if the mechanics serve an overlapping access. Its data are in the buffer when
    /// it completes.
    fn overlaps_active(&self, access: &Access) -> bool {
        let active = self.active.as_ref().and_then(|active| active.access);
        active.is_some_and(|active| active.overlaps(access))
    }

    /// Serves a command from buffer or write cache, if possible, and returns true if it did.
    fn serve_held(&mut self, now_ns: u64, waiting: &Waiting) -> bool {
        let faults = self.faults.as_ref().is_some_and(|faults| faults.affects(&waiting.access));
        if faults || (waiting.fua && waiting.access.op == Op::Write) {
            return false;
        }
        let begun_ns = now_ns.max(self.interface_ns);
        if self.after_hang_ns(begun_ns) == NEVER_NS {
            return false;
        }
        let Some(service) = self.media.serve_held(begun_ns, &waiting.access) else { return false };
        let service = self.delayed(begun_ns, service);
        self.interface_ns = service.finish_ns;
        let wait_ns = service.phases.wait_ns + begun_ns.saturating_sub(waiting.arrived_ns);
        let phases = Phases { wait_ns, ..service.phases };
        let service = Service { phases, ..service };
        self.interface.push_back(Completion { tag: waiting.tag, service, status: Status::Done });
        true
    }

    /// Serves waiting reads from the data of the previous access, and waiting writes for which the
    /// cache has space again.
    fn serve_filled(&mut self, now_ns: u64) {
        while let Some(waiting) = self.queue.take_write(|access| self.media.has_room(now_ns, access)) {
            if !self.serve_held(now_ns, &waiting) {
                return self.begin(now_ns, waiting);
            }
        }
        let Some((start, end)) = self.media.filled() else { return };
        while let Some(waiting) = self.queue.take_read_within(start, end) {
            if !self.serve_held(now_ns, &waiting) {
                return self.begin(now_ns, waiting);
            }
        }
    }

    fn begin_next(&mut self, now_ns: u64) {
        if self.active.is_some() {
            return;
        }
        self.media.write_back_if_draining(now_ns);
        if let Some(waiting) = self.queue.take_next(&self.media.positioning(now_ns)) {
            self.begin(now_ns, waiting);
        }
    }

    fn begin(&mut self, now_ns: u64, waiting: Waiting) {
        let Waiting { tag, access, fua, arrived_ns, .. } = waiting;
        let now_ns = self.after_hang_ns(now_ns).max(arrived_ns);
        let wait_ns = now_ns - arrived_ns;
        if now_ns == NEVER_NS {
            self.active = Some(Active { access: Some(access), completion: unanswered(tag, arrived_ns) });
            return;
        }
        let (service, status) = match &mut self.faults {
            Some(faults) if faults.affects(&access) => faults.serve(&mut self.media, now_ns, &access, wait_ns),
            _ => (self.media.start_prepared(now_ns, &access, fua, wait_ns), Status::Done),
        };
        let service = self.delayed(now_ns, service);
        let phases = Phases { wait_ns: wait_ns + service.phases.wait_ns, ..service.phases };
        let completion = Completion { tag, service: Service { phases, ..service }, status };
        self.active = Some(Active { access: Some(access), completion });
    }

    /// The start of a service that is due at `now_ns`, after any hang.
    fn after_hang_ns(&self, now_ns: u64) -> u64 {
        self.faults.as_ref().map_or(now_ns, |faults| faults.after_hang_ns(now_ns))
    }

    /// Adds the delay by hangs to a service that began at `begun_ns`.
    fn delayed(&mut self, begun_ns: u64, mut service: Service) -> Service {
        if let Some(faults) = &self.faults {
            let delay_ns = faults.delay_ns(begun_ns, service.finish_ns);
            if delay_ns > 0 {
                service.finish_ns = service.finish_ns.saturating_add(delay_ns);
                service.phases.wait_ns += delay_ns;
                if service.finish_ns < NEVER_NS {
                    self.media.hold_until(service.finish_ns);
                }
            }
        }
        service
    }
}

/// The completion of a command that a disk never answers.
fn unanswered(tag: u32, arrived_ns: u64) -> Completion {
    let phases = Phases { wait_ns: NEVER_NS - arrived_ns, ..Phases::default() };
    let service = Service { finish_ns: NEVER_NS, phases, source: Source::Media, cylinder: 0 };
    Completion { tag, service, status: Status::Done }
}
