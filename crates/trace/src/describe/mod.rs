//! What a trace tells: who did how much, how long each step took, how deep the queue was, what requests waited for.
//!
//! It takes events as they come; memory grows with processes (of which at most [`PROCESSES_MAX`] are told apart) and with what is under way, not with the trace.
//! Counts are those of blkparse's summary, and the means of phases those of btt: D2C and Q2C count every bio, flushes without data are no part of them. Distances are from
//! the end of a request to the start of the next, which btt has with `--seek-absolute`.

mod counts;
mod notes;
mod part;
mod process;
mod spread;

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::batch::Batch;
use crate::event::{Action, DeviceId, Event};
use crate::life::{Life, Lives};
use notes::Notes;
use part::{Part, is_flush};
use process::Processes;
use spread::{Levels, Spread};

pub use counts::{Counts, Direction};
pub use part::{Distances, Mix, PartFigures, Phases, SeekFigures, SizeCount};
pub use process::{PROCESSES_MAX, ProcessFigures, REQUESTS_OF_RULE_MAX, Rule, RuleKind};
pub use spread::{Depths, Figures};

/// The version of what [`Description`] is as JSON.
pub const SCHEMA: u32 = 1;

/// Describes a trace as its events come.
#[derive(Debug)]
pub struct Describe {
    lives: Lives,
    tally: Tally,
}

/// What a trace tells.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Description {
    /// The version of this document.
    pub schema: u32,
    /// The first event's time, in ns of the recorder's clock.
    pub begin_ns: u64,
    /// From the first event to the last.
    pub duration_ns: u64,
    /// By the place of an event whose time is earlier than that of the one before it: how often, and by how much at most.
    pub backward: Backward,
    /// How often what happened.
    pub counts: Counts,
    /// The devices.
    pub devices: Vec<DeviceFigures>,
    /// All requests together.
    pub all: PartFigures,
    /// Distances in the order in which the driver took requests.
    pub seeks_at_d: SeekFigures,
    /// How deep the queue was.
    pub depth: DepthFigures,
    /// Plugs.
    pub plug: PlugFigures,
    /// Errors by the system's number, with how many requests ended with it.
    pub errors: BTreeMap<u16, u64>,
    /// What elevators noted, by elevator and kind.
    pub notes: BTreeMap<String, BTreeMap<String, u64>>,
    /// Processes, those with the most bytes first.
    pub processes: Vec<ProcessFigures>,
    /// How many more processes there were, whose requests are together in [`Description::others`].
    pub processes_left_out: u64,
    /// The requests of those.
    pub others: Option<PartFigures>,
}

/// Clocks that ran back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Backward {
    /// How often.
    pub events: u64,
    /// By how much at most.
    pub ns_max: u64,
}

/// What a device did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeviceFigures {
    /// Its numbers, as in `8,0`.
    pub device: String,
    /// Requests that completed.
    pub requests: u64,
    /// Bytes that were read.
    pub read_bytes: u64,
    /// Bytes that were written or discarded.
    pub write_bytes: u64,
}

/// How many requests were where. A bio that is not merged yet is one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DepthFigures {
    /// Under way when a bio was submitted, without itself.
    pub under_way_at_q: Depths,
    /// In the device when a bio was submitted.
    pub in_device_at_q: Depths,
    /// In the device when the driver took one, with itself.
    pub in_device_at_d: Depths,
    /// Under way, over time.
    pub under_way_over_time: Depths,
    /// In the device, over time.
    pub in_device_over_time: Depths,
    /// The share of the time in which the device had something to do, 0 to 1.
    pub busy_share: f64,
}

/// What plugging did.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PlugFigures {
    /// How long plugs lasted.
    pub plugged_ns: Figures,
    /// How many requests an unplug let go.
    pub requests_an_unplug: Figures,
    /// The share of bios that were merged, 0 to 1.
    pub merge_share: f64,
}

impl Default for Describe {
    fn default() -> Describe {
        Describe::new()
    }
}

impl Describe {
    /// Nothing seen yet.
    pub fn new() -> Describe {
        Describe { lives: Lives::new(), tally: Tally::new() }
    }

    /// Takes in events, in the order of the trace.
    pub fn take(&mut self, batch: &Batch) {
        for event in batch.events() {
            let payload = batch.payload(event);
            self.tally.before(event, payload, &self.lives);
            self.lives.event(event, payload);
            if matches!(event.action, Action::Complete | Action::Queue) {
                self.lives.over().for_each(|life| self.tally.life(&life));
            }
            self.tally.after(event, &self.lives);
        }
    }

    /// The trace is over.
    pub fn finish(mut self) -> Description {
        self.lives.over().for_each(|life| self.tally.life(&life));
        self.lives.rest().iter().for_each(|life| self.tally.life(life));
        self.tally.finish()
    }
}

/// All that is counted.
#[derive(Debug)]
struct Tally {
    first_ns: Option<u64>,
    last_ns: u64,
    end_ns: u64,
    backward: Backward,
    counts: Counts,
    devices: FxHashMap<DeviceId, Device>,
    all: Part,
    seeks_at_d: Distances,
    depth: DepthLevels,
    plugs: FxHashMap<(DeviceId, u32), u64>,
    plugged: Spread,
    unplugged: Spread,
    errors: BTreeMap<u16, u64>,
    notes: Notes,
    processes: Processes,
}

/// A device as it is counted.
#[derive(Debug, Default)]
struct Device {
    requests: u64,
    read_bytes: u64,
    write_bytes: u64,
    last_queued_ns: Option<u64>,
    /// The end of what was submitted last, and of what was issued last.
    end_at_q: Option<u64>,
    end_at_d: Option<u64>,
}

#[derive(Debug, Default)]
struct DepthLevels {
    under_way_at_q: Levels,
    in_device_at_q: Levels,
    in_device_at_d: Levels,
    under_way_over_time: Levels,
    in_device_over_time: Levels,
}

/// So many plugs are known at a time: a plug whose end was lost is no reason to grow.
const PLUGS_MAX: usize = 4096;

impl Tally {
    fn new() -> Tally {
        Tally {
            first_ns: None,
            last_ns: 0,
            end_ns: 0,
            backward: Backward::default(),
            counts: Counts::default(),
            devices: FxHashMap::default(),
            all: Part::new(3),
            seeks_at_d: Distances::new(3),
            depth: DepthLevels::default(),
            plugs: FxHashMap::default(),
            plugged: Spread::new(3),
            unplugged: Spread::new(3),
            errors: BTreeMap::new(),
            notes: Notes::default(),
            processes: Processes::default(),
        }
    }

    fn before(&mut self, event: &Event, payload: &[u8], lives: &Lives) {
        self.counts.take(event);
        if event.action.is_note() {
            // Notes of processes and of the clock may lie before the trace by far.
            match event.action {
                Action::Process => return self.processes.name(event.pid, payload),
                Action::Message => self.notes.take(payload),
                _ => return,
            }
        }
        self.clock(event.time_ns, lives);
        match event.action {
            Action::Queue => self.queued(event, lives),
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

    fn after(&mut self, event: &Event, lives: &Lives) {
        if event.action == Action::Issue {
            self.depth.in_device_at_d.add(lives.in_device(), 1);
        }
    }

    fn clock(&mut self, now_ns: u64, lives: &Lives) {
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
            self.depth.under_way_over_time.add(lives.under_way(), passed_ns);
            self.depth.in_device_over_time.add(lives.in_device(), passed_ns);
        }
        self.last_ns = now_ns;
        self.end_ns = self.end_ns.max(now_ns);
    }

    fn queued(&mut self, event: &Event, lives: &Lives) {
        self.depth.under_way_at_q.add(lives.under_way(), 1);
        self.depth.in_device_at_q.add(lives.in_device(), 1);
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

    fn life(&mut self, life: &Life) {
        self.all.request(life);
        (0..life.merged.len()).for_each(|place| self.all.merged(life, place));
        self.processes.life(life);
        if life.error != 0 {
            *self.errors.entry(life.error).or_default() += 1;
        }
        if life.completed_ns.is_some() && !is_flush(life) {
            let device = self.devices.entry(life.device).or_default();
            device.requests += 1;
            let reads = life.op.has(crate::event::Rwbs::READ);
            *(if reads { &mut device.read_bytes } else { &mut device.write_bytes }) += u64::from(life.bytes);
        }
    }

    fn finish(self) -> Description {
        let begin_ns = self.first_ns.unwrap_or(0);
        let all = PartFigures { think_ns: self.processes.think(), ..self.all.figures() };
        let mut devices: Vec<(DeviceId, Device)> = self.devices.into_iter().collect();
        devices.sort_unstable_by_key(|(id, _)| *id);
        let figures = |(id, device): (DeviceId, Device)| DeviceFigures {
            device: id.to_string(),
            requests: device.requests,
            read_bytes: device.read_bytes,
            write_bytes: device.write_bytes,
        };
        let merge_share = if all.bios == 0 { 0.0 } else { all.merged as f64 / all.bios as f64 };
        let depth = self.depth.figures();
        let (processes, processes_left_out, others) = self.processes.finish();
        Description {
            schema: SCHEMA,
            begin_ns,
            duration_ns: self.end_ns.saturating_sub(begin_ns),
            backward: self.backward,
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
        let idle = self.in_device_over_time.at_rest();
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
