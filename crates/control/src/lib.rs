//! Administration of running queues: a tree of text values on a socket, metrics over HTTP, and the
//! client's side.
//!
//! ```text
//! ctl, top ── client ──▶ Session ─▶ tree of leaves ─▶ AdminTarget (server, mount)
//!                                                      └─ admin ─▶ Registry of devices
//! Prometheus ─▶ metrics::http ─▶ Metrics ────────────▶ AdminTarget, Watch
//! ```
//!
//! The paths are those of the kernel where the kernel has the same attribute. [`LEAVES`] declares
//! the tree once; listings, help and the reference in the documentation follow from it.
//! [`admin::change`] is the one implementation of changes; [`Watch`] turns counters into shares.
//!
//! Where to change what:
//! - a path of the tree: its row in `leaves.rs`; how paths are found: `tree.rs`
//! - the protocol: `session.rs`
//! - what a host has to implement: `target.rs` (reading), `admin.rs` (changing)
//! - what a tenant is entitled to: `share.rs`
//! - a metric: `metrics/mod.rs`, its figures in `metrics/sample.rs`, those of the process in
//!   `process.rs`; HTTP: `metrics/http.rs`, over
//!   the parser of the crate `httparse`
//! - requests and errors of the client: `client/mod.rs`
//! - the figures of `hoistway top`: `top/view.rs`; its sort keys: `top/sort.rs`
//!
#![doc = include_str!("../README.md")]

mod accounts;
pub mod admin;
pub mod client;
mod facts;
mod histogram;
mod leaf;
mod leaves;
pub mod log_filter;
mod markdown;
pub mod metrics;
mod names;
mod process;
mod session;
mod share;
mod target;
mod terms;
mod text;
pub mod top;
mod tree;

#[cfg(test)]
pub(crate) mod fake;
#[cfg(test)]
mod tests;

pub use admin::{DeviceAdmin, DeviceChange, GroupTerms, LogControl, Registry};
pub use client::{Reply, ReplyError, read_reply};
pub use facts::{MediumFacts, device_facts, is_used, view_of};
pub use histogram::Latencies;
pub use leaf::{Access, Get, Leaf, LeafQuery, Set, SetError};
pub use leaves::LEAVES;
pub use markdown::table;
pub use names::{escape, unescape};
pub use session::{LINE_BYTES_MAX, Session};
pub use share::{Claim, Counters, INTERVAL_NS, INTERVALS, Sampled, Share, Watch, entitlements, groups, shares};
pub use target::{
    AccountView, AdminTarget, Change, ClientFacts, ConfigReadings, DeviceFacts, ExportFacts, GroupFacts, Lateness,
    ObjectKind, OpView, Refused, ServerFacts, SliceFacts, TenantFacts,
};
pub use text::BadValue;
pub use tree::{leaves_under, suggest_path};
