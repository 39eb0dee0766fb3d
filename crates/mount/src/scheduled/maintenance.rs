//! Periodic maintenance of a queue: exited issuers leave it, and the weights of control groups are
//! read again. The system is queried without the queue lock.

use super::cgroups;
use super::issuers::IssuerId;
use super::queue::{Queue, State};

/// Removes issuers whose threads have exited, except those that still own dirty data
/// (`owns_data`). Returns the number removed.
pub(super) fn remove_exited(
    queue: &Queue,
    now_ns: u64,
    owns_data: impl Fn(IssuerId) -> bool,
    exists: impl Fn(u32) -> bool,
) -> usize {
    let idle = queue.lock().issuers.idle(now_ns);
    let exited: Vec<IssuerId> = idle.into_iter().filter(|key| !exists(key.0) && !owns_data(*key)).collect();
    if exited.is_empty() {
        return 0;
    }
    let mut state = queue.lock();
    let State { issuers, device, .. } = &mut *state;
    issuers.remove_exited(&exited, device, now_ns)
}

/// Reads the weights of a queue's control groups again, and removes deleted groups without members.
/// `weight` returns `None` for a deleted group.
pub(super) fn refresh_cgroups(queue: &Queue, now_ns: u64, weight: &dyn Fn(&str) -> Option<u16>) {
    let known = cgroups::known_weights(queue.lock().device.scheduler());
    for (cgroup, before) in known {
        let now = weight(&cgroup);
        if now != Some(before) {
            cgroups::set_weight(queue.lock().device.scheduler_mut(), &cgroup, now, now_ns);
        }
    }
}
