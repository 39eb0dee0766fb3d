//! Sweeps: series of simulations in which jobs, drives, hosts, elevators, tunables and seeds vary.
//!
//! # Flow of data
//!
//! [`SweepSpec`] is a sweep file with everything that it names. [`Plan`] numbers its points;
//! [`Plan::choice`] computes a point from its number, so that a sweep of a hundred million points
//! needs no memory for them. [`Point`] has the simulation that a choice stands for, and its name, a
//! hash of all that determines the result. [`Batch`] is a range of points whose results share a
//! file: [`simulate`] runs them and returns the bytes of the file, the same on every machine.
//! [`ResultFolder`] holds these files and finds points that are there already. [`run`] does all
//! batches on this machine; the Python package distributes them. [`Results`] is the table of a
//! folder, which [`page()`] draws.
//!
//! # Where to change ...
//!
//! | what | where |
//! |---|---|
//! | the keys of a sweep file | `spec/read.rs`, `spec/sources.rs`, `spec/seeds.rs` |
//! | the keys that can vary | `key.rs`, `point.rs` |
//! | the columns of results | `columns.rs` |
//! | the layout of a folder of results | `folder.rs` |
//! | the table of all results of a folder | `results.rs` |
//! | the page that draws results | `page/`: its figures `measure.rs`, the values of keys `levels.rs`, their effects `effect.rs`, the Pareto front `front.rs` |
//!
#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod batch;
mod columns;
mod file_name;
mod folder;
mod key;
mod local;
mod page;
mod parquet_file;
mod plan;
mod point;
mod results;
mod spec;
mod value;

pub use batch::{Batch, BatchError, BatchFiles, simulate};
pub use columns::{Cells, Column, job_figures, run_figures};
pub use folder::{FolderError, ResultFolder};
pub use key::Key;
pub use local::{LocalOptions, Summary, SweepError, SweepProgress, run};
pub use page::{PageError, PageOptions, page};
pub use plan::{ChosenValue, KeyValues, Plan, PointChoice, TooManyPoints};
pub use point::{LIBRARY, Point, PointId, set_key};
pub use results::Results;
pub use spec::{Dimension, Range, Sample, SpecError, SweepDrive, SweepHost, SweepJob, SweepSpec, Values};
pub use value::Value;
