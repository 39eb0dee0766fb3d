//! The waiting commands of a disk, and the choice of the next one.

use crate::command::{Access, Op};
use crate::geometry::SectorPosition;
use crate::profile::{QueuePolicy, QueueProfile};

use super::positioning::Positioning;

/// Waiting commands in the order of arrival.
///
/// A command that overlaps an earlier one, if one of the two is a write, is held back until the
/// earlier one has begun. The data are therefore those of the order of arrival.
#[derive(Debug, Clone)]
pub(super) struct Queue {
    entries: Vec<Waiting>,
    /// The keys of the choice, adjacent in memory.
    targets: Vec<Target>,
    /// The lower bounds of one choice.
    bounds: Vec<u64>,
    writes: usize,
    /// The number of entries that are held back.
    held_back: usize,
    policy: QueuePolicy,
    window: usize,
    /// The credit for a nanosecond of waiting, in 2^-16 ns of access time.
    age_weight: u64,
    max_wait_ns: Option<u64>,
}

/// A waiting command.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waiting {
    pub(super) tag: u32,
    pub(super) access: Access,
    /// True for a write that must not complete in the cache.
    pub(super) fua: bool,
    pub(super) arrived_ns: u64,
    /// The position of the first sector.
    pub(super) spot: SectorPosition,
}

#[derive(Debug, Clone, Copy)]
struct Target {
    sector: u64,
    cylinder: u32,
    angle: u32,
    /// The number of earlier commands that must begin first.
    behind: u32,
    op: Op,
}

impl Queue {
    pub(super) fn new(profile: &QueueProfile) -> Queue {
        Queue {
            entries: Vec::with_capacity(profile.depth as usize),
            targets: Vec::with_capacity(profile.depth as usize),
            bounds: Vec::with_capacity(profile.depth as usize),
            writes: 0,
            held_back: 0,
            policy: profile.policy,
            window: profile.window.max(1) as usize,
            age_weight: (profile.age_weight * 65_536.0).round() as u64,
            max_wait_ns: profile.max_wait_ms.map(|ms| (ms * 1e6).round() as u64),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The number of waiting commands that must begin before `access`.
    pub(super) fn behind(&self, access: &Access) -> u32 {
        if self.writes == 0 && access.op == Op::Read {
            return 0;
        }
        self.entries.iter().filter(|entry| conflict(&entry.access, access)).count() as u32
    }

    /// Adds a command that waits for `behind` others.
    pub(super) fn add(&mut self, waiting: Waiting, behind: u32) {
        let Waiting { access: Access { op, sector, .. }, spot: SectorPosition { cylinder, angle, .. }, .. } = waiting;
        self.held_back += usize::from(behind > 0);
        self.writes += usize::from(op == Op::Write);
        self.entries.push(waiting);
        self.targets.push(Target { sector, cylinder, angle, behind, op });
    }

    /// Removes and returns the next command to serve.
    pub(super) fn take_next(&mut self, positioning: &Positioning<'_>) -> Option<Waiting> {
        let index = match self.policy {
            QueuePolicy::Fifo => 0,
            QueuePolicy::Satf if self.is_overdue(positioning.now_ns()) => 0,
            QueuePolicy::Satf if self.age_weight == 0 => self.nearest(positioning),
            QueuePolicy::Satf => self.nearest_aged(positioning),
        };
        (index < self.entries.len()).then(|| self.remove(index))
    }

    /// Removes and returns the oldest read within the sectors `start..end` that is not held back.
    pub(super) fn take_read_within(&mut self, start: u64, end: u64) -> Option<Waiting> {
        // One comparison that is nearly always false: two would mispredict on random sectors.
        let begins_within = |target: &Target| target.sector.wrapping_sub(start) < end - start;
        let mut from = 0;
        while let Some(offset) = self.targets.iter().skip(from).position(begins_within) {
            let index = from + offset;
            if self.targets[index].behind == 0
                && self.targets[index].op == Op::Read
                && self.entries[index].access.end() <= end
            {
                return Some(self.remove(index));
            }
            from = index + 1;
        }
        None
    }

    /// Removes and returns the oldest write that may complete in the cache and for which there is
    /// space.
    pub(super) fn take_write(&mut self, has_room: impl Fn(&Access) -> bool) -> Option<Waiting> {
        if self.writes == 0 {
            return None;
        }
        let fits = |entry: &Waiting| entry.access.op == Op::Write && !entry.fua && has_room(&entry.access);
        let index =
            self.entries.iter().zip(&self.targets).position(|(entry, target)| target.behind == 0 && fits(entry))?;
        Some(self.remove(index))
    }

    fn is_overdue(&self, now_ns: u64) -> bool {
        let Some((limit_ns, oldest)) = self.max_wait_ns.zip(self.entries.first()) else { return false };
        now_ns.saturating_sub(oldest.arrived_ns) >= limit_ns
    }

    /// The index of the oldest commands' shortest access time; the older command wins a tie.
    ///
    /// The lower bounds nearly have the order of the access times, so few seeks are looked up. The
    /// table of all distances is larger than the processor's cache.
    fn nearest(&mut self, positioning: &Positioning<'_>) -> usize {
        let (first, next) = positioning.stream.unwrap_or((1, 0));
        let least = positioning.lower_bound();
        let window = self.targets.len().min(self.window);
        self.bounds.resize(window, 0);
        for (index, (bound, target)) in (0..).zip(self.bounds.iter_mut().zip(&self.targets)) {
            let streams = target.op == Op::Read && first <= target.sector && target.sector <= next;
            let turns = least.turns(target.cylinder, target.angle);
            let turns = if streams { 0 } else { turns };
            // An angle needs at most 41 bits, an index in the queue 8 bits.
            *bound = if target.behind > 0 { u64::MAX } else { turns << 8 | index };
        }
        let (mut best, mut best_turns) = (0, u64::MAX);
        while let Some(bound) = self.bounds.iter().copied().min().filter(|bound| *bound < u64::MAX) {
            let index = (bound & 0xff) as usize;
            if bound >> 8 > best_turns {
                break;
            }
            let turns = self.needed(positioning, index);
            if turns < best_turns || (turns == best_turns && index < best) {
                (best, best_turns) = (index, turns);
            }
            self.bounds[index] = u64::MAX;
        }
        best
    }

    /// The same with a credit for the age of each command.
    fn nearest_aged(&self, positioning: &Positioning<'_>) -> usize {
        let (mut best, mut best_turns) = (0, i128::MAX);
        for (index, target) in self.targets.iter().enumerate().take(self.window) {
            if target.behind > 0 {
                continue;
            }
            let age_ns = positioning.now_ns().saturating_sub(self.entries[index].arrived_ns);
            let credit_ns = ((u128::from(age_ns) * u128::from(self.age_weight)) >> 16).min(u128::from(u64::MAX));
            let credit = i128::from(positioning.turns(credit_ns as u64));
            let turns = i128::from(self.needed(positioning, index)) - credit;
            if turns < best_turns {
                (best, best_turns) = (index, turns);
            }
        }
        best
    }

    fn needed(&self, positioning: &Positioning<'_>, index: usize) -> u64 {
        let entry = &self.entries[index];
        let waited_ns = positioning.now_ns().saturating_sub(entry.arrived_ns);
        positioning.needed(&entry.access, &entry.spot, waited_ns)
    }

    fn remove(&mut self, index: usize) -> Waiting {
        let taken = self.entries.remove(index);
        self.targets.remove(index);
        self.writes -= usize::from(taken.access.op == Op::Write);
        if self.held_back > 0 {
            self.release(index, &taken.access);
        }
        taken
    }

    /// Releases the commands that were held back by the command at `index`.
    fn release(&mut self, index: usize, begun: &Access) {
        for (entry, target) in self.entries.iter().zip(&mut self.targets).skip(index) {
            if target.behind > 0 && conflict(begun, &entry.access) {
                target.behind -= 1;
                self.held_back -= usize::from(target.behind == 0);
            }
        }
    }
}

/// Returns true if the order of two commands affects the data.
fn conflict(one: &Access, other: &Access) -> bool {
    one.overlaps(other) && (one.op == Op::Write || other.op == Op::Write)
}
