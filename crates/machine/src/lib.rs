//! The machine that a program runs on: block devices with their schedulers and tunables, processes with their I/O priorities and control groups.
//!
//! Everything is read from sysfs and procfs below a root that can be another than `/`, so that tests bring machines of their own. Nothing here prints.

#![warn(missing_docs)]
