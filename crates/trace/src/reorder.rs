//! Reorders the requests of a trace by sector: the requests of a program that accesses its data in
//! disk order.
//!
//! A [`SectorSorter`] collects the requests of a window, sorts them by sector, and emits them at
//! the recorded submission times: the first request of the new order at the first time, and so on.
//! Each window becomes one sweep of the head. The output holds only submissions (Q), because the
//! trace cannot show when the reordered requests would be merged, issued and completed. No request
//! moves across a flush.

use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;

use crate::batch::{Batch, EVENTS_A_BATCH};
use crate::describe::{Distances, SeekFigures};
use crate::event::{Action, DeviceId, Event, Rwbs};
use crate::source::{Notice, ReadError, Source};

/// The range of requests that is sorted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// All requests, which are kept in memory at 64 bytes each.
    All,
    /// A number of requests, at least 1.
    Requests(usize),
    /// The requests that arrive within this time, in ns.
    Time(u64),
}

/// Observes the requests in both orders.
pub trait ReorderObserver {
    /// Receives the next request in the order of the trace.
    fn before(&mut self, request: &Event);

    /// Receives the next request in the new order.
    fn after(&mut self, request: &Event);
}

/// Ignores the requests.
impl ReorderObserver for () {
    fn before(&mut self, _: &Event) {}

    fn after(&mut self, _: &Event) {}
}

/// Passes the requests to an optional observer.
impl<O: ReorderObserver> ReorderObserver for Option<O> {
    fn before(&mut self, request: &Event) {
        self.iter_mut().for_each(|observer| observer.before(request));
    }

    fn after(&mut self, request: &Event) {
        self.iter_mut().for_each(|observer| observer.after(request));
    }
}

/// A source that returns the reordered requests of another source.
#[derive(Debug)]
pub struct ReorderedSource<S, W = ()> {
    source: S,
    read: Batch,
    reorder: Option<SectorSorter<W>>,
    /// Sorted events; those before `next` have been returned.
    ready: Batch,
    next_index: usize,
    summary: Option<(ReorderSummary, W)>,
}

/// Sorts the requests of a stream of events by sector.
#[derive(Debug)]
pub struct SectorSorter<W = ()> {
    window: Window,
    /// The event that represents a request: Q, or D or C if the trace has no Q. Determined by the
    /// first batch that has any of them.
    request_action: Option<Action>,
    window_events: Vec<Event>,
    times_ns: Vec<u64>,
    names: PendingNames,
    requests: u64,
    sweeps: u64,
    before: DistanceTracker,
    after: DistanceTracker,
    observer: W,
}

/// Statistics of a reordering.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ReorderSummary {
    /// Number of requests, without flushes.
    pub requests: u64,
    /// Number of windows that were sorted.
    pub sweeps: u64,
    /// Distances in the order of the trace.
    pub before: SeekFigures,
    /// Distances in the new order.
    pub after: SeekFigures,
}

impl<S: Source, W: ReorderObserver> ReorderedSource<S, W> {
    /// Creates a source that sorts the requests of `source` by sector within a window.
    pub fn new(source: S, window: Window, observer: W) -> ReorderedSource<S, W> {
        ReorderedSource {
            source,
            read: Batch::new(),
            reorder: Some(SectorSorter::new(window, observer)),
            ready: Batch::new(),
            next_index: 0,
            summary: None,
        }
    }

    /// Returns the statistics and the observer, after the source was read to its end.
    pub fn into_summary(self) -> Option<(ReorderSummary, W)> {
        self.summary
    }

    /// Prepares more events. Returns true if there are any.
    fn make_ready(&mut self) -> Result<bool, ReadError> {
        self.ready.clear();
        self.next_index = 0;
        while let Some(mut reorder) = self.reorder.take() {
            self.source.next(&mut self.read)?;
            if self.read.is_empty() {
                self.summary = Some(reorder.finish(&mut self.ready));
                break;
            }
            reorder.take(&self.read, &mut self.ready);
            self.reorder = Some(reorder);
            if !self.ready.is_empty() {
                break;
            }
        }
        Ok(!self.ready.is_empty())
    }
}

impl<S: Source, W: ReorderObserver> Source for ReorderedSource<S, W> {
    fn next(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        batch.clear();
        if self.next_index < self.ready.len() || self.make_ready()? {
            let end = self.ready.len().min(self.next_index + EVENTS_A_BATCH);
            for event in &self.ready.events()[self.next_index..end] {
                batch.push_from(event, &self.ready);
            }
            self.next_index = end;
        }
        Ok(())
    }

    fn notices(&mut self) -> Vec<Notice> {
        self.source.notices()
    }

    fn skipped_lines(&self) -> u64 {
        self.source.skipped_lines()
    }
}

impl<W: ReorderObserver> SectorSorter<W> {
    /// Creates a sorter with a window.
    pub fn new(window: Window, observer: W) -> SectorSorter<W> {
        SectorSorter {
            window,
            request_action: None,
            window_events: Vec::new(),
            times_ns: Vec::new(),
            names: PendingNames::default(),
            requests: 0,
            sweeps: 0,
            before: DistanceTracker::new(),
            after: DistanceTracker::new(),
            observer,
        }
    }

    /// Processes events in order of time. Appends the sorted requests of complete windows to `out`,
    /// with the names of their processes.
    pub fn take(&mut self, batch: &Batch, out: &mut Batch) {
        if self.request_action.is_none() {
            let has = |action: &Action| batch.events().iter().any(|event| event.action == *action);
            self.request_action = [Action::Queue, Action::Issue, Action::Complete].into_iter().find(has);
        }
        for event in batch.events() {
            if event.action == Action::Process {
                self.names.take(event, batch.payload(event));
            } else if Some(event.action) == self.request_action {
                self.request(event, out);
            }
        }
    }

    /// Ends the trace: appends the remaining requests to `out`.
    pub fn finish(mut self, out: &mut Batch) -> (ReorderSummary, W) {
        self.sweep(out);
        self.names.finish(out);
        let summary = ReorderSummary {
            requests: self.requests,
            sweeps: self.sweeps,
            before: self.before.distances.figures(),
            after: self.after.distances.figures(),
        };
        (summary, self.observer)
    }

    fn request(&mut self, event: &Event, out: &mut Batch) {
        let event = Event { action: Action::Queue, error: 0, ..*event };
        if event.bytes == 0 || event.op.has(Rwbs::FLUSH) {
            self.sweep(out);
            if event.bytes == 0 {
                self.observer.before(&event);
                self.observer.after(&event);
                self.names.before(&event, event.time_ns, out);
                out.push(event);
                return;
            }
        }
        let is_full = match self.window {
            Window::All => false,
            Window::Requests(most) => self.window_events.len() >= most,
            Window::Time(ns) => {
                self.window_events.first().is_some_and(|first| event.time_ns.saturating_sub(first.time_ns) >= ns)
            }
        };
        if is_full {
            self.sweep(out);
        }
        self.requests += 1;
        self.before.next(&event);
        self.observer.before(&event);
        self.window_events.push(event);
    }

    /// Emits the collected requests by sector at the recorded submission times.
    fn sweep(&mut self, out: &mut Batch) {
        if self.window_events.is_empty() {
            return;
        }
        self.sweeps += 1;
        self.times_ns.clear();
        self.times_ns.extend(self.window_events.iter().map(|event| event.time_ns));
        self.window_events.sort_by_key(|event| (event.device, event.sector));
        for (event, time_ns) in self.window_events.drain(..).zip(&self.times_ns) {
            self.after.next(&event);
            self.observer.after(&event);
            self.names.before(&event, *time_ns, out);
            out.push(Event { time_ns: *time_ns, ..event });
        }
    }
}

/// Process names between input and output. A name is emitted before the first request of its
/// process.
#[derive(Debug, Default)]
struct PendingNames {
    pending: FxHashMap<u32, (Event, Vec<u8>)>,
    /// Processes whose requests were emitted.
    emitted: FxHashSet<u32>,
    last_ns: u64,
    /// Names that arrived after requests of their process.
    late: Vec<(Event, Vec<u8>)>,
}

impl PendingNames {
    fn take(&mut self, event: &Event, name: &[u8]) {
        if self.emitted.contains(&event.pid) {
            self.late.push((*event, name.to_vec()));
        } else {
            self.pending.insert(event.pid, (*event, name.to_vec()));
        }
    }

    /// Emits the names that must precede a request, which is emitted at `time_ns`.
    fn before(&mut self, request: &Event, time_ns: u64, out: &mut Batch) {
        self.last_ns = self.last_ns.max(time_ns);
        for (event, name) in self.late.drain(..) {
            out.push_with(Event { time_ns, ..event }, &name);
        }
        if self.emitted.insert(request.pid)
            && let Some((event, name)) = self.pending.remove(&request.pid)
        {
            out.push_with(Event { time_ns, ..event }, &name);
        }
    }

    /// Emits the remaining names after the last request.
    fn finish(&mut self, out: &mut Batch) {
        for (event, name) in self.late.drain(..) {
            out.push_with(Event { time_ns: self.last_ns, ..event }, &name);
        }
    }
}

/// Distances in one order, on each device separately.
#[derive(Debug)]
struct DistanceTracker {
    ends: FxHashMap<DeviceId, u64>,
    distances: Distances,
}

impl DistanceTracker {
    fn new() -> DistanceTracker {
        DistanceTracker { ends: FxHashMap::default(), distances: Distances::new(3) }
    }

    fn next(&mut self, event: &Event) {
        if let Some(end) = self.ends.insert(event.device, event.end_sector()) {
            self.distances.between(end, event.sector);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::test_support::SingleBatch;

    const MS: u64 = 1_000_000;

    fn reads(sectors: &[u64]) -> Batch {
        let mut batch = Batch::new();
        for (index, sector) in sectors.iter().enumerate() {
            let time_ns = index as u64 * MS;
            for (action, later_ns) in [(Action::Queue, 0), (Action::Issue, 10), (Action::Complete, 20)] {
                let event = Event::new(time_ns + later_ns, action);
                batch.push(Event { sector: *sector, bytes: 4096, op: Rwbs::READ, ..event });
            }
        }
        batch
    }

    fn reordered(window: Window, batch: &Batch) -> (Vec<(u64, u64)>, ReorderSummary) {
        let (mut reorder, mut out) = (SectorSorter::new(window, ()), Batch::new());
        reorder.take(batch, &mut out);
        let (summary, ()) = reorder.finish(&mut out);
        assert!(out.events().iter().all(|event| event.action == Action::Queue));
        (out.events().iter().map(|event| (event.time_ns / MS, event.sector)).collect(), summary)
    }

    #[test]
    fn a_window_of_all_requests_is_one_sweep_at_the_recorded_times() {
        let (order, summary) = reordered(Window::All, &reads(&[80, 16, 0, 8]));
        assert_eq!(order, [(0, 0), (1, 8), (2, 16), (3, 80)]);
        assert_eq!((summary.requests, summary.sweeps), (4, 1));
        // Before: 72 sectors back from 88 to 16, 24 back from 24 to 0, then 8 follows 0 + 8.
        // After: only 56 sectors from 24 to 80.
        assert_eq!((summary.before.distance_sectors.mean, summary.before.backward), (32.0, 2));
        assert_eq!((summary.after.distance_sectors.max, summary.after.sequential), (56, 2));
    }

    #[test]
    fn windows_of_requests_and_of_time_are_sorted_separately() {
        for window in [Window::Requests(2), Window::Time(2 * MS)] {
            let (order, summary) = reordered(window, &reads(&[80, 16, 8, 0, 24]));
            assert_eq!(order, [(0, 16), (1, 80), (2, 0), (3, 8), (4, 24)], "{window:?}");
            assert_eq!(summary.sweeps, 3, "{window:?}");
        }
    }

    #[test]
    fn a_source_returns_sorted_events_in_batches() {
        let sectors: Vec<u64> = (0..10_000).map(|index| (index * 7919 % 10_000) * 8).collect();
        let mut sorted = ReorderedSource::new(SingleBatch(Some(reads(&sectors))), Window::All, ());
        let (mut batch, mut found) = (Batch::new(), Vec::new());
        loop {
            sorted.next(&mut batch).unwrap();
            assert!(batch.len() <= EVENTS_A_BATCH);
            found.extend(batch.events().iter().map(|event| event.sector));
            if batch.is_empty() {
                break;
            }
        }
        assert_eq!(found, (0..10_000).map(|index| index * 8).collect::<Vec<u64>>());
        assert_eq!(sorted.into_summary().unwrap().0.after.sequential, 9_999);
    }

    #[test]
    fn names_precede_the_requests_of_their_processes_or_come_at_the_end() {
        let mut batch = Batch::new();
        let name = |pid, time_ns| Event { pid, ..Event::new(time_ns, Action::Process) };
        batch.push_with(name(7, 0), b"tar");
        batch.push_with(name(8, 0), b"idle");
        for (time_ns, pid) in [(1, 9), (2, 7)] {
            batch.push(Event { pid, sector: time_ns, bytes: 512, ..Event::new(time_ns, Action::Queue) });
        }
        // Some recorders write names when they end.
        batch.push_with(name(9, 0), b"late");
        let (mut reorder, mut out) = (SectorSorter::new(Window::Requests(1), ()), Batch::new());
        reorder.take(&batch, &mut out);
        reorder.finish(&mut out);
        let order: Vec<(u64, u32, &[u8])> =
            out.events().iter().map(|event| (event.time_ns, event.pid, out.payload(event))).collect();
        assert_eq!(order, [(1, 9, &b""[..]), (2, 9, b"late"), (2, 7, b"tar"), (2, 7, b"")]);
    }

    #[test]
    fn no_request_moves_across_a_flush() {
        let mut batch = Batch::new();
        for (index, (sector, bytes)) in [(80, 4096), (16, 4096), (0, 0), (8, 4096), (0, 4096)].into_iter().enumerate() {
            let op = if bytes == 0 { Rwbs::FLUSH } else { Rwbs::WRITE };
            batch.push(Event { sector, bytes, op, ..Event::new(index as u64 * MS, Action::Queue) });
        }
        let (order, summary) = reordered(Window::All, &batch);
        assert_eq!(order, [(0, 16), (1, 80), (2, 0), (3, 0), (4, 8)]);
        assert_eq!((summary.requests, summary.sweeps), (4, 2));
    }

    #[test]
    fn a_trace_without_submissions_is_sorted_by_issues() {
        let mut batch = Batch::new();
        for sector in [80, 0] {
            batch.push(Event { sector, bytes: 4096, op: Rwbs::READ, ..Event::new(sector, Action::Issue) });
        }
        let (order, _) = reordered(Window::All, &batch);
        assert_eq!(order.iter().map(|at| at.1).collect::<Vec<_>>(), [0, 80]);
    }
}
