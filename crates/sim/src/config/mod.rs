//! The configuration of the simulated host: its settings, the kernels whose defaults it can take,
//! and the TOML file that it is read from.

mod file;
mod host;
mod kernel;
mod keys;
mod words;

pub use file::HostFileError;
pub use host::{
    CpuCosts, DirectIssue, ElevatorCost, ElevatorCosts, Flushes, HostConfig, Plugging, ReadAheadRules, WriteBack,
};
pub use kernel::Kernel;
