//! The device that is asked about, and the one whose queue counts.

use anyhow::{Result, bail};
use hoistway_advise::facts::{self, Now, Warning};
use hoistway_machine::{BlockDevice, Queue, Root, devices, queues_below, why_no_choice};

use crate::cli::AdviseArgs;
use crate::commands::devices::find_device;

/// A device with a queue.
pub struct Subject {
    pub root: Root,
    /// The one whose queue is to be set.
    pub device: BlockDevice,
    /// The one that was named, where that is another.
    pub named: Option<BlockDevice>,
    /// Others that were named with it: the other disks of an array.
    pub alike: Vec<BlockDevice>,
    pub warnings: Vec<Warning>,
}

/// The machine, or the folder that stands for one.
pub fn root(args: &AdviseArgs) -> Root {
    args.root.as_ref().map_or_else(Root::machine, Root::at)
}

impl Subject {
    /// The device that a person means. One without schedulers of its own - a partition, a volume, an array - leads to what it lies on.
    pub fn find(args: &AdviseArgs, name: &str) -> Result<Subject> {
        let root = root(args);
        let named = find_device(&root, name)?;
        let all = devices(&root)?;
        let has_choice = |device: &BlockDevice| device.queue.as_ref().is_some_and(Queue::has_choice);
        let mut warnings = facts::warnings(&root, &all, &named);
        if has_choice(&named) {
            return Ok(Subject { root, device: named, named: None, alike: Vec::new(), warnings });
        }
        let mut below: Vec<BlockDevice> =
            queues_below(&root, &all, &named).into_iter().filter(|device| has_choice(device)).cloned().collect();
        if below.is_empty() {
            bail!("{}: there is no scheduler to choose: {}", named.name, why_no_choice(&root, &named));
        }
        let device = below.remove(0);
        for warning in facts::warnings(&root, &all, &device) {
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
        Ok(Subject { root, device, named: Some(named), alike: below, warnings })
    }

    /// The queue; whoever is found has one.
    pub fn queue(&self) -> Queue {
        self.device.queue.clone().unwrap_or_default()
    }

    /// What is set on it.
    pub fn now(&self) -> Now {
        facts::now(&self.device, &self.queue())
    }

    /// The device in a line: `sda: ATA WDC WD40EFRX, 4.00 TB, rotating, sata`.
    pub fn line(&self) -> String {
        line(&self.device)
    }
}

/// A device in a line.
pub fn line(device: &BlockDevice) -> String {
    let mut parts = Vec::new();
    let model = device.identity.model.as_deref().map(str::trim).filter(|model| !model.is_empty());
    parts.extend(model.map(str::to_owned));
    if parts.is_empty() {
        parts.push(device.kind.to_string());
    }
    parts.push(crate::figures::bytes(device.bytes));
    match device.queue.as_ref().and_then(|queue| queue.rotational) {
        Some(true) => parts.push("rotating".into()),
        Some(false) => parts.push("not rotating".into()),
        None => {}
    }
    parts.extend(device.identity.transport.map(|transport| transport.label().to_owned()));
    format!("{}: {}", device.name, parts.join(", "))
}
