//! What is known of a device of the machine: which model stands for it, what is set, and what should be said before anybody believes the advice.

mod model;
mod warnings;

use hoistway_core::Kind;
use hoistway_machine::{Assignment, BlockDevice, Queue, Root, SettingsPlan, WriteCache};
use hoistway_sim::{HostConfig, Kernel};

use crate::choice::Choice;
pub(crate) use crate::choice::scheduler_name;

pub use model::{Model, Standing, model_of, model_under};
pub use warnings::{Effect, Warning, effect_of_priorities, warnings};

/// The host that stands for a machine of today, where nothing else is said: memory and processors of a modest one.
pub fn usual_host() -> HostConfig {
    let mut host = HostConfig::kernel(Kernel::V6_1);
    host.cpus = 4;
    // Nine tenths of 8 GiB.
    host.page_cache_mib = 8192 * 9 / 10;
    host
}

/// The kernel takes two requests for each that the device takes at once, and looks no further than this.
const DEPTH_MAX: u32 = 128;

/// The host with what is set of a device's queue, and what of it is not simulated.
pub fn host_of(queue: &Queue, host: HostConfig) -> HostConfig {
    let mut host = host;
    let setting = |name: &str| queue.setting(name).and_then(|setting| setting.value.parse::<u64>().ok());
    if let Some(kib) = setting("read_ahead_kb") {
        host.read_ahead_kib = kib.min(65_536);
    }
    if let Some(kib) = setting("max_sectors_kb") {
        host.queue.max_sectors = u32::try_from(kib.saturating_mul(2)).unwrap_or(u32::MAX).clamp(8, 65_536);
    }
    host.depth_max = queue.device_depth;
    let has_scheduler = queue.scheduler.as_deref().is_some_and(|name| name != "none");
    let usual = queue.device_depth.map(|depth| depth.clamp(1, DEPTH_MAX) * 2);
    // Without a scheduler it is the device's own number, and the kernel makes another of it as soon as there is one.
    if let (true, Some(requests)) = (has_scheduler, queue.nr_requests)
        && usual.is_some_and(|usual| usual != requests)
    {
        host.queue.nr_requests = Some(requests.clamp(4, 65_536));
        host.pool_follows_drive = false;
    }
    host
}

/// The drive's model as the device is: what answers when writes are durable has no write cache.
pub fn profile_as_set(queue: &Queue, profile: hoistway_drive::Profile) -> hoistway_drive::Profile {
    match queue.write_cache {
        Some(WriteCache::Through) => profile.without_write_cache(),
        _ => profile,
    }
}

/// What is set on a queue.
#[derive(Clone, Debug, PartialEq)]
pub struct Now {
    /// The scheduler with its tunables, as far as they are known here.
    pub choice: Choice,
    /// What stands in the kernel's file, where that is a scheduler that is not known here: `choice` is what the kernel sets by itself then.
    pub unknown_scheduler: Option<String>,
    /// Tunables that are not known here.
    pub unknown_tunables: Vec<String>,
}

/// What is set on a device's queue.
pub fn now(device: &BlockDevice, queue: &Queue) -> Now {
    let name = queue.scheduler.as_deref().unwrap_or("none");
    match kind_of(name) {
        Some(kind) => {
            let files = queue.tunables.iter().map(|tunable| (tunable.name.as_str(), tunable.value.as_str()));
            let (choice, unknown_tunables) = Choice::as_set(kind, files);
            Now { choice, unknown_scheduler: None, unknown_tunables }
        }
        None => Now {
            choice: Choice::plain(usual_scheduler(device.kind == hoistway_machine::Kind::Nvme)),
            unknown_scheduler: Some(name.to_owned()),
            unknown_tunables: Vec::new(),
        },
    }
}

/// The scheduler that the kernel calls by this name.
pub fn kind_of(name: &str) -> Option<Kind> {
    if name == "none" { Some(Kind::Noop) } else { Kind::from_name(name) }
}

/// What Linux sets by itself: none where there are several hardware queues, as NVMe has them, or else mq-deadline.
pub fn usual_scheduler(has_several_queues: bool) -> Kind {
    if has_several_queues { Kind::Noop } else { Kind::MqDeadline }
}

/// The schedulers that can be set on a device - those that its queue lists, and those of today's whose module is installed - and those of today's that cannot.
pub fn candidates(root: &Root, device: &BlockDevice, queue: &Queue) -> (Vec<Kind>, Vec<&'static str>) {
    let mut can: Vec<Kind> = queue.schedulers.iter().filter_map(|name| kind_of(name)).collect();
    let in_module = |kind: &Kind| {
        let assignment = Assignment::new("scheduler", scheduler_name(*kind));
        SettingsPlan::new(root, device, &[assignment]).is_ok()
    };
    can.extend(crate::TODAY.iter().filter(|kind| !can.contains(kind)).copied().filter(in_module).collect::<Vec<_>>());
    let cannot = crate::TODAY.iter().filter(|kind| !can.contains(kind)).map(|kind| scheduler_name(*kind)).collect();
    (can, cannot)
}
