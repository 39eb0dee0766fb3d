//! Short texts about a device that the table and the explanation share.

use hoistway_machine::{BlockDevice, Queue};

/// The schedulers in the form of sysfs: `none [mq-deadline] kyber bfq`; a dash if there is no
/// choice.
pub fn schedulers(queue: &Queue) -> String {
    if !queue.has_choice() {
        return "-".to_owned();
    }
    let active = queue.scheduler.as_deref();
    let names =
        queue.schedulers.iter().map(|name| if active == Some(name) { format!("[{name}]") } else { name.clone() });
    names.collect::<Vec<_>>().join(" ")
}

/// Identifies the device by its model, its label or its backing file.
pub fn description(device: &BlockDevice) -> String {
    let named = device.identity.model.clone().or_else(|| device.label.clone());
    let file = device.backing_file.as_ref().map(|file| format!("of {}", file.display()));
    named.or(file).unwrap_or_default()
}

/// The use of the device: mount points, swap, read-only.
pub fn uses(device: &BlockDevice) -> String {
    let mut uses: Vec<String> = device.mounts.iter().take(2).map(|mount| mount.at.display().to_string()).collect();
    if device.mounts.len() > 2 {
        uses.push(format!("{} more places", device.mounts.len() - 2));
    }
    if device.swap {
        uses.push("swap".to_owned());
    }
    if device.read_only && device.is_present() {
        uses.push("read-only".to_owned());
    }
    uses.join(", ")
}
