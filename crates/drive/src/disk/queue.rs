//! The commands that wait in a disk, and the choice of the next.

use crate::geometry::Spot;
use crate::profile::{QueuePolicy, QueueProfile};
use crate::{Access, Op};

use super::positioning::Positioning;

/// Waiting commands in the order of their arrival.
///
/// A command that overlaps an earlier one, when one of the two writes, is held back until the earlier one has begun: what is read and what
/// remains written are as if the commands had been done in the order of their arrival.
#[derive(Debug, Clone)]
pub(super) struct Queue {
    entries: Vec<Waiting>,
    /// How many entries are held back.
    held_back: usize,
    policy: QueuePolicy,
    window: usize,
    /// What a nanosecond of waiting is worth, in 2^-16 ns of positioning.
    age_weight: u64,
    max_wait_ns: Option<u64>,
}

/// A command in the drive that has not begun.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waiting {
    pub(super) tag: u32,
    pub(super) access: Access,
    pub(super) arrived_ns: u64,
    /// Where its first sector lies.
    pub(super) spot: Spot,
    /// How many earlier commands have to begin before it.
    behind: u32,
}

impl Waiting {
    pub(super) fn new(tag: u32, access: Access, arrived_ns: u64, spot: Spot) -> Waiting {
        Waiting { tag, access, arrived_ns, spot, behind: 0 }
    }
}

impl Queue {
    pub(super) fn new(profile: &QueueProfile) -> Queue {
        Queue {
            entries: Vec::with_capacity(profile.depth as usize),
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

    /// Whether a command would have to wait for one that is here.
    pub(super) fn conflicts(&self, access: &Access) -> bool {
        self.entries.iter().any(|entry| conflict(&entry.access, access))
    }

    pub(super) fn add(&mut self, waiting: Waiting) {
        let behind = self.entries.iter().filter(|entry| conflict(&entry.access, &waiting.access)).count() as u32;
        self.held_back += usize::from(behind > 0);
        self.entries.push(Waiting { behind, ..waiting });
    }

    /// Takes out the command to be begun now.
    pub(super) fn take_next(&mut self, positioning: &Positioning<'_>) -> Option<Waiting> {
        let index = match self.policy {
            QueuePolicy::Fifo => 0,
            QueuePolicy::Satf if self.entries.len() < 2 => 0,
            QueuePolicy::Satf => self.shortest(positioning),
        };
        (index < self.entries.len()).then(|| self.remove(index))
    }

    /// Takes out the oldest read that lies in the sectors from `start` up to but not including `end` and is not held back.
    pub(super) fn take_read_within(&mut self, start: u64, end: u64) -> Option<Waiting> {
        let lies_within = |entry: &Waiting| {
            entry.access.op == Op::Read && start <= entry.access.sector && end_of(&entry.access) <= end
        };
        let index = self.entries.iter().position(|entry| lies_within(entry) && entry.behind == 0)?;
        Some(self.remove(index))
    }

    /// The command of the shortest positioning time among the oldest, each credited with its age; the oldest itself when it has waited
    /// too long. Of two that are equally near the older is taken.
    fn shortest(&self, positioning: &Positioning<'_>) -> usize {
        let now_ns = positioning.now_ns();
        let oldest_ns = self.entries.first().map_or(now_ns, |oldest| oldest.arrived_ns);
        if self.max_wait_ns.is_some_and(|limit_ns| now_ns.saturating_sub(oldest_ns) >= limit_ns) {
            return 0;
        }
        let (mut best, mut best_ns) = (0, i64::MAX);
        for (index, entry) in self.entries.iter().enumerate().take(self.window) {
            if entry.behind > 0 {
                continue;
            }
            let credit_ns = self.credit_ns(now_ns.saturating_sub(entry.arrived_ns));
            let limit_ns = best_ns.saturating_add(credit_ns);
            if let Some(needed_ns) = positioning.needed_ns(&entry.access, &entry.spot, entry.arrived_ns, limit_ns) {
                (best, best_ns) = (index, needed_ns - credit_ns);
            }
        }
        best
    }

    fn credit_ns(&self, age_ns: u64) -> i64 {
        if self.age_weight == 0 {
            return 0;
        }
        // No more than the longest times that positions are compared by: an age of years must not overflow.
        i64::try_from((u128::from(age_ns) * u128::from(self.age_weight)) >> 16)
            .unwrap_or(i64::MAX / 4)
            .min(i64::MAX / 4)
    }

    fn remove(&mut self, index: usize) -> Waiting {
        let taken = self.entries.remove(index);
        if self.held_back > 0 {
            self.release(index, &taken.access);
        }
        taken
    }

    /// Lets go of those that were behind the command that was at `index`.
    fn release(&mut self, index: usize, begun: &Access) {
        for entry in self.entries.iter_mut().skip(index) {
            if entry.behind > 0 && conflict(begun, &entry.access) {
                entry.behind -= 1;
                self.held_back -= usize::from(entry.behind == 0);
            }
        }
    }
}

/// Whether the order of two commands can be told from the data.
fn conflict(one: &Access, other: &Access) -> bool {
    one.sector < end_of(other) && other.sector < end_of(one) && (one.op == Op::Write || other.op == Op::Write)
}

fn end_of(access: &Access) -> u64 {
    access.sector + u64::from(access.sectors)
}
