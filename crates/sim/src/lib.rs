//! Simulation of a host, its workloads and its disk in virtual time.
//!
//! [`compare`] runs the jobs of a fio job file under several elevators, on a simulated machine with
//! a simulated disk, and returns the results; hoistway-compare judges them. A run is determined by
//! its seed: no clock is read, and the same request gives the same answer.
//!
//! # Answers
//!
//! Every answer is a value that serde can serialise; the command line only renders it.
//!
//! | command | function | answer |
//! |---|---|---|
//! | `hoistway compare` | [`compare`], [`run_each`] | [`Comparison`]; the document is `ComparisonDocument` of hoistway-compare |
//! | `hoistway elevators` | [`ElevatorList::new`] | [`ElevatorList`] |
//! | `hoistway trace whatif`, `hoistway advise --trace` | [`compare_recorded`], [`run_each_recorded`] | [`Comparison`], [`Run`] |
//!
//! Three crates build on this one: hoistway-compare judges comparisons, hoistway-reproduce runs
//! published results, hoistway-advise predicts and advises.
//!
//! # Flow of data
//!
//! 1. `compare::run` builds one world per elevator, and one for each job alone as a reference, and
//!    runs them in parallel.
//! 2. `workload::plan` turns jobs into processes, files, trees and control groups. `world::layout`
//!    places the files on the disk, `world::build` adds the request queue and the drive.
//! 3. `world::event_loop` takes events in the order of virtual time. A process (`world::choose`)
//!    chooses its next request and goes through the page cache (`world::buffered`), past it
//!    (`world::direct`) or through a tree of files (`world::walk`). `world::device` submits the
//!    bios to a `RequestQueue` of hoistway-core and gives requests to a drive of hoistway-drive.
//! 4. `compare::build` turns the measurements into the answer.
//!
//! Modules import one another in one direction: `host` (models of the kernel) and `workload` know
//! no world, `world` knows no comparison.
//!
//! # Where to change ...
//!
//! | what | where |
//! |---|---|
//! | a setting of the host: name, range, description | the row in `config/keys.rs`; the field in `config/host.rs` |
//! | the host of a kernel (`--kernel`) | `config/kernel.rs` and `HostConfig::kernel`; docs/hosts.md has the table, which a test compares |
//! | the effect of a fio option | hoistway-fio parses the option, hoistway-workload chooses the requests, `world/choose.rs` and `world/pace.rs` act on it |
//! | read-ahead | `host/two_windows.rs`, `host/on_demand.rs`, `host/readahead.rs`; advice: `config/host.rs`; mapped files: `host/mapping.rs`, `world/faults.rs` |
//! | write-back and throttling of writers | `host/dirty.rs`, `world/writeback.rs`, `world/flusher.rs` |
//! | throttling of write-back in the queue | `world/device/write_back_throttle.rs` |
//! | a controller that holds bios before they are requests | `world/device/controllers.rs` |
//! | the block layer of the host: order of its steps, plugging, direct issue under `none`, flushes | `world/device/mod.rs` |
//! | a task of the host: process, flusher, journal | `world/task.rs`, `world/process.rs`, `world/threads.rs` |
//! | placement of files and metadata | `host/files.rs`, `host/fs/`; `world/layout.rs` places those of a world |
//! | the order in which a tree is read | `workload/walk.rs`; `world/walk.rs` waits for the metadata |
//! | the cost of a sync | `host/journal.rs` (transactions), `world/journal.rs` (the committing thread), `world/sync.rs` |
//! | what a comparison reports | `compare/answer.rs`; per job, JSON and verdict: hoistway-compare |
//! | a run in slow motion | `record.rs` records its steps, `compare/film.rs` selects them |
//! | the requests of jobs without a host | `workload/requests.rs` |
//! | the replay of recorded requests | `workload/recorded.rs`, `workload/turnaround.rs`, `world/recorded.rs` |
//!
#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod compare;
mod config;
mod error;
mod events;
pub mod file_tree;
mod host;
mod measure;
mod record;
mod registry;
mod settings;
mod workload;
mod world;

pub use compare::{
    ALONE_MAX, ALONE_NS, CompareRequest, Comparison, DirectionRun, Film, FilmWindow, FilmedProcess, GroupRun,
    ProcessRun, Progress, Run, Spread, compare, compare_recorded, compare_until, film, run_each, run_each_recorded,
    with_threads,
};
pub use config::{
    CpuCosts, DirectIssue, ElevatorCost, ElevatorCosts, Flushes, HostConfig, HostFileError, Kernel, Plugging,
    ReadAheadRules, WriteBack,
};
pub use error::SimError;
pub use host::fs::config::FileSystemConfig;
pub use host::journal::JournalConfig;
pub use host::page::PAGE_BYTES;
pub use measure::{
    BandwidthSample, DriveTime, Latencies, Latency, SPARSE_MAX, Window, Windows, bytes_per_s, jain, windows_of_each,
};
pub use record::{HeadSample, Recording, Slice, SliceKind, Step, StepKind};
pub use registry::{ElevatorDescription, ElevatorList, GroupSupport, TunableDescription};
pub use settings::{Setting, elevator_of_name, group_switch};
// For programs with elevators of their own: registration, and what a simulation is made of.
pub use hoistway_custom as custom;
pub use hoistway_drive as drive;
pub use hoistway_fio as fio;
pub use workload::recorded::{RecordedWorkload, RequestScript, ScriptedRequest};
pub use workload::requests::{PlannedProcess, PlannedRequests};
pub use workload::turnaround::WakeUp;
