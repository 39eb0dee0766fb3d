//! The Python package hoistway.
//!
//! This crate is the extension module `hoistway._hoistway`. It converts arguments and results; what
//! it computes are functions of the other crates, which the command uses, too. The public names,
//! their documentation and their types are the Python files in `hoistway/`.
//!
//! # Where to change what
//!
//! | what | where |
//! |---|---|
//! | threads, Ctrl-C, progress, panics | `work.rs` |
//! | exceptions | `error.rs` |
//! | tables as Arrow streams | `table.rs` |
//! | drives, job files | `drive.rs`, `job.rs` |
//! | `compare`, `simulate` | `compare.rs` |
//! | the command in the wheel | `command.rs` |

mod command;
mod compare;
mod drive;
mod elevator;
mod error;
mod job;
mod json;
mod table;
mod work;

use pyo3::prelude::*;

/// The extension module of the package hoistway.
#[pymodule]
mod _hoistway {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::command::run_command;
    #[pymodule_export]
    use crate::compare::{Comparison, compare};
    #[pymodule_export]
    use crate::drive::{Drive, drive_names};
    #[pymodule_export]
    use crate::elevator::{elevator_list, elevator_name};
    #[pymodule_export]
    use crate::error::{HoistwayError, InternalError, UsageError};
    #[pymodule_export]
    use crate::job::JobFile;
    #[pymodule_export]
    use crate::table::Table;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
