//! The device of advice, whose queue orders requests.

use hoistway_machine::{BlockDevice, Queue, Root, queues_below, why_no_choice};
use hoistway_units::figures::bytes;

use crate::device_facts::{self, CurrentSettings, Warning};

/// A device whose scheduler can be set.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The machine.
    pub root: Root,
    /// The device whose queue is to be set.
    pub device: BlockDevice,
    /// The device that the user named, if that is another: a partition, a volume, an array.
    pub named: Option<BlockDevice>,
    /// Further devices below the named one: the other disks of an array.
    pub alike: Vec<BlockDevice>,
    /// The model of the drive behind the device; `None` if no drive is behind it.
    pub drive_model: Option<device_facts::DriveModel>,
    /// Facts to know before the advice is trusted.
    pub warnings: Vec<Warning>,
}

/// Neither the device nor any device below it has a scheduler to choose.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{device}: there is no scheduler to choose: {why}")]
pub struct NoSchedulerError {
    /// The device.
    pub device: String,
    /// The reason.
    pub why: String,
}

impl Subject {
    /// Finds the device whose queue orders the requests of the named one. A device without a
    /// scheduler of its own - a partition, a volume, an array - leads to the devices below it.
    ///
    /// # Errors
    /// [`NoSchedulerError`] if neither the device nor a device below it has a scheduler to choose.
    pub fn new(root: Root, devices: &[BlockDevice], named: BlockDevice) -> Result<Subject, NoSchedulerError> {
        let has_choice = |device: &BlockDevice| device.queue.as_ref().is_some_and(Queue::has_choice);
        let mut warnings = device_facts::warnings(&root, devices, &named);
        if has_choice(&named) {
            let drive_model = device_facts::drive_model_below(&root, devices, &named);
            return Ok(Subject { root, device: named, named: None, alike: Vec::new(), drive_model, warnings });
        }
        let mut below: Vec<BlockDevice> =
            queues_below(&root, devices, &named).into_iter().filter(|device| has_choice(device)).cloned().collect();
        if below.is_empty() {
            return Err(NoSchedulerError { why: why_no_choice(&root, &named), device: named.name });
        }
        let device = below.remove(0);
        for warning in device_facts::warnings(&root, devices, &device) {
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
        let drive_model = device_facts::drive_model_below(&root, devices, &device);
        Ok(Subject { root, device, named: Some(named), alike: below, drive_model, warnings })
    }

    /// The queue of the device.
    pub fn queue(&self) -> Queue {
        self.device.queue.clone().unwrap_or_default()
    }

    /// The scheduler and tunables that are set on the device.
    pub fn current(&self) -> CurrentSettings {
        device_facts::current_settings(&self.device, &self.queue())
    }

    /// The device to be set, and the others like it.
    pub fn devices(&self) -> impl Iterator<Item = &BlockDevice> {
        std::iter::once(&self.device).chain(&self.alike)
    }

    /// The device in one line: `sda: ATA WDC WD40EFRX, 4.00 TB, rotating, sata`.
    pub fn line(&self) -> String {
        device_line(&self.device)
    }
}

/// A device in one line: name, model or kind, size, rotation, transport.
pub fn device_line(device: &BlockDevice) -> String {
    let model = device.identity.model.as_deref().map(str::trim).filter(|model| !model.is_empty());
    let mut parts = vec![model.map_or_else(|| device.kind.to_string(), str::to_owned), bytes(device.bytes)];
    match device.queue.as_ref().and_then(|queue| queue.rotational) {
        Some(true) => parts.push("rotating".into()),
        Some(false) => parts.push("not rotating".into()),
        None => {}
    }
    parts.extend(device.identity.transport.map(|transport| transport.label().to_owned()));
    format!("{}: {}", device.name, parts.join(", "))
}
