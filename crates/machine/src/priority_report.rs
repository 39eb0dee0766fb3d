//! The answer of `hoistway ionice --explain`: what becomes of I/O priorities on the devices that
//! processes use.

use hoistway_core::Kind as Elevator;
use serde::Serialize;

use crate::cgroup::{GroupPolicy, is_cost_enabled, policies};
use crate::device::BlockDevice;
use crate::kind::Kind;
use crate::priority::{Class, CpuPolicy, Priority};
use crate::priority_effect::{effect_on, effect_under};
use crate::process::{DeviceUse, Process, ProcessError, device_use, process};
use crate::queue::Queue;
use crate::root::Root;
use crate::scheduler_names::{elevator_of_scheduler, is_of_module};
use crate::stacking::{queues_below, request_path};

/// Explained priorities; docs/devices.md describes the serialised fields.
#[derive(Clone, Debug, Serialize)]
pub struct PriorityReport {
    /// The version of the serialised form: 1.
    pub schema: u32,
    /// One explanation for each process, or one without a process.
    pub explained: Vec<ExplainedPriority>,
}

/// One priority and its effects.
#[derive(Clone, Debug, Serialize)]
pub struct ExplainedPriority {
    /// The process; `None` for a priority without a process.
    pub process: Option<Process>,
    /// True if the caller gave the priority, and the process has another.
    pub supposed: bool,
    /// The priority as it is set.
    pub priority: String,
    /// The effective priority.
    pub effective: String,
    /// False if some open files could not be listed; `None` without a process.
    pub all_files_seen: Option<bool>,
    /// The devices that the process uses, or the given one.
    pub devices: Vec<PriorityOnDevice>,
    /// The effect under each elevator.
    pub elevators: Vec<EffectUnderElevator>,
    /// The effective priority as a value.
    #[serde(skip)]
    pub effective_priority: Priority,
}

/// A device and the queues that order its requests.
#[derive(Clone, Debug, Serialize)]
pub struct PriorityOnDevice {
    /// The partition, volume or disk.
    pub device: String,
    /// How the process uses the device; `None` for a given device.
    pub used: Option<DeviceUse>,
    /// The devices that a request passes, from the device down to the disks.
    pub way: Vec<String>,
    /// The queues that order the requests.
    pub queues: Vec<PriorityAtQueue>,
}

/// The effect of the priority at one queue.
#[derive(Clone, Debug, Serialize)]
pub struct PriorityAtQueue {
    /// The device of the queue.
    pub device: String,
    /// The active scheduler; `None` if the device has none to choose.
    pub scheduler: Option<String>,
    /// True if the priority has an effect at this queue.
    pub counts: bool,
    /// The effect, a sentence without its full stop.
    pub effect: String,
    /// Further remarks.
    pub notes: Vec<String>,
    /// The policies of the process's control groups for the device.
    pub groups: Vec<GroupPolicy>,
    /// Available schedulers under which the priority would have an effect; empty if it has one now.
    pub would_count: Vec<String>,
}

/// The effect of the priority under an elevator.
#[derive(Clone, Debug, Serialize)]
pub struct EffectUnderElevator {
    /// The name of the elevator.
    pub elevator: &'static str,
    /// True if the kernel offers a scheduler of this name on one of the devices.
    pub in_kernel: bool,
    /// True if the priority has an effect.
    pub counts: bool,
    /// The effect, a sentence without its full stop.
    pub effect: String,
}

/// Explains priorities on one machine.
///
/// ```no_run
/// use hoistway_machine::{Class, Priority, PriorityExplainer, Root, devices, find};
/// let root = Root::machine();
/// let all = devices(&root)?;
/// let sda = find(&root, "sda")?;
/// let explainer = PriorityExplainer { root: &root, devices: &all, only_on: Some(&sda) };
/// let explained = explainer.without_process(Some(Priority::new(Class::Idle, 0)));
/// println!("{}", explained.devices[0].queues[0].effect);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct PriorityExplainer<'a> {
    /// The machine.
    pub root: &'a Root,
    /// All block devices of the machine.
    pub devices: &'a [BlockDevice],
    /// The device to explain priorities on; `None` for the devices that a process uses.
    pub only_on: Option<&'a BlockDevice>,
}

impl PriorityExplainer<'_> {
    /// Explains a priority without a process, on the given device. `None` takes the priority of the
    /// calling process.
    pub fn without_process(&self, priority: Option<Priority>) -> ExplainedPriority {
        let is_given = priority.is_some();
        let own = || process(self.root, std::process::id()).map(|own| own.priority).unwrap_or_default();
        let priority = priority.unwrap_or_else(own);
        let effective = priority.effective(0, CpuPolicy::Normal);
        let devices = self.only_on.iter().map(|device| self.on_device(device, None, "/", effective)).collect();
        explained(None, is_given, priority, effective, devices)
    }

    /// Explains the priority of a process, or another one as if the process had it.
    ///
    /// # Errors
    /// [`ProcessError`] if there is no such process.
    pub fn of_process(&self, pid: u32, priority: Option<Priority>) -> Result<ExplainedPriority, ProcessError> {
        let process = process(self.root, pid)?;
        let is_given = priority.is_some();
        let priority = priority.unwrap_or(process.priority);
        let effective = self.changed_by_group(&process, priority.effective(process.nice, process.policy));
        let used = device_use(self.root, self.devices, pid);
        let devices = match self.only_on {
            Some(device) => vec![self.on_device(device, None, &process.cgroup, effective)],
            None => {
                let device = |used: &DeviceUse| self.devices.iter().find(|device| device.name == used.device);
                let pairs = used.devices.iter().filter_map(|used| Some((used, device(used)?)));
                pairs
                    .map(|(used, device)| self.on_device(device, Some(used.clone()), &process.cgroup, effective))
                    .collect()
            }
        };
        let explained = explained(Some(process), is_given, priority, effective, devices);
        Ok(ExplainedPriority { all_files_seen: Some(used.all_seen), ..explained })
    }

    /// Applies `io.prio.class` of the process's own group, which is the same for all devices.
    fn changed_by_group(&self, process: &Process, priority: Priority) -> Priority {
        let Some(any) = self.devices.first() else { return priority };
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

    fn on_device(
        &self,
        device: &BlockDevice,
        used: Option<DeviceUse>,
        cgroup: &str,
        priority: Priority,
    ) -> PriorityOnDevice {
        let way = request_path(self.root, self.devices, device);
        let last = queues_below(self.root, self.devices, device);
        // A scheduler on a device in between orders requests too.
        let is_scheduled = |other: &&&BlockDevice| {
            let has_scheduler = |queue: &Queue| queue.has_choice() && queue.scheduler.as_deref() != Some("none");
            last.iter().any(|last| last.number == other.number) || other.queue.as_ref().is_some_and(has_scheduler)
        };
        let queues = way.iter().filter(is_scheduled).map(|other| self.at_queue(other, &way, cgroup, priority));
        PriorityOnDevice {
            device: device.name.clone(),
            used,
            way: way.iter().map(|other| other.name.clone()).collect(),
            queues: queues.collect(),
        }
    }

    fn at_queue(
        &self,
        device: &BlockDevice,
        way: &[&BlockDevice],
        cgroup: &str,
        priority: Priority,
    ) -> PriorityAtQueue {
        let empty = Queue::default();
        let queue = device.queue.as_ref().unwrap_or(&empty);
        let effect = effect_on(device, queue, priority);
        let uses_priorities = |name: &&String| match name.as_str() {
            "bfq" | "mq-deadline" => true,
            name => {
                is_of_module(name)
                    && elevator_of_scheduler(name).is_some_and(|kind| effect_under(kind, priority).counts)
            }
        };
        let would_count = match effect.counts {
            true => Vec::new(),
            false => queue.schedulers.iter().filter(uses_priorities).cloned().collect(),
        };
        PriorityAtQueue {
            device: device.name.clone(),
            scheduler: queue.scheduler.clone().filter(|_| queue.has_choice()),
            counts: effect.counts,
            effect: effect.text,
            notes: self.notes(device, queue, way, effect.counts),
            groups: policies(self.root, cgroup, device.number),
            would_count,
        }
    }

    fn notes(&self, device: &BlockDevice, queue: &Queue, way: &[&BlockDevice], counts: bool) -> Vec<String> {
        let mut notes = Vec::new();
        if device.forwards_priority() == Some(true) {
            notes.push(
                "the kernel forwards the class realtime to the disk, which then prefers it (ncq_prio_enable)"
                    .to_owned(),
            );
        }
        if counts {
            let above = way.iter().take_while(|other| other.number != device.number);
            notes.extend(above.filter_map(|other| note_on_layer(other)));
            let is_bfq = matches!(queue.scheduler.as_deref(), Some("bfq" | "h-bfq"));
            if is_bfq && queue.tunable("low_latency").is_some_and(|tunable| tunable.value == "1") {
                notes.push(
                    "low_latency is 1: bfq raises programs that start or play media for a while, whatever their level"
                        .to_owned(),
                );
            }
            if let (Some(true), Some(depth @ 2..)) = (queue.rotational, queue.device_depth) {
                notes.push(format!(
                    "the disk takes {depth} requests at once and orders them itself: the priority only decides which requests are among them"
                ));
            }
        }
        if is_cost_enabled(self.root, device.number) {
            notes.push(
                "io.cost is on: control groups share the device by io.weight before the scheduler sees a request"
                    .to_owned(),
            );
        }
        notes
    }
}

/// A remark on a layer between a device and its queue where a priority may get lost.
fn note_on_layer(layer: &BlockDevice) -> Option<String> {
    match layer.kind {
        Kind::Crypt => Some(format!(
            "{} is encrypted: kernel threads issue part of its requests, on older kernels without the priority",
            layer.name
        )),
        Kind::Md => {
            Some(format!("{} is an array: its background writes and parity do not have this priority", layer.name))
        }
        Kind::Loop => Some(format!(
            "{} is a file: a kernel thread reads and writes it, on older kernels without the priority",
            layer.name
        )),
        _ => None,
    }
}

fn explained(
    process: Option<Process>,
    supposed: bool,
    priority: Priority,
    effective: Priority,
    devices: Vec<PriorityOnDevice>,
) -> ExplainedPriority {
    let elevators = Elevator::ALL.iter().map(|kind| {
        let effect = effect_under(*kind, effective);
        let name = kind.info().name;
        let in_kernel = devices.iter().flat_map(|device: &PriorityOnDevice| &device.queues).any(|queue| {
            queue.scheduler.as_deref() == Some(name) || queue.would_count.iter().any(|other| other == name)
        });
        EffectUnderElevator { elevator: name, in_kernel, counts: effect.counts, effect: effect.text }
    });
    ExplainedPriority {
        process,
        supposed,
        priority: priority.to_string(),
        effective: effective.to_string(),
        all_files_seen: None,
        elevators: elevators.collect(),
        devices,
        effective_priority: effective,
    }
}
