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
    /// The client whose slice is active.
    pub slice: Option<SliceStart>,
    /// The slices that have ended and are not yet counted: the number of the client, and the length
    /// in ns.
    pub ended_slices: Vec<(u32, u64)>,
    /// True if the current elevator has begun a slice.
    pub has_slices: bool,
    /// The number of merged bios: reads, and all others.
    pub merges: [u64; 2],
    /// The attached recorder.
    pub recorder: Option<Box<dyn Recorder>>,
}

/// The start of the active slice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SliceStart {
    /// The number of the client.
    pub number: u32,
    /// The start, in ns of the host's clock.
    pub began_ns: u64,
}

impl std::fmt::Debug for QueueSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("QueueSink")
            .field("slice", &self.slice)
            .field("merges", &self.merges)
            .field("is_recorded", &self.recorder.is_some())
            .finish()
    }
}

impl Sink for QueueSink {
    #[inline(always)]
    fn record(&mut self, now_ns: u64, event: Event) {
        match event {
            Event::Note(note) => self.note(now_ns, note),
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
    fn note(&mut self, now_ns: u64, note: Note) {
        match note {
            Note::Activate { queue, .. } => {
                self.end_slice(now_ns);
                self.has_slices = true;
                // Processes share queue 0, so its slice has no holder.
                self.slice = Some(SliceStart { number: queue, began_ns: now_ns }).filter(|slice| slice.number > 0);
            }
            Note::SliceExpired { .. } | Note::BudgetExpired { .. } => self.end_slice(now_ns),
            Note::Switched { .. } => {
                self.end_slice(now_ns);
                self.has_slices = false;
            }
            _ => {}
        }
    }

    /// Ends the active slice, if there is one.
    pub fn end_slice(&mut self, now_ns: u64) {
        if let Some(slice) = self.slice.take() {
            self.ended_slices.push((slice.number, now_ns.saturating_sub(slice.began_ns)));
        }
    }
}
