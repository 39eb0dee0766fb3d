//! Control groups as groups of a device, with the hierarchical weights of the kernel's own
//! elevators.

use std::fs;
use std::path::Path;

use hoistway_qos::{DiskScheduler, JoinError, Limits, LogRateLimiter, MemberId, Terms, TermsError};
use hoistway_reactor::Process;

use super::issuers::process_priority;
use super::run_time_terms::RunTimeTerms;

/// Mount point of the unified hierarchy (cgroups(7)).
const ROOT: &str = "/sys/fs/cgroup";
/// The default weight.
const WEIGHT: u16 = 100;
/// Maximum depth of the hierarchy; deeper control groups count as their ancestor at this depth.
const DEPTH_MAX: usize = 16;

/// Adds a process as a member of its control group. The group becomes a tenant below device groups
/// for its ancestors. `weights` are theirs, the outermost first; terms that were set at run time
/// take precedence.
pub(super) fn join(
    device: &mut DiskScheduler,
    process: &Process,
    weights: &[u16],
    run_time: &RunTimeTerms,
    now_ns: u64,
) -> Result<MemberId, JoinError> {
    let path_and_ancestors: Vec<&str> = path_and_ancestors(&process.cgroup);
    let Some((own, above)) = path_and_ancestors.split_last() else {
        return device.join(None, Some(process_priority(process)), now_ns);
    };
    if device.terms(own).is_none() {
        // A missing weight is read at the next refresh.
        let weight = |at: usize| weights.get(at).copied().unwrap_or(WEIGHT);
        let mut parent: Option<&str> = None;
        for (at, group) in above.iter().enumerate() {
            let weight = run_time.group_weight(group).unwrap_or(weight(at));
            if let Err(error) = device.set_group(group, parent, weight, &Limits::default(), now_ns) {
                log_refusal(group, &error, now_ns);
                return device.join(None, Some(process_priority(process)), now_ns);
            }
            parent = Some(group);
        }
        let terms = run_time.terms(own).unwrap_or(Terms { weight: weight(above.len()), ..Terms::default() });
        let terms = Terms { parent: parent.map(str::to_owned), ..terms };
        if let Err(error) = device.set_tenant(own, &terms, now_ns) {
            log_refusal(own, &error, now_ns);
            // A refused reservation leaves the other terms set.
            if device.terms(own).is_none() {
                return device.join(None, Some(process_priority(process)), now_ns);
            }
        }
    }
    device.join(Some(own), Some(process_priority(process)), now_ns)
}

/// Logs that a control group could not be added to the device; its processes become tenants of
/// their own.
fn log_refusal(cgroup: &str, error: &TermsError, now_ns: u64) {
    static REFUSED: LogRateLimiter = LogRateLimiter::new();
    if let Some(left_out) = REFUSED.allow(now_ns) {
        tracing::warn!(cgroup, left_out, "{error}");
    }
}

/// Reads the weights of a control group and its ancestors, the outermost first.
pub(super) fn weights(cgroup: &str) -> Vec<u16> {
    path_and_ancestors(cgroup).into_iter().map(|path| weight(path).unwrap_or(WEIGHT)).collect()
}

/// Returns the control groups of a device and their weights.
pub(super) fn known_weights(device: &DiskScheduler) -> Vec<(String, u16)> {
    let own = device.accounts().map(|(tenant, _)| tenant).filter(|tenant| tenant.starts_with('/'));
    own.filter_map(|tenant| Some((tenant.to_owned(), device.terms(tenant)?.weight))).collect()
}

/// Sets the weight of a control group, or removes the tenant of a deleted one (`None`).
pub(super) fn set_weight(device: &mut DiskScheduler, cgroup: &str, weight: Option<u16>, now_ns: u64) {
    match (weight, device.terms(cgroup).cloned()) {
        // The removal fails while members have requests in flight, and is tried again later.
        (None, _) => drop(device.remove_tenant(cgroup, now_ns)),
        (Some(weight), Some(terms)) => {
            let set = device.set_tenant(cgroup, &Terms { weight, ..terms }, now_ns);
            tracing::info!(cgroup, weight, ok = set.is_ok(), "the weight of a control group has changed");
        }
        (Some(_), None) => {}
    }
}

/// Reads the current weight of a control group; `None` if the group does not exist.
pub(super) fn weight(cgroup: &str) -> Option<u16> {
    let root = Path::new(ROOT);
    root.join(cgroup.trim_start_matches('/')).exists().then(|| weight_below(root, cgroup))
}

/// Returns the paths of a control group and its ancestors, the outermost first, without the root.
fn path_and_ancestors(cgroup: &str) -> Vec<&str> {
    let ends = cgroup.char_indices().skip(1).filter(|(_, sign)| *sign == '/').map(|(at, _)| at).chain([cgroup.len()]);
    let path_and_ancestors =
        ends.filter_map(|end| cgroup.get(..end)).filter(|path| path.len() > 1 && !path.ends_with('/'));
    path_and_ancestors.take(DEPTH_MAX).collect()
}

/// Reads the weight of a control group, 1 to 1000: `io.bfq.weight`, else `io.weight`.
fn weight_below(root: &Path, cgroup: &str) -> u16 {
    let folder = root.join(cgroup.trim_start_matches('/'));
    let weight =
        ["io.bfq.weight", "io.weight"].iter().find_map(|name| default_of(&fs::read_to_string(folder.join(name)).ok()?));
    weight.map_or(WEIGHT, |weight| weight.clamp(1, 1000) as u16)
}

/// Parses the weight for all devices, `default 100`; some kernels omit the word.
fn default_of(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| !line.contains(':'))?;
    line.split_whitespace().last()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use hoistway_qos::{DiskQueueConfig, MediumProperties};

    use super::*;

    #[test]
    fn a_control_group_has_all_its_ancestors() {
        assert_eq!(path_and_ancestors("/a/b.slice/c"), ["/a", "/a/b.slice", "/a/b.slice/c"]);
        assert!(path_and_ancestors("/").is_empty() && path_and_ancestors("").is_empty());
        assert_eq!(path_and_ancestors("/a/"), ["/a"]);
    }

    #[test]
    fn terms_set_at_run_time_hold_for_control_groups_that_join_later() {
        let config = DiskQueueConfig {
            name: "disk".into(),
            elevator: None,
            depth: None,
            tunables: Vec::new(),
            merge: true,
            request_bytes_max: 1 << 20,
            bandwidth: None,
            position_ns: None,
            log_slow_ns: DiskQueueConfig::LOG_SLOW_NS_DEFAULT,
        };
        let medium = MediumProperties {
            bytes: 1 << 30,
            rotational: true,
            is_emulated: false,
            is_synchronous: false,
            splits_requests: false,
            io_bytes_max: u64::MAX,
            default_depth: 1,
            depth_max: 1,
        };
        let mut device = DiskScheduler::new(&config, medium, 0).expect("a valid configuration");
        let run_time = RunTimeTerms::default();
        run_time.set_group_weight("/a", 300);
        run_time.set_terms("/a/b", &Terms { weight: 700, ..Terms::default() });
        for (cgroup, weight) in [("/a/b", 700), ("/a/c", 20)] {
            let process = Process { cgroup: cgroup.into(), ..Process::default() };
            join(&mut device, &process, &[10, 20], &run_time, 0).expect("the device has room");
            let terms = device.terms(cgroup).expect("the control group is a tenant");
            assert_eq!((terms.weight, terms.parent.as_deref()), (weight, Some("/a")));
        }
        assert_eq!(device.group_terms("/a").expect("the ancestor is a group").weight, 300);
    }

    #[test]
    fn a_weight_is_the_default_line_of_its_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("it is ours");
        assert_eq!(weight_below(folder.path(), "/"), 100, "the default");
        write("io.weight", "default 250\n8:0 10\n");
        assert_eq!(weight_below(folder.path(), "/"), 250);
        write("io.bfq.weight", "8:0 10\n500\n");
        assert_eq!(weight_below(folder.path(), "/"), 500);
        write("io.bfq.weight", "default 10000\n");
        assert_eq!(weight_below(folder.path(), "/"), 1000, "the maximum");
    }
}
