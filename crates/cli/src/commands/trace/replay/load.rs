//! The plan that is made of a trace.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use hoistway_serve::replay::{Level, Plan, PlanBuilder};
use hoistway_trace::request::{RequestRecord, RequestTracker};
use hoistway_trace::{Action, Batch, DeviceId, Source as _};

use crate::cli::trace::{LayerChoice, ReplayArgs};
use crate::commands::trace::input;

/// A plan, and what is known of its trace.
pub struct Loaded {
    /// What the trace is called.
    pub name: String,
    pub plan: Plan,
    pub device: DeviceId,
    /// By process number.
    pub names: BTreeMap<u32, String>,
    pub notes: Vec<String>,
}

/// Reads a trace.
pub fn load(args: &ReplayArgs) -> Result<Loaded> {
    let mut source = input::open(&args.input)?;
    let name = source.name.clone();
    let level = match args.layer {
        LayerChoice::Queue => Level::Queue,
        LayerChoice::Issue => Level::Issue,
    };
    let mut plans = Plans { level, reads_only: args.reads_only, only: args.device, by_device: BTreeMap::new() };
    let (mut lives, mut batch, mut names) = (RequestTracker::new(), Batch::new(), BTreeMap::new());
    loop {
        source.next(&mut batch)?;
        if batch.is_empty() {
            break;
        }
        for event in batch.events().iter().filter(|event| event.action == Action::Process) {
            names.insert(event.pid, String::from_utf8_lossy(batch.payload(event)).into_owned());
        }
        lives.take(&batch);
        lives.over().for_each(|life| plans.take(&life));
    }
    lives.rest().iter().for_each(|life| plans.take(life));
    let mut notes: Vec<String> = source.notices().iter().map(ToString::to_string).collect();
    let (device, plan) = plans.choose(&name, &mut notes)?;
    let loaded = Loaded { name, plan, device, names, notes };
    if loaded.plan.requests().is_empty() {
        bail!("{}: there is nothing to replay: {}", loaded.name, loaded.left_out_words());
    }
    Ok(loaded)
}

impl Loaded {
    /// Leaves out what the target cannot do.
    pub fn leave_out(&mut self, discards: bool, flushes: bool) {
        self.plan.leave_out(discards, flushes);
    }

    /// What of the trace is not in the plan: `3 writes, discards and flushes left out`.
    pub fn left_out_words(&self) -> String {
        let left_out = self.plan.left_out();
        let parts = [
            (left_out.changing, "writes, discards and flushes (--reads-only)"),
            (left_out.discards, "discards, which the target cannot do"),
            (left_out.flushes, "flushes, which the target cannot do"),
            (left_out.others, "commands that read and write no sectors"),
            (left_out.endings, "requests of which the trace has only the end"),
        ];
        let said: Vec<String> =
            parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
        if said.is_empty() { "no requests in it".to_owned() } else { format!("left out: {}", said.join("; ")) }
    }

    /// What a process is called.
    pub fn name_of(&self, pid: u32) -> String {
        self.names.get(&pid).map_or_else(|| format!("pid {pid}"), |name| format!("{name} ({pid})"))
    }
}

/// A plan for each device, for which one is wanted shows at the end.
struct Plans {
    level: Level,
    reads_only: bool,
    only: Option<DeviceId>,
    by_device: BTreeMap<DeviceId, (PlanBuilder, u64)>,
}

impl Plans {
    fn take(&mut self, life: &RequestRecord) {
        if self.only.is_some_and(|only| only != life.device) {
            return;
        }
        let (level, reads_only) = (self.level, self.reads_only);
        let plan = self.by_device.entry(life.device);
        let (plan, count) = plan.or_insert_with(|| (PlanBuilder::new(level, reads_only), 0));
        plan.take(life);
        *count += 1;
    }

    /// The device with the most requests.
    fn choose(self, name: &str, notes: &mut Vec<String>) -> Result<(DeviceId, Plan)> {
        let others: Vec<(DeviceId, u64)> =
            self.by_device.iter().map(|(device, (_, count))| (*device, *count)).collect();
        let most = self.by_device.into_iter().max_by_key(|(_, (_, count))| *count);
        let Some((device, (plan, _))) = most else {
            match self.only {
                Some(only) => bail!("{name}: it has no requests of device {only}"),
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
