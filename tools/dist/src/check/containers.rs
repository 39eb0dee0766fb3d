//! Podman, and the configuration with which containers start on this machine.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};
use hoistway_workspace::programs;

use crate::binaries::Machine;
use crate::image;
use crate::source::VERSION;

/// The programs of the blocks, with their Debian packages.
const PROGRAMS: [(&str, &str); 3] = [("podman", "podman"), ("runc", "runc"), ("nbdinfo", "libnbd-bin")];

/// A configuration (containers.conf(5)) for machines that refuse the usual one: without
/// `CAP_SYS_RESOURCE` no process has higher limits than its parent, and crun needs version 2 of
/// control groups alone.
const CONFINED: &str = "\
[engine]
runtime = \"runc\"
cgroup_manager = \"cgroupfs\"
[containers]
default_ulimits = [\"nofile=1024:1024\", \"nproc=1024:1024\"]
";

/// Loads the image and starts its program in a container. Returns the configuration that this
/// needs; `None` if it needs none of its own.
///
/// # Errors
/// No container starts.
pub(super) fn configuration(packages: &Path) -> Result<Option<&'static str>> {
    programs::require_all(&PROGRAMS, true)?;
    let image = packages.join(image::file_name(Machine::native()?));
    if programs::output(Command::new("podman").args(["load", "--quiet", "--input"]).arg(image)).is_err() {
        // That is no obstacle of the machine: the blocks report it.
        return Ok(None);
    }
    let start = |configuration: Option<&Path>| {
        let mut podman = Command::new("podman");
        podman.envs(configuration.map(|file| ("CONTAINERS_CONF", file)));
        podman.args(["run", "--rm", "--network", "host", &format!("{}:{VERSION}", image::NAME), "--help"]);
        programs::output(&mut podman)
    };
    let Err(usual) = start(None) else { return Ok(None) };
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("containers.conf");
    fs::write(&file, CONFINED)?;
    start(Some(&file)).with_context(|| format!("no container runs here: {usual:#}; and with runc and limits"))?;
    Ok(Some(CONFINED))
}
