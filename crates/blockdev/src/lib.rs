//! Block devices below a disk queue: memory, files and block devices of the machine, and emulated
//! drives.
//!
//! ```text
//! Device ─ DiskQueue (qos) ─▶ MediumAccess ─▶ Backend: memory, null, file by the Engine,
//!                                        │    or an export of another server by its sockets
//!                                        └──▶ EmulatedDrive: the model of the service times
//! ```
//!
//! A [`Device`] owns a [`Backend`], perhaps an emulated drive, and the queue above them. Its host
//! passes the engine and the time to each call.
//!
//! Where to change what:
//! - a kind of backend: `backend.rs`; files with direct I/O: `file.rs`; memory: `memory.rs`
//! - the default queue depths: `depth.rs`
//! - the way between queue, backend and drive model: `device.rs`
//! - what is detected about a file or block device: `file_properties.rs`; a file that shrinks or
//!   grows while it is open: `file_size.rs`
//! - the ids of devices, and the tags of their I/O in the engine: `ids.rs`
//! - exports of other NBD servers: `remote/`
//! - the log of failed I/O: `error_log.rs`
//! - a drive model in real time, and the lateness of its completions: `emulated.rs`
//! - the loop that runs one device for measurements and tests: `driver.rs`
//! - the measurement of a device's bandwidth and positioning time: `calibrate.rs`
//!
#![doc = include_str!("../README.md")]

mod backend;
pub mod calibrate;
mod client;
pub mod depth;
mod device;
mod driver;
mod emulated;
mod error;
mod error_log;
mod file;
mod file_properties;
mod file_size;
mod ids;
mod memory;
mod output;
pub mod remote;
#[cfg(test)]
mod tests;

pub use backend::Backend;
pub use client::process_priority;
pub use device::{BlockRequest, Device, DeviceError};
pub use driver::DeviceDriver;
pub use error::{BackendError, io_error_of_os};
pub use ids::{DeviceId, IoTag};
pub use output::{IoOutput, Started};
