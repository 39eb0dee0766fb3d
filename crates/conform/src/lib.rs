//! Replays of what the kernels' I/O schedulers decided, compared with the elevators of
//! hoistway-core.
//!
//! | command | function | answer |
//! |---|---|---|
//! | `hoistway conform` | [`decisions::replay_files`] | [`decisions::Conformance`] |
//! | `hoistway conform --markdown` | [`markdown`] | a text |
//! | `hoistway conform --print` | [`kernel_recording::for_each_record`] | [`kernel_recording::Record`] |
//!
//! [`decisions`] reads scenarios with the decisions of a kernel's scheduler, in JSON.
//! [`kernel_recording`] reads the calls that the kernel module recorded, with their answers. The
//! elevator and its settings for each recorded scheduler are in the table in
//! `decisions/targets.rs`.
//!
#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod decisions;
pub mod kernel_recording;
mod markdown;

pub use markdown::markdown;
