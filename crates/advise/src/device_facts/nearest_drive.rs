//! The drive and the elevators of a comparison that names none, from the device that a job names.

use hoistway_compare::{CompareDefaults, KERNEL_SCHEDULERS, named_devices};
use hoistway_core::Kind;
use hoistway_fio::JobFile;
use hoistway_machine::{BlockDevice, Queue, Root, devices, find, queues_below};

use super::{candidates, drive_model_below};

/// The built-in drive that stands for a device of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NearestDrive {
    /// The name of the drive.
    pub drive: &'static str,
    /// The whole device; the disk of a partition.
    pub device: BlockDevice,
    /// The reason for the drive, a clause.
    pub why: String,
}

impl NearestDrive {
    /// Finds the drive model nearest to the device that `name` names ([`find`]).
    ///
    /// # Errors
    /// The reason, a clause, if there is no such device, or no drive behind it.
    pub fn new(root: &Root, name: &str) -> Result<NearestDrive, String> {
        let device = find(root, name).map_err(|_| format!("{name} is no device of this machine"))?;
        let all = devices(root).unwrap_or_default();
        NearestDrive::of_device(root, &all, name, device)
    }

    fn of_device(root: &Root, all: &[BlockDevice], name: &str, device: BlockDevice) -> Result<NearestDrive, String> {
        let disk = device.disk.as_ref().and_then(|disk| all.iter().find(|other| other.name == *disk));
        let device = disk.cloned().unwrap_or(device);
        let model = drive_model_below(root, all, &device).ok_or_else(|| format!("{name} has no drive behind it"))?;
        let why = format!("the model nearest to {} of this machine: {}", device.name, model.why);
        Ok(NearestDrive { drive: model.profile, device, why })
    }
}

/// The defaults for these jobs: if a job names a device of the machine (`filename=/dev/sda`), the
/// drive model nearest to it and the schedulers that it offers.
pub fn device_defaults(root: &Root, jobs: &JobFile) -> CompareDefaults {
    let named = named_devices(jobs);
    let found = named.iter().find_map(|name| Some((*name, find(root, name).ok()?)));
    match found {
        Some((name, device)) => of_device(root, name, device, &named),
        None => CompareDefaults::without_machine(jobs),
    }
}

/// The defaults for a device that the jobs name as `name`; `named` are all devices that the
/// jobs name.
fn of_device(root: &Root, name: &str, device: BlockDevice, named: &[&str]) -> CompareDefaults {
    let all = devices(root).unwrap_or_default();
    let (drive, device, why) = match NearestDrive::of_device(root, &all, name, device) {
        Ok(NearestDrive { drive, device, why }) => (drive, device, why),
        Err(why) => return CompareDefaults::of_no_device(format!("a SATA SSD: {why}")),
    };
    let others = match named.len() {
        0 | 1 => String::new(),
        _ => format!("; one drive stands for all of {}", named.join(", ")),
    };
    let (elevators, why_elevators) = offered(root, &all, &device)
        .unwrap_or_else(|| (KERNEL_SCHEDULERS.to_vec(), "those of a current kernel".to_owned()));
    CompareDefaults { drive, why: format!("{why}{others}"), device: Some(device.name), elevators, why_elevators }
}

/// The schedulers that can be set on the queue of a device, or on the first queue below it, in the
/// order of the kernel's documentation; `None` if there is no such queue.
fn offered(root: &Root, all: &[BlockDevice], device: &BlockDevice) -> Option<(Vec<Kind>, String)> {
    let has_choice = |device: &&BlockDevice| device.queue.as_ref().is_some_and(Queue::has_choice);
    let below = || queues_below(root, all, device).into_iter().find(has_choice);
    let scheduled = Some(device).filter(has_choice).or_else(below)?;
    let (can, _) = candidates(root, scheduled, scheduled.queue.as_ref()?);
    let elevators: Vec<Kind> = KERNEL_SCHEDULERS.into_iter().filter(|kind| can.contains(kind)).collect();
    (!elevators.is_empty()).then(|| (elevators, format!("those that {} can be set to", scheduled.name)))
}
