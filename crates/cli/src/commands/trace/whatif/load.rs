//! From a trace to what a prediction starts from.

use std::collections::BTreeMap;

use anyhow::Result;
use hoistway_core::Kind;
use hoistway_sim::whatif::{RecordedProcess, Recording};
use hoistway_trace::depends::ByProcess;
use hoistway_trace::life::{Life, Lives};
use hoistway_trace::{Action, Batch, DeviceId, Input, OpenOptions, Source, Stream};

use crate::cli::trace::WhatifArgs;
use crate::failure::UsageError;

/// What a trace has.
pub struct Loaded {
    /// The trace as it was named.
    pub trace: String,
    pub recording: Recording,
    /// The requests of the device.
    pub lives: Vec<Life>,
    pub setting: Setting,
    pub notes: Vec<String>,
}

/// What the trace's notes tell of how it was recorded.
#[derive(Debug, Default, PartialEq)]
pub struct Setting {
    /// The elevators, in the order in which they came.
    pub elevators: Vec<Kind>,
    pub depth: Option<u32>,
    pub drive: Option<String>,
    /// hoistway's own server recorded it.
    pub is_server: bool,
}

/// Reads a trace.
pub fn load(args: &WhatifArgs) -> Result<Loaded> {
    let mut opened = open(args)?;
    let (mut lives, mut all) = (Lives::new(), Vec::new());
    let (mut names, mut setting) = (BTreeMap::new(), Setting::default());
    let mut span_ns: BTreeMap<DeviceId, (u64, u64)> = BTreeMap::new();
    let mut batch = Batch::new();
    loop {
        opened.source.next(&mut batch)?;
        if batch.is_empty() {
            break;
        }
        for event in batch.events() {
            match event.action {
                Action::Process => {
                    names.insert(event.pid, String::from_utf8_lossy(batch.payload(event)).into_owned());
                }
                Action::Message => setting.take(&String::from_utf8_lossy(batch.payload(event))),
                _ if event.action.is_note() => {}
                _ => {
                    let span = span_ns.entry(event.device).or_insert((event.time_ns, event.time_ns));
                    *span = (span.0.min(event.time_ns), span.1.max(event.time_ns));
                }
            }
        }
        lives.take(&batch);
        all.extend(lives.over());
    }
    all.extend(lives.rest());
    let trace = opened.name;
    let mut notes: Vec<String> = opened.source.notices().iter().map(ToString::to_string).collect();
    let device = device(args, &all, &mut notes)?;
    all.retain(|life| life.device == device);
    let mut by_process = ByProcess::new();
    all.iter().for_each(|life| by_process.take(life));
    let processes = by_process.finish().into_iter().map(|((_, pid), asked)| {
        let name = names.get(&pid).cloned().unwrap_or_else(|| format!("pid {pid}"));
        RecordedProcess { name, pid, asked }
    });
    let processes = processes.collect();
    let (from_ns, until_ns) = span_ns.get(&device).copied().unwrap_or_default();
    Ok(Loaded { trace, recording: Recording { processes, from_ns, until_ns }, lives: all, setting, notes })
}

struct Opened {
    source: Box<dyn Source + Send>,
    name: String,
}

fn open(args: &WhatifArgs) -> Result<Opened> {
    let mut inputs = Vec::new();
    for path in &args.input.files {
        if path.as_os_str() == "-" {
            inputs.push(Input::Stream(Stream { name: "-".into(), read: Box::new(std::io::stdin()) }));
            continue;
        }
        let file_of = |cpu: u32| {
            let mut name = path.as_os_str().to_owned();
            name.push(format!(".blktrace.{cpu}"));
            std::path::PathBuf::from(name)
        };
        match path.exists() || !file_of(0).exists() {
            true => inputs.push(Input::Path(path.clone())),
            false => inputs.extend((0..).map(file_of).take_while(|file| file.exists()).map(Input::Path)),
        }
    }
    let names: Vec<String> = args.input.files.iter().map(|file| file.display().to_string()).collect();
    Ok(Opened { source: hoistway_trace::open(inputs, &OpenOptions::default())?, name: names.join(" ") })
}

/// The device that was asked for, or the one with the most requests.
fn device(args: &WhatifArgs, lives: &[Life], notes: &mut Vec<String>) -> Result<DeviceId> {
    let mut requests: BTreeMap<DeviceId, u64> = BTreeMap::new();
    for life in lives {
        *requests.entry(life.device).or_default() += 1;
    }
    let there = || requests.keys().map(ToString::to_string).collect::<Vec<_>>().join(" and ");
    if let Some(wanted) = &args.device {
        let found = requests.keys().find(|device| device.to_string() == *wanted);
        let unknown = || UsageError(format!("--device is `{wanted}`: the trace has {}", there()));
        return Ok(*found.ok_or_else(unknown)?);
    }
    let busiest = requests.iter().max_by_key(|(_, count)| **count).map(|(device, _)| *device);
    if let (Some(busiest), true) = (busiest, requests.len() > 1) {
        notes.push(format!(
            "the trace has devices {}: {busiest} has the most requests; --device takes another",
            there()
        ));
    }
    Ok(busiest.unwrap_or_default())
}

impl Setting {
    /// Takes in a note: `elevator bfq, depth 1, drive ssd` is hoistway's own; the kernel's elevators begin theirs with their names.
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
    fn notes_tell_the_elevator_and_the_server_s_own_also_depth_and_drive() {
        let mut setting = Setting::default();
        setting.take("elevator bfq, depth 1, drive sata-7200-2006");
        setting.take("slice of 7 begins, level 4");
        let expected = Setting {
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
    fn notes_of_the_kernel_s_elevators_begin_with_their_names() {
        let mut setting = Setting::default();
        setting.take("bfq124S dispatched async request");
        assert_eq!((setting.elevators, setting.is_server), (vec![Kind::Bfq], false));
    }
}
