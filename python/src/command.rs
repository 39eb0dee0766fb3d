//! The command `hoistway` in the wheel.

use std::ffi::OsString;
use std::path::PathBuf;

use pyo3::prelude::*;

/// Runs the command and returns its exit code. `program` is the file of the command, for commands
/// that start further processes of it.
#[pyfunction]
pub fn run_command(py: Python<'_>, arguments: Vec<OsString>, program: PathBuf) -> u8 {
    py.detach(|| hoistway::run(arguments, Some(program)))
}
