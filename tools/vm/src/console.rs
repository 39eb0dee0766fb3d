//! Boots a kernel with an initial RAM disk of its own and collects what it prints on the console.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::fetch::Fetched;
use crate::initramfs::Archive;
use hoistway_workspace::programs;

/// The memory of the machine.
const MEMORY_MIB: u32 = 768;

/// Boots a kernel whose first process is the program `init` of an archive, in a machine without
/// disks and network, and returns the output on the console. Its lines end with a line feed alone.
/// The machine ends when the program powers it off.
///
/// # Errors
/// QEMU is missing, or the machine runs longer than the limit. `directory`, which is made, keeps
/// the console and the messages of QEMU.
pub fn run(fetched: &Fetched, archive: Archive, limit: Duration, directory: &Path) -> Result<String> {
    fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
    let [initramfs, console, messages] = ["initramfs", "console.log", "qemu.log"].map(|name| directory.join(name));
    fs::write(&initramfs, archive.finish()).context("cannot write the initial RAM disk")?;
    let architecture = fetched.kernel.architecture;
    let (emulator, package) = architecture.emulator();
    programs::require_all(&[(emulator, package)], true)?;
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", &limit.as_secs().to_string(), emulator]);
    command.args(["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"]);
    command.args(architecture.machine()).args(["-smp", "2", "-m", &MEMORY_MIB.to_string()]);
    command.arg("-kernel").arg(fetched.image()?).arg("-initrd").arg(&initramfs);
    command.args(["-append", &format!("{} quiet loglevel=1 panic=-1", architecture.kernel_options())]);
    command.args(["-serial", &format!("file:{}", console.display())]);
    let status = command.stdin(Stdio::null()).stderr(File::create(&messages)?).status().context("cannot start QEMU")?;
    let printed = String::from_utf8_lossy(&fs::read(&console).unwrap_or_default()).replace("\r\n", "\n");
    if !status.success() {
        let messages = fs::read_to_string(&messages).unwrap_or_default();
        let last = [printed, messages].map(|text| programs::last_lines(&text, 20));
        bail!("the virtual machine with Linux {} ended with {status}:\n{}", fetched.release, last.join("\n"));
    }
    Ok(printed)
}
