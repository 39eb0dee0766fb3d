//! Parts of the crash tests of the real programs.
//!
//! Where to change what:
//! - a file system that forgets what was not synced, its power failures and planted faults:
//!   `forgetting/`
//! - the real mount above it: `mounted.rs`
//! - options of the tests' programs: `options.rs`
//! - databases that commit through the mount: `databases/`

pub mod databases;
pub mod forgetting;
pub mod mounted;
mod options;

pub use options::{CrashOptions, exit_code};
