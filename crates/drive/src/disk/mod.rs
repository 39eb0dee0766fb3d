//! A disk drive: commands in, completions out. The works do one access at a time; the other commands wait in the drive.

mod background;
mod mechanics;
mod media;
mod verify;
mod write_cache;

use std::collections::VecDeque;

use crate::profile::DiskProfile;
use crate::{Command, Completion, Phases, Service, Source, Status};
pub(crate) use media::Media;

/// A disk drive.
#[derive(Debug, Clone)]
pub struct Disk {
    media: Media,
    waiting: VecDeque<Waiting>,
    /// The command that the works are at, as it will be completed.
    active: Option<Completion>,
}

/// A command in the drive that has not begun.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    tag: u32,
    command: Command,
    arrived_ns: u64,
}

impl Disk {
    pub(crate) fn new(profile: &DiskProfile) -> Disk {
        Disk { media: Media::new(profile), waiting: VecDeque::new(), active: None }
    }

    /// How many sectors the disk has.
    pub fn capacity_sectors(&self) -> u64 {
        self.media.capacity_sectors()
    }

    /// How many commands it takes at once.
    pub fn depth(&self) -> u32 {
        1
    }

    /// The time of one revolution, rounded down to whole nanoseconds.
    pub fn revolution_ns(&self) -> u64 {
        self.media.revolution_ns()
    }

    pub(crate) fn submit(&mut self, now_ns: u64, tag: u32, command: &Command) {
        self.waiting.push_back(Waiting { tag, command: *command, arrived_ns: now_ns });
        if self.active.is_none() {
            self.begin(now_ns);
        }
    }

    pub(crate) fn next_event_ns(&self) -> Option<u64> {
        self.active.as_ref().map(|active| active.service.finish_ns)
    }

    pub(crate) fn poll(&mut self, now_ns: u64) -> Option<Completion> {
        let done = self.active.take_if(|active| active.service.finish_ns <= now_ns)?;
        self.begin(done.service.finish_ns);
        Some(done)
    }

    /// Begins the next command.
    fn begin(&mut self, now_ns: u64) {
        let Some(Waiting { tag, command, arrived_ns }) = self.waiting.pop_front() else { return };
        let service = match command {
            Command::Transfer { access, fua } => self.media.start(now_ns, &access, fua),
            Command::Flush => self.media.flush(now_ns),
            Command::Discard { .. } => {
                Service { finish_ns: now_ns, phases: Phases::default(), source: Source::Buffer, cylinder: 0 }
            }
        };
        let phases = Phases { wait_ns: now_ns - arrived_ns, ..service.phases };
        self.active = Some(Completion { tag, service: Service { phases, ..service }, status: Status::Done });
    }
}
