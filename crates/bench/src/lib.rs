//! Measures hoistway itself: CPU time of elevators, of the simulator, of scheduling in a mount, and
//! of reading traces; and the agreement of emulated drives with the simulator.
//!
//! Each measurement is a function that returns a serialisable document; `hoistway bench`
//! and `hoistway serve --check` print it.
//!
//! Where to change what:
//! - the closed loop that drives an elevator: `elevators.rs`
//! - the simulated load, peak memory, speed-up by cores: `sim.rs`
//! - the processor's event counters: `counters.rs`
//! - the operations of a mount: `mount.rs`
//! - the comparison of a served drive with the simulator: `emulation/mod.rs`; the two job files:
//!   `emulation/rewrite.rs`; server and fio: `emulation/real.rs`
//! - the tables and plots of docs/drives.md: `drives_page/`
//! - the synthetic capture, the operations on it, and blkparse and btt beside them: `trace.rs`
//!
#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod clock;
pub mod counters;
pub mod drives_page;
pub mod elevators;
pub mod emulation;
pub mod mount;
pub mod sim;
pub mod trace;

use std::io;
use std::process::ExitStatus;

/// Reasons why a measurement failed.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// A file or a thread.
    #[error("{what}: {source}")]
    Io {
        /// The action that failed.
        what: String,
        /// The cause.
        source: io::Error,
    },
    /// A child process failed.
    #[error("{what}: {status}")]
    Child {
        /// The child process and its arguments.
        what: String,
        /// Its exit status.
        status: ExitStatus,
    },
    /// The output of a child process is not a measurement.
    #[error("a measurement that cannot be read: {0}")]
    Malformed(#[from] serde_json::Error),
    /// The profile of a drive.
    #[error(transparent)]
    Profile(#[from] hoistway_drive::ProfileError),
    /// The simulator.
    #[error(transparent)]
    Simulation(#[from] hoistway_sim::SimError),
    /// The job file of a load.
    #[error(transparent)]
    Job(#[from] hoistway_fio::Diagnostics),
    /// The name of an elevator.
    #[error("there is no elevator `{0}`")]
    UnknownElevator(String),
    /// The scheduler of a mount.
    #[error(transparent)]
    Mount(#[from] hoistway_mount::scheduled::SetUpError),
    /// A trace.
    #[error(transparent)]
    Trace(#[from] hoistway_trace::ReadError),
    /// A request to the control socket of the server.
    #[error(transparent)]
    Control(#[from] hoistway_control::client::ClientError),
    /// A job without a counterpart on a server.
    #[error("{0}")]
    UnsupportedJob(String),
    /// A run did not yield the expected results.
    #[error("{0}")]
    Incomplete(String),
    /// An operation of the mount had to wait although no other thread uses the disk.
    #[error("the only thread had to wait")]
    Waited,
}

impl BenchError {
    /// Returns a function that adds the failed action to an I/O error.
    fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> BenchError {
        let what = what.into();
        move |source| BenchError::Io { what, source }
    }
}
