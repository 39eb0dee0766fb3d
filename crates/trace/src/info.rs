//! Format and contents of a trace: the document of `hoistway trace info`.

use serde::Serialize;

use crate::batch::Batch;
use crate::describe::{Counts, Describer, Description};
use crate::open::Detection;
use crate::request::{RequestTracker, StepCounts};
use crate::source::{ReadError, Source};

/// Format and contents of a trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TraceInfo {
    /// Version of this document: 1.
    pub schema: u32,
    /// Name of the trace.
    pub trace: String,
    /// The formats of the inputs.
    pub inputs: Vec<InputFormat>,
    /// Time from the first to the last event, in ns.
    pub duration_ns: u64,
    /// Devices, as in `8,0`.
    pub devices: Vec<String>,
    /// Number of processes; 0 if the format has none.
    pub processes: u64,
    /// Largest number of requests in flight; None without completions.
    pub queue_depth_max: Option<u64>,
    /// Number of requests by their steps.
    pub requests: StepCounts,
    /// Number of lines of a text that could not be read and are missing in all figures.
    pub lines_skipped: u64,
    /// Number of events by action.
    pub counts: Counts,
}

/// The format of an input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InputFormat {
    /// Name of the input.
    pub file: String,
    /// Name of the format.
    pub format: &'static str,
    /// Description of the format.
    #[serde(skip)]
    pub title: &'static str,
    /// Tool of the compression that was removed.
    pub compression: Option<&'static str>,
    /// The evidence for the format, in words.
    pub detected_from: String,
}

impl TraceInfo {
    /// Reads a trace to its end. `detections` are the formats of its inputs.
    ///
    /// # Errors
    /// Returns the error of the source.
    pub fn read(source: &mut dyn Source, trace: &str, detections: &[Detection]) -> Result<TraceInfo, ReadError> {
        let (mut describer, mut tracker, mut batch) = (Describer::new(), RequestTracker::new(), Batch::new());
        let mut requests = StepCounts::default();
        loop {
            source.next(&mut batch)?;
            if batch.is_empty() {
                break;
            }
            describer.take(&batch);
            tracker.take(&batch);
            tracker.take_finished().for_each(|request| requests.add(&request));
        }
        tracker.into_outstanding().iter().for_each(|request| requests.add(request));
        let description = describer.finish();
        let input = |detection: &Detection| InputFormat {
            file: detection.file.clone(),
            format: detection.format.name(),
            title: detection.format.title(),
            compression: detection.compression,
            detected_from: detection.reason.clone(),
        };
        Ok(TraceInfo {
            schema: 1,
            trace: trace.to_owned(),
            inputs: detections.iter().map(input).collect(),
            duration_ns: description.duration_ns,
            devices: description.devices.iter().map(|device| device.device.clone()).collect(),
            processes: processes(&description),
            queue_depth_max: (description.completions() > 0).then_some(description.depth.under_way_over_time.max),
            requests,
            lines_skipped: source.skipped_lines(),
            counts: description.counts,
        })
    }
}

impl TraceInfo {
    /// Names, numbers and remarks for a table.
    pub fn rows(&self) -> Vec<(&'static str, String, &'static str)> {
        let (reads, writes, steps) = (&self.counts.reads, &self.counts.writes, &self.requests);
        let depth = self.queue_depth_max.map_or("unknown".to_owned(), |most| most.to_string());
        let number = |name, count: u64, remark| (name, count.to_string(), remark);
        let mut rows = vec![
            number("events", self.counts.events, ""),
            number("submissions (Q)", reads.queued + writes.queued, "without them, an issue is the first step"),
            number("merges (M, F)", reads.merged + writes.merged, ""),
            number("insertions (I)", reads.inserted + writes.inserted, "the time in the elevator needs them"),
            number("issues (D)", reads.issued + writes.issued, "the time in the drive needs them"),
            number("completions (C)", reads.completed + writes.completed, "latencies and depths need them"),
            number("messages and names", self.counts.notes, "slices of the elevator, names of processes"),
            number("requests", steps.requests, ""),
            number("  with a latency", steps.with_latency, "a completion and an earlier step"),
            number("  with a service time", steps.with_service_time, "both D and C: `whatif --drive fit` needs 400"),
            ("queue depth, most", depth, ""),
            number("processes", self.processes, "0 if the format has none"),
            number("devices", self.devices.len() as u64, ""),
            (
                "seconds",
                hoistway_units::figures::figure(self.duration_ns as f64 / 1e9),
                "from the first event to the last",
            ),
        ];
        if self.lines_skipped > 0 {
            rows.push(number(
                "lines skipped",
                self.lines_skipped,
                "they cannot be read and are missing in all figures",
            ));
        }
        rows
    }
}

/// Number of processes, if the format has them.
fn processes(description: &Description) -> u64 {
    let known = description.processes.iter().filter(|process| process.pid > 0 || !process.name.is_empty()).count();
    known as u64 + description.processes_left_out
}
