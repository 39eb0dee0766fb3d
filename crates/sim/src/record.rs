//! Recordings of a run: head positions, and the slices that the elevator gave to queues.

use std::mem;

use hoistway_core::{Event, Io, NoSink, Note, Op, Sink};

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

/// What happened to a request in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepKind {
    /// A request entered the elevator.
    Insert,
    /// A bio made a queued request longer; its extent is that of the bio.
    Merge,
    /// A queued request became part of another one.
    Join,
    /// The drive took a request.
    Issue,
    /// The drive gave a request back.
    Requeue,
    /// A request completed.
    Complete,
}

/// One step of a request through the queue and the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Step {
    /// Time of the step, in ns since the start of the world.
    pub at_ns: u64,
    /// What happened.
    pub kind: StepKind,
    /// The request, by a number that no other request of the run has at the same time.
    pub request: u64,
    /// Process id of the submitter.
    pub pid: u32,
    /// First sector, of 512 bytes.
    pub sector: u64,
    /// Length in sectors.
    pub sectors: u32,
    /// True if the request is no read.
    pub is_write: bool,
}

/// The recording of one run.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// Every request, in the order in which the drive took them.
    pub head: Vec<HeadSample>,
    /// Slices, in the order of their ends.
    pub slices: Vec<Slice>,
    /// The steps of requests, if they were filmed.
    pub steps: Vec<Step>,
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

/// What an observer records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Watch {
    /// No event is recorded.
    #[default]
    Nothing,
    /// Slices, and head positions.
    Slices,
    /// Those, and every step of requests.
    Steps,
}

/// A sink for a queue's trace events that turns them into slices.
pub(crate) trait Observer: Sink + Default {
    /// Takes the slices; open slices end at `now_ns`.
    fn slices(&mut self, now_ns: u64) -> Vec<Slice>;

    /// Chooses what is recorded, if the observer has a choice.
    fn watch(&mut self, _: Watch) {}

    /// Takes the steps of requests; none unless the observer films.
    fn steps(&mut self) -> Vec<Step> {
        Vec::new()
    }
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

/// The maximum number of steps that a film keeps: the first ones.
pub(crate) const STEPS_MAX: usize = 200_000;

/// Records what [`Watch`] chooses, at the cost of a check for each event.
#[derive(Debug, Default)]
pub(crate) struct FilmRecorder {
    watch: Watch,
    slices: SliceRecorder,
    steps: Vec<Step>,
}

impl Sink for FilmRecorder {
    #[inline]
    fn is_on(&self) -> bool {
        self.watch != Watch::Nothing
    }

    fn record(&mut self, now_ns: u64, event: Event) {
        let (kind, request, io) = match event {
            Event::Insert(io) => (StepKind::Insert, io.token, io),
            Event::BackMerge { bio, into } | Event::FrontMerge { bio, into } => (StepKind::Merge, into, bio),
            Event::Join { request, .. } => (StepKind::Join, request.token, request),
            Event::Issue(io) => (StepKind::Issue, io.token, io),
            Event::Requeue(io) => (StepKind::Requeue, io.token, io),
            Event::Complete(io) => (StepKind::Complete, io.token, io),
            other => return self.slices.record(now_ns, other),
        };
        if self.watch == Watch::Steps && self.steps.len() < STEPS_MAX {
            let Io { pid, op, sector, sectors, .. } = io;
            self.steps.push(Step { at_ns: now_ns, kind, request, pid, sector, sectors, is_write: op != Op::Read });
        }
    }
}

impl Observer for FilmRecorder {
    fn slices(&mut self, now_ns: u64) -> Vec<Slice> {
        self.slices.slices(now_ns)
    }

    fn watch(&mut self, watch: Watch) {
        self.watch = watch;
    }

    fn steps(&mut self) -> Vec<Step> {
        mem::take(&mut self.steps)
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
