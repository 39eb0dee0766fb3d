//! Releases of the workspace: the published crates and their order, the checks of their packages,
//! and release notes.
//!
//! Where to change what:
//! - what the manifest and the directory of a published crate must have: `manifests.rs`
//! - packages, the oldest compiler, the source of packages for other projects, comparisons of the
//!   API: `packages.rs`
//! - the section of CHANGELOG.md: `notes.rs`

#![forbid(unsafe_code)]

mod manifests;
mod notes;
mod packages;

pub use manifests::{Crate, Workspace};
pub use notes::notes;
pub use packages::{build, compare, directory_source, last_tag, package, with_oldest_compiler};
