//! Requests of a trace in the order of their sectors: what a program would have asked for that knows where its data lie.
//!
//! A [`Reorder`] takes the requests of a window, sorts them by sector, and hands them out at the times at which requests came before: the first of the new order
//! at the first time, and so on. So each window is one sweep of the head. What is handed out are submissions only (Q): when the requests of the new order were
//! merged, issued and over is nothing that the trace could tell. Nothing is moved over a flush.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::batch::{Batch, EVENTS_A_BATCH};
use crate::describe::{Distances, SeekFigures};
use crate::event::{Action, DeviceId, Event, Rwbs};
use crate::source::{Notice, ReadError, Source};

/// How many requests are sorted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// All, which are kept in memory: 64 bytes each.
    All,
    /// So many, at least 1.
    Requests(usize),
    /// Those that came within so many ns.
    Time(u64),
}

/// Looks at requests in both orders as they go by.
pub trait Watch {
    /// The next one in the order of the trace.
    fn before(&mut self, request: &Event);

    /// The next one in the new order.
    fn after(&mut self, request: &Event);
}

/// Nobody looks.
impl Watch for () {
    fn before(&mut self, _: &Event) {}

    fn after(&mut self, _: &Event) {}
}

/// A trace whose requests are sorted as it is read.
#[derive(Debug)]
pub struct Sorted<S, W = ()> {
    source: S,
    read: Batch,
    reorder: Option<Reorder<W>>,
    /// What is sorted and not handed out yet, from this place on.
    ready: Batch,
    place: usize,
    told: Option<(Reordered, W)>,
}

/// Sorts requests as their events come.
#[derive(Debug)]
pub struct Reorder<W = ()> {
    window: Window,
    /// What stands for a request: Q, or where the trace has none D or C; found out from the first batch with any.
    stands: Option<Action>,
    held: Vec<Event>,
    times_ns: Vec<u64>,
    names: Names,
    requests: u64,
    sweeps: u64,
    before: Order,
    after: Order,
    watch: W,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reordered {
    /// Requests, without flushes.
    pub requests: u64,
    /// Windows that were sorted.
    pub sweeps: u64,
    /// Distances in the order of the trace.
    pub before: SeekFigures,
    /// In the new one.
    pub after: SeekFigures,
}

impl<S: Source, W: Watch> Sorted<S, W> {
    /// Sorts the requests of a source by sector within a window.
    pub fn new(source: S, window: Window, watch: W) -> Sorted<S, W> {
        Sorted {
            source,
            read: Batch::new(),
            reorder: Some(Reorder::new(window, watch)),
            ready: Batch::new(),
            place: 0,
            told: None,
        }
    }

    /// What came of it, once the source is read to its end.
    pub fn told(self) -> Option<(Reordered, W)> {
        self.told
    }

    /// Makes more ready; whether there is any.
    fn make_ready(&mut self) -> Result<bool, ReadError> {
        self.ready.clear();
        self.place = 0;
        while let Some(mut reorder) = self.reorder.take() {
            self.source.next(&mut self.read)?;
            if self.read.is_empty() {
                self.told = Some(reorder.finish(&mut self.ready));
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

impl<S: Source, W: Watch> Source for Sorted<S, W> {
    fn next(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        batch.clear();
        if self.place < self.ready.len() || self.make_ready()? {
            let end = self.ready.len().min(self.place + EVENTS_A_BATCH);
            for event in &self.ready.events()[self.place..end] {
                batch.push_from(event, &self.ready);
            }
            self.place = end;
        }
        Ok(())
    }

    fn notices(&mut self) -> Vec<Notice> {
        self.source.notices()
    }
}

impl<W: Watch> Reorder<W> {
    /// Sorts by sector within a window.
    pub fn new(window: Window, watch: W) -> Reorder<W> {
        Reorder {
            window,
            stands: None,
            held: Vec::new(),
            times_ns: Vec::new(),
            names: Names::default(),
            requests: 0,
            sweeps: 0,
            before: Order::new(),
            after: Order::new(),
            watch,
        }
    }

    /// Takes in events, in the order of time, and adds to `out` what is sorted by now, with the names of its processes.
    pub fn take(&mut self, batch: &Batch, out: &mut Batch) {
        if self.stands.is_none() {
            let has = |action: &Action| batch.events().iter().any(|event| event.action == *action);
            self.stands = [Action::Queue, Action::Issue, Action::Complete].into_iter().find(has);
        }
        for event in batch.events() {
            if event.action == Action::Process {
                self.names.take(event, batch.payload(event));
            } else if Some(event.action) == self.stands {
                self.request(event, out);
            }
        }
    }

    /// The trace is over: adds what is still held.
    pub fn finish(mut self, out: &mut Batch) -> (Reordered, W) {
        self.sweep(out);
        self.names.finish(out);
        let told = Reordered {
            requests: self.requests,
            sweeps: self.sweeps,
            before: self.before.distances.figures(),
            after: self.after.distances.figures(),
        };
        (told, self.watch)
    }

    fn request(&mut self, event: &Event, out: &mut Batch) {
        let event = Event { action: Action::Queue, error: 0, ..*event };
        if event.bytes == 0 || event.op.has(Rwbs::FLUSH) {
            self.sweep(out);
            if event.bytes == 0 {
                self.watch.before(&event);
                self.watch.after(&event);
                self.names.before(&event, event.time_ns, out);
                out.push(event);
                return;
            }
        }
        let is_full = match self.window {
            Window::All => false,
            Window::Requests(most) => self.held.len() >= most,
            Window::Time(ns) => {
                self.held.first().is_some_and(|first| event.time_ns.saturating_sub(first.time_ns) >= ns)
            }
        };
        if is_full {
            self.sweep(out);
        }
        self.requests += 1;
        self.before.next(&event);
        self.watch.before(&event);
        self.held.push(event);
    }

    /// Hands out what is held, by sector, at the times at which it came.
    fn sweep(&mut self, out: &mut Batch) {
        if self.held.is_empty() {
            return;
        }
        self.sweeps += 1;
        self.times_ns.clear();
        self.times_ns.extend(self.held.iter().map(|event| event.time_ns));
        self.held.sort_by_key(|event| (event.device, event.sector));
        for (event, time_ns) in self.held.drain(..).zip(&self.times_ns) {
            self.after.next(&event);
            self.watch.after(&event);
            self.names.before(&event, *time_ns, out);
            out.push(Event { time_ns: *time_ns, ..event });
        }
    }
}

/// Names of processes on their way: each stands before the first request of its process.
#[derive(Debug, Default)]
struct Names {
    untold: FxHashMap<u32, (Event, Vec<u8>)>,
    /// The processes whose requests were handed out, and when the last one was.
    gone: FxHashSet<u32>,
    last_ns: u64,
    /// Names that came behind the requests of their process.
    late: Vec<(Event, Vec<u8>)>,
}

impl Names {
    fn take(&mut self, event: &Event, name: &[u8]) {
        if self.gone.contains(&event.pid) {
            self.late.push((*event, name.to_vec()));
        } else {
            self.untold.insert(event.pid, (*event, name.to_vec()));
        }
    }

    /// A request is handed out at this time.
    fn before(&mut self, request: &Event, time_ns: u64, out: &mut Batch) {
        self.last_ns = self.last_ns.max(time_ns);
        for (event, name) in self.late.drain(..) {
            out.push_with(Event { time_ns, ..event }, &name);
        }
        if self.gone.insert(request.pid)
            && let Some((event, name)) = self.untold.remove(&request.pid)
        {
            out.push_with(Event { time_ns, ..event }, &name);
        }
    }

    /// No request comes any more.
    fn finish(&mut self, out: &mut Batch) {
        for (event, name) in self.late.drain(..) {
            out.push_with(Event { time_ns: self.last_ns, ..event }, &name);
        }
    }
}

/// Distances in an order, on each device for itself.
#[derive(Debug)]
struct Order {
    ends: FxHashMap<DeviceId, u64>,
    distances: Distances,
}

impl Order {
    fn new() -> Order {
        Order { ends: FxHashMap::default(), distances: Distances::new(3) }
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

    fn reordered(window: Window, batch: &Batch) -> (Vec<(u64, u64)>, Reordered) {
        let (mut reorder, mut out) = (Reorder::new(window, ()), Batch::new());
        reorder.take(batch, &mut out);
        let (told, ()) = reorder.finish(&mut out);
        assert!(out.events().iter().all(|event| event.action == Action::Queue));
        (out.events().iter().map(|event| (event.time_ns / MS, event.sector)).collect(), told)
    }

    #[test]
    fn all_requests_are_one_sweep_at_the_times_of_before() {
        let (order, told) = reordered(Window::All, &reads(&[80, 16, 0, 8]));
        assert_eq!(order, [(0, 0), (1, 8), (2, 16), (3, 80)]);
        assert_eq!((told.requests, told.sweeps), (4, 1));
        // Before: from 88 back to 16 are 72, from 24 back to 0 are 24, then 8 is where 0 + 8 ends. After: only from 24 to 80, 56.
        assert_eq!((told.before.distance_sectors.mean, told.before.backward), (32.0, 2));
        assert_eq!((told.after.distance_sectors.max, told.after.sequential), (56, 2));
    }

    #[test]
    fn windows_of_requests_and_of_time_are_sorted_each_by_itself() {
        for window in [Window::Requests(2), Window::Time(2 * MS)] {
            let (order, told) = reordered(window, &reads(&[80, 16, 8, 0, 24]));
            assert_eq!(order, [(0, 16), (1, 80), (2, 0), (3, 8), (4, 24)], "{window:?}");
            assert_eq!(told.sweeps, 3, "{window:?}");
        }
    }

    #[test]
    fn a_source_hands_out_what_is_sorted_in_batches() {
        struct Once(Option<Batch>);
        impl Source for Once {
            fn next(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
                *batch = self.0.take().unwrap_or_default();
                Ok(())
            }

            fn notices(&mut self) -> Vec<Notice> {
                Vec::new()
            }
        }
        let sectors: Vec<u64> = (0..10_000).map(|index| (index * 7919 % 10_000) * 8).collect();
        let mut sorted = Sorted::new(Once(Some(reads(&sectors))), Window::All, ());
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
        assert_eq!(sorted.told().unwrap().0.after.sequential, 9_999);
    }

    #[test]
    fn names_stand_before_the_requests_of_their_processes_or_at_the_end() {
        let mut batch = Batch::new();
        let name = |pid, time_ns| Event { pid, ..Event::new(time_ns, Action::Process) };
        batch.push_with(name(7, 0), b"tar");
        batch.push_with(name(8, 0), b"idle");
        for (time_ns, pid) in [(1, 9), (2, 7)] {
            batch.push(Event { pid, sector: time_ns, bytes: 512, ..Event::new(time_ns, Action::Queue) });
        }
        // As a recorder tells it that learns of names when it ends.
        batch.push_with(name(9, 0), b"late");
        let (mut reorder, mut out) = (Reorder::new(Window::Requests(1), ()), Batch::new());
        reorder.take(&batch, &mut out);
        reorder.finish(&mut out);
        let order: Vec<(u64, u32, &[u8])> =
            out.events().iter().map(|event| (event.time_ns, event.pid, out.payload(event))).collect();
        assert_eq!(order, [(1, 9, &b""[..]), (2, 9, b"late"), (2, 7, b"tar"), (2, 7, b"")]);
    }

    #[test]
    fn nothing_is_moved_over_a_flush() {
        let mut batch = Batch::new();
        for (index, (sector, bytes)) in [(80, 4096), (16, 4096), (0, 0), (8, 4096), (0, 4096)].into_iter().enumerate() {
            let op = if bytes == 0 { Rwbs::FLUSH } else { Rwbs::WRITE };
            batch.push(Event { sector, bytes, op, ..Event::new(index as u64 * MS, Action::Queue) });
        }
        let (order, told) = reordered(Window::All, &batch);
        assert_eq!(order, [(0, 16), (1, 80), (2, 0), (3, 0), (4, 8)]);
        assert_eq!((told.requests, told.sweeps), (4, 2));
    }

    #[test]
    fn a_trace_without_submissions_is_sorted_by_what_was_issued() {
        let mut batch = Batch::new();
        for sector in [80, 0] {
            batch.push(Event { sector, bytes: 4096, op: Rwbs::READ, ..Event::new(sector, Action::Issue) });
        }
        let (order, _) = reordered(Window::All, &batch);
        assert_eq!(order.iter().map(|at| at.1).collect::<Vec<_>>(), [0, 80]);
    }
}
