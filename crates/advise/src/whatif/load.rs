//! Loads the requests of a device from a trace.

use std::collections::BTreeMap;

use hoistway_core::Kind;
use hoistway_trace::dependencies::ProcessRequests;
use hoistway_trace::request::{RequestRecord, RequestTracker};
use hoistway_trace::{Action, Batch, DeviceId, Source};

use super::recording::{RecordedProcess, Recording, WhatifError};

/// The requests of one device of a trace.
#[derive(Debug)]
pub struct LoadedTrace {
    /// The requests by process.
    pub recording: Recording,
    /// The requests in the order of their completions.
    pub requests: Vec<RequestRecord>,
    /// The elevator, depth and drive of the recording.
    pub setting: RecordedSetting,
    /// Notes on the trace, one sentence each.
    pub notes: Vec<String>,
}

/// The elevator, depth and drive of a recording, from the trace's notes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedSetting {
    /// The elevators, in the order of their use.
    pub elevators: Vec<Kind>,
    /// Greatest number of requests that the drive had at once.
    pub depth: Option<u32>,
    /// Name of the drive's profile, if the drive was emulated.
    pub drive: Option<String>,
    /// True if hoistway's own server recorded the trace.
    pub is_server: bool,
}

impl LoadedTrace {
    /// Reads a trace to its end. `wanted` is the number of the device, as in `8,0`; without it, the
    /// device with the most requests is chosen.
    ///
    /// # Errors
    /// [`WhatifError::Read`] if the trace cannot be read, [`WhatifError::NoDevice`] if it does not
    /// contain the device.
    pub fn read(source: &mut dyn Source, wanted: Option<&str>) -> Result<LoadedTrace, WhatifError> {
        let (mut tracker, mut requests) = (RequestTracker::new(), Vec::new());
        let (mut names, mut setting) = (BTreeMap::new(), RecordedSetting::default());
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
                    Action::Message => setting.take(&text()),
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
        let device = device(&requests, wanted, &mut notes)?;
        requests.retain(|request| request.device == device);
        let mut by_process = ProcessRequests::new();
        requests.iter().for_each(|request| by_process.take(request));
        let processes = by_process.finish().into_iter().map(|((_, pid), requests)| {
            let name = names.get(&pid).cloned().unwrap_or_else(|| format!("pid {pid}"));
            RecordedProcess { name, pid, requests }
        });
        let processes = processes.collect();
        let (from_ns, until_ns) = span_ns.get(&device).copied().unwrap_or_default();
        Ok(LoadedTrace { recording: Recording { processes, from_ns, until_ns }, requests, setting, notes })
    }
}

fn device(records: &[RequestRecord], wanted: Option<&str>, notes: &mut Vec<String>) -> Result<DeviceId, WhatifError> {
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
        notes.push(format!("the trace has devices {}: {busiest} has the most requests", known()));
    }
    Ok(busiest.unwrap_or_default())
}

impl RecordedSetting {
    /// Evaluates a note: `elevator bfq, depth 1, drive ssd` is hoistway's own; the kernel's
    /// elevators start their notes with their names.
    fn take(&mut self, note: &str) {
        let mut parts = note.split(", ");
        let own = parts.next().and_then(|part| part.strip_prefix("elevator ")).and_then(Kind::from_name);
        let kernels = ["bfq", "cfq"].into_iter().find(|name| note.starts_with(name)).and_then(Kind::from_name);
        if own.is_some() {
            self.is_server = true;
            for part in parts {
                match part.split_once(' ') {
                    Some(("depth", depth)) => self.depth = depth.parse().ok().or(self.depth),
                    Some(("drive", drive)) => self.drive = Some(drive.to_owned()),
                    _ => {}
                }
            }
        }
        if let Some(kind) = own.or(kernels)
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
    fn notes_of_the_server_name_elevator_depth_and_drive() {
        let mut setting = RecordedSetting::default();
        setting.take("elevator bfq, depth 1, drive sata-7200-2006");
        setting.take("slice of 7 begins, level 4");
        let expected = RecordedSetting {
            elevators: vec![Kind::Bfq],
            depth: Some(1),
            drive: Some("sata-7200-2006".into()),
            is_server: true,
        };
        assert_eq!(setting, expected);
        setting.take("elevator noop");
        assert_eq!(setting.elevators, [Kind::Bfq, Kind::Noop]);
    }

    #[test]
    fn notes_of_kernel_elevators_start_with_the_name() {
        let mut setting = RecordedSetting::default();
        setting.take("bfq124S dispatched async request");
        assert_eq!((setting.elevators, setting.is_server), (vec![Kind::Bfq], false));
    }
}
