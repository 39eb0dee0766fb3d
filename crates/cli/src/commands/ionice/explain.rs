//! `hoistway ionice --explain`: what is known of a process, its devices, and what becomes of its priority there.

use anyhow::{Result, bail};
use hoistway_core::Kind;
use hoistway_machine::{
    BlockDevice, Class, CpuPolicy, GroupPolicy, Priority, Process, Root, Use, Who, devices, is_cost_enabled, policies,
    process, queues_below, uses, way_down,
};
use serde::Serialize;

use super::effect::{self, Effect};
use super::tell;
use crate::cli::IoniceArgs;
use crate::commands::devices::{one, root};
use crate::failure::Exit;
use crate::output::Out;

/// The JSON document, and what is told.
#[derive(Serialize)]
pub struct Document {
    /// The version of this form: 1.
    pub schema: u32,
    pub explained: Vec<Explained>,
}

/// One priority, and what becomes of it.
#[derive(Serialize)]
pub struct Explained {
    /// Whose it is; nothing where it is that of nobody.
    pub process: Option<Process>,
    /// It is not the process's own, but one that was asked about.
    pub supposed: bool,
    /// As it is set.
    pub priority: String,
    /// As it counts.
    pub effective: String,
    /// Whether all open files could be seen; nothing without a process.
    pub all_files_seen: Option<bool>,
    /// The devices that the process uses, or the one that was named.
    pub devices: Vec<OnDevice>,
    /// What every elevator would make of it.
    pub elevators: Vec<ByElevator>,
    #[serde(skip)]
    pub counted: Priority,
}

/// A device, and where requests to it are scheduled.
#[derive(Serialize)]
pub struct OnDevice {
    /// The partition or volume.
    pub device: String,
    /// How the process uses it; nothing where the device was named.
    pub used: Option<Use>,
    /// What its requests pass on their way, from the device to the disks.
    pub way: Vec<String>,
    /// Where they are scheduled.
    pub queues: Vec<AtQueue>,
}

/// What a device's scheduler makes of the priority.
#[derive(Serialize)]
pub struct AtQueue {
    pub device: String,
    pub scheduler: Option<String>,
    /// Whether the priority changes anything there.
    pub counts: bool,
    pub effect: String,
    /// What else there is to say.
    pub notes: Vec<String>,
    /// What the process's control groups do there.
    pub groups: Vec<GroupPolicy>,
    /// The schedulers that could be set in its place and heed priorities.
    pub would_count: Vec<String>,
}

/// What an elevator would make of it.
#[derive(Serialize)]
pub struct ByElevator {
    pub elevator: &'static str,
    /// The kernel of this machine has it.
    pub in_kernel: bool,
    pub counts: bool,
    pub effect: String,
}

/// Explains the priorities of processes, or of nobody on a device.
pub fn run(args: &IoniceArgs, wanted: Option<Priority>, whose: &[Who], out: &mut Out) -> Result<Exit> {
    let root = root(&args.root)?;
    let all = devices(&root)?;
    let named = args.device.as_deref().map(|text| one(&root, text)).transpose()?;
    let mut pids = Vec::new();
    for who in whose {
        match who {
            Who::Process(pid) => pids.push(*pid),
            other => bail!("{other}: --explain takes processes, by their numbers"),
        }
    }
    let machine = Machine { root: &root, all: &all, named: named.as_ref() };
    let mut explained = Vec::new();
    match &pids[..] {
        [] if named.is_some() => explained.push(machine.of_nobody(wanted)?),
        // Whoever asks about nobody asks about this shell, whose child this is.
        [] => explained.push(machine.of_process(std::process::id(), wanted)?),
        pids => {
            for pid in pids {
                explained.push(machine.of_process(*pid, wanted)?);
            }
        }
    }
    let document = Document { schema: 1, explained };
    if args.json {
        out.json(&document)?
    } else {
        tell::print(&document, out)?
    }
    Ok(Exit::Success)
}

/// The machine as it was read once.
struct Machine<'a> {
    root: &'a Root,
    all: &'a [BlockDevice],
    /// The device that was named in place of those that a process uses.
    named: Option<&'a BlockDevice>,
}

impl Machine<'_> {
    /// A priority on the device that was named.
    fn of_nobody(&self, wanted: Option<Priority>) -> Result<Explained> {
        let priority = match wanted {
            Some(priority) => priority,
            None => process(self.root, std::process::id()).map(|own| own.priority).unwrap_or_default(),
        };
        let counted = priority.effective(0, CpuPolicy::Normal);
        let devices = self.named.iter().map(|device| self.on_device(device, None, "/", counted)).collect();
        Ok(explained(None, wanted.is_some(), priority, counted, devices))
    }

    fn of_process(&self, pid: u32, wanted: Option<Priority>) -> Result<Explained> {
        let process = process(self.root, pid)?;
        let priority = wanted.unwrap_or(process.priority);
        let counted = self.changed_by_group(&process, priority.effective(process.nice, process.policy));
        let used = uses(self.root, self.all, pid);
        let devices = match self.named {
            Some(device) => vec![self.on_device(device, None, &process.cgroup, counted)],
            None => {
                let device = |used: &Use| self.all.iter().find(|device| device.name == used.device);
                let pairs = used.devices.iter().filter_map(|used| Some((used, device(used)?)));
                pairs
                    .map(|(used, device)| self.on_device(device, Some(used.clone()), &process.cgroup, counted))
                    .collect()
            }
        };
        let mut told = explained(Some(process), wanted.is_some(), priority, counted, devices);
        told.all_files_seen = Some(used.all_seen);
        Ok(told)
    }

    /// What `io.prio.class` of the process's own group makes of it: it is the same for all devices.
    fn changed_by_group(&self, process: &Process, priority: Priority) -> Priority {
        let Some(any) = self.all.first() else { return priority };
        let policies = policies(self.root, &process.cgroup, any.number);
        let own = policies.iter().find(|policy| policy.group == process.cgroup.trim_end_matches('/'));
        match own.and_then(|policy| policy.prio_class.as_deref()) {
            Some("idle") => Priority::new(Class::Idle, 0),
            Some("promote-to-rt") if priority.class != Class::Realtime => {
                Priority::new(Class::Realtime, priority.level)
            }
            Some("restrict-to-be") if priority.class == Class::Realtime => {
                Priority::new(Class::BestEffort, priority.level)
            }
            _ => priority,
        }
    }

    fn on_device(&self, device: &BlockDevice, used: Option<Use>, cgroup: &str, priority: Priority) -> OnDevice {
        let way = way_down(self.root, self.all, device);
        let queues = queues_below(self.root, self.all, device);
        // What has a scheduler of its own on the way counts too.
        let scheduled = |other: &&&BlockDevice| {
            let is_last = queues.iter().any(|last| last.number == other.number);
            is_last
                || other
                    .queue
                    .as_ref()
                    .is_some_and(|queue| queue.has_choice() && queue.scheduler.as_deref() != Some("none"))
        };
        let at = way.iter().filter(scheduled).map(|other| self.at_queue(other, &way, cgroup, priority)).collect();
        OnDevice {
            device: device.name.clone(),
            used,
            way: way.iter().map(|other| other.name.clone()).collect(),
            queues: at,
        }
    }

    fn at_queue(&self, device: &BlockDevice, way: &[&BlockDevice], cgroup: &str, priority: Priority) -> AtQueue {
        let empty = hoistway_machine::Queue::default();
        let queue = device.queue.as_ref().unwrap_or(&empty);
        let Effect { counts, text } = effect::of_device(device, queue, priority);
        let groups = policies(self.root, cgroup, device.number);
        let mut notes = Vec::new();
        if device.passes_priority_on() == Some(true) {
            notes
                .push("the disk is told of the class realtime and serves it first itself (ncq_prio_enable)".to_owned());
        }
        if counts {
            notes.extend(tell::notes_of_way(way, device));
            if queue.scheduler.as_deref() == Some("bfq") {
                notes.extend(tell::notes_of_bfq(queue));
            }
            if queue.rotational == Some(true) && queue.device_depth.is_some_and(|depth| depth > 1) {
                let depth = queue.device_depth.unwrap_or(0);
                notes.push(format!("the disk takes {depth} requests at once and orders these by itself: the priority says who is among them"));
            }
        }
        if is_cost_enabled(self.root, device.number) {
            notes.push(
                "io.cost is on: control groups share the device by io.weight before the scheduler sees a request"
                    .to_owned(),
            );
        }
        let heeds = |name: &&String| matches!(name.as_str(), "bfq" | "mq-deadline");
        let would_count = if counts { Vec::new() } else { queue.schedulers.iter().filter(heeds).cloned().collect() };
        AtQueue {
            device: device.name.clone(),
            scheduler: queue.scheduler.clone().filter(|_| queue.has_choice()),
            counts,
            effect: text,
            notes,
            groups,
            would_count,
        }
    }
}

fn explained(
    process: Option<Process>,
    supposed: bool,
    priority: Priority,
    counted: Priority,
    devices: Vec<OnDevice>,
) -> Explained {
    let elevators = Kind::ALL.iter().map(|kind| {
        let Effect { counts, text } = effect::of_elevator(*kind, counted);
        let name = kind.info().name;
        let in_kernel = devices.iter().flat_map(|device: &OnDevice| &device.queues).any(|queue| {
            queue.scheduler.as_deref() == Some(name) || queue.would_count.iter().any(|other| other == name)
        });
        ByElevator { elevator: name, in_kernel, counts, effect: text }
    });
    Explained {
        process,
        supposed,
        priority: priority.to_string(),
        effective: counted.to_string(),
        all_files_seen: None,
        elevators: elevators.collect(),
        devices,
        counted,
    }
}
