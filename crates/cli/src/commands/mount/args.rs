//! Builds the configuration of `hoistway mount`: the file, overridden by the command line.

use anyhow::Result;
use hoistway_config::mount::CheckedMount;
use hoistway_config::{Draft, HostEnvironment, Section};

use crate::cli::{Elevator, MountArgs};
use crate::failure::UsageError;

/// Loads and checks the configuration.
///
/// # Errors
/// All errors of the file and the command line.
pub fn config(args: &MountArgs) -> Result<CheckedMount> {
    let mut draft = match &args.config {
        Some(path) => Draft::load_mount(path)?,
        None => Draft::mount_from_toml("", "the command line"),
    };
    let mut set = |section, key, option: &str, value: &str| draft.set(section, key, option, value);
    if let Some(Elevator::Kind(kind)) = args.elevator {
        set(Section::Mount, "elevator", "--elevator", kind.info().name);
        set(Section::MountDevice, "elevator", "--elevator", kind.info().name);
    }
    if let Some(depth) = args.depth {
        set(Section::Mount, "depth", "--depth", &depth.to_string());
        set(Section::MountDevice, "depth", "--depth", &depth.to_string());
    }
    if let Some(threads) = args.threads {
        set(Section::Mount, "threads", "--threads", &threads.to_string());
    }
    if let Some(device) = &args.device {
        set(Section::Mount, "device", "--device", device);
    }
    if let Some(write_back) = args.write_back {
        set(Section::Mount, "write_back", "--write-back", write_back.name());
    }
    if let Some(control) = &args.control {
        set(Section::MountControl, "socket", "--control", &control.to_string_lossy());
    }
    if let Some(address) = &args.monitoring.metrics {
        set(Section::Metrics, "address", "--metrics", address);
    }
    if args.allow_other || args.owner_only {
        let option = if args.allow_other { "--allow-other" } else { "--owner-only" };
        set(Section::Mount, "allow_other", option, if args.allow_other { "true" } else { "false" });
    }
    let mut checked = draft.check_mount(&HostEnvironment)?;
    let known: Vec<_> = checked
        .config
        .devices
        .iter()
        .filter_map(|device| device.elevator)
        .chain(checked.config.mount.elevator)
        .collect();
    if let Some(set) = args.settings.iter().find(|set| !known.contains(&set.elevator)) {
        let name = set.elevator.info().name;
        let why = format!(
            "--set {name}.{}={}: no device has the elevator {name}: add --elevator {name}",
            set.tunable, set.value
        );
        return Err(UsageError(why).into());
    }
    let settings = args.settings.iter().map(|set| (set.elevator, set.tunable.to_owned(), set.value));
    checked.config.mount.settings.extend(settings);
    Ok(checked)
}
