//! Loads the requests of a device from a trace.

use std::collections::BTreeMap;

use hoistway_core::Kind;
use hoistway_trace::dependencies::ProcessRequests;
use hoistway_trace::request::{RequestRecord, RequestTracker};
use hoistway_trace::{Action, Batch, DeviceId, Source};

use super::recording::{RecordedProcess, Recording, WhatifError};

/// A trace, reduced to the requests of one device.
#[derive(Debug)]
pub struct LoadedTrace {
    /// The requests of each process as the process submitted them, for predictions.
    pub recording: Recording,
    /// The history of each request in order of completion, including requests without a completion.
    pub requests: Vec<RequestRecord>,
    /// The elevator, queue depth and drive that the trace names for the device.
    pub setting: RecordedSetting,
    /// Notices for the user about damage and the choice of the device, one sentence each.
    pub notes: Vec<String>,
}

/// The elevator, queue depth and drive under which the requests of a device were recorded, from the
/// messages of the device in the trace (blktrace's `m` events).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedSetting {
    /// The elevators without repetition, in the order of their first use; empty if unknown.
    pub elevators: Vec<Kind>,
    /// The queue depth: the maximum number of requests in the drive. `None` if unknown.
    pub depth: Option<u32>,
    /// The name of the drive's profile if the drive was emulated.
    pub drive: Option<String>,
    /// True if hoistway recorded the trace, false for a kernel.
    pub is_server: bool,
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
        let mut batch = Batch::new();
        loop {
            source.next(&mut batch)?;
            if batch.is_empty() {
                break;
            }
            for event in batch.events() {
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
        let mut by_process = ProcessRequests::new();
        requests.iter().for_each(|request| by_process.take(request));
        let processes = by_process.finish().into_iter().map(|((_, pid), requests)| {
            let name = names.get(&pid).cloned().unwrap_or_else(|| format!("pid {pid}"));
            RecordedProcess { name, pid, requests }
        });
        let processes = processes.collect();
        let setting = settings.remove(&device).unwrap_or_default();
        let (from_ns, until_ns) = span_ns.get(&device).copied().unwrap_or_default();
        Ok(LoadedTrace { recording: Recording { processes, from_ns, until_ns }, requests, setting, notes })
    }
}

/// Returns the wanted device, or the device with the most requests. Adds a notice if the trace has
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
    /// Applies a message of the trace. hoistway writes `elevator bfq, depth 1, drive ssd`; messages
    /// of the kernel's elevators start with `bfq` or `cfq`. Other messages have no effect.
    fn apply_message(&mut self, message: &str) {
        let mut parts = message.split(", ");
        let from_hoistway = parts.next().and_then(|part| part.strip_prefix("elevator ")).and_then(Kind::from_name);
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
        if let Some(kind) = from_hoistway.or(from_kernel)
            && !self.elevators.contains(&kind)
        {
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
        };
        assert_eq!(setting, expected);
        setting.apply_message("elevator noop");
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
