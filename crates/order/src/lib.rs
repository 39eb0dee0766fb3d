//! Files in the order in which they lie on the disk: found, placed, sorted, listed and archived.
//!
//! A run is two passes, so that the arm of a disk sweeps instead of jumping:
//!
//! 1. The walk finds everything under the paths that were asked for. Directories are read by inode number in one-way sweeps; one that is
//!    discovered on the way joins the sweep, or the next one if it lies behind.
//! 2. Placing asks the file system where each file's data begin, by inode number again; they are sorted by that.
//!
//! What is found is kept in a [`Tree`], which is small (40 bytes a file and its name), because trees of ten million files are what this is for.

#![warn(missing_docs)]

pub mod ext4;
pub mod model;
pub mod plan;
mod tree;

pub use tree::{Entry, Id, Kind, Place, Tree, TreeFull};
