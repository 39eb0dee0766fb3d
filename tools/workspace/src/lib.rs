//! The workspace for its tools: the files of the repository, builds of its programs, and the
//! programs of the machine that tools start.
//!
//! Where to change what:
//! - the list of tasks of `cargo xtask`, and which program does each: `tasks.rs`
//! - the table of Debian packages, and how programs are started: `programs.rs`; what a task needs
//!   and how it is installed: `needs.rs`
//! - builds with cargo: `cargo.rs`; the object that the proof examines: `object.rs`
//! - the files of the repository: `repository.rs`; its crates: `packages.rs`
//! - generated parts of documents: `parts.rs`; their console blocks: `console.rs`
//! - a server or mount that a task starts: `server.rs`
//! - environments of Python: `python.rs`; npm packages: `web.rs`

#![forbid(unsafe_code)]

pub mod cargo;
pub mod console;
pub mod needs;
pub mod object;
pub mod packages;
pub mod parts;
pub mod programs;
pub mod python;
pub mod repository;
pub mod server;
pub mod tasks;
pub mod web;
