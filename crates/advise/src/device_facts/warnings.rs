//! Warnings about a device: facts to know before advice is trusted.

use hoistway_core::{Class, Kind as Scheduler, NORMAL_LEVEL, Priority, PriorityEffect};
use hoistway_machine::{BlockDevice, Kind, Root, WriteCache, queues_below, schedules_for_paths, scheduling_holder};

use super::kind_of;

/// A fact to know before advice is trusted.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Warning {
    /// The topic, a stable word: `priorities`, `layers`, `rotational`, `write-cache`.
    pub about: &'static str,
    /// The sentence.
    pub text: String,
}

/// The part of an I/O priority that a scheduler uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PriorityUse {
    /// The scheduler ignores priorities.
    None,
    /// The class only.
    Class,
    /// Class and level.
    ClassAndLevel,
}

/// The part of an I/O priority that a scheduler uses.
pub fn priority_use(kind: Scheduler) -> PriorityUse {
    let normal = Priority::new(Class::BestEffort, NORMAL_LEVEL).unwrap_or_default();
    match kind.priority_effect(normal) {
        PriorityEffect::Nothing => PriorityUse::None,
        PriorityEffect::Class => PriorityUse::Class,
        _ => PriorityUse::ClassAndLevel,
    }
}

/// The warnings about a device, whatever the workload.
pub fn warnings(root: &Root, devices: &[BlockDevice], device: &BlockDevice) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut warn = |about, text: String| warnings.push(Warning { about, text });
    layers(root, devices, device, &mut warn);
    // Requests pass a queue without schedulers and are ordered below it.
    let Some(queue) = device.queue.as_ref().filter(|queue| queue.has_choice()) else { return warnings };
    let name = &device.name;
    if let Some(scheduler) = queue.scheduler.as_deref().and_then(kind_of) {
        match priority_use(scheduler) {
            PriorityUse::None => warn(
                "priorities",
                format!(
                    "`ionice` has no effect on {name} now: {} ignores priorities",
                    super::scheduler_name(scheduler)
                ),
            ),
            PriorityUse::Class => warn(
                "priorities",
                format!(
                    "only the class of `ionice` counts on {name} now (-c1, -c2, -c3): mq-deadline ignores the level (-n)"
                ),
            ),
            _ => {}
        }
    }
    if queue.rotational == Some(true) && is_virtual_drive(device) {
        warn(
            "rotational",
            format!(
                "{name} reports that it rotates, but its host or controller reports that, not a drive; bfq and the kernel act on it. If flash is below, \
                 set it: `echo 0 > /sys/block/{name}/queue/rotational`"
            ),
        );
    }
    if queue.rotational == Some(false) && device.kind == Kind::Disk && named_like_a_disk(device) {
        warn(
            "rotational",
            format!(
                "{name} reports that it does not rotate, but its model is that of a rotating disk: check /sys/block/{name}/queue/rotational"
            ),
        );
    }
    if queue.write_cache == Some(WriteCache::Back)
        && queue.rotational == Some(true)
        && device.kind == Kind::Disk
        && !is_virtual_drive(device)
    {
        warn(
            "write-cache",
            format!(
                "{name} completes writes in its cache and writes them out in its own order: schedulers only order requests on their way to the cache"
            ),
        );
    }
    warnings
}

/// Warns of several queues between the device and the drive, and names the one that counts.
fn layers(root: &Root, devices: &[BlockDevice], device: &BlockDevice, warn: &mut impl FnMut(&'static str, String)) {
    let name = &device.name;
    let below: Vec<&BlockDevice> =
        queues_below(root, devices, device).into_iter().filter(|below| below.name != device.name).collect();
    let names: Vec<&str> = below.iter().map(|below| below.name.as_str()).collect();
    let list = name_list(&names);
    if schedules_for_paths(device) {
        warn(
            "layers",
            format!(
                "{name} sends its requests to its paths ({}) past their schedulers: only its own queue schedules them",
                device.slaves.join(", ")
            ),
        );
        return;
    }
    if let Some(holder) = scheduling_holder(devices, device) {
        warn(
            "layers",
            format!(
                "{name} is a path of {0}: the queue of {0} schedules the requests and bypasses the scheduler of the path (`hoistway advise {0}`)",
                holder.name
            ),
        );
    }
    if device.kind.is_stacked() || device.kind == Kind::Partition {
        match (below.is_empty(), device.kind) {
            (true, Kind::Loop) => warn(
                "layers",
                format!(
                    "{name} is a file on an unknown device: requests pass a second queue there, and that one controls the disk"
                ),
            ),
            (false, Kind::Loop) => warn(
                "layers",
                format!(
                    "{name} is a file on {list}: the queue of {list} schedules its requests (`hoistway advise {}`). A second scheduler orders the requests of a scheduler on {name} again, and the delays of both add up",
                    names[0]
                ),
            ),
            (false, Kind::Partition) => {}
            (false, kind) => warn(
                "layers",
                format!(
                    "{name} ({kind}) has no queue of its own with a scheduler: the {} {list} {}",
                    if names.len() == 1 { "queue of" } else { "queues of" },
                    if names.len() == 1 {
                        "schedules its requests"
                    } else {
                        "schedule its requests. Only one of them is simulated, with all of the work"
                    }
                ),
            ),
            (true, _) => {}
        }
    }
    if device.kind.is_virtual() {
        warn(
            "layers",
            format!(
                "{name} is a virtual device, and its host schedules the requests again: the storage below is not visible here"
            ),
        );
    }
    warn_of_loop_devices(root, devices, device, warn);
}

/// Warns of a loop device on this device that has a scheduler of its own.
fn warn_of_loop_devices(
    root: &Root,
    devices: &[BlockDevice],
    device: &BlockDevice,
    warn: &mut impl FnMut(&'static str, String),
) {
    let name = &device.name;
    let above = devices.iter().filter(|above| {
        above.kind == Kind::Loop
            && above.number != device.number
            && above.queue.as_ref().is_some_and(|queue| queue.scheduler.as_deref().is_some_and(|name| name != "none"))
            && queues_below(root, devices, above).iter().any(|below| below.name == device.name)
    });
    for above in above {
        let scheduler = above.queue.as_ref().and_then(|queue| queue.scheduler.as_deref()).unwrap_or("none");
        warn(
            "layers",
            format!(
                "{} is a file on {name} and has a scheduler itself ({scheduler}): two in a row; `echo none > /sys/block/{}/queue/scheduler` leaves the order to {name}",
                above.name, above.name
            ),
        );
    }
}

/// Joins names: `sda`, `sda and sdb`, `sda, sdb and sdc`.
fn name_list(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Returns true if a host or controller, not a drive, reports the properties of the device.
fn is_virtual_drive(device: &BlockDevice) -> bool {
    super::drive_model(device).is_some_and(|model| model.quality == super::ModelQuality::Unknown)
        && !device.kind.is_stacked()
}

/// Returns true if the model starts with a prefix that vendors use only for rotating disks.
fn named_like_a_disk(device: &BlockDevice) -> bool {
    let model = device.identity.model.as_deref().unwrap_or_default();
    ["ST", "WDC WD", "HGST HU", "TOSHIBA MG", "TOSHIBA DT"].iter().any(|prefix| model.starts_with(prefix))
        && !model.contains("SSD")
}
