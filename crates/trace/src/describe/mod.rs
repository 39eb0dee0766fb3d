//! Statistics of a trace: amounts by process, durations of the steps, queue depths, and the rules
//! by which processes submit.
//!
//! Events are processed as a stream. Memory grows with the number of processes (of which at most
//! [`PROCESSES_MAX`] are distinguished) and of outstanding requests, not with the trace. Counts
//! equal those of blkparse's summary, and the means of phases equal those of btt: D2C and Q2C count
//! every bio except flushes without data. Distances run from the end of a request to the start of
//! the next, as with btt's `--seek-absolute`. Unlike btt, Q2C of a write that the kernel carries
//! out as a flush sequence lasts until the end of the sequence.

mod counts;
mod distribution;
mod notes;
mod process;
mod requests;

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::batch::Batch;
use crate::event::{Action, DeviceId, Event};
use crate::queue_settings::QueueSettings;
use crate::request::{RequestRecord, RequestTracker};
use crate::source::{ReadError, Source};
use distribution::{DepthHistogram, Distribution};
use notes::MessageCounts;
use process::Processes;
use requests::{RequestStats, is_flush};

pub use counts::{Counts, Direction};
pub use distribution::{Depths, Figures};
pub use process::{
    Evidence, PROCESSES_MAX, ProcessFigures, REQUESTS_OF_RULE_MAX, REQUESTS_OF_RULE_MIN, Rule, RuleKind,
};
pub use requests::{Distances, Mix, Phases, RequestFigures, SeekFigures, SizeCount};

/// Version of the JSON form of [`Description`].
pub const SCHEMA: u32 = 1;

/// Computes a [`Description`] from a stream of events.
#[derive(Debug)]
pub struct Describer {
    tracker: RequestTracker,
    counters: Counters,
}

/// Statistics of a trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Description {
    /// Version of this document: [`SCHEMA`].
    pub schema: u32,
    /// Time of the first event, in ns of the recorder's clock.
    pub begin_ns: u64,
    /// Time from the first to the last event, in ns.
    pub duration_ns: u64,
    /// Events whose time is earlier than that of the preceding event.
    pub backward: Backward,
    /// Number of lines of a text that could not be read and are missing in all figures.
    pub lines_skipped: u64,
    /// Number of events by action.
    pub counts: Counts,
    /// Statistics of each device.
    pub devices: Vec<DeviceFigures>,
    /// Statistics of all requests.
    pub all: RequestFigures,
    /// Distances in the order in which the driver took requests.
    pub seeks_at_d: SeekFigures,
    /// Queue depths.
    pub depth: DepthFigures,
    /// Statistics of plugging.
    pub plug: PlugFigures,
    /// Number of failed requests by error number.
    pub errors: BTreeMap<u16, u64>,
    /// Number of elevator messages, by elevator and kind of message.
    pub notes: BTreeMap<String, BTreeMap<String, u64>>,
    /// Statistics of the processes, in descending order of bytes.
    pub processes: Vec<ProcessFigures>,
    /// Number of further processes, whose requests are combined in [`Description::others`].
    pub processes_left_out: u64,
    /// Statistics of the requests of further processes.
    pub others: Option<RequestFigures>,
}

/// Statistics of a trace with its name: the JSON document of `hoistway trace describe`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TraceDescription {
    /// Name of the trace.
    pub trace: String,
    /// Statistics of the trace.
    #[serde(flatten)]
    pub description: Description,
}

/// Error of selecting a process that has no requests.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no process {wanted} made requests; the trace has {}{}", .known.join(", "), more(*.further))]
pub struct UnknownProcess {
    /// Name or process id that was requested.
    pub wanted: String,
    /// Titles of processes of the trace, at most 10.
    pub known: Vec<String>,
    /// Number of further processes.
    pub further: usize,
}

/// Maximum number of processes in [`UnknownProcess::known`].
const KNOWN_MAX: usize = 10;

/// Extent to which event times run backwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Backward {
    /// Number of events that are earlier than their predecessor.
    pub events: u64,
    /// Largest difference in ns.
    pub ns_max: u64,
}

/// Statistics of a device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeviceFigures {
    /// Major and minor number, as in `8,0`.
    pub device: String,
    /// Number of completed requests.
    pub requests: u64,
    /// Number of bytes read.
    pub read_bytes: u64,
    /// Number of bytes written or discarded.
    pub write_bytes: u64,
    /// Scheduler and queue of the device, if the recorder stored them.
    pub settings: QueueSettings,
}

/// Distributions of queue depths. A bio that has not been merged counts as a request.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DepthFigures {
    /// Outstanding requests when a bio is submitted, without that bio.
    pub under_way_at_q: Depths,
    /// Requests in the device when a bio is submitted.
    pub in_device_at_q: Depths,
    /// Requests in the device when the driver takes one, including that request.
    pub in_device_at_d: Depths,
    /// Outstanding requests over time.
    pub under_way_over_time: Depths,
    /// Requests in the device over time.
    pub in_device_over_time: Depths,
    /// Fraction of the time with a request in the device, 0 to 1.
    pub busy_share: f64,
}

/// Statistics of plugging.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PlugFigures {
    /// Duration of plugs in ns.
    pub plugged_ns: Figures,
    /// Number of requests released by an unplug.
    pub requests_an_unplug: Figures,
    /// Fraction of bios that were merged, 0 to 1.
    pub merge_share: f64,
}

/// Reads a source to its end and returns its statistics.
///
/// # Errors
/// Returns the error of the source.
pub fn describe(source: &mut dyn Source) -> Result<Description, ReadError> {
    let (mut describer, mut batch) = (Describer::new(), Batch::new());
    loop {
        source.next(&mut batch)?;
        if batch.is_empty() {
            return Ok(Description { lines_skipped: source.skipped_lines(), ..describer.finish() });
        }
        describer.take(&batch);
    }
}

impl Description {
    /// Keeps only the processes with a name or process id.
    ///
    /// # Errors
    /// Fails if no process matches; the processes are unchanged then.
    pub fn select_process(&mut self, wanted: &str) -> Result<(), UnknownProcess> {
        let matches = |process: &ProcessFigures| {
            process.name == wanted || wanted.parse().is_ok_and(|pid: u32| pid == process.pid)
        };
        if !self.processes.iter().any(matches) {
            let known = self.processes.iter().take(KNOWN_MAX).map(ProcessFigures::title).collect();
            let further = self.processes.len().saturating_sub(KNOWN_MAX);
            return Err(UnknownProcess { wanted: wanted.to_owned(), known, further });
        }
        self.processes.retain(matches);
        Ok(())
    }

    /// Number of completed reads and writes; 0 for a trace that records only submissions.
    pub fn completions(&self) -> u64 {
        self.counts.reads.completed + self.counts.writes.completed
    }
}

fn more(further: usize) -> String {
    if further > 0 { format!(" and {further} more") } else { String::new() }
}

impl Default for Describer {
    fn default() -> Describer {
        Describer::new()
    }
}

impl Describer {
    /// Creates statistics without events.
    pub fn new() -> Describer {
        Describer { tracker: RequestTracker::new(), counters: Counters::new() }
    }

    /// Processes the events of a batch; batches must be in the order of the trace.
    pub fn take(&mut self, batch: &Batch) {
        for event in batch.events() {
            let payload = batch.payload(event);
            self.counters.before(event, payload, &self.tracker);
            self.tracker.event(event, payload);
            if matches!(event.action, Action::Complete | Action::Queue) {
                self.tracker.take_finished().for_each(|record| self.counters.record(&record));
            }
            self.counters.after(event, &self.tracker);
        }
    }

    /// Ends the trace and returns its statistics.
    pub fn finish(mut self) -> Description {
        self.tracker.take_finished().for_each(|record| self.counters.record(&record));
        self.tracker.into_outstanding().iter().for_each(|record| self.counters.record(record));
        self.counters.finish()
    }
}

/// Counters of a trace.
#[derive(Debug)]
struct Counters {
    first_ns: Option<u64>,
    last_ns: u64,
    end_ns: u64,
    backward: Backward,
    counts: Counts,
    devices: FxHashMap<DeviceId, Device>,
    all: RequestStats,
    seeks_at_d: Distances,
    depth: DepthLevels,
    plugs: FxHashMap<(DeviceId, u32), u64>,
    plugged: Distribution,
    unplugged: Distribution,
    errors: BTreeMap<u16, u64>,
    notes: MessageCounts,
    processes: Processes,
}

/// Counters of a device.
#[derive(Debug, Default)]
struct Device {
    requests: u64,
    read_bytes: u64,
    write_bytes: u64,
    settings: QueueSettings,
    last_queued_ns: Option<u64>,
    /// End sector of the last submission.
    end_at_q: Option<u64>,
    /// End sector of the last issue.
    end_at_d: Option<u64>,
}

#[derive(Debug, Default)]
struct DepthLevels {
    under_way_at_q: DepthHistogram,
    in_device_at_q: DepthHistogram,
    in_device_at_d: DepthHistogram,
    under_way_over_time: DepthHistogram,
    in_device_over_time: DepthHistogram,
}

/// Maximum number of open plugs, which bounds the memory if unplug events are lost.
const PLUGS_MAX: usize = 4096;

impl Counters {
    fn new() -> Counters {
        Counters {
            first_ns: None,
            last_ns: 0,
            end_ns: 0,
            backward: Backward::default(),
            counts: Counts::default(),
            devices: FxHashMap::default(),
            all: RequestStats::new(3),
            seeks_at_d: Distances::new(3),
            depth: DepthLevels::default(),
            plugs: FxHashMap::default(),
            plugged: Distribution::new(3),
            unplugged: Distribution::new(3),
            errors: BTreeMap::new(),
            notes: MessageCounts::default(),
            processes: Processes::default(),
        }
    }

    fn before(&mut self, event: &Event, payload: &[u8], tracker: &RequestTracker) {
        self.counts.take(event);
        if event.action.is_note() {
            // Process names and clocks can be much older than the trace.
            match event.action {
                Action::Process => return self.processes.name(event.pid, payload),
                Action::Message => self.message(event.device, payload),
                _ => return,
            }
        }
        self.clock(event.time_ns, tracker);
        match event.action {
            Action::Queue => self.queued(event, tracker),
            Action::Issue if event.bytes > 0 => {
                let device = self.devices.entry(event.device).or_default();
                if let Some(end) = device.end_at_d.replace(event.end_sector()) {
                    self.seeks_at_d.between(end, event.sector);
                }
            }
            Action::Plug if self.plugs.len() < PLUGS_MAX => {
                self.plugs.entry((event.device, event.pid)).or_insert(event.time_ns);
            }
            Action::Unplug | Action::UnplugTimer => {
                if let Some(since_ns) = self.plugs.remove(&(event.device, event.pid)) {
                    self.plugged.record(event.time_ns.saturating_sub(since_ns));
                }
                if let Some(requests) = payload.first_chunk() {
                    self.unplugged.record(u64::from_be_bytes(*requests));
                }
            }
            _ => {}
        }
    }

    fn message(&mut self, device: DeviceId, payload: &[u8]) {
        if payload.starts_with(b"hoistway ")
            && let Ok(text) = std::str::from_utf8(payload)
            && self.devices.entry(device).or_default().settings.apply_message(text)
        {
            return;
        }
        self.notes.take(payload);
    }

    fn after(&mut self, event: &Event, tracker: &RequestTracker) {
        if event.action == Action::Issue {
            self.depth.in_device_at_d.add(tracker.in_device(), 1);
        }
    }

    fn clock(&mut self, now_ns: u64, tracker: &RequestTracker) {
        if self.first_ns.is_none() {
            self.first_ns = Some(now_ns);
            self.last_ns = now_ns;
        }
        if now_ns < self.last_ns {
            self.backward.events += 1;
            self.backward.ns_max = self.backward.ns_max.max(self.last_ns - now_ns);
        }
        let passed_ns = now_ns.saturating_sub(self.end_ns.max(self.first_ns.unwrap_or(now_ns)));
        if passed_ns > 0 {
            self.depth.under_way_over_time.add(tracker.outstanding(), passed_ns);
            self.depth.in_device_over_time.add(tracker.in_device(), passed_ns);
        }
        self.last_ns = now_ns;
        self.end_ns = self.end_ns.max(now_ns);
    }

    fn queued(&mut self, event: &Event, tracker: &RequestTracker) {
        self.depth.under_way_at_q.add(tracker.outstanding(), 1);
        self.depth.in_device_at_q.add(tracker.in_device(), 1);
        let process = self.processes.of(event.pid);
        process.queued(event);
        if event.bytes == 0 {
            return;
        }
        let device = self.devices.entry(event.device).or_default();
        if let Some(last_ns) = device.last_queued_ns.replace(event.time_ns) {
            self.all.q2q.record(event.time_ns.saturating_sub(last_ns));
        }
        if let Some(end) = device.end_at_q.replace(event.end_sector()) {
            self.all.seeks.between(end, event.sector);
        }
    }

    fn record(&mut self, record: &RequestRecord) {
        self.all.request(record);
        (0..record.merged.len()).for_each(|index| self.all.merged(record, index));
        self.processes.record(record);
        if record.error != 0 {
            *self.errors.entry(record.error).or_default() += 1;
        }
        if record.completed_ns.is_some() && !is_flush(record) {
            let device = self.devices.entry(record.device).or_default();
            device.requests += 1;
            let reads = record.op.has(crate::event::Rwbs::READ);
            *(if reads { &mut device.read_bytes } else { &mut device.write_bytes }) += u64::from(record.bytes);
        }
    }

    fn finish(self) -> Description {
        let begin_ns = self.first_ns.unwrap_or(0);
        let all = RequestFigures { think_ns: self.processes.think(), ..self.all.figures() };
        let mut devices: Vec<(DeviceId, Device)> = self.devices.into_iter().collect();
        devices.sort_unstable_by_key(|(id, _)| *id);
        let figures = |(id, device): (DeviceId, Device)| DeviceFigures {
            device: id.to_string(),
            requests: device.requests,
            read_bytes: device.read_bytes,
            write_bytes: device.write_bytes,
            settings: device.settings,
        };
        let merge_share = if all.bios == 0 { 0.0 } else { all.merged as f64 / all.bios as f64 };
        let depth = self.depth.figures();
        let (processes, processes_left_out, others) = self.processes.finish();
        Description {
            schema: SCHEMA,
            begin_ns,
            duration_ns: self.end_ns.saturating_sub(begin_ns),
            backward: self.backward,
            lines_skipped: 0,
            counts: self.counts,
            devices: devices.into_iter().map(figures).collect(),
            all,
            seeks_at_d: self.seeks_at_d.figures(),
            depth,
            plug: PlugFigures {
                plugged_ns: self.plugged.figures(),
                requests_an_unplug: self.unplugged.figures(),
                merge_share,
            },
            errors: self.errors,
            notes: self.notes.counts(),
            processes,
            processes_left_out,
            others,
        }
    }
}

impl DepthLevels {
    fn figures(&self) -> DepthFigures {
        let total = self.in_device_over_time.total();
        let idle = self.in_device_over_time.idle_weight();
        DepthFigures {
            under_way_at_q: self.under_way_at_q.depths(),
            in_device_at_q: self.in_device_at_q.depths(),
            in_device_at_d: self.in_device_at_d.depths(),
            under_way_over_time: self.under_way_over_time.depths(),
            in_device_over_time: self.in_device_over_time.depths(),
            busy_share: if total == 0 { 0.0 } else { (total - idle) as f64 / total as f64 },
        }
    }
}
