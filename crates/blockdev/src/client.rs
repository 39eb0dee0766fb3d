//! The priority of a client's process.

use hoistway_qos::ProcessPriority;
use hoistway_reactor::Process;

/// Returns the I/O priority and the nice value of a client's process.
pub fn process_priority(process: &Process) -> ProcessPriority {
    ProcessPriority::from_ioprio(process.ioprio, process.nice)
}
