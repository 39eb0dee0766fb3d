//! By which a person sees and steers a running server: a tree of texts on a socket, with the kernel's own paths where the kernel has such.
//!
//! [`Session`] speaks the protocol, [`LEAVES`] is the tree, [`Steer`] is what the server has to do for it. [`Watch`] turns counters into shares.

mod accounts;
mod client;
mod histogram;
mod leaves;
mod markdown;
mod names;
mod session;
mod share;
mod steer;
mod terms;
mod text;
mod told;
mod tree;

#[cfg(test)]
pub(crate) mod fake;
#[cfg(test)]
mod tests;

pub use client::{Reply, ReplyError, read_reply};
pub use histogram::Latencies;
pub use leaves::LEAVES;
pub use markdown::table;
pub use names::{escape, unescape};
pub use session::{LINE_BYTES_MAX, Session};
pub use share::{Claim, Counters, INTERVAL_NS, INTERVALS, Sampled, Share, Watch, entitlements, groups, shares};
pub use steer::{
    AccountView, Change, ClientFacts, DeviceFacts, ExportFacts, GroupFacts, Lateness, OpView, Refused, ServerFacts,
    Steer, TenantFacts, Things,
};
pub use text::BadValue;
pub use told::{facts_of, is_used, view_of};
pub use tree::{Access, Ask, Get, Leaf, Set, SetError, leaves_under, meant_path};
