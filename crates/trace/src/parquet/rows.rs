//! Collects the rows of a row group.

use hoistway_columnar::{ByteArray, Cells, Values};
use rustc_hash::FxHashMap;

use crate::csv;
use crate::event::{Action, DeviceId, Event, Rwbs};
use crate::process_names::ProcessNames;
use crate::request::{RequestRecord, RequestTracker};

/// Maximum number of names whose bytes are kept for reuse.
const TEXTS_MAX: usize = 1 << 16;

/// Rows of a row group, one vector for each column, and what the derived columns are computed from.
#[derive(Default)]
pub(super) struct Rows {
    time_ns: Vec<i64>,
    action: Vec<ByteArray>,
    device: Vec<ByteArray>,
    cpu: Vec<i32>,
    pid: Vec<i32>,
    sequence: Vec<i32>,
    rwbs: Vec<ByteArray>,
    sector: Vec<i64>,
    bytes: Vec<i32>,
    error: Vec<i32>,
    cgroup: Vec<i64>,
    payload: Nullable<ByteArray>,
    process: Nullable<ByteArray>,
    outstanding: Vec<i32>,
    in_device: Vec<i32>,
    request_pid: Nullable<i32>,
    bios: Nullable<i32>,
    q2c_ns: Nullable<i64>,
    d2c_ns: Nullable<i64>,
    tracker: RequestTracker,
    names: ProcessNames,
    texts: Texts,
}

/// Values of a nullable column.
struct Nullable<T> {
    values: Vec<T>,
    present: Vec<i16>,
}

/// Texts that repeat: their bytes are shared by all rows.
#[derive(Default)]
struct Texts {
    actions: [Option<ByteArray>; Action::ALL.len()],
    devices: FxHashMap<DeviceId, ByteArray>,
    operations: FxHashMap<Rwbs, ByteArray>,
    names: FxHashMap<u32, (Box<[u8]>, ByteArray)>,
}

/// The last completion of a request.
struct Finished {
    pid: u32,
    bios: usize,
    q2c_ns: Option<u64>,
    d2c_ns: Option<u64>,
}

impl Rows {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.time_ns.len()
    }

    /// Adds an event.
    pub fn push(&mut self, event: &Event, payload: &[u8]) {
        if event.action == Action::Process {
            self.names.set(event.pid, payload);
        }
        self.tracker.event(event, payload);
        let finished = Finished::of(self.tracker.take_finished(), event.action);
        self.time_ns.push(event.time_ns as i64);
        self.action.push(self.texts.action(event.action));
        self.device.push(self.texts.device(event.device));
        self.cpu.push(event.cpu as i32);
        self.pid.push(event.pid as i32);
        self.sequence.push(event.sequence as i32);
        self.rwbs.push(self.texts.operation(event.op));
        self.sector.push(event.sector as i64);
        self.bytes.push(event.bytes as i32);
        self.error.push(i32::from(event.error));
        self.cgroup.push(event.cgroup as i64);
        self.payload.push((!payload.is_empty()).then(|| ByteArray::from(payload.to_vec())));
        let pid = finished.as_ref().map_or(event.pid, |finished| finished.pid);
        self.process.push(self.names.get(pid).map(|name| self.texts.name(pid, name)));
        self.outstanding.push(small(self.tracker.outstanding()));
        self.in_device.push(small(self.tracker.in_device()));
        self.request_pid.push(finished.as_ref().map(|finished| finished.pid as i32));
        self.bios.push(finished.as_ref().map(|finished| small(finished.bios)));
        self.q2c_ns.push(finished.as_ref().and_then(|finished| finished.q2c_ns).map(|time_ns| time_ns as i64));
        self.d2c_ns.push(finished.as_ref().and_then(|finished| finished.d2c_ns).map(|time_ns| time_ns as i64));
    }

    /// Takes the columns of all rows, in the order of the schema.
    pub fn take(&mut self) -> [Cells; super::COLUMNS.len()] {
        [
            Cells::all(Values::Int64(std::mem::take(&mut self.time_ns))),
            Cells::all(Values::Bytes(std::mem::take(&mut self.action))),
            Cells::all(Values::Bytes(std::mem::take(&mut self.device))),
            Cells::all(Values::Int32(std::mem::take(&mut self.cpu))),
            Cells::all(Values::Int32(std::mem::take(&mut self.pid))),
            Cells::all(Values::Int32(std::mem::take(&mut self.sequence))),
            Cells::all(Values::Bytes(std::mem::take(&mut self.rwbs))),
            Cells::all(Values::Int64(std::mem::take(&mut self.sector))),
            Cells::all(Values::Int32(std::mem::take(&mut self.bytes))),
            Cells::all(Values::Int32(std::mem::take(&mut self.error))),
            Cells::all(Values::Int64(std::mem::take(&mut self.cgroup))),
            self.payload.take(Values::Bytes),
            self.process.take(Values::Bytes),
            Cells::all(Values::Int32(std::mem::take(&mut self.outstanding))),
            Cells::all(Values::Int32(std::mem::take(&mut self.in_device))),
            self.request_pid.take(Values::Int32),
            self.bios.take(Values::Int32),
            self.q2c_ns.take(Values::Int64),
            self.d2c_ns.take(Values::Int64),
        ]
    }
}

impl<T> Nullable<T> {
    fn push(&mut self, value: Option<T>) {
        self.present.push(i16::from(value.is_some()));
        self.values.extend(value);
    }

    fn take(&mut self, values: fn(Vec<T>) -> Values) -> Cells {
        Cells { values: values(std::mem::take(&mut self.values)), present: std::mem::take(&mut self.present) }
    }
}

impl<T> Default for Nullable<T> {
    fn default() -> Nullable<T> {
        Nullable { values: Vec::new(), present: Vec::new() }
    }
}

impl Finished {
    /// Returns the figures of the requests that an event completed: of the first, with the bios of
    /// all (a flush of the device completes several requests).
    fn of(records: impl Iterator<Item = RequestRecord>, action: Action) -> Option<Finished> {
        let mut all: Option<Finished> = None;
        for record in records.filter(|record| action == Action::Complete && record.completed_ns.is_some()) {
            let bios = record.bios();
            match &mut all {
                Some(first) => first.bios += bios,
                None => {
                    let (q2c_ns, d2c_ns) = (record.q2c_ns(), record.d2c_ns());
                    all = Some(Finished { pid: record.pid, bios, q2c_ns, d2c_ns });
                }
            }
        }
        all
    }
}

impl Texts {
    fn action(&mut self, action: Action) -> ByteArray {
        match self.actions.get_mut(action as usize) {
            Some(text) => text.get_or_insert_with(|| ByteArray::from(action.letters())).clone(),
            None => ByteArray::from(action.letters()),
        }
    }

    fn device(&mut self, device: DeviceId) -> ByteArray {
        let text = || ByteArray::from(format!("{}:{}", device.major(), device.minor()).as_str());
        kept(&mut self.devices, device, text)
    }

    fn operation(&mut self, op: Rwbs) -> ByteArray {
        kept(&mut self.operations, op, || ByteArray::from(csv::rwbs_text(op).as_str()))
    }

    fn name(&mut self, pid: u32, name: &[u8]) -> ByteArray {
        if self.names.len() >= TEXTS_MAX {
            self.names.clear();
        }
        let text = || (Box::from(name), ByteArray::from(String::from_utf8_lossy(name).as_ref()));
        let entry = self.names.entry(pid).or_insert_with(text);
        if *entry.0 != *name {
            *entry = text();
        }
        entry.1.clone()
    }
}

/// Returns the text of a key, which is made if it is not kept.
fn kept<K: std::hash::Hash + Eq>(
    texts: &mut FxHashMap<K, ByteArray>,
    key: K,
    text: impl FnOnce() -> ByteArray,
) -> ByteArray {
    if texts.len() >= TEXTS_MAX {
        texts.clear();
    }
    texts.entry(key).or_insert_with(text).clone()
}

fn small(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}
