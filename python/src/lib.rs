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
//! | traces and predictions, advice, published results | `trace.rs`, `whatif.rs`, `advise.rs`, `reproduce.rs` |
//! | elevators that are classes of Python; their registration is in `hoistway/_custom.py` | `custom.rs` |
//! | the request queue by hand | `queue.rs` |
//! | sweeps; the engines that distribute them are in `hoistway/_sweep.py` | `sweep.rs` |
//! | the command in the wheel | `command.rs` |

mod advise;
mod command;
mod compare;
mod custom;
mod drive;
mod elevator;
mod error;
mod job;
mod json;
mod queue;
mod reproduce;
mod sweep;
mod table;
mod trace;
mod whatif;
mod work;

use pyo3::prelude::*;

/// The extension module of the package hoistway.
#[pymodule]
mod _hoistway {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::advise::{Advice, advise};
    #[pymodule_export]
    use crate::command::run_command;
    #[pymodule_export]
    use crate::compare::{Comparison, compare};
    #[pymodule_export]
    use crate::custom::{QueueState, QueuedRequest, longest_wait_ns, register_elevator};
    #[pymodule_export]
    use crate::drive::{Drive, drive_names};
    #[pymodule_export]
    use crate::elevator::{elevator_list, elevator_name};
    #[pymodule_export]
    use crate::error::{HoistwayError, InternalError, UsageError};
    #[pymodule_export]
    use crate::job::JobFile;
    #[pymodule_export]
    use crate::queue::QueueCore;
    #[pymodule_export]
    use crate::reproduce::reproduce;
    #[pymodule_export]
    use crate::sweep::{SweepFolder, SweepPlan, simulate_batch, sweep_page};
    #[pymodule_export]
    use crate::table::Table;
    #[pymodule_export]
    use crate::trace::{Requests, Trace};
    #[pymodule_export]
    use crate::whatif::{Prediction, whatif};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
