//! Kernels of distributions in QEMU: their packages, modules and boots, and what the guests report.
//!
//! Everything is kept below one directory, which the functions call `folder`.
//!
//! - the architectures of kernels: `architecture.rs`
//! - the table of kernels: `table.rs`; their packages: `archive.rs`, `fetch.rs`
//! - minimal systems: `debian_root.rs`; the one for the builds of newer modules: `build_root.rs`
//! - kernels that are built from a package of sources: `built.rs`, `configs/`
//! - the modules of a kernel: `modules.rs`
//! - a boot: `initramfs.rs`, `boot.rs`; the verdict on it: `judge.rs`
//! - a boot without the guest program: `console.rs`
//!
//! The program in the virtual machine is the crate `hoistway-guest`.

pub mod architecture;
mod archive;
pub mod boot;
pub mod build_root;
pub mod built;
pub mod console;
pub mod debian_root;
pub mod fetch;
pub mod initramfs;
pub mod judge;
pub mod modules;
pub mod table;
