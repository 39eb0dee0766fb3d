//! Block devices below a disk queue: memory, files and block devices of the machine, and emulated
//! drives.
//!
//! ```text
//! Device ─ DiskQueue (qos) ─▶ MediumAccess ─▶ Backend: memory, null, file through the Engine (reactor)
//!                                        └──▶ EmulatedDrive: the drive model that determines service times
//! ```
//!
//! A [`Device`] owns a [`Backend`], perhaps an emulated drive, and the queue above them. Its host
//! passes the engine and the time to each call.
//!
//! Where to change what:
//! - a kind of backend, and its default queue depth: `backend.rs`; files with direct I/O:
//!   `file.rs`; memory: `memory.rs`
//! - what is detected about a file or block device: `file_properties.rs`
//! - a drive model in real time, and the lateness of its completions: `emulated.rs`
//! - the measurement of a device's bandwidth and positioning time: `calibrate.rs`

mod answer;
mod backend;
pub mod calibrate;
mod capabilities;
mod client;
pub mod depth;
mod device;
mod emulated;
mod error;
mod file;
mod file_properties;
mod memory;
mod operation;
#[cfg(test)]
mod tests;

pub use answer::Answer;
pub use backend::Backend;
pub use capabilities::Capabilities;
pub use client::process_priority;
pub use device::{Device, DeviceError, Work};
pub use error::{BackendError, io_error_of_os};
pub use operation::{Operation, Started};
