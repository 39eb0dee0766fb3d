//! The fidelity of the simulator: jobs of fio under real kernels, whose disk is an emulated drive,
//! beside the simulation of the same jobs on the same drive.
//!
//! `cargo xtask guest` boots the kernels and runs the simulator; this crate has everything else.
//!
//! - the drives, jobs and schedulers: `matrix.rs`, with the jobs of `jobs/`
//! - a job as the guest and as the simulator need it: `job.rs`
//! - the trees of files that both sides have: `trees.rs`
//! - the time that a guest adds to a request: `overhead.rs`
//! - rates and latencies, from the results of fio or of the simulator: `figures.rs`
//! - runs of the same job, their medians and spreads: `repetition.rs`
//! - the figures of earlier runs: `store.rs`
//! - errors, and whether the better scheduler is named right: `agreement.rs`
//! - the page: `page.rs`

pub mod agreement;
pub mod figures;
pub mod job;
pub mod matrix;
pub mod overhead;
pub mod page;
pub mod repetition;
pub mod store;
pub mod trees;
