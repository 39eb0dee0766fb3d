//! Requests with response times, made into submissions and completions in the order of time.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::Taken;
use crate::batch::EVENTS_A_BATCH;
use crate::event::{Action, DeviceId, Event, Rwbs};

/// So many requests are held back, to put into order what stands in the order of completion: MSR's servers had fewer under way.
const HELD_BACK: usize = 4096;
/// So many may be under way at a time.
const UNDER_WAY_MAX: usize = 1 << 20;

/// A request as such formats know it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    /// When it was submitted.
    pub time_ns: u64,
    /// How long it took, where that is known.
    pub response_ns: Option<u64>,
    pub device: DeviceId,
    pub op: Rwbs,
    /// The first byte.
    pub offset: u64,
    pub bytes: u64,
}

/// Requests that were read, and events of them that are not yet handed out.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    held: BinaryHeap<Reverse<Held>>,
    /// Submissions among them.
    submissions: usize,
    taken: u64,
    last_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Held {
    event: Event,
    order: u64,
}

impl Requests {
    /// Takes a request in; what is certain to come next comes out.
    ///
    /// # Errors
    /// What no event can hold.
    pub fn take(&mut self, request: &Request, out: &mut Taken<'_>) -> Result<(), String> {
        let bytes = u32::try_from(request.bytes)
            .map_err(|_| format!("the length of {} bytes is too large: {} is the most", request.bytes, u32::MAX))?;
        if !request.offset.is_multiple_of(512) || !bytes.is_multiple_of(512) {
            out.notices.count(
                "offsets and lengths that are no multiples of 512 bytes are widened to whole sectors",
                out.place,
                || format!("{bytes} bytes at byte {}", request.offset),
            );
        }
        let sector = request.offset / 512;
        let end_sector = (u128::from(request.offset) + u128::from(bytes)).div_ceil(512);
        let whole_bytes = u32::try_from((end_sector - u128::from(sector)) * 512).unwrap_or(u32::MAX - 511);
        let event = Event {
            sector,
            bytes: whole_bytes,
            device: request.device,
            op: request.op,
            ..Event::new(request.time_ns, Action::Queue)
        };
        self.hold(event);
        self.submissions += 1;
        if let Some(response_ns) = request.response_ns {
            let time_ns = request.time_ns.saturating_add(response_ns);
            self.hold(Event { time_ns, action: Action::Complete, ..event });
        }
        while self.submissions > HELD_BACK {
            self.hand_out(out);
        }
        if self.held.len() > UNDER_WAY_MAX {
            return Err(format!(
                "more than {UNDER_WAY_MAX} requests would be under way here: response times must be in the unit of the times"
            ));
        }
        Ok(())
    }

    /// Nothing more comes: hands out what is held, at most a batch; true if nothing is left.
    pub fn end(&mut self, out: &mut Taken<'_>) -> bool {
        for _ in 0..EVENTS_A_BATCH {
            self.hand_out(out);
        }
        self.held.is_empty()
    }

    fn hold(&mut self, event: Event) {
        self.taken += 1;
        self.held.push(Reverse(Held { event, order: self.taken }));
    }

    fn hand_out(&mut self, out: &mut Taken<'_>) {
        let Some(Reverse(Held { event, .. })) = self.held.pop() else { return };
        self.submissions -= usize::from(event.action == Action::Queue);
        if event.time_ns < self.last_ns {
            out.notices.count(
                "a request lies before the one that stands 4,096 lines above it: the order of time is broken",
                out.place,
                || format!("{} ns too late", self.last_ns - event.time_ns),
            );
        }
        self.last_ns = event.time_ns;
        out.batch.push(event);
    }
}

impl Ord for Held {
    fn cmp(&self, other: &Held) -> Ordering {
        (self.event.time_ns, self.order).cmp(&(other.event.time_ns, other.order))
    }
}

impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Held) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
