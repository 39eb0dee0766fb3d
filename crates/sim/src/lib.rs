//! A host, its workloads and its disk in virtual time.
//!
//! [`compare`] runs the jobs of a fio job file under several elevators, on a simulated machine with a simulated disk, and says
//! how they differ and why. A run is determined by its seed: no clock is read, and the same request gives the same answer.

#![forbid(unsafe_code)]

mod compare;
mod config;
pub mod decisions;
mod error;
mod events;
mod fio_json;
mod host;
mod measure;
mod record;
mod settings;
mod verdict;
mod workload;
mod world;

pub use compare::{CompareRequest, Comparison, DirectionRun, ProcessRun, Progress, Run, Spread, compare};
pub use config::{CpuCosts, HostConfig, PAGE_BYTES};
pub use error::SimError;
pub use measure::{Latencies, Latency, Window, Windows, jain};
pub use record::{HeadSample, Recording, Slice, SliceKind};
pub use settings::{Setting, elevator_of_name};
pub use world::DriveTime;
