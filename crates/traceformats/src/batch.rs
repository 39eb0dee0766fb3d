//! Batches of events, which readers fill and writers and analyses consume.

use crate::event::{Action, DeviceId, Event, Rwbs, Span};

/// Number of events that a reader puts into a batch, approximately.
pub const EVENTS_A_BATCH: usize = 4096;

/// Events and their payloads. A batch is cleared and refilled, so that reading needs no allocation
/// for each event.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    events: Vec<Event>,
    payloads: Vec<u8>,
}

impl Event {
    /// Creates an event with a time and an action; all other fields are 0.
    #[inline]
    pub const fn new(time_ns: u64, action: Action) -> Event {
        Event {
            time_ns,
            sector: 0,
            bytes: 0,
            pid: 0,
            sequence: 0,
            cpu: 0,
            device: DeviceId(0),
            error: 0,
            action,
            op: Rwbs(0),
            cgroup: 0,
            payload: Span { start: 0, len: 0 },
        }
    }

    /// Returns true if `time_ns` is the time at which the event happened. Process names and
    /// wall-clock times are recorded whenever the recorder learns them, so that their times can be
    /// earlier, later or missing.
    #[inline]
    pub const fn has_moment(&self) -> bool {
        !matches!(self.action, Action::Process | Action::Timestamp)
    }

    /// Returns the first sector after the event's range.
    #[inline]
    pub const fn end_sector(&self) -> u64 {
        self.sector.saturating_add((self.bytes as u64).div_ceil(512))
    }
}

impl Batch {
    /// Creates an empty batch.
    pub fn new() -> Batch {
        Batch::default()
    }

    /// Removes all events and keeps the allocated memory.
    #[inline]
    pub fn clear(&mut self) {
        self.events.clear();
        self.payloads.clear();
    }

    /// Adds an event without a payload.
    #[inline]
    pub fn push(&mut self, event: Event) {
        self.events.push(Event { payload: Span::default(), ..event });
    }

    /// Adds an event with a payload. The payload is dropped if the payloads of the batch would
    /// exceed 4 GiB.
    #[inline]
    pub fn push_with(&mut self, event: Event, payload: &[u8]) {
        let start = u32::try_from(self.payloads.len());
        let len = u32::try_from(payload.len());
        let span = match (start, len) {
            (Ok(start), Ok(len)) if len > 0 && start.checked_add(len).is_some() => {
                self.payloads.extend_from_slice(payload);
                Span { start, len }
            }
            _ => Span::default(),
        };
        self.events.push(Event { payload: span, ..event });
    }

    /// Adds an event of another batch with its payload. The caller may have changed its other
    /// fields.
    #[inline]
    pub fn push_from(&mut self, event: &Event, from: &Batch) {
        self.push_with(*event, from.payload(event));
    }

    /// The events in the order of insertion.
    #[inline]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Returns the payload of an event of this batch: a text, a name or a big-endian number; empty
    /// for most events.
    #[inline]
    pub fn payload(&self, event: &Event) -> &[u8] {
        let start = event.payload.start as usize;
        self.payloads.get(start..start + event.payload.len as usize).unwrap_or_default()
    }

    /// Returns the time of the first event that has a moment (see [`Event::has_moment`]), in ns;
    /// None if there is no such event.
    pub fn start_ns(&self) -> Option<u64> {
        self.events.iter().find(|event| event.has_moment()).map(|event| event.time_ns)
    }

    /// Number of events in the batch.
    #[inline]
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Returns true if the batch has no events.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }
}
