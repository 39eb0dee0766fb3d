//! Processes: name, user, control group, scheduling policy and I/O priority, from `/proc/PID`.
//!
//! [`ProcessFiles`] reads single files, [`process()`] everything at once, and [`device_use()`] the
//! block devices that a process uses.

mod device_use;
mod files;

use std::io;

use serde::Serialize;

use crate::priority::{self, CpuPolicy, Priority, PriorityTarget};
use crate::root::Root;

pub use device_use::{DeviceUse, DeviceUses, device_use};
pub use files::{ProcessFiles, ProcessStat, SignalSet};

/// A process or thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Process {
    /// The process or thread id.
    pub pid: u32,
    /// The command name.
    pub comm: String,
    /// The command line, one word each; empty for a kernel thread.
    pub command: Vec<String>,
    /// The real user id.
    pub uid: u32,
    /// The control group, as [`ProcessFiles::control_group`] returns it.
    pub cgroup: String,
    /// The nice value, -20 to 19.
    pub nice: i8,
    /// The CPU scheduling policy.
    pub policy: CpuPolicy,
    /// The I/O priority, which may be unset. Files do not contain it: unset for any tree but the
    /// running machine.
    pub priority: Priority,
    /// Bytes read from devices, and bytes written to them, from `/proc/PID/io`; `None` if the
    /// caller may not read the file.
    pub moved_bytes: Option<(u64, u64)>,
}

/// A process cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// The process has ended, or never existed.
    #[error("process {pid}: there is no such process")]
    None {
        /// The process id.
        pid: u32,
    },
    /// The files of the process cannot be read.
    #[error("process {pid}: {cause}")]
    Unreadable {
        /// The process id.
        pid: u32,
        /// The system's error.
        cause: io::Error,
    },
}

/// Reads a process or thread.
///
/// # Errors
/// [`ProcessError::None`] if the process has ended.
///
/// ```
/// use hoistway_machine::{Root, process};
/// let own = process(&Root::machine(), std::process::id())?;
/// assert!(!own.comm.is_empty());
/// # Ok::<(), hoistway_machine::ProcessError>(())
/// ```
pub fn process(root: &Root, pid: u32) -> Result<Process, ProcessError> {
    let files = ProcessFiles::new(root, pid);
    let stat = files.read_stat().map_err(|cause| match cause.kind() {
        io::ErrorKind::NotFound => ProcessError::None { pid },
        // The kernel's answer for a process that ends during the read.
        _ if cause.raw_os_error() == Some(libc::ESRCH) => ProcessError::None { pid },
        _ => ProcessError::Unreadable { pid, cause },
    })?;
    let priority = if root.is_machine() {
        priority::get(PriorityTarget::Process(pid)).unwrap_or_default()
    } else {
        Priority::UNSET
    };
    Ok(Process {
        pid,
        comm: files.comm(),
        command: files.command(),
        uid: files.uid().unwrap_or(0),
        cgroup: files.control_group(),
        nice: stat.nice,
        policy: stat.policy,
        priority,
        moved_bytes: files.moved_bytes(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_test_process_is_read() {
        let own = process(&Root::machine(), std::process::id()).expect("the process runs");
        assert!(!own.comm.is_empty() && !own.command.is_empty());
        assert_eq!(own.uid, rustix::process::getuid().as_raw());
    }

    #[test]
    fn a_missing_process_is_named_in_the_error() {
        assert_eq!(
            process(&Root::machine(), 5_000_000).unwrap_err().to_string(),
            "process 5000000: there is no such process"
        );
    }
}
