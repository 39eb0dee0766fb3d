//! Checks of assignments before anything is written.

use super::{Assignment, SCHEDULER};
use crate::attribute_info::{
    AttributeInfo, kernel_tunables, module, number_range, setting_info, successor, tunable_infos,
};
use crate::device::BlockDevice;
use crate::installed_modules::is_module_installed;
use crate::kernel_module::{MODULE, MODULE_ELEVATORS, ModuleState};
use crate::kind::Kind;
use crate::queue::{Attribute, Queue};
use crate::root::Root;
use crate::scheduler_names::{PREFIX, is_of_module};
use crate::stacking::hidden_paths;

/// An assignment cannot be carried out. Nothing was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// There are no assignments.
    #[error("no setting is given: a setting is NAME=VALUE, as in scheduler=bfq or read_ahead_kb=128")]
    Nothing,
    /// A name occurs twice.
    #[error("`{name}` is set twice")]
    Twice {
        /// The name.
        name: String,
    },
    /// A partition has no queue of its own.
    #[error("{device} is a partition, which uses its disk's queue: set {disk}")]
    Partition {
        /// The partition.
        device: String,
        /// Its disk.
        disk: String,
    },
    /// The device has no scheduler.
    #[error("{device} has no scheduler to choose: {why}")]
    NoChoice {
        /// The device.
        device: String,
        /// The reason, and the devices that schedule its requests.
        why: String,
    },
    /// The kernel does not offer the scheduler for this device.
    #[error("{device} has no scheduler `{scheduler}`; it has {}{hint}", available.join(", "))]
    Scheduler {
        /// The device.
        device: String,
        /// The scheduler.
        scheduler: String,
        /// The schedulers that the kernel offers.
        available: Vec<String>,
        /// A probable reason and a remedy; may be empty.
        hint: String,
    },
    /// There is no such tunable or setting.
    #[error("{device} under {scheduler} has no setting `{name}`; {}", list_names(scheduler, tunables, settings))]
    Name {
        /// The device.
        device: String,
        /// The scheduler that would be set.
        scheduler: String,
        /// The name.
        name: String,
        /// The tunables of that scheduler.
        tunables: Vec<String>,
        /// The writable settings of the queue.
        settings: Vec<String>,
    },
    /// The setting is read-only.
    #[error("`{name}` of {device} can only be read: it is {value}")]
    ReadOnly {
        /// The device.
        device: String,
        /// The name.
        name: String,
        /// The current value.
        value: String,
    },
    /// The value is outside the range of the file.
    #[error("`{value}` is not a value of {name}: {takes}")]
    Value {
        /// The name.
        name: String,
        /// The value.
        value: String,
        /// The range of the file.
        takes: String,
    },
}

fn list_names(scheduler: &str, tunables: &[String], settings: &[String]) -> String {
    let of_queue = format!("the queue has {}", settings.join(", "));
    match tunables {
        [] => format!("{scheduler} has no tunables, {of_queue}"),
        tunables => format!("{scheduler} has {}; {of_queue}", tunables.join(", ")),
    }
}

/// Checked assignments in the order in which they are written: the scheduler first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsPlan {
    device: BlockDevice,
    /// Each assignment with its file below the device's directory in sysfs.
    steps: Vec<(Assignment, String)>,
}

impl SettingsPlan {
    /// Checks assignments against the device and the described ranges. A scheduler whose module is
    /// installed counts as available.
    ///
    /// # Errors
    /// [`PlanError`] for the first assignment that cannot be carried out.
    pub fn new(root: &Root, device: &BlockDevice, assignments: &[Assignment]) -> Result<SettingsPlan, PlanError> {
        let name = device.name.clone();
        if let Some(disk) = &device.disk {
            return Err(PlanError::Partition { device: name, disk: disk.clone() });
        }
        let Some(queue) = &device.queue else {
            return Err(PlanError::NoChoice { device: name, why: "it has no queue".to_owned() });
        };
        if assignments.is_empty() {
            return Err(PlanError::Nothing);
        }
        let is_repeated = |(index, assignment): &(usize, &Assignment)| {
            assignments[..*index].iter().any(|earlier| earlier.name == assignment.name)
        };
        if let Some((_, twice)) = assignments.iter().enumerate().find(is_repeated) {
            return Err(PlanError::Twice { name: twice.name.clone() });
        }
        let requested = assignments.iter().find(|assignment| assignment.name == SCHEDULER);
        if let Some(requested) = requested {
            check_scheduler(root, device, queue, &requested.value)?;
        }
        let switched_to = requested
            .map(|requested| requested.value.as_str())
            .filter(|requested| Some(*requested) != queue.scheduler.as_deref());
        let scheduler = switched_to.or(queue.scheduler.as_deref()).unwrap_or("none");
        let tunables = tunable_infos(scheduler);
        let mut steps: Vec<_> =
            requested.map(|requested| (requested.clone(), format!("queue/{SCHEDULER}"))).into_iter().collect();
        for assignment in assignments.iter().filter(|assignment| assignment.name != SCHEDULER) {
            let file = AttributeFile::find(device, queue, scheduler, switched_to.is_some(), &assignment.name)?;
            let info = match file.is_tunable {
                true => tunables.iter().find(|info| info.name == assignment.name),
                false => setting_info(&assignment.name),
            };
            let value = checked_value(queue, assignment, info)?;
            steps.push((Assignment::new(&assignment.name, value), file.path));
        }
        Ok(SettingsPlan { device: device.clone(), steps })
    }

    /// The assignments in the order in which they are written, each with its file below the
    /// device's directory in sysfs.
    pub fn steps(&self) -> impl Iterator<Item = (&Assignment, &str)> {
        self.steps.iter().map(|(assignment, file)| (assignment, file.as_str()))
    }

    /// The device to be changed.
    pub fn device(&self) -> &BlockDevice {
        &self.device
    }
}

/// The assignments that reset all tunables of the current scheduler to their defaults, as far as
/// these are known.
pub fn defaults_of(device: &BlockDevice) -> Vec<Assignment> {
    let Some(queue) = &device.queue else { return Vec::new() };
    let infos = tunable_infos(queue.scheduler.as_deref().unwrap_or("none"));
    // slice_idle sets the same time.
    let present = infos.iter().filter(|info| info.name != "slice_idle_us" && queue.tunable(info.name).is_some());
    present.filter_map(|info| Some(Assignment::new(info.name, info.default?.to_string()))).collect()
}

fn check_scheduler(root: &Root, device: &BlockDevice, queue: &Queue, scheduler: &str) -> Result<(), PlanError> {
    if !queue.has_choice() && module(scheduler).is_none_or(|_| queue.hardware_queues.is_none()) {
        return Err(PlanError::NoChoice { device: device.name.clone(), why: why_no_choice(root, device) });
    }
    let is_listed = queue.schedulers.iter().any(|name| name == scheduler);
    if is_listed || module(scheduler).is_some_and(|module| is_module_installed(root, module)) {
        return Ok(());
    }
    let of_module = || of_module_hint(root, scheduler);
    let hint = match (successor(scheduler), module(scheduler)) {
        (Some(successor), _) => format!(
            " ({scheduler} is of kernels before 5.0; its successor is {successor}{})",
            of_module().map_or_else(String::new, |hint| format!("; {hint}"))
        ),
        (_, Some(module)) => {
            format!(" (the kernel was built without it, or its module {module} is not installed below /lib/modules)")
        }
        _ => of_module().map_or_else(String::new, |hint| format!(" ({hint})")),
    };
    let available = queue.schedulers.clone();
    Err(PlanError::Scheduler { device: device.name.clone(), scheduler: scheduler.to_owned(), available, hint })
}

/// How the module `hoistway_iosched` offers a scheduler; `None` for those that it does not offer.
fn of_module_hint(root: &Root, scheduler: &str) -> Option<String> {
    let prefixed = match scheduler {
        "noop" | "deadline" => format!(" as {PREFIX}{scheduler}"),
        _ if is_of_module(scheduler) => String::new(),
        _ => return None,
    };
    let name = scheduler.strip_prefix(PREFIX).unwrap_or(scheduler);
    let parameter = match MODULE_ELEVATORS.contains(&name) {
        true => String::new(),
        false => format!(" with the parameter elevators={name}"),
    };
    Some(match ModuleState::read(root) {
        ModuleState::Absent => format!("the kernel module {MODULE} offers it{prefixed}{parameter}: docs/kernel.md"),
        ModuleState::Installed => format!("`modprobe {MODULE}` offers it{prefixed}{parameter}"),
        ModuleState::Loaded { .. } => {
            format!("the module {MODULE} was loaded without it; it offers it{prefixed}{parameter}")
        }
    })
}

/// Why a device has no scheduler to choose, and which devices schedule its requests.
pub fn why_no_choice(root: &Root, device: &BlockDevice) -> String {
    let below = device.slaves.join(", ");
    let paths = hidden_paths(root, device);
    match device.kind {
        Kind::Zram | Kind::Ram | Kind::Pmem => "it is memory, which has no queue".to_owned(),
        _ if !below.is_empty() => {
            format!("it passes requests on unscheduled; the devices below schedule them: set {below}")
        }
        _ if !paths.is_empty() => {
            let names = paths.join(", ");
            format!(
                "it has several paths, which schedule the requests and which the kernel hides: {names} (as in /sys/block/{}/queue/scheduler)",
                paths[0]
            )
        }
        _ => "its driver passes requests on unscheduled".to_owned(),
    }
}

/// The file of a setting.
struct AttributeFile {
    /// The path below the device's directory in sysfs.
    path: String,
    /// True for a tunable of the scheduler, false for a setting of the queue.
    is_tunable: bool,
}

impl AttributeFile {
    /// The file of a name under the scheduler that will be set; `switches` says whether that is
    /// another than now.
    fn find(
        device: &BlockDevice,
        queue: &Queue,
        scheduler: &str,
        switches: bool,
        name: &str,
    ) -> Result<AttributeFile, PlanError> {
        let existing = |attribute: &Attribute, is_tunable| {
            if attribute.writable {
                return Ok(AttributeFile { path: attribute.file.clone(), is_tunable });
            }
            let (device, name, value) = (device.name.clone(), attribute.name.clone(), attribute.value.clone());
            Err(PlanError::ReadOnly { device, name, value })
        };
        let tunables: Vec<String> = match kernel_tunables(scheduler) {
            _ if !switches => queue.tunables.iter().map(|tunable| tunable.name.clone()).collect(),
            Some(names) => names.iter().map(|name| (*name).to_owned()).collect(),
            // The tunables of an unknown scheduler appear only when it is set.
            None => vec![name.to_owned()],
        };
        if let Some(setting) = queue.setting(name) {
            return existing(setting, false);
        }
        if let Some(tunable) = queue.tunable(name).filter(|_| !switches) {
            return existing(tunable, true);
        }
        if tunables.iter().any(|known| known == name) {
            return Ok(AttributeFile { path: format!("queue/iosched/{name}"), is_tunable: true });
        }
        let settings = queue.settings.iter().filter(|setting| setting.writable).map(|setting| setting.name.clone());
        let (device, scheduler, settings) = (device.name.clone(), scheduler.to_owned(), settings.collect());
        Err(PlanError::Name { device, scheduler, name: name.to_owned(), tunables, settings })
    }
}

/// The value as the kernel takes it, checked against its range. The attribute's own unit may follow
/// a number.
fn checked_value(queue: &Queue, assignment: &Assignment, info: Option<&AttributeInfo>) -> Result<String, PlanError> {
    let Some(info) = info else { return Ok(assignment.value.clone()) };
    let error =
        |takes: String| PlanError::Value { name: assignment.name.clone(), value: assignment.value.clone(), takes };
    if !info.words.is_empty() {
        let plain = assignment.value.replace(['-', '_'], " ");
        let known = info.words.iter().find(|known| **known == plain);
        return known
            .map(|known| (*known).to_owned())
            .ok_or_else(|| error(format!("it takes {}", info.words.join(" or "))));
    }
    let max = hardware_limit(queue, info).unwrap_or(info.max);
    let range = number_range(info.min, max, "a number");
    let takes = || match info.unit {
        "" | "0/1" => format!("it takes {range}"),
        unit => format!("it takes {range} {unit}"),
    };
    let number = assignment.value.strip_suffix(info.unit).unwrap_or(&assignment.value).trim_end();
    match number.parse::<i64>() {
        Ok(number) if (info.min..=max).contains(&number) => Ok(number.to_string()),
        _ => Err(error(takes())),
    }
}

/// The upper limit that the device itself reports for a setting.
fn hardware_limit(queue: &Queue, info: &AttributeInfo) -> Option<i64> {
    let limit = match info.name {
        "max_sectors_kb" => "max_hw_sectors_kb",
        "discard_max_bytes" => "discard_max_hw_bytes",
        _ => return None,
    };
    queue.setting(limit)?.value.parse().ok()
}
