//! Files in physical disk order: find, locate, sort, list and archive them.
//!
//! Reading many files in directory order costs a disk with an arm one seek per file. This crate
//! reads them in the order of their data on the disk. One run has three passes, so that the arm
//! sweeps instead of jumping:
//!
//! 1. [`walk::walk`] finds all names below the given paths. It reads directories in one-way sweeps
//!    of inode numbers.
//! 2. [`locate::locate`] finds the first data block of each file, again by inode number.
//! 3. [`sort`] sorts the names by that block.
//!
//! A [`Tree`] holds the names. It needs 40 bytes a file and the name, because trees of ten million
//! files are the use case.
//!
//! `examples/list_directory.rs` is the example below as a program. `examples/many_names.rs`
//! measures the memory of large trees.
//!
//! # Answers
//!
//! Each command of `hoistway` renders one serialisable value of this crate:
//!
//! | command | value |
//! |---|---|
//! | `hoistway order` | [`FileRecord`], one per name |
//! | `hoistway order --explain` | [`explain::CostReport`] |
//! | `hoistway tar` | [`archive::ArchiveSummary`], with an [`archive::ArchiveEvent`] per member or warning |
//!
//! # Where do I change ...
//!
//! | to change | edit |
//! |---|---|
//! | how a tree is walked, which directory entries are trusted | `walk.rs`; `walk/roots.rs` for paths that are given twice; `walk/list.rs` for lists; `mounts.rs` for mount points |
//! | what is stored of a name | `tree.rs` |
//! | how a path longer than `PATH_MAX` is opened | `open.rs` |
//! | where the data of a file are | `locate.rs` (threads, which extent counts), `fiemap.rs` (the ioctl), `locate/inode_tables.rs` and `ext4.rs` (inodes read from the device) |
//! | the order of a list | `sort.rs` |
//! | one line of `hoistway order --json` | `listing.rs` |
//! | the comparison of orders by `--explain` | `explain.rs` |
//! | which reads Linux issues for files in a given order | `read_plan.rs`; `read_plan/traversal.rs` for the orders of other programs; `read_plan/text.rs` for the stored form of a layout |
//! | how long a drive takes for these reads | `read_time.rs`, the one timing model of this crate |
//! | the members of an archive and their order | `archive/members.rs`; `archive/duplicates.rs` for equal member names |
//! | the headers of a member | `archive/header.rs`, `archive/pax.rs`; `archive/sparse.rs` for holes; `archive/attributes.rs` for extended attributes |
//! | warnings about files that change while they are read | `archive/event.rs` |
//! | read-ahead of an archive | `archive/worker.rs` (a reader thread and its batch), `archive/data.rs` (page cache and disk), `archive/queue.rs` (order of output, memory bound) |
//!
//! # Libraries that are not used
//!
//! - **`ext4-view` for inode tables** (`ext4.rs`): version 1.0 reads files by path. It has no inode
//!   by number, no physical block number and no location of an inode table, which are all that
//!   this crate needs. It replays the journal of the image, which is wrong for a mounted file
//!   system, and it refuses the features `meta_bg` and `inline_data`.
//! - **Setters of the `tar` crate for header fields** (`archive/header.rs`): the layout of a header
//!   is the crate's; each of its setters formats a number through an allocated string.
//!   2 million ustar headers took 630 to 880 ns each with the setters and 120 to 190 ns with the
//!   digits written in place (release build, one core). Warm, `hoistway tar` is to need no more CPU
//!   than GNU tar (docs/order-benchmarks.md).
//! - **`tar::Builder` for PAX records** (`archive/pax.rs`): the builder owns the output and writes
//!   one member after the other, while reader threads here build members in memory in parallel.
//! - **`procfs` and a mountinfo parser**: mount points come from `hoistway_machine`.
//!
#![doc = include_str!("../README.md")]

pub mod archive;
mod error;
pub mod explain;
pub mod ext4;
mod fiemap;
mod listing;
pub mod locate;
mod mounts;
mod open;
pub mod read_plan;
pub mod read_time;
mod sort;
mod tree;
pub mod walk;

pub use error::{Operation, PathError, WalkError};
pub use fiemap::{Extent, ExtentReader, ExtentState};
pub use listing::{FileRecord, ListOptions, Listing, device_text, list};
pub use open::{OpenedFile, PATH_BYTES_MAX};
pub use sort::{SortKey, sort};
pub use tree::{Entry, EntryId, FileKind, FollowLinks, Placement, Tree, TreeFull};
