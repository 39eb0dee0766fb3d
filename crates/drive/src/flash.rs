//! A flash drive as a line of stages: a controller that takes one command at a time, dies that work side by side, and a link.
//!
//! A command waits for the controller, which needs the same time for each; its pages are then read or programmed by their dies, each of
//! which does one thing at a time; data cross the link one command after the other, for writes before the dies work, for reads after. A page
//! is read from the die that its number names; where a page is written is the drive's choice, and it chooses the dies in turn. There is
//! no mapping, no garbage and no buffer in this model: writes run at the rate that the dies program at.

use crate::pending::Pending;
use crate::profile::FlashProfile;
use crate::{Access, Command, Completion, Op, Phases, SECTOR_BYTES, Service, Source, Status};

/// A flash drive.
#[derive(Debug, Clone)]
pub struct Flash {
    profile: FlashProfile,
    /// Until when controller, link and each die are busy, in ns.
    controller_ns: u64,
    link_ns: u64,
    dies_ns: Vec<u64>,
    /// The die that programs next.
    next_die: usize,
    pending: Pending,
}

impl Flash {
    pub(crate) fn new(profile: &FlashProfile) -> Flash {
        let dies = profile.dies.max(1) as usize;
        Flash {
            profile: *profile,
            controller_ns: 0,
            link_ns: 0,
            dies_ns: vec![0; dies],
            next_die: 0,
            pending: Pending::default(),
        }
    }

    /// How many sectors the drive has.
    pub fn capacity_sectors(&self) -> u64 {
        self.profile.capacity_sectors
    }

    /// How many commands it takes at once.
    pub fn depth(&self) -> u32 {
        self.profile.depth
    }

    pub(crate) fn submit(&mut self, now_ns: u64, tag: u32, command: &Command) {
        let service = match command {
            Command::Transfer { access, .. } => self.start(now_ns, access),
            // Nothing is kept back, and nothing is known of what is needed.
            Command::Flush | Command::Discard { .. } => {
                Service { finish_ns: now_ns, phases: Phases::default(), source: Source::Buffer, cylinder: 0 }
            }
        };
        self.pending.add(tag, service, Status::Done);
    }

    #[inline]
    pub(crate) fn next_event_ns(&self) -> Option<u64> {
        self.pending.next_event_ns()
    }

    #[inline]
    pub(crate) fn poll(&mut self, now_ns: u64) -> Option<Completion> {
        self.pending.poll(now_ns)
    }

    fn start(&mut self, now_ns: u64, access: &Access) -> Service {
        let ready_ns = now_ns.max(self.controller_ns).saturating_add(self.profile.command_ns);
        self.controller_ns = ready_ns;
        let finish_ns = match access.op {
            Op::Read => {
                let read_ns = self.read_pages(ready_ns, access);
                self.cross_link(read_ns, access)
            }
            Op::Write => {
                let arrived_ns = self.cross_link(ready_ns, access);
                self.program_pages(arrived_ns, access)
            }
        };
        let (overhead_ns, total_ns) = (ready_ns - now_ns, finish_ns - now_ns);
        let phases = Phases { overhead_ns, transfer_ns: total_ns - overhead_ns, ..Phases::default() };
        Service { finish_ns, phases, source: Source::Media, cylinder: 0 }
    }

    fn read_pages(&mut self, ready_ns: u64, access: &Access) -> u64 {
        let mut done_ns = ready_ns;
        for page in self.pages(access) {
            let die = (page % self.dies_ns.len() as u64) as usize;
            done_ns = done_ns.max(self.occupy(die, ready_ns, self.profile.page_read_ns));
        }
        done_ns
    }

    fn program_pages(&mut self, ready_ns: u64, access: &Access) -> u64 {
        let mut done_ns = ready_ns;
        for _ in self.pages(access) {
            let die = self.next_die;
            self.next_die = (die + 1) % self.dies_ns.len();
            done_ns = done_ns.max(self.occupy(die, ready_ns, self.profile.page_program_ns));
        }
        done_ns
    }

    /// A die begins when it is free and answers when it is done.
    fn occupy(&mut self, die: usize, ready_ns: u64, work_ns: u64) -> u64 {
        let busy_ns = &mut self.dies_ns[die];
        *busy_ns = ready_ns.max(*busy_ns).saturating_add(work_ns);
        *busy_ns
    }

    fn cross_link(&mut self, ready_ns: u64, access: &Access) -> u64 {
        let crossing_ns = u64::from(access.sectors).saturating_mul(u64::from(self.profile.link_sector_ns));
        self.link_ns = ready_ns.max(self.link_ns).saturating_add(crossing_ns);
        self.link_ns
    }

    /// The numbers of the pages that a command touches.
    fn pages(&self, access: &Access) -> std::ops::RangeInclusive<u64> {
        let page_sectors = (u64::from(self.profile.page_bytes) / SECTOR_BYTES).max(1);
        access.sector / page_sectors..=(access.sector + u64::from(access.sectors) - 1) / page_sectors
    }
}
