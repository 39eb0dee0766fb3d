//! A disk drive: commands in, completions out. The works - one arm, one platter - do one access at a time; the other commands wait in
//! the drive, which chooses the next when one is over.
//!
//! What of a command is not the works' goes on beside them: a command's processing begins at its arrival, so its overhead is done by
//! the time it is chosen if it has waited that long; the data of a waiting write come meanwhile. Reads whose sectors are all in the
//! buffer never wait for the arm: they cross the interface one after the other, in the order of their arrival. (That they and the data from the
//! media share the interface is not counted.)

mod mechanics;
mod media;
mod positioning;
mod queue;
mod verify;

use std::collections::VecDeque;

use crate::profile::DiskProfile;
use crate::{Access, Command, Completion, Phases, Service, Source, Status};
pub(crate) use media::Media;
use queue::{Queue, Waiting};

/// A disk drive.
#[derive(Debug, Clone)]
pub struct Disk {
    media: Media,
    depth: u32,
    queue: Queue,
    /// The command that the works are at, as it will be completed.
    active: Option<Active>,
    /// What ends without the works, by the time at which it ends.
    interface: VecDeque<Completion>,
    /// Until when the interface is busy with reads from the buffer.
    interface_ns: u64,
}

#[derive(Debug, Clone, Copy)]
struct Active {
    access: Access,
    completion: Completion,
}

impl Disk {
    pub(crate) fn new(profile: &DiskProfile) -> Disk {
        Disk {
            media: Media::new(profile),
            depth: profile.queue.depth,
            queue: Queue::new(&profile.queue),
            active: None,
            interface: VecDeque::new(),
            interface_ns: 0,
        }
    }

    /// How many sectors the disk has.
    pub fn capacity_sectors(&self) -> u64 {
        self.media.capacity_sectors()
    }

    /// How many commands it takes at once.
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// The time of one revolution, rounded down to whole nanoseconds.
    pub fn revolution_ns(&self) -> u64 {
        self.media.revolution_ns()
    }

    pub(crate) fn submit(&mut self, now_ns: u64, tag: u32, command: &Command) {
        match *command {
            Command::Transfer { access, .. } => self.transfer(now_ns, tag, access),
            // Nothing is kept back from the media.
            Command::Flush | Command::Discard { .. } => {
                let finish_ns = now_ns.max(self.interface_ns);
                let phases = Phases { wait_ns: finish_ns - now_ns, ..Phases::default() };
                let service = Service { finish_ns, phases, source: Source::Buffer, cylinder: 0 };
                self.interface.push_back(Completion { tag, service, status: Status::Done });
            }
        }
    }

    pub(crate) fn next_event_ns(&self) -> Option<u64> {
        let works_ns = self.active.as_ref().map(|active| active.completion.service.finish_ns);
        let interface_ns = self.interface.front().map(|held| held.service.finish_ns);
        match (works_ns, interface_ns) {
            (Some(works_ns), Some(interface_ns)) => Some(works_ns.min(interface_ns)),
            (one, other) => one.or(other),
        }
    }

    pub(crate) fn poll(&mut self, now_ns: u64) -> Option<Completion> {
        let at_ns = self.next_event_ns().filter(|at_ns| *at_ns <= now_ns)?;
        if self.interface.front().is_some_and(|held| held.service.finish_ns == at_ns) {
            return self.interface.pop_front();
        }
        let done = self.active.take()?;
        if !self.queue.is_empty() {
            self.serve_filled(at_ns);
            self.begin_next(at_ns);
        }
        Some(done.completion)
    }

    fn transfer(&mut self, now_ns: u64, tag: u32, access: Access) {
        let waiting = Waiting::new(tag, access, now_ns, self.media.locate(access.sector));
        if self.depth > 1 && !self.has_to_wait(&access) && self.serve_held(now_ns, &waiting) {
            return;
        }
        if self.active.is_none() {
            self.begin(now_ns, waiting);
        } else {
            self.queue.add(waiting);
        }
    }

    /// Whether an access overlaps a waiting one that has to come first, or the one that the works are at: what is being read is in the
    /// buffer when it has been read.
    fn has_to_wait(&self, access: &Access) -> bool {
        self.active.as_ref().is_some_and(|active| overlap(&active.access, access)) || self.queue.conflicts(access)
    }

    /// Has a read served from the buffer, if all of it is there.
    fn serve_held(&mut self, now_ns: u64, waiting: &Waiting) -> bool {
        if self.active.is_none() {
            self.media.read_ahead_until(now_ns);
        }
        let begun_ns = now_ns.max(self.interface_ns);
        let Some(service) = self.media.serve_held(begun_ns, &waiting.access) else { return false };
        self.interface_ns = service.finish_ns;
        let phases = Phases { wait_ns: begun_ns.saturating_sub(waiting.arrived_ns), ..service.phases };
        let service = Service { phases, ..service };
        self.interface.push_back(Completion { tag: waiting.tag, service, status: Status::Done });
        true
    }

    /// Has those reads served from the buffer that the access before has brought there.
    fn serve_filled(&mut self, now_ns: u64) {
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
        if let Some(waiting) = self.queue.take_next(&self.media.positioning(now_ns)) {
            self.begin(now_ns, waiting);
        }
    }

    fn begin(&mut self, now_ns: u64, waiting: Waiting) {
        let Waiting { tag, access, arrived_ns, .. } = waiting;
        let now_ns = now_ns.max(arrived_ns);
        let wait_ns = now_ns - arrived_ns;
        let service = self.media.start_prepared(now_ns, &access, wait_ns);
        let phases = Phases { wait_ns, ..service.phases };
        let completion = Completion { tag, service: Service { phases, ..service }, status: Status::Done };
        self.active = Some(Active { access, completion });
    }
}

fn overlap(one: &Access, other: &Access) -> bool {
    one.sector < other.sector + u64::from(other.sectors) && other.sector < one.sector + u64::from(one.sectors)
}
