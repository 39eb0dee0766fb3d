//! One drive of an array, and its queues at the controller.

use std::collections::VecDeque;

use crate::command::{Command, Completion, check_range};
use crate::profile::{MemberProfile, SingleKind};
use crate::single::SingleDrive;

/// The origin of a member command: the index of a host command or of a write-back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    Host(usize),
    Destage(usize),
}

/// The part of a command for one member.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    pub(super) owner: Owner,
    pub(super) command: Command,
    /// The column of the member.
    pub(super) column: usize,
}

#[derive(Debug, Clone)]
pub(super) struct Member {
    drive: SingleDrive,
    host: VecDeque<Piece>,
    background: VecDeque<Piece>,
    /// Pieces in flight, by tag.
    in_flight: Vec<Option<Piece>>,
    busy: usize,
    /// The number of write-back pieces in flight.
    busy_background: usize,
    /// The end of the last command sent to the member, as an estimate of the arm position.
    last_sector: u64,
    /// True if write-back has the next turn while both queues are non-empty and the cache is full.
    background_turn: bool,
}

impl Member {
    /// Builds the member with index `number`. The spindles of an array are not synchronised: the
    /// golden ratio spreads their angles at time 0.
    pub(super) fn new(profile: &MemberProfile, number: usize) -> Member {
        const GOLDEN: f64 = 0.618_033_988_749_894_9;
        let mut kind = profile.kind.clone();
        let revolution_ns = kind.revolution_ns();
        if let (SingleKind::Disk(disk), Some(revolution_ns)) = (&mut kind, revolution_ns) {
            disk.set_rotation(revolution_ns as f64, number as f64 * GOLDEN);
        }
        let drive = SingleDrive::new(&kind);
        let depth = drive.depth().max(1) as usize;
        Member {
            drive,
            host: VecDeque::new(),
            background: VecDeque::new(),
            in_flight: vec![None; depth],
            busy: 0,
            busy_background: 0,
            last_sector: 0,
            background_turn: false,
        }
    }

    /// The cost of a read at `sector`: commands ahead of it, then the distance of the arm. Less is
    /// better.
    pub(super) fn read_cost(&self, sector: u64) -> (usize, u64) {
        (self.host.len() + self.busy, self.last_sector.abs_diff(sector))
    }

    /// The number of write-back pieces that are queued or in flight.
    pub(super) fn background(&self) -> usize {
        self.background.len() + self.busy_background
    }

    pub(super) fn enqueue(&mut self, piece: Piece) {
        match piece.owner {
            Owner::Host(_) => self.host.push_back(piece),
            Owner::Destage(_) => self.background.push_back(piece),
        }
    }

    /// Submits pieces while the drive has free tags: host pieces first, then write-back. If the
    /// cache is `full` they alternate.
    pub(super) fn start(&mut self, now_ns: u64, full: bool) {
        while let Some(tag) = self.in_flight.iter().position(Option::is_none) {
            let background = if full && !self.background.is_empty() && !self.host.is_empty() {
                self.background_turn = !self.background_turn;
                self.background_turn
            } else {
                self.host.is_empty()
            };
            let queue = if background { &mut self.background } else { &mut self.host };
            let Some(piece) = queue.pop_front() else { return };
            let checked = check_range(&piece.command, self.drive.capacity_sectors());
            debug_assert!(checked.is_ok(), "the extents of a checked array are within its members: {checked:?}");
            self.drive.submit(now_ns, tag as u32, &piece.command);
            if let Some((sector, sectors)) = piece.command.span() {
                self.last_sector = sector + u64::from(sectors);
            }
            self.in_flight[tag] = Some(piece);
            self.busy += 1;
            self.busy_background += usize::from(background);
        }
    }

    pub(super) fn next_event_ns(&self) -> Option<u64> {
        self.drive.next_event_ns()
    }

    pub(super) fn poll(&mut self, now_ns: u64) -> Option<(Piece, Completion)> {
        loop {
            let completion = self.drive.poll(now_ns)?;
            let Some(piece) = self.in_flight.get_mut(completion.tag as usize).and_then(Option::take) else { continue };
            self.busy -= 1;
            self.busy_background -= usize::from(matches!(piece.owner, Owner::Destage(_)));
            return Some((piece, completion));
        }
    }
}
