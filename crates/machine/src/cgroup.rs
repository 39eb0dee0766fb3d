//! I/O weights, limits and policies of control groups.

use std::path::PathBuf;

use serde::Serialize;

use crate::device_number::DeviceNumber;
use crate::files::read_text;
use crate::root::Root;

/// The I/O policy of a control group for one device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GroupPolicy {
    /// The path of the group.
    pub group: String,
    /// `io.weight`, 1 to 10000, applied by the io.cost controller.
    pub weight: Option<u32>,
    /// `io.bfq.weight`, 1 to 1000, applied by bfq.
    pub bfq_weight: Option<u32>,
    /// `io.latency`: the latency target of the group, in us.
    pub latency_us: Option<u64>,
    /// `io.prio.class`: how the group changes I/O priority classes; `None` if it does not.
    pub prio_class: Option<String>,
    /// `io.max`: the limits as the kernel formats them.
    pub max: Option<String>,
}

impl GroupPolicy {
    /// Returns true if the group has no policy.
    fn is_empty(&self) -> bool {
        *self == GroupPolicy { group: self.group.clone(), ..GroupPolicy::default() }
    }
}

/// Mount points of the hierarchies, with the prefix of their files: the unified hierarchy alone,
/// the unified one beside version 1, and the block device controller of version 1.
const MOUNTS: [(&str, &str); 3] =
    [("/sys/fs/cgroup", "io"), ("/sys/fs/cgroup/unified", "io"), ("/sys/fs/cgroup/blkio", "blkio")];

/// The I/O weight of a group: `io.weight`, or `blkio.weight` of version 1.
pub fn io_weight(root: &Root, group: &str) -> Option<u32> {
    MOUNTS
        .iter()
        .find_map(|(mount, prefix)| default_of(&read_text(&file(root, mount, group, &format!("{prefix}.weight")))?))
}

/// The policies of a group and its ancestors for one device, the group itself first. Groups without
/// a policy are left out.
pub fn policies(root: &Root, group: &str, device: DeviceNumber) -> Vec<GroupPolicy> {
    let mut found = Vec::new();
    let mut path = group.trim_end_matches('/');
    while !path.is_empty() {
        let policy = policy(root, path, device);
        if !policy.is_empty() {
            found.push(policy);
        }
        path = path.rsplit_once('/').map_or("", |(parent, _)| parent);
    }
    found
}

/// Returns true if the io.cost controller is enabled for a device. It divides the device by
/// `io.weight` under any scheduler.
pub fn is_cost_enabled(root: &Root, device: DeviceNumber) -> bool {
    MOUNTS[..2].iter().any(|(mount, _)| {
        let qos = read_text(&root.path(format!("{mount}/io.cost.qos"))).unwrap_or_default();
        of_device(&qos, device).is_some_and(|line| line.split_whitespace().any(|word| word == "enable=1"))
    })
}

fn file(root: &Root, mount: &str, group: &str, name: &str) -> PathBuf {
    root.path(mount).join(group.trim_start_matches('/')).join(name)
}

fn policy(root: &Root, group: &str, device: DeviceNumber) -> GroupPolicy {
    let mut policy = GroupPolicy { group: group.to_owned(), ..GroupPolicy::default() };
    for (mount, prefix) in MOUNTS {
        let read = |name: &str| read_text(&file(root, mount, group, &format!("{prefix}.{name}")));
        let weight = |name: &str| {
            let text = read(name)?;
            of_device(&text, device).and_then(|weight| weight.parse().ok()).or_else(|| default_of(&text))
        };
        policy.weight = policy.weight.or_else(|| weight("weight"));
        policy.bfq_weight = policy.bfq_weight.or_else(|| weight("bfq.weight"));
        let target = |text: String| of_device(&text, device)?.strip_prefix("target=")?.parse().ok();
        policy.latency_us = policy.latency_us.or_else(|| read("latency").and_then(target));
        let changes_class = |class: &String| !matches!(class.as_str(), "no-change" | "");
        policy.prio_class = policy.prio_class.or_else(|| read("prio.class").filter(changes_class));
        policy.max = policy.max.or_else(|| of_device(&read("max")?, device).map(str::to_owned));
    }
    policy
}

/// The value for a device, from the line that starts with the device number.
fn of_device(text: &str, device: DeviceNumber) -> Option<&str> {
    let number = device.to_string();
    text.lines().find_map(|line| line.strip_prefix(&number)?.strip_prefix(' ')).map(str::trim)
}

/// The default value for all devices: `default 100`, or the number alone.
fn default_of(text: &str) -> Option<u32> {
    let line = text.lines().next()?;
    line.strip_prefix("default ").unwrap_or(line).trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_a_device_overrides_the_default() {
        let sda = DeviceNumber { major: 8, minor: 0 };
        let text = "default 100\n8:0 300\n8:01 5\n";
        assert_eq!((default_of(text), of_device(text, sda)), (Some(100), Some("300")));
        assert_eq!(of_device(text, DeviceNumber { major: 8, minor: 16 }), None);
        assert_eq!(default_of("500\n"), Some(500));
        assert_eq!(default_of("nonsense"), None);
    }
}
