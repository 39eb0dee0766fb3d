//! Reading a trace for a replay: the plan of one of its devices, and the names of its processes.

use std::collections::BTreeMap;

use hoistway_trace::request::{RequestRecord, RequestTracker};
use hoistway_trace::{Action, Batch, DeviceId, ReadError, RecordCounts, Source};

use super::plan::{OmittedRequests, Placement, PlacementError, ReplayPlan, ReplayPlanBuilder, TraceLayer};

/// The requests of a trace that a replay executes.
#[derive(Clone, Copy, Debug)]
pub struct Selection {
    /// Layer from which requests are taken.
    pub level: TraceLayer,
    /// True if writes, discards and flushes are omitted.
    pub reads_only: bool,
    /// The device; `None` for that with the most requests.
    pub device: Option<DeviceId>,
}

/// The plan of one device of a trace.
#[derive(Debug)]
pub struct ReplayTrace {
    /// Name of the trace.
    pub name: String,
    /// The requests, with times and processes.
    pub plan: ReplayPlan,
    /// The device of the plan.
    pub device: DeviceId,
    /// The contents of the trace, all devices together.
    pub records: RecordCounts,
    /// Process names by process id.
    pub process_names: BTreeMap<u32, String>,
    /// Notices of the reader, and the choice of the device, as sentences.
    pub notes: Vec<String>,
}

/// Reasons why a trace cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayTraceError {
    /// The trace cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The named device is not in the trace.
    #[error("{trace}: the trace has no requests of device {device}")]
    NoDevice {
        /// Name of the trace.
        trace: String,
        /// The named device.
        device: DeviceId,
    },
    /// No request is left.
    #[error("{trace}: there is nothing to replay: the trace holds {records}; {left_out}")]
    Empty {
        /// Name of the trace.
        trace: String,
        /// The contents of the trace.
        records: RecordCounts,
        /// The requests that were left out, in words.
        left_out: String,
    },
    /// The target is too small.
    #[error("{target}: {unfit}")]
    Placement {
        /// Name of the target.
        target: String,
        /// The cause.
        unfit: PlacementError,
    },
}

impl ReplayTrace {
    /// Reads a trace and plans the selected requests.
    ///
    /// # Errors
    /// All errors of [`ReplayTraceError`] but [`Placement`](ReplayTraceError::Placement).
    pub fn read(source: &mut dyn Source, name: &str, selection: Selection) -> Result<ReplayTrace, ReplayTraceError> {
        let mut plans = DevicePlans { selection, by_device: BTreeMap::new() };
        let (mut tracker, mut batch, mut process_names) = (RequestTracker::new(), Batch::new(), BTreeMap::new());
        let mut records = RecordCounts::default();
        loop {
            source.next(&mut batch)?;
            if batch.is_empty() {
                break;
            }
            for event in batch.events().iter().filter(|event| event.action == Action::Process) {
                process_names.insert(event.pid, String::from_utf8_lossy(batch.payload(event)).into_owned());
            }
            batch.events().iter().for_each(|event| records.count(event));
            tracker.take(&batch);
            tracker.take_finished().for_each(|record| plans.add(&record));
        }
        tracker.into_outstanding().iter().for_each(|record| plans.add(record));
        let mut notes: Vec<String> = source.notices().iter().map(ToString::to_string).collect();
        let (device, plan) = plans.choose(name, &records, &mut notes)?;
        let trace = ReplayTrace { name: name.to_owned(), plan, device, records, process_names, notes };
        trace.require_requests().map(|()| trace)
    }

    /// Moves requests so that they fit a target of `size` bytes.
    ///
    /// # Errors
    /// [`ReplayTraceError::Placement`], and [`ReplayTraceError::Empty`] if no request is left for
    /// the target.
    pub fn fit(&mut self, fit: Placement, target: &str, size: u64) -> Result<(), ReplayTraceError> {
        let unfit = |unfit| ReplayTraceError::Placement { target: target.to_owned(), unfit };
        self.plan.fit(fit, size).map_err(unfit)?;
        self.require_requests()
    }

    fn require_requests(&self) -> Result<(), ReplayTraceError> {
        if self.plan.requests().is_empty() {
            let left_out = self.plan.left_out().to_string();
            return Err(ReplayTraceError::Empty { trace: self.name.clone(), records: self.records, left_out });
        }
        Ok(())
    }

    /// Name and id of a process.
    pub fn process_title(&self, pid: u32) -> String {
        self.process_names.get(&pid).map_or_else(|| format!("pid {pid}"), |name| format!("{name} ({pid})"))
    }
}

impl std::fmt::Display for OmittedRequests {
    /// Formats the omitted requests with their reasons: `left out: 3 commands without sectors`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts = [
            (self.changing, "writes, discards and flushes (--reads-only)"),
            (self.discards, "discards, which the target does not support"),
            (self.flushes, "flushes, which the target does not support"),
            (self.others, "commands without sectors"),
            (self.endings, "requests with only a completion"),
        ];
        let parts: Vec<String> =
            parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
        match parts.as_slice() {
            [] => f.write_str("no requests in it"),
            parts => write!(f, "left out: {}", parts.join("; ")),
        }
    }
}

/// Plans of all devices, because the device with the most requests is known only at the end.
struct DevicePlans {
    selection: Selection,
    by_device: BTreeMap<DeviceId, (ReplayPlanBuilder, u64)>,
}

impl DevicePlans {
    fn add(&mut self, record: &RequestRecord) {
        let Selection { level, reads_only, device } = self.selection;
        if device.is_some_and(|device| device != record.device) {
            return;
        }
        let plan = self.by_device.entry(record.device);
        let (plan, count) = plan.or_insert_with(|| (ReplayPlanBuilder::new(level, reads_only), 0));
        plan.take(record);
        *count += 1;
    }

    /// Returns the device with the most requests and its plan.
    fn choose(
        self,
        trace: &str,
        records: &RecordCounts,
        notes: &mut Vec<String>,
    ) -> Result<(DeviceId, ReplayPlan), ReplayTraceError> {
        let devices: Vec<String> =
            (self.by_device.iter()).map(|(device, (_, count))| format!("{device} ({count} requests)")).collect();
        let most = self.by_device.into_iter().max_by_key(|(_, (_, count))| *count);
        let Some((device, (plan, _))) = most else {
            let trace = trace.to_owned();
            return Err(match self.selection.device {
                Some(device) => ReplayTraceError::NoDevice { trace, device },
                None => {
                    let left_out = OmittedRequests::default().to_string();
                    ReplayTraceError::Empty { trace, records: *records, left_out }
                }
            });
        };
        if devices.len() > 1 {
            let devices = devices.join(", ");
            notes.push(format!("of the devices {devices}, {device} is replayed; --device chooses another"));
        }
        Ok((device, plan.finish()))
    }
}
