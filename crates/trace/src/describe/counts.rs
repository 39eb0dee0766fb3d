//! How often what happened: the figures of blkparse's summary.

use serde::Serialize;

use crate::event::{Action, Event, Rwbs};

/// Events by what happened. Reads and writes are told apart as blkparse does: discards are writes, and what is neither - flushes of the device - is with the reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// All but notes.
    pub events: u64,
    /// Notes of processes, the clock and texts.
    pub notes: u64,
    /// Without the bit of writes.
    pub reads: Direction,
    /// With it.
    pub writes: Direction,
    /// P.
    pub plugs: u64,
    /// U.
    pub unplugs: u64,
    /// UT.
    pub timer_unplugs: u64,
    /// S: waits for a free request.
    pub sleeps: u64,
    /// X.
    pub splits: u64,
    /// B.
    pub bounces: u64,
    /// A.
    pub remaps: u64,
}

/// Events of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Direction {
    /// Q.
    pub queued: u64,
    /// Their bytes.
    pub queued_bytes: u64,
    /// M and F.
    pub merged: u64,
    /// Their bytes.
    pub merged_bytes: u64,
    /// I.
    pub inserted: u64,
    /// Their bytes.
    pub inserted_bytes: u64,
    /// D.
    pub issued: u64,
    /// Their bytes.
    pub issued_bytes: u64,
    /// R.
    pub requeued: u64,
    /// C.
    pub completed: u64,
    /// Their bytes.
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
