//! Loads the requests of a device from a trace.

use std::collections::BTreeMap;

use hoistway_core::Kind;
use hoistway_machine::elevator_of_scheduler;
use hoistway_sim::Setting;
use hoistway_trace::dependencies::ProcessRequests;
use hoistway_trace::queue_settings::QueueSettings;
use hoistway_trace::request::{RequestRecord, RequestTracker};
use hoistway_trace::{Action, Batch, DeviceId, RecordCounts, Source};

use super::contents::TraceContents;
use super::damage;
use super::recording::{RecordedProcess, Recording, WhatifError, end_of};

/// A trace, reduced to the requests of one device.
#[derive(Debug)]
pub struct LoadedTrace {
    /// The requests of each process as the process submitted them, for predictions.
    pub recording: Recording,
    /// The history of each request in order of completion, including requests without a completion.
    pub requests: Vec<RequestRecord>,
    /// The elevator, queue depth and drive that the trace names for the device.
    pub setting: RecordedSetting,
    /// The numbers of records and requests of the device.
    pub contents: TraceContents,
    /// Notes for the user about damage and the choice of the device, one sentence each.
    pub notes: Vec<String>,
}

/// The elevator with its tunables, queue and drive under which the requests of a device were
/// recorded, from the messages of the device in the trace (blktrace's `m` events).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedSetting {
    /// The elevators without repetition, in the order of their first use; empty if unknown.
    pub elevators: Vec<Kind>,
    /// The queue depth: the maximum number of requests in the drive. `None` if unknown.
    pub depth: Option<u32>,
    /// The name of the drive's profile if the drive was emulated.
    pub drive: Option<String>,
    /// True if a server or mount of hoistway recorded the trace of its own queue, false for a trace
    /// of the kernel.
    pub is_server: bool,
    /// The tunables of the schedulers, and the settings of the queue.
    pub queue: QueueSettings,
}

impl LoadedTrace {
    /// Reads a trace to its end. `wanted` is the device number as major and minor, such as `8,0`.
    /// `None` selects the device with the most requests. A trace without requests is no error.
    ///
    /// # Errors
    /// [`WhatifError::Read`] if the trace cannot be read, [`WhatifError::NoDevice`] if the trace
    /// has no requests of the wanted device.
    pub fn read(source: &mut dyn Source, wanted: Option<&str>) -> Result<LoadedTrace, WhatifError> {
        let (mut tracker, mut requests) = (RequestTracker::new(), Vec::new());
        let mut names = BTreeMap::new();
        let mut settings: BTreeMap<DeviceId, RecordedSetting> = BTreeMap::new();
        let mut span_ns: BTreeMap<DeviceId, (u64, u64)> = BTreeMap::new();
        let mut counts: BTreeMap<DeviceId, RecordCounts> = BTreeMap::new();
        let mut batch = Batch::new();
        loop {
            source.next(&mut batch)?;
            if batch.is_empty() {
                break;
            }
            for event in batch.events() {
                counts.entry(event.device).or_default().count(event);
                let text = || String::from_utf8_lossy(batch.payload(event)).into_owned();
                match event.action {
                    Action::Process => drop(names.insert(event.pid, text())),
                    Action::Message => settings.entry(event.device).or_default().apply_message(&text()),
                    Action::Timestamp => {}
                    _ => {
                        let span = span_ns.entry(event.device).or_insert((event.time_ns, event.time_ns));
                        *span = (span.0.min(event.time_ns), span.1.max(event.time_ns));
                    }
                }
            }
            tracker.take(&batch);
            requests.extend(tracker.take_finished());
        }
        requests.extend(tracker.into_outstanding());
        let mut notes: Vec<String> = source.notices().iter().map(ToString::to_string).collect();
        let device = choose_device(&requests, wanted, &mut notes)?;
        requests.retain(|request| request.device == device);
        let counts = counts.remove(&device).unwrap_or_else(|| all_of(&counts));
        let contents = TraceContents::new(counts, &requests);
        notes.extend(damage::leave_out(&mut requests));
        let mut by_process = ProcessRequests::new();
        requests.iter().for_each(|request| by_process.take(request));
        let processes = by_process.finish().into_iter().map(|((_, pid), requests)| {
            let name = names.get(&pid).cloned().unwrap_or_else(|| format!("pid {pid}"));
            RecordedProcess { name, pid, requests }
        });
        let processes = processes.collect();
        let setting = settings.remove(&device).unwrap_or_default();
        let span_ns = span_ns.get(&device).copied().unwrap_or_default();
        let (from_ns, until_ns) = damage::plausible_span(span_ns, &requests);
        Ok(LoadedTrace { recording: Recording { processes, from_ns, until_ns }, requests, setting, contents, notes })
    }

    /// Leaves out the requests whose sectors are far beyond those of all others and beyond a drive
    /// of `capacity_sectors`, 0 if the drive is unknown. Adds a note about them.
    pub(crate) fn leave_out_implausible_sectors(&mut self, capacity_sectors: u64) {
        let end_sector = damage::plausible_end(self.ends()).max(capacity_sectors);
        let count = self.leave_out_beyond(end_sector);
        if count > 0 {
            let what = damage::requests_of("impossible sector", count);
            self.notes.push(format!("{what} left out: beyond sector {end_sector}, far from the others"));
        }
    }

    /// Leaves out requests beyond the end of a drive that are implausible for any drive, or at most
    /// 1 % of all, and adds a note about them.
    ///
    /// # Errors
    /// [`WhatifError::Beyond`] if there are more.
    pub(crate) fn leave_out_beyond_drive(&mut self, drive: &str, capacity_sectors: u64) -> Result<(), WhatifError> {
        if self.end_sector() > capacity_sectors {
            self.leave_out_implausible_sectors(capacity_sectors);
        }
        let (mut all, mut beyond, mut end) = (0u64, 0u64, 0);
        for request_end in self.ends() {
            all += 1;
            beyond += u64::from(request_end > capacity_sectors);
            end = request_end.max(end);
        }
        if beyond as f64 > all as f64 * damage::BEYOND_SHARE_MAX {
            return Err(WhatifError::Beyond { sector: end - 1, drive: drive.to_owned(), capacity_sectors });
        }
        if beyond > 0 {
            self.leave_out_beyond(capacity_sectors);
            let what = damage::requests_of("impossible sector", beyond);
            self.notes.push(format!("{what} left out: up to sector {}, and {drive} has {capacity_sectors}", end - 1));
        }
        Ok(())
    }

    /// Leaves out the requests that end beyond `end_sector` and returns their number.
    fn leave_out_beyond(&mut self, end_sector: u64) -> u64 {
        self.requests.retain(|request| request.end_sector() <= end_sector);
        let mut count = 0;
        for process in &mut self.recording.processes {
            let before = process.requests.len();
            process.requests.retain(|request| end_of(request) <= end_sector);
            count += before - process.requests.len();
        }
        count as u64
    }

    /// Returns the sector after the last request with data; 0 without requests.
    pub(crate) fn end_sector(&self) -> u64 {
        self.ends().max().unwrap_or(0)
    }

    /// Returns the ends of all requests with data, in sectors.
    fn ends(&self) -> impl Iterator<Item = u64> + '_ {
        let requests = self.recording.processes.iter().flat_map(|process| &process.requests);
        requests.filter(|request| request.bytes > 0).map(end_of)
    }
}

/// Sums the counts of all devices, for a trace without requests.
fn all_of(counts: &BTreeMap<DeviceId, RecordCounts>) -> RecordCounts {
    let mut all = RecordCounts::default();
    counts.values().for_each(|of_device| all.add(of_device));
    all
}

/// Returns the wanted device, or the device with the most requests. Adds a note if the trace has
/// several devices and none is wanted.
fn choose_device(
    records: &[RequestRecord],
    wanted: Option<&str>,
    notes: &mut Vec<String>,
) -> Result<DeviceId, WhatifError> {
    let mut requests: BTreeMap<DeviceId, u64> = BTreeMap::new();
    for record in records {
        *requests.entry(record.device).or_default() += 1;
    }
    let known = || requests.keys().map(ToString::to_string).collect::<Vec<_>>().join(" and ");
    if let Some(wanted) = wanted {
        let found = requests.keys().find(|device| device.to_string() == wanted);
        return found.copied().ok_or_else(|| WhatifError::NoDevice { wanted: wanted.into(), known: known() });
    }
    let busiest = requests.iter().max_by_key(|(_, count)| **count).map(|(device, _)| *device);
    if let (Some(busiest), true) = (busiest, requests.len() > 1) {
        notes.push(format!("the trace has the devices {}; {busiest} is used, which has the most requests", known()));
    }
    Ok(busiest.unwrap_or_default())
}

impl RecordedSetting {
    /// Returns the recorded tunables of an elevator that differ from their defaults. Tunables that
    /// the simulated elevator does not have, and values out of their ranges, are left out.
    pub fn tunables(&self, kind: Kind) -> Vec<Setting> {
        let schedulers = self.queue.schedulers.iter();
        let recorded = schedulers.filter(|scheduler| elevator_of_scheduler(&scheduler.name) == Some(kind));
        let values = recorded.flat_map(|scheduler| &scheduler.tunables);
        let name = kind.info().name;
        let settings = values.filter_map(|(tunable, value)| Setting::parse(&format!("{name}.{tunable}={value}")).ok());
        let declaration = |setting: &Setting| kind.info().tunables.iter().find(|row| row.name == setting.tunable);
        settings.filter(|setting| declaration(setting).is_some_and(|row| row.default != setting.value)).collect()
    }

    /// Applies a message of the trace. hoistway writes `elevator bfq, depth 1, drive ssd` and the
    /// messages of [`QueueSettings`]; messages of the kernel's elevators start with `bfq` or `cfq`.
    /// Other messages have no effect.
    fn apply_message(&mut self, message: &str) {
        if self.queue.apply_message(message) {
            let last = self.queue.schedulers.last().and_then(|scheduler| elevator_of_scheduler(&scheduler.name));
            self.depth = self.queue.number("queue_depth").or(self.depth);
            return last.into_iter().for_each(|kind| self.add_elevator(kind));
        }
        let mut parts = message.split(", ");
        let from_hoistway =
            parts.next().and_then(|part| part.strip_prefix("elevator ")).and_then(hoistway_custom::find);
        let from_kernel = ["bfq", "cfq"].into_iter().find(|name| message.starts_with(name)).and_then(Kind::from_name);
        if from_hoistway.is_some() {
            self.is_server = true;
            for part in parts {
                match part.split_once(' ') {
                    Some(("depth", depth)) => self.depth = depth.parse().ok().or(self.depth),
                    Some(("drive", drive)) => self.drive = Some(drive.to_owned()),
                    _ => {}
                }
            }
        }
        from_hoistway.or(from_kernel).into_iter().for_each(|kind| self.add_elevator(kind));
    }

    fn add_elevator(&mut self, kind: Kind) {
        if !self.elevators.contains(&kind) {
            self.elevators.push(kind);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_the_server_name_elevator_depth_and_drive() {
        let mut setting = RecordedSetting::default();
        setting.apply_message("elevator bfq, depth 1, drive sata-7200-2006");
        setting.apply_message("slice of 7 begins, level 4");
        let expected = RecordedSetting {
            elevators: vec![Kind::Bfq],
            depth: Some(1),
            drive: Some("sata-7200-2006".into()),
            is_server: true,
            queue: QueueSettings::default(),
        };
        assert_eq!(setting, expected);
        setting.apply_message("elevator noop");
        assert_eq!(setting.elevators, [Kind::Bfq, Kind::Noop]);
    }

    #[test]
    fn messages_of_a_recorder_name_the_scheduler_its_tunables_and_the_queue() {
        let mut setting = RecordedSetting::default();
        setting.apply_message("hoistway scheduler bfq: slice_idle=0 low_latency=1 unknown_to_the_simulator=7");
        setting.apply_message("hoistway queue: nr_requests=64 queue_depth=32");
        assert_eq!(
            (setting.elevators.as_slice(), setting.depth, setting.is_server),
            (&[Kind::Bfq][..], Some(32), false)
        );
        let tunables: Vec<String> =
            setting.tunables(Kind::Bfq).iter().map(|setting| setting.text().to_owned()).collect();
        assert_eq!(tunables, ["bfq.slice_idle=0"], "the others have their defaults, or are unknown");
        assert!(setting.tunables(Kind::Noop).is_empty());
        setting.apply_message("hoistway scheduler none:");
        assert_eq!(setting.elevators, [Kind::Bfq, Kind::Noop]);
    }

    #[test]
    fn messages_of_another_device_do_not_apply() {
        let trace = "8,0 0 1 0.000000000 7 m N elevator bfq, depth 1\n\
            8,16 0 2 0.000100000 7 m N elevator noop, depth 32\n\
            8,0 0 3 0.000200000 7 Q R 8 + 8 [cat]\n\
            8,0 0 4 0.000300000 7 D R 8 + 8 [cat]\n\
            8,0 0 5 0.000400000 7 C R 8 + 8 [0]\n\
            8,16 0 6 0.000500000 7 Q R 8 + 8 [cat]\n";
        let load = |device: &str| {
            let stream = hoistway_trace::Stream { name: "two-devices.txt".into(), read: Box::new(trace.as_bytes()) };
            let mut source = hoistway_trace::blkparse::Reader::new(stream);
            LoadedTrace::read(&mut source, Some(device)).expect("a trace of both devices").setting
        };
        assert_eq!((load("8,0").elevators, load("8,0").depth), (vec![Kind::Bfq], Some(1)));
        assert_eq!((load("8,16").elevators, load("8,16").depth), (vec![Kind::Noop], Some(32)));
    }

    #[test]
    fn messages_of_kernel_elevators_start_with_the_name() {
        let mut setting = RecordedSetting::default();
        setting.apply_message("bfq124S dispatched async request");
        assert_eq!((setting.elevators, setting.is_server), (vec![Kind::Bfq], false));
    }
}
