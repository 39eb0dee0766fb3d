//! Predictions of a recorded workload under another elevator.
//!
//! A trace shows the arrivals and completions of requests under one elevator. [`Model::new`] finds
//! the event that each request waited for ([`hoistway_trace::dependencies`]) and builds a workload
//! with the same dependencies. Think times, sizes, sectors and directions are the recorded ones;
//! times are not. [`Model::fidelity`] runs the workload under the recorded elevator on a model of
//! the drive: the difference from the recording is the error of the model. [`Model::predict`] runs
//! the workload under other elevators.
//!
//! A trace of submissions alone has no completions to wait for or to compare with:
//! [`Model::of_submissions`] assumes a [`LoopModel`], and its predictions are not validated.
//!
//! ```
//! use std::sync::atomic::AtomicBool;
//!
//! use hoistway_advise::whatif::{LoadedTrace, Machine, Model, QueueLimits};
//! use hoistway_core::Kind;
//! use hoistway_drive::Profile;
//! use hoistway_trace::{Input, OpenOptions, Stream, open};
//!
//! // Eleven reads of 4 KiB, each 1 ms after the completion of the one before.
//! let mut text = String::new();
//! for number in 0..11 {
//!     let (queued_us, sector) = (number * 2000, number * 1000);
//!     for (us, action) in [(queued_us, "Q"), (queued_us, "D"), (queued_us + 1000, "C")] {
//!         let end = if action == "C" { "0" } else { "reader" };
//!         let (s, ns) = (us / 1_000_000, us % 1_000_000 * 1000);
//!         text += &format!("8,0 0 1 {s}.{ns:09} 7 {action} R {sector} + 8 [{end}]\n");
//!     }
//! }
//! let input = Stream { name: "reader.txt".into(), read: Box::new(std::io::Cursor::new(text)) };
//! let mut source = open(vec![Input::Stream(input)], &OpenOptions::default())?;
//! let trace = LoadedTrace::read(source.as_mut(), None)?;
//! let model = Model::new(trace.recording)?;
//! let profile = Profile::builtin("ssd-sata-consumer").ok_or("no such drive")?;
//! let machine = Machine {
//!     profile,
//!     depth_max: None,
//!     kernel: None,
//!     groups: false,
//!     settings: Vec::new(),
//!     queue: QueueLimits::default(),
//!     seed: 1,
//! };
//! let cancel = AtomicBool::new(false);
//! let elevators = [Kind::Bfq, Kind::Noop];
//! let comparison = model.predict(&elevators, &machine, false, &|_progress| {}, &cancel)?;
//! assert_eq!(comparison.runs.len(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod contents;
mod damage;
mod error_table;
mod fidelity;
mod load;
mod model;
mod page;
mod recording;
mod report;
mod service;
mod submissions;
mod turnaround;
mod unvalidated;
pub mod wording;

pub use contents::TraceContents;
pub use error_table::{FIDELITY_COLUMNS, fidelity_row, process_name};
pub use fidelity::{Confidence, Fidelity, Figures, Level, MISS_MAX, ProcessFidelity};
pub use load::{LoadedTrace, RecordedSetting};
pub use model::{Machine, Model, QueueLimits};
pub use page::whatif_page;
pub use recording::{RecordedProcess, Recording, WhatifError};
pub use report::{ModelError, Prediction, ProcessErrors, ProcessPrediction, ProcessRule, WhatifReport, validation};
pub use service::service_times;
pub use submissions::LoopModel;
pub use unvalidated::Unvalidated;
