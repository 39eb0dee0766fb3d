//! Who may put more into memory, and who waits.
//!
//! Below the limit everybody may. Beyond it whoever has more than his part waits until others' data, or his own, are on the disk; who has less goes on, or one whose
//! writes never have a turn would hold all the others. How far beyond it that goes depends on the class: what is idle finds the least room there, as it is what may fill it for ever.

use std::collections::VecDeque;

use hoistway_core::Class;
use rustc_hash::FxHashMap;

use super::super::people::Key;
use super::owners::Owners;
use crate::Job;

/// So much everybody may have in memory, however many there are, if it is not more than a sixteenth of the limit.
const FLOOR_BYTES: u64 = 4 << 20;
/// What there is beyond the limit is reckoned from no less than this: a small limit has room for a few of the largest writes.
const BEYOND_BYTES: u64 = 8 << 20;

/// Somebody who wants to put data into memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Writer {
    /// Whose they are.
    pub who: Key,
    /// He waits for the answer himself: with him it comes to nothing. Else nobody does but the kernel, which does not give up.
    pub is_his: bool,
    /// How many bytes.
    pub bytes: u64,
}

/// How much is in memory for a disk, and how much there may be, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Level {
    pub dirty: u64,
    pub limit: u64,
}

/// Those who wait, in the order in which they came.
#[derive(Default)]
pub(super) struct Waiting(VecDeque<(Writer, Class, Job)>);

impl Level {
    /// Whether so much more stays within the limit. With nothing in memory there is room for anything.
    pub fn has_room(self, bytes: u64) -> bool {
        self.dirty == 0 || self.dirty.saturating_add(bytes) <= self.limit
    }

    /// Whether somebody who has `own` bytes there, one of `owing` who have any, may go beyond the limit. His class is asked for where it matters.
    pub fn has_part(self, own: u64, owing: usize, bytes: u64, class: impl FnOnce() -> Class) -> bool {
        let count = owing as u64 + u64::from(own == 0);
        let part = (self.limit / count.max(1)).max(FLOOR_BYTES.min(self.limit / 16));
        if own > 0 && own.saturating_add(bytes) > part {
            return false;
        }
        let beyond = self.limit.max(BEYOND_BYTES);
        let then = self.dirty.saturating_add(bytes);
        let within = |most: u64| then <= self.limit.saturating_add(most);
        within(beyond / 4)
            || within(match class() {
                Class::Idle => beyond / 4,
                Class::RealTime => beyond,
                Class::None | Class::BestEffort => beyond / 4 * 3,
            })
    }
}

impl Waiting {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn add(&mut self, writer: Writer, class: Class, job: Job) {
        self.0.push_back((writer, class, job));
    }

    /// Takes out who may go on by now.
    pub fn let_in(&mut self, level: Level, owners: &Owners) -> Vec<Job> {
        let mut level = level;
        let mut come: FxHashMap<Key, u64> = FxHashMap::default();
        let (mut jobs, mut left) = (Vec::new(), VecDeque::new());
        for (writer, class, job) in self.0.drain(..) {
            let Writer { who, bytes, .. } = writer;
            let brought = come.entry(who).or_default();
            let own = owners.dirty_of(who) + *brought;
            // Room that is left over is for who came first, whatever the others bring.
            let is_first = left.is_empty() && level.has_room(bytes);
            if is_first || level.has_part(own, owners.owing(), bytes, || class) {
                level.dirty += bytes;
                *brought += bytes;
                jobs.push(job);
            } else {
                left.push_back((writer, class, job));
            }
        }
        self.0 = left;
        jobs
    }

    /// The threads that wait themselves.
    pub fn tids(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().filter(|(writer, ..)| writer.is_his).map(|(writer, ..)| writer.who.0)
    }

    /// Takes out what a thread waits for itself.
    pub fn give_up(&mut self, tid: u32) -> Vec<Job> {
        let is_his = |(writer, ..): &(Writer, Class, Job)| writer.is_his && writer.who.0 == tid;
        let (his, others): (Vec<_>, Vec<_>) = self.0.drain(..).partition(is_his);
        self.0 = others.into();
        his.into_iter().map(|(_, _, job)| job).collect()
    }

    /// Takes all out.
    pub fn take(&mut self) -> Vec<Job> {
        self.0.drain(..).map(|(_, _, job)| job).collect()
    }
}
