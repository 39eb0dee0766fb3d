//! What control groups do to I/O.

use std::path::PathBuf;

use serde::Serialize;

use crate::device::Number;
use crate::root::{Root, text};

/// What a control group does to the I/O of its processes, of one device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GroupPolicy {
    /// The group's path.
    pub group: String,
    /// `io.weight`, 1 to 10000: counted by the controller io.cost where that is on.
    pub weight: Option<u32>,
    /// `io.bfq.weight`, 1 to 1000: counted by bfq.
    pub bfq_weight: Option<u32>,
    /// `io.latency`: the latency that the group is promised, in us.
    pub latency_us: Option<u64>,
    /// `io.prio.class`: what is made of the class of its processes' priorities; none where they stay.
    pub prio_class: Option<String>,
    /// `io.max`: its limits, as they stand there.
    pub max: Option<String>,
}

impl GroupPolicy {
    /// Whether it says anything.
    fn is_empty(&self) -> bool {
        *self == GroupPolicy { group: self.group.clone(), ..GroupPolicy::default() }
    }
}

/// Where the hierarchies of control groups are mounted: the unified one alone, beside those of version 1, or theirs for block devices. The files of the last
/// are called differently.
const MOUNTS: [(&str, &str); 3] =
    [("/sys/fs/cgroup", "io"), ("/sys/fs/cgroup/unified", "io"), ("/sys/fs/cgroup/blkio", "blkio")];

/// The weight of a group for I/O, `io.weight` (or version 1's `blkio.weight`), if it has one.
pub fn io_weight(root: &Root, group: &str) -> Option<u32> {
    MOUNTS.iter().find_map(|(mount, prefix)| default_of(&text(&file(root, mount, group, &format!("{prefix}.weight")))?))
}

/// What a group and those above it do to the I/O of a device, from the group up; groups that say nothing are left out.
pub fn policies(root: &Root, group: &str, device: Number) -> Vec<GroupPolicy> {
    let mut found = Vec::new();
    let mut at = group.trim_end_matches('/');
    while !at.is_empty() {
        let policy = policy(root, at, device);
        if !policy.is_empty() {
            found.push(policy);
        }
        at = at.rsplit_once('/').map_or("", |(above, _)| above);
    }
    found
}

/// Whether the controller io.cost, which divides a device by `io.weight` whatever its scheduler, is on for a device.
pub fn is_cost_enabled(root: &Root, device: Number) -> bool {
    MOUNTS[..2].iter().any(|(mount, _)| {
        let qos = text(&root.path(format!("{mount}/io.cost.qos"))).unwrap_or_default();
        of_device(&qos, device).is_some_and(|line| line.split_whitespace().any(|word| word == "enable=1"))
    })
}

fn file(root: &Root, mount: &str, group: &str, name: &str) -> PathBuf {
    root.path(mount).join(group.trim_start_matches('/')).join(name)
}

fn policy(root: &Root, group: &str, device: Number) -> GroupPolicy {
    let mut policy = GroupPolicy { group: group.to_owned(), ..GroupPolicy::default() };
    for (mount, prefix) in MOUNTS {
        let read = |name: &str| text(&file(root, mount, group, &format!("{prefix}.{name}")));
        let weight = |name: &str| {
            let text = read(name)?;
            of_device(&text, device).and_then(|weight| weight.parse().ok()).or_else(|| default_of(&text))
        };
        policy.weight = policy.weight.or_else(|| weight("weight"));
        policy.bfq_weight = policy.bfq_weight.or_else(|| weight("bfq.weight"));
        let target = |text: String| of_device(&text, device)?.strip_prefix("target=")?.parse().ok();
        policy.latency_us = policy.latency_us.or_else(|| read("latency").and_then(target));
        let kept = |class: &String| !matches!(class.as_str(), "no-change" | "");
        policy.prio_class = policy.prio_class.or_else(|| read("prio.class").filter(kept));
        policy.max = policy.max.or_else(|| of_device(&read("max")?, device).map(str::to_owned));
    }
    policy
}

/// What is said of a device, in lines that begin with its number.
fn of_device(text: &str, device: Number) -> Option<&str> {
    let number = device.to_string();
    text.lines().find_map(|line| line.strip_prefix(&number)?.strip_prefix(' ')).map(str::trim)
}

/// What is said of all devices: `default 100`, or the number alone.
fn default_of(text: &str) -> Option<u32> {
    let line = text.lines().next()?;
    line.strip_prefix("default ").unwrap_or(line).trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_devices_own_line_counts_before_the_default() {
        let sda = Number { major: 8, minor: 0 };
        let text = "default 100\n8:0 300\n8:01 5\n";
        assert_eq!((default_of(text), of_device(text, sda)), (Some(100), Some("300")));
        assert_eq!(of_device(text, Number { major: 8, minor: 16 }), None);
        assert_eq!(default_of("500\n"), Some(500));
        assert_eq!(default_of("nonsense"), None);
    }
}
