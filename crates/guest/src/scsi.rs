//! scsi_debug: a SCSI host in memory that can inject faults.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use crate::module::Modules;
use crate::{Outcome, system};

const DRIVER: &str = "/sys/bus/pseudo/drivers/scsi_debug";

/// A kind of fault: every n-th command is affected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The command gets no answer: it times out, is aborted, and the host may be reset.
    Timeout,
    /// The command succeeds with a recovered error.
    Recovered,
    /// The transport fails; the command is retried.
    Transport,
    /// A part of the data is transferred.
    ShortTransfer,
    /// The host is busy; the command is queued again.
    HostBusy,
}

impl Fault {
    /// All faults, with the names of their counts.
    pub const ALL: [(Fault, &str); 5] = [
        (Fault::HostBusy, "host_busy"),
        (Fault::Recovered, "recovered"),
        (Fault::Transport, "transport"),
        (Fault::ShortTransfer, "short_transfer"),
        (Fault::Timeout, "timeout"),
    ];

    /// The bit of the parameter `opts`, as the page of scsi_debug lists them, and how many commands
    /// there are from one fault to the next.
    fn option(self) -> (u32, u32) {
        match self {
            Fault::Timeout => (0x4, 400),
            Fault::Recovered => (0x8, 50),
            Fault::Transport => (0x10, 50),
            Fault::ShortTransfer => (0x100, 50),
            Fault::HostBusy => (0x8000, 20),
        }
    }
}

/// Inserts scsi_debug with one disk of 64 MiB. Returns the name of the disk, or None if the kernel
/// lacks the module.
pub fn insert(queues: u32, depth: u32, modules: &Modules) -> Outcome<Option<String>> {
    if !modules.has("scsi_debug") {
        return Ok(None);
    }
    modules.insert("sd_mod", "")?;
    let parameters = format!("dev_size_mb=64 ndelay=200000 submit_queues={queues} max_queue={depth} sector_size=512");
    modules.insert("scsi_debug", &parameters)?;
    wait_for_disk().map(Some)
}

/// Waits for the disk of scsi_debug and returns its name.
pub fn wait_for_disk() -> Outcome<String> {
    for _ in 0..500 {
        if let Some(name) = disk() {
            crate::wait::wait_for(&Path::new("/dev").join(&name), true)?;
            return Ok(name);
        }
        thread::sleep(Duration::from_millis(20));
    }
    Err("the disk of scsi_debug does not appear within 10 s".to_owned())
}

/// The name of the disk of scsi_debug, such as `sda`; no other SCSI disk is in the machine.
fn disk() -> Option<String> {
    let names = fs::read_dir("/sys/block").ok()?.flatten().map(|entry| entry.file_name());
    names.filter_map(|name| name.into_string().ok()).find(|name| name.starts_with("sd"))
}

/// Sets the seconds after which a command of a disk times out.
pub fn set_timeout(disk: &str, seconds: u32) -> Outcome<()> {
    system::write(format!("/sys/block/{disk}/device/timeout"), &seconds.to_string())
}

/// Injects a fault; None ends the injection.
pub fn inject(fault: Option<Fault>) -> Outcome<()> {
    let (option, every) = fault.map_or((0, 0), Fault::option);
    system::write(Path::new(DRIVER).join("every_nth"), "0")?;
    system::write(Path::new(DRIVER).join("opts"), &option.to_string())?;
    system::write(Path::new(DRIVER).join("every_nth"), &every.to_string())
}

/// Removes a disk from its host, as if it was unplugged.
pub fn unplug(disk: &str) -> Outcome<()> {
    system::write(format!("/sys/block/{disk}/device/delete"), "1")
}

/// Lets the hosts look for disks.
pub fn scan() -> Outcome<()> {
    let hosts = fs::read_dir("/sys/class/scsi_host").map_err(|error| format!("/sys/class/scsi_host: {error}"))?;
    for host in hosts.flatten() {
        let path: PathBuf = host.path().join("scan");
        system::write(path, "- - -")?;
    }
    Ok(())
}

/// Removes the module with its disk.
pub fn remove() {
    for _ in 0..200 {
        if system::remove_module("scsi_debug").is_ok() {
            return;
        }
        thread::sleep(Duration::from_millis(50));
    }
}
