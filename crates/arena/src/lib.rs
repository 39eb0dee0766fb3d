//! The arena: every elevator with its defaults on many drives and workloads, and which one to take
//! for an unknown workload.
//!
//! A *case* is a workload on a drive. In each case an elevator has a throughput, a latency of the
//! job for which latency matters, an isolation and a number of missed deadlines; each is the mean
//! over seeds. The isolation of a process is its rate over its share of the rate that it has alone,
//! and that of a case is the least of its processes: the measure of Argon (Wachs et al., FAST
//! 2007), which needs no knowledge of the hardware.
//!
//! # Flow of data
//!
//! [`Workload`] and [`Drive`] are the two axes, and [`Split`] says which of them are looked at
//! while elevators are designed. [`Matrix`] is a choice of them with elevators and seeds; its
//! [`Matrix::sweeps`] are sweeps for `hoistway-sweep`, which simulates what is missing in a folder
//! of results. [`Cases::read`] reads the folder, [`Standings`] compares each elevator with the best
//! of each case, and [`page`] and [`markdown`] show both. [`costs`] measures CPU time, which a
//! simulation has not.
//!
//! # Where to change ...
//!
//! | what | where |
//! |---|---|
//! | a workload, its shares, the job whose latency counts | `workload.rs`, `workloads/` |
//! | the drives, the length of runs | `drive.rs` |
//! | the simulations of a case | `matrix.rs` |
//! | the figures of a case | `cases.rs` |
//! | the comparison with the best, the bounds | `standings.rs` |
//! | CPU time | `costs.rs` |
//! | the page, the tables of the documents | `page.rs`, `markdown.rs` |
//!
#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod cases;
mod costs;
mod drive;
mod markdown;
mod matrix;
mod page;
mod sample;
mod standings;
mod workload;

pub use cases::{Case, CaseError, Cases, Entry};
pub use costs::{COST_PROCESSES, Costs, costs};
pub use drive::{Drive, DriveClass};
pub use markdown::markdown;
pub use matrix::{Matrix, MatrixError, Split};
pub use page::page;
pub use sample::Sample;
pub use standings::{Lost, Measure, SOUND_ISOLATION, Standing, Standings};
pub use workload::Workload;
