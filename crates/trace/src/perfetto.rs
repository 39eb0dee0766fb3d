//! Writes Chrome's JSON trace format, which `ui.perfetto.dev` and `chrome://tracing` open.
//!
//! | item | representation |
//! |---|---|
//! | a process | a process with as many threads as it had outstanding requests at once |
//! | a request | two slices: `Q2D read` until the driver took it and `D2C read` in the device, or `Q2C read` if the trace has no D. Sector, length, device and merged bios are arguments |
//! | a request without a completion | an instant `Q read` at its submission |
//! | waiting requests, requests in devices | the counter `requests` over all devices |
//! | messages of the elevator | instants, on one thread for each device |
//!
//! Times are us since the first event of the trace, with three decimals (the unit of the format is
//! us). The start time on the recorder's clock is in `otherData`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use hoistway_units::printable;
use serde_json::{Value, json};

use crate::batch::Batch;
use crate::event::{Action, DeviceId, Event, Rwbs};
use crate::request::{RequestRecord, RequestTracker};
use crate::writer::EventWriter;

/// Process id in the output for requests without a process id, above the largest of Linux
/// (4,194,304).
const NO_PROCESS: u32 = 1 << 30;
/// Process id in the output for messages of elevators.
const NOTES: u32 = NO_PROCESS + 1;
/// Process id in the output for the counter.
const DEPTH: u32 = NO_PROCESS + 2;

/// Writes a trace as Chrome's JSON.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    tracker: RequestTracker,
    /// For each process, the end of the last request on each of its threads, in ns.
    lanes: BTreeMap<u32, Vec<u64>>,
    /// Processes with requests that have no completion.
    endless: BTreeSet<u32>,
    note_lanes: BTreeSet<DeviceId>,
    start_ns: Option<u64>,
    depth: (usize, usize),
    is_begun: bool,
    /// True after the first element; later elements need a comma before them.
    has_elements: bool,
}

impl<W: Write> Writer<W> {
    /// Creates a writer to `out`.
    pub fn new(out: W) -> Writer<W> {
        Writer {
            out,
            tracker: RequestTracker::new(),
            lanes: BTreeMap::new(),
            endless: BTreeSet::new(),
            note_lanes: BTreeSet::new(),
            start_ns: None,
            depth: (0, 0),
            is_begun: false,
            has_elements: false,
        }
    }

    /// Returns the output.
    pub fn into_inner(self) -> W {
        self.out
    }

    fn begin(&mut self, start_ns: u64) -> io::Result<()> {
        if std::mem::replace(&mut self.is_begun, true) {
            return Ok(());
        }
        self.start_ns = Some(start_ns);
        let other = json!({ "writer": "hoistway", "start_ns": start_ns.to_string() });
        write!(self.out, "{{\"displayTimeUnit\":\"ns\",\"otherData\":{other},\"traceEvents\":[")?;
        self.meta(DEPTH, 0, "process_name", json!({ "name": "requests of all devices" }))?;
        self.meta(NO_PROCESS, 0, "process_name", json!({ "name": "requests of no known process" }))
    }

    fn event(&mut self, event: &Event, payload: &[u8]) -> io::Result<()> {
        match event.action {
            Action::Process => {
                let name = String::from_utf8_lossy(payload);
                return self.meta(page_pid(event.pid), 0, "process_name", json!({ "name": name }));
            }
            Action::Message => return self.note(event, payload),
            _ => {}
        }
        self.tracker.event(event, payload);
        let in_device = self.tracker.in_device();
        let depth = (self.tracker.outstanding().saturating_sub(in_device), in_device);
        if depth != self.depth {
            self.depth = depth;
            let counter = json!({
                "ph": "C", "name": "requests", "pid": DEPTH, "tid": 0, "ts": self.ts(event.time_ns),
                "args": { "waiting": depth.0, "in device": depth.1 },
            });
            self.element(&counter)?;
        }
        let over: Vec<RequestRecord> = self.tracker.take_finished().collect();
        over.iter().try_for_each(|record| self.record(record))
    }

    /// Writes the slices of a request.
    fn record(&mut self, record: &RequestRecord) -> io::Result<()> {
        let Some(start_ns) = record.first_seen_ns() else { return Ok(()) };
        let Some(completed_ns) = record.completed_ns else { return self.endless(record, start_ns) };
        let pid = page_pid(record.pid);
        let lane = self.lane(pid, start_ns, completed_ns)?;
        let kind = kind(record.op);
        let args = arguments(record);
        let slice = |name: String, from: Value, dur: Value| json!({ "ph": "X", "cat": "request", "name": name, "pid": pid, "tid": lane, "ts": from, "dur": dur, "args": args });
        match record.issued_ns {
            Some(issued_ns) => {
                if start_ns < issued_ns {
                    let from = if record.queued_ns.is_some() { "Q2D" } else { "waits" };
                    self.element(&slice(format!("{from} {kind}"), self.ts(start_ns), us(issued_ns - start_ns)))?;
                }
                let dur = us(completed_ns.saturating_sub(issued_ns));
                self.element(&slice(format!("D2C {kind}"), self.ts(issued_ns), dur))
            }
            None => self.element(&slice(
                format!("Q2C {kind}"),
                self.ts(start_ns),
                us(completed_ns.saturating_sub(start_ns)),
            )),
        }
    }

    /// Writes a request without a completion.
    fn endless(&mut self, record: &RequestRecord, start_ns: u64) -> io::Result<()> {
        let pid = page_pid(record.pid);
        if self.endless.insert(pid) {
            self.meta(pid, 0, "thread_name", json!({ "name": "requests without an end" }))?;
        }
        let name = format!("Q {}", kind(record.op));
        let args = arguments(record);
        self.element(&json!({
            "ph": "i", "s": "t", "cat": "request", "name": name, "pid": pid, "tid": 0, "ts": self.ts(start_ns), "args": args,
        }))
    }

    /// Returns the first thread of a process that is free at `start_ns`. Requests come in order of
    /// completion, so that the last end of each thread is sufficient.
    fn lane(&mut self, pid: u32, start_ns: u64, completed_ns: u64) -> io::Result<usize> {
        let lanes = self.lanes.entry(pid).or_default();
        if let Some(lane) = lanes.iter().position(|over_ns| *over_ns <= start_ns) {
            if let Some(over_ns) = lanes.get_mut(lane) {
                *over_ns = completed_ns;
            }
            return Ok(lane + 1);
        }
        lanes.push(completed_ns);
        let lane = lanes.len();
        self.meta(pid, lane, "thread_name", json!({ "name": format!("request {lane}") }))?;
        self.meta(pid, lane, "thread_sort_index", json!({ "sort_index": lane }))?;
        Ok(lane)
    }

    fn note(&mut self, event: &Event, text: &[u8]) -> io::Result<()> {
        let lane = event.device.0;
        if self.note_lanes.insert(event.device) {
            self.meta(NOTES, 0, "process_name", json!({ "name": "the elevator's notes" }))?;
            self.meta(NOTES, lane as usize, "thread_name", json!({ "name": format!("device {}", event.device) }))?;
        }
        let instant = json!({
            "ph": "i", "s": "t", "cat": "note", "name": String::from_utf8_lossy(text), "pid": NOTES, "tid": lane, "ts": self.ts(event.time_ns),
        });
        self.element(&instant)
    }

    fn meta(&mut self, pid: u32, tid: usize, name: &str, args: Value) -> io::Result<()> {
        self.element(&json!({ "ph": "M", "name": name, "pid": pid, "tid": tid, "args": args }))
    }

    fn element(&mut self, element: &Value) -> io::Result<()> {
        let comma = if std::mem::replace(&mut self.has_elements, true) { ",\n" } else { "\n" };
        self.out.write_all(comma.as_bytes())?;
        let text = serde_json::to_string(element)?;
        self.out.write_all(printable::json(&text).as_bytes())
    }

    fn ts(&self, time_ns: u64) -> Value {
        us(time_ns.saturating_sub(self.start_ns.unwrap_or(0)))
    }
}

impl<W: Write> EventWriter for Writer<W> {
    fn write(&mut self, batch: &Batch) -> io::Result<()> {
        // Process names may be older than the trace, or have no time.
        let Some(first_ns) = batch.start_ns().or(batch.events().first().map(|event| event.time_ns)) else {
            return Ok(());
        };
        self.begin(first_ns)?;
        batch.events().iter().try_for_each(|event| self.event(event, batch.payload(event)))
    }

    fn finish(&mut self) -> io::Result<()> {
        self.begin(0)?;
        for record in std::mem::take(&mut self.tracker).into_outstanding() {
            self.record(&record)?;
        }
        self.out.write_all(b"\n]}\n")?;
        self.out.flush()
    }
}

fn arguments(record: &RequestRecord) -> Value {
    json!({
        "sector": record.sector, "bytes": record.bytes, "device": record.device.to_string(), "rwbs": format!("{:?}", record.op),
        "merged_bios": record.merged.len(), "error": record.error,
    })
}

/// Converts ns to us, exact to the ns up to 104 days (2^53 ns).
fn us(ns: u64) -> Value {
    json!(ns as f64 / 1000.0)
}

const fn page_pid(pid: u32) -> u32 {
    if pid == 0 { NO_PROCESS } else { pid }
}

/// Returns the name of the operation of a request.
fn kind(op: Rwbs) -> &'static str {
    match op {
        op if op.has(Rwbs::DISCARD) => "discard",
        op if op.has(Rwbs::READ) => "read",
        op if op.has(Rwbs::FLUSH) => "flush",
        op if op.has(Rwbs::WRITE) => "write",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes requests given as process, submission, issue and completion, in us.
    fn written(requests: &[(u32, u64, Option<u64>, u64)]) -> Vec<Value> {
        let mut events = Vec::new();
        for (sector, &(pid, queued_us, issued_us, completed_us)) in (0..).zip(requests) {
            let event = Event {
                sector: sector * 8,
                bytes: 4096,
                pid,
                op: Rwbs::READ,
                ..Event::new(queued_us * 1000, Action::Queue)
            };
            events.push(event);
            events.extend(issued_us.map(|us| Event { time_ns: us * 1000, action: Action::Issue, ..event }));
            events.push(Event { time_ns: completed_us * 1000, action: Action::Complete, ..event });
        }
        events.sort_by_key(|event| event.time_ns);
        let mut batch = Batch::new();
        batch.push_with(Event { pid: 7, ..Event::new(0, Action::Process) }, b"a \"name\"");
        events.into_iter().for_each(|event| batch.push(event));
        batch.push_with(Event { pid: 7, ..Event::new(9_000_000, Action::Message) }, b"bfq7S expire");
        let mut writer = Writer::new(Vec::new());
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
        let page: Value = serde_json::from_slice(&writer.into_inner()).unwrap();
        page["traceEvents"].as_array().unwrap().clone()
    }

    fn slices(elements: &[Value]) -> Vec<(String, u64, f64, f64)> {
        let slices = elements.iter().filter(|element| element["ph"] == "X");
        let slice = |element: &Value| {
            (
                element["name"].as_str().unwrap().to_owned(),
                element["tid"].as_u64().unwrap(),
                element["ts"].as_f64().unwrap(),
                element["dur"].as_f64().unwrap(),
            )
        };
        slices.map(slice).collect()
    }

    #[test]
    fn a_request_is_two_slices_of_a_thread_and_threads_are_reused() {
        let elements = written(&[
            (7, 1000, Some(1100), 1500),
            (7, 1200, Some(1300), 1400),
            (7, 1500, Some(1600), 1700),
            (7, 1800, None, 1900),
        ]);
        let expected = [
            ("Q2D read", 1, 200.0, 100.0),
            ("D2C read", 1, 300.0, 100.0),
            ("Q2D read", 2, 0.0, 100.0),
            ("D2C read", 2, 100.0, 400.0),
            ("Q2D read", 1, 500.0, 100.0),
            ("D2C read", 1, 600.0, 100.0),
            ("Q2C read", 1, 800.0, 100.0),
        ];
        let slices = slices(&elements);
        let seen: Vec<_> = slices.iter().map(|(name, lane, from, dur)| (name.as_str(), *lane, *from, *dur)).collect();
        assert_eq!(seen, expected);
    }

    #[test]
    fn processes_have_names_and_the_depth_ends_at_0() {
        let elements = written(&[(7, 1000, Some(1100), 1500), (0, 1200, Some(1300), 1400)]);
        let has = |name: &str| {
            elements.iter().any(|element| element["name"] == "process_name" && element["args"]["name"] == name)
        };
        assert!(has("a \"name\"") && has("the elevator's notes") && has("requests of no known process"));
        let counters: Vec<_> =
            elements.iter().filter(|element| element["ph"] == "C").map(|element| element["args"].clone()).collect();
        assert_eq!(counters.len(), 6);
        assert_eq!(counters[3], json!({ "waiting": 0, "in device": 2 }));
        assert_eq!(counters[5], json!({ "waiting": 0, "in device": 0 }));
        assert!(elements.iter().any(|element| element["ph"] == "i" && element["name"] == "bfq7S expire"));
    }

    #[test]
    fn times_count_from_the_first_request_and_unfinished_requests_are_instants() {
        let event = Event { sector: 8, bytes: 4096, pid: 7, op: Rwbs::WRITE, ..Event::new(5_000_000, Action::Queue) };
        let mut batch = Batch::new();
        // Recorders write names whenever they learn them.
        batch.push_with(Event { pid: 7, ..Event::new(0, Action::Process) }, b"fio");
        batch.push(event);
        batch.push(Event { time_ns: 5_002_000, sector: 800, ..event });
        let mut writer = Writer::new(Vec::new());
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
        let page: Value = serde_json::from_slice(&writer.into_inner()).unwrap();
        assert_eq!(page["otherData"]["start_ns"], "5000000");
        let elements = page["traceEvents"].as_array().unwrap();
        let instants: Vec<(f64, u64)> = elements
            .iter()
            .filter(|element| element["name"] == "Q write")
            .map(|element| (element["ts"].as_f64().unwrap(), element["args"]["sector"].as_u64().unwrap()))
            .collect();
        assert_eq!(instants, [(0.0, 8), (2.0, 800)]);
    }
}
