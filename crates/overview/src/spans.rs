//! Reconstructs slices, idling and preemptions from elevator messages.

use std::collections::BTreeMap;

use hoistway_trace::DeviceId;

use crate::notes::{EndReason, NoteEvent, Queue};

/// Kind of a span of an elevator queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum SpanKind {
    /// The queue is in service.
    Slice = 0,
    /// The drive idles for the next request of the queue.
    Idle = 1,
    /// A moment: the queue preempts another.
    Preempts = 2,
    /// A moment: the weight of the queue is raised by the factor [`NoteSpan::budget`].
    Raised = 3,
    /// A moment: the queue is merged into another one.
    Merged = 4,
    /// A moment: the queue is split from a shared one.
    Split = 5,
    /// A moment: a request of the queue is injected during idling for another queue.
    Injected = 6,
}

/// An interval or a moment of an elevator queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoteSpan {
    /// The device of the queue.
    pub device: DeviceId,
    /// The queue of the elevator.
    pub queue: Queue,
    /// Kind of the span.
    pub kind: SpanKind,
    /// Start in ns of the trace's clock.
    pub start_ns: u64,
    /// End in ns; equal to the start for a moment.
    pub end_ns: u64,
    /// Reason for the end.
    pub reason: EndReason,
    /// Sectors served in a slice; 0 if none or unknown.
    pub served: u64,
    /// Budget of a slice in sectors; 0 if none or unknown.
    pub budget: u64,
}

/// Builds spans from messages.
#[derive(Debug, Default)]
pub(crate) struct SpanBuilder {
    devices: BTreeMap<DeviceId, OpenSpans>,
    ended: Vec<NoteSpan>,
}

/// Open spans of a device. An elevator serves one queue at a time and idles for one.
#[derive(Debug, Default)]
struct OpenSpans {
    slice: Option<NoteSpan>,
    idle: Option<NoteSpan>,
}

impl SpanBuilder {
    /// Processes a message.
    pub fn add(&mut self, time_ns: u64, device: DeviceId, note: NoteEvent) {
        let open = self.devices.entry(device).or_default();
        let ended = &mut self.ended;
        let span_at = |queue, kind, budget| NoteSpan {
            device,
            queue,
            kind,
            start_ns: time_ns,
            end_ns: time_ns,
            reason: EndReason::Unknown,
            served: 0,
            budget,
        };
        match note {
            NoteEvent::Begins(queue, budget) => {
                end(&mut open.idle, ended, time_ns, EndReason::Unknown);
                // A slice without a recorded end ends at the start of the next one.
                end(&mut open.slice, ended, time_ns, EndReason::Unknown);
                open.slice = Some(span_at(queue, SpanKind::Slice, budget.unwrap_or(0)));
            }
            NoteEvent::Served(queue, sectors) => {
                if let Some(slice) = open.slice.as_mut().filter(|slice| slice.queue == queue) {
                    slice.served = slice.served.saturating_add(sectors);
                }
            }
            NoteEvent::Ends { queue, reason, served, budget } => {
                end(&mut open.idle, ended, time_ns, reason);
                if let Some(slice) = open.slice.as_mut().filter(|slice| slice.queue == queue) {
                    slice.served = served.unwrap_or(slice.served);
                    slice.budget = budget.unwrap_or(slice.budget);
                    end(&mut open.slice, ended, time_ns, reason);
                }
            }
            NoteEvent::Idles(queue) => {
                end(&mut open.idle, ended, time_ns, EndReason::Unknown);
                open.idle = Some(span_at(queue, SpanKind::Idle, 0));
            }
            NoteEvent::IdleEnds(_, reason) => end(&mut open.idle, ended, time_ns, reason),
            NoteEvent::Preempts(queue) => ended.push(span_at(queue, SpanKind::Preempts, 0)),
            NoteEvent::Raised(queue, times) => ended.push(span_at(queue, SpanKind::Raised, times)),
            NoteEvent::Merged(queue) => ended.push(span_at(queue, SpanKind::Merged, 0)),
            NoteEvent::Split(queue) => ended.push(span_at(queue, SpanKind::Split, 0)),
            NoteEvent::Injected(queue) => ended.push(span_at(queue, SpanKind::Injected, 0)),
        }
    }

    /// Ends idling when the driver takes a request, because CFQ does not record that end.
    pub fn issued(&mut self, time_ns: u64, device: DeviceId) {
        if let Some(open) = self.devices.get_mut(&device).filter(|open| open.idle.is_some()) {
            end(&mut open.idle, &mut self.ended, time_ns, EndReason::RequestCame);
        }
    }

    /// Returns true if no message was processed.
    pub fn is_empty(&self) -> bool {
        self.devices.is_empty()
    }

    /// Ends the trace and all open spans.
    pub fn finish(&mut self, time_ns: u64) {
        for open in self.devices.values_mut() {
            end(&mut open.idle, &mut self.ended, time_ns, EndReason::Unknown);
            end(&mut open.slice, &mut self.ended, time_ns, EndReason::Unknown);
        }
    }

    /// Takes the spans that ended since the last call.
    pub fn take_ended(&mut self) -> Vec<NoteSpan> {
        std::mem::take(&mut self.ended)
    }
}

fn end(open: &mut Option<NoteSpan>, ended: &mut Vec<NoteSpan>, time_ns: u64, reason: EndReason) {
    if let Some(span) = open.take() {
        ended.push(NoteSpan { end_ns: time_ns.max(span.start_ns), reason, ..span });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISK: DeviceId = DeviceId::new(8, 0);

    #[test]
    fn a_slice_has_budget_served_sectors_and_reason() {
        let mut spans = SpanBuilder::default();
        spans.add(100, DISK, NoteEvent::Begins(Queue::Of(7), Some(1644)));
        spans.add(110, DISK, NoteEvent::Served(Queue::Of(7), 8));
        spans.add(120, DISK, NoteEvent::Served(Queue::Of(7), 16));
        let reason = EndReason::NoMoreRequests;
        spans.add(130, DISK, NoteEvent::Ends { queue: Queue::Of(7), reason, served: None, budget: None });
        let ended = spans.take_ended();
        let [slice] = ended.as_slice() else { panic!("{ended:?}") };
        assert_eq!(
            (slice.start_ns, slice.end_ns, slice.served, slice.budget, slice.reason),
            (100, 130, 24, 1644, reason)
        );
    }

    #[test]
    fn idling_ends_with_the_next_issued_request() {
        let mut spans = SpanBuilder::default();
        spans.add(100, DISK, NoteEvent::Begins(Queue::Of(7), None));
        spans.add(110, DISK, NoteEvent::Idles(Queue::Of(7)));
        spans.issued(150, DISK);
        spans.finish(200);
        let ended: Vec<_> = spans.take_ended().iter().map(|span| (span.kind, span.start_ns, span.end_ns)).collect();
        assert_eq!(ended, [(SpanKind::Idle, 110, 150), (SpanKind::Slice, 100, 200)]);
    }

    #[test]
    fn a_slice_without_a_recorded_end_ends_when_the_next_begins() {
        let mut spans = SpanBuilder::default();
        spans.add(100, DISK, NoteEvent::Begins(Queue::Of(7), None));
        spans.add(120, DISK, NoteEvent::Begins(Queue::Shared, None));
        spans.add(90, DISK, NoteEvent::Begins(Queue::Of(8), None));
        let ended: Vec<_> = spans.take_ended().iter().map(|span| (span.queue, span.start_ns, span.end_ns)).collect();
        assert_eq!(ended, [(Queue::Of(7), 100, 120), (Queue::Shared, 120, 120)], "no slice ends before it begins");
    }
}
