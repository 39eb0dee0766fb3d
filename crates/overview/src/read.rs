//! Reads a whole trace into an overview, with an observer of its requests and spans.

use hoistway_trace::request::{RequestRecord, RequestTracker};
use hoistway_trace::{Batch, DeviceId, Notice, ReadError, Source};
use serde::Serialize;

use crate::{NoteSpan, Overview, Tables};

/// Receives the requests and spans of a trace while [`read`] reads it.
pub trait OverviewObserver {
    /// The error that ends the reading.
    type Error: From<ReadError>;

    /// Receives a request. Times of the page count from `start_ns`; `device` is the index of its
    /// device.
    ///
    /// # Errors
    /// An error ends the reading.
    fn request(&mut self, record: &RequestRecord, start_ns: u64, device: u32) -> Result<(), Self::Error>;

    /// Receives a span of an elevator message; `queue` is the index of its queue.
    ///
    /// # Errors
    /// An error ends the reading.
    fn span(&mut self, span: &NoteSpan, start_ns: u64, queue: u32) -> Result<(), Self::Error>;

    /// Returns true if the reading is to be cancelled; called once a batch.
    fn is_cancelled(&self) -> bool {
        false
    }
}

/// A trace reduced to tables, with its devices and notices.
#[derive(Debug)]
pub struct TraceOverview {
    /// The tables.
    pub tables: Tables,
    /// Devices in order of their first request; tables refer to them by index.
    pub devices: Vec<DeviceId>,
    /// Notices of the reader.
    pub notices: Vec<Notice>,
}

/// Totals of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TraceFacts {
    /// Number of events.
    pub events: u64,
    /// Number of requests.
    pub requests: u64,
    /// Number of requests without a completion.
    pub unfinished: u64,
    /// Time from the first event to the last, in ns.
    pub duration_ns: u64,
    /// Number of processes; 0 if the format does not record them.
    pub processes: usize,
    /// Number of processes with little activity, which tables combine.
    pub combined_processes: usize,
    /// Devices, as `MAJOR,MINOR`.
    pub devices: Vec<String>,
    /// Name of the elevator, if its messages are in the trace.
    pub elevator: Option<String>,
}

/// Reads a trace to its end in one pass. Returns `None` if the observer cancelled it.
///
/// # Errors
/// The errors of the source and of the observer.
pub fn read<O: OverviewObserver>(source: &mut dyn Source, observer: &mut O) -> Result<Option<TraceOverview>, O::Error> {
    let (mut overview, mut tracker, mut batch) = (Overview::new(), RequestTracker::new(), Batch::new());
    let (mut devices, mut notices) = (Vec::new(), Vec::new());
    loop {
        source.next(&mut batch)?;
        notices.extend(source.notices());
        if batch.is_empty() {
            break;
        }
        if observer.is_cancelled() {
            return Ok(None);
        }
        overview.add_events(&batch);
        tracker.take(&batch);
        for record in tracker.take_finished() {
            add_request(&record, &mut overview, &mut devices, observer)?;
        }
        add_spans(&mut overview, observer)?;
    }
    for record in tracker.into_outstanding() {
        add_request(&record, &mut overview, &mut devices, observer)?;
    }
    overview.finish();
    add_spans(&mut overview, observer)?;
    Ok(Some(TraceOverview { tables: overview.into_tables(), devices, notices }))
}

fn add_request<O: OverviewObserver>(
    record: &RequestRecord,
    overview: &mut Overview,
    devices: &mut Vec<DeviceId>,
    observer: &mut O,
) -> Result<(), O::Error> {
    overview.add_request(record);
    let index = devices.iter().position(|device| *device == record.device).unwrap_or_else(|| {
        devices.push(record.device);
        devices.len() - 1
    });
    observer.request(record, overview.start_ns(), index as u32)
}

fn add_spans<O: OverviewObserver>(overview: &mut Overview, observer: &mut O) -> Result<(), O::Error> {
    let start_ns = overview.start_ns();
    let spans: Vec<NoteSpan> = overview.spans().collect();
    spans.iter().try_for_each(|span| {
        let queue = overview.queue_index(span.device, span.queue);
        observer.span(span, start_ns, queue as u32)
    })
}

impl TraceOverview {
    /// Totals of the trace.
    pub fn facts(&self) -> TraceFacts {
        let tables = &self.tables;
        TraceFacts {
            events: tables.events,
            requests: tables.requests,
            unfinished: tables.unfinished,
            duration_ns: tables.end_ns,
            processes: tables.process_count(),
            combined_processes: tables.combined_processes,
            devices: self.devices.iter().map(DeviceId::to_string).collect(),
            elevator: tables.elevator.clone(),
        }
    }

    /// Index of a device in [`TraceOverview::devices`]; 0 for a device without requests.
    pub fn device_index(&self, device: DeviceId) -> u32 {
        self.devices.iter().position(|known| *known == device).unwrap_or(0) as u32
    }
}
