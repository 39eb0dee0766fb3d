//! What the queue tells of what it does: always who holds the slice and what was merged; everything, while somebody records.

use hoistway_core::{Event, Note, Op, Sink};

/// Takes the events of a device's queue. It must not block.
pub trait Record: Send {
    /// Takes an event that happened at `now_ns`. The process id in it is [`super::MemberId::number`].
    fn record(&mut self, now_ns: u64, event: &Event);
    /// Says what a process of this id is called from now on.
    fn name(&mut self, number: u32, name: &str) {
        let _ = (number, name);
    }
    /// Says under which elevator, at which depth and on which emulated drive what is recorded begins, as in `elevator bfq, depth 1, drive ssd`.
    fn setting(&mut self, text: &str) {
        let _ = text;
    }
}

/// The queue's sink.
#[derive(Default)]
pub(super) struct Tap {
    /// The number of the member whose requests are served alone at present.
    pub holder: Option<u32>,
    /// Bios merged since the start: reads, and all others.
    pub merges: [u64; 2],
    /// Who records.
    pub recorder: Option<Box<dyn Record>>,
}

impl Sink for Tap {
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

impl Tap {
    fn note(&mut self, note: Note) {
        match note {
            Note::Activate { queue, .. } => self.holder = Some(queue).filter(|queue| *queue > 0),
            Note::SliceExpired { .. } | Note::BudgetExpired { .. } | Note::Switched { .. } => self.holder = None,
            _ => {}
        }
    }
}
