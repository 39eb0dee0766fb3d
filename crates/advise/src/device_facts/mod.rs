//! Facts about a block device that advice depends on: the drive model that stands for it, its
//! present settings, the schedulers that can be set, and warnings.

mod drive_model;
mod nearest_drive;
mod warnings;

use hoistway_core::Kind;
use hoistway_machine::{Assignment, BlockDevice, Queue, Root, SettingsPlan, WriteCache, elevator_of_scheduler};
use hoistway_sim::{HostConfig, Kernel};

use crate::choice::Choice;
pub(crate) use hoistway_compare::scheduler_name;

pub use drive_model::{DriveModel, ModelQuality, drive_model, drive_model_below};
pub use nearest_drive::{NearestDrive, device_defaults};
pub use warnings::{PriorityUse, Warning, priority_use, warnings};

/// The default host: the block layer of Linux 6.1, 4 processors and 8 GiB.
pub fn usual_host() -> HostConfig {
    let mut host = HostConfig::kernel(Kernel::V6_1);
    host.cpus = 4;
    // Nine tenths of 8 GiB are page cache.
    host.page_cache_mib = 8192 * 9 / 10;
    host
}

/// The kernel allocates two requests for each that the device takes at once, up to this depth.
const DEPTH_MAX: u32 = 128;

/// The host with the settings of a device's queue.
pub fn host_of(queue: &Queue, host: HostConfig) -> HostConfig {
    let mut host = host;
    // Settings that do not parse keep the default.
    let setting = |name: &str| queue.setting(name).and_then(|setting| setting.value.parse::<u64>().ok());
    if let Some(kib) = setting("read_ahead_kb") {
        host.read_ahead_kib = kib.min(65_536);
    }
    if let Some(kib) = setting("max_sectors_kb") {
        host.queue.max_sectors = u32::try_from(kib.saturating_mul(2)).unwrap_or(u32::MAX).clamp(8, 65_536);
    }
    // bfq switches the throttling of write-back off, and the other choices have it again.
    match setting("wbt_lat_usec") {
        Some(0) if queue.scheduler.as_deref() != Some("bfq") => host.write_back_throttling = false,
        Some(latency_us) => host.write_back_latency_us = latency_us.min(10_000_000),
        None => {}
    }
    host.depth_max = queue.device_depth;
    host.write_back_cache = queue.write_cache.map(|cache| cache == WriteCache::Back);
    let has_scheduler = queue.scheduler.as_deref().is_some_and(|name| name != "none");
    let usual = queue.device_depth.map(|depth| depth.clamp(1, DEPTH_MAX) * 2);
    // Without a scheduler nr_requests is the device's own number, and the kernel changes it when a
    // scheduler is set.
    if let (true, Some(requests)) = (has_scheduler, queue.nr_requests)
        && usual.is_some_and(|usual| usual != requests)
    {
        host.queue.nr_requests = Some(requests.clamp(4, 65_536));
        host.pool_follows_drive = false;
    }
    host
}

/// The drive model without a write cache if the device writes through.
pub fn profile_as_set(queue: &Queue, profile: hoistway_drive::Profile) -> hoistway_drive::Profile {
    match queue.write_cache {
        Some(WriteCache::Through) => profile.without_write_cache(),
        _ => profile,
    }
}

/// The scheduler and tunables that are set on a queue.
#[derive(Clone, Debug, PartialEq)]
pub struct CurrentSettings {
    /// The scheduler with its tunables. For an unknown scheduler the one that Linux sets by
    /// default.
    pub choice: Choice,
    /// The name of an unknown scheduler.
    pub unknown_scheduler: Option<String>,
    /// Names of tunables that are unknown, or whose values are out of range.
    pub unknown_tunables: Vec<String>,
}

/// Reads the scheduler and tunables of a queue.
pub fn current_settings(device: &BlockDevice, queue: &Queue) -> CurrentSettings {
    let name = queue.scheduler.as_deref().unwrap_or("none");
    match kind_of(name) {
        Some(kind) => {
            let files = queue.tunables.iter().map(|tunable| (tunable.name.as_str(), tunable.value.as_str()));
            let (choice, unknown_tunables) = Choice::as_set(kind, files);
            CurrentSettings { choice, unknown_scheduler: None, unknown_tunables }
        }
        None => CurrentSettings {
            choice: Choice::plain(usual_scheduler(device.kind == hoistway_machine::Kind::Nvme)),
            unknown_scheduler: Some(name.to_owned()),
            unknown_tunables: Vec::new(),
        },
    }
}

/// The elevator of a scheduler name of the kernel; `none` is the elevator noop. Schedulers of the
/// module `hoistway_iosched` may have the prefix `h-`.
pub fn kind_of(name: &str) -> Option<Kind> {
    elevator_of_scheduler(name)
}

/// The scheduler that Linux sets by default: none with several hardware queues, as NVMe has them,
/// else mq-deadline.
pub fn usual_scheduler(has_several_queues: bool) -> Kind {
    if has_several_queues { Kind::Noop } else { Kind::MqDeadline }
}

/// The schedulers that can be set on a device, listed by its queue or in an installed module, and
/// the schedulers of current kernels that cannot.
pub fn candidates(root: &Root, device: &BlockDevice, queue: &Queue) -> (Vec<Kind>, Vec<&'static str>) {
    let mut can: Vec<Kind> = Vec::new();
    for kind in queue.schedulers.iter().filter_map(|name| kind_of(name)) {
        // The kernel's bfq and h-bfq of the module are one choice.
        if !can.contains(&kind) {
            can.push(kind);
        }
    }
    let in_module = |kind: &Kind| {
        let assignment = Assignment::new("scheduler", scheduler_name(*kind));
        SettingsPlan::new(root, device, &[assignment]).is_ok()
    };
    can.extend(
        hoistway_compare::KERNEL_SCHEDULERS
            .iter()
            .filter(|kind| !can.contains(kind))
            .copied()
            .filter(in_module)
            .collect::<Vec<_>>(),
    );
    let cannot = hoistway_compare::KERNEL_SCHEDULERS
        .iter()
        .filter(|kind| !can.contains(kind))
        .map(|kind| scheduler_name(*kind))
        .collect();
    (can, cannot)
}
