//! The answer of `hoistway devices`: block devices with what is computed about them.

use serde::Serialize;

use crate::device::{BlockDevice, Opener};
use crate::devices::openers;
use crate::kind::Kind;
use crate::queue::Queue;
use crate::root::Root;
use crate::stacking::{directly_below, queues_below, schedules_for_paths, scheduling_holder};

/// Block devices; docs/devices.md describes the serialised fields.
///
/// ```
/// use hoistway_machine::{Inventory, Root, devices};
/// let root = Root::machine();
/// if let Ok(devices) = devices(&root) {
///     let inventory = Inventory::of_all(&root, &devices);
///     assert_eq!(inventory.devices.len(), devices.len());
/// }
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct Inventory {
    /// The version of the serialised form: 1.
    pub schema: u32,
    /// The devices.
    pub devices: Vec<DeviceReport>,
}

/// A device with the devices below it.
#[derive(Clone, Debug, Serialize)]
pub struct DeviceReport {
    /// The device; its queue is moved to [`DeviceReport::queue`].
    #[serde(flatten)]
    pub device: BlockDevice,
    /// The queue; `None` for a partition.
    pub queue: Option<QueueReport>,
    /// The devices one level below.
    #[serde(rename = "lies_on")]
    pub below: Vec<String>,
    /// The devices whose queues order the requests last.
    pub queued_at: Vec<String>,
    /// The processes that have the device open; `None` if they were not looked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_by: Option<Vec<Opener>>,
}

/// A queue with its depth.
#[derive(Clone, Debug, Serialize)]
pub struct QueueReport {
    /// The queue as it was read.
    #[serde(flatten)]
    pub queue: Queue,
    /// The requests that the device has at once at most: [`Queue::depth`].
    pub depth: Option<u32>,
}

impl Inventory {
    /// The report of all devices, without the processes that have them open.
    pub fn of_all(root: &Root, devices: &[BlockDevice]) -> Inventory {
        let reports = devices.iter().map(|device| DeviceReport::new(root, devices, device));
        Inventory { schema: 1, devices: reports.collect() }
    }

    /// The report of one device, with the processes that have it open.
    pub fn of_one(root: &Root, devices: &[BlockDevice], device: &BlockDevice) -> Inventory {
        let open_by = Some(openers(root, device));
        Inventory { schema: 1, devices: vec![DeviceReport { open_by, ..DeviceReport::new(root, devices, device) }] }
    }
}

impl DeviceReport {
    fn new(root: &Root, devices: &[BlockDevice], device: &BlockDevice) -> DeviceReport {
        let names = |of: Vec<&BlockDevice>| of.into_iter().map(|device| device.name.clone()).collect();
        let (below, queued_at) =
            (names(directly_below(root, devices, device)), names(queues_below(root, devices, device)));
        let mut device = device.clone();
        let queue = device.queue.take().map(|queue| QueueReport { depth: queue.depth(), queue });
        DeviceReport { device, queue, below, queued_at, open_by: None }
    }
}

/// Remarks about a device's queue: settings that hide a scheduler or make it wait in vain. A
/// sentence each.
pub fn queue_remarks(devices: &[BlockDevice], device: &BlockDevice) -> Vec<String> {
    let Some(queue) = &device.queue else { return Vec::new() };
    let mut remarks = Vec::new();
    let name = &device.name;
    if let Some(holder) = scheduling_holder(devices, device) {
        remarks.push(format!(
            "It is a path of {0}, which schedules requests and bypasses the scheduler set here: `hoistway devices {0}`.",
            holder.name
        ));
    }
    if device.kind.is_virtual() && queue.rotational == Some(true) {
        remarks.push(format!(
            "It reports that it rotates, as virtual disks often do whatever storage is below; bfq then waits for a disk arm. If it is flash: \
             hoistway devices set {name} rotational=0"
        ));
    }
    let depth = queue.device_depth.unwrap_or(0);
    if depth > 1 && queue.rotational == Some(true) && queue.scheduler.as_deref() != Some("none") {
        remarks.push(format!(
            "The disk takes {depth} requests at once and orders them itself: the scheduler only decides which requests are among them. \
             queue_depth=1 leaves the order to the scheduler."
        ));
    }
    if schedules_for_paths(device) {
        let paths = device.slaves.join(", ");
        remarks.push(format!(
            "It sends its requests to its paths ({paths}) past their schedulers: only its own scheduler is used."
        ));
    } else if queue.has_choice() && device.kind.is_stacked() {
        remarks.push(
            "It is stacked on another device: two schedulers would order requests, and only the lower one controls the disk."
                .to_owned(),
        );
    }
    remarks
}

/// The queues that order the requests of a device without a scheduler of its own, each with its
/// scheduler: `sda (bfq)`. Empty for a device that has its own queue or is memory.
pub fn queues_instead(root: &Root, devices: &[BlockDevice], device: &BlockDevice) -> Vec<String> {
    let below = queues_below(root, devices, device);
    if device.kind == Kind::Zram || below.iter().any(|other| other.number == device.number) {
        return Vec::new();
    }
    let text = |other: &&BlockDevice| {
        let scheduler = other.queue.as_ref().and_then(|queue| queue.scheduler.as_deref()).unwrap_or("nothing");
        format!("{} ({scheduler})", other.name)
    };
    below.iter().map(text).collect()
}
