//! What should be said before anybody believes the advice.

use hoistway_core::{Class, Kind as Scheduler, NORMAL_LEVEL, Priority, PriorityEffect};
use hoistway_machine::{BlockDevice, Kind, Root, WriteCache, queues_below, schedules_for_paths};

use super::kind_of;

/// Something that should be known.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Warning {
    /// What it is about, in a word that does not change: `priorities`, `layers`, `rotational`, `write-cache`, `throttling`, `module`.
    pub about: &'static str,
    /// The sentence.
    pub text: String,
}

/// What a scheduler makes of an I/O priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Nothing.
    None,
    /// The class counts, and the level does not.
    Class,
    /// Class and level count.
    ClassAndLevel,
}

/// What a scheduler makes of I/O priorities.
pub fn effect_of_priorities(kind: Scheduler) -> Effect {
    let normal = Priority::new(Class::BestEffort, NORMAL_LEVEL).unwrap_or_default();
    match kind.priority_effect(normal) {
        PriorityEffect::Nothing => Effect::None,
        PriorityEffect::Class => Effect::Class,
        _ => Effect::ClassAndLevel,
    }
}

/// What should be said of a device, whatever the workload.
pub fn warnings(root: &Root, devices: &[BlockDevice], device: &BlockDevice) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut warn = |about, text: String| warnings.push(Warning { about, text });
    layers(root, devices, device, &mut warn);
    // What passes a queue without schedulers is queued below.
    let Some(queue) = device.queue.as_ref().filter(|queue| queue.has_choice()) else { return warnings };
    let name = &device.name;
    if let Some(scheduler) = queue.scheduler.as_deref().and_then(kind_of) {
        match effect_of_priorities(scheduler) {
            Effect::None => warn(
                "priorities",
                format!(
                    "`ionice` has no effect on {name} now: {} does not look at priorities",
                    super::scheduler_name(scheduler)
                ),
            ),
            Effect::Class => warn(
                "priorities",
                format!(
                    "of `ionice` only the class counts on {name} now (-c1, -c2, -c3): mq-deadline does not look at the level (-n)"
                ),
            ),
            _ => {}
        }
    }
    if queue.rotational == Some(true) && is_made_up(device) {
        warn(
            "rotational",
            format!(
                "{name} says that it rotates, which is its host's or controller's word and no drive's: bfq and the kernel act on it. If flash lies below, \
                 `echo 0 > /sys/block/{name}/queue/rotational` tells them so"
            ),
        );
    }
    if queue.rotational == Some(false) && device.kind == Kind::Disk && named_like_a_disk(device) {
        warn(
            "rotational",
            format!(
                "{name} says that it does not rotate, and its model is one of a disk: look at /sys/block/{name}/queue/rotational"
            ),
        );
    }
    if queue.write_cache == Some(WriteCache::Back)
        && queue.rotational == Some(true)
        && device.kind == Kind::Disk
        && !is_made_up(device)
    {
        warn(
            "write-cache",
            format!(
                "{name} answers writes from its cache and carries them out in an order of its own: schedulers order what comes to the cache, no more"
            ),
        );
    }
    let throttle =
        queue.setting("wbt_lat_usec").and_then(|setting| setting.value.parse::<i64>().ok()).filter(|us| *us > 0);
    if let (Some(us), false) = (throttle, queue.scheduler.as_deref() == Some("bfq")) {
        warn(
            "throttling",
            format!(
                "write-back is throttled on {name} so that reads take {} ms (wbt_lat_usec), which is not simulated: beside buffered writes readers fare better \
                 under none, mq-deadline and kyber than is told. bfq switches it off",
                us as f64 / 1000.0
            ),
        );
    }
    warnings
}

/// Which queue counts, where there are several on the way.
fn layers(root: &Root, devices: &[BlockDevice], device: &BlockDevice, warn: &mut impl FnMut(&'static str, String)) {
    let name = &device.name;
    let below: Vec<&BlockDevice> =
        queues_below(root, devices, device).into_iter().filter(|below| below.name != device.name).collect();
    let names: Vec<&str> = below.iter().map(|below| below.name.as_str()).collect();
    let list = listed(&names);
    if schedules_for_paths(device) {
        warn(
            "layers",
            format!(
                "{name} hands its requests to its paths ({}) past their schedulers: its own queue is the one that counts",
                device.slaves.join(", ")
            ),
        );
        return;
    }
    let is_path = |holder: &&BlockDevice| device.holders.contains(&holder.name) && schedules_for_paths(holder);
    if let Some(holder) = devices.iter().find(is_path) {
        warn(
            "layers",
            format!(
                "{name} is a path of {0}, whose queue schedules and passes by what is set here: the one that counts is that of {0} (`hoistway advise {0}`)",
                holder.name
            ),
        );
    }
    if device.kind.is_stacked() || device.kind == Kind::Partition {
        match (below.is_empty(), device.kind) {
            (true, Kind::Loop) => warn(
                "layers",
                format!(
                    "{name} is a file, and on which device that lies is not known: requests to it pass a second queue there, which is the one that has the arm"
                ),
            ),
            (false, Kind::Loop) => warn(
                "layers",
                format!(
                    "{name} is a file on {list}: the queue that counts is that of {list} (`hoistway advise {}`). A scheduler on {name} orders what a second one orders again, and waits that one makes are waits for both",
                    names[0]
                ),
            ),
            (false, Kind::Partition) => {}
            (false, kind) => warn(
                "layers",
                format!(
                    "{name} ({kind}) has no queue of its own with a scheduler: {} {list}{}",
                    if names.len() == 1 {
                        "the queue that counts is that of"
                    } else {
                        "the queues that count are those of"
                    },
                    if names.len() == 1 {
                        ""
                    } else {
                        ". What is simulated is one of them with all the work, of which it has a part"
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
                "{name} is a device that somebody else schedules, too: what lies below is not seen from here, and its own scheduler has the arm, if there is one"
            ),
        );
    }
    above(root, devices, device, warn);
}

/// What lies on a device reaches it by its queue: one that has a scheduler of its own is worth a word.
fn above(root: &Root, devices: &[BlockDevice], device: &BlockDevice, warn: &mut impl FnMut(&'static str, String)) {
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
                "{} lies on {name} and has a scheduler itself ({scheduler}): two in a row; `echo none > /sys/block/{}/queue/scheduler` leaves it to {name}",
                above.name, above.name
            ),
        );
    }
}

/// `sda`, `sda and sdb`, `sda, sdb and sdc`.
fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Whether what it says of itself is somebody's word and not a drive's.
fn is_made_up(device: &BlockDevice) -> bool {
    super::model_of(device).is_some_and(|model| model.standing == super::Standing::Unknown) && !device.kind.is_stacked()
}

/// Beginnings of models that makers of disks use for nothing but disks.
fn named_like_a_disk(device: &BlockDevice) -> bool {
    let model = device.identity.model.as_deref().unwrap_or_default();
    ["ST", "WDC WD", "HGST HU", "TOSHIBA MG", "TOSHIBA DT"].iter().any(|begin| model.starts_with(begin))
        && !model.contains("SSD")
}
