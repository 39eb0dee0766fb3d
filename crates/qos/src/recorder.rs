//! Events of the request queue: what the control tree shows of them, and the interface of
//! recorders.

use hoistway_core::{Event, Note, Op, Sink};

/// A recorder of the events of a device's queue. Its methods must not block.
pub trait Recorder: Send {
    /// Records an event. The process id in the event is
    /// [`MemberId::number`](crate::MemberId::number).
    fn record(&mut self, now_ns: u64, event: &Event);
    /// Records the name of the process with this id.
    fn name(&mut self, number: u32, name: &str) {
        let _ = (number, name);
    }
    /// Records the setting under which the recording starts, as in `elevator bfq, depth 1, drive
    /// ssd`.
    fn setting(&mut self, text: &str) {
        let _ = text;
    }
}

/// The event sink of a request queue.
#[derive(Default)]
pub(crate) struct QueueSink {
    /// The number of the client whose slice is active.
    pub slice_holder: Option<u32>,
    /// The number of merged bios: reads, and all others.
    pub merges: [u64; 2],
    /// The attached recorder.
    pub recorder: Option<Box<dyn Recorder>>,
}

impl std::fmt::Debug for QueueSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("QueueSink")
            .field("slice_holder", &self.slice_holder)
            .field("merges", &self.merges)
            .field("is_recorded", &self.recorder.is_some())
            .finish()
    }
}

impl Sink for QueueSink {
    #[inline(always)]
    fn record(&mut self, now_ns: u64, event: Event) {
        match event {
            Event::Note(note) => self.note(note),
            Event::BackMerge { bio, .. } | Event::FrontMerge { bio, .. } => {
                self.merges[usize::from(bio.op != Op::Read)] += 1;
            }
            _ => {}
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.record(now_ns, &event);
        }
    }
}

impl QueueSink {
    fn note(&mut self, note: Note) {
        match note {
            Note::Activate { queue, .. } => self.slice_holder = Some(queue).filter(|queue| *queue > 0),
            Note::SliceExpired { .. } | Note::BudgetExpired { .. } | Note::Switched { .. } => self.slice_holder = None,
            _ => {}
        }
    }
}
