//! Recordings of a run: head positions, and the slices that the elevator gave to queues.

use std::mem;

use hoistway_core::{Event, NoSink, Note, Sink};

/// The position of the head for a request that the drive took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct HeadSample {
    /// Time at which the drive took the request, in ns since the start of the world.
    pub at_ns: u64,
    /// First sector of the request.
    pub sector: u64,
    /// Id of the process that the request was made for; 0 if there is none.
    pub pid: u32,
}

/// The kind of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SliceKind {
    /// The disk served one queue.
    Service,
    /// The elevator kept the disk idle for the next request of one process.
    Idle,
}

/// A slice of time that the elevator gave to one process's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Slice {
    /// Process id of the queue; 0 for a queue that processes share.
    pub pid: u32,
    /// Start, in ns since the start of the world.
    pub start_ns: u64,
    /// End, in ns since the start of the world.
    pub end_ns: u64,
    /// Service or idling.
    pub kind: SliceKind,
}

/// The recording of one run.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// Every request, in the order in which the drive took them.
    pub head: Vec<HeadSample>,
    /// Slices, in the order of their ends.
    pub slices: Vec<Slice>,
}

impl Recording {
    /// Drops everything after `end_ns` and ends the slices that were open then.
    pub(crate) fn cut(&mut self, end_ns: u64) {
        self.head.retain(|sample| sample.at_ns <= end_ns);
        self.slices.retain(|slice| slice.start_ns <= end_ns);
        for slice in &mut self.slices {
            slice.end_ns = slice.end_ns.clamp(slice.start_ns, end_ns);
        }
    }
}

/// A sink for a queue's trace events that turns them into slices.
pub(crate) trait Observer: Sink + Default {
    /// Takes the slices; open slices end at `now_ns`.
    fn slices(&mut self, now_ns: u64) -> Vec<Slice>;
}

impl Observer for NoSink {
    fn slices(&mut self, _: u64) -> Vec<Slice> {
        Vec::new()
    }
}

/// Combines the elevator's notes into slices.
#[derive(Debug, Default)]
pub(crate) struct SliceRecorder {
    slices: Vec<Slice>,
    service: Option<(u32, u64)>,
    idle: Option<(u32, u64)>,
}

impl SliceRecorder {
    fn end_service(&mut self, now_ns: u64) {
        if let Some((pid, start_ns)) = self.service.take() {
            self.slices.push(Slice { pid, start_ns, end_ns: now_ns, kind: SliceKind::Service });
        }
    }

    fn end_idle(&mut self, now_ns: u64) {
        if let Some((pid, start_ns)) = self.idle.take() {
            self.slices.push(Slice { pid, start_ns, end_ns: now_ns, kind: SliceKind::Idle });
        }
    }
}

impl Sink for SliceRecorder {
    fn record(&mut self, now_ns: u64, event: Event) {
        let Event::Note(note) = event else { return };
        match note {
            Note::Activate { queue, .. } => {
                self.end_service(now_ns);
                self.service = Some((queue, now_ns));
            }
            Note::SliceExpired { .. } | Note::BudgetExpired { .. } => {
                self.end_idle(now_ns);
                self.end_service(now_ns);
            }
            Note::IdleArmed { queue: pid, .. } | Note::Anticipate { pid, .. } => {
                self.end_idle(now_ns);
                self.idle = Some((pid, now_ns));
            }
            Note::IdleHit { .. }
            | Note::IdleTimeout { .. }
            | Note::AnticipationBroken { .. }
            | Note::AnticipationTimeout { .. } => self.end_idle(now_ns),
            _ => {}
        }
    }
}

impl Observer for SliceRecorder {
    fn slices(&mut self, now_ns: u64) -> Vec<Slice> {
        self.end_idle(now_ns);
        self.end_service(now_ns);
        mem::take(&mut self.slices)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_lasts_from_activation_to_expiry_and_holds_its_idling() {
        let mut recorder = SliceRecorder::default();
        let mut note = |at_ns, note| recorder.record(at_ns, Event::Note(note));
        note(10, Note::Activate { queue: 7, level: 4 });
        note(30, Note::IdleArmed { queue: 7, until_ns: 100 });
        note(40, Note::IdleHit { queue: 7 });
        note(50, Note::SliceExpired { queue: 7, left_ns: 0, preempted: false });
        note(60, Note::Activate { queue: 8, level: 4 });
        let slices = recorder.slices(90);
        let of = |pid, start_ns, end_ns, kind| Slice { pid, start_ns, end_ns, kind };
        let wanted =
            [of(7, 30, 40, SliceKind::Idle), of(7, 10, 50, SliceKind::Service), of(8, 60, 90, SliceKind::Service)];
        assert_eq!(slices, wanted);
    }
}
