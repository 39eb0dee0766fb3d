//! The answer of `hoistway advise` without a workload: the settings of each device, and remarks.

use hoistway_machine::{BlockDevice, Kind, MODULE, MODULE_ELEVATORS, ModuleState, Root, queues_below, why_no_choice};
use serde::Serialize;

use crate::device_facts::{self, ModelQuality, Warning};
use crate::subject::device_line;
use hoistway_compare::scheduler_name;

/// Descriptions of devices without a workload.
#[derive(Clone, Debug, Serialize)]
pub struct Overview {
    /// The version of the serialised form: 1.
    pub schema: u32,
    /// The devices, drives before devices that are made of them.
    pub devices: Vec<DeviceOverview>,
    /// A sentence about the kernel module `hoistway_iosched`: its state, or where it is described.
    pub module: String,
}

/// The description of a device without a workload.
#[derive(Clone, Debug, Serialize)]
pub struct DeviceOverview {
    /// The name of the device.
    pub name: String,
    /// The device in one line.
    pub line: String,
    /// True for a loop device.
    #[serde(skip)]
    pub is_loop: bool,
    /// The active scheduler.
    pub scheduler: Option<String>,
    /// The available schedulers.
    pub schedulers: Vec<String>,
    /// Tunables that differ from their defaults.
    pub tunables: Vec<(String, i64)>,
    /// The name of the drive model.
    pub model: Option<String>,
    /// How well the model matches the drive.
    pub standing: Option<ModelQuality>,
    /// Remarks on model and scheduler, a sentence each.
    pub said: Vec<String>,
    /// Facts to know before advice on the device is trusted.
    pub warnings: Vec<Warning>,
}

impl Overview {
    /// Describes the device `only`, or all devices with a medium except partitions and optical
    /// drives.
    pub fn new(root: &Root, devices: &[BlockDevice], only: Option<&BlockDevice>) -> Overview {
        let is_shown =
            |device: &&BlockDevice| device.is_present() && !matches!(device.kind, Kind::Partition | Kind::Rom);
        let mut shown: Vec<&BlockDevice> = match only {
            Some(device) => vec![device],
            None => devices.iter().filter(is_shown).collect(),
        };
        shown.sort_by_key(|device| device.kind.is_stacked() || device.kind.is_memory());
        let devices = shown.iter().map(|device| DeviceOverview::new(root, devices, device)).collect();
        let module = ModuleState::read(root).sentence(None).unwrap_or_else(|| {
            format!(
                "The kernel module {MODULE}, which is not installed, would add the schedulers {}: docs/kernel.md.",
                MODULE_ELEVATORS.join(", ")
            )
        });
        Overview { schema: 1, devices, module }
    }
}

impl DeviceOverview {
    fn new(root: &Root, all: &[BlockDevice], device: &BlockDevice) -> DeviceOverview {
        let queue = device.queue.clone().unwrap_or_default();
        let current = device_facts::current_settings(device, &queue);
        let has_choice = queue.has_choice();
        let model = device_facts::drive_model_below(root, all, device).filter(|_| has_choice);
        let mut said = Vec::new();
        match (has_choice, &model) {
            (true, Some(model)) => said.push(format!("simulated as {}: {}", model.profile, model.why)),
            (true, None) => said.push("there is no drive below it, so there is nothing to simulate".into()),
            (false, _) => said.push(no_choice(root, all, device)),
        }
        if let Some(unknown) = &current.unknown_scheduler {
            said.push(format!(
                "the scheduler {unknown} is unknown to hoistway: {} is simulated in its place",
                scheduler_name(current.choice.kind)
            ));
        }
        let tunables = current.choice.tunables.iter().map(|(name, value)| ((*name).to_owned(), *value));
        DeviceOverview {
            name: device.name.clone(),
            line: device_line(device),
            is_loop: device.kind == Kind::Loop,
            scheduler: queue.scheduler.clone(),
            schedulers: queue.schedulers.clone(),
            tunables: tunables.collect(),
            model: model.as_ref().map(|model| model.profile.to_owned()),
            standing: model.as_ref().map(|model| model.quality),
            said,
            warnings: device_facts::warnings(root, all, device),
        }
    }

    /// Returns true if the texts of two devices differ only in the names of the devices.
    pub fn reads_as(&self, other: &DeviceOverview) -> bool {
        let texts = |entry: &DeviceOverview| {
            let warnings = entry.warnings.iter().map(|warning| &warning.text);
            let all = std::iter::once(&entry.line).chain(&entry.said).chain(warnings);
            all.map(|text| text.replace(&entry.name, "it")).collect::<Vec<_>>()
        };
        (&self.scheduler, &self.schedulers, &self.tunables) == (&other.scheduler, &other.schedulers, &other.tunables)
            && texts(self) == texts(other)
    }
}

/// Returns why a device has no scheduler to choose, as a clause.
fn no_choice(root: &Root, all: &[BlockDevice], device: &BlockDevice) -> String {
    if device.kind.is_memory() {
        return "memory: there is no arm, and nothing to schedule".into();
    }
    let below: Vec<&str> = queues_below(root, all, device)
        .into_iter()
        .filter(|below| below.name != device.name)
        .map(|below| below.name.as_str())
        .collect();
    match below.as_slice() {
        [] => format!("no scheduler to choose: {}", why_no_choice(root, device)),
        [below] => format!("no scheduler of its own: the queue of {below} schedules its requests"),
        below => format!("no scheduler of its own: the queues of {} schedule its requests", below.join(", ")),
    }
}
