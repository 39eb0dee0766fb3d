//! Converts requests with response times to submissions and completions in order of time.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::{LineError, LineOutput};
use crate::batch::EVENTS_A_BATCH;
use crate::event::{Action, DeviceId, Event, Rwbs};

/// Number of submissions that are buffered for sorting, because some formats are ordered by
/// completion. MSR's servers had fewer outstanding requests.
const SUBMISSIONS_BUFFERED: usize = 4096;
/// End of the largest plausible volume: 1 PiB. The largest volumes of clouds have 64 TiB.
const VOLUME_BYTES_MAX: u128 = 1 << 50;
/// Maximum number of buffered events.
const BUFFERED_MAX: usize = 1 << 20;

/// A request of a format with one line for each request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request {
    /// Time of submission in ns, or of the issue to the device if the submission is unknown.
    pub time_ns: u64,
    /// True if the format records the issue to the device instead of the submission.
    pub is_unqueued: bool,
    /// Time from submission to the issue to the device in ns, if known.
    pub issue_ns: Option<u64>,
    /// Time from submission to completion in ns, if known.
    pub response_ns: Option<u64>,
    /// Device that serves the request.
    pub device: DeviceId,
    /// Operation and flags.
    pub op: Rwbs,
    /// Offset of the first byte.
    pub offset: u64,
    /// Length in bytes.
    pub bytes: u64,
    /// Process id; 0 if the format has none.
    pub pid: u32,
}

/// Sorts submissions and completions of requests by time.
#[derive(Debug, Default)]
pub struct RequestSorter {
    buffered: BinaryHeap<Reverse<BufferedEvent>>,
    /// Number of first events of requests among the buffered events.
    submissions: usize,
    taken: u64,
    last_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BufferedEvent {
    event: Event,
    order: u64,
    /// True for the first event of a request.
    is_first: bool,
}

impl RequestSorter {
    /// Adds a request and emits the events whose order is certain.
    ///
    /// # Errors
    /// Fails if an event cannot represent the request.
    pub fn take(&mut self, request: &Request, out: &mut LineOutput<'_>) -> Result<(), LineError> {
        let bytes = u32::try_from(request.bytes)
            .map_err(|_| format!("the length of {} bytes is too large: {} is the most", request.bytes, u32::MAX))?;
        if !request.offset.is_multiple_of(512) || !bytes.is_multiple_of(512) {
            out.notices.count(
                "offsets and lengths that are not multiples of 512 bytes are widened to whole sectors",
                out.position,
                || format!("{bytes} bytes at byte {}", request.offset),
            );
        }
        let sector = request.offset / 512;
        let end_sector = (u128::from(request.offset) + u128::from(bytes)).div_ceil(512);
        if end_sector > VOLUME_BYTES_MAX / 512 {
            out.notices.count(
                "addresses are beyond 1 PiB, more than any volume has: their unit or their column may be wrong",
                out.position,
                || format!("byte {}", request.offset),
            );
        }
        let whole_bytes = u32::try_from((end_sector - u128::from(sector)) * 512).unwrap_or(u32::MAX - 511);
        let event = Event {
            sector,
            bytes: whole_bytes,
            device: request.device,
            op: request.op,
            pid: request.pid,
            ..Event::new(request.time_ns, if request.is_unqueued { Action::Issue } else { Action::Queue })
        };
        self.buffer(event, true);
        self.submissions += 1;
        let later = [(Action::Issue, request.issue_ns), (Action::Complete, request.response_ns)];
        for (action, delay_ns) in later.into_iter().filter_map(|(action, delay_ns)| Some((action, delay_ns?))) {
            self.buffer(Event { time_ns: request.time_ns.saturating_add(delay_ns), action, ..event }, false);
        }
        while self.submissions > SUBMISSIONS_BUFFERED {
            self.emit(out);
        }
        if self.buffered.len() > BUFFERED_MAX {
            return Err(LineError::Input(format!(
                "more than {BUFFERED_MAX} requests would be outstanding here: response times must have the unit of the times"
            )));
        }
        Ok(())
    }

    /// Emits buffered events, at most one batch. Returns true if none are left.
    pub fn end(&mut self, out: &mut LineOutput<'_>) -> bool {
        for _ in 0..EVENTS_A_BATCH {
            self.emit(out);
        }
        self.buffered.is_empty()
    }

    fn buffer(&mut self, event: Event, is_first: bool) {
        self.taken += 1;
        self.buffered.push(Reverse(BufferedEvent { event, order: self.taken, is_first }));
    }

    fn emit(&mut self, out: &mut LineOutput<'_>) {
        let Some(Reverse(BufferedEvent { event, is_first, .. })) = self.buffered.pop() else { return };
        self.submissions -= usize::from(is_first);
        if event.time_ns < self.last_ns {
            out.notices.count(
                "a request is earlier than the one 4,096 lines before it: the order of time is broken",
                out.position,
                || format!("{} ns too late", self.last_ns - event.time_ns),
            );
        }
        self.last_ns = event.time_ns;
        out.batch.push(event);
    }
}

impl Ord for BufferedEvent {
    fn cmp(&self, other: &BufferedEvent) -> Ordering {
        (self.event.time_ns, self.order).cmp(&(other.event.time_ns, other.order))
    }
}

impl PartialOrd for BufferedEvent {
    fn partial_cmp(&self, other: &BufferedEvent) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
