//! Event counts as in the summary of blkparse.

use serde::Serialize;

use crate::event::{Action, Event, Rwbs};

/// Number of events by action. Directions are assigned as blkparse does: discards count as writes;
/// flushes and other events without the write bit count as reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Number of events without notes.
    pub events: u64,
    /// Number of notes: process names, clocks and messages.
    pub notes: u64,
    /// Events without the write bit.
    pub reads: Direction,
    /// Events with the write bit.
    pub writes: Direction,
    /// P: plugs.
    pub plugs: u64,
    /// U: unplugs.
    pub unplugs: u64,
    /// UT: unplugs by timer or schedule().
    pub timer_unplugs: u64,
    /// S: waits for a free request.
    pub sleeps: u64,
    /// X: splits.
    pub splits: u64,
    /// B: bounces.
    pub bounces: u64,
    /// A: remaps.
    pub remaps: u64,
}

/// Number of events and bytes of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Direction {
    /// Q: submitted bios.
    pub queued: u64,
    /// Bytes of submitted bios.
    pub queued_bytes: u64,
    /// M and F: merged bios.
    pub merged: u64,
    /// Bytes of merged bios.
    pub merged_bytes: u64,
    /// I: requests inserted into the elevator.
    pub inserted: u64,
    /// Bytes of inserted requests.
    pub inserted_bytes: u64,
    /// D: issued requests.
    pub issued: u64,
    /// Bytes of issued requests.
    pub issued_bytes: u64,
    /// R: requeued requests.
    pub requeued: u64,
    /// C: completed requests.
    pub completed: u64,
    /// Bytes of completed requests.
    pub completed_bytes: u64,
}

impl Counts {
    pub(super) fn take(&mut self, event: &Event) {
        if event.action.is_note() {
            self.notes += 1;
            return;
        }
        self.events += 1;
        let writes = event.op.has(Rwbs::WRITE) || event.op.has(Rwbs::DISCARD);
        let direction = if writes { &mut self.writes } else { &mut self.reads };
        let bytes = u64::from(event.bytes);
        let (count, sum) = match event.action {
            Action::Queue => (&mut direction.queued, &mut direction.queued_bytes),
            Action::BackMerge | Action::FrontMerge => (&mut direction.merged, &mut direction.merged_bytes),
            Action::Insert => (&mut direction.inserted, &mut direction.inserted_bytes),
            Action::Issue => (&mut direction.issued, &mut direction.issued_bytes),
            Action::Complete => (&mut direction.completed, &mut direction.completed_bytes),
            other => {
                match other {
                    Action::Requeue => direction.requeued += 1,
                    Action::Plug => self.plugs += 1,
                    Action::Unplug => self.unplugs += 1,
                    Action::UnplugTimer => self.timer_unplugs += 1,
                    Action::Sleep => self.sleeps += 1,
                    Action::Split => self.splits += 1,
                    Action::Bounce => self.bounces += 1,
                    Action::Remap => self.remaps += 1,
                    _ => {}
                }
                return;
            }
        };
        *count += 1;
        *sum += bytes;
    }
}
