//! Control groups as groups of a device: each with its weight below its parent, as the kernel's elevators that know groups have them.

use std::fs;
use std::path::Path;

use hoistway_serve::device::{Device, JoinError, MemberId, TermsError};
use hoistway_serve::engine::Process;
use hoistway_serve::tenant::{Limits, Terms};

use super::queue::Queue;
use crate::seldom::Seldom;

/// Where the unified hierarchy is (cgroups(7)).
const ROOT: &str = "/sys/fs/cgroup";
/// A weight unless told.
const WEIGHT: u16 = 100;
/// Control groups below this many others count as part of the last of them.
const DEPTH_MAX: usize = 16;

/// Takes a process in as one of its control group, which is made a tenant of the device below groups for those that it lies in. `weights` are theirs, the outermost first.
pub(super) fn join(
    device: &mut Device,
    process: &Process,
    weights: &[u16],
    now_ns: u64,
) -> Result<MemberId, JoinError> {
    let ways: Vec<&str> = ways(&process.cgroup);
    let Some((own, above)) = ways.split_last() else { return device.join(None, Some(process), now_ns) };
    if device.terms(own).is_none() {
        // What is not known is found out when they are looked at next.
        let weight = |at: usize| weights.get(at).copied().unwrap_or(WEIGHT);
        let mut parent: Option<&str> = None;
        for (at, group) in above.iter().enumerate() {
            if let Err(error) = device.set_group(group, parent, weight(at), &Limits::default(), now_ns) {
                refused(group, &error, now_ns);
                return device.join(None, Some(process), now_ns);
            }
            parent = Some(group);
        }
        let terms = Terms { weight: weight(above.len()), parent: parent.map(str::to_owned), ..Terms::default() };
        if let Err(error) = device.set_tenant(own, &terms, now_ns) {
            refused(own, &error, now_ns);
            return device.join(None, Some(process), now_ns);
        }
    }
    device.join(Some(own), Some(process), now_ns)
}

/// A control group could not be made one of the device's: who is in it is nobody's but his own.
fn refused(cgroup: &str, error: &TermsError, now_ns: u64) {
    static REFUSED: Seldom = Seldom::new();
    if let Some(left_out) = REFUSED.line(now_ns) {
        tracing::warn!(cgroup, left_out, "{error}");
    }
}

/// The weights of a control group and of all that it lies in, the outermost first.
pub(super) fn weights(cgroup: &str) -> Vec<u16> {
    ways(cgroup).into_iter().map(|way| weight(way).unwrap_or(WEIGHT)).collect()
}

/// Reads the weights of a queue's control groups anew, and forgets those that are gone and that nobody is in. `weight` tells them, `None` of one that is gone; it is asked
/// while others use the queue.
pub(super) fn refresh(queue: &Queue, now_ns: u64, weight: &dyn Fn(&str) -> Option<u16>) {
    let known: Vec<(String, u16)> = {
        let state = queue.lock();
        let own = state.device.accounts().map(|(tenant, _)| tenant).filter(|tenant| tenant.starts_with('/'));
        own.filter_map(|tenant| Some((tenant.to_owned(), state.device.terms(tenant)?.weight))).collect()
    };
    for (tenant, before) in known {
        let now = weight(&tenant);
        if now == Some(before) {
            continue;
        }
        let mut state = queue.lock();
        let device = &mut state.device;
        match (now, device.terms(&tenant).cloned()) {
            // Somebody may still have requests under way: then it is tried again.
            (None, _) => drop(device.remove_tenant(&tenant, now_ns)),
            (Some(weight), Some(terms)) => {
                let set = device.set_tenant(&tenant, &Terms { weight, ..terms }, now_ns);
                tracing::info!(cgroup = tenant, weight, ok = set.is_ok(), "the weight of a control group has changed");
            }
            (Some(_), None) => {}
        }
    }
}

/// The weight of a control group now; `None` if there is none.
pub(super) fn weight(cgroup: &str) -> Option<u16> {
    let root = Path::new(ROOT);
    root.join(cgroup.trim_start_matches('/')).exists().then(|| weight_below(root, cgroup))
}

/// The path of a control group and of all that it lies in, the outermost first; the root is none.
fn ways(cgroup: &str) -> Vec<&str> {
    let ends = cgroup.char_indices().skip(1).filter(|(_, sign)| *sign == '/').map(|(at, _)| at).chain([cgroup.len()]);
    let ways = ends.filter_map(|end| cgroup.get(..end)).filter(|way| way.len() > 1 && !way.ends_with('/'));
    ways.take(DEPTH_MAX).collect()
}

/// The weight of a control group: `io.bfq.weight`, which an administrator sets for the elevator that knows it, else `io.weight`; 1 to 1000.
fn weight_below(root: &Path, cgroup: &str) -> u16 {
    let folder = root.join(cgroup.trim_start_matches('/'));
    let told =
        ["io.bfq.weight", "io.weight"].iter().find_map(|name| default_of(&fs::read_to_string(folder.join(name)).ok()?));
    told.map_or(WEIGHT, |weight| weight.clamp(1, 1000) as u16)
}

/// The weight for all devices, in the line `default 100`; some kernels leave the word out.
fn default_of(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| !line.contains(':'))?;
    line.split_whitespace().last()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_group_lies_in_all_those_above_it() {
        assert_eq!(ways("/a/b.slice/c"), ["/a", "/a/b.slice", "/a/b.slice/c"]);
        assert!(ways("/").is_empty() && ways("").is_empty());
        assert_eq!(ways("/a/"), ["/a"]);
    }

    #[test]
    fn a_weight_is_what_its_file_says_of_all_devices() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("it is ours");
        assert_eq!(weight_below(folder.path(), "/"), 100, "nothing is told");
        write("io.weight", "default 250\n8:0 10\n");
        assert_eq!(weight_below(folder.path(), "/"), 250);
        write("io.bfq.weight", "8:0 10\n500\n");
        assert_eq!(weight_below(folder.path(), "/"), 500);
        write("io.bfq.weight", "default 10000\n");
        assert_eq!(weight_below(folder.path(), "/"), 1000, "as much as there is");
    }
}
