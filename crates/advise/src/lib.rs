//! Which scheduler a device wants for a workload, and why: judged by simulation, not from a table of opinions.
//!
//! [`advise`] runs a workload - jobs, or what was recorded in a trace - on a model of the drive under every scheduler that could be set, over several
//! seeds, and says which one to set, how much better it is than what is set now, and who gains and pays. A difference that could be chance is not told
//! as one: then the advice is to leave things as they are. [`tune()`] searches the tunables of the schedulers in the same way. [`facts`] has what is known of
//! a device of the machine: which model stands for it, and what should be said of it before anybody believes a word.

#![forbid(unsafe_code)]

mod advice;
mod bench;
mod choice;
pub mod facts;
mod judge;
mod objective;
pub mod tune;
mod uses;
mod why;

pub use advice::{Advice, AdviceRequest, Checked, Judged, Verdict, advise};
pub use bench::{AdviseError, Bench, Headway, JobFigures, Measured, TODAY, Workload};
pub use choice::{Choice, kernel_value, scheduler_name, usual_variants};
pub use judge::{Difference, FLOOR, Spread};
pub use objective::{Bound, Constraint, Figure, Goal, Objective, ObjectiveError, Unit, WORST, What, told};
pub use tune::{TuneRequest, Tuned, tune};
pub use uses::{About, Use};
pub use why::{Change, why};
