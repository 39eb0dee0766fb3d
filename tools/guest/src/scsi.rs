//! SCSI disks: that of scsi_debug, a host in memory that can inject faults, and that of the virtual
//! machine for kernels without scsi_debug.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use crate::module::{self, Modules};
use crate::{Outcome, system};

/// The module with the host that injects faults.
const INJECTING: &str = "scsi_debug";
/// The module for the host of the virtual machine.
const OF_THE_MACHINE: &str = "virtio_scsi";
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

/// Inserts scsi_debug with one disk of 64 MiB, or the module for the disk of the virtual machine,
/// whose queues and depth the machine decides. Returns the name of the disk, or None if the kernel
/// lacks both modules.
pub fn insert(queues: u32, depth: u32, modules: &Modules) -> Outcome<Option<String>> {
    modules.insert("sd_mod", "")?;
    if !modules.has(INJECTING) {
        if !modules.has(OF_THE_MACHINE) {
            return Ok(None);
        }
        modules.insert(OF_THE_MACHINE, "")?;
        return wait_for_disk().map(Some);
    }
    let parameters = format!("dev_size_mb=64 ndelay=200000 submit_queues={queues} max_queue={depth} sector_size=512");
    modules.insert(INJECTING, &parameters)?;
    wait_for_disk().map(Some)
}

/// Waits for the SCSI disk and returns its name.
pub fn wait_for_disk() -> Outcome<String> {
    for _ in 0..500 {
        if let Some(name) = disk() {
            crate::wait::wait_for(&Path::new("/dev").join(&name), true)?;
            return Ok(name);
        }
        thread::sleep(Duration::from_millis(20));
    }
    Err("the SCSI disk does not appear within 10 s".to_owned())
}

/// The name of the SCSI disk, such as `sda`: at most one host has its module inserted.
fn disk() -> Option<String> {
    let names = fs::read_dir("/sys/block").ok()?.flatten().map(|entry| entry.file_name());
    names.filter_map(|name| name.into_string().ok()).find(|name| name.starts_with("sd"))
}

/// Sets the seconds after which a command of a disk times out.
pub fn set_timeout(disk: &str, seconds: u32) -> Outcome<()> {
    system::write(format!("/sys/block/{disk}/device/timeout"), &seconds.to_string())
}

/// Returns true if the host of the disk can inject faults.
pub fn can_inject() -> bool {
    Path::new(DRIVER).is_dir()
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

/// Lets the hosts look for their first disk: a search for all takes long in an emulated machine.
pub fn scan() -> Outcome<()> {
    let hosts = fs::read_dir("/sys/class/scsi_host").map_err(|error| format!("/sys/class/scsi_host: {error}"))?;
    for host in hosts.flatten() {
        let path: PathBuf = host.path().join("scan");
        system::write(path, "0 0 0")?;
    }
    Ok(())
}

/// Removes the module with its disk.
pub fn remove() {
    let name = if module::is_inserted(INJECTING) { INJECTING } else { OF_THE_MACHINE };
    for _ in 0..200 {
        if system::remove_module(name).is_ok() {
            return;
        }
        thread::sleep(Duration::from_millis(50));
    }
}
