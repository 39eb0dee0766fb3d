//! Events on their way from a reader to whoever wants them.

use crate::event::{Action, DeviceId, Event, Rwbs, Span};

/// So many events, about, a reader puts into a batch.
pub const EVENTS_A_BATCH: usize = 4096;

/// Events, and the payloads of some of them. It is filled and emptied again, so that reading costs no allocation an event.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    events: Vec<Event>,
    payloads: Vec<u8>,
}

impl Event {
    /// An event of which nothing is known but when and what.
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

    /// Whether its time is that at which something happened. Names of processes and the time of the day are told when they are known: before, behind, or at no
    /// time at all.
    pub const fn has_moment(&self) -> bool {
        !matches!(self.action, Action::Process | Action::Timestamp)
    }

    /// The first sector behind it.
    pub const fn end_sector(&self) -> u64 {
        self.sector.saturating_add((self.bytes as u64).div_ceil(512))
    }
}

impl Batch {
    /// None yet.
    pub fn new() -> Batch {
        Batch::default()
    }

    /// Forgets all of them, and keeps their memory.
    pub fn clear(&mut self) {
        self.events.clear();
        self.payloads.clear();
    }

    /// Adds an event without a payload.
    pub fn push(&mut self, event: Event) {
        self.events.push(Event { payload: Span::default(), ..event });
    }

    /// Adds an event with a payload. Of one longer than 4 GiB in all batches' payloads nothing is kept.
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

    /// Adds an event of another batch, with its payload; where and when it happened may have been changed.
    pub fn push_from(&mut self, event: &Event, from: &Batch) {
        self.push_with(*event, from.payload(event));
    }

    /// The events, in the order in which they were added.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// What belongs to an event of this batch: a text, a name, a number (big-endian); empty for most.
    pub fn payload(&self, event: &Event) -> &[u8] {
        let start = event.payload.start as usize;
        self.payloads.get(start..start + event.payload.len as usize).unwrap_or_default()
    }

    /// When what it tells of begins, in ns: names of processes and times of the day may be older, or have no time. None if there is nothing else.
    pub fn start_ns(&self) -> Option<u64> {
        self.events.iter().find(|event| event.has_moment()).map(|event| event.time_ns)
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }
}
