//! Builds the replay plan of a trace.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use hoistway_record::replay::{Level, Plan, PlanBuilder};
use hoistway_trace::request::{RequestRecord, RequestTracker};
use hoistway_trace::{Action, Batch, DeviceId, Source as _};

use crate::cli::trace::{LayerChoice, ReplayArgs};
use crate::commands::trace::input;

/// A replay plan and properties of its trace.
pub struct Loaded {
    /// Name of the trace.
    pub name: String,
    pub plan: Plan,
    pub device: DeviceId,
    /// Process names by process id.
    pub names: BTreeMap<u32, String>,
    pub notes: Vec<String>,
}

/// Reads a trace and builds its plan.
pub fn load(args: &ReplayArgs) -> Result<Loaded> {
    let mut source = input::open(&args.input)?;
    let name = source.name.clone();
    let level = match args.layer {
        LayerChoice::Queue => Level::Queue,
        LayerChoice::Issue => Level::Issue,
    };
    let mut plans = Plans { level, reads_only: args.reads_only, only: args.device, by_device: BTreeMap::new() };
    let (mut tracker, mut batch, mut names) = (RequestTracker::new(), Batch::new(), BTreeMap::new());
    loop {
        source.next(&mut batch)?;
        if batch.is_empty() {
            break;
        }
        for event in batch.events().iter().filter(|event| event.action == Action::Process) {
            names.insert(event.pid, String::from_utf8_lossy(batch.payload(event)).into_owned());
        }
        tracker.take(&batch);
        tracker.take_finished().for_each(|record| plans.take(&record));
    }
    tracker.into_outstanding().iter().for_each(|record| plans.take(record));
    let mut notes: Vec<String> = source.notices().iter().map(ToString::to_string).collect();
    let (device, plan) = plans.choose(&name, &mut notes)?;
    let loaded = Loaded { name, plan, device, names, notes };
    if loaded.plan.requests().is_empty() {
        bail!("{}: there is nothing to replay: {}", loaded.name, loaded.left_out_words());
    }
    Ok(loaded)
}

impl Loaded {
    /// Removes requests that the target does not support.
    pub fn leave_out(&mut self, discards: bool, flushes: bool) {
        self.plan.leave_out(discards, flushes);
    }

    /// Describes the requests of the trace that are not in the plan.
    pub fn left_out_words(&self) -> String {
        let left_out = self.plan.left_out();
        let parts = [
            (left_out.changing, "writes, discards and flushes (--reads-only)"),
            (left_out.discards, "discards, which the target does not support"),
            (left_out.flushes, "flushes, which the target does not support"),
            (left_out.others, "commands without sectors"),
            (left_out.endings, "requests with only a completion"),
        ];
        let described: Vec<String> =
            parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
        if described.is_empty() {
            "no requests in it".to_owned()
        } else {
            format!("left out: {}", described.join("; "))
        }
    }

    /// Title of a process.
    pub fn name_of(&self, pid: u32) -> String {
        self.names.get(&pid).map_or_else(|| format!("pid {pid}"), |name| format!("{name} ({pid})"))
    }
}

/// Plans of all devices, because the device with the most requests is known only at the end.
struct Plans {
    level: Level,
    reads_only: bool,
    only: Option<DeviceId>,
    by_device: BTreeMap<DeviceId, (PlanBuilder, u64)>,
}

impl Plans {
    fn take(&mut self, record: &RequestRecord) {
        if self.only.is_some_and(|only| only != record.device) {
            return;
        }
        let (level, reads_only) = (self.level, self.reads_only);
        let plan = self.by_device.entry(record.device);
        let (plan, count) = plan.or_insert_with(|| (PlanBuilder::new(level, reads_only), 0));
        plan.take(record);
        *count += 1;
    }

    /// Returns the device with the most requests and its plan.
    fn choose(self, name: &str, notes: &mut Vec<String>) -> Result<(DeviceId, Plan)> {
        let others: Vec<(DeviceId, u64)> =
            self.by_device.iter().map(|(device, (_, count))| (*device, *count)).collect();
        let most = self.by_device.into_iter().max_by_key(|(_, (_, count))| *count);
        let Some((device, (plan, _))) = most else {
            match self.only {
                Some(only) => bail!("{name}: the trace has no requests of device {only}"),
                None => bail!("{name}: there is nothing to replay: no requests in it"),
            }
        };
        if others.len() > 1 {
            let others: Vec<String> =
                others.iter().map(|(device, count)| format!("{device} ({count} requests)")).collect();
            notes.push(format!("of the devices {}, {device} is replayed; --device chooses another", others.join(", ")));
        }
        Ok((device, plan.finish()))
    }
}
