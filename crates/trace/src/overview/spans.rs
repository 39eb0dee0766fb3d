//! Slices, idling and preemptions, put together from the elevators' notes.

use std::collections::BTreeMap;

use super::notes::{Ended, Queue, Told};
use crate::event::DeviceId;

/// What a stretch of time, or a moment, of an elevator's notes is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum SpanKind {
    /// The queue is the one that is served.
    Slice = 0,
    /// The drive is kept idle for the queue's next request.
    Idle = 1,
    /// A moment: the queue takes the disk from another.
    Preempts = 2,
    /// A moment: its weight is raised, by [`NoteSpan::budget`].
    Raised = 3,
    /// A moment: it shares another's queue from now on.
    Merged = 4,
    /// A moment: it has a queue of its own again.
    Split = 5,
    /// A moment: a request of it is let in while another queue is waited for.
    Injected = 6,
}

/// Something that the elevator's notes tell of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoteSpan {
    /// The device.
    pub device: DeviceId,
    /// The queue.
    pub queue: Queue,
    /// What it is.
    pub kind: SpanKind,
    /// When it began, ns of the trace's clock.
    pub start_ns: u64,
    /// When it ended; for a moment the same.
    pub end_ns: u64,
    /// Why it ended.
    pub why: Ended,
    /// What was served in a slice, sectors, as far as the notes tell; 0: nothing, or not told.
    pub served: u64,
    /// The slice's budget, sectors; 0 where there is none, or it is not told.
    pub budget: u64,
}

/// Puts them together.
#[derive(Debug, Default)]
pub(super) struct Spans {
    devices: BTreeMap<DeviceId, Open>,
    over: Vec<NoteSpan>,
}

/// What is under way on a device: an elevator serves one queue at a time, and idles for one.
#[derive(Debug, Default)]
struct Open {
    slice: Option<NoteSpan>,
    idle: Option<NoteSpan>,
}

impl Spans {
    /// Takes in what a note says.
    pub fn take(&mut self, time_ns: u64, device: DeviceId, told: Told) {
        let open = self.devices.entry(device).or_default();
        let over = &mut self.over;
        let begun = |queue, kind, budget| NoteSpan {
            device,
            queue,
            kind,
            start_ns: time_ns,
            end_ns: time_ns,
            why: Ended::Unknown,
            served: 0,
            budget,
        };
        match told {
            Told::Begins(queue, budget) => {
                end(&mut open.idle, over, time_ns, Ended::Unknown);
                // A slice whose end the notes do not tell ended when the next began.
                end(&mut open.slice, over, time_ns, Ended::Unknown);
                open.slice = Some(begun(queue, SpanKind::Slice, budget.unwrap_or(0)));
            }
            Told::Served(queue, sectors) => {
                if let Some(slice) = open.slice.as_mut().filter(|slice| slice.queue == queue) {
                    slice.served = slice.served.saturating_add(sectors);
                }
            }
            Told::Ends { queue, why, served, budget } => {
                end(&mut open.idle, over, time_ns, why);
                if let Some(slice) = open.slice.as_mut().filter(|slice| slice.queue == queue) {
                    slice.served = served.unwrap_or(slice.served);
                    slice.budget = budget.unwrap_or(slice.budget);
                    end(&mut open.slice, over, time_ns, why);
                }
            }
            Told::Idles(queue) => {
                end(&mut open.idle, over, time_ns, Ended::Unknown);
                open.idle = Some(begun(queue, SpanKind::Idle, 0));
            }
            Told::IdleEnds(_, why) => end(&mut open.idle, over, time_ns, why),
            Told::Preempts(queue) => over.push(begun(queue, SpanKind::Preempts, 0)),
            Told::Raised(queue, times) => over.push(begun(queue, SpanKind::Raised, times)),
            Told::Merged(queue) => over.push(begun(queue, SpanKind::Merged, 0)),
            Told::Split(queue) => over.push(begun(queue, SpanKind::Split, 0)),
            Told::Injected(queue) => over.push(begun(queue, SpanKind::Injected, 0)),
        }
    }

    /// A driver took a request: nobody is idled for any more. CFQ's notes do not tell that end.
    pub fn issued(&mut self, time_ns: u64, device: DeviceId) {
        if let Some(open) = self.devices.get_mut(&device).filter(|open| open.idle.is_some()) {
            end(&mut open.idle, &mut self.over, time_ns, Ended::RequestCame);
        }
    }

    /// Whether nothing was told so far.
    pub fn is_silent(&self) -> bool {
        self.devices.is_empty()
    }

    /// The trace is over: what is under way ends with it.
    pub fn finish(&mut self, time_ns: u64) {
        for open in self.devices.values_mut() {
            end(&mut open.idle, &mut self.over, time_ns, Ended::Unknown);
            end(&mut open.slice, &mut self.over, time_ns, Ended::Unknown);
        }
    }

    /// Those that are over since this was last called.
    pub fn over(&mut self) -> Vec<NoteSpan> {
        std::mem::take(&mut self.over)
    }
}

fn end(open: &mut Option<NoteSpan>, over: &mut Vec<NoteSpan>, time_ns: u64, why: Ended) {
    if let Some(span) = open.take() {
        over.push(NoteSpan { end_ns: time_ns.max(span.start_ns), why, ..span });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISK: DeviceId = DeviceId::new(8, 0);

    #[test]
    fn a_slice_has_its_budget_what_was_served_and_why_it_ended() {
        let mut spans = Spans::default();
        spans.take(100, DISK, Told::Begins(Queue::Of(7), Some(1644)));
        spans.take(110, DISK, Told::Served(Queue::Of(7), 8));
        spans.take(120, DISK, Told::Served(Queue::Of(7), 16));
        let why = Ended::NoMoreRequests;
        spans.take(130, DISK, Told::Ends { queue: Queue::Of(7), why, served: None, budget: None });
        let over = spans.over();
        let [slice] = over.as_slice() else { panic!("{over:?}") };
        assert_eq!((slice.start_ns, slice.end_ns, slice.served, slice.budget, slice.why), (100, 130, 24, 1644, why));
    }

    #[test]
    fn idling_ends_with_the_next_request_that_goes_to_the_drive() {
        let mut spans = Spans::default();
        spans.take(100, DISK, Told::Begins(Queue::Of(7), None));
        spans.take(110, DISK, Told::Idles(Queue::Of(7)));
        spans.issued(150, DISK);
        spans.finish(200);
        let over: Vec<_> = spans.over().iter().map(|span| (span.kind, span.start_ns, span.end_ns)).collect();
        assert_eq!(over, [(SpanKind::Idle, 110, 150), (SpanKind::Slice, 100, 200)]);
    }

    #[test]
    fn a_slice_without_an_end_ends_when_the_next_begins() {
        let mut spans = Spans::default();
        spans.take(100, DISK, Told::Begins(Queue::Of(7), None));
        spans.take(120, DISK, Told::Begins(Queue::Shared, None));
        spans.take(90, DISK, Told::Begins(Queue::Of(8), None));
        let over: Vec<_> = spans.over().iter().map(|span| (span.queue, span.start_ns, span.end_ns)).collect();
        assert_eq!(over, [(Queue::Of(7), 100, 120), (Queue::Shared, 120, 120)], "no slice ends before it begins");
    }
}
