//! A host, its workloads and its disk in virtual time.
//!
//! [`compare`] runs the jobs of a fio job file under several elevators, on a simulated machine with
//! a simulated disk, and says how they differ and why. A run is determined by its seed: no clock is
//! read, and the same request gives the same answer.
//!
//! ```
//! use std::sync::atomic::AtomicBool;
//! use hoistway_sim::{CompareRequest, HostConfig, compare, elevator_of_name};
//!
//! let text = "[readers]\nrw=read\nsize=32m\nnumjobs=4\n";
//! let jobs = hoistway_fio::parse(text, "readers.fio", &|_| None, &|_, _| unreachable!("nothing is included")).unwrap();
//! let request = CompareRequest {
//!     jobs,
//!     profile: hoistway_drive::Profile::builtin("sata-7200-2006").unwrap(),
//!     host: HostConfig::default(),
//!     elevators: vec![elevator_of_name("cfq-v3")?, elevator_of_name("deadline")?],
//!     settings: Vec::new(),
//!     seed: 1,
//!     record: false,
//! };
//! let comparison = compare(&request, &|_progress| {}, &AtomicBool::new(false))?;
//! assert!(comparison.runs[0].bytes_per_s > 1.5 * comparison.runs[1].bytes_per_s);
//! # Ok::<(), hoistway_sim::SimError>(())
//! ```

#![forbid(unsafe_code)]

mod compare;
mod config;
pub mod decisions;
mod error;
mod events;
mod host;
mod measure;
pub mod published;
mod record;
mod registry;
mod settings;
pub mod whatif;
mod workload;
mod world;

pub use compare::{
    CompareRequest, Comparison, ComparisonDocument, DirectionRun, GroupRun, ProcessRun, Progress, Run, Spread, compare,
    run_each,
};
pub use config::{CpuCosts, HostConfig, HostFileError, Kernel, Plugging, ReadAheadRules, WriteBack};
pub use error::SimError;
pub use host::fs::config::FileSystemConfig;
pub use host::journal::JournalConfig;
pub use host::page::PAGE_BYTES;
pub use measure::{BandwidthSample, DriveTime, Latencies, Latency, Window, Windows, jain};
pub use record::{HeadSample, Recording, Slice, SliceKind};
pub use registry::{ElevatorDescription, ElevatorList, GroupSupport, TunableDescription};
pub use settings::{Setting, elevator_of_name, group_switch};
